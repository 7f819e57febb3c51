//! What the client tells of a call when it ends, before the output that the model is shown: that
//! rounds the time to a tenth of a second, or says neither how long it took nor that it failed.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::json::{Fields, Value};

/// Calls whose output is still to come; more are open only in damaged logs.
const REMEMBERED: usize = 16;

/// How a call ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ended {
    call: String,
    pub(super) duration_ms: Option<i64>,
    /// Of a tool of an MCP server.
    pub(super) is_error: Option<bool>,
}

/// The calls that ended last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct EndedCalls(VecDeque<Ended>);

impl EndedCalls {
    /// Notes an `exec_command_end` or `mcp_tool_call_end`.
    pub(super) fn note(&mut self, event: Value<'_>) {
        let Some(call) = event.non_empty("call_id") else { return };
        self.0.retain(|ended| ended.call != call);
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        let result = event.object("result");
        let is_error = result.and_then(|result| match result.field("Err") {
            Some(_) => Some(true),
            None => result.object("Ok").map(|ok| ok.flag("isError") == Some(true)),
        });
        let duration_ms = event.object("duration").and_then(|took| {
            let (seconds, nanos) = (took.int("secs")?, took.int("nanos")?);
            seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000)
        });
        self.0.push_back(Ended { call: call.to_owned(), duration_ms, is_error });
    }

    /// What was told of a call.
    pub(super) fn take(&mut self, call: Option<&str>) -> Ended {
        let at = self.0.iter().position(|ended| Some(ended.call.as_str()) == call);
        at.and_then(|at| self.0.remove(at)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Found, Parser};

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
            Parser::default().each(event.as_bytes(), &mut |found| {
                let Found::Object(event, _) = found else { panic!("an object") };
                calls.note(event);
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
