//! The skip index of a segment: which blocks of text cannot hold a needle, and the few facts
//! about every row that searches filter by.
//!
//! A block is a run of rows with about [`BLOCK_BYTES`] of text. For each a Bloom filter keeps the
//! trigrams of the folded text; a needle of which one trigram is missing is not in the block.

use schemas::EventType;

use super::StoreError;
use crate::fold::fold;

/// Text that makes a block, in bytes.
const BLOCK_BYTES: usize = 128 << 10;

/// Bits of the filter per distinct trigram, and probes: 3 % of absent trigrams look present, and
/// a needle of five letters has three of them.
const BITS_PER_TRIGRAM: usize = 8;
const PROBES: u64 = 3;

/// Begins the file; the number is the version of the layout.
const MAGIC: &[u8; 8] = b"SKIPIDX1";

/// Stands for "no time" in the row table.
const NO_TIME: i64 = i64::MIN;

/// Slots of the table of recent trigrams: 16 KB.
const RECENT: usize = 4096;
const RECENT_SHIFT: u32 = 32 - RECENT.trailing_zeros();

const REPLAY: u8 = 1;
const ERROR: u8 = 2;

/// A row's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFacts {
    pub time: Option<i64>,
    pub event_type: EventType,
    pub is_replay: bool,
    pub is_error: bool,
}

/// A run of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub start: usize,
    pub count: usize,
    /// Newest and oldest time of a row; `None` when no row has one.
    pub times: Option<(i64, i64)>,
    filter: std::ops::Range<usize>,
}

/// A skip index, read.
pub struct SkipIndex {
    pub blocks: Vec<Block>,
    rows: Vec<(i64, u8, u8)>,
    filters: Vec<u64>,
}

impl SkipIndex {
    /// The facts of a row.
    pub fn row(&self, row: usize) -> RowFacts {
        let (time, kind, flags) = self.rows[row];
        RowFacts {
            time: (time != NO_TIME).then_some(time),
            event_type: EventType::ALL[usize::from(kind) % EventType::ALL.len()],
            is_replay: flags & REPLAY != 0,
            is_error: flags & ERROR != 0,
        }
    }

    /// Rows covered.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether a block may hold a text with all these trigrams.
    pub fn may_hold(&self, block: &Block, trigrams: &[u32]) -> bool {
        let filter = &self.filters[block.filter.clone()];
        trigrams.iter().all(|trigram| {
            probes(*trigram, filter.len() * 64).all(|bit| filter[bit / 64] & (1 << (bit % 64)) != 0)
        })
    }

    /// Reads the file's content.
    pub(super) fn read(bytes: &[u8], path: &std::path::Path) -> Result<Self, StoreError> {
        parse(bytes).ok_or_else(|| StoreError::damaged(path, "it is no skip index"))
    }
}

/// The trigrams that a text must contain for `needle` to be in it.
pub fn trigrams(needle: &str) -> Vec<u32> {
    let folded = fold(needle);
    let mut trigrams: Vec<u32> =
        folded.as_bytes().windows(3).map(|w| trigram(w[0], w[1], w[2])).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

const fn trigram(a: u8, b: u8, c: u8) -> u32 {
    ((a as u32) << 16) | ((b as u32) << 8) | c as u32
}

/// The bits of a trigram in a filter of `bits`.
fn probes(trigram: u32, bits: usize) -> impl Iterator<Item = usize> {
    let hash = u64::from(trigram).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (first, step) = (hash >> 32, (hash & 0xffff_ffff) | 1);
    (0..PROBES).map(move |probe| {
        let point = first.wrapping_add(step.wrapping_mul(probe)) & 0xffff_ffff;
        usize::try_from((point * bits as u64) >> 32).unwrap_or(0)
    })
}

/// Builds the index while rows are written.
pub(super) struct SkipWriter {
    blocks: Vec<Block>,
    rows: Vec<(i64, u8, u8)>,
    filters: Vec<u64>,
    /// One bit for every trigram of the block under construction, and those that are set.
    seen: Vec<u64>,
    distinct: Vec<u32>,
    /// Trigrams met lately: most are met again at once, and this fits the nearest cache.
    recent: Vec<u32>,
    start: usize,
    bytes: usize,
}

impl SkipWriter {
    pub(super) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            rows: Vec::new(),
            filters: Vec::new(),
            seen: vec![0; 1 << 18],
            distinct: Vec::new(),
            recent: vec![u32::MAX; RECENT],
            start: 0,
            bytes: 0,
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, text: &str, facts: RowFacts) {
        let flags = u8::from(facts.is_replay) * REPLAY + u8::from(facts.is_error) * ERROR;
        self.rows.push((facts.time.unwrap_or(NO_TIME), facts.event_type as u8, flags));
        if text.is_ascii() {
            self.add(text.bytes().map(|b| b.to_ascii_lowercase()));
        } else {
            self.add(fold(text).bytes());
        }
        self.bytes += text.len();
        if self.bytes >= BLOCK_BYTES {
            self.close();
        }
    }

    fn add(&mut self, bytes: impl Iterator<Item = u8>) {
        let mut window = 0;
        for (at, byte) in bytes.enumerate() {
            window = ((window << 8) | u32::from(byte)) & 0xff_ffff;
            if at < 2 {
                continue;
            }
            let slot = (window.wrapping_mul(0x9e37_79b1) >> RECENT_SHIFT) as usize;
            if self.recent[slot] == window {
                continue;
            }
            self.recent[slot] = window;
            let (word, bit) = ((window >> 6) as usize, 1 << (window & 63));
            if self.seen[word] & bit == 0 {
                self.seen[word] |= bit;
                self.distinct.push(window);
            }
        }
    }

    fn close(&mut self) {
        let count = self.rows.len() - self.start;
        if count == 0 {
            return;
        }
        let words = (self.distinct.len() * BITS_PER_TRIGRAM).div_ceil(64).max(1);
        let from = self.filters.len();
        self.filters.resize(from + words, 0);
        for trigram in self.distinct.drain(..) {
            self.seen[(trigram >> 6) as usize] = 0;
            for bit in probes(trigram, words * 64) {
                self.filters[from + bit / 64] |= 1 << (bit % 64);
            }
        }
        let times = self.rows[self.start..].iter().map(|row| row.0).filter(|time| *time != NO_TIME);
        let times = times.fold(None, |range: Option<(i64, i64)>, time| {
            Some(range.map_or((time, time), |(min, max)| (min.min(time), max.max(time))))
        });
        self.blocks.push(Block { start: self.start, count, times, filter: from..from + words });
        self.recent.fill(u32::MAX);
        self.start = self.rows.len();
        self.bytes = 0;
    }

    /// The file's content.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.close();
        let mut out = MAGIC.to_vec();
        for count in [self.blocks.len(), self.rows.len(), self.filters.len()] {
            out.extend((count as u64).to_le_bytes());
        }
        for block in &self.blocks {
            let (min, max) = block.times.unwrap_or((NO_TIME, NO_TIME));
            out.extend((block.count as u64).to_le_bytes());
            out.extend((block.filter.len() as u64).to_le_bytes());
            out.extend(min.to_le_bytes());
            out.extend(max.to_le_bytes());
        }
        self.rows.iter().for_each(|row| out.extend(row.0.to_le_bytes()));
        self.rows.iter().for_each(|row| out.extend([row.1, row.2]));
        self.filters.iter().for_each(|word| out.extend(word.to_le_bytes()));
        out
    }
}

/// Reads what [`SkipWriter::finish`] wrote; `None` when it is something else.
fn parse(bytes: &[u8]) -> Option<SkipIndex> {
    let mut at = bytes.strip_prefix(MAGIC)?;
    let mut take = |length: usize| {
        let (head, rest) = at.split_at_checked(length)?;
        at = rest;
        Some(head)
    };
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let mut count = || number(take(8)?).and_then(|count| usize::try_from(count).ok());
    let (blocks, rows, words) = (count()?, count()?, count()?);
    let mut index = SkipIndex { blocks: Vec::new(), rows: Vec::new(), filters: Vec::new() };
    let (mut start, mut filter) = (0, 0);
    for block in take(blocks.checked_mul(32)?)?.chunks_exact(32) {
        let field = |at: usize| number(&block[at * 8..at * 8 + 8]);
        let (count, length) = (usize::try_from(field(0)?).ok()?, usize::try_from(field(1)?).ok()?);
        let (min, max) = (field(2)?.cast_signed(), field(3)?.cast_signed());
        let times = (max != NO_TIME).then_some((min, max));
        index.blocks.push(Block { start, count, times, filter: filter..filter + length });
        start += count;
        filter += length;
    }
    let times = take(rows.checked_mul(8)?)?.chunks_exact(8);
    let rest = take(rows.checked_mul(2)?)?.chunks_exact(2);
    index.rows = times
        .zip(rest)
        .filter_map(|(time, rest)| Some((number(time)?.cast_signed(), rest[0], rest[1])))
        .collect();
    index.filters = take(words.checked_mul(8)?)?.chunks_exact(8).filter_map(number).collect();
    let fits = start == rows
        && filter == words
        && index.rows.len() == rows
        && index.filters.len() == words;
    fits.then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts(time: Option<i64>) -> RowFacts {
        RowFacts { time, event_type: EventType::Message, is_replay: false, is_error: true }
    }

    #[test]
    fn rows_and_blocks_are_read_back() {
        let mut writer = SkipWriter::new();
        writer.push("short", facts(Some(5)));
        writer.push(&"long ".repeat(BLOCK_BYTES / 4), facts(None));
        writer.push("last", facts(Some(-3)));
        let bytes = writer.finish();
        let index = parse(&bytes).expect("an index");
        assert_eq!(index.blocks.len(), 2);
        assert_eq!(
            (index.blocks[0].start, index.blocks[0].count, index.blocks[0].times),
            (0, 2, Some((5, 5)))
        );
        assert_eq!(index.row(1), facts(None));
        assert_eq!(index.row(2), facts(Some(-3)));
        assert!(index.may_hold(&index.blocks[1], &trigrams("LAST")));
        assert!(!index.may_hold(&index.blocks[1], &trigrams("short")));
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_none(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn a_block_is_never_ruled_out_wrongly(texts in proptest::collection::vec("[a-cA-CéÉß日 ]{0,30}", 1..8), from in 0usize..20, length in 1usize..10) {
            let mut writer = SkipWriter::new();
            texts.iter().for_each(|text| writer.push(text, facts(None)));
            let index = parse(&writer.finish()).expect("an index");
            for text in &texts {
                let needle: String = text.chars().skip(from).take(length).collect();
                for needle in [needle.clone(), needle.to_uppercase(), needle.to_lowercase()] {
                    // Folding is not upper-casing: only needles that fold alike are in the text.
                    if fold(text).contains(&*fold(&needle)) {
                        prop_assert!(index.may_hold(&index.blocks[0], &trigrams(&needle)), "{needle:?} in {text:?}");
                    }
                }
            }
        }
    }
}
