//! Whether the log of a session exists, which may have been restored since the last ingest.

use ingest::discover::is_gone;
use schemas::ToolError;

use crate::error::store_error;
use store::{LogArchive, StoredSession};

/// Returns whether the log of a session exists.
pub fn has_log(session: &StoredSession, archive: Option<&LogArchive>) -> Result<bool, ToolError> {
    let archived = archive.and_then(|archive| archive.files_of(session.id()).next());
    Ok(match archived {
        Some(log) => !is_gone(&log.path),
        None => {
            let row = session.row().map_err(store_error)?;
            !row.source_gone && !is_gone(&row.source_path)
        }
    })
}
