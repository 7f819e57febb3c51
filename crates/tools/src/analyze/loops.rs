//! Reports calls that are repeated with the same result, and edits that go back and forth.

use std::collections::HashMap;

use schemas::ToolKind;
use schemas::envelope::Severity;
use schemas::tool::analyze::{Check, Finding};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::action::{Action, ActionOutcome};
use super::error_summary::is_header_line;
use super::finding::{MAX_RELATED_EVENTS, finding_at};
use crate::reply::change::Edit;
use crate::reply::convert;
use base::sanitize::clean_text;

/// Maximum number of other calls between two calls of a loop that does not fail.
const MAX_GAP_CALLS: usize = 4;

/// Minimum number of calls that form a loop.
const MIN_LOOP_CALLS: usize = 3;

/// Minimum number of calls that form a costly loop, which is reported one level more severe.
const MIN_COSTLY_CALLS: usize = 6;

/// Maximum size in bytes of the shown part of an undone edit.
const MAX_DIFF_BYTES: usize = 400;

pub(super) fn find_loops(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut found = find_repeats(actions);
    found.extend(find_oscillations(actions));
    found
}

/// Finds runs of the same call with the same result.
fn find_repeats(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut same: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, action) in actions.iter().enumerate() {
        let is_whole = matches!(action.outcome, ActionOutcome::Worked | ActionOutcome::Failed);
        if is_whole && !action.is_edit() {
            same.entry(call_key(action)).or_default().push(at);
        }
    }
    let edits = count_edits_before(actions);

    let mut found = Vec::new();
    for calls in same.into_values() {
        if calls.len() < 2 {
            continue;
        }
        let mut run: Vec<usize> = Vec::new();
        let mut run_key = None;
        for at in calls {
            let Some(action) = actions.get(at) else { continue };
            let key = Some((action.outcome, result_key(action)));
            let last = run.last().copied().unwrap_or(at);
            let continues = action.outcome == ActionOutcome::Failed
                || (at - last <= MAX_GAP_CALLS + 1 && edits_between(&edits, last, at) == 0);
            if key != run_key || !continues {
                found.extend(repeat_finding(actions, &run, &edits));
                run.clear();
                run_key = key;
            }
            run.push(at);
        }
        found.extend(repeat_finding(actions, &run, &edits));
    }
    found
}

/// Returns the number of edits before each action: a call after an edit may have a different
/// result.
fn count_edits_before(actions: &[Action<'_>]) -> Vec<usize> {
    let mut edits = Vec::with_capacity(actions.len() + 1);
    let mut count = 0;
    edits.push(count);
    for action in actions {
        count += usize::from(action.is_edit() && action.has_succeeded());
        edits.push(count);
    }
    edits
}

/// Returns the number of edits between two actions, from the numbers of edits before each.
fn edits_between(edits: &[usize], first: usize, last: usize) -> usize {
    match (edits.get(first), edits.get(last)) {
        (Some(first), Some(last)) => last - first,
        _ => 0,
    }
}

/// Returns a finding if the run is long enough to report. `edits` are the numbers of edits before
/// each action.
fn repeat_finding(actions: &[Action<'_>], run: &[usize], edits: &[usize]) -> Option<Finding> {
    let (last, earlier) = run.split_last()?;
    let first = run.first()?;
    let action = actions.get(*last)?;
    let (severity, reason) = if action.outcome == ActionOutcome::Failed {
        rate_failing_run(run.len(), edits_between(edits, *first, *last))?
    } else {
        rate_successful_run(action, run.len())?
    };
    let related = earlier.iter().rev().take(MAX_RELATED_EVENTS).filter_map(|at| actions.get(*at));
    Some(Finding {
        call: action.describe_call(),
        occurrences: Some(run.len()),
        related_event_ids: related
            .map(|action| convert::event_id(action.outcome_event()))
            .collect(),
        ..finding_at(Check::Loops, severity, action.outcome_event(), reason)
    })
}

/// Rates and describes a call that failed this number of times the same way; `None` if it is not
/// reported.
fn rate_failing_run(times: usize, edits: usize) -> Option<(Severity, String)> {
    if times == 2 && edits == 0 {
        let reason = "Tried again without a change, and it failed the same way";
        return Some((Severity::Info, reason.to_owned()));
    }
    if times < MIN_LOOP_CALLS {
        return None;
    }
    let severity = if times >= MIN_COSTLY_CALLS { Severity::Error } else { Severity::Warning };
    let changed = match edits {
        0 => "nothing was edited in between".to_owned(),
        1 => "1 edit in between did not change that".to_owned(),
        edits => format!("{edits} edits in between did not change that"),
    };
    Some((severity, format!("The same call failed {times} times the same way; {changed}")))
}

/// Rates and describes a call that gave the same result this number of times; `None` if it is not
/// reported.
fn rate_successful_run(action: &Action<'_>, times: usize) -> Option<(Severity, String)> {
    if times < MIN_LOOP_CALLS {
        return None;
    }
    let is_polling = action.kind == ToolKind::Execute && action.command().is_none();
    if is_polling {
        return Some((Severity::Info, format!("Polled {times} times without new output")));
    }
    let severity = if times >= MIN_COSTLY_CALLS { Severity::Warning } else { Severity::Info };
    Some((severity, format!("The same call gave the same result {times} times")))
}

/// Hashes the tool and the arguments of a call.
fn call_key(action: &Action<'_>) -> u64 {
    let mut hash = Xxh3Default::new();
    hash.update(action.tool_name().unwrap_or_default().as_bytes());
    hash.update(&[0]);
    hash.update(action.call.text.as_bytes());
    hash.digest()
}

/// Hashes the result without the agent's wrapping lines and without numbers: times differ with
/// every call.
fn result_key(action: &Action<'_>) -> u64 {
    let text = &action.outcome_event().text;
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !is_header_line(line.trim())) {
        let mut is_in_number = false;
        for c in line.chars() {
            if !c.is_ascii_digit() {
                plain.push(c);
            } else if !is_in_number {
                plain.push('0');
            }
            is_in_number = c.is_ascii_digit();
        }
        plain.push('\n');
    }
    xxh3_64(plain.as_bytes())
}

/// Finds edits of one file that undo the previous edit, back and forth.
fn find_oscillations(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut chains: Vec<Vec<usize>> = Vec::new();
    // The edit of a file that would continue a chain.
    let mut expected: HashMap<(&str, Edit), usize> = HashMap::new();
    // The last whole content written to a file, which is the file's state.
    let mut written: HashMap<&str, String> = HashMap::new();
    for (at, action) in actions.iter().enumerate() {
        if !action.has_succeeded() || !action.is_edit() {
            continue;
        }
        let [file] = action.files() else { continue };
        let Some(mut edit) = Edit::parse(&action.call.text) else { continue };
        if action.kind == ToolKind::Write && edit.removed.is_empty() {
            match written.insert(file, edit.added.clone()) {
                Some(before) => edit.removed = before,
                None => continue,
            }
        }
        let chain = match expected.remove(&(file.as_str(), edit.clone())) {
            Some(chain) => chain,
            None => {
                chains.push(Vec::new());
                chains.len() - 1
            }
        };
        if let Some(chain) = chains.get_mut(chain) {
            chain.push(at);
        }
        expected.insert((file.as_str(), edit.inverse()), chain);
    }
    chains.iter().filter_map(|chain| undone_finding(actions, chain)).collect()
}

/// Returns a finding if edits undo each other.
fn undone_finding(actions: &[Action<'_>], chain: &[usize]) -> Option<Finding> {
    let (last, earlier) = chain.split_last()?;
    if earlier.is_empty() {
        return None;
    }
    let action = actions.get(*last)?;
    let times = chain.len();
    let (severity, reason) = if times == 2 {
        (Severity::Info, "This edit undoes an earlier one".to_owned())
    } else {
        let severity = if times >= MIN_COSTLY_CALLS { Severity::Error } else { Severity::Warning };
        (severity, format!("{times} edits went back and forth between two states"))
    };
    let related = earlier.iter().rev().take(MAX_RELATED_EVENTS).filter_map(|at| actions.get(*at));
    Some(Finding {
        call: action.describe_call(),
        message: Edit::parse(&clean_text(&action.call.text))
            .and_then(|edit| edit.diff(MAX_DIFF_BYTES)),
        occurrences: Some(times),
        related_event_ids: related.map(|action| convert::event_id(action.call)).collect(),
        ..finding_at(Check::Loops, severity, action.call, reason)
    })
}

#[cfg(test)]
mod tests {
    use schemas::EventType;
    use schemas::session::EventRow;

    use super::super::action::pair_calls;
    use super::*;

    /// Rows of calls with their results: tool, arguments, file, result, whether it failed.
    fn rows(calls: &[(&str, &str, Option<&str>, &str, bool)]) -> Vec<EventRow> {
        let mut rows = Vec::new();
        for ((tool, arguments, file, result, failed), number) in calls.iter().zip(0..) {
            let call = EventRow {
                session_id: "s".to_owned(),
                event_index: number * 2,
                event_type: EventType::ToolCall,
                tool_name: Some((*tool).to_owned()),
                tool_call_id: Some(format!("c{number}")),
                files: file.map(|file| vec![file.to_owned()]),
                command: arguments.strip_prefix("command: ").map(str::to_owned),
                text: (*arguments).to_owned(),
                ..EventRow::default()
            };
            rows.push(call.clone());
            rows.push(EventRow {
                event_index: number * 2 + 1,
                event_type: EventType::ToolResult,
                text: (*result).to_owned(),
                is_error: Some(*failed),
                ..call
            });
        }
        rows
    }

    fn found(calls: &[(&str, &str, Option<&str>, &str, bool)]) -> Vec<(String, usize, Severity)> {
        let rows = rows(calls);
        let findings = find_loops(&pair_calls(&rows));
        let fact = |f: Finding| (f.event_id, f.occurrences.unwrap_or(1), f.severity);
        findings.into_iter().map(fact).collect()
    }

    const EDIT: (&str, &str, Option<&str>, &str, bool) =
        ("Edit", "old_string: a\nnew_string: b", Some("/x"), "done", false);
    const BACK: (&str, &str, Option<&str>, &str, bool) =
        ("Edit", "old_string: b\nnew_string: a", Some("/x"), "done", false);

    #[test]
    fn a_call_that_fails_the_same_way_is_a_loop_but_another_failure_is_not() {
        let test = |result| ("Bash", "command: cargo test", None, result, true);
        let seconds = ["Exit code 1\nFAILED in 3.1 s", "Exit code 1\nFAILED in 12.25 s"];
        // Twice without an edit is a retry, with an edit between it is work.
        assert_eq!(
            found(&[test(seconds[0]), test(seconds[1])]),
            [("s:3".to_owned(), 2, Severity::Info)]
        );
        assert!(found(&[test(seconds[0]), EDIT, test(seconds[1])]).is_empty());
        assert_eq!(
            found(&[test(seconds[0]), EDIT, test(seconds[1]), test(seconds[0])]),
            [("s:7".to_owned(), 3, Severity::Warning)]
        );
        // Another failure is progress.
        assert!(found(&[test(seconds[0]), test("something else"), test(seconds[0])]).is_empty());
    }

    #[test]
    fn a_call_with_the_same_result_is_a_loop_if_nothing_happened_in_between() {
        let status = ("Bash", "command: git status", None, "clean", false);
        let other = ("Read", "file_path: /y", Some("/y"), "text", false);
        assert_eq!(
            found(&[status, other, status, status]),
            [("s:7".to_owned(), 3, Severity::Info)]
        );
        assert!(found(&[status, EDIT, status, status]).is_empty());
        let far = [status, other, EDIT, other, status, other, EDIT, other, status];
        assert!(found(&far).is_empty());
    }

    #[test]
    fn edits_that_go_back_and_forth_are_one_chain() {
        assert_eq!(found(&[EDIT, BACK]), [("s:2".to_owned(), 2, Severity::Info)]);
        assert_eq!(found(&[EDIT, BACK, EDIT]), [("s:4".to_owned(), 3, Severity::Warning)]);
        // In another file, or after another edit, it is not a chain.
        let elsewhere = ("Edit", BACK.1, Some("/y"), "done", false);
        assert!(found(&[EDIT, elsewhere]).is_empty());
        assert!(found(&[EDIT, EDIT]).is_empty());
        let write = |text| ("Write", text, Some("/x"), "done", false);
        let (a, b) = ("file_path: /x\ncontent: a", "file_path: /x\ncontent: b");
        assert_eq!(
            found(&[write(a), write(b), write(a), write(b)]),
            [("s:6".to_owned(), 3, Severity::Warning)]
        );
    }
}
