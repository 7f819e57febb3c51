//! Provides the tools, which take arguments and return answers, the same for MCP and the command
//! line.
//!
//! Each tool has its own file or folder; `reply/` holds what several of them need. The tools
//! combine the store and the search, keep answers within their budgets, and clean text from logs.
//! They do not depend on MCP or the command line, and none of them imports this file.

mod analyze;
mod blame;
pub mod compact;
mod details;
pub mod doctor;
mod endings;
pub mod error;
mod event;
mod find;
pub mod forget;
mod handover;
mod image;
mod label;
mod list;
pub mod masks;
mod memory;
mod metadata;
mod query;
pub mod quota;
pub mod reply;
pub mod restore;
mod restore_file;
mod search;
pub mod secrets;
mod since;
mod stats;
pub mod status;

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ingest::provider::format::AgentFolders;
use ingest::redact::Redactor;
use ingest::run::Progress;
use schemas::envelope::{JsonAnswer, Warning};
use schemas::price::PriceTable;
use schemas::session::EventRow;
use schemas::tool::ServedTools;
use schemas::tool::analyze::{AnalyzeArgs, AnalyzeData};
use schemas::tool::details::{DetailArgs, DetailData};
use schemas::tool::event::{EventArgs, EventData};
use schemas::tool::find::{FindArgs, FindData};
use schemas::tool::label::{LabelArgs, LabelData};
use schemas::tool::list::{ListArgs, ListData};
use schemas::tool::memory::{MemoryArgs, MemoryData};
use schemas::tool::metadata::{MetadataArgs, MetadataData};
use schemas::tool::query::{QueryArgs, QueryData, QueryFormat};
use schemas::tool::search::{SearchArgs, SearchData};
use schemas::tool::stats::{StatsArgs, StatsData};
use schemas::{ErrorCode, ToolError};
use serde::Serialize;

pub use self::analyze::{
    Decision, HistoryScope, KnownFix, LiveFailure, find_decisions, find_failing_call,
    find_fix_of_event, find_known_fix,
};
pub use self::blame::{BlameData, BlameSpan, BlamedFile, CountedEdit, WrittenBy};
use self::doctor::DoctorData;
pub use self::endings::{SessionTail, read_session_tail};
pub use self::handover::Handover;
pub use self::image::EventImage;
pub use self::image::count_images;
use self::masks::MaskReport;
use self::memory::MemoryRequest;
use self::query::CountedWriter;
pub use self::reply::answer::{AnswerResult, encoding_error};
use self::reply::answer::{Reply, run_and_wrap};
pub use self::reply::call::Call;
pub use self::reply::caller::Caller;
use self::reply::complete;
pub use self::reply::freshness::{Freshness, Refresh, UnreadReason};
pub use self::reply::history::{
    CallView, ColumnPart, ColumnScan, Examined, History, NeededEvents, NeededMatches, RowTotal,
    Stop, WantedColumns, WriteError,
};
pub use self::reply::interface::Interface;
pub use self::reply::rows::{find_arguments, read_all_events, read_events};
pub use self::reply::selection::SessionSelection;
pub use self::reply::session_filter::session_filter;
pub use self::reply::session_sums::MAX_SUBAGENT_DEPTH;
pub use self::reply::shown::{cut_diff, read_diff};
use self::reply::store_warnings::store_warnings;
pub use self::reply::time_range::TimeRange;
pub use self::reply::tools::{RedactorFactory, Tools};
pub use self::reply::transcript::Transcript;
pub use self::reply::transcript::linked_event;
pub use self::reply::turn_costs::event_costs;
pub use self::restore_file::RestoredFile;
use self::search::ParsedSearch;
use self::secrets::{SecretFilter, SecretsData};
pub use self::since::{MAX_SINCE_BYTES, RecalledSession, describe_since};
pub use self::stats::Extent;
use self::status::StatusData;
use crate::error::store_error;
use sql::{Sandbox, SqlQuery, SqlSummary};
use store::{KeepLogs, Snapshot, Store};

impl Tools {
    /// Sets the program that runs queries, which is this program itself.
    #[must_use]
    pub fn with_program(mut self, program: PathBuf) -> Self {
        self.store_history.sandbox = Sandbox::new(program);
        self
    }

    /// Enables masking of what clients write.
    #[must_use]
    pub fn with_masking(mut self, masking: RedactorFactory) -> Self {
        self.masking = Some(masking);
        self
    }

    /// Creates the redactor of secrets: with the rules of the user if masking is enabled, otherwise with
    /// the built-in ones.
    pub fn create_redactor(&self) -> Result<Arc<Redactor>, ToolError> {
        if let Some(masking) = self.masking {
            return masking();
        }
        let redactor = Redactor::new(&[]);
        redactor.map(Arc::new).map_err(|error| {
            let message = format!("the built-in rules for secrets are not valid: {error}");
            ToolError::new(ErrorCode::InternalError, message)
        })
    }

    /// Sets other prices than the built-in ones.
    #[must_use]
    pub fn with_prices(mut self, prices: PriceTable) -> Self {
        self.prices = OnceLock::from(prices);
        self
    }

    /// Sets the caller, which `current` refers to.
    #[must_use]
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets the tools that the caller can call, which are all otherwise.
    #[must_use]
    pub fn with_served_tools(mut self, served: ServedTools) -> Self {
        self.caller.interface = Interface::Tools(served);
        self
    }

    /// Sets the history that calls answer from, which loads what they need into the store.
    #[must_use]
    pub fn with_history(mut self, history: Arc<dyn History>) -> Self {
        self.other_history = Some(history);
        self
    }

    /// Sets what keeps the store up to date with the logs.
    #[must_use]
    pub fn with_refresh(mut self, refresh: Arc<dyn Refresh>) -> Self {
        self.store_history.refresh = Some(refresh);
        self
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns how the caller makes calls.
    pub fn interface(&self) -> Interface {
        self.caller.interface
    }

    /// Returns what is wrong with the store that the call answers from, for commands whose output
    /// has no place for warnings.
    pub fn store_warnings(&self, call: &Call<'_>) -> Result<Vec<Warning>, ToolError> {
        Ok(store_warnings(&self.view(call)?.snapshot))
    }

    /// Runs a tool that needs ingested logs.
    fn run_tool<T: Serialize>(
        &self,
        call: &Call<'_>,
        tool: impl Fn(&Snapshot) -> Result<Reply<T>, ToolError>,
    ) -> AnswerResult<T> {
        self.read_store(call, &mut || {
            self.snapshot(call)?;
            run_and_wrap(call, self.view(call)?, &tool)
        })
    }

    /// Runs `search_events`.
    pub fn search_events(&self, args: &SearchArgs, call: &Call<'_>) -> AnswerResult<SearchData> {
        self.run_search(args, false, call)
    }

    /// Runs `search_events` for the best match of each session, if the matches are ranked.
    pub fn search_best_events(
        &self,
        args: &SearchArgs,
        call: &Call<'_>,
    ) -> AnswerResult<SearchData> {
        self.run_search(args, true, call)
    }

    fn run_search(
        &self,
        args: &SearchArgs,
        one_per_session: bool,
        call: &Call<'_>,
    ) -> AnswerResult<SearchData> {
        let interface = self.caller.interface;
        let parsed = ParsedSearch::parse(args, one_per_session, interface, call);
        match &parsed {
            Ok(parsed) => search::prepare(self, parsed, call)?,
            // An empty history is reported first.
            Err(_) => self.open_rows(call)?,
        }
        self.run_tool(call, |snapshot| {
            let parsed = parsed.as_ref().map_err(ToolError::clone)?;
            search::run(self, snapshot, parsed, call)
        })
    }

    /// Runs `search_sessions`.
    pub fn search_sessions(&self, args: &FindArgs, call: &Call<'_>) -> AnswerResult<FindData> {
        self.require_all_events("search_sessions")?;
        self.run_tool(call, |snapshot| find::run(self, snapshot, args, call))
    }

    /// Runs `get_event_details`.
    pub fn get_event_details(&self, args: &EventArgs, call: &Call<'_>) -> AnswerResult<EventData> {
        let find = |snapshot: &Snapshot| event::find_sessions(self, args, snapshot);
        self.open_view(call, &NeededEvents::Sessions(&find))?;
        self.run_tool(call, |snapshot| event::run(self, snapshot, args, call))
    }

    /// Reads an image that the text of an event names, from its log. `number` counts from 0.
    pub fn read_image(
        &self,
        event_id: &str,
        number: usize,
        call: &Call<'_>,
    ) -> Result<EventImage, ToolError> {
        self.require_all_events("an image")?;
        self.read_store(call, &mut || {
            image::run(self, self.snapshot(call)?, event_id, number, call)
        })
    }

    /// Runs `list_sessions`.
    pub fn list_sessions(&self, args: &ListArgs, call: &Call<'_>) -> AnswerResult<ListData> {
        self.open_rows(call)?;
        self.run_tool(call, |snapshot| list::run(self, snapshot, args, call))
    }

    /// Runs `get_session_details`.
    pub fn get_session_details(
        &self,
        args: &DetailArgs,
        call: &Call<'_>,
    ) -> AnswerResult<DetailData> {
        self.prepare_session(&args.session_id, call)?;
        self.run_tool(call, |snapshot| details::run(self, snapshot, args, call))
    }

    /// Reads a whole session, by its id or any unique prefix, `current` or `last`.
    pub fn read_transcript(
        &self,
        session_id: &str,
        call: &Call<'_>,
    ) -> Result<Transcript, ToolError> {
        self.read_transcript_around(session_id, 0, u32::MAX, call)
    }

    /// The same with at most `most` events: if the session has more, those around `event`.
    pub fn read_transcript_around(
        &self,
        session_id: &str,
        event: u32,
        most: u32,
        call: &Call<'_>,
    ) -> Result<Transcript, ToolError> {
        self.prepare_session(session_id, call)?;
        self.read_store(call, &mut || {
            let snapshot = self.snapshot(call)?;
            let at = self.caller.find_session(snapshot, session_id)?;
            Transcript::read_around(snapshot, at, event, most, self.prices(), call.stop)
        })
    }

    /// Reads the session at this position of a snapshot once, for what `get_session_details` says of it
    /// and for its transcript. Returns its rows, too.
    pub fn read_with_transcript(
        &self,
        snapshot: &Snapshot,
        session: usize,
        call: &Call<'_>,
    ) -> Result<(DetailData, Transcript, Vec<EventRow>), ToolError> {
        details::read_with_transcript(self, snapshot, session, call)
    }

    /// Opens the view of a call that needs the events of a session. An id that is not valid is left to
    /// the tool, which reports it.
    fn prepare_session(&self, session_id: &str, call: &Call<'_>) -> Result<(), ToolError> {
        let caller = &self.caller;
        let find =
            |snapshot: &Snapshot| caller.find_session(snapshot, session_id).into_iter().collect();
        self.open_view(call, &NeededEvents::Sessions(&find))?;
        Ok(())
    }

    /// Opens the view of a call that needs the rows of sessions.
    fn open_rows(&self, call: &Call<'_>) -> Result<(), ToolError> {
        self.open_view(call, &NeededEvents::Rows)?;
        Ok(())
    }

    /// Runs `tool_metadata`, which needs no logs.
    pub fn tool_metadata(
        &self,
        args: &MetadataArgs,
        call: &Call<'_>,
    ) -> AnswerResult<MetadataData> {
        let served = self.interface().served_tools();
        run_and_wrap(call, self.view(call)?, |_| metadata::run(args, served))
    }

    /// Runs `sessions`, the small tool, with the tool that the call is for.
    pub fn recall(&self, args: &MemoryArgs, call: &Call<'_>) -> Result<JsonAnswer, ToolError> {
        let has_all_events = self.history().has_all_events();
        let is_known_id = |id: &str| self.is_known_id(id, call);
        let request = MemoryRequest::parse(args, &is_known_id, has_all_events, call)?;
        let mut answer = self.answer_memory_request(&request, call)?;
        answer.warnings.extend(request.ignored_arguments_warning(args));
        Ok(answer)
    }

    fn answer_memory_request(
        &self,
        request: &MemoryRequest,
        call: &Call<'_>,
    ) -> Result<JsonAnswer, ToolError> {
        Ok(match request {
            MemoryRequest::Events(args) => self.get_event_details(args, call)?.into_json(),
            MemoryRequest::Session(args) => self.get_session_details(args, call)?.into_json(),
            MemoryRequest::Sessions(args) => self.list_sessions(args, call)?.into_json(),
            MemoryRequest::Analysis(args) => self.analyze_session(args, call)?.into_json(),
            MemoryRequest::Matches(args) => self.search_events(args, call)?.into_json(),
            MemoryRequest::Question(args) => self.answer_question(args, call)?.into_json(),
            MemoryRequest::Error(args, question) => match self.analyze_session(args, call) {
                Ok(known) if !known.data.findings.is_empty() => known.into_json(),
                Ok(known) => {
                    let sessions = known.data.sessions;
                    let mut answer = self.answer_question(question, call)?.into_json();
                    let next_step = answer.hint.take().unwrap_or_default();
                    answer.hint = Some(format!(
                        "No failure in {sessions} sessions has this error. {next_step}"
                    ));
                    answer
                }
                Err(error) if error.code == ErrorCode::InvalidQuery => {
                    self.answer_question(question, call)?.into_json()
                }
                Err(error) => return Err(error),
            },
        })
    }

    /// Answers a question with the sessions that it is about and what the best one says.
    fn answer_question(&self, args: &FindArgs, call: &Call<'_>) -> AnswerResult<MemoryData> {
        self.run_tool(call, |snapshot| memory::answer_question(self, snapshot, args, call))
    }

    /// Returns true if an id, or a prefix of it, names at least one session. Nothing is loaded for that.
    fn is_known_id(&self, id: &str, call: &Call<'_>) -> bool {
        // The view of the call has to have what the chosen tool needs.
        let lookup = call.next();
        let Ok(view) = self.open_view(&lookup, &NeededEvents::Rows) else { return false };
        match self.caller.find_session(&view.snapshot, id) {
            Ok(_) => true,
            Err(error) => error.code == ErrorCode::AmbiguousSessionPrefix,
        }
    }

    /// Runs `update_session_labels`.
    pub fn update_session_labels(
        &self,
        args: &LabelArgs,
        call: &Call<'_>,
    ) -> AnswerResult<LabelData> {
        self.require_all_events("update_session_labels")?;
        // Before the snapshot is taken, which would report the same again.
        let notice = self.store.make_private().map_err(store_error)?;
        self.run_tool(call, |snapshot| label::run(self, snapshot, args, notice.clone(), call))
    }

    /// Runs `analyze_session`.
    pub fn analyze_session(
        &self,
        args: &AnalyzeArgs,
        call: &Call<'_>,
    ) -> AnswerResult<AnalyzeData> {
        self.require_all_events("analyze_session")?;
        self.run_tool(call, |snapshot| {
            analyze::run(snapshot, args, call, self.prices(), &self.caller)
        })
    }

    /// Writes the handover of a session to another agent. Without an id it is the newest
    /// conversation of the project, or of the caller's folder, that is not the caller's own.
    pub fn write_handover(
        &self,
        session_id: Option<&str>,
        project: Option<&str>,
        call: &Call<'_>,
    ) -> Result<Handover, ToolError> {
        self.require_all_events("a handover")?;
        self.read_store(call, &mut || {
            handover::run(self, self.snapshot(call)?, session_id, project, call)
        })
    }

    /// Finds the sessions that wrote the lines of a file.
    pub fn blame_file(&self, file: &BlamedFile, call: &Call<'_>) -> Result<BlameData, ToolError> {
        self.require_all_events("blame")?;
        self.read_store(call, &mut || blame::run(self.snapshot(call)?, file, call))
    }

    /// Finds the content of a file as an agent last read or wrote it, or as it was before the event `at`.
    pub fn restore_file(
        &self,
        file: &BlamedFile,
        at: Option<&str>,
        call: &Call<'_>,
    ) -> Result<RestoredFile, ToolError> {
        self.require_all_events("restore --file")?;
        let redactor = self.create_redactor()?;
        self.read_store(call, &mut || {
            restore_file::run(self, self.snapshot(call)?, file, at, &redactor, call)
        })
    }

    /// Runs `query_sql`.
    pub fn query_sql(&self, args: &QueryArgs, call: &Call<'_>) -> AnswerResult<QueryData> {
        self.open_rows(call)?;
        self.run_tool(call, |snapshot| query::run(self, snapshot, args, call))
    }

    /// Runs a query and writes its rows to `out` in the requested format.
    pub fn write_query(
        &self,
        query: &SqlQuery<'_>,
        out: &mut dyn Write,
        call: &Call<'_>,
    ) -> Result<SqlSummary, WriteError> {
        let mut out = CountedWriter::new(out);
        loop {
            match query::write_rows(self, query, &mut out, call) {
                // Rows that were written are not written again.
                Err(WriteError::Tool(error))
                    if out.bytes() == 0 && self.renew_view(call, &error) => {}
                result => return result.map(|(summary, _)| summary),
            }
        }
    }

    /// Returns the rows that a view of SQL has of some sessions, in a format, session by session.
    /// `order` is the order within a session.
    pub fn read_view(
        &self,
        view: &str,
        order: &str,
        sessions: &[String],
        format: QueryFormat,
        call: &Call<'_>,
    ) -> Result<Vec<u8>, ToolError> {
        self.read_store(call, &mut || query::read_view(self, view, order, sessions, format, call))
    }

    /// Runs `session_stats`.
    pub fn session_stats(&self, args: &StatsArgs, call: &Call<'_>) -> AnswerResult<StatsData> {
        self.count_sessions(args, Extent::Answer, call)
    }

    /// Runs `session_stats` and returns as many groups as `extent` says.
    pub fn count_sessions(
        &self,
        args: &StatsArgs,
        extent: Extent,
        call: &Call<'_>,
    ) -> AnswerResult<StatsData> {
        self.open_rows(call)?;
        self.run_tool(call, |snapshot| stats::run(self, snapshot, args, extent, call))
    }

    /// Checks every agent's folders and what the store knows of its logs.
    pub fn run_doctor(
        &self,
        places: &AgentFolders<'_>,
        keep_logs: KeepLogs,
    ) -> Result<DoctorData, ToolError> {
        doctor::run(self, places, keep_logs)
    }

    /// Finds the rules that masked what in an event, a range of events or a session, by any id that
    /// names it.
    pub fn explain_masks(&self, id: &str, call: &Call<'_>) -> Result<MaskReport, ToolError> {
        self.require_all_events("doctor")?;
        self.read_store(call, &mut || masks::run(self, self.snapshot(call)?, id, call))
    }

    /// Lists the secrets in the logs of this machine, which are searched. `is_published` says whether the
    /// session at a position of the snapshot was published.
    pub fn list_secrets(
        &self,
        filter: SecretFilter<'_>,
        is_published: &dyn Fn(usize) -> bool,
        progress: &dyn Progress,
        call: &Call<'_>,
    ) -> Result<SecretsData, ToolError> {
        self.require_all_events("secrets")?;
        secrets::run(self, self.snapshot(call)?, filter, is_published, progress, call)
    }

    /// Collects the figures of the store; `roots` are searched for new files.
    pub fn collect_status(&self, roots: &[PathBuf]) -> Result<StatusData, ToolError> {
        status::run(self, roots)
    }

    /// Returns the ids of sessions that begin with `typed`, the latest session first.
    pub fn complete_session(&self, typed: &str) -> Result<Vec<String>, ToolError> {
        complete::complete_session(&self.store, typed)
    }

    /// Returns the projects whose name contains `typed`, the most recently used first.
    pub fn complete_project(&self, typed: &str) -> Result<Vec<String>, ToolError> {
        complete::complete_project(&self.store, typed)
    }
}
