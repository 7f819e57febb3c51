//! SQL over a snapshot: DuckDB in memory, with views over the live segments. Only this module names
//! duckdb.
//!
//! A query runs in a separate process (`worker`), which is this program with a hidden command.
//! DuckDB can be made to use more memory than it counts and to run steps that nothing interrupts. A
//! process can be limited in its memory and ended at any time. The requesting process (`sandbox`)
//! does not open DuckDB: it sends the definitions of the views, waits, and ends a query that takes
//! too long.

mod cells;
mod error;
mod guard;
mod hint;
mod output;
mod plan;
mod sandbox;
mod views;
mod worker;

use std::time::Duration;

use schemas::tool::query::QueryFormat;
use serde::{Deserialize, Serialize};

pub use error::{Fault, Mistake, SqlError};
pub use sandbox::Sandbox;
pub use views::schema_text;
pub use worker::serve;

use self::views::Definition;

/// A query and the limits of its answer.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub sql: &'a str,
    /// `None` selects the data of a tool's answer, truncated to fit.
    pub format: Option<QueryFormat>,
    pub max_rows: usize,
    pub max_bytes: u64,
    /// Maximum run time.
    pub time: Duration,
}

/// The outcome of a query.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Rows written.
    pub rows: usize,
    /// The limit that ended the rows; `None` if all rows were written.
    pub cut: Option<Cut>,
    /// Number of truncated cells: only their beginning was written.
    pub cells_cut: usize,
}

/// The limit that ended the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    Rows,
    Bytes,
}

/// The request to a worker.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    sql: String,
    views: Vec<Definition>,
    /// The only files that the worker may read.
    files: Vec<String>,
    format: Option<QueryFormat>,
    max_rows: usize,
    max_bytes: u64,
}

/// The final report of a worker.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    Done(Summary),
    Failed(Fault),
}
