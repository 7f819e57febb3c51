//! Defines the types of events, and the relations between sessions.

use crate::closed_enum::closed_enum;

closed_enum! {
    /// The type of an event.
    EventType {
        /// What the user typed.
        User = "user",
        /// The assistant's text.
        Message = "message",
        /// The assistant's reasoning, if the log shows it.
        Reasoning = "reasoning",
        /// A call of a tool.
        ToolCall = "tool_call",
        /// What the tool answered.
        ToolResult = "tool_result",
        /// Token counts of one API request.
        TokenUsage = "token_usage",
        /// System records, hooks, compaction boundaries, summaries, mode changes, and every
        /// record of an unknown kind; `subtype` says which.
        Notification = "notification",
    }
}

impl EventType {
    /// True for what is said: prompts and answers.
    pub const fn is_talk(self) -> bool {
        matches!(self, Self::User | Self::Message)
    }
}

/// The type of an event whose column was not read.
impl Default for EventType {
    fn default() -> Self {
        Self::Notification
    }
}

/// Text of an event whose record was copied from a session that the user forgot. Only the type, the
/// time and the place of such an event are kept. It is neither indexed nor searched.
pub const FORGOTTEN_TEXT: &str = "[forgotten]";

closed_enum! {
    /// Where the times of a session come from.
    TimeSource {
        /// The records of its log.
        Record = "record",
        /// The last change of its file, because no record has a time.
        File = "file",
    }
}

closed_enum! {
    /// How a session is related to its parent session.
    Relation {
        /// The session is the log of a subagent that the parent started.
        SubagentOf = "subagent_of",
        /// The session branched off from the parent, and usually begins with a copy of its history.
        ForkedFrom = "forked_from",
        /// The session resumes the parent in a file of its own.
        ResumedFrom = "resumed_from",
        /// The session continues the work of the parent, as after a handoff.
        ContinuedFrom = "continued_from",
        /// The session is the log of a review that the parent requested.
        ReviewOf = "review_of",
        /// The session is what the log of the parent held before it was cut or begun again.
        EarlierVersionOf = "earlier_version_of",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_names_list_the_valid_ones() {
        for kind in EventType::ALL {
            assert_eq!(kind.as_str().parse::<EventType>().ok(), Some(*kind));
        }
        let error = "tool".parse::<EventType>().expect_err("no such type");
        assert!(error.to_string().contains("tool_call"), "{error}");
    }
}
