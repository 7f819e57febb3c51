//! The edit of a call as removed and added lines, for a ```diff block.
//!
//! ```text
//! - let budget = 3;
//! + let budget = retries.len();
//! ```

use std::fmt::Write as _;

use schemas::ToolKind;
use schemas::tool::event::Event;

use super::transcript::truncate_chars;
use tools::{Edit, EditSide};

/// The beginning of a patch as Codex writes it.
const PATCH_START: &str = "*** Begin Patch";

/// A line of a diff.
#[derive(Debug, PartialEq, Eq)]
enum DiffLine {
    Removed(String),
    Added(String),
    Same(String),
    /// The name of a file or a position in it.
    Place(String),
}

/// The edit that a call makes.
#[derive(Debug)]
pub(super) struct CallDiff {
    lines: Vec<DiffLine>,
    lines_omitted: usize,
}

impl CallDiff {
    /// Reads the edit in the arguments of a call, at most `max_lines` lines of at most `max_chars`
    /// characters. `None` if it is not an edit in a known form.
    pub(super) fn of_call(call: &Event, max_lines: usize, max_chars: usize) -> Option<Self> {
        let text = call.text.as_deref()?;
        let has_patch = text.contains(PATCH_START);
        if !has_patch && call.tool_kind != Some(ToolKind::Edit) {
            return None;
        }
        let mut lines =
            if has_patch { patch_lines(text, max_chars) } else { replaced_lines(text, max_chars)? };
        if lines.is_empty() {
            return None;
        }
        let lines_omitted = lines.len().saturating_sub(max_lines);
        lines.truncate(max_lines);
        Some(Self { lines, lines_omitted })
    }

    /// Returns the number of lines that are not shown.
    pub(super) fn lines_omitted(&self) -> usize {
        self.lines_omitted
    }

    /// Renders the lines as the text of a ```diff block.
    pub(super) fn to_text(&self) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let (sign, text) = match line {
                DiffLine::Removed(text) => ("-", text),
                DiffLine::Added(text) => ("+", text),
                DiffLine::Same(text) => (" ", text),
                DiffLine::Place(text) => ("", text),
            };
            let _ = writeln!(out, "{sign}{text}");
        }
        out
    }
}

/// Returns the lines of a patch, at most `max_chars` characters of each.
fn patch_lines(text: &str, max_chars: usize) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    let patch = text.split_once(PATCH_START).map_or("", |(_, patch)| patch);
    for line in patch.lines().skip(1) {
        if line.starts_with("*** End Patch") {
            break;
        }
        let cut = |text: &str| truncate_chars(text, max_chars).0;
        lines.push(match line.split_at_checked(1) {
            Some(("-", text)) => DiffLine::Removed(cut(text)),
            Some(("+", text)) => DiffLine::Added(cut(text)),
            Some((" ", text)) => DiffLine::Same(cut(text)),
            Some(_) => DiffLine::Place(cut(line)),
            None => DiffLine::Same(String::new()),
        });
    }
    lines
}

/// Returns the lines that a call replaces with others, at most `max_chars` characters of each.
fn replaced_lines(text: &str, max_chars: usize) -> Option<Vec<DiffLine>> {
    let edit = Edit::parse(text)?;
    let lines = edit.changed_lines().into_iter().map(|(side, line)| {
        let line = truncate_chars(line, max_chars).0;
        match side {
            EditSide::Removed => DiffLine::Removed(line),
            EditSide::Added => DiffLine::Added(line),
        }
    });
    Some(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_keeps_its_lines() {
        let text = "input: *** Begin Patch\n*** Update File: a.rs\n@@ fn a\n same\n-old\n+new\n*** End Patch\nrest";
        let lines = patch_lines(text, 2000);
        let diff = CallDiff { lines, lines_omitted: 0 };
        assert_eq!(diff.to_text(), "*** Update File: a.rs\n@@ fn a\n same\n-old\n+new\n");
    }
}
