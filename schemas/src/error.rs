//! The errors that tools return: a code, a message that the reader can act on, and details.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::named_enum::named_enum;
use crate::nearest::nearest;

named_enum! {
    /// The closed set of codes that an error can have.
    ErrorCode {
        /// An argument is missing, unknown, of the wrong type or out of bounds.
        InvalidArgument = "invalid_argument",
        /// The query cannot be parsed, or it is empty.
        InvalidQuery = "invalid_query",
        /// The cursor is damaged or belongs to other arguments.
        InvalidCursor = "invalid_cursor",
        /// The session id is too short, or it is not an id.
        InvalidSessionId = "invalid_session_id",
        /// The event id does not have the form `<session_id>:<event_index>`.
        InvalidEventId = "invalid_event_id",
        /// The detail level is not one of the four.
        InvalidDetailLevel = "invalid_detail_level",
        /// Several sessions begin with the prefix.
        AmbiguousSessionPrefix = "ambiguous_session_prefix",
        /// No session has the id or begins with it.
        SessionNotFound = "session_not_found",
        /// None of the event ids names an event.
        EventNotFound = "event_not_found",
        /// The SELECT failed.
        SqlError = "sql_error",
        /// The statement is not one read-only SELECT over the views.
        SqlNotAllowed = "sql_not_allowed",
        /// The search or the call took longer than its limit.
        SearchTimeout = "search_timeout",
        /// The caller cancelled the call.
        Cancelled = "cancelled",
        /// There were too many calls in the last minute.
        RateLimitExceeded = "rate_limit_exceeded",
        /// Nothing has been ingested yet.
        IndexEmpty = "index_empty",
        /// Another process is writing to the store.
        StoreBusy = "store_busy",
        /// The store cannot be read or written: there is no permission, the disk is full, or the
        /// folder holds something else or another version.
        StoreUnavailable = "store_unavailable",
        /// A file of the store is damaged or missing.
        StoreDamaged = "store_damaged",
        /// A bug in this program.
        InternalError = "internal_error",
    }
}

impl ErrorCode {
    /// Returns whether the same call may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::SearchTimeout | Self::Cancelled | Self::RateLimitExceeded | Self::StoreBusy
        )
    }

    /// Returns the exit code of the command line: 1 if nothing was found, 2 for wrong usage, 3 for
    /// problems with the data or the store.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::SessionNotFound | Self::EventNotFound | Self::IndexEmpty => 1,
            Self::InvalidArgument
            | Self::InvalidQuery
            | Self::InvalidCursor
            | Self::InvalidSessionId
            | Self::InvalidEventId
            | Self::InvalidDetailLevel
            | Self::AmbiguousSessionPrefix
            | Self::SqlError
            | Self::SqlNotAllowed => 2,
            Self::SearchTimeout
            | Self::Cancelled
            | Self::RateLimitExceeded
            | Self::StoreBusy
            | Self::StoreUnavailable
            | Self::StoreDamaged
            | Self::InternalError => 3,
        }
    }
}

/// The error of a tool that failed.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The kind of error, for programs.
    pub code: ErrorCode,
    /// What is wrong, where, and what to do next.
    pub message: String,
    /// Values that belong to the error, by name, such as `field` and `valid`. May be empty.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// True if the same call may succeed later.
    pub retryable: bool,
}

impl ToolError {
    /// Creates an error without details. A long message is cut; see [`shorten_message`].
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = shorten_message(message.into());
        Self { code, message, details: Map::new(), retryable: code.is_retryable() }
    }

    /// Adds one detail. A long value is cut.
    #[must_use]
    pub fn with_detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), truncate_value(value.into()));
        self
    }

    /// Adds the file or folder that the error is about.
    #[must_use]
    pub fn with_path(self, path: &Path) -> Self {
        self.with_detail("path", path.to_string_lossy().into_owned())
    }

    /// Adds the known word that was probably meant, if there is one. A long word is cut.
    #[must_use]
    pub fn with_suggestion(mut self, word: Option<&str>) -> Self {
        let Some(word) = word else { return self };
        let word = truncate_text(word.to_owned(), MAX_VALUE_CHARS);
        self.message = format!("{}. Did you mean '{word}'?", self.message.trim_end_matches('.'));
        self.with_detail("did_you_mean", word)
    }

    /// Creates the error for a value that is not valid. It names the field, the value and the valid
    /// values.
    pub fn invalid_value(field: &str, value: &str, valid: &[&str]) -> Self {
        // A value that begins like a number is another number or a range, not a mistyped word.
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        let meant = if is_number { None } else { nearest(value, valid.iter().copied()) };

        let value = &truncate_text(value.to_owned(), MAX_VALUE_CHARS);
        // A command line names the option itself.
        let place = if field.is_empty() { String::new() } else { format!("{field}: ") };
        Self::new(
            ErrorCode::InvalidArgument,
            format!("{place}'{value}' is not valid. Valid: {}", valid.join(", ")),
        )
        .with_detail("field", field)
        .with_detail("value", value.as_str())
        .with_detail("valid", valid)
        .with_suggestion(meant)
    }
}

/// Maximum number of characters of a message. Errors have a limited size, as answers have.
const MAX_MESSAGE_CHARS: usize = 1500;

/// Number of characters at the end of a long message that are kept: they say what to do.
const KEPT_END_CHARS: usize = 500;

/// Maximum number of characters of an echoed value. Session ids are shorter.
const MAX_VALUE_CHARS: usize = 160;

/// Maximum number of items of an echoed list.
const MAX_ECHOED_ITEMS: usize = 20;

/// Cuts a long message in its middle, where it repeats a given value.
pub fn shorten_message(message: String) -> String {
    let chars = message.chars().count();
    if chars <= MAX_MESSAGE_CHARS {
        return message;
    }
    let kept: String = message.chars().take(MAX_MESSAGE_CHARS - KEPT_END_CHARS).collect();
    let end: String = message.chars().skip(chars - KEPT_END_CHARS).collect();
    format!("{kept}… ({} characters left out) …{end}", chars - MAX_MESSAGE_CHARS)
}

/// Cuts a text after this number of characters.
fn truncate_text(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Cuts the texts and lists in a value.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn truncate_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(truncate_text(text, MAX_VALUE_CHARS)),
        Value::Array(items) => {
            items.into_iter().take(MAX_ECHOED_ITEMS).map(truncate_value).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_whatever_it_echoes() {
        let huge = "x".repeat(1_000_000);
        let error = ToolError::invalid_value("since", &huge, &["7d"])
            .with_detail("list", vec![huge.clone(); 100]);
        let size = |error: &ToolError| serde_json::to_string(error).expect("serialises").len();
        assert!(size(&error) < 10_000, "{}", size(&error));
        assert!(size(&ToolError::new(ErrorCode::InvalidQuery, huge.clone())) < 10_000);
        assert!(error.message.contains("7d"));

        let message = format!("No session starts with '{huge}'. `sessions list` shows the ids");
        let error =
            ToolError::new(ErrorCode::SessionNotFound, message).with_suggestion(Some(&huge));
        assert!(size(&error) < 10_000, "{}", size(&error));
        assert!(error.message.contains("998556 characters left out"), "{}", error.message);
        assert!(error.message.contains("shows the ids. Did you mean 'xxx"), "{}", error.message);
    }

    #[test]
    fn a_validation_error_names_field_value_and_valid_values() {
        let error = ToolError::invalid_value("limit", "0", &["1-50"]);
        assert_eq!(error.code.exit_code(), 2);
        let json = serde_json::to_value(&error).expect("serialises");
        assert_eq!(json["code"], "invalid_argument");
        assert_eq!(json["details"]["field"], "limit");
        assert_eq!(json["details"]["valid"][0], "1-50");
        assert_eq!(json["retryable"], false);
        let number = ToolError::invalid_value("max_rows", "100000", &["1-1000"]);
        assert_eq!(number.details.get("did_you_mean"), None);
    }
}
