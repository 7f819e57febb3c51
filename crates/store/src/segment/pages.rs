//! Reads the text column page by page for searches, without Arrow.
//!
//! The column is required and plain, so a page's bytes are its values in sequence, each after its
//! length in four bytes.

use std::ops::Range;

use super::events_footer::TextPage;
use super::open_segment::Segment;
use crate::error::StoreError;
use crate::thrift::PageHeader;

/// Reads pages of text. It keeps its buffers, so every thread needs its own.
#[derive(Default)]
pub struct PageReader {
    /// The page as it is in the file.
    packed: Vec<u8>,
    /// The unpacked page, followed by unused bytes.
    page: Vec<u8>,
    starts: Vec<usize>,
}

impl PageReader {
    /// Reads the texts of a page of `segment`.
    pub fn read_page(
        &mut self,
        segment: &Segment,
        page: &TextPage,
    ) -> Result<TextValues<'_>, StoreError> {
        self.packed.resize(page.bytes, 0);
        segment.events_file()?.read_at(&mut self.packed, page.offset)?;
        let (length, packed) = split_header(&self.packed).ok_or_else(|| malformed_page(segment))?;

        // The buffer keeps its largest size, as filling it again for every page takes time.
        if self.page.len() < length {
            self.page.resize(length, 0);
        }
        let size = i32::try_from(length).map_err(|_| malformed_page(segment))?;
        // This decoder is a fifth faster than the one of the `parquet` crate. Most of the time of a
        // scan is spent here.
        let unpacked =
            lz4::block::decompress_to_buffer(packed, Some(size), &mut self.page[..length]);
        if !unpacked.is_ok_and(|unpacked| unpacked == length) {
            return Err(malformed_page(segment));
        }

        let values = TextValues::new(&self.page[..length], &mut self.starts);
        if values.len() != page.count || !values.are_whole() {
            return Err(malformed_page(segment));
        }
        Ok(values)
    }
}

/// Returns the error for a page that differs from what its header or the footer declares.
fn malformed_page(segment: &Segment) -> StoreError {
    StoreError::damaged(&segment.table_path("events"), "a page of the text column is malformed")
}

/// Most bytes that LZ4 unpacks from one packed byte. A page that declares more is damaged.
const MAX_UNPACKED_RATIO: usize = 256;

/// Returns the unpacked size of a page and its packed bytes.
fn split_header(page: &[u8]) -> Option<(usize, &[u8])> {
    let mut packed = page;
    let header = PageHeader::read(&mut packed)?;
    let length = usize::try_from(header.uncompressed).ok()?;
    let is_whole = packed.len() == header.compressed;
    if header.kind != 0 || !is_whole || length / MAX_UNPACKED_RATIO > packed.len() {
        return None;
    }
    Some((length, packed))
}

/// The values of a page of text by row. Each value follows its length in four bytes.
#[derive(Clone, Copy)]
pub struct TextValues<'p> {
    page: &'p [u8],
    /// Where each value begins, and four bytes after the end of the last.
    starts: &'p [usize],
}

impl<'p> TextValues<'p> {
    /// Splits `page` into its values. `starts` is a buffer to reuse.
    pub fn new(page: &'p [u8], starts: &'p mut Vec<usize>) -> Self {
        starts.clear();
        starts.push(4);
        let mut at = 0;
        while let Some(length) = page.get(at..at + 4).and_then(|b| b.try_into().ok()) {
            at = at.saturating_add(4 + u32::from_le_bytes(length) as usize);
            starts.push(at + 4);
        }
        Self { page, starts }
    }

    /// Returns the number of rows in the page.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// True if the page has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the values fill the page exactly.
    fn are_whole(&self) -> bool {
        self.starts.last().is_some_and(|end| *end == self.page.len() + 4)
    }

    /// Returns all bytes of the page.
    pub fn bytes(&self) -> &'p [u8] {
        self.page
    }

    /// Returns the range of a row's text in the page; empty if there is no such row.
    pub fn text_range(&self, row: usize) -> Range<usize> {
        let bounds = self.starts.get(row).zip(self.starts.get(row + 1));
        let range = bounds.map_or(0..0, |(start, next_start)| *start..next_start - 4);
        if range.end <= self.page.len() { range } else { 0..0 }
    }

    /// Returns the text of a row; empty if there is no such row.
    pub fn get(&self, row: usize) -> &'p [u8] {
        &self.page[self.text_range(row)]
    }

    /// Returns the row whose text or length contains the byte at `offset` of the page. The result is at
    /// least `first_row`, where the search begins.
    pub fn row_at(&self, offset: usize, first_row: usize) -> usize {
        let later = self.starts.get(first_row + 1..).unwrap_or_default().iter();
        first_row + later.take_while(|start| **start <= offset + 4).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gives_both_sizes() {
        // Type 0, 300 bytes, 3 packed; then the header of a data page, and the bytes.
        let page = [0x15, 0, 0x15, 0xd8, 4, 0x15, 6, 0x2c, 0x15, 2, 0, 0, b'a', b'b', b'c'];
        assert_eq!(split_header(&page), Some((300, &b"abc"[..])));
        assert_eq!(split_header(&[0x15, 2, 0x15, 2, 0x15, 2, 0, 9]), None, "an index page");
        assert_eq!(split_header(&[0x15, 0, 0x15, 2, 0x15, 40, 0, 9]), None, "longer than there is");
        assert_eq!(
            split_header(&[0x15, 0, 0x15, 0x80, 0x80, 1, 0x15, 2, 0, 9]),
            None,
            "8 KB of a byte"
        );
        assert_eq!(
            split_header(&[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x15, 2, 0, 9]),
            None
        );
        for end in 0..8 {
            assert_eq!(split_header(&page[..end]), None, "{end}");
        }
    }
}
