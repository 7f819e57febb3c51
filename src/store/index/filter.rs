//! The Bloom filter of a block: which trigrams of folded text it may hold.
//!
//! Every byte sets two bits at once, without asking whether its trigram was met before; a filter
//! is 16 KB and stays in the nearest cache. A block ends when its filter is a fifth full, so that
//! every filter is worth its place: repetitive text makes long blocks. Then 4 % of absent trigrams
//! look present, and a needle of five letters has three of them.

use crate::fold::fold;

/// log2 of the bits of a filter while it is filled.
pub(super) const BITS_LOG2: u32 = 17;

/// 64-bit words of such a filter.
pub(super) const WORDS: usize = 1 << (BITS_LOG2 - 6);

/// Bits set in a filter that is full.
const FULL: u32 = (1 << BITS_LOG2) / 5;

/// Trigrams of a longer needle are sampled: more rule out hardly a block more.
const MOST_GRAMS: usize = 16;

/// The trigrams that a text must contain for a needle to be in it; none when the needle is too
/// short to rule anything out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grams(Vec<u32>);

impl Grams {
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// Whether it rules nothing out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The trigrams of the folded `needle`.
pub fn grams(needle: &str) -> Grams {
    let folded = fold(needle);
    let mut grams: Vec<u32> = folded.as_bytes().windows(3).map(gram).collect();
    grams.sort_unstable();
    grams.dedup();
    let step = grams.len().div_ceil(MOST_GRAMS).max(1);
    Grams(grams.into_iter().step_by(step).collect())
}

fn gram(window: &[u8]) -> u32 {
    window.iter().fold(0, |gram, byte| (gram << 8) | u32::from(*byte))
}

/// The two bits of a trigram in a filter of `1 << bits_log2` bits. Halving a filter by joining
/// neighbours halves these positions.
pub(super) const fn probes(gram: u32, bits_log2: u32) -> [usize; 2] {
    let hash = (gram as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [(hash >> (64 - bits_log2)) as usize, (hash.rotate_left(26) >> (64 - bits_log2)) as usize]
}

/// A filter under construction.
pub(super) struct Filter {
    words: Box<[u64; WORDS]>,
    /// The last bytes seen, as a trigram goes across pieces.
    window: u32,
    seen: u64,
}

impl Filter {
    pub(super) fn new() -> Self {
        Self { words: Box::new([0; WORDS]), window: 0, seen: 0 }
    }

    /// Begins a text: no trigram goes across two.
    pub(super) fn begin(&mut self) {
        self.seen = 0;
    }

    /// Adds a piece of folded text.
    pub(super) fn add(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while self.seen < 2 {
            let Some((first, others)) = rest.split_first() else { return };
            self.window = (self.window << 8) | u32::from(*first);
            self.seen += 1;
            rest = others;
        }
        let mut window = self.window;
        for byte in rest {
            window = ((window << 8) | u32::from(*byte)) & 0xff_ffff;
            let [first, second] = probes(window, BITS_LOG2);
            self.words[first >> 6] |= 1 << (first & 63);
            self.words[second >> 6] |= 1 << (second & 63);
        }
        self.window = window;
    }

    pub(super) fn is_full(&self) -> bool {
        self.words.iter().map(|word| word.count_ones()).sum::<u32>() >= FULL
    }

    /// Its words; it is empty afterwards.
    pub(super) fn take(&mut self, into: &mut Vec<u64>) {
        into.extend_from_slice(&*self.words);
        self.words.fill(0);
    }
}

/// Filters of several blocks, turned so that one bit of all of them lies together.
pub(super) struct Turned {
    pub(super) bits_log2: u32,
    /// Bits from one row of bits to the next.
    pub(super) stride: usize,
    pub(super) bytes: Vec<u8>,
}

/// Turns filters of [`WORDS`] words each. Where all are sparse, as in a small segment, they are
/// halved as long as none gets full.
pub(super) fn turn(mut filters: Vec<u64>) -> Turned {
    let columns = filters.len() / WORDS;
    let ones = |filter: &[u64]| filter.iter().map(|word| word.count_ones()).sum::<u32>();
    let mut fullest = filters.chunks(WORDS).map(ones).max().unwrap_or(0);
    let mut bits_log2 = BITS_LOG2;
    while bits_log2 > 6 && fullest * 10 < 1 << bits_log2 {
        filters = filters.chunks_exact(2).map(|pair| halve(pair[0]) | (halve(pair[1]) << 32)).collect();
        bits_log2 -= 1;
        fullest = filters.chunks(1 << (bits_log2 - 6)).map(ones).max().unwrap_or(0);
    }
    let words = 1 << (bits_log2 - 6);
    let stride = if columns < 8 { columns.next_power_of_two() } else { columns.next_multiple_of(8) };
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
fn transpose(square: &mut [u64; 64]) {
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
        let mut square: [u64; 64] = std::array::from_fn(|row| 0x9e37_79b9_7f4a_7c15u64.rotate_left(row as u32 * 7));
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
        filter.begin();
        filter.add(b"only a few");
        filter.add(b" words");
        let mut words = Vec::new();
        filter.take(&mut words);
        let turned = turn(words);
        assert!(turned.bits_log2 < 10 && turned.stride == 1, "{}", turned.bits_log2);
        for gram in grams("only a few words").iter() {
            for bit in probes(gram, turned.bits_log2) {
                assert_ne!(turned.bytes[bit / 8] & (1 << (bit % 8)), 0);
            }
        }
    }
}
