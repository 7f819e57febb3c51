//! Makes what several machines have of one history count once.
//!
//! A machine marks what its logs copied from each other. Between machines it cannot: so the sessions that
//! begin with the same record are compared, and all but one of them get marks on the events with which
//! they begin alike. The session of this machine counts them, or else the first by its id in the lake, so
//! that the order of pushes and pulls does not matter.
//!
//! Invariant: rows are committed together with the marks that follow from them, so that nothing counts
//! twice in any generation of the store.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use ingest::provider::base_of;
use ingest::stream::SessionRecount;
use schemas::Provider;
use schemas::session::{EventRow, SourceRow};

use super::history::EventHistory;
use super::imported_from::{ImportedFrom, LogBeginning, beginning_of};
use super::keys::LAKE_PATH;
use crate::error::StoreError;
use crate::segment::segment_writer::FinishedSegment;
use crate::session_rewriter::{ReplayFlags, SessionRewriter};
use crate::snapshot::Snapshot;
use crate::writer::StoreWriter;

/// Whether imported sessions are compared with those that begin with the same record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyMarks {
    /// They are, and what several have counts once.
    Compared,
    /// They count what their machine published.
    AsPublished,
}

/// An imported session with marks on events that no other session counts any more. It must be imported
/// again.
pub struct OutdatedCopy {
    /// Id of the machine that published it.
    pub publisher: String,
    /// The path of its source.
    pub source_path: String,
}

/// An imported session whose first events another session counts.
struct CopiedEvents {
    /// Position of the session in the snapshot.
    session: usize,
    /// Number of these events.
    count: usize,
    /// The row of its source from now on.
    source: SourceRow,
}

/// The sessions whose marks change.
#[derive(Default)]
struct FoundCopies {
    copied: Vec<CopiedEvents>,
    outdated: Vec<OutdatedCopy>,
}

/// A session that may share history with those of other machines.
struct Member {
    /// Position in the snapshot.
    at: usize,
    log: String,
    first_record: Option<(Provider, i64)>,
    /// What was imported; `None` for a session of this machine.
    imported: Option<(ImportedFrom, SourceRow)>,
}

impl Member {
    /// Returns the machine that publishes the session; `None` for this one.
    fn machine(&self) -> Option<&str> {
        self.imported.as_ref().map(|(from, _)| from.publisher.as_str())
    }

    /// Returns the number of first events that are marked because another session counts them.
    fn copied(&self) -> usize {
        self.imported.as_ref().map_or(0, |(from, _)| from.copied)
    }
}

impl StoreWriter {
    /// Commits segments of imported sessions with what counts otherwise because of them: events with which
    /// sessions of several machines begin, and responses of several sessions. No segment may be under
    /// construction. Returns whether sessions were written again.
    pub(super) fn commit_imported(
        &self,
        mut new: Vec<FinishedSegment>,
        marks: CopyMarks,
    ) -> Result<bool, StoreError> {
        if new.is_empty() {
            return Ok(false);
        }
        let recounted = self.recount_imported(&new, marks);
        let Some(recounted) = unless_damaged(recounted)? else {
            self.commit(new, |_| ())?;
            return Ok(false);
        };
        let has_recounted = !recounted.is_empty();
        new.extend(recounted);
        self.commit(new, |next| next.compared_up_to = next.next_segment - 1)?;
        Ok(has_recounted)
    }

    /// Writes the sessions again that count otherwise once these segments are committed.
    fn recount_imported(
        &self,
        new: &[FinishedSegment],
        marks: CopyMarks,
    ) -> Result<Vec<FinishedSegment>, StoreError> {
        let snapshot = self.take_snapshot()?.with_uncommitted(new)?;
        let copied = match marks {
            CopyMarks::Compared => snapshot.find_copies(Some(&beginnings_of(new)?))?.copied,
            CopyMarks::AsPublished => Vec::new(),
        };
        self.count_once(&snapshot, copied)
    }

    /// Commits a segment of logs of this machine, with the marks of imported sessions that begin with
    /// events which the logs have now.
    pub(crate) fn commit_ingested(&self, new: FinishedSegment) -> Result<(), StoreError> {
        let imported = self.read_imported_beginnings()?;
        let is_shared = !imported.is_empty()
            && !imported.is_disjoint(&beginnings_of(std::slice::from_ref(&new))?);
        if !is_shared {
            return self.commit_segment(Some(new), &[]);
        }
        let _turn = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = vec![new];
        if let Some(marked) = unless_damaged(self.mark_imported(&new))? {
            new.extend(marked);
        }
        self.commit(new, |_| ())
    }

    /// Marks what imported sessions have in common with the logs of these segments.
    fn mark_imported(&self, new: &[FinishedSegment]) -> Result<Vec<FinishedSegment>, StoreError> {
        let snapshot = self.take_snapshot()?.with_uncommitted(new)?;
        let copied = snapshot.find_copies(Some(&beginnings_of(new)?))?.copied;
        self.write_marks(&snapshot, copied)
    }

    /// Returns how the logs of imported sessions began when the lock was taken.
    fn read_imported_beginnings(&self) -> Result<&HashSet<LogBeginning>, StoreError> {
        if let Some(known) = self.imported_beginnings.get() {
            return Ok(known);
        }
        let mut beginnings = HashSet::new();
        if self.before.sessions().iter().any(|session| session.origin.machine.is_some()) {
            let sources = self.before.read_sources(false)?;
            let imported = sources.iter().filter(|source| source.path.starts_with(LAKE_PATH));
            beginnings.extend(imported.filter_map(beginning_of));
        }
        Ok(self.imported_beginnings.get_or_init(|| beginnings))
    }

    /// Compares all sessions of several machines, and commits the marks that are missing. Returns the
    /// sessions that have more marks than they should.
    ///
    /// # Errors
    /// Fails if rows cannot be read, or if the store cannot be written.
    pub fn settle_copies(&self) -> Result<Vec<OutdatedCopy>, StoreError> {
        let snapshot = self.take_snapshot()?;
        let FoundCopies { copied, outdated } = snapshot.find_copies(None)?;
        if !copied.is_empty() {
            let recounted = self.count_once(&snapshot, copied)?;
            self.commit(recounted, |next| next.compared_up_to = next.next_segment - 1)?;
            // The events of earlier segments are superseded.
            self.retire_superseded_segments()?;
            self.merge_small_segments()?;
        }
        Ok(outdated)
    }

    /// Marks the first events of sessions as copies, and counts responses of several sessions once.
    fn count_once(
        &self,
        snapshot: &Snapshot,
        copied: Vec<CopiedEvents>,
    ) -> Result<Vec<FinishedSegment>, StoreError> {
        let mut written = self.write_marks(snapshot, copied)?;
        let recounted = self.recount_responses(&snapshot.with_uncommitted(&written)?)?;
        written.extend(recounted);
        Ok(written)
    }

    /// Writes sessions again with marks on their first events.
    fn write_marks(
        &self,
        snapshot: &Snapshot,
        copied: Vec<CopiedEvents>,
    ) -> Result<Vec<FinishedSegment>, StoreError> {
        let begin_segment = || self.begin_segment();
        let mut rewriter = SessionRewriter::new(snapshot, &begin_segment);
        for CopiedEvents { session, count, source } in copied {
            let mut recount = SessionRecount::new(snapshot.sessions()[session].row()?);
            let change = |event_index: i32, flags: ReplayFlags| {
                if usize::try_from(event_index).is_ok_and(|index| index < count) {
                    ReplayFlags { is_replay: true, is_counted_elsewhere: false }
                } else {
                    flags
                }
            };
            rewriter.write_events(session, &change, &mut |batch| {
                let rows: Vec<EventRow> =
                    serde_arrow::from_record_batch(batch).map_err(|error| error.to_string())?;
                for row in &rows {
                    recount.add_event(row);
                }
                Ok(())
            })?;
            rewriter.write_source(source);
            rewriter.write_row(recount.into_session())?;
        }
        rewriter.finish()
    }
}

/// Returns `None` if rows could not be compared because a segment is damaged, which a later run sets
/// aside.
fn unless_damaged<T>(compared: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match compared {
        Err(error @ StoreError::Damaged { .. }) => {
            tracing::warn!(%error, "sessions of several machines are not compared");
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// Returns how the logs of segments begin.
fn beginnings_of(segments: &[FinishedSegment]) -> Result<HashSet<LogBeginning>, StoreError> {
    let mut beginnings = HashSet::new();
    for segment in segments {
        let sources = segment.row_source().read_sources(segment.entry.number)?;
        beginnings.extend(sources.iter().filter_map(beginning_of));
    }
    Ok(beginnings)
}

impl Snapshot {
    /// Returns whether imported sessions have fewer or more marks than they should.
    ///
    /// # Errors
    /// Fails if rows cannot be read.
    pub fn has_unsettled_copies(&self) -> Result<bool, StoreError> {
        let FoundCopies { copied, outdated } = self.find_copies(None)?;
        Ok(!copied.is_empty() || !outdated.is_empty())
    }

    /// Compares the sessions of several machines that begin with the same record. If `beginnings` are
    /// given, only those whose logs begin like this.
    fn find_copies(
        &self,
        beginnings: Option<&HashSet<LogBeginning>>,
    ) -> Result<FoundCopies, StoreError> {
        let members = self.read_members(beginnings)?;
        let mut found = FoundCopies::default();
        for group in group_members(&members) {
            let first = members[group[0]].machine();
            let has_others = group.iter().any(|at| members[*at].machine() != first);
            let has_marks = group.iter().any(|at| members[*at].copied() > 0);
            if has_others || has_marks {
                compare_group(self, &members, &group, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Returns the imported sessions, and those of this machine that may share history with one of them:
    /// first those of this machine, then the others by their ids in the lake.
    fn read_members(
        &self,
        beginnings: Option<&HashSet<LogBeginning>>,
    ) -> Result<Vec<Member>, StoreError> {
        let is_compared = |source: &SourceRow| {
            let beginning = beginning_of(source);
            beginning.is_some_and(|one| beginnings.is_none_or(|wanted| wanted.contains(&one)))
        };
        let is_imported = |source: &SourceRow| source.path.starts_with(LAKE_PATH);
        let mut sources =
            self.read_sources_with_states(&|source| is_imported(source) && is_compared(source))?;
        sources.retain(is_compared);
        if beginnings.is_none() {
            self.read_rows()?;
        }

        let mut imported = Vec::new();
        for source in sources.extract_if(.., |source| is_imported(source)) {
            let at = source.session_id.as_deref().and_then(|id| self.session_position(id));
            let (Some(from), Some(at)) = (ImportedFrom::of_source(&source), at) else { continue };
            let has_parent = self.sessions()[at].row()?.relation.is_some();
            let rank = (has_parent, source.path.clone());
            let first_record = source.provider.map(base_of).zip(source.first_record);
            let log = from.log.clone();
            imported.push((rank, Member { at, log, first_record, imported: Some((from, source)) }));
        }
        if imported.is_empty() {
            return Ok(Vec::new());
        }
        imported.sort_by(|(a, _), (b, _)| a.cmp(b));

        let mut members = Vec::new();
        for own in self.find_own_logs(sources)? {
            let first_record =
                own.source.first_record.map(|first| (base_of(own.row.provider), first));
            members.push(Member { at: own.at, log: own.identity, first_record, imported: None });
        }
        members.extend(imported.into_iter().map(|(_, member)| member));
        Ok(members)
    }
}

/// Returns the positions of the members that begin with the same record, group by group.
fn group_members(members: &[Member]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_log: HashMap<&str, usize> = HashMap::new();
    let mut by_record: HashMap<(Provider, i64), usize> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        let known = by_log.get(member.log.as_str()).copied();
        let known = known.or_else(|| by_record.get(&member.first_record?).copied());
        let group = known.unwrap_or(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(at);
        by_log.entry(&member.log).or_insert(group);
        if let Some(first) = member.first_record {
            by_record.entry(first).or_insert(group);
        }
    }
    groups.retain(|group| group.len() > 1 || members[group[0]].copied() > 0);
    groups
}

/// Compares each session of a group with those before it that another machine has.
fn compare_group(
    snapshot: &Snapshot,
    members: &[Member],
    group: &[usize],
    found: &mut FoundCopies,
) -> Result<(), StoreError> {
    let mut histories = Vec::with_capacity(group.len());
    for at in group {
        histories.push(EventHistory::of_session(snapshot, members[*at].at)?);
    }
    // The number of first events of each session that one before it counts.
    let mut copied: Vec<usize> = Vec::with_capacity(group.len());
    for (position, at) in group.iter().enumerate() {
        let member = &members[*at];
        let mut count = 0;
        if member.imported.is_some() {
            for (other_position, other_at) in group[..position].iter().enumerate() {
                let other = &members[*other_at];
                if other.machine() == member.machine() {
                    continue;
                }
                let is_same_log = other.log == member.log;
                let history = &histories[other_position];
                let common = histories[position].count_common(history, is_same_log);
                let start = copied[other_position].min(common);
                count = count.max(history.counted_until(start, common));
            }
        }
        let before = member.copied();
        let is_marked = count >= before && histories[position].is_marked(before..count);
        if count != before && !is_marked {
            found.push_change(member, count);
        }
        copied.push(if is_marked { before } else { count });
    }
    Ok(())
}

impl FoundCopies {
    /// Notes an imported session of which another number of first events is to be marked than before.
    fn push_change(&mut self, member: &Member, count: usize) {
        let Some((from, source)) = &member.imported else { return };
        if count < from.copied {
            let publisher = from.publisher.clone();
            let source_path = source.path.clone();
            self.outdated.push(OutdatedCopy { publisher, source_path });
            return;
        }
        let from = ImportedFrom { copied: count, ..from.clone() };
        let source = SourceRow { state: serde_json::to_string(&from).ok(), ..source.clone() };
        self.copied.push(CopiedEvents { session: member.at, count, source });
    }
}
