//! Calls that wait for their results: what a result takes over from its call.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Calls without a result that are remembered; more are open only in damaged logs.
const REMEMBERED: usize = 256;

/// A call that waits for its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenCall {
    pub(super) id: String,
    pub(super) step: i32,
    pub(super) tool: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "lines")]
    pub(super) files: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) command: String,
    pub(super) at: Option<i64>,
}

/// A list of paths as a text with one to a line, as stores have it.
mod lines {
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(paths: &[String], to: S) -> Result<S::Ok, S::Error> {
        paths.join("\n").serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let text = String::deserialize(from)?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// Calls in the order in which they were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct OpenCalls(VecDeque<OpenCall>);

impl OpenCalls {
    pub(super) fn open(&mut self, call: OpenCall) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(call);
    }

    /// Whether a call of this id waits.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.0.iter().any(|call| call.id == id)
    }

    /// The last call of this id, which waits no longer.
    pub(super) fn close(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.0.iter().rposition(|call| call.id == id)?;
        self.0.remove(at)
    }
}
