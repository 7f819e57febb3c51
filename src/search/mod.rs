//! Finds events by their text: parses queries, scans the live rows of a snapshot, newest first.
//!
//! Knows the store and nothing of tools, MCP or the command line.

mod matcher;
pub mod query;
mod scan;
pub mod snippet;

pub use query::Query;
pub use scan::{Found, Hit, Position, Request, search};
