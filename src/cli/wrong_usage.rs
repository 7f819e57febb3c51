//! The messages about arguments that do not parse. They say in the same words as all other errors what
//! is wrong, and what to do next.

use std::ffi::OsString;
use std::num::ParseIntError;

use base::shell_word::shell_word;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use schemas::{Provider, nearest};

use super::command_groups::examples_of;
use super::typed_words::describe_unknown_command;

/// Maximum number of values that a message lists.
const MAX_LISTED_VALUES: usize = 20;

/// Returns the message about what clap refused. `None` if the words of clap do.
#[expect(clippy::wildcard_enum_match_arm, reason = "the words of clap do for all other kinds")]
pub(super) fn describe_wrong_usage(
    program: &Command,
    error: &clap::Error,
    arguments: &[OsString],
) -> Option<String> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let mut command = words.iter().find_map(|word| program.find_subcommand(word));
    let mut name = command.map_or("", Command::get_name).to_owned();
    if let Some(below) = command.filter(|command| command.has_subcommands())
        && let Some(inner) = words.iter().find_map(|word| below.find_subcommand(word))
    {
        name = format!("{name} {}", inner.get_name());
        command = Some(inner);
    }
    let (message, hint) = match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = text_of(error, ContextKind::InvalidArg);
            describe_unknown_argument(program, command, &name, &words, word)?
        }
        ErrorKind::MissingRequiredArgument => describe_missing(command?, &name, error)?,
        ErrorKind::InvalidValue => describe_invalid_value(&name, error, &words)?,
        ErrorKind::ValueValidation => describe_refused_value(&name, error)?,
        ErrorKind::ArgumentConflict => describe_conflict(&name, error)?,
        ErrorKind::InvalidSubcommand => {
            let word = text_of(error, ContextKind::InvalidSubcommand)?;
            return Some(describe_unknown_command(program, arguments, word));
        }
        _ => return None,
    };
    Some(format!("error: {message}\n\nhint: {hint}\n"))
}

/// Returns the error about a flag that `search` takes for its query.
pub(super) fn unknown_flag_of_search(flag: &str) -> clap::Error {
    let message = format!(
        "unknown flag {flag}\n\nhint: `sessions search --help` lists the flags. Put `--` before a query that begins with a hyphen\n"
    );
    clap::Error::raw(ErrorKind::UnknownArgument, message)
}

/// Blames the first flag that the command does not have but a similar one of. A query may begin with a
/// hyphen, so `search --lmit foo` reads `--lmit` as the query, and clap blames `foo`.
fn describe_unknown_argument(
    program: &Command,
    command: Option<&Command>,
    name: &str,
    words: &[&str],
    unknown: Option<&str>,
) -> Option<(String, String)> {
    let command = command.unwrap_or(program);
    let of_command = command.get_arguments().chain(program.get_arguments());
    let mut known: Vec<&str> = Vec::new();
    for flag in of_command {
        known.extend(flag.get_long());
        known.extend(flag.get_all_aliases().unwrap_or_default());
    }
    let (line, help) = match name {
        "" => ("sessions".to_owned(), "sessions help --all".to_owned()),
        name => (format!("sessions {name}"), format!("sessions {name} --help")),
    };
    let hint = format!("`{help}` lists the flags");
    for word in words.iter().take_while(|word| **word != "--") {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let flag = flag.split('=').next().unwrap_or(flag);
        if flag.is_empty() || known.contains(&flag) {
            continue;
        }
        if let Some(meant) = nearest(flag, known.iter().copied()) {
            return Some((format!("unknown flag --{flag}; did you mean --{meant}?"), hint));
        }
    }
    let unknown = unknown?;
    if unknown.starts_with('-') {
        return Some((format!("`{line}` has no flag {unknown}"), hint));
    }
    let unknown = shell_word(unknown);
    let has_project = command.get_arguments().any(|known| known.get_long() == Some("project"));
    let hint = if has_project {
        format!("`{line} --project {unknown}` selects a project; `{help}` lists the flags")
    } else {
        format!("`{help}` says what it takes")
    };
    Some((format!("`{line}` does not take {unknown} here"), hint))
}

/// Names what has to be given, with its description.
fn describe_missing(
    command: &Command,
    name: &str,
    error: &clap::Error,
) -> Option<(String, String)> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let described = missing.iter().map(|missing| {
        let argument = command.get_arguments().find(|known| is_written(known, missing));
        match argument.and_then(Arg::get_help) {
            Some(help) => format!("{missing} ({help})"),
            None => missing.clone(),
        }
    });
    let message =
        format!("`sessions {name}` needs {}", described.collect::<Vec<_>>().join(" and "));
    let hint = match examples_of(name.split(' ').next().unwrap_or(name)) {
        Some([example, _]) => format!("for example `{example}`"),
        None => format!("`sessions {name} --help` says more"),
    };
    Some((message, hint))
}

/// Returns whether clap writes the argument like this: `--add <LABEL>` or `<ID>...`.
fn is_written(argument: &Arg, written: &str) -> bool {
    let words = written.split(' ').next().unwrap_or_default();
    let name = argument.get_value_names().and_then(|names| names.first());
    match (argument.get_long(), name) {
        (Some(long), _) => words.strip_prefix("--") == Some(long),
        (None, Some(name)) => words.trim_end_matches('.') == format!("<{name}>"),
        (None, None) => false,
    }
}

/// Names the value, and what is valid.
fn describe_invalid_value(
    command: &str,
    error: &clap::Error,
    words: &[&str],
) -> Option<(String, String)> {
    let argument = text_of(error, ContextKind::InvalidArg)?;
    let value = text_of(error, ContextKind::InvalidValue)?;
    let mut flag = name_of(argument);
    let command = if command.is_empty() { "help" } else { command };
    if flag == "--agent" && words.iter().any(|word| word.starts_with("--provider")) {
        flag = "--provider";
    }
    if value.is_empty() {
        let name = argument.split_once(' ').map_or("", |(_, name)| name);
        let hint = format!("`sessions {command} --help` describes it");
        return Some((format!("{flag} needs a value: `{flag} {name}`"), hint));
    }
    let value = shell_word(value);
    // There are too many agents to list.
    if argument.starts_with("--agent") {
        let agents = Provider::ALL.iter().map(|provider| provider.as_str());
        let meant = nearest(&value, agents).map_or_else(
            || "name one such as claude, codex or gemini".to_owned(),
            |meant| format!("did you mean {meant}?"),
        );
        let message = format!("{flag}: {value} is not an agent; {meant}");
        return Some((message, "`sessions doctor` lists the agents".to_owned()));
    }
    let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else {
        return None;
    };
    if valid.len() > MAX_LISTED_VALUES {
        return None;
    }
    let meant = nearest(&value, valid.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    let message = format!("{flag}: {value} is not valid{meant}");
    Some((message, format!("{flag} takes {}", valid.join(", "))))
}

/// Names the value, and why its parser refused it.
fn describe_refused_value(name: &str, error: &clap::Error) -> Option<(String, String)> {
    let argument = text_of(error, ContextKind::InvalidArg)?;
    let flag = name_of(argument);
    let value = text_of(error, ContextKind::InvalidValue)?;
    let cause = std::error::Error::source(error)?;
    let range = cause.to_string();
    let range = range.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="));
    let message = if let Some((least, most)) = range
        && most.parse() != Ok(u32::MAX)
    {
        format!("{flag}: {} is not a number from {least} to {most}", shell_word(value))
    } else if range.is_some() || cause.is::<ParseIntError>() {
        format!("{flag}: {} is not a whole number of 0 or more", shell_word(value))
    } else if cause.to_string().contains(value) {
        format!("{flag}: {cause}")
    } else {
        format!("{flag}: {} is not valid: {cause}", shell_word(value))
    };
    Some((message, format!("`sessions {name} --help` describes it")))
}

/// Names the two arguments that cannot stand together.
fn describe_conflict(name: &str, error: &clap::Error) -> Option<(String, String)> {
    let argument = text_of(error, ContextKind::InvalidArg)?;
    let Some(ContextValue::String(prior)) = error.get(ContextKind::PriorArg) else { return None };
    let message = if prior == argument {
        format!("{argument} is given twice")
    } else {
        format!("{argument} cannot be given together with {prior}")
    };
    Some((message, format!("`sessions {name} --help` describes the flags")))
}

/// Returns an argument as messages name it: `--sort` of `--sort <SORT>`, `FORMAT` of `[FORMAT]`.
fn name_of(argument: &str) -> &str {
    let name = argument.split(' ').next().unwrap_or(argument);
    name.trim_matches(['[', ']', '<', '>', '.'])
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Args;

    #[test]
    fn messages_name_the_fault_and_what_to_do() {
        for (line, said, hint) in [
            (
                "search --lmit foo bar --x",
                "unknown flag --lmit; did you mean --limit?",
                "search --help",
            ),
            (
                "list --agent pi --sinc 3d",
                "unknown flag --sinc; did you mean --since?",
                "list --help",
            ),
            ("list --frobnicate", "`sessions list` has no flag --frobnicate", "list --help"),
            ("config set", "`sessions config` does not take set here", "config --help"),
            ("list cli", "`sessions list` does not take cli here", "`sessions list --project cli`"),
            ("--frobnicate", "`sessions` has no flag --frobnicate", "`sessions help --all`"),
            ("export foo", "error: FORMAT: 'foo' is not valid", "export --help"),
            ("init foo", "error: SHELL: foo is not valid", "SHELL takes bash"),
            ("label", "`sessions label` needs --add <LABEL> (Label", "`sessions label last --add"),
            (
                "list --sort tokns",
                "--sort: tokns is not valid; did you mean tokens?",
                "recent, oldest",
            ),
            (
                "list --agent claud",
                "--agent: claud is not an agent; did you mean claude?",
                "doctor",
            ),
            ("list --agent", "--agent needs a value: `--agent <AGENT>`", "list --help"),
            ("list --sort", "--sort needs a value: `--sort <SORT>`", "list --help"),
            ("list --limit five", "--limit: five is not a whole number", "list --help"),
            ("list --limit -5", "--limit: -5 is not a whole number of 0 or more", "list --help"),
            ("usage --limit 0", "--limit: 0 is not a number from 1 to 500", "usage --help"),
            ("usage week --by day", "cannot be given together with --by", "usage --help"),
            ("list --limit 3 --limit 4", "--limit <N> is given twice", "list --help"),
            ("serach x", "serach is not a command", "`sessions search`"),
            ("lake compact", "`sessions lake compact` needs <DEST>", "`sessions lake compact /mnt"),
        ] {
            let arguments: Vec<OsString> =
                ["sessions"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let error = Args::command().try_get_matches_from(&arguments).expect_err(line);
            let message = describe_wrong_usage(&Args::command(), &error, &arguments);
            let message = message.unwrap_or_else(|| panic!("{line}: {error}"));
            assert!(message.contains(said) && message.contains(hint), "{line}: {message}");
        }
    }
}
