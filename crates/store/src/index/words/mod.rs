//! The rows that hold each word. A search for a word, or a part of one, needs no text; a search for
//! several words reads only the rows that hold all of them.
//!
//! A word is a run of three or more ASCII letters in the folded text of a row. Every word is listed
//! with its rows, except words for which there was no space, as in noise. Rows with such words are
//! "open": they may hold any word.

mod rows;
mod runs;
mod table;
mod vocabulary;

use std::cell::OnceCell;
use std::ops::Range;

use fixedbitset::FixedBitSet;

pub use rows::KnownRows;
pub use runs::SHORTEST_WORD;
pub use table::WordPattern;

use self::runs::append_runs;
use self::table::{HEAD_BYTES, WordTableLayout};
use self::vocabulary::Vocabulary;

/// Bytes of text whose runs are collected before they are added to the vocabulary.
const PIECE_BYTES: usize = 16 << 10;

/// Lists at most this many bytes apart are read in one call, with the bytes between them.
const MAX_GAP_BYTES: u64 = 4 << 10;

/// Most bytes that are read in one call if they are of several lists: more would not stay in a near
/// cache until they are decoded.
const MAX_READ_BYTES: u64 = 64 << 10;

/// The words of a segment under construction.
pub(super) struct WordIndexWriter {
    /// Buffer for the runs of letters of a piece of text.
    runs: Vec<(u32, u32)>,
    vocabulary: Vocabulary,
    /// The next row.
    row: u32,
}

impl WordIndexWriter {
    pub(super) fn new() -> Self {
        Self { runs: Vec::new(), vocabulary: Vocabulary::new(), row: 0 }
    }

    /// Adds the next row, given its folded text.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.vocabulary.count_text(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(first_piece_length(rest));
            self.runs.clear();
            append_runs(piece, &mut self.runs);
            for (start, end) in &self.runs {
                self.vocabulary.add_row(
                    &piece[*start as usize..],
                    (end - start) as usize,
                    self.row,
                );
            }
            rest = after;
        }
        self.row += 1;
    }

    /// Returns the words and their rows as bytes for [`WordIndex::find_rows_with`]: parts, in the order
    /// in which they are written.
    pub(super) fn finish(self) -> [Vec<u8>; 4] {
        let (words, open) = self.vocabulary.finish();
        table::encode_word_table(words, &open, self.row as usize)
    }
}

/// Returns the length of the first piece of `text`, which no run of letters crosses.
fn first_piece_length(text: &[u8]) -> usize {
    let Some(behind) = text.get(PIECE_BYTES..) else { return text.len() };
    let run_end = behind.iter().position(|byte| !byte.is_ascii_lowercase());
    run_end.map_or(text.len(), |end| PIECE_BYTES + end)
}

/// The words that a [`WordIndexWriter`] wrote, opened for lookups.
pub(super) struct WordIndex {
    /// Rows of the segment.
    rows: usize,
    places: WordTableLayout,
    /// The bytes at [`WordTableLayout::table`], which lookups of parts of words scan. The first one
    /// reads them.
    table: OnceCell<Vec<u8>>,
    /// The bytes at [`WordTableLayout::leaves`], which the first lookup of a prefix reads.
    leaves: OnceCell<Vec<u8>>,
    /// Rows with words that are not listed: any word may be in them.
    open: FixedBitSet,
}

impl WordIndex {
    /// Opens the words of a segment of `rows` rows, which take `length` bytes. `read` returns the
    /// bytes in a range of them. Returns `None` if `length` is too small for what their head
    /// declares.
    pub(super) fn open<E>(
        rows: usize,
        length: u64,
        read: impl Fn(Range<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Self>, E> {
        let head = read(0..length.min(HEAD_BYTES as u64))?;
        let places = head.try_into().ok().and_then(|head| WordTableLayout::read(head, length));
        let Some(places) = places else { return Ok(None) };
        let mut open = FixedBitSet::with_capacity(rows);
        rows::insert_listed_rows(&read(places.open.clone())?, &mut open);
        Ok(Some(Self { rows, places, table: OnceCell::new(), leaves: OnceCell::new(), open }))
    }

    /// Returns the rows that hold a word with these letters. `read` is as for [`WordIndex::open`].
    /// Returns `None` if the words are damaged.
    pub(super) fn find_rows_with<E>(
        &self,
        wanted: &WordPattern<'_>,
        read: impl Fn(Range<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Option<KnownRows>, E> {
        let table = read_once(&self.table, || read(self.places.table.clone()))?;
        let Some(lists) = self.places.find_lists(table, wanted) else { return Ok(None) };
        let mut certain = FixedBitSet::with_capacity(self.rows);
        let lists_start = self.places.lists.start;
        let mut rest = lists.as_slice();
        while let [first, ..] = rest {
            let (near, after) = rest.split_at(count_near_lists(first, rest));
            let end = near[near.len() - 1].end;
            let bytes = read(lists_start + first.start..lists_start + end)?;
            for list in near {
                let list_start = (list.start - first.start) as usize;
                let list_end = (list.end - first.start) as usize;
                rows::insert_listed_rows(&bytes[list_start..list_end], &mut certain);
            }
            rest = after;
        }

        let mut possible = certain.clone();
        possible.union_with(&self.open);
        Ok(Some(KnownRows { possible, certain }))
    }

    /// Calls `take` with each word that begins with `prefix` and that `is_wanted` accepts, in
    /// alphabetical order, and with the rows that are known to have it. `read` is as for
    /// [`WordIndex::open`]. Returns `None` if the words are damaged.
    pub(super) fn for_each_word<E>(
        &self,
        prefix: &str,
        is_wanted: &dyn Fn(&str) -> bool,
        read: impl Fn(Range<u64>) -> Result<Vec<u8>, E>,
        take: &mut dyn FnMut(&str, &FixedBitSet),
    ) -> Result<Option<()>, E> {
        let leaves = read_once(&self.leaves, || read(self.places.leaves()))?;
        let found = self.places.find_words(leaves, prefix, &read)?;
        let Some(mut words) = found else { return Ok(None) };
        words.retain(|word| is_wanted(&word.letters));
        let lists: Vec<Range<u64>> = words.iter().map(|word| word.list.clone()).collect();
        let lists_start = self.places.lists.start;
        let mut rows = FixedBitSet::with_capacity(self.rows);
        let mut done = 0;
        while let [first, ..] = &lists[done..] {
            let near = count_near_lists(first, &lists[done..]);
            let end = lists[done + near - 1].end;
            let bytes = read(lists_start + first.start..lists_start + end)?;
            for word in &words[done..done + near] {
                let start = (word.list.start - first.start) as usize;
                let end = (word.list.end - first.start) as usize;
                rows.clear();
                rows::insert_listed_rows(&bytes[start..end], &mut rows);
                take(&word.letters, &rows);
            }
            done += near;
        }
        Ok(Some(()))
    }
}

/// Returns the bytes in `known`. On first use, they are those that `read` returns.
fn read_once<E>(
    known: &OnceCell<Vec<u8>>,
    read: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<&[u8], E> {
    match known.get() {
        Some(bytes) => Ok(bytes),
        None => read().map(|bytes| known.get_or_init(|| bytes).as_slice()),
    }
}

/// Returns how many of `lists`, which begin with `first`, are read in one call. `lists` are
/// ascending.
fn count_near_lists(first: &Range<u64>, lists: &[Range<u64>]) -> usize {
    let mut count = 1;
    for pair in lists.windows(2) {
        if pair[1].start - pair[0].end > MAX_GAP_BYTES || pair[1].end - first.start > MAX_READ_BYTES
        {
            break;
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    use super::*;

    fn words(texts: &[String]) -> Vec<u8> {
        let mut writer = WordIndexWriter::new();
        for text in texts {
            writer.push(text.as_bytes());
        }
        writer.finish().concat()
    }

    fn known(bytes: &[u8], rows: usize, wanted: &WordPattern<'_>) -> Option<KnownRows> {
        let read = |at: Range<u64>| {
            Ok::<_, Infallible>(bytes[at.start as usize..at.end as usize].to_vec())
        };
        let words = WordIndex::open(rows, bytes.len() as u64, read).expect("reads")?;
        words.find_rows_with(wanted, read).expect("reads")
    }

    /// Where words are looked for anywhere, at the beginning, at the end, and whole.
    fn ways(letters: &str) -> [WordPattern<'_>; 4] {
        [(false, false), (true, false), (false, true), (true, true)]
            .map(|(begin, end)| WordPattern { letters, must_begin_word: begin, must_end_word: end })
    }

    fn holds(text: &str, wanted: &WordPattern<'_>) -> bool {
        text.split(|c: char| !c.is_ascii_lowercase()).any(|word| {
            (0..word.len()).any(|at| {
                word[at..].starts_with(wanted.letters)
                    && (at == 0 || !wanted.must_begin_word)
                    && (at + wanted.letters.len() == word.len() || !wanted.must_end_word)
            })
        })
    }

    /// Compares the result of every lookup with every text. Returns the largest number of rows for
    /// which a lookup leaves open whether they match.
    fn check(texts: &[String], letters: &[&str]) -> usize {
        let bytes = words(texts);
        let mut open = None;
        for wanted in letters.iter().flat_map(|letters| ways(letters)) {
            let known = known(&bytes, texts.len(), &wanted).expect("words");
            for (row, text) in texts.iter().enumerate() {
                let held = holds(text, &wanted);
                assert!(known.possible[row] || !held, "{wanted:?} in {row}: {text}");
                assert!(!known.certain[row] || held, "{wanted:?} in {row}: {text}");
            }
            let unsure =
                (0..texts.len()).filter(|row| known.possible[*row] && !known.certain[*row]);
            open = open.max(Some(unsure.count()));
        }
        open.unwrap_or(0)
    }

    #[test]
    fn words_and_parts_of_words_are_known_of_every_row() {
        let text = |row: usize| match row % 40 {
            0..10 => format!("the caching {row} overcachingly"),
            10..38 => format!("x{row} the-cachin th"),
            38 => format!("a0thecaching9 {}", "verylongidentifierthatgoeson".repeat(row % 3 + 1)),
            _ => format!("rare{} été", row / 1000),
        };
        let texts: Vec<String> = (0..2000).map(text).collect();
        let letters = ["the", "caching", "ach", "overcachingly", "rare", "absent", "identifier"];
        assert_eq!(check(&texts, &letters), 0);
        assert_eq!(check(&texts, &["goeson", "verylongidentifierthatgoeson", "zzz", "rth"]), 0);
        assert_eq!(check(&[], &["the"]), 0);
    }

    /// A word that is like no other.
    fn noise(number: usize) -> String {
        let letter = |at: u32| char::from(b'a' + (number / 26usize.pow(at) % 26) as u8);
        (0..5).map(letter).chain("q".repeat(number % 17).chars()).collect()
    }

    #[test]
    fn noise_leaves_its_rows_open_and_no_others() {
        let text = |row: usize| match row % 50 {
            7 => (0..200).map(|n| noise(row * 200 + n) + " ").collect(),
            _ => format!("some common words {}", noise(row % 50)),
        };
        let texts: Vec<String> = (0..5000).map(text).collect();
        let some = [noise(7 * 200), noise(157 * 200 + 3), noise(4957 * 200), noise(9)];
        let mut letters: Vec<&str> = some.iter().map(String::as_str).collect();
        letters.extend(["common", "ommo", "word"]);
        let open = check(&texts, &letters);
        assert!((20..=100).contains(&open), "{open}");
        let bytes = words(&texts);
        let text: usize = texts.iter().map(String::len).sum();
        assert!(bytes.len() < text / 2, "{} of {text}", bytes.len());
    }

    #[test]
    fn damage_is_refused_or_names_rows_that_there_are() {
        let texts: Vec<String> =
            (0..300).map(|row| format!("word{} some{}", row % 7, noise(row % 90))).collect();
        let bytes = words(&texts);
        for at in 0..bytes.len() {
            for flip in [0x80, 0x01, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                for wanted in ["some", "word", "qqq"].into_iter().flat_map(ways) {
                    if let Some(known) = known(&damaged, 100, &wanted) {
                        assert_eq!((known.possible.len(), known.certain.len()), (100, 100));
                    }
                }
            }
        }
        for cut in 0..bytes.len() {
            known(&bytes[..cut], 300, &ways("some")[0]);
        }
    }

    #[test]
    fn words_that_begin_alike_are_listed_with_their_rows() {
        let texts: Vec<String> = (0..300)
            .map(|row| format!("cache{} caching x{row}", ["", "s", "d"][row % 3]))
            .collect();
        let bytes = words(&texts);
        let read = |at: Range<u64>| {
            Ok::<_, Infallible>(bytes[at.start as usize..at.end as usize].to_vec())
        };
        let index = WordIndex::open(300, bytes.len() as u64, read).expect("reads").expect("words");
        let listed = |prefix: &str| {
            let mut found = Vec::new();
            let mut take = |word: &str, rows: &FixedBitSet| {
                found.push((word.to_owned(), rows.count_ones(..), rows.minimum()));
            };
            let is_wanted = |word: &str| word != "caches";
            let known = index.for_each_word(prefix, &is_wanted, read, &mut take).expect("reads");
            assert_eq!(known, Some(()));
            found
        };
        let word = |word: &str, rows, first| (word.to_owned(), rows, Some(first));
        assert_eq!(
            listed("cach"),
            [word("cache", 100, 0), word("cached", 100, 2), word("caching", 300, 0)]
        );
        assert_eq!(listed("cached"), [word("cached", 100, 2)]);
        assert!(
            listed("zzz").is_empty() && listed("aaa").is_empty() && listed("cachedd").is_empty()
        );
    }

    #[test]
    fn words_are_listed_however_many_begin_alike() {
        let letters = || 'a'..='z';
        let mut texts: Vec<String> = Vec::new();
        for (a, b) in letters().flat_map(|a| letters().map(move |b| (a, b))) {
            texts.extend(["p", "q", "r"].map(|c| format!("bef pre{a}{b}{c} zoo")));
        }
        let rows = texts.len();
        let bytes = words(&texts);
        let read = |at: Range<u64>| {
            Ok::<_, Infallible>(bytes[at.start as usize..at.end as usize].to_vec())
        };
        let index = WordIndex::open(rows, bytes.len() as u64, read).expect("reads").expect("words");
        for (prefix, expected) in
            [("pre", rows), ("prem", 78), ("prezzr", 1), ("bef", 1), ("zo", 1), ("prf", 0)]
        {
            let mut found: Vec<String> = Vec::new();
            let mut take = |word: &str, _: &FixedBitSet| found.push(word.to_owned());
            let known = index.for_each_word(prefix, &|_| true, read, &mut take).expect("reads");
            assert_eq!((known, found.len()), (Some(()), expected), "{prefix}");
            assert!(found.is_sorted() && found.iter().all(|word| word.starts_with(prefix)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
                "tests/proptest-regressions/words.txt",
            ))),
            ..ProptestConfig::default()
        })]

        #[test]
        fn rows_are_what_a_look_at_every_text_says(
            rows in proptest::collection::vec("([abc]{1,9}[ -]?){0,6}", 0..60),
        ) {
            let letters = ['a', 'b', 'c'];
            let three = letters.map(|x| letters.map(|y| letters.map(|z| format!("{x}{y}{z}"))));
            let mut wanted: Vec<String> = three.into_iter().flatten().flatten().collect();
            wanted.extend(wanted.clone().iter().map(|three| format!("{three}a")));
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            assert_eq!(check(&rows, &wanted), 0);
        }
    }
}
