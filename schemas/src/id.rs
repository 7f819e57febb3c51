//! Identifiers of events: an `event_id` is `<session_id>:<event_index>`.
//!
//! ```rust
//! use schemas::{ErrorCode, EventId};
//!
//! let id: EventId = "fb3cff44:12".parse()?;
//! assert_eq!(id.session, "fb3cff44");
//! assert_eq!(id.index, 12);
//! assert_eq!(EventId::format("fb3cff44", 12), "fb3cff44:12");
//!
//! let error = "fb3cff44".parse::<EventId>().unwrap_err();
//! assert_eq!(error.code, ErrorCode::InvalidEventId);
//! # Ok::<(), schemas::ToolError>(())
//! ```

use crate::error::{ErrorCode, ToolError};

/// A parsed `event_id`; the session part may be any unique prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventId {
    /// The session's id or a prefix of it.
    pub session: String,
    /// 0-based position in the session.
    pub index: u32,
}

impl EventId {
    /// Returns the id of event `index` of `session`.
    pub fn format(session: &str, index: u32) -> String {
        format!("{session}:{index}")
    }
}

impl std::str::FromStr for EventId {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        let (session, index) =
            text.trim().rsplit_once(':').ok_or_else(|| invalid_event_id(text))?;
        let index = index.parse().map_err(|_| invalid_event_id(text))?;
        if session.is_empty() {
            return Err(invalid_event_id(text));
        }
        Ok(Self { session: session.to_owned(), index })
    }
}

/// Returns the error of a text that is not an event id.
fn invalid_event_id(text: &str) -> ToolError {
    let message = format!(
        "'{text}' is not an event id. Give '<session_id>:<event_index>', as in 'fb3cff44:12'; a search returns such ids"
    );
    ToolError::new(ErrorCode::InvalidEventId, message).with_detail("event_id", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let id: EventId = EventId::format("agent-a1b2", 42).parse().expect("valid");
        assert_eq!(id, EventId { session: "agent-a1b2".into(), index: 42 });
    }

    #[test]
    fn refuses_other_forms() {
        for text in ["", "abc", ":3", "abc:", "abc:-1", "abc:1x"] {
            let error = text.parse::<EventId>().expect_err(text);
            assert_eq!(error.code, ErrorCode::InvalidEventId);
        }
    }
}
