//! Looks things up in an open skip index: the blocks and rows that may hold a text, and the facts
//! about rows.
//!
//! Only the head is kept in memory. A search reads the rest from the file when it needs it: a few
//! rows of bits, and the facts of the rows it looks at. So neither the memory of a server nor the
//! start of a process grows with the store.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::OnceLock;

use fixedbitset::FixedBitSet;

use super::facts::{Block, Labels, Outline};
use super::filter::Grams;
use super::format::{self, FACTS_BYTES, FactsOfRows, Head};
use super::words::{KnownRows, Letters, Words};
use crate::store::disk::checked_file::CheckedFile;
use crate::store::error::StoreError;

/// Rows of bits are no longer read after more than `PATIENCE` consecutive rows that exclude no
/// filter, plus `ROWS_WORTH_A_BLOCK` rows for every remaining filter. Scanning a block takes as long
/// as reading a dozen rows, and a block that remains by chance is excluded by one of the next rows.
const PATIENCE: usize = 8;
const ROWS_WORTH_A_BLOCK: usize = 4;

/// An open skip index.
pub struct SkipIndex {
    file: CheckedFile,
    head: Head,
    /// The block of every filter; `None` if every block has one filter.
    block_of: Option<Vec<u32>>,
    labels: OnceLock<Vec<Labels>>,
    files: OnceLock<Vec<String>>,
}

impl SkipIndex {
    /// Reads the head of the index in `file`.
    pub(crate) fn open(file: CheckedFile) -> Result<Self, StoreError> {
        let head = Head::read(&file)?.ok_or_else(|| {
            StoreError::damaged(file.path(), "it is not a skip index of this version")
        })?;
        let several = head.blocks.iter().any(|block| block.columns.len() > 1);
        let block_of = several.then(|| {
            let numbers = head.blocks.iter().zip(0..);
            numbers.flat_map(|(block, at)| block.columns.clone().map(move |_| at)).collect()
        });
        Ok(Self { file, head, block_of, labels: OnceLock::new(), files: OnceLock::new() })
    }

    /// Rows of the segment.
    pub fn rows(&self) -> usize {
        self.head.rows
    }

    /// The blocks, in the order of rows.
    pub fn blocks(&self) -> &[Block] {
        &self.head.blocks
    }

    /// The labels of the rows; see [`RowFacts::labels`](super::RowFacts::labels).
    pub fn labels(&self) -> Result<&[Labels], StoreError> {
        self.list(&self.labels, &self.head.labels, format::labels)
    }

    /// The lists of paths that rows name, with newlines between the paths of a list. The
    /// first entry is empty, for rows that name no file.
    pub fn files(&self) -> Result<&[String], StoreError> {
        self.list(&self.files, &self.head.files, |bytes| serde_json::from_slice(bytes))
    }

    /// Returns a list, which is read on first use.
    fn list<'a, T>(
        &'a self,
        known: &'a OnceLock<Vec<T>>,
        place: &Range<u64>,
        read: impl Fn(&[u8]) -> serde_json::Result<Vec<T>>,
    ) -> Result<&'a [T], StoreError> {
        if let Some(list) = known.get() {
            return Ok(list);
        }
        let list = read(&self.bytes(place.clone())?)
            .map_err(|error| StoreError::damaged(self.file.path(), error))?;
        Ok(known.get_or_init(|| list))
    }

    /// Reads the facts of `rows`, clipped to the rows of the segment.
    pub fn facts(&self, rows: Range<usize>) -> Result<FactsOfRows, StoreError> {
        let rows = rows.start..rows.end.min(self.head.rows);
        let at = |row: usize| self.head.facts + (row * FACTS_BYTES) as u64;
        self.bytes(at(rows.start)..at(rows.end.max(rows.start))).map(FactsOfRows)
    }

    /// Reads the outlines of all rows.
    pub fn outlines(&self) -> Result<Vec<Outline>, StoreError> {
        let place = self.head.outlines..self.head.outlines + self.head.rows as u64;
        Ok(self.bytes(place)?.into_iter().map(format::outline).collect())
    }

    /// Returns the words of the rows, which are read on first use.
    pub fn words(&self) -> WordsOfRows<'_> {
        WordsOfRows { index: self, words: OnceCell::new() }
    }

    /// Returns the positions of the blocks that may hold a text with all of `grams`.
    pub fn holding(&self, grams: &Grams) -> Result<FixedBitSet, StoreError> {
        let mut columns = FixedBitSet::with_capacity(self.head.columns);
        columns.insert_range(..);
        let (mut left, mut idle) = (self.head.columns, 0);
        for bit in grams.bits(self.head.bits_log2) {
            columns.intersect_with(&self.bit_row(bit)?);
            let held = columns.count_ones(..);
            idle = if held < left { 0 } else { idle + 1 };
            left = held;
            if left == 0 || idle > PATIENCE + left * ROWS_WORTH_A_BLOCK {
                break;
            }
        }
        Ok(self.of_columns(columns))
    }

    /// Converts a set of filters to the set of their blocks. A block with several filters may hold
    /// a needle if one of them does: they overlap by the compared length of a needle.
    fn of_columns(&self, columns: FixedBitSet) -> FixedBitSet {
        let Some(block_of) = &self.block_of else { return columns };
        columns.ones().map(|column| block_of[column] as usize).collect()
    }

    /// Reads one bit of every filter.
    fn bit_row(&self, bit: usize) -> Result<FixedBitSet, StoreError> {
        let (columns, stride) = (self.head.columns, self.head.stride);
        let from = bit * stride;
        let start = self.head.filters + (from / 8) as u64;
        let bytes = self.bytes(start..start + stride.div_ceil(8) as u64)?;
        if stride < 8 {
            // Several rows share a byte.
            let byte = usize::from(bytes[0] >> (from % 8)) & ((1 << stride) - 1);
            return Ok(FixedBitSet::with_capacity_and_blocks(columns, [byte]));
        }
        let words = bytes.chunks(size_of::<usize>()).map(|chunk| {
            let mut word = [0; size_of::<usize>()];
            word[..chunk.len()].copy_from_slice(chunk);
            usize::from_le_bytes(word)
        });
        Ok(FixedBitSet::with_capacity_and_blocks(columns, words))
    }

    fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        self.file.read_at(&mut bytes, range.start)?;
        Ok(bytes)
    }
}

/// The words of a segment's rows, for the lookups of one search.
pub struct WordsOfRows<'i> {
    index: &'i SkipIndex,
    words: OnceCell<Words>,
}

impl WordsOfRows<'_> {
    /// Returns the rows with a word that holds `wanted`, which has at least
    /// [`SHORTEST_WORD`](crate::store::SHORTEST_WORD) letters.
    pub fn rows_with(&self, wanted: &Letters<'_>) -> Result<KnownRows, StoreError> {
        let place = &self.index.head.words;
        let read = |at: Range<u64>| self.index.bytes(place.start + at.start..place.start + at.end);
        let damaged =
            || StoreError::damaged(self.index.file.path(), "its words are not what was written");
        let words = match self.words.get() {
            Some(words) => words,
            None => {
                let words = Words::open(self.index.rows(), place.end - place.start, read)?;
                let words = words.ok_or_else(damaged)?;
                self.words.get_or_init(|| words)
            }
        };
        words.rows_with(wanted, read)?.ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::facts::RowFacts;
    use super::super::filter::grams;
    use super::super::writer::IndexWriter;
    use super::*;
    use crate::base::fold::fold;
    use proptest::prelude::*;
    use schemas::EventType;

    fn facts(time: Option<i64>) -> RowFacts {
        RowFacts {
            time,
            turn_index: 3,
            step_index: 9,
            event_type: EventType::Message,
            is_error: Some(true),
            is_replay: false,
            labels: 0,
            files: 0,
        }
    }

    fn labels(tool: &str) -> Labels {
        Labels { tool: Some(tool.into()), ..Labels::default() }
    }

    /// Writes rows and opens the index.
    fn index(rows: &[(&str, RowFacts, Labels, &str)]) -> (tempfile::NamedTempFile, SkipIndex) {
        let mut writer = IndexWriter::new();
        for (text, facts, labels, files) in rows {
            writer.push(text, *facts, labels.parts(), files);
        }
        let file = tempfile::NamedTempFile::new().expect("tempfile");
        std::fs::write(file.path(), writer.finish()).expect("writes");
        let index = open(file.path()).expect("an index");
        (file, index)
    }

    /// Opens an index without checksums, so that only what the index itself checks is checked.
    fn open(path: &Path) -> Result<SkipIndex, StoreError> {
        let length = std::fs::metadata(path).expect("a file").len();
        SkipIndex::open(CheckedFile::open(path, length, Vec::new())?)
    }

    fn holds(index: &SkipIndex, needle: &str) -> Vec<usize> {
        index.holding(&grams(needle)).expect("reads").ones().collect()
    }

    /// Text with `words` distinct words.
    fn varied(words: usize) -> String {
        let letters = |n: usize| {
            (0..6).map(move |at| b"abcdefghijklmnopqrstuvwxyz012345"[(n >> (at * 5)) & 31])
        };
        let words = (0..words).map(|n| letters(n.wrapping_mul(0x9e37_79b9)));
        words.map(|word| String::from_utf8(word.collect()).expect("ASCII") + " ").collect()
    }

    #[test]
    fn rows_blocks_and_labels_are_read_back() {
        let long = varied(60_000);
        let (file, index) = index(&[
            ("sh89rt76uv99wx", facts(Some(5)), labels("Bash"), ""),
            (&long, facts(None), labels("Read"), "/a/b.rs\n/c"),
            ("l67st89uv6xw98", facts(Some(-3)), labels("Bash"), "/a/b.rs\n/c"),
        ]);
        assert_eq!(index.blocks().len(), 2);
        let first = &index.blocks()[0];
        assert_eq!((first.start, first.count, first.times), (0, 2, Some((5, 5))));
        assert!(first.untimed && !index.blocks()[1].untimed);
        assert!(first.columns.len() > 1, "a long row has several filters");
        let rows: Vec<_> = index.facts(1..9).expect("reads").iter().collect();
        assert_eq!(rows[0], RowFacts { labels: 1, files: 1, ..facts(None) });
        assert_eq!(rows[1], RowFacts { labels: 0, files: 1, ..facts(Some(-3)) });
        let bits = [4, usize::BITS - long.len().leading_zeros(), 4].map(|bits| bits as u8);
        let outline = |bits| Outline { event_type: EventType::Message, bits };
        assert_eq!(index.outlines().expect("reads"), bits.map(outline));
        assert_eq!(index.labels().expect("reads"), [labels("Bash"), labels("Read")]);
        assert_eq!(index.files().expect("reads"), ["", "/a/b.rs\n/c"]);
        assert_eq!(holds(&index, "L67ST89UV6XW98"), [1]);
        assert_eq!(holds(&index, "sh89rt76uv99wx"), [0]);
        let bytes = std::fs::read(file.path()).expect("reads");
        let head = 80 + 2 * 32 + format::write_labels(index.labels().expect("reads")).len();
        for at in 0..head {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x81;
            std::fs::write(file.path(), &damaged).expect("writes");
            assert!(open(file.path()).is_err(), "{at}");
        }
        for cut in (0..bytes.len()).step_by(997) {
            std::fs::write(file.path(), &bytes[..cut]).expect("writes");
            assert!(open(file.path()).is_err(), "{cut}");
        }
    }

    #[test]
    fn few_absent_needles_look_present() {
        let texts: Vec<String> = (0..40).map(|n| varied(2000 + n * 100)).collect();
        let rows: Vec<_> =
            texts.iter().map(|text| (text.as_str(), facts(None), labels("x"), "")).collect();
        let (_file, index) = index(&rows);
        let wrong: usize = (0..200).map(|n| holds(&index, &format!("absent{n}zq")).len()).sum();
        assert!(index.blocks().len() > 5, "{}", index.blocks().len());
        assert!(wrong * 100 < 200 * index.blocks().len(), "{wrong}");
    }

    #[test]
    fn a_phrase_is_told_from_its_words() {
        let pair = |(one, other): (char, char)| format!("pp{one}qq pp{other}qq");
        let next = |gap: usize| ('a'..='z').zip(('a'..='z').cycle().skip(gap));
        let text: String = next(1).map(|both| pair(both) + ". ").collect();
        let (_file, index) = index(&[(&text, facts(None), labels("x"), "")]);
        let held = |gap| next(gap).filter(|both| !holds(&index, &pair(*both)).is_empty()).count();
        assert_eq!(held(1), 26);
        // The text has every run of five of these. It lacks two runs of eight, but only a quarter of
        // those are indexed.
        assert!((5..20).contains(&held(2)), "{}", held(2));
    }

    #[test]
    fn a_long_text_is_found_wherever_its_filters_meet() {
        let long = varied(20_000);
        let (_file, index) = index(&[(&long, facts(None), labels("x"), "")]);
        assert!(index.blocks()[0].columns.len() > 4, "{:?}", index.blocks());
        for border in (8_192..long.len()).step_by(8_192) {
            for from in border - 70..border + 10 {
                for length in [3, 5, 17, 64] {
                    let needle = &long[from..(from + length).min(long.len())];
                    assert_eq!(holds(&index, needle), [0], "{needle:?} at {from}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_block_is_never_ruled_out_wrongly(
            texts in proptest::collection::vec("[a-cA-CéÉßſK日e\u{301}\u{212a} ]{0,30}", 1..8),
            from in 0usize..20, length in 1usize..10, long in 0usize..3,
        ) {
            // Of 0, about 3 and about 6 filters: rows of bits that share a byte.
            let long = varied(long * 9_000);
            let mut rows: Vec<_> = texts.iter().map(|text| (text.as_str(), facts(None), labels("x"), "")).collect();
            rows.insert(rows.len() / 2, (&long, facts(None), labels("x"), ""));
            let (_file, index) = index(&rows);
            for text in &texts {
                let needle: String = text.chars().skip(from).take(length).collect();
                for needle in [needle.clone(), needle.to_uppercase(), needle.to_lowercase()] {
                    for form in crate::base::fold::forms(text) {
                        // Folding is not upper-casing: only needles that fold alike are in the text.
                        if form.contains(&*fold(&needle)) {
                            prop_assert!(!holds(&index, &needle).is_empty(), "{needle:?} in {text:?}");
                        }
                    }
                }
            }
        }
    }
}
