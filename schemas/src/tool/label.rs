//! `update_session_labels`: labels and notes on sessions, the only thing that tools write.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::error::ErrorCode;

/// The registry row of `update_session_labels`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "update_session_labels",
    title: "Update session labels",
    description: "Adds and removes labels on sessions and sets a note, for up to 50 sessions in one call; the logs stay as they are. \
Find labelled sessions with list_sessions(label) or label:name in a search. \
Each update succeeds or fails alone.",
    risk: Risk::Write,
    category: Category::Labels,
    action_template: "Label sessions {updates}",
    command: "label",
    position: Some("session_ids"),
    answers: "which sessions were labelled; the only tool that writes, and only labels",
    use_when: &[
        "mark this session as the one that fixed the bug",
        "note why that approach was dropped",
    ],
    examples: &[ToolExample {
        description: "One session marked",
        arguments: r#"{"updates": [{"session_id": "9ae82b3a", "add": ["fixed"]}]}"#,
        command: "sessions label 9ae82b3a --add fixed",
    }],
    errors: &[
        ErrorCode::InvalidSessionId,
        ErrorCode::SessionNotFound,
        ErrorCode::AmbiguousSessionPrefix,
        ErrorCode::StoreBusy,
    ],
    input: schema::input_schema::<LabelArgs>,
    output: schema::output_schema::<LabelData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelArgs {
    /// What to change, in this order
    #[schemars(length(min = 1, max = 50))]
    pub updates: Vec<LabelUpdate>,
}

/// What is removed goes before what is added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelUpdate {
    /// Session id; any unique prefix
    pub session_id: String,
    /// Labels to add, up to 40 characters each
    pub add: Option<Vec<String>>,
    /// Labels to remove
    pub remove: Option<Vec<String>>,
    /// Note in place of the present one, up to 1000 characters; empty removes it
    pub note: Option<String>,
}

/// Answer: every update is in one of the lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabelData {
    /// The sessions that were changed.
    pub succeeded: Vec<Labelled>,
    /// The updates that failed.
    pub failed: Vec<Unlabelled>,
}

/// A session that was changed, with all its labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Labelled {
    /// Id of the session.
    pub session_id: String,
    /// Words of people and agents; untrusted.
    pub labels: Vec<String>,
}

/// An update that was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unlabelled {
    /// As it was given.
    pub session_id: String,
    /// The kind of error.
    pub code: ErrorCode,
    /// What is wrong and what to do next.
    pub message: String,
}
