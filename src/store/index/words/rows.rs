//! Reads back which rows have a word.

use std::ops::Range;

use fixedbitset::FixedBitSet;

use super::{ENTRY, LONGEST, SHORTEST, word_at};

/// What is known of the rows of a segment without looking at their texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRows {
    /// Rows that may match: no other does.
    pub may: FixedBitSet,
    /// Rows that match.
    pub certain: FixedBitSet,
}

impl KnownRows {
    /// Of a segment of so many rows, all of which match.
    pub fn all(rows: usize) -> Self {
        let mut all = FixedBitSet::with_capacity(rows);
        all.insert_range(..);
        Self { may: all.clone(), certain: all }
    }

    /// What is known of a segment where a word has this list of rows from row `from` on.
    fn listed(rows: usize, from: usize, add: impl FnOnce(&mut dyn FnMut(usize))) -> Self {
        let mut certain = FixedBitSet::with_capacity(rows);
        add(&mut |row| {
            // A damaged list names others.
            if row < rows.saturating_sub(from) {
                certain.insert(from + row);
            }
        });
        let mut may = certain.clone();
        may.insert_range(..from.min(rows));
        Self { may, certain }
    }
}

impl std::ops::Not for KnownRows {
    type Output = Self;

    /// The rows that do not match.
    fn not(mut self) -> Self {
        self.may.toggle_range(..);
        self.certain.toggle_range(..);
        Self { may: self.certain, certain: self.may }
    }
}

/// Where the list of a word lies.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store::index) struct Entry {
    from: usize,
    is_dense: bool,
    /// Among the lists.
    pub(in crate::store::index) at: Range<usize>,
}

/// The table in the lists of a segment: how many words, and its bytes. `None` when it is longer
/// than what there is.
pub(in crate::store::index) fn table_bytes(count: [u8; 4], length: usize) -> Option<usize> {
    let bytes = (u32::from_le_bytes(count) as usize).checked_mul(ENTRY)?;
    (bytes <= length.checked_sub(4)?).then_some(bytes)
}

/// The entry of a folded word, of `lists` bytes of lists.
pub(in crate::store::index) fn entry(table: &[u8], lists: usize, word: &str) -> Option<Entry> {
    let bytes = word.as_bytes();
    if !(SHORTEST..=LONGEST).contains(&bytes.len()) {
        return None;
    }
    let wanted = word_at(bytes, bytes.len()).to_le_bytes();
    let (entries, _) = table.as_chunks::<ENTRY>();
    let found = entries.binary_search_by_key(&wanted.as_slice(), |entry| &entry[..LONGEST]).ok()?;
    let number = |entry: usize, number: usize| {
        let at = LONGEST + number * 4;
        let bytes = entries.get(entry)?[at..at + 4].try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    let at = number(found, 1)?..number(found + 1, 1).unwrap_or(lists);
    (at.start <= at.end && at.end <= lists).then_some(Entry {
        from: number(found, 0)?,
        is_dense: number(found, 2)? != 0,
        at,
    })
}

/// The rows of a word by its list, in a segment of so many.
pub(in crate::store::index) fn rows(entry: &Entry, list: &[u8], rows: usize) -> KnownRows {
    KnownRows::listed(rows, entry.from, |row| match entry.is_dense {
        false => each(list, row),
        true => {
            for (at, byte) in list.iter().enumerate() {
                (0..8).filter(|bit| byte & (1 << bit) != 0).for_each(|bit| row(at * 8 + bit));
            }
        }
    })
}

/// Calls `row` with each row of a list, counted from its first.
pub(super) fn each(gaps: &[u8], row: &mut dyn FnMut(usize)) {
    let (mut next, mut gap, mut shift) = (0u64, 0, 0);
    for byte in gaps {
        // A gap has five bytes at most, unless it is damaged.
        gap |= u64::from(byte & 0x7f) << (shift % 35);
        shift += 7;
        if byte & 0x80 == 0 {
            row(usize::try_from(next + gap).unwrap_or(usize::MAX));
            next += gap + 1;
            (gap, shift) = (0, 0);
        }
    }
}
