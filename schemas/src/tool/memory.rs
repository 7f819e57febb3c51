//! `sessions`: the one small tool of the profile `memory`, which answers with the other tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find::FindData;
use super::schema;
use super::search::Match;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::error::ErrorCode;
use crate::provider::Provider;

/// The row of `sessions`. It is not one of [`super::TOOLS`]: a server serves it if its user asks for it.
pub const SPEC: ToolSpec = ToolSpec {
    name: "sessions",
    title: "Recall past sessions",
    description: "Recalls what coding agents did in past sessions: finds, reads and explains them. query is a question in plain words \
(the sessions it is about, best first, and what the best one says; with session_id what that one says), \
an error as the terminal printed it (how it was fixed before), \
\"quoted phrases\", /regex/ or qualifiers such as is:error tool:Bash file:main.rs sort:oldest (the events that have them all, newest first), \
or ids: a session, events 'ID:14 ID:31' or a range 'ID:10-30'. Without query: session_id at a glance, or the newest sessions.",
    risk: Risk::Read,
    category: Category::Search,
    action_template: "Recall {query}",
    command: "find",
    position: Some("query"),
    answers: "what the tool says that the query calls for",
    use_when: &["what do past sessions say about X"],
    examples: &[
        ToolExample {
            description: "The sessions that a question is about, and what the best one says",
            arguments: r#"{"query": "where did a clone not share the retry budget", "limit": 2}"#,
            command: "sessions find where did a clone not share the retry budget --limit 2",
        },
        ToolExample {
            description: "How an error was fixed before",
            arguments: r#"{"query": "assertion failed: budget.remaining() == 3"}"#,
            command: "sessions analyze --query 'assertion failed: budget.remaining() == 3'",
        },
        ToolExample {
            description: "The second and third prompt of a session with their answers",
            arguments: r#"{"session_id": "9ae82b3a", "turns": "2-3"}"#,
            command: "sessions show 9ae82b3a --detail-level turns --turns 2-3",
        },
    ],
    errors: &[
        ErrorCode::InvalidQuery,
        ErrorCode::InvalidCursor,
        ErrorCode::InvalidSessionId,
        ErrorCode::SessionNotFound,
        ErrorCode::AmbiguousSessionPrefix,
        ErrorCode::InvalidEventId,
        ErrorCode::EventNotFound,
        ErrorCode::SearchTimeout,
    ],
    input: schema::input_schema::<MemoryArgs>,
    output: schema::output_schema::<MemoryData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryArgs {
    /// Question, error, exact words or id
    pub query: Option<String>,
    /// Only this session; any unique prefix, 'current' or 'last'
    pub session_id: Option<String>,
    /// Prompts and answers of these turns: '4', '3-5', '3-'
    pub turns: Option<String>,
    /// What failed and what fixed it, in the session or again and again
    #[schemars(extend("default" = false))]
    pub explain: Option<bool>,
    /// Part of the folder
    pub project: Option<String>,
    /// Only this agent: 'claude', 'codex', ...
    pub provider: Option<Provider>,
    /// Since '7d', a date or time (UTC)
    pub since: Option<String>,
    /// Before that time
    pub until: Option<String>,
    /// Entries per page
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<u32>,
    /// next_cursor of the prior page
    pub cursor: Option<String>,
}

/// Answer to a question over all sessions. Any other answer has the data of the tool that gives it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemoryData {
    /// What `search_sessions` answers.
    #[serde(flatten)]
    pub found: FindData,
    /// What the best session says about the question, as `search_events` answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<Match>,
}
