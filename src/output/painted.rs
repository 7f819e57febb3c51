//! Styled text for a terminal. Every piece of text is cleaned before it gets a style, so that text
//! from a log never contains an escape sequence of its own.

use anstyle::{AnsiColor, Color, Style};

use base::sanitize::{clean_text, one_line};

// The colours are those of the terminal's own palette, so that they fit light and dark ones. Plain blue
// is hard to read on many dark palettes, and yellow text on all light ones.

/// Text without a style.
pub(crate) const PLAIN: Style = Style::new();
/// A heading, or a name that matters.
pub(crate) const STRONG: Style = Style::new().bold();
/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The id of a session or an event.
pub(crate) const ID: Style = AnsiColor::Cyan.on_default();
/// The name of an agent.
pub(crate) const AGENT: Style = AnsiColor::Magenta.on_default();
/// The name of a project.
pub(crate) const PROJECT: Style = AnsiColor::BrightBlue.on_default();
/// A prompt of the user.
pub(crate) const PROMPT: Style = AnsiColor::Cyan.on_default().bold();
/// Code in the text of an answer.
pub(crate) const CODE: Style = AnsiColor::Cyan.on_default();
/// A failure, or a removed line.
pub(crate) const FAILED: Style = AnsiColor::Red.on_default();
/// A success, or an added line.
pub(crate) const SUCCEEDED: Style = AnsiColor::Green.on_default();
/// An amount of money.
pub(crate) const COST: Style = AnsiColor::Green.on_default();
/// A warning.
pub(crate) const WARNED: Style = AnsiColor::Yellow.on_default();
/// A match of a search.
pub(crate) const FOUND: Style = Style::new()
    .fg_color(Some(Color::Ansi(AnsiColor::Black)))
    .bg_color(Some(Color::Ansi(AnsiColor::Yellow)))
    .bold();

/// Returns the style of a line of a diff.
pub(crate) fn diff_style(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'-') => FAILED,
        Some(b'+') => SUCCEEDED,
        Some(_) | None => DIM,
    }
}

/// A text with one style.
pub(crate) type StyledText = (Style, String);

/// Text with styles, safe for a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Painted(String);

impl Painted {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates a text without styles.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(clean_text(text))
    }

    /// Appends a text in a style. Line breaks end the style, so that a pager shows each line the same
    /// way.
    pub(crate) fn push(&mut self, style: Style, text: &str) -> &mut Self {
        let text = clean_text(text);
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.0.push('\n');
            }
            if line.is_empty() || style == PLAIN {
                self.0.push_str(line);
            } else {
                self.0.push_str(&format!("{style}{line}{style:#}"));
            }
        }
        self
    }

    /// Appends a text in a style on the same line: its line breaks become spaces.
    pub(crate) fn push_inline(&mut self, style: Style, text: &str) -> &mut Self {
        self.push(style, &one_line(text))
    }

    /// Appends texts on the same line.
    pub(crate) fn push_texts(&mut self, texts: &[StyledText]) -> &mut Self {
        for (style, text) in texts {
            self.push_inline(*style, text);
        }
        self
    }

    /// Appends text that is painted already.
    pub(crate) fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Ends the line.
    pub(crate) fn end_line(&mut self) {
        self.0.push('\n');
    }

    /// Appends a link to a file or an address (OSC 8). A terminal shows `text` and opens `address`.
    pub(crate) fn push_link(&mut self, style: Style, text: &str, address: &str) -> &mut Self {
        let address: String = address.chars().filter(|c| c.is_ascii_graphic()).collect();
        self.0.push_str(&format!("\u{1b}]8;;{address}\u{1b}\\"));
        self.push_inline(style, text);
        self.0.push_str("\u{1b}]8;;\u{1b}\\");
        self
    }

    /// Returns the text with its escape sequences.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Appends lines of cells that [`super::columns`] has aligned.
    pub(super) fn append_aligned(&mut self, lines: &str) {
        self.0.push_str(lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_log_cannot_style_itself() {
        let mut painted = Painted::new();
        painted.push(FAILED, "a\u{1b}[2Jb\nc");
        assert_eq!(painted.as_str(), "\u{1b}[31mab\u{1b}[0m\n\u{1b}[31mc\u{1b}[0m");
        let mut link = Painted::new();
        link.push_link(PLAIN, "x", "file:///a\u{1b}\\b");
        assert_eq!(link.as_str(), "\u{1b}]8;;file:///a\\b\u{1b}\\x\u{1b}]8;;\u{1b}\\");
    }
}
