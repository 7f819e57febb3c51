//! The messages between the requesting process and the worker.

use schemas::tool::query::QueryFormat;
use serde::{Deserialize, Serialize};

use super::error::Fault;
use super::query::{SqlQuery, SqlSummary};
use super::views::ViewDefinition;

/// The request to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerRequest {
    pub(super) sql: String,
    pub(super) views: Vec<ViewDefinition>,
    /// The only files that the worker may read.
    pub(super) files: Vec<String>,
    /// Length of the rows of sessions, which follow the request as an Arrow stream; 0 if the query names
    /// none.
    pub(super) session_bytes: usize,
    pub(super) output: OutputRequest,
}

/// How rows are written, and how many.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct OutputRequest {
    /// `None` for the data of a tool's answer.
    pub(super) format: Option<QueryFormat>,
    pub(super) max_rows: usize,
    pub(super) max_bytes: u64,
}

impl OutputRequest {
    pub(super) fn of_query(query: &SqlQuery<'_>) -> Self {
        Self { format: query.format, max_rows: query.max_rows, max_bytes: query.max_bytes }
    }
}

/// The final report of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum WorkerReport {
    Done(SqlSummary),
    Failed(Fault),
}
