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

use crate::disk::files::NewFile;
use crate::error::{StoreError, write_error};
use crate::parquet_file::shared_properties;

/// Size in memory at which a row group is closed, which bounds the memory of a writer.
const ROW_GROUP_BYTES: usize = 16 << 20;

/// Number of rows at which a row group is closed, even if it is smaller than [`ROW_GROUP_BYTES`].
const ROW_GROUP_ROWS: usize = 1 << 20;

/// Uncompressed bytes of a page of the text column, the smallest amount that a search reads.
const TEXT_PAGE_BYTES: usize = 32 << 10;

/// Texts written between two checks whether a page of the text column is full. They are few, so
/// that pages of long texts stay near [`TEXT_PAGE_BYTES`].
const TEXT_VALUES_PER_CHECK: usize = 16;

/// Values written between two checks whether a page of another column is full. To check as often as
/// for texts would take a twentieth of the time of an ingest.
const VALUES_PER_CHECK: usize = 1024;

/// The events file under construction.
pub(super) struct EventsFile {
    path: PathBuf,
    file: SerializedFileWriter<NewFile>,
    schema: SchemaRef,
    /// Position of the text column.
    text: usize,
    /// Creates the writer of the text column.
    texts: ArrowRowGroupWriterFactory,
    /// Creates the writers of the other columns.
    others: ArrowRowGroupWriterFactory,
    /// Writers for the row group under construction; empty before its first row.
    columns: Vec<ArrowColumnWriter>,
    /// Rows of the row group under construction.
    rows: usize,
}

impl EventsFile {
    /// Begins the events file in `file`, which is at `path`, for rows of `schema`.
    pub(super) fn begin(
        file: NewFile,
        path: &Path,
        schema: SchemaRef,
    ) -> std::result::Result<Self, StoreError> {
        Self::open(file, path, schema).map_err(|error| write_error(path, error))
    }

    fn open(file: NewFile, path: &Path, schema: SchemaRef) -> Result<Self> {
        let text = schema.index_of(EventColumn::Text.name())?;
        let text_properties = event_properties(TEXT_VALUES_PER_CHECK);
        let (file, texts) = ArrowWriter::try_new(file, Arc::clone(&schema), Some(text_properties))?
            .into_serialized_writer()?;

        // Only a writer provides a factory.
        let other_properties = event_properties(VALUES_PER_CHECK);
        let (_, others) =
            ArrowWriter::try_new(io::sink(), Arc::clone(&schema), Some(other_properties))?
                .into_serialized_writer()?;

        Ok(Self {
            path: path.to_owned(),
            file,
            schema,
            text,
            texts,
            others,
            columns: Vec::new(),
            rows: 0,
        })
    }

    /// Returns the approximate size of the written row groups and of the one under construction.
    pub(super) fn bytes(&self) -> usize {
        self.file.bytes_written() + self.buffered_bytes()
    }

    /// Returns the approximate size of the row group under construction.
    fn buffered_bytes(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    /// Appends the rows of `batch`.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), StoreError> {
        self.append_batch(batch).map_err(|error| write_error(&self.path, error))
    }

    fn append_batch(&mut self, batch: &RecordBatch) -> Result<()> {
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
        if self.buffered_bytes() >= ROW_GROUP_BYTES || self.rows >= ROW_GROUP_ROWS {
            self.close_row_group()?;
        }
        Ok(())
    }

    /// Closes the row group under construction.
    fn close_row_group(&mut self) -> Result<()> {
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

    /// Ends the file. Its content may not yet be on disk.
    pub(super) fn finish(mut self) -> std::result::Result<NewFile, StoreError> {
        let flushed = self.close_row_group();
        let ended = flushed.and_then(|()| self.file.into_inner());
        ended.map_err(|error| write_error(&self.path, error))
    }
}

/// Returns the properties of an events file. The writer checks whether a page is full after every
/// `values_per_check` values.
fn event_properties(values_per_check: usize) -> WriterProperties {
    let mut builder = shared_properties()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_write_batch_size(values_per_check)
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
