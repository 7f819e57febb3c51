//! Builds a skip index while rows are written.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::facts::{Block, RowFacts, RowTags};
use super::filter::{BlockFilter, FILTER_WORDS, OVERLAP_BYTES, transpose_filters};
use super::format::{append_facts, encode_head, encode_outline};
use super::responses::ResponseListsWriter;
use super::words::WordIndexWriter;
use base::fold::searchable_forms;

/// Bytes of text between two checks whether the filter is full.
const PIECE_BYTES: usize = 8 << 10;

/// Bytes of text at which a block is closed even if its filter is not full.
const BLOCK_TEXT_BYTES: usize = 256 << 10;

/// The skip index of a segment under construction.
pub(crate) struct IndexWriter {
    blocks: Vec<Block>,
    /// Finished filters, in sequence.
    filters: Vec<u64>,
    filter: BlockFilter,
    words: WordIndexWriter,
    /// Bytes of text added since the last check whether the filter is full.
    unchecked: usize,
    rows: usize,
    facts: Vec<u8>,
    outlines: Vec<u8>,
    tags: DistinctValues<RowTags>,
    files: DistinctValues<String>,
    responses: ResponseListsWriter,
    /// Buffer for a text in lower case.
    lower: Vec<u8>,
    /// First row of the block under construction. The fields that follow describe the same block.
    start: usize,
    /// Bytes of its text.
    text: usize,
    /// Number of its filters that are finished.
    columns: usize,
    times: Option<(i64, i64)>,
    has_untimed_rows: bool,
}

/// Distinct values in the order of their first use. Of different values with the same hash, only
/// the latest is found again, so in rare cases a value is in the list twice.
struct DistinctValues<T> {
    values: Vec<T>,
    /// Position of a value by its hash.
    numbers: HashMap<u64, u32>,
}

impl<T> DistinctValues<T> {
    fn new() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }

    /// Returns the position of a value: that of the known one that `equals` accepts, otherwise that
    /// of a new one, which is `made` from `key`.
    fn find_or_add<K: Hash>(
        &mut self,
        key: K,
        equals: impl Fn(&T) -> bool,
        made: impl FnOnce(K) -> T,
    ) -> u32 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(known) = self.numbers.get(&hash)
            && equals(&self.values[*known as usize])
        {
            return *known;
        }

        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(made(key));
        self.numbers.insert(hash, next);
        next
    }
}

impl IndexWriter {
    pub(crate) fn new() -> Self {
        // Most rows name no files, so the empty list is the first entry.
        let mut files = DistinctValues::new();
        files.find_or_add("", |_| false, str::to_owned);
        Self {
            blocks: Vec::new(),
            filters: Vec::new(),
            filter: BlockFilter::new(),
            words: WordIndexWriter::new(),
            unchecked: 0,
            rows: 0,
            facts: Vec::new(),
            outlines: Vec::new(),
            tags: DistinctValues::new(),
            files,
            responses: ResponseListsWriter::default(),
            lower: Vec::new(),
            start: 0,
            text: 0,
            columns: 0,
            times: None,
            has_untimed_rows: false,
        }
    }

    /// Returns the number of different row tags and lists of files so far.
    pub(crate) fn name_count(&self) -> usize {
        self.tags.values.len() + self.files.values.len()
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
        let tags_number =
            self.tags.find_or_add(labels, |known| known.parts() == labels, RowTags::from_parts);
        let mut file_list = 0;
        if !files.is_empty() {
            file_list = self.files.find_or_add(files, |known| known == files, str::to_owned);
        }
        append_facts(&mut self.facts, &RowFacts { tags: tags_number, file_list, ..facts });
        self.outlines.push(encode_outline(facts.event_type, text.len()));
        self.rows += 1;
        match facts.time {
            Some(time) => {
                let (oldest, newest) = self.times.unwrap_or((time, time));
                self.times = Some((oldest.min(time), newest.max(time)));
            }
            None => self.has_untimed_rows = true,
        }

        self.push_text(text);
        self.text += text.len();
        let is_checked = self.unchecked >= PIECE_BYTES;
        if is_checked {
            self.unchecked = 0;
        }
        if self.columns > 0 || self.text >= BLOCK_TEXT_BYTES || is_checked && self.filter.is_full()
        {
            self.close_block();
        }
    }

    /// Adds the row that was pushed last to the rows of a response, which is given by its hash.
    pub(crate) fn push_response(&mut self, response: u64, is_counted_elsewhere: bool) {
        self.responses.push(response, self.rows - 1, is_counted_elsewhere);
    }

    /// Adds the text of a row to the words and to the filter.
    fn push_text(&mut self, text: &str) {
        if text.is_ascii() {
            let mut lower = std::mem::take(&mut self.lower);
            lower.clear();
            lower.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
            self.words.push(&lower);
            self.add_to_filter(&lower);
            // The texts that follow are mostly short again.
            lower.shrink_to(BLOCK_TEXT_BYTES);
            self.lower = lower;
        } else {
            for (number, form) in searchable_forms(text).enumerate() {
                // The first form is the text as it is written, the only form in which ASCII is
                // searched.
                if number == 0 {
                    self.words.push(form.as_bytes());
                }
                self.add_to_filter(form.as_bytes());
            }
        }
    }

    /// Adds folded text to the filter. A text longer than a block continues in further filters.
    fn add_to_filter(&mut self, text: &[u8]) {
        for from in (0..text.len()).step_by(PIECE_BYTES) {
            let mut starts = from..text.len().min(from + PIECE_BYTES);
            if from > 0 && self.filter.is_full() {
                self.filter.drain_into(&mut self.filters);
                self.columns += 1;
                starts.start -= OVERLAP_BYTES;
            }
            self.filter.add_runs(text, starts);
        }
        self.unchecked += text.len();
    }

    /// Ends the block under construction, if it has rows. The next row begins another one.
    pub(crate) fn close_block(&mut self) {
        let count = self.rows - self.start;
        if count == 0 {
            return;
        }
        self.filter.drain_into(&mut self.filters);
        let end = self.filters.len() / FILTER_WORDS;
        self.blocks.push(Block {
            start: self.start,
            count,
            times: self.times.take(),
            has_untimed_rows: std::mem::take(&mut self.has_untimed_rows),
            columns: end - self.columns - 1..end,
        });
        self.start = self.rows;
        self.text = 0;
        self.columns = 0;
        self.unchecked = 0;
    }

    /// Closes the last block and returns the parts of the file, in the order in which they are written:
    /// joined, they would be in memory twice.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        self.close_block();
        let turned = transpose_filters(self.filters);
        let files = serde_json::to_vec(&self.files.values).unwrap_or_default();
        let words = self.words.finish();
        let words_bytes = words.iter().map(Vec::len).sum();
        let responses = self.responses.finish();
        let [counted_bytes, elsewhere_bytes] = responses.each_ref().map(Vec::len);
        let part_bytes = [files.len(), words_bytes, counted_bytes, elsewhere_bytes];
        let head = encode_head(&self.blocks, &self.tags.values, turned.bits_log2, part_bytes);
        let mut parts = vec![head, files, self.facts, self.outlines, turned.bytes];
        parts.extend(words);
        parts.extend(responses);
        parts
    }
}
