//! How logs are archived, by the user's settings.

use std::sync::Arc;

use ingest::redact::Redactor;
use schemas::ToolError;

use crate::config::settings::create_redactor;
use crate::config::user_settings::UserSettings;
use store::{ArchiveRules, KeepLogs};

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
