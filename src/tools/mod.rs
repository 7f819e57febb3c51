//! The tools: arguments in, answers out, the same for MCP and the command line.
//!
//! One file a tool. They join the store and the search, keep answers within their budgets, and
//! clean what comes from logs. They know nothing of MCP or the command line.

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
mod fresh;
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
mod whole;

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
pub use self::fresh::{Freshness, Lag, Refresh};
pub use self::interface::Interface;
pub use self::query::WriteError;
use self::stats::Extent;
pub(crate) use self::whole::Whole;
use crate::error::store_error;
use crate::sql::{Query, Sandbox, Summary};
use crate::store::{Snapshot, Store};

/// The tools over one store.
pub struct Tools {
    store: Arc<Store>,
    /// The built-in ones, unless others were given, once they are needed.
    prices: OnceLock<PriceTable>,
    caller: Caller,
    refresh: Option<Arc<dyn Refresh>>,
    sandbox: Sandbox,
    masking: Option<Masking>,
}

/// Makes what masks secrets; asked when there is something to mask, as it takes a while.
pub type Masking = fn() -> Result<Arc<Redactor>, ToolError>;

/// A tool's data and what its envelope says about it.
struct Reply<T> {
    data: T,
    returned: usize,
    /// Rows of the pages before.
    before: usize,
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

    /// With the program that runs queries, which is this one.
    #[must_use]
    pub fn with_program(self, program: PathBuf) -> Self {
        Self { sandbox: Sandbox::new(program), ..self }
    }

    /// With masking of what clients write.
    #[must_use]
    pub fn with_masking(self, masking: Masking) -> Self {
        Self { masking: Some(masking), ..self }
    }

    /// With other prices than the built-in ones.
    #[must_use]
    pub fn with_prices(self, prices: PriceTable) -> Self {
        Self { prices: OnceLock::from(prices), ..self }
    }

    fn prices(&self) -> &PriceTable {
        self.prices.get_or_init(PriceTable::built_in)
    }

    /// Knowing who calls, for `current`.
    #[must_use]
    pub fn with_caller(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// Keeping up with the logs.
    #[must_use]
    pub fn with_refresh(self, refresh: Arc<dyn Refresh>) -> Self {
        Self { refresh: Some(refresh), ..self }
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
        self.answer(call, |snapshot| search::run(self, snapshot, args, call))
    }

    /// `get_event_details`.
    pub fn event(&self, args: &EventArgs, call: &Call<'_>) -> Result<Answer<EventData>, ToolError> {
        self.answer(call, |snapshot| event::run(self, snapshot, args, call))
    }

    /// `list_sessions`.
    pub fn list(&self, args: &ListArgs, call: &Call<'_>) -> Result<Answer<ListData>, ToolError> {
        self.answer(call, |snapshot| list::run(self, snapshot, args, call))
    }

    /// `get_session_details`.
    pub fn details(
        &self,
        args: &DetailArgs,
        call: &Call<'_>,
    ) -> Result<Answer<DetailData>, ToolError> {
        self.answer(call, |snapshot| details::run(self, snapshot, args, call))
    }

    /// `tool_metadata`; it needs no logs.
    pub fn metadata(
        &self,
        args: &MetadataArgs,
        call: &Call<'_>,
    ) -> Result<Answer<MetadataData>, ToolError> {
        envelope(call, self.view(call)?, |_| metadata::run(args))
    }

    /// `update_session_labels`.
    pub fn label(&self, args: &LabelArgs, call: &Call<'_>) -> Result<Answer<LabelData>, ToolError> {
        self.answer(call, |snapshot| label::run(self, snapshot, args, call))
    }

    /// `analyze_session`.
    pub fn analyze(
        &self,
        args: &AnalyzeArgs,
        call: &Call<'_>,
    ) -> Result<Answer<AnalyzeData>, ToolError> {
        self.answer(call, |snapshot| {
            analyze::run(snapshot, args, call, self.prices(), &self.caller)
        })
    }

    /// `query_sql`.
    pub fn query(&self, args: &QueryArgs, call: &Call<'_>) -> Result<Answer<QueryData>, ToolError> {
        self.answer(call, |snapshot| query::run(self, snapshot, args, call))
    }

    /// Runs a query and writes its rows, in the form asked for, to `out`.
    pub fn write_query(
        &self,
        query: &Query<'_>,
        out: &mut dyn Write,
        call: &Call<'_>,
    ) -> Result<Summary, WriteError> {
        query::write(self, query, out, call)
    }

    /// `session_stats`.
    pub fn stats(&self, args: &StatsArgs, call: &Call<'_>) -> Result<Answer<StatsData>, ToolError> {
        self.answer(call, |snapshot| stats::run(self, snapshot, args, Extent::Answer, call))
    }

    /// The same with all groups, for people.
    pub fn all_stats(
        &self,
        args: &StatsArgs,
        call: &Call<'_>,
    ) -> Result<Answer<StatsData>, ToolError> {
        self.answer(call, |snapshot| stats::run(self, snapshot, args, Extent::All, call))
    }

    /// What the call answers from: what is in the store as the call begins.
    fn view<'c>(&self, call: &'c Call<'_>) -> Result<&'c View, ToolError> {
        call.view(|| {
            let snapshot = self.store.snapshot().map_err(store_error)?;
            let freshness = self.refresh.as_ref().map(|refresh| refresh.state());
            Ok(View { snapshot, freshness: freshness.unwrap_or_default() })
        })
    }

    /// The snapshot of the call; `index_empty` when nothing was ingested yet.
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
