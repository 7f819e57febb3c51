//! Reads the footer of an events file, which locates the pages of the text column.

use std::sync::Arc;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;
use schemas::table::EventColumn;

use crate::disk::checked_file::{CheckedFile, ParquetInput};
use crate::error::StoreError;

/// Reads the footer and the page positions of an events file.
pub(super) fn read_footer(file: &Arc<CheckedFile>) -> Result<ArrowReaderMetadata, StoreError> {
    // Smallest and largest values of pages are not used, and take as much memory as the positions.
    let options = ArrowReaderOptions::new()
        .with_column_index_policy(PageIndexPolicy::Skip)
        .with_offset_index_policy(PageIndexPolicy::Optional);
    ArrowReaderMetadata::load(&ParquetInput(Arc::clone(file)), options)
        .map_err(|error| StoreError::damaged(file.path(), error))
}

/// A page of the text column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextPage {
    /// First row, relative to the segment.
    pub start: usize,
    /// Number of rows.
    pub count: usize,
    /// Position in the file.
    pub(super) offset: u64,
    /// Length in the file, header included.
    pub(super) bytes: usize,
}

/// Returns the pages of the text column, as located by the footer. Returns `None` if the footer has
/// no page index or is damaged.
pub(super) fn locate_text_pages(footer: &ArrowReaderMetadata) -> Option<Vec<TextPage>> {
    let metadata = footer.metadata();
    let column = metadata
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .position(|c| c.name() == EventColumn::Text.name())?;

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
            // A damaged footer may count backwards, or beyond the rows.
            if end < first || end > rows {
                return None;
            }
            pages.push(TextPage {
                start: group_start + first,
                count: end - first,
                offset: u64::try_from(location.offset).ok()?,
                bytes: usize::try_from(location.compressed_page_size).ok()?,
            });
        }
        group_start += rows;
    }
    pages.shrink_to_fit();
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::chunk_checksum::{CHUNK_BYTES, chunk_checksum};
    use crate::parquet_file::ParquetFile;

    #[test]
    fn threads_read_the_footer_of_one_handle() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let schema = ingest::stream::batch::events_schema();
        let empty = ParquetFile::new(Vec::new(), schema).and_then(ParquetFile::finish);
        let empty = empty.expect("a Parquet file");
        std::fs::write(file.path(), &empty).expect("written");
        let checksums = empty.chunks(CHUNK_BYTES).map(chunk_checksum).collect();
        let shared = CheckedFile::open(file.path(), empty.len() as u64, checksums);
        let shared = Arc::new(shared.expect("opens"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        read_footer(&shared).expect("is whole");
                    }
                });
            }
        });
    }
}
