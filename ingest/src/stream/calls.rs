//! Keeps calls that wait for their results, and results that came before their calls.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::recent::push_bounded;
use crate::text::sanitize::clean;

/// Maximum number of open calls remembered. Only damaged logs have more calls without a result.
const MAX_OPEN_CALLS: usize = 256;

/// A call that waits for its result. It is saved with the log's state, which is not masked, so its
/// texts are masked and its id is a hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenCall {
    /// See [`hash_call_id`].
    pub(super) id_hash: u64,
    pub(super) step: i32,
    pub(super) tool: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) command: String,
    pub(super) at: Option<i64>,
}

/// The columns that a tool result takes over from its call.
pub(super) struct CallColumns {
    pub(super) step: i32,
    /// The tool of the call; `None` on the call itself.
    pub(super) tool: Option<String>,
    pub(super) files: Vec<String>,
    /// The command line; empty if the call runs none.
    pub(super) command: String,
    /// Duration of the call in milliseconds, if it is known.
    pub(super) duration_ms: Option<i64>,
}

/// Returns the hash by which a result finds its call.
pub(super) fn hash_call_id(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// Open calls, in the order in which they were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct OpenCalls(VecDeque<OpenCall>);

impl OpenCalls {
    /// Remembers a call. If there are too many, the oldest is forgotten.
    pub(super) fn add_call(&mut self, call: OpenCall) {
        push_bounded(&mut self.0, MAX_OPEN_CALLS, call);
    }

    /// Returns whether a call with this id waits for its result.
    pub(super) fn is_open(&self, id: &str) -> bool {
        let id_hash = hash_call_id(id);
        self.0.iter().any(|call| call.id_hash == id_hash)
    }

    /// Returns the command of the last call with this id.
    pub(super) fn command_of(&self, id: &str) -> Option<&str> {
        let id_hash = hash_call_id(id);
        let call = self.0.iter().rfind(|call| call.id_hash == id_hash)?;
        Some(call.command.as_str())
    }

    /// Removes and returns the last call with this id.
    pub(super) fn take_call(&mut self, id: &str) -> Option<OpenCall> {
        let id_hash = hash_call_id(id);
        let at = self.0.iter().rposition(|call| call.id_hash == id_hash)?;
        self.0.remove(at)
    }
}

/// Number of events after a result within which its call may follow.
const EARLY_REACH: i32 = 256;

/// Results that came before their calls: several tools may write to a log at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct EarlyResults(VecDeque<EarlyResult>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct EarlyResult {
    /// See [`hash_call_id`].
    id_hash: u64,
    /// Index of the event.
    index: i32,
}

impl EarlyResults {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers the result at `index`, and forgets those for which no call came.
    pub(super) fn add_result(&mut self, id: &str, index: i32) {
        self.0.retain(|result| result.index + EARLY_REACH > index);
        self.0.push_back(EarlyResult { id_hash: hash_call_id(id), index });
    }

    /// Removes the result of a call at `call_index`, and returns the index of the result.
    pub(super) fn take_result(&mut self, id: &str, call_index: i32) -> Option<i32> {
        let id_hash = hash_call_id(id);
        let at = self.0.iter().position(|result| {
            result.id_hash == id_hash && result.index + EARLY_REACH > call_index
        })?;
        self.0.remove(at).map(|result| result.index)
    }

    /// Returns whether the call of a result may still come at `next_index`.
    pub(super) fn is_call_expected(&self, next_index: i32) -> bool {
        self.0.iter().any(|result| result.index + EARLY_REACH > next_index)
    }
}

/// Returns the paths cleaned of invisible characters. A path with line breaks becomes one path per
/// line.
pub(super) fn split_paths(files: &[String]) -> Vec<String> {
    let mut paths = Vec::with_capacity(files.len());
    for file in files {
        let cleaned = clean(file);
        paths.extend(cleaned.lines().filter(|path| !path.is_empty()).map(str::to_owned));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_of_an_early_result_is_expected_for_a_while() {
        let mut results = EarlyResults::default();
        results.add_result("a", 10);
        assert!(results.is_call_expected(10 + EARLY_REACH - 1));
        assert!(!results.is_call_expected(10 + EARLY_REACH));
        assert_eq!(results.take_result("b", 11), None);
        assert_eq!(results.take_result("a", 10 + EARLY_REACH), None);
        assert_eq!(results.take_result("a", 11), Some(10));
        assert_eq!(results.take_result("a", 12), None);
        results.add_result("a", 20);
        results.add_result("b", 20 + EARLY_REACH);
        assert_eq!(results.0.len(), 1);
    }

    /// What is kept of a call must be what a result finds in the state that was saved between them.
    #[test]
    fn files_of_a_call_are_the_same_after_they_were_saved() {
        let files = ["src/a\rb.rs", "\u{200b}", "c d\u{2028}e.rs", "x.rs"].map(str::to_owned);
        let files = split_paths(&files);
        assert_eq!(files, ["src/a", "b.rs", "c d", "e.rs", "x.rs"]);
        let (id_hash, command) = (hash_call_id("a"), String::new());
        let call = OpenCall { id_hash, step: 1, tool: None, files, command, at: None };
        let saved = serde_json::to_string(&call).expect("writes");
        assert_eq!(serde_json::from_str::<OpenCall>(&saved).expect("reads"), call);
    }
}
