//! The rows with token counts of responses, by response, to find a response in all sessions of a
//! store. There are two lists: rows that count, and rows whose response another session counts. Each
//! is sorted by the hash of the response. Numbers are little-endian:
//!
//! ```text
//! [hash of the response: u64, row in the segment: u32] ...
//! ```

use std::ops::Range;

/// Bytes of one entry of a list.
pub(super) const RESPONSE_BYTES: usize = 12;

/// A list is read as a whole unless it has more than this many entries for every wanted response. A
/// binary search reads about 20 entries, each with a call to the system.
const ENTRIES_PER_LOOKUP: u64 = 1024;

/// A row with token counts of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResponseRow {
    /// Hash of the response.
    pub(crate) response: u64,
    /// Position in the segment.
    pub(crate) row: u32,
}

/// The two lists of a segment under construction.
#[derive(Default)]
pub(super) struct ResponseListsWriter {
    counted: Vec<ResponseRow>,
    elsewhere: Vec<ResponseRow>,
}

impl ResponseListsWriter {
    /// Adds a row. Rows beyond those that a `u32` can number are left out; no segment has as many.
    pub(super) fn push(&mut self, response: u64, row: usize, is_counted_elsewhere: bool) {
        let Ok(row) = u32::try_from(row) else { return };
        let list = if is_counted_elsewhere { &mut self.elsewhere } else { &mut self.counted };
        list.push(ResponseRow { response, row });
    }

    /// Returns the bytes of the lists: rows that count, and rows counted elsewhere.
    pub(super) fn finish(self) -> [Vec<u8>; 2] {
        [self.counted, self.elsewhere].map(|mut list| {
            list.sort_unstable();
            let mut bytes = Vec::with_capacity(list.len() * RESPONSE_BYTES);
            for entry in list {
                bytes.extend(entry.response.to_le_bytes());
                bytes.extend(entry.row.to_le_bytes());
            }
            bytes
        })
    }
}

/// Parses the bytes of a list, or of a part of it.
pub(super) fn parse_rows(bytes: &[u8]) -> Vec<ResponseRow> {
    let (entries, _) = bytes.as_chunks::<RESPONSE_BYTES>();
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *entry;
        rows.push(ResponseRow {
            response: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            row: u32::from_le_bytes([i, j, k, l]),
        });
    }
    rows
}

/// Returns the entries of a list for `wanted` responses, which ascend. `length` is that of the list
/// in bytes, and `read` reads a range of it.
pub(super) fn find_rows<E>(
    wanted: &[u64],
    length: u64,
    read: impl Fn(Range<u64>) -> Result<Vec<u8>, E>,
) -> Result<Vec<ResponseRow>, E> {
    let entries = length / RESPONSE_BYTES as u64;
    if entries == 0 || wanted.is_empty() {
        return Ok(Vec::new());
    }
    if entries / wanted.len() as u64 <= ENTRIES_PER_LOOKUP {
        let mut rows = parse_rows(&read(0..length)?);
        rows.retain(|entry| wanted.binary_search(&entry.response).is_ok());
        return Ok(rows);
    }

    let read_entry = |at: u64| {
        let start = at * RESPONSE_BYTES as u64;
        Ok(parse_rows(&read(start..start + RESPONSE_BYTES as u64)?).first().copied())
    };
    let mut found = Vec::new();
    // The wanted responses ascend, so each search begins where the one before ended.
    let mut start = 0;
    for response in wanted {
        let mut end = entries;
        while start < end {
            let middle = start + (end - start) / 2;
            if read_entry(middle)?.is_some_and(|entry| entry.response < *response) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        while start < entries
            && let Some(entry) = read_entry(start)?
            && entry.response == *response
        {
            found.push(entry);
            start += 1;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use proptest::prelude::*;

    /// Returns the list with these responses, in rows 0, 1, 2 and so on.
    fn list(responses: &[u64]) -> Vec<u8> {
        let mut lists = ResponseListsWriter::default();
        for (row, response) in responses.iter().enumerate() {
            lists.push(*response, row, false);
        }
        lists.push(7, 9, true);
        let [counted, elsewhere] = lists.finish();
        assert_eq!(parse_rows(&elsewhere), [ResponseRow { response: 7, row: 9 }]);
        counted
    }

    fn find(bytes: &[u8], wanted: &[u64]) -> Vec<ResponseRow> {
        let read = |range: Range<u64>| {
            let range = range.start as usize..range.end as usize;
            Ok::<_, std::convert::Infallible>(bytes[range].to_vec())
        };
        let Ok(found) = find_rows(wanted, bytes.len() as u64, read);
        found
    }

    proptest! {
        /// Long lists are searched, short ones are read; both find what a plain search finds.
        #[test]
        fn every_row_of_a_wanted_response_is_found(
            responses in proptest::collection::vec(0u64..3000, 0..4000),
            wanted in proptest::collection::btree_set(0u64..3000, 0..4),
        ) {
            let wanted: Vec<u64> = wanted.into_iter().collect();
            let mut expected: Vec<ResponseRow> = Vec::new();
            for (row, response) in responses.iter().enumerate() {
                if wanted.contains(response) {
                    expected.push(ResponseRow { response: *response, row: row as u32 });
                }
            }
            expected.sort_unstable();
            prop_assert_eq!(find(&list(&responses), &wanted), expected);
        }
    }

    #[test]
    fn a_lookup_reads_little_of_a_long_list() {
        let bytes = list(&(0..100_000).map(|n| n * 3).collect::<Vec<_>>());
        let reads = Cell::new(0);
        let read = |range: Range<u64>| {
            reads.set(reads.get() + range.end - range.start);
            let range = range.start as usize..range.end as usize;
            Ok::<_, std::convert::Infallible>(bytes[range].to_vec())
        };
        let Ok(found) = find_rows(&[5, 30_000], bytes.len() as u64, read);
        assert_eq!(found, [ResponseRow { response: 30_000, row: 10_000 }]);
        assert!(reads.get() < 1000, "{}", reads.get());
    }
}
