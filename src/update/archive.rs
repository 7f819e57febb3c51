//! How logs are archived, by the user's settings.

use std::sync::Arc;

use ingest::redact::Redactor;
use schemas::ToolError;

use super::write_lock::take_write_lock;
use crate::config::settings::create_redactor;
use crate::config::user_settings::UserSettings;
use store::{ArchiveRules, KeepLogs, Store};
use tools::error::store_error;

/// Returns how logs are archived, by the user's settings. `redactor` masks the text of the run, if it
/// masks any.
pub fn archive_rules(redactor: Option<&Arc<Redactor>>) -> Result<ArchiveRules, ToolError> {
    Ok(match UserSettings::read()?.store.keep_logs() {
        KeepLogs::No => ArchiveRules::No,
        KeepLogs::Exact => ArchiveRules::Exact,
        KeepLogs::Masked => match redactor {
            Some(redactor) => ArchiveRules::Masked(Arc::clone(redactor)),
            None => ArchiveRules::Masked(create_redactor()?),
        },
    })
}

/// Removes the archive of the logs. Returns false if there is none.
pub fn remove_archive(store: &Store) -> Result<bool, ToolError> {
    if store.open_archive().is_ok_and(|archive| archive.is_none()) {
        return Ok(false);
    }
    let writer = take_write_lock(store)?;
    writer.remove_archive().map_err(store_error)?;
    Ok(true)
}
