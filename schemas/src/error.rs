//! Errors as the tools answer them: one code, a message a reader can act on, details.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::event::closed_enum;
use crate::nearest;

closed_enum! {
    /// The closed set of codes that an error can have.
    ErrorCode {
        InvalidArgument = "invalid_argument",
        InvalidQuery = "invalid_query",
        InvalidCursor = "invalid_cursor",
        InvalidSessionId = "invalid_session_id",
        InvalidEventId = "invalid_event_id",
        InvalidDetailLevel = "invalid_detail_level",
        AmbiguousSessionPrefix = "ambiguous_session_prefix",
        SessionNotFound = "session_not_found",
        EventNotFound = "event_not_found",
        SqlError = "sql_error",
        SqlNotAllowed = "sql_not_allowed",
        SearchTimeout = "search_timeout",
        Cancelled = "cancelled",
        RateLimitExceeded = "rate_limit_exceeded",
        IndexEmpty = "index_empty",
        StoreBusy = "store_busy",
        StoreUnavailable = "store_unavailable",
        StoreDamaged = "store_damaged",
        InternalError = "internal_error",
    }
}

impl ErrorCode {
    /// Whether the same call may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::SearchTimeout | Self::Cancelled | Self::RateLimitExceeded | Self::StoreBusy
        )
    }

    /// The exit code of the command line: 1 nothing found, 2 wrong usage, 3 data or store trouble.
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

/// What a tool answers when it cannot answer.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub code: ErrorCode,
    /// What is wrong, where, and what to do next.
    pub message: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    pub retryable: bool,
}

impl ToolError {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = cut(message.into(), MESSAGE_CHARS);
        Self { code, message, details: Map::new(), retryable: code.retryable() }
    }

    /// Adds one detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), cut_value(value.into()));
        self
    }

    /// Adds the file or folder that the error is about.
    #[must_use]
    pub fn with_path(self, path: &Path) -> Self {
        self.with("path", path.to_string_lossy().into_owned())
    }

    /// Adds the known word that was probably meant.
    #[must_use]
    pub fn meant(mut self, word: Option<&str>) -> Self {
        let Some(word) = word else { return self };
        self.message = format!("{}. Did you mean '{word}'?", self.message.trim_end_matches('.'));
        self.with("did_you_mean", word)
    }

    /// A value that is none of the valid ones: names the field, the value and the valid values.
    pub fn invalid_value(field: &str, value: &str, valid: &[&str]) -> Self {
        // What is like a number is another number or a range, and nothing anybody meant.
        let is_word = !value.starts_with(|c: char| c.is_ascii_digit());
        let meant = nearest(value, valid.iter().copied()).filter(|_| is_word);
        let value = &cut(value.to_owned(), VALUE_CHARS);
        // A command line names the option itself.
        let place = if field.is_empty() { String::new() } else { format!("{field}: ") };
        Self::new(
            ErrorCode::InvalidArgument,
            format!("{place}'{value}' is not valid. Valid: {}", valid.join(", ")),
        )
        .with("field", field)
        .with("value", value.as_str())
        .with("valid", valid)
        .meant(meant)
    }
}

/// What a message and an echoed value may take: answers have a size, errors too.
const MESSAGE_CHARS: usize = 1500;
const VALUE_CHARS: usize = 120;
const ECHOED_ITEMS: usize = 20;

fn cut(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn cut_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text, VALUE_CHARS)),
        Value::Array(items) => items.into_iter().take(ECHOED_ITEMS).map(cut_value).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_whatever_it_echoes() {
        let huge = "x".repeat(1_000_000);
        let error =
            ToolError::invalid_value("since", &huge, &["7d"]).with("list", vec![huge.clone(); 100]);
        let size = |error: &ToolError| serde_json::to_string(error).expect("serialises").len();
        assert!(size(&error) < 10_000, "{}", size(&error));
        assert!(size(&ToolError::new(ErrorCode::InvalidQuery, huge)) < 10_000);
        assert!(error.message.contains("7d"));
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
