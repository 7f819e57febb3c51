//! One segment of a snapshot. Its files are opened and checked when they are first needed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use schemas::session::{SessionRow, SourceRow};
use schemas::table::EVENTS;

use super::events_footer::{TextPage, locate_text_pages, read_footer};
use super::session_summary::SessionSummary;
use super::session_table::SessionTable;
use super::small_files::read_chunk_checksums;
use crate::disk::checked_file::CheckedFile;
use crate::error::StoreError;
use crate::index::SkipIndex;
use crate::manifest::{FileEntry, SKIP_INDEX, SegmentEntry, file_name};

/// The rows of one session in one segment, which are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSpan {
    /// Position of the session in [`Snapshot::sessions`](crate::Snapshot::sessions).
    pub session: usize,
    pub start: usize,
    pub count: usize,
    /// `event_index` of the first row.
    pub first_index: u32,
}

impl SessionSpan {
    /// Returns the rows that a segment has of the session at the position `session`, whose summary in the
    /// segment is `summary`.
    pub(crate) fn of_summary(summary: &SessionSummary, session: usize) -> Self {
        Self {
            session,
            start: usize::try_from(summary.row_start).unwrap_or(0),
            count: usize::try_from(summary.row_count).unwrap_or(0),
            first_index: u32::try_from(summary.events - summary.row_count).unwrap_or(0),
        }
    }
}

/// One segment of a snapshot.
pub struct Segment {
    pub entry: SegmentEntry,
    pub dir: PathBuf,
    /// Live rows by session, in the order of rows.
    pub spans: Vec<SessionSpan>,
    pub(crate) shared: Arc<SharedSegment>,
}

/// The parts of a segment that snapshots of several generations share.
pub(crate) struct SharedSegment {
    pub(crate) sessions: Arc<SessionTable>,
    /// The events file, opened on first use. Once open, it can be read even if the segment is
    /// removed.
    pub(crate) events: OnceLock<Arc<CheckedFile>>,
    /// The footer of the events file.
    pub(crate) footer: OnceLock<ArrowReaderMetadata>,
    pub(crate) pages: OnceLock<Vec<TextPage>>,
    pub(crate) index: OnceLock<SkipIndex>,
    /// The sessions whose history the logs of the segment may repeat, once they were read.
    pub(crate) ancestors: OnceLock<Vec<SourceAncestors>>,
    /// Tables whose whole file was compared with its checksum and is intact.
    pub(crate) verified: Mutex<HashSet<String>>,
}

/// The sessions whose history a log may repeat.
pub(crate) struct SourceAncestors {
    pub(crate) session_id: String,
    /// Ids separated by spaces; empty if there are none.
    pub(crate) ancestors: String,
    /// Number of the segment that first held the row of the log.
    pub(crate) segment: i64,
}

impl SourceAncestors {
    /// Returns `None` if the file is not the log of a session.
    fn of_row(row: SourceRow) -> Option<Self> {
        let ancestors = row.ancestors.unwrap_or_default();
        Some(Self { session_id: row.session_id?, ancestors, segment: row.segment })
    }
}

impl SharedSegment {
    /// Returns the parts of a segment with these sessions. No other file is read yet.
    pub(crate) fn new(sessions: SessionTable) -> Self {
        Self {
            sessions: Arc::new(sessions),
            events: OnceLock::new(),
            footer: OnceLock::new(),
            pages: OnceLock::new(),
            index: OnceLock::new(),
            ancestors: OnceLock::new(),
            verified: Mutex::default(),
        }
    }

    fn lock_verified(&self) -> MutexGuard<'_, HashSet<String>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segment {
    /// Returns its rows of `sessions`: each session as it was when the segment was written.
    pub(crate) fn read_sessions(&self) -> Result<Vec<Arc<SessionRow>>, StoreError> {
        self.shared.sessions.read_rows()
    }

    /// Returns its rows of `sources`: each log as it was when the segment was written.
    pub(crate) fn read_sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        self.shared.sessions.source().read_whole_sources(self.entry.number)
    }

    /// Returns the summaries of its sessions. No row is read for them.
    pub(crate) fn summaries(&self) -> &[SessionSummary] {
        self.shared.sessions.summaries()
    }

    /// Returns the path of a table's file.
    pub fn table_path(&self, table: &str) -> PathBuf {
        self.dir.join(file_name(table))
    }

    /// Returns the events file, which is opened on first use.
    pub(super) fn events_file(&self) -> Result<Arc<CheckedFile>, StoreError> {
        if let Some(file) = self.shared.events.get() {
            return Ok(Arc::clone(file));
        }
        let checksums = self.chunk_checksums(EVENTS.name)?;
        let file = Arc::new(self.open_checked(EVENTS.name, checksums)?);
        Ok(Arc::clone(self.shared.events.get_or_init(|| file)))
    }

    fn open_checked(&self, table: &str, checksums: Vec<u32>) -> Result<CheckedFile, StoreError> {
        let path = self.table_path(table);
        let length = self.entry.file_entry(table).map(|file| file.bytes);
        let length =
            length.ok_or_else(|| StoreError::damaged(&path, "the manifest does not list it"))?;
        CheckedFile::open(&path, length, checksums)
    }

    fn chunk_checksums(&self, table: &str) -> Result<Vec<u32>, StoreError> {
        read_chunk_checksums(&self.dir, &self.entry, table)
    }

    /// Returns the footer of the events file, which is read on first use.
    pub(super) fn events_footer(&self) -> Result<ArrowReaderMetadata, StoreError> {
        if let Some(footer) = self.shared.footer.get() {
            return Ok(footer.clone());
        }
        let footer = read_footer(&self.events_file()?)?;
        Ok(self.shared.footer.get_or_init(|| footer).clone())
    }

    /// Returns the pages of the text column, in order.
    pub fn text_pages(&self) -> Result<&[TextPage], StoreError> {
        if let Some(pages) = self.shared.pages.get() {
            return Ok(pages);
        }
        // A footer takes more memory than the pages, and few searches read rows of most segments, so
        // it is not kept for them.
        let pages = match self.shared.footer.get() {
            Some(footer) => locate_text_pages(footer),
            None => locate_text_pages(&read_footer(&self.events_file()?)?),
        };
        let path = self.table_path("events");
        let pages = pages.ok_or_else(|| StoreError::damaged(&path, "it has no page index"))?;
        Ok(self.shared.pages.get_or_init(|| pages))
    }

    /// Returns the skip index, which is opened on first use.
    pub fn skip_index(&self) -> Result<&SkipIndex, StoreError> {
        if let Some(index) = self.shared.index.get() {
            return Ok(index);
        }
        let path = self.table_path(SKIP_INDEX);
        let checksums = self.chunk_checksums(SKIP_INDEX)?;
        let index = SkipIndex::open(self.open_checked(SKIP_INDEX, checksums)?)?;
        if index.row_count() as u64 != self.entry.events {
            return Err(StoreError::damaged(&path, "it belongs to another segment"));
        }
        Ok(self.shared.index.get_or_init(|| index))
    }

    /// Returns the ancestors of its logs. They are read once in this process.
    pub(crate) fn read_ancestors(&self) -> Result<&[SourceAncestors], StoreError> {
        if let Some(ancestors) = self.shared.ancestors.get() {
            return Ok(ancestors);
        }
        let rows = self.shared.sessions.source().read_sources(self.entry.number)?;
        let ancestors = rows.into_iter().filter_map(SourceAncestors::of_row).collect();
        Ok(self.shared.ancestors.get_or_init(|| ancestors))
    }

    /// Returns whether the skip index is open.
    pub fn has_open_index(&self) -> bool {
        self.shared.index.get().is_some()
    }

    /// Compares all files of the segment with their checksums.
    pub(crate) fn verify_files(&self) -> Result<(), StoreError> {
        self.entry.known_files().try_for_each(|file| self.verify_file(file))
    }

    fn verify_file(&self, file: &FileEntry) -> Result<(), StoreError> {
        file.verify_at(&self.table_path(&file.table))
    }

    /// Compares the whole file of a table with its checksum, once in this process. This is for
    /// readers of the file, like DuckDB, that do not check what they read. A table without rows has
    /// no file.
    pub(crate) fn verify_table(&self, table: &str) -> Result<(), StoreError> {
        let Some(file) = self.entry.file_entry(table) else { return Ok(()) };
        if self.shared.lock_verified().contains(table) {
            return Ok(());
        }
        self.verify_file(file)?;
        self.shared.lock_verified().insert(table.to_owned());
        Ok(())
    }
}
