//! How fresh the index is: what is known of logs that are not read yet, and what answers say of it.

use std::time::Duration;

use schemas::envelope::{Severity, Warning, WarningCode};

/// Keeps the store up with the logs; the composition root brings it, as tools know no logs.
pub trait Refresh: Send + Sync {
    /// Looks whether logs grew and reads what did, for at most `wait`; the rest goes on behind it.
    fn refresh(&self, wait: Duration);

    /// What is known now.
    fn state(&self) -> Freshness;
}

/// What is known of logs that are not in the store as they are now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Freshness {
    /// Log files that grew or appeared and are not read yet.
    pub pending: usize,
    pub lag: Lag,
    /// Log files that could not be read.
    pub failed: usize,
    /// Files beside the logs of which nobody knows the format.
    pub unknown: usize,
}

/// Why there are logs that are not read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Lag {
    /// There are none, as far as is known.
    #[default]
    None,
    /// Nobody has looked through all of them yet.
    Looking,
    /// They are being read.
    Reading,
    /// Another process writes to the store.
    Busy,
    /// They could not be taken in.
    Trouble(String),
}

impl Freshness {
    /// What an answer has to say of it.
    pub(super) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let stale =
            |severity, message: String| Warning::new(WarningCode::IndexStale, severity, message);
        let files = match self.pending {
            1 => "1 log file has".to_owned(),
            files => format!("{files} log files have"),
        };
        let lag = match &self.lag {
            Lag::None => None,
            Lag::Looking => Some(stale(
                Severity::Info,
                "The logs are being looked through; what was written last may be missing. Call again in a moment".to_owned(),
            )),
            Lag::Reading => Some(stale(
                Severity::Warning,
                format!("{files} new content that is being read. Call again in a moment to see it"),
            )),
            Lag::Busy => Some(stale(
                Severity::Warning,
                format!("{files} new content; another process is writing to the store, so it is read later"),
            )),
            Lag::Trouble(why) => Some(stale(
                Severity::Error,
                format!("{files} new content that could not be taken in: {why}"),
            )),
        };
        let failed = (self.failed > 0).then(|| {
            let message =
                format!("{} log files could not be read; see `sessions status`", self.failed);
            Warning::new(WarningCode::FilesFailed, Severity::Warning, message)
        });
        lag.into_iter().chain(failed)
    }

    /// What an empty answer says of it.
    pub(super) fn why_empty(&self) -> String {
        match self.unknown {
            0 => String::new(),
            files => format!(" Files of no known format beside the logs: {files}."),
        }
    }
}
