//! The tools: arguments in, answers out, the same for MCP and the command line.
//!
//! One file a tool. They join the store and the search, keep answers within their budgets, and
//! clean what comes from logs. They know nothing of MCP or the command line.

mod budget;
mod convert;
mod cursor;
mod details;
pub mod doctor;
mod event;
mod family;
mod list;
mod query;
mod rows;
mod search;
mod stats;
pub mod status;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemas::envelope::{Answer, Metadata, Pagination, Status, Warning};
use schemas::limits::BYTES_PER_TOKEN;
use schemas::price::PriceTable;
use schemas::tool::details::{DetailArgs, DetailData};
use schemas::tool::event::{EventArgs, EventData};
use schemas::tool::list::{ListArgs, ListData};
use schemas::tool::query::{QueryArgs, QueryData};
use schemas::tool::search::{SearchArgs, SearchData};
use schemas::tool::stats::{StatsArgs, StatsData};
use schemas::{ErrorCode, Timestamp, ToolError, limits};
use serde::Serialize;

use self::stats::Extent;
use crate::error::store_error;
use crate::sql::{Query, QueryError, Sandbox, Summary};
use crate::store::{Snapshot, Store};

/// The tools over one store.
pub struct Tools {
    store: Store,
    prices: PriceTable,
    sandbox: Sandbox,
}

/// What a call is given beside its arguments.
pub struct Call<'a> {
    pub now: Timestamp,
    /// Asked now and then; true ends the call.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// How long a search may take; then it answers what it found so far.
    pub search_time: Duration,
    /// How long a query may take; then it is ended.
    pub query_time: Duration,
}

impl<'a> Call<'a> {
    /// A call with the usual limits.
    pub fn new(now: Timestamp, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            now,
            stop,
            search_time: Duration::from_secs(limits::SEARCH_SECONDS),
            query_time: Duration::from_secs(limits::SQL_SECONDS),
        }
    }
}

/// A tool's data and what its envelope says about it.
struct Reply<T> {
    data: T,
    returned: usize,
    /// Over all pages, and whether that is exact.
    total: Option<(usize, bool)>,
    next_cursor: Option<String>,
    /// More was left out than a cursor leads to.
    truncated: bool,
    hint: Option<String>,
    warnings: Vec<Warning>,
}

impl<T> Reply<T> {
    fn new(data: T, returned: usize) -> Self {
        Self {
            data,
            returned,
            total: None,
            next_cursor: None,
            truncated: false,
            hint: None,
            warnings: Vec::new(),
        }
    }
}

impl Tools {
    pub fn new(store: Store) -> Self {
        let sandbox = Sandbox::new(PathBuf::new());
        Self { store, prices: PriceTable::built_in(), sandbox }
    }

    /// With the program that runs queries, which is this one.
    #[must_use]
    pub fn with_program(self, program: PathBuf) -> Self {
        Self { sandbox: Sandbox::new(program), ..self }
    }

    /// With other prices than the built-in ones.
    #[must_use]
    pub fn with_prices(self, prices: PriceTable) -> Self {
        Self { prices, ..self }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// `search_events`.
    pub fn search(
        &self,
        args: &SearchArgs,
        call: &Call<'_>,
    ) -> Result<Answer<SearchData>, ToolError> {
        self.answer(|snapshot| search::run(snapshot, args, call))
    }

    /// `get_event_details`.
    pub fn event(&self, args: &EventArgs) -> Result<Answer<EventData>, ToolError> {
        self.answer(|snapshot| event::run(snapshot, args))
    }

    /// `list_sessions`.
    pub fn list(&self, args: &ListArgs, call: &Call<'_>) -> Result<Answer<ListData>, ToolError> {
        self.answer(|snapshot| list::run(snapshot, args, call, &self.prices))
    }

    /// `get_session_details`.
    pub fn details(&self, args: &DetailArgs) -> Result<Answer<DetailData>, ToolError> {
        self.answer(|snapshot| details::run(snapshot, args, &self.prices))
    }

    /// `query_sql`.
    pub fn query(&self, args: &QueryArgs, call: &Call<'_>) -> Result<Answer<QueryData>, ToolError> {
        self.answer(|snapshot| query::run(snapshot, args, call, &self.prices, &self.sandbox))
    }

    /// Runs a query and writes its rows, in the form asked for, to `out`.
    pub fn write_query(
        &self,
        query: &Query<'_>,
        out: &mut dyn Write,
        call: &Call<'_>,
    ) -> Result<Summary, QueryError> {
        self.sandbox.run(&*self.snapshot()?, &self.prices, query, out, call.stop)
    }

    /// `session_stats`.
    pub fn stats(&self, args: &StatsArgs, call: &Call<'_>) -> Result<Answer<StatsData>, ToolError> {
        self.answer(|snapshot| stats::run(snapshot, args, Extent::Answer, call, &self.prices))
    }

    /// The same with all groups, for people.
    pub fn all_stats(
        &self,
        args: &StatsArgs,
        call: &Call<'_>,
    ) -> Result<Answer<StatsData>, ToolError> {
        self.answer(|snapshot| stats::run(snapshot, args, Extent::All, call, &self.prices))
    }

    /// Runs a tool over the present snapshot and puts its reply into the envelope.
    fn answer<T: Serialize>(
        &self,
        tool: impl FnOnce(&Snapshot) -> Result<Reply<T>, ToolError>,
    ) -> Result<Answer<T>, ToolError> {
        let start = Instant::now();
        let snapshot = self.snapshot()?;
        let reply = tool(&snapshot)?;
        let manifest = snapshot.manifest();
        let more = reply
            .next_cursor
            .as_ref()
            .map(|cursor| more_sentence(cursor, reply.returned, reply.total));
        let hint = match (more, reply.hint) {
            (Some(more), Some(hint)) => Some(format!("{more} {hint}")),
            (more, hint) => more.or(hint),
        };
        let mut answer = Answer {
            status: Status::Ok,
            pagination: Some(Pagination {
                total_in_page: reply.returned,
                has_more: reply.next_cursor.is_some(),
                next_cursor: reply.next_cursor.clone(),
            }),
            data: reply.data,
            hint,
            warnings: reply.warnings,
            metadata: Metadata {
                tokens: 0,
                duration_ms: 0,
                timestamp: Timestamp::now().to_string(),
                cached: false,
                results_total: reply.total.map(|(total, _)| total),
                results_total_is: reply.total.filter(|(_, exact)| !exact).map(|_| "at_least"),
                results_returned: reply.returned,
                results_truncated: reply.truncated || reply.next_cursor.is_some(),
                index_size: snapshot.events(),
                index_last_updated: Some(Timestamp(manifest.updated_at).to_string()),
            },
        };
        let bytes = serde_json::to_vec(&answer).map_or(0, |json| json.len());
        answer.metadata.tokens = bytes.div_ceil(BYTES_PER_TOKEN);
        answer.metadata.duration_ms =
            u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(answer)
    }

    /// The present snapshot; `index_empty` when nothing was ingested yet.
    fn snapshot(&self) -> Result<Arc<Snapshot>, ToolError> {
        let snapshot = self.store.snapshot().map_err(store_error)?;
        if snapshot.manifest().generation == 0 {
            let message = format!(
                "No logs have been ingested into {} yet. Run `sessions ingest` once in a shell, then call again",
                self.store.dir().display()
            );
            return Err(ToolError::new(ErrorCode::IndexEmpty, message));
        }
        Ok(snapshot)
    }
}

/// The sentence about further pages, which clients that show only the text need too.
fn more_sentence(cursor: &str, returned: usize, total: Option<(usize, bool)>) -> String {
    let rest = match total {
        Some((total, true)) => format!("{} more.", total.saturating_sub(returned)),
        Some((total, false)) => format!("At least {} more.", total.saturating_sub(returned)),
        None => "There is more.".to_owned(),
    };
    format!("{rest} Pass cursor '{cursor}' to see the next page.")
}
