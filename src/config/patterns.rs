//! The patterns by which settings select folders.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemas::{ErrorCode, ToolError};

use super::environment::home_dir;

/// Builds the patterns of a setting. Each matches the folder that it names and everything below.
pub fn build_patterns(setting: &str, patterns: &[String]) -> Result<GlobSet, ToolError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let folder = absolute_pattern(pattern);
        for text in [folder.clone(), format!("{folder}/**")] {
            let glob = GlobBuilder::new(&text).literal_separator(true).build();
            set.add(glob.map_err(|error| wrong_pattern(setting, pattern, &error))?);
        }
    }
    set.build().map_err(|error| wrong_pattern(setting, "", &error))
}

/// Returns the pattern of the folder that a pattern names: `~` is the home directory, and a pattern
/// that does not begin at the root matches in any folder.
fn absolute_pattern(pattern: &str) -> String {
    let pattern = pattern.trim();
    let folder = pattern.strip_suffix("/**").unwrap_or(pattern).trim_end_matches('/');
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
