//! What the tools ask of an engine that scans a lake elsewhere.
//!
//! The store of such tools has the row of every session of the lake. The engine loads the events of the
//! sessions that a call is about into the store, and then the tool answers from the store as always.

use arrow::array::RecordBatch;
use schemas::ToolError;
use schemas::table::EventColumn;

use search::SearchRequest;
use store::{Snapshot, Store};

/// An engine that scans a lake.
pub trait LakeEngine: Send + Sync {
    /// Brings the rows of the sessions in the store up to date with the lake.
    ///
    /// # Errors
    /// Fails if the lake cannot be read, or the store cannot be written.
    fn refresh(&self, store: &Store) -> Result<(), ToolError>;

    /// Loads the events of the sessions at these positions.
    ///
    /// # Errors
    /// Fails if the engine or the lake cannot be read, or if the call was cancelled.
    fn load_sessions(
        &self,
        call: &LakeCall<'_>,
        sessions: &[usize],
    ) -> Result<LakeScope, ToolError>;

    /// Loads the sessions with the matches of a page.
    ///
    /// # Errors
    /// Fails like [`Self::load_sessions`].
    fn load_matches(
        &self,
        call: &LakeCall<'_>,
        request: &SearchRequest<'_>,
    ) -> Result<LakeScope, ToolError>;

    /// Loads what an answer needs that compares all events with each other, or that explains why none
    /// matches: everything if it is little. Otherwise the newest of the selected sessions if
    /// `is_ranked`, and a session for each word that the lake has.
    ///
    /// # Errors
    /// Fails like [`Self::load_sessions`].
    fn load_for_comparison(
        &self,
        call: &LakeCall<'_>,
        request: &SearchRequest<'_>,
        is_ranked: bool,
    ) -> Result<LakeScope, ToolError>;

    /// Calls `take` with columns of the events of sessions, session by session and in their order,
    /// until it returns false.
    ///
    /// # Errors
    /// Fails like [`Self::load_sessions`], and with what `take` returns.
    fn read_columns(
        &self,
        wanted: &WantedColumns<'_>,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(&str, &RecordBatch) -> Result<bool, ToolError>,
    ) -> Result<LakeScope, ToolError>;

    /// Runs a query of SQL over the views `sessions` and `events`. Returns at least one batch, with at
    /// most `max_rows` rows in all.
    ///
    /// # Errors
    /// Fails like [`Self::load_sessions`], and if the query is not valid or changes anything.
    fn query(
        &self,
        sql: &str,
        max_rows: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Vec<RecordBatch>, LakeScope), ToolError>;
}

/// A call for which an engine loads events.
#[derive(Clone, Copy)]
pub struct LakeCall<'a> {
    /// The store that they are loaded into.
    pub store: &'a Store,
    /// The sessions of the lake, by position.
    pub snapshot: &'a Snapshot,
    /// Is polled; true cancels the call.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Columns of events to read.
pub struct WantedColumns<'a> {
    /// The sessions; others may be left out.
    pub sessions: Vec<&'a str>,
    pub columns: Vec<EventColumn>,
    /// Earliest time, in microseconds.
    pub since: Option<i64>,
    /// Exclusive latest time, in microseconds.
    pub until: Option<i64>,
}

/// What an engine examined for an answer.
#[derive(Debug, Clone, Default)]
pub struct LakeScope {
    /// A phrase for the scope of the answer.
    pub description: String,
    /// The number of matches that the engine counted.
    pub matched: MatchCount,
}

/// How many matches there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchCount {
    /// As many as the store has: every session that may have some was loaded.
    #[default]
    Loaded,
    /// At least as many as the store has: sessions that may have some were not examined.
    AtLeastLoaded,
    /// The engine counted all of them.
    Exactly(usize),
    /// The engine counted those of a part of the lake.
    AtLeast(usize),
}
