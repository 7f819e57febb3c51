//! Finds the visible sessions that have copies of events of hidden sessions, or a hidden parent, and
//! writes them again as if the hidden sessions did not exist.

use std::collections::{BTreeMap, HashMap, HashSet};

use ingest::provider::format_of;
use ingest::stream::CopyRecount;
use schemas::Confidence;
use schemas::event::Relation;
use schemas::session::{EventRow, SessionRow};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::StoreError;
use crate::segment::segment_writer::{FinishedSegment, SegmentWriter};
use crate::session_events::ALL_EVENTS;
use crate::session_rewriter::{ReplayFlags, SessionRewriter};
use crate::snapshot::Snapshot;

/// The visible sessions that belong to hidden ones, by their position among the visible ones.
pub(super) struct HiddenRelations(BTreeMap<usize, HiddenRelation>);

/// How a visible session belongs to hidden ones.
#[derive(Default)]
struct HiddenRelation {
    /// True if the session has copied events, and hidden ancestors.
    has_copies: bool,
    /// Positions of its ancestors among the visible sessions, in the order of their ids.
    visible: Vec<usize>,
    /// Positions of its hidden ancestors among all sessions.
    hidden: Vec<usize>,
    /// True if its parent is hidden.
    has_hidden_parent: bool,
}

/// The records of sessions of a snapshot, by position. Those of a family are read once.
struct SessionRecords<'s> {
    snapshot: &'s Snapshot,
    read: HashMap<usize, Vec<u64>>,
}

impl SessionRecords<'_> {
    fn read(&mut self, session: usize) -> Result<&Vec<u64>, StoreError> {
        if !self.read.contains_key(&session) {
            self.read.insert(session, self.snapshot.read_record_hashes(session)?);
        }
        Ok(&self.read[&session])
    }
}

impl HiddenRelations {
    /// Finds the sessions of `part` that belong to sessions of `whole` that it does not have.
    pub(super) fn find(whole: &Snapshot, part: &Snapshot) -> Result<Self, StoreError> {
        let mut found: BTreeMap<usize, HiddenRelation> = BTreeMap::new();
        let mut related = HashMap::new();
        for (at, session) in part.sessions().iter().enumerate() {
            let parent = session.parent_session_id.as_deref();
            let hidden_parent = parent.filter(|id| part.session_position(id).is_none());
            if hidden_parent.is_some_and(|id| whole.session_position(id).is_some()) {
                found.entry(at).or_default().has_hidden_parent = true;
            }
            if session.replay_events > 0 || hidden_parent.is_some() {
                related.insert(session.id(), at);
            }
        }
        if related.is_empty() {
            return Ok(Self(found));
        }

        for (session, ancestors) in whole.read_ancestors(&|id| related.contains_key(id))? {
            let Some(at) = related.get(session.as_str()) else { continue };
            if ancestors.iter().all(|id| part.session_position(id).is_some()) {
                continue;
            }
            let summary = &part.sessions()[*at];
            let relation = found.entry(*at).or_default();
            relation.has_copies = summary.replay_events > 0;
            // A parent that was forgotten is among the ancestors still.
            if let Some(parent) = &summary.parent_session_id
                && part.session_position(parent).is_none()
                && ancestors.contains(parent)
            {
                relation.has_hidden_parent = true;
            }
            for ancestor in &ancestors {
                match part.session_position(ancestor) {
                    Some(position) => relation.visible.push(position),
                    None => relation.hidden.extend(whole.session_position(ancestor)),
                }
            }
        }
        Ok(Self(found))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a hash of everything that the written rows depend on.
    pub(super) fn key(&self, whole: &Snapshot, part: &Snapshot) -> u128 {
        let mut hashed = b"copies ".to_vec();
        for (session, relation) in &self.0 {
            append_summary(part, *session, &mut hashed);
            hashed.push(u8::from(relation.has_hidden_parent));
            for ancestor in &relation.visible {
                append_summary(part, *ancestor, &mut hashed);
            }
            hashed.push(0);
            for ancestor in &relation.hidden {
                append_summary(whole, *ancestor, &mut hashed);
            }
        }
        xxh3_128(&hashed)
    }

    /// Writes the sessions into new segments. A session whose events stay gets a new row only.
    pub(super) fn write_sessions(
        &self,
        whole: &Snapshot,
        part: &Snapshot,
        begin_segment: &dyn Fn() -> SegmentWriter,
    ) -> Result<Vec<FinishedSegment>, StoreError> {
        let mut rewriter = SessionRewriter::new(part, begin_segment);
        let mut records = SessionRecords { snapshot: whole, read: HashMap::new() };
        for (session, relation) in &self.0 {
            let known = part.sessions()[*session].row()?;
            let (row, copies) = relation.recount(part, *session, &mut records)?;
            let row = relation.replace_parent(part, row);
            // The rows of a session in one segment must have no gap.
            if let Some(copies) = copies.filter(|copies| copies.len() as i64 == known.events) {
                let is_copy = |index: i32| {
                    let index = usize::try_from(index).ok();
                    index.and_then(|index| copies.get(index)).copied().unwrap_or(false)
                };
                let change = |index: i32, _: ReplayFlags| ReplayFlags {
                    is_replay: is_copy(index),
                    is_counted_elsewhere: false,
                };
                rewriter.write_events(*session, &change, &mut |_| Ok(()))?;
                rewriter.write_row(row)?;
            } else if row != **known {
                rewriter.write_row_alone(row);
            }
        }
        rewriter.finish()
    }
}

impl HiddenRelation {
    /// Counts the events of the session at a position again. Returns its row, and whether each event is
    /// a copy; `None` if no event changes.
    fn recount(
        &self,
        part: &Snapshot,
        session: usize,
        records: &mut SessionRecords<'_>,
    ) -> Result<(SessionRow, Option<Vec<bool>>), StoreError> {
        let known = part.sessions()[session].row()?;
        if !self.has_copies {
            return Ok((SessionRow::clone(known), None));
        }
        let format = format_of(known.provider);
        if format.quirks.finds_copies_without_original && self.visible.is_empty() {
            let known_confidence =
                known.usage_confidence.as_deref().and_then(|name| name.parse::<Confidence>().ok());
            let confidence = known_confidence
                .map_or(Confidence::Estimated, |known| known.max(Confidence::Estimated));
            let usage_confidence = Some(confidence.as_str().to_owned());
            return Ok((SessionRow { usage_confidence, ..SessionRow::clone(known) }, None));
        }

        let mut visible = Vec::with_capacity(self.visible.len());
        for ancestor in &self.visible {
            let id = part.sessions()[*ancestor].id();
            if let Some(position) = records.snapshot.session_position(id) {
                visible.push(records.read(position)?.clone());
            }
        }
        let mut hidden = HashSet::new();
        for ancestor in &self.hidden {
            hidden.extend(records.read(*ancestor)?);
        }
        let mut recount = CopyRecount::new(known, format.has_unique_ids, visible, hidden);
        let mut events = part.events_of(session, ALL_EVENTS, &[]);
        while let Some(batch) = events.next_batch()? {
            let rows: Vec<EventRow> = serde_arrow::from_record_batch(&batch)
                .map_err(|error| events.damaged_batch(error))?;
            for row in &rows {
                recount.add_event(row);
            }
        }
        if !recount.has_changed() {
            return Ok((SessionRow::clone(known), None));
        }
        let (row, copies) = recount.finish();
        Ok((row, Some(copies)))
    }

    /// Returns a row that does not name a hidden parent. The parent of a fork is then its first visible
    /// original.
    fn replace_parent(&self, part: &Snapshot, row: SessionRow) -> SessionRow {
        if !self.has_hidden_parent {
            return row;
        }
        let is_fork = row.relation.as_deref() == Some(Relation::ForkedFrom.as_str());
        let native_id = row.native_id.as_deref().unwrap_or_default();
        let originals = self.visible.iter().map(|at| part.sessions()[*at].id());
        let parent = originals.filter(|id| is_fork && !id.starts_with(native_id)).min();
        let parent_session_id = parent.map(str::to_owned);
        // That a session is a subagent's says nothing about its parent.
        let stays_related = row.is_subagent() || parent_session_id.is_some();
        let relation = if stays_related { row.relation.clone() } else { None };
        SessionRow { parent_session_id, relation, ..row }
    }
}

/// Appends what identifies the rows of the session at a position.
pub(super) fn append_summary(snapshot: &Snapshot, session: usize, out: &mut Vec<u8>) {
    let summary = &snapshot.sessions()[session];
    let rows = (summary.segment, summary.live_from, summary.events, summary.replay_events);
    out.extend(format!("{} {rows:?} ", summary.session_id).into_bytes());
}
