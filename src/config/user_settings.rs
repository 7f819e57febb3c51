//! The user's file of settings, `settings.toml`:
//!
//! ```text
//! [display]
//! timezone = "Europe/Berlin"
//!
//! [ingest]
//! exclude = ["~/clients/acme/**"]
//! include = ["~/code/**"]
//! providers = ["claude", "codex"]
//!
//! [store]
//! keep = ["transcripts after 90d", "usage after 365d"]
//! keep_logs = "masked"
//!
//! [identity]
//! machine = "laptop"
//! user = "mira"
//!
//! [publish]
//! include = ["~/code/**"]
//! exclude = ["~/code/secret/**"]
//! content = "transcripts"
//! logs = true
//!
//! [projects]
//! "github.com/mira/harbor" = "~/code/harbor"
//!
//! [hooks]
//! enabled = true
//! silent = ["pre-tool"]
//! machines = ["server"]
//! timeout_ms = 100
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use schemas::hook::HookName;
use schemas::tool::OneOrMany;
use schemas::{Provider, Timestamp, ToolError, Zone};
use serde::Deserialize;

use super::environment::{machine_name, read_variable, system_zone, user_name};
use super::settings::{invalid_file_error, read_settings_file, settings_file};
use store::{Identity, KeepLevel, KeepLogs};

/// The settings of a user. A setting that the file does not have is at its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserSettings {
    display: DisplaySettings,
    /// Which logs are read.
    pub ingest: IngestSettings,
    identity: IdentitySettings,
    /// What is published to lakes.
    pub publish: PublishSettings,
    /// How much is kept of old sessions.
    pub store: StoreSettings,
    /// What hooks of agents say.
    pub hooks: HookSettings,
    /// The folders of this machine for projects of other machines, by the address of the remote or the
    /// folder there.
    pub projects: BTreeMap<String, String>,
}

/// The text of the file as it was parsed last, with its settings. A command asks for them in several
/// places, and a server again when the file may have changed.
static PARSED: Mutex<Option<(String, UserSettings)>> = Mutex::new(None);

/// The environment variable that switches hooks off.
const HOOKS_VARIABLE: &str = "SESSIONS_HOOKS";

/// Values of [`HOOKS_VARIABLE`] that switch hooks off.
const OFF_VALUES: [&str; 4] = ["off", "0", "false", "no"];

/// Default of `timeout_ms`: a hook ends within 150 ms, the start of the program included.
const HOOK_TIMEOUT_MS: u64 = 100;

/// What hooks of agents say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookSettings {
    /// False if no hook says or does anything.
    enabled: bool,
    /// Hooks that say nothing.
    silent: Vec<HookName>,
    /// The other machines whose sessions hooks may quote.
    pub machines: Vec<String>,
    /// Time after which a hook ends without saying anything, in milliseconds.
    timeout_ms: u64,
}

impl Default for HookSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            silent: Vec::new(),
            machines: Vec::new(),
            timeout_ms: HOOK_TIMEOUT_MS,
        }
    }
}

impl HookSettings {
    /// Returns true if hooks are not switched off, by the settings or by `SESSIONS_HOOKS=off`.
    pub fn are_enabled(&self) -> bool {
        let value = read_variable(HOOKS_VARIABLE).unwrap_or_default().to_ascii_lowercase();
        self.enabled && !OFF_VALUES.contains(&value.trim())
    }

    /// Returns true if a hook may say something.
    pub fn may_speak(&self, hook: HookName) -> bool {
        !self.silent.contains(&hook)
    }

    /// Returns the time that a hook may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// Which logs are read. A pattern is matched against the working directory of a session and
/// against the path of its log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IngestSettings {
    /// Patterns of logs that are left out.
    pub exclude: Vec<String>,
    /// Patterns of the only logs that are read; all are if the list is empty.
    pub include: Vec<String>,
    /// The only agents whose logs are read; all are if the list is empty.
    pub providers: Vec<Provider>,
}

/// The names of this machine and its user in answers, and in what is published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct IdentitySettings {
    /// Name of the machine; that of the host if absent or empty.
    machine: Option<String>,
    /// Name of the user; that of the login if absent or empty.
    user: Option<String>,
}

/// What `sessions push` publishes. A pattern is matched against the working directory of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublishSettings {
    /// Patterns of the only projects that are published; none is if the list is empty.
    pub include: Vec<String>,
    /// Patterns of projects that are not published.
    pub exclude: Vec<String>,
    /// How much of a session is published.
    pub content: PublishedContent,
    /// Whether the archived logs are published with the sessions. `None` if the user did not say: those
    /// of sessions that are published with everything are.
    logs: Option<bool>,
    /// True if sessions may be published that were ingested with `--no-redact`. The command needs
    /// its flag as well.
    pub unredacted: bool,
}

/// How much of a session is published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedContent {
    /// Everything, with paths as they are.
    Full,
    /// Prompts, answers and calls, without results and reasoning, and without home folders.
    #[default]
    Transcripts,
    /// Counts, tokens, cost and tools, without texts.
    Usage,
}

impl PublishSettings {
    /// Returns whether archived logs are published, with their secrets masked.
    pub fn publishes_logs(&self) -> bool {
        self.logs.unwrap_or(self.content == PublishedContent::Full)
    }
}

impl PublishedContent {
    /// Returns what is kept of the texts.
    pub fn level(self) -> KeepLevel {
        match self {
            Self::Full => KeepLevel::Full,
            Self::Transcripts => KeepLevel::Transcripts,
            Self::Usage => KeepLevel::Usage,
        }
    }
}

/// How commands show times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DisplaySettings {
    /// The zone of days and dates; that of the system if absent.
    timezone: Option<String>,
}

/// How much is kept of old sessions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// `full`, or `transcripts` or `usage` with the age from which it holds.
    keep: OneOrMany<String>,
    /// How the logs themselves are kept. `None` if the user did not say.
    keep_logs: Option<KeepLogs>,
}

/// How much is kept of the sessions whose last event is before a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepRule {
    /// How much is kept.
    pub level: KeepLevel,
    /// The time.
    pub before: Timestamp,
    /// The rule as the user wrote it.
    pub text: String,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { keep: OneOrMany::Many(Vec::new()), keep_logs: None }
    }
}

impl StoreSettings {
    /// Returns how the logs themselves are kept.
    pub fn keep_logs(&self) -> KeepLogs {
        self.keep_logs.unwrap_or_default()
    }

    /// Returns whether the user said that no log is kept.
    pub fn drops_logs(&self) -> bool {
        self.keep_logs == Some(KeepLogs::No)
    }

    /// Returns the rules of retention as of `now`. No rules keep everything.
    ///
    /// # Errors
    /// Returns an error that names a rule that cannot be understood.
    pub fn keep_rules(&self, now: Timestamp) -> Result<Vec<KeepRule>, ToolError> {
        let mut rules = Vec::new();
        for rule in self.keep.to_vec() {
            let rule = rule.trim();
            if rule != "full" {
                rules.push(parse_keep_rule(rule, now)?);
            }
        }
        Ok(rules)
    }
}

/// Parses a rule such as `transcripts after 90d`.
fn parse_keep_rule(rule: &str, now: Timestamp) -> Result<KeepRule, ToolError> {
    const FIELD: &str = "store.keep in settings.toml";
    let (name, age) = match rule.split_once(" after ") {
        Some((name, age)) => (name.trim(), Some(age.trim())),
        None => (rule, None),
    };
    let level = match name {
        "transcripts" => KeepLevel::Transcripts,
        "usage" => KeepLevel::Usage,
        _ => {
            let valid = ["full", "transcripts", "usage", "transcripts after 90d"];
            return Err(ToolError::invalid_value(FIELD, rule, &valid));
        }
    };
    let before = match age {
        Some(age) => Zone::UTC.parse_since(FIELD, age, now)?,
        None => now,
    };
    Ok(KeepRule { level, before, text: rule.to_owned() })
}

/// The variable that names the file of the settings, and its usual name.
const VARIABLE: &str = "SESSIONS_SETTINGS";
const FILE_NAME: &str = "settings.toml";

impl UserSettings {
    /// Reads the file that `SESSIONS_SETTINGS` names, otherwise the usual one. Returns the defaults
    /// if the usual one does not exist.
    ///
    /// # Errors
    /// Returns an error that names the file if it cannot be read, is not TOML, or has a setting
    /// that is not known.
    pub fn read() -> Result<Self, ToolError> {
        let Some((path, text)) = read_settings_file(VARIABLE, FILE_NAME)? else {
            return Ok(Self::default());
        };
        let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, settings)) = parsed.as_ref().filter(|(known, _)| *known == text) {
            return Ok(settings.clone());
        }
        let settings = parse_settings(&text).map_err(|reason| invalid_file_error(&path, reason))?;
        *parsed = Some((text, settings.clone()));
        Ok(settings)
    }

    /// Returns the path of that file, which need not exist.
    pub fn path() -> PathBuf {
        settings_file(VARIABLE, FILE_NAME)
    }

    /// Returns the names of this machine and its user: those of the settings, otherwise those of the
    /// system.
    pub fn identity(&self) -> Identity {
        let machine = self.identity.machine.as_deref().map_or("", str::trim);
        let user = self.identity.user.as_deref().map_or("", str::trim);
        Identity {
            machine: if machine.is_empty() { machine_name() } else { machine.to_owned() },
            user_name: if user.is_empty() { user_name() } else { user.to_owned() },
        }
    }

    /// Returns the zone in which commands count days and read dates: the one called `named`,
    /// otherwise that of the settings, otherwise that of the system.
    ///
    /// # Errors
    /// Returns an error with the nearest names if there is no zone of the name.
    pub fn zone(&self, named: Option<&str>) -> Result<Zone, ToolError> {
        match (named, self.display.timezone.as_deref()) {
            (Some(name), _) => Zone::find("timezone", name),
            (None, Some(name)) => Zone::find("display.timezone in settings.toml", name),
            (None, None) => Ok(system_zone()),
        }
    }
}

/// Parses the text of the file. The error is the reason why it is not valid.
fn parse_settings(text: &str) -> Result<UserSettings, String> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
        });
        format!("line {line}: {}", error.message().trim_end().replace('\n', ", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_setting_is_named_with_its_line() {
        let reason = parse_settings("[display]\n\ntimezon = \"utc\"\n").expect_err("unknown");
        assert!(reason.starts_with("line 3: unknown field `timezon`"), "{reason}");
        let reason = parse_settings("[display\n").expect_err("no TOML");
        assert!(reason.starts_with("line 1: "), "{reason}");
        assert_eq!(parse_settings(""), Ok(UserSettings::default()));
    }

    #[test]
    fn a_named_zone_precedes_that_of_the_settings() {
        let settings = parse_settings("display.timezone = 'asia/tokyo'").expect("valid");
        assert_eq!(settings.zone(None).expect("a zone").name(), "Asia/Tokyo");
        assert_eq!(settings.zone(Some("utc")).expect("a zone"), Zone::UTC);
        let wrong = parse_settings("display.timezone = 'Asia/Tokio'").expect("valid");
        let error = wrong.zone(None).expect_err("no zone");
        assert!(error.message.contains("Did you mean Asia/Tokyo?"), "{error}");
    }

    #[test]
    fn the_settings_name_the_machine_and_the_user() {
        let text = "[identity]\nmachine = ' laptop '\nuser = 'mira'\n";
        let named = parse_settings(text).expect("valid").identity();
        assert_eq!((named.machine.as_str(), named.user_name.as_str()), ("laptop", "mira"));
        let unnamed = parse_settings("identity.machine = ''").expect("valid").identity();
        assert!(!unnamed.machine.is_empty() && !unnamed.user_name.is_empty());
    }

    #[test]
    fn hooks_are_on_unless_the_settings_say_otherwise() {
        let settings = parse_settings("").expect("valid").hooks;
        assert!(settings.enabled && settings.may_speak(HookName::Prompt));
        let settings =
            parse_settings("[hooks]\nsilent = ['prompt']\ntimeout_ms = 30").expect("valid");
        assert!(!settings.hooks.may_speak(HookName::Prompt));
        assert!(settings.hooks.may_speak(HookName::PreTool));
        assert_eq!(settings.hooks.timeout(), Duration::from_millis(30));
        assert!(!parse_settings("hooks.enabled = false").expect("valid").hooks.enabled);
        let reason = parse_settings("[hooks]\nsilent = ['promt']\n").expect_err("unknown");
        assert!(reason.contains("promt"), "{reason}");
    }
}
