//! Runs programs, and shows their command lines and other lines to the user.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::failure::{Result, TaskFailure};

/// Prints a line on stdout. It is not an error if the reader has gone away.
pub(crate) fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Returns the arguments as the user would type them in a shell.
pub(crate) fn quote_arguments<'a>(args: impl IntoIterator<Item = &'a str>) -> String {
    args.into_iter().map(quote_argument).collect::<Vec<_>>().join(" ")
}

/// Quotes an argument if a shell would not take it literally.
fn quote_argument(arg: &str) -> String {
    let is_plain = !arg.is_empty()
        && arg.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&byte));
    if is_plain { arg.to_owned() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}

/// Runs a program in the workspace's root, with its output where xtask's goes.
pub(crate) fn run_program(root: &Path, program: &str, args: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(args).current_dir(root);
    run_command(command)
}

/// Runs a command, with its output where xtask's goes.
pub(crate) fn run_command(mut command: Command) -> Result<()> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    let line = quote_arguments(words.iter().map(AsRef::as_ref));
    eprintln!("$ {line}");
    let status = command.status();
    let status = status
        .map_err(|error| TaskFailure::step(format!("`{line}` could not be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(TaskFailure::Program { line, code: status.code() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_when_needed() {
        assert_eq!(quote_arguments(["show", "a b", "it's", ""]), r"show 'a b' 'it'\''s' ''");
        assert_eq!(quote_arguments(["--limit=3", "a.b/c_d"]), "--limit=3 a.b/c_d");
    }
}
