//! Reports the numbers and problems of an ingest run.

use std::collections::BTreeMap;

use schemas::problem::Problem;
use serde::Serialize;

use crate::provider::format::Tally;

/// Number of problems listed in a report. All problems are counted and kept in the store.
const LISTED: usize = 50;

/// The numbers of one run.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct Report {
    pub files: u64,
    pub files_unchanged: u64,
    pub files_new: u64,
    pub files_grown: u64,
    pub files_rewritten: u64,
    pub files_vanished: u64,
    pub files_empty: u64,
    /// Files that are not logs but describe the log next to them.
    pub files_beside: u64,
    pub files_unknown: u64,
    pub files_failed: u64,
    pub files_opened: u64,
    pub bytes_read: u64,
    pub lines: u64,
    /// JSON objects decoded.
    pub objects: u64,
    /// Objects that are part of another event or give no event, by reason.
    pub objects_merged: BTreeMap<&'static str, u64>,
    pub sessions: u64,
    pub events: u64,
    pub replay_events: u64,
    pub by_provider: BTreeMap<String, ProviderReport>,
    pub problems: BTreeMap<&'static str, u64>,
    /// The first problems of this run, at most `LISTED`.
    pub problem_list: Vec<Problem>,
    /// Damaged segments that were set aside; their logs are read again where they still exist.
    pub segments_set_aside: u64,
    /// Notes for the user about the store's folder, in whole sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    pub elapsed_ms: u64,
    pub mb_per_second: f64,
}

/// The numbers of one provider.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderReport {
    pub files: u64,
    pub bytes: u64,
    pub objects: u64,
    pub events: u64,
}

impl Report {
    /// Counts a problem, and lists it if there is room.
    pub fn problem(&mut self, problem: &Problem) {
        *self.problems.entry(problem.kind.as_str()).or_default() += 1;
        if self.problem_list.len() < LISTED {
            self.problem_list.push(problem.clone());
        }
    }

    /// Counts records.
    pub fn tally(&mut self, tally: &Tally) {
        self.lines += tally.lines;
        self.objects += tally.objects;
        for (reason, count) in &tally.merged {
            *self.objects_merged.entry(reason).or_default() += count;
        }
    }

    /// Adds the numbers of another worker.
    pub fn add(&mut self, other: Self) {
        self.files_new += other.files_new;
        self.files_grown += other.files_grown;
        self.files_rewritten += other.files_rewritten;
        self.files_failed += other.files_failed;
        self.files_opened += other.files_opened;
        self.bytes_read += other.bytes_read;
        self.lines += other.lines;
        self.objects += other.objects;
        self.sessions += other.sessions;
        self.events += other.events;
        self.replay_events += other.replay_events;
        for (reason, count) in other.objects_merged {
            *self.objects_merged.entry(reason).or_default() += count;
        }
        for (provider, numbers) in other.by_provider {
            let mine = self.by_provider.entry(provider).or_default();
            mine.files += numbers.files;
            mine.bytes += numbers.bytes;
            mine.objects += numbers.objects;
            mine.events += numbers.events;
        }
        for (kind, count) in other.problems {
            *self.problems.entry(kind).or_default() += count;
        }
        let room = LISTED.saturating_sub(self.problem_list.len());
        self.problem_list.extend(other.problem_list.into_iter().take(room));
    }
}
