//! The meaning of each error code and what to do about it, for help and documentation.

use crate::error::ErrorCode;

impl ErrorCode {
    /// Returns what happened, as a sentence without a full stop.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::InvalidArgument => {
                "An argument is missing, unknown, of the wrong type or out of bounds"
            }
            Self::InvalidQuery => "The query cannot be understood, or is empty",
            Self::InvalidCursor => "The cursor is damaged or belongs to other arguments",
            Self::InvalidSessionId => "The session id is too short, or it is not an id",
            Self::InvalidEventId => "The event id is not of the form <session_id>:<event_index>",
            Self::InvalidDetailLevel => "The detail level is not one of the four",
            Self::AmbiguousSessionPrefix => "Several sessions begin with this prefix",
            Self::SessionNotFound => "No session has this id or begins with it",
            Self::EventNotFound => "None of the event ids names an event",
            Self::SqlError => "The SELECT failed",
            Self::SqlNotAllowed => "The statement is not one read-only SELECT over the views",
            Self::SearchTimeout => "The search took longer than its limit",
            Self::Cancelled => "The caller cancelled the call",
            Self::RateLimitExceeded => "Too many calls in the last minute",
            Self::IndexEmpty => "Nothing has been ingested yet",
            Self::StoreBusy => "Another process is writing to the store",
            Self::StoreUnavailable => {
                "The store cannot be read or written: no permission, a full disk, a folder that is \
                not a store, or another version"
            }
            Self::StoreDamaged => "A file of the store is damaged or missing",
            Self::InternalError => "A bug in this program",
        }
    }

    /// Returns what to do next, as a sentence without a full stop.
    pub const fn resolution(self) -> &'static str {
        match self {
            Self::InvalidArgument | Self::InvalidDetailLevel => {
                "Correct the field that details.field names to one of details.valid"
            }
            Self::InvalidQuery => "Close quotes and slashes; give at least one word",
            Self::InvalidCursor => {
                "Pass next_cursor unchanged with the same other arguments, or leave it out"
            }
            Self::InvalidSessionId | Self::SessionNotFound => {
                "Take an id from list_sessions or search_events"
            }
            Self::InvalidEventId | Self::EventNotFound => {
                "Take event ids from search_events or get_session_details"
            }
            Self::AmbiguousSessionPrefix => {
                "Give more characters; details.matches lists candidates"
            }
            Self::SqlError => {
                "Correct the SQL as the message says; sessions://schema has views and columns"
            }
            Self::SqlNotAllowed => "Rewrite it as exactly one SELECT over the documented views",
            Self::SearchTimeout => "Narrow the search by time, project or session",
            Self::Cancelled => "Call again if the answer is needed after all",
            Self::RateLimitExceeded => "Wait for details.retry_after_ms milliseconds",
            Self::IndexEmpty => "Run `sessions ingest`, with a PATH if the logs are elsewhere",
            Self::StoreBusy => "Try again; reading works meanwhile",
            Self::StoreUnavailable => "Do what the message says, or choose another store",
            Self::StoreDamaged => "Run `sessions ingest --verify`, or do what the message says",
            Self::InternalError => "Report it with the arguments; other calls still work",
        }
    }
}
