//! Whether the log of a session exists, which may have been restored since the last ingest.

use ingest::discover::{LogFinder, LogPresence};
use schemas::ToolError;

use crate::error::store_error;
use store::{LogArchive, StoredSession};

/// Returns whether the log of a session exists.
pub fn log_presence(
    session: &StoredSession,
    archive: Option<&LogArchive>,
    finder: &mut LogFinder,
) -> Result<LogPresence, ToolError> {
    let archived = archive.and_then(|archive| archive.files_of(session.id()).next());
    if let Some(log) = archived {
        return Ok(finder.find(&log.path));
    }
    let row = session.row().map_err(store_error)?;
    Ok(if row.source_gone { LogPresence::Gone } else { finder.find(&row.source_path) })
}

/// Returns whether the log of a session is not known to be gone.
pub fn has_log(
    session: &StoredSession,
    archive: Option<&LogArchive>,
    finder: &mut LogFinder,
) -> Result<bool, ToolError> {
    Ok(log_presence(session, archive, finder)? != LogPresence::Gone)
}
