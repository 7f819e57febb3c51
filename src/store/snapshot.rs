//! One generation of the store, as readers see it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use schemas::session::{ProblemRow, SessionRow, SourceRow};

use super::error::StoreError;
use super::labels::LabelBook;
use super::manifest::{Manifest, SegmentEntry};
use super::segment::open_segment::{Segment, Shared, Span};
use super::segment::small_files::read_table;
use super::span_index::SpanIndex;
use crate::base::parallel::in_parallel;

/// The store at one generation.
pub struct Snapshot {
    manifest: Manifest,
    dir: PathBuf,
    sessions: Vec<Arc<SessionRow>>,
    by_id: HashMap<String, usize>,
    segments: Vec<Segment>,
    segments_read: usize,
    labels: Arc<LabelBook>,
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
        let known = |entry: &SegmentEntry| {
            let segments = before.map_or(&[][..], |snapshot| &snapshot.segments);
            segments.iter().find(|s| s.entry == *entry).map(|segment| Arc::clone(&segment.shared))
        };
        let mut shared: Vec<_> = manifest.segments.iter().map(known).collect();
        let unknown: Vec<usize> = (0..shared.len()).filter(|at| shared[*at].is_none()).collect();
        for (at, read) in read(dir, &manifest, &unknown)? {
            shared[at] = Some(Arc::new(read));
        }
        let shared = shared.into_iter().flatten().collect::<Vec<_>>();
        let segments_read = unknown.len();
        let mut snapshot = Self {
            manifest,
            dir: dir.to_owned(),
            sessions: Vec::new(),
            by_id: HashMap::new(),
            segments: Vec::new(),
            segments_read,
            labels: Arc::default(),
            span_index: OnceLock::new(),
        };
        snapshot.merge_sessions(&shared);
        snapshot.place_spans(shared);
        Ok(snapshot)
    }

    /// Returns the same snapshot with these labels.
    pub(super) fn with_labels(self, labels: Arc<LabelBook>) -> Self {
        Self { labels, ..self }
    }

    pub(super) fn shared_labels(&self) -> &Arc<LabelBook> {
        &self.labels
    }

    /// Returns the labels of its sessions, and of sessions that it does not hold any more.
    pub fn labels(&self) -> &LabelBook {
        &self.labels
    }

    /// Collects the latest row of each session, the one with the highest segment number.
    fn merge_sessions(&mut self, shared: &[Arc<Shared>]) {
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
    fn place_spans(&mut self, shared: Vec<Arc<Shared>>) {
        for (entry, shared) in self.manifest.segments.iter().zip(shared) {
            let mut spans: Vec<_> = shared
                .sessions
                .iter()
                .filter(|row| row.row_count > 0)
                .filter_map(|row| {
                    let session = *self.by_id.get(&row.session_id)?;
                    let live = row.segment >= self.sessions[session].live_from;
                    live.then(|| Span {
                        session,
                        start: usize::try_from(row.row_start).unwrap_or(0),
                        count: usize::try_from(row.row_count).unwrap_or(0),
                        first_index: u32::try_from(row.events - row.row_count).unwrap_or(0),
                    })
                })
                .collect();
            spans.sort_by_key(|span| span.start);
            let dir = SegmentEntry::dir(&self.dir, entry.number);
            self.segments.push(Segment { entry: entry.clone(), dir, spans, shared });
        }
    }

    /// Returns the number of segments that had to be read. The others were known from the snapshot
    /// before.
    pub fn segments_read(&self) -> usize {
        self.segments_read
    }

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
        self.span_index.get_or_init(|| SpanIndex::of(&self.segments))
    }

    /// Returns the number of live events.
    pub fn events(&self) -> u64 {
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
    pub fn superseded(&self) -> impl Iterator<Item = &SessionRow> {
        let all = self.segments.iter().flat_map(|segment| &segment.shared.sessions);
        let dead: HashSet<&str> = all
            .filter(|row| {
                row.row_count > 0
                    && self.session(&row.session_id).is_some_and(|now| row.segment < now.live_from)
            })
            .map(|row| row.session_id.as_str())
            .collect();
        let rows = self.sessions.iter().map(|row| &**row);
        rows.filter(move |row| dead.contains(row.session_id.as_str()))
    }

    /// Returns the session with exactly this id.
    pub fn session(&self, id: &str) -> Option<&SessionRow> {
        self.by_id.get(id).map(|at| &*self.sessions[*at])
    }

    /// Returns the position of the session with this id.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Returns the latest row of every file looked at. Leaves out the decoder states if `state` is
    /// false.
    pub fn sources(&self, state: bool) -> Result<Vec<SourceRow>, StoreError> {
        let skip = (!state).then_some("state");
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
    pub fn problems(&self) -> Result<Vec<ProblemRow>, StoreError> {
        self.problems_of(&self.segments)
    }

    /// Returns the problems in `segments` that were found since their log was last re-read, or
    /// whose log has no session.
    pub(super) fn problems_of(&self, segments: &[Segment]) -> Result<Vec<ProblemRow>, StoreError> {
        let live_from: HashMap<&str, i64> =
            self.sessions.iter().map(|row| (row.source_path.as_str(), row.live_from)).collect();
        let mut rows = Vec::new();
        for segment in segments {
            let found = read_table::<ProblemRow>(&self.dir, &segment.entry, "problems", None)?;
            let live = |row: &ProblemRow| {
                live_from.get(row.path.as_str()).is_none_or(|from| row.segment >= *from)
            };
            rows.extend(found.into_iter().filter(live));
        }
        Ok(rows)
    }

    /// Compares the files of `tables` in all segments with their checksums, once in this process.
    pub fn verify_tables(&self, tables: &[&str]) -> Result<(), StoreError> {
        let verify = |segments: &[Segment]| {
            let mut pairs = segments.iter().flat_map(|one| tables.iter().map(move |t| (one, t)));
            pairs.try_for_each(|(segment, table)| segment.verify_table(table))
        };
        in_parallel(&self.segments, 1, verify).map(|_| ())
    }

    /// Compares every file with its checksum. Returns the damaged segments and what is wrong with
    /// them.
    pub fn verify(&self) -> Vec<(i64, StoreError)> {
        let check =
            |segment: &Segment| segment.verify().err().map(|error| (segment.entry.number, error));
        self.segments.iter().filter_map(check).collect()
    }
}

/// Reads the segments of `manifest` at these positions in parallel. Returns each with its position.
fn read(dir: &Path, manifest: &Manifest, at: &[usize]) -> Result<Vec<(usize, Shared)>, StoreError> {
    let read = |at: usize| {
        let rows = read_table::<SessionRow>(dir, &manifest.segments[at], "sessions", None)?;
        let sessions = rows.into_iter().map(Arc::new).collect();
        let shared = Shared {
            sessions,
            events: OnceLock::new(),
            footer: OnceLock::new(),
            pages: OnceLock::new(),
            index: OnceLock::new(),
            verified: Mutex::default(),
        };
        Ok((at, shared))
    };
    let parts =
        in_parallel(at, 1, |at| at.iter().map(|at| read(*at)).collect::<Result<Vec<_>, _>>())?;
    Ok(parts.into_iter().flatten().collect())
}
