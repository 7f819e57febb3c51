//! Formats whole events for a screen.

use anstyle::Style;
use schemas::EventType;
use schemas::tool::event::{Event, EventData};

use super::conversation::diff_style;
use super::conversation_blocks::shorten_image_notes;
use super::layout::Layout;
use super::numbers::{format_milliseconds, format_short_count};
use super::painted::{DIM, FAILED, ID, PLAIN, PROJECT, PROMPT, Painted, STRONG};
use super::show::abandoned_note;
use super::wrapped::push_wrapped;
use base::cells::{text_width, truncate_end, truncate_start};
use base::sanitize::clean_text;
use base::shell_word::shell_word;
use tools::read_diff;

/// The cells before the text of an event.
const INDENT: &str = "  ";

/// Least cells of what an event is.
const MIN_LABEL_WIDTH: usize = 8;

/// Formats events: what each is, the facts about its call, and its whole text.
pub(super) fn paint_events(data: &EventData, layout: &Layout) -> Painted {
    let mut painted = Painted::new();
    for (at, event) in data.events.iter().enumerate() {
        if at > 0 {
            painted.end_line();
        }
        push_event(&mut painted, event, layout, true);
    }
    for id in &data.not_found {
        painted.push(FAILED, &format!("{id}  not found"));
        painted.end_line();
    }
    painted
}

/// Appends an event: what it is, the facts about its call, and its whole text. With `has_source`, also
/// where its record is.
pub(super) fn push_event(painted: &mut Painted, event: &Event, layout: &Layout, has_source: bool) {
    let (style, label) = describe_event(event);
    let copied = if event.is_replay { "  copied" } else { "" };
    let place = format!(
        "  turn {} step {}{copied}{}",
        event.turn_index,
        event.step_index,
        abandoned_note(event.is_abandoned)
    );
    let id = layout.short_event_id(&event.event_id);
    let time = layout.time(event.timestamp.as_deref());
    let used = text_width(&id) + text_width(&time) + text_width(&place) + 4;
    let label = truncate_end(&label, layout.width.saturating_sub(used).max(MIN_LABEL_WIDTH));
    painted.push_inline(ID, &id).push(PLAIN, "  ").push(DIM, &time).push(PLAIN, "  ");
    painted.push_inline(style, &label).push(DIM, &place);
    painted.end_line();

    // Of a part of the arguments, the change is not known.
    let diff = if event.text_chars.is_none() { read_diff(event, None) } else { None };
    let diff = diff.filter(|diff| !diff.text.is_empty());
    push_facts(painted, event, diff.is_some(), layout);
    if has_source {
        push_source(painted, event, layout);
    }
    if let Some(diff) = diff {
        for line in diff.text.lines() {
            let line = clean_text(line).replace('\t', "    ");
            push_wrapped(painted, diff_style(&line), INDENT, &line, layout.width, usize::MAX);
        }
        return;
    }
    let whole = clean_text(event.text.as_deref().unwrap_or_default()).replace('\t', "    ");
    let text = shorten_image_notes(whole.trim_end());
    push_wrapped(painted, PLAIN, INDENT, &text, layout.width, usize::MAX);
    if text.len() < whole.trim_end().len() {
        let id = layout.short_event_id(&event.event_id);
        let note = format!("{INDENT}sessions event {} --image -o FILE", shell_word(&id));
        painted.push(DIM, &note);
        painted.end_line();
    }
}

/// Returns what an event is in a few words, with their style.
fn describe_event(event: &Event) -> (Style, String) {
    let tool = event.tool_name.as_deref().unwrap_or("tool");
    let is_failed = event.is_error == Some(true);
    match event.event_type {
        EventType::User => (PROMPT, "prompt".to_owned()),
        EventType::Message => (STRONG, "answer".to_owned()),
        EventType::Reasoning => (DIM, "reasoning".to_owned()),
        EventType::ToolCall => (STRONG, format!("{tool} call")),
        EventType::ToolResult if is_failed => (FAILED, format!("{tool} failed")),
        EventType::ToolResult => (STRONG, format!("{tool} result")),
        EventType::TokenUsage => (STRONG, "tokens".to_owned()),
        EventType::Notification => {
            (STRONG, event.subtype.clone().unwrap_or_else(|| "notice".to_owned()))
        }
    }
}

/// Appends the facts about a call or its result, and the tokens. A command or file that the text has is
/// left out, unless a diff is shown instead of the text.
fn push_facts(painted: &mut Painted, event: &Event, has_diff: bool, layout: &Layout) {
    let text = event.text.as_deref().filter(|_| !has_diff).unwrap_or("");
    let link = if event.event_type == EventType::ToolCall { "result" } else { "call" };
    let mut facts = Vec::new();
    facts.extend(event.exit_code.map(|code| format!("exit code {code}")));
    let milliseconds = event.duration_ms.and_then(|ms| u64::try_from(ms).ok());
    facts.extend(milliseconds.map(|ms| format!("took {}", format_milliseconds(ms))));
    let linked = event.linked_event_id.as_deref();
    facts.extend(linked.map(|id| format!("{link} {}", layout.short_event_id(id))));
    facts.extend(event.usage.map(describe_tokens));
    if !facts.is_empty() {
        push_wrapped(painted, DIM, INDENT, &facts.join(", "), layout.width, usize::MAX);
    }
    if let Some(command) = event.command.as_deref().filter(|command| !text.contains(command)) {
        let command = clean_text(&format!("$ {command}"));
        push_wrapped(painted, STRONG, INDENT, &command, layout.width, usize::MAX);
    }
    let room = layout.width.saturating_sub(INDENT.len());
    for file in event.files.iter().filter(|file| !text.contains(file.as_str())) {
        painted.push(PLAIN, INDENT);
        layout.push_path(painted, PROJECT, file, &truncate_start(file, room));
        painted.end_line();
    }
}

/// Appends where the record of an event is.
fn push_source(painted: &mut Painted, event: &Event, layout: &Layout) {
    let room = layout.width.saturating_sub(INDENT.len());
    if let Some(source) = &event.source {
        let place = format!(" at byte {}, {} bytes", source.byte_offset, source.byte_length);
        let path = truncate_start(&source.path, room.saturating_sub(place.len()));
        painted.push(PLAIN, INDENT);
        layout.push_path(painted, PROJECT, &source.path, &path);
        painted.push(DIM, &place);
        painted.end_line();
    }
}

/// Formats the tokens of a request.
fn describe_tokens(usage: schemas::Usage) -> String {
    let counts = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache write", usage.cache_write),
    ];
    let mut parts = Vec::new();
    for (name, count) in counts {
        if let Some(count) = count.and_then(|count| u64::try_from(count).ok()) {
            parts.push(format!("{name} {}", format_short_count(count)));
        }
    }
    parts.join(", ")
}
