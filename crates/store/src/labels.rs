//! Labels and notes that users and agents attach to sessions: one small file next to the segments,
//! keyed by session id.
//!
//! The file has its own lock, which is held only briefly, so that labelling never waits for an
//! ingest. No ingest, merge or damage of segments touches the file. It is replaced by
//! rename.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ingest::plan::rules_version;
use ingest::redact::columns::mask_name;
use ingest::redact::{Redactor, SecretCounts};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::disk::files;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::folder::{LABELS_FILE, LABELS_LOCK};

/// Version of the file. A file with a newer version is not changed.
const LABELS_VERSION: u32 = 2;

/// First version whose files always have a checksum.
const CHECKSUM_VERSION: u32 = 2;

/// How long to wait for another process that holds the lock.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// The labels of every session that has any, at one moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LabelBook {
    version: u32,
    /// xxh3 of `sessions` as JSON; may be absent before [`CHECKSUM_VERSION`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    sessions: BTreeMap<String, SessionLabels>,
    /// Version of the rules that masked all labels and notes; 0 if that is not known.
    #[serde(default)]
    rules: i64,
    /// Hash of the bytes that were read, to detect a change.
    #[serde(skip)]
    hash: u64,
    /// The reason why the labels could not be read; `None` if they could.
    #[serde(skip)]
    damage: Option<String>,
}

/// The labels and the note of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLabels {
    /// Sorted; no two differ in case only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When it was last changed, microseconds since the epoch.
    pub updated_at: i64,
}

/// One label of one session, for tables. A session that has only a note has one row without a
/// label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRow<'l> {
    pub session_id: &'l str,
    pub label: Option<&'l str>,
    pub note: Option<&'l str>,
    /// Microseconds since the epoch.
    pub updated_at: i64,
}

impl SessionLabels {
    /// True if the session has this label, ignoring case.
    pub fn has_label(&self, label: &str) -> bool {
        let label = label.to_lowercase();
        self.labels.iter().any(|own| own.to_lowercase() == label)
    }

    /// True if there is neither a label nor a note.
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.note.is_none()
    }
}

impl LabelBook {
    /// Reads the labels in the store at `dir`. Returns `before` if nothing changed since. Labels
    /// that cannot be read count as none, and [`LabelBook::damage`] gives the reason.
    pub(super) fn read(dir: &Path, before: Option<&Arc<Self>>) -> Arc<Self> {
        let labels = match read_labels_file(dir) {
            Ok(Some(bytes)) => {
                let hash = xxh3_64(&bytes);
                if let Some(before) = before.filter(|before| before.hash == hash) {
                    return Arc::clone(before);
                }
                Self::parse(&bytes).unwrap_or_else(|error| Self::damaged(hash, error))
            }
            Ok(None) if StoreLock::has_written(dir, LABELS_LOCK, LABELS_FILE) => {
                let reason = "it is missing, although sessions were labelled. Restore it from a backup; the next label begins a new file";
                Self::damaged(0, reason)
            }
            Ok(None) => Self::default(),
            Err(error) => Self::damaged(0, error),
        };
        match before {
            Some(before) if before.hash == labels.hash && before.damage == labels.damage => {
                Arc::clone(before)
            }
            Some(_) | None => Arc::new(labels),
        }
    }

    /// Returns labels that could not be read: none, and the reason.
    fn damaged(hash: u64, reason: impl ToString) -> Self {
        Self { hash, damage: Some(reason.to_string()), ..Self::default() }
    }

    /// Parses the file.
    ///
    /// # Errors
    /// Returns the reason if the file is not valid, has a newer version or a wrong checksum.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut labels: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if labels.version > LABELS_VERSION {
            return Err(format!(
                "it has version {}, newer than the supported version {LABELS_VERSION}",
                labels.version
            ));
        }
        match &labels.checksum {
            Some(written) if *written != labels.sessions_checksum() => {
                return Err("its checksum differs".to_owned());
            }
            None if labels.version >= CHECKSUM_VERSION => {
                return Err("its checksum is missing".to_owned());
            }
            Some(_) | None => {}
        }
        labels.hash = xxh3_64(bytes);
        Ok(labels)
    }

    /// Returns the value of [`LabelBook::checksum`].
    fn sessions_checksum(&self) -> String {
        files::checksum_bytes(&serde_json::to_vec(&self.sessions).unwrap_or_default())
    }

    /// Applies `change` to the labels while holding their lock, and writes the file if they
    /// changed.
    pub(super) fn update<T>(
        dir: &Path,
        change: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, StoreError> {
        let lock = StoreLock::acquire_within(dir, LABELS_LOCK, MAX_LOCK_WAIT)?;
        let path = dir.join(LABELS_FILE);
        files::remove_temporary_copies(&path);
        // A file that cannot be read must not be overwritten.
        let mut labels = match read_labels_file(dir).map_err(StoreError::io(&path))? {
            Some(bytes) => Self::parse(&bytes)
                .map_err(|reason| StoreError::BadLabels { path: path.clone(), reason })?,
            None => Self::default(),
        };

        let before = labels.sessions.clone();
        let rules_before = labels.rules;
        let result = change(&mut labels);
        labels.sessions.retain(|_, session| !session.is_empty());
        if labels.sessions != before || labels.rules != rules_before {
            labels.version = LABELS_VERSION;
            labels.checksum = Some(labels.sessions_checksum());
            lock.check_not_replaced()?;
            files::replace_file(&path, &serde_json::to_vec(&labels).unwrap_or_default())?;
            // The labels are written already, so a full disk must not fail the call now.
            if let Err(error) = lock.record_written(LABELS_FILE) {
                tracing::warn!(%error, "labels.lock could not be marked");
            }
        }
        Ok(result)
    }

    /// Returns whether other rules than those of version `rules` masked some label or note.
    pub(super) fn is_of_other_rules(&self, rules: i64) -> bool {
        self.rules != rules && !self.sessions.is_empty()
    }

    /// Masks all labels and notes, unless the same rules masked them before. Labels of a session that
    /// differed only in their secrets are one afterwards.
    pub fn mask_again(&mut self, redactor: &Redactor) {
        let rules = rules_version(Some(redactor));
        if self.rules == rules {
            return;
        }
        self.rules = rules;
        for session in self.sessions.values_mut() {
            let mut masked = SessionLabels { labels: Vec::new(), ..session.clone() };
            for label in &session.labels {
                let label = mask_name(Some(redactor), label);
                if !masked.has_label(&label) {
                    masked.labels.push(label);
                }
            }
            masked.labels.sort_unstable();
            masked.note = session
                .note
                .as_deref()
                .map(|note| redactor.mask(note, &mut SecretCounts::default()).into_owned());
            *session = masked;
        }
    }

    /// Returns the labels of these sessions alone.
    pub(super) fn of_sessions(&self, sessions: &HashSet<&str>) -> Self {
        let mut labels = self.clone();
        labels.sessions.retain(|id, _| sessions.contains(id.as_str()));
        labels
    }

    /// Returns the labels and the note of a session, if it has any.
    pub fn session_labels(&self, session_id: &str) -> Option<&SessionLabels> {
        self.sessions.get(session_id)
    }

    /// Returns the labels and the note of a session, so that they can be changed. They are empty if
    /// the session has none.
    pub fn entry(&mut self, session_id: &str) -> &mut SessionLabels {
        self.sessions.entry(session_id.to_owned()).or_default()
    }

    /// Removes the labels and the note of a session.
    pub(super) fn remove(&mut self, session_id: &str) {
        self.sessions.remove(session_id);
    }

    /// Returns every label of every session, sorted by session and label.
    pub fn rows(&self) -> impl Iterator<Item = LabelRow<'_>> {
        self.sessions.iter().flat_map(|(session_id, session)| {
            let only_note = session.labels.is_empty().then_some(None);
            let labels = session.labels.iter().map(|label| Some(label.as_str()));
            labels.chain(only_note).map(move |label| LabelRow {
                session_id: session_id.as_str(),
                label,
                note: session.note.as_deref(),
                updated_at: session.updated_at,
            })
        })
    }

    /// Returns a hash that changes with every change of the labels.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the reason why the labels could not be read; `None` if they could.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}

/// Returns the bytes of the file; `None` if there is no file.
fn read_labels_file(dir: &Path) -> io::Result<Option<Vec<u8>>> {
    match files::read_file(&dir.join(LABELS_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn label(dir: &Path, session: &str, label: &str) {
        let add = |labels: &mut LabelBook| labels.entry(session).labels.push(label.to_owned());
        LabelBook::update(dir, add).expect("writes");
    }

    #[test]
    fn what_is_written_is_read_and_what_did_not_change_is_not_read_again() {
        let dir = tempfile::tempdir().expect("tempdir");
        let none = LabelBook::read(dir.path(), None);
        assert_eq!((none.rows().count(), none.damage()), (0, None));
        label(dir.path(), "a", "Bug");
        let one = LabelBook::read(dir.path(), Some(&none));
        assert!(
            one.session_labels("a")
                .is_some_and(|session| session.has_label("bug") && !session.has_label("bu"))
        );
        assert!(Arc::ptr_eq(&one, &LabelBook::read(dir.path(), Some(&one))));
        label(dir.path(), "b", "later");
        let two = LabelBook::read(dir.path(), Some(&one));
        let rows: Vec<_> = two.rows().map(|row| (row.session_id, row.label)).collect();
        assert_eq!(rows, [("a", Some("Bug")), ("b", Some("later"))]);
        LabelBook::update(dir.path(), |labels| labels.entry("a").labels.clear()).expect("writes");
        assert!(LabelBook::read(dir.path(), None).session_labels("a").is_none());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_said_and_kept() {
        let dir = tempfile::tempdir().expect("tempdir");
        let changed = r#"{"version":1,"checksum":"0123456789abcdef","sessions":{}}"#;
        let unsigned = r#"{"version":2,"sessions":{}}"#;
        for text in ["", "{", r#"{"version":9,"sessions":{}}"#, changed, unsigned] {
            fs::write(dir.path().join(LABELS_FILE), text).expect("writes");
            assert!(LabelBook::read(dir.path(), None).damage().is_some(), "{text}");
            assert!(matches!(
                LabelBook::update(dir.path(), |_| ()),
                Err(StoreError::BadLabels { .. })
            ));
            assert_eq!(fs::read_to_string(dir.path().join(LABELS_FILE)).expect("reads"), text);
        }
    }

    #[test]
    fn a_file_of_the_first_version_needs_no_checksum() {
        let dir = tempfile::tempdir().expect("tempdir");
        let text = r#"{"version":1,"sessions":{"a":{"labels":["kept"],"updated_at":1}}}"#;
        fs::write(dir.path().join(LABELS_FILE), text).expect("writes");
        let labels = LabelBook::read(dir.path(), None);
        assert_eq!((labels.rows().count(), labels.damage()), (1, None));
        label(dir.path(), "b", "later");
        let written = fs::read_to_string(dir.path().join(LABELS_FILE)).expect("reads");
        assert!(written.contains("checksum") && written.contains("kept"), "{written}");
    }

    #[test]
    fn a_removed_file_is_said_until_the_next_label() {
        let dir = tempfile::tempdir().expect("tempdir");
        LabelBook::update(dir.path(), |_| ()).expect("changes nothing");
        assert_eq!(LabelBook::read(dir.path(), None).damage(), None, "none were written yet");
        label(dir.path(), "a", "bug");
        fs::remove_file(dir.path().join(LABELS_FILE)).expect("removes");
        let labels = LabelBook::read(dir.path(), None);
        assert!(labels.damage().is_some_and(|damage| damage.contains("missing")));
        label(dir.path(), "b", "later");
        assert_eq!(LabelBook::read(dir.path(), None).damage(), None);
    }

    #[test]
    fn two_processes_change_labels_one_after_the_other() {
        let dir = tempfile::tempdir().expect("tempdir");
        std::thread::scope(|scope| {
            for n in 0..8 {
                let dir = dir.path();
                scope.spawn(move || label(dir, &format!("s{n}"), "x"));
            }
        });
        assert_eq!(LabelBook::read(dir.path(), None).rows().count(), 8);
        let held = StoreLock::acquire_within(dir.path(), LABELS_LOCK, MAX_LOCK_WAIT).expect("lock");
        assert!(matches!(LabelBook::update(dir.path(), |_| ()), Err(StoreError::Busy { .. })));
        drop(held);
    }
}
