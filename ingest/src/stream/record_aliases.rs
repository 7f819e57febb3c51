//! The earlier identities of records whose secrets were replaced in the log itself, so that they stay
//! the records that they were: for copies in other logs, for forgotten sessions, and for what a log
//! held before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The identities that records had before their secrets were replaced in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordAliases {
    /// From the identity that the bytes of a record give now to the one that it had at first.
    #[serde(default)]
    records: BTreeMap<u64, u64>,
}

impl RecordAliases {
    /// Returns the identity under which a record is known.
    pub(crate) fn resolve(&self, identity: u64) -> u64 {
        self.records.get(&identity).copied().unwrap_or(identity)
    }

    /// Adds pairs of the identity that a record has now and the one that it had at first.
    pub fn extend(&mut self, pairs: impl IntoIterator<Item = (u64, u64)>) {
        self.records.extend(pairs);
    }

    /// Returns whether no record has another identity than its bytes give.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}
