//! Formats whole events: what each is, the facts about its call, and its text.

use anstyle::Style;
use schemas::EventType;
use schemas::tool::event::{Event, EventData};

use super::layout::Layout;
use super::list::{describe_usage, push_not_found};
use super::painted::{DIM, FAILED, ID, PLAIN, PROJECT, PROMPT, Painted, STRONG, diff_style};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::cells::{text_width, truncate_end, truncate_start};
use base::image_notes::has_image_note;
use base::sanitize::clean_text;
use base::shell_word::shell_word;
use tools::read_diff;

/// The cells before the text of an event.
const INDENT: &str = "  ";

/// Least cells of what an event is.
const MIN_LABEL_WIDTH: usize = 8;

impl Show for EventData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        for (at, event) in self.events.iter().enumerate() {
            if at > 0 {
                painted.end_line();
            }
            push_event(&mut painted, event, layout, true);
        }
        push_not_found(&mut painted, &self.not_found);
        painted
    }
}

/// Appends an event: what it is, the facts about its call, and its whole text. With `has_source`, also
/// where its record is.
pub(super) fn push_event(painted: &mut Painted, event: &Event, layout: &Layout, has_source: bool) {
    let (style, label) = describe_event(
        event.event_type,
        event.tool_name.as_deref(),
        event.subtype.as_deref(),
        event.is_error,
    );
    let copied = if event.is_replay { "  copied" } else { "" };
    let place = format!(
        "  turn {} step {}{copied}{}",
        event.turn_index,
        event.step_index,
        abandoned_note(event.is_abandoned)
    );
    let id = layout.event_id(&event.event_id);
    let time = layout.time(event.timestamp.as_deref());
    let used = text_width(&id) + text_width(&time) + text_width(&place) + 4;
    let label = truncate_end(&label, layout.width.saturating_sub(used).max(MIN_LABEL_WIDTH));
    painted.push_inline(ID, &id).push(PLAIN, "  ").push(DIM, &time).push(PLAIN, "  ");
    painted.push_inline(style, &label).push(DIM, &place);
    painted.end_line();

    // Of a part of the arguments, the change is not known. A pipe gets the arguments as they are.
    let is_change = event.text_chars.is_none() && !layout.is_plain;
    let diff = if is_change { read_diff(event, None) } else { None };
    let diff = diff.filter(|diff| !diff.text.is_empty());
    push_facts(painted, event, diff.is_some(), layout);
    if has_source {
        push_source(painted, event, layout);
    }
    if let Some(diff) = diff {
        for line in layout.text(&diff.text).lines() {
            push_wrapped(painted, diff_style(line), INDENT, line, layout.width, usize::MAX);
        }
        return;
    }
    let text = event.text.as_deref().unwrap_or_default();
    push_wrapped(painted, PLAIN, INDENT, &layout.text(text), layout.width, usize::MAX);
    if has_image_note(text) {
        let note = format!("{INDENT}sessions event {} --image -o FILE", shell_word(&id));
        painted.push(DIM, &note);
        painted.end_line();
    }
}

/// Returns what an event is in a few words, with their style.
pub(super) fn describe_event(
    event_type: EventType,
    tool: Option<&str>,
    subtype: Option<&str>,
    is_error: Option<bool>,
) -> (Style, String) {
    let tool = tool.unwrap_or("tool");
    let (style, label) = match event_type {
        EventType::User => (PROMPT, "prompt".to_owned()),
        EventType::Message => (STRONG, "answer".to_owned()),
        EventType::Reasoning => (DIM, "reasoning".to_owned()),
        EventType::ToolCall => (STRONG, tool.to_owned()),
        EventType::ToolResult if is_error == Some(true) => (FAILED, format!("{tool} failed")),
        EventType::ToolResult => (STRONG, format!("{tool} result")),
        EventType::TokenUsage => (DIM, "tokens".to_owned()),
        EventType::Notification => return (DIM, subtype.unwrap_or("notice").to_owned()),
    };
    match subtype {
        Some(subtype) => (style, format!("{label} ({subtype})")),
        None => (style, label),
    }
}

/// Returns the note on an event or a turn of a branch that a rewind abandoned.
pub(super) const fn abandoned_note(is_abandoned: bool) -> &'static str {
    if is_abandoned { "  abandoned" } else { "" }
}

/// Appends the facts about a call or its result, and the tokens. A command or file that the text has is
/// left out, unless a diff is shown instead of the text.
fn push_facts(painted: &mut Painted, event: &Event, has_diff: bool, layout: &Layout) {
    let text = event.text.as_deref().filter(|_| !has_diff).unwrap_or("");
    let link = if event.event_type == EventType::ToolCall { "result" } else { "call" };
    let mut facts = Vec::new();
    facts.extend(event.exit_code.map(|code| format!("exit code {code}")));
    let milliseconds = event.duration_ms.and_then(|ms| u64::try_from(ms).ok());
    facts.extend(milliseconds.map(|ms| format!("took {}", layout.duration(ms))));
    let linked = event.linked_event_id.as_deref();
    facts.extend(linked.map(|id| format!("{link} {}", layout.event_id(id))));
    facts.extend(event.usage.map(|usage| describe_usage(usage, layout)));
    if !facts.is_empty() {
        push_wrapped(painted, DIM, INDENT, &facts.join(", "), layout.width, usize::MAX);
    }
    if let Some(command) = event.command.as_deref().filter(|command| !text.contains(command)) {
        let command = clean_text(&format!("$ {command}"));
        push_wrapped(painted, STRONG, INDENT, &command, layout.width, usize::MAX);
    }
    let width = layout.width.saturating_sub(INDENT.len());
    for file in event.files.iter().filter(|file| !text.contains(file.as_str())) {
        painted.push(PLAIN, INDENT);
        layout.push_path(painted, PROJECT, file, &truncate_start(file, width));
        painted.end_line();
    }
}

/// Appends where the record of an event is.
fn push_source(painted: &mut Painted, event: &Event, layout: &Layout) {
    let width = layout.width.saturating_sub(INDENT.len());
    if let Some(source) = &event.source {
        let place = format!(" at byte {}, {} bytes", source.byte_offset, source.byte_length);
        let path = truncate_start(&source.path, width.saturating_sub(place.len()));
        painted.push(PLAIN, INDENT);
        layout.push_path(painted, PROJECT, &source.path, &path);
        painted.push(DIM, &place);
        painted.end_line();
    }
}
