//! Finds the records that a log may repeat from other logs of its unit, and whether that changed
//! since the log was read.

use std::collections::{HashMap, HashSet};

use super::target::Target;
use super::worker::Worker;
use crate::plan::{Change, Work};
use crate::provider::format::Format;
use crate::stream::replay::History;
use crate::text::names::short;

impl<T: Target> Worker<'_, T> {
    /// Returns the lost records if a log that was read before must be counted again. That is so if
    /// its originals received or lost records that this log also has. `None` if nothing changed for
    /// this log.
    pub(super) fn shifted(
        &self,
        work: &Work,
        format: &Format,
        records: &mut Records<'_>,
    ) -> Result<Option<HashSet<u64>>, T::Error> {
        if !matches!(work.change, Change::Same | Change::Grown | Change::Gone) {
            return Ok(None);
        }
        let (mut new, mut lost, mut before) = (HashSet::new(), HashSet::new(), HashSet::new());
        for ancestor in &work.ancestors {
            let Some(read) = records.read.get(ancestor.as_str()) else { continue };
            let (from_start, read) = (read.from_start, read.hashes.clone());
            let committed = self.committed(ancestor, records)?;
            before.extend(committed);
            let had: &[u64] = if from_start { committed } else { &[] };
            lost.extend(surplus(had, &read));
            new.extend(surplus(&read, had));
        }
        if format.unique_ids {
            new.retain(|hash| !before.contains(hash));
        }
        if new.is_empty() && lost.is_empty() {
            return Ok(None);
        }
        let own: HashSet<u64> =
            self.committed(&work.session_id, records)?.iter().copied().collect();
        let is_common = |others: &HashSet<u64>, own_of_them: usize| {
            let common = others.intersection(&own).count();
            // Records without unique ids may be equal by chance.
            let enough =
                if format.unique_ids { 1 } else { others.len().min(own_of_them).div_ceil(2) };
            common >= enough.max(1)
        };
        let counted = own.difference(&before).count();
        let shifted = is_common(&new, counted) || is_common(&lost, own.len() - counted);
        Ok(shifted.then_some(lost))
    }

    /// Returns the records of a session as they were committed before this run.
    fn committed<'r>(
        &self,
        session_id: &str,
        records: &'r mut Records<'_>,
    ) -> Result<&'r [u64], T::Error> {
        if !records.committed.contains_key(session_id) {
            let committed = self.target.record_hashes(session_id)?;
            records.committed.insert(session_id.to_owned(), committed);
        }
        Ok(records.committed.get(session_id).map_or(&[], Vec::as_slice))
    }

    /// Collects the records that this log may repeat.
    pub(super) fn history(
        &self,
        work: &Work,
        format: &Format,
        records: &mut Records<'_>,
    ) -> Result<History, T::Error> {
        let mut streams = Vec::new();
        for ancestor in &work.ancestors {
            let mut hashes = Vec::new();
            // A log read from its start replaces everything that was committed of it.
            if !records.read.get(ancestor.as_str()).is_some_and(|read| read.from_start) {
                hashes.extend(self.committed(ancestor, records)?);
            }
            // The target does not show as committed what this run read of the ancestor.
            let read = records.read.get(ancestor.as_str());
            hashes.extend(read.into_iter().flat_map(|read| &read.hashes));
            streams.push(hashes);
        }
        let is_capture = |id: &String| id.starts_with(short(&work.claim.native_id));
        let captures = work.ancestors.iter().all(is_capture);
        Ok(History::new(streams, format.unique_ids, captures))
    }
}

/// Records of the sessions of a unit, for the sessions that share history with them.
#[derive(Default)]
pub(super) struct Records<'w> {
    /// Records read in this run, by session id.
    pub(super) read: HashMap<&'w str, ReadRecords>,
    /// Records committed before this run, by session id; only for sessions already asked about.
    committed: HashMap<String, Vec<u64>>,
}

/// Returns the records that occur more often in `one` than in `other`.
fn surplus(one: &[u64], other: &[u64]) -> HashSet<u64> {
    let mut left = HashMap::<u64, usize>::new();
    other.iter().for_each(|hash| *left.entry(*hash).or_default() += 1);
    let is_over = |hash: &&u64| match left.get_mut(hash) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    one.iter().filter(is_over).copied().collect()
}

/// Identities of the records read from a log, in order.
#[derive(Default)]
pub(super) struct ReadRecords {
    pub(super) from_start: bool,
    pub(super) hashes: Vec<u64>,
}
