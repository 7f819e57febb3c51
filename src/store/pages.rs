//! The text column page by page: what a search reads, without the way through Arrow.
//!
//! The column is required and plain, so a page's bytes are its values one after the other, each
//! behind its length in four bytes.

use std::fs::File;
use std::ops::Range;
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
    offset: u64,
    bytes: usize,
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
                offset: u64::try_from(location.offset).ok()?,
                bytes: usize::try_from(location.compressed_page_size).ok()?,
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
        Ok(Self { file: segment.events()?, footer, column, path })
    }

    /// The decompressed bytes of a page: its values, each behind its length in four bytes.
    pub fn read(
        &self,
        page: &TextPage,
    ) -> Result<impl std::ops::Deref<Target = [u8]> + use<>, StoreError> {
        let damaged = |error: ParquetError| StoreError::damaged(&self.path, error);
        // By position: the file is shared with other threads, and so is the place they read at.
        let mut bytes = vec![0; page.bytes];
        super::files::read_at(&self.file, &mut bytes, page.offset)
            .map_err(|error| StoreError::damaged(&self.path, error))?;
        let chunk = self.footer.metadata().row_group(page.row_group).column(self.column);
        let chunk = single_page(chunk, page).map_err(damaged)?;
        let bytes = Arc::new(bytes::Bytes::from(bytes));
        let mut reader =
            SerializedPageReader::new(bytes, &chunk, page.count, None).map_err(damaged)?;
        match reader.get_next_page().map_err(damaged)? {
            Some(Page::DataPage { buf, encoding: Encoding::PLAIN, .. }) => Ok(buf),
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> StoreError {
        StoreError::damaged(Path::new(&self.path), "a page of text is not what was written")
    }
}

/// A page of text by rows: its values stand each behind its length in four bytes.
pub struct TextValues<P> {
    page: P,
    /// Where each value begins, and the end.
    starts: Vec<usize>,
}

impl<P: std::ops::Deref<Target = [u8]>> TextValues<P> {
    pub fn new(page: P) -> Self {
        let mut starts = vec![4];
        let mut at = 0;
        while let Some(length) = page.get(at..at + 4).and_then(|b| b.try_into().ok()) {
            at = at.saturating_add(4 + u32::from_le_bytes(length) as usize);
            starts.push(at + 4);
        }
        Self { page, starts }
    }

    /// Rows of the page.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes of the page.
    pub fn bytes(&self) -> &[u8] {
        &self.page
    }

    /// Where the text of a row lies among them; empty when there is no such row.
    pub fn range(&self, row: usize) -> Range<usize> {
        let bounds = self.starts.get(row).zip(self.starts.get(row + 1));
        let range = bounds.map_or(0..0, |(from, to)| *from..to - 4);
        if range.end <= self.page.len() { range } else { 0..0 }
    }

    /// The text of a row.
    pub fn get(&self, row: usize) -> &[u8] {
        &self.page[self.range(row)]
    }

    /// The row that holds the byte at `at` of the page, or whose length does.
    pub fn row_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at + 4).saturating_sub(1)
    }
}

/// The column chunk as if it held this page only, at the beginning of a file.
fn single_page(
    chunk: &ColumnChunkMetaData,
    page: &TextPage,
) -> Result<ColumnChunkMetaData, ParquetError> {
    chunk
        .clone()
        .into_builder()
        .set_dictionary_page_offset(None)
        .set_data_page_offset(0)
        .set_total_compressed_size(page.bytes as i64)
        .set_num_values(page.count as i64)
        .build()
}
