//! Builds a skip index while rows are written.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::facts::{Block, Labels, RowFacts};
use super::filter::{Filter, OVERLAP, WORDS, turn};
use super::format::{Head, outline_byte, push_facts};
use super::words::WordsWriter;
use crate::base::fold::forms;

/// Bytes of text between two checks whether the filter is full.
const PIECE: usize = 8 << 10;

/// Bytes of text at which a block is closed even if its filter is not full.
const BLOCK_TEXT: usize = 256 << 10;

/// The skip index of a segment under construction.
pub(crate) struct IndexWriter {
    blocks: Vec<Block>,
    /// Finished filters, in sequence.
    filters: Vec<u64>,
    filter: Filter,
    words: WordsWriter,
    /// Bytes of text added since the last check whether the filter is full.
    unchecked: usize,
    rows: usize,
    facts: Vec<u8>,
    outlines: Vec<u8>,
    labels: Distinct<Labels>,
    files: Distinct<String>,
    lower: Vec<u8>,
    /// First row of the block under construction. The fields that follow describe the same block.
    start: usize,
    text: usize,
    columns: usize,
    times: Option<(i64, i64)>,
    untimed: bool,
}

/// Values in the order of their first use. They are mostly distinct: of values with the same hash,
/// only the latest is found again.
struct Distinct<T> {
    values: Vec<T>,
    numbers: HashMap<u64, u32>,
}

impl<T> Distinct<T> {
    fn new() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }

    /// Returns the number of a value: of the known one that `equals` accepts, or else of a new one
    /// that is `made` from `key`.
    fn number<K: Hash>(
        &mut self,
        key: K,
        equals: impl Fn(&T) -> bool,
        made: impl FnOnce(K) -> T,
    ) -> u32 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.numbers.get(&hash).copied();
        known.filter(|number| equals(&self.values[*number as usize])).unwrap_or_else(|| {
            let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
            self.values.push(made(key));
            self.numbers.insert(hash, next);
            next
        })
    }
}

impl IndexWriter {
    pub(crate) fn new() -> Self {
        // Most rows name no files, so the empty list is the first entry.
        let mut files = Distinct::new();
        files.number("", |_| false, str::to_owned);
        Self {
            blocks: Vec::new(),
            filters: Vec::new(),
            filter: Filter::new(),
            words: WordsWriter::new(),
            unchecked: 0,
            rows: 0,
            facts: Vec::new(),
            outlines: Vec::new(),
            labels: Distinct::new(),
            files,
            lower: Vec::new(),
            start: 0,
            text: 0,
            columns: 0,
            times: None,
            untimed: false,
        }
    }

    /// Returns the number of different labels and lists of files so far.
    pub(crate) fn names(&self) -> usize {
        self.labels.values.len() + self.files.values.len()
    }

    /// Adds a row. `labels` are its tool, subtype, model and branch. `files` are the paths it
    /// names, with newlines between them. The fields `labels` and `files` of `facts` are not used.
    pub(crate) fn push(
        &mut self,
        text: &str,
        facts: RowFacts,
        labels: [Option<&str>; 4],
        files: &str,
    ) {
        let numbered = RowFacts {
            labels: self.labels.number(labels, |known| known.parts() == labels, Labels::of),
            files: match files {
                "" => 0,
                _ => self.files.number(files, |known| known == files, str::to_owned),
            },
            ..facts
        };
        push_facts(&mut self.facts, &numbered);
        self.outlines.push(outline_byte(facts.event_type, text.len()));
        self.rows += 1;
        match facts.time {
            Some(time) => {
                let (oldest, newest) = self.times.unwrap_or((time, time));
                self.times = Some((oldest.min(time), newest.max(time)));
            }
            None => self.untimed = true,
        }
        if text.is_ascii() {
            let mut lower = std::mem::take(&mut self.lower);
            lower.clear();
            lower.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
            self.words.push(&lower);
            self.add(&lower);
            // The texts that follow are mostly short again.
            lower.shrink_to(BLOCK_TEXT);
            self.lower = lower;
        } else {
            for (number, form) in forms(text).enumerate() {
                // The first form is the text as it is written, the only form in which ASCII is
                // searched.
                if number == 0 {
                    self.words.push(form.as_bytes());
                }
                self.add(form.as_bytes());
            }
        }
        self.text += text.len();
        let checked = self.unchecked >= PIECE;
        if checked {
            self.unchecked = 0;
        }
        if self.columns > 0 || self.text >= BLOCK_TEXT || checked && self.filter.is_full() {
            self.close();
        }
    }

    /// Adds folded text to the filter. A text longer than a block continues in further filters.
    fn add(&mut self, text: &[u8]) {
        for from in (0..text.len()).step_by(PIECE) {
            let mut starts = from..text.len().min(from + PIECE);
            if from > 0 && self.filter.is_full() {
                self.filter.take(&mut self.filters);
                self.columns += 1;
                starts.start -= OVERLAP;
            }
            self.filter.add(text, starts);
        }
        self.unchecked += text.len();
    }

    fn close(&mut self) {
        let count = self.rows - self.start;
        if count == 0 {
            return;
        }
        self.filter.take(&mut self.filters);
        let end = self.filters.len() / WORDS;
        self.blocks.push(Block {
            start: self.start,
            count,
            times: self.times.take(),
            untimed: std::mem::take(&mut self.untimed),
            columns: end - self.columns - 1..end,
        });
        (self.start, self.text, self.columns, self.unchecked) = (self.rows, 0, 0, 0);
    }

    /// Closes the last block and returns the content of the file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.close();
        let columns = self.filters.len() / WORDS;
        let turned = turn(self.filters);
        let head = Head {
            rows: self.rows,
            columns,
            stride: turned.stride,
            bits_log2: turned.bits_log2,
            blocks: self.blocks,
            labels: 0..0,
            files: 0..0,
            facts: 0,
            outlines: 0,
            filters: 0,
            words: 0..0,
        };
        let files = serde_json::to_vec(&self.files.values).unwrap_or_default();
        let words = self.words.finish();
        let mut out = head.write(&self.labels.values, files.len(), words.len());
        out.extend(files);
        out.extend(self.facts);
        out.extend(self.outlines);
        out.extend(turned.bytes);
        out.extend(words);
        out
    }
}
