//! Decides how output looks: whether there is a screen, its size, and whether it shows colours and
//! links.

use std::io::{self, BufWriter, IsTerminal, Write};

use terminal_size::{Height, Width, terminal_size};

/// The width of a screen whose size is unknown.
const DEFAULT_WIDTH: usize = 80;

/// The fewest cells of a screen; a narrower one breaks lines itself.
const MIN_WIDTH: usize = 40;

/// When output has colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// At a terminal, unless the environment refuses them.
    #[default]
    Auto,
    Always,
    Never,
}

/// The destination of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// True if a user reads the output on a screen: stdout is a terminal, or colours are forced.
    pub is_screen: bool,
    pub has_color: bool,
    /// True if the terminal is known to open links.
    pub has_links: bool,
    pub width: usize,
    /// The number of lines; `None` if stdout is not a terminal.
    pub height: Option<usize>,
}

impl Terminal {
    /// Finds out about stdout. `read_variable` reads the environment.
    pub fn detect(choice: ColorChoice, read_variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_forced = is_color_forced(choice, read_variable);
        let has_color = has_color(choice, is_terminal, read_variable);
        let size = terminal_size();
        let columns = read_variable("COLUMNS").and_then(|columns| columns.parse().ok());
        let width = size.map(|(Width(width), _)| usize::from(width)).or(columns);
        let lines = size.map(|(_, Height(height))| usize::from(height));
        Self {
            is_screen: is_terminal || is_forced,
            has_color,
            has_links: is_terminal && has_color && opens_links(read_variable),
            width: width.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH),
            height: lines.filter(|_| is_terminal),
        }
    }
}

/// Returns true if colours are wanted even in a pipe.
fn is_color_forced(choice: ColorChoice, read_variable: &dyn Fn(&str) -> Option<String>) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            read_variable("NO_COLOR").is_none()
                && read_variable("CLICOLOR_FORCE").is_some_and(|value| value != "0")
        }
    }
}

/// Returns true if output has colours. The flag precedes the variables, and `NO_COLOR` the others.
fn has_color(
    choice: ColorChoice,
    is_terminal: bool,
    read_variable: &dyn Fn(&str) -> Option<String>,
) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_refused = read_variable("NO_COLOR").is_some()
                || read_variable("CLICOLOR").is_some_and(|value| value == "0")
                || read_variable("TERM").is_some_and(|term| term == "dumb");
            is_color_forced(choice, read_variable) || is_terminal && !is_refused
        }
    }
}

/// Returns true if the terminal is one that opens links. Terminals cannot be asked, and old ones
/// print the address.
fn opens_links(read_variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let program = read_variable("TERM_PROGRAM").unwrap_or_default();
    let term = read_variable("TERM").unwrap_or_default();
    let marks = ["KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM"];
    ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio"].contains(&program.as_str())
        || ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"].contains(&term.as_str())
        || marks.iter().any(|name| read_variable(name).is_some())
        || read_variable("VTE_VERSION").and_then(|version| version.parse().ok()) >= Some(5000)
}

/// Returns a writer to the terminal. Only the screens and the line editor may use it, because it
/// cleans nothing: what they write are control sequences and text that was cleaned before.
pub(crate) fn screen_writer() -> Box<dyn Write + Send> {
    Box::new(BufWriter::new(io::stdout()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colored(choice: ColorChoice, is_terminal: bool, set: &[(&str, &str)]) -> bool {
        let read = |name: &str| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        has_color(choice, is_terminal, &read)
    }

    #[test]
    fn the_flag_precedes_the_environment() {
        for (choice, is_terminal, set, expected) in [
            (ColorChoice::Auto, true, &[][..], true),
            (ColorChoice::Auto, false, &[], false),
            (ColorChoice::Auto, true, &[("NO_COLOR", "1")], false),
            (ColorChoice::Auto, true, &[("CLICOLOR", "0")], false),
            (ColorChoice::Auto, true, &[("TERM", "dumb")], false),
            (ColorChoice::Auto, false, &[("CLICOLOR_FORCE", "1")], true),
            (ColorChoice::Auto, false, &[("CLICOLOR_FORCE", "0")], false),
            (ColorChoice::Auto, false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
            (ColorChoice::Always, false, &[("NO_COLOR", "1")], true),
            (ColorChoice::Never, true, &[("CLICOLOR_FORCE", "1")], false),
        ] {
            assert_eq!(colored(choice, is_terminal, set), expected, "{choice:?} {set:?}");
        }
    }
}
