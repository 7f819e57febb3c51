//! Parses the command line of xtask.

use crate::failure::{Result, TaskFailure};

/// The arguments after the name of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskOptions {
    pub(crate) help: bool,
    /// Compile DuckDB from source instead of linking the prebuilt library.
    pub(crate) bundled: bool,
    /// The other arguments, in order.
    pub(crate) rest: Vec<String>,
}

impl TaskOptions {
    /// Separates xtask's own flags from the other arguments before `--`.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut is_own = true;
        for arg in args {
            is_own &= arg != "--";
            match arg.as_str() {
                "--help" | "-h" if is_own => options.help = true,
                "--bundled" if is_own => options.bundled = true,
                _ => options.rest.push(arg),
            }
        }
        options
    }

    /// Takes a flag of the command out of the arguments before `--`. Returns whether it was there.
    pub(crate) fn take_flag(&mut self, flag: &str) -> bool {
        let own = self.rest.iter().position(|arg| arg == "--").unwrap_or(self.rest.len());
        let Some(at) = self.rest[..own].iter().position(|arg| arg == flag) else { return false };
        self.rest.remove(at);
        true
    }

    /// Refuses arguments that the command does not know.
    pub(crate) fn refuse_rest(&self, command: &str) -> Result<()> {
        match self.rest.first() {
            None => Ok(()),
            Some(arg) => Err(TaskFailure::usage(format!(
                "`cargo xtask {command}` does not take `{arg}`; see `cargo xtask {command} --help`"
            ))),
        }
    }
}

/// Returns the arguments of this process, which must be UTF-8.
pub(crate) fn process_arguments() -> Result<Vec<String>> {
    let mut arguments = Vec::new();
    for arg in std::env::args_os().skip(1) {
        let arg = arg.into_string().map_err(|arg| {
            TaskFailure::usage(format!("argument is not UTF-8: {}", arg.display()))
        })?;
        arguments.push(arg);
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(line: &str, help: bool, bundled: bool, rest: &str) {
        let want = TaskOptions { help, bundled, rest: split(rest) };
        assert_eq!(TaskOptions::parse(split(line).into_iter()), want);
    }

    #[test]
    fn own_flags_are_taken_out() {
        check("", false, false, "");
        check("--release --bundled -p x", false, true, "--release -p x");
        check("a --help", true, false, "a");
    }

    #[test]
    fn flags_of_a_command_are_taken_out() {
        let mut options = TaskOptions::parse(split("-p x --full -- --full").into_iter());
        assert!(options.take_flag("--full"));
        assert_eq!(options.rest, split("-p x -- --full"));
        assert!(!options.take_flag("--full"));
    }

    #[test]
    fn what_follows_two_dashes_is_left_alone() {
        check("a -- --help --bundled", false, false, "a -- --help --bundled");
    }
}
