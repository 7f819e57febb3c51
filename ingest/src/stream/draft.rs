//! The parts of an event that a decoder knows.

use schemas::{Timestamp, Usage};

/// The fields of an event that a decoder knows; the stream adds the rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Draft<'a> {
    pub subtype: Option<&'a str>,
    pub text: &'a str,
    pub tool_name: Option<&'a str>,
    pub tool_call_id: Option<&'a str>,
    /// Paths that the call's arguments name.
    pub files: &'a [String],
    /// The command line of a call that runs one; empty if there is none.
    pub command: &'a str,
    /// The subagent that the call started; set on its result.
    pub spawned_agent_id: Option<&'a str>,
    pub is_error: Option<bool>,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<i64>,
    pub usage: Usage,
    pub request_id: Option<&'a str>,
    /// Overrides the record's time.
    pub timestamp: Option<i64>,
}

/// The position of a record in its log.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordAt {
    pub offset: u64,
    pub length: u64,
    /// 1-based line.
    pub line: u64,
}

/// Parses an RFC 3339 time of a log into microseconds.
pub fn micros(text: Option<&str>) -> Option<i64> {
    Timestamp::parse(text?).map(|time| time.0)
}
