//! Labels and notes that users and agents attach to sessions: one small file next to the segments,
//! keyed by session id.
//!
//! The file has its own lock, which is held only briefly, so that labelling never waits for an
//! ingest. No ingest, merge or damage of segments touches the file (`user_file.rs`).

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ingest::plan::rules_version;
use ingest::redact::columns::mask_name;
use ingest::redact::{Redactor, SecretCounts};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::disk::lock::StoreLock;
use super::error::{StoreError, UserFile};

/// The file with the labels.
const FILE: UserFile = UserFile::Labels;

/// How long to wait for another process that holds the lock.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// The labels of every session that has any, at one moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LabelBook {
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
        let bytes = FILE.read_bytes(dir);
        let hash = bytes.as_ref().ok().and_then(Option::as_ref).map_or(0, |bytes| xxh3_64(bytes));
        if let Some(before) = before.filter(|before| hash != 0 && before.hash == hash) {
            return Arc::clone(before);
        }
        let labels = bytes.and_then(|bytes| match bytes {
            Some(bytes) => FILE.parse(dir, &bytes),
            None => Ok(Self::default()),
        });
        let labels = match labels {
            Ok(labels) => Self { hash, ..labels },
            Err(error) => Self { hash, damage: Some(damage_reason(error)), ..Self::default() },
        };
        match before {
            Some(before) if before.hash == labels.hash && before.damage == labels.damage => {
                Arc::clone(before)
            }
            Some(_) | None => Arc::new(labels),
        }
    }

    /// Applies `change` to the labels while holding their lock, and writes the file if they
    /// changed.
    pub(super) fn update<T>(
        dir: &Path,
        change: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, StoreError> {
        let lock = StoreLock::acquire_within(dir, FILE.lock_name(), MAX_LOCK_WAIT)?;
        // A file that cannot be read must not be overwritten, but one that is gone begins again.
        let mut labels: Self = match fs::symlink_metadata(dir.join(FILE.name())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Ok(_) | Err(_) => FILE.read(dir)?,
        };

        let before = labels.sessions.clone();
        let rules_before = labels.rules;
        let result = change(&mut labels);
        labels.sessions.retain(|_, session| !session.is_empty());
        if labels.sessions != before || labels.rules != rules_before {
            FILE.write(dir, &lock, &labels)?;
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

    /// Adds the labels of the session `from` to those of `to`, and its note if that has none.
    pub(super) fn add_labels_of(&mut self, from: &str, to: &str) {
        let Some(from) = self.sessions.get(from).cloned() else { return };
        let own = self.entry(to);
        own.updated_at = own.updated_at.max(from.updated_at);
        for label in from.labels {
            if !own.has_label(&label) {
                own.labels.push(label);
            }
        }
        own.labels.sort_unstable();
        own.note = own.note.take().or(from.note);
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

/// Returns the reason why labels cannot be read, without the path of the file.
fn damage_reason(error: StoreError) -> String {
    if let StoreError::BadUserFile { reason, .. } = error {
        return format!(
            "{reason}. Restore it from a backup; if it is gone, the next label begins a new file"
        );
    }
    if let StoreError::Io { source, .. } = error {
        return source.to_string();
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
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
        let path = dir.path().join(FILE.name());
        fs::write(&path, "{").expect("writes");
        assert!(LabelBook::read(dir.path(), None).damage().is_some());
        let refused = LabelBook::update(dir.path(), |_| ());
        assert!(matches!(refused, Err(StoreError::BadUserFile { .. })));
        assert_eq!(fs::read_to_string(&path).expect("reads"), "{");
    }

    #[test]
    fn a_removed_file_is_said_until_the_next_label() {
        let dir = tempfile::tempdir().expect("tempdir");
        LabelBook::update(dir.path(), |_| ()).expect("changes nothing");
        assert_eq!(LabelBook::read(dir.path(), None).damage(), None, "none were written yet");
        label(dir.path(), "a", "bug");
        fs::remove_file(dir.path().join(FILE.name())).expect("removes");
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
        let held =
            StoreLock::acquire_within(dir.path(), FILE.lock_name(), MAX_LOCK_WAIT).expect("lock");
        assert!(matches!(LabelBook::update(dir.path(), |_| ()), Err(StoreError::Busy { .. })));
        drop(held);
    }
}
