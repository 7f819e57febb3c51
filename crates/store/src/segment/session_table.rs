//! The sessions of a segment. A reader that starts reads a brief of each; the rows, which have all
//! columns, are read when a value of one of them is first needed.
//!
//! At 20 GB of logs the rows of all sessions take five times as long to read as their briefs, and an
//! answer shows a few of them.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use schemas::session::SessionRow;

use super::session_brief::SessionBrief;
use super::session_texts::{OTHER_SESSIONS, SessionTexts, read_session_texts};
use super::small_files::{read_session_briefs, read_sessions};
use crate::error::StoreError;
use crate::manifest::SegmentEntry;

/// The sessions of a segment, in the order of its rows.
pub(crate) struct SessionTable {
    briefs: Vec<SessionBrief>,
    /// As many rows as briefs, once they were read.
    rows: OnceLock<Vec<Arc<SessionRow>>>,
    /// The path of the log of each session, once they were read without the rows.
    paths: OnceLock<SessionTexts>,
    /// The title of each session, once they were read without the rows. `None` if only the rows
    /// have them, or if they cannot be read.
    titles: OnceLock<Option<SessionTexts>>,
    /// The file or folder because of which the rows could not be read, and the reason.
    damage: OnceLock<(PathBuf, String)>,
    /// True if the file of the sessions may lack columns that were added later.
    may_lack_columns: bool,
    store: PathBuf,
    entry: SegmentEntry,
}

impl SessionTable {
    /// Reads the briefs of the sessions of a segment, or all rows if it has no briefs, as a segment of an
    /// earlier version.
    pub(crate) fn read(store: &Path, entry: &SegmentEntry) -> Result<Self, StoreError> {
        let mut table = Self {
            briefs: Vec::new(),
            rows: OnceLock::new(),
            paths: OnceLock::new(),
            titles: OnceLock::new(),
            damage: OnceLock::new(),
            may_lack_columns: false,
            store: store.to_owned(),
            entry: entry.clone(),
        };
        if let Some(briefs) = read_session_briefs(store, entry)? {
            table.briefs = briefs;
            return Ok(table);
        }
        let read = read_sessions(store, entry)?;
        table.briefs = read.rows.iter().map(|row| SessionBrief::from_row(row)).collect();
        table.rows = OnceLock::from(read.rows);
        table.may_lack_columns = read.may_lack_columns;
        Ok(table)
    }

    /// Returns the briefs.
    pub(crate) fn briefs(&self) -> &[SessionBrief] {
        &self.briefs
    }

    /// Returns whether the segment was written by a version that may not have all columns of today.
    pub(crate) fn may_lack_columns(&self) -> bool {
        self.may_lack_columns
    }

    /// Returns the folder of the store that has the segment.
    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// Returns whether the rows were read.
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.get().is_some()
    }

    /// Returns the rows. If they cannot be read, they have no values but those of their briefs, and
    /// [`Self::check_rows`] fails.
    pub(crate) fn rows(&self) -> &[Arc<SessionRow>] {
        self.rows.get_or_init(|| {
            self.read_rows().unwrap_or_else(|error| {
                self.damage.get_or_init(|| {
                    if let StoreError::Damaged { path, reason } = error {
                        (path, reason)
                    } else {
                        (self.folder(), error.to_string())
                    }
                });
                self.briefs.iter().map(|brief| Arc::new(brief.to_bare_row())).collect()
            })
        })
    }

    /// Reads the paths of the logs without the rows, unless either was read.
    ///
    /// # Errors
    /// Fails if the file of the rows cannot be read or is damaged.
    pub(crate) fn read_paths(&self) -> Result<(), StoreError> {
        if self.has_rows() || self.paths.get().is_some() {
            return Ok(());
        }
        let Some(paths) = self.read_texts("source_path")? else {
            self.rows();
            return self.check_rows();
        };
        let _ = self.paths.set(paths);
        Ok(())
    }

    /// Returns the title of the session at a position. Unless the rows were read, the titles are
    /// read without them: a search over all sessions compares the title of each.
    fn title(&self, at: usize) -> Option<&str> {
        let titles = if self.has_rows() { None } else { self.titles() };
        titles.map_or_else(|| self.rows()[at].title.as_deref(), |titles| titles.text(at))
    }

    fn titles(&self) -> Option<&SessionTexts> {
        // If they cannot be read, reading the rows notes the reason.
        self.titles.get_or_init(|| self.read_texts("title").ok().flatten()).as_ref()
    }

    fn read_texts(&self, column: &str) -> Result<Option<SessionTexts>, StoreError> {
        read_session_texts(&self.store, &self.entry, column, &self.briefs)
    }

    fn read_rows(&self) -> Result<Vec<Arc<SessionRow>>, StoreError> {
        let rows = read_sessions(&self.store, &self.entry)?.rows;
        let briefs = rows.iter().map(|row| SessionBrief::from_row(row));
        if !briefs.eq(self.briefs.iter().cloned()) {
            return Err(StoreError::damaged(&self.folder(), OTHER_SESSIONS));
        }
        Ok(rows)
    }

    /// Fails if rows were needed and could not be read.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], also for other causes, which it names.
    pub(crate) fn check_rows(&self) -> Result<(), StoreError> {
        self.damage.get().map_or(Ok(()), |(path, reason)| Err(StoreError::damaged(path, reason)))
    }

    fn folder(&self) -> PathBuf {
        SegmentEntry::folder_path(&self.store, self.entry.number)
    }
}

/// A session of a snapshot. Its row is read when a value of it is first needed.
#[derive(Clone)]
pub struct StoredSession {
    table: Arc<SessionTable>,
    /// Position in the table.
    at: usize,
}

impl StoredSession {
    pub(crate) fn new(table: &Arc<SessionTable>, at: usize) -> Self {
        Self { table: Arc::clone(table), at }
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.brief().session_id
    }

    /// Returns what is known of the session without its row.
    pub fn brief(&self) -> &SessionBrief {
        &self.table.briefs[self.at]
    }

    /// Returns the path of the log, as the column `source_path` has it. The row is not read for it if
    /// [`Snapshot::read_session_paths`](crate::Snapshot::read_session_paths) was called.
    pub fn log_path(&self) -> &str {
        match self.table.paths.get() {
            Some(paths) => paths.text(self.at).unwrap_or_default(),
            None => &self.row().source_path,
        }
    }

    /// Returns the title. The row is not read for it.
    pub fn title(&self) -> Option<&str> {
        self.table.title(self.at)
    }

    /// Returns the row.
    pub fn row(&self) -> &Arc<SessionRow> {
        &self.table.rows()[self.at]
    }
}

impl Deref for StoredSession {
    type Target = SessionRow;

    fn deref(&self) -> &SessionRow {
        self.row()
    }
}

impl AsRef<SessionRow> for StoredSession {
    fn as_ref(&self) -> &SessionRow {
        self.row()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::segment_writer::SegmentWriter;
    use super::*;
    use crate::disk::held_folder::HeldFolder;
    use crate::manifest::{SESSION_BRIEFS, SESSION_ROWS, file_name};

    /// Writes a segment with some sessions.
    fn write_segment(store: &Path) -> SegmentEntry {
        fs::create_dir(store.join("segments")).expect("creates");
        let segments = HeldFolder::open(&store.join("segments")).expect("opens");
        let mut writer = SegmentWriter::new(&Arc::new(segments), 1);
        for number in 0..20 {
            let row = SessionRow {
                session_id: format!("{number:03}"),
                source_path: format!("/logs/{number}"),
                title: Some(format!("title {number}")),
                project: (number % 2 > 0).then(|| "harbor".to_owned()),
                ended_at: (number % 3 > 0).then_some(number),
                messages: number % 4,
                relation: (number % 5 > 3).then(|| "subagent_of".to_owned()),
                ..SessionRow::default()
            };
            writer.record_session(Box::new(row)).expect("records");
        }
        let finished = writer.finish().expect("writes").expect("has rows");
        finished.folder.keep();
        finished.entry
    }

    fn damage(store: &Path, table: &str) {
        let path = SegmentEntry::folder_path(store, 1).join(file_name(table));
        let mut bytes = fs::read(&path).expect("reads");
        *bytes.last_mut().expect("not empty") ^= 1;
        fs::write(&path, bytes).expect("writes");
    }

    #[test]
    fn rows_are_read_when_needed_and_fit_their_briefs() {
        let dir = tempfile::tempdir().expect("tempdir");
        let entry = write_segment(dir.path());
        let table = SessionTable::read(dir.path(), &entry).expect("reads");
        assert!(!table.has_rows() && !table.may_lack_columns());
        table.read_paths().expect("reads");
        let table = Arc::new(table);
        let session = StoredSession::new(&table, 7);
        assert_eq!((session.log_path(), session.title()), ("/logs/7", Some("title 7")));
        assert!(!table.has_rows(), "the rows were skipped");
        let briefs: Vec<_> = table.rows().iter().map(|row| SessionBrief::from_row(row)).collect();
        assert_eq!(briefs, table.briefs());
        assert!(briefs[4].is_subagent && briefs[3].is_conversation && !briefs[0].is_conversation);
        assert!(table.check_rows().is_ok());

        let mut of_earlier_version = entry.clone();
        of_earlier_version.files.retain(|file| file.table != SESSION_BRIEFS);
        let whole = SessionTable::read(dir.path(), &of_earlier_version).expect("reads");
        assert!(whole.has_rows() && whole.briefs() == briefs);
        let mut without_row_file = table.entry.clone();
        without_row_file.files.retain(|file| file.table != SESSION_ROWS);
        let whole = Arc::new(SessionTable::read(dir.path(), &without_row_file).expect("reads"));
        assert!(whole.read_paths().is_ok() && whole.has_rows());
        let session = StoredSession::new(&whole, 7);
        assert_eq!((session.log_path(), session.title()), ("/logs/7", Some("title 7")));
    }

    #[test]
    fn damaged_rows_are_an_error_once_they_are_needed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let entry = write_segment(dir.path());
        damage(dir.path(), SESSION_ROWS);
        let table = Arc::new(SessionTable::read(dir.path(), &entry).expect("reads the briefs"));
        assert!(matches!(table.read_paths(), Err(StoreError::Damaged { .. })));
        let session = StoredSession::new(&table, 7);
        assert_eq!(
            (session.id(), session.brief().origin.project.as_deref()),
            ("007", Some("harbor"))
        );
        assert!(table.check_rows().is_ok(), "nothing was needed");
        assert_eq!((session.title(), session.ended_at), (None, Some(7)));
        assert!(matches!(table.check_rows(), Err(StoreError::Damaged { .. })));

        damage(dir.path(), SESSION_BRIEFS);
        let damaged = SessionTable::read(dir.path(), &entry);
        assert!(matches!(damaged.err(), Some(StoreError::Damaged { .. })));
    }
}
