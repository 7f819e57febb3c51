//! Decides under which id a session is published, and whether another machine publishes it already.
//!
//! Machines may have different logs under one id, and of one log they may have histories that parted.
//! The first to publish has the usual id. The id of another one follows from what is special about
//! it: its log, or its first event that the other history does not have. So it stays the same while
//! the log grows.

use schemas::ToolError;

use super::work::Push;
use crate::lake::fetch::{KnownParts, fetch_session};
use crate::lake::listing::ListedSession;
use crate::lake::pull_report::PullContent;
use crate::lake::selection::{OwnSession, other_lake_id};
use store::EventHistory;
use tools::error::store_error;

/// Most ids that are tried for a session.
const MAX_IDS: usize = 8;

/// How a session of this machine is in the lake.
pub(super) enum Placement {
    /// This machine publishes it under an id.
    Own { lake_id: String },
    /// Another machine publishes its log under an id.
    HeldBy { lake_id: String, machine: String },
}

/// What another machine publishes under the id of a session.
enum RivalLog {
    /// Another log.
    Other,
    /// The log of the session, with at least its events.
    Longer,
    /// The beginning of the log, or something that cannot be read.
    Shorter,
    /// A history that parted from that of this machine before this event.
    Parted { event: u64 },
}

impl Push<'_> {
    /// Finds the id under which the session at a position is published.
    pub(super) fn find_placement(&mut self, at: usize) -> Result<Placement, ToolError> {
        let session = &self.own[at];
        let mut lake_id = self.lake_ids[at].clone();
        let mut history = None;
        for _ in 0..MAX_IDS {
            let mut next = None;
            for (machine, listed) in self.publisher.find_rivals(session.row.provider, &lake_id)? {
                match self.compare(session, &lake_id, &listed, &mut history)? {
                    RivalLog::Longer => return Ok(Placement::HeldBy { lake_id, machine }),
                    RivalLog::Shorter => {}
                    RivalLog::Other => next = Some(id_of_other_log(session)),
                    RivalLog::Parted { event } => next = Some(id_of_fork(session, event)),
                }
            }
            match next {
                Some(next) if next != lake_id => lake_id = next,
                // Readers tell logs apart that have one id.
                Some(_) | None => break,
            }
        }
        Ok(Placement::Own { lake_id })
    }

    /// Compares a session with what another machine lists under an id. `history` is that of the
    /// session, once it was read.
    fn compare(
        &self,
        session: &OwnSession<'_>,
        lake_id: &str,
        listed: &ListedSession,
        history: &mut Option<EventHistory>,
    ) -> Result<RivalLog, ToolError> {
        if listed.log != session.identity {
            return Ok(RivalLog::Other);
        }
        if listed.is_as_long_as(&self.snapshot.sessions()[session.at]) {
            return Ok(RivalLog::Longer);
        }
        let known = KnownParts::default();
        let fetched = fetch_session(self.place, lake_id, listed, PullContent::Whole, &known)?;
        let Ok(fetched) = fetched else { return Ok(RivalLog::Shorter) };
        let theirs = EventHistory::of_events(&fetched.events);
        if history.is_none() {
            *history =
                Some(EventHistory::of_session(self.snapshot, session.at).map_err(store_error)?);
        }
        let Some(own) = history else { return Ok(RivalLog::Shorter) };
        Ok(if theirs.contains(own) {
            RivalLog::Longer
        } else if own.contains(&theirs) {
            RivalLog::Shorter
        } else {
            let event = own.event_at(own.count_common(&theirs, true)).unwrap_or_default();
            RivalLog::Parted { event }
        })
    }

    /// Returns whether the session at a position is published as a fork of the one with its usual id.
    pub(super) fn is_fork(&self, at: usize) -> bool {
        let session = &self.own[at];
        let lake_id = &self.lake_ids[at];
        *lake_id != session.lake_id && *lake_id != id_of_other_log(session)
    }
}

/// Returns the id of a session whose usual one another log has.
fn id_of_other_log(session: &OwnSession<'_>) -> String {
    other_lake_id(&session.lake_id, &session.identity)
}

/// Returns the id of a session that parted from the one with its usual id before an event.
fn id_of_fork(session: &OwnSession<'_>, event: u64) -> String {
    other_lake_id(&session.lake_id, &format!("{} {event:016x}", session.identity))
}
