//! `analyze_session`: what went wrong in a session and what fixed it, or what goes wrong again and
//! again over many sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::argument::OneOrMany;
use super::details::{Excerpt, ToolCount};
use super::list::Session;
use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};
use crate::closed_enum::closed_enum;
use crate::envelope::Severity;
use crate::error::ErrorCode;
use crate::event::EventType;
use crate::provider::Provider;

/// The registry row of `analyze_session`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "analyze_session",
    title: "Analyze session",
    description: "Explains a session: failures with the fix that worked, loops, slow calls, oversized results, \
context growth and what compactions lost, refusals, unfinished ends. \
Without session_id: errors that recur in the sessions that pass the filters, each with its latest \
fix. With query, an error text as the terminal printed it: how that error was fixed before. Most \
severe first.",
    risk: Risk::Read,
    category: Category::Analysis,
    action_template: "Analyze session {session_id}",
    command: "analyze",
    position: Some("session_id"),
    answers: "failures with their fixes, loops, slow and oversized calls, context growth, unfinished ends",
    use_when: &[
        "why did that session fail",
        "which errors come back again and again, and what fixed them",
        "how was this error fixed before",
    ],
    examples: &[
        ToolExample {
            description: "What went wrong in a session, and what fixed it",
            arguments: r#"{"session_id": "9ae82b3a"}"#,
            command: "sessions analyze 9ae82b3a",
        },
        ToolExample {
            description: "How an error was fixed before",
            arguments: r#"{"query": "assertion failed: budget.remaining() == 3"}"#,
            command: "sessions analyze --query 'assertion failed: budget.remaining() == 3'",
        },
    ],
    errors: &[
        ErrorCode::InvalidQuery,
        ErrorCode::InvalidSessionId,
        ErrorCode::SessionNotFound,
        ErrorCode::AmbiguousSessionPrefix,
    ],
    input: schema::input_schema::<AnalyzeArgs>,
    output: schema::output_schema::<AnalyzeData>,
};

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnalyzeArgs {
    /// Session id; any unique prefix, 'current', 'last' or 'last_failed'
    pub session_id: Option<String>,
    /// An error as the terminal printed it; 'file:PATH' for calls on a file
    pub query: Option<String>,
    /// Only errors of this tool or program: Edit, cargo
    pub tool: Option<String>,
    /// Only these checks
    pub checks: Option<OneOrMany<Check>>,
    /// Part of the folder
    pub project: Option<String>,
    /// Only this agent
    pub provider: Option<Provider>,
    /// Since '7d', a date or time (UTC)
    pub since: Option<String>,
    /// Before that time
    pub until: Option<String>,
    /// Findings per page
    #[schemars(range(min = 1, max = 100), extend("default" = 20))]
    pub limit: Option<u32>,
    /// next_cursor of the prior page
    pub cursor: Option<String>,
}

closed_enum! {
    /// A kind of finding.
    Check {
        /// Calls and requests that failed, and what worked afterwards.
        Failures = "failures",
        /// The same call with the same result again and again; edits that are undone and redone.
        Loops = "loops",
        /// Calls that took long, in absolute terms or for their kind.
        Slow = "slow",
        /// Results that fill the context.
        Oversized = "oversized",
        /// Growth of the context, and what compactions lost.
        Context = "context",
        /// Calls that were refused, and work that was stopped.
        Interruptions = "interruptions",
        /// What the session left open.
        Ends = "ends",
    }
}

closed_enum! {
    /// How the call that worked is related to the one that failed.
    FixMatch {
        /// The same command line; something else changed.
        SameCall = "same_call",
        /// Another command line for the same program, or one much like it.
        SimilarCommand = "similar_command",
        /// The same kind of call on the same file.
        SameFile = "same_file",
        /// The next call of the same tool with the same pattern, address, id or other target.
        SameTool = "same_tool",
    }
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AnalyzeData {
    /// The session; absent over several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// How many sessions were examined: of a long history, the newest ones.
    pub sessions: usize,
    /// With a query: the errors in it, without their varying parts. A finding with one of these as
    /// its signature is the same error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub looked_for: Vec<String>,
    /// How many findings there are on all pages.
    pub counts: Vec<CheckCount>,
    /// The context over the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Over several sessions: the tools that failed most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolCount>,
    /// Most severe first; over several sessions those that struck most sessions.
    pub findings: Vec<Finding>,
}

/// The findings of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckCount {
    /// The check.
    pub check: Check,
    /// Number of findings.
    pub findings: usize,
    /// Those of severity `error`.
    pub errors: usize,
    /// Those of severity `warning`.
    pub warnings: usize,
}

/// One finding, at the event where it shows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The check that made the finding.
    pub check: Check,
    /// Severity of the finding.
    pub severity: Severity,
    /// Why this is a finding, in words of this program.
    pub reason: String,
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
    /// Time as RFC 3339 in UTC. `None` if the log gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The tool, as the agent names it. `None` if the finding is not about a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// What was called: the command line, the file, or the arguments, shortened. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The telling part of the log's text, shortened. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The message without numbers, paths, hashes, times and quoted names: what recurs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// How often, when more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurrences: Option<usize>,
    /// In how many sessions, over several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
    /// How many of the occurrences were followed by a call that worked, over several sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<usize>,
    /// Duration in milliseconds, where the finding is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Size in bytes, where the finding is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Estimated from bytes, or counted by the provider where the check is `context`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
    /// Other events that belong to it: earlier occurrences, the call of a result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related_event_ids: Vec<String>,
    /// The call that worked after a failure. `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// What a compaction lost. `None` for other findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// The next call like the failed one that worked, and what changed between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fix {
    /// The call that worked.
    pub event_id: String,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_event_id: Option<String>,
    /// How the call that worked is related to the one that failed.
    #[serde(rename = "match")]
    pub matched: FixMatch,
    /// Calls between the two.
    pub calls_between: usize,
    /// What differs in its arguments, lines with - and +. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The last edits between the two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<FixEdit>,
    /// Earlier edits between the two that are not shown.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub edits_omitted: usize,
}

/// An edit between a failure and the call that worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FixEdit {
    /// The call that edited.
    pub event_id: String,
    /// Files that the call names.
    pub files: Vec<String>,
    /// Lines with - and +. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What came before a compaction and is not in its summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lost {
    /// Prompts of the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Excerpt>,
    /// Number of prompts that are not shown.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub prompts_omitted: usize,
    /// Files that calls named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Number of files that are not shown.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub files_omitted: usize,
}

/// How the context of the main agent grew: input, cache reads and cache writes of each request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Context {
    /// Number of requests.
    pub requests: usize,
    /// Tokens of the first request.
    pub first_tokens: i64,
    /// Tokens of the largest request.
    pub peak_tokens: i64,
    /// Event of the largest request.
    pub peak_event_id: String,
    /// Tokens of the last request.
    pub last_tokens: i64,
    /// Number of compactions.
    pub compactions: usize,
    /// `[event_index, tokens]` of requests spread over the session.
    pub series: Vec<[i64; 2]>,
}
