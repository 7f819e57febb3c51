//! Reads `<uuid>.settings.json`, which Factory Droid keeps next to a session's log. It has the
//! model, and the tokens of the whole session. Droid rewrites the tokens after every turn.
//!
//! ```text
//! {"model":"claude-opus-4-7","tokenUsage":{"inputTokens":2114,"outputTokens":1388,...}}
//! ```

use std::path::{Path, PathBuf};

use schemas::Usage;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::shared::sidecar;

/// Maximum size in bytes of a settings file. Larger files are not settings.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// Returns the path of the settings that belong to a log.
pub(super) fn settings_path(log: &Path) -> PathBuf {
    log.with_extension("settings.json")
}

/// The settings of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DroidSettings {
    pub(super) model: Option<String>,
    /// Token totals without those of subagents, which have logs and settings of their own.
    pub(super) usage: Usage,
}

impl DroidSettings {
    /// Reads the settings next to a log.
    pub(super) fn read_for_log(log: &Path) -> Option<Self> {
        let settings = sidecar::read_json(&settings_path(log), MAX_SETTINGS_BYTES)?;
        Some(Self::from_json(&settings))
    }

    /// Returns whether the settings have token counts.
    pub(super) fn has_counts(&self) -> bool {
        self.usage.is_growth() && self.usage.total() > 0
    }

    /// Returns a hash of the settings, to find out later whether they changed.
    pub(super) fn fingerprint(&self) -> u64 {
        xxh3_64(format!("{:?}", (&self.model, self.usage)).as_bytes())
    }

    fn from_json(settings: &Json) -> Self {
        let counts = &settings["tokenUsage"];
        Self {
            model: settings["model"].as_str().map(str::to_owned),
            usage: Usage {
                input: counts["inputTokens"].as_i64(),
                output: counts["outputTokens"].as_i64(),
                cache_read: counts["cacheReadTokens"].as_i64(),
                cache_write: counts["cacheCreationTokens"].as_i64(),
                reasoning: counts["thinkingTokens"].as_i64(),
                ..Usage::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_in_a_file_next_to_the_log() {
        let dir = tempfile::tempdir().expect("tempdir");
        let log = dir.path().join("5f0c.jsonl");
        assert_eq!(DroidSettings::read_for_log(&log), None);
        let json = r#"{"model":"m","tokenUsage":{"inputTokens":7,"outputTokens":3,"cacheReadTokens":90,"thinkingTokens":1}}"#;
        std::fs::write(dir.path().join("5f0c.settings.json"), json).expect("writes");
        let settings = DroidSettings::read_for_log(&log).expect("settings");
        assert_eq!(settings.model.as_deref(), Some("m"));
        assert_eq!((settings.usage.total(), settings.usage.cache_write), (100, None));
        assert!(settings.has_counts() && !DroidSettings::default().has_counts());
        assert_ne!(settings.fingerprint(), DroidSettings::default().fingerprint());
    }
}
