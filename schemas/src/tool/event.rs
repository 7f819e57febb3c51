//! `get_event_details`: whole events by id, or a range of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;
use crate::event::EventType;
use crate::provider::Provider;
use crate::tool_kind::ToolKind;
use crate::usage::Usage;

/// The registry row of `get_event_details`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "get_event_details",
    title: "Get event details",
    description: "Returns whole events by id: full text, tool, error flag, duration, tokens, model, branch, and where the record is in the source log. \
event_ids: '<session_id>:<event_index>' (any unique session prefix), or a range 'ID:60-80' with shortened results. \
In the order asked; unknown ids in not_found. Text beyond max_chars continues on the next page by cursor.",
    risk: Risk::Read,
    category: Category::Read,
    action_template: "Read events {event_ids}",
    command: "event",
    position: Some("event_ids"),
    answers: "whole events by id, where each record is in its log, in pages when huge",
    use_when: &["show me exactly what that command printed", "what was the full diff of that edit"],
    examples: &[ToolExample {
        description: "A failed test run and the edit that followed it, without their places",
        arguments: r#"{"event_ids": ["9ae82b3a:14", "9ae82b3a:31"], "fields": ["text", "tool"], "max_chars": 4000}"#,
        command: "sessions event 9ae82b3a:14 9ae82b3a:31 --fields text --fields tool --max-chars 4000",
    }],
    errors: &[
        ErrorCode::InvalidEventId,
        ErrorCode::EventNotFound,
        ErrorCode::AmbiguousSessionPrefix,
        ErrorCode::InvalidCursor,
    ],
    input: schema::input_schema::<EventArgs>,
    output: schema::output_schema::<EventData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventArgs {
    /// Ids or ranges
    #[schemars(length(min = 1, max = 50))]
    pub event_ids: Vec<String>,
    /// All but shown by default
    pub fields: Option<Vec<EventField>>,
    /// Characters of text per page
    #[schemars(range(min = 100, max = 80000), extend("default" = 20000))]
    pub max_chars: Option<u32>,
    /// next_cursor of the prior page
    pub cursor: Option<String>,
}

closed_enum! {
    /// A group of fields that `fields` can choose.
    EventField {
        /// The text, and which part of it the page holds.
        Text = "text",
        /// The tool, its call id, files, command, linked event, exit code and duration.
        Tool = "tool",
        /// The token counts.
        Usage = "usage",
        /// The model and the git branch in force.
        Context = "context",
        /// Where the record is in the log.
        Source = "source",
        /// What readers see: a call or a notice in one line, and an edit as a diff. Only if named.
        Shown = "shown",
    }
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventData {
    /// The events, in the requested order.
    pub events: Vec<Event>,
    /// Requested ids that name no event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<String>,
}

/// One event, whole or a page of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// Id of the event: `<session_id>:<event_index>`.
    pub event_id: String,
    /// Id of the session.
    pub session_id: String,
    /// 0-based position in the session.
    pub event_index: u32,
    /// Turn of the event; 0 is before the first prompt.
    pub turn_index: u32,
    /// Model response that the event belongs to, counted over the session; 0 for none.
    pub step_index: u32,
    /// Type of the event.
    pub event_type: EventType,
    /// Kind of a notification, or the agent's own type of record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// Time as RFC 3339 in UTC. `None` if the log gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The agent that wrote the log.
    pub provider: Provider,
    /// Quoted log text; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Characters of the whole text, when only a part of it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_chars: Option<usize>,
    /// Where this part of the text begins, in characters, when not at 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_offset: Option<usize>,
    /// The tool, as the agent names it. `None` if the event is not about a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Kind of the tool. `None` if the event is not about a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_kind: Option<ToolKind>,
    /// The agent's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Files that the call names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Command line that the call runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The result of this call, or the call of this result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked_event_id: Option<String>,
    /// Whether the log marks a tool result as failed. `None` if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Exit code of a command. `None` if the log does not give it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Duration of the call in milliseconds. `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Token counts of an API request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model in force. `None` if the log does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The git branch in force. `None` if the log does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// True if the event was copied from another session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
    /// True if a subagent wrote the event inside this log.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_sidechain: bool,
    /// On a branch that a rewind left behind.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_abandoned: bool,
    /// Where the record is in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// A call or a notice in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// What the call changes in files, if it is an edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<EditDiff>,
}

/// The change of a call that edits or writes files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EditDiff {
    /// Number of added lines, as `sessions blame --edits` counts them.
    pub added: usize,
    /// Number of removed lines.
    pub removed: usize,
    /// The lines after `+`, `-` or a space; after `@@` a gap, after `***` a file. Empty for a file that
    /// is written as a whole.
    pub text: String,
}

/// Where a record is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Source {
    /// Path of the log, masked.
    pub path: String,
    /// Offset of the record in bytes.
    pub byte_offset: u64,
    /// Length of the record in bytes.
    pub byte_length: u64,
}
