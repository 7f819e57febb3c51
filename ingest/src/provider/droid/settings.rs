//! Reads `<uuid>.settings.json`, which Factory Droid keeps next to a session's log. It has the
//! model, and the tokens of the whole session. Droid rewrites the tokens after every turn.

use std::path::{Path, PathBuf};

use schemas::Usage;
use serde_json::Value as Json;

use crate::provider::shared::beside;

/// Maximum size in bytes of a settings file. Larger files are not settings.
const BYTES: u64 = 1 << 20;

/// Returns the path of the settings that belong to a log.
pub(super) fn path(log: &Path) -> PathBuf {
    log.with_extension("settings.json")
}

/// The settings of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    /// Token totals without those of subagents, which have logs and settings of their own.
    pub(super) usage: Usage,
}

impl Settings {
    /// Reads the settings next to a log.
    pub(super) fn beside(log: &str) -> Option<Self> {
        let settings = beside::json(&path(Path::new(log)), BYTES)?;
        Some(Self::of(&settings))
    }

    fn of(settings: &Json) -> Self {
        let count = |key: &str| settings["tokenUsage"][key].as_i64();
        Self {
            model: settings["model"].as_str().map(str::to_owned),
            usage: Usage {
                input: count("inputTokens"),
                output: count("outputTokens"),
                cache_read: count("cacheReadTokens"),
                cache_write: count("cacheCreationTokens"),
                cache_write_1h: None,
                reasoning: count("thinkingTokens"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_stand_beside_the_log() {
        let dir = tempfile::tempdir().expect("tempdir");
        let log = dir.path().join("5f0c.jsonl");
        let log = log.to_str().expect("path");
        assert_eq!(Settings::beside(log), None);
        let json = r#"{"model":"m","tokenUsage":{"inputTokens":7,"outputTokens":3,"cacheReadTokens":90,"thinkingTokens":1}}"#;
        std::fs::write(dir.path().join("5f0c.settings.json"), json).expect("writes");
        let settings = Settings::beside(log).expect("settings");
        assert_eq!(settings.model.as_deref(), Some("m"));
        assert_eq!((settings.usage.total(), settings.usage.cache_write), (100, None));
    }
}
