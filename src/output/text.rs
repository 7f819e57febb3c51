//! Formats answers as text.

use std::fmt::Write as _;

use schemas::event::TimeSource;
use schemas::tool::details::{Continuation, DetailData, Excerpt, Step, Summary, Turn};
use schemas::tool::event::{Event, EventData};
use schemas::tool::find::{FindData, SessionMatch};
use schemas::tool::list::{ListData, Session, Tokens};
use schemas::tool::metadata::MetadataData;
use schemas::{Confidence, EventType, Usage};

use super::detail_screen::{paint_details, seen_from_parent};
use super::endings::end_lines;
use super::event_screen::paint_events;
use super::find_screen::paint_found;
use super::layout::Layout;
use super::numbers::{count_of, format_dollars};
use super::painted::Painted;
use super::session_table::paint_sessions;
use super::show::{Show, abandoned_note, indent_lines};
use base::sanitize::one_line;

/// Formats the tool of an event, and whether it failed.
pub(super) fn tool_part(tool: Option<&String>, is_error: Option<bool>) -> String {
    let tool = tool.map(|tool| format!(" {tool}")).unwrap_or_default();
    let failed = if is_error == Some(true) { " FAILED" } else { "" };
    format!("{tool}{failed}")
}

impl Show for FindData {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for session in &self.sessions {
            out.push_str(&match_lines(session));
        }
        if !self.absent.is_empty() {
            let _ = writeln!(out, "no session has: {}", self.absent.join(", "));
        }
        out
    }

    fn paint(&self, layout: &Layout) -> Painted {
        paint_found(self, layout)
    }
}

fn match_lines(session: &SessionMatch) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}  {}  {}  {}  {} ({} events)",
        session.session_id,
        session.ended.as_deref().unwrap_or("no time"),
        session.provider,
        session.project.as_deref().unwrap_or(""),
        session.why,
        session.events,
    );
    if let Some(title) = &session.title {
        let _ = writeln!(out, "    {title}");
    }
    for (event_index, text) in &session.passages {
        let _ = writeln!(out, "    {:>6}  {text}", format!(":{event_index}"));
    }
    out
}

impl Show for MetadataData {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for tool in &self.tools {
            let _ = writeln!(
                out,
                "{}  {}  risk {}  {}: {}",
                tool.tool, tool.category, tool.risk_level, tool.title, tool.action_template
            );
        }
        for name in &self.not_found {
            let _ = writeln!(out, "{name}  not found");
        }
        out
    }
}

impl Show for ListData {
    fn paint(&self, layout: &Layout) -> Painted {
        paint_sessions(self, layout)
    }

    fn to_text(&self) -> String {
        let mut out = String::new();
        for session in &self.sessions {
            out.push_str(&session_lines(session));
        }
        for id in &self.not_found {
            let _ = writeln!(out, "{id}  not found");
        }
        out
    }
}

fn session_lines(session: &Session) -> String {
    let mut out = String::new();
    let counts = session.counts.unwrap_or_default();
    let parent = session.relation.zip(session.parent_session_id.as_ref());
    let _ = writeln!(
        out,
        "{}  {}  {}  {}",
        session.session_id,
        session.provider,
        session.ended_at.as_deref().unwrap_or("no time"),
        session.project.as_deref().unwrap_or(""),
    );
    if let Some(title) = &session.title {
        let _ = writeln!(out, "    {}", one_line(title));
    }
    if session.counts.is_some() {
        let usage = session.tokens.as_ref().map(tokens_text).unwrap_or_default();
        let _ = writeln!(
            out,
            "    {}, {}, {}, {}{usage}",
            count_of(counts.events, "event"),
            count_of(counts.turns, "turn"),
            count_of(counts.tool_calls, "tool call"),
            count_of(counts.tool_errors, "error")
        );
    }
    if let Some(family) = &session.with_subagents {
        let _ = writeln!(
            out,
            "    with {}: {}, {}{}",
            count_of(family.subagents, "subagent"),
            count_of(family.counts.tool_calls, "tool call"),
            count_of(family.counts.tool_errors, "error"),
            tokens_text(&family.tokens)
        );
    }
    if !session.labels.is_empty() {
        let _ = writeln!(out, "    labels: {}", session.labels.join(", "));
    }
    if let Some(note) = &session.note {
        out.push_str(&indent_lines(&format!("note: {note}"), "    "));
    }
    if let Some((relation, parent)) = parent {
        let _ = writeln!(out, "    {relation} {parent}");
    }
    if session.time_source == Some(TimeSource::File) {
        out.push_str("    no record has a time, so the times are those of the file\n");
    }
    match (&session.machine, &session.user_name) {
        (None, None) if session.source_gone => out.push_str("    its log is gone\n"),
        (None, None) => {}
        (machine, user) => {
            let machine = machine.as_deref().unwrap_or("this machine");
            let user = user.as_deref().unwrap_or("this user");
            let _ = writeln!(out, "    its log is on {machine}, of {user}");
        }
    }
    out
}

fn tokens_text(tokens: &Tokens) -> String {
    let cost =
        tokens.cost_usd.map(|cost| format!("; cost: {}", format_dollars(cost))).unwrap_or_default();
    let mut text = format!("{}{cost}", usage_text(tokens.counted_once));
    if let Some(cost) = tokens.cost_as_logged {
        let _ = write!(text, "; cost as logged: {}", format_dollars(cost));
    }
    if !tokens.unpriced_models.is_empty() {
        let _ = write!(text, "; no price is known for {}", tokens.unpriced_models.join(", "));
    }
    if let Some(recorded) = tokens.as_recorded {
        let total = recorded.total();
        let _ = write!(text, "; {total} as recorded, including copied history");
    }
    if tokens.confidence != Confidence::Measured {
        let _ = write!(text, " ({})", tokens.confidence);
    }
    text
}

fn usage_text(usage: Usage) -> String {
    let fields = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache write", usage.cache_write),
    ];
    let known: Vec<_> = fields
        .iter()
        .filter_map(|(name, count)| count.map(|count| format!("{name} {count}")))
        .collect();
    if known.is_empty() {
        return "; tokens: none of its own".to_owned();
    }
    format!("; tokens: {}", known.join(", "))
}

impl Show for EventData {
    fn to_text(&self) -> String {
        let mut out: String = self.events.iter().map(event_lines).collect();
        for id in &self.not_found {
            let _ = writeln!(out, "{id}  not found");
        }
        out
    }

    fn paint(&self, layout: &Layout) -> Painted {
        paint_events(self, layout)
    }
}

fn event_lines(event: &Event) -> String {
    let mut out = String::new();
    let subtype = event.subtype.as_deref().map(|subtype| format!("/{subtype}")).unwrap_or_default();
    let replay = if event.is_replay { "  copied" } else { "" };
    let _ = writeln!(
        out,
        "{}  {}  {}{subtype}{}  turn {} step {}{replay}{}",
        event.event_id,
        event.timestamp.as_deref().unwrap_or("no time"),
        event.event_type,
        tool_part(event.tool_name.as_ref(), event.is_error),
        event.turn_index,
        event.step_index,
        abandoned_note(event.is_abandoned),
    );
    out.push_str(&tool_lines(event));
    if let Some(usage) = event.usage {
        let _ = writeln!(out, "    {}", usage_text(usage).trim_start_matches("; "));
    }
    if let Some(source) = &event.source {
        let _ = writeln!(
            out,
            "    {} at byte {}, {} bytes",
            source.path, source.byte_offset, source.byte_length
        );
    }
    out.push_str(&indent_lines(event.text.as_deref().unwrap_or(""), "    "));
    out.push('\n');
    out
}

/// Formats the fields of a call or of its result. A command or file that the text already contains
/// is left out.
fn tool_lines(event: &Event) -> String {
    let text = event.text.as_deref().unwrap_or("");
    let command = event.command.as_deref().filter(|command| !text.contains(command));
    let files = event.files.iter().filter(|file| !text.contains(file.as_str()));
    let files: Vec<&str> = files.map(String::as_str).collect();
    let is_call = event.event_type == EventType::ToolCall;
    let link = if is_call { "result" } else { "call" };
    let facts: Vec<String> = [
        event.exit_code.map(|code| format!("exit code {code}")),
        event.duration_ms.map(|ms| format!("took {ms} ms")),
        event.linked_event_id.as_ref().map(|id| format!("{link} {id}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut out = String::new();
    out.push_str(&indent_lines(&command.map(|c| format!("$ {c}")).unwrap_or_default(), "    "));
    out.push_str(&indent_lines(&files.join("\n"), "    "));
    out.push_str(&indent_lines(&facts.join(", "), "    "));
    out
}

fn excerpt_lines(label: &str, excerpt: &Excerpt) -> String {
    let more = if excerpt.omitted > 0 {
        format!(" (+{} characters)", excerpt.omitted)
    } else {
        String::new()
    };
    let tool = tool_part(excerpt.tool_name.as_ref(), excerpt.is_error);
    format!("{label}{tool}  {}{more}\n{}", excerpt.event_id, indent_lines(&excerpt.text, "    "))
}

impl Show for DetailData {
    fn paint(&self, layout: &Layout) -> Painted {
        paint_details(self, layout)
    }

    fn to_text(&self) -> String {
        let mut out = session_lines(&self.session);
        out.push('\n');
        if let Some(summary) = &self.summary {
            let errors = self.session.counts.map_or(0, |counts| counts.tool_errors);
            out.push_str(&summary_lines(summary, errors));
        }
        out.extend(self.turns.iter().flatten().map(turn_lines));
        out.extend(self.steps.iter().flatten().map(step_lines));
        out.extend(self.events.iter().flatten().map(event_lines));
        out
    }
}

/// Formats the summary of a session; `errors` is the number of all its errors.
fn summary_lines(summary: &Summary, errors: i64) -> String {
    let mut out = String::new();
    let excerpts = [
        ("first prompt", &summary.first_prompt),
        ("last prompt", &summary.last_prompt),
        ("last message", &summary.last_message),
    ];
    for (label, excerpt) in excerpts {
        if let Some(excerpt) = excerpt {
            out.push_str(&excerpt_lines(label, excerpt));
        }
    }

    if !summary.tools.is_empty() {
        out.push_str("tools\n");
    }
    for tool in &summary.tools {
        let _ = writeln!(
            out,
            "    {} {}, {}",
            tool.tool_name,
            count_of(tool.calls, "call"),
            count_of(tool.errors, "error")
        );
    }
    if errors > summary.errors.len() as i64 {
        let _ = writeln!(out, "the last {} of {errors} errors", summary.errors.len());
    }
    for error in &summary.errors {
        out.push_str(&excerpt_lines("error", error));
    }

    for compaction in &summary.compactions {
        out.push_str(&excerpt_lines("compaction", compaction));
    }
    out.push_str(&end_lines(&summary.end));
    let continuations =
        [("continues", &summary.continues), ("continued by", &summary.continued_by)];
    for (label, continuation) in continuations {
        if let Some(Continuation { session_id, provider, title, reason }) = continuation {
            let title = title.as_deref().unwrap_or("");
            let _ = writeln!(out, "{label} {session_id}  {provider}  {title}  ({reason})");
        }
    }
    for child in &summary.children {
        let _ = writeln!(
            out,
            "{} {}  {}",
            seen_from_parent(&child.relation),
            child.session_id,
            child.title.as_deref().unwrap_or("")
        );
    }
    out
}

fn turn_lines(turn: &Turn) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "turn {}{}  {}  {}, {}, {}",
        turn.turn_index,
        abandoned_note(turn.is_abandoned),
        turn.timestamp.as_deref().unwrap_or("no time"),
        count_of(turn.steps, "step"),
        count_of(turn.tool_calls, "tool call"),
        count_of(turn.tool_errors, "error")
    );
    if let Some(prompt) = &turn.prompt {
        out.push_str(&excerpt_lines("  prompt", prompt));
    }
    if let Some(answer) = &turn.answer {
        out.push_str(&excerpt_lines("  answer", answer));
    }
    out
}

fn step_lines(step: &Step) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "turn {} step {}  {}",
        step.turn_index,
        step.step_index,
        step.timestamp.as_deref().unwrap_or("no time")
    );
    for event in &step.events {
        out.push_str(&excerpt_lines(&format!("  {}", event.event_type), event));
    }
    out
}
