//! One segment of a snapshot: its files, opened and checked when they are first needed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use schemas::session::SessionRow;
use schemas::table::EVENTS;

use super::checked_file::{CHUNK_BYTES, CheckedFile};
use super::index::SkipIndex;
use super::manifest::{CHECKSUMS, FileEntry, SKIP, SegmentEntry, file_name};
use super::pages::{self, TextPage};
use super::snapshot::Span;
use super::{StoreError, files, reader};

/// One segment of a snapshot.
pub struct Segment {
    pub entry: SegmentEntry,
    pub dir: PathBuf,
    /// Live rows by session, in the order of rows.
    pub spans: Vec<Span>,
    pub(super) shared: Arc<Shared>,
}

/// What snapshots of several generations share about a segment.
pub(super) struct Shared {
    pub(super) sessions: Vec<Arc<SessionRow>>,
    /// The events file, opened when first needed: it can be read when it was superseded since.
    pub(super) events: OnceLock<Arc<CheckedFile>>,
    /// Its footer.
    pub(super) footer: OnceLock<ArrowReaderMetadata>,
    pub(super) pages: OnceLock<Vec<TextPage>>,
    pub(super) index: OnceLock<SkipIndex>,
    /// Tables whose whole file was compared with its checksum and is right.
    pub(super) verified: Mutex<HashSet<String>>,
}

impl Segment {
    /// Its rows of `sessions`: how each session was when the segment was written.
    pub(super) fn sessions(&self) -> &[Arc<SessionRow>] {
        &self.shared.sessions
    }

    /// The file of a table.
    pub fn path(&self, table: &str) -> PathBuf {
        self.dir.join(file_name(table))
    }

    /// The events file.
    pub(super) fn events(&self) -> Result<Arc<CheckedFile>, StoreError> {
        if let Some(file) = self.shared.events.get() {
            return Ok(Arc::clone(file));
        }
        let checksums = self.chunk_checksums(EVENTS.name)?;
        let file = Arc::new(self.open_checked(EVENTS.name, checksums)?);
        Ok(Arc::clone(self.shared.events.get_or_init(|| file)))
    }

    fn open_checked(&self, table: &str, checksums: Vec<u32>) -> Result<CheckedFile, StoreError> {
        let path = self.path(table);
        let length = self.entry.file(table).map(|file| file.bytes);
        let length = length.ok_or_else(|| StoreError::damaged(&path, "no manifest names it"))?;
        CheckedFile::open(&path, length, checksums)
    }

    /// Reads the checksums of the chunks of `events` or `skip`; none for a segment without any.
    fn chunk_checksums(&self, table: &str) -> Result<Vec<u32>, StoreError> {
        let Some(expected) = self.entry.file(CHECKSUMS) else { return Ok(Vec::new()) };
        let bytes = reader::read_whole(&self.path(CHECKSUMS), expected)?;
        let (all, _) = bytes.as_chunks::<4>();
        let events = self.entry.file(EVENTS.name).map_or(0, |file| file.bytes);
        let events = usize::try_from(events.div_ceil(CHUNK_BYTES as u64)).unwrap_or(usize::MAX);
        let (of_events, of_index) = all.split_at(events.min(all.len()));
        let own = if table == SKIP { of_index } else { of_events };
        Ok(own.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
    }

    /// The footer of the events file.
    pub(super) fn footer(&self) -> Result<ArrowReaderMetadata, StoreError> {
        if let Some(footer) = self.shared.footer.get() {
            return Ok(footer.clone());
        }
        let footer = reader::footer(&self.events()?)?;
        Ok(self.shared.footer.get_or_init(|| footer).clone())
    }

    /// The pages of its text, in order.
    pub fn text_pages(&self) -> Result<&[TextPage], StoreError> {
        if let Some(pages) = self.shared.pages.get() {
            return Ok(pages);
        }
        let path = self.path("events");
        let pages = pages::locate(&self.footer()?)
            .ok_or_else(|| StoreError::damaged(&path, "it has no page index"))?;
        Ok(self.shared.pages.get_or_init(|| pages))
    }

    /// Whether what a search reads first is known.
    pub fn is_open(&self) -> bool {
        self.shared.pages.get().is_some() && self.shared.index.get().is_some()
    }

    /// Reads what a search reads first.
    pub fn open(&self) -> Result<(), StoreError> {
        self.index()?;
        self.text_pages().map(|_| ())
    }

    /// Its skip index.
    pub fn index(&self) -> Result<&SkipIndex, StoreError> {
        if let Some(index) = self.shared.index.get() {
            return Ok(index);
        }
        let path = self.path(SKIP);
        let checksums = self.chunk_checksums(SKIP)?;
        let index = SkipIndex::open(self.open_checked(SKIP, checksums)?)?;
        if index.rows() as u64 != self.entry.events {
            return Err(StoreError::damaged(&path, "it is of another segment"));
        }
        Ok(self.shared.index.get_or_init(|| index))
    }

    /// Compares its files with their checksums.
    pub(super) fn verify(&self) -> Result<(), StoreError> {
        self.entry.files.iter().try_for_each(|file| self.verify_file(file))
    }

    fn verify_file(&self, file: &FileEntry) -> Result<(), StoreError> {
        let path = self.path(&file.table);
        let (bytes, xxh3) = files::checksum(&path)?;
        if bytes != file.bytes || xxh3 != file.xxh3 {
            return Err(StoreError::damaged(&path, format!("{bytes} bytes, checksum {xxh3}")));
        }
        Ok(())
    }

    /// Compares the whole file of a table with its checksum, once in this process: for readers of
    /// the file, like DuckDB, that do not check what they read. A table without rows has no file.
    pub(super) fn verify_table(&self, table: &str) -> Result<(), StoreError> {
        let Some(file) = self.entry.file(table) else { return Ok(()) };
        let verified = || self.shared.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified().contains(table) {
            return Ok(());
        }
        self.verify_file(file)?;
        verified().insert(table.to_owned());
        Ok(())
    }
}
