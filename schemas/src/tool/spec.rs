//! Describes a tool as clients see it: the registry row that the file of each tool fills in.

use serde_json::Value;

use crate::closed_enum::closed_enum;
use crate::error::ErrorCode;

/// One tool as clients see it. Nothing is defaulted: every row says everything. The served tool,
/// `tool_metadata`, the dashdash blocks, `--ai-help`, SKILL.md, the README's table and
/// `docs/mcp.md` are made from it.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    /// Name of the tool, by which clients call it.
    pub name: &'static str,
    /// Name of the tool for people.
    pub title: &'static str,
    /// First sentence is the purpose; at most 2 KB.
    pub description: &'static str,
    /// Hint for clients: true if a call changes nothing.
    pub read_only: bool,
    /// Hint for clients: true if a call may remove or replace what is stored.
    pub destructive: bool,
    /// Hint for clients: true if the same call twice has the same effect as once.
    pub idempotent: bool,
    /// Hint for clients: true if a call reaches beyond this machine.
    pub open_world: bool,
    /// Largest answer in characters, for clients that cap results.
    pub max_result_chars: u32,
    /// The worst that a call can do to what is stored.
    pub risk: Risk,
    /// What the tool is about.
    pub category: Category,
    /// What a call does, in a line; `{argument}` stands for the argument's value.
    pub action_template: &'static str,
    /// The command that does the same.
    pub command: &'static str,
    /// What it answers, in a line for tables.
    pub answers: &'static str,
    /// Requests it is for, as people word them.
    pub use_when: &'static [&'static str],
    /// Calls that work on the sample sessions.
    pub examples: &'static [Example],
    /// What can go wrong, beside [`COMMON_ERRORS`].
    pub errors: &'static [ErrorCode],
    /// Earlier names, which still work.
    pub aliases: &'static [Alias],
    /// Schema of the arguments.
    pub input: fn() -> Value,
    /// Schema of the answer's `data`.
    pub output: fn() -> Value,
}

impl ToolSpec {
    /// Every code that it may answer.
    pub fn all_errors(&self) -> impl Iterator<Item = ErrorCode> {
        self.errors.iter().chain(COMMON_ERRORS).copied()
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

/// The worst that a call can do to what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// A call only reads.
    Read,
    /// A call may add or change something.
    Write,
    /// A call may delete something.
    Delete,
}

impl Risk {
    /// As `riskLevel` has it.
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
pub struct Example {
    /// What the call is for, in one line.
    pub description: &'static str,
    /// JSON.
    pub arguments: &'static str,
    /// The whole command line, from `sessions` on.
    pub command: &'static str,
}

/// An earlier name of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    /// The earlier name.
    pub name: &'static str,
    /// The day from which it may be gone.
    pub sunset: &'static str,
}

/// What every tool may answer.
pub const COMMON_ERRORS: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::IndexEmpty,
    ErrorCode::RateLimitExceeded,
    ErrorCode::StoreUnavailable,
    ErrorCode::StoreDamaged,
    ErrorCode::InternalError,
];
