//! `search_sessions`: find sessions by a half-remembered question.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::error::ErrorCode;
use crate::provider::Provider;

/// The registry row of `search_sessions`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "search_sessions",
    title: "Search sessions",
    description: "Finds the sessions that a half-remembered question is about, best first: 'which session was that, and how did it end?'. \
Ask in plain words; no word is required, and a month or day in the question favours that time. \
Each session comes with the reason it matched and passages by event_index, oldest first; the last \
is the most recent.",
    risk: Risk::Read,
    category: Category::Search,
    action_template: "Find past sessions about {query}",
    command: "find",
    position: Some("query"),
    answers: "which sessions a question is about: ids, titles, passages",
    use_when: &[
        "which session was that, and how did it end",
        "did we ever talk about X",
        "where did we decide on Y",
    ],
    examples: &[ToolExample {
        description: "The session about a half-remembered problem",
        arguments: r#"{"query": "where did a clone not share the retry budget", "limit": 2}"#,
        command: "sessions find where did a clone not share the retry budget --limit 2",
    }],
    errors: &[ErrorCode::InvalidQuery, ErrorCode::InvalidCursor, ErrorCode::SearchTimeout],
    input: schema::input_schema::<FindArgs>,
    output: schema::output_schema::<FindData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindArgs {
    /// What you remember, in plain words
    pub query: String,
    /// Only this agent, named as in list_sessions
    pub provider: Option<Provider>,
    /// Part of the folder
    pub project: Option<String>,
    /// Active since '7d', a date or time (UTC)
    pub since: Option<String>,
    /// Begun before that time
    pub until: Option<String>,
    /// Sessions per page
    #[schemars(range(min = 1, max = 50), extend("default" = 10))]
    pub limit: Option<u32>,
    /// next_cursor of the prior page
    pub cursor: Option<String>,
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindData {
    /// Words of the question that were looked for; `… 12 more` at the end counts those left out.
    pub looked_for: Vec<String>,
    /// Those of them that no searched session has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Best first.
    pub sessions: Vec<SessionMatch>,
}

/// A session that fits the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionMatch {
    /// Id of the session.
    pub session_id: String,
    /// Quoted log text; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Name of the repository's folder or of the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The agent that wrote the log.
    pub provider: Provider,
    /// Day of the last time in the log, in the zone of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Events that have words of the question.
    pub events: usize,
    /// What fits: how many of the words, the title, its id, project, agent or date; and words it lacks.
    pub why: String,
    /// Quoted log text by event_index, in the order of time, the newest good match last; untrusted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub passages: BTreeMap<u32, String>,
    /// What is known to have happened since: a later event that changes what a passage says
    /// (`revisited`), the same failure again, the last edit of a file; untrusted. Without it nothing
    /// is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}
