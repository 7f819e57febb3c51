//! One generation of the store, as readers see it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use schemas::session::{ProblemRow, SessionRow};
use schemas::table::PROBLEMS;

use super::catalog::{CATALOG_FILE, Catalog};
use super::condition::StoreCondition;
use super::error::StoreError;
use super::identity::Identity;
use super::labels::LabelBook;
use super::large_segments::{GROUP_BYTES, count_after_merges};
use super::latest_sessions::LatestSessions;
use super::manifest::{Manifest, SegmentEntry};
use super::segment::open_segment::{Segment, SessionSpan, SharedSegment};
use super::segment::segment_rows::RowSource;
use super::segment::segment_writer::FinishedSegment;
use super::segment::session_summary::SessionSummary;
use super::segment::session_table::{SessionTable, StoredSession};
use super::segment::small_files::read_table;
use super::span_index::SpanIndex;
use super::visible::overlay::Overlay;
use base::parallel::in_parallel;

/// The store at one generation. It does not change when the store does.
pub struct Snapshot {
    manifest: Manifest,
    dir: PathBuf,
    /// The sessions as they are now, sorted by id.
    sessions: Vec<StoredSession>,
    segments: Vec<Segment>,
    /// Number of segments that were read for this snapshot.
    segments_read: usize,
    labels: Arc<LabelBook>,
    condition: StoreCondition,
    identity: Arc<Identity>,
    /// True if it has a part of the sessions only; see [`Snapshot::restrict`].
    is_restricted: bool,
    /// The rows that it has instead of those of the store.
    overlays: Vec<Arc<Overlay>>,
    /// Computed when the first session is read.
    span_index: OnceLock<SpanIndex>,
    /// The number of live events, counted once.
    event_count: OnceLock<u64>,
}

impl Snapshot {
    /// Reads the segments that `manifest` names, except those that `before` has already. The rows of
    /// sessions are read when they are needed.
    pub(super) fn load(
        dir: &Path,
        manifest: Manifest,
        before: Option<&Self>,
    ) -> Result<Self, StoreError> {
        let mut shared: Vec<_> =
            manifest.segments.iter().map(|entry| before?.find_shared(entry)).collect();
        let unknown: Vec<usize> = (0..shared.len()).filter(|at| shared[*at].is_none()).collect();
        let rows = if unknown.is_empty() { None } else { RowSource::open(dir, &manifest)? };
        for (at, segment) in read_segments(rows, &manifest, &unknown)? {
            shared[at] = Some(Arc::new(segment));
        }
        let shared: Vec<Arc<SharedSegment>> = shared.into_iter().flatten().collect();
        let snapshot = Self::of_segments(dir, manifest, shared);
        Ok(Self { segments_read: unknown.len(), ..snapshot })
    }

    /// Returns the snapshot of segments, which are in the order of the manifest.
    fn of_segments(dir: &Path, manifest: Manifest, shared: Vec<Arc<SharedSegment>>) -> Self {
        let tables: Vec<_> = shared.iter().map(|part| &part.sessions).collect();
        let LatestSessions { sessions, live_from, positions } = LatestSessions::of_tables(&tables);
        let mut snapshot = Self {
            manifest,
            dir: dir.to_owned(),
            sessions,
            segments: Vec::new(),
            segments_read: 0,
            labels: Arc::default(),
            condition: StoreCondition::default(),
            identity: Arc::default(),
            is_restricted: false,
            overlays: Vec::new(),
            span_index: OnceLock::new(),
            event_count: OnceLock::new(),
        };
        snapshot.place_spans(shared, &positions, &live_from);
        snapshot
    }

    /// Returns the snapshot that this one becomes when these segments are committed.
    pub(super) fn with_uncommitted(&self, new: &[FinishedSegment]) -> Result<Self, StoreError> {
        let mut parts = Vec::with_capacity(self.segments.len() + new.len());
        for segment in &self.segments {
            parts.push((segment.entry.clone(), Arc::clone(&segment.shared)));
        }
        for segment in new {
            parts.push((segment.entry.clone(), Arc::new(segment.read_shared()?)));
        }
        // The order of the numbers shows which row of a session is the latest.
        parts.sort_by_key(|(entry, _)| entry.number);
        let (segments, shared) = parts.into_iter().unzip();
        let manifest = Manifest { segments, ..self.manifest.clone() };
        Ok(Self::of_segments(&self.dir, manifest, shared))
    }

    /// Returns the shared part of the segment with this manifest entry, if the snapshot has it.
    fn find_shared(&self, entry: &SegmentEntry) -> Option<Arc<SharedSegment>> {
        let found = self.segments.iter().find(|segment| segment.entry == *entry);
        found.map(|segment| Arc::clone(&segment.shared))
    }

    /// Reads the rows of all sessions. Returns them in the order of [`Self::sessions`].
    pub fn read_rows(&self) -> Result<Vec<&Arc<SessionRow>>, StoreError> {
        in_parallel(&self.segments, 1, |segments| {
            segments.iter().try_for_each(|segment| segment.read_sessions().map(drop))
        })?;
        self.sessions.iter().map(StoredSession::row).collect()
    }

    /// Returns the same snapshot with these labels.
    pub(super) fn with_labels(self, labels: Arc<LabelBook>) -> Self {
        Self { labels, ..self }
    }

    /// Returns the same snapshot with what a check of the files found.
    pub(super) fn with_condition(self, condition: StoreCondition) -> Self {
        Self { condition, ..self }
    }

    /// Returns the same snapshot with this machine and user.
    pub(super) fn with_identity(self, identity: Arc<Identity>) -> Self {
        Self { identity, ..self }
    }

    /// Returns a snapshot of the same generation that has only the allowed sessions. Rows of all
    /// others are to its readers as if they were superseded.
    pub(super) fn restrict(&self, is_allowed: &dyn Fn(&SessionSummary) -> bool) -> Self {
        let mut positions = vec![None; self.sessions.len()];
        let mut sessions = Vec::new();
        for (at, session) in self.sessions.iter().enumerate() {
            if is_allowed(session) {
                positions[at] = Some(sessions.len());
                sessions.push(session.clone());
            }
        }
        let mut segments = Vec::with_capacity(self.segments.len());
        for Segment { entry, dir, spans, shared } in &self.segments {
            let spans = spans.iter().filter_map(|span| {
                let session = positions[span.session]?;
                Some(SessionSpan { session, ..*span })
            });
            segments.push(Segment {
                entry: entry.clone(),
                dir: dir.clone(),
                spans: spans.collect(),
                shared: Arc::clone(shared),
            });
        }
        let ids = sessions.iter().map(|session| session.id()).collect();
        Self {
            manifest: self.manifest.clone(),
            dir: self.dir.clone(),
            labels: Arc::new(self.labels.of_sessions(&ids)),
            condition: self.condition.clone(),
            identity: Arc::clone(&self.identity),
            segments_read: self.segments_read,
            is_restricted: true,
            overlays: Vec::new(),
            span_index: OnceLock::new(),
            event_count: OnceLock::new(),
            sessions,
            segments,
        }
    }

    /// Returns the same snapshot with the rows of an overlay, which supersede others of the same
    /// sessions.
    pub(super) fn with_overlay(mut self, overlay: Arc<Overlay>) -> Self {
        for mut segment in overlay.segments() {
            let mut superseded = HashSet::new();
            let table = Arc::clone(&segment.shared.sessions);
            for (row, summary) in table.summaries().iter().enumerate() {
                let Some(at) = self.session_position(&summary.session_id) else { continue };
                self.sessions[at] = StoredSession::new(&table, row);
                if summary.row_count > 0 {
                    superseded.insert(at);
                    segment.spans.push(SessionSpan::of_summary(summary, at));
                }
            }
            segment.spans.sort_unstable_by_key(|span| span.start);
            for older in &mut self.segments {
                older.spans.retain(|span| !superseded.contains(&span.session));
            }
            self.segments.push(segment);
        }
        self.overlays.push(overlay);
        Self { span_index: OnceLock::new(), event_count: OnceLock::new(), ..self }
    }

    /// Returns whether the files of its overlays are still there.
    pub(super) fn has_all_overlays(&self) -> bool {
        self.overlays.iter().all(|overlay| overlay.is_whole())
    }

    /// Returns whether it has a part of the sessions only.
    pub fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    /// Returns the machine and the user of the store.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the machine that wrote the log of a session.
    pub fn machine_of<'s>(&'s self, session: &'s StoredSession) -> &'s str {
        self.identity.machine_of(session)
    }

    /// Returns the user of a session.
    pub fn user_of<'s>(&'s self, session: &'s StoredSession) -> &'s str {
        self.identity.user_of(session)
    }

    /// Returns what a check of the files found when the snapshot was taken.
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

    /// Adds the segments with their live rows. Rows that were written before their session was
    /// re-read are superseded. `positions` are those of the sessions of each segment, and `live_from`
    /// has the first segment with live rows of each session.
    fn place_spans(
        &mut self,
        shared: Vec<Arc<SharedSegment>>,
        positions: &[Vec<usize>],
        live_from: &[i64],
    ) {
        let parts = self.manifest.segments.iter().zip(shared).zip(positions);
        for ((entry, shared), positions) in parts {
            let mut spans = Vec::with_capacity(positions.len());
            for (row, session) in shared.sessions.summaries().iter().zip(positions) {
                if row.row_count <= 0 || row.segment < live_from[*session] {
                    continue;
                }
                spans.push(SessionSpan::of_summary(row, *session));
            }
            spans.sort_unstable_by_key(|span| span.start);
            let dir = SegmentEntry::folder_path(&self.dir, entry.number);
            self.segments.push(Segment { entry: entry.clone(), dir, spans, shared });
        }
    }

    /// Returns the number of segments that had to be read. The others were taken from the snapshot
    /// before.
    pub fn segments_read(&self) -> usize {
        self.segments_read
    }

    /// Returns the number of segments whose rows of sessions were read.
    pub fn segments_with_rows(&self) -> usize {
        let tables = self.segments.iter().map(|segment| &segment.shared.sessions);
        tables.filter(|table| table.has_rows() && !table.summaries().is_empty()).count()
    }

    /// Returns the directory of the store.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the manifest of this generation.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the size of its segments and of the catalog in bytes.
    pub fn store_bytes(&self) -> u64 {
        let catalog = std::fs::metadata(self.dir.join(CATALOG_FILE)).map_or(0, |found| found.len());
        self.manifest.bytes() + catalog
    }

    /// Returns the number of segments once the full ones are merged into large ones.
    pub fn segments_after_merges(&self) -> usize {
        count_after_merges(&self.manifest, GROUP_BYTES)
    }

    /// Returns every session, sorted by id.
    pub fn sessions(&self) -> &[StoredSession] {
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
        *self.event_count.get_or_init(|| {
            let spans = self.segments.iter().flat_map(|segment| &segment.spans);
            spans.map(|span| span.count as u64).sum()
        })
    }

    /// Returns the time of the newest event. Of a part of the sessions, it is the last time of these.
    pub fn newest_event(&self) -> Option<i64> {
        if self.is_restricted {
            return self.sessions.iter().filter_map(|session| session.ended_at).max();
        }
        self.manifest
            .segments
            .iter()
            .filter_map(|segment| segment.times)
            .map(|(_, last)| last)
            .max()
    }

    /// Returns the sessions with missing rows.
    pub fn incomplete_sessions(&self) -> impl Iterator<Item = &SessionSummary> {
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
    pub fn superseded_sessions(&self) -> impl Iterator<Item = &SessionSummary> {
        let mut superseded: HashSet<&str> = HashSet::new();
        for summary in self.segments.iter().flat_map(|segment| segment.shared.sessions.summaries())
        {
            if summary.row_count > 0 && self.is_superseded(&summary.session_id, summary.segment) {
                superseded.insert(&summary.session_id);
            }
        }
        let sessions = self.sessions.iter();
        let found = sessions.filter(move |row| superseded.contains(row.id()));
        found.map(|session| &**session)
    }

    /// True if the session was re-read after its row in the segment of this number was written.
    pub(super) fn is_superseded(&self, session_id: &str, segment: i64) -> bool {
        let now = self.session_position(session_id).map(|at| &*self.sessions[at]);
        now.is_some_and(|now| segment < now.live_from)
    }

    /// Returns the session with exactly this id.
    pub fn session(&self, id: &str) -> Option<&StoredSession> {
        self.session_position(id).map(|at| &self.sessions[at])
    }

    /// Returns the position of the session with this id.
    pub fn session_position(&self, id: &str) -> Option<usize> {
        self.sessions.binary_search_by(|row| row.id().cmp(id)).ok()
    }

    /// Returns the problems of the sessions as they are now.
    pub fn read_problems(&self) -> Result<Vec<ProblemRow>, StoreError> {
        self.read_problems_of(&self.segments)
    }

    /// Returns the problems in `segments` that were found since their log was last re-read. The
    /// problems of a file without a session are those of the last time it was examined.
    pub(super) fn read_problems_of(
        &self,
        segments: &[Segment],
    ) -> Result<Vec<ProblemRow>, StoreError> {
        let mut rows = Vec::new();
        for segment in segments {
            rows.extend(read_table(&segment.dir, &segment.entry, PROBLEMS.name)?);
        }
        if rows.is_empty() {
            return Ok(rows);
        }
        let sessions = self.sessions.iter();
        let mut live_from: HashMap<&str, i64> =
            sessions.map(|one| (one.source_path.as_str(), one.live_from)).collect();
        if self.is_restricted {
            rows.retain(|row| live_from.contains_key(row.path.as_str()));
        }
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

    /// Checks the whole catalog of the store.
    ///
    /// # Errors
    /// Fails if it is damaged or cannot be read.
    pub fn verify_catalog(&self) -> Result<(), StoreError> {
        Catalog::open(&self.dir)?.map_or(Ok(()), |catalog| catalog.verify())
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

/// Reads the sessions of the segments of `manifest` at these positions. Returns each with its position.
fn read_segments(
    rows: Option<RowSource>,
    manifest: &Manifest,
    positions: &[usize],
) -> Result<Vec<(usize, SharedSegment)>, StoreError> {
    let Some(rows) = rows else { return Ok(Vec::new()) };
    let parts = in_parallel(positions, 1, |positions| {
        let mut segments = Vec::with_capacity(positions.len());
        for at in positions {
            let number = manifest.segments[*at].number;
            let summaries = SessionTable::read_bytes(&rows, number)?;
            let sessions = SessionTable::decode(rows.clone(), number, &summaries)?;
            segments.push((*at, SharedSegment::new(sessions)));
        }
        Ok::<_, StoreError>(segments)
    })?;
    Ok(parts.into_iter().flatten().collect())
}
