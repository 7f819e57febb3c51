//! The user's own settings files: prices, and rules for secrets.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingest::redact::{Redactor, UserRule, parse_user_rules};
use schemas::price::PriceTable;
use schemas::{ErrorCode, ToolError};

use super::environment::{read_path_variable, settings_dir};
use crate::files::outfile::open_target;
use crate::files::stdin::read_text;
use tools::error::unusable_path;

/// Maximum size of a settings file in bytes; a larger file is refused.
const MAX_SETTINGS_BYTES: u64 = 4 << 20;

/// Returns the price table: the built-in one with the additions and replacements of the user's
/// file.
pub fn read_prices() -> Result<PriceTable, ToolError> {
    let Some((path, text)) = read_settings_file("SESSIONS_PRICES", "prices.toml")? else {
        return Ok(PriceTable::built_in());
    };
    PriceTable::with_overrides(&text).map_err(|error| invalid_file_error(&path, error))
}

/// Returns the rules for secrets in the user's file; none if there is no file. Their names and regexes
/// are not checked.
pub fn read_redaction_rules() -> Result<Vec<UserRule>, ToolError> {
    match read_settings_file("SESSIONS_REDACT", "redact.toml")? {
        None => Ok(Vec::new()),
        Some((path, text)) => {
            parse_user_rules(&text).map_err(|error| invalid_file_error(&path, error))
        }
    }
}

/// Returns the redactor of secrets, with the built-in rules and those of the user's file.
pub fn create_redactor() -> Result<Arc<Redactor>, ToolError> {
    let redactor = Redactor::new(&read_redaction_rules()?).map_err(|error| {
        let message = format!("{error}. Fix the rule, then run the command again");
        ToolError::new(ErrorCode::InvalidArgument, message)
    })?;
    Ok(Arc::new(redactor))
}

/// Reads a settings file of the user: the one that the variable names, otherwise the usual one if
/// it exists.
pub(super) fn read_settings_file(
    name: &str,
    usual: &str,
) -> Result<Option<(PathBuf, String)>, ToolError> {
    let is_named = read_path_variable(name).is_some();
    let path = settings_file(name, usual);
    match open_target(&path).and_then(|file| read_text(file, MAX_SETTINGS_BYTES)) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if !is_named && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(invalid_file_error(&path, error)),
    }
}

/// Returns the path of the file that a variable names, otherwise that of the usual one.
pub(super) fn settings_file(name: &str, usual: &str) -> PathBuf {
    read_path_variable(name).unwrap_or_else(|| settings_dir().join(usual))
}

/// Returns the error for a file of the user with invalid content.
pub(super) fn invalid_file_error(path: &Path, error: impl Display) -> ToolError {
    unusable_path(path, format_args!("{error}. Fix the file or remove it"))
}
