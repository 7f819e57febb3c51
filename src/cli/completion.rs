//! Completes a typed command line: commands and flags, and values from the store with their titles.
//!
//! Values come from logs, so they are not words of a shell: [`super::commands::init`] has every shell
//! quote them, or quotes them for it.

use std::any::TypeId;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};
use ingest::text::sanitize::clean;
use schemas::client::Client;
use schemas::tool::query::QueryFormat;
use schemas::{ExportFormat, ExportTable, Provider};

use super::commands::usage::PERIODS;
use super::typed_words::replace_synonym;
use store::{Store, StoredSession};

/// The most sessions that are offered.
const MAX_SESSIONS: usize = 50;

/// The most characters of a title next to an id.
const MAX_TITLE_CHARS: usize = 60;

/// A word that can be the last one of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCandidate {
    /// The word, not quoted.
    pub(super) value: String,
    pub(super) description: Option<String>,
}

/// Returns the words that can complete the last one of a typed command line. Each is a whole word
/// without invisible characters, and none is taken for a flag that it is not.
pub(super) fn complete_line(
    program: Command,
    store: &Path,
    words: Vec<OsString>,
) -> std::io::Result<Vec<ShellCandidate>> {
    let mut candidates = match complete_qualifier(store, &words) {
        Some(values) => values
            .into_iter()
            .map(|value| ShellCandidate { value, description: None })
            .collect::<Vec<_>>(),
        None => complete_argument(program, store, words)?,
    };
    let mut seen = HashSet::new();
    candidates
        .retain(|candidate| is_visible(&candidate.value) && seen.insert(candidate.value.clone()));
    Ok(candidates)
}

/// Returns true if every character of a value can be seen.
fn is_visible(value: &str) -> bool {
    !value.contains(char::is_control) && clean(value) == value
}

/// Returns the commands, flags and values that can complete the last word.
fn complete_argument(
    program: Command,
    store: &Path,
    words: Vec<OsString>,
) -> std::io::Result<Vec<ShellCandidate>> {
    let words = replace_typed_synonym(&program, words);
    let mut program = with_values(program, store);
    let typed = words.last().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let index = words.len().saturating_sub(1);
    let found = complete(&mut program, words, index, None)?;
    let mut candidates = Vec::new();
    for found in found.iter().filter(|found| !found.is_hide_set()) {
        let value = found.get_value().to_string_lossy().into_owned();
        // Flags have an id.
        if found.get_id().is_none() && !is_value(&value, &typed) {
            continue;
        }
        let description =
            found.get_help().map(|help| help.to_string().replace(char::is_control, " "));
        candidates.push(ShellCandidate { value, description });
    }
    // Flags come when a hyphen is typed, or if there is nothing else.
    let is_flag = |candidate: &ShellCandidate| candidate.value.starts_with('-');
    if !typed.starts_with('-') && !candidates.iter().all(is_flag) {
        candidates.retain(|candidate| !is_flag(candidate));
    }
    Ok(candidates)
}

/// Replaces a synonym of a command before the last word, which is still typed.
fn replace_typed_synonym(program: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(typed) = words.pop() else { return words };
    let mut words = replace_synonym(program, words);
    words.push(typed);
    words
}

/// Returns true if a completed value is not taken for a flag: it does not begin with a hyphen, or the
/// flag is typed before it, as in `--project=pier` and `-ppier`.
fn is_value(value: &str, typed: &str) -> bool {
    match typed.split_once('=') {
        Some((flag, _)) if flag.starts_with('-') => value.starts_with(&format!("{flag}=")),
        _ if typed.starts_with('-') && !typed.starts_with("--") && typed.len() > 1 => true,
        _ => !value.starts_with('-'),
    }
}

/// Adds the values of the arguments of a command and its subcommands.
fn with_values(command: Command, store: &Path) -> Command {
    let command = command.mut_args(|argument| with_argument_values(argument, store));
    command.mut_subcommands(|subcommand| with_values(subcommand, store))
}

/// Adds the values of an argument: by its type if it has fixed names, otherwise by its own name. The
/// values of an argument of a tool are known to clap.
fn with_argument_values(argument: Arg, store: &Path) -> Arg {
    if let Some(names) = fixed_names(&argument) {
        return argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
            let typed = typed.to_string_lossy();
            let known = names.iter().filter(|name| name.starts_with(&*typed));
            known.map(CompletionCandidate::new).collect()
        }));
    }
    let store = store.to_owned();
    match argument.get_id().as_str() {
        "session_id" | "session_ids" | "why_masked" => {
            argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
                complete_session(&store, &typed.to_string_lossy())
            }))
        }
        "project" => argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
            let names =
                find_names(&store, &typed.to_string_lossy(), |row| row.origin.project.clone());
            names.into_iter().map(CompletionCandidate::new).collect()
        })),
        "period" => argument.add(ArgValueCompleter::new(|typed: &OsStr| {
            let typed = typed.to_string_lossy();
            let known = PERIODS.iter().filter(|period| period.starts_with(&*typed));
            known.map(CompletionCandidate::new).collect()
        })),
        _ => argument,
    }
}

/// Returns the names of the values of an argument whose type has a fixed number of them.
fn fixed_names(argument: &Arg) -> Option<&'static [&'static str]> {
    let known: [(TypeId, &'static [&'static str]); 5] = [
        (TypeId::of::<Client>(), Client::NAMES),
        (TypeId::of::<ExportFormat>(), ExportFormat::NAMES),
        (TypeId::of::<ExportTable>(), ExportTable::NAMES),
        (TypeId::of::<Provider>(), Provider::NAMES),
        (TypeId::of::<QueryFormat>(), QueryFormat::NAMES),
    ];
    let own = argument.get_value_parser().type_id();
    known.into_iter().find(|(id, _)| own == *id).map(|(_, names)| names)
}

/// Returns the conversations of the store, the newest first. A store that cannot be read has none: a
/// shell has no place for an error.
fn newest_sessions(store: &Path) -> Vec<StoredSession> {
    let Ok(snapshot) = Store::new(PathBuf::from(store)).take_lazy_snapshot() else {
        return Vec::new();
    };
    let mut rows: Vec<_> = snapshot.sessions().iter().filter(|row| row.is_conversation).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ended_at));
    rows.into_iter().cloned().collect()
}

/// Returns the ids that begin with the typed text, with their titles.
fn complete_session(store: &Path, typed: &str) -> Vec<CompletionCandidate> {
    let mut found = Vec::new();
    for name in ["current", "last"].iter().filter(|name| name.starts_with(typed)) {
        found.push(CompletionCandidate::new(name).display_order(Some(0)));
    }
    let rows = newest_sessions(store);
    let own = rows.iter().filter(|row| row.session_id.starts_with(typed)).take(MAX_SESSIONS);
    for (order, row) in own.enumerate() {
        let words = row.title.as_deref().unwrap_or_default().split_whitespace();
        let title: String =
            words.collect::<Vec<_>>().join(" ").chars().take(MAX_TITLE_CHARS).collect();
        let help = if title.is_empty() { None } else { Some(title.into()) };
        let candidate = CompletionCandidate::new(&row.session_id).help(help);
        found.push(candidate.display_order(Some(order + 1)));
    }
    found
}

/// Returns the names of sessions that begin with the typed text, each once.
fn find_names(
    store: &Path,
    typed: &str,
    name: impl Fn(&StoredSession) -> Option<String>,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let rows = newest_sessions(store);
    let names = rows.iter().filter_map(name);
    names.filter(|name| name.starts_with(typed) && seen.insert(name.clone())).collect()
}

/// Returns what completes a qualifier of a query, such as `model:op` or `-project:"har`; `None` if the
/// last word is not one.
fn complete_qualifier(store: &Path, words: &[OsString]) -> Option<Vec<String>> {
    if words.get(1)? != "search" || words.len() < 3 {
        return None;
    }
    let typed = words.last()?.to_string_lossy();
    let (name, value) = typed.split_once(':')?;
    let value = value.strip_prefix('"').unwrap_or(value);
    let values = match name.trim_start_matches('-') {
        "model" => find_names(store, value, |row| row.row().ok()?.model.clone()),
        "project" => find_names(store, value, |row| row.origin.project.clone()),
        "branch" => find_names(store, value, |row| row.row().ok()?.git_branch.clone()),
        "agent" | "provider" => {
            find_names(store, value, |row| Some(row.provider.as_str().to_owned()))
        }
        _ => return None,
    };
    Some(values.iter().map(|value| format!("{name}:{}", quote_value(value))).collect())
}

/// Quotes the value of a qualifier by the rules of queries if it has anything but letters, digits and
/// a few other characters.
fn quote_value(value: &str) -> String {
    if value.chars().all(|c| c.is_alphanumeric() || "-_./:@+~".contains(c)) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
}
