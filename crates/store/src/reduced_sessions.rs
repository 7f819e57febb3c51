//! The sessions whose texts were dropped: one small file next to the segments, so that a log that is
//! read again does not bring them back.
//!
//! ```text
//! {"version":3,"checksum":"..","content":{"announced":"transcripts after 90d","applied_at":1,
//!  "sessions":{"9ae82b3a":{"level":"transcripts","events":52,"until":1,"is_written":true}}}}
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::lock::StoreLock;
use super::error::{StoreError, UserFile};
use super::segment::session_summary::SessionSummary;

/// The file with these sessions.
const FILE: UserFile = UserFile::Reduced;

/// How much is kept of a session. Later ones keep less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepLevel {
    /// Everything.
    Full,
    /// Prompts, answers and notifications, and of calls the tool, the command and the files.
    Transcripts,
    /// No text: only what statistics need.
    Usage,
}

/// How much is kept of sessions, by id. Those that are not listed are kept whole.
pub type KeepLevels = HashMap<String, KeepLevel>;

/// The sessions of a store whose texts were dropped.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReducedSessions {
    /// The rules of retention that the user was told of; empty if there were none.
    #[serde(default)]
    pub announced: String,
    /// When the rules were last applied, in microseconds since the epoch; 0 if never.
    #[serde(default)]
    pub applied_at: i64,
    #[serde(default)]
    pub(super) sessions: BTreeMap<String, ReducedSession>,
}

/// One session whose texts were dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReducedSession {
    /// How much is kept of it.
    pub(super) level: KeepLevel,
    /// The number of its events when texts were dropped. Later ones are kept whole.
    pub(super) events: i64,
    /// The time of its last event then, in microseconds since the epoch. A newer decoder may make
    /// more events of the same records.
    pub(super) until: Option<i64>,
    /// False while the segments are being written, so that a killed run is repeated.
    pub(super) is_written: bool,
}

impl ReducedSessions {
    /// Reads the file of the store at `dir`.
    ///
    /// # Errors
    /// A file that cannot be read is an error: an ingest without it would bring texts back.
    pub(super) fn read(dir: &Path) -> Result<Self, StoreError> {
        FILE.read(dir)
    }

    /// Replaces the file of the store at `dir`, whose lock is `lock`.
    pub(super) fn write(&self, dir: &Path, lock: &StoreLock) -> Result<(), StoreError> {
        FILE.write(dir, lock, self)
    }

    /// Removes sessions from the list. Returns whether any of them was in it.
    pub(super) fn remove_sessions(&mut self, ids: &HashSet<String>) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|id, _| !ids.contains(id));
        self.sessions.len() < before
    }

    /// Returns whether all sessions are kept whole.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Returns how much is kept of a session.
    pub fn level_of(&self, session_id: &str) -> KeepLevel {
        self.sessions.get(session_id).map_or(KeepLevel::Full, |reduced| reduced.level)
    }

    /// Returns whether the stored rows of a session keep no more than `level`.
    pub(super) fn is_current(&self, session: &SessionSummary, level: KeepLevel) -> bool {
        self.sessions.get(&session.session_id).is_some_and(|reduced| {
            reduced.level >= level && reduced.is_written && reduced.events == session.events
        })
    }
}
