//! Selects the sessions in which something may have happened after a session was written.

use std::collections::HashSet;

use crate::analyze::HistoryScope;
use store::{SessionOrigin, SessionSummary, Snapshot};

/// The sessions of a project that may have events after those of one of them.
pub(super) struct LaterSessions<'s> {
    /// The session that is recalled.
    pub(super) session: &'s SessionSummary,
    /// Positions of the others in `Snapshot::sessions`.
    pub(super) sessions: HashSet<usize>,
    /// Only events before this time count, in microseconds since the epoch.
    pub(super) until: i64,
}

impl<'s> LaterSessions<'s> {
    /// Finds the other sessions of the project of the session at a position, in `scope` if one is given.
    /// Sessions that ended before it began, and copies, have nothing that happened later.
    pub(super) fn find(
        snapshot: &'s Snapshot,
        position: usize,
        scope: Option<&HistoryScope>,
    ) -> Self {
        let session: &SessionSummary = &snapshot.sessions()[position];
        let mut sessions = HashSet::new();
        for (at, other) in snapshot.sessions().iter().enumerate() {
            let may_be_named = scope.is_none_or(|scope| scope.sessions.contains(&at));
            let is_later = other.ended_at > session.started_at && session.started_at.is_some();
            if at != position
                && is_later
                && may_be_named
                && is_same_project(&session.origin, &other.origin)
                && !is_copy(session, other)
            {
                sessions.insert(at);
            }
        }
        Self { session, sessions, until: scope.map_or(i64::MAX, |scope| scope.until) }
    }

    pub(super) fn as_scope(&self) -> HistoryScope {
        HistoryScope { sessions: self.sessions.clone(), until: self.until }
    }
}

/// Returns true if two sessions are certainly of the same project: of the same repository or, if one of
/// their logs names none, of the same folder of the same machine.
fn is_same_project(one: &SessionOrigin, other: &SessionOrigin) -> bool {
    if std::ptr::eq(one, other) {
        return one.repository.is_some() || one.cwd.is_some();
    }
    match (&one.repository, &other.repository) {
        (Some(one), Some(other)) => one == other,
        (Some(_) | None, None) | (None, Some(_)) => {
            one.cwd.is_some() && one.cwd == other.cwd && one.machine == other.machine
        }
    }
}

/// Returns true if a session repeats another one, or is an earlier version of one.
fn is_copy(session: &SessionSummary, other: &SessionSummary) -> bool {
    other.is_earlier_version
        || other.replay_events >= other.events
        || other.native_id() == session.native_id()
}
