//! Limits how many sessions an analysis compares: the newest ones, up to a number of events. So it takes
//! the same time whatever is older.

use std::cmp::Reverse;
use std::collections::HashSet;

use schemas::Timestamp;
use schemas::envelope::{Severity, Warning, WarningCode};

use crate::reply::answer::{Reply, RowTotal};
use crate::reply::interface::Interface;
use store::Snapshot;

/// The newest of the sessions that a call selects.
pub(super) struct RecentSessions {
    /// Positions in `Snapshot::sessions`.
    pub(super) sessions: HashSet<usize>,
    /// Number of selected sessions that ended earlier and are left out.
    older: usize,
    /// When the first of `sessions` ended, in microseconds since the epoch; `None` if that is unknown.
    /// All events of those that are left out are before that time.
    first_end: Option<i64>,
}

impl RecentSessions {
    /// Selects those of the sessions at the positions `wanted` that were active last and have at most
    /// `max_events` events together, at least one of them, and all that ended at the same moment.
    ///
    /// Sessions that continue after `until` come with them, so that the `until` of the next call is
    /// earlier.
    pub(super) fn select(
        snapshot: &Snapshot,
        wanted: &HashSet<usize>,
        until: Option<Timestamp>,
        max_events: u64,
    ) -> Self {
        let mut newest_first: Vec<usize> = wanted.iter().copied().collect();
        let until = until.map(|until| until.0);
        let end_of = |at: usize| {
            let end = snapshot.sessions()[at].ended_at?;
            Some(until.map_or(end, |until| end.min(until)))
        };
        newest_first.sort_unstable_by_key(|at| (Reverse(end_of(*at)), *at));

        let mut events: u64 = 0;
        let mut count = 0;
        let mut first_end = None;
        for at in &newest_first {
            let of_session = u64::try_from(snapshot.sessions()[*at].events).unwrap_or(0);
            events = events.saturating_add(of_session);
            let end = end_of(*at);
            let is_before = until.is_none() || first_end < until;
            if events > max_events && count > 0 && end != first_end && is_before {
                break;
            }
            first_end = end;
            count += 1;
        }
        let older = newest_first.len() - count;
        newest_first.truncate(count);
        Self { sessions: newest_first.into_iter().collect(), older, first_end }
    }

    /// True if they are all that the call selects.
    pub(super) fn is_complete(&self) -> bool {
        self.older == 0
    }

    /// Says in a reply how many findings there are, given that of these sessions, and whether sessions
    /// are left out.
    pub(super) fn limit_reply<T>(
        &self,
        reply: &mut Reply<T>,
        findings: usize,
        interface: Interface,
    ) {
        let is_complete = self.is_complete();
        reply.total =
            Some(if is_complete { RowTotal::Exact(findings) } else { RowTotal::AtLeast(findings) });
        reply.warnings.extend(self.warning(interface));
    }

    /// Returns what the scope of an answer adds; empty if no session is left out.
    pub(super) fn describe(&self) -> String {
        if self.is_complete() {
            return String::new();
        }
        format!("; the newest {} of them were compared", self.sessions.len())
    }

    /// Returns the warning that sessions are left out, with how to reach them.
    fn warning(&self, interface: Interface) -> Option<Warning> {
        if self.is_complete() {
            return None;
        }
        let until = match self.first_end {
            Some(end) => {
                let until = interface.argument_names(&["until"]);
                format!("Pass {until} {} for earlier ones, or narrow", Timestamp(end))
            }
            None => "Narrow".to_owned(),
        };
        let message = format!(
            "The newest {} of {} sessions were compared. {until} the sessions with {}",
            self.sessions.len(),
            self.sessions.len() + self.older,
            interface.argument_names(&["project", "provider", "since"]),
        );
        Some(Warning::new(WarningCode::ResultsTruncated, Severity::Warning, message))
    }
}
