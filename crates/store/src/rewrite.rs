//! Writes segments again with other content: those that an edit changes, and later ones that share a
//! session or a file with them.
//!
//! The latter are written again too, because a new segment has the highest number, and the order of
//! segment numbers shows which row of a session or of a file is the latest.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use schemas::session::{ProblemRow, SessionRow, SourceRow};

use super::compact::parse_problem_row;
use super::error::StoreError;
use super::folder;
use super::manifest::SegmentEntry;
use super::segment::event_reader::{EventReader, RowSpan};
use super::segment::open_segment::Segment;
use super::segment::segment_writer::FinishedSegment;
use super::snapshot::Snapshot;
use super::visible::folder::{OverlayRemoval, remove_overlays};
use super::writer::StoreWriter;

/// Rows copied at a time.
const BATCH_ROWS: usize = 4096;

/// A change of the content of segments.
pub(super) trait SegmentEdit {
    /// Returns whether the edit changes a segment, which has these files.
    fn changes(&self, segment: &Segment, sources: &[SourceRow]) -> bool;

    /// Returns rows of a session as they are from now on; `None` if they go.
    fn edit_events(
        &self,
        session_id: &str,
        rows: RecordBatch,
    ) -> Result<Option<RecordBatch>, StoreError>;

    /// Returns the row of a session as it is from now on; `None` if it goes.
    fn edit_session(&self, row: &SessionRow) -> Option<SessionRow>;

    /// Returns the row of a file as it is from now on; `None` if it goes.
    fn edit_source(&self, row: SourceRow) -> Result<Option<SourceRow>, StoreError>;

    /// Returns whether a problem stays.
    fn keeps_problem(&self, row: &ProblemRow) -> bool;
}

/// When the files of replaced segments are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// At once, with those of damaged segments; see [`StoreWriter::remove_retired`].
    AtOnce,
    /// When no reader needs them any more.
    AfterGrace,
}

impl StoreWriter {
    /// Writes the segments of a snapshot again that an edit changes, and those that must follow them.
    pub(super) fn rewrite_segments(
        &self,
        snapshot: &Snapshot,
        edit: &dyn SegmentEdit,
        removal: Removal,
    ) -> Result<(), StoreError> {
        let mut new = Vec::new();
        let mut old = Vec::new();
        let mut moved_sessions = HashSet::new();
        let mut moved_files = HashSet::new();
        for segment in snapshot.segments() {
            let sources = segment.read_sources()?;
            let has_moved =
                segment.summaries().iter().any(|row| moved_sessions.contains(&row.session_id))
                    || sources.iter().any(|row| moved_files.contains(&row.path));
            if !has_moved && !edit.changes(segment, &sources) {
                continue;
            }
            old.push(segment.entry.number);
            moved_sessions.extend(segment.summaries().iter().map(|row| row.session_id.clone()));
            moved_files.extend(sources.iter().map(|row| row.path.clone()));
            new.extend(self.rewrite_segment(snapshot, segment, sources, edit)?);
        }
        self.commit_rewritten(new, &old, removal)
    }

    /// Writes the content of a segment after an edit into a new one; `None` if nothing stays.
    fn rewrite_segment(
        &self,
        snapshot: &Snapshot,
        segment: &Segment,
        sources: Vec<SourceRow>,
        edit: &dyn SegmentEdit,
    ) -> Result<Option<FinishedSegment>, StoreError> {
        let mut writer = self.begin_segment().replacing(vec![segment.entry.number]);
        // Leaves a number for a later merge of the segments up to this one, see `large_segments.rs`.
        self.next_segment.fetch_add(1, Ordering::Relaxed);
        for span in &segment.spans {
            let Some(session) = snapshot.sessions().get(span.session) else { continue };
            let rows = RowSpan { start: span.start, count: span.count };
            let mut batches = EventReader::open(segment, &[rows], &[], BATCH_ROWS)?;
            while let Some(batch) = batches.next_batch()? {
                let Some(batch) = edit.edit_events(session.id(), batch)? else { break };
                writer.push_events(&batch)?;
            }
        }
        for row in segment.read_sessions()? {
            // The latest row of a session always stays, because it supersedes those of earlier
            // segments.
            let latest = snapshot.session(&row.session_id);
            let is_latest = latest.is_some_and(|latest| latest.segment == row.segment);
            if (is_latest || !snapshot.is_superseded(&row.session_id, row.segment))
                && let Some(row) = edit.edit_session(&row)
            {
                writer.record_session(Box::new(row));
            }
        }
        for row in sources {
            if let Some(row) = edit.edit_source(row)? {
                writer.record_source(Box::new(row));
            }
        }
        let mut problems = snapshot.read_problems_of(std::slice::from_ref(segment))?;
        problems.retain(|row| edit.keeps_problem(row));
        writer.push_problems(problems.into_iter().filter_map(parse_problem_row).collect());
        writer.finish()
    }

    /// Replaces the `old` segments by `new` ones.
    fn commit_rewritten(
        &self,
        new: Vec<FinishedSegment>,
        old: &[i64],
        removal: Removal,
    ) -> Result<(), StoreError> {
        if !old.is_empty() {
            self.commit(new, |next| next.retire(old))?;
            tracing::info!(segments = old.len(), "rewritten");
        }
        match removal {
            Removal::AtOnce => {
                self.remove_retired()?;
                folder::remove_damaged(&self.dir)
            }
            Removal::AfterGrace => Ok(()),
        }
    }

    /// Removes the files of all segments that are not in force, and the rows that readers of servers see
    /// instead of others. Calls that read them take a new snapshot and run again.
    pub fn remove_retired(&self) -> Result<(), StoreError> {
        let mut removed: Vec<i64> = Vec::new();
        self.commit(Vec::new(), |next| {
            removed.extend(next.retired.drain(..).map(|retired| retired.number));
        })?;
        self.catalog.erase_deleted()?;
        folder::remove_leftovers(&self.dir, &self.current_manifest());
        remove_overlays(&self.dir, OverlayRemoval::All)?;
        for number in removed {
            let path = SegmentEntry::folder_path(&self.dir, number);
            if path.exists() {
                let busy = std::io::Error::from(std::io::ErrorKind::ResourceBusy);
                return Err(StoreError::Io { path, source: busy });
            }
        }
        Ok(())
    }
}
