//! Writes one Parquet or Arrow file from Arrow files that have the same columns.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;

use super::error::{StoreError, write_error};
use super::export::parquet_properties;

/// The zone of times in exported files.
const UTC: &str = "UTC";

/// The form of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFileForm {
    Parquet,
    Arrow,
}

/// The writer of a form.
enum TableSink<'f> {
    Parquet(Box<ArrowWriter<&'f mut File>>),
    Arrow(Box<FileWriter<&'f mut File>>),
}

/// A file that is being written.
pub struct TableFile<'f> {
    form: TableFileForm,
    /// For messages.
    path: &'f Path,
    file: Option<&'f mut File>,
    /// `None` until the first part shows the columns.
    sink: Option<TableSink<'f>>,
    rows: u64,
}

impl<'f> TableFile<'f> {
    /// Begins a file.
    pub fn new(form: TableFileForm, file: &'f mut File, path: &'f Path) -> Self {
        Self { form, path, file: Some(file), sink: None, rows: 0 }
    }

    /// Appends the rows of an Arrow file. Times without a zone, as the views of SQL have them, get the
    /// zone UTC.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if the part is not an Arrow file with the columns of
    /// the parts before.
    pub fn append(&mut self, part: &[u8]) -> Result<(), StoreError> {
        self.append_rows(part).map_err(|error| write_error(self.path, error))
    }

    fn append_rows(&mut self, part: &[u8]) -> Result<(), ParquetError> {
        let reader = FileReader::try_new(Cursor::new(part), None)?;
        let schema = schema_in_utc(&reader.schema());
        if let Some(file) = self.file.take() {
            self.sink = Some(match self.form {
                TableFileForm::Parquet => {
                    let properties = Some(parquet_properties());
                    let writer = ArrowWriter::try_new(file, Arc::clone(&schema), properties)?;
                    TableSink::Parquet(Box::new(writer))
                }
                TableFileForm::Arrow => {
                    TableSink::Arrow(Box::new(FileWriter::try_new(file, &schema)?))
                }
            });
        }
        for batch in reader {
            let batch = batch_in_utc(&batch?, &schema)?;
            self.rows += batch.num_rows() as u64;
            match &mut self.sink {
                Some(TableSink::Parquet(writer)) => writer.write(&batch)?,
                Some(TableSink::Arrow(writer)) => writer.write(&batch)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Writes the end of the file, and returns the number of its rows.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn finish(self) -> Result<u64, StoreError> {
        let finished = match self.sink {
            Some(TableSink::Parquet(writer)) => writer.close().map(|_| ()),
            Some(TableSink::Arrow(mut writer)) => writer.finish().map_err(ParquetError::from),
            None => Ok(()),
        };
        finished.map_err(|error| write_error(self.path, error))?;
        Ok(self.rows)
    }
}

/// The type of times in the store: microseconds in UTC that name no zone.
const PLAIN_TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Returns the schema with the zone UTC for all times.
fn schema_in_utc(schema: &Schema) -> SchemaRef {
    let in_utc = |field: &Arc<Field>| {
        if field.data_type() != &PLAIN_TIME {
            return Arc::clone(field);
        }
        let kind = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    Arc::new(Schema::new(schema.fields().iter().map(in_utc).collect::<Vec<_>>()))
}

/// Returns the batch with the zones of the schema.
fn batch_in_utc(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let in_utc = |column: &ArrayRef| {
        if column.data_type() != &PLAIN_TIME {
            return Arc::clone(column);
        }
        let times = column.as_primitive::<TimestampMicrosecondType>().clone();
        Arc::new(times.with_timezone(UTC)) as ArrayRef
    };
    RecordBatch::try_new(Arc::clone(schema), batch.columns().iter().map(in_utc).collect())
}
