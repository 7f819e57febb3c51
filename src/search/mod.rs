//! Finds events by their text: parses queries, then scans the live rows of a snapshot newest
//! first or ranks them.
//!
//! Depends on the store and does not know tools, MCP or the command line.

mod error;
mod estimate;
mod gate;
mod known;
mod lex;
mod literals;
mod matcher;
mod multi;
mod page;
mod pattern;
mod presence;
pub mod query;
mod rank;
mod scan;
mod score;
pub mod snippet;
mod sums;
mod weigh;

pub use error::{QueryError, QueryErrorKind, SearchError};
pub use page::{Found, Hit, Position, Request, Work};
pub use query::{Query, is_qualifier};
pub use rank::{Ranked, RankedFound, can_rank, ranked};
pub use scan::search;
