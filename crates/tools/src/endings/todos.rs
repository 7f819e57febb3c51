//! Collects the open to-dos of a session from the calls of its plan tools.
//!
//! ```text
//! todos:                       plan:                    subject: Fix the retry
//!   - content: Add a test        - step: Add a test     description: ...
//!     status: in_progress          status: pending      -> "Task #2 created successfully: ..."
//! - [ ] Add a test                                      taskId: 2
//! - [x] Read the code                                   status: completed
//! ```
//!
//! A list replaces the list before it, unless the call says that it merges; tasks are created and
//! updated one by one.

use schemas::tool::details::Todo;
use schemas::{EventType, ToolKind};

use crate::analyze::{Action, ActionOutcome};
use crate::reply::convert;
use crate::reply::event_predicates::{is_type, plain_tool_name};
use base::sanitize::{clean_text, cut_for_json, one_line};

/// Names of the field that holds what is to be done, the most telling first.
const TEXT_FIELDS: &[&str] =
    &["content", "step", "title", "subject", "task", "text", "name", "description"];

/// Names of the field that holds the state.
const STATE_FIELDS: &[&str] = &["status", "state", "completed", "done"];

/// Names of the field that identifies an item.
const ID_FIELDS: &[&str] = &["id", "taskId", "task_id"];

/// States of what needs no more work.
const CLOSED_STATES: &[&str] = &[
    "completed",
    "complete",
    "done",
    "finished",
    "cancelled",
    "canceled",
    "deleted",
    "skipped",
    "closed",
    "true",
    "abandoned",
];

/// Maximum number of items that a session's plan may have.
const MAX_ITEMS: usize = 500;

/// An item of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PlanItem {
    id: Option<String>,
    text: String,
    state: String,
    event_id: String,
    turn_index: u32,
}

/// Returns the to-dos that are not done after the last call. `actions` are those of the session's
/// main agent.
pub(super) fn collect_open_todos(actions: &[&Action<'_>], bytes: usize) -> Vec<Todo> {
    let mut listed: Vec<PlanItem> = Vec::new();
    let mut tasks: Vec<PlanItem> = Vec::new();
    for action in actions {
        let has_worked = matches!(action.outcome, ActionOutcome::Worked | ActionOutcome::Open);
        if has_worked && is_type(action.call, EventType::ToolCall) {
            apply_call(action, &mut listed, &mut tasks);
        }
    }
    let open = listed.into_iter().chain(tasks).filter(|item| !is_closed(&item.state));
    open.map(|item| Todo {
        event_id: item.event_id,
        turn_index: item.turn_index,
        text: cut_for_json(&one_line(&item.text), bytes),
        state: cut_for_json(&item.state, 40),
    })
    .collect()
}

/// Applies a call to the items known so far.
fn apply_call(action: &Action<'_>, listed: &mut Vec<PlanItem>, tasks: &mut Vec<PlanItem>) {
    let name = plain_tool_name(action.tool_name().unwrap_or_default());
    let text = clean_text(&action.call.text);
    match name.as_str() {
        "taskcreate" => tasks.extend(created_task(action, &text)),
        "taskupdate" => update_task(action, &text, tasks),
        "tasklist" => {
            let result = action.result.map(|result| clean_text(&result.text)).unwrap_or_default();
            let all = parse_task_list(&result);
            if !all.is_empty() {
                *tasks = all.into_iter().map(|item| at_event(item, action)).collect();
            }
        }
        _ if action.kind == ToolKind::Plan || name.contains("todo") => {
            let items = parse_list(&text).or_else(|| parse_checklist(&text));
            let Some(items) = items else { return };
            let items = items.into_iter().map(|item| at_event(item, action));
            if text.lines().any(|line| line.trim() == "merge: true") {
                merge_items(listed, items);
            } else {
                *listed = items.collect();
            }
        }
        // Cline passes its checklist along with any call.
        _ => {
            let Some((_, checklist)) = text.split_once("task_progress: ") else { return };
            let Some(items) = parse_checklist(checklist) else { return };
            *listed = items.into_iter().map(|item| at_event(item, action)).collect();
        }
    }
    listed.truncate(MAX_ITEMS);
    tasks.truncate(MAX_ITEMS);
}

fn at_event(item: PlanItem, action: &Action<'_>) -> PlanItem {
    PlanItem {
        event_id: convert::event_id(action.call),
        turn_index: convert::unsigned_index(action.call.turn_index),
        ..item
    }
}

fn is_closed(state: &str) -> bool {
    CLOSED_STATES.contains(&state.to_ascii_lowercase().as_str())
}

/// Replaces the items with the same id, and adds the others.
fn merge_items(listed: &mut Vec<PlanItem>, items: impl Iterator<Item = PlanItem>) {
    for item in items {
        let known = listed.iter_mut().find(|known| known.id.is_some() && known.id == item.id);
        match known {
            Some(known) if item.text.is_empty() => known.state = item.state,
            Some(known) => *known = item,
            None => listed.push(item),
        }
    }
}

/// Returns the task that a call created. Its number is in the result: `Task #2 created`.
fn created_task(action: &Action<'_>, text: &str) -> Option<PlanItem> {
    let subject = text.lines().find_map(|line| line.strip_prefix("subject: "))?;
    let result = action.result.map(|result| result.text.as_str()).unwrap_or_default();
    let number = result.split_once('#').map(|(_, rest)| leading_number(rest));
    let item = PlanItem {
        id: number.filter(|number| !number.is_empty()),
        text: subject.trim().to_owned(),
        state: "pending".to_owned(),
        ..PlanItem::default()
    };
    Some(at_event(item, action))
}

fn leading_number(text: &str) -> String {
    text.chars().take_while(char::is_ascii_digit).collect()
}

/// Changes the task that a call names, if it is known.
fn update_task(action: &Action<'_>, text: &str, tasks: &mut [PlanItem]) {
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        text.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::trim)
    };
    let Some(id) = field("taskId") else { return };
    let Some(task) = tasks.iter_mut().rfind(|task| task.id.as_deref() == Some(id)) else { return };
    if let Some(state) = field("status") {
        task.state = state.to_owned();
    }
    if let Some(subject) = field("subject") {
        task.text = subject.to_owned();
    }
    *task = at_event(std::mem::take(task), action);
}

/// Parses lines like `#6 [pending] Update README`.
fn parse_task_list(text: &str) -> Vec<PlanItem> {
    let mut items = Vec::new();
    for line in text.lines() {
        let Some((number, rest)) = line.strip_prefix('#').and_then(|rest| rest.split_once(" ["))
        else {
            continue;
        };
        let Some((state, subject)) = rest.split_once("] ") else { continue };
        items.push(PlanItem {
            id: Some(number.to_owned()),
            text: subject.trim().to_owned(),
            state: state.to_owned(),
            ..PlanItem::default()
        });
    }
    items
}

/// Parses a list of items with fields; `None` if the text has none. An empty list is a list.
fn parse_list(text: &str) -> Option<Vec<PlanItem>> {
    let mut items: Vec<PlanItem> = Vec::new();
    // The rank of the field that gave an item its text.
    let mut rank = usize::MAX;
    let mut is_list = false;
    for line in text.lines() {
        let field = match line.strip_prefix("  - ") {
            Some(field) => {
                items.push(PlanItem::default());
                rank = usize::MAX;
                field
            }
            None => match line.strip_prefix("    ") {
                Some(field) => field,
                None => {
                    is_list |= matches!(line.trim_end(), "todos: []" | "plan: []" | "todoList: []");
                    continue;
                }
            },
        };
        let Some((name, value)) = field.split_once(": ") else { continue };
        let Some(item) = items.last_mut() else { continue };
        if let Some(at) = TEXT_FIELDS.iter().position(|known| *known == name) {
            if at < rank {
                rank = at;
                item.text = value.trim().to_owned();
            }
        } else if STATE_FIELDS.contains(&name) {
            item.state = value.trim().to_owned();
        } else if ID_FIELDS.contains(&name) {
            item.id = Some(value.trim().to_owned());
        }
    }
    items.retain(|item| !item.state.is_empty() && (!item.text.is_empty() || item.id.is_some()));
    (is_list || !items.is_empty()).then_some(items)
}

/// Parses the boxes of a checklist in Markdown; `None` if the text has none.
fn parse_checklist(text: &str) -> Option<Vec<PlanItem>> {
    let mut items = Vec::new();
    for line in text.lines() {
        let line = line.strip_prefix("todos: ").unwrap_or(line).trim_start();
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || "-*+. ".contains(c));
        let mut chars = line.chars();
        let (Some('['), Some(mark), Some(']')) = (chars.next(), chars.next(), chars.next()) else {
            continue;
        };
        let state = match mark {
            'x' | 'X' | '✓' => "completed",
            ' ' => "pending",
            '-' | '~' | '>' | '/' => "in_progress",
            _ => continue,
        };
        let text = chars.as_str().trim().to_owned();
        items.push(PlanItem { text, state: state.to_owned(), ..PlanItem::default() });
    }
    (!items.is_empty()).then_some(items)
}

#[cfg(test)]
mod tests {
    use schemas::session::EventRow;

    use super::*;
    use crate::analyze::pair_calls;

    /// Returns the open to-dos after calls of these tools with these texts and results.
    fn open_after(calls: &[(&str, &str, &str)]) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        for (number, (tool, text, result)) in (0..).zip(calls) {
            let call = EventRow {
                session_id: "s".to_owned(),
                event_index: 2 * number,
                event_type: EventType::ToolCall,
                tool_name: Some((*tool).to_owned()),
                tool_call_id: Some(number.to_string()),
                text: (*text).to_owned(),
                ..EventRow::default()
            };
            rows.push(EventRow {
                event_index: 2 * number + 1,
                event_type: EventType::ToolResult,
                text: (*result).to_owned(),
                ..call.clone()
            });
            rows.push(call);
        }
        let actions = pair_calls(&rows);
        let actions: Vec<&Action<'_>> = actions.iter().collect();
        let open = collect_open_todos(&actions, 100);
        open.into_iter().map(|todo| (todo.text, todo.state)).collect()
    }

    fn pairs(items: &[(&str, &str)]) -> Vec<(String, String)> {
        items.iter().map(|(text, state)| ((*text).to_owned(), (*state).to_owned())).collect()
    }

    #[test]
    fn the_last_list_counts() {
        let list = "todos:\n  - content: Read\n    status: completed\n    activeForm: Reading\n  - content: Add a test\n    status: in_progress";
        assert_eq!(open_after(&[("TodoWrite", list, "")]), pairs(&[("Add a test", "in_progress")]));
        let done = "todos:\n  - content: Add a test\n    status: completed";
        assert_eq!(open_after(&[("TodoWrite", list, ""), ("TodoWrite", done, "")]), pairs(&[]));
        assert_eq!(open_after(&[("todo_write", list, ""), ("todo_write", "todos: []", "")]), []);
        let plan = "plan:\n  - status: pending\n    step: Ship it\nexplanation: why";
        assert_eq!(open_after(&[("update_plan", plan, "")]), pairs(&[("Ship it", "pending")]));
        let titled =
            "todoList:\n  - id: 1\n    title: Look\n    description: long\n    status: not-started";
        assert_eq!(
            open_after(&[("manage_todo_list", titled, "")]),
            pairs(&[("Look", "not-started")])
        );
    }

    #[test]
    fn a_merged_list_changes_the_items_that_it_names() {
        let all = "todos:\n  - id: a\n    content: One\n    status: pending\n  - id: b\n    content: Two\n    status: pending";
        let change = "merge: true\ntodos:\n  - id: a\n    status: completed";
        assert_eq!(
            open_after(&[("todo_write", all, ""), ("todo_write", change, "")]),
            pairs(&[("Two", "pending")])
        );
    }

    #[test]
    fn tasks_are_created_updated_and_listed() {
        let created = [
            ("TaskCreate", "subject: Fix it\ndescription: long", "Task #1 created successfully: x"),
            ("TaskCreate", "subject: Test it", "Task #2 created successfully: y"),
            ("TaskUpdate", "taskId: 1\nstatus: completed", "Updated task #1 status"),
            ("TaskUpdate", "taskId: 2\nstatus: in_progress", "Updated task #2 status"),
        ];
        assert_eq!(open_after(&created), pairs(&[("Test it", "in_progress")]));
        let listed = [
            created[0],
            ("TaskList", "", "#1 [completed] Fix it\n#5 [pending] Write it down [blocked by #1]"),
        ];
        assert_eq!(open_after(&listed), pairs(&[("Write it down [blocked by #1]", "pending")]));
    }

    #[test]
    fn checklists_are_read_and_plans_in_prose_are_not() {
        let boxes = "todos: - [x] Read\n- [ ] Write\n1. [ ] Test";
        assert_eq!(
            open_after(&[("update_todo", boxes, "")]),
            pairs(&[("Write", "pending"), ("Test", "pending")])
        );
        let passed = "path: a\ntask_progress: - [x] Read\n- [ ] Write";
        assert_eq!(open_after(&[("replace_in_file", passed, "")]), pairs(&[("Write", "pending")]));
        assert_eq!(open_after(&[("ExitPlanMode", "plan: # Plan\n\n## Steps\n- do it", "")]), []);
    }
}
