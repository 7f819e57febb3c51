//! Errors of SQL queries.

use std::fmt;
use std::io;
use std::time::Duration;

use schemas::limits;
use schemas::view::VIEWS;
use serde::{Deserialize, Serialize};

use store::StoreError;

/// The reason why a query ended without its rows.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The query process reported a fault.
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("sql: it is longer than {} bytes. Shorten it", limits::SQL_BYTES)]
    TooLong,
    #[error(
        "The query was stopped after {:.0} s. Narrow it with WHERE (session_id, timestamp), or aggregate less",
        .0.as_secs_f64()
    )]
    OutOfTime(Duration),
    #[error("Other queries are still running, and queries run one at a time. Try again")]
    Busy,
    #[error("The query was cancelled")]
    Cancelled,
    #[error(
        "The query process was killed by signal {0}, by a user or because the system ran out of \
        memory. Nothing was changed. Run the query again"
    )]
    Killed(i32),
    /// The process ended without a report, as this message says.
    #[error("{0}")]
    Ended(String),
    #[error("The query process could not be started: {0}")]
    NotStarted(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The destination of the rows is gone.
    #[error("The rows could not be written: {0}")]
    Output(io::Error),
}

/// A fault that the process of a query reports to the process that started it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Fault {
    #[error("{0}")]
    Mistake(Mistake),
    #[error("{}", refusal_message(.reason))]
    NotAllowed {
        reason: String,
        /// The name in the query that is not allowed.
        name: Option<String>,
    },
    #[error(
        "The query needs more than {} MB of memory. Narrow it with WHERE, select fewer columns, or aggregate before joining and sorting",
        limits::SQL_MEMORY_MB
    )]
    OutOfMemory,
    #[error(
        "The rows take more than {} MB. Select fewer columns, or fewer rows with WHERE or --max-rows",
        limits::SQL_OUTPUT_BYTES >> 20
    )]
    OutputTooLarge,
    #[error(
        "The query has {0} columns; at most {most} are allowed. Select only those you need",
        most = limits::SQL_COLUMNS_MAX
    )]
    TooManyColumns(usize),
    /// DuckDB could not read the store.
    #[error(
        "{0}\nRun `sessions ingest --verify`: it sets damaged parts aside and reads the logs again"
    )]
    Engine(String),
    #[error("The rows could not be written: {0}")]
    Unwritten(String),
}

/// A mistake in the text of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    pub message: String,
    /// 1-based line and column.
    pub place: Option<(usize, usize)>,
    /// The unknown column, if the mistake is one.
    pub name: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Fault {
    /// Creates a mistake without a place in the query.
    pub(super) fn mistake(message: impl Into<String>) -> Self {
        Self::Mistake(Mistake { message: message.into(), ..Mistake::default() })
    }
}

/// Returns the message for a refused query: the reason and the allowed queries.
fn refusal_message(reason: &str) -> String {
    let views: Vec<_> = VIEWS.iter().map(|view| view.name).collect();
    let full_stop = if reason.ends_with('?') { "" } else { "." };
    format!("{reason}{full_stop} One SELECT over the views is allowed: {}", views.join(", "))
}
