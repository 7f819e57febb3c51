//! Counts sessions by class, and describes those that an answer covers.

use base::numbers::count_of;
use store::{SessionSummary, Snapshot, StoredSession};

/// How many sessions of each class pass the filters. Every session is in exactly one class, so the
/// classes add up to `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCensus {
    /// All sessions: those that `ingest` reports and SQL has.
    pub total: usize,
    /// Conversations that are not part of another one.
    pub conversations: usize,
    /// Conversations of subagents, which count as a part of the session that started them.
    pub subagents: usize,
    /// Sessions in which every event is copied from another session.
    pub copies: usize,
    /// Sessions without a prompt, an answer or a call, such as aborted starts.
    pub empty: usize,
}

/// The sessions that an answer covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All sessions.
    All,
    /// Conversations without those of subagents.
    OwnConversations,
    /// Conversations.
    Conversations,
    /// Sessions with events of their own.
    OwnEvents,
}

impl SessionCensus {
    /// Counts the sessions at the positions `matching`; `None` means all.
    pub(super) fn of(snapshot: &Snapshot, matching: Option<&[usize]>) -> Self {
        let mut census = Self::default();
        for session in sessions_at(snapshot, matching) {
            census.add(snapshot, session);
        }
        census
    }

    fn add(&mut self, snapshot: &Snapshot, session: &SessionSummary) {
        self.total += 1;
        if !session.is_conversation {
            let has_own_events = session.events > session.replay_events;
            self.empty += usize::from(has_own_events);
            self.copies += usize::from(!has_own_events);
        } else if is_part_of_conversation(snapshot, session) {
            self.subagents += 1;
        } else {
            self.conversations += 1;
        }
    }

    /// Describes the covered sessions; `filters` follows the number of sessions.
    pub(super) fn describe(&self, filters: &str, coverage: Coverage) -> String {
        let left_out = match coverage {
            Coverage::All => [0, 0, 0],
            Coverage::OwnConversations => [self.subagents, self.copies, self.empty],
            Coverage::Conversations => [0, self.copies, self.empty],
            Coverage::OwnEvents => [0, self.copies, 0],
        };
        let covered = self.total - left_out.iter().sum::<usize>();
        if covered == self.total {
            return format!("{}{filters}", count_of(self.total, "session"));
        }
        let reasons =
            left_out.iter().zip(["of subagents", "copied from others", "without a conversation"]);
        let reasons: Vec<_> = reasons
            .filter(|(count, _)| **count > 0)
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        let total = count_of(self.total, "session");
        format!("{covered} of {total}{filters}; left out: {}", reasons.join(", "))
    }

    /// Describes all classes: `12 sessions: 9 conversations, 3 of subagents`.
    pub fn describe_classes(&self) -> String {
        let classes = [
            (self.conversations, "conversations"),
            (self.subagents, "of subagents"),
            (self.copies, "copied from others"),
            (self.empty, "without a conversation"),
        ];
        let classes: Vec<_> = classes
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, class)| format!("{count} {class}"))
            .collect();
        classes.join(", ")
    }
}

/// Returns true if a session is a subagent's, and that of its parent has a conversation.
pub fn is_part_of_conversation(snapshot: &Snapshot, session: &SessionSummary) -> bool {
    let parent = session.parent_session_id.as_ref().filter(|_| session.is_subagent);
    let parent = parent.and_then(|parent| snapshot.session_position(parent));
    parent.is_some_and(|parent| snapshot.sessions()[parent].is_conversation)
}

/// Returns the sessions at the positions `matching`; `None` means all.
pub(super) fn sessions_at<'s>(
    snapshot: &'s Snapshot,
    matching: Option<&'s [usize]>,
) -> Box<dyn Iterator<Item = &'s StoredSession> + 's> {
    match matching {
        Some(matching) => Box::new(matching.iter().map(|at| &snapshot.sessions()[*at])),
        None => Box::new(snapshot.sessions().iter()),
    }
}
