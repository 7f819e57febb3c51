//! The plan of an ingest run.

use std::collections::HashMap;

use schemas::problem::Problem;
use schemas::session::{SessionRow, SourceRow};

use super::planned_log::PlannedLog;

/// The work of one ingest run.
#[derive(Debug, Default)]
pub struct Plan {
    /// The logs to read, in units. Those of a unit are read one after the other, ancestors first.
    pub units: Vec<Vec<PlannedLog>>,
    /// Rows that change without reading a file: empty, unknown, failed and vanished files.
    pub settled: Vec<SourceRow>,
    /// Rows of sessions whose log vanished, came back or received another id.
    pub sessions: Vec<SessionRow>,
    /// Maps the new paths of settled rows to the paths under which the store has their state.
    pub moved: HashMap<String, String>,
    /// Problems found while planning.
    pub problems: Vec<Problem>,
    /// Number of files found.
    pub files: u64,
    /// Number of files that are unchanged since they were read.
    pub unchanged: u64,
    /// Bytes that will be read.
    pub bytes: u64,
}

impl Plan {
    /// Returns the plan of a run that found this number of files, all as the store knows them.
    pub fn of_unchanged(files: u64) -> Self {
        Self { files, unchanged: files, ..Self::default() }
    }
}
