//! The layout of `skip.idx`. Numbers are little-endian.
//!
//! ```text
//! head      "SKIPIDX8", ten counts of 8 bytes, checksum of the counts and the next two parts
//! blocks    32 bytes each
//! row tags  JSON
//! files     JSON
//! facts     28 bytes a row
//! outlines  1 byte a row
//! filters   transposed: for every bit, that bit of all filters together
//! words     the words with their rows; see `words`
//! responses the rows of counted responses, then those of responses that another session counts;
//!           see `responses`
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use schemas::EventType;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::facts::{Block, RowFacts, RowTags, decode_event_type};
use super::filter;
use super::responses::RESPONSE_BYTES;
use crate::disk::checked_file::CheckedFile;
use crate::error::StoreError;

/// First bytes of the file; the digit is the version of the layout.
pub(super) const MAGIC: &[u8; 8] = b"SKIPIDX8";

/// Number of counts in the head of the file.
const COUNTS: usize = 10;

/// Bytes of the magic, the counts and the checksum.
const FIXED_BYTES: usize = MAGIC.len() + COUNTS * 8 + 8;

/// Bytes of one block in the file.
const BLOCK_BYTES: usize = 32;

/// Bytes of the facts of one row in the file.
pub(super) const FACTS_BYTES: usize = 28;

/// Represents a missing time.
const NO_TIME: i64 = i64::MIN;

/// Set in the flags of a row that is a replay.
const REPLAY_FLAG: u8 = 1;

/// Set in the flags of a row that is an error.
const ERROR_FLAG: u8 = 2;

/// Set in the flags of a row if it is known whether it is an error.
const ERROR_KNOWN_FLAG: u8 = 4;

/// The part of the file that is kept in memory.
#[derive(Debug)]
pub(super) struct IndexHead {
    pub(super) rows: usize,
    /// Number of filters.
    pub(super) columns: usize,
    /// Bits from the start of one row of bits to the start of the next.
    pub(super) stride: usize,
    /// log2 of the bits of a filter.
    pub(super) bits_log2: u32,
    pub(super) blocks: Vec<Block>,
    /// Positions in the file of the labels, files, facts, outlines, filters, words and responses.
    pub(super) tags: Range<u64>,
    pub(super) files: Range<u64>,
    pub(super) facts: u64,
    pub(super) outlines: u64,
    pub(super) filters: u64,
    pub(super) words: Range<u64>,
    pub(super) responses: [Range<u64>; 2],
}

/// Parses the counts in the first [`FIXED_BYTES`] of a file: rows, blocks, filters, bits from one row of
/// bits to the next, log2 of the bits of a filter, and the bytes of the row tags, the files, the words
/// and both lists of responses. `None` if the bytes do not begin with [`MAGIC`], or if a count is beyond
/// the memory of this machine.
fn parse_counts(fixed: &[u8]) -> Option<[usize; COUNTS]> {
    let mut counts = [0; COUNTS];
    for (count, bytes) in counts.iter_mut().zip(fixed.strip_prefix(MAGIC)?.chunks_exact(8)) {
        *count = usize::try_from(read_u64(bytes, 0)).ok()?;
    }
    Some(counts)
}

impl IndexHead {
    /// Reads and checks the head; `None` if the file is not a skip index of this version, or is
    /// damaged.
    pub(super) fn read(file: &CheckedFile) -> Result<Option<Self>, StoreError> {
        let mut fixed = [0; FIXED_BYTES];
        if file.length() < fixed.len() as u64 {
            return Ok(None);
        }
        file.read_at(&mut fixed, 0)?;
        let Some(counts) = parse_counts(&fixed) else { return Ok(None) };
        let Some(mut head) = Self::from_counts(counts, file.length()) else { return Ok(None) };

        let [_, blocks, _, _, _, tags_bytes, ..] = counts;
        let mut tables = vec![0; blocks * BLOCK_BYTES + tags_bytes];
        file.read_at(&mut tables, fixed.len() as u64)?;
        let (summed, checksum) = fixed.split_at(fixed.len() - 8);
        if checksum_of(summed, &tables) != read_u64(checksum, 0) {
            return Ok(None);
        }
        if !head.parse_blocks(&tables[..blocks * BLOCK_BYTES]) {
            return Ok(None);
        }
        Ok(Some(head))
    }

    /// Computes the positions from the counts. The blocks are not read yet. Returns `None` if the
    /// counts do not fit a file of `length` bytes.
    fn from_counts(counts: [usize; COUNTS], length: u64) -> Option<Self> {
        let [rows, blocks, columns, stride, bits_log2, tags_bytes, parts @ ..] = counts;
        let [files_bytes, words_bytes, counted_bytes, elsewhere_bytes] = parts;
        let bits_log2 = u32::try_from(bits_log2).ok()?;
        if !(6..=32).contains(&bits_log2) {
            return None;
        }

        let tables_bytes = blocks.checked_mul(BLOCK_BYTES)?.checked_add(tags_bytes)?;
        let tags_end = (FIXED_BYTES as u64).checked_add(tables_bytes as u64)?;
        let files = tags_end..tags_end.checked_add(files_bytes as u64)?;
        let outlines = files.end.checked_add(rows.checked_mul(FACTS_BYTES)? as u64)?;
        let filters = outlines.checked_add(rows as u64)?;
        let filter_bits = (stride as u64).checked_mul(1 << bits_log2)?;
        let filters_end = filters.checked_add((filter_bits / 8).max(1))?;
        let words = filters_end..filters_end.checked_add(words_bytes as u64)?;
        let counted = words.end..words.end.checked_add(counted_bytes as u64)?;
        let elsewhere = counted.end..counted.end.checked_add(elsewhere_bytes as u64)?;
        if elsewhere.end != length
            || !counted_bytes.is_multiple_of(RESPONSE_BYTES)
            || !elsewhere_bytes.is_multiple_of(RESPONSE_BYTES)
            || columns > stride
            || stride != filter::row_stride(columns)
        {
            return None;
        }

        Some(Self {
            rows,
            columns,
            stride,
            bits_log2,
            blocks: Vec::with_capacity(blocks),
            tags: tags_end - tags_bytes as u64..tags_end,
            facts: files.end,
            files,
            outlines,
            filters,
            words,
            responses: [counted, elsewhere],
        })
    }

    /// Parses the blocks. Returns false if they do not cover exactly the rows and filters of the
    /// head.
    fn parse_blocks(&mut self, table: &[u8]) -> bool {
        let mut row = 0;
        let mut column = 0;
        for bytes in table.chunks_exact(BLOCK_BYTES) {
            let Some(block) = decode_block(bytes, row, column) else { return false };
            row += block.count;
            column = block.columns.end;
            self.blocks.push(block);
        }
        row == self.rows && column == self.columns
    }
}

/// Returns the bytes before the files. `part_bytes` are the sizes of the files, the words and both lists
/// of responses.
pub(super) fn encode_head(
    blocks: &[Block],
    tags: &[RowTags],
    bits_log2: u32,
    part_bytes: [usize; 4],
) -> Vec<u8> {
    let tags_json = encode_row_tags(tags);
    let rows = blocks.iter().map(|block| block.count).sum();
    let columns = blocks.last().map_or(0, |block| block.columns.end);
    let stride = filter::row_stride(columns);
    let mut out = MAGIC.to_vec();
    let counts = [rows, blocks.len(), columns, stride, bits_log2 as usize, tags_json.len()];
    for count in counts.into_iter().chain(part_bytes) {
        out.extend((count as u64).to_le_bytes());
    }

    let mut tables = Vec::new();
    for block in blocks {
        let (oldest, newest) = block.times.unwrap_or((NO_TIME, NO_TIME));
        tables.extend((block.count as u64).to_le_bytes());
        tables.extend((block.columns.len() as u32).to_le_bytes());
        tables.extend(u32::from(block.has_untimed_rows).to_le_bytes());
        tables.extend(oldest.to_le_bytes());
        tables.extend(newest.to_le_bytes());
    }
    tables.extend(tags_json);

    out.extend(checksum_of(&out, &tables).to_le_bytes());
    out.extend(tables);
    out
}

/// The row tags as they are written. Rows have few names, in many combinations.
#[derive(Default, Serialize, Deserialize)]
struct RowTagTable {
    names: Vec<String>,
    /// Tool, subtype, model and branch of each entry, as positions in `names`.
    labels: Vec<[Option<u32>; 4]>,
}

/// Returns the row tags as JSON.
pub(super) fn encode_row_tags(labels: &[RowTags]) -> Vec<u8> {
    let mut table = RowTagTable::default();
    let mut positions: HashMap<&str, u32> = HashMap::new();
    for entry in labels {
        let mut row = [None; 4];
        for (cell, name) in row.iter_mut().zip(entry.parts()) {
            let Some(name) = name else { continue };
            let position = *positions.entry(name).or_insert_with(|| {
                table.names.push(name.to_owned());
                u32::try_from(table.names.len() - 1).unwrap_or(u32::MAX)
            });
            *cell = Some(position);
        }
        table.labels.push(row);
    }
    serde_json::to_vec(&table).unwrap_or_default()
}

/// Parses the output of [`encode_row_tags`]. A position without a name is damage.
pub(super) fn parse_row_tags(bytes: &[u8]) -> serde_json::Result<Vec<RowTags>> {
    let table: RowTagTable = serde_json::from_slice(bytes)?;
    let names: Vec<Arc<str>> = table.names.into_iter().map(Arc::from).collect();
    let mut labels = Vec::with_capacity(table.labels.len());
    for [tool, subtype, model, branch] in table.labels {
        labels.push(RowTags {
            tool: name_at(&names, tool)?,
            subtype: name_at(&names, subtype)?,
            model: name_at(&names, model)?,
            branch: name_at(&names, branch)?,
        });
    }
    Ok(labels)
}

fn name_at(names: &[Arc<str>], position: Option<u32>) -> serde_json::Result<Option<Arc<str>>> {
    let Some(position) = position else { return Ok(None) };
    match names.get(position as usize) {
        Some(name) => Ok(Some(Arc::clone(name))),
        None => Err(serde_json::Error::custom(format!(
            "the row tags refer to name {position}, but there are {} names",
            names.len()
        ))),
    }
}

fn checksum_of(counts: &[u8], tables: &[u8]) -> u64 {
    xxh3_64_with_seed(tables, xxh3_64(counts))
}

/// Reads the number in the eight bytes at `at`.
fn read_u64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

/// Reads the number in the four bytes at `at`.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

/// Decodes a block whose first row is `start` and whose first filter is `column`.
fn decode_block(bytes: &[u8], start: usize, column: usize) -> Option<Block> {
    let oldest = read_u64(bytes, 16).cast_signed();
    let newest = read_u64(bytes, 24).cast_signed();
    Some(Block {
        start,
        count: usize::try_from(read_u64(bytes, 0)).ok()?,
        times: (newest != NO_TIME).then_some((oldest, newest)),
        has_untimed_rows: read_u32(bytes, 12) != 0,
        columns: column..column.checked_add(read_u32(bytes, 8) as usize)?,
    })
}

/// Appends the facts of a row.
pub(super) fn append_facts(out: &mut Vec<u8>, row: &RowFacts) {
    out.extend(row.time.unwrap_or(NO_TIME).to_le_bytes());
    for number in [row.turn_index, row.step_index, row.tags, row.file_list] {
        out.extend(number.to_le_bytes());
    }
    let flags = u8::from(row.is_replay) * REPLAY_FLAG
        + u8::from(row.is_error == Some(true)) * ERROR_FLAG
        + u8::from(row.is_error.is_some()) * ERROR_KNOWN_FLAG;
    out.extend([row.event_type as u8, flags, 0, 0]);
}

/// Returns the byte of a [`RowOutline`](super::facts::RowOutline).
pub(super) fn encode_outline(event_type: EventType, length: usize) -> u8 {
    let bits = (usize::BITS - length.leading_zeros()).min(31);
    (bits as u8) << 3 | event_type as u8
}

/// The facts of consecutive rows, as [`append_facts`] wrote them.
pub struct FactsOfRows(pub(super) Vec<u8>);

impl FactsOfRows {
    /// Returns the facts of the row at position `at` among these rows.
    pub fn get(&self, at: usize) -> Option<RowFacts> {
        self.0.chunks_exact(FACTS_BYTES).nth(at).map(decode_facts)
    }

    /// Returns the facts of all these rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = RowFacts> {
        self.0.chunks_exact(FACTS_BYTES).map(decode_facts)
    }
}

/// Decodes the output of [`append_facts`].
fn decode_facts(bytes: &[u8]) -> RowFacts {
    let time = read_u64(bytes, 0).cast_signed();
    let flags = bytes[25];
    RowFacts {
        time: (time != NO_TIME).then_some(time),
        turn_index: read_u32(bytes, 8),
        step_index: read_u32(bytes, 12),
        tags: read_u32(bytes, 16),
        file_list: read_u32(bytes, 20),
        event_type: decode_event_type(bytes[24]),
        is_replay: flags & REPLAY_FLAG != 0,
        is_error: (flags & ERROR_KNOWN_FLAG != 0).then_some(flags & ERROR_FLAG != 0),
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
        .map(RowTags::from_parts);
        let bytes = encode_row_tags(&written);
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            r#"{"names":["Bash","m","main"],"labels":[[null,null,null,null],[0,null,1,2],[1,null,null,null]]}"#
        );
        let read = parse_row_tags(&bytes).expect("reads");
        assert_eq!(read, written);
        assert!(Arc::ptr_eq(
            read[1].model.as_ref().expect("model"),
            read[2].tool.as_ref().expect("tool")
        ));
        assert!(parse_row_tags(br#"{"names":["a"],"labels":[[1,null,null,null]]}"#).is_err());
    }
}
