//! The history that calls answer from: the sessions of the store, or those of a lake.
//!
//! The store of a lake has the row of every session. The events that a call needs are loaded into
//! it, and then the tool answers from the store as always.

use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use schemas::ToolError;
use schemas::price::PriceTable;
use schemas::table::EventColumn;

use super::freshness::Freshness;
use crate::error::sql_error;
use search::SearchRequest;
use sql::{SqlError, SqlQuery, SqlSummary};
use store::{Snapshot, Store};

/// Is polled; true cancels the call.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Sessions and their events.
pub trait History: Send + Sync {
    /// Returns true if the store has all events. Tools that may need any of them run only then.
    fn has_all_events(&self) -> bool;

    /// Returns the view that a call answers from, after loading what the call needs into the store.
    ///
    /// # Errors
    /// Fails if the history cannot be read, if the store cannot be written, or if the call was
    /// cancelled.
    fn open_view(
        &self,
        store: &Store,
        needed: &NeededEvents<'_>,
        stop: Stop<'_>,
    ) -> Result<CallView, ToolError>;

    /// Prepares to read columns of the events of sessions.
    ///
    /// # Errors
    /// Fails if the history cannot be read.
    fn plan_scan<'s>(&'s self, wanted: &'s WantedColumns<'s>) -> Result<ColumnScan<'s>, ToolError>;

    /// Runs a query of SQL, and writes its rows to `out`.
    ///
    /// # Errors
    /// Fails if the query is not valid or changes anything, if the history cannot be read, if `out`
    /// cannot be written, or if the call was cancelled.
    fn run_query(
        &self,
        snapshot: &Snapshot,
        prices: &PriceTable,
        query: &SqlQuery<'_>,
        out: &mut dyn io::Write,
        stop: Stop<'_>,
    ) -> Result<(SqlSummary, Examined), WriteError>;
}

/// The events that a call needs in the store.
pub enum NeededEvents<'a> {
    /// None: the call answers from what the store has.
    None,
    /// None, but the rows of all sessions.
    Rows,
    /// The events of the sessions at the positions that this returns for a snapshot with all rows.
    Sessions(&'a dyn Fn(&Snapshot) -> Vec<usize>),
    Matches(NeededMatches<'a>),
}

/// The events on a page of a search, and those that explain why there are none.
pub struct NeededMatches<'a> {
    /// Returns the request for a snapshot with all rows.
    pub request: &'a dyn Fn(&Snapshot) -> Result<SearchRequest<'a>, ToolError>,
    /// True if the search compares all events with each other.
    pub is_ranked: bool,
    /// True if the search is ranked if nothing matches.
    pub may_rank_instead: bool,
}

/// The data that a call answers from.
pub struct CallView {
    pub snapshot: Arc<Snapshot>,
    pub freshness: Freshness,
    /// What was examined of the history; `None` if the store has all of it.
    pub examined: Option<Examined>,
}

/// The part of a history that was examined for an answer.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    /// A phrase for the scope of the answer; empty if there is nothing to say.
    pub description: String,
    /// The number of matches that were counted, if the store may not have all of them.
    pub matched: Option<RowTotal>,
}

impl Examined {
    /// Adds the description to a scope.
    pub fn append_to(&self, scope: &mut String) {
        if !self.description.is_empty() {
            scope.push_str("; ");
            scope.push_str(&self.description);
        }
    }
}

/// A number of rows over all pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowTotal {
    Exact(usize),
    AtLeast(usize),
}

/// Columns of events to read.
pub struct WantedColumns<'a> {
    pub snapshot: &'a Snapshot,
    /// For every session, whether its events are wanted.
    pub is_selected: &'a [bool],
    pub columns: Vec<EventColumn>,
    /// Earliest time, in microseconds. Events before it may be read, too.
    pub since: Option<i64>,
    /// Exclusive latest time, in microseconds. Events after it may be read, too.
    pub until: Option<i64>,
    pub stop: Stop<'a>,
}

impl WantedColumns<'_> {
    /// Returns true if the events of the session at this position are wanted.
    pub fn is_selected(&self, session: usize) -> bool {
        self.is_selected.get(session).copied().unwrap_or(false)
    }
}

/// Columns of events that can be read.
pub struct ColumnScan<'s> {
    /// The parts, which can be read at the same time.
    pub parts: Vec<ColumnPart<'s>>,
    pub examined: Examined,
}

/// Reads a part: calls the function with rows of the session at a position, session by session and
/// in their order, until it returns false.
pub type ColumnPart<'s> = Box<
    dyn Fn(&mut dyn FnMut(usize, &RecordBatch) -> bool) -> Result<(), ToolError> + Send + Sync + 's,
>;

/// The error that ended a query whose rows go to a file or to the terminal.
#[derive(Debug)]
pub enum WriteError {
    Tool(ToolError),
    /// The output can no longer be written to.
    Output(io::Error),
}

impl From<ToolError> for WriteError {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl From<WriteError> for ToolError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Tool(error) => error,
            WriteError::Output(error) => sql_error(SqlError::Output(error)),
        }
    }
}
