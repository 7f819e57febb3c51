//! The single writer of a store: holds the lock, commits and merges segments.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use ingest::plan::Known;
use ingest::redact::columns::is_masked_path;
use ingest::stream::RecordAliases;
use schemas::Timestamp;
use schemas::session::SourceRow;

use super::catalog::{CATALOG_FILE, Catalog, recovery};
use super::condition::make_private;
use super::damage::{Verify, set_aside_damaged};
use super::disk::files;
use super::disk::held_folder::HeldFolder;
use super::disk::lock::{StoreLock, WRITE_LOCK};
use super::error::{StoreError, UserFile};
use super::lake::imported_from::{LogBeginning, beginning_of};
use super::lake::keys::LAKE_PATH;
use super::large_segments::GroupNumber;
use super::manifest::{LostLogs, Manifest, SegmentEntry};
use super::out_of_force::SessionsOutOfForce;
use super::reduced_writes::ReducedInForce;
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::segment::session_summary::SessionSummary;
use super::snapshot::Snapshot;
use super::visible::folder::{OverlayRemoval, remove_overlays};
use super::{compact, folder, large_segments, lost_logs};

/// How long retired segments stay, in microseconds: readers of an older manifest may need them.
const RETIRED_GRACE_US: i64 = 10 * 60 * 1_000_000;

/// Size of the catalog for which its check takes a few milliseconds.
const CATALOG_TURN_BYTES: u64 = 4 << 20;

/// Holds the write lock of a store until dropped.
pub struct StoreWriter {
    pub(super) dir: PathBuf,
    segments: Arc<HeldFolder>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) manifest: Mutex<Manifest>,
    pub(super) next_segment: AtomicI64,
    /// The store as it was when the lock was taken.
    pub(super) before: Snapshot,
    /// The snapshot that was taken last. The next one takes over the segments that it read.
    latest: Mutex<Option<Arc<Snapshot>>>,
    /// Number of damaged segments that were set aside when the lock was taken.
    set_aside: u64,
    /// A notice for the user about the store's folder.
    notice: Option<String>,
    /// Held while a segment ends: meanwhile it takes twice the memory, so only one does at a time.
    pub(super) ending: Mutex<()>,
    /// Where the state of each decoder is, by path, once some state was needed.
    pub(super) states: OnceLock<HashMap<String, (usize, usize)>>,
    /// The sessions whose texts were dropped. What is read of them again is dropped again.
    pub(super) reduced: ReducedInForce,
    /// The identities that records had before their secrets were replaced in the logs.
    pub(super) aliases: Arc<RecordAliases>,
    /// What goes out of force with the first rows of logs that this run reads.
    pub(super) out_of_force: Mutex<SessionsOutOfForce>,
    /// How the logs of imported sessions began when the lock was taken, once that was needed.
    pub(super) imported_beginnings: OnceLock<HashSet<LogBeginning>>,
    /// Held while new rows are compared with imported sessions, until both are committed.
    pub(super) comparing: Mutex<()>,
    pub(super) lock: StoreLock,
}

impl StoreWriter {
    /// Creates the store if it does not exist, takes the lock, sets damaged segments aside, removes
    /// leftovers of killed writers, and completes a `forget` that was killed.
    pub(super) fn open(dir: &Path, verify: Verify) -> Result<Self, StoreError> {
        files::create_private_dirs(dir)?;
        // Looks for the catalog again after checking the folder: another process may be in its first
        // ingest.
        let has_catalog = || dir.join(CATALOG_FILE).exists();
        if !has_catalog()
            && let Err(error) = folder::refuse_foreign_folder(dir)
            && !has_catalog()
        {
            return Err(error);
        }

        let lock = StoreLock::acquire(dir, WRITE_LOCK)?;
        folder::create_catalog(dir, &lock)?;
        lock.check_not_replaced()?;
        let (catalog, checked) = open_catalog(dir, verify)?;
        let mut manifest = checked.manifest().clone();
        let segments = Arc::new(HeldFolder::open(&dir.join("segments"))?);
        let notice = make_private(dir, &manifest)?;
        lock.check_not_replaced()?;

        let set_aside = set_aside_damaged(dir, &lock, &catalog, &mut manifest, verify)?;
        let now = Timestamp::now().0;
        // A clock that was set back must not keep retired segments forever.
        manifest.retired.retain(|retired| (0..RETIRED_GRACE_US).contains(&(now - retired.at)));
        if manifest.retired.len() < checked.manifest().retired.len() {
            catalog
                .commit(&manifest.to_json(), &[], &|number| manifest.includes_segment(number))?;
        }
        let highest_on_disk = folder::remove_leftovers(dir, &manifest);
        // What cannot be removed now stays for the next run.
        let _ = remove_overlays(dir, OverlayRemoval::Unused);

        let before = Snapshot::load(dir, manifest.clone(), Some(&checked))?;
        let next_segment = AtomicI64::new(manifest.next_segment.max(highest_on_disk + 1));
        let mut writer = Self {
            dir: dir.to_owned(),
            segments,
            catalog,
            manifest: Mutex::new(manifest),
            next_segment,
            before,
            latest: Mutex::default(),
            set_aside,
            notice,
            ending: Mutex::default(),
            states: OnceLock::new(),
            reduced: ReducedInForce::read(dir)?,
            aliases: Arc::new(UserFile::Scrubbed.read(dir)?),
            out_of_force: Mutex::default(),
            imported_beginnings: OnceLock::new(),
            comparing: Mutex::default(),
            lock,
        };
        if writer.complete_forget()? {
            writer.before = Snapshot::load(dir, writer.current_manifest(), Some(&writer.before))?;
        }
        Ok(writer)
    }

    /// Returns the sources and sessions that the store knows, for planning.
    pub fn collect_known_logs(&self) -> Result<Known, StoreError> {
        let mut sources = self.before.read_sources_by_path()?;
        let imported = sources.extract_if(|path, _| path.starts_with(LAKE_PATH));
        let imported: Vec<SourceRow> = imported.map(|(_, row)| row).collect();
        let beginnings = imported.iter().filter_map(beginning_of).collect();
        let _ = self.imported_beginnings.set(beginnings);
        // A session that lost rows with a damaged segment must be re-read, so its checkpoint must
        // not match its log.
        for session in self.before.incomplete_sessions() {
            if let Some(row) = sources.values_mut().find(|row| is_log_of(session, row)) {
                require_reread(row);
            }
        }

        let rows = self.before.read_rows()?.into_iter();
        let sessions = rows.map(|row| (row.session_id.clone(), Arc::clone(row))).collect();
        Ok(Known { sources, sessions, imported, aliases: Arc::clone(&self.aliases) })
    }

    /// Returns the store as it was when the lock was taken.
    pub fn snapshot_before(&self) -> &Snapshot {
        &self.before
    }

    /// Returns whether texts of some sessions were dropped.
    pub fn has_reduced_sessions(&self) -> bool {
        !self.reduced.reduced.sessions.is_empty()
    }

    /// Returns what `count` counts in the store as it is now.
    ///
    /// # Errors
    /// Fails if something was committed since the lock was taken, and cannot be read.
    pub fn count_now<T>(&self, count: impl FnOnce(&Snapshot) -> T) -> Result<T, StoreError> {
        if self.current_manifest() == *self.before.manifest() {
            return Ok(count(&self.before));
        }
        Ok(count(&*self.take_snapshot()?))
    }

    /// Releases the lock, then frees the snapshots.
    pub fn unlock(self) {
        drop(self.lock);
    }

    /// Returns the number of damaged segments that were set aside when the lock was taken.
    pub fn segments_set_aside(&self) -> u64 {
        self.set_aside
    }

    /// Returns a notice for the user about the store's folder, if others were able to write to it.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Returns the files of logs that lost rows with a damaged segment, wherever they are.
    pub fn find_lost_logs(&self) -> Result<Vec<PathBuf>, StoreError> {
        lost_logs::find_files(&self.current_manifest().lost, &self.before)
    }

    /// Forgets lost logs that were read again since the lock was taken. After a check of all
    /// segments that found no damage, forgets the others as well. Returns what remains lost.
    pub fn settle_lost_logs(&self, verify: Verify) -> Result<LostLogs, StoreError> {
        let manifest = self.current_manifest();
        if manifest.lost.is_empty() {
            return Ok(LostLogs::default());
        }
        let before = manifest.lost.clone();
        let lost = if verify == Verify::All && self.set_aside == 0 {
            LostLogs::default()
        } else {
            let snapshot = Snapshot::load(&self.dir, manifest, Some(&self.before))?;
            lost_logs::without_read_again(&before, &snapshot)?
        };
        if lost != before {
            self.commit(Vec::new(), |next| next.lost.clone_from(&lost))?;
        }
        Ok(lost)
    }

    /// Merges all small segments at the end of the manifest into one.
    pub(super) fn merge_all_small_segments(&self) -> Result<(), StoreError> {
        match compact::find_small_suffix(&self.current_manifest()) {
            Some(first_merged) => self.merge_from(first_merged),
            None => Ok(()),
        }
    }

    /// Merges small segments until there are few enough of them.
    pub fn merge_small_segments(&self) -> Result<(), StoreError> {
        while let Some(first_merged) = compact::find_mergeable_suffix(&self.current_manifest()) {
            self.merge_from(first_merged)?;
        }
        Ok(())
    }

    /// Merges the segments from position `first_merged` on into one.
    fn merge_from(&self, first_merged: usize) -> Result<(), StoreError> {
        let count = self.current_manifest().segments.len();
        self.merge_range(first_merged..count, self.begin_segment())
    }

    /// Merges one group of segments into a large one, usually of `group_bytes`: the newest group that
    /// is not merged yet. Returns false if there is none.
    pub fn merge_full_segments(&self, group_bytes: u64) -> Result<bool, StoreError> {
        let manifest = self.current_manifest();
        let is_taken = |number| folder::has_segment_folder(&self.dir, number);
        let Some(group) = large_segments::find_group(&manifest, group_bytes, is_taken) else {
            return Ok(false);
        };
        let number = match group.number {
            GroupNumber::Free(number) => number,
            GroupNumber::After { older_groups } => {
                let numbers = large_segments::count_numbers(older_groups);
                self.next_segment.fetch_add(numbers, Ordering::Relaxed) + numbers - 1
            }
        };
        self.merge_range(group.segments, SegmentWriter::new(&self.segments, number))?;
        Ok(true)
    }

    /// Merges the segments at the positions `merged` into one, which `writer` writes.
    fn merge_range(&self, merged: Range<usize>, writer: SegmentWriter) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let old: Vec<i64> = snapshot.segments()[merged.clone()]
            .iter()
            .map(|segment| segment.entry.number)
            .collect();
        let new = compact::merge_segments(&snapshot, merged, writer.replacing(old.clone()))?;
        self.commit_segment(new, &old)
    }

    /// Retires the segments whose events are all superseded. This is needed after all logs were
    /// re-read because the redaction rules grew: titles and states hold secrets too.
    pub fn retire_superseded_segments(&self) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut dead = Vec::new();
        for segment in snapshot.segments() {
            if segment.spans.is_empty()
                && segment
                    .summaries()
                    .iter()
                    .any(|summary| snapshot.is_superseded(&summary.session_id, summary.segment))
            {
                dead.push(segment);
            }
        }
        if dead.is_empty() {
            return Ok(());
        }

        let old: Vec<i64> = dead.iter().map(|segment| segment.entry.number).collect();
        let writer = self.begin_segment().replacing(old.clone());
        let rest = compact::rewrite_without_events(&snapshot, &dead, writer)?;
        self.commit_segment(rest, &old)
    }

    /// Returns a snapshot of what was committed until now.
    pub fn take_snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        let manifest = self.current_manifest();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = &*latest
            && *snapshot.manifest() == manifest
        {
            return Ok(Arc::clone(snapshot));
        }
        let known = latest.as_deref().unwrap_or(&self.before);
        let snapshot = Arc::new(Snapshot::load(&self.dir, manifest, Some(known))?);
        *latest = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    pub(super) fn current_manifest(&self) -> Manifest {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn begin_segment(&self) -> SegmentWriter {
        SegmentWriter::new(&self.segments, self.next_segment.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds a new segment to the manifest and retires the `old` ones that it replaces.
    pub(super) fn commit_segment(
        &self,
        new: Option<FinishedSegment>,
        old: &[i64],
    ) -> Result<(), StoreError> {
        self.commit(new.into_iter().collect(), |next| {
            // Merged rows of responses that were compared need not be compared again.
            let is_merge = !old.is_empty();
            if is_merge && next.segments.iter().all(|one| one.number <= next.compared_up_to) {
                next.compared_up_to = next.next_segment - 1;
            }
            next.retire(old);
        })
    }

    /// Replaces the manifest by one with the new segment, to which `change` is applied as well.
    pub(super) fn commit(
        &self,
        new: Vec<FinishedSegment>,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<(), StoreError> {
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = manifest.clone();
        next.generation += 1;
        next.updated_at = Timestamp::now().0;
        next.next_segment = next.next_segment.max(self.next_segment.load(Ordering::Relaxed));
        change(&mut next);
        next.segments.extend(new.iter().map(|segment| segment.entry.clone()));
        next.segments.sort_by_key(|segment| segment.number);

        let written = self.replace_manifest(&next, &new);
        for segment in new {
            // A failed write may still have replaced the manifest: the disk may have failed after
            // the rename.
            if written.is_ok() || self.is_named_on_disk(&segment.entry) {
                segment.folder.keep();
            }
        }
        written?;

        tracing::info!(generation = next.generation, segments = next.segments.len(), "committed");
        *manifest = next;
        Ok(())
    }

    /// True if the manifest that is on disk now lists exactly this segment. Another store that took
    /// the place of this one may have a segment of the same number.
    pub(super) fn is_named_on_disk(&self, entry: &SegmentEntry) -> bool {
        matches!(Manifest::read(&self.dir), Ok(Some(manifest)) if manifest.segments.contains(entry))
    }

    /// Replaces the manifest on disk, if the store is still the one that was locked and the files
    /// of the `new` segments are as they were written.
    pub(super) fn replace_manifest(
        &self,
        next: &Manifest,
        new: &[FinishedSegment],
    ) -> Result<(), StoreError> {
        self.lock.check_not_replaced()?;
        // The folder of segments may have been moved or removed alone.
        let folder_names =
            next.segments.iter().map(|segment| SegmentEntry::folder_name(segment.number));
        if !self.segments.is_whole(folder_names) {
            return Err(StoreError::Replaced { path: self.dir.clone() });
        }
        for segment in new {
            segment.folder.check_files(&segment.entry)?;
        }
        let rows: Vec<_> =
            new.iter().map(|segment| (segment.entry.number, &*segment.rows)).collect();
        self.catalog.commit(&next.to_json(), &rows, &|number| next.includes_segment(number))
    }

    /// Returns the cause of an error of writing rows: the error of [`StoreLock::check_not_replaced`] if the
    /// store is no longer at its path, otherwise `error` itself.
    pub(super) fn find_cause(&self, error: StoreError) -> StoreError {
        self.lock.check_not_replaced().err().unwrap_or(error)
    }
}

/// Opens the catalog of a store and takes a snapshot of it. A damaged catalog is made again.
fn open_catalog(dir: &Path, verify: Verify) -> Result<(Arc<Catalog>, Snapshot), StoreError> {
    let open = || {
        let catalog = Catalog::open_for_writing(dir)?;
        let manifest = Manifest::parse(catalog.path(), catalog.read_manifest()?.as_bytes())?;
        if verify == Verify::All || is_catalog_due(dir) {
            catalog.verify()?;
        }
        // Every run needs the summaries.
        let snapshot = Snapshot::load(dir, manifest, None)?;
        Ok((Arc::new(catalog), snapshot))
    };
    match open() {
        Err(StoreError::Damaged { .. }) => {
            recovery::rebuild(dir)?;
            open()
        }
        result => result,
    }
}

/// Returns whether the whole catalog is checked in this minute. A small one always is: a run checks some
/// megabytes of what did not change.
fn is_catalog_due(dir: &Path) -> bool {
    let bytes = std::fs::metadata(dir.join(CATALOG_FILE)).map_or(0, |found| found.len());
    let turns = i64::try_from(bytes / CATALOG_TURN_BYTES).unwrap_or(0) + 1;
    Timestamp::now().0 / 60_000_000 % turns == 0
}

/// Changes the checkpoint of a log, so that it does not match the log and the log is read again.
pub(super) fn require_reread(row: &mut SourceRow) {
    row.modified_us = -1;
    row.head_hash = !row.head_hash;
}

/// Returns true if `row` is about the log of `session`.
pub(super) fn is_log_of(session: &SessionSummary, row: &SourceRow) -> bool {
    row.session_id.as_ref() == Some(&session.session_id)
        && is_masked_path(&session.source_path, &row.path)
}
