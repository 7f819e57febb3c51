//! Formats the end of a session as text.

use std::fmt::Write as _;

use schemas::tool::details::{CallGlance, SessionEnd};

use super::show::indent_lines;
use base::sanitize::one_line;

/// Formats how a session ended and what it left open.
pub(super) fn end_lines(end: &SessionEnd) -> String {
    let mut out = String::new();
    append_calls(&mut out, "last calls", &end.last_calls);
    append_calls(&mut out, "calls without a result", &end.unfinished_calls);
    if let Some(event_id) = &end.unanswered_prompt {
        let _ = writeln!(out, "the last prompt has no answer  {event_id}");
    }
    append_calls(&mut out, "rejected plan", end.rejected_plan.as_slice());
    if !end.todos.is_empty() {
        out.push_str("open to-dos\n");
    }
    for todo in &end.todos {
        let _ = writeln!(out, "    {}  {}  {}", todo.event_id, todo.state, todo.text);
    }
    if end.todos_omitted > 0 {
        let _ = writeln!(out, "    and {} more", end.todos_omitted);
    }
    if let Some(open) = &end.compaction {
        let _ = writeln!(out, "open at the last compaction  {}", open.event_id);
        out.push_str(&indent_lines(&open.text, "    "));
        if open.omitted > 0 {
            let _ = writeln!(out, "    … {} more characters", open.omitted);
        }
    }
    if let Some(uncommitted) = &end.uncommitted {
        append_files(&mut out, "git status", uncommitted.event_id.as_deref(), &uncommitted.files);
        append_files(
            &mut out,
            "edited since",
            uncommitted.edit_event_id.as_deref(),
            &uncommitted.edited,
        );
        if uncommitted.omitted > 0 {
            let _ = writeln!(out, "    and {} more files", uncommitted.omitted);
        }
    }
    out
}

fn append_calls(out: &mut String, label: &str, calls: &[CallGlance]) {
    if !calls.is_empty() {
        let _ = writeln!(out, "{label}");
    }
    for call in calls {
        let _ = writeln!(
            out,
            "    {}  {} {}  {}",
            call.event_id,
            call.tool_name.as_deref().unwrap_or("unknown tool"),
            call.state,
            call.call.as_deref().map(one_line).unwrap_or_default()
        );
    }
}

fn append_files(out: &mut String, label: &str, event: Option<&str>, files: &[String]) {
    if !files.is_empty() {
        let files = files.join(" ");
        let _ = writeln!(out, "uncommitted ({label} {})  {files}", event.unwrap_or("unknown"));
    }
}
