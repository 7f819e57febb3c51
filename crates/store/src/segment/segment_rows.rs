//! The rows of the sessions and logs of a segment: how they are collected while it is written, and how
//! the catalog holds them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use schemas::session::{SessionRow, SourceRow};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::session_summary::{SessionSummaries, SessionSummary};
use crate::catalog::records::{RecordKind, SegmentRecords};
use crate::catalog::{CATALOG_FILE, Catalog};
use crate::error::StoreError;
use crate::manifest::Manifest;

/// Level of compression of the states of decoders.
const STATE_LEVEL: i32 = 1;

/// The states of sessions and files that a segment under construction records, by key. Of several
/// states, the last one counts.
#[derive(Default)]
pub(crate) struct RecordedRows {
    sessions: BTreeMap<String, Box<SessionRow>>,
    sources: BTreeMap<String, Box<SourceRow>>,
}

impl RecordedRows {
    /// Returns whether nothing was recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.sources.is_empty()
    }

    /// Returns the number of files.
    pub(crate) fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Records the state of a session, which replaces an earlier one.
    pub(crate) fn record_session(&mut self, row: Box<SessionRow>) {
        self.sessions.insert(row.session_id.clone(), row);
    }

    /// Records the state of a file, which replaces an earlier one.
    pub(crate) fn record_source(&mut self, row: Box<SourceRow>) {
        self.sources.insert(row.path.clone(), row);
    }

    /// Encodes the rows.
    pub(crate) fn finish(mut self) -> io::Result<SegmentRecords> {
        let summaries = SessionSummaries::from_rows(self.sessions.values().map(|row| &**row));
        let session_rows = self.sessions.values().map(encode).collect::<io::Result<_>>()?;
        let mut states = BTreeMap::new();
        for (at, row) in self.sources.values_mut().enumerate() {
            if let Some(state) = &mut row.state {
                states.insert(at, zstd::bulk::compress(state.as_bytes(), STATE_LEVEL)?);
                state.clear();
            }
        }
        let sources: Vec<_> = self.sources.into_values().collect();
        Ok(SegmentRecords {
            summaries: encode(&summaries)?,
            session_rows,
            sources: encode(&sources)?,
            states,
        })
    }
}

/// Encodes rows in the format of postcard: the values of a struct without the names of its fields, and
/// enums by name.
fn encode<T: Serialize>(rows: &T) -> io::Result<Vec<u8>> {
    postcard::to_stdvec(rows).map_err(io::Error::other)
}

/// Where the rows of a segment are.
#[derive(Clone)]
pub(crate) enum RowSource {
    Catalog(Arc<Catalog>),
    /// Rows of a segment that is in no catalog: of a reader of some sessions, or not committed yet.
    Memory(Arc<SegmentRecords>),
}

impl RowSource {
    /// Opens the rows of the segments of a manifest of the store in `dir`. `None` if it has no segment.
    pub(crate) fn open(dir: &Path, manifest: &Manifest) -> Result<Option<Self>, StoreError> {
        if manifest.segments.is_empty() {
            return Ok(None);
        }
        let missing = || StoreError::damaged(&dir.join(CATALOG_FILE), "it is missing");
        let catalog = Catalog::open(dir)?.ok_or_else(missing)?;
        Ok(Some(Self::Catalog(Arc::new(catalog))))
    }

    fn read(&self, kind: RecordKind, segment: i64, at: usize) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Catalog(catalog) => catalog.read(kind, segment, at),
            Self::Memory(rows) => {
                let record = rows.record(kind, at).map(<[u8]>::to_vec);
                record.ok_or_else(|| self.damaged("a row is missing"))
            }
        }
    }

    /// Returns the encoded summaries of the sessions of a segment.
    pub(super) fn read_summaries(&self, segment: i64) -> Result<Vec<u8>, StoreError> {
        self.read(RecordKind::Summaries, segment, 0)
    }

    /// Decodes the summaries of a segment.
    pub(super) fn decode_summaries(&self, bytes: &[u8]) -> Result<Vec<SessionSummary>, StoreError> {
        let summaries: SessionSummaries = self.decode(bytes)?;
        summaries.into_summaries().ok_or_else(|| self.damaged("a session has no origin"))
    }

    /// Returns the row of the session at a position, whose summary is given.
    pub(super) fn read_session(
        &self,
        segment: i64,
        at: usize,
        summary: &SessionSummary,
    ) -> Result<Arc<SessionRow>, StoreError> {
        self.decode_session(&self.read(RecordKind::SessionRow, segment, at)?, summary)
    }

    /// Returns the rows of all sessions of a segment, whose summaries are given.
    pub(super) fn read_sessions(
        &self,
        segment: i64,
        summaries: &[SessionSummary],
    ) -> Result<Vec<Arc<SessionRow>>, StoreError> {
        let rows = match self {
            Self::Catalog(catalog) => {
                catalog.read_all(RecordKind::SessionRow, segment, summaries.len())?
            }
            Self::Memory(rows) => rows.session_rows.clone(),
        };
        let rows = rows.iter().zip(summaries);
        rows.map(|(bytes, summary)| self.decode_session(bytes, summary)).collect()
    }

    fn decode_session(
        &self,
        bytes: &[u8],
        summary: &SessionSummary,
    ) -> Result<Arc<SessionRow>, StoreError> {
        let row: SessionRow = self.decode(bytes)?;
        if SessionSummary::from_row(&row) != *summary {
            return Err(self.damaged("a row of a session is not that of its summary"));
        }
        Ok(Arc::new(row))
    }

    /// Returns the rows of the logs of a segment, in the order of their paths. The state of a log that
    /// has one is empty; see [`Self::read_state`].
    pub(crate) fn read_sources(&self, segment: i64) -> Result<Vec<SourceRow>, StoreError> {
        self.decode(&self.read(RecordKind::Sources, segment, 0)?)
    }

    fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, StoreError> {
        postcard::from_bytes(bytes).map_err(|error| self.damaged(error))
    }

    /// Returns the rows of the logs of a segment with the states of their decoders.
    pub(crate) fn read_whole_sources(&self, segment: i64) -> Result<Vec<SourceRow>, StoreError> {
        self.read_sources_with_states(segment, &|_| true)
    }

    /// Returns the rows of the logs of a segment. Those that `wants_state` accepts have the states of
    /// their decoders, the others have none.
    pub(crate) fn read_sources_with_states(
        &self,
        segment: i64,
        wants_state: &dyn Fn(&SourceRow) -> bool,
    ) -> Result<Vec<SourceRow>, StoreError> {
        let mut rows = self.read_sources(segment)?;
        for (at, row) in rows.iter_mut().enumerate() {
            if row.state.is_some() {
                let is_wanted = wants_state(row);
                row.state = if is_wanted { Some(self.read_state(segment, at)?) } else { None };
            }
        }
        Ok(rows)
    }

    /// Returns the state of the log at a position, which has one.
    pub(crate) fn read_state(&self, segment: i64, at: usize) -> Result<String, StoreError> {
        let packed = self.read(RecordKind::State, segment, at)?;
        let state = zstd::decode_all(&packed[..]).map_err(|error| self.damaged(error))?;
        String::from_utf8(state).map_err(|error| self.damaged(error))
    }

    /// Returns the error for rows that are not what was written.
    pub(super) fn damaged(&self, reason: impl std::fmt::Display) -> StoreError {
        let path = match self {
            Self::Catalog(catalog) => catalog.path(),
            Self::Memory(_) => Path::new("segments"),
        };
        StoreError::damaged(path, reason)
    }
}

/// Returns the rows of a segment with these sessions.
#[cfg(test)]
pub(crate) fn rows_of(sessions: impl Iterator<Item = SessionRow>) -> SegmentRecords {
    let mut recorded = RecordedRows::default();
    sessions.for_each(|row| recorded.record_session(Box::new(row)));
    recorded.finish().expect("encodes")
}
