//! The single writer of a store: holds the lock, takes rows from ingest, commits segments.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use ingest::plan::Known;
use ingest::redact::Redactor;
use ingest::redact::columns::is_masked_path;
use ingest::run::remask::RowRemasker;
use ingest::run::{Sink, Target};
use schemas::Timestamp;
use schemas::problem::Problem;
use schemas::session::{EventRow, SessionRow, SourceRow};
use schemas::table::EventColumn;

use super::damage::{Verify, set_aside_damaged};
use super::disk::files;
use super::disk::held_folder::HeldFolder;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::manifest::{Manifest, RetiredSegment, SegmentEntry};
use super::segment::event_reader::column_of;
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;
use super::{compact, folder};

/// A segment with at least this many bytes of events is committed at the next checkpoint.
const FULL_SEGMENT_BYTES: usize = 32 << 20;

/// A segment with rows of at least this many files is committed at the next checkpoint. The writer
/// holds these rows until then, about 2 KB each.
const FULL_SEGMENT_FILES: usize = 16_384;

/// A segment with at least this many names of tools, kinds and files is committed at the next
/// checkpoint. The writer holds these names as well.
const FULL_SEGMENT_NAMES: usize = 100_000;

/// How long retired segments stay, in microseconds: readers of an older manifest may need them.
const RETIRED_GRACE_US: i64 = 10 * 60 * 1_000_000;

/// Holds the write lock of a store until dropped.
pub struct StoreWriter {
    dir: PathBuf,
    segments: Arc<HeldFolder>,
    manifest: Mutex<Manifest>,
    next_segment: AtomicI64,
    /// The store as it was when the lock was taken.
    before: Snapshot,
    /// Number of damaged segments that were set aside when the lock was taken.
    set_aside: u64,
    /// A notice for the user about the store's folder.
    notice: Option<String>,
    /// Decoder states by path, read on first use.
    states: OnceLock<HashMap<String, String>>,
    lock: StoreLock,
}

/// Columns that distinguish a record from the one before it.
const RECORD_COLUMNS: [EventColumn; 3] =
    [EventColumn::SourceOffset, EventColumn::RecordHash, EventColumn::CopyHash];

impl StoreWriter {
    /// Creates the store if it does not exist, takes the lock, sets damaged segments aside, and
    /// removes leftovers of killed writers.
    pub(super) fn open(dir: &Path, verify: Verify) -> Result<Self, StoreError> {
        files::create_private_dirs(dir)?;
        // Reads the manifest again after checking the folder: another process may be in its first
        // ingest.
        if Manifest::read(dir)?.is_none()
            && let Err(error) = folder::refuse_foreign_folder(dir)
            && Manifest::read(dir)?.is_none()
        {
            return Err(error);
        }

        let lock = StoreLock::acquire(dir, folder::WRITE_LOCK)?;
        let store_notice = folder::make_private(dir)?;
        let mut manifest = read_or_create_manifest(dir, &lock)?;
        let segments = Arc::new(HeldFolder::open(&dir.join("segments"))?);
        let segments_notice = folder::make_private(&dir.join("segments"))?;
        lock.check_not_replaced()?;

        let set_aside = set_aside_damaged(dir, &lock, &mut manifest, verify)?;
        let now = Timestamp::now().0;
        // A clock that was set back must not keep retired segments forever.
        manifest.retired.retain(|retired| (0..RETIRED_GRACE_US).contains(&(now - retired.at)));
        let highest_on_disk = folder::remove_leftovers(dir, &manifest);

        let before = Snapshot::load(dir, manifest.clone(), None)?;
        let next_segment = AtomicI64::new(manifest.next_segment.max(highest_on_disk + 1));
        Ok(Self {
            dir: dir.to_owned(),
            segments,
            manifest: Mutex::new(manifest),
            next_segment,
            before,
            set_aside,
            notice: store_notice.or(segments_notice),
            states: OnceLock::new(),
            lock,
        })
    }

    /// Returns the sources and sessions that the store knows, for planning.
    pub fn collect_known_logs(&self) -> Result<Known, StoreError> {
        let mut sources: HashMap<_, _> = self
            .before
            .read_sources(false)?
            .into_iter()
            .map(|row| (row.path.clone(), row))
            .collect();
        // A session that lost rows with a damaged segment must be re-read, so its checkpoint must
        // not match its log.
        for session in self.before.incomplete_sessions() {
            if let Some(row) = sources.values_mut().find(|row| is_log_of(session, row)) {
                row.modified_us = -1;
                row.head_hash = !row.head_hash;
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
    pub fn segments_set_aside(&self) -> u64 {
        self.set_aside
    }

    /// Returns a notice for the user about the store's folder, if others were able to write to it.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Merges small segments until there are few enough of them.
    pub fn merge_small_segments(&self) -> Result<(), StoreError> {
        loop {
            let manifest = self.current_manifest();
            let Some(first_merged) = compact::find_mergeable_suffix(&manifest) else {
                return Ok(());
            };
            let snapshot = Snapshot::load(&self.dir, manifest, Some(&self.before))?;
            let merged =
                compact::merge_segments(&self.dir, &snapshot, first_merged, self.begin_segment())?;
            let old: Vec<i64> = snapshot.segments()[first_merged..]
                .iter()
                .map(|segment| segment.entry.number)
                .collect();
            self.commit_segment(merged, &old)?;
        }
    }

    /// Retires the segments whose events are all superseded. This is needed after all logs were
    /// re-read because the redaction rules grew: titles and states hold secrets too.
    pub fn retire_superseded_segments(&self) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut dead = Vec::new();
        for segment in snapshot.segments() {
            if segment.spans.is_empty()
                && segment.sessions().iter().any(|row| snapshot.is_superseded(row))
            {
                dead.push(segment);
            }
        }
        if dead.is_empty() {
            return Ok(());
        }

        let old: Vec<i64> = dead.iter().map(|segment| segment.entry.number).collect();
        let rest =
            compact::rewrite_without_events(&self.dir, &snapshot, &dead, self.begin_segment())?;
        self.commit_segment(rest, &old)
    }

    /// Redacts the stored rows of logs that no longer exist and therefore cannot be re-read.
    /// `paths` are their files. The redacted rows supersede the earlier ones. Sessions that lost
    /// rows by damage stay as they are, because the rows of a session in one segment must have no
    /// gap.
    pub fn redact_again(&self, paths: &[String], redactor: &Redactor) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut sources: HashMap<String, SourceRow> = HashMap::new();
        for row in snapshot.read_sources(true)? {
            if let Some(session_id) = &row.session_id
                && paths.contains(&row.path)
            {
                sources.insert(session_id.clone(), row);
            }
        }
        let damaged: HashSet<&str> =
            snapshot.incomplete_sessions().map(|row| row.session_id.as_str()).collect();
        let problems = snapshot.read_problems()?;
        let mut sink = WriterSink { writer: self, segment: None };
        for (at, session) in snapshot.sessions().iter().enumerate() {
            if damaged.contains(session.session_id.as_str()) {
                continue;
            }
            let Some(source) = sources.get(&session.session_id) else { continue };

            let mut remask = RowRemasker::new(redactor, sink.segment()?);
            let mut events = snapshot.events_of(at, ALL_EVENTS, &[]);
            while let Some(batch) = events.next_batch()? {
                sink.events(
                    &remask.mask_events(&batch).map_err(|error| events.damaged_batch(error))?,
                )?;
            }
            let mut masked_problems = Vec::new();
            for row in &problems {
                if row.path == session.source_path
                    && let Some(problem) = compact::parse_problem_row(row.clone())
                {
                    masked_problems.push(remask.mask_problem(&problem));
                }
            }
            let masked_source = remask.mask_source(source);
            sink.checkpoint(remask.mask_session(session), masked_source, masked_problems)?;
        }
        sink.finish()
    }

    fn current_manifest(&self) -> Manifest {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn begin_segment(&self) -> SegmentWriter {
        SegmentWriter::new(&self.segments, self.next_segment.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds a new segment to the manifest and retires the `old` ones that it replaces.
    fn commit_segment(&self, new: Option<FinishedSegment>, old: &[i64]) -> Result<(), StoreError> {
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = manifest.clone();
        let now = Timestamp::now().0;
        next.generation += 1;
        next.updated_at = now;
        next.next_segment = next.next_segment.max(self.next_segment.load(Ordering::Relaxed));
        next.segments.retain(|segment| !old.contains(&segment.number));
        next.retired.extend(old.iter().map(|number| RetiredSegment { number: *number, at: now }));
        if let Some(new) = &new {
            next.segments.push(new.entry.clone());
        }
        next.segments.sort_by_key(|segment| segment.number);

        let written = self.replace_manifest(&next);
        if let Some(new) = new {
            // A failed write may still have replaced the manifest: the disk may have failed after
            // the rename.
            if written.is_ok() || self.is_named_on_disk(new.entry.number) {
                new.folder.keep();
            }
        }
        written?;

        tracing::info!(generation = next.generation, segments = next.segments.len(), "committed");
        *manifest = next;
        Ok(())
    }

    /// True if the manifest that is on disk now names segment `number`.
    fn is_named_on_disk(&self, number: i64) -> bool {
        matches!(Manifest::read(&self.dir), Ok(Some(manifest)) if manifest.includes_segment(number))
    }

    /// Replaces the manifest on disk, if the store is still the one that was locked.
    fn replace_manifest(&self, next: &Manifest) -> Result<(), StoreError> {
        self.segments.sync()?;
        self.lock.check_not_replaced()?;
        // The folder of segments may have been moved or removed alone.
        let folder_names =
            next.segments.iter().map(|segment| SegmentEntry::folder_name(segment.number));
        if !self.segments.is_whole(folder_names) {
            return Err(StoreError::Replaced { path: self.dir.clone() });
        }
        next.write(&self.dir)
    }

    /// Returns the cause of an error of writing rows: the error of [`StoreLock::check_not_replaced`] if the
    /// store is no longer at its path, otherwise `error` itself.
    fn find_cause(&self, error: StoreError) -> StoreError {
        self.lock.check_not_replaced().err().unwrap_or(error)
    }
}

/// Returns true if `row` is about the log of `session`.
fn is_log_of(session: &SessionRow, row: &SourceRow) -> bool {
    row.session_id.as_ref() == Some(&session.session_id)
        && is_masked_path(&session.source_path, &row.path)
}

/// Reads the manifest of a store. A new store gets a manifest without segments before its first
/// segment is written, so segments without a manifest have lost it.
fn read_or_create_manifest(dir: &Path, lock: &StoreLock) -> Result<Manifest, StoreError> {
    let found = Manifest::read(dir)?;
    if found.is_none() {
        folder::refuse_lost_manifest(dir)?;
    }
    lock.check_not_replaced()?;
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
    writer: &'w StoreWriter,
    segment: Option<SegmentWriter>,
}

impl WriterSink<'_> {
    /// Returns the segment under construction, which is begun if there is none.
    fn current_segment(&mut self) -> &mut SegmentWriter {
        self.segment.get_or_insert_with(|| self.writer.begin_segment())
    }

    /// Commits the segment under construction, if there is one.
    fn commit_current(&mut self) -> Result<(), StoreError> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        match segment.finish().map_err(|error| self.writer.find_cause(error))? {
            Some(finished) => self.writer.commit_segment(Some(finished), &[]),
            None => Ok(()),
        }
    }
}

impl Sink for WriterSink<'_> {
    type Error = StoreError;

    fn segment(&mut self) -> Result<i64, StoreError> {
        Ok(self.current_segment().number())
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        let added = self.current_segment().push_events(batch);
        added.map_err(|error| self.writer.find_cause(error))
    }

    fn checkpoint(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        problems: Vec<Problem>,
    ) -> Result<(), StoreError> {
        let segment = self.current_segment();
        segment.record_session(session);
        segment.record_source(source);
        segment.push_problems(problems);
        let is_full = segment.bytes() >= FULL_SEGMENT_BYTES
            || segment.source_count() >= FULL_SEGMENT_FILES
            || segment.name_count() >= FULL_SEGMENT_NAMES;
        if is_full {
            self.commit_current()?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.commit_current()
    }
}

impl<'w> Target for &'w StoreWriter {
    type Error = StoreError;
    type Sink = WriterSink<'w>;

    fn sink(&self) -> Result<WriterSink<'w>, StoreError> {
        Ok(WriterSink { writer: self, segment: None })
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, StoreError> {
        let Some(session) = self.before.session_position(session_id) else { return Ok(Vec::new()) };
        let mut hashes: Vec<u64> = Vec::new();
        let mut events = self.before.events_of(session, ALL_EVENTS, &RECORD_COLUMNS);
        // The events of one record are contiguous; a line may hold several records.
        let mut last = None;
        while let Some(batch) = events.next_batch()? {
            let [offset_column, hash_column, copy_column] = RECORD_COLUMNS;
            let Some(offset_values) = int64_column(&batch, offset_column) else { continue };
            let Some(hash_values) = int64_column(&batch, hash_column) else { continue };
            let Some(copy_values) = int64_column(&batch, copy_column) else { continue };
            for row in 0..batch.num_rows() {
                let record_hashes = [hash_values.value(row), copy_values.value(row)];
                let record = Some((offset_values.value(row), record_hashes));
                if last != record {
                    let known = record_hashes.into_iter().filter(|hash| *hash != 0);
                    hashes.extend(known.map(i64::cast_unsigned));
                }
                last = record;
            }
        }
        Ok(hashes)
    }

    fn state(&self, path: &str) -> Result<Option<String>, StoreError> {
        if self.states.get().is_none() {
            let rows = self.before.read_sources(true)?;
            let states = rows.into_iter().filter_map(|row| Some((row.path, row.state?))).collect();
            let _ = self.states.set(states);
        }
        Ok(self.states.get().and_then(|states| states.get(path)).cloned())
    }

    fn events(&self, session_id: &str, ranges: &[Range<i32>]) -> Result<Vec<EventRow>, StoreError> {
        let Some(session) = self.before.session_position(session_id) else { return Ok(Vec::new()) };
        let ranges: Vec<_> = ranges.iter().map(unsigned_range).collect();
        self.before.events_of(session, &ranges, &[]).read_rows()
    }
}

fn int64_column(batch: &RecordBatch, column: EventColumn) -> Option<&Int64Array> {
    column_of(batch, column)?.as_primitive_opt::<Int64Type>()
}

/// Converts a range of event indexes, which are not negative.
fn unsigned_range(range: &Range<i32>) -> Range<u32> {
    let start = u32::try_from(range.start).unwrap_or(0);
    let end = u32::try_from(range.end).unwrap_or(0);
    start..end
}
