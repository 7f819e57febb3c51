//! How long agents keep their logs, by their settings.
//!
//! Sources, as of November 2026: the settings reference of Claude Code (`cleanupPeriodDays`: when it
//! starts, it deletes logs that have not changed for that many days), and the program of Gemini CLI 0.61.0
//! (`general.sessionRetention`): when it starts in a project, it deletes the logs of it whose last record is
//! older than `maxAge`, and all but the newest `maxCount`. It deletes none if `maxAge` or `maxCount` is not
//! valid, or if `maxAge` is shorter than `minRetention`. No documentation of another agent names such a
//! setting.

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

/// The shortest `maxAge` of Gemini CLI in hours, if its settings name no `minRetention`.
const MIN_HOURS: u32 = 24;

/// When an agent deletes logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRetention {
    /// Days without a change after which a log is deleted.
    pub days: u32,
    /// The number of logs of a project that are kept when a session begins, the newest. `None` if all are.
    pub count: Option<u32>,
    /// True if the last record of a log decides about its age, not the time of its file.
    pub is_by_record: bool,
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
        let retention = LogRetention { days, count: None, is_by_record: false, setting, file };
        return (days > 0).then_some(retention);
    }
    if provider == Provider::Gemini {
        let file = gemini::home_folder(places).join("settings.json");
        let settings = sidecar::read_json(&file, MAX_SETTINGS_BYTES).unwrap_or_default();
        let given = settings.pointer("/general/sessionRetention");
        let given = given.unwrap_or(&Value::Null);
        if given.get("enabled") == Some(&Value::Bool(false)) {
            return None;
        }
        let age = given.get("maxAge").and_then(Value::as_str);
        let hours = age.map_or(Some(DEFAULT_DAYS * 24), parse_hours)?;
        let least = given.get("minRetention").and_then(Value::as_str).and_then(parse_hours);
        if hours < least.unwrap_or(MIN_HOURS) {
            return None;
        }
        let count = match given.get("maxCount").filter(|count| !count.is_null()) {
            Some(count) => Some(u32::try_from(count.as_u64().filter(|count| *count > 0)?).ok()?),
            None => None,
        };
        return Some(LogRetention {
            days: hours / 24,
            // The session that begins is one of them.
            count: count.map(|count| count - 1),
            is_by_record: true,
            setting: "general.sessionRetention",
            file,
        });
    }
    None
}

/// Returns the hours of an age such as `30d`, `24h`, `1w` or `2m`. `None` if it is not valid.
fn parse_hours(age: &str) -> Option<u32> {
    let split = age.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = age.split_at(split);
    let number: u32 = number.parse().ok()?;
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 7 * 24,
        "m" => 30 * 24,
        _ => return None,
    };
    number.checked_mul(hours).filter(|hours| *hours > 0)
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
            (r#"{"maxAge": "0d"}"#, None),
            (r#"{"maxAge": "12h"}"#, None),
            (r#"{"maxAge": "12h", "minRetention": "1h"}"#, Some(0)),
            (r#"{"maxAge": "1w", "minRetention": "2w"}"#, None),
            (r#"{"maxCount": 20}"#, Some(30)),
            (r#"{"maxCount": 0}"#, None),
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
