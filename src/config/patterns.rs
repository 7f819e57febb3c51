//! The patterns by which settings select folders.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemas::{ErrorCode, ToolError};

use super::environment::home_dir;

/// Builds the patterns of a setting. Each matches the folder that it names and everything below. A
/// pattern of the home directory also matches the `~` in folders of other machines.
pub fn build_patterns(setting: &str, patterns: &[String]) -> Result<GlobSet, ToolError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let mut folders = vec![absolute_pattern(pattern)];
        folders.extend(Some(folder_of(pattern).to_owned()).filter(|text| text.starts_with('~')));
        for folder in folders {
            add_folder(&mut set, &folder)
                .map_err(|error| wrong_pattern(setting, pattern, &error))?;
        }
    }
    set.build().map_err(|error| wrong_pattern(setting, "", &error))
}

/// Adds what matches a folder and everything below it.
pub(super) fn add_folder(set: &mut GlobSetBuilder, folder: &str) -> Result<(), globset::Error> {
    for text in [folder, &format!("{folder}/**")] {
        set.add(GlobBuilder::new(text).literal_separator(true).build()?);
    }
    Ok(())
}

/// Returns the folder that a pattern names, without the ending for everything below it.
pub(super) fn folder_of(pattern: &str) -> &str {
    let pattern = pattern.trim();
    pattern.strip_suffix("/**").unwrap_or(pattern).trim_end_matches('/')
}

/// Returns the pattern of the folder that a pattern names: `~` is the home directory, and a pattern
/// that does not begin at the root matches in any folder.
fn absolute_pattern(pattern: &str) -> String {
    let folder = folder_of(pattern);
    let home = home_dir();
    if folder == "~" {
        return home.to_string_lossy().into_owned();
    }
    if let Some(below) = folder.strip_prefix("~/") {
        return format!("{}/{below}", home.display());
    }
    if Path::new(folder).is_absolute() || folder.starts_with("**") {
        return folder.to_owned();
    }
    format!("**/{folder}")
}

/// Returns the error of a pattern that cannot be used.
fn wrong_pattern(setting: &str, pattern: &str, error: &globset::Error) -> ToolError {
    let message = format!(
        "{setting} of settings.toml: '{pattern}' is not a pattern: {}. Fix it, for example as '~/clients/acme/**'",
        error.kind()
    );
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", setting)
}
