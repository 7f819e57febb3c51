//! Reads from an edit which lines it inserted into a file, and which of its lines were there before.

use ingest::provider::base_of;
use schemas::session::EventRow;
use schemas::{EventType, Provider, ToolKind};

use crate::analyze::Action;
use crate::reply::change::{Edit, LineCounts, PATCH_START, patch_sections};
use crate::reply::event_predicates::is_type;
use crate::reply::file_action::read_file_action;
use crate::reply::file_state::{FileState, KnownText};
use crate::reply::reader_output::read_numbered;
use base::sanitize::clean_text;

/// A line that is in the file after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InsertedLine {
    pub text: String,
    /// Whether the edit inserted the line. Otherwise the line surrounds the change.
    pub is_new: bool,
}

/// The lines of one contiguous part of a file after an edit.
pub(super) type InsertedPart = Vec<InsertedLine>;

/// What an edit did to a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileChange {
    /// The parts of the file that the edit leaves.
    pub parts: Vec<InsertedPart>,
    /// Lines that were in the file before: those that were removed or that surround the change.
    pub before: Vec<String>,
    /// What the result says about the numbers of lines.
    pub counts: Option<LineCounts>,
}

impl FileChange {
    /// Returns the number of lines that the edit added.
    pub(super) fn count_added(&self) -> usize {
        if let Some(counts) = self.counts {
            return counts.added;
        }
        self.parts.iter().flatten().filter(|line| line.is_new).count()
    }

    /// Returns the number of lines that the edit is known to have removed.
    pub(super) fn count_removed(&self) -> usize {
        if let Some(counts) = self.counts {
            return counts.removed;
        }
        let kept = self.parts.iter().flatten().filter(|line| !line.is_new).count();
        self.before.len().saturating_sub(kept)
    }
}

/// Agents that refuse to overwrite a file that the session has not read, so that a write without a
/// read before it creates the file.
const READ_BEFORE_WRITE: &[Provider] = &[Provider::Claude, Provider::OpenCode];

/// What a session knows of a file before an edit.
#[derive(Default)]
pub(super) struct KnownFile {
    state: FileState,
    was_seen: bool,
}

impl KnownFile {
    /// Adds what a call shows of the file that `is_file` recognizes, or does to it.
    pub(super) fn learn(&mut self, action: &Action<'_>, is_file: &dyn Fn(&str) -> bool) {
        let is_read = action.kind == ToolKind::Read && action.result.is_some();
        self.was_seen |= is_read || action.kind == ToolKind::Write;
        if let Some(change) = read_file_action(action, None, is_file) {
            self.state.apply(change, "");
        }
    }

    /// Returns the text of the file if every edit since it was read or written is known.
    fn text(&self) -> Option<String> {
        match &self.state.text {
            KnownText::Whole(text) if self.state.doubts.is_empty() => Some(clean_text(text)),
            KnownText::Whole(_) | KnownText::Nothing | KnownText::Lines(_) | KnownText::Deleted => {
                None
            }
        }
    }
}

/// Returns what an edit did to the file. `is_file` selects the sections of a patch. Nothing is
/// returned for an edit whose text is not in the log.
pub(super) fn read_change(
    action: &Action<'_>,
    is_file: &dyn Fn(&str) -> bool,
    known: &KnownFile,
) -> FileChange {
    if !is_type(action.call, EventType::ToolCall) {
        return FileChange::default();
    }
    let counts = action.result.and_then(|result| LineCounts::of_result(&result.text));
    FileChange { counts, ..read_arguments(action, is_file, known) }
}

/// Returns what the arguments of an edit say about the file.
fn read_arguments(
    action: &Action<'_>,
    is_file: &dyn Fn(&str) -> bool,
    known: &KnownFile,
) -> FileChange {
    let text = clean_text(&action.call.text);
    if let Some((_, patch)) = text.split_once(PATCH_START) {
        return read_patch(patch, is_file);
    }
    // A command that changes a file in another way than by a patch is not read.
    if action.kind == ToolKind::Execute {
        return FileChange::default();
    }
    let Some(mut edit) = Edit::parse(&text) else { return FileChange::default() };
    if action.kind == ToolKind::Write && !creates_file(action.call, action.result, known) {
        let Some(before) = known.text() else { return FileChange::default() };
        edit.removed = before;
    }
    let lines = edit.added.lines().zip(edit.new_lines());
    let part = lines
        .map(|(line, is_new)| InsertedLine { text: line.trim_end().to_owned(), is_new })
        .collect();
    let before = edit.removed.lines().map(|line| line.trim_end().to_owned()).collect();
    FileChange { parts: vec![part], before, counts: None }
}

/// Returns true if a call that writes a whole file created it, as its result or its tool says.
fn creates_file(call: &EventRow, result: Option<&EventRow>, known: &KnownFile) -> bool {
    let result = result.map(|result| clean_text(&result.text).to_lowercase()).unwrap_or_default();
    let beginning = &result[..result.floor_char_boundary(200)];
    if beginning.contains("has been updated") || beginning.contains("overwrote") {
        return false;
    }
    let tool = call.tool_name.as_deref().unwrap_or_default().to_lowercase();
    let says_created = beginning.contains("created") || tool.contains("create");
    says_created || (!known.was_seen && READ_BEFORE_WRITE.contains(&base_of(call.provider)))
}

/// Returns what the sections of a patch for the file do.
fn read_patch(patch: &str, is_file: &dyn Fn(&str) -> bool) -> FileChange {
    let mut change = FileChange::default();
    for section in patch_sections(patch).iter().filter(|section| is_file(section.path)) {
        change.parts.push(InsertedPart::new());
        for line in &section.lines {
            let text = line.get(1..).unwrap_or_default().trim_end().to_owned();
            let is_new = line.starts_with('+');
            if line.starts_with("@@") {
                change.parts.push(InsertedPart::new());
            } else if line.starts_with('-') {
                change.before.push(text);
            } else if is_new || line.starts_with(' ') {
                if !is_new {
                    change.before.push(text.clone());
                }
                if let Some(part) = change.parts.last_mut() {
                    part.push(InsertedLine { text, is_new });
                }
            }
        }
    }
    change.parts.retain(|part| !part.is_empty());
    change
}

/// Returns the lines that a reader shows, without their numbers and the spaces at their ends.
pub(super) fn read_lines(text: &str) -> Vec<String> {
    let numbered = read_numbered(text);
    if numbered.is_empty() {
        return text.lines().map(|line| line.trim_end().to_owned()).collect();
    }
    numbered.values().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::pair_calls;

    fn rows(tool: &str, text: &str, result: &str) -> Vec<EventRow> {
        let call = EventRow {
            session_id: "s".to_owned(),
            event_type: EventType::ToolCall,
            tool_name: Some(tool.to_owned()),
            tool_call_id: Some("c".to_owned()),
            text: text.to_owned(),
            provider: Provider::Claude,
            ..EventRow::default()
        };
        let answer = EventRow {
            event_index: 1,
            event_type: EventType::ToolResult,
            text: result.to_owned(),
            ..call.clone()
        };
        vec![call, answer]
    }

    /// Returns the lines after an edit, new ones with a `+`.
    fn after(tool: &str, text: &str, result: &str, known: &KnownFile) -> Vec<String> {
        let rows = rows(tool, text, result);
        let actions = pair_calls(&rows);
        let change = read_change(&actions[0], &|path| path == "a.rs", known);
        let lines = change.parts.into_iter().flatten();
        lines.map(|line| format!("{}{}", if line.is_new { "+" } else { " " }, line.text)).collect()
    }

    #[test]
    fn only_what_an_edit_adds_is_new() {
        let none = KnownFile::default();
        assert_eq!(
            after("Edit", "file_path: a.rs\nold_string: a\nb\nnew_string: a\nx  \nb", "", &none),
            [" a", "+x", " b"]
        );
        let patch = "*** Begin Patch\n*** Update File: b.rs\n+no\n*** Update File: a.rs\n@@\n a\n-b\n+c\n*** End Patch";
        assert_eq!(after("apply_patch", patch, "", &none), [" a", "+c"]);
        assert!(after("Read", "file_path: a.rs", "", &none).is_empty());
    }

    /// Returns the numbers of added and removed lines of the last call.
    fn counts(calls: &[(&str, &str, &str)]) -> (usize, usize) {
        let mut known = KnownFile::default();
        let mut counted = (0, 0);
        for (tool, text, result) in calls {
            let rows = rows(tool, text, result);
            let actions = pair_calls(&rows);
            let change = read_change(&actions[0], &|path| path == "a.rs", &known);
            known.learn(&actions[0], &|path| path == "a.rs");
            counted = (change.count_added(), change.count_removed());
        }
        counted
    }

    #[test]
    fn lines_are_counted_as_a_diff_counts_them() {
        let repeated =
            "file_path: a.rs\nold_string: f(\n  a,\n)\nnew_string: f(\n  a,\n)\n\ng(\n  a,\n)";
        assert_eq!(counts(&[("Edit", repeated, "")]), (4, 0));
        // The result knows more than the arguments.
        let everywhere = "replace_all: true\nfile_path: a.rs\nold_string: a\nnew_string: b";
        let result = "All occurrences were replaced.\n(3 lines added, 3 removed)";
        assert_eq!(counts(&[("Edit", everywhere, result)]), (3, 3));
        let write = "file_path: a.rs\ncontent: only\nb";
        let updated = "The file a.rs has been updated.";
        assert_eq!(
            counts(&[("Write", write, &format!("{updated}\n(1 lines added, 3 removed)"))]),
            (1, 3)
        );
        // What was written or read before is replaced.
        let first =
            ("Write", "file_path: a.rs\ncontent: a\nb\nb\nc", "File created successfully at: a.rs");
        let edit = ("Edit", "file_path: a.rs\nold_string: a\nnew_string: x\ny", updated);
        assert_eq!(counts(&[first, ("Write", write, updated)]), (1, 3));
        assert_eq!(counts(&[first, edit, ("Write", write, updated)]), (1, 4));
    }

    #[test]
    fn a_write_is_new_only_where_the_file_was_known() {
        let write = "file_path: a.rs\ncontent: a\nb";
        let none = KnownFile::default();
        assert_eq!(
            after("Write", write, "File created successfully at: a.rs", &none),
            ["+a", "+b"]
        );
        let updated = "The file a.rs has been updated.";
        assert!(after("Write", write, updated, &none).is_empty());
        let read = |call: &str| {
            let rows = rows("Read", call, "     1→a\n     2→c");
            let mut known = KnownFile::default();
            known.learn(&pair_calls(&rows)[0], &|path| path == "a.rs");
            known
        };
        assert_eq!(after("Write", write, updated, &read("file_path: a.rs")), [" a", "+b"]);
        assert!(after("Write", write, updated, &read("file_path: a.rs\nlimit: 2")).is_empty());
    }

    #[test]
    fn a_number_is_removed_if_every_line_has_one() {
        assert_eq!(read_lines("     1→a  \n     2→404: b"), ["a", "404: b"]);
        assert_eq!(read_lines("errors:\n404: not found "), ["errors:", "404: not found"]);
    }
}
