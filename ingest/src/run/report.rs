//! Reports the numbers and problems of an ingest run.

use std::collections::BTreeMap;

use schemas::Provider;
use schemas::problem::Problem;
use serde::Serialize;

use crate::provider::format::RecordTally;

/// Maximum number of problems listed in a report. All problems are counted and kept in the store.
const MAX_LISTED_PROBLEMS: usize = 50;

/// The numbers of one run.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct IngestReport {
    /// Files found.
    pub files: u64,
    /// Files that did not change since they were read.
    pub files_unchanged: u64,
    /// Logs that were not known before.
    pub files_new: u64,
    /// Logs that were continued at their checkpoint.
    pub files_grown: u64,
    /// Known logs that were read from their start.
    pub files_rewritten: u64,
    /// What logs held before they were cut or begun again, kept as sessions of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_versions: Vec<EarlierVersion>,
    /// Known logs that no longer exist or were overwritten.
    pub files_vanished: u64,
    /// Files without a record.
    pub files_empty: u64,
    /// Files that are not logs but describe the log next to them.
    pub files_sidecar: u64,
    /// Files that no decoder recognises.
    pub files_unknown: u64,
    /// Files that could not be read.
    pub files_failed: u64,
    /// Logs that were left out because the user excluded or forgot them.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub files_excluded: u64,
    /// The sessions that begin with copies of forgotten ones, or have some in between.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<ContinuedSession>,
    /// Files opened to read their content.
    pub files_opened: u64,
    /// Bytes read from logs, after decompression.
    pub bytes_read: u64,
    /// Lines read.
    pub lines: u64,
    /// JSON objects decoded.
    pub objects: u64,
    /// Objects that are part of another event or give no event, by reason.
    pub objects_merged: BTreeMap<&'static str, u64>,
    /// Sessions whose log was read.
    pub sessions: u64,
    /// The sessions that the store has now, by class; see `sessions status`. They add up to what SQL
    /// counts. Empty if the run had no store.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions_by_class: BTreeMap<&'static str, usize>,
    /// Events read, copied ones included.
    pub events: u64,
    /// Copied events in the sessions whose log was read.
    pub replay_events: u64,
    /// The numbers of each provider, by its name.
    pub by_provider: BTreeMap<String, ProviderReport>,
    /// Number of problems by kind.
    pub problems: BTreeMap<&'static str, u64>,
    /// The first problems of this run, at most 50.
    pub problem_list: Vec<Problem>,
    /// The logs that a dry run would leave out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_logs: Vec<ExcludedLog>,
    /// True if nothing was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
    /// Damaged segments that were set aside; their logs are read again where they still exist.
    pub segments_set_aside: u64,
    /// Notes for the user about the store's folder, in whole sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Duration of the run in milliseconds.
    pub elapsed_ms: u64,
    /// Megabytes read per second.
    pub mb_per_second: f64,
}

/// A log that is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ExcludedLog {
    /// The path of the log.
    pub path: String,
    /// The working directory of its session. `None` if the path alone excludes the log, or if the
    /// log gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// What a log held before it was cut or begun again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierVersion {
    /// The session of the log.
    pub session_id: String,
    /// The session that keeps what the log held.
    pub kept_as: String,
}

/// A log that has copies of records of forgotten sessions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ContinuedSession {
    /// The session of the log.
    pub session_id: String,
    /// The forgotten sessions.
    pub forgotten_sessions: Vec<String>,
    /// Number of events of the copied records, which are kept without their text.
    pub events_left_out: i64,
    /// Number of events that the log adds.
    pub events_kept: i64,
    /// True if the log adds no word, or is the log of a forgotten session itself.
    #[serde(skip)]
    pub is_whole: bool,
}

/// The numbers of one provider.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderReport {
    /// Logs read.
    pub files: u64,
    /// Bytes read from logs, after decompression.
    pub bytes: u64,
    /// JSON objects decoded.
    pub objects: u64,
    /// Events read, copied ones included.
    pub events: u64,
}

impl IngestReport {
    /// Counts a problem, and lists it if there is space.
    pub fn add_problem(&mut self, problem: &Problem) {
        *self.problems.entry(problem.kind.as_str()).or_default() += 1;
        if self.problem_list.len() < MAX_LISTED_PROBLEMS {
            self.problem_list.push(problem.clone());
        }
    }

    /// Counts records.
    pub fn add_tally(&mut self, tally: &RecordTally) {
        self.lines += tally.lines;
        self.objects += tally.objects;
        for (reason, count) in &tally.merged {
            *self.objects_merged.entry(reason).or_default() += count;
        }
    }

    /// Returns the numbers of a provider.
    pub(super) fn provider_mut(&mut self, provider: Provider) -> &mut ProviderReport {
        // Asked for each log, so the name is made into a text for the first one only.
        if !self.by_provider.contains_key(provider.as_str()) {
            self.by_provider.insert(provider.to_string(), ProviderReport::default());
        }
        self.by_provider.get_mut(provider.as_str()).expect("inserted above")
    }

    /// Adds the numbers of another worker.
    pub fn add_worker_report(&mut self, other: Self) {
        self.files_new += other.files_new;
        self.files_grown += other.files_grown;
        self.files_rewritten += other.files_rewritten;
        self.earlier_versions.extend(other.earlier_versions);
        self.files_failed += other.files_failed;
        self.files_excluded += other.files_excluded;
        self.excluded_logs.extend(other.excluded_logs);
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
        let room = MAX_LISTED_PROBLEMS.saturating_sub(self.problem_list.len());
        self.problem_list.extend(other.problem_list.into_iter().take(room));
    }
}
