//! Computes what changed: between the arguments of two calls, and in the text that an edit
//! replaces.

use super::convert::shorten;

/// Maximum number of lines shown.
const MAX_LINES: usize = 16;

/// Maximum size of a shown line in bytes.
const MAX_LINE_BYTES: usize = 200;

/// Maximum product of the line counts of two texts that are compared line by line. Larger pairs are
/// not aligned.
const MAX_LINE_PAIRS: usize = 40_000;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Number of bytes shown before the first difference of two long lines.
const LEAD_BYTES: usize = 40;

/// Names of edit tool arguments that hold the removed text.
pub(crate) const REMOVED: &[&str] = &[
    "old_string",
    "oldString",
    "old_str",
    "oldStr",
    "old_text",
    "oldText",
    "old",
    "search",
    "TargetContent",
];

/// Names of edit tool arguments that hold the added text.
pub(crate) const ADDED: &[&str] = &[
    "new_string",
    "newString",
    "new_str",
    "newStr",
    "new_text",
    "newText",
    "new",
    "replace",
    "ReplacementContent",
    "content",
    "contents",
    "file_text",
    "CodeContent",
];

/// Names of other edit tool arguments. They end the text of the argument before them.
const OTHER: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "target_file",
    "TargetFile",
    "absolute_path",
    "notebook_path",
    "replace_all",
    "replaceAll",
    "allow_multiple",
    "expected_replacements",
    "instruction",
    "instructions",
    "description",
    "explanation",
    "edits",
    "command",
    "cell_id",
    "cell_type",
    "edit_mode",
    "insert_line",
    "dry_run",
];

/// The beginning of a patch as Codex writes it.
pub(crate) const PATCH_START: &str = "*** Begin Patch";

/// What a section of a patch does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    Add,
    Update,
    /// Also of a file that another section moves away.
    Delete,
    /// The file gets the text of another one, changed by the lines of the section.
    MoveHere,
}

/// The headers of the sections of a patch, up to the path.
const SECTION_HEADERS: [(&str, SectionKind); 4] = [
    ("*** Add File: ", SectionKind::Add),
    ("*** Update File: ", SectionKind::Update),
    ("*** Delete File: ", SectionKind::Delete),
    ("*** Move to: ", SectionKind::MoveHere),
];

/// A part of a patch that changes one file.
pub(crate) struct PatchSection<'p> {
    pub(crate) kind: SectionKind,
    pub(crate) path: &'p str,
    pub(crate) lines: Vec<&'p str>,
}

/// Returns the sections of a patch, in order.
pub(crate) fn patch_sections(patch: &str) -> Vec<PatchSection<'_>> {
    let mut sections: Vec<PatchSection<'_>> = Vec::new();
    let mut is_inside = false;
    for line in patch.lines() {
        let header = SECTION_HEADERS
            .iter()
            .find_map(|(header, kind)| line.strip_prefix(header).map(|path| (*kind, path.trim())));
        match (header, sections.last_mut()) {
            (Some((SectionKind::MoveHere, path)), Some(moved)) => {
                moved.kind = SectionKind::Delete;
                let lines = std::mem::take(&mut moved.lines);
                sections.push(PatchSection { kind: SectionKind::MoveHere, path, lines });
            }
            (Some((kind, path)), _) => {
                is_inside = true;
                sections.push(PatchSection { kind, path, lines: Vec::new() });
            }
            (None, _) if line.starts_with("*** ") => is_inside = false,
            (None, Some(section)) if is_inside => section.lines.push(line),
            (None, _) => {}
        }
    }
    sections
}

/// A side of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditSide {
    Removed,
    Added,
}

/// The text before and after an edit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Edit {
    pub(crate) removed: String,
    pub(crate) added: String,
}

/// The numbers of lines that an edit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineCounts {
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

impl LineCounts {
    /// Reads the counts at the end of the text of a result: `(3 lines added, 1 removed)`. Decoders
    /// append them if the log has what a diff says.
    pub(crate) fn of_result(text: &str) -> Option<Self> {
        let last = text.lines().next_back()?;
        let counts = last.strip_prefix('(')?.strip_suffix(" removed)")?;
        let (added, removed) = counts.split_once(" lines added, ")?;
        Some(Self { added: added.parse().ok()?, removed: removed.parse().ok()? })
    }
}

impl Edit {
    /// Reads the arguments of an edit as the event's text shows them, one `key: value` after
    /// another, or the lines of a patch. Returns `None` if the text contains neither.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let edit = match text.split_once(PATCH_START) {
            Some((_, patch)) => Self::from_patch(patch),
            None => Self::from_arguments(text),
        };
        if edit == Self::default() { None } else { Some(edit) }
    }

    fn from_patch(patch: &str) -> Self {
        let mut edit = Self::default();
        for line in patch.lines() {
            if let Some(line) = line.strip_prefix('-') {
                edit.push_line(EditSide::Removed, line);
            } else if let Some(line) = line.strip_prefix('+') {
                edit.push_line(EditSide::Added, line);
            }
        }
        edit
    }

    fn from_arguments(text: &str) -> Self {
        let mut edit = Self::default();
        let is_list = text.lines().any(|line| line == "edits:");
        let mut side = None;
        for text_line in text.lines() {
            let mut line = text_line;
            if let Some((begun, value)) = parse_argument(line, is_list) {
                side = begun;
                line = value;
            }
            if let Some(side) = side {
                edit.push_line(side, line);
            }
        }
        edit
    }

    /// Adds a line to one side.
    fn push_line(&mut self, side: EditSide, line: &str) {
        let text = match side {
            EditSide::Removed => &mut self.removed,
            EditSide::Added => &mut self.added,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }

    /// Returns the edit that undoes this one.
    pub(crate) fn inverse(&self) -> Self {
        Self { removed: self.added.clone(), added: self.removed.clone() }
    }

    /// Returns the lines of both sides, without the spaces at their ends.
    fn sides(&self) -> (Vec<&str>, Vec<&str>) {
        let removed = self.removed.lines().map(str::trim_end).collect();
        (removed, self.added.lines().map(str::trim_end).collect())
    }

    /// Returns the changed lines after `-` and `+`, and those around them after a space. What is left
    /// out between them is a line with `@@`.
    pub(crate) fn unified_lines(&self) -> Vec<String> {
        let (old, new) = self.sides();
        let mut changes = compare_lines(&old, &new).into_iter();
        let mut out = Vec::new();
        let mut i = 0;
        let mut j = 0;
        loop {
            let change = changes.next();
            let same = match change {
                Some((EditSide::Removed, number)) => number - i,
                Some((EditSide::Added, number)) => number - j,
                None => old.len() - i,
            };
            let head = if out.is_empty() { 0 } else { CONTEXT_LINES.min(same) };
            let tail = if change.is_none() { 0 } else { CONTEXT_LINES.min(same - head) };
            let context = old.get(i..i + same).unwrap_or_default();
            out.extend(context[..head].iter().map(|line| format!(" {line}")));
            if head + tail < same && head > 0 && tail > 0 {
                out.push(format!("@@ {} unchanged lines", same - head - tail));
            }
            out.extend(context[same - tail..].iter().map(|line| format!(" {line}")));
            i += same;
            j += same;
            match change {
                Some((EditSide::Removed, number)) => {
                    out.push(format!("-{}", old[number]));
                    i += 1;
                }
                Some((EditSide::Added, number)) => {
                    out.push(format!("+{}", new[number]));
                    j += 1;
                }
                None => return out,
            }
        }
    }

    /// Returns, for each added line, whether only the new text has it at this place.
    pub(crate) fn new_lines(&self) -> Vec<bool> {
        let (old, new) = self.sides();
        let mut is_new = vec![false; new.len()];
        for (side, number) in compare_lines(&old, &new) {
            if side == EditSide::Added
                && let Some(is_new) = is_new.get_mut(number)
            {
                *is_new = true;
            }
        }
        is_new
    }

    /// Returns the changed lines, prefixed with - and +, in at most `bytes`.
    pub(crate) fn diff(&self, bytes: usize) -> Option<String> {
        diff_lines(&self.removed, &self.added, bytes)
    }
}

/// Returns the side and the value if the line begins an argument; the side is `None` if the
/// argument is not a text of the edit. The arguments of a list of edits are indented; any other
/// indented line is part of a value.
fn parse_argument(line: &str, is_list: bool) -> Option<(Option<EditSide>, &str)> {
    let inner = line.strip_prefix("  - ").or_else(|| line.strip_prefix("    "));
    let line = if is_list { inner.unwrap_or(line) } else { line };
    let (key, value) = line.split_once(':')?;
    let value = if value.is_empty() { value } else { value.strip_prefix(' ')? };
    if REMOVED.contains(&key) {
        Some((Some(EditSide::Removed), value))
    } else if ADDED.contains(&key) {
        Some((Some(EditSide::Added), value))
    } else {
        OTHER.contains(&key).then_some((None, value))
    }
}

/// Returns the lines that differ, prefixed with - and +, in at most `bytes`; `None` if no line
/// differs.
pub(crate) fn diff_lines(before: &str, after: &str, bytes: usize) -> Option<String> {
    let old_lines: Vec<&str> = before.lines().collect();
    let new_lines: Vec<&str> = after.lines().collect();
    let changed = changed_lines(&old_lines, &new_lines);
    let shown_start = match changed.as_slice() {
        [(EditSide::Removed, old), (EditSide::Added, new)] => first_difference(old, new),
        _ => 0,
    };
    let cut = if shown_start > 0 { "…" } else { "" };
    let mut out = String::new();
    for (side, line) in changed.iter().take(MAX_LINES) {
        let sign = match side {
            EditSide::Removed => '-',
            EditSide::Added => '+',
        };
        let line = shorten(line.get(shown_start..).unwrap_or(line), MAX_LINE_BYTES);
        out.push_str(&format!("{sign} {cut}{line}\n"));
    }
    if changed.len() > MAX_LINES {
        out.push_str(&format!("… {} more lines\n", changed.len() - MAX_LINES));
    }
    Some(shorten(&out, bytes)).filter(|diff| !diff.is_empty())
}

/// Returns the lines that only one side has, in order.
fn changed_lines<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(EditSide, &'t str)> {
    let mut changed = Vec::new();
    for (side, number) in compare_lines(old, new) {
        let lines = if side == EditSide::Removed { old } else { new };
        changed.extend(lines.get(number).map(|line| (side, *line)));
    }
    changed
}

/// Returns the lines that only one side has, in order, by their numbers.
fn compare_lines(old: &[&str], new: &[&str]) -> Vec<(EditSide, usize)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let backwards = old.iter().rev().zip(new.iter().rev());
    let max_tail = old.len().min(new.len()) - head;
    let tail = backwards.take(max_tail).take_while(|(a, b)| a == b).count();
    let old = old.get(head..old.len() - tail).unwrap_or_default();
    let new = new.get(head..new.len() - tail).unwrap_or_default();

    let mut changed = Vec::new();
    let mut i = 0;
    let mut j = 0;
    if old.len() * new.len() <= MAX_LINE_PAIRS {
        let common = common_lines(old, new);
        let width = new.len() + 1;
        while let (Some(a), Some(b)) = (old.get(i), new.get(j)) {
            if a == b {
                i += 1;
                j += 1;
            } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
                changed.push((EditSide::Removed, head + i));
                i += 1;
            } else {
                changed.push((EditSide::Added, head + j));
                j += 1;
            }
        }
    }
    changed.extend((i..old.len()).map(|number| (EditSide::Removed, head + number)));
    changed.extend((j..new.len()).map(|number| (EditSide::Added, head + number)));
    changed
}

/// Returns, at `i * (new.len() + 1) + j`, the largest number of lines that `old[i..]` and
/// `new[j..]` have in common in the same order.
fn common_lines(old: &[&str], new: &[&str]) -> Vec<u32> {
    let width = new.len() + 1;
    let mut common = vec![0u32; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let without = common[(i + 1) * width + j].max(common[i * width + j + 1]);
            let with = common[(i + 1) * width + j + 1] + 1;
            common[i * width + j] = if a == b { with } else { without };
        }
    }
    common
}

/// Returns the byte offset at which to begin showing two lines: a little before they differ, 0 for
/// short lines.
fn first_difference(old: &str, new: &str) -> usize {
    let same = old.char_indices().zip(new.chars()).take_while(|((_, a), b)| a == b);
    let differ = same.last().map_or(0, |((at, c), _)| at + c.len_utf8());
    if differ <= 2 * LEAD_BYTES { 0 } else { old.floor_char_boundary(differ - LEAD_BYTES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, String)> {
        Edit::parse(text).map(|edit| (edit.removed, edit.added))
    }

    #[test]
    fn both_sides_of_an_edit_are_read() {
        let sides = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
        assert_eq!(
            read("replace_all: false\nfile_path: /a\nold_string: x\n  y: 1\nnew_string: z"),
            sides("x\n  y: 1", "z")
        );
        assert_eq!(read("path: /a\noldText: x\nnewText:\nreplaceAll: true"), sides("x", ""));
        assert_eq!(
            read(
                "edits:\n  - old_string: a\n    new_string: b\n  - old_string: c\n    new_string: d"
            ),
            sides("a\nc", "b\nd")
        );
        assert_eq!(read("file_path: /a\ncontent: whole\nfile"), sides("", "whole\nfile"));
        assert_eq!(
            read("input: *** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n z\n*** End Patch"),
            sides("x", "y")
        );
        assert_eq!(read("command: ls"), None);
    }

    #[test]
    fn repeated_lines_are_new_where_they_are_inserted() {
        let edit = Edit { removed: "a\n)\nz".to_owned(), added: "a\n)\n\nb  \n)\nz".to_owned() };
        assert_eq!(edit.new_lines(), [false, false, true, true, true, false]);
        let long: String = (0..500).map(|number| format!("line {number}\n")).collect();
        let edit = Edit { removed: long.clone(), added: long.replace("250", "x") };
        let around = |numbers: std::ops::Range<u32>| {
            numbers.map(|number| format!(" line {number}")).collect::<Vec<_>>()
        };
        let changed = ["-line 250", "+line x"].map(str::to_owned).to_vec();
        assert_eq!(edit.unified_lines(), [around(247..250), changed, around(251..254)].concat());
    }

    #[test]
    fn lines_between_changes_are_left_out() {
        let old = "a\nb\n1\n2\n3\n4\n5\n6\n7\n8\nc";
        let new = old.replace('a', "x").replace('c', "y");
        let edit = Edit { removed: old.to_owned(), added: new };
        assert_eq!(
            edit.unified_lines().join("|"),
            "-a|+x| b| 1| 2|@@ 3 unchanged lines| 6| 7| 8|-c|+y"
        );
    }

    #[test]
    fn the_counts_of_a_result_are_at_its_end() {
        let counts = |added, removed| Some(LineCounts { added, removed });
        assert_eq!(LineCounts::of_result("Updated.\n(3 lines added, 10 removed)"), counts(3, 10));
        assert_eq!(LineCounts::of_result("(3 lines added, 1 removed)\nmore"), None);
        assert_eq!(LineCounts::of_result(""), None);
    }

    #[test]
    fn a_diff_shows_what_differs() {
        let check = |before: &str, after: &str, want: Option<&str>| {
            assert_eq!(diff_lines(before, after, 600).as_deref(), want);
        };
        check("a\nb\nc", "a\nx\nc", Some("- b\n+ x"));
        check("a\nc", "a\nb\nc", Some("+ b"));
        check("a\na", "a", Some("- a"));
        check("a\nx\nb\ny\nc", "a\nu\nb\nv\nc", Some("- x\n+ u\n- y\n+ v"));
        check("x\ny", "new\nx\ny\nend", Some("+ new\n+ end"));
        check("    a", "  a", Some("-     a\n+   a"));
        check("same", "same", None);
        check("", "new", Some("+ new"));
        let long = "x ".repeat(60);
        let shown =
            diff_lines(&format!("{long}日 old"), &format!("{long}日 new"), 600).expect("differs");
        assert!(shown.starts_with("- …") && shown.contains("日 old\n+ …"), "{shown}");
        let lines = |word: &str| format!("{word}\n").repeat(20);
        let shown = diff_lines(&lines("a"), &lines("b"), 600).expect("differs");
        assert!(shown.ends_with("\n… 24 more lines"), "{shown}");
    }
}
