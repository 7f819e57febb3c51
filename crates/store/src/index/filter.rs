//! The Bloom filter of a block: which runs of three, five and eight bytes of folded text it may
//! hold.
//!
//! Runs of three find needles of three letters. Runs of five distinguish a word from others made of
//! the same syllables. Runs of eight distinguish a phrase from its words, and a quarter of them is
//! enough. Bits are set without testing whether they are set already: a filter is 8 KB and stays in
//! the nearest cache. A block ends when its filter is half full, so that no filter wastes space;
//! repetitive text makes long blocks.

use std::ops::Range;

use base::fold::fold_text;

/// log2 of the bits of a filter while it is filled.
pub(super) const BITS_LOG2: u32 = 16;

/// Right shift that leaves the number of the 64-bit word to which a hash belongs.
const WORD_SHIFT: u32 = 64 - (BITS_LOG2 - 6);

/// 64-bit words of a filter while it is filled.
pub(super) const FILTER_WORDS: usize = 1 << (BITS_LOG2 - 6);

/// Number of set bits from which a filter counts as full. A run of three, which has two bits, then
/// seems present by chance in a quarter of the blocks. A run of five has only one bit, because
/// needles have many such runs, and seems present in half of the blocks.
const FULL_BITS: u32 = (1 << BITS_LOG2) / 2;

/// Most bytes of a needle that are compared. The filters of one long text overlap by this many
/// bytes, so one of them contains the compared bytes if they occur at all.
pub(super) const OVERLAP_BYTES: usize = 64;

/// The bits that the filter of a block must have set if a needle is in its text. Empty if the
/// needle is too short to exclude anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grams(Vec<u64>);

impl Grams {
    /// Returns the positions of the bits in a filter of `1 << bits_log2` bits. Halving a filter by
    /// joining neighbouring bits halves these positions.
    pub(super) fn bit_positions(&self, bits_log2: u32) -> impl Iterator<Item = usize> {
        self.0.iter().map(move |hash| bit_position(*hash, bits_log2))
    }

    /// True if no block can be excluded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the bits of `needle`, which is folded first. Bits of the longest runs come first, as
/// these exclude the most.
pub fn needle_grams(needle: &str) -> Grams {
    let folded = fold_text(needle);
    let compared = &folded.as_bytes()[..folded.len().min(OVERLAP_BYTES)];
    let mut hashes = Vec::new();
    for run in distinct_runs(compared, 8) {
        if is_sampled(hash_three(run)[0]) {
            hashes.push(hash_eight(run));
        }
    }
    hashes.extend(distinct_runs(compared, 5).into_iter().map(hash_five));
    hashes.extend(distinct_runs(compared, 3).into_iter().flat_map(hash_three));
    Grams(hashes)
}

/// Returns the runs of `length` bytes in `text`, each once, as numbers in ascending order.
fn distinct_runs(text: &[u8], length: usize) -> Vec<u64> {
    let mut runs: Vec<u64> = text.windows(length).map(pack_run).collect();
    runs.sort_unstable();
    runs.dedup();
    runs
}

/// Packs bytes into a number, the first byte lowest.
fn pack_run(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |run, byte| (run << 8) | u64::from(*byte))
}

/// Returns the position of the bit of `hash` in a filter of `1 << bits_log2` bits.
const fn bit_position(hash: u64, bits_log2: u32) -> usize {
    (hash >> (64 - bits_log2)) as usize
}

/// Returns the hashes of a run of three: both bits are in the same word, so that one step sets
/// them. Only the lowest three bytes of `run` count.
const fn hash_three(run: u64) -> [u64; 2] {
    let hash = (run & 0xff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [hash, hash & (u64::MAX << WORD_SHIFT) | hash << 6 & !(u64::MAX << WORD_SHIFT)]
}

/// Returns the hash of a run of five: only the lowest five bytes of `run` count.
const fn hash_five(run: u64) -> u64 {
    (run << 24).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Returns the hash of a run of eight.
const fn hash_eight(run: u64) -> u64 {
    run.wrapping_mul(0xa076_1d64_78bd_642f)
}

/// True if a run of eight is indexed, decided by the hash of its first three bytes.
const fn is_sampled(hash_of_three: u64) -> bool {
    hash_of_three & (3 << 20) == 0
}

/// Sets the bit of `hash` in a filter.
fn set_bit(words: &mut [u64; FILTER_WORDS], hash: u64) {
    set_bit_if(true, words, hash);
}

/// Sets the bit of `hash` in a filter if `is_wanted`, without a branch, which would be
/// unpredictable.
fn set_bit_if(is_wanted: bool, words: &mut [u64; FILTER_WORDS], hash: u64) {
    let bit = bit_position(hash, BITS_LOG2);
    words[bit >> 6] |= u64::from(is_wanted) << (bit & 63);
}

/// Returns the mask of the bit of `hash` in its 64-bit word.
const fn bit_mask(hash: u64) -> u64 {
    1 << (bit_position(hash, BITS_LOG2) & 63)
}

/// A filter under construction.
pub(super) struct BlockFilter(Box<[u64; FILTER_WORDS]>);

impl BlockFilter {
    pub(super) fn new() -> Self {
        Self(Box::new([0; FILTER_WORDS]))
    }

    /// Adds the runs of a folded text that begin at `starts`.
    pub(super) fn add_runs(&mut self, text: &[u8], starts: Range<usize>) {
        let words = &mut *self.0;
        let mut at = starts.start;
        let mut before = None;
        // Eleven bytes contain four runs of each length. This loop is the most expensive one of an
        // ingest.
        while at + 4 <= starts.end
            && let Some(sixteen) = text.get(at..).and_then(<[u8]>::first_chunk)
        {
            let sixteen = u128::from_le_bytes(*sixteen);
            at += 4;
            // Equal bytes have equal runs. This mostly happens in blanks.
            if before.replace(sixteen) == Some(sixteen) {
                continue;
            }
            for shift in [0, 8, 16, 24] {
                let run = (sixteen >> shift) as u64;
                let [first, second] = hash_three(run);
                words[bit_position(first, BITS_LOG2) >> 6] |= bit_mask(first) | bit_mask(second);
                set_bit(words, hash_five(run));
                set_bit_if(is_sampled(first), words, hash_eight(run));
            }
        }

        for at in at..starts.end {
            let rest = &text[at..];
            if let Some(bytes) = rest.first_chunk::<3>() {
                for hash in hash_three(pack_run(bytes)) {
                    set_bit(words, hash);
                }
            }
            if let Some(bytes) = rest.first_chunk::<5>() {
                set_bit(words, hash_five(pack_run(bytes)));
            }
            if let Some(bytes) = rest.first_chunk::<8>().map(|bytes| pack_run(bytes)) {
                set_bit_if(is_sampled(hash_three(bytes)[0]), words, hash_eight(bytes));
            }
        }
    }

    /// True if at least [`FULL_BITS`] bits are set.
    pub(super) fn is_full(&self) -> bool {
        count_ones(&*self.0) >= FULL_BITS
    }

    /// Appends its words to `into` and clears the filter.
    pub(super) fn drain_into(&mut self, into: &mut Vec<u64>) {
        into.extend_from_slice(&*self.0);
        self.0.fill(0);
    }
}

/// Filters of several blocks, transposed so that one bit of all filters is stored together.
pub(super) struct TransposedFilters {
    pub(super) bits_log2: u32,
    pub(super) bytes: Vec<u8>,
}

/// Returns the number of bits from the start of one row of bits to the start of the next, for
/// `columns` filters. A row begins at a byte boundary, or several rows share one byte.
pub(super) const fn row_stride(columns: usize) -> usize {
    if columns < 8 { columns.next_power_of_two() } else { columns.next_multiple_of(8) }
}

/// Transposes filters of [`FILTER_WORDS`] words each. If all are sparse, as in a small segment, they are
/// halved until the fullest has a quarter of its bits set or more.
pub(super) fn transpose_filters(mut filters: Vec<u64>) -> TransposedFilters {
    let columns = filters.len() / FILTER_WORDS;
    let mut bits_log2 = BITS_LOG2;
    while bits_log2 > 6 && max_ones(&filters, bits_log2) * 4 < 1 << bits_log2 {
        filters = filters
            .chunks_exact(2)
            .map(|pair| halve_word(pair[0]) | (halve_word(pair[1]) << 32))
            .collect();
        bits_log2 -= 1;
    }

    let words = 1 << (bits_log2 - 6);
    let stride = row_stride(columns);
    let mut bytes = vec![0; ((stride << bits_log2) / 8).max(1)];
    for (group, first) in (0..columns).step_by(64).enumerate() {
        let width = (columns - first).min(64);
        for word in 0..words {
            let mut square = [0; 64];
            for (column, row) in square.iter_mut().enumerate().take(width) {
                *row = filters[(first + column) * words + word];
            }
            transpose_square(&mut square);
            for (bit, row) in square.iter().enumerate() {
                let at = (word * 64 + bit) * stride;
                if stride < 8 {
                    bytes[at / 8] |= row.to_le_bytes()[0] << (at % 8);
                } else {
                    let row_start = at / 8 + group * 8;
                    let length = width.div_ceil(8);
                    bytes[row_start..row_start + length]
                        .copy_from_slice(&row.to_le_bytes()[..length]);
                }
            }
        }
    }
    TransposedFilters { bits_log2, bytes }
}

/// Returns the number of set bits of the fullest of `filters`, which have `1 << bits_log2` bits
/// each.
fn max_ones(filters: &[u64], bits_log2: u32) -> u32 {
    filters.chunks(1 << (bits_log2 - 6)).map(count_ones).max().unwrap_or(0)
}

fn count_ones(filter: &[u64]) -> u32 {
    filter.iter().map(|word| word.count_ones()).sum()
}

/// Joins neighbouring bits: 64 become 32.
const fn halve_word(word: u64) -> u64 {
    let mut x = (word | (word >> 1)) & 0x5555_5555_5555_5555;
    x = (x | (x >> 1)) & 0x3333_3333_3333_3333;
    x = (x | (x >> 2)) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | (x >> 4)) & 0x00ff_00ff_00ff_00ff;
    x = (x | (x >> 8)) & 0x0000_ffff_0000_ffff;
    (x | (x >> 16)) & 0xffff_ffff
}

/// Transposes a square of bits: bit `b` of row `r` becomes bit `r` of row `b` (Hacker's Delight
/// 7-3).
pub(super) fn transpose_square(square: &mut [u64; 64]) {
    let mut width = 32;
    let mut mask = u64::MAX >> 32;
    while width > 0 {
        let mut row = 0;
        while row < 64 {
            let swap = ((square[row] >> width) ^ square[row + width]) & mask;
            square[row] ^= swap << width;
            square[row + width] ^= swap;
            row = (row + width + 1) & !width;
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_is_turned() {
        let mut square: [u64; 64] =
            std::array::from_fn(|row| 0x9e37_79b9_7f4a_7c15u64.rotate_left(row as u32 * 7));
        let before = square;
        transpose_square(&mut square);
        for (row, bits) in before.iter().enumerate() {
            for (bit, turned) in square.iter().enumerate() {
                assert_eq!((bits >> bit) & 1, (turned >> row) & 1);
            }
        }
    }

    #[test]
    fn a_halved_filter_has_the_halved_positions() {
        let mut filter = BlockFilter::new();
        filter.add_runs(b"only a few words", 0..10);
        filter.add_runs(b"only a few words", 10..16);
        let mut words = Vec::new();
        filter.drain_into(&mut words);
        let turned = transpose_filters(words);
        assert!(turned.bits_log2 < 10, "{}", turned.bits_log2);
        assert!(!needle_grams("only a few words").is_empty());
        for bit in needle_grams("only a few words").bit_positions(turned.bits_log2) {
            assert_ne!(turned.bytes[bit / 8] & (1 << (bit % 8)), 0);
        }
    }
}
