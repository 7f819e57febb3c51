//! Reads from a call what it shows of a file, or does to it.

use ingest::provider::call_arguments::CallArguments;
use schemas::{EventType, ToolKind};
use serde_json::Value;

use super::change::{ADDED, Edit, PATCH_START, REMOVED, SectionKind, patch_sections};
use super::event_predicates::is_type;
use super::file_state::{FileAction, Replacement};
use super::reader_output::{read_numbered, shows_part};
use crate::analyze::Action;

/// Number of lines at which readers end without saying so.
const READER_LIMIT_LINES: usize = 2000;

/// Returns what a call does with the file that `is_file` recognizes. `arguments` are those in the log;
/// `None` if they were not found there. Returns `None` if the call says nothing about the text of the
/// file.
pub(crate) fn read_file_action(
    action: &Action<'_>,
    arguments: Option<&CallArguments>,
    is_file: &dyn Fn(&str) -> bool,
) -> Option<FileAction> {
    if !action.is_edit() {
        let result = action.result.filter(|_| action.kind == ToolKind::Read)?;
        return read_shown(&result.text, &action.call.text);
    }
    if !is_type(action.call, EventType::ToolCall) {
        return Some(FileAction::Unknown);
    }
    let text = &action.call.text;
    let patch = match arguments {
        Some(arguments) => find_patch(&arguments.object),
        None => text.contains(PATCH_START).then_some(text.as_str()),
    };
    if let Some(patch) = patch {
        return read_patch(patch, is_file);
    }
    if action.kind == ToolKind::Execute {
        return Some(FileAction::Unknown);
    }
    Some(match arguments {
        Some(arguments) => read_object(&arguments.object),
        None => read_text(text, action.kind),
    })
}

/// Reads an edit from its arguments.
fn read_object(object: &Value) -> FileAction {
    let text = |names: &[&str]| names.iter().find_map(|name| object[*name].as_str());
    if let Some(edits) = object["edits"].as_array() {
        let replacements: Option<Vec<Replacement>> = edits.iter().map(read_replacement).collect();
        return replacements.map_or(FileAction::Unknown, FileAction::Replace);
    }
    if let Some(replacement) = read_replacement(object) {
        return FileAction::Replace(vec![replacement]);
    }
    // An insertion has a new text, and a place instead of an old one.
    let is_insertion = object.get("insert_line").is_some() || text(&["edit_mode"]).is_some();
    match text(ADDED) {
        Some(content) if !is_insertion => FileAction::Write(content.to_owned()),
        _ => FileAction::Unknown,
    }
}

fn read_replacement(object: &Value) -> Option<Replacement> {
    let text = |names: &[&str]| names.iter().find_map(|name| object[*name].as_str());
    let is_set = |name: &str| object[name].as_bool() == Some(true);
    Some(Replacement {
        old: text(REMOVED)?.to_owned(),
        new: text(ADDED).unwrap_or_default().to_owned(),
        is_everywhere: is_set("replace_all") || is_set("replaceAll") || is_set("allow_multiple"),
    })
}

/// Reads an edit from the text of its event, which lists the arguments.
fn read_text(text: &str, kind: ToolKind) -> FileAction {
    let Some(edit) = Edit::parse(text) else { return FileAction::Unknown };
    if kind == ToolKind::Write {
        return FileAction::Write(edit.added);
    }
    let is_everywhere = text.lines().any(|line| line == "replace_all: true");
    FileAction::Replace(vec![Replacement { old: edit.removed, new: edit.added, is_everywhere }])
}

/// Returns the patch in the arguments of a call.
fn find_patch(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => text.contains(PATCH_START).then_some(text),
        Value::Array(values) => values.iter().find_map(find_patch),
        Value::Object(fields) => fields.values().find_map(find_patch),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Reads the sections of a patch for the file. `None` if it has none.
fn read_patch(patch: &str, is_file: &dyn Fn(&str) -> bool) -> Option<FileAction> {
    let mut sections = patch_sections(patch);
    sections.retain(|section| is_file(section.path));
    let last = sections.last()?;
    Some(match last.kind {
        SectionKind::Add => FileAction::Write(
            last.lines.iter().map(|line| format!("{}\n", line.get(1..).unwrap_or(""))).collect(),
        ),
        SectionKind::Delete => FileAction::Delete,
        SectionKind::MoveHere => FileAction::Unknown,
        SectionKind::Update => {
            let updates = sections.iter().filter(|section| section.kind == SectionKind::Update);
            FileAction::Replace(updates.flat_map(|section| read_hunks(&section.lines)).collect())
        }
    })
}

/// Reads the hunks of a section that change something.
fn read_hunks(lines: &[&str]) -> Vec<Replacement> {
    let mut hunks = vec![Replacement::default()];
    for line in lines {
        let mark = line.get(..1).unwrap_or(" ");
        let text = line.get(1..).unwrap_or_default();
        if line.starts_with("@@") {
            hunks.push(Replacement::default());
        } else if let Some(hunk) = hunks.last_mut() {
            if mark != "+" {
                hunk.old.push_str(text);
                hunk.old.push('\n');
            }
            if mark != "-" {
                hunk.new.push_str(text);
                hunk.new.push('\n');
            }
        }
    }
    hunks.retain(|hunk| hunk.old != hunk.new);
    hunks
}

/// Reads the result of a reading call. `None` if it does not show which lines it has.
fn read_shown(result: &str, call: &str) -> Option<FileAction> {
    let is_part = shows_part(call, result);
    let numbered = read_numbered(result);
    let Some((first, last)) = numbered.keys().next().zip(numbered.keys().next_back()) else {
        let is_empty = result.trim().is_empty();
        return (!is_part && !is_empty).then(|| FileAction::ReadWhole(with_line_end(result)));
    };
    if is_part || *first != 1 || *last >= READER_LIMIT_LINES {
        return Some(FileAction::ReadLines(numbered));
    }
    let text: String = numbered.values().map(|line| format!("{line}\n")).collect();
    Some(FileAction::ReadWhole(text))
}

/// Returns a text with the end of its last line.
fn with_line_end(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn edits_are_read_from_their_arguments() {
        let write = read_object(&json!({ "file_path": "a", "content": "x: 1\ndescription: y\n" }));
        assert_eq!(write, FileAction::Write("x: 1\ndescription: y\n".to_owned()));
        let edits =
            json!({ "edits": [{ "old_string": "a", "new_string": "b", "replace_all": true }] });
        let replacement =
            Replacement { old: "a".to_owned(), new: "b".to_owned(), is_everywhere: true };
        assert_eq!(read_object(&edits), FileAction::Replace(vec![replacement]));
        let insertion = json!({ "command": "insert", "insert_line": 3, "new_str": "x" });
        assert_eq!(read_object(&insertion), FileAction::Unknown);
    }

    #[test]
    fn patches_are_read_for_one_file() {
        let is_file = |path: &str| path == "a.rs";
        let patch = "*** Begin Patch\n*** Update File: b.rs\n@@\n-x\n*** Update File: a.rs\n@@ fn\n a\n-b\n+c\n*** End Patch";
        let hunk = Replacement {
            old: "a\nb\n".to_owned(),
            new: "a\nc\n".to_owned(),
            is_everywhere: false,
        };
        assert_eq!(read_patch(patch, &is_file), Some(FileAction::Replace(vec![hunk])));
        let patch = "*** Begin Patch\n*** Add File: a.rs\n+x\n+\n*** End Patch";
        assert_eq!(read_patch(patch, &is_file), Some(FileAction::Write("x\n\n".to_owned())));
        assert_eq!(read_patch("*** Delete File: a.rs", &is_file), Some(FileAction::Delete));
        assert_eq!(read_patch("*** Delete File: b.rs", &is_file), None);
        let moved = "*** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+y\n*** End Patch";
        assert_eq!(read_patch(moved, &is_file), Some(FileAction::Delete));
        assert_eq!(read_patch(moved, &|path| path == "b.rs"), Some(FileAction::Unknown));
    }

    #[test]
    fn readers_show_a_file_or_a_part_of_it() {
        let whole = |text: &str| Some(FileAction::ReadWhole(text.to_owned()));
        let lines = |first: usize, texts: &[&str]| {
            let numbered = (first..).zip(texts.iter().map(|text| (*text).to_owned()));
            Some(FileAction::ReadLines(numbered.collect()))
        };
        assert_eq!(read_shown("     1→a  \n     2→\n\n<note>", "file_path: a"), whole("a  \n\n"));
        assert_eq!(read_shown("<file>\n00001| a\n</file>", "filePath: a"), whole("a\n"));
        assert_eq!(read_shown("1: a\nb", "path: a"), whole("1: a\nb\n"), "lines of the file");
        assert_eq!(read_shown("     5→a", "file_path: a\noffset: 5"), lines(5, &["a"]));
        assert_eq!(read_shown("a\nb", "path: a"), whole("a\nb\n"));
        assert_eq!(read_shown("a\nb", "path: a\nlimit: 2"), None);
        assert_eq!(read_shown("a [truncated]", "path: a"), None);
    }
}
