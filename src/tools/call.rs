//! One call of a tool: when it is made, how long it may take, and what it answers from.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use schemas::{ErrorCode, Timestamp, ToolError, limits};

use super::fresh::Freshness;
use crate::store::Snapshot;

/// What a call is given beside its arguments. Make one for each call: who looks at the store first
/// takes the snapshot, and everything answers from that.
pub struct Call<'a> {
    pub(crate) now: Timestamp,
    begun: Instant,
    /// Asked now and then; true ends the call.
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
    /// How long a search may take; then it answers what it found so far.
    search_time: Duration,
    /// When the call ends, whatever it does.
    deadline: Option<Instant>,
    /// How long a query may take; then it is ended.
    query_time: Duration,
    view: OnceLock<View>,
}

/// What a call answers from.
pub(super) struct View {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) freshness: Freshness,
}

impl<'a> Call<'a> {
    /// A call with the usual limits.
    pub fn new(now: Timestamp, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            now,
            begun: Instant::now(),
            stop,
            search_time: Duration::from_secs(limits::SEARCH_SECONDS),
            deadline: None,
            query_time: Duration::from_secs(limits::SQL_SECONDS),
            view: OnceLock::new(),
        }
    }

    /// With another time for a search.
    #[must_use]
    pub fn with_search_time(self, search_time: Duration) -> Self {
        Self { search_time, ..self }
    }

    /// With another time for a query.
    #[must_use]
    pub fn with_query_time(self, query_time: Duration) -> Self {
        Self { query_time, ..self }
    }

    /// With a time at which it ends.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// What the call answers from: what `take` gives when it is asked first.
    pub(super) fn view(
        &self,
        take: impl FnOnce() -> Result<View, ToolError>,
    ) -> Result<&View, ToolError> {
        match self.view.get() {
            Some(view) => Ok(view),
            None => take().map(|view| self.view.get_or_init(|| view)),
        }
    }

    /// How long it takes so far.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Ends a call that nobody waits for any more, or that took too long.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if (self.stop)() {
            return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let message = "The call took too long and was stopped. Narrow it with since, session_id or turns, ask for less with limit, or try again";
            return Err(ToolError::new(ErrorCode::SearchTimeout, message));
        }
        Ok(())
    }

    /// How long a query that begins now may take.
    pub(crate) fn query_left(&self) -> Duration {
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(self.query_time, |left| left.min(self.query_time))
    }

    /// When a search that begins now has to end.
    pub(super) fn search_end(&self) -> Instant {
        let end = Instant::now() + self.search_time;
        self.deadline.map_or(end, |deadline| deadline.min(end))
    }
}
