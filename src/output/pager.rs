//! Shows output that is longer than the screen in a pager.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// The pager if the user names none: `less` keeps colours, ends at once if all fits, and leaves the
/// text on the screen.
const DEFAULT_PAGER: &str = "less -R";

/// The flags of `less` if the user sets none.
const LESS_FLAGS: &str = "FRX";

/// The pager of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserPager {
    /// The program and its arguments.
    command: String,
    has_less_flags: bool,
}

impl UserPager {
    /// Finds the pager. Returns `None` if the user wants none (`cat`). `read_variable` reads the
    /// environment.
    pub fn find(read_variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let command = read_variable("PAGER").unwrap_or_else(|| DEFAULT_PAGER.to_owned());
        let has_less_flags = read_variable("LESS").is_some();
        let is_wanted = !["", "cat"].contains(&command.trim());
        is_wanted.then_some(Self { command, has_less_flags })
    }

    /// Shows a text and waits until the user leaves the pager. Returns false if the pager cannot be
    /// started.
    pub(super) fn show(&self, text: &str) -> io::Result<bool> {
        let mut words = self.command.split_whitespace();
        let Some(program) = words.next() else { return Ok(false) };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped());
        if !self.has_less_flags {
            command.env("LESS", LESS_FLAGS);
        }
        let Ok(mut child) = command.spawn() else { return Ok(false) };
        if let Some(mut input) = child.stdin.take() {
            // The user may leave the pager before it has read everything.
            let _ = input.write_all(text.as_bytes());
        }
        child.wait()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_chooses_the_pager() {
        let find = |pager: Option<&'static str>| {
            UserPager::find(&|name| pager.filter(|_| name == "PAGER").map(str::to_owned))
        };
        assert_eq!(find(None).expect("less").command, "less -R");
        assert_eq!(find(Some("most -s")).expect("most").command, "most -s");
        assert_eq!(find(Some("cat")), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_pager_shows_nothing() {
        let missing = UserPager { command: "/nowhere/pager".to_owned(), has_less_flags: false };
        assert!(!missing.show("text").expect("no error"));
        let pager = UserPager { command: "true".to_owned(), has_less_flags: false };
        assert!(pager.show(&"text\n".repeat(100_000)).expect("no error"));
    }
}
