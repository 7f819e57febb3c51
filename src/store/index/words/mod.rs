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

pub use rows::KnownRows;
pub(super) use rows::{entry, rows, table_bytes};

use crate::stem::stem;
use numbers::Numbers;
use rows::each;
use runs::each_word;

const SHORTEST: usize = 3;
const LONGEST: usize = 16;

/// A word is listed once this many blocks had it, if they are one in `SHARE` of those so far.
const LEAST_BLOCKS: u16 = 8;
const SHARE: u32 = 4;

const MOST_WORDS: usize = 1 << 10;

/// Pairs of places for the words seen lately.
const PAIRS: usize = 1 << 12;

/// Listed words that one word is remembered to hold; one with more is looked through every time.
const MOST_HELD: usize = 4;

/// Bytes of an entry of the table: the word, its first row, rows, place and form.
const ENTRY: usize = 32;

/// A word's bytes, from the lowest up; zero behind its end, as no word has a zero.
type Word = u128;

/// The lists of a segment under construction.
pub(super) struct WordsWriter {
    seen: Vec<[Seen; 2]>,
    listed: Vec<Listed>,
    numbers: Numbers,
    /// Words to be listed from the next block on.
    chosen: Vec<Word>,
    /// The listed words that the row at hand has, a bit each.
    of_row: [u64; MOST_WORDS / 64],
    row: u32,
    block: u32,
}

/// A word seen lately.
#[derive(Clone, Copy, Default)]
struct Seen {
    word: Word,
    /// The row after the last that had it.
    row: u32,
    /// The last block that had it and how many had.
    block: u32,
    blocks: u16,
    /// Falls when others want its place, rises when it occurs.
    life: u16,
    is_chosen: bool,
    /// The listed words that it holds, of the first `known` of them.
    known: u16,
    count: u8,
    held: [u16; MOST_HELD],
}

/// A listed word.
struct Listed {
    word: Word,
    /// The first row that was looked at.
    from: u32,
    /// The row after the last that has it.
    next: u32,
    count: u32,
    /// Rows without it between those with it.
    gaps: Vec<u8>,
}

impl WordsWriter {
    pub(super) fn new() -> Self {
        Self {
            seen: Vec::new(),
            listed: Vec::new(),
            numbers: Numbers::new(),
            chosen: Vec::new(),
            of_row: [0; MOST_WORDS / 64],
            row: 0,
            block: 1,
        }
    }

    /// Adds a row by its folded text.
    pub(super) fn push(&mut self, text: &[u8]) {
        if self.seen.is_empty() {
            self.seen = vec![Default::default(); PAIRS];
        }
        each_word(text, |from, end| match end - from {
            0..SHORTEST => {}
            length @ SHORTEST..=LONGEST => self.word(word_at(&text[from..], length)),
            _ => self.look_through(&text[from..end]),
        });
        self.of_row.fill(0);
        self.row += 1;
    }

    /// Ends a block.
    pub(super) fn end_block(&mut self) {
        self.block += 1;
        for word in std::mem::take(&mut self.chosen) {
            let bytes = word.to_le_bytes();
            self.list(word);
            if let Ok(text) = std::str::from_utf8(&bytes[..length(word)]) {
                let stem = stem(text).as_bytes();
                self.list(word_at(stem, stem.len()));
            }
        }
    }

    fn list(&mut self, word: Word) {
        if self.listed.len() < MOST_WORDS && self.numbers.add(word) {
            let (from, gaps) = (self.row, Vec::new());
            self.listed.push(Listed { word, from, next: from, count: 0, gaps });
        }
    }

    /// A word of the row at hand, short enough to be listed.
    fn word(&mut self, word: Word) {
        let (block, listed) = (self.block, self.listed.len() as u16);
        let [a, b] = &mut self.seen[place(word)];
        let seen = match (a.word == word, b.word == word) {
            (true, _) => a,
            (_, true) => b,
            _ => {
                let weaker = if a.life <= b.life { a } else { b };
                if weaker.life > 0 {
                    weaker.life -= 1;
                    let bytes = word.to_le_bytes();
                    return self.look_through(&bytes[..length(word)]);
                }
                *weaker = Seen { word, known: u16::MAX, ..Seen::default() };
                weaker
            }
        };
        if seen.row == self.row + 1 {
            return;
        }
        seen.row = self.row + 1;
        seen.life = seen.life.saturating_add(1);
        if seen.block != block {
            seen.block = block;
            seen.blocks = seen.blocks.saturating_add(1);
            let often = seen.blocks >= LEAST_BLOCKS && u32::from(seen.blocks) * SHARE >= block;
            if often && !seen.is_chosen {
                seen.is_chosen = true;
                self.chosen.push(word);
            }
        }
        if seen.known != listed {
            let bytes = word.to_le_bytes();
            let (bytes, mut count) = (&bytes[..length(word)], 0);
            self.numbers.held(bytes, |number| {
                if let Some(held) = seen.held.get_mut(count) {
                    *held = number;
                }
                count += 1;
            });
            if count > MOST_HELD {
                return self.look_through(bytes);
            }
            (seen.known, seen.count) = (listed, count as u8);
        }
        let (held, count) = (seen.held, usize::from(seen.count));
        for number in &held[..count] {
            add(*number, self.row, &mut self.of_row, &mut self.listed);
        }
    }

    /// Adds the row at hand to all listed words in a word of it.
    fn look_through(&mut self, word: &[u8]) {
        let (row, of_row, listed) = (self.row, &mut self.of_row, &mut self.listed);
        self.numbers.held(word, |number| add(number, row, of_row, listed));
    }

    /// The lists as bytes: how many, a table of the words in their order, and the rows of each.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.listed.retain(|listed| listed.from < self.row);
        self.listed.sort_unstable_by_key(|listed| listed.word.to_le_bytes());
        let mut out = (self.listed.len() as u32).to_le_bytes().to_vec();
        let mut rows = Vec::new();
        for listed in &self.listed {
            let span = (self.row - listed.from).div_ceil(8) as usize;
            let is_dense = span < listed.gaps.len();
            out.extend(listed.word.to_le_bytes());
            for number in [listed.from, listed.count, rows.len() as u32, u32::from(is_dense)] {
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
    fn add(&mut self, row: u32) {
        if row < self.next {
            return;
        }
        let mut gap = row - self.next;
        self.next = row + 1;
        self.count += 1;
        while gap >= 0x80 {
            self.gaps.push(gap as u8 | 0x80);
            gap >>= 7;
        }
        self.gaps.push(gap as u8);
    }
}

/// Adds a row to a listed word, once.
fn add(number: u16, row: u32, of_row: &mut [u64; MOST_WORDS / 64], listed: &mut [Listed]) {
    let number = usize::from(number);
    let (word, bit) = (&mut of_row[number / 64], 1 << (number % 64));
    if *word & bit == 0 {
        *word |= bit;
        listed[number].add(row);
    }
}

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
    word & (Word::MAX >> (8 * (LONGEST - length)))
}

const fn length(word: Word) -> usize {
    LONGEST - word.leading_zeros() as usize / 8
}

const fn place(word: Word) -> usize {
    let mixed = (word as u64 ^ ((word >> 64) as u64).wrapping_mul(0xd6e8_feb8_6659_fd93))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - PAIRS.trailing_zeros())) as usize
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
