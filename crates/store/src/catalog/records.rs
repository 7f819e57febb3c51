//! The records of a catalog: what it holds of a segment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
            Self::Summaries => "summaries",
            Self::SessionRow => "session_rows",
            Self::Sources => "sources",
            Self::State => "states",
        }
    }
}

/// The rows of a segment as the records of a catalog.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
