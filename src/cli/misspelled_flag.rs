//! Finds the misspelled flag among arguments that do not parse. A query may begin with a hyphen, so
//! `search --lmit foo` reads `--lmit` as the query and would blame `foo`.

use std::ffi::OsString;

use clap::Command;
use clap::error::ErrorKind;

/// Minimum similarity of a flag that was probably meant.
const MIN_SIMILARITY: f64 = 0.8;

/// Returns the message about the first flag that the command does not have, if a similar one exists.
pub(super) fn describe_misspelled_flag(
    program: &Command,
    arguments: &[OsString],
) -> Option<String> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let command = words.iter().find_map(|word| program.find_subcommand(word))?;
    let of_command = command.get_arguments().chain(program.get_arguments());
    let known: Vec<&str> = of_command.filter_map(clap::Arg::get_long).collect();
    for word in words.iter().take_while(|word| **word != "--") {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let name = flag.split('=').next().unwrap_or(flag);
        if name.is_empty() || known.contains(&name) {
            continue;
        }
        let similar = known.iter().map(|known| (strsim::jaro_winkler(name, known), *known));
        let nearest = similar.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        if nearest.0 >= MIN_SIMILARITY {
            return Some(format!(
                "error: unknown flag '--{name}'; did you mean '--{}'?\n\nFor the flags, run `sessions {} --help`. Put `--` before a query that begins with a hyphen\n",
                nearest.1,
                command.get_name()
            ));
        }
    }
    None
}

/// Returns the error about a flag that `search` does not have.
pub(super) fn describe_unknown_flag(flag: &str) -> clap::Error {
    let message = format!(
        "unknown flag '{flag}'\n\nFor the flags, run `sessions search --help`. Put `--` before a query that begins with a hyphen\n"
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
        assert!(message.contains("'--lmit'; did you mean '--limit'?"), "{message}");
        assert_eq!(describe(&["sessions", "search", "--release", "foo"]), None);
        assert_eq!(describe(&["sessions", "search", "--limit", "x"]), None);
    }
}
