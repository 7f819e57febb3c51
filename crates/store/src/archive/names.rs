//! How logs are kept, and the names of the files of the archive.

use serde::{Deserialize, Serialize};

/// Name of the archive in the store directory.
pub(crate) const ARCHIVE_FILE: &str = "archive.db";

/// Names of the files that SQLite keeps next to it while it is open.
pub(crate) const ARCHIVE_SIDE_FILES: [&str; 3] =
    ["archive.db-wal", "archive.db-shm", "archive.db-journal"];

/// How the logs are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepLogs {
    /// No log is added to the archive.
    #[default]
    No,
    /// With the secrets masked.
    Masked,
    /// Byte for byte, with their secrets.
    Exact,
}
