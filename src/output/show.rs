//! The trait of values that have a text for a terminal.

use std::fmt::Write as _;

/// Text for a terminal. Text from logs is already cleaned.
pub trait Show {
    fn to_text(&self) -> String;
}

/// Indents every line of a text.
pub(super) fn indent_lines(text: &str, by: &str) -> String {
    let mut out = String::new();
    for line in text.trim_end().lines() {
        let _ = writeln!(out, "{by}{line}");
    }
    out
}
