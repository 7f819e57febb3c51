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
        let at = self.0.iter().rposition(|ended| Some(ended.call.as_str()) == call);
        at.and_then(|at| self.0.remove(at)).unwrap_or_default()
    }
}
