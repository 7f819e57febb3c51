//! Runs programs, and shows their command lines and other lines to the user.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};

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

    #[test]
    fn arguments_are_quoted_when_needed() {
        assert_eq!(typed(["show", "a b", "it's", ""]), r"show 'a b' 'it'\''s' ''");
        assert_eq!(typed(["--limit=3", "a.b/c_d"]), "--limit=3 a.b/c_d");
    }
}
