//! Runs programs, and shows their command lines and other lines to the user.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

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
    let line = command_line(&command);
    eprintln!("$ {line}");
    let status = command.status();
    let status = status
        .map_err(|error| TaskFailure::step(format!("`{line}` could not be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(TaskFailure::Program { line, code: status.code() }) }
}

/// Runs a command that prints JSON.
pub(crate) fn read_json(mut command: Command) -> Result<Value> {
    let line = command_line(&command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output
        .map_err(|error| TaskFailure::step(format!("`{line}` could not be started: {error}")))?;
    if !output.status.success() {
        return Err(TaskFailure::Program { line, code: output.status.code() });
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| TaskFailure::step(format!("`{line}` did not print JSON: {error}")))
}

/// Returns a command as the user would type it. Cargo names itself by its whole path.
fn command_line(command: &Command) -> String {
    let program = command.get_program();
    let is_cargo = std::env::var_os("CARGO").is_some_and(|cargo| cargo == program);
    let words: Vec<_> = std::iter::once(if is_cargo { OsStr::new("cargo") } else { program })
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect();
    quote_arguments(words.iter().map(AsRef::as_ref))
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
