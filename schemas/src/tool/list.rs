//! `list_sessions`: which sessions there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;
use crate::event::{Relation, TimeSource};
use crate::provider::Provider;
use crate::usage::{Confidence, Usage};

/// The registry row of `list_sessions`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "list_sessions",
    title: "List sessions",
    description: "Lists coding-agent sessions with counts, errors, tokens, duration and title, newest first. \
Use it for 'what did I work on', or to look up ids, at most 50. \
format: minimal (ids, titles, times), summary (default: counts and tokens too), full (everything).",
    risk: Risk::Read,
    category: Category::Read,
    action_template: "List sessions of project {project}",
    command: "list",
    position: None,
    answers: "sessions with counts, tokens, duration, title",
    use_when: &[
        "what did I work on this week",
        "which sessions were about this project",
        "which session used the most tokens",
    ],
    examples: &[ToolExample {
        description: "The two sessions of a project with the most failed tool calls",
        arguments: r#"{"project": "harbor", "sort": "errors", "limit": 2}"#,
        command: "sessions list --project harbor --sort errors --limit 2",
    }],
    errors: &[
        ErrorCode::InvalidSessionId,
        ErrorCode::AmbiguousSessionPrefix,
        ErrorCode::InvalidCursor,
    ],
    input: schema::input_schema::<ListArgs>,
    output: schema::output_schema::<ListData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArgs {
    /// Part of the folder
    pub project: Option<String>,
    /// Part of its name
    pub machine: Option<String>,
    /// Part of the name
    pub user: Option<String>,
    /// Only this agent: 'claude', 'codex', 'gemini', 'opencode', 'cursor', 'kilo', ... as answers name it
    pub provider: Option<Provider>,
    /// Also list subagents
    #[schemars(extend("default" = false))]
    pub subagents: Option<bool>,
    /// Active since '7d', a date or time (UTC)
    pub since: Option<String>,
    /// Begun before that time
    pub until: Option<String>,
    /// Only these sessions; any unique prefixes, or 'current'
    #[schemars(length(max = 50))]
    pub session_ids: Option<Vec<String>>,
    /// With this label
    pub label: Option<String>,
    /// Detail
    #[schemars(extend("default" = "summary"))]
    pub format: Option<ListFormat>,
    /// Order
    #[schemars(extend("default" = "recent"))]
    pub sort: Option<ListSort>,
    /// Sessions per page
    #[schemars(range(min = 1, max = 100), extend("default" = 20))]
    pub limit: Option<u32>,
    /// next_cursor of the prior page
    pub cursor: Option<String>,
}

closed_enum! {
    /// How much to say about each session.
    ListFormat {
        /// Id, agent, title and time of the end.
        Minimal = "minimal",
        /// Counts, tokens, duration, labels, model and relation as well.
        Summary = "summary",
        /// Everything that is known about the session.
        Full = "full",
    }
}

closed_enum! {
    /// Order of sessions; ties are broken by session id.
    ListSort {
        /// The session that ended last comes first.
        Recent = "recent",
        /// The session that started first comes first.
        Oldest = "oldest",
        /// The most tokens first, each request counted once.
        Tokens = "tokens",
        /// The most US dollars first.
        Cost = "cost",
        /// The most events first, copied ones included.
        Events = "events",
        /// The most failed tool results first.
        Errors = "errors",
        /// The longest time between first and last event first.
        Duration = "duration",
    }
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListData {
    /// The sessions on this page.
    pub sessions: Vec<Session>,
    /// Requested ids that no session has or begins with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<String>,
}

/// One session; which fields are there depends on `format`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Session {
    /// Id of the session.
    pub session_id: String,
    /// The agent that wrote the log.
    pub provider: Provider,
    /// Quoted log text; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Name of the repository's folder or of the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Last time in the log, as RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// First time in the log, as RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Where these times come from: records, or the last change of the file if no record has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_source: Option<TimeSource>,
    /// Milliseconds between the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Counts of the session's events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Token counts of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The session and its subagents together, when it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_subagents: Option<Family>,
    /// What people and agents labelled it; untrusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Note on the session; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Session that this one is related to; it may be missing in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// How the session is related to its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    /// Last model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Last git branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// First working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Repository of the working directory: its address or folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Id of the subagent that wrote the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Version of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Id that the log itself names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// Path of the log, masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// Machine that wrote the log; absent for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// User who ran the agent there; absent for this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// True if the log no longer exists.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub source_gone: bool,
    /// Ranges of events that a rewind or branch left behind, as 3-9,20-31.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<String>,
    /// Secrets masked in this log, by kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redactions: Option<std::collections::BTreeMap<String, u64>>,
}

/// Token counts of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Tokens {
    /// Every request once, history copied from another session left out.
    pub counted_once: Usage,
    /// What the log shows, copied history too; absent if it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_recorded: Option<Usage>,
    /// How far the counts can be trusted.
    pub confidence: Confidence,
    /// From the price table; absent when no model of the session is priced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What the log states, in US dollars; absent if it states no cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_as_logged: Option<f64>,
    /// Models that the price table does not know; their tokens are not in `cost_usd`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpriced_models: Vec<String>,
}

/// Sums over a session and its subagents.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Family {
    /// Subagents, theirs too.
    pub subagents: usize,
    /// Counts of all their events.
    pub counts: Counts,
    /// Token counts of all of them.
    pub tokens: Tokens,
}

/// How much of what a session holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Events, copied ones included.
    pub events: i64,
    /// Turns, without turn 0.
    pub turns: i64,
    /// Model responses.
    pub steps: i64,
    /// Tool calls.
    pub tool_calls: i64,
    /// Tool results that the log marks as failed.
    pub tool_errors: i64,
    /// Events copied from another session.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub replay_events: i64,
}
