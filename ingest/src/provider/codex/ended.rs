//! Remembers how calls ended, as the client reports it before the output that the model sees. The
//! output rounds the duration to a tenth of a second, or shows neither the duration nor the
//! failure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::stream::{RecentIds, push_bounded};
use crate::text::json::{JsonFields, Value};

/// Maximum number of calls that ended but have no output yet. Only damaged logs have more.
const MAX_ENDED_CALLS: usize = 16;

/// The end of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CallEnd {
    /// Id of the call.
    call: String,
    pub(super) duration_ms: Option<i64>,
    /// Whether the call failed, if the end says so.
    pub(super) is_error: Option<bool>,
}

impl CallEnd {
    /// Reads the end of a call.
    pub(super) fn from_event(end: Value<'_>, call: &str) -> Self {
        Self {
            call: call.to_owned(),
            duration_ms: end.object("duration").and_then(parse_duration_ms),
            is_error: end
                .object("result")
                .and_then(read_mcp_failure)
                .or((end.flag("success") == Some(false)).then_some(true)),
        }
    }
}

/// Parses a duration in seconds and nanoseconds into milliseconds.
fn parse_duration_ms(duration: Value<'_>) -> Option<i64> {
    let seconds = duration.int("secs")?;
    let nanos = duration.int("nanos")?;
    seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000)
}

/// Returns whether a call failed according to the result of an MCP server, or `None` for results of
/// other tools.
fn read_mcp_failure(result: Value<'_>) -> Option<bool> {
    if result.field("Err").is_some() {
        return Some(true);
    }
    let answer = match result.field("content") {
        Some(_) => result,
        None => result.object("Ok")?,
    };
    Some(answer.flag("isError") == Some(true))
}

/// Maximum number of answered calls that are remembered. A background command ends many calls
/// later.
const MAX_ANSWERED_CALLS: usize = 256;

/// The calls that were answered last. Their ends may come late.
pub(super) type AnsweredCalls = RecentIds<MAX_ANSWERED_CALLS>;

/// The ends of the calls that ended last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct EndedCalls(VecDeque<CallEnd>);

impl EndedCalls {
    /// Remembers the end of a call.
    pub(super) fn remember(&mut self, end: Value<'_>, call: Option<&str>) {
        let Some(call) = call else { return };
        self.0.retain(|ended| ended.call != call);
        push_bounded(&mut self.0, MAX_ENDED_CALLS, CallEnd::from_event(end, call));
    }

    /// Removes and returns the end of a call, or an empty one if there is none.
    pub(super) fn take(&mut self, call: Option<&str>) -> CallEnd {
        let at = self.0.iter().position(|ended| Some(ended.call.as_str()) == call);
        at.and_then(|at| self.0.remove(at)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{LineItem, Parser};

    #[test]
    fn the_last_end_of_a_call_counts_once() {
        let mut calls = EndedCalls::default();
        for event in [
            r#"{"call_id":"a","duration":{"secs":9,"nanos":0},"exit_code":0}"#,
            r#"{"call_id":"a","duration":{"secs":1,"nanos":49995000},"exit_code":0}"#,
            r#"{"call_id":"b","result":{"Ok":{"isError":true,"content":[]}}}"#,
            r#"{"call_id":"c","result":{"Ok":{"content":[]}}}"#,
            r#"{"call_id":"d","result":{"Err":"no such tool"}}"#,
            r#"{"duration":{"secs":1,"nanos":0}}"#,
        ] {
            Parser::default().for_each_item(event.as_bytes(), &mut |found| {
                let LineItem::Object(event, _) = found else { panic!("an object") };
                calls.remember(event, event.non_empty("call_id"));
            });
        }
        let mut told = |call| {
            let ended = calls.take(call);
            (ended.duration_ms, ended.is_error)
        };
        assert_eq!(told(Some("a")), (Some(1049), None));
        assert_eq!(told(Some("a")), (None, None));
        assert_eq!(told(Some("b")), (None, Some(true)));
        assert_eq!(told(Some("c")), (None, Some(false)));
        assert_eq!(told(Some("d")), (None, Some(true)));
        assert_eq!(told(None), (None, None));
    }
}
