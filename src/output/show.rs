//! The trait of values that are shown to users.

use std::fmt::Write as _;

use super::layout::Layout;
use super::painted::Painted;

/// A value that is shown to users. Text from logs is already cleaned.
pub trait Show {
    /// Formats the value for a pipe or a file: whole ids and times, nothing cut, no styles.
    fn to_text(&self) -> String;

    /// Formats the value for a screen.
    fn paint(&self, _: &Layout) -> Painted {
        Painted::from_text(&self.to_text())
    }
}

/// Returns the note on an event or a turn of a branch that a rewind abandoned.
pub(super) const fn abandoned_note(is_abandoned: bool) -> &'static str {
    if is_abandoned { "  abandoned" } else { "" }
}

/// Indents every line of a text.
pub(super) fn indent_lines(text: &str, by: &str) -> String {
    let mut out = String::new();
    for line in text.trim_end().lines() {
        let _ = writeln!(out, "{by}{line}");
    }
    out
}
