//! The Bloom filter of a block: which runs of three, five and eight bytes of folded text it may hold.
//!
//! Runs of three find needles of three letters; runs of five tell a word from others made of the
//! same syllables; runs of eight tell a phrase from its words, and of them a quarter is enough. Every
//! byte sets its bits at once, without asking whether they are set: a filter is 8 KB and stays in the
//! nearest cache. A block ends when its filter is half full,
//! so that every filter is worth its place: repetitive text makes long blocks.

use std::ops::Range;

use crate::fold::fold;

/// log2 of the bits of a filter while it is filled.
pub(super) const BITS_LOG2: u32 = 16;

/// Where in a hash the number of its word stands.
const WORD_SHIFT: u32 = 64 - (BITS_LOG2 - 6);

/// 64-bit words of such a filter.
pub(super) const WORDS: usize = 1 << (BITS_LOG2 - 6);

/// Bits set in a filter that is full. A run of three then looks present by chance in a quarter of the
/// blocks (it sets two bits), one of five in half of them (one bit, as needles have many).
const FULL: u32 = (1 << BITS_LOG2) / 2;

/// Bytes of a needle that are looked for, and by which the filters of one long text overlap: so
/// what is looked for is in one of them, if it is anywhere.
pub(super) const OVERLAP: usize = 64;

/// The bits that a block must have for a needle to be in its text; none when the needle is too
/// short to rule anything out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grams(Vec<u64>);

impl Grams {
    /// The bits in a filter of `1 << bits_log2` bits. Halving a filter by joining neighbours
    /// halves these positions.
    pub(super) fn bits(&self, bits_log2: u32) -> impl Iterator<Item = usize> {
        self.0.iter().map(move |hash| bit(*hash, bits_log2))
    }

    /// Whether it rules nothing out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The bits of the folded `needle`, the most telling first.
pub fn grams(needle: &str) -> Grams {
    let folded = fold(needle);
    let looked_for = &folded.as_bytes()[..folded.len().min(OVERLAP)];
    let runs = |length: usize| {
        let mut runs: Vec<u64> = looked_for.windows(length).map(run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs.into_iter()
    };
    let eights = runs(8).filter(|run| is_sampled(three(*run)[0])).map(eight);
    Grams(eights.chain(runs(5).map(five)).chain(runs(3).flat_map(three)).collect())
}

/// A run of bytes, the first of them lowest.
fn run(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |run, byte| (run << 8) | u64::from(*byte))
}

const fn bit(hash: u64, bits_log2: u32) -> usize {
    (hash >> (64 - bits_log2)) as usize
}

/// Both bits lie in one word, so that to set them is one step. Only the lowest three bytes count.
const fn three(run: u64) -> [u64; 2] {
    let hash = (run & 0xff_ffff).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [hash, hash & (u64::MAX << WORD_SHIFT) | hash << 6 & !(u64::MAX << WORD_SHIFT)]
}

/// Only the lowest five bytes count.
const fn five(run: u64) -> u64 {
    (run << 24).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

const fn eight(run: u64) -> u64 {
    run.wrapping_mul(0xa076_1d64_78bd_642f)
}

/// Whether a run of eight counts, by the hash of its first three bytes.
const fn is_sampled(hash_of_three: u64) -> bool {
    hash_of_three & (3 << 20) == 0
}

fn set(words: &mut [u64; WORDS], hash: u64) {
    set_if(true, words, hash);
}

/// Without a branch, which would be taken at random.
fn set_if(is_wanted: bool, words: &mut [u64; WORDS], hash: u64) {
    let bit = bit(hash, BITS_LOG2);
    words[bit >> 6] |= u64::from(is_wanted) << (bit & 63);
}

/// A filter under construction.
pub(super) struct Filter(Box<[u64; WORDS]>);

impl Filter {
    pub(super) fn new() -> Self {
        Self(Box::new([0; WORDS]))
    }

    /// Adds the runs of a folded text that begin at `starts`.
    pub(super) fn add(&mut self, text: &[u8], starts: Range<usize>) {
        let words = &mut *self.0;
        let (mut at, mut before) = (starts.start, None);
        // Four runs of each length lie in eleven bytes: the loop is the dearest of an ingest.
        while at + 4 <= starts.end
            && let Some(sixteen) = text.get(at..).and_then(<[u8]>::first_chunk)
        {
            let sixteen = u128::from_le_bytes(*sixteen);
            at += 4;
            // So are the runs: of blanks, mostly.
            if before.replace(sixteen) == Some(sixteen) {
                continue;
            }
            for shift in [0, 8, 16, 24] {
                let run = (sixteen >> shift) as u64;
                let [first, second] = three(run);
                let mask = |hash: u64| 1 << (bit(hash, BITS_LOG2) & 63);
                words[bit(first, BITS_LOG2) >> 6] |= mask(first) | mask(second);
                set(words, five(run));
                set_if(is_sampled(first), words, eight(run));
            }
        }
        for at in at..starts.end {
            let rest = &text[at..];
            if let Some(bytes) = rest.first_chunk::<3>() {
                three(run(bytes)).into_iter().for_each(|hash| set(words, hash));
            }
            if let Some(bytes) = rest.first_chunk::<5>() {
                set(words, five(run(bytes)));
            }
            if let Some(bytes) = rest.first_chunk::<8>().map(|bytes| run(bytes)) {
                set_if(is_sampled(three(bytes)[0]), words, eight(bytes));
            }
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.iter().map(|word| word.count_ones()).sum::<u32>() >= FULL
    }

    /// Moves its words to the end of `into`; it is empty afterwards.
    pub(super) fn take(&mut self, into: &mut Vec<u64>) {
        into.extend_from_slice(&*self.0);
        self.0.fill(0);
    }
}

/// Filters of several blocks, turned so that one bit of all of them lies together.
pub(super) struct Turned {
    pub(super) bits_log2: u32,
    /// Bits from one row of bits to the next.
    pub(super) stride: usize,
    pub(super) bytes: Vec<u8>,
}

/// Bits from one row of bits to the next, for so many filters: rows begin with a byte, or several
/// share one.
pub(super) const fn stride(columns: usize) -> usize {
    if columns < 8 { columns.next_power_of_two() } else { columns.next_multiple_of(8) }
}

/// Turns filters of [`WORDS`] words each. Where all are sparse, as in a small segment, they are
/// halved as long as none gets full.
pub(super) fn turn(mut filters: Vec<u64>) -> Turned {
    let columns = filters.len() / WORDS;
    let ones = |filter: &[u64]| filter.iter().map(|word| word.count_ones()).sum::<u32>();
    let mut fullest = filters.chunks(WORDS).map(ones).max().unwrap_or(0);
    let mut bits_log2 = BITS_LOG2;
    while bits_log2 > 6 && fullest * 4 < 1 << bits_log2 {
        filters =
            filters.chunks_exact(2).map(|pair| halve(pair[0]) | (halve(pair[1]) << 32)).collect();
        bits_log2 -= 1;
        fullest = filters.chunks(1 << (bits_log2 - 6)).map(ones).max().unwrap_or(0);
    }
    let words = 1 << (bits_log2 - 6);
    let stride = stride(columns);
    let mut bytes = vec![0; ((stride << bits_log2) / 8).max(1)];
    for (group, first) in (0..columns).step_by(64).enumerate() {
        let width = (columns - first).min(64);
        for word in 0..words {
            let mut square = [0; 64];
            for (column, row) in square.iter_mut().enumerate().take(width) {
                *row = filters[(first + column) * words + word];
            }
            transpose(&mut square);
            for (bit, row) in square.iter().enumerate() {
                let at = (word * 64 + bit) * stride;
                if stride < 8 {
                    bytes[at / 8] |= row.to_le_bytes()[0] << (at % 8);
                } else {
                    let from = at / 8 + group * 8;
                    let length = width.div_ceil(8);
                    bytes[from..from + length].copy_from_slice(&row.to_le_bytes()[..length]);
                }
            }
        }
    }
    Turned { bits_log2, stride, bytes }
}

/// Joins neighbouring bits: 64 become 32.
const fn halve(word: u64) -> u64 {
    let mut x = (word | (word >> 1)) & 0x5555_5555_5555_5555;
    x = (x | (x >> 1)) & 0x3333_3333_3333_3333;
    x = (x | (x >> 2)) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | (x >> 4)) & 0x00ff_00ff_00ff_00ff;
    x = (x | (x >> 8)) & 0x0000_ffff_0000_ffff;
    (x | (x >> 16)) & 0xffff_ffff
}

/// Turns a square of bits: bit `b` of row `r` becomes bit `r` of row `b` (Hacker's Delight 7-3).
pub(super) fn transpose(square: &mut [u64; 64]) {
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
        transpose(&mut square);
        for (row, bits) in before.iter().enumerate() {
            for (bit, turned) in square.iter().enumerate() {
                assert_eq!((bits >> bit) & 1, (turned >> row) & 1);
            }
        }
    }

    #[test]
    fn a_halved_filter_has_the_halved_positions() {
        let mut filter = Filter::new();
        filter.add(b"only a few words", 0..10);
        filter.add(b"only a few words", 10..16);
        let mut words = Vec::new();
        filter.take(&mut words);
        let turned = turn(words);
        assert!(turned.bits_log2 < 10 && turned.stride == 1, "{}", turned.bits_log2);
        assert!(!grams("only a few words").is_empty());
        for bit in grams("only a few words").bits(turned.bits_log2) {
            assert_ne!(turned.bytes[bit / 8] & (1 << (bit % 8)), 0);
        }
    }
}
