//! The edit of a call as removed and added lines, with the words that differ between them.
//!
//! ```text
//! - let budget = 3;
//! + let budget = retries.len();
//! ```

use std::fmt::Write as _;

use schemas::ToolKind;
use schemas::tool::event::Event;

use super::text::escape_html;
use super::transcript::truncate_chars;
use crate::tools::{Edit, EditSide};

/// Maximum number of lines shown of an edit.
const MAX_LINES: usize = 400;

/// Maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 2000;

/// Maximum product of the word counts of two lines that are compared word by word.
const MAX_WORD_PAIRS: usize = 40_000;

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
    /// Reads the edit in the arguments of a call. `None` if it is not an edit in a known form.
    pub(super) fn of_call(call: &Event) -> Option<Self> {
        let text = call.text.as_deref()?;
        let has_patch = text.contains(PATCH_START);
        if !has_patch && call.tool_kind != Some(ToolKind::Edit) {
            return None;
        }
        let mut lines = if has_patch { patch_lines(text) } else { replaced_lines(text)? };
        if lines.is_empty() {
            return None;
        }
        let lines_omitted = lines.len().saturating_sub(MAX_LINES);
        lines.truncate(MAX_LINES);
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

    /// Renders the lines as HTML. Words that differ between a removed line and the added one in its
    /// place are marked.
    pub(super) fn to_html(&self) -> String {
        let mut out = String::from("<pre class=\"diff\">");
        let mut rest = self.lines.as_slice();
        while let Some(first) = rest.first() {
            match first {
                DiffLine::Same(text) => {
                    let _ = write!(out, "<span>  {}\n</span>", escape_html(text));
                    rest = &rest[1..];
                }
                DiffLine::Place(text) => {
                    let _ = write!(out, "<span class=\"at\">{}\n</span>", escape_html(text));
                    rest = &rest[1..];
                }
                DiffLine::Removed(_) | DiffLine::Added(_) => {
                    let (removed, after) = take_side(rest, EditSide::Removed);
                    let (added, after) = take_side(after, EditSide::Added);
                    append_change(&mut out, &removed, &added);
                    rest = after;
                }
            }
        }
        out.push_str("</pre>\n");
        out
    }
}

/// Returns the lines of a patch.
fn patch_lines(text: &str) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    let patch = text.split_once(PATCH_START).map_or("", |(_, patch)| patch);
    for line in patch.lines().skip(1) {
        if line.starts_with("*** End Patch") {
            break;
        }
        let cut = |text: &str| truncate_chars(text, MAX_LINE_CHARS).0;
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

/// Returns the lines that a call replaces with others.
fn replaced_lines(text: &str) -> Option<Vec<DiffLine>> {
    let edit = Edit::parse(text)?;
    let lines = edit.changed_lines().into_iter().map(|(side, line)| {
        let line = truncate_chars(line, MAX_LINE_CHARS).0;
        match side {
            EditSide::Removed => DiffLine::Removed(line),
            EditSide::Added => DiffLine::Added(line),
        }
    });
    Some(lines.collect())
}

/// Returns the lines of one side at the beginning of `lines`, and the lines after them.
fn take_side(lines: &[DiffLine], side: EditSide) -> (Vec<&str>, &[DiffLine]) {
    let mut taken = Vec::new();
    for line in lines {
        match (line, side) {
            (DiffLine::Removed(text), EditSide::Removed)
            | (DiffLine::Added(text), EditSide::Added) => taken.push(text.as_str()),
            (
                DiffLine::Removed(_) | DiffLine::Added(_) | DiffLine::Same(_) | DiffLine::Place(_),
                _,
            ) => break,
        }
    }
    let rest = lines.get(taken.len()..).unwrap_or_default();
    (taken, rest)
}

/// Appends removed lines and the lines that replace them.
fn append_change(out: &mut String, removed: &[&str], added: &[&str]) {
    let mut removed_html: Vec<String> = removed.iter().map(|line| escape_html(line)).collect();
    let mut added_html: Vec<String> = added.iter().map(|line| escape_html(line)).collect();
    for (at, (old, new)) in removed.iter().zip(added).enumerate() {
        if let Some((old, new)) = mark_words(old, new) {
            removed_html[at] = old;
            added_html[at] = new;
        }
    }
    for line in removed_html {
        let _ = write!(out, "<span class=\"del\">- {line}\n</span>");
    }
    for line in added_html {
        let _ = write!(out, "<span class=\"add\">+ {line}\n</span>");
    }
}

/// Returns two lines as HTML with the words marked that only one of them has. `None` if they are too
/// long, or have too little in common for marks to help.
fn mark_words(old: &str, new: &str) -> Option<(String, String)> {
    let old_words = split_words(old);
    let new_words = split_words(new);
    if old_words.len() * new_words.len() > MAX_WORD_PAIRS {
        return None;
    }
    let (old_common, new_common) = common_words(&old_words, &new_words);
    let shared: usize = old_words
        .iter()
        .zip(&old_common)
        .filter(|(word, is_common)| **is_common && !word.trim().is_empty())
        .map(|(word, _)| word.len())
        .sum();
    if shared * 4 < old.trim().len().min(new.trim().len()) {
        return None;
    }
    Some((mark_line(&old_words, &old_common), mark_line(&new_words, &new_common)))
}

/// Splits a line into words, spaces and single other characters.
fn split_words(line: &str) -> Vec<&str> {
    let class = |char: char| match char {
        char if char.is_alphanumeric() || char == '_' => 0,
        char if char.is_whitespace() => 1,
        _ => 2,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut previous = None;
    for (at, char) in line.char_indices() {
        let kind = class(char);
        if previous.is_some_and(|previous| previous != kind || kind == 2) {
            words.push(&line[start..at]);
            start = at;
        }
        previous = Some(kind);
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

/// Returns which words of each line belong to the longest sequence that both have.
fn common_words(old: &[&str], new: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let width = new.len() + 1;
    let mut length = vec![0_u32; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            length[i * width + j] = if a == b {
                length[(i + 1) * width + j + 1] + 1
            } else {
                length[(i + 1) * width + j].max(length[i * width + j + 1])
            };
        }
    }

    let mut old_common = vec![false; old.len()];
    let mut new_common = vec![false; new.len()];
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            old_common[i] = true;
            new_common[j] = true;
            i += 1;
            j += 1;
        } else if length[(i + 1) * width + j] >= length[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    (old_common, new_common)
}

/// Renders the words of a line, with those that are not common marked.
fn mark_line(words: &[&str], is_common: &[bool]) -> String {
    let mut out = String::new();
    let mut is_marked = false;
    for (word, is_common) in words.iter().zip(is_common) {
        if *is_common == is_marked {
            out.push_str(if is_marked { "</mark>" } else { "<mark>" });
            is_marked = !is_marked;
        }
        out.push_str(&escape_html(word));
    }
    if is_marked {
        out.push_str("</mark>");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_are_marked_and_nothing_becomes_markup() {
        let (old, new) = mark_words("let a = <b>old</b>;", "let a = <b>new</b>;").expect("alike");
        assert_eq!(old, "let a = &lt;b&gt;<mark>old</mark>&lt;/b&gt;;");
        assert_eq!(new, "let a = &lt;b&gt;<mark>new</mark>&lt;/b&gt;;");
        assert_eq!(mark_words("nothing here", "is alike there"), None);
        assert_eq!(split_words("a_b  (c)"), ["a_b", "  ", "(", "c", ")"]);
        assert!(split_words("").is_empty());
    }

    #[test]
    fn a_patch_keeps_its_lines() {
        let text = "input: *** Begin Patch\n*** Update File: a.rs\n@@ fn a\n same\n-old\n+new\n*** End Patch\nrest";
        let lines = patch_lines(text);
        let diff = CallDiff { lines, lines_omitted: 0 };
        assert_eq!(diff.to_text(), "*** Update File: a.rs\n@@ fn a\n same\n-old\n+new\n");
        let html = diff.to_html();
        assert!(html.contains("<span class=\"del\">- old\n</span>"), "{html}");
        assert!(html.contains("<span class=\"at\">@@ fn a\n</span>"), "{html}");
    }
}
