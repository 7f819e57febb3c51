//! Which rows hold the words that many blocks have. Filters rule nothing out for such a word; its
//! rows are listed instead, so that a question for it needs no text.
//!
//! A word is a run of 3 to 16 ASCII letters. A row has it when its folded text
//! has it anywhere, in longer words too: what searches mean. Words are chosen while rows come: one
//! that a quarter of the blocks so far had is listed from the next block on, and so is its stem, by
//! which ranked searches look. Of the rows before that nothing is known.

mod numbers;
mod rows;
mod runs;
mod seen;

pub use rows::KnownRows;
pub(super) use rows::{entry, rows, table_bytes};

use self::numbers::{Held, MOST_HELD, NONE, Numbers};
use self::rows::each;
use self::runs::runs;
use self::seen::Seen;
use xxhash_rust::xxh3::xxh3_64;

use super::filter::transpose;
use crate::stem::stem;

const SHORTEST: usize = 3;
const LONGEST: usize = 16;

const MOST_WORDS: usize = 1 << 10;

/// Bytes of an entry of the table: the word, its first row, place and form.
const ENTRY: usize = 28;

/// A word's bytes, from the lowest up; zero behind its end, as no word has a zero.
type Word = u128;

/// Places for runs of which it is remembered which words they hold, and pairs of places for words.
const PLACES: usize = 1 << 13;

/// Text whose runs are found before they are looked at, in bytes.
const PIECE: usize = 16 << 10;

/// Rows whose bits are turned at a time.
const GROUP: usize = 64;

/// The lists of a segment under construction.
pub(super) struct WordsWriter {
    runs: Vec<(u32, u32)>,
    recent: Vec<Recent>,
    seen: Seen,
    numbers: Numbers,
    /// By number.
    listed: Vec<Listed>,
    /// The listed words that the rows of this group have, a bit each, and behind them the bits of
    /// [`NONE`].
    group: Box<[[u64; MOST_WORDS / 64 + MOST_HELD]; GROUP]>,
    row: usize,
    block: u32,
}

/// Which listed words a run of letters holds.
#[derive(Clone, Copy)]
struct Recent {
    /// The run's hash.
    run: u64,
    /// The block to which this goes, for a word that has still to be noted in each.
    block: u32,
    held: Held,
}

impl Recent {
    const NONE: Self = Self { run: 0, block: NEVER, held: NONE };
}

/// Every block, and none.
const ANY: u32 = 0;
const NEVER: u32 = u32::MAX;

/// The rows of a listed word.
struct Listed {
    /// The first row that was looked at.
    from: u32,
    /// The row after the last that has it.
    next: u32,
    /// Rows without it between those with it.
    gaps: Vec<u8>,
}

impl WordsWriter {
    pub(super) fn new() -> Self {
        Self {
            runs: Vec::new(),
            recent: Vec::new(),
            seen: Seen::default(),
            numbers: Numbers::new(),
            listed: Vec::new(),
            group: Box::new([[0; MOST_WORDS / 64 + MOST_HELD]; GROUP]),
            row: 0,
            block: 1,
        }
    }

    /// Adds a row by its folded text.
    pub(super) fn push(&mut self, text: &[u8]) {
        if self.recent.is_empty() {
            self.recent = vec![Recent::NONE; PLACES];
        }
        let mut found = std::mem::take(&mut self.runs);
        let mut rest = text;
        while !rest.is_empty() {
            let piece;
            (piece, rest) = rest.split_at(piece_of(rest));
            found.clear();
            runs(piece, &mut found);
            for (from, end) in &found {
                self.run(&piece[*from as usize..], (end - from) as usize);
            }
        }
        self.runs = found;
        self.row += 1;
        if self.row.is_multiple_of(GROUP) {
            self.end_group(GROUP);
        }
    }

    /// Ends a block.
    pub(super) fn end_block(&mut self) {
        self.block += 1;
        let chosen = self.seen.take_chosen();
        if !chosen.is_empty() {
            self.recent.fill(Recent::NONE);
        }
        for word in chosen {
            self.list(word);
            let bytes = word.to_le_bytes();
            if let Ok(text) = std::str::from_utf8(&bytes[..length(word)]) {
                let stem = stem(text).as_bytes();
                self.list(word_at(stem, stem.len()));
            }
        }
    }

    fn list(&mut self, word: Word) {
        if self.numbers.add(word) {
            let from = self.row as u32;
            self.listed.push(Listed { from, next: from, gaps: Vec::new() });
        }
    }

    /// A run of letters of the row at hand: the first `length` bytes of `rest`.
    #[inline(always)]
    fn run(&mut self, rest: &[u8], length: usize) {
        let run = match length {
            ..=LONGEST => hash(word_at(rest, length)),
            _ => xxh3_64(&rest[..length]),
        };
        let recent = &self.recent[place(run)];
        if recent.run == run && (recent.block == self.block || recent.block == ANY) {
            let held = recent.held;
            return self.add(held);
        }
        self.first_run(run, &rest[..length]);
    }

    /// A run of which it is not known which words it holds.
    #[inline(never)]
    fn first_run(&mut self, run: u64, letters: &[u8]) {
        let (held, block) = match letters.len() {
            ..=LONGEST if !self.numbers.are_full() => {
                let word = word_at(letters, letters.len());
                self.seen.note(word, self.block, &self.numbers)
            }
            // What is as long as this is not listed, and nothing else is once there is no room.
            _ => (self.numbers.few_in(letters), ANY),
        };
        let Some(held) = held else {
            let of_row = &mut self.group[self.row % GROUP];
            return self.numbers.each_in(letters, |number| set(of_row, number));
        };
        self.recent[place(run)] = Recent { run, block, held };
        self.add(held);
    }

    /// Adds the row at hand to listed words.
    #[inline(always)]
    fn add(&mut self, held: Held) {
        let of_row = &mut self.group[self.row % GROUP];
        held.into_iter().for_each(|number| set(of_row, number));
    }

    /// Turns the bits of the last `rows` rows into the lists of the words.
    fn end_group(&mut self, rows: usize) {
        let first = (self.row - rows) as u32;
        for (part, listed) in self.listed.chunks_mut(64).enumerate() {
            let mut bits = self.group.each_ref().map(|row| row[part]);
            transpose(&mut bits);
            for (listed, mut rows) in listed.iter_mut().zip(bits) {
                while rows != 0 {
                    listed.add(first + rows.trailing_zeros());
                    rows &= rows - 1;
                }
            }
        }
        self.group.fill([0; _]);
    }

    /// The lists as bytes: how many, a table of the words in their order, and the rows of each.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_group(self.row % GROUP);
        let mut lists: Vec<([u8; LONGEST], Listed)> = std::mem::take(&mut self.listed)
            .into_iter()
            .enumerate()
            .map(|(number, listed)| (self.numbers.word(number).to_le_bytes(), listed))
            .filter(|(_, listed)| (listed.from as usize) < self.row)
            .collect();
        lists.sort_unstable_by_key(|(word, _)| *word);
        let mut out = (lists.len() as u32).to_le_bytes().to_vec();
        let mut rows = Vec::new();
        for (word, listed) in &lists {
            let span = (self.row - listed.from as usize).div_ceil(8);
            let is_dense = span < listed.gaps.len();
            out.extend(word);
            for number in [listed.from, rows.len() as u32, u32::from(is_dense)] {
                out.extend(number.to_le_bytes());
            }
            if is_dense {
                let at = rows.len();
                rows.resize(at + span, 0);
                each(&listed.gaps, &mut |row| rows[at + row / 8] |= 1 << (row % 8));
            } else {
                rows.extend(&listed.gaps);
            }
        }
        out.extend(rows);
        out
    }
}

impl Listed {
    /// Adds a row behind those it has.
    fn add(&mut self, row: u32) {
        let mut gap = row - self.next;
        self.next = row + 1;
        while gap >= 0x80 {
            self.gaps.push(gap as u8 | 0x80);
            gap >>= 7;
        }
        self.gaps.push(gap as u8);
    }
}

/// How much of a text is looked at in one go: no run goes on behind it.
fn piece_of(text: &[u8]) -> usize {
    let Some(behind) = text.get(PIECE..) else { return text.len() };
    let ends = behind.iter().position(|byte| !byte.is_ascii_lowercase());
    ends.map_or(text.len(), |end| PIECE + end)
}

fn set(bits: &mut [u64], number: u16) {
    bits[usize::from(number / 64)] |= 1 << (number % 64);
}

/// The bytes of a word of so many letters.
const MASKS: [Word; LONGEST + 1] = {
    let (mut masks, mut letters) = ([0; LONGEST + 1], 1);
    while letters <= LONGEST {
        masks[letters] = masks[letters - 1] << 8 | 0xff;
        letters += 1;
    }
    masks
};

/// The word of this length, at most [`LONGEST`], at the beginning of `bytes`.
fn word_at(bytes: &[u8], length: usize) -> Word {
    let word = match bytes.first_chunk() {
        Some(chunk) => Word::from_le_bytes(*chunk),
        None => {
            let mut chunk = [0; LONGEST];
            chunk[..bytes.len()].copy_from_slice(bytes);
            Word::from_le_bytes(chunk)
        }
    };
    word & MASKS[length]
}

const fn length(word: Word) -> usize {
    LONGEST - word.leading_zeros() as usize / 8
}

const fn place(hash: u64) -> usize {
    (hash >> (64 - PLACES.trailing_zeros())) as usize
}

/// The halves multiplied, and both halves of the product joined.
const fn hash(word: Word) -> u64 {
    let low = word as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let high = (word >> 64) as u64 ^ 0xd6e8_feb8_6659_fd93;
    let product = low as u128 * high as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl KnownRows {
        /// Rows of which it is open.
        fn open(&self) -> usize {
            self.may.count_ones(..) - self.certain.count_ones(..)
        }
    }

    fn known(bytes: &[u8], count: usize, word: &str) -> Option<KnownRows> {
        let table = table_bytes(*bytes.first_chunk().expect("a count"), bytes.len())?;
        let (table, lists) = bytes[4..].split_at(table);
        let entry = entry(table, lists.len(), word)?;
        let list = &lists[entry.at.clone()];
        Some(rows(&entry, list, count))
    }

    /// The lists of texts, a block for every three.
    fn lists(texts: &[String]) -> Vec<u8> {
        let mut writer = WordsWriter::new();
        for (at, text) in texts.iter().enumerate() {
            writer.push(text.as_bytes());
            if at % 3 == 2 {
                writer.end_block();
            }
        }
        writer.finish()
    }

    /// Looks at every row of every word that may be listed; returns how many words are.
    fn check(texts: &[String], words: &[&str]) -> usize {
        let bytes = lists(texts);
        let known = words.iter().filter_map(|word| Some((word, known(&bytes, texts.len(), word)?)));
        let check = |(word, known): (&&str, KnownRows)| {
            for (row, text) in texts.iter().enumerate() {
                assert!(known.may[row] || !text.contains(*word), "{word} in {row}: {text}");
                assert!(!known.certain[row] || text.contains(*word), "{word} in {row}: {text}");
            }
            let open = (0..texts.len()).filter(|row| known.may[*row] != known.certain[*row]);
            assert!(open.eq(0..known.open()), "{word} is known from a row on");
        };
        known.map(check).count()
    }

    #[test]
    fn frequent_words_and_their_stems_are_listed() {
        let text = |row: usize| match row % 40 {
            0..10 => format!("the caching {row} overcachingly"),
            10..39 => format!("x{row} the-cachin th"),
            _ => format!("rare{} {}", row / 1000, "a0thecaching9".repeat(40)),
        };
        let texts: Vec<String> = (0..2000).map(text).collect();
        let listed = ["the", "caching", "cach", "cachin", "overcachingly", "overcach"];
        assert_eq!(check(&texts, &listed), 6);
        assert_eq!(check(&texts, &["th", "rare", "x17", "", "overcaching", "thecaching"]), 0);
    }

    #[test]
    fn many_words_of_all_lengths_are_listed_where_they_are() {
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        // Of 3 to 18 letters; those of a length begin alike a few at a time.
        let word = |n: usize| -> String {
            let tail = (1..18).map(|at| letter((n / 16 + 1) * at * at + n));
            std::iter::once(letter(n / 5)).chain(tail).take(3 + n % 16).collect()
        };
        let words: Vec<String> = (0..1600).map(word).collect();
        let row = |row: usize| {
            let some =
                words.iter().enumerate().filter(|(n, _)| !(n * 7 + row * 13).is_multiple_of(5));
            some.map(|(n, word)| {
                format!("{word}{}", if (n + row).is_multiple_of(3) { "" } else { "." })
            })
            .collect::<String>()
        };
        let rows: Vec<String> = (0..100).map(row).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let listed = check(&rows, &words);
        assert!((900..=MOST_WORDS).contains(&listed), "{listed}");
        let long: Vec<&str> = words.into_iter().filter(|word| word.len() == LONGEST).collect();
        assert!(check(&rows, &long) > 10);
    }

    #[test]
    fn of_words_that_begin_alike_some_are_listed() {
        let words: Vec<String> = (0..60u8)
            .map(|n| {
                format!(
                    "abcd{}",
                    char::from(b'a' + n % 26).to_string().repeat(1 + usize::from(n / 26))
                )
            })
            .collect();
        let rows: Vec<String> = (0..60).map(|_| words.join(" ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // The stems of some take places as well.
        assert!((24..=32).contains(&check(&rows, &words)));
    }

    #[test]
    fn few_blocks_list_nothing() {
        let texts: Vec<String> = (0..20).map(|_| "the same".to_owned()).collect();
        assert_eq!(lists(&texts), [0; 4]);
        assert_eq!(check(&texts, &["the", "same"]), 0);
    }

    #[test]
    fn damaged_lists_are_refused_or_lie_within_the_rows() {
        let texts: Vec<String> = (0..200).map(|row| format!("word{} some", row % 7)).collect();
        let bytes = lists(&texts);
        for at in 0..bytes.len() {
            for flip in [0x80, 0x01, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                for word in ["some", "word1"] {
                    if let Some(known) = known(&damaged, 100, word) {
                        assert_eq!((known.may.len(), known.certain.len()), (100, 100));
                    }
                }
            }
        }
        assert!(entry(&bytes[4..], 10, "some").is_none());
    }

    proptest! {
        #[test]
        fn lists_are_what_a_look_at_every_row_says(
            rows in proptest::collection::vec("([abc]{1,4}[ -]?){0,6}", 90..140),
        ) {
            let mut words = Vec::new();
            let letters = ['a', 'b', 'c'];
            for (x, y) in letters.into_iter().flat_map(|x| letters.map(|y| (x, y))) {
                words.extend(letters.map(|z| format!("{x}{y}{z}")));
                words.extend(letters.map(|z| format!("{z}{x}{y}{z}")));
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            check(&rows, &words);
        }
    }
}
