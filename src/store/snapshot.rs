//! One generation of the store, as readers see it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use schemas::session::{ProblemRow, SessionRow, SourceRow};

use super::condition::StoreCondition;
use super::error::StoreError;
use super::labels::LabelBook;
use super::manifest::{Manifest, SegmentEntry};
use super::segment::open_segment::{Segment, SessionSpan, SharedSegment};
use super::segment::small_files::{read_table, read_table_in_batches};
use super::span_index::SpanIndex;
use crate::base::parallel::in_parallel;

/// The store at one generation. It does not change when the store does.
pub struct Snapshot {
    manifest: Manifest,
    dir: PathBuf,
    sessions: Vec<Arc<SessionRow>>,
    /// Position in `sessions` of each session id.
    by_id: HashMap<String, usize>,
    segments: Vec<Segment>,
    /// Number of segments that were read for this snapshot.
    segments_read: usize,
    labels: Arc<LabelBook>,
    condition: StoreCondition,
    /// Computed when the first session is read.
    span_index: OnceLock<SpanIndex>,
}

impl Snapshot {
    /// Reads the segments that `manifest` names, except those that `before` has already.
    pub(super) fn load(
        dir: &Path,
        manifest: Manifest,
        before: Option<&Self>,
    ) -> Result<Self, StoreError> {
        let mut shared: Vec<_> =
            manifest.segments.iter().map(|entry| before?.find_shared(entry)).collect();
        let unknown: Vec<usize> = (0..shared.len()).filter(|at| shared[*at].is_none()).collect();
        for (at, segment) in read_segments(dir, &manifest, &unknown)? {
            shared[at] = Some(Arc::new(segment));
        }
        let shared: Vec<Arc<SharedSegment>> = shared.into_iter().flatten().collect();

        let mut snapshot = Self {
            manifest,
            dir: dir.to_owned(),
            sessions: Vec::new(),
            by_id: HashMap::new(),
            segments: Vec::new(),
            segments_read: unknown.len(),
            labels: Arc::default(),
            condition: StoreCondition::default(),
            span_index: OnceLock::new(),
        };
        snapshot.merge_sessions(&shared);
        snapshot.place_spans(shared);
        Ok(snapshot)
    }

    /// Returns the shared part of the segment with this manifest entry, if the snapshot has it.
    fn find_shared(&self, entry: &SegmentEntry) -> Option<Arc<SharedSegment>> {
        let segment = self.segments.iter().find(|segment| segment.entry == *entry)?;
        Some(Arc::clone(&segment.shared))
    }

    /// Returns the same snapshot with these labels.
    pub(super) fn with_labels(self, labels: Arc<LabelBook>) -> Self {
        Self { labels, ..self }
    }

    /// Returns the same snapshot with what a look at the files found.
    pub(super) fn with_condition(self, condition: StoreCondition) -> Self {
        Self { condition, ..self }
    }

    /// Returns what a look at the files found when the snapshot was taken.
    pub fn condition(&self) -> &StoreCondition {
        &self.condition
    }

    /// Returns the labels with their pointer, by which they can be compared.
    pub(super) fn shared_labels(&self) -> &Arc<LabelBook> {
        &self.labels
    }

    /// Returns the labels of its sessions, and of sessions that no longer exist.
    pub fn labels(&self) -> &LabelBook {
        &self.labels
    }

    /// Collects the latest row of each session, the one with the highest segment number.
    fn merge_sessions(&mut self, shared: &[Arc<SharedSegment>]) {
        let mut latest: HashMap<&str, &Arc<SessionRow>> = HashMap::new();
        for row in shared.iter().flat_map(|segment| &segment.sessions) {
            let best = latest.entry(&row.session_id).or_insert(row);
            if row.segment > best.segment {
                *best = row;
            }
        }
        let mut sessions: Vec<_> = latest.into_values().cloned().collect();
        sessions.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        self.by_id =
            sessions.iter().enumerate().map(|(at, row)| (row.session_id.clone(), at)).collect();
        self.sessions = sessions;
    }

    /// Adds the segments with their live rows. Rows that were written before their session was
    /// re-read are superseded.
    fn place_spans(&mut self, shared: Vec<Arc<SharedSegment>>) {
        for (entry, shared) in self.manifest.segments.iter().zip(shared) {
            let mut spans = Vec::new();
            for row in &shared.sessions {
                if row.row_count <= 0 {
                    continue;
                }
                let Some(session) = self.session_position(&row.session_id) else { continue };
                if row.segment < self.sessions[session].live_from {
                    continue;
                }
                spans.push(SessionSpan {
                    session,
                    start: usize::try_from(row.row_start).unwrap_or(0),
                    count: usize::try_from(row.row_count).unwrap_or(0),
                    first_index: u32::try_from(row.events - row.row_count).unwrap_or(0),
                });
            }
            spans.sort_by_key(|span| span.start);
            let dir = SegmentEntry::folder_path(&self.dir, entry.number);
            self.segments.push(Segment { entry: entry.clone(), dir, spans, shared });
        }
    }

    /// Returns the number of segments that had to be read. The others were taken from the snapshot
    /// before.
    pub fn segments_read(&self) -> usize {
        self.segments_read
    }

    /// Returns the directory of the store.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the manifest of this generation.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns every session, sorted by id.
    pub fn sessions(&self) -> &[Arc<SessionRow>] {
        &self.sessions
    }

    /// Returns every segment, oldest first.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns where the rows of every session are stored.
    pub(super) fn span_index(&self) -> &SpanIndex {
        self.span_index.get_or_init(|| SpanIndex::new(&self.segments))
    }

    /// Returns the number of live events.
    pub fn event_count(&self) -> u64 {
        self.segments.iter().flat_map(|segment| &segment.spans).map(|span| span.count as u64).sum()
    }

    /// Returns the sessions with missing rows.
    pub fn incomplete_sessions(&self) -> impl Iterator<Item = &SessionRow> {
        let mut rows = vec![0; self.sessions.len()];
        for span in self.segments.iter().flat_map(|segment| &segment.spans) {
            rows[span.session] += span.count as i64;
        }
        self.sessions
            .iter()
            .zip(rows)
            .filter(|(session, rows)| session.events != *rows)
            .map(|(session, _)| &**session)
    }

    /// Returns the re-read sessions whose older rows are still stored in some segment.
    pub fn superseded_sessions(&self) -> impl Iterator<Item = &SessionRow> {
        let mut superseded: HashSet<&str> = HashSet::new();
        for row in self.segments.iter().flat_map(|segment| &segment.shared.sessions) {
            if row.row_count > 0 && self.is_superseded(row) {
                superseded.insert(&row.session_id);
            }
        }
        let rows = self.sessions.iter().map(|row| &**row);
        rows.filter(move |row| superseded.contains(row.session_id.as_str()))
    }

    /// True if the session was re-read after this row of it was written.
    pub(super) fn is_superseded(&self, row: &SessionRow) -> bool {
        self.session(&row.session_id).is_some_and(|now| row.segment < now.live_from)
    }

    /// Returns the session with exactly this id.
    pub fn session(&self, id: &str) -> Option<&SessionRow> {
        self.by_id.get(id).map(|at| &*self.sessions[*at])
    }

    /// Returns the position of the session with this id.
    pub fn session_position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Returns the latest row of every source, sorted by path. Leaves out the decoder states unless
    /// `includes_state`.
    pub fn read_sources(&self, includes_state: bool) -> Result<Vec<SourceRow>, StoreError> {
        let skip = if includes_state { None } else { Some("state") };
        let mut latest: HashMap<String, SourceRow> = HashMap::new();
        for segment in &self.segments {
            for row in read_table::<SourceRow>(&self.dir, &segment.entry, "sources", skip)? {
                match latest.get(&row.path) {
                    Some(known) if known.segment > row.segment => {}
                    _ => {
                        latest.insert(row.path.clone(), row);
                    }
                }
            }
        }
        let mut rows: Vec<_> = latest.into_values().collect();
        rows.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(rows)
    }

    /// Returns the problems of the sessions as they are now.
    pub fn read_problems(&self) -> Result<Vec<ProblemRow>, StoreError> {
        self.read_problems_of(&self.segments)
    }

    /// Returns the problems in `segments` that were found since their log was last re-read. The
    /// problems of a file without a session are those of the last time it was looked at.
    pub(super) fn read_problems_of(
        &self,
        segments: &[Segment],
    ) -> Result<Vec<ProblemRow>, StoreError> {
        let mut rows = Vec::new();
        for segment in segments {
            rows.extend(read_table::<ProblemRow>(&self.dir, &segment.entry, "problems", None)?);
        }
        let mut live_from: HashMap<&str, i64> =
            self.sessions.iter().map(|row| (row.source_path.as_str(), row.live_from)).collect();
        let sources;
        if rows.iter().any(|row| !live_from.contains_key(row.path.as_str())) {
            sources = self.read_sources(false)?;
            for row in sources.iter().filter(|row| row.session_id.is_none()) {
                live_from.entry(&row.path).or_insert(row.segment);
            }
        }
        rows.retain(|row| {
            let first_segment = live_from.get(row.path.as_str());
            first_segment.is_none_or(|first_segment| row.segment >= *first_segment)
        });
        Ok(rows)
    }

    /// Compares the files of `tables` in all segments with their checksums, once in this process.
    pub fn verify_tables(&self, tables: &[&str]) -> Result<(), StoreError> {
        in_parallel(&self.segments, 1, |segments| {
            for segment in segments {
                for table in tables {
                    segment.verify_table(table)?;
                }
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(())
    }

    /// Compares every file with its checksum. Returns the numbers of damaged segments, each with
    /// its first error.
    pub fn find_damaged_segments(&self) -> Vec<(i64, StoreError)> {
        let mut damaged = Vec::new();
        for segment in &self.segments {
            if let Err(error) = segment.verify_files() {
                damaged.push((segment.entry.number, error));
            }
        }
        damaged
    }
}

/// Reads the segments of `manifest` at these positions in parallel. Returns each with its position.
fn read_segments(
    dir: &Path,
    manifest: &Manifest,
    positions: &[usize],
) -> Result<Vec<(usize, SharedSegment)>, StoreError> {
    let parts = in_parallel(positions, 1, |positions| {
        let mut segments = Vec::with_capacity(positions.len());
        for at in positions {
            let mut sessions = Vec::new();
            let entry = &manifest.segments[*at];
            read_table_in_batches(dir, entry, "sessions", None, |rows: Vec<SessionRow>| {
                sessions.extend(rows.into_iter().map(Arc::new));
            })?;
            segments.push((*at, SharedSegment::new(sessions)));
        }
        Ok::<_, StoreError>(segments)
    })?;
    Ok(parts.into_iter().flatten().collect())
}
