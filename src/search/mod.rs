//! Finds events by their text: parses queries, then scans the live rows of a snapshot newest
//! first or ranks them.
//!
//! Depends on the store and does not know tools, MCP or the command line.

mod error;
mod estimate;
mod indexed_rows;
mod lex;
mod literals;
mod matcher;
mod multi;
mod pattern;
pub mod query;
mod rank;
mod request;
mod row_filter;
mod scan;
mod score;
pub mod snippet;
mod weigh;
mod weight_tables;
mod word_presence;

pub use error::{QueryError, QueryErrorKind, SearchError};
pub use query::{Query, is_qualifier};
pub use rank::{Ranked, RankedFound, can_rank, ranked};
pub use request::{Found, Hit, Position, Request, Work};
pub use scan::search;
