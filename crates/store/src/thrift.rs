//! Examines the headers in a Parquet file before the reader trusts them. The reader reserves what the
//! header of a page says that it decompresses to, and the footer may say less. It also passes over
//! lists of a length that the file only claims, which takes hours.
//!
//! Headers are structs in Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>), with the
//! fields of `FileMetaData` and `PageHeader` (<https://github.com/apache/parquet-format>).

use std::ops::Range;

/// Field of the kind of a page.
const PAGE_KIND: i64 = 1;

/// Field of the size of a page before compression.
const UNCOMPRESSED_SIZE: i64 = 2;

/// Field of the size of a page in the file.
const COMPRESSED_SIZE: i64 = 3;

/// Types of values.
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// Maximum depth of structs and lists in a header. Footers have nine.
const MAX_DEPTH: u8 = 16;

/// Number of bytes after the footer: its length and the mark of the format.
const TRAILER_BYTES: usize = 8;

/// Returns true if the footer of a file is a struct whose lists are as long as they claim.
pub(crate) fn has_whole_footer(file: &[u8]) -> bool {
    let find_footer = || {
        let (before, trailer) = file.split_at_checked(file.len().checked_sub(TRAILER_BYTES)?)?;
        let length = u32::from_le_bytes(*trailer.first_chunk()?);
        before.get(before.len().checked_sub(usize::try_from(length).ok()?)?..)
    };
    find_footer().is_some_and(|mut footer| skip_value(&mut footer, STRUCT, 0).is_some())
}

/// The sizes of pages before compression, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PageSizes {
    pub(crate) sum: u64,
    pub(crate) largest: u64,
}

/// Returns the sizes of the pages in `chunk`, a range of `file`. `None` if a header cannot be read, or
/// if the pages do not fill the chunk.
pub(crate) fn read_page_sizes(file: &[u8], chunk: Range<usize>) -> Option<PageSizes> {
    let mut rest = file.get(chunk)?;
    let mut sizes = PageSizes::default();
    while !rest.is_empty() {
        let header = PageHeader::read(&mut rest)?;
        sizes.sum = sizes.sum.checked_add(header.uncompressed)?;
        sizes.largest = sizes.largest.max(header.uncompressed);
        rest = rest.get(header.compressed..)?;
    }
    Some(sizes)
}

/// What the header of a page says of it.
pub(crate) struct PageHeader {
    /// 0 for a page of data.
    pub(crate) kind: i64,
    /// The size before compression, in bytes.
    pub(crate) uncompressed: u64,
    /// The size in the file, in bytes.
    pub(crate) compressed: usize,
}

impl PageHeader {
    /// Reads a header and moves `rest` behind it.
    pub(crate) fn read(rest: &mut &[u8]) -> Option<Self> {
        let mut page_kind = None;
        let mut uncompressed = None;
        let mut compressed = None;
        let mut field = 0;
        while let Some(kind) = begin_field(rest, &mut field)? {
            match field {
                PAGE_KIND => page_kind = Some(read_zigzag(rest)?),
                UNCOMPRESSED_SIZE => uncompressed = u64::try_from(read_zigzag(rest)?).ok(),
                COMPRESSED_SIZE => compressed = usize::try_from(read_zigzag(rest)?).ok(),
                _ => skip_value(rest, kind, 0)?,
            }
        }
        Some(Self { kind: page_kind?, uncompressed: uncompressed?, compressed: compressed? })
    }
}

/// Reads the beginning of a field: sets its number and returns its type. The inner value is `None` at
/// the end of the struct.
fn begin_field(rest: &mut &[u8], field: &mut i64) -> Option<Option<u8>> {
    let byte = read_byte(rest)?;
    let kind = byte & 0x0f;
    if kind == 0 {
        return Some(None);
    }
    *field = match byte >> 4 {
        0 => read_zigzag(rest)?,
        step => field.checked_add(i64::from(step))?,
    };
    Some(Some(kind))
}

/// Moves `rest` behind a value.
fn skip_value(rest: &mut &[u8], kind: u8, depth: u8) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match kind {
        // The value of a boolean field is part of its type.
        1 | 2 => {}
        3 => skip_bytes(rest, 1)?,
        4..=6 => {
            read_varint(rest)?;
        }
        7 => skip_bytes(rest, 8)?,
        8 => {
            let length = read_varint(rest)?;
            skip_bytes(rest, usize::try_from(length).ok()?)?;
        }
        LIST | SET => skip_elements(rest, depth)?,
        STRUCT => {
            let mut field = 0;
            while let Some(kind) = begin_field(rest, &mut field)? {
                skip_value(rest, kind, depth + 1)?;
            }
        }
        // Headers have no maps.
        _ => return None,
    }
    Some(())
}

/// Moves `rest` behind the elements of a list.
fn skip_elements(rest: &mut &[u8], depth: u8) -> Option<()> {
    let byte = read_byte(rest)?;
    let count = match byte >> 4 {
        15 => read_varint(rest)?,
        count => u64::from(count),
    };
    let kind = byte & 0x0f;
    // Headers have no lists of booleans, whose elements the reader takes for empty. Every other
    // element has at least a byte.
    if count > 0 && matches!(kind, 1 | 2) || count > rest.len() as u64 {
        return None;
    }
    (0..count).try_for_each(|_| skip_value(rest, kind, depth + 1))
}

fn read_byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

fn skip_bytes(rest: &mut &[u8], count: usize) -> Option<()> {
    *rest = rest.get(count..)?;
    Some(())
}

/// Reads a number of seven bits per byte, the lowest first.
fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = read_byte(rest)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Reads a signed number, whose sign is the lowest bit.
fn read_zigzag(rest: &mut &[u8]) -> Option<i64> {
    let number = read_varint(rest)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page of 300 bytes that decompresses to `uncompressed`: type, sizes, checksum, and a
    /// struct with a number, a flag and statistics.
    fn page(uncompressed: &[u8]) -> Vec<u8> {
        let head = [&[0x15, 0x00, 0x15], uncompressed, &[0x15, 0xd8, 0x04, 0x15, 0x07]].concat();
        let inner = [0x1c, 0x15, 0x02, 0x11, 0x1c, 0x18, 0x02, b'a', b'b', 0x00, 0x00, 0x00];
        [head, inner.to_vec(), vec![9; 300]].concat()
    }

    #[test]
    fn the_sizes_of_pages_are_added() {
        let small = page(&[0xd0, 0x0f]);
        let large = page(&[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        let file = [b"PAR1".to_vec(), small, large].concat();
        let largest = u64::from(u32::MAX >> 1);
        let sizes = read_page_sizes(&file, 4..file.len());
        assert_eq!(sizes, Some(PageSizes { sum: 1000 + largest, largest }));
        assert_eq!(read_page_sizes(&file, 4..4), Some(PageSizes::default()));
    }

    #[test]
    fn a_footer_is_whole_if_its_lists_are() {
        let file = |footer: &[u8]| {
            let length = u32::try_from(footer.len()).expect("short").to_le_bytes();
            [b"PAR1", footer, &length, b"PAR1"].concat()
        };
        // A number, and lists of two numbers, of a struct, and of nothing.
        let whole =
            [0x15, 0x02, 0x19, 0x25, 0x02, 0x04, 0x19, 0x1c, 0x15, 0x02, 0x00, 0x19, 0x01, 0];
        assert!(has_whole_footer(&file(&whole)));
        // Two thousand million booleans, as many numbers, and too many lists in lists.
        for kind in [0x01, 0x02, 0x05] {
            let claim = [0x19, 0xf0 | kind, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
            assert!(!has_whole_footer(&file(&claim)), "{kind}");
        }
        assert!(!has_whole_footer(&file(&[0x19; 100])));
        for end in 0..whole.len() {
            assert!(!has_whole_footer(&file(&whole[..end])), "{end}");
        }
        for broken in [&b""[..], b"PAR1", b"\xff\xff\xff\xffPAR1"] {
            assert!(!has_whole_footer(broken));
        }
    }

    #[test]
    fn broken_headers_have_no_size() {
        let whole = page(&[0xd0, 0x0f]);
        for end in 1..whole.len() {
            assert_eq!(read_page_sizes(&whole, 0..end), None, "{end}");
        }
        assert_eq!(read_page_sizes(&whole, 0..whole.len() + 1), None);
        // A negative size, a list that is too long, structs without end.
        assert_eq!(read_page_sizes(&[0x25, 0x01, 0x15, 0x00, 0x00], 0..5), None);
        assert_eq!(read_page_sizes(&[0x19, 0x53, 0x00], 0..3), None);
        assert_eq!(read_page_sizes(&[0x1c; 500], 0..500), None);
    }
}
