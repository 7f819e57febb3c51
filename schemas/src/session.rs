//! Rows of the tables as plain structs. Field names are the column names of [`crate::table`].
//! Timestamps are microseconds since the epoch.

use serde::{Deserialize, Serialize};

pub use crate::events::EventRow;
use crate::price::PriceTable;
use crate::{Provider, Usage};

/// A row of `sessions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    pub session_id: String,
    pub provider: Provider,
    pub source_path: String,
    pub native_id: Option<String>,
    pub parent_session_id: Option<String>,
    pub relation: Option<String>,
    pub agent_id: Option<String>,
    pub title: Option<String>,
    pub project: Option<String>,
    pub cwd: Option<String>,
    pub git_branch: Option<String>,
    pub model: Option<String>,
    pub agent_version: Option<String>,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub events: i64,
    pub replay_events: i64,
    pub turns: i64,
    pub steps: i64,
    pub user_messages: i64,
    pub messages: i64,
    pub tool_calls: i64,
    pub tool_errors: i64,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub cache_read_tokens: Option<i64>,
    pub cache_write_tokens: Option<i64>,
    pub cache_write_1h_tokens: Option<i64>,
    pub reasoning_tokens: Option<i64>,
    pub recorded_input_tokens: Option<i64>,
    pub recorded_output_tokens: Option<i64>,
    pub recorded_cache_read_tokens: Option<i64>,
    pub recorded_cache_write_tokens: Option<i64>,
    pub recorded_cache_write_1h_tokens: Option<i64>,
    pub recorded_reasoning_tokens: Option<i64>,
    pub usage_confidence: Option<String>,
    pub usage_by_model: Option<String>,
    pub repository: Option<String>,
    pub abandoned: Option<String>,
    pub drift: Option<String>,
    pub redactions: Option<String>,
    pub source_gone: bool,
    pub row_start: i64,
    pub row_count: i64,
    pub live_from: i64,
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
    pub fn recorded(&self) -> Usage {
        Usage {
            input: self.recorded_input_tokens,
            output: self.recorded_output_tokens,
            cache_read: self.recorded_cache_read_tokens,
            cache_write: self.recorded_cache_write_tokens,
            cache_write_1h: self.recorded_cache_write_1h_tokens,
            reasoning: self.recorded_reasoning_tokens,
        }
    }

    /// Replaces the token sums with copied history.
    pub fn set_recorded(&mut self, usage: Usage) {
        self.recorded_input_tokens = usage.input;
        self.recorded_output_tokens = usage.output;
        self.recorded_cache_read_tokens = usage.cache_read;
        self.recorded_cache_write_tokens = usage.cache_write;
        self.recorded_cache_write_1h_tokens = usage.cache_write_1h;
        self.recorded_reasoning_tokens = usage.reasoning;
    }

    /// Whether an event is on a branch that a rewind abandoned.
    pub fn is_abandoned(&self, event_index: i32) -> bool {
        let ranges = self.abandoned.as_deref().unwrap_or("").split(',');
        let inside = |range: &str| {
            let (first, last) = range.split_once('-')?;
            Some((first.parse::<i32>().ok()?..=last.parse().ok()?).contains(&event_index))
        };
        ranges.into_iter().any(|range| inside(range) == Some(true))
    }

    /// Whether the session has a conversation, that is a prompt, a message or a tool call. Logs of
    /// aborted starts contain records too, such as the bare command that ended them, which gives no
    /// title. Warm-ups of Claude's subagents do not count either.
    pub fn is_conversation(&self) -> bool {
        let warm_up = self.agent_id.is_some() && self.title.as_deref() == Some("Warmup");
        let asked = self.user_messages > 0 && self.title.is_some();
        (asked || self.messages + self.tool_calls > 0) && !warm_up
    }

    /// Returns the milliseconds between the first and the last time named in the log.
    pub fn duration_ms(&self) -> Option<i64> {
        Some((self.ended_at? - self.started_at?) / 1000)
    }
}

/// Tokens of one model in a session, each counted once. `usage_by_model` is a list of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUsage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The prompt of these requests had more tokens than this, which is one of [`LONG_PROMPTS`] or
    /// 0. Some models charge more for long prompts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prompt_over: i64,
    #[serde(flatten)]
    pub usage: Usage,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// The sizes of prompts in tokens above which some model costs more, ascending.
pub const LONG_PROMPTS: &[i64] = &[200_000, 256_000, 272_000];

impl ModelUsage {
    /// Returns the cost in US dollars by a price table, or `None` for a model without a price.
    pub fn cost(&self, prices: &PriceTable) -> Option<f64> {
        let rate = prices.rate(self.model.as_deref()?)?;
        rate.cost(&self.usage, rate.is_long(self.prompt_over + 1))
    }
}

/// The result of reading a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    Ok,
    Empty,
    /// The file is not a log, but belongs to the log next to it.
    Beside,
    UnknownFormat,
    Failed,
    Gone,
}

/// A row of `sources`: a file and its checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceRow {
    pub path: String,
    pub status: SourceStatus,
    pub session_id: Option<String>,
    pub provider: Option<Provider>,
    pub size: i64,
    pub modified_us: i64,
    pub consumed: i64,
    pub lines: i64,
    pub objects: i64,
    pub head_hash: i64,
    pub head_length: i64,
    pub tail_hash: i64,
    pub first_record: Option<i64>,
    pub ancestors: Option<String>,
    pub redaction_rules: i64,
    pub state: Option<String>,
    pub reason: Option<String>,
    pub segment: i64,
}

/// A row of `problems`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemRow {
    pub path: String,
    pub line: i64,
    pub byte: i64,
    pub kind: String,
    pub message: String,
    pub segment: i64,
}
