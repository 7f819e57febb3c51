//! SQL over a snapshot: DuckDB in memory, with views over the live segments. Only this crate names
//! duckdb.
//!
//! A query runs in a separate process (`worker`), which is this program with a hidden command.
//! DuckDB can be made to use more memory than it counts and to run steps that nothing interrupts. A
//! process can be limited in its memory and ended at any time. The requesting process (`sandbox`)
//! does not open DuckDB: it sends the definitions of the views, waits, and ends a query that takes
//! too long.

mod answer;
mod cells;
mod error;
mod guard;
mod hint;
mod output;
mod plan;
mod protocol;
mod query;
mod sandbox;
mod views;
mod worker;

pub use answer::encode_rows;
pub use error::{Fault, Mistake, SqlError};
pub use query::{SqlLimit, SqlQuery, SqlSummary};
pub use sandbox::Sandbox;
pub use views::schema_text;
pub use worker::serve_request;
