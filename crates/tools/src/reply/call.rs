//! Describes one call of a tool: when it began, how long it may take, and the view that it answers
//! from.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use schemas::envelope::Warning;
use schemas::{ErrorCode, Timestamp, ToolError, Zone, limits};

use super::history::{CallView, Examined};
use store::Snapshot;

/// The inputs of a call besides its arguments. Create one for each call: the first access to the
/// store takes the snapshot, and the whole call answers from it.
pub struct Call<'a> {
    pub now: Timestamp,
    /// The zone of days, weeks, months, hours and dates.
    pub zone: Zone,
    started: Instant,
    /// Polled from time to time; true ends the call.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// The maximum duration of a search, which then returns what it found so far.
    search_time: Duration,
    /// The time at which every call ends, whatever it does; `None` without a limit.
    deadline: Option<Instant>,
    /// The maximum duration of a query, which is then ended.
    query_time: Duration,
    /// Most events of the sessions that an analysis of several compares.
    pub analyzed_events: u64,
    view: OnceLock<CallView>,
    /// The view after files of the first one were removed; see [`Self::renew_view`].
    renewed_view: OnceLock<CallView>,
    /// True while a part of the call runs that is run again if files are removed.
    is_guarded: AtomicBool,
}

impl<'a> Call<'a> {
    /// Creates a call with the usual limits.
    pub fn new(now: Timestamp, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            now,
            zone: Zone::UTC,
            started: Instant::now(),
            stop,
            search_time: Duration::from_secs(limits::SEARCH_SECONDS),
            deadline: None,
            query_time: Duration::from_secs(limits::SQL_SECONDS),
            analyzed_events: limits::ANALYZED_EVENTS,
            view: OnceLock::new(),
            renewed_view: OnceLock::new(),
            is_guarded: AtomicBool::new(false),
        }
    }

    /// Returns another call with the same settings, which takes a snapshot of its own.
    #[must_use]
    pub fn next(&self) -> Self {
        Self {
            zone: self.zone.clone(),
            view: OnceLock::new(),
            renewed_view: OnceLock::new(),
            is_guarded: AtomicBool::new(false),
            started: Instant::now(),
            ..*self
        }
    }

    /// Sets the zone of days, weeks, months, hours and dates, which is UTC otherwise.
    #[must_use]
    pub fn with_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    /// Returns the zone of days, weeks, months, hours and dates.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the time at which the call began.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the snapshot that the call answers from; `None` before the store is read.
    pub fn taken_snapshot(&self) -> Option<Arc<Snapshot>> {
        self.taken_view().map(|view| Arc::clone(&view.snapshot))
    }

    /// Returns the warnings about logs that the answer does not have yet.
    pub fn freshness_warnings(&self) -> Vec<Warning> {
        self.taken_view().map(|view| view.freshness.warnings()).unwrap_or_default()
    }

    /// Sets another maximum duration for a search.
    #[must_use]
    pub fn with_search_time(self, search_time: Duration) -> Self {
        Self { search_time, ..self }
    }

    /// Sets another maximum duration for a query.
    #[must_use]
    pub fn with_query_time(self, query_time: Duration) -> Self {
        Self { query_time, ..self }
    }

    /// Sets another number of events whose sessions an analysis compares.
    #[must_use]
    pub fn with_analyzed_events(self, analyzed_events: u64) -> Self {
        Self { analyzed_events, ..self }
    }

    /// Sets the time at which the call ends.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Returns what was examined for this call; `None` if the store has all events.
    pub fn examined(&self) -> Option<&Examined> {
        self.taken_view()?.examined.as_ref()
    }

    /// Returns the view that the call answers from. The first access gets it from `take`.
    pub fn view(
        &self,
        take: impl FnOnce() -> Result<CallView, ToolError>,
    ) -> Result<&CallView, ToolError> {
        match self.taken_view() {
            Some(view) => Ok(view),
            None => take().map(|view| self.view.get_or_init(|| view)),
        }
    }

    /// Returns the view that the call answers from; `None` before the first access.
    pub(super) fn taken_view(&self) -> Option<&CallView> {
        self.renewed_view.get().or_else(|| self.view.get())
    }

    /// Lets the rest of the call answer from another view. That is possible once.
    pub(super) fn renew_view(&self, view: CallView) -> bool {
        self.renewed_view.set(view).is_ok()
    }

    /// Begins a part of the call that is run again if files are removed. Returns false inside such a
    /// part: what fails there is run again with all of it.
    pub(super) fn begin_guard(&self) -> bool {
        !self.is_guarded.swap(true, Ordering::Relaxed)
    }

    /// Ends the part that [`Self::begin_guard`] began.
    pub(super) fn end_guard(&self) {
        self.is_guarded.store(false, Ordering::Relaxed);
    }

    /// Returns the time since the call began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns an error if the call was cancelled or took too long, which ends it.
    pub fn ensure_running(&self) -> Result<(), ToolError> {
        if (self.stop)() {
            return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let message = "The call took too long and was stopped. Narrow it with since, session_id or turns, ask for less with limit, or try again";
            return Err(ToolError::new(ErrorCode::SearchTimeout, message));
        }
        Ok(())
    }

    /// Returns the maximum duration of a query that begins now.
    pub fn remaining_query_time(&self) -> Duration {
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(self.query_time, |left| left.min(self.query_time))
    }

    /// Returns the time at which a search that begins now has to end.
    pub fn search_deadline(&self) -> Instant {
        let end = Instant::now() + self.search_time;
        self.deadline.map_or(end, |deadline| deadline.min(end))
    }
}
