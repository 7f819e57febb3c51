//! Rows of the tables as plain structs. Field names are the column names of [`crate::table`].
//! Timestamps are microseconds since the epoch.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::event::Relation;
use crate::price::{PriceMode, PriceTable};
use crate::provider::Provider;
pub use crate::table::events::EventRow;
use crate::usage::Usage;

/// A row of `sessions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// The id of the session in the store: the agent's id where it is unique, else the same with a
    /// suffix such as `~2`.
    pub session_id: String,
    /// The agent that wrote the log.
    pub provider: Provider,
    /// Path of the log, masked.
    pub source_path: String,
    /// The id that the log itself names, cleaned and masked. `None` if the session was emptied
    /// because its log received another id.
    pub native_id: Option<String>,
    /// Id of the session that this one is related to, which may be missing in the store. `None` if
    /// there is no parent, or none is known.
    pub parent_session_id: Option<String>,
    /// How the session is related to its parent: the name of a
    /// [`Relation`]. `None` if no relation is known.
    pub relation: Option<String>,
    /// Id of the subagent that wrote this log. `None` in the log of a main agent.
    pub agent_id: Option<String>,
    /// Title that the log gives, or else the beginning of the first prompt, in one line. `None` if
    /// there is neither.
    pub title: Option<String>,
    /// Name of the folder of the repository that the first working directory belongs to, or of this
    /// directory itself. `None` if the log gives no directory.
    pub project: Option<String>,
    /// First working directory. `None` if the log gives none.
    pub cwd: Option<String>,
    /// Last git branch. `None` if the log gives none.
    pub git_branch: Option<String>,
    /// Last model. `None` if the log gives none.
    pub model: Option<String>,
    /// Last version of the agent. `None` if the log gives none.
    pub agent_version: Option<String>,
    /// Earliest time in the log, in microseconds since the epoch. Times of copied history count
    /// only if there are no others. `None` if the log gives no time.
    pub started_at: Option<i64>,
    /// Latest time in the log, in microseconds since the epoch, by the same rules.
    pub ended_at: Option<i64>,
    /// Where the two times come from: the name of a [`TimeSource`](crate::event::TimeSource).
    /// `None` if there are none.
    pub time_source: Option<String>,
    /// Number of events, copied ones included.
    pub events: i64,
    /// Number of events that were copied from another session.
    pub replay_events: i64,
    /// Number of turns, without turn 0 and without copied ones.
    pub turns: i64,
    /// Number of model responses, without copied ones.
    pub steps: i64,
    /// Number of prompts, without copied ones and without those inside a sidechain.
    pub user_messages: i64,
    /// Number of assistant messages, without copied ones.
    pub messages: i64,
    /// Number of tool calls, without copied ones.
    pub tool_calls: i64,
    /// Number of tool results that the log marks as failed, without copied ones.
    pub tool_errors: i64,
    /// Sum of the input tokens that were neither read from nor written to a cache. Like the next
    /// five fields, it counts each request once and leaves copied history out; `None` if the log
    /// gives no count.
    pub input_tokens: Option<i64>,
    /// Sum of the output tokens, reasoning included.
    pub output_tokens: Option<i64>,
    /// Sum of the input tokens read from a cache.
    pub cache_read_tokens: Option<i64>,
    /// Sum of the input tokens written to a cache.
    pub cache_write_tokens: Option<i64>,
    /// The part of `cache_write_tokens` that is kept for an hour.
    pub cache_write_1h_tokens: Option<i64>,
    /// The part of `output_tokens` that was reasoning.
    pub reasoning_tokens: Option<i64>,
    /// Like `input_tokens`, with the tokens of copied history. Like the next five fields, it is
    /// `None` if the log gives no count.
    pub recorded_input_tokens: Option<i64>,
    /// Like `output_tokens`, with the tokens of copied history.
    pub recorded_output_tokens: Option<i64>,
    /// Like `cache_read_tokens`, with the tokens of copied history.
    pub recorded_cache_read_tokens: Option<i64>,
    /// Like `cache_write_tokens`, with the tokens of copied history.
    pub recorded_cache_write_tokens: Option<i64>,
    /// Like `cache_write_1h_tokens`, with the tokens of copied history.
    pub recorded_cache_write_1h_tokens: Option<i64>,
    /// Like `reasoning_tokens`, with the tokens of copied history.
    pub recorded_reasoning_tokens: Option<i64>,
    /// How far the token counts can be trusted: the name of a
    /// [`Confidence`](crate::usage::Confidence). `None` counts as unknown.
    pub usage_confidence: Option<String>,
    /// A JSON list of [`ModelUsage`], which add up to the token sums without copied history. `None`
    /// if no tokens were counted.
    pub usage_by_model: Option<String>,
    /// Repository of the working directory: its address or, if no address is known, its folder.
    /// `None` if no repository is known.
    pub repository: Option<String>,
    /// Ranges of `event_index` on branches that a rewind abandoned, as `3-9,20-31`. `None` if there
    /// are none.
    pub abandoned: Option<String>,
    /// A JSON object with the record types, fields and blocks that the decoder does not know, and
    /// their counts. `None` if there are none.
    pub drift: Option<String>,
    /// A JSON object with the number of secrets masked in this log, by kind. `None` if none was
    /// masked.
    pub redactions: Option<String>,
    /// Machine that wrote the log. `None` means the machine of the store: only sessions that came
    /// from a lake have a value. Stores of earlier versions do not have the column.
    #[serde(default)]
    pub machine: Option<String>,
    /// User who ran the agent on that machine. `None` means the user of the store, as for
    /// `machine`.
    #[serde(default)]
    pub user_name: Option<String>,
    /// True if the log no longer exists. The events that were read from it are kept.
    pub source_gone: bool,
    /// Position of the first row of the session in the events of this segment, from 0.
    pub row_start: i64,
    /// Number of rows of the session in the events of this segment; 0 if only the row of the
    /// session changed.
    pub row_count: i64,
    /// Lowest segment whose events of this session are in force. Events in segments with a lower
    /// number are superseded.
    pub live_from: i64,
    /// Number of the segment that first held this row.
    pub segment: i64,
}

impl SessionRow {
    /// Returns the token sums.
    pub fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
            cache_write_1h: self.cache_write_1h_tokens,
            reasoning: self.reasoning_tokens,
            web_search: None,
        }
    }

    /// Replaces the token sums.
    pub fn set_usage(&mut self, usage: Usage) {
        self.input_tokens = usage.input;
        self.output_tokens = usage.output;
        self.cache_read_tokens = usage.cache_read;
        self.cache_write_tokens = usage.cache_write;
        self.cache_write_1h_tokens = usage.cache_write_1h;
        self.reasoning_tokens = usage.reasoning;
    }

    /// Returns the token sums with copied history.
    pub fn recorded_usage(&self) -> Usage {
        Usage {
            input: self.recorded_input_tokens,
            output: self.recorded_output_tokens,
            cache_read: self.recorded_cache_read_tokens,
            cache_write: self.recorded_cache_write_tokens,
            cache_write_1h: self.recorded_cache_write_1h_tokens,
            reasoning: self.recorded_reasoning_tokens,
            web_search: None,
        }
    }

    /// Replaces the token sums with copied history.
    pub fn set_recorded_usage(&mut self, usage: Usage) {
        self.recorded_input_tokens = usage.input;
        self.recorded_output_tokens = usage.output;
        self.recorded_cache_read_tokens = usage.cache_read;
        self.recorded_cache_write_tokens = usage.cache_write;
        self.recorded_cache_write_1h_tokens = usage.cache_write_1h;
        self.recorded_reasoning_tokens = usage.reasoning;
    }

    /// Returns the sums by model. Empty if no tokens were counted.
    pub fn model_usage(&self) -> Vec<ModelUsage> {
        let parsed = self.usage_by_model.as_ref().map(|json| serde_json::from_str(json));
        parsed.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns whether an event is on a branch that a rewind abandoned.
    pub fn is_abandoned(&self, event_index: i32) -> bool {
        let Some(abandoned) = &self.abandoned else { return false };
        abandoned.split(',').filter_map(parse_range).any(|range| range.contains(&event_index))
    }

    /// Returns whether the session has a conversation, that is a prompt, a message or a tool call.
    /// Logs of aborted starts contain records too, such as the bare command that ended them, which
    /// gives no title. Warm-ups of Claude's subagents do not count either.
    pub fn is_conversation(&self) -> bool {
        let is_warm_up = self.agent_id.is_some() && self.title.as_deref() == Some("Warmup");
        let has_prompt = self.user_messages > 0 && self.title.is_some();
        (has_prompt || self.messages + self.tool_calls > 0) && !is_warm_up
    }

    /// Returns whether another session started this one as its subagent or reviewer.
    pub fn is_subagent(&self) -> bool {
        let relation = self.relation.as_deref();
        [Relation::SubagentOf, Relation::ReviewOf]
            .iter()
            .any(|below| relation == Some(below.as_str()))
    }

    /// Returns whether this session is what the log of its parent held before it was cut or begun
    /// again.
    pub fn is_earlier_version(&self) -> bool {
        self.relation.as_deref() == Some(Relation::EarlierVersionOf.as_str())
    }

    /// Returns the milliseconds between the first and the last time in the log. `None` if the log
    /// gives no time.
    pub fn duration_ms(&self) -> Option<i64> {
        Some((self.ended_at? - self.started_at?) / 1000)
    }
}

/// Returns the sum of the known costs. `None` if none is known.
pub fn sum_costs(costs: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let sum = costs.into_iter().flatten().reduce(|sum, cost| sum + cost);
    // The last digits of a sum of fractions are only rounding errors.
    sum.map(|cost| (cost * 1e9_f64).round() / 1e9)
}

/// Parses a range such as `3-9`. `None` for any other text.
fn parse_range(range: &str) -> Option<RangeInclusive<i32>> {
    let (first, last) = range.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// Tokens of one model in a session, each counted once. `usage_by_model` is a list of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// The model. `None` if the log does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The prompt of these requests had more tokens than this, which is one of [`LONG_PROMPTS`] or
    /// 0. Some models charge more for long prompts.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub prompt_over: i64,
    /// The day of these requests in UTC, as `2026-08-20`. `None` if the log does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The mode in which these requests were served.
    #[serde(flatten)]
    pub mode: PriceMode,
    /// The cost of these requests in US dollars, as the log states it. Requests with and without a stated
    /// cost are summed separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_as_logged: Option<f64>,
    /// The sums over these requests.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Subtype of a `token_usage` event that sums up the requests of a session up to a shutdown.
pub const SHUTDOWN_SUM: &str = "shutdown";

/// Subtype of a `token_usage` event that sums up the requests of a turn.
pub const TURN_SUM: &str = "turn_sum";

/// Subtype of a `token_usage` event that sums up the requests of a task in a session.
pub const TASK_SUM: &str = "task_sum";

/// Subtype of a `token_usage` event with the estimated share of a response in the totals of its
/// session. The log gives no counts of single responses.
pub const ESTIMATED_SHARE: &str = "estimated_share";

/// Returns whether a `token_usage` event of this subtype sums up many requests, or is a share of
/// such a sum, so that the length of a prompt is not known.
pub fn is_sum_of_requests(subtype: Option<&str>) -> bool {
    matches!(subtype, Some(SHUTDOWN_SUM | TURN_SUM | TASK_SUM | ESTIMATED_SHARE))
}

/// The sizes of prompts in tokens above which some model costs more, ascending.
pub const LONG_PROMPTS: &[i64] = &[200_000, 256_000, 272_000, 524_288];

impl ModelUsage {
    /// Names the model and, if it is not the normal one, the mode of service: `m (speed fast)`.
    pub fn name(&self) -> String {
        let model = self.model.as_deref().unwrap_or("unknown");
        if self.mode.is_standard() {
            return model.to_owned();
        }
        format!("{model} ({})", self.mode.describe())
    }

    /// Returns the cost in US dollars by a price table. `None` if the row has no model, in the
    /// cases of [`PriceTable::rate_in_mode`], and in those of
    /// [`Rate::cost`](crate::price::Rate::cost).
    pub fn cost(&self, prices: &PriceTable) -> Option<f64> {
        let day = self.day.as_deref();
        let rate = prices.rate_in_mode(self.model.as_deref()?, &self.mode, day)?;
        rate.cost(&self.usage, rate.is_long(self.prompt_over + 1))
    }
}

/// The result of reading a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    /// The file is a log, and its session has what was read from it.
    Ok,
    /// The file holds no record yet.
    Empty,
    /// The file is not a log, but belongs to the log next to it.
    Sidecar,
    /// No decoder recognises the file; `reason` says why. If it was a log before, its session has
    /// what was read then.
    UnknownFormat,
    /// The file is a log that cannot be read, because its document is too large; `reason` says why.
    Failed,
    /// The file no longer exists, or another log was written over it. What was read from it is
    /// kept.
    Gone,
    /// The file is left out: the user excluded or forgot it. With a session, that session has what
    /// was read before; otherwise nothing was kept of the log.
    Excluded,
}

/// A row of `sources`: a file and its checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceRow {
    /// Path of the file, without the extension of a compression. It is not masked, because the log
    /// is opened by it.
    pub path: String,
    /// The result of reading the file.
    pub status: SourceStatus,
    /// The session that the file was read into. `None` if the file was not read as a log.
    pub session_id: Option<String>,
    /// The agent that wrote the file. `None` if the file was not read as a log.
    pub provider: Option<Provider>,
    /// Size of the file in bytes when it was last read; -1 while only a part of it has been read,
    /// so that the next run continues.
    pub size: i64,
    /// Time at which the file or its companion file last changed before it was read, in
    /// microseconds since the epoch.
    pub modified_us: i64,
    /// Position in bytes up to which the log was read into events. What follows was not read yet,
    /// such as an incomplete line.
    pub consumed: i64,
    /// Number of lines up to this position.
    pub lines: i64,
    /// Number of JSON objects up to this position.
    pub objects: i64,
    /// Hash of the first `head_length` bytes of the log.
    pub head_hash: i64,
    /// Number of bytes that each of the two hashes covers.
    pub head_length: i64,
    /// Hash of the last `head_length` bytes before `consumed`.
    pub tail_hash: i64,
    /// Identity of the first record; logs that share it share history. `None` if the decoder gives
    /// no identity.
    pub first_record: Option<i64>,
    /// Ids of the sessions whose history the log may repeat, separated by spaces. `None` if there
    /// are none.
    pub ancestors: Option<String>,
    /// Version of the rules that masked what is stored of the file; 0 if there were no rules.
    pub redaction_rules: i64,
    /// State of the decoder at `consumed`, or the messages of a document, as JSON. `None` if there
    /// is nothing to resume from.
    pub state: Option<String>,
    /// Why the file was not read, or why the beginning of a known log is no longer recognised.
    /// `None` in all other cases.
    pub reason: Option<String>,
    /// Identity of the first response of the model; logs that share it share history. `None` if the
    /// decoder gives no identity.
    pub first_response: Option<i64>,
    /// Version of the decoder that read the file; 0 if nothing was read.
    pub decoder_version: i64,
    /// Number of the segment that first held this row.
    pub segment: i64,
}

impl SourceRow {
    /// Returns the row of a file of which nothing was read as a log. `size` is in bytes,
    /// `modified_us` in microseconds since the epoch.
    pub fn unread(path: String, status: SourceStatus, size: i64, modified_us: i64) -> Self {
        Self {
            path,
            status,
            session_id: None,
            provider: None,
            size,
            modified_us,
            consumed: 0,
            lines: 0,
            objects: 0,
            head_hash: 0,
            head_length: 0,
            tail_hash: 0,
            first_record: None,
            ancestors: None,
            redaction_rules: 0,
            state: None,
            reason: None,
            first_response: None,
            decoder_version: 0,
            segment: 0,
        }
    }
}

/// A row of `problems`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemRow {
    /// Path of the file, masked.
    pub path: String,
    /// Line of the record, from 1; 0 if the whole file is meant.
    pub line: i64,
    /// Position of the record in the file, in bytes.
    pub byte: i64,
    /// The name of a [`ProblemKind`](crate::problem::ProblemKind).
    pub kind: String,
    /// What is wrong, without text from the log.
    pub message: String,
    /// Number of the segment that first held this row.
    pub segment: i64,
}
