//! Retention: drops texts of old sessions, and writes the segments again that have them. Rows,
//! coordinates, times and token counts stay.

use std::collections::{BTreeMap, HashSet};
use std::sync::PoisonError;

use arrow::array::{AsArray as _, RecordBatch};
use ingest::plan::Known;
use ingest::run::remask::without_line_state;
use schemas::Timestamp;
use schemas::session::{ProblemRow, SessionRow, SourceRow, SourceStatus};
use schemas::table::EventColumn;
use serde::Serialize;

use super::error::StoreError;
use super::folder;
use super::reduce::{ReducedColumns, reduce_batch, reduce_session};
use super::reduced_sessions::{KeepLevel, KeepLevels, ReducedSession, ReducedSessions};
use super::rewrite::{Removal, SegmentEdit};
use super::segment::event_reader::{EventReader, RowSpan};
use super::segment::open_segment::Segment;
use super::snapshot::Snapshot;
use super::writer::{StoreWriter, is_log_of, require_reread};

/// Rows read at a time.
const BATCH_ROWS: usize = 4096;

/// The texts of one type of event that are dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DroppedTexts {
    pub texts: u64,
    /// The size of these texts, which the store holds compressed.
    pub bytes: u64,
}

/// What a compaction removes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CompactionSums {
    /// The number of sessions whose texts are dropped.
    pub sessions: usize,
    /// The dropped texts by event type.
    pub dropped: BTreeMap<String, DroppedTexts>,
    /// The number of rows that were superseded when their log was read again.
    pub superseded_rows: u64,
}

/// A compaction: the texts that it drops, and whether it removes superseded rows.
struct Compaction<'s> {
    snapshot: &'s Snapshot,
    /// The sessions whose texts are dropped now.
    levels: KeepLevels,
    drops_superseded: bool,
}

impl<'s> Compaction<'s> {
    /// Creates the compaction that drops texts of the sessions that are not reduced to `levels` yet.
    fn new(
        snapshot: &'s Snapshot,
        wanted: &KeepLevels,
        reduced: &ReducedSessions,
        drops_superseded: bool,
    ) -> Self {
        let mut levels = KeepLevels::new();
        for session in snapshot.sessions() {
            let Some(level) = wanted.get(session.id()).copied() else { continue };
            if level > KeepLevel::Full && !reduced.is_current(session, level) {
                // What was dropped before stays dropped.
                let level = level.max(reduced.level_of(session.id()));
                levels.insert(session.id().to_owned(), level);
            }
        }
        Self { snapshot, levels, drops_superseded }
    }

    /// Returns what the compaction removes.
    fn measure(&self) -> Result<CompactionSums, StoreError> {
        let mut sums = CompactionSums::default();
        let mut sessions = HashSet::new();
        for segment in self.snapshot.segments() {
            for span in &segment.spans {
                let Some(session) = self.snapshot.sessions().get(span.session) else { continue };
                let Some(level) = self.levels.get(session.id()) else { continue };
                let rows = RowSpan { start: span.start, count: span.count };
                let columns = [
                    EventColumn::EventType,
                    EventColumn::Text,
                    EventColumn::Command,
                    EventColumn::Files,
                ];
                let mut batches = EventReader::open(segment, &[rows], &columns, BATCH_ROWS)?;
                while let Some(batch) = batches.next_batch()? {
                    if add_dropped(&batch, *level, &mut sums) {
                        sessions.insert(span.session);
                    }
                }
            }
            if self.drops_superseded {
                sums.superseded_rows += superseded_rows(segment);
            }
        }
        sums.sessions = sessions.len();
        Ok(sums)
    }

    fn level(&self, session_id: &str) -> Option<KeepLevel> {
        self.levels.get(session_id).copied()
    }
}

impl SegmentEdit for Compaction<'_> {
    /// Superseded rows of a session count too, because they have its texts.
    fn changes(&self, segment: &Segment, sources: &[SourceRow]) -> bool {
        let is_listed = |id: &str| self.levels.contains_key(id);
        segment.summaries().iter().any(|summary| is_listed(&summary.session_id))
            || sources.iter().any(|row| row.session_id.as_deref().is_some_and(is_listed))
            || (self.drops_superseded && superseded_rows(segment) > 0)
    }

    fn edit_events(
        &self,
        session_id: &str,
        rows: RecordBatch,
    ) -> Result<Option<RecordBatch>, StoreError> {
        match self.level(session_id) {
            Some(level) => reduce_batch(&rows, level, &|_| true).map(Some),
            None => Ok(Some(rows)),
        }
    }

    fn edit_session(&self, row: &SessionRow) -> Option<SessionRow> {
        Some(match self.level(&row.session_id) {
            Some(level) => reduce_session(row, level),
            None => row.clone(),
        })
    }

    fn edit_source(&self, row: SourceRow) -> Result<Option<SourceRow>, StoreError> {
        let level = row.session_id.as_deref().and_then(|id| self.level(id));
        Ok(Some(if level.is_some() { without_line_state(row) } else { row }))
    }

    fn keeps_problem(&self, _: &ProblemRow) -> bool {
        true
    }
}

/// Returns the number of rows of a segment that are not in force.
fn superseded_rows(segment: &Segment) -> u64 {
    let live: u64 = segment.spans.iter().map(|span| span.count as u64).sum();
    segment.entry.events.saturating_sub(live)
}

/// Adds the texts of some rows that are dropped. Returns whether there are any.
fn add_dropped(batch: &RecordBatch, level: KeepLevel, sums: &mut CompactionSums) -> bool {
    let Some(columns) = ReducedColumns::from_batch(batch) else { return false };
    let mut has_dropped = false;
    for row in 0..batch.num_rows() {
        let Some(reduced) = columns.reduce_text(row, level) else { continue };
        let entry = sums.dropped.entry(columns.types.value(row).to_owned()).or_default();
        entry.texts += 1;
        entry.bytes += columns.texts.value(row).len().saturating_sub(reduced.len()) as u64;
        has_dropped = true;
    }
    has_dropped
}

impl Snapshot {
    /// Returns the sessions whose texts were dropped.
    pub fn reduced_sessions(&self) -> Result<ReducedSessions, StoreError> {
        ReducedSessions::read(self.dir())
    }

    /// Returns what a compaction would remove that keeps only `levels`.
    pub fn measure_compaction(&self, levels: &KeepLevels) -> Result<CompactionSums, StoreError> {
        Compaction::new(self, levels, &self.reduced_sessions()?, true).measure()
    }

    /// Returns the size of the texts of all events in force in bytes, before compression.
    pub fn text_bytes(&self) -> Result<u64, StoreError> {
        let mut bytes = 0;
        for segment in self.segments().iter().filter(|segment| !segment.spans.is_empty()) {
            let rows = segment.spans.iter();
            let rows: Vec<_> =
                rows.map(|span| RowSpan { start: span.start, count: span.count }).collect();
            let columns = [EventColumn::TextBytes];
            let mut batches = EventReader::open(segment, &rows, &columns, BATCH_ROWS)?;
            while let Some(batch) = batches.next_batch()? {
                let sizes = batch.column(0).as_primitive_opt::<arrow::datatypes::Int32Type>();
                let sizes = sizes.into_iter().flat_map(|sizes| sizes.values());
                bytes += sizes.map(|size| u64::try_from(*size).unwrap_or(0)).sum::<u64>();
            }
        }
        Ok(bytes)
    }
}

impl StoreWriter {
    /// Returns the sessions whose texts were dropped.
    pub fn reduced_sessions(&self) -> Result<ReducedSessions, StoreError> {
        ReducedSessions::read(&self.dir)
    }

    /// Replaces the list of the sessions whose texts were dropped.
    pub fn record_reduced(&self, reduced: &ReducedSessions) -> Result<(), StoreError> {
        reduced.write(&self.dir, &self.lock)
    }

    /// Has the logs of sessions read again that keep less than `levels` say. A session that is not
    /// in `levels` is to be kept whole. Sessions whose log is not found stay as they are.
    pub fn restore_texts(&self, known: &mut Known, levels: &KeepLevels) {
        let mut restored = self.reduced.restored.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, reduced) in &self.reduced.reduced.sessions {
            let wanted = levels.get(id).copied().unwrap_or(KeepLevel::Full);
            let Some(session) = self.before.session(id).filter(|_| wanted < reduced.level) else {
                continue;
            };
            let is_readable_log =
                |row: &&mut SourceRow| row.status == SourceStatus::Ok && is_log_of(session, row);
            if let Some(row) = known.sources.values_mut().find(is_readable_log) {
                require_reread(row);
                restored.insert(id.clone());
            }
        }
    }

    /// Takes the sessions from the list that [`Self::restore_texts`] had read again. Returns their
    /// number.
    pub fn settle_restored(&self) -> Result<usize, StoreError> {
        let restored = self.reduced.restored.lock().unwrap_or_else(PoisonError::into_inner);
        if restored.is_empty() {
            return Ok(0);
        }
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut reduced = self.reduced_sessions()?;
        let before = reduced.sessions.len();
        for id in restored.iter() {
            let Some(session) = snapshot.session(id) else { continue };
            let live_from = self.before.session(id).map(|session| session.live_from);
            if Some(session.live_from) != live_from && !session.row()?.source_gone {
                reduced.sessions.remove(id);
            }
        }
        let count = before - reduced.sessions.len();
        if count > 0 {
            self.record_reduced(&reduced)?;
        }
        Ok(count)
    }

    /// Drops the texts that `levels` do not keep, all rows that are superseded, and the files of
    /// segments that are not in force; merges small segments. Returns what was removed when no
    /// file of the store has it any more.
    pub fn compact(&self, levels: &KeepLevels) -> Result<CompactionSums, StoreError> {
        let sums = self.drop_texts(levels, true)?;
        self.merge_all_small_segments()?;
        self.remove_retired()?;
        if sums.sessions > 0 {
            // They may hold the dropped texts.
            folder::remove_damaged(&self.dir)?;
        }
        Ok(sums)
    }

    /// Drops the texts that `levels` do not keep. Their files are removed when no reader needs them
    /// any more.
    pub fn drop_unkept_texts(&self, levels: &KeepLevels) -> Result<CompactionSums, StoreError> {
        self.drop_texts(levels, false)
    }

    fn drop_texts(
        &self,
        levels: &KeepLevels,
        drops_superseded: bool,
    ) -> Result<CompactionSums, StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut reduced = self.reduced_sessions()?;
        let compaction = Compaction::new(&snapshot, levels, &reduced, drops_superseded);
        let sums = compaction.measure()?;

        // First, so that a run that is killed here brings no text back, and is repeated.
        for (id, level) in &compaction.levels {
            let Some(session) = snapshot.session(id) else { continue };
            let entry = ReducedSession {
                level: *level,
                events: session.events,
                until: session.ended_at,
                is_written: false,
            };
            reduced.sessions.insert(id.clone(), entry);
        }
        if !compaction.levels.is_empty() {
            self.record_reduced(&reduced)?;
            // Their logs have the dropped texts.
            self.remove_archived(&|id| compaction.levels.contains_key(id))?;
        }
        self.rewrite_segments(&snapshot, &compaction, Removal::AfterGrace)?;
        for id in compaction.levels.keys() {
            if let Some(entry) = reduced.sessions.get_mut(id) {
                entry.is_written = true;
            }
        }
        reduced.applied_at = Timestamp::now().0;
        self.record_reduced(&reduced)?;
        Ok(sums)
    }
}
