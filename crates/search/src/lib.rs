//! Finds events by their text: parses queries, then scans the live rows of a snapshot in the
//! order of time or ranks them.
//!
//! Depends on the store and does not know tools, MCP or the command line.

mod absent;
mod by_bound;
mod error;
mod index_filter;
mod indexed_rows;
mod matcher;
mod needle;
pub mod query;
mod rank;
mod request;
mod row_filter;
mod scan;
mod segment_filter;
mod segment_queue;
mod session_selection;
mod sessions;
mod snippet;
mod unmatched;

pub use absent::{AbsentWord, KnownAbsence, find_absent_words};
pub use error::SearchError;
pub use index_filter::IndexFilter;
pub use query::{
    Clause, FieldFilter, FilterField, Query, QueryError, QueryErrorKind, QueryPattern, is_qualifier,
};
pub use rank::{RankedPage, RankedPosition, can_rank, search_ranked};
pub use request::{COUNTED_ROWS, ResultPosition, SearchHit, SearchPage, SearchRequest, SearchWork};
pub use scan::{read_row_texts, search};
pub use session_selection::matching_sessions;
pub use sessions::{
    FoundPassage, FoundSession, NamedParts, SessionQuestion, SessionRank, SessionRequest,
    SessionResults, search_sessions,
};
pub use snippet::{Snippet, cut_snippet};
pub use unmatched::{UnmatchedFilter, find_unmatched_filters};
