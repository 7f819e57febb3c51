//! Masks the values that commands store under a name:
//! `kubectl create secret generic db --from-literal=password=...`, `fly secrets set KEY=...`.

use std::sync::LazyLock;

use regex::Regex;

use super::commands::command_line;
use super::entropy::{is_random, is_uuid};
use super::env;
use super::names::{Strength, announced_secret};
use super::scan::{Rank, SecretScan};

/// Number of bytes of a command that are examined.
const MAX_COMMAND_BYTES: usize = 2000;

/// A command with pairs of names and values.
pub(super) struct PairCommand {
    pub(super) anchor: &'static str,
    /// Whether the command stores nothing but secrets. Another one also stores settings, among
    /// which a secret has a name that announces it, or is random.
    is_for_secrets: bool,
}

/// Creates a rule for a command that stores nothing but secrets.
const fn secrets(anchor: &'static str) -> PairCommand {
    PairCommand { anchor, is_for_secrets: true }
}

/// Creates a rule for a command that stores settings.
const fn settings(anchor: &'static str) -> PairCommand {
    PairCommand { anchor, is_for_secrets: false }
}

/// All commands with pairs.
pub(super) const PAIR_COMMANDS: &[PairCommand] = &[
    secrets("create secret generic "),
    secrets("kv put "),
    secrets("kv patch "),
    secrets("secrets set "),
    secrets("secrets:set "),
    secrets("secret create "),
    settings("vault write "),
    settings("bao write "),
    settings("config:set "),
    settings("config:add "),
    settings("env:set "),
    settings("env set "),
    settings("variables set "),
    settings("variables --set "),
    settings("item create "),
    settings("item edit "),
];

/// A name and its value, which may be in quotes together.
static PAIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)[\s=](?:
            \\{0,3}"([A-Za-z][A-Za-z0-9_.-]{0,63})=([^"\\\n]+)
            | \\{0,3}'([A-Za-z][A-Za-z0-9_.-]{0,63})=([^'\\\n]+)
            | ([A-Za-z][A-Za-z0-9_.-]{0,63})=\\{0,3}(?:"([^"\\\n]+)|'([^'\\\n]+)|([^\s"'\\]+))
        )"#,
    )
    .ok()
});

/// Names of values that a secret store keeps next to a secret.
#[rustfmt::skip]
const PUBLIC_NAMES: &[&str] = &[
    "user", "username", "login", "email", "host", "hostname", "port", "url", "uri", "endpoint", "region",
    "name", "database", "db", "dbname", "type", "version", "policy", "policies", "ttl", "path", "role",
    "env", "environment", "domain", "id", "account", "driver", "scheme", "server", "namespace",
];

/// Masks the secrets in the pairs of the command at `at`.
pub(super) fn mask_pairs(scan: &mut SecretScan<'_>, at: usize, command: &PairCommand) {
    if at < scan.pairs_end {
        return;
    }
    let line = command_line(scan.text_from(at, MAX_COMMAND_BYTES));
    let end = line.find(['|', ';', '&']).unwrap_or(line.len());
    let line = line.get(..end).unwrap_or_default();
    scan.pairs_end = at + line.len();
    let Some(pattern) = PAIR.as_ref() else { return };
    for found in pattern.captures_iter(line) {
        let groups = [(1, &[2][..]), (3, &[4]), (5, &[6, 7, 8])];
        for (name_group, value_groups) in groups {
            let Some(name) = found.get(name_group) else { continue };
            let value = value_groups.iter().find_map(|group| found.get(*group));
            let Some(value) = value else { continue };
            if let Some(kind) = secret_kind(name.as_str(), value.as_str(), command.is_for_secrets) {
                scan.add_secret(at + value.start(), at + value.end(), kind, Rank::Around);
            }
        }
    }
}

/// Returns the kind of the secret that a pair holds, or `None` if it holds none.
fn secret_kind(name: &str, value: &str, is_for_secrets: bool) -> Option<&'static str> {
    let announced = announced_secret(name);
    let kind = announced.map_or("secret", |(kind, _)| kind);
    let is_secret = if is_for_secrets {
        !is_public_name(name)
            && !value.starts_with(['@', '$'])
            && env::is_secret(value, Strength::Password)
    } else {
        match announced {
            Some((_, strength)) => !value.starts_with('$') && env::is_secret(value, strength),
            None => {
                is_random(value)
                    && !is_uuid(value)
                    && !is_public_name(name)
                    && env::is_secret(value, Strength::Secret)
            }
        }
    };
    is_secret.then_some(kind)
}

/// Returns whether the last word of a name is one of [`PUBLIC_NAMES`].
pub(super) fn is_public_name(name: &str) -> bool {
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name).to_ascii_lowercase();
    PUBLIC_NAMES.contains(&last.as_str())
}
