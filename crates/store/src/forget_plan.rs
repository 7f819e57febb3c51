//! Finds what `forget` removes: the records of the forgotten sessions, and their copies in sessions
//! that stay.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ingest::provider::{base_of, format_of};
use ingest::stream::forgotten::{
    ForgottenCopies, ForgottenRecords, ForgottenSession, MarkKey, RecordFacts, repeated_agent,
};
use schemas::Provider;
use schemas::event::Relation;
use schemas::session::SessionRow;
use schemas::table::EventColumn;

use super::error::StoreError;
use super::forgotten_rows::{FACT_COLUMNS, RecordFactsReader};
use super::segment::event_reader::{EventReader, RowSpan};
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;
use base::parallel::in_parallel;

/// Rows read at a time.
const BATCH_ROWS: usize = 4096;

/// What is forgotten with some sessions.
pub struct ForgetPlan {
    /// The sessions, with hashes of their records.
    pub(super) forgotten: Vec<ForgottenSession>,
    /// The sessions that hold copies of these records, by position.
    pub copies: Vec<StoredCopy>,
}

/// A session of the store that holds copies of records that are forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCopy {
    /// Position of the session.
    pub session: usize,
    /// The forgotten sessions.
    pub forgotten_sessions: Vec<String>,
    /// Number of events of the copied records.
    pub events_left_out: i64,
    /// Number of the other events, without copies of sessions that stay.
    pub events_kept: i64,
    /// True if the session has no word of its own, so that all of it goes.
    pub is_whole: bool,
    /// The indexes of the events of the copied records.
    pub(super) ranges: Vec<Range<i32>>,
}

/// A session that may hold copies, with its records.
struct Suspect {
    session: usize,
    facts: Vec<RecordFacts>,
}

impl Snapshot {
    /// Finds what is forgotten with these sessions. The hashes have the given key.
    pub fn plan_forget(
        &self,
        sessions: &HashSet<String>,
        key: MarkKey,
    ) -> Result<ForgetPlan, StoreError> {
        let lineage = Lineage::read(self)?;
        let mut forgotten = Vec::new();
        for id in sessions {
            if let Some(session) = self.session(id) {
                forgotten.push(self.mark_session(session.row()?, &lineage, sessions, key)?);
            }
        }
        let mut records = ForgottenRecords::new(key, forgotten);
        let suspects = self.find_suspects(&records, sessions)?;
        for suspect in &suspects {
            if self.is_unlinked_original(suspect, &lineage, sessions, &records)? {
                records = records.without_records(&suspect.facts);
            }
        }
        let mut copies = Vec::new();
        for Suspect { session, facts } in &suspects {
            let row = self.sessions()[*session].row()?;
            if let Some(found) = find_copies(&records, row, facts) {
                copies.push(StoredCopy {
                    session: *session,
                    ranges: found.event_ranges(facts),
                    forgotten_sessions: found.session_ids.into_iter().collect(),
                    events_left_out: found.left_out,
                    events_kept: found.kept,
                    is_whole: found.is_whole,
                });
            }
        }
        copies.sort_by_key(|copy| copy.session);
        Ok(ForgetPlan { forgotten: records.into_sessions(), copies })
    }

    /// Returns a session that is forgotten, with hashes of its records. Records that it copied from a
    /// session that stays are left out.
    fn mark_session(
        &self,
        row: &SessionRow,
        lineage: &Lineage,
        sessions: &HashSet<String>,
        key: MarkKey,
    ) -> Result<ForgottenSession, StoreError> {
        let kept: Vec<usize> = lineage
            .originals_of(&row.session_id)
            .filter(|id| !sessions.contains(*id))
            .filter_map(|id| self.session_position(id))
            .collect();
        let mut kept_hashes = HashSet::new();
        for original in &kept {
            kept_hashes.extend(self.read_record_hashes(*original)?);
        }
        // The records that a session copied when it was written are those of the session that it continues,
        // also if that is not here, or not yet.
        let is_continued = row.relation.as_deref() == Some(Relation::ContinuedFrom.as_str());
        let has_parent = |id: &String| sessions.contains(id) || self.session(id).is_some();
        let lacks_original =
            is_continued && !row.parent_session_id.as_ref().is_some_and(has_parent);
        let is_of_original = |record: &RecordFacts| {
            let is_of_kept = !kept.is_empty()
                && (record.record_hash == 0 || kept_hashes.contains(&record.record_hash));
            record.is_replay && (lacks_original || is_of_kept)
        };
        let facts = self.read_all_facts(&row.session_id)?;
        let marks = facts.iter().filter(|record| !is_of_original(record));
        let mut records: Vec<_> = marks.map(|record| key.mark_record(record)).collect();
        records.dedup();
        let native_id = row.native_id.as_deref().unwrap_or(&row.session_id);
        let base = base_of(row.provider);
        Ok(ForgottenSession {
            session_id: row.session_id.clone(),
            provider: base,
            own_id: key.mark_id(base, native_id, row.agent_id.as_deref()),
            title: row.title.as_deref().map_or(0, |title| key.mark_title(title)),
            records,
        })
    }

    /// Returns the facts about all records of a session that the store has, also of those that were
    /// superseded: a backup of the log may have them.
    fn read_all_facts(&self, session_id: &str) -> Result<Vec<RecordFacts>, StoreError> {
        let mut facts = Vec::new();
        for segment in self.segments() {
            for row in segment.summaries() {
                if row.session_id != session_id || row.row_count <= 0 {
                    continue;
                }
                let rows = RowSpan {
                    start: usize::try_from(row.row_start).unwrap_or(0),
                    count: usize::try_from(row.row_count).unwrap_or(0),
                };
                let mut batches = EventReader::open(segment, &[rows], &FACT_COLUMNS, BATCH_ROWS)?;
                let mut reader = RecordFactsReader::default();
                while let Some(batch) = batches.next_batch()? {
                    reader.add_events(&batch);
                }
                facts.extend(reader.into_facts());
            }
        }
        Ok(facts)
    }

    /// Returns the sessions besides `sessions` that may hold copies of `records`.
    fn find_suspects(
        &self,
        records: &ForgottenRecords,
        sessions: &HashSet<String>,
    ) -> Result<Vec<Suspect>, StoreError> {
        let mut candidates = Vec::new();
        for (at, session) in self.sessions().iter().enumerate() {
            if session.events > 0
                && records.may_be_repeated_by(agent_repeated_by(session.row()?))
                && !sessions.contains(session.id())
            {
                candidates.push(at);
            }
        }
        // Most sessions are ruled out without their texts.
        let identities: Vec<EventColumn> =
            FACT_COLUMNS.into_iter().filter(|column| *column != EventColumn::Text).collect();
        let found = in_parallel(&candidates, 16, |candidates| {
            let mut suspects = Vec::new();
            for at in candidates {
                let outline = self.read_facts(*at, &identities)?;
                let needs_text =
                    |facts: &RecordFacts| facts.record_hash == 0 && facts.time.is_none();
                if !records.may_have_copies(&outline) && !outline.iter().any(needs_text) {
                    continue;
                }
                let facts = self.read_facts(*at, &FACT_COLUMNS)?;
                if find_copies(records, self.sessions()[*at].row()?, &facts).is_some() {
                    suspects.push(Suspect { session: *at, facts });
                }
            }
            Ok::<_, StoreError>(suspects)
        })?;
        let mut suspects: Vec<Suspect> = found.into_iter().flatten().collect();
        suspects.sort_by_key(|suspect| suspect.session);
        Ok(suspects)
    }

    /// Returns the facts about the records of the session at a position.
    fn read_facts(
        &self,
        session: usize,
        columns: &[EventColumn],
    ) -> Result<Vec<RecordFacts>, StoreError> {
        let mut reader = RecordFactsReader::default();
        let mut events = self.events_of(session, ALL_EVENTS, columns);
        while let Some(batch) = events.next_batch()? {
            reader.add_events(&batch);
        }
        Ok(reader.into_facts())
    }

    /// Returns whether a session is the original of records that forgotten sessions also have: nothing
    /// says which of them is the copy, but a forgotten one has all its records and more.
    fn is_unlinked_original(
        &self,
        suspect: &Suspect,
        lineage: &Lineage,
        sessions: &HashSet<String>,
        records: &ForgottenRecords,
    ) -> Result<bool, StoreError> {
        let session = self.sessions()[suspect.session].row()?;
        // A session that continues another one as a copy, or a copy of one, is not the original.
        if session.relation.as_deref() == Some(Relation::ContinuedFrom.as_str()) {
            return Ok(false);
        }
        let is_linked = lineage.originals_of(&session.session_id).any(|id| sessions.contains(id));
        let Some(found) = find_copies(records, session, &suspect.facts) else { return Ok(false) };
        let spoken = suspect.facts.iter().filter(|record| record.spoken_events > 0).count();
        let mut others =
            records.sessions().iter().filter(|other| found.session_ids.contains(&other.session_id));
        let own_id = own_id_of(records.key(), session);
        Ok(!is_linked
            && found.is_whole
            && others.all(|other| other.own_id != own_id && other.records.len() > spoken))
    }
}

/// Finds the records of a session that are copies of forgotten ones.
pub(super) fn find_copies(
    records: &ForgottenRecords,
    session: &SessionRow,
    facts: &[RecordFacts],
) -> Option<ForgottenCopies> {
    let base = base_of(session.provider);
    let repeated = agent_repeated_by(session);
    let has_ids = format_of(base).has_unique_ids || repeated != base;
    records.find_copies(repeated, has_ids, own_id_of(records.key(), session), facts)
}

/// Returns the agent whose sessions a session may repeat.
fn agent_repeated_by(session: &SessionRow) -> Provider {
    let relation = session.relation.as_ref().and_then(|relation| relation.parse().ok());
    repeated_agent(base_of(session.provider), relation)
}

/// Returns the hash of the id that the log of a session names.
fn own_id_of(key: MarkKey, session: &SessionRow) -> u64 {
    let native_id = session.native_id.as_deref().unwrap_or(&session.session_id);
    key.mark_id(base_of(session.provider), native_id, session.agent_id.as_deref())
}

/// Which sessions repeat which.
struct Lineage {
    /// The sessions that each session was found to repeat when its log was read, and the one that it
    /// continues.
    originals: HashMap<String, Vec<String>>,
}

impl Lineage {
    fn read(snapshot: &Snapshot) -> Result<Self, StoreError> {
        let mut originals: HashMap<String, Vec<String>> = HashMap::new();
        for row in snapshot.read_sources(false)? {
            if let (Some(id), Some(ancestors)) = (row.session_id, row.ancestors) {
                let ancestors = ancestors.split(' ').map(str::to_owned);
                originals.entry(id).or_default().extend(ancestors);
            }
        }
        for session in snapshot.sessions() {
            let row = session.row()?;
            if row.relation.as_deref() == Some(Relation::ContinuedFrom.as_str())
                && let Some(parent) = &row.parent_session_id
            {
                originals.entry(row.session_id.clone()).or_default().push(parent.clone());
            }
        }
        Ok(Self { originals })
    }

    fn originals_of(&self, id: &str) -> impl Iterator<Item = &str> {
        self.originals.get(id).into_iter().flatten().map(String::as_str)
    }
}
