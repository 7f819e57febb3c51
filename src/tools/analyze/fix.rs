//! Finds the next successful call similar to a failed one, and what changed between the two.

use schemas::tool::analyze::{Fix, FixEdit, FixMatch};
use schemas::{EventType, ToolKind};

use super::action::Action;
use super::change::{Edit, diff_lines};
use super::command::CommandLine;
use super::finding::shorten;
use crate::base::sanitize::clean_text;
use crate::tools::reply::convert;
use crate::tools::reply::event_predicates::is_type;

/// Maximum distance in calls to the call that fixes a failed command or edit.
const MAX_SAME_DISTANCE: usize = 200;

/// Maximum distance in calls to the call that fixes another failed call, and to a command that is
/// only similar to the failed one.
const MAX_SIMILAR_DISTANCE: usize = 40;

/// Maximum size in bytes of the diff between the two calls.
const MAX_DIFF_BYTES: usize = 500;

/// Maximum size in bytes of the diff of an edit between the two calls.
const MAX_EDIT_BYTES: usize = 300;

/// Maximum size in bytes of a shown path.
const MAX_PATH_BYTES: usize = 200;

/// Maximum number of edits shown.
const MAX_EDITS: usize = 3;

/// Maximum number of files shown for an edit.
const MAX_FILES: usize = 3;

/// The position among the actions of the call that worked, and how it matches the failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FixingCall {
    pub at: usize,
    pub matched: FixMatch,
}

/// Prepares the command line of every action for comparison.
pub(super) fn parse_command_lines(actions: &[Action<'_>]) -> Vec<Option<CommandLine>> {
    actions.iter().map(|action| action.command().map(CommandLine::parse)).collect()
}

/// Finds the call that worked after the failed call at `at`.
pub(super) fn find_fixing_call(
    actions: &[Action<'_>],
    lines: &[Option<CommandLine>],
    at: usize,
) -> Option<FixingCall> {
    let failed = actions.get(at)?;
    let line = lines.get(at)?.as_ref();
    // The nearest call that is only similar. The same call is preferred if it comes soon enough.
    let mut similar = None;
    let reach = if is_command(failed) || failed.is_edit() {
        MAX_SAME_DISTANCE
    } else {
        MAX_SIMILAR_DISTANCE
    };
    let later = actions.iter().zip(lines).enumerate().skip(at + 1).take(reach);
    for (number, (other, other_line)) in later {
        if !other.has_succeeded() {
            continue;
        }
        let is_near = number - at <= MAX_SIMILAR_DISTANCE;
        if !is_near && similar.is_some() {
            break;
        }
        let Some(matched) = match_calls(failed, line, other, other_line.as_ref()) else { continue };
        let found = FixingCall { at: number, matched };
        if matched == FixMatch::SameCall || !is_command(failed) {
            return Some(found);
        }
        if is_near && similar.is_none() {
            similar = Some(found);
        }
    }
    similar
}

/// Returns true if a call is identified by its command line.
fn is_command(action: &Action<'_>) -> bool {
    action.kind == ToolKind::Execute && action.command().is_some() && action.files().is_empty()
}

/// Returns how a later call matches the failed one.
fn match_calls(
    failed: &Action<'_>,
    line: Option<&CommandLine>,
    other: &Action<'_>,
    other_line: Option<&CommandLine>,
) -> Option<FixMatch> {
    if is_command(failed) {
        if !is_command(other) {
            return None;
        }
        if failed.command() == other.command() {
            return Some(FixMatch::SameCall);
        }
        let is_similar =
            line.zip(other_line).is_some_and(|(line, other)| line.is_similar_to(other));
        return is_similar.then_some(FixMatch::SimilarCommand);
    }
    let is_on_files = failed.kind == ToolKind::Read || failed.is_edit();
    if is_on_files && !failed.files().is_empty() {
        return has_same_file(failed, other).then_some(FixMatch::SameFile);
    }
    let is_same_tool = failed.tool_name().is_some() && failed.tool_name() == other.tool_name();
    is_same_tool.then_some(FixMatch::SameTool)
}

/// Returns true if both calls read, or both calls edit, one of the files of the failed call.
fn has_same_file(failed: &Action<'_>, other: &Action<'_>) -> bool {
    let mut files = failed.files().iter();
    if failed.kind != ToolKind::Read {
        return other.is_edit() && files.any(|path| other.files().contains(path));
    }
    // A missing file may be found elsewhere under the same name.
    other.kind == ToolKind::Read
        && files.any(|path| other.files().iter().any(|known| file_name(known) == file_name(path)))
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Describes the fix of the failed call at `at`. `actions` must contain the texts.
pub(super) fn describe_fix(
    actions: &[Action<'_>],
    at: usize,
    fixing_call: FixingCall,
) -> Option<Fix> {
    let failed = actions.get(at)?;
    let worked = actions.get(fixing_call.at)?;
    let between = actions.get(at + 1..fixing_call.at)?;
    let changed = match fixing_call.matched {
        FixMatch::SameCall => None,
        FixMatch::SimilarCommand => diff_lines(
            &clean_text(failed.command().unwrap_or_default()),
            &clean_text(worked.command().unwrap_or_default()),
            MAX_DIFF_BYTES,
        ),
        FixMatch::SameFile | FixMatch::SameTool => {
            diff_lines(&cleaned_arguments(failed), &cleaned_arguments(worked), MAX_DIFF_BYTES)
        }
    };
    // Edits between the two calls are shown only if a command failed: next to a failed edit they
    // explain nothing.
    let mut edits: Vec<&Action<'_>> = Vec::new();
    if is_command(failed) {
        edits.extend(between.iter().filter(|action| action.has_succeeded() && action.is_edit()));
    }
    let omitted = edits.len().saturating_sub(MAX_EDITS);
    Some(Fix {
        event_id: convert::event_id(worked.call),
        result_event_id: worked
            .result
            .filter(|result| result.event_index != worked.call.event_index)
            .map(convert::event_id),
        matched: fixing_call.matched,
        calls_between: between.len(),
        diff: changed,
        edits: edits.into_iter().skip(omitted).map(describe_edit).collect(),
        edits_omitted: omitted,
    })
}

/// Returns the arguments of a call; empty if the log does not contain the call.
fn cleaned_arguments(action: &Action<'_>) -> String {
    let is_call = is_type(action.call, EventType::ToolCall);
    clean_text(if is_call { action.call.text.as_str() } else { "" })
}

fn describe_edit(action: &Action<'_>) -> FixEdit {
    let files = action.files().iter().take(MAX_FILES);
    FixEdit {
        event_id: convert::event_id(action.call),
        files: files.map(|path| shorten(path, MAX_PATH_BYTES)).collect(),
        diff: Edit::parse(&clean_text(&action.call.text))
            .and_then(|edit| edit.diff(MAX_EDIT_BYTES)),
    }
}
