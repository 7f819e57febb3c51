//! Finds the next successful call similar to a failed one, and what changed between the two.

use schemas::tool::analyze::{Fix, FixEdit, FixMatch};
use schemas::{EventType, ToolKind};

use super::action::Action;
use super::command::CommandLine;
use crate::reply::change::{Edit, diff_lines};
use crate::reply::convert;
use crate::reply::convert::shorten;
use crate::reply::event_predicates::is_type;
use base::paths::{last_part, resolve_path};
use base::sanitize::clean_text;

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

/// The arguments of a call that name the folder in which its command runs, by how agents call them.
const FOLDER_ARGUMENTS: &[&str] = &["workdir: ", "cwd: ", "working_directory: ", "dir_path: "];

/// The ends of the names of arguments that name what a call is about, in lower case.
const TARGET_ARGUMENTS: &[&str] = &[
    "code", "command", "file", "id", "key", "name", "path", "pattern", "prompt", "query",
    "question", "subject", "title", "url",
];

/// Prepares the command line of every action for comparison. `folder` is the session's folder.
pub(super) fn parse_command_lines(
    actions: &[Action<'_>],
    folder: Option<&str>,
) -> Vec<Option<CommandLine>> {
    actions.iter().map(|action| parse_command_line(action, folder)).collect()
}

/// Prepares the command line of an action; `None` if it has none.
fn parse_command_line(action: &Action<'_>, folder: Option<&str>) -> Option<CommandLine> {
    let command = action.command()?;
    // The arguments are the lines of the call's text; a text that was not read has none.
    let named = action
        .call
        .text
        .lines()
        .rev()
        .find_map(|line| FOLDER_ARGUMENTS.iter().find_map(|name| line.strip_prefix(name)));
    let Some(named) = named.filter(|_| is_type(action.call, EventType::ToolCall)) else {
        return Some(CommandLine::parse(command, folder));
    };
    Some(CommandLine::parse(command, Some(&resolve_path(folder, named))))
}

/// Finds the call that worked after the failed call at `at`. It was made after the failure was
/// known: a call in parallel with the failed one does not fix it.
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
        let is_later = other.call.event_index > failed.outcome_event().event_index;
        if !is_later || !other.has_succeeded() {
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
        let line = line?;
        let other_line = other_line?;
        if line.is_same_as(other_line) {
            return Some(FixMatch::SameCall);
        }
        let is_similar = failed.command() == other.command() || line.is_similar_to(other_line);
        return is_similar.then_some(FixMatch::SimilarCommand);
    }
    let is_on_files = failed.kind == ToolKind::Read || failed.is_edit();
    if is_on_files && !failed.files().is_empty() {
        return has_same_file(failed, other).then_some(FixMatch::SameFile);
    }
    let is_same_tool = failed.tool_name().is_some() && failed.tool_name() == other.tool_name();
    let is_same_target = !has_texts(failed, other) || shares_target(failed, other);
    (is_same_tool && is_same_target).then_some(FixMatch::SameTool)
}

/// Returns true if the texts of both calls were read, so that their arguments are known.
fn has_texts(failed: &Action<'_>, other: &Action<'_>) -> bool {
    let has_text = |action: &Action<'_>| {
        !is_type(action.call, EventType::ToolCall) || !action.call.text.is_empty()
    };
    has_text(failed) && has_text(other)
}

/// Returns true if both calls name the same target: an argument such as a pattern, an address or an
/// id has the same value.
fn shares_target(failed: &Action<'_>, other: &Action<'_>) -> bool {
    let arguments = cleaned_arguments(failed);
    let other_arguments = cleaned_arguments(other);
    let mut targets = arguments.lines().filter(|line| names_target(line));
    targets.any(|target| other_arguments.lines().any(|line| line == target))
}

/// Returns true if a line of a call's text is an argument that names a target.
fn names_target(line: &str) -> bool {
    let Some((name, value)) = line.split_once(": ") else { return false };
    let name = name.to_ascii_lowercase();
    !value.trim().is_empty() && TARGET_ARGUMENTS.iter().any(|end| name.ends_with(end))
}

/// Returns true if both calls read, or both calls edit, one of the files of the failed call.
fn has_same_file(failed: &Action<'_>, other: &Action<'_>) -> bool {
    let mut files = failed.files().iter();
    if failed.kind != ToolKind::Read {
        return other.is_edit() && files.any(|path| other.files().contains(path));
    }
    // A missing file may be found elsewhere under the same name.
    other.kind == ToolKind::Read
        && files.any(|path| other.files().iter().any(|known| last_part(known) == last_part(path)))
}

/// Describes the fix of the failed call at `at`. `actions` must contain the texts, and `folder` is
/// the session's folder. `None` if the texts show that the call that worked has another target.
pub(super) fn describe_fix(
    actions: &[Action<'_>],
    at: usize,
    fixing_call: FixingCall,
    folder: Option<&str>,
) -> Option<Fix> {
    let failed = actions.get(at)?;
    let worked = actions.get(fixing_call.at)?;
    let between = actions.get(at + 1..fixing_call.at)?;
    // The search for the call may have lacked the texts, which name the folder of a command.
    let matched = match fixing_call.matched {
        FixMatch::SameCall | FixMatch::SimilarCommand => {
            let line = parse_command_line(failed, folder);
            let other = parse_command_line(worked, folder);
            let is_same = line.zip(other).is_some_and(|(line, other)| line.is_same_as(&other));
            if is_same { FixMatch::SameCall } else { FixMatch::SimilarCommand }
        }
        FixMatch::SameTool if !shares_target(failed, worked) => return None,
        FixMatch::SameFile | FixMatch::SameTool => fixing_call.matched,
    };
    let changed = match matched {
        FixMatch::SameCall => None,
        // Only the arguments show that the same line ran in another folder.
        FixMatch::SimilarCommand if failed.command() != worked.command() => diff_lines(
            &clean_text(failed.command().unwrap_or_default()),
            &clean_text(worked.command().unwrap_or_default()),
            MAX_DIFF_BYTES,
        ),
        FixMatch::SimilarCommand | FixMatch::SameFile | FixMatch::SameTool => {
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
        matched,
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
