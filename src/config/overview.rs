//! Every setting, with its value and where it comes from.

use std::path::Path;

use schemas::ToolError;
use serde::Serialize;

use super::environment::{default_store, read_path_variable, read_variable, settings_dir};
use super::settings::{invalid_file_error, read_settings_file};
use super::user_settings::UserSettings;

/// A setting of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingValue {
    pub name: &'static str,
    pub value: String,
    /// A flag, a variable of the environment, a file, or `default`.
    pub source: String,
}

/// The settings of the file, with their defaults.
const FILE_SETTINGS: &[(&str, &str)] = &[
    ("ingest.exclude", "[]"),
    ("ingest.include", "[] (all)"),
    ("ingest.providers", "[] (all)"),
    ("store.keep", "full"),
    ("store.keep_logs", "no"),
    ("publish.include", "[] (none)"),
    ("publish.exclude", "[]"),
    ("publish.content", "transcripts"),
    ("publish.logs", "false"),
    ("publish.unredacted", "false"),
    ("hooks.enabled", "true"),
    ("hooks.silent", "[]"),
    ("hooks.machines", "[] (this one)"),
    ("hooks.timeout_ms", "100"),
];

/// What `publish.logs` means, if it is on.
const PUBLISHED_LOGS: &str = "true (archived logs of published sessions, secrets masked)";

/// Lists all settings. `store` and `timezone` are the flags of the command.
///
/// # Errors
/// Returns an error that names the settings file if it is invalid.
pub fn list_settings(
    store: Option<&Path>,
    timezone: Option<&str>,
) -> Result<Vec<SettingValue>, ToolError> {
    let settings = UserSettings::read()?;
    let file = read_settings_file("SESSIONS_SETTINGS", "settings.toml")?;
    let table = match &file {
        None => toml::Table::new(),
        Some((path, text)) => text
            .parse::<toml::Table>()
            .map_err(|error| invalid_file_error(path, error.message().to_owned()))?,
    };
    let file_name = file.as_ref().map(|(path, _)| path.display().to_string()).unwrap_or_default();
    let find = |section: &str, key: &str| table.get(section)?.as_table()?.get(key);

    let mut values = vec![store_setting(store)];
    let zone = settings.zone(timezone)?;
    let zone_source = if timezone.is_some() {
        "--timezone".to_owned()
    } else if find("display", "timezone").is_some() {
        file_name.clone()
    } else if read_variable("TZ").is_some() {
        "TZ".to_owned()
    } else {
        "the system".to_owned()
    };
    values.push(SettingValue {
        name: "display.timezone",
        value: zone.name().to_owned(),
        source: zone_source,
    });
    let identity = settings.identity();
    for (name, key, value, variable) in [
        ("identity.machine", "machine", identity.machine, "SESSIONS_MACHINE"),
        ("identity.user", "user", identity.user_name, "SESSIONS_USER"),
    ] {
        let is_named = find("identity", key).and_then(toml::Value::as_str).is_some_and(is_filled);
        let source = if is_named {
            file_name.clone()
        } else if read_variable(variable).is_some() {
            variable.to_owned()
        } else {
            "the system".to_owned()
        };
        values.push(SettingValue { name, value, source });
    }
    for (name, default) in FILE_SETTINGS.iter().copied() {
        let set = name.split_once('.').and_then(|(section, key)| find(section, key));
        let publishes_logs = name == "publish.logs" && settings.publish.publishes_logs();
        values.push(SettingValue {
            name,
            value: match set {
                _ if publishes_logs => PUBLISHED_LOGS.to_owned(),
                Some(value) => describe_value(value),
                None => default.to_owned(),
            },
            source: set.map_or_else(|| "default".to_owned(), |_| file_name.clone()),
        });
    }
    let projects = table.get("projects").and_then(toml::Value::as_table);
    values.push(SettingValue {
        name: "projects",
        value: projects.map_or_else(|| "{}".to_owned(), |it| describe_value(&it.clone().into())),
        source: projects.map_or_else(|| "default".to_owned(), |_| file_name.clone()),
    });
    values.extend(hook_variable());
    values.push(file_setting("prices", "SESSIONS_PRICES", "prices.toml", "built in"));
    values.push(file_setting("redaction rules", "SESSIONS_REDACT", "redact.toml", "built in"));
    values.push(SettingValue {
        name: "log",
        value: read_variable("SESSIONS_LOG").unwrap_or_else(|| "off".to_owned()),
        source: variable_or_default("SESSIONS_LOG"),
    });
    Ok(values)
}

fn store_setting(store: Option<&Path>) -> SettingValue {
    let path = store.map_or_else(default_store, Path::to_path_buf);
    let variable = read_path_variable("SESSIONS_STORE");
    let source = match store {
        Some(named) if variable.as_deref() == Some(named) => "SESSIONS_STORE",
        Some(_) => "--store",
        None => "default",
    };
    SettingValue { name: "store", value: path.display().to_string(), source: source.to_owned() }
}

/// Returns the variable that switches hooks off, if it is set.
fn hook_variable() -> Option<SettingValue> {
    let value = read_variable("SESSIONS_HOOKS")?;
    Some(SettingValue { name: "hooks", value, source: "SESSIONS_HOOKS".to_owned() })
}

/// Returns whether a setting is more than blanks, which count as no value.
fn is_filled(value: &str) -> bool {
    !value.trim().is_empty()
}

/// Describes a settings file of its own: the one that the variable names, else the usual one if it
/// exists.
fn file_setting(name: &'static str, variable: &str, usual: &str, default: &str) -> SettingValue {
    let usual = settings_dir().join(usual);
    let (value, source) = match read_path_variable(variable) {
        Some(path) => (path.display().to_string(), variable.to_owned()),
        None if usual.exists() => (usual.display().to_string(), "the settings folder".to_owned()),
        None => (default.to_owned(), "default".to_owned()),
    };
    SettingValue { name, value, source }
}

/// Returns a value of the file in one line.
fn describe_value(value: &toml::Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn variable_or_default(name: &str) -> String {
    if read_variable(name).is_some() { name.to_owned() } else { "default".to_owned() }
}
