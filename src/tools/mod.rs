//! The tools: they take arguments and return answers, the same for MCP and the command line.
//!
//! Each tool has its own file. The tools combine the store and the search, keep answers within
//! their budgets, and clean text from logs. They do not depend on MCP or the command line.

mod analyze;
mod answer;
mod budget;
mod call;
mod complete;
mod convert;
mod current;
mod cursor;
mod details;
pub mod doctor;
mod event;
mod family;
mod freshness;
mod interface;
mod label;
mod list;
mod metadata;
mod query;
mod rows;
mod search;
pub mod selection;
mod stats;
pub mod status;
mod transcript;

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ingest::redact::Redactor;
use schemas::envelope::{Answer, Warning};
use schemas::price::PriceTable;
use schemas::tool::analyze::{AnalyzeArgs, AnalyzeData};
use schemas::tool::details::{DetailArgs, DetailData};
use schemas::tool::event::{EventArgs, EventData};
use schemas::tool::label::{LabelArgs, LabelData};
use schemas::tool::list::{ListArgs, ListData};
use schemas::tool::metadata::{MetadataArgs, MetadataData};
use schemas::tool::query::{QueryArgs, QueryData};
use schemas::tool::search::{SearchArgs, SearchData};
use schemas::tool::stats::{StatsArgs, StatsData};
use schemas::{ErrorCode, ToolError};

pub(crate) use self::analyze::error_signature;
use self::answer::envelope;
pub use self::call::Call;
use self::call::View;
pub use self::current::Caller;
pub(crate) use self::family::is_subagent;
pub use self::freshness::{Freshness, Lag, Refresh};
pub use self::interface::Interface;
pub use self::query::WriteError;
use self::stats::Extent;
pub(crate) use self::transcript::Whole;
use crate::error::store_error;
use crate::sql::{Query, Sandbox, Summary};
use crate::store::{Snapshot, Store};

/// The tools over one store.
pub struct Tools {
    store: Arc<Store>,
    /// The given prices, or the built-in ones, which are loaded on first use.
    prices: OnceLock<PriceTable>,
    caller: Caller,
    refresh: Option<Arc<dyn Refresh>>,
    sandbox: Sandbox,
    masking: Option<Masking>,
}

/// Creates the redactor that masks secrets. It is called only when there is text to mask, because
/// creating it takes a while.
pub type Masking = fn() -> Result<Arc<Redactor>, ToolError>;

/// A tool's data, and the facts about it for the envelope.
struct Reply<T> {
    data: T,
    returned: usize,
    /// The number of rows on the pages before this one.
    before: usize,
    /// The number of rows over all pages, and whether it is exact.
    total: Option<(usize, bool)>,
    next_cursor: Option<String>,
    /// True if more rows were left out than a cursor can reach.
    truncated: bool,
    hint: Option<String>,
    warnings: Vec<Warning>,
}

impl<T> Reply<T> {
    fn new(data: T, returned: usize) -> Self {
        Self {
            data,
            returned,
            before: 0,
            total: None,
            next_cursor: None,
            truncated: false,
            hint: None,
            warnings: Vec::new(),
        }
    }
}

impl Tools {
    pub fn new(store: impl Into<Arc<Store>>) -> Self {
        let (store, prices) = (store.into(), OnceLock::new());
        let sandbox = Sandbox::new(PathBuf::new());
        Self { store, prices, caller: Caller::default(), refresh: None, sandbox, masking: None }
    }

    /// Sets the program that runs queries, which is this program itself.
    #[must_use]
    pub fn with_program(self, program: PathBuf) -> Self {
        Self { sandbox: Sandbox::new(program), ..self }
    }

    /// Enables masking of what clients write.
    #[must_use]
    pub fn with_masking(self, masking: Masking) -> Self {
        Self { masking: Some(masking), ..self }
    }

    /// Sets other prices than the built-in ones.
    #[must_use]
    pub fn with_prices(self, prices: PriceTable) -> Self {
        Self { prices: OnceLock::from(prices), ..self }
    }

    fn prices(&self) -> &PriceTable {
        self.prices.get_or_init(PriceTable::built_in)
    }

    /// Sets the caller, which `current` refers to.
    #[must_use]
    pub fn with_caller(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// Sets what keeps the store up to date with the logs.
    #[must_use]
    pub fn with_refresh(self, refresh: Arc<dyn Refresh>) -> Self {
        Self { refresh: Some(refresh), ..self }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs `search_events`.
    pub fn search(
        &self,
        args: &SearchArgs,
        call: &Call<'_>,
    ) -> Result<Answer<SearchData>, ToolError> {
        self.answer(call, |snapshot| search::run(self, snapshot, args, call))
    }

    /// Runs `get_event_details`.
    pub fn event(&self, args: &EventArgs, call: &Call<'_>) -> Result<Answer<EventData>, ToolError> {
        self.answer(call, |snapshot| event::run(self, snapshot, args, call))
    }

    /// Runs `list_sessions`.
    pub fn list(&self, args: &ListArgs, call: &Call<'_>) -> Result<Answer<ListData>, ToolError> {
        self.answer(call, |snapshot| list::run(self, snapshot, args, call))
    }

    /// Runs `get_session_details`.
    pub fn details(
        &self,
        args: &DetailArgs,
        call: &Call<'_>,
    ) -> Result<Answer<DetailData>, ToolError> {
        self.answer(call, |snapshot| details::run(self, snapshot, args, call))
    }

    /// Runs `tool_metadata`, which needs no logs.
    pub fn metadata(
        &self,
        args: &MetadataArgs,
        call: &Call<'_>,
    ) -> Result<Answer<MetadataData>, ToolError> {
        envelope(call, self.view(call)?, |_| metadata::run(args))
    }

    /// Runs `update_session_labels`.
    pub fn label(&self, args: &LabelArgs, call: &Call<'_>) -> Result<Answer<LabelData>, ToolError> {
        self.answer(call, |snapshot| label::run(self, snapshot, args, call))
    }

    /// Runs `analyze_session`.
    pub fn analyze(
        &self,
        args: &AnalyzeArgs,
        call: &Call<'_>,
    ) -> Result<Answer<AnalyzeData>, ToolError> {
        self.answer(call, |snapshot| {
            analyze::run(snapshot, args, call, self.prices(), &self.caller)
        })
    }

    /// Runs `query_sql`.
    pub fn query(&self, args: &QueryArgs, call: &Call<'_>) -> Result<Answer<QueryData>, ToolError> {
        self.answer(call, |snapshot| query::run(self, snapshot, args, call))
    }

    /// Runs a query and writes its rows to `out` in the requested format.
    pub fn write_query(
        &self,
        query: &Query<'_>,
        out: &mut dyn Write,
        call: &Call<'_>,
    ) -> Result<Summary, WriteError> {
        query::write(self, query, out, call)
    }

    /// Runs `session_stats`.
    pub fn stats(&self, args: &StatsArgs, call: &Call<'_>) -> Result<Answer<StatsData>, ToolError> {
        self.answer(call, |snapshot| stats::run(self, snapshot, args, Extent::Answer, call))
    }

    /// Runs `session_stats` and returns all groups, for output to users.
    pub fn all_stats(
        &self,
        args: &StatsArgs,
        call: &Call<'_>,
    ) -> Result<Answer<StatsData>, ToolError> {
        self.answer(call, |snapshot| stats::run(self, snapshot, args, Extent::All, call))
    }

    /// Returns the view that the call answers from: the store at the time of the first access.
    fn view<'c>(&self, call: &'c Call<'_>) -> Result<&'c View, ToolError> {
        call.view(|| {
            let snapshot = self.store.snapshot().map_err(store_error)?;
            let freshness = self.refresh.as_ref().map(|refresh| refresh.state());
            Ok(View { snapshot, freshness: freshness.unwrap_or_default() })
        })
    }

    /// Returns the snapshot of the call, or the error `index_empty` if nothing was ingested yet.
    pub(crate) fn snapshot<'c>(&self, call: &'c Call<'_>) -> Result<&'c Arc<Snapshot>, ToolError> {
        let View { snapshot, freshness } = self.view(call)?;
        if snapshot.manifest().generation > 0 {
            return Ok(snapshot);
        }
        let reading = matches!(freshness.lag, Lag::Looking | Lag::Reading);
        let message = format!(
            "No logs have been ingested into {} yet. {}",
            self.store.dir().display(),
            if reading {
                "They are being read now: ask again in a few seconds"
            } else {
                "Run `sessions ingest` once in a shell, then ask again"
            }
        );
        let error = ToolError::new(ErrorCode::IndexEmpty, message);
        Err(ToolError { retryable: reading, ..error })
    }
}
