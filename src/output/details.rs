//! Formats one session at the levels summary, turns, steps and full.

use anstyle::Style;
use schemas::event::Relation;
use schemas::tool::details::{
    CallGlance, CallState, Continuation, DetailData, Excerpt, SessionEnd, Step, Summary, Turn,
    Uncommitted,
};

use super::event::{abandoned_note, describe_event, push_event};
use super::layout::Layout;
use super::list::push_session;
use super::painted::{DIM, FAILED, ID, PLAIN, PROJECT, PROMPT, Painted, STRONG, SUCCEEDED, WARNED};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::cells::{text_width, truncate_end};
use base::numbers::count_of;
use base::sanitize::{clean_text, one_line};

/// The cells before a text.
const INDENT: &str = "  ";

/// Most cells of the name of a tool.
const MAX_TOOL_WIDTH: usize = 24;

impl Show for DetailData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        push_session(&mut painted, &self.session, layout);
        if let Some(summary) = &self.summary {
            let errors = self.session.counts.map_or(0, |counts| counts.tool_errors);
            push_summary(&mut painted, summary, errors, layout);
        }
        for turn in self.turns.iter().flatten() {
            painted.end_line();
            push_turn(&mut painted, turn, layout);
        }
        for step in self.steps.iter().flatten() {
            painted.end_line();
            push_step(&mut painted, step, layout);
        }
        for event in self.events.iter().flatten() {
            painted.end_line();
            push_event(&mut painted, event, layout, false);
        }
        painted
    }
}

/// Appends the summary of a session; `errors` is the number of all its errors.
fn push_summary(painted: &mut Painted, summary: &Summary, errors: i64, layout: &Layout) {
    let excerpts = [
        (PROMPT, "first prompt", &summary.first_prompt),
        (PROMPT, "last prompt", &summary.last_prompt),
        (STRONG, "last answer", &summary.last_message),
    ];
    for (style, label, excerpt) in excerpts {
        if let Some(excerpt) = excerpt {
            painted.end_line();
            push_excerpt(painted, style, label, excerpt, layout);
        }
    }
    if let Some(since) = &summary.since {
        push_heading(painted, "Since then");
        push_wrapped(painted, PLAIN, INDENT, &layout.text(since), layout.width, usize::MAX);
    }
    push_tools(painted, summary, layout);
    let shown = summary.errors.len();
    if errors > shown as i64 && shown > 0 {
        push_heading(painted, &format!("The last {shown} of {errors} failures"));
    } else if shown > 0 {
        push_heading(painted, "Failures");
    }
    for error in &summary.errors {
        push_described(painted, error, layout);
    }
    for compaction in &summary.compactions {
        painted.end_line();
        push_excerpt(painted, STRONG, "compaction", compaction, layout);
    }
    push_end(painted, &summary.end, layout);
    push_related(painted, summary, layout);
}

fn push_heading(painted: &mut Painted, text: &str) {
    painted.end_line();
    painted.push(STRONG, text);
    painted.end_line();
}

fn push_tools(painted: &mut Painted, summary: &Summary, layout: &Layout) {
    if summary.tools.is_empty() {
        return;
    }
    push_heading(painted, "Tools");
    let mut parts = Vec::new();
    for tool in &summary.tools {
        let failed = match tool.errors {
            0 => String::new(),
            errors => format!(" ({errors} failed)"),
        };
        parts.push(format!("{} ×{}{failed}", one_line(&tool.tool_name), tool.calls));
    }
    push_wrapped(painted, PLAIN, INDENT, &clean_text(&parts.join(", ")), layout.width, usize::MAX);
}

/// Appends how a session ended and what it left open.
fn push_end(painted: &mut Painted, end: &SessionEnd, layout: &Layout) {
    push_calls(painted, "Last calls", &end.last_calls, layout);
    push_calls(painted, "Calls without a result", &end.unfinished_calls, layout);
    push_calls(painted, "Rejected plan", end.rejected_plan.as_slice(), layout);
    if let Some(event_id) = &end.unanswered_prompt {
        painted.end_line();
        painted.push(WARNED, "The last prompt has no answer");
        painted.push_inline(ID, &format!("  {}", layout.event_place(event_id)));
        painted.end_line();
    }
    if !end.todos.is_empty() {
        push_heading(painted, "Open to-dos");
    }
    for todo in &end.todos {
        let place = layout.event_place(&todo.event_id);
        let width = layout.width.saturating_sub(text_width(&place) + todo.state.len() + 5);
        painted.push(PLAIN, INDENT).push_inline(WARNED, &todo.state).push(PLAIN, " ");
        painted.push_inline(PLAIN, &truncate_end(&one_line(&todo.text), width));
        painted.push_inline(ID, &format!("  {place}"));
        painted.end_line();
    }
    if end.todos_omitted > 0 {
        painted.push(DIM, &format!("{INDENT}and {} more", end.todos_omitted));
        painted.end_line();
    }
    if let Some(open) = &end.compaction {
        painted.end_line();
        push_excerpt(painted, STRONG, "open at the last compaction", open, layout);
    }
    if let Some(uncommitted) = &end.uncommitted {
        push_uncommitted(painted, uncommitted, layout);
    }
}

fn push_uncommitted(painted: &mut Painted, uncommitted: &Uncommitted, layout: &Layout) {
    push_heading(painted, "Not committed");
    let sources = [
        ("git status", &uncommitted.event_id, &uncommitted.files),
        ("edited since", &uncommitted.edit_event_id, &uncommitted.edited),
    ];
    for (source, event_id, files) in sources {
        let place = event_id.as_ref().map(|id| format!(" {}", layout.event_place(id)));
        let note = format!("{source}{}", place.unwrap_or_default());
        for file in files {
            let width = layout.width.saturating_sub(INDENT.len() + note.len() + 2);
            let shown = truncate_end(&one_line(file), width);
            painted.push(PLAIN, INDENT);
            layout.push_path(painted, PROJECT, file, &shown);
            painted.push_inline(DIM, &format!("  {note}"));
            painted.end_line();
        }
    }
    if uncommitted.omitted > 0 {
        painted.push(DIM, &format!("{INDENT}and {} more", uncommitted.omitted));
        painted.end_line();
    }
}

fn push_calls(painted: &mut Painted, heading: &str, calls: &[CallGlance], layout: &Layout) {
    if !calls.is_empty() {
        push_heading(painted, heading);
    }
    for call in calls {
        let (style, mark) = match call.state {
            CallState::Worked => (SUCCEEDED, "✓"),
            CallState::Failed => (FAILED, "✗"),
            CallState::Stopped => (WARNED, "■"),
            CallState::Open => (DIM, "…"),
        };
        let mark = layout.mark(mark, call.state.as_str());
        let tool = one_line(call.tool_name.as_deref().unwrap_or("tool"));
        let tool = truncate_end(&tool, layout.limit(MAX_TOOL_WIDTH));
        let place = layout.event_place(&call.event_id);
        let used = INDENT.len() + 2 + text_width(&tool) + 1 + text_width(&place) + 1;
        let width = layout.width.saturating_sub(used);
        let subject = one_line(call.call.as_deref().unwrap_or_default());
        painted.push(PLAIN, INDENT).push(style, mark).push(PLAIN, " ").push(STRONG, &tool);
        painted.push(PLAIN, " ").push(PLAIN, &truncate_end(&subject, width));
        painted.push_inline(ID, &format!(" {place}"));
        painted.end_line();
    }
}

/// Appends the sessions that this one continues, is continued by, and that derive from it.
fn push_related(painted: &mut Painted, summary: &Summary, layout: &Layout) {
    let Summary { continues, continued_by, children, .. } = summary;
    if continues.is_some() || continued_by.is_some() || !children.is_empty() {
        push_heading(painted, "Related sessions");
    }
    for (relation, continuation) in [("continues", continues), ("continued by", continued_by)] {
        if let Some(Continuation { session_id, provider, title, reason }) = continuation {
            let note = format!("  {provider}, {reason}");
            push_related_session(painted, relation, session_id, title.as_deref(), &note, layout);
        }
    }
    for child in children {
        let relation = seen_from_parent(&child.relation);
        let title = child.title.as_deref();
        push_related_session(painted, relation, &child.session_id, title, "", layout);
    }
}

fn push_related_session(
    painted: &mut Painted,
    relation: &str,
    session_id: &str,
    title: Option<&str>,
    note: &str,
    layout: &Layout,
) {
    let id = layout.session_id(session_id);
    let used = INDENT.len() + text_width(relation) + text_width(&id) + text_width(note) + 3;
    let title =
        truncate_end(&one_line(title.unwrap_or_default()), layout.width.saturating_sub(used));
    painted.push(PLAIN, INDENT).push(DIM, relation).push(PLAIN, " ").push_inline(ID, &id);
    painted.push(PLAIN, "  ").push(PLAIN, &title).push(DIM, note);
    painted.end_line();
}

fn push_turn(painted: &mut Painted, turn: &Turn, layout: &Layout) {
    painted.push(STRONG, &format!("Turn {}", turn.turn_index));
    painted.push(DIM, &format!("  {}", layout.time(turn.timestamp.as_deref())));
    let counts =
        format!("  {}, {}", count_of(turn.steps, "step"), count_of(turn.tool_calls, "call"));
    painted.push(DIM, &counts);
    if turn.tool_errors > 0 {
        painted.push(DIM, ", ").push(FAILED, &format!("{} failed", turn.tool_errors));
    }
    painted.push(DIM, abandoned_note(turn.is_abandoned));
    painted.end_line();
    for excerpt in [&turn.prompt, &turn.answer].into_iter().flatten() {
        push_described(painted, excerpt, layout);
    }
}

fn push_step(painted: &mut Painted, step: &Step, layout: &Layout) {
    painted.push(STRONG, &format!("Turn {} step {}", step.turn_index, step.step_index));
    painted.push(DIM, &format!("  {}", layout.time(step.timestamp.as_deref())));
    painted.end_line();
    for event in &step.events {
        push_described(painted, event, layout);
    }
}

/// Appends an excerpt under what its event is.
fn push_described(painted: &mut Painted, excerpt: &Excerpt, layout: &Layout) {
    let Excerpt { event_type, tool_name, subtype, is_error, .. } = excerpt;
    let (style, label) =
        describe_event(*event_type, tool_name.as_deref(), subtype.as_deref(), *is_error);
    push_excerpt(painted, style, &label, excerpt, layout);
}

/// Appends a label, the place of an event and its shortened text.
fn push_excerpt(
    painted: &mut Painted,
    style: Style,
    label: &str,
    excerpt: &Excerpt,
    layout: &Layout,
) {
    let place = layout.event_place(&excerpt.event_id);
    let width = layout.width.saturating_sub(text_width(&place) + 2);
    painted.push_inline(style, &truncate_end(&one_line(label), width));
    painted.push_inline(ID, &format!("  {place}"));
    painted.end_line();
    push_wrapped(painted, PLAIN, INDENT, &layout.text(&excerpt.text), layout.width, usize::MAX);
    if excerpt.omitted > 0 {
        let note = format!("{INDENT}{} more", count_of(excerpt.omitted, "character"));
        painted.push(DIM, &note);
        painted.end_line();
    }
}

/// Describes a session from the view of the session that it is related to.
fn seen_from_parent(relation: &str) -> &str {
    match relation.parse() {
        Ok(Relation::SubagentOf) => "subagent",
        Ok(Relation::ForkedFrom) => "forked as",
        Ok(Relation::ResumedFrom) => "resumed as",
        Ok(Relation::ContinuedFrom) => "continued as",
        Ok(Relation::ReviewOf) => "reviewed by",
        Ok(Relation::EarlierVersionOf) => "earlier version",
        Err(_) => "child",
    }
}
