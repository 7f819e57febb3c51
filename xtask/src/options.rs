//! Parses the command line of xtask, writes to stdout and runs programs.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};

/// The arguments after the name of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) help: bool,
    /// Compile DuckDB from source instead of linking the prebuilt library.
    pub(crate) bundled: bool,
    /// The other arguments, in order.
    pub(crate) rest: Vec<String>,
}

impl Options {
    /// Separates xtask's own flags from the other arguments before `--`.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut own = true;
        for arg in args {
            own &= arg != "--";
            match arg.as_str() {
                "--help" | "-h" if own => options.help = true,
                "--bundled" if own => options.bundled = true,
                _ => options.rest.push(arg),
            }
        }
        options
    }

    /// Refuses arguments that the command does not know.
    pub(crate) fn no_more(&self, command: &str) -> Result<()> {
        match self.rest.first() {
            None => Ok(()),
            Some(arg) => Err(Failure::usage(format!(
                "`cargo xtask {command}` does not take `{arg}`; see `cargo xtask {command} --help`"
            ))),
        }
    }
}

/// Returns the arguments of this process, which must be UTF-8.
pub(crate) fn arguments() -> Result<Vec<String>> {
    let valid = |arg: OsString| {
        arg.into_string()
            .map_err(|arg| Failure::usage(format!("argument is not UTF-8: {}", arg.display())))
    };
    std::env::args_os().skip(1).map(valid).collect()
}

/// Prints a line on stdout. It is not an error if the reader has gone away.
pub(crate) fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Returns the arguments as the user would type them in a shell.
pub(crate) fn typed<'a>(args: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&byte);
    let quote = |arg: &str| {
        if !arg.is_empty() && arg.bytes().all(plain) {
            arg.to_owned()
        } else {
            format!("'{}'", arg.replace('\'', r"'\''"))
        }
    };
    args.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Runs a program in the workspace's root, with its output where xtask's goes.
pub(crate) fn step(root: &Path, program: &str, args: &[&str]) -> Result<()> {
    let line = typed(std::iter::once(program).chain(args.iter().copied()));
    eprintln!("$ {line}");
    let status = Command::new(program).args(args).current_dir(root).status();
    let status =
        status.map_err(|error| Failure::step(format!("`{line}` could not be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::Program { line, code: status.code() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, help: bool, bundled: bool, rest: &str) {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let want = Options { help, bundled, rest: split(rest) };
        assert_eq!(Options::parse(split(line).into_iter()), want);
    }

    #[test]
    fn own_flags_are_taken_out() {
        check("", false, false, "");
        check("--release --bundled -p x", false, true, "--release -p x");
        check("a --help", true, false, "a");
    }

    #[test]
    fn what_follows_two_dashes_is_left_alone() {
        check("a -- --help --bundled", false, false, "a -- --help --bundled");
    }

    #[test]
    fn arguments_are_quoted_when_needed() {
        assert_eq!(typed(["show", "a b", "it's", ""]), r"show 'a b' 'it'\''s' ''");
        assert_eq!(typed(["--limit=3", "a.b/c_d"]), "--limit=3 a.b/c_d");
    }
}
