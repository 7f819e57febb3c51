//! The parts of an event that a decoder knows.

use schemas::price::PriceMode;
use schemas::session::EventRow;
use schemas::{EventType, Timestamp, Usage};

use crate::text::names::truncate_name;

/// The fields of an event that a decoder knows; the stream adds the rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecodedEvent<'a> {
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
    /// Cost of these tokens in US dollars. `None` if the log states none.
    pub cost: Option<f64>,
    /// The mode in which the request was served, as the log gives it.
    pub mode: ModeWords<'a>,
    /// The API request that the event belongs to. `None` if the log does not name it.
    pub request_id: Option<&'a str>,
    /// Time in microseconds since the epoch. `None` means the time of the record.
    pub timestamp: Option<i64>,
}

impl<'a> DecodedEvent<'a> {
    /// Returns the id of the call that the event answers, if it is a result.
    pub(super) fn answered_call(&self, kind: EventType) -> Option<&'a str> {
        self.tool_call_id.filter(|_| kind == EventType::ToolResult).map(truncate_name)
    }
}

/// The words of a log about the mode in which a request was served, which decides the price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModeWords<'a> {
    /// The service tier, such as `default` or `priority`.
    pub service_tier: Option<&'a str>,
    /// The speed, such as `standard` or `fast`.
    pub speed: Option<&'a str>,
    /// The place of inference, such as `us`.
    pub inference_geo: Option<&'a str>,
}

impl ModeWords<'_> {
    /// Returns the mode as the price table knows it.
    pub(crate) fn price_mode(self) -> PriceMode {
        PriceMode::from_log(self.service_tier, self.speed, self.inference_geo)
    }
}

/// Returns the mode of an event that was read back.
pub(crate) fn mode_words(event: &EventRow) -> ModeWords<'_> {
    ModeWords {
        service_tier: event.service_tier.as_deref(),
        speed: event.speed.as_deref(),
        inference_geo: event.inference_geo.as_deref(),
    }
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
