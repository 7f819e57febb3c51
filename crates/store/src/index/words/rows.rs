//! Sets of rows: the lists as they are written, and the result of a lookup.

use fixedbitset::FixedBitSet;

/// The rows of a segment that match, as known from the index alone, without reading their texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRows {
    /// Rows that may match. All other rows do not.
    pub possible: FixedBitSet,
    /// Rows that match for certain.
    pub certain: FixedBitSet,
}

impl KnownRows {
    /// Returns the result for a segment in which all `rows` rows match.
    pub fn all_certain(rows: usize) -> Self {
        let mut all = FixedBitSet::with_capacity(rows);
        all.insert_range(..);
        Self { possible: all.clone(), certain: all }
    }
}

impl std::ops::Not for KnownRows {
    type Output = Self;

    /// Returns the rows that do not match.
    fn not(mut self) -> Self {
        self.possible.toggle_range(..);
        self.certain.toggle_range(..);
        Self { possible: self.certain, certain: self.possible }
    }
}

/// A list of rows in ascending order, as gaps: the number of rows between each and the one before.
/// A gap has seven bits a byte from the lowest up, and all bytes but its last have the highest bit
/// set.
#[derive(Debug, Default)]
pub(super) struct RowList(Vec<u8>);

/// Bytes of a list for which space is reserved first. The allocator of glibc takes as much memory
/// for fewer.
const FIRST_BYTES: usize = 24;

impl RowList {
    /// Creates a list that begins with `row`.
    pub(super) fn starting_with(row: u32) -> Self {
        let mut list = Self(Vec::with_capacity(FIRST_BYTES));
        list.push_gap(row);
        list
    }

    /// Appends a row that `gap` other rows separate from the one before.
    #[inline(always)]
    pub(super) fn push_gap(&mut self, mut gap: u32) {
        while gap >= 0x80 {
            self.0.push(gap as u8 | 0x80);
            gap >>= 7;
        }
        self.0.push(gap as u8);
    }

    /// Appends the list as it is written for a segment of `rows` rows: as a bit for each row if the
    /// gaps would not be shorter. The length distinguishes both forms, because a list of gaps is
    /// always shorter.
    pub(super) fn append_to(&self, rows: usize, out: &mut Vec<u8>) {
        let bits_start = out.len();
        let dense_bytes = rows.div_ceil(8);
        if self.0.len() < dense_bytes {
            out.extend(&self.0);
            return;
        }
        out.resize(bits_start + dense_bytes, 0);
        for_each_row(&self.0, |row| out[bits_start + row / 8] |= 1 << (row % 8));
    }
}

impl FromIterator<usize> for RowList {
    /// Collects ascending rows.
    fn from_iter<T: IntoIterator<Item = usize>>(rows: T) -> Self {
        let mut list = Self::default();
        let mut next = 0;
        for row in rows {
            list.push_gap((row - next) as u32);
            next = row + 1;
        }
        list
    }
}

/// Adds the rows of a written list to `rows`. A damaged list may name wrong rows, but none beyond
/// the set.
pub(super) fn insert_listed_rows(list: &[u8], rows: &mut FixedBitSet) {
    let count = rows.len();
    if list.len() < count.div_ceil(8) {
        for_each_row(list, |row| {
            if row < count {
                rows.insert(row);
            }
        });
        return;
    }

    for (word, bytes) in rows.as_mut_slice().iter_mut().zip(list.chunks(size_of::<usize>())) {
        let mut more = [0; size_of::<usize>()];
        more[..bytes.len()].copy_from_slice(bytes);
        *word |= usize::from_le_bytes(more);
    }

    // The set must not have bits after its last row.
    let spare = rows.as_slice().len() * usize::BITS as usize - count;
    if let Some(last) = rows.as_mut_slice().last_mut() {
        *last &= usize::MAX >> spare;
    }
}

/// Calls `take` with each row of a list of gaps, in ascending order.
fn for_each_row(list: &[u8], mut take: impl FnMut(usize)) {
    let mut next: u64 = 0;
    let mut gap: u64 = 0;
    let mut shift: u32 = 0;
    for byte in list {
        // A gap has at most five bytes unless it is damaged.
        gap |= u64::from(byte & 0x7f) << (shift % 35);
        if *byte >= 0x80 {
            shift += 7;
            continue;
        }
        take(usize::try_from(next + gap).unwrap_or(usize::MAX));
        next += gap + 1;
        gap = 0;
        shift = 0;
    }
}
