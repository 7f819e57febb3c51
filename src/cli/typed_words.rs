//! Words that users type for a command: synonyms of commands, what leads to another command, and
//! misspelled commands.

use std::ffi::OsString;

use clap::Command;
use schemas::nearest;

use super::blank_values::find_option;

/// Words for a command, with what is run for them.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("agents", &["stats", "--by", "agent"]),
    ("cat", &["show"]),
    ("continue", &["resume"]),
    ("cost", &["usage"]),
    ("costs", &["usage"]),
    ("dashboard", &["web"]),
    ("delete", &["forget"]),
    ("exclude", &["hide"]),
    ("follow", &["tail"]),
    ("get", &["show"]),
    ("grep", &["search"]),
    ("history", &["list"]),
    ("ignore", &["hide"]),
    ("import", &["ingest"]),
    ("info", &["show"]),
    ("last", &["show", "last"]),
    ("limits", &["usage", "--limits"]),
    ("log", &["list"]),
    ("logs", &["list"]),
    ("ls", &["list"]),
    ("models", &["stats", "--by", "model"]),
    ("projects", &["stats", "--by", "project"]),
    ("purge", &["forget"]),
    ("quota", &["usage", "--limits"]),
    ("quotas", &["usage", "--limits"]),
    ("read", &["show"]),
    ("remove", &["forget"]),
    ("rm", &["forget"]),
    ("serve", &["web"]),
    ("settings", &["config"]),
    ("spend", &["usage"]),
    ("sql", &["query"]),
    ("today", &["usage", "today"]),
    ("tokens", &["usage"]),
    ("ui", &["web"]),
    ("unhide", &["hide", "--undo"]),
    ("update", &["upgrade"]),
    ("view", &["show"]),
    ("yesterday", &["usage", "yesterday"]),
];

/// Words for what a command does only with flags, with what to do.
const LEADS: &[(&str, &str)] = &[
    ("clean", CLEANING),
    (
        "handover",
        "`sessions resume ID --with AGENT` hands a session over to another agent. Add --print to see the text first",
    ),
    ("login", "There is no account. `sessions push` publishes to a folder or bucket of yours"),
    ("prune", CLEANING),
    (
        "sync",
        "`sessions push DEST` publishes sessions, `sessions pull SOURCE` imports those of others",
    ),
    ("undo", UNDOING),
    ("unforget", UNDOING),
    ("version", "`sessions --version` shows the version"),
    (
        "watch",
        "`sessions tail` follows a session, `sessions ingest --watch` reads logs as they grow",
    ),
];

const UNDOING: &str =
    "`sessions forget --undo ID` brings a session back, `sessions hide --undo PROJECT` a project";

const CLEANING: &str = "`sessions forget` removes sessions, `sessions compact` frees space";

/// Minimum number of characters of a word that is taken for a session id.
const MIN_ID_CHARS: usize = 6;

/// Returns the arguments with the command that a synonym means, and with `COMMAND --help` for
/// `help COMMAND`.
pub(super) fn replace_synonym(program: &Command, mut arguments: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = find_command_word(program, &arguments) else { return arguments };
    let word = arguments.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    if word == "help" {
        let is_command = |next: &OsString| next.to_str().is_some_and(|next| !next.starts_with('-'));
        if arguments.get(at + 1).is_some_and(is_command) {
            arguments.remove(at);
            arguments.insert(at + 1, "--help".into());
            return replace_synonym(program, arguments);
        }
    }
    if let Some((_, command)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == word) {
        arguments.splice(at..=at, command.iter().map(OsString::from));
    }
    arguments
}

/// Returns the position of the word that names the command.
pub(super) fn find_command_word(program: &Command, arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = arguments.get(at)?.to_str()?;
        if !word.starts_with('-') {
            return Some(at);
        }
        let option = find_option(program, None, word);
        at += 1 + usize::from(option.is_some_and(|option| option.get_action().takes_values()));
    }
}

/// Returns the message about a word that is not a command, or not one of the command before it.
pub(super) fn describe_unknown_command(
    program: &Command,
    arguments: &[OsString],
    word: &str,
) -> String {
    let mut typed = arguments.iter().filter_map(|word| word.to_str());
    let parent = typed.find_map(|word| program.find_subcommand(word));
    if let Some(parent) = parent.filter(|parent| parent.has_subcommands()) {
        let name = parent.get_name();
        let below: Vec<&str> = parent.get_subcommands().map(Command::get_name).collect();
        let below = below.join(", ");
        return format!(
            "error: '{word}' is not a command of `sessions {name}`, which has: {below}\n\nhint: `sessions {name} --help` describes it\n"
        );
    }
    let lead = LEADS.iter().find(|(known, _)| *known == word).map(|(_, lead)| (*lead).to_owned());
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let words = commands.map(Command::get_name).chain(SYNONYMS.iter().map(|(synonym, _)| *synonym));
    let meant = nearest(word, words).map(|meant| {
        let synonym = SYNONYMS.iter().find(|(synonym, _)| *synonym == meant);
        let command = synonym.map_or_else(|| meant.to_owned(), |(_, command)| command.join(" "));
        format!("Did you mean `sessions {command}`?")
    });
    let word = base::shell_word::shell_word(word);
    let read = is_like_an_id(&word).then(|| format!("`sessions show {word}` shows a session"));
    let search = || format!("`sessions search {word}` searches for it");
    let hint = lead.or(read).or(meant).unwrap_or_else(search);
    format!(
        "error: {word} is not a command\n\nhint: {hint}\n      `sessions help --all` lists all commands\n"
    )
}

/// Returns whether a word may be the beginning of a session id: of hexadecimal digits and hyphens, with a
/// number among them.
fn is_like_an_id(word: &str) -> bool {
    word.len() >= MIN_ID_CHARS
        && word.contains(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Args;

    fn replaced(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        let words = replace_synonym(&Args::command(), arguments);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_synonym_is_replaced_only_where_the_command_is() {
        for (typed, run) in [
            ("sessions rm 9ae8", "sessions forget 9ae8"),
            ("sessions --store quota quota", "sessions --store quota usage --limits"),
            ("sessions --json cost --by week", "sessions --json usage --by week"),
            ("sessions search delete", "sessions search delete"),
            ("sessions help ls", "sessions list --help"),
            ("sessions help --all", "sessions help --all"),
            ("sessions help", "sessions help"),
            ("sessions", "sessions"),
        ] {
            assert_eq!(replaced(typed), run);
        }
    }

    #[test]
    fn synonyms_run_commands_and_are_none() {
        let program = Args::command();
        for (synonym, command) in SYNONYMS {
            assert!(program.find_subcommand(command[0]).is_some(), "{synonym}");
            assert!(program.find_subcommand(synonym).is_none(), "{synonym}");
        }
    }

    #[test]
    fn a_hint_proposes_what_was_meant() {
        for (word, hint) in [
            ("serach", "`sessions search`"),
            ("delet", "`sessions forget`"),
            ("quoat", "`sessions usage --limits`"),
            ("handover", "`sessions resume ID --with AGENT`"),
            ("hid", "`sessions hide`"),
            ("login", "There is no account"),
            ("prune", "`sessions forget`"),
            ("undo", "`sessions forget --undo ID`"),
            ("8d58fde0", "`sessions show 8d58fde0`"),
            ("frobnicate", "`sessions search frobnicate`"),
        ] {
            let arguments = ["sessions", word].map(OsString::from);
            let message = describe_unknown_command(&Args::command(), &arguments, word);
            assert!(message.contains(hint), "{message}");
        }
    }

    #[test]
    fn a_command_below_another_one_is_looked_for_there() {
        let arguments = ["sessions", "plugin", "pi"].map(OsString::from);
        let message = describe_unknown_command(&Args::command(), &arguments, "pi");
        assert!(message.contains("`sessions plugin`, which has: build"), "{message}");
    }
}
