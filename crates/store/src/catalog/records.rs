//! The records of a catalog: what it holds of a segment.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of the checksum of a record.
pub(super) const CHECK_BYTES: usize = 8;

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Summaries,
    SessionRow,
    Sources,
    State,
}

impl RecordKind {
    pub(super) const ALL: [Self; 4] =
        [Self::Summaries, Self::SessionRow, Self::Sources, Self::State];

    /// Returns the name of its table.
    pub(super) fn table(self) -> &'static str {
        match self {
            // The name that stores have.
            Self::Summaries => "briefs",
            Self::SessionRow => "session_rows",
            Self::Sources => "sources",
            Self::State => "states",
        }
    }

    /// Returns the checksum of a record with its place.
    pub(super) fn check(self, id: i64, bytes: &[u8]) -> [u8; CHECK_BYTES] {
        let seed = id.cast_unsigned() ^ ((self as u64 + 1) << 60);
        xxh3_64_with_seed(bytes, seed).to_le_bytes()
    }
}

/// The rows of a segment as the records of a catalog.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentRecords {
    /// The summaries of the sessions, in the order of their ids.
    pub(crate) summaries: Vec<u8>,
    /// The rows of these sessions.
    pub(crate) session_rows: Vec<Vec<u8>>,
    /// The rows of the logs, in the order of their paths. A log with a state has an empty one.
    pub(crate) sources: Vec<u8>,
    /// The states by the position of their log, compressed.
    pub(crate) states: BTreeMap<usize, Vec<u8>>,
}

impl SegmentRecords {
    /// Returns all records, each with its kind and its position in the segment.
    pub(crate) fn records(&self) -> impl Iterator<Item = (RecordKind, usize, &[u8])> {
        let rows = self.session_rows.iter().enumerate();
        let states = self.states.iter();
        [(RecordKind::Summaries, 0, &*self.summaries), (RecordKind::Sources, 0, &*self.sources)]
            .into_iter()
            .chain(rows.map(|(at, row)| (RecordKind::SessionRow, at, &**row)))
            .chain(states.map(|(at, state)| (RecordKind::State, *at, &**state)))
    }

    /// Adds a record that [`Self::records`] returned. They must come in the same order.
    pub(crate) fn add_record(&mut self, kind: RecordKind, at: usize, record: Vec<u8>) {
        match kind {
            RecordKind::Summaries => self.summaries = record,
            RecordKind::Sources => self.sources = record,
            RecordKind::SessionRow => self.session_rows.push(record),
            RecordKind::State => {
                self.states.insert(at, record);
            }
        }
    }

    /// Returns the size of the rows without the states, in bytes.
    pub(crate) fn row_bytes(&self) -> u64 {
        let sessions = self.session_rows.iter().map(Vec::len).sum::<usize>();
        (sessions + self.sources.len()) as u64
    }

    /// Returns a record.
    pub(crate) fn record(&self, kind: RecordKind, at: usize) -> Option<&[u8]> {
        match kind {
            RecordKind::Summaries => Some(&self.summaries),
            RecordKind::Sources => Some(&self.sources),
            RecordKind::SessionRow => self.session_rows.get(at).map(Vec::as_slice),
            RecordKind::State => self.states.get(&at).map(Vec::as_slice),
        }
    }
}
