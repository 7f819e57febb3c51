//! Calls and requests that failed, with the message and the call that worked afterwards.

use std::collections::HashMap;

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Finding, Fix, FixMatch};
use schemas::{EventType, ToolKind};

use super::action::{Action, Outcome, failed, is};
use super::command::programs;
use super::fix::{self, Mended};
use super::interruptions::{Stop, stopped};
use super::telling::{Telling, telling};
use super::{RELATED, finding, short};
use crate::tools::convert;

/// Size of the name of a program or a tool in a signature, in bytes.
const NAME: usize = 60;

/// A failed call.
pub(super) struct Failure {
    /// Its place among the actions.
    pub at: usize,
    pub telling: Telling,
    /// Nothing was wrong with the call itself: it printed nothing, or one beside it failed.
    pub is_trivial: bool,
    pub mended: Option<Mended>,
}

/// The failed calls, in their order.
pub(super) fn failures(actions: &[Action<'_>]) -> Vec<Failure> {
    let beside = Outcome::Stopped(Stop::Beside);
    let failed =
        |action: &Action<'_>| matches!(action.outcome, Outcome::Failed) || action.outcome == beside;
    if !actions.iter().any(failed) {
        return Vec::new();
    }
    let lines = fix::lines(actions);
    let failures = actions.iter().enumerate().filter(|(_, action)| failed(action));
    let failure = |(at, action): (usize, &Action<'_>)| {
        let telling = told(action);
        let is_trivial = telling.excerpt.is_empty() || action.outcome == beside;
        let mended = if is_trivial { None } else { fix::mended(actions, &lines, at) };
        Failure { at, telling, is_trivial, mended }
    };
    failures.map(failure).collect()
}

/// What the result of a call says is wrong.
pub(super) fn told(action: &Action<'_>) -> Telling {
    let program = action.command().and_then(|command| programs(command).into_iter().next());
    let who = program.or_else(|| action.tool().map(str::to_owned)).unwrap_or_default();
    telling(&action.shown().text, &short(&who, NAME), action.kind == ToolKind::Execute)
}

/// What a notification says is wrong.
pub(super) fn told_by_notification(row: &EventRow) -> Telling {
    telling(&row.text, row.subtype.as_deref().unwrap_or("error"), false)
}

/// Whether a row is a request, a hook or the like that failed, and not a call.
pub(super) fn failed_otherwise(row: &EventRow) -> bool {
    is(row, EventType::Notification) && failed(row) && !row.is_replay && stopped(row).is_none()
}

/// One finding for all failures that say the same and were mended by the same call, at the last.
pub(super) fn findings(rows: &[EventRow], actions: &[Action<'_>]) -> Vec<Finding> {
    let failures = failures(actions);
    let mut groups: Vec<Vec<&Failure>> = Vec::new();
    let mut known: HashMap<(&str, Option<usize>), usize> = HashMap::new();
    for failure in &failures {
        let same = (failure.telling.signature.as_str(), failure.mended.map(|mended| mended.at));
        let group = *known.entry(same).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(failure),
            None => groups.push(vec![failure]),
        }
    }
    let mut found: Vec<Finding> =
        groups.iter().filter_map(|group| of_calls(group, actions)).collect();
    found.extend(otherwise(rows));
    found
}

fn of_calls(group: &[&Failure], actions: &[Action<'_>]) -> Option<Finding> {
    let failure = group.last()?;
    let action = actions.get(failure.at)?;
    let fix = failure.mended.and_then(|mended| fix::describe(actions, failure.at, mended));
    // A search that missed costs little.
    let is_light = matches!(action.kind, ToolKind::Read | ToolKind::Search | ToolKind::Web);
    let severity = match (failure.is_trivial, is_light, fix.is_some()) {
        (true, ..) | (_, true, true) => Severity::Info,
        (_, true, false) | (_, false, true) => Severity::Warning,
        (_, false, false) => Severity::Error,
    };
    let shown = action.shown();
    let times = if group.len() > 1 { format!(" {} times", group.len()) } else { String::new() };
    let code = shown.exit_code.filter(|code| *code != 0);
    let code = code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
    let reason = if action.outcome != Outcome::Failed {
        format!("Cancelled{times}, as a call beside it failed")
    } else if failure.is_trivial {
        format!("Failed{times}{code} and printed nothing")
    } else {
        format!("Failed{times}{code}; {}", what_came_of_it(fix.as_ref()))
    };
    let others = group.iter().rev().skip(1).filter_map(|failure| actions.get(failure.at));
    Some(Finding {
        call: action.label(),
        message: Some(failure.telling.excerpt.clone()).filter(|text| !text.is_empty()),
        occurrences: (group.len() > 1).then_some(group.len()),
        related_event_ids: others
            .take(RELATED)
            .map(|action| convert::event_id(action.shown()))
            .collect(),
        fix,
        ..finding(Check::Failures, severity, shown, reason)
    })
}

/// As half a sentence.
pub(super) fn what_came_of_it(fix: Option<&Fix>) -> String {
    let Some(fix) = fix else { return "nothing like it worked afterwards".to_owned() };
    let what = match fix.matched {
        FixMatch::SameCall => "the same command",
        FixMatch::SimilarCommand => "a similar command",
        FixMatch::SameFile => "such a call on the same file",
        FixMatch::SameTool => "the next call of the tool that worked",
    };
    let verb = if fix.matched == FixMatch::SameTool { "came" } else { "worked" };
    let later = match fix.calls_between {
        0 => "at once".to_owned(),
        1 => "after 1 other call".to_owned(),
        calls => format!("after {calls} other calls"),
    };
    let edits = match fix.edits.len() + fix.edits_omitted {
        0 => String::new(),
        1 => ", 1 of them an edit".to_owned(),
        edits => format!(", {edits} of them edits"),
    };
    format!("{what} {verb} {later}{edits}")
}

/// Requests and hooks that failed: one finding for all that say the same, at the last.
fn otherwise(rows: &[EventRow]) -> Vec<Finding> {
    let mut groups: Vec<(Telling, Vec<&EventRow>)> = Vec::new();
    for row in rows.iter().filter(|row| failed_otherwise(row)) {
        let told = told_by_notification(row);
        match groups.iter_mut().find(|(known, _)| known.signature == told.signature) {
            Some((_, group)) => group.push(row),
            None => groups.push((told, vec![row])),
        }
    }
    let answers = |row: &&EventRow| {
        !row.is_replay && (is(row, EventType::Message) || is(row, EventType::ToolCall))
    };
    let went_on = rows.iter().rev().find(answers).map(|row| row.event_index);
    let finding_of = |(told, group): (Telling, Vec<&EventRow>)| {
        let last = group.last()?;
        let times = if group.len() > 1 { format!(" {} times", group.len()) } else { String::new() };
        let (severity, after) = match went_on {
            Some(index) if index > last.event_index => {
                (Severity::Info, "the agent went on after it")
            }
            _ => (Severity::Error, "the agent did not go on after it"),
        };
        Some(Finding {
            message: Some(told.excerpt).filter(|text| !text.is_empty()),
            occurrences: (group.len() > 1).then_some(group.len()),
            related_event_ids: group
                .iter()
                .rev()
                .skip(1)
                .take(RELATED)
                .map(|row| convert::event_id(row))
                .collect(),
            ..finding(
                Check::Failures,
                severity,
                last,
                format!("An error outside of calls{times}; {after}"),
            )
        })
    };
    groups.into_iter().filter_map(finding_of).collect()
}
