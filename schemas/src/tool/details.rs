//! `get_session_details`: one session at a chosen level.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::Event;
use super::list::Session;
use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;
use crate::event::EventType;
use crate::provider::Provider;
use crate::usage::Usage;

/// The registry row of `get_session_details`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "get_session_details",
    title: "Get session details",
    description: "Shows one session. detail_level: summary (first prompt, last answer, tools, failures, open ends; 5-10 KB), \
turns (each prompt with its answer and counts; 5-30 KB a page), steps (each model response with its tool calls and results, shortened; 50-90 KB a page), \
full (whole events; up to 96 KB a page). Narrow with turns '3-5', or last 10 for the last steps.",
    risk: Risk::Read,
    category: Category::Read,
    action_template: "Read session {session_id}",
    command: "show",
    position: Some("session_id"),
    answers: "one session as summary, turns, steps or whole events",
    use_when: &[
        "what happened in that session",
        "what did I do before the compaction",
        "continue where the last session ended",
    ],
    examples: &[
        ToolExample {
            description: "The second and third prompt of a session with their answers",
            arguments: r#"{"session_id": "9ae82b3a", "detail_level": "turns", "turns": "2-3"}"#,
            command: "sessions show 9ae82b3a --detail-level turns --turns 2-3",
        },
        ToolExample {
            description: "The last three steps of a session",
            arguments: r#"{"session_id": "9ae82b3a", "last": 3}"#,
            command: "sessions show 9ae82b3a --last 3",
        },
        ToolExample {
            description: "A session at a glance",
            arguments: r#"{"session_id": "9ae82b3a"}"#,
            command: "sessions show 9ae82b3a",
        },
    ],
    errors: &[
        ErrorCode::InvalidDetailLevel,
        ErrorCode::InvalidSessionId,
        ErrorCode::SessionNotFound,
        ErrorCode::AmbiguousSessionPrefix,
        ErrorCode::InvalidCursor,
    ],
    input: schema::input_schema::<DetailArgs>,
    output: schema::output_schema::<DetailData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetailArgs {
    /// Session id; any unique prefix, 'current' or 'last'
    pub session_id: String,
    /// How much to show; with last: steps
    #[schemars(extend("default" = "summary"))]
    pub detail_level: Option<DetailLevel>,
    /// Also show the model's reasoning (levels steps and full)
    #[schemars(extend("default" = false))]
    pub include_reasoning: Option<bool>,
    /// Only these turns: '4', '3-5', '3-'
    pub turns: Option<String>,
    /// Only the last N steps (with detail_level turns: turns)
    #[schemars(range(min = 1, max = 500))]
    pub last: Option<u32>,
    /// next_cursor of the prior page
    pub cursor: Option<String>,
    /// Max entries per page
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<u32>,
}

closed_enum! {
    /// How much of a session to show.
    DetailLevel {
        /// First prompt, last prompt and answer, tools used and failures.
        Summary = "summary",
        /// Each prompt with its answer and counts.
        Turns = "turns",
        /// Each model response with its tool calls and results, shortened.
        Steps = "steps",
        /// Whole events.
        Full = "full",
    }
}

/// Answer; which lists are there depends on `detail_level`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DetailData {
    /// The session.
    pub session: Session,
    /// The overview, at the level `summary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The turns, at the level `turns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Vec<Turn>>,
    /// The model responses, at the level `steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    /// The whole events, at the level `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
}

/// A session at a glance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The first prompt that is not a slash command, or else the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<Excerpt>,
    /// The last prompt, if it is not the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_prompt: Option<Excerpt>,
    /// The assistant's last message with a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<Excerpt>,
    /// Most used first.
    pub tools: Vec<ToolCount>,
    /// The last failures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Excerpt>,
    /// What other sessions are known to have done since, as in search_sessions; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Where the context was compacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<Excerpt>,
    /// How the session ended, and what it left open.
    #[serde(skip_serializing_if = "SessionEnd::is_empty")]
    pub end: SessionEnd,
    /// The session that left open what this one continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continuation>,
    /// The session that continues what this one left open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continued_by: Option<Continuation>,
    /// Sessions that derive from this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Child>,
}

/// How a session ended, and what it left open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionEnd {
    /// The last calls, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_calls: Vec<CallGlance>,
    /// Calls after the last prompt or message that have no result, the last one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished_calls: Vec<CallGlance>,
    /// Id of the last prompt, if it has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered_prompt: Option<String>,
    /// The last plan, if the user rejected it and nothing was edited since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_plan: Option<CallGlance>,
    /// What the agent's plan or to-do tool still lists as not done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
    /// Number of open to-dos that are not shown.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub todos_omitted: usize,
    /// What the summary of the last compaction names as open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Excerpt>,
    /// Files that the log shows as uncommitted. `None` if it shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Uncommitted>,
}

impl SessionEnd {
    /// Returns true if nothing is known about the end.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

closed_enum! {
    /// How a call ended.
    CallState {
        /// The log has no result for the call.
        Open = "open",
        /// The result is not marked as failed.
        Worked = "worked",
        /// The result is marked as failed.
        Failed = "failed",
        /// The call was denied, interrupted or cancelled.
        Stopped = "stopped",
    }
}

/// A call in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallGlance {
    /// Id of the call's event.
    pub event_id: String,
    /// Turn of the call.
    pub turn_index: u32,
    /// The tool, as the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// What was called: the command line, the file, or the arguments, shortened. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How the call ended.
    pub state: CallState,
}

/// A to-do of the agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Todo {
    /// Id of the call that set it last.
    pub event_id: String,
    /// Turn of this call.
    pub turn_index: u32,
    /// What is to be done, shortened. Untrusted.
    pub text: String,
    /// Its state, as the agent names it.
    pub state: String,
}

/// Files that the log shows as not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Uncommitted {
    /// Id of the result of `git status` that lists `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Files that the last `git status` lists, unless a command may have changed that since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Id of the last edit after that `git status`, or after the last commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit_event_id: Option<String>,
    /// Files in the session's folder that were edited since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// Number of files that are not shown.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub omitted: usize,
}

/// A session that continues another one, or is continued by it, although no log says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Continuation {
    /// Id of the other session.
    pub session_id: String,
    /// The agent of the other session.
    pub provider: Provider,
    /// Its title; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the later session has in common with the earlier one.
    pub reason: String,
}

/// A session that derives from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Child {
    /// Id of the related session.
    pub session_id: String,
    /// How it is related to its parent.
    pub relation: String,
    /// Its title; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A tool and how often it was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolCount {
    /// The tool, as the agent names it.
    pub tool_name: String,
    /// Number of calls.
    pub calls: usize,
    /// Number of results that the log marks as failed.
    pub errors: usize,
}

/// The beginning of an event's text; at the level `turns` its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Excerpt {
    /// Id of the event: `<session_id>:<event_index>`.
    pub event_id: String,
    /// Type of the event.
    pub event_type: EventType,
    /// Kind of a notification, or the agent's own type of record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// The tool, as the agent names it. `None` if the event is not about a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Whether the log marks a tool result as failed. `None` if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// In a summary, where the turns are not at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_index: Option<u32>,
    /// Quoted log text; untrusted.
    pub text: String,
    /// Characters left out: at the end, or where the text has `[…]`.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub omitted: usize,
}

/// One prompt and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Turn {
    /// The turn; 0 is before the first prompt.
    pub turn_index: u32,
    /// First and last event.
    pub event_range: [u32; 2],
    /// Earliest time in the turn, as RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Milliseconds between the earliest and the latest time in the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// The prompt. `None` if the turn has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Excerpt>,
    /// The last message of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Excerpt>,
    /// Number of model responses.
    pub steps: usize,
    /// Number of tool calls.
    pub tool_calls: usize,
    /// Number of tool results that the log marks as failed.
    pub tool_errors: usize,
    /// Token counts of the turn, without those of copied events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// On a branch that a rewind left behind.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_abandoned: bool,
}

/// One model response with its tool calls and results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Turn of the response.
    pub turn_index: u32,
    /// The model response, counted over the session; 0 for events outside of one.
    pub step_index: u32,
    /// First time in the step, as RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Token counts of the step, without those of copied events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The events that are shown at this level, shortened.
    pub events: Vec<Excerpt>,
}
