//! Reports the same call with the same result again and again, and edits that go back and forth.

use std::collections::HashMap;

use schemas::ToolKind;
use schemas::envelope::Severity;
use schemas::tool::analyze::{Check, Finding};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::action::{Action, Outcome};
use super::change::Edit;
use super::finding::{RELATED, finding};
use super::telling::is_head;
use crate::base::sanitize::clean;
use crate::tools::reply::convert;

/// Maximum number of other calls between two calls of a loop that does not fail.
const GAP: usize = 4;

/// Minimum number of calls that form a loop (`LOOP`), and that form a costly one (`COSTLY`).
const LOOP: usize = 3;
const COSTLY: usize = 6;

/// Maximum size in bytes of the shown part of an undone edit.
const DIFF: usize = 400;

pub(super) fn findings(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut found = repeats(actions);
    found.extend(oscillations(actions));
    found
}

/// Finds runs of the same call with the same result.
fn repeats(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut same: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, action) in actions.iter().enumerate() {
        let is_whole = matches!(action.outcome, Outcome::Worked | Outcome::Failed);
        if is_whole && !action.edits() {
            same.entry(call_key(action)).or_default().push(at);
        }
    }
    // The number of edits before each action: a call after an edit may have a different result.
    let mut edits = vec![0usize];
    for action in actions {
        let before = edits.last().copied().unwrap_or(0);
        edits.push(before + usize::from(action.edits() && action.worked()));
    }
    let edits_between =
        |a: usize, b: usize| edits.get(b).zip(edits.get(a)).map_or(0, |(b, a)| b - a);
    let mut found = Vec::new();
    for calls in same.into_values().filter(|calls| calls.len() > 1) {
        let mut run: Vec<usize> = Vec::new();
        let mut key = None;
        for at in calls {
            let Some(action) = actions.get(at) else { continue };
            let now = Some((action.outcome, result_key(action)));
            let last = run.last().copied().unwrap_or(at);
            let fails = action.outcome == Outcome::Failed;
            let goes_on = fails || (at - last <= GAP + 1 && edits_between(last, at) == 0);
            if now != key || !goes_on {
                found.extend(repeat(actions, &run, &edits_between));
                run.clear();
                key = now;
            }
            run.push(at);
        }
        found.extend(repeat(actions, &run, &edits_between));
    }
    found
}

/// Returns a finding if the run is long enough to report.
fn repeat(
    actions: &[Action<'_>],
    run: &[usize],
    edits_between: &dyn Fn(usize, usize) -> usize,
) -> Option<Finding> {
    let (first, last) = (*run.first()?, *run.last()?);
    let action = actions.get(last)?;
    let (times, edits) = (run.len(), edits_between(first, last));
    let fails = action.outcome == Outcome::Failed;
    let polls = action.kind == ToolKind::Execute && action.command().is_none();
    let (severity, reason) = match (fails, times) {
        (true, LOOP..) => {
            let severity = if times >= COSTLY { Severity::Error } else { Severity::Warning };
            let changed = match edits {
                0 => "nothing was edited in between".to_owned(),
                1 => "1 edit in between changed nothing about it".to_owned(),
                edits => format!("{edits} edits in between changed nothing about it"),
            };
            (severity, format!("The same call failed {times} times the same way; {changed}"))
        }
        (true, 2) if edits == 0 => {
            let reason = "Tried again without a change, and it failed the same way";
            (Severity::Info, reason.to_owned())
        }
        (false, LOOP..) if polls => {
            (Severity::Info, format!("Asked {times} times without any news"))
        }
        (false, LOOP..) => {
            let severity = if times >= COSTLY { Severity::Warning } else { Severity::Info };
            (severity, format!("The same call gave the same result {times} times"))
        }
        _ => return None,
    };
    let related = run.iter().rev().skip(1).take(RELATED).filter_map(|at| actions.get(*at));
    Some(Finding {
        call: action.label(),
        occurrences: Some(times),
        related_event_ids: related.map(|action| convert::event_id(action.shown())).collect(),
        ..finding(Check::Loops, severity, action.shown(), reason)
    })
}

fn call_key(action: &Action<'_>) -> u64 {
    let mut hash = Xxh3Default::new();
    hash.update(action.tool().unwrap_or_default().as_bytes());
    hash.update(&[0]);
    hash.update(action.call.text.as_bytes());
    hash.digest()
}

/// Hashes the result without the agent's wrapping lines and without numbers: times differ with
/// every call.
fn result_key(action: &Action<'_>) -> u64 {
    let text = &action.shown().text;
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !is_head(line.trim())) {
        let mut digits = false;
        for c in line.chars() {
            if !c.is_ascii_digit() {
                plain.push(c);
            } else if !digits {
                plain.push('0');
            }
            digits = c.is_ascii_digit();
        }
        plain.push('\n');
    }
    xxh3_64(plain.as_bytes())
}

/// Finds edits of one file that undo the previous edit, back and forth.
fn oscillations(actions: &[Action<'_>]) -> Vec<Finding> {
    let mut chains: Vec<Vec<usize>> = Vec::new();
    // The edit of a file that would continue a chain.
    let mut expected: HashMap<(&str, Edit), usize> = HashMap::new();
    // The last whole content written to a file, which is the file's state.
    let mut written: HashMap<&str, String> = HashMap::new();
    for (at, action) in actions.iter().enumerate().filter(|(_, action)| action.worked()) {
        let [file] = action.files() else { continue };
        let read = || Edit::read(&action.call.text);
        let Some(mut edit) = action.edits().then(read).flatten() else { continue };
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
    chains
        .iter()
        .filter(|chain| chain.len() > 1)
        .filter_map(|chain| undone(actions, chain))
        .collect()
}

fn undone(actions: &[Action<'_>], chain: &[usize]) -> Option<Finding> {
    let action = actions.get(*chain.last()?)?;
    let (severity, reason) = match chain.len() {
        2 => (Severity::Info, "This edit takes back an earlier one".to_owned()),
        times => {
            let severity = if times >= COSTLY { Severity::Error } else { Severity::Warning };
            (severity, format!("Edits went to and fro between two states, {times} in all"))
        }
    };
    let related = chain.iter().rev().skip(1).take(RELATED).filter_map(|at| actions.get(*at));
    let diff = Edit::read(&clean(&action.call.text)).and_then(|edit| edit.diff(DIFF));
    Some(Finding {
        call: action.label(),
        message: diff,
        occurrences: Some(chain.len()),
        related_event_ids: related.map(|action| convert::event_id(action.call)).collect(),
        ..finding(Check::Loops, severity, action.call, reason)
    })
}

#[cfg(test)]
mod tests {
    use schemas::EventType;
    use schemas::session::EventRow;

    use super::super::action::actions;
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
        let findings = findings(&actions(&rows));
        let fact = |f: Finding| (f.event_id, f.occurrences.unwrap_or(1), f.severity);
        findings.into_iter().map(fact).collect()
    }

    const EDIT: (&str, &str, Option<&str>, &str, bool) =
        ("Edit", "old_string: a\nnew_string: b", Some("/x"), "done", false);
    const BACK: (&str, &str, Option<&str>, &str, bool) =
        ("Edit", "old_string: b\nnew_string: a", Some("/x"), "done", false);

    #[test]
    fn a_call_that_fails_alike_is_a_loop_and_one_that_waits_is_told_apart() {
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
    fn a_call_that_works_alike_is_a_loop_when_nothing_happened_in_between() {
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
    fn edits_that_go_to_and_fro_are_one_chain() {
        assert_eq!(found(&[EDIT, BACK]), [("s:2".to_owned(), 2, Severity::Info)]);
        assert_eq!(found(&[EDIT, BACK, EDIT]), [("s:4".to_owned(), 3, Severity::Warning)]);
        // In another file, or after another edit, it is none.
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
