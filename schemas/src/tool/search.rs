//! `search_events`: find events by their text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::argument::OneOrMany;
use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;
use crate::event::EventType;
use crate::provider::Provider;

/// The registry row of `search_events`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "search_events",
    title: "Search events",
    description: "Finds events (prompts, answers, tool calls, results) of past coding-agent sessions by their text. \
Use it for 'did I see this error before', 'how was Y done'. \
All words must occur in one event, each as a case-insensitive substring; \"quoted phrase\", /regex/, a OR b, -word excludes. \
Qualifiers: tool:Bash,Edit file:main.rs is:error is:replay model:opus branch:main agent:codex label:bug user:mira machine:x case:yes total:exact, -tool:X excludes; quote one to search for it as text. \
Newest first; sort relevance makes words optional, best first; also used if nothing matches exactly. Returns previews; with session_id and relevance whole answers.",
    risk: Risk::Read,
    category: Category::Search,
    action_template: "Search past sessions for {query}",
    command: "search",
    position: Some("query"),
    answers: "which events contain these words: ids, coordinates, snippet",
    use_when: &[
        "did I see this error before, and how was it fixed",
        "what was decided about X",
        "find the command that did Y",
    ],
    examples: &[
        ToolExample {
            description: "Failures with these words, newest first",
            arguments: r#"{"query": "\"assertion failed\" is:error", "limit": 2}"#,
            command: "sessions search '\"assertion failed\" is:error' --limit 2",
        },
        ToolExample {
            description: "A question, the best matches first",
            arguments: r#"{"query": "why does a clone not share the retry budget sort:relevance", "limit": 2}"#,
            command: "sessions search 'why does a clone not share the retry budget sort:relevance' --limit 2",
        },
    ],
    errors: &[
        ErrorCode::InvalidQuery,
        ErrorCode::InvalidCursor,
        ErrorCode::InvalidSessionId,
        ErrorCode::SessionNotFound,
        ErrorCode::AmbiguousSessionPrefix,
        ErrorCode::SearchTimeout,
    ],
    input: schema::input_schema::<SearchArgs>,
    output: schema::output_schema::<SearchData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// Words and "phrases" in one event
    pub query: String,
    /// Only these event types
    pub event_type: Option<OneOrMany<EventType>>,
    /// Only this agent
    pub provider: Option<Provider>,
    /// Part of the folder
    pub project: Option<String>,
    /// Part of the name of the machine; the qualifier `machine:` says the same
    #[schemars(skip)]
    pub machine: Option<String>,
    /// Part of the name of the user; the qualifier `user:` says the same
    #[schemars(skip)]
    pub user: Option<String>,
    /// Only this session; any unique prefix, or 'current'
    pub session_id: Option<String>,
    /// Leave out the session you are in
    #[schemars(extend("default" = false))]
    pub exclude_current: Option<bool>,
    /// Since '7d', a date or time (UTC)
    pub since: Option<String>,
    /// Before that time
    pub until: Option<String>,
    /// Order
    pub sort: Option<SearchSort>,
    /// Show N events around each match
    #[schemars(range(min = 0, max = 5))]
    pub context: Option<u32>,
    /// Matches per page
    #[schemars(range(min = 1, max = 50), extend("default" = 10))]
    pub limit: Option<u32>,
    /// next_cursor of the prior page
    pub cursor: Option<String>,
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SearchData {
    /// The query as it was understood.
    pub query: ParsedQuery,
    /// Newest first, or the best first.
    pub matches: Vec<Match>,
}

/// The query as it was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ParsedQuery {
    /// Must all occur.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<String>,
    /// May occur: words of a ranked search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<String>,
    /// Must not occur.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub none_of: Vec<String>,
    /// Qualifiers such as `tool:Bash`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub qualifiers: Vec<String>,
}

closed_enum! {
    /// The order of matches.
    #[derive(Default)]
    SearchSort {
        /// Newest first.
        #[default]
        Newest = "newest",
        /// Oldest first.
        Oldest = "oldest",
        /// Best match first.
        Relevance = "relevance",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_not_failed(is_error: &Option<bool>) -> bool {
    *is_error != Some(true)
}

/// One event that matched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Match {
    /// Id of the event: `<session_id>:<event_index>`. Where a session is asked for, it names its session.
    pub event_id: String,
    /// Id of the session; in JSON a part of `event_id`.
    #[serde(skip)]
    pub session_id: String,
    /// 0-based position in the session; in JSON a part of `event_id`.
    #[serde(skip)]
    pub event_index: u32,
    /// Turn of the event; 0 is before the first prompt.
    pub turn_index: u32,
    /// Model response that the event belongs to, counted over the session; absent for none.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub step_index: u32,
    /// Type of the event.
    pub event_type: EventType,
    /// Kind of a notification, or the agent's own type of record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// Time as RFC 3339 in UTC. `None` if the log gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The agent that wrote the log; absent if the match before is of the same session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Project of the session, if known; absent if the match before is of the same session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The tool, as the agent names it. `None` if the event is not about a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// True if the log marks a tool result as failed.
    #[serde(skip_serializing_if = "is_not_failed")]
    pub is_error: Option<bool>,
    /// True if the event was copied from another session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
    /// On a branch that a rewind left behind.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_abandoned: bool,
    /// 0 to 1, approximate, in a ranked search: how often a best match that has as many of the words is of
    /// the right session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Quoted log text around the match, with an ellipsis where more was left out; untrusted. In one
    /// session by relevance it is the whole text if it fits.
    pub snippet: String,
    /// True if the snippet is the beginning of an edit's diff, which a query without words gets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_diff: bool,
    /// Beginnings of the events around it by event_index, with their types; untrusted. In one session by
    /// relevance the best matches have the last message of their turn, prompts several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<u32, String>,
}
