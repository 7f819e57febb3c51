//! A query, and its outcome.

use std::time::Duration;

use schemas::tool::query::QueryFormat;
use serde::{Deserialize, Serialize};

/// A query and the limits of its answer.
#[derive(Debug, Clone, Copy)]
pub struct SqlQuery<'a> {
    pub sql: &'a str,
    /// `None` selects the data of a tool's answer, truncated to fit.
    pub format: Option<QueryFormat>,
    pub max_rows: usize,
    pub max_bytes: u64,
    /// Maximum run time.
    pub max_time: Duration,
    /// The sessions whose rows the views have; `None` is all of them.
    pub sessions: Option<&'a [String]>,
}

/// The outcome of a query.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SqlSummary {
    /// Rows written.
    pub rows: usize,
    /// The limit that ended the rows; `None` if all rows were written.
    pub cut: Option<SqlLimit>,
    /// Number of truncated cells: only their beginning was written.
    pub cells_cut: usize,
}

/// The limit that ended the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SqlLimit {
    Rows,
    Bytes,
}
