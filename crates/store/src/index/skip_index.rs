//! An open skip index: finds the blocks and rows that may hold a text, and reads the facts about
//! rows.
//!
//! Only the head is kept in memory. A search reads the rest from the file when it needs it: a few
//! rows of bits, and the facts of the rows it considers. So neither the memory of a server nor the
//! start of a process grows with the store.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::OnceLock;

use fixedbitset::FixedBitSet;

use super::facts::{Block, RowOutline, RowTags};
use super::filter::Grams;
use super::format::{self, FACTS_BYTES, FactsOfRows, IndexHead};
use super::responses::{self, ResponseRow};
use super::words::{KnownRows, WordIndex, WordPattern};
use crate::disk::checked_file::CheckedFile;
use crate::error::StoreError;

/// No more rows of bits are read after more than this many consecutive rows that exclude no filter,
/// plus [`IDLE_ROWS_PER_FILTER`] for every remaining filter. Scanning a block takes as long as
/// reading a dozen rows, and a block that remains by chance is excluded by one of the next rows.
const MAX_IDLE_ROWS: usize = 8;

/// Rows of bits that are read in addition for every remaining filter; see [`MAX_IDLE_ROWS`].
const IDLE_ROWS_PER_FILTER: usize = 4;

/// An open skip index.
pub struct SkipIndex {
    file: CheckedFile,
    head: IndexHead,
    /// The block of every filter; `None` if every block has one filter.
    block_of: Option<Vec<u32>>,
    tags: OnceLock<Vec<RowTags>>,
    files: OnceLock<Vec<String>>,
}

impl SkipIndex {
    /// Reads the head of the index in `file`.
    pub(crate) fn open(file: CheckedFile) -> Result<Self, StoreError> {
        let head = IndexHead::read(&file)?.ok_or_else(|| {
            StoreError::damaged(file.path(), "it is not a skip index of this version")
        })?;
        let has_long_block = head.blocks.iter().any(|block| block.columns.len() > 1);
        let block_of = if has_long_block { Some(blocks_of_filters(&head.blocks)) } else { None };
        Ok(Self { file, head, block_of, tags: OnceLock::new(), files: OnceLock::new() })
    }

    /// Returns the number of rows of the segment.
    pub fn row_count(&self) -> usize {
        self.head.rows
    }

    /// Returns the blocks, in the order of their rows.
    pub fn blocks(&self) -> &[Block] {
        &self.head.blocks
    }

    /// Returns the different row tags, to which [`RowFacts::tags`](super::RowFacts::tags)
    /// refers.
    pub fn row_tags(&self) -> Result<&[RowTags], StoreError> {
        self.read_list(&self.tags, &self.head.tags, format::parse_row_tags)
    }

    /// Returns the different lists of paths that rows name, with newlines between the paths of a
    /// list. The first list is empty, for rows that name no file.
    pub fn file_lists(&self) -> Result<&[String], StoreError> {
        self.read_list(&self.files, &self.head.files, |bytes| serde_json::from_slice(bytes))
    }

    /// Returns the list in `known`. On first use, it is read from `place` and parsed with `read`.
    fn read_list<'a, T>(
        &'a self,
        known: &'a OnceLock<Vec<T>>,
        place: &Range<u64>,
        read: impl Fn(&[u8]) -> serde_json::Result<Vec<T>>,
    ) -> Result<&'a [T], StoreError> {
        if let Some(list) = known.get() {
            return Ok(list);
        }
        let list = read(&self.read_bytes(place.clone())?)
            .map_err(|error| StoreError::damaged(self.file.path(), error))?;
        Ok(known.get_or_init(|| list))
    }

    /// Reads the facts of `rows`, clipped to the rows of the segment.
    pub fn read_facts(&self, rows: Range<usize>) -> Result<FactsOfRows, StoreError> {
        let end = rows.end.min(self.head.rows).max(rows.start);
        let first_byte = self.head.facts + (rows.start * FACTS_BYTES) as u64;
        let end_byte = self.head.facts + (end * FACTS_BYTES) as u64;
        self.read_bytes(first_byte..end_byte).map(FactsOfRows)
    }

    /// Reads the outlines of all rows.
    pub fn read_outlines(&self) -> Result<Vec<RowOutline>, StoreError> {
        let place = self.head.outlines..self.head.outlines + self.head.rows as u64;
        Ok(self.read_bytes(place)?.into_iter().map(RowOutline).collect())
    }

    /// Reads the rows with tokens of responses, sorted by response: of those that count, or of those
    /// that another session counts.
    pub(crate) fn read_responses(
        &self,
        is_counted_elsewhere: bool,
    ) -> Result<Vec<ResponseRow>, StoreError> {
        let place = &self.head.responses[usize::from(is_counted_elsewhere)];
        Ok(responses::parse_rows(&self.read_bytes(place.clone())?))
    }

    /// Returns the rows that count tokens of one of `wanted`, which are hashes of responses and
    /// ascend. Reads little of a long list if few responses are wanted.
    pub(crate) fn find_counted_responses(
        &self,
        wanted: &[u64],
    ) -> Result<Vec<ResponseRow>, StoreError> {
        let place = &self.head.responses[0];
        responses::find_rows(wanted, place.end - place.start, |range| {
            self.read_bytes(place.start + range.start..place.start + range.end)
        })
    }

    /// Returns the words of the rows, which are opened at the first lookup.
    pub fn word_lookup(&self) -> WordLookup<'_> {
        WordLookup { index: self, words: OnceCell::new() }
    }

    /// Returns the positions of the blocks that may hold a text with all of `grams`.
    pub fn find_candidate_blocks(&self, grams: &Grams) -> Result<FixedBitSet, StoreError> {
        let mut columns = FixedBitSet::with_capacity(self.head.columns);
        columns.insert_range(..);
        let mut remaining = self.head.columns;
        let mut idle_rows = 0;
        let mut row = vec![0; self.head.stride.div_ceil(8)];
        for bit in grams.bit_positions(self.head.bits_log2) {
            self.intersect_bit_row(bit, &mut row, &mut columns)?;
            let held = columns.count_ones(..);
            idle_rows = if held < remaining { 0 } else { idle_rows + 1 };
            remaining = held;
            if remaining == 0 || idle_rows > MAX_IDLE_ROWS + remaining * IDLE_ROWS_PER_FILTER {
                break;
            }
        }
        Ok(self.blocks_of_columns(columns))
    }

    /// Converts a set of filters to the set of their blocks. A block with several filters may hold
    /// a needle if one of them does: they overlap by the compared length of a needle.
    fn blocks_of_columns(&self, columns: FixedBitSet) -> FixedBitSet {
        let Some(block_of) = &self.block_of else { return columns };
        columns.ones().map(|column| block_of[column] as usize).collect()
    }

    /// Removes the filters from `columns` that do not have a bit. `row` is a buffer for the bytes of a
    /// row of bits.
    fn intersect_bit_row(
        &self,
        bit: usize,
        row: &mut [u8],
        columns: &mut FixedBitSet,
    ) -> Result<(), StoreError> {
        let stride = self.head.stride;
        let first_bit = bit * stride;
        self.file.read_at(row, self.head.filters + (first_bit / 8) as u64)?;
        if stride < 8 {
            // Several rows share a byte.
            row[0] >>= first_bit % 8;
        }
        let words = columns.as_mut_slice().iter_mut();
        for (word, bytes) in words.zip(row.chunks(size_of::<usize>())) {
            let mut bits = [0; size_of::<usize>()];
            bits[..bytes.len()].copy_from_slice(bytes);
            *word &= usize::from_le_bytes(bits);
        }
        Ok(())
    }

    /// Reads a range of the file.
    fn read_bytes(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        self.file.read_at(&mut bytes, range.start)?;
        Ok(bytes)
    }

    /// Reads a range of the words, which is relative to their beginning.
    fn read_word_bytes(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let start = self.head.words.start;
        self.read_bytes(start + range.start..start + range.end)
    }

    /// Returns the error for words that cannot be parsed.
    fn malformed_words(&self) -> StoreError {
        StoreError::damaged(self.file.path(), "its word index is malformed")
    }
}

/// Returns the position of the block of each filter.
fn blocks_of_filters(blocks: &[Block]) -> Vec<u32> {
    let mut positions: Vec<u32> = Vec::new();
    for (block, position) in blocks.iter().zip(0_u32..) {
        positions.extend(block.columns.clone().map(|_| position));
    }
    positions
}

/// The words of the rows of a segment, for the lookups of one search.
pub struct WordLookup<'i> {
    index: &'i SkipIndex,
    words: OnceCell<WordIndex>,
}

impl WordLookup<'_> {
    /// Returns the rows with a word that holds `wanted`, which has at least
    /// [`SHORTEST_WORD`](crate::SHORTEST_WORD) letters.
    pub fn find_rows_with(&self, wanted: &WordPattern<'_>) -> Result<KnownRows, StoreError> {
        let rows =
            self.open_words()?.find_rows_with(wanted, |range| self.index.read_word_bytes(range))?;
        rows.ok_or_else(|| self.index.malformed_words())
    }

    /// Calls `take` with each word that begins with `prefix`, which is lowercase ASCII letters, and
    /// that `is_wanted` accepts. The words come in alphabetical order, each with the rows that are
    /// known to have it.
    pub fn for_each_word(
        &self,
        prefix: &str,
        is_wanted: &dyn Fn(&str) -> bool,
        take: &mut dyn FnMut(&str, &FixedBitSet),
    ) -> Result<(), StoreError> {
        let read = |range| self.index.read_word_bytes(range);
        let known = self.open_words()?.for_each_word(prefix, is_wanted, read, take)?;
        known.ok_or_else(|| self.index.malformed_words())
    }

    /// Returns the words, which are opened on first use.
    fn open_words(&self) -> Result<&WordIndex, StoreError> {
        if let Some(words) = self.words.get() {
            return Ok(words);
        }
        let place = &self.index.head.words;
        let length = place.end - place.start;
        let words = WordIndex::open(self.index.row_count(), length, |range| {
            self.index.read_word_bytes(range)
        })?;
        let words = words.ok_or_else(|| self.index.malformed_words())?;
        Ok(self.words.get_or_init(|| words))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::facts::RowFacts;
    use super::super::filter::needle_grams;
    use super::super::writer::IndexWriter;
    use super::*;
    use base::fold::fold_text;
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
            tags: 0,
            file_list: 0,
        }
    }

    fn labels(tool: &str) -> RowTags {
        RowTags { tool: Some(tool.into()), ..RowTags::default() }
    }

    /// Writes rows and opens the index.
    fn index(rows: &[(&str, RowFacts, RowTags, &str)]) -> (tempfile::NamedTempFile, SkipIndex) {
        let mut writer = IndexWriter::new();
        for (text, facts, labels, files) in rows {
            writer.push(text, *facts, labels.parts(), files);
        }
        let file = tempfile::NamedTempFile::new().expect("tempfile");
        std::fs::write(file.path(), writer.finish().concat()).expect("writes");
        let index = open(file.path()).expect("an index");
        (file, index)
    }

    /// Opens an index without checksums, so that only what the index itself checks is checked.
    fn open(path: &Path) -> Result<SkipIndex, StoreError> {
        let length = std::fs::metadata(path).expect("a file").len();
        SkipIndex::open(CheckedFile::open(path, length, Vec::new())?)
    }

    fn holds(index: &SkipIndex, needle: &str) -> Vec<usize> {
        index.find_candidate_blocks(&needle_grams(needle)).expect("reads").ones().collect()
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
        assert!(first.has_untimed_rows && !index.blocks()[1].has_untimed_rows);
        assert!(first.columns.len() > 1, "a long row has several filters");
        let rows: Vec<_> = index.read_facts(1..9).expect("reads").iter().collect();
        assert_eq!(rows[0], RowFacts { tags: 1, file_list: 1, ..facts(None) });
        assert_eq!(rows[1], RowFacts { tags: 0, file_list: 1, ..facts(Some(-3)) });
        let bits = [4, usize::BITS - long.len().leading_zeros(), 4].map(|bits| bits as u8);
        let outlines = index.read_outlines().expect("reads");
        for (outline, bits) in outlines.iter().zip(bits) {
            assert_eq!((outline.event_type(), outline.length_bits()), (EventType::Message, bits));
        }
        assert_eq!(outlines.len(), 3);
        assert_eq!(index.row_tags().expect("reads"), [labels("Bash"), labels("Read")]);
        assert_eq!(index.file_lists().expect("reads"), ["", "/a/b.rs\n/c"]);
        assert_eq!(holds(&index, "L67ST89UV6XW98"), [1]);
        assert_eq!(holds(&index, "sh89rt76uv99wx"), [0]);
        let bytes = std::fs::read(file.path()).expect("reads");
        let head = 96 + 2 * 32 + format::encode_row_tags(index.row_tags().expect("reads")).len();
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
        // The text has every run of five of these. It lacks two runs of eight, but only a quarter
        // of those are indexed.
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
                    for form in base::fold::searchable_forms(text) {
                        // Folding is not upper-casing: only needles that fold alike are in the
                        // text.
                        if form.contains(&*fold_text(&needle)) {
                            prop_assert!(!holds(&index, &needle).is_empty(), "{needle:?} in {text:?}");
                        }
                    }
                }
            }
        }
    }
}
