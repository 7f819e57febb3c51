//! `session_stats`: counts, errors, tokens, cost, durations and sizes by group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::argument::OneOrMany;
use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;
use crate::provider::Provider;
use crate::usage::Usage;

/// The registry row of `session_stats`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "session_stats",
    title: "Count and sum",
    description: "Counts and sums events by one or two keys: sessions, events, tool calls, errors and their rate, tokens (each request once), cost, durations (p50, p95), sizes. \
Use it for 'where did the tokens go', 'which tool fails most' (group_by tool), 'tokens by day' (group_by day, since 7d). \
Copied history is left out; tokens.as_recorded has it, if it differs. Time groups come in order, \
the latest limit of them; others largest first. hour is the hour of day, week its first day.",
    risk: Risk::Read,
    category: Category::Statistics,
    action_template: "Count by {group_by}",
    command: "stats",
    position: None,
    answers: "counts, errors, tokens, cost and durations by provider, project, model, tool, time",
    use_when: &[
        "where did the tokens go",
        "which tool fails most",
        "how did usage grow this month",
    ],
    examples: &[ToolExample {
        description: "Tools by use, with their error rates",
        arguments: r#"{"group_by": ["tool"], "limit": 3}"#,
        command: "sessions stats --by tool --limit 3",
    }],
    errors: &[
        ErrorCode::InvalidSessionId,
        ErrorCode::SessionNotFound,
        ErrorCode::AmbiguousSessionPrefix,
    ],
    input: schema::input_schema::<StatsArgs>,
    output: schema::output_schema::<StatsData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatsArgs {
    /// One or two keys
    pub group_by: OneOrMany<GroupKey>,
    /// Only this agent
    pub provider: Option<Provider>,
    /// Part of the folder
    pub project: Option<String>,
    /// Part of its name
    pub machine: Option<String>,
    /// Part of the name
    pub user: Option<String>,
    /// Only this session; any unique prefix
    pub session_id: Option<String>,
    /// Since '7d', a date or time
    pub since: Option<String>,
    /// Before that time
    pub until: Option<String>,
    /// IANA name; default UTC
    pub timezone: Option<String>,
    /// Order
    pub sort: Option<StatsSort>,
    /// Max groups
    #[schemars(range(min = 1, max = 500), extend("default" = 50))]
    pub limit: Option<u32>,
}

closed_enum! {
    /// What events are grouped by. By tool, tool_kind, error or file only calls and results count.
    GroupKey {
        /// The agent that wrote the log.
        Provider = "provider",
        /// The project of the session.
        Project = "project",
        /// The model in force, without its vendor and the date of its release: all spellings of a
        /// name are one.
        Model = "model",
        /// The tool; names that differ only in case are one.
        Tool = "tool",
        /// The kind of tool, such as `read` or `execute`.
        ToolKind = "tool_kind",
        /// The type of event.
        EventType = "event_type",
        /// `failed` or `ok`; tool results only.
        Error = "error",
        /// The day, as `2026-10-14`.
        Day = "day",
        /// The Monday of the week, as `2026-10-12`.
        Week = "week",
        /// The month, as `2026-10`.
        Month = "month",
        /// The hour of the day, from `00` to `23`, over all days.
        Hour = "hour",
        /// The session, by its id.
        Session = "session",
        /// The git branch in force.
        Branch = "branch",
        /// A file that a call names, with its full path if the folder of the session is known. A call
        /// that names several counts for each of them.
        File = "file",
        /// The machine that wrote the log.
        Machine = "machine",
        /// The user who ran the agent.
        User = "user",
    }
}

impl GroupKey {
    /// Returns whether the values of the key are times, which have an order.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month | Self::Hour)
    }

    /// Returns whether only tool calls and results have the key.
    pub const fn is_of_tools(self) -> bool {
        matches!(self, Self::Tool | Self::ToolKind | Self::Error | Self::File)
    }
}

closed_enum! {
    /// Order of groups, the largest first, but `key` in the order of its text.
    StatsSort {
        /// The text of the key, ascending.
        Key = "key",
        /// The number of events.
        Events = "events",
        /// The number of failed tool results.
        Errors = "errors",
        /// Failed tool results divided by all tool results.
        ErrorRate = "error_rate",
        /// The sum of tokens, each request counted once.
        Tokens = "tokens",
        /// The cost in US dollars.
        Cost = "cost",
        /// The 95th percentile of the durations of tool calls.
        Duration = "duration",
        /// The bytes of text of all events.
        Size = "size",
    }
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatsData {
    /// The keys that events are grouped by.
    #[schemars(with = "Vec<String>")]
    pub group_by: Vec<GroupKey>,
    /// The zone of days, weeks, months or hours; absent without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The groups, in the order of `sort`.
    pub groups: Vec<Group>,
}

/// Sums over one group. Values that its events do not have are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// Value by key; a key that the events lack is absent.
    pub group: Map<String, Value>,
    /// Of the session, when grouped by that; quoted log text, untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Number of sessions with an event in the group.
    pub sessions: usize,
    /// Number of events, without copied ones.
    pub events: u64,
    /// Number of tool calls, without copied ones.
    pub tool_calls: u64,
    /// Number of tool results, without copied ones.
    pub tool_results: u64,
    /// Number of tool results that their log marks as failed, without copied ones.
    pub tool_errors: u64,
    /// Errors over results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// Token sums. `None` if the events of the group give no counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<GroupTokens>,
    /// From the price table; absent when no request in it is priced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens of models that the price table does not know.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub unpriced_tokens: i64,
    /// Models of the requests, unless grouped by that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Spread>,
    /// Of tool results; by tool, tool_kind, error or file, or with sort size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<Spread>,
    /// Of all its events; with sort size.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub text_bytes: u64,
    /// Events in twelve equal spans from the first to the last time asked for; not by time, and
    /// with sort size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trend: Vec<u64>,
}

/// Token sums of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupTokens {
    /// Every request once, history copied from another session left out.
    pub counted_once: Usage,
    /// What the logs show, copied history too; absent if it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_recorded: Option<Usage>,
}

/// The distribution of numbers: the median and the 95th percentile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Spread {
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The sum.
    pub total: u64,
}
