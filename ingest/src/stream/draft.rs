//! The parts of an event that a decoder knows.

use schemas::{Timestamp, Usage};

/// The fields of an event that a decoder knows; the stream adds the rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Draft<'a> {
    /// The kind of a notification, or the agent's own type of record. `None` if the type of the
    /// event says enough.
    pub subtype: Option<&'a str>,
    /// The text that a user would read, decoded and with real newlines.
    pub text: &'a str,
    /// The tool as the agent names it. On a result, `None` means the tool of the call.
    pub tool_name: Option<&'a str>,
    /// The id that joins a result with its call. `None` if the log gives none.
    pub tool_call_id: Option<&'a str>,
    /// Paths that the call's arguments name.
    pub files: &'a [String],
    /// The command line of a call that runs one; empty if there is none.
    pub command: &'a str,
    /// The subagent that the call started; set on its result.
    pub spawned_agent_id: Option<&'a str>,
    /// Whether the log marks a tool result as failed. `None` if the log does not say.
    pub is_error: Option<bool>,
    /// Exit code of a command. `None` if the log does not give it.
    pub exit_code: Option<i32>,
    /// Duration of a call in milliseconds, as the log gives it. If it is `None`, the stream computes
    /// the duration from the times of the call and its result.
    pub duration_ms: Option<i64>,
    /// Token counts of one API request, or a part of them.
    pub usage: Usage,
    /// The API request that the event belongs to. `None` if the log does not name it.
    pub request_id: Option<&'a str>,
    /// Time in microseconds since the epoch. `None` means the time of the record.
    pub timestamp: Option<i64>,
}

/// The position of a record in its log.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordAt {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// 1-based line; 0 if the position is not that of a line.
    pub line: u64,
}

/// Parses an RFC 3339 time of a log into microseconds since the epoch. Returns `None` for any other
/// text.
pub fn parse_micros(text: Option<&str>) -> Option<i64> {
    Timestamp::parse(text?).map(|time| time.0)
}
