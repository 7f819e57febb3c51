//! Whether the log of a session exists, which may have been restored since the last ingest.

use ingest::discover::find_file;
use schemas::ToolError;

use crate::error::store_error;
use store::{LogArchive, StoredSession};

/// Returns whether the log of a session exists.
pub fn has_log(session: &StoredSession, archive: Option<&LogArchive>) -> Result<bool, ToolError> {
    let archived = archive.and_then(|archive| archive.files_of(session.id()).next());
    Ok(match archived {
        Some(log) => find_file(&log.path).is_some(),
        None => !session.row().map_err(store_error)?.source_gone,
    })
}
