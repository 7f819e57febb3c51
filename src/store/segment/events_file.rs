//! The events file of a segment: Parquet, written column by column.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use schemas::table::EventColumn;

use crate::store::disk::files::NewFile;
use crate::store::error::{StoreError, write_error};
use crate::store::parquet_file::shared_properties;

/// Size in memory, or number of rows, at which a row group is closed. Both bound what a writer
/// holds.
const ROW_GROUP_BYTES: usize = 16 << 20;
const ROW_GROUP_ROWS: usize = 1 << 20;

/// Uncompressed bytes of a page of the text column, the least that a search reads.
const TEXT_PAGE_BYTES: usize = 32 << 10;

/// Values written between two checks whether a page is full. The text column is checked often, so
/// that pages of long texts stay near the limit. For the other columns such checks would be useless
/// work, a twentieth of an ingest's.
const TEXT_VALUES: usize = 16;
const VALUES: usize = 1024;

/// The events file under construction.
pub(super) struct EventsFile {
    path: PathBuf,
    file: SerializedFileWriter<NewFile>,
    schema: SchemaRef,
    /// Position of the text column.
    text: usize,
    texts: ArrowRowGroupWriterFactory,
    others: ArrowRowGroupWriterFactory,
    /// Writers for the row group under construction; empty before its first row.
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl EventsFile {
    /// Begins the events file in `file`, which is at `path`, for rows of `schema`.
    pub(super) fn begin(
        file: NewFile,
        path: &Path,
        schema: SchemaRef,
    ) -> std::result::Result<Self, StoreError> {
        let open = || -> Result<Self> {
            let text = schema.index_of(EventColumn::Text.name())?;
            let (file, texts) = ArrowWriter::try_new(
                file,
                Arc::clone(&schema),
                Some(event_properties(TEXT_VALUES)),
            )?
            .into_serialized_writer()?;
            // Only a writer provides a factory.
            let others = event_properties(VALUES);
            let (_, others) = ArrowWriter::try_new(io::sink(), Arc::clone(&schema), Some(others))?
                .into_serialized_writer()?;
            let path = path.to_owned();
            Ok(Self { path, file, schema, text, texts, others, columns: Vec::new(), rows: 0 })
        };
        open().map_err(|error| write_error(path, error))
    }

    /// Returns the approximate number of bytes written and waiting.
    pub(super) fn bytes(&self) -> usize {
        self.file.bytes_written() + self.waiting()
    }

    fn waiting(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    /// Appends the rows of `batch`.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), StoreError> {
        self.add(batch).map_err(|error| write_error(&self.path, error))
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.columns.is_empty() {
            let group = self.file.flushed_row_groups().len();
            self.columns = self.others.create_column_writers(group)?;
            let texts = self.texts.create_column_writers(group)?.swap_remove(self.text);
            self.columns[self.text] = texts;
        }
        let fields = self.schema.fields().iter().zip(batch.columns());
        for ((field, array), column) in fields.zip(&mut self.columns) {
            // No column is nested except the list of files, which has one leaf as well.
            for leaf in compute_leaves(field, array)? {
                column.write(&leaf)?;
            }
        }
        self.rows += batch.num_rows();
        if self.waiting() >= ROW_GROUP_BYTES || self.rows >= ROW_GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// Closes the row group under construction.
    fn flush(&mut self) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in self.columns.drain(..) {
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Ends the file. Its content is not on disk for certain yet.
    pub(super) fn finish(mut self) -> std::result::Result<NewFile, StoreError> {
        let flushed = self.flush();
        let ended = flushed.and_then(|()| self.file.into_inner());
        ended.map_err(|error| write_error(&self.path, error))
    }
}

fn event_properties(values: usize) -> WriterProperties {
    let mut builder = shared_properties()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_write_batch_size(values)
        // Reading one row decodes one page of every column.
        .set_data_page_row_count_limit(2048);
    let text = ColumnPath::from(EventColumn::Text.name());
    builder = builder
        .set_column_dictionary_enabled(text.clone(), false)
        .set_column_encoding(text.clone(), Encoding::PLAIN)
        // Decompresses twice as fast as zstd, and a search reads little else.
        .set_column_compression(text.clone(), Compression::LZ4_RAW)
        .set_column_statistics_enabled(text.clone(), EnabledStatistics::None)
        .set_column_data_page_size_limit(text, TEXT_PAGE_BYTES);
    for column in [
        EventColumn::EventIndex,
        EventColumn::TurnIndex,
        EventColumn::StepIndex,
        EventColumn::Timestamp,
        EventColumn::SourceOffset,
        EventColumn::SourceLength,
    ] {
        let column = ColumnPath::from(column.name());
        builder = builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let hash = ColumnPath::from(EventColumn::RecordHash.name());
    builder.set_column_dictionary_enabled(hash, false).build()
}
