//! Describes the freshness of the index: how many logs are not read yet, and what answers say about
//! them.

use std::time::Duration;

use schemas::envelope::{Severity, Warning, WarningCode};

/// Keeps the store up to date with the logs. The composition root provides it, because tools do not
/// access logs.
pub trait Refresh: Send + Sync {
    /// Checks whether logs grew and reads what was added, for at most `wait`. The rest continues in
    /// the background.
    fn refresh(&self, wait: Duration);

    /// Returns the current freshness.
    fn current_freshness(&self) -> Freshness;
}

/// The logs whose current content is not in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Freshness {
    /// The number of log files that grew or appeared and are not read yet.
    pub pending: usize,
    pub unread_reason: UnreadReason,
    /// The number of log files that could not be read.
    pub failed: usize,
    /// The number of files next to the logs whose format is unknown.
    pub unknown: usize,
}

/// The reason why some logs are not read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum UnreadReason {
    /// No unread logs are known.
    #[default]
    None,
    /// Not all logs have been checked yet.
    Looking,
    /// The logs are being read.
    Reading,
    /// Another process is writing to the store.
    Busy,
    /// The logs could not be ingested.
    Trouble(String),
    /// The rules for secrets changed, and the store could not be masked by them. Nothing is answered.
    Unmasked(String),
}

impl Freshness {
    /// Returns the warnings that an answer gives about the freshness.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        warnings.extend(self.unread_warning());
        if self.failed > 0 {
            let message =
                format!("{} log files could not be read; see `sessions status`", self.failed);
            warnings.push(Warning::new(WarningCode::FilesFailed, Severity::Error, message));
        }
        warnings
    }

    fn unread_warning(&self) -> Option<Warning> {
        let files = match self.pending {
            1 => "1 log file has".to_owned(),
            files => format!("{files} log files have"),
        };
        let (severity, message) = match &self.unread_reason {
            UnreadReason::None | UnreadReason::Unmasked(_) => return None,
            UnreadReason::Looking => (
                Severity::Info,
                "The logs are still being checked, so the latest records may be missing. Call again in a moment".to_owned(),
            ),
            UnreadReason::Reading => (
                Severity::Warning,
                format!("{files} new content that is being read. Call again in a moment to see it"),
            ),
            UnreadReason::Busy => (
                Severity::Warning,
                format!("{files} new content; another process is writing to the store, so it is read later"),
            ),
            UnreadReason::Trouble(why) => (
                Severity::Error,
                format!("{files} new content that could not be ingested: {why}"),
            ),
        };
        Some(Warning::new(WarningCode::IndexStale, severity, message))
    }

    /// Returns what an empty answer says about unknown files.
    pub fn describe_unknown_files(&self) -> String {
        match self.unknown {
            0 => String::new(),
            1 => " 1 file next to the logs has an unknown format.".to_owned(),
            files => format!(" {files} files next to the logs have an unknown format."),
        }
    }
}
