//! SQL over a snapshot: DuckDB in memory, views over the live segments. Only this module names
//! duckdb.
//!
//! A query runs in a process of its own (`worker`), this program with a hidden command: DuckDB
//! can be asked for more memory than it counts and for steps that nothing interrupts, and a
//! process can be held to its memory and ended whatever it does. The process asking (`sandbox`)
//! opens no DuckDB: it hands over the definitions of the views, waits, and ends what takes too long.

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

/// A query and what its answer may take.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub sql: &'a str,
    /// `None` for the data of an answer, cut to fit.
    pub format: Option<QueryFormat>,
    pub max_rows: usize,
    pub max_bytes: u64,
    /// How long it may take.
    pub time: Duration,
}

/// How a query went.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Rows written.
    pub rows: usize,
    /// Why there are not more.
    pub cut: Option<Cut>,
    /// Cells of which only the beginning was written.
    pub cells_cut: usize,
}

/// Which cap ended the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    Rows,
    Bytes,
}

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    sql: String,
    views: Vec<Definition>,
    /// The only files that it may read.
    files: Vec<String>,
    format: Option<QueryFormat>,
    max_rows: usize,
    max_bytes: u64,
}

/// What a worker says at its end.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    Done(Summary),
    Failed(Fault),
}
