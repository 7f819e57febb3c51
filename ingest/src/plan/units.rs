//! The units of work of a plan.

use std::sync::{Mutex, PoisonError};

use super::planned_log::PlannedLog;

/// Maximum number of units that a worker takes at a time.
const MAX_BATCH_UNITS: usize = 16;

/// Size in bytes of the logs of a batch of units after which no further unit is added.
const MAX_BATCH_BYTES: u64 = 16 << 10;

/// Log files to read, grouped into units. The logs of one unit are read one after the other,
/// ancestors first.
///
/// The logs stay where the plan collected them: to move those of 100,000 logs to vectors of their
/// units takes longer than to plan them.
#[derive(Debug, Default)]
pub struct Units {
    logs: Vec<PlannedLog>,
    /// The positions of the logs, unit after unit.
    positions: Vec<usize>,
    /// The end of each unit in `positions`.
    ends: Vec<usize>,
}

impl Units {
    /// Makes a unit of each log in `logs`, in the order of `positions`.
    pub(super) fn of_single_logs(logs: Vec<PlannedLog>, positions: Vec<usize>) -> Self {
        Self { logs, ends: (1..=positions.len()).collect(), positions }
    }

    /// Groups logs into units, which have their positions.
    pub(super) fn of_groups(logs: Vec<PlannedLog>, groups: &[Vec<usize>]) -> Self {
        let mut positions = Vec::with_capacity(logs.len());
        let mut ends = Vec::with_capacity(groups.len());
        for group in groups {
            positions.extend_from_slice(group);
            ends.push(positions.len());
        }
        Self { logs, positions, ends }
    }

    /// Returns the logs of all units, in no particular order.
    pub fn logs(&self) -> &[PlannedLog] {
        &self.logs
    }

    /// Returns the number of units.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no work.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the unit at a position.
    fn unit(&self, at: usize) -> Option<Unit<'_>> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(Unit { logs: &self.logs, positions: &self.positions[start..end] })
    }
}

impl From<Vec<PlannedLog>> for Units {
    /// Makes a unit of each work.
    fn from(logs: Vec<PlannedLog>) -> Self {
        let positions = (0..logs.len()).collect();
        Self::of_single_logs(logs, positions)
    }
}

/// Logs that are read one after the other, ancestors first.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'u> {
    logs: &'u [PlannedLog],
    positions: &'u [usize],
}

impl<'u> Unit<'u> {
    /// Returns the logs in their order.
    pub(crate) fn logs(self) -> impl ExactSizeIterator<Item = &'u PlannedLog> {
        self.positions.iter().map(move |at| &self.logs[*at])
    }
}

/// Hands the units of a plan to workers, in their order.
pub(crate) struct UnitQueue<'u> {
    units: &'u Units,
    next: Mutex<usize>,
}

impl<'u> UnitQueue<'u> {
    pub(crate) fn new(units: &'u Units) -> Self {
        Self { units, next: Mutex::new(0) }
    }

    /// Takes the next units, several if their logs are small. Empty if no unit remains.
    pub(crate) fn take(&self) -> Vec<Unit<'u>> {
        let mut taken = Vec::with_capacity(MAX_BATCH_UNITS);
        let mut bytes = 0_u64;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.len() < MAX_BATCH_UNITS
            && bytes < MAX_BATCH_BYTES
            && let Some(unit) = self.units.unit(*next)
        {
            *next += 1;
            // The size of a log that is gone may be any number.
            bytes = unit.logs().fold(bytes, |sum, log| sum.saturating_add(log.file.size));
            taken.push(unit);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use schemas::Provider;

    use super::super::planned_log::LogChange;
    use super::*;
    use crate::provider::format::SessionClaim;
    use crate::source::candidate::{Container, LogCandidate};

    fn log(name: &str, size: u64) -> PlannedLog {
        PlannedLog {
            file: LogCandidate {
                path: PathBuf::from(name),
                size,
                modified_us: 0,
                container: Container::Plain,
            },
            change: LogChange::Gone,
            claim: SessionClaim::new(Provider::Claude, name),
            content: None,
            session_id: name.to_owned(),
            parent_session_id: None,
            relation: None,
            ancestors: Vec::new(),
            is_whole_copy: false,
            reason: None,
            source: None,
            session: None,
        }
    }

    #[test]
    fn small_logs_are_taken_together_and_each_once() {
        let sizes = [1, 2, MAX_BATCH_BYTES, 3, u64::MAX, u64::MAX];
        let logs = sizes.iter().zip(["a", "b", "c", "d", "e", "f"]);
        let units = Units::from(logs.map(|(size, name)| log(name, *size)).collect::<Vec<_>>());
        let queue = UnitQueue::new(&units);
        let mut taken = Vec::new();
        loop {
            let names = queue.take().into_iter().flat_map(|unit| unit.logs());
            let names: String = names.map(|log| log.session_id.as_str()).collect();
            if names.is_empty() {
                break;
            }
            taken.push(names);
        }
        assert_eq!(taken, ["abc", "de", "f"]);

        let groups = [vec![1, 0]];
        let all = Units::of_groups(vec![log("a", 1), log("b", u64::MAX)], &groups);
        assert_eq!(UnitQueue::new(&all).take().len(), 1);
    }
}
