//! The text column page by page: what a search reads, without the way through Arrow.
//!
//! The column is required and plain, so a page's bytes are its values one after the other, each
//! behind its length in four bytes.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader as _};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::{Segment, StoreError};

/// A page of the text column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPage {
    /// First row, counted over the segment.
    pub start: usize,
    pub count: usize,
    row_group: usize,
    offset: i64,
    bytes: i32,
}

/// Where the pages lie, from the footer.
pub(super) fn locate(footer: &ArrowReaderMetadata) -> Option<Vec<TextPage>> {
    let metadata = footer.metadata();
    let column = metadata
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .position(|c| c.name() == "text")?;
    let mut pages = Vec::new();
    let mut group_start = 0;
    for (row_group, group) in metadata.row_groups().iter().enumerate() {
        let rows = usize::try_from(group.num_rows()).ok()?;
        let locations = metadata.offset_index()?.get(row_group)?.get(column)?.page_locations();
        for (at, location) in locations.iter().enumerate() {
            let first = usize::try_from(location.first_row_index).ok()?;
            let end = locations
                .get(at + 1)
                .map_or(Some(rows), |next| usize::try_from(next.first_row_index).ok())?;
            pages.push(TextPage {
                start: group_start + first,
                count: end - first,
                row_group,
                offset: location.offset,
                bytes: location.compressed_page_size,
            });
        }
        group_start += rows;
    }
    Some(pages)
}

/// Reads pages of one segment; one reader a thread.
pub struct PageReader {
    file: Arc<File>,
    footer: ArrowReaderMetadata,
    column: usize,
    path: std::path::PathBuf,
}

impl PageReader {
    pub fn open(segment: &Segment) -> Result<Self, StoreError> {
        let path = segment.path("events");
        let footer = segment.footer()?;
        let columns = footer.metadata().file_metadata().schema_descr().columns();
        let column = columns.iter().position(|column| column.name() == "text").unwrap_or(0);
        let file = Arc::new(super::reader::open(&path)?);
        Ok(Self { file, footer, column, path })
    }

    /// The decompressed bytes of a page.
    pub fn read(
        &self,
        page: &TextPage,
    ) -> Result<impl std::ops::Deref<Target = [u8]> + use<>, StoreError> {
        let damaged = |error: ParquetError| StoreError::damaged(&self.path, error);
        let chunk = self.footer.metadata().row_group(page.row_group).column(self.column);
        let chunk = single_page(chunk, page).map_err(damaged)?;
        let mut reader =
            SerializedPageReader::new(Arc::clone(&self.file), &chunk, page.count, None)
                .map_err(damaged)?;
        match reader.get_next_page().map_err(damaged)? {
            Some(Page::DataPage { buf, encoding: Encoding::PLAIN, .. }) => Ok(buf),
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> StoreError {
        StoreError::damaged(Path::new(&self.path), "a page of text is not what was written")
    }
}

/// The column chunk as if it held this page only.
fn single_page(
    chunk: &ColumnChunkMetaData,
    page: &TextPage,
) -> Result<ColumnChunkMetaData, ParquetError> {
    chunk
        .clone()
        .into_builder()
        .set_dictionary_page_offset(None)
        .set_data_page_offset(page.offset)
        .set_total_compressed_size(i64::from(page.bytes))
        .set_num_values(page.count as i64)
        .build()
}
