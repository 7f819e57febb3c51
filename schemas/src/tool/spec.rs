//! Describes a tool as clients see it: the registry row that the file of each tool fills in.

use serde_json::Value;

use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;

/// One tool as clients see it. No field has a default: every row gives all of them. The served tool,
/// `tool_metadata`, the dashdash blocks, `--ai-help`, SKILL.md, the README's table and
/// `docs/mcp.md` are made from it.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    /// Name of the tool, by which clients call it.
    pub name: &'static str,
    /// Name of the tool for people.
    pub title: &'static str,
    /// Description for models, at most 2 KB. Its first sentence is the purpose.
    pub description: &'static str,
    /// The worst that a call can do to what is stored.
    pub risk: Risk,
    /// What the tool is about, for the dashdash block.
    pub category: Category,
    /// What a call does, in one line; `{argument}` is replaced by the argument's value.
    pub action_template: &'static str,
    /// The command that does the same.
    pub command: &'static str,
    /// The argument that the command takes without a flag. `None` if every argument has one.
    pub position: Option<&'static str>,
    /// What the tool answers, in one line for tables.
    pub answers: &'static str,
    /// Requests that the tool is for, as users word them.
    pub use_when: &'static [&'static str],
    /// Calls that work on the sample sessions.
    pub examples: &'static [ToolExample],
    /// Errors that the tool may return in addition to [`COMMON_ERRORS`].
    pub errors: &'static [ErrorCode],
    /// Schema of the arguments.
    pub input: fn() -> Value,
    /// Schema of the answer's `data`.
    pub output: fn() -> Value,
}

impl ToolSpec {
    /// Returns whether a call changes nothing. Whether it may remove or replace what is stored is the
    /// opposite. The same call twice has the same effect as once, and none reaches beyond this machine.
    pub fn is_read_only(&self) -> bool {
        self.risk == Risk::Read
    }

    /// Returns all errors that the tool may return.
    pub fn all_errors(&self) -> impl Iterator<Item = ErrorCode> {
        self.errors.iter().chain(COMMON_ERRORS).copied()
    }
}

/// Returns the flag of an argument on a command line. A list such as `session_ids` is given by
/// `--session-id`, which may be repeated.
pub fn flag_name(argument: &str) -> String {
    match argument {
        "group_by" => "by".to_owned(),
        "provider" => "agent".to_owned(),
        _ => argument
            .strip_suffix('s')
            .filter(|name| name.ends_with("id"))
            .unwrap_or(argument)
            .replace('_', "-"),
    }
}

closed_enum! {
    /// What a tool is about.
    Category {
        /// Finds events.
        Search = "search",
        /// Shows sessions and events.
        Read = "read",
        /// Counts and sums.
        Statistics = "statistics",
        /// Explains what happened in sessions.
        Analysis = "analysis",
        /// Changes labels and notes.
        Labels = "labels",
        /// Describes the tools.
        Help = "help",
    }
}

closed_enum! {
    /// The worst that a call can do to what is stored. `tool_metadata` calls it `category`, and
    /// dashdash `operationType`.
    Risk {
        /// A call only reads.
        Read = "read",
        /// A call may add or change something.
        Write = "write",
        /// A call may delete something.
        Delete = "delete",
    }
}

impl Risk {
    /// Returns the value of `riskLevel`.
    pub const fn level(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Delete => 3,
        }
    }
}

/// A call and the command that does the same.
#[derive(Debug, Clone, Copy)]
pub struct ToolExample {
    /// What the call is for, in one line.
    pub description: &'static str,
    /// The arguments as JSON.
    pub arguments: &'static str,
    /// The whole command line, beginning with `sessions`.
    pub command: &'static str,
}

/// The errors that every tool may return.
pub const COMMON_ERRORS: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::IndexEmpty,
    ErrorCode::RateLimitExceeded,
    ErrorCode::StoreUnavailable,
    ErrorCode::StoreDamaged,
    ErrorCode::InternalError,
];
