//! What came of a log before it is replaced.

use ingest::scrub::ScrubbedLog;
use tempfile::NamedTempFile;

use super::log_file::LogFile;
use tools::secrets::SecretLog;

/// A log and its new version, which is in the same folder under another name.
pub(super) struct PreparedLog<'l> {
    pub(super) log: &'l SecretLog,
    pub(super) file: LogFile,
    pub(super) new: NamedTempFile,
    pub(super) scrubbed: ScrubbedLog,
}

/// What came of a log before it is replaced.
pub(super) enum Preparation<'l> {
    Ready(Box<PreparedLog<'l>>),
    /// Nothing more is to be done: the log has no secret that can be replaced, or its database is changed.
    Done(&'l SecretLog, ScrubbedLog),
    LeftOut(&'l SecretLog, String),
}
