//! The logs that the user had forgotten: a small file next to the segments, so that no ingest reads
//! them again, and a file with hashes of their records, so that no copy of them is read.
//!
//! ```text
//! forgotten.json
//! {"version":3,"checksum":"..","content":{"key":77,"records":"forgotten-5c0bcc12d8ae2ba1.bin",
//!  "sessions":{"9ae82b3a":{"log":"6c62272e07bb0142","forgotten_at":1,"provider":"claude","own_id":5,
//!   "title":9,"records":52}}}}
//! forgotten-5c0bcc12d8ae2ba1.bin
//! for each record, session after session, little-endian:
//! u64 identity | u64 what it says | u32 type and time | u32 type and text
//! ```
//!
//! They hold the ids of sessions, a hash of what identifies each log (see
//! [`ingest::plan::excluded::log_identity`]), and keyed hashes (see [`ingest::stream::forgotten`]). The
//! name of the second file has the checksum of its content. The holder of the write lock replaces
//! both by rename, the first one last, and then removes the former second file.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use ingest::stream::forgotten::{ForgottenRecords, ForgottenSession, MarkKey, RecordMarks};
use schemas::Provider;
use serde::{Deserialize, Serialize};

use super::disk::files;
use super::disk::lock::StoreLock;
use super::error::{StoreError, UserFile};
use base::random::random_bytes;

/// The file with the forgotten sessions.
const FILE: UserFile = UserFile::Forgotten;

/// Beginning and end of the name of the file with the hashes of records. Between them is its checksum.
const RECORDS_START: &str = "forgotten-";
const RECORDS_END: &str = ".bin";

/// Bytes of the hashes of one record.
const RECORD_BYTES: usize = 24;

/// The forgotten logs of a store.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ForgottenLogs {
    /// The key of the hashes of records. 0 if there are none.
    key: u64,
    /// Name of the file with the hashes of records; empty if there are none.
    records: String,
    sessions: BTreeMap<String, ForgottenLog>,
}

/// One forgotten log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForgottenLog {
    /// The identity of the log.
    pub(super) log: String,
    /// When it was forgotten, microseconds since the epoch.
    pub(super) forgotten_at: i64,
    /// The agent that wrote it.
    pub(super) provider: Provider,
    /// Keyed hash of the id that the log names; 0 if it is not known.
    #[serde(default, skip_serializing_if = "schemas::is_default")]
    pub(super) own_id: u64,
    /// Keyed hash of the title of its session; 0 if it had none.
    #[serde(default, skip_serializing_if = "schemas::is_default")]
    pub(super) title: u64,
    /// Number of its records in the file of hashes.
    #[serde(default, skip_serializing_if = "schemas::is_default")]
    pub(super) records: usize,
    /// The pattern of `exclude` with which its project was hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hidden_by: Option<String>,
}

impl ForgottenLogs {
    /// Reads the file of the store at `dir`.
    ///
    /// # Errors
    /// A file that cannot be read is an error: an ingest without it would read forgotten logs.
    pub(super) fn read(dir: &Path) -> Result<Self, StoreError> {
        FILE.read(dir)
    }

    /// Reads the hashes of the records of the forgotten sessions of the store at `dir`.
    ///
    /// # Errors
    /// A file that is missing or was changed is an error: an ingest without it would read copies of
    /// forgotten logs.
    pub fn read_records(&self, dir: &Path) -> Result<ForgottenRecords, StoreError> {
        let bytes = if self.records.is_empty() { Vec::new() } else { self.read_records_file(dir)? };
        let mut rest = bytes.as_slice();
        let mut sessions = Vec::new();
        for (session_id, log) in &self.sessions {
            let length = log.records.saturating_mul(RECORD_BYTES);
            let Some((own, others)) = rest.split_at_checked(length) else {
                let path = dir.join(&self.records);
                let reason = "it has fewer records than forgotten.json says".to_owned();
                return Err(StoreError::BadUserFile { file: FILE, path, reason });
            };
            rest = others;
            sessions.push(ForgottenSession {
                session_id: session_id.clone(),
                provider: log.provider,
                own_id: log.own_id,
                title: log.title,
                records: own.chunks_exact(RECORD_BYTES).map(decode_marks).collect(),
            });
        }
        Ok(ForgottenRecords::new(MarkKey(self.key), sessions))
    }

    fn read_records_file(&self, dir: &Path) -> Result<Vec<u8>, StoreError> {
        let path = dir.join(&self.records);
        let bad =
            |reason: String| StoreError::BadUserFile { file: FILE, path: path.clone(), reason };
        if !is_records_file(&self.records) {
            return Err(bad("its name is not one of the store".to_owned()));
        }
        let bytes = files::read_file(&path).map_err(|error| bad(error.to_string()))?;
        if records_file_name(&bytes) != self.records {
            return Err(bad("its checksum differs".to_owned()));
        }
        Ok(bytes)
    }

    /// Returns the key of the hashes, which is made when it is first needed.
    ///
    /// # Errors
    /// Fails if the system has no random bytes.
    pub(super) fn make_key(&mut self, dir: &Path) -> Result<MarkKey, StoreError> {
        if self.key == 0 {
            let bytes = random_bytes().map_err(|reason| {
                StoreError::io(dir)(io::Error::other(format!("no random bytes: {reason}")))
            })?;
            self.key = u64::from_le_bytes(bytes) | 1;
        }
        Ok(MarkKey(self.key))
    }

    /// Replaces the files of the store at `dir`, whose lock is `lock`. `records` has the records of
    /// its sessions that are known.
    pub(super) fn write(
        &mut self,
        dir: &Path,
        lock: &StoreLock,
        records: &[ForgottenSession],
    ) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        for (session_id, log) in &mut self.sessions {
            let known = records.iter().find(|one| one.session_id == *session_id);
            let marks = known.map_or(&[][..], |known| &known.records);
            log.records = marks.len();
            for RecordMarks { record, said, moment, text } in marks {
                bytes.extend([*record, *said].into_iter().flat_map(u64::to_le_bytes));
                bytes.extend([*moment, *text].into_iter().flat_map(u32::to_le_bytes));
            }
        }
        self.records = if bytes.is_empty() { String::new() } else { records_file_name(&bytes) };

        if !self.records.is_empty() {
            lock.check_not_replaced()?;
            files::replace_file(&dir.join(&self.records), &bytes)?;
        }
        FILE.write(dir, lock, self)?;
        self.remove_other_records(dir);
        Ok(())
    }

    /// Removes files with hashes of records that are not in force, and what killed runs left of such
    /// files.
    fn remove_other_records(&self, dir: &Path) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| *name != self.records) else { continue };
            let is_temporary = name.starts_with(&format!(".{RECORDS_START}"));
            if (is_temporary || is_records_file(name))
                && entry.file_type().is_ok_and(|kind| kind.is_file())
            {
                // If it cannot be removed now, the next change tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Adds a session. What hid one that is known stays known.
    pub(super) fn insert(&mut self, session_id: &str, mut log: ForgottenLog) {
        let known = self.sessions.remove(session_id);
        log.hidden_by = log.hidden_by.or(known.and_then(|known| known.hidden_by));
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

    /// Returns the ids of the sessions that were forgotten when their project was hidden by a pattern.
    pub fn hidden_by(&self, pattern: &str) -> Vec<String> {
        let hidden = self.sessions.iter();
        let hidden = hidden.filter(|(_, log)| log.hidden_by.as_deref() == Some(pattern));
        hidden.map(|(id, _)| id.clone()).collect()
    }

    /// Returns the identity of the log of a forgotten session.
    pub(super) fn log_of(&self, session_id: &str) -> Option<&str> {
        self.sessions.get(session_id).map(|forgotten| forgotten.log.as_str())
    }

    /// Returns the forgotten sessions, each with the agent that wrote it.
    pub fn providers(&self) -> impl Iterator<Item = (&str, Provider)> {
        self.sessions.iter().map(|(id, forgotten)| (id.as_str(), forgotten.provider))
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

/// Returns whether a file has a name that the store gives to a file with hashes of records.
pub(super) fn is_records_file(name: &str) -> bool {
    let checksum = name.strip_prefix(RECORDS_START).and_then(|rest| rest.strip_suffix(RECORDS_END));
    checksum.is_some_and(|checksum| {
        checksum.len() == 16 && checksum.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn records_file_name(bytes: &[u8]) -> String {
    format!("{RECORDS_START}{}{RECORDS_END}", files::checksum_bytes(bytes))
}

/// Returns the hashes of a record from their bytes.
fn decode_marks(bytes: &[u8]) -> RecordMarks {
    let bytes_at = |at: usize| bytes.get(at..).unwrap_or_default();
    let long = |at| u64::from_le_bytes(*bytes_at(at).first_chunk().unwrap_or(&[0; 8]));
    let short = |at| u32::from_le_bytes(*bytes_at(at).first_chunk().unwrap_or(&[0; 4]));
    RecordMarks { record: long(0), said: long(8), moment: short(16), text: short(20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forgotten_log(log: &str) -> ForgottenLog {
        ForgottenLog {
            log: log.into(),
            forgotten_at: 7,
            provider: Provider::Claude,
            own_id: 3,
            title: 4,
            records: 0,
            hidden_by: None,
        }
    }

    fn session(id: &str, records: u64) -> ForgottenSession {
        let marks = |at: u64| RecordMarks { record: at, said: 0, moment: 5, text: at as u32 + 1 };
        ForgottenSession {
            session_id: id.into(),
            provider: Provider::Claude,
            own_id: 3,
            title: 4,
            records: (1..=records).map(marks).collect(),
        }
    }

    #[test]
    fn reads_what_it_writes() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut logs = ForgottenLogs::read(dir.path()).expect("no file");
        logs.insert("s1", forgotten_log("f0"));
        logs.insert("s2", forgotten_log("f2"));
        let lock = StoreLock::acquire(dir.path(), FILE.lock_name()).expect("locks");
        let sessions = [session("s1", 3), session("s2", 2)];
        logs.write(dir.path(), &lock, &sessions).expect("writes");
        let read = ForgottenLogs::read(dir.path()).expect("reads");
        assert_eq!(read.session_ids().collect::<Vec<_>>(), ["s1", "s2"]);
        assert_eq!(read.identities(), HashSet::from(["f0".to_owned(), "f2".to_owned()]));
        let records = read.read_records(dir.path()).expect("reads");
        assert_eq!(records.sessions(), sessions);
    }

    #[test]
    fn a_file_of_hashes_that_was_changed_is_refused_and_a_former_one_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let names = || {
            let entries = std::fs::read_dir(dir.path()).expect("lists");
            let names = entries.map(|entry| entry.expect("entry").file_name().into_string());
            let names = names.map(|name| name.expect("text"));
            names.filter(|name| name.ends_with(RECORDS_END)).collect::<Vec<_>>()
        };
        let lock = StoreLock::acquire(dir.path(), FILE.lock_name()).expect("locks");
        let mut logs = ForgottenLogs::default();
        logs.insert("s1", forgotten_log("f0"));
        logs.write(dir.path(), &lock, &[session("s1", 3)]).expect("writes");
        std::fs::write(dir.path().join(".forgotten-x.bin.tmp-1"), "x").expect("writes");
        logs.insert("s2", forgotten_log("f2"));
        logs.write(dir.path(), &lock, &[session("s1", 3), session("s2", 1)]).expect("writes");
        assert_eq!(names(), [logs.records.clone()]);
        assert!(!dir.path().join(".forgotten-x.bin.tmp-1").exists());

        let path = dir.path().join(&logs.records);
        let mut bytes = std::fs::read(&path).expect("reads");
        bytes[5] ^= 1;
        std::fs::write(&path, bytes).expect("writes");
        let read = ForgottenLogs::read(dir.path()).expect("reads");
        assert!(matches!(
            read.read_records(dir.path()),
            Err(StoreError::BadUserFile { reason, .. }) if reason.contains("checksum")
        ));
        std::fs::remove_file(&path).expect("removes");
        assert!(matches!(read.read_records(dir.path()), Err(StoreError::BadUserFile { .. })));

        logs.remove("s1");
        logs.remove("s2");
        logs.write(dir.path(), &lock, &[]).expect("writes");
        assert!(names().is_empty());
    }
}
