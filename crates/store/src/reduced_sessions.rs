//! The sessions whose texts were dropped: one small file next to the segments, so that a log that is
//! read again does not bring them back.
//!
//! ```text
//! {"version":1,"checksum":"..","content":{"announced":"transcripts after 90d","applied_at":1,
//!  "sessions":{"9ae82b3a":{"level":"transcripts","events":52,"until":1,"is_written":true}}}}
//! ```
//!
//! The holder of the write lock replaces it by rename.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::files;
use super::disk::lock::{StoreLock, WRITE_LOCK};
use super::error::StoreError;
use super::forgotten::START_AGAIN;
use super::segment::session_summary::SessionSummary;

/// Name of the file in the store directory.
pub(super) const REDUCED_FILE: &str = "reduced.json";

/// Version of the file. A newer one is refused.
const REDUCED_VERSION: u32 = 1;

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

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReducedFile {
    version: u32,
    /// xxh3 of `content` as JSON.
    checksum: String,
    content: ReducedSessions,
}

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
        let path = dir.join(REDUCED_FILE);
        let bytes = match files::read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if StoreLock::has_written(dir, WRITE_LOCK, REDUCED_FILE) {
                    let reason = "it is missing, although texts were dropped".to_owned();
                    return Err(StoreError::BadReduced { path, reason });
                }
                return Ok(Self::default());
            }
            Err(error) => return Err(StoreError::io(&path)(error)),
        };
        if bytes.trim_ascii() == START_AGAIN {
            return Ok(Self::default());
        }
        let bad = |reason: String| StoreError::BadReduced { path: path.clone(), reason };
        let found: ReducedFile =
            serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if found.version > REDUCED_VERSION {
            let newer = format!("it has version {}, newer than {REDUCED_VERSION}", found.version);
            return Err(bad(newer));
        }
        if found.checksum != found.content.checksum() {
            return Err(bad("its checksum differs".to_owned()));
        }
        Ok(found.content)
    }

    /// Replaces the file of the store at `dir`, whose lock is `lock`.
    pub(super) fn write(&self, dir: &Path, lock: &StoreLock) -> Result<(), StoreError> {
        let path = dir.join(REDUCED_FILE);
        let file = ReducedFile {
            version: REDUCED_VERSION,
            checksum: self.checksum(),
            content: self.clone(),
        };
        files::remove_temporary_copies(&path);
        lock.check_not_replaced()?;
        files::replace_file(&path, &serde_json::to_vec(&file).unwrap_or_default())?;
        // Without a session there is nothing that could come back.
        if self.sessions.is_empty() { Ok(()) } else { lock.record_written(REDUCED_FILE) }
    }

    fn checksum(&self) -> String {
        files::checksum_bytes(&serde_json::to_vec(self).unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_refuses_what_was_changed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut reduced = ReducedSessions::read(dir.path()).expect("no file");
        let level = KeepLevel::Usage;
        let session = ReducedSession { level, events: 3, until: None, is_written: true };
        reduced.sessions.insert("s1".into(), session);
        let lock = StoreLock::acquire(dir.path(), WRITE_LOCK).expect("locks");
        reduced.write(dir.path(), &lock).expect("writes");
        assert_eq!(ReducedSessions::read(dir.path()).expect("reads"), reduced);
        assert_eq!(reduced.level_of("s1"), KeepLevel::Usage);

        let path = dir.path().join(REDUCED_FILE);
        let text = std::fs::read_to_string(&path).expect("reads").replace("usage", "full");
        std::fs::write(&path, text).expect("writes");
        assert!(matches!(
            ReducedSessions::read(dir.path()),
            Err(StoreError::BadReduced { reason, .. }) if reason.contains("checksum")
        ));

        std::fs::remove_file(&path).expect("removes");
        assert!(matches!(
            ReducedSessions::read(dir.path()),
            Err(StoreError::BadReduced { reason, .. }) if reason.contains("missing")
        ));
        std::fs::write(&path, "{}\n").expect("writes");
        assert_eq!(ReducedSessions::read(dir.path()).expect("begins again"), <_>::default());
    }
}
