//! Remembers how calls ended, as the client reports it before the output that the model sees. The
//! output rounds the duration to a tenth of a second, or shows neither the duration nor the
//! failure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::text::json::{Fields, Value};

/// Maximum number of calls that ended but have no output yet. Only damaged logs have more.
const REMEMBERED: usize = 16;

/// The end of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ended {
    call: String,
    pub(super) duration_ms: Option<i64>,
    /// Whether the call failed, for tools of an MCP server.
    pub(super) is_error: Option<bool>,
}

impl Ended {
    /// Reads the end of a call.
    pub(super) fn of(end: Value<'_>, call: &str) -> Self {
        let result = end.object("result");
        let is_error = result.and_then(|result| match result.field("Err") {
            Some(_) => Some(true),
            None => {
                let answer =
                    result.field("content").map(|_| result).or_else(|| result.object("Ok"));
                answer.map(|answer| answer.flag("isError") == Some(true))
            }
        });
        let duration_ms = end.object("duration").and_then(|took| {
            let (seconds, nanos) = (took.int("secs")?, took.int("nanos")?);
            seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000)
        });
        Self { call: call.to_owned(), duration_ms, is_error }
    }
}

/// Maximum number of answered calls that are remembered. A background command ends many calls
/// later.
const ANSWERED: usize = 256;

/// Hashes of the ids of the calls that were answered last. Their ends may come late.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Answered(VecDeque<u64>);

impl Answered {
    pub(super) fn note(&mut self, call: Option<&str>) {
        let Some(call) = call else { return };
        if self.0.len() == ANSWERED {
            self.0.pop_front();
        }
        self.0.push_back(xxh3_64(call.as_bytes()));
    }

    pub(super) fn knows(&self, call: &str) -> bool {
        self.0.contains(&xxh3_64(call.as_bytes()))
    }
}

/// The ends of the calls that ended last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct EndedCalls(VecDeque<Ended>);

impl EndedCalls {
    /// Remembers the end of a call.
    pub(super) fn note(&mut self, end: Value<'_>, call: Option<&str>) {
        let Some(call) = call else { return };
        self.0.retain(|ended| ended.call != call);
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Ended::of(end, call));
    }

    /// Removes and returns the end of a call, or an empty one if there is none.
    pub(super) fn take(&mut self, call: Option<&str>) -> Ended {
        let at = self.0.iter().position(|ended| Some(ended.call.as_str()) == call);
        at.and_then(|at| self.0.remove(at)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Found, Parser};

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
                calls.note(event, event.non_empty("call_id"));
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
