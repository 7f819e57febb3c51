//! Restores the text of a file from the calls that read, wrote and edited it.

use schemas::{EventType, ToolError, ToolKind};
use serde::Serialize;

use super::inserted::read_whole_file;
use super::{FilePlace, WrittenBy, describe_event, find_calls, is_same_file};
use crate::analyze::{Action, pair_calls};
use crate::error::store_error;
use crate::event::{EventSpan, unknown_event_error};
use crate::reply::budget::echoed_name;
use crate::reply::call::Call;
use crate::reply::change::Edit;
use crate::reply::event_predicates::is_type;
use crate::reply::rows::read_events;
use crate::reply::shared_state::SharedState;
use ingest::redact::masked_kinds;
use store::{Snapshot, single_event_ranges};

/// The text of a file as agents last read or wrote it.
#[derive(Debug, Serialize)]
pub struct RestoredFile {
    pub path: String,
    /// `None` if no call shows the whole file, or if the last one deleted it.
    pub text: Option<String>,
    /// The call that showed the whole file.
    pub base: Option<BaseCall>,
    /// The edits after it that are in the text, in order.
    pub edits: Vec<WrittenBy>,
    /// The calls after it that changed the file, or may have, in a way that the log does not show.
    pub not_applied: Vec<WrittenBy>,
    /// Number of secrets that are masked in the text.
    pub masked_secrets: usize,
}

/// The call that shows the whole text of a file.
#[derive(Debug, Serialize)]
pub struct BaseCall {
    pub how: BaseKind,
    #[serde(flatten)]
    pub call: WrittenBy,
}

/// How a call shows the whole text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseKind {
    /// It wrote the file.
    Written,
    /// It read the file from the beginning to the end. Whether the file ends with a line break is not
    /// known then; it is assumed.
    Read,
    /// It deleted the file.
    Deleted,
}

/// When an event happened.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// The position of the session.
    session: usize,
    event_index: i32,
    time: Option<i64>,
}

/// A call on the file, with what it says about the text.
struct FileStep {
    /// That of the result, if the log has one.
    moment: Moment,
    step: Step,
    /// The id of the call.
    by: WrittenBy,
}

/// What a call says about the text of the file.
enum Step {
    Whole(BaseKind, String),
    Edits {
        edits: Vec<Edit>,
        replaces_all: bool,
    },
    /// The section of a patch for the file.
    Patch(String),
    /// The log does not show what changed.
    Unknown,
}

/// Restores the text of the file, as it was at the event with the id `at`.
pub(crate) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    file: &FilePlace,
    at: Option<&str>,
    call: &Call<'_>,
) -> Result<RestoredFile, ToolError> {
    let at = at.map(|id| find_moment(shared, snapshot, id)).transpose()?;
    let mut steps = read_steps(snapshot, file, call)?;
    steps.retain(|step| at.is_none_or(|at| !is_after(step.moment, at)));
    steps.sort_by_key(|FileStep { moment, .. }| (moment.time, moment.session, moment.event_index));

    let mut restored = RestoredFile {
        path: file.path.clone(),
        text: None,
        base: None,
        edits: Vec::new(),
        not_applied: Vec::new(),
        masked_secrets: 0,
    };
    for FileStep { step, by, .. } in steps {
        restored.add(step, by);
    }
    let text = restored.text.as_deref().unwrap_or_default();
    restored.masked_secrets = masked_kinds(text).count();
    Ok(restored)
}

/// Returns when an event happened.
fn find_moment(
    shared: &SharedState,
    snapshot: &Snapshot,
    event_id: &str,
) -> Result<Moment, ToolError> {
    let span = EventSpan::parse(event_id)?;
    let session = shared.caller.find_session(snapshot, &span.session)?;
    let indexes = span.indexes();
    match read_events(snapshot, session, indexes.start, indexes.end)?.pop() {
        Some(row) => Ok(Moment { session, event_index: row.event_index, time: row.timestamp }),
        None => {
            let unknown = vec![echoed_name(event_id)];
            Err(unknown_event_error(shared, snapshot, Some(&span), unknown))
        }
    }
}

/// Returns whether a step was carried out after an event.
fn is_after(step: Moment, at: Moment) -> bool {
    if step.session == at.session {
        return step.event_index > at.event_index;
    }
    // Of a session without times it is not known.
    match (step.time, at.time) {
        (Some(step), Some(at)) => step > at,
        _ => true,
    }
}

/// Reads the calls on the file that succeeded.
fn read_steps(
    snapshot: &Snapshot,
    file: &FilePlace,
    call: &Call<'_>,
) -> Result<Vec<FileStep>, ToolError> {
    let mut steps = Vec::new();
    for (session, indexes) in find_calls(snapshot, file, call)? {
        call.ensure_running()?;
        let row = &snapshot.sessions()[session];
        let is_file = |path: &str| is_same_file(path, row, file);
        let ranges = single_event_ranges(&indexes);
        let events = snapshot.events_of(session, &ranges, &[]).read_rows().map_err(store_error)?;
        for action in pair_calls(&events).iter().filter(|action| action.has_succeeded()) {
            if !action.files().iter().any(|path| is_file(path)) {
                continue;
            }
            let outcome = action.outcome_event();
            let Some(step) = read_step(action, &is_file) else { continue };
            let moment = Moment {
                session,
                event_index: outcome.event_index,
                time: outcome.timestamp.or(action.call.timestamp),
            };
            let by = describe_event(snapshot, session, action.call.event_index, moment.time);
            steps.push(FileStep { moment, step, by });
        }
    }
    Ok(steps)
}

/// Returns what a call says about the text; `None` if nothing, such as a call that read a part.
fn read_step(action: &Action<'_>, is_file: &dyn Fn(&str) -> bool) -> Option<Step> {
    if action.kind == ToolKind::Read {
        let text = read_whole_file(action.call, action.result?)?;
        let text = if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" };
        return Some(Step::Whole(BaseKind::Read, text));
    }
    if !action.is_edit() {
        return None;
    }
    if !is_type(action.call, EventType::ToolCall) {
        return Some(Step::Unknown);
    }
    let text = &*action.call.text;
    if let Some((_, patch)) = text.split_once("*** Begin Patch") {
        return Some(read_patch(patch, is_file));
    }
    if action.kind == ToolKind::Execute {
        return Some(Step::Unknown);
    }
    let edits = Edit::parse_list(text);
    Some(match edits.as_slice() {
        [] => Step::Unknown,
        [edit] if action.kind == ToolKind::Write && edit.removed.is_empty() => {
            Step::Whole(BaseKind::Written, edit.added.clone())
        }
        _ => {
            let replaces_all =
                |line: &str| matches!(line, "replace_all: true" | "replaceAll: true");
            Step::Edits { edits, replaces_all: text.lines().any(replaces_all) }
        }
    })
}

/// Returns what a patch does with the file.
fn read_patch(patch: &str, is_file: &dyn Fn(&str) -> bool) -> Step {
    let mut sections = patch.split("\n*** ").filter_map(|section| {
        let (header, body) = section.split_once('\n').unwrap_or((section, ""));
        let (what, path) = header.split_once(" File: ")?;
        is_file(path.trim()).then_some((what, body))
    });
    match (sections.next(), sections.next()) {
        (Some(("Add", body)), None) => {
            let lines = body.lines().filter_map(|line| line.strip_prefix('+'));
            Step::Whole(BaseKind::Written, lines.map(|line| format!("{line}\n")).collect())
        }
        (Some(("Delete", _)), None) => Step::Whole(BaseKind::Deleted, String::new()),
        // A file that is moved has its hunks in a section without its name.
        (Some(("Update", body)), None) if !body.is_empty() => Step::Patch(body.to_owned()),
        _ => Step::Unknown,
    }
}

impl RestoredFile {
    /// Adds what a call says about the text.
    fn add(&mut self, step: Step, by: WrittenBy) {
        let changed = match step {
            Step::Whole(how, text) => {
                let is_known = how == BaseKind::Read
                    && self.text.as_deref().is_some_and(|known| is_same_text(known, &text));
                if !is_known {
                    self.text = (how != BaseKind::Deleted).then_some(text);
                }
                self.base = Some(BaseCall { how, call: by });
                self.edits.clear();
                self.not_applied.clear();
                return;
            }
            Step::Edits { edits, replaces_all } => self.text.as_deref().and_then(|text| {
                edits
                    .iter()
                    .try_fold(text.to_owned(), |text, edit| apply_edit(&text, edit, replaces_all))
            }),
            Step::Patch(hunks) => self.text.as_deref().and_then(|text| apply_hunks(text, &hunks)),
            Step::Unknown => None,
        };
        match changed {
            Some(text) => {
                self.text = Some(text);
                self.edits.push(by);
            }
            None => self.not_applied.push(by),
        }
    }
}

/// Returns whether two texts differ in the spaces and line breaks at their ends only.
fn is_same_text(one: &str, other: &str) -> bool {
    one.trim_end() == other.trim_end()
}

/// Replaces the only place of a text, or all of them; `None` if it is not clear which one.
fn apply_edit(text: &str, edit: &Edit, replaces_all: bool) -> Option<String> {
    if edit.removed.is_empty() {
        return text.is_empty().then(|| edit.added.clone());
    }
    // The line break at the end of what is removed is known only if it is also at the end of what is
    // added.
    let with_break = format!("{}\n", edit.removed);
    let has_break = edit.added.ends_with('\n') && text.contains(&with_break);
    let removed = if has_break { &with_break } else { &edit.removed };
    match text.matches(removed.as_str()).count() {
        0 => None,
        1 => Some(text.replacen(removed, &edit.added, 1)),
        _ => replaces_all.then(|| text.replace(removed, &edit.added)),
    }
}

/// Applies the hunks of a patch to a text; `None` if the text does not have the lines of one.
fn apply_hunks(text: &str, hunks: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let mut from = 0;
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for line in hunks.lines().chain(["@@"]) {
        let Some(anchor) = line.strip_prefix("@@") else {
            // Models leave the space of an empty line out.
            let rest = line.get(1..).unwrap_or_default();
            if !line.starts_with('+') {
                old.push(rest);
            }
            if !line.starts_with('-') {
                new.push(rest);
            }
            continue;
        };
        if !old.is_empty() || !new.is_empty() {
            let at = find_lines(&lines, &old, from)?;
            lines.splice(at..at + old.len(), new.iter().copied());
            from = at + new.len();
            old.clear();
            new.clear();
        }
        let anchor = anchor.trim();
        if !anchor.is_empty() {
            let rest = lines.get(from..)?;
            from += rest.iter().position(|line| line.trim() == anchor).map_or(0, |at| at + 1);
        }
    }
    Some(lines.join("\n"))
}

/// Returns where the lines `wanted` stand in `lines`, at `from` or later. Spaces at the ends of lines may
/// differ.
fn find_lines(lines: &[&str], wanted: &[&str], from: usize) -> Option<usize> {
    if wanted.is_empty() {
        return None;
    }
    let is_same = |window: &[&str]| {
        window.iter().zip(wanted).all(|(one, other)| one.trim_end() == other.trim_end())
    };
    let at = lines.get(from..)?.windows(wanted.len()).position(is_same)?;
    Some(from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_needs_one_place() {
        let edit = |removed: &str, added: &str| Edit {
            removed: removed.to_owned(),
            added: added.to_owned(),
        };
        let text = "a\nb\nc\nb\n";
        assert_eq!(apply_edit(text, &edit("a", "x"), false).as_deref(), Some("x\nb\nc\nb\n"));
        assert_eq!(apply_edit(text, &edit("b", "x"), false), None);
        assert_eq!(apply_edit(text, &edit("b", "x"), true).as_deref(), Some("a\nx\nc\nx\n"));
        assert_eq!(apply_edit(text, &edit("z", "x"), true), None);
        // Both texts end with a line break, of which the log shows the second.
        assert_eq!(apply_edit(text, &edit("a", "x\n"), false).as_deref(), Some("x\nb\nc\nb\n"));
        assert_eq!(apply_edit("", &edit("", "new\n"), false).as_deref(), Some("new\n"));
    }

    #[test]
    fn hunks_are_applied_in_order() {
        let text = "fn a() {\n    1\n}\nfn b() {\n    1\n}\n";
        let hunks = "@@ fn b() {\n-    1\n+    2\n }\n";
        let changed = "fn a() {\n    1\n}\nfn b() {\n    2\n}\n";
        assert_eq!(apply_hunks(text, hunks).as_deref(), Some(changed));
        let both = "@@\n-    1\n+    2\n@@\n-    1\n+    3\n+    4";
        let changed = "fn a() {\n    2\n}\nfn b() {\n    3\n    4\n}\n";
        assert_eq!(apply_hunks(text, both).as_deref(), Some(changed));
        assert_eq!(apply_hunks(text, "@@\n-    9\n+    2"), None);
        assert_eq!(apply_hunks(text, "@@\n+no place"), None);
    }

    #[test]
    fn a_patch_says_what_it_does_with_a_file() {
        let is_file = |path: &str| path == "a.rs";
        let patch = |text: &str| match read_patch(text, &is_file) {
            Step::Whole(how, text) => format!("{how:?} {text:?}"),
            Step::Patch(hunks) => format!("patch {hunks:?}"),
            Step::Edits { .. } | Step::Unknown => "unknown".to_owned(),
        };
        let added =
            "\n*** Add File: a.rs\n+one\n+\n+two\n*** Update File: b.rs\n@@\n-x\n+y\n*** End Patch";
        assert_eq!(patch(added), r#"Written "one\n\ntwo\n""#);
        assert_eq!(patch("\n*** Delete File: a.rs\n*** End Patch"), r#"Deleted """#);
        let updated = "\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch";
        assert_eq!(patch(updated), r#"patch "@@\n-x\n+y""#);
        let moved = "\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+y\n*** End Patch";
        assert_eq!(patch(moved), "unknown");
    }
}
