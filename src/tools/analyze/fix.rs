//! Finds the next successful call similar to a failed one, and what changed between the two.

use schemas::ToolKind;
use schemas::tool::analyze::{Fix, FixEdit, FixMatch};

use super::action::Action;
use super::change::{Edit, diff};
use super::command::Line;
use super::finding::short;
use crate::base::sanitize::clean;
use crate::tools::reply::convert;
use crate::tools::reply::event_predicates::is;

/// Maximum distance, in calls, of the same call (`FAR`) and of a similar call (`NEAR`).
const FAR: usize = 200;
const NEAR: usize = 40;

/// Limits on what is shown: bytes of a diff, bytes of an edit, number of edits, and bytes of a
/// path.
const DIFF: usize = 500;
const EDIT: usize = 300;
const EDITS: usize = 3;
const PATH: usize = 200;

/// The position among the actions of the call that worked, and how it matches the failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mended {
    pub at: usize,
    pub matched: FixMatch,
}

/// Prepares the command line of every action for comparison.
pub(super) fn lines(actions: &[Action<'_>]) -> Vec<Option<Line>> {
    actions.iter().map(|action| action.command().map(Line::of)).collect()
}

/// Finds the call that worked after the failed call at `at`.
pub(super) fn mended(actions: &[Action<'_>], lines: &[Option<Line>], at: usize) -> Option<Mended> {
    let failed = actions.get(at)?;
    let line = lines.get(at)?.as_ref();
    // The nearest call that is only similar. The same call is preferred if it comes soon enough.
    let mut alike = None;
    let reach = if by_command(failed) || failed.edits() { FAR } else { NEAR };
    let later = actions.iter().zip(lines).enumerate().skip(at + 1).take(reach);
    for (number, (other, other_line)) in later.filter(|(_, (other, _))| other.worked()) {
        let is_near = number - at <= NEAR;
        if !is_near && alike.is_some() {
            break;
        }
        let Some(matched) = compare(failed, line, other, other_line.as_ref()) else { continue };
        let found = Mended { at: number, matched };
        if matched == FixMatch::SameCall || !by_command(failed) {
            return Some(found);
        }
        if is_near && alike.is_none() {
            alike = Some(found);
        }
    }
    alike
}

/// Returns true if a call is identified by its command line.
fn by_command(action: &Action<'_>) -> bool {
    action.kind == ToolKind::Execute && action.command().is_some() && action.files().is_empty()
}

/// Returns how a later call matches the failed one.
fn compare(
    failed: &Action<'_>,
    line: Option<&Line>,
    other: &Action<'_>,
    other_line: Option<&Line>,
) -> Option<FixMatch> {
    if by_command(failed) {
        if !by_command(other) {
            return None;
        }
        let same = failed.command() == other.command();
        let resembles = || line.zip(other_line).is_some_and(|(line, other)| line.resembles(other));
        return if same {
            Some(FixMatch::SameCall)
        } else {
            resembles().then_some(FixMatch::SimilarCommand)
        };
    }
    let reads = failed.kind == ToolKind::Read;
    if (reads || failed.edits()) && !failed.files().is_empty() {
        let alike = if reads { other.kind == ToolKind::Read } else { other.edits() };
        let name = |path: &str| path.rsplit(['/', '\\']).next().map(str::to_owned);
        let same = |path: &String| {
            // A missing file may be found elsewhere under the same name.
            other.files().iter().any(|known| known == path || (reads && name(known) == name(path)))
        };
        return (alike && failed.files().iter().any(same)).then_some(FixMatch::SameFile);
    }
    (failed.tool().is_some() && failed.tool() == other.tool()).then_some(FixMatch::SameTool)
}

/// Describes the fix. `actions` must contain the texts.
pub(super) fn describe(actions: &[Action<'_>], at: usize, mended: Mended) -> Option<Fix> {
    let (failed, worked) = (actions.get(at)?, actions.get(mended.at)?);
    let between = actions.get(at + 1..mended.at)?;
    let arguments = |action: &Action<'_>| {
        let is_call = is(action.call, schemas::EventType::ToolCall);
        clean(if is_call { action.call.text.as_str() } else { "" })
    };
    let command = |action: &Action<'_>| clean(action.command().unwrap_or_default());
    let changed = match mended.matched {
        FixMatch::SameCall => None,
        FixMatch::SimilarCommand => diff(&command(failed), &command(worked), DIFF),
        FixMatch::SameFile | FixMatch::SameTool => {
            diff(&arguments(failed), &arguments(worked), DIFF)
        }
    };
    let edits: Vec<_> = between.iter().filter(|action| action.worked() && action.edits()).collect();
    // Edits between the two calls are shown only if a command failed: next to a failed edit they
    // explain nothing.
    let edits = if by_command(failed) { edits } else { Vec::new() };
    let shown = edits.len().saturating_sub(EDITS);
    Some(Fix {
        event_id: convert::event_id(worked.call),
        result_event_id: worked
            .result
            .filter(|result| result.event_index != worked.call.event_index)
            .map(convert::event_id),
        matched: mended.matched,
        calls_between: between.len(),
        diff: changed,
        edits: edits.iter().skip(shown).map(|edit| fix_edit(edit)).collect(),
        edits_omitted: shown,
    })
}

fn fix_edit(action: &Action<'_>) -> FixEdit {
    FixEdit {
        event_id: convert::event_id(action.call),
        files: action.files().iter().take(EDITS).map(|path| short(path, PATH)).collect(),
        diff: Edit::read(&clean(&action.call.text)).and_then(|edit| edit.diff(EDIT)),
    }
}
