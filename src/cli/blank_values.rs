//! Removes options with a blank value from the arguments, as MCP does: scripts that pass
//! `--since "$SINCE"` mean with a blank value that the option is absent.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// The command whose blank values mean something: an empty note removes the note.
const EXEMPT_COMMAND: &str = "label";

/// Returns the arguments without options whose value is blank. `arguments` begin with the program.
pub(super) fn remove_blank_options(program: &Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let mut kept = Vec::with_capacity(arguments.len());
    let mut command: Option<&Command> = None;
    let mut rest = arguments.into_iter().peekable();
    kept.extend(rest.next());
    while let Some(argument) = rest.next() {
        let Some(text) = argument.to_str() else {
            kept.push(argument);
            continue;
        };
        if text == "--" || text == EXEMPT_COMMAND && command.is_none() {
            kept.push(argument);
            kept.extend(rest);
            return kept;
        }
        if !text.starts_with('-') {
            command = command.or_else(|| program.find_subcommand(text));
            kept.push(argument);
            continue;
        }

        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let takes_value = find_option(program, command, name)
            .is_some_and(|option| option.get_action().takes_values() && !option.is_required_set());
        if !takes_value {
            kept.push(argument);
        } else if let Some(value) = value {
            if !value.trim().is_empty() {
                kept.push(argument);
            }
        } else if rest.next_if(|value| is_blank(value)).is_none() {
            kept.push(argument);
            // The value, which may look like a command.
            kept.extend(rest.next());
        }
    }
    kept
}

fn is_blank(value: &OsStr) -> bool {
    value.to_str().is_some_and(|value| value.trim().is_empty())
}

/// Returns the option of the command or of the program that is written as `name`.
pub(super) fn find_option<'c>(
    program: &'c Command,
    command: Option<&'c Command>,
    name: &str,
) -> Option<&'c Arg> {
    let is_named = |option: &&Arg| match name.strip_prefix("--") {
        Some(long) => {
            let mut aliases = option.get_all_aliases().into_iter().flatten();
            option.get_long() == Some(long) || aliases.any(|alias| alias == long)
        }
        None => option.get_short().is_some_and(|short| name == format!("-{short}")),
    };
    let of_command = command.and_then(|command| command.get_arguments().find(is_named));
    of_command.or_else(|| program.get_arguments().find(is_named))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Args;

    fn without_blanks(line: &[&str]) -> Vec<String> {
        let arguments = line.iter().map(OsString::from).collect();
        let kept = remove_blank_options(&Args::command(), arguments);
        kept.into_iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn blank_options_are_absent() {
        for line in [
            &["sessions", "list", "--since", "", "--project", " ", "--json"][..],
            &["sessions", "list", "--since=", "--provider", "", "--json"],
        ] {
            assert_eq!(without_blanks(line), ["sessions", "list", "--json"]);
        }
        for line in [
            &["sessions", "search", ""][..],
            &["sessions", "label", "s1", "--note", ""],
            &["sessions", "search", "--json", ""],
            &["sessions", "list", "--project", "search", "--since", "7d"],
            &["sessions", "search", "--", "--since", ""],
        ] {
            assert_eq!(without_blanks(line), line);
        }
    }
}
