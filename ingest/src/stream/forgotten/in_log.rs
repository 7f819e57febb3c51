//! Which records of one reading of a log are copies of forgotten ones, and the facts by which they are
//! found.

use std::collections::HashSet;

use super::record::{MarkKey, RecordFacts};

/// The records of one reading of a log that are copies of forgotten ones.
#[derive(Debug, Default)]
pub(crate) struct ForgottenInLog {
    /// Numbers of the records.
    pub(crate) records: HashSet<u64>,
    /// Keyed hashes of the titles of the forgotten sessions.
    pub(crate) titles: HashSet<u64>,
    pub(crate) key: MarkKey,
}

impl ForgottenInLog {
    /// Returns whether no record of the log is a copy of a forgotten one.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn has_record(&self, number: u64) -> bool {
        self.records.contains(&number)
    }

    pub(crate) fn has_title(&self, title: &str) -> bool {
        !self.titles.is_empty() && self.titles.contains(&self.key.mark_title(title))
    }
}

/// Collects the facts about the records of a reading.
#[derive(Debug, Default)]
pub(crate) struct RecordProbe {
    pub(crate) facts: Vec<RecordFacts>,
    /// True if the texts of records that have an identity are needed as well.
    pub(crate) needs_texts: bool,
}
