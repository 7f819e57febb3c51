//! The settings and the report of a pull.

use schemas::Timestamp;
use serde::Serialize;

/// Which sessions are imported; `None` selects all.
#[derive(Debug, Clone, Default)]
pub struct PullFilter {
    /// A part of the user's name.
    pub user: Option<String>,
    /// A part of the working directory or the name of the project.
    pub project: Option<String>,
    /// The time at or after which a session ended.
    pub since: Option<Timestamp>,
    /// The time before which a session ended.
    pub until: Option<Timestamp>,
    /// True if projects that the settings or a marker file exclude are left out.
    pub skips_excluded: bool,
    /// True if the logs that came with sessions go into the archive.
    pub takes_logs: bool,
}

impl PullFilter {
    /// Returns true if a session that ended then is imported, in microseconds since the epoch.
    pub(in crate::lake) fn includes_time(&self, ended_at: Option<i64>) -> bool {
        self.since.is_none_or(|since| ended_at.is_some_and(|end| end >= since.0))
            && self.until.is_none_or(|until| ended_at.is_some_and(|end| end < until.0))
    }

    /// Returns true if it selects no time that a filter with these times does not select: a `since` that
    /// moves with the clock selects less every day.
    pub(in crate::lake) fn is_within(&self, since: Option<i64>, until: Option<i64>) -> bool {
        since.is_none_or(|since| self.since.is_some_and(|own| own.0 >= since))
            && until.is_none_or(|until| self.until.is_some_and(|own| own.0 <= until))
    }
}

/// What of the sessions is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullContent {
    /// The sessions with all their events.
    Whole,
    /// Only the rows of the sessions. Their events are added later, where they are needed.
    Rows,
}

/// What a pull did.
#[derive(Debug, Default, Serialize)]
pub struct PullReport {
    pub source: String,
    /// Machines that have published something.
    pub machines: usize,
    /// Sessions that were imported, new or again.
    pub imported: usize,
    /// Their events.
    pub events: u64,
    /// Bytes of the objects that the lake has of them.
    pub bytes: u64,
    /// Logs that were added to the archive, new or again.
    pub logs: usize,
    /// Sessions that are in the store as they are in the lake.
    pub unchanged: usize,
    /// Sessions that were removed from the store, because the lake no longer has them.
    pub removed: usize,
    /// Sessions that the filters leave out.
    pub filtered: usize,
    /// Sessions of projects that the settings or a marker file exclude.
    pub excluded: usize,
    /// Sessions whose own log is in the store, and those that were forgotten.
    pub known_here: usize,
    /// Events of imported sessions that are copies of forgotten ones and have no text here.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub forgotten_events: u64,
    /// What could not be imported, and why.
    pub problems: Vec<String>,
    pub requests: u64,
}

impl PullReport {
    /// Returns whether the store changed.
    pub fn has_changes(&self) -> bool {
        self.imported > 0 || self.logs > 0 || self.removed > 0
    }
}
