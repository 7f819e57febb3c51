//! The single writer of a store: holds the lock, takes rows from ingest, commits segments.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use ingest::plan::Known;
use ingest::redact::Redactor;
use ingest::redact::columns::shows_path;
use ingest::run::remask::Remask;
use ingest::run::{Sink, Target};
use schemas::Timestamp;
use schemas::problem::Problem;
use schemas::session::{EventRow, ProblemRow, SessionRow, SourceRow};
use schemas::table::EventColumn;

use super::damage::{Verify, set_aside_damaged};
use super::disk::files;
use super::disk::held_folder::HeldFolder;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::manifest::{Manifest, Retired, SegmentEntry};
use super::segment::event_reader::column_of;
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;
use super::{compact, folder};

/// A segment with at least this many bytes of events is committed at the next checkpoint.
const SEGMENT_BYTES: usize = 32 << 20;

/// A segment with rows of at least this many files is committed at the next checkpoint. The writer
/// holds these rows until then, about 2 KB each.
const SEGMENT_FILES: usize = 16_384;

/// A segment with at least this many names of tools, kinds and files is committed at the next
/// checkpoint. The writer holds these names as well.
const SEGMENT_NAMES: usize = 100_000;

/// How long superseded segments stay, in microseconds: readers of an older manifest may need them.
const GRACE: i64 = 10 * 60 * 1_000_000;

/// Holds the write lock of a store until dropped.
pub struct Writer {
    dir: PathBuf,
    segments: Arc<HeldFolder>,
    manifest: Mutex<Manifest>,
    next_segment: AtomicI64,
    /// The store as it was when the lock was taken.
    before: Snapshot,
    set_aside: u64,
    /// A notice for the user about the store's folder.
    notice: Option<String>,
    /// Decoder states by path, read on first use.
    states: OnceLock<HashMap<String, String>>,
    lock: StoreLock,
}

/// Columns that distinguish a record from the one before it.
const RECORD_COLUMNS: [EventColumn; 2] = [EventColumn::SourceOffset, EventColumn::RecordHash];

impl Writer {
    /// Creates the store if it does not exist, takes the lock, and removes leftovers of killed
    /// writers.
    pub(super) fn open(dir: &Path, verify: Verify) -> Result<Self, StoreError> {
        files::create_private_dirs(dir)?;
        // Read again after the look at the folder: another process may be in its first ingest.
        if Manifest::read(dir)?.is_none()
            && let Err(error) = folder::refuse_foreign_folder(dir)
            && Manifest::read(dir)?.is_none()
        {
            return Err(error);
        }
        let lock = StoreLock::acquire(dir, folder::WRITE_LOCK)?;
        let of_store = folder::make_private(dir)?;
        let mut manifest = read_or_begin(dir, &lock)?;
        let segments = Arc::new(HeldFolder::open(&dir.join("segments"))?);
        let of_segments = folder::make_private(&dir.join("segments"))?;
        lock.check()?;
        let set_aside = set_aside_damaged(dir, &lock, &mut manifest, verify)?;
        let now = Timestamp::now().0;
        // A clock that was set back must not keep them forever.
        manifest.retired.retain(|retired| (0..GRACE).contains(&(now - retired.at)));
        let highest = folder::remove_leftovers(dir, &manifest);
        let before = Snapshot::load(dir, manifest.clone(), None)?;
        let next_segment = AtomicI64::new(manifest.next_segment.max(highest + 1));
        Ok(Self {
            dir: dir.to_owned(),
            segments,
            manifest: Mutex::new(manifest),
            next_segment,
            before,
            set_aside,
            notice: of_store.or(of_segments),
            states: OnceLock::new(),
            lock,
        })
    }

    /// Returns the sources and sessions that the store knows, for planning.
    pub fn known(&self) -> Result<Known, StoreError> {
        let mut sources: HashMap<_, _> =
            self.before.sources(false)?.into_iter().map(|row| (row.path.clone(), row)).collect();
        // A session that lost rows with a damaged segment must be re-read, so no checkpoint may fit
        // it.
        for session in self.before.incomplete_sessions() {
            let mut rows = sources.values_mut();
            let is_its_log = |row: &&mut SourceRow| {
                row.session_id.as_ref() == Some(&session.session_id)
                    && shows_path(&session.source_path, &row.path)
            };
            if let Some(row) = rows.find(is_its_log) {
                (row.modified_us, row.head_hash) = (-1, !row.head_hash);
            }
        }
        let sessions = self
            .before
            .sessions()
            .iter()
            .map(|row| (row.session_id.clone(), Arc::clone(row)))
            .collect();
        Ok(Known { sources, sessions })
    }

    /// Returns the number of damaged segments that were set aside when the lock was taken.
    pub fn set_aside(&self) -> u64 {
        self.set_aside
    }

    /// Returns a notice for the user about the store's folder, if others were able to write to it.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Merges small segments as long as there are too many.
    pub fn compact(&self) -> Result<(), StoreError> {
        loop {
            let manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(from) = compact::suffix(&manifest) else { return Ok(()) };
            let snapshot = Snapshot::load(&self.dir, manifest, Some(&self.before))?;
            let merged = compact::merge(&self.dir, &snapshot, from, self.begin_segment())?;
            let old: Vec<i64> =
                snapshot.segments()[from..].iter().map(|segment| segment.entry.number).collect();
            self.commit(merged, &old)?;
        }
    }

    /// Retires the segments whose events are all superseded, as after all logs were re-read because
    /// the redaction rules grew: titles and states hold secrets too.
    pub fn purge(&self) -> Result<(), StoreError> {
        let manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = Snapshot::load(&self.dir, manifest, Some(&self.before))?;
        let superseded = |row: &Arc<SessionRow>| {
            snapshot.session(&row.session_id).is_some_and(|now| row.segment < now.live_from)
        };
        let dead: Vec<_> = snapshot
            .segments()
            .iter()
            .filter(|segment| segment.spans.is_empty())
            .filter(|segment| segment.sessions().iter().any(superseded))
            .collect();
        if dead.is_empty() {
            return Ok(());
        }
        let old: Vec<i64> = dead.iter().map(|segment| segment.entry.number).collect();
        let rest = compact::without_events(&self.dir, &snapshot, &dead, self.begin_segment())?;
        self.commit(rest, &old)
    }

    /// Redacts again the stored rows of logs that no longer exist, as these logs cannot be re-read.
    /// `paths` are their files. The rows as they were are superseded. Sessions that lost rows by
    /// damage stay as they are, because the rows of one segment have no gap.
    pub fn mask_again(&self, paths: &[String], redactor: &Redactor) -> Result<(), StoreError> {
        let manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = Snapshot::load(&self.dir, manifest, Some(&self.before))?;
        let of_paths = |row: &SourceRow| paths.contains(&row.path);
        let sources = snapshot.sources(true)?.into_iter().filter(of_paths);
        let sources: HashMap<_, _> = sources.map(|row| (row.session_id.clone(), row)).collect();
        let damaged: HashSet<&str> =
            snapshot.incomplete_sessions().map(|row| row.session_id.as_str()).collect();
        let problems = snapshot.problems()?;
        let mut sink = WriterSink { writer: self, segment: None };
        for (at, session) in snapshot.sessions().iter().enumerate() {
            let source = sources.get(&Some(session.session_id.clone()));
            let Some(source) = source.filter(|_| !damaged.contains(session.session_id.as_str()))
            else {
                continue;
            };
            let mut remask = Remask::new(redactor, sink.segment()?);
            let mut events = snapshot.events_of(at, ALL_EVENTS, &[]);
            while let Some(batch) = events.next_batch()? {
                sink.events(&remask.events(&batch).map_err(|error| events.damaged(error))?)?;
            }
            let is_of_log = |problem: &&ProblemRow| problem.path == session.source_path;
            let of_log = problems.iter().filter(is_of_log).cloned();
            let problems = of_log
                .filter_map(compact::problem)
                .map(|problem| remask.problem(&problem))
                .collect();
            let source = remask.source(source);
            sink.checkpoint(remask.session(session), source, problems)?;
        }
        sink.finish()
    }

    fn begin_segment(&self) -> SegmentWriter {
        SegmentWriter::new(&self.segments, self.next_segment.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds a new segment to the manifest and retires the `old` ones that it replaces.
    fn commit(&self, new: Option<FinishedSegment>, old: &[i64]) -> Result<(), StoreError> {
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = manifest.clone();
        let now = Timestamp::now().0;
        next.generation += 1;
        next.updated_at = now;
        next.next_segment = next.next_segment.max(self.next_segment.load(Ordering::Relaxed));
        next.segments.retain(|segment| !old.contains(&segment.number));
        next.retired.extend(old.iter().map(|number| Retired { number: *number, at: now }));
        next.segments.extend(new.as_ref().map(|new| new.entry.clone()));
        next.segments.sort_by_key(|segment| segment.number);
        let written = self.replace_manifest(&next);
        if let Some(new) = new {
            // A failed write may still have replaced the manifest: the disk may have failed after
            // the rename.
            let may_be_named = written.is_ok()
                || Manifest::read(&self.dir)
                    .is_ok_and(|found| found.is_some_and(|found| found.names(new.entry.number)));
            if may_be_named {
                new.folder.keep();
            }
        }
        written?;
        tracing::info!(generation = next.generation, segments = next.segments.len(), "committed");
        *manifest = next;
        Ok(())
    }

    fn replace_manifest(&self, next: &Manifest) -> Result<(), StoreError> {
        self.segments.sync()?;
        self.lock.check()?;
        // The folder of segments may be moved or removed alone.
        let named = next.segments.iter().map(|segment| SegmentEntry::folder_name(segment.number));
        if !self.segments.is_whole(named) {
            return Err(StoreError::Replaced { path: self.dir.clone() });
        }
        next.write(&self.dir)
    }

    /// Returns the cause of an error while rows were written: that the store is not at its path any
    /// more, or else `error` itself.
    fn cause_of(&self, error: StoreError) -> StoreError {
        self.lock.check().err().unwrap_or(error)
    }
}

/// Reads the manifest of a store. A new store gets a manifest without segments before its first
/// segment is written. Segments without a manifest have therefore lost it.
fn read_or_begin(dir: &Path, lock: &StoreLock) -> Result<Manifest, StoreError> {
    let found = Manifest::read(dir)?;
    if found.is_none() {
        folder::refuse_lost_manifest(dir)?;
    }
    lock.check()?;
    let segments = dir.join("segments");
    if !segments.is_dir() {
        files::create_private_dir(&segments)?;
    }
    if let Some(manifest) = found {
        return Ok(manifest);
    }
    let manifest = Manifest::default();
    manifest.write(dir)?;
    Ok(manifest)
}

/// Writes the rows of one ingest worker into segments.
pub struct WriterSink<'w> {
    writer: &'w Writer,
    segment: Option<SegmentWriter>,
}

impl WriterSink<'_> {
    fn current(&mut self) -> &mut SegmentWriter {
        self.segment.get_or_insert_with(|| self.writer.begin_segment())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        match segment.finish().map_err(|error| self.writer.cause_of(error))? {
            Some(finished) => self.writer.commit(Some(finished), &[]),
            None => Ok(()),
        }
    }
}

impl Sink for WriterSink<'_> {
    type Error = StoreError;

    fn segment(&mut self) -> Result<i64, StoreError> {
        Ok(self.current().number())
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        let added = self.current().events(batch);
        added.map_err(|error| self.writer.cause_of(error))
    }

    fn checkpoint(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        problems: Vec<Problem>,
    ) -> Result<(), StoreError> {
        let segment = self.current();
        segment.session(session);
        segment.source(source);
        segment.problems(problems);
        let is_full = segment.bytes() >= SEGMENT_BYTES
            || segment.files() >= SEGMENT_FILES
            || segment.names() >= SEGMENT_NAMES;
        if is_full {
            self.commit()?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.commit()
    }
}

impl<'w> Target for &'w Writer {
    type Error = StoreError;
    type Sink = WriterSink<'w>;

    fn sink(&self) -> Result<WriterSink<'w>, StoreError> {
        Ok(WriterSink { writer: self, segment: None })
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, StoreError> {
        let Some(session) = self.before.position(session_id) else { return Ok(Vec::new()) };
        let mut hashes: Vec<u64> = Vec::new();
        let mut events = self.before.events_of(session, ALL_EVENTS, &RECORD_COLUMNS);
        // The events of one record are contiguous; a line may hold several records.
        let mut last = None;
        while let Some(batch) = events.next_batch()? {
            let number = |name| column_of(&batch, name)?.as_primitive_opt::<Int64Type>();
            let [offsets, column] = RECORD_COLUMNS.map(number);
            let (Some(offsets), Some(column)) = (offsets, column) else { continue };
            for (offset, hash) in offsets.values().iter().zip(column.values()) {
                let record = Some((*offset, *hash));
                if last != record && *hash != 0 {
                    hashes.push(hash.cast_unsigned());
                }
                last = record;
            }
        }
        Ok(hashes)
    }

    fn state(&self, path: &str) -> Result<Option<String>, StoreError> {
        if self.states.get().is_none() {
            let rows = self.before.sources(true)?;
            let states = rows.into_iter().filter_map(|row| Some((row.path, row.state?))).collect();
            let _ = self.states.set(states);
        }
        Ok(self.states.get().and_then(|states| states.get(path)).cloned())
    }

    fn events(&self, session_id: &str, of: &[Range<i32>]) -> Result<Vec<EventRow>, StoreError> {
        let Some(session) = self.before.position(session_id) else { return Ok(Vec::new()) };
        let index = |event: i32| u32::try_from(event).unwrap_or(0);
        let ranges: Vec<_> = of.iter().map(|of| index(of.start)..index(of.end)).collect();
        self.before.events_of(session, &ranges, &[]).rows()
    }
}
