//! The layout of `skip.idx`. Numbers are little-endian.
//!
//! The head has the magic, eight counts of 64 bits and a checksum of the counts and the next two
//! parts: the blocks, and the labels as JSON. After the head come the files as JSON, the facts of
//! every row, and the outlines of all rows, a byte each. Then come the filters, transposed: for
//! every bit, that bit of all filters together. Last are the words with their rows (`words`).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use schemas::EventType;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::facts::{Block, Labels, Outline, RowFacts};
use super::filter;
use crate::store::disk::checked_file::CheckedFile;
use crate::store::error::StoreError;

/// First bytes of the file; the digit is the version of the layout.
pub(super) const MAGIC: &[u8; 8] = b"SKIPIDX7";

const COUNTS: usize = 9;
const BLOCK_BYTES: usize = 32;
pub(super) const FACTS_BYTES: usize = 28;

/// Represents a missing time.
const NO_TIME: i64 = i64::MIN;

const REPLAY: u8 = 1;
const ERROR: u8 = 2;
const ERROR_KNOWN: u8 = 4;

/// The part of the file that is kept in memory.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) stride: usize,
    pub(super) bits_log2: u32,
    pub(super) blocks: Vec<Block>,
    /// Positions in the file of the labels, files, facts, outlines, filters and words.
    pub(super) labels: Range<u64>,
    pub(super) files: Range<u64>,
    pub(super) facts: u64,
    pub(super) outlines: u64,
    pub(super) filters: u64,
    pub(super) words: Range<u64>,
}

/// Sizes of the tables that follow the counts.
struct HeadTables {
    /// Number of blocks.
    blocks: usize,
    /// Bytes of the labels.
    labels: usize,
}

impl Head {
    /// Reads and checks the head; `None` if the file is not a skip index of this version, or is
    /// damaged.
    pub(super) fn read(file: &CheckedFile) -> Result<Option<Self>, StoreError> {
        let mut fixed = [0; MAGIC.len() + COUNTS * 8];
        if file.length() < fixed.len() as u64 {
            return Ok(None);
        }
        file.read_at(&mut fixed, 0)?;
        let Some((mut head, tables)) = Self::parse_counts(&fixed, file.length()) else {
            return Ok(None);
        };
        let mut bytes = vec![0; tables.blocks * BLOCK_BYTES + tables.labels];
        file.read_at(&mut bytes, fixed.len() as u64)?;
        let (counts, checksum) = fixed.split_at(fixed.len() - 8);
        if checksum_of(counts, &bytes) != number(checksum) {
            return Ok(None);
        }
        let is_whole = head.parse_blocks(&bytes[..tables.blocks * BLOCK_BYTES]);
        Ok(is_whole.then_some(head))
    }

    /// Parses the counts and computes the positions from them. The blocks are not read yet.
    fn parse_counts(fixed: &[u8], length: u64) -> Option<(Self, HeadTables)> {
        let mut counts = fixed.strip_prefix(MAGIC)?.chunks_exact(8).map(number);
        let mut count = || usize::try_from(counts.next()?).ok();
        let (rows, blocks, columns, stride) = (count()?, count()?, count()?, count()?);
        let (bits_log2, label_bytes, files, words) = (count()?, count()?, count()?, count()?);
        let bits_log2 = u32::try_from(bits_log2).ok().filter(|log2| (6..=32).contains(log2))?;
        let tables = blocks.checked_mul(BLOCK_BYTES)?.checked_add(label_bytes)?;
        let start = fixed.len() as u64;
        let labels_end = start.checked_add(tables as u64)?;
        let labels = labels_end - label_bytes as u64..labels_end;
        let files = labels_end..labels_end.checked_add(files as u64)?;
        let outlines = files.end.checked_add(rows.checked_mul(FACTS_BYTES)? as u64)?;
        let filters = outlines.checked_add(rows as u64)?;
        let bits = (stride as u64).checked_mul(1 << bits_log2)?;
        let filters_end = filters.checked_add((bits / 8).max(1))?;
        let words = filters_end..filters_end.checked_add(words as u64)?;
        if words.end != length || columns > stride || stride != filter::stride(columns) {
            return None;
        }
        let head = Self {
            rows,
            columns,
            stride,
            bits_log2,
            blocks: Vec::with_capacity(blocks),
            labels,
            facts: files.end,
            files,
            outlines,
            filters,
            words,
        };
        Some((head, HeadTables { blocks, labels: label_bytes }))
    }

    /// Parses the blocks; false if they do not cover exactly the rows and filters of the head.
    fn parse_blocks(&mut self, table: &[u8]) -> bool {
        let mut row = 0;
        let mut column = 0;
        for bytes in table.chunks_exact(BLOCK_BYTES) {
            let Some(block) = block(bytes, row, column) else { return false };
            row += block.count;
            column = block.columns.end;
            self.blocks.push(block);
        }
        row == self.rows && column == self.columns
    }

    /// Returns the bytes before the files. The positions in `self` are not used.
    pub(super) fn write(&self, labels: &[Labels], files: usize, words: usize) -> Vec<u8> {
        let labels = write_labels(labels);
        let mut out = MAGIC.to_vec();
        let (rows, blocks) = (self.rows, self.blocks.len());
        let (columns, stride, bits_log2) = (self.columns, self.stride, self.bits_log2 as usize);
        let counts = [rows, blocks, columns, stride, bits_log2, labels.len(), files, words];
        counts.iter().for_each(|count| out.extend((*count as u64).to_le_bytes()));
        let mut tables = Vec::new();
        for block in &self.blocks {
            let (oldest, newest) = block.times.unwrap_or((NO_TIME, NO_TIME));
            tables.extend((block.count as u64).to_le_bytes());
            tables.extend((block.columns.len() as u32).to_le_bytes());
            tables.extend(u32::from(block.untimed).to_le_bytes());
            tables.extend(oldest.to_le_bytes());
            tables.extend(newest.to_le_bytes());
        }
        tables.extend(labels);
        out.extend(checksum_of(&out, &tables).to_le_bytes());
        out.extend(tables);
        out
    }
}

/// The labels as they are written: rows have few names, in many combinations.
#[derive(Default, Serialize, Deserialize)]
struct LabelTable {
    names: Vec<String>,
    /// Tool, subtype, model and branch of each entry, as positions in `names`.
    labels: Vec<[Option<u32>; 4]>,
}

pub(super) fn write_labels(labels: &[Labels]) -> Vec<u8> {
    let mut table = LabelTable::default();
    let mut places = HashMap::new();
    let LabelTable { names, labels: rows } = &mut table;
    let mut place = |name| {
        *places.entry(name).or_insert_with(|| {
            names.push(str::to_owned(name));
            u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
        })
    };
    rows.extend(labels.iter().map(|entry| entry.parts().map(|name| name.map(&mut place))));
    serde_json::to_vec(&table).unwrap_or_default()
}

/// Parses the output of [`write_labels`]. A position without a name is damage.
pub(super) fn labels(bytes: &[u8]) -> serde_json::Result<Vec<Labels>> {
    let table: LabelTable = serde_json::from_slice(bytes)?;
    let names: Vec<Arc<str>> = table.names.into_iter().map(Arc::from).collect();
    let name = |place: Option<u32>| {
        let missing = || serde_json::Error::custom("a label without a name");
        place.map(|place| names.get(place as usize).cloned().ok_or_else(missing)).transpose()
    };
    let entry = |[tool, subtype, model, branch]: [Option<u32>; 4]| {
        let (tool, subtype, model, branch) =
            (name(tool)?, name(subtype)?, name(model)?, name(branch)?);
        Ok(Labels { tool, subtype, model, branch })
    };
    table.labels.into_iter().map(entry).collect()
}

fn checksum_of(counts: &[u8], tables: &[u8]) -> u64 {
    xxh3_64_with_seed(tables, xxh3_64(counts))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn block(bytes: &[u8], start: usize, column: usize) -> Option<Block> {
    let small = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let (oldest, newest) = (number(&bytes[16..24]), number(&bytes[24..32]));
    let times = (oldest.cast_signed(), newest.cast_signed());
    Some(Block {
        start,
        count: usize::try_from(number(&bytes[..8])).ok()?,
        times: (times.1 != NO_TIME).then_some(times),
        untimed: small(12) != 0,
        columns: column..column.checked_add(small(8) as usize)?,
    })
}

/// Appends the facts of a row.
pub(super) fn push_facts(out: &mut Vec<u8>, row: &RowFacts) {
    out.extend(row.time.unwrap_or(NO_TIME).to_le_bytes());
    for number in [row.turn_index, row.step_index, row.labels, row.files] {
        out.extend(number.to_le_bytes());
    }
    let flags = u8::from(row.is_replay) * REPLAY
        + u8::from(row.is_error == Some(true)) * ERROR
        + u8::from(row.is_error.is_some()) * ERROR_KNOWN;
    out.extend([row.event_type as u8, flags, 0, 0]);
}

/// Returns a byte with the event type of a row and the number of bits in the length of its text.
pub(super) fn outline_byte(event_type: EventType, length: usize) -> u8 {
    let bits = (usize::BITS - length.leading_zeros()).min(31);
    (bits as u8) << 3 | event_type as u8
}

/// Decodes the output of [`outline_byte`].
pub(super) fn outline(byte: u8) -> Outline {
    Outline { event_type: event_type(byte & 7), bits: byte >> 3 }
}

fn event_type(number: u8) -> EventType {
    EventType::ALL[usize::from(number) % EventType::ALL.len()]
}

/// The facts of consecutive rows, as [`push_facts`] wrote them.
pub struct FactsOfRows(pub(super) Vec<u8>);

impl FactsOfRows {
    /// Returns the facts of the row at position `at` among these rows.
    pub fn get(&self, at: usize) -> Option<RowFacts> {
        self.0.chunks_exact(FACTS_BYTES).nth(at).map(facts)
    }

    pub fn iter(&self) -> impl Iterator<Item = RowFacts> {
        self.0.chunks_exact(FACTS_BYTES).map(facts)
    }
}

fn facts(bytes: &[u8]) -> RowFacts {
    let small = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let time = number(&bytes[..8]).cast_signed();
    let (kind, flags) = (bytes[24], bytes[25]);
    RowFacts {
        time: (time != NO_TIME).then_some(time),
        turn_index: small(8),
        step_index: small(12),
        labels: small(16),
        files: small(20),
        event_type: event_type(kind),
        is_replay: flags & REPLAY != 0,
        is_error: (flags & ERROR_KNOWN != 0).then_some(flags & ERROR != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_share_their_names() {
        let written = [
            [None; 4],
            [Some("Bash"), None, Some("m"), Some("main")],
            [Some("m"), None, None, None],
        ]
        .map(Labels::of);
        let bytes = write_labels(&written);
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            r#"{"names":["Bash","m","main"],"labels":[[null,null,null,null],[0,null,1,2],[1,null,null,null]]}"#
        );
        let read = labels(&bytes).expect("reads");
        assert_eq!(read, written);
        assert!(Arc::ptr_eq(
            read[1].model.as_ref().expect("model"),
            read[2].tool.as_ref().expect("tool")
        ));
        assert!(labels(br#"{"names":["a"],"labels":[[1,null,null,null]]}"#).is_err());
    }
}
