//! The logs that the user had forgotten: one small file next to the segments, so that no ingest
//! reads them again.
//!
//! ```text
//! {"version":1,"checksum":"..","sessions":{"9ae82b3a":{"log":"6c62272e07bb0142","forgotten_at":1}}}
//! ```
//!
//! It holds the ids of sessions, and a hash of what identifies each log; see
//! [`ingest::plan::excluded::log_identity`]. The holder of the write lock replaces it by rename.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::files;
use super::disk::lock::{StoreLock, WRITE_LOCK};
use super::error::StoreError;

/// Name of the file in the store directory.
pub(super) const FORGOTTEN_FILE: &str = "forgotten.json";

/// Content by which the user says that a lost file of this kind is to begin again.
pub(super) const START_AGAIN: &[u8] = b"{}";

/// Version of the file. A newer one is refused.
const FORGOTTEN_VERSION: u32 = 1;

/// The forgotten logs of a store.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ForgottenLogs {
    version: u32,
    /// xxh3 of `sessions` as JSON.
    checksum: String,
    sessions: BTreeMap<String, ForgottenLog>,
}

/// One forgotten log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForgottenLog {
    /// The identity of the log.
    pub(super) log: String,
    /// When it was forgotten, microseconds since the epoch.
    pub(super) forgotten_at: i64,
}

impl ForgottenLogs {
    /// Reads the file of the store at `dir`.
    ///
    /// # Errors
    /// A file that cannot be read is an error: an ingest without it would read forgotten logs.
    pub(super) fn read(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FORGOTTEN_FILE);
        let bytes = match files::read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if StoreLock::has_written(dir, WRITE_LOCK, FORGOTTEN_FILE) {
                    let reason = "it is missing, although sessions were forgotten".to_owned();
                    return Err(StoreError::BadForgotten { path, reason });
                }
                return Ok(Self::default());
            }
            Err(error) => return Err(StoreError::io(&path)(error)),
        };
        if bytes.trim_ascii() == START_AGAIN {
            return Ok(Self::default());
        }
        let bad = |reason: String| StoreError::BadForgotten { path: path.clone(), reason };
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if found.version > FORGOTTEN_VERSION {
            let newer = format!("it has version {}, newer than {FORGOTTEN_VERSION}", found.version);
            return Err(bad(newer));
        }
        if found.checksum != found.sessions_checksum() {
            return Err(bad("its checksum differs".to_owned()));
        }
        Ok(found)
    }

    /// Replaces the file of the store at `dir`, whose lock is `lock`.
    pub(super) fn write(&mut self, dir: &Path, lock: &StoreLock) -> Result<(), StoreError> {
        self.version = FORGOTTEN_VERSION;
        self.checksum = self.sessions_checksum();
        files::remove_temporary_copies(&dir.join(FORGOTTEN_FILE));
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        lock.check_not_replaced()?;
        files::replace_file(&dir.join(FORGOTTEN_FILE), &bytes)?;
        lock.record_written(FORGOTTEN_FILE)
    }

    fn sessions_checksum(&self) -> String {
        files::checksum_bytes(&serde_json::to_vec(&self.sessions).unwrap_or_default())
    }

    /// Adds a session.
    pub(super) fn insert(&mut self, session_id: &str, log: ForgottenLog) {
        self.sessions.insert(session_id.to_owned(), log);
    }

    /// Removes a session. Returns whether it was forgotten.
    pub(super) fn remove(&mut self, session_id: &str) -> bool {
        self.sessions.remove(session_id).is_some()
    }

    /// Returns the ids of the forgotten sessions, sorted.
    pub fn session_ids(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(String::as_str)
    }

    /// Returns the identities of the forgotten logs, each with the time when it was forgotten.
    pub fn identities_with_times(&self) -> impl Iterator<Item = (&str, i64)> {
        self.sessions.values().map(|forgotten| (forgotten.log.as_str(), forgotten.forgotten_at))
    }

    /// Returns the identities of the forgotten logs.
    pub fn identities(&self) -> HashSet<String> {
        self.sessions.values().map(|forgotten| forgotten.log.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_refuses_what_was_changed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut logs = ForgottenLogs::read(dir.path()).expect("no file");
        logs.insert("s1", ForgottenLog { log: "f0".into(), forgotten_at: 7 });
        let lock = StoreLock::acquire(dir.path(), WRITE_LOCK).expect("locks");
        logs.write(dir.path(), &lock).expect("writes");
        let read = ForgottenLogs::read(dir.path()).expect("reads");
        assert_eq!(read.session_ids().collect::<Vec<_>>(), ["s1"]);
        assert_eq!(read.identities(), HashSet::from(["f0".to_owned()]));

        let path = dir.path().join(FORGOTTEN_FILE);
        let text = std::fs::read_to_string(&path).expect("reads").replace("f0", "f1");
        std::fs::write(&path, text).expect("writes");
        assert!(matches!(
            ForgottenLogs::read(dir.path()),
            Err(StoreError::BadForgotten { reason, .. }) if reason.contains("checksum")
        ));

        std::fs::remove_file(&path).expect("removes");
        assert!(matches!(
            ForgottenLogs::read(dir.path()),
            Err(StoreError::BadForgotten { reason, .. }) if reason.contains("missing")
        ));
        std::fs::write(&path, "{}\n").expect("writes");
        assert!(ForgottenLogs::read(dir.path()).expect("begins again").sessions.is_empty());
    }
}
