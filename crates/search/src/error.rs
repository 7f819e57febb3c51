//! Errors of running a search.

use store::StoreError;

/// The reason why a search ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The caller no longer waits for the search.
    #[error("the search was cancelled")]
    Cancelled,
    /// The time of the request was over before there was an answer.
    #[error("the search timed out")]
    TimedOut,
    #[error(transparent)]
    Store(#[from] StoreError),
}
