//! Finds the records that a log may repeat from other logs of its unit, and whether that changed
//! since the log was read.

use std::collections::{HashMap, HashSet};

use super::target::Target;
use super::worker::Worker;
use crate::plan::{LogChange, PlannedLog, is_id_of};
use crate::provider::format::LogFormat;
use crate::stream::replay::CopiedHistory;
use crate::text::names::truncate_name;

impl<T: Target> Worker<'_, T> {
    /// Returns the lost records if a log that was read before must be counted again. That is so if
    /// its originals received or lost records that this log also has. `None` if nothing changed for
    /// this log.
    pub(super) fn find_shifted_records(
        &self,
        log: &PlannedLog,
        format: &LogFormat,
        records: &mut UnitRecords<'_>,
    ) -> Result<Option<HashSet<u64>>, T::Error> {
        if !matches!(log.change, LogChange::Same | LogChange::Grown | LogChange::Gone) {
            return Ok(None);
        }

        let mut new = HashSet::new();
        let mut lost = HashSet::new();
        let mut before = HashSet::new();
        let (mut had_records, mut has_records) = (false, false);
        for ancestor in &log.ancestors {
            let Some(read_records) = records.read.get(ancestor.as_str()) else {
                let is_known = !self.committed_records(ancestor, records)?.is_empty();
                had_records |= is_known;
                has_records |= is_known;
                continue;
            };
            let is_from_start = read_records.is_from_start;
            let read_hashes: Vec<u64> = read_records.all().collect();
            let committed = self.committed_records(ancestor, records)?;
            had_records |= !committed.is_empty();
            has_records |= !read_hashes.is_empty() || !is_from_start && !committed.is_empty();
            before.extend(committed);
            let replaced: &[u64] = if is_from_start { committed } else { &[] };
            lost.extend(surplus_records(replaced, &read_hashes));
            new.extend(surplus_records(&read_hashes, replaced));
        }
        // The copy has other records than the log that it is a copy of.
        if log.is_whole_copy && had_records != has_records {
            return Ok(Some(lost));
        }
        if format.has_unique_ids {
            new.retain(|hash| !before.contains(hash));
        }
        if new.is_empty() && lost.is_empty() {
            return Ok(None);
        }

        let own: HashSet<u64> =
            self.committed_records(&log.session_id, records)?.iter().copied().collect();
        let counted = own.difference(&before).count();
        let copied = own.len() - counted;
        let is_shifted = new.intersection(&own).count() >= min_common(format, new.len(), counted)
            || lost.intersection(&own).count() >= min_common(format, lost.len(), copied);
        Ok(is_shifted.then_some(lost))
    }

    /// Returns the records of a session as they were committed before this run.
    pub(super) fn committed_records<'r>(
        &self,
        session_id: &str,
        records: &'r mut UnitRecords<'_>,
    ) -> Result<&'r [u64], T::Error> {
        if !records.committed.contains_key(session_id) {
            let committed = self.target.record_hashes(session_id)?;
            records.committed.insert(session_id.to_owned(), committed);
        }
        Ok(records.committed.get(session_id).map_or(&[], Vec::as_slice))
    }

    /// Collects the records that this log may repeat.
    pub(super) fn collect_history(
        &self,
        log: &PlannedLog,
        format: &LogFormat,
        records: &mut UnitRecords<'_>,
    ) -> Result<CopiedHistory, T::Error> {
        let mut streams = Vec::new();
        for ancestor in &log.ancestors {
            let mut hashes = Vec::new();
            // A log read from its start replaces everything that was committed of it.
            if !records.read.get(ancestor.as_str()).is_some_and(|read| read.is_from_start) {
                hashes.extend(self.committed_records(ancestor, records)?);
            }
            // The target does not show as committed what this run read of the ancestor.
            let read = records.read.get(ancestor.as_str());
            hashes.extend(read.into_iter().flat_map(ReadRecords::all));
            streams.push(hashes);
        }

        let native_id = truncate_name(&log.claim.native_id);
        let is_same_session = log.ancestors.iter().all(|id| is_id_of(id, native_id));
        Ok(CopiedHistory::new(streams, format.has_unique_ids, is_same_session))
    }
}

/// Records of the sessions of a unit, for the sessions that share history with them.
#[derive(Default)]
pub(super) struct UnitRecords<'w> {
    /// Records read in this run, by session id.
    pub(super) read: HashMap<&'w str, ReadRecords>,
    /// The earlier versions of sessions of the unit, in the order of the unit, by session id.
    pub(super) versions: HashMap<&'w str, Vec<&'w PlannedLog>>,
    /// The earlier versions that were counted when their log was read.
    pub(super) recounted: HashSet<&'w str>,
    /// The sessions whose log was not read to its end by the run before.
    pub(super) interrupted: HashSet<&'w str>,
    /// Records committed before this run, by session id; only for sessions already asked about.
    committed: HashMap<String, Vec<u64>>,
}

impl<'w> UnitRecords<'w> {
    /// Creates the records of the logs of a unit, none of which has been read.
    pub(super) fn of_unit(logs: &'w [PlannedLog]) -> Self {
        let mut records = Self::default();
        for log in logs {
            if log.is_earlier_version()
                && let Some(later) = &log.claim.parent
            {
                records.versions.entry(later).or_default().push(log);
            }
            if log.source.as_ref().is_some_and(|source| source.size < 0) {
                records.interrupted.insert(&log.session_id);
            }
        }
        records
    }
}

/// Returns how many of the `changed` records of its originals a log must have to be counted again.
/// `own` is the number of its records that could be among them.
fn min_common(format: &LogFormat, changed: usize, own: usize) -> usize {
    if format.has_unique_ids {
        return 1;
    }
    // Records without unique ids may be equal by chance.
    changed.min(own).div_ceil(2).max(1)
}

/// Returns the records that occur more often in `one` than in `other`.
pub(super) fn surplus_records(one: &[u64], other: &[u64]) -> HashSet<u64> {
    let mut remaining = HashMap::<u64, usize>::new();
    for hash in other {
        *remaining.entry(*hash).or_default() += 1;
    }

    let mut surplus = HashSet::new();
    for hash in one {
        match remaining.get_mut(hash) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => {
                surplus.insert(*hash);
            }
        }
    }
    surplus
}

/// Identities of the records read from a log, in order.
#[derive(Default)]
pub(super) struct ReadRecords {
    /// True if the log was read from its start, so that its records replace the committed ones.
    pub(super) is_from_start: bool,
    pub(super) hashes: Vec<u64>,
    /// The records that the log no longer has and an earlier version of it keeps.
    pub(super) kept: Vec<u64>,
}

impl ReadRecords {
    /// Returns the records that the log has, and those that an earlier version of it keeps.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> {
        self.hashes.iter().chain(&self.kept).copied()
    }
}
