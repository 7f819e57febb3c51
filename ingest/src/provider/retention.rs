//! How long agents keep their logs, by their settings.
//!
//! Sources, as of November 2026: the settings reference of Claude Code (`cleanupPeriodDays`: when it
//! starts, it deletes logs that have not changed for that many days) and of Gemini CLI
//! (`general.sessionRetention`). No documentation of another agent names such a setting.

use std::path::PathBuf;

use schemas::Provider;
use serde_json::Value;

use super::format::AgentFolders;
use super::shared::sidecar;
use super::{gemini, log_folders};

/// Maximum size in bytes of the settings of an agent.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// The days after which both agents delete logs, if their settings name none.
const DEFAULT_DAYS: u32 = 30;

/// When an agent deletes logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRetention {
    /// Days without a change after which a log is deleted.
    pub days: u32,
    /// The setting that changes this.
    pub setting: &'static str,
    /// The file of the setting, which need not exist.
    pub file: PathBuf,
}

/// Returns when an agent deletes its logs; `None` if no deletion is known.
pub fn log_retention(provider: Provider, places: &AgentFolders<'_>) -> Option<LogRetention> {
    if provider == Provider::Claude {
        let folders = log_folders(provider, places);
        let mut files =
            folders.iter().filter_map(|logs| Some(logs.parent()?.join("settings.json")));
        let file = files.clone().find(|file| file.exists()).or_else(|| files.next())?;
        let setting = "cleanupPeriodDays";
        let given = sidecar::read_json(&file, MAX_SETTINGS_BYTES)
            .unwrap_or_default()
            .get(setting)
            .and_then(Value::as_u64);
        // Versions differ in what 0 does. None of them deletes a log because of its age.
        let days = given.map_or(DEFAULT_DAYS, |days| u32::try_from(days).unwrap_or(u32::MAX));
        return (days > 0).then_some(LogRetention { days, setting, file });
    }
    if provider == Provider::Gemini {
        let file = gemini::home_folder(places).join("settings.json");
        let settings = sidecar::read_json(&file, MAX_SETTINGS_BYTES).unwrap_or_default();
        let given = settings.pointer("/general/sessionRetention");
        let given = given.unwrap_or(&Value::Null);
        if given.get("enabled") == Some(&Value::Bool(false)) {
            return None;
        }
        let days = match given.get("maxAge").and_then(Value::as_str) {
            Some(age) => parse_days(age)?,
            None => DEFAULT_DAYS,
        };
        return Some(LogRetention { days, setting: "general.sessionRetention.maxAge", file });
    }
    None
}

/// Returns the whole days of an age such as `30d`, `24h`, `1w` or `2m`.
fn parse_days(age: &str) -> Option<u32> {
    let split = age.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = age.split_at(split);
    let number: u32 = number.parse().ok()?;
    match unit {
        "h" => Some(number / 24),
        "d" => Some(number),
        "w" => number.checked_mul(7),
        "m" => number.checked_mul(30),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn days(provider: Provider, file: &str, settings: &str) -> Option<u32> {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        fs::write(&path, settings).expect("writes");
        let places = AgentFolders::new(home.path(), &|_| None);
        log_retention(provider, &places).map(|retention| retention.days)
    }

    #[test]
    fn the_settings_of_an_agent_decide() {
        for (settings, wanted) in [
            ("", Some(30)),
            ("{", Some(30)),
            (r#"{"cleanupPeriodDays": 7}"#, Some(7)),
            (r#"{"cleanupPeriodDays": 99999999999}"#, Some(u32::MAX)),
            (r#"{"cleanupPeriodDays": 0}"#, None),
        ] {
            assert_eq!(
                days(Provider::Claude, ".claude/settings.json", settings),
                wanted,
                "{settings}"
            );
        }
        for (retention, wanted) in [
            ("{}", Some(30)),
            (r#"{"maxAge": "2w"}"#, Some(14)),
            (r#"{"maxAge": "36h"}"#, Some(1)),
            (r#"{"maxAge": "soon"}"#, None),
            (r#"{"enabled": false, "maxAge": "1d"}"#, None),
        ] {
            let settings = format!(r#"{{"general": {{"sessionRetention": {retention}}}}}"#);
            assert_eq!(
                days(Provider::Gemini, ".gemini/settings.json", &settings),
                wanted,
                "{settings}"
            );
        }
        assert_eq!(days(Provider::Codex, ".codex/settings.json", "{}"), None);
    }
}
