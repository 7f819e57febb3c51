//! Finds out what the pages of a Parquet file say that they decompress to. The reader reserves that
//! much before it looks at the data, and the footer may say less.
//!
//! A page begins with a header in Thrift's compact protocol; only the fields of its two sizes are read
//! (<https://github.com/apache/parquet-format>, `PageHeader`).

use std::ops::Range;

/// Field of the size of a page before compression.
const UNCOMPRESSED_SIZE: i64 = 2;

/// Field of the size of a page in the file.
const COMPRESSED_SIZE: i64 = 3;

/// Maximum depth of structs in a header. Headers have three.
const MAX_DEPTH: u8 = 8;

/// Returns the sum of the sizes before compression of the pages in `chunk`, a range of `file`.
/// `None` if a header cannot be read, or if the pages do not fill the chunk.
pub(super) fn sum_page_sizes(file: &[u8], chunk: Range<usize>) -> Option<u64> {
    let mut rest = file.get(chunk)?;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let header = PageHeader::read(&mut rest)?;
        sum = sum.checked_add(header.uncompressed)?;
        rest = rest.get(header.compressed..)?;
    }
    Some(sum)
}

/// The sizes of a page in bytes.
struct PageHeader {
    uncompressed: u64,
    compressed: usize,
}

impl PageHeader {
    /// Reads a header and moves `rest` behind it.
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let (mut uncompressed, mut compressed) = (None, None);
        let mut field = 0;
        while let Some(kind) = begin_field(rest, &mut field)? {
            match field {
                UNCOMPRESSED_SIZE => uncompressed = u64::try_from(read_zigzag(rest)?).ok(),
                COMPRESSED_SIZE => compressed = usize::try_from(read_zigzag(rest)?).ok(),
                _ => skip_value(rest, kind, 0)?,
            }
        }
        Some(Self { uncompressed: uncompressed?, compressed: compressed? })
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
        // A boolean in a struct is part of its type.
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
        12 => {
            let mut field = 0;
            while let Some(kind) = begin_field(rest, &mut field)? {
                skip_value(rest, kind, depth + 1)?;
            }
        }
        // Headers have no lists, sets and maps.
        _ => return None,
    }
    Some(())
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
        let sum = sum_page_sizes(&file, 4..file.len());
        assert_eq!(sum, Some(1000 + u64::from(u32::MAX >> 1)));
        assert_eq!(sum_page_sizes(&file, 4..4), Some(0));
    }

    #[test]
    fn broken_headers_have_no_size() {
        let whole = page(&[0xd0, 0x0f]);
        for end in 1..whole.len() {
            assert_eq!(sum_page_sizes(&whole, 0..end), None, "{end}");
        }
        assert_eq!(sum_page_sizes(&whole, 0..whole.len() + 1), None);
        // A negative size, a list, structs without end.
        assert_eq!(sum_page_sizes(&[0x25, 0x01, 0x15, 0x00, 0x00], 0..5), None);
        assert_eq!(sum_page_sizes(&[0x19, 0x00], 0..2), None);
        assert_eq!(sum_page_sizes(&[0x1c; 500], 0..500), None);
    }
}
