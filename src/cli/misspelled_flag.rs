//! Finds the misspelled flag among arguments that do not parse. A query may begin with a hyphen, so
//! `search --lmit foo` reads `--lmit` as the query and would blame `foo`.

use std::ffi::OsString;

use clap::Command;
use clap::error::ErrorKind;
use schemas::nearest;

/// Returns the message about the first flag that the command does not have, if a similar one exists.
pub(super) fn describe_misspelled_flag(
    program: &Command,
    arguments: &[OsString],
) -> Option<String> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let command = words.iter().find_map(|word| program.find_subcommand(word))?;
    let of_command = command.get_arguments().chain(program.get_arguments());
    let mut known: Vec<&str> = Vec::new();
    for flag in of_command {
        known.extend(flag.get_long());
        known.extend(flag.get_all_aliases().unwrap_or_default());
    }
    for word in words.iter().take_while(|word| **word != "--") {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let name = flag.split('=').next().unwrap_or(flag);
        if name.is_empty() || known.contains(&name) {
            continue;
        }
        if let Some(meant) = nearest(name, known.iter().copied()) {
            return Some(format!(
                "error: unknown flag --{name}; did you mean --{meant}?\n\nhint: `sessions {} --help` lists the flags\n",
                command.get_name()
            ));
        }
    }
    None
}

/// Returns the error about a flag that `search` does not have.
pub(super) fn describe_unknown_flag(flag: &str) -> clap::Error {
    let message = format!(
        "unknown flag {flag}\n\nhint: `sessions search --help` lists the flags. Put `--` before a query that begins with a hyphen\n"
    );
    clap::Error::raw(ErrorKind::UnknownArgument, message)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Args;

    #[test]
    fn the_flag_is_blamed() {
        let describe = |line: &[&str]| {
            let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
            describe_misspelled_flag(&Args::command(), &arguments)
        };
        let message = describe(&["sessions", "search", "--lmit", "foo"]).expect("misspelled");
        assert!(message.contains("--lmit; did you mean --limit?"), "{message}");
        let message = describe(&["sessions", "list", "--agent", "pi", "--sinc", "3d"]);
        assert!(message.is_some_and(|message| message.contains("--sinc; did you mean --since?")));
        assert_eq!(describe(&["sessions", "search", "--release", "foo"]), None);
        assert_eq!(describe(&["sessions", "search", "--limit", "x"]), None);
    }
}
