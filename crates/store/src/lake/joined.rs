//! Joins objects with events of many sessions into one larger object with one skip index.

use std::error::Error;
use std::path::Path;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;

use crate::error::{StoreError, write_error};
use crate::export::{export_rows, export_schema, parquet_properties};
use crate::index::IndexWriter;
use crate::segment::indexed_columns::index_rows;

/// Number of rows from which a row group ends. Engines scan the groups of a file in parallel.
const GROUP_ROWS: usize = 1 << 16;

/// Joins events, source by source. Equal sources in the same order give equal bytes.
pub struct JoinedWriter {
    writer: ArrowWriter<Vec<u8>>,
    index: IndexWriter,
}

/// A joined object with its skip index.
pub struct JoinedFiles {
    pub events: Vec<u8>,
    pub index: Vec<u8>,
}

impl JoinedWriter {
    /// Creates a writer without rows.
    ///
    /// # Errors
    /// Fails if the columns cannot be written.
    pub fn new() -> Result<Self, StoreError> {
        let writer = ArrowWriter::try_new(Vec::new(), export_schema(), Some(parquet_properties()));
        Ok(Self { writer: writer.map_err(encode_error)?, index: IndexWriter::new() })
    }

    /// Adds the events of a source, which have all columns of the table `events`. They are in blocks
    /// of the index of their own, so that it excludes exactly what the index of the source excludes.
    ///
    /// # Errors
    /// Fails if the rows cannot be encoded.
    pub fn push(&mut self, events: &RecordBatch) -> Result<(), StoreError> {
        let rows = export_rows(events).map_err(encode_error)?;
        self.writer.write(&rows).map_err(encode_error)?;
        if self.writer.in_progress_rows() >= GROUP_ROWS {
            self.writer.flush().map_err(encode_error)?;
        }
        index_rows(&mut self.index, &rows);
        self.index.close_block();
        Ok(())
    }

    /// Returns the files.
    ///
    /// # Errors
    /// Fails if the rows cannot be encoded.
    pub fn finish(self) -> Result<JoinedFiles, StoreError> {
        let events = self.writer.into_inner().map_err(encode_error)?;
        Ok(JoinedFiles { events, index: self.index.finish().concat() })
    }
}

fn encode_error(error: impl Error + 'static) -> StoreError {
    write_error(Path::new("a joined object"), error)
}
