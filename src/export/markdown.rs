//! A session as Markdown: answers are quotations, other text from the log is in code fences, and
//! results are folded.

use std::fmt::Write as _;

use schemas::tool::event::{EditDiff, Event};
use schemas::{Timestamp, Zone};

use super::text::{escape_markdown, fence_language, fence_text, inline_code, quote_markdown};
use super::transcript::{
    TranscriptPart, collect_turns, describe_notices, event_line, omission_sentence,
    outcome_remarks, session_facts, session_title, truncate_chars,
};
use base::image_notes::shorten_image_notes;
use base::shell_word::shell_word;
use tools::Transcript;

/// How much of long texts a document shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLimits {
    /// Maximum number of characters of a prompt or an answer.
    message_chars: usize,
    /// Maximum number of characters of a folded text.
    folded_chars: usize,
    /// Maximum number of lines of an edit.
    edit_lines: usize,
}

impl TextLimits {
    /// The limits of a document that people read.
    pub(super) const USUAL: Self =
        Self { message_chars: 40_000, folded_chars: 1_500, edit_lines: 400 };
    /// No limits.
    pub(super) const NONE: Self =
        Self { message_chars: usize::MAX, folded_chars: usize::MAX, edit_lines: usize::MAX };
}

/// What a document shows, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkdownOptions<'z> {
    pub(super) limits: TextLimits,
    /// The zone of times.
    pub(super) zone: &'z Zone,
    /// Shows the ids of events.
    pub(super) has_ids: bool,
}

impl MarkdownOptions<'_> {
    /// Formats the day and the time of an RFC 3339 time.
    fn format_time(&self, time: &str) -> String {
        let Some(at) = Timestamp::parse(time) else { return time.to_owned() };
        format!("{} {}", self.zone.day(at).unwrap_or_default(), self.zone.clock(at))
    }

    /// Returns the text after the name of a part: the time, the remarks, and the ids if they are shown.
    fn describe_event(&self, event: &Event, result: Option<&Event>) -> String {
        let mut out = String::new();
        if let Some(time) = event.timestamp.as_deref().and_then(Timestamp::parse) {
            let _ = write!(out, " · {}", self.zone.clock(time));
        }
        for remark in outcome_remarks(event, result) {
            let _ = write!(out, " · {remark}");
        }
        if self.has_ids {
            let _ = write!(out, " · {}", inline_code(&event.event_id));
            if let Some(result) = result {
                let _ = write!(out, " → {}", inline_code(&result.event_id));
            }
        }
        out
    }
}

/// Returns the document of a session.
pub(super) fn render_transcript(whole: &Transcript, options: MarkdownOptions<'_>) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "# {}\n\n| | |\n|---|---|", escape_markdown(&session_title(&whole.session)));
    for (name, mut value) in session_facts(&whole.session) {
        if Timestamp::parse(&value).is_some() {
            value = format!("{} {}", options.format_time(&value), options.zone.name());
        }
        let _ = writeln!(out, "| {name} | {} |", escape_markdown(&value));
    }
    for turn in collect_turns(&whole.events) {
        let name = match turn.index {
            0 => "Before the first prompt".to_owned(),
            index => format!("Turn {index}"),
        };
        let time = turn.timestamp.map(|time| format!(" · {}", options.format_time(time)));
        let time = time.unwrap_or_default();
        let _ = writeln!(out, "\n## {name}{time}");
        for part in &turn.parts {
            append_part(&mut out, part, options);
        }
    }
    out
}

fn append_part(out: &mut String, part: &TranscriptPart<'_>, options: MarkdownOptions<'_>) {
    let limits = options.limits;
    match part {
        TranscriptPart::Prompt(event) => {
            append_message(out, "Prompt", event, fence_text, options);
        }
        TranscriptPart::Answer(event) => {
            append_message(out, "Answer", event, quote_markdown, options);
        }
        TranscriptPart::Reasoning(event) => {
            let _ = write!(out, "\n**Reasoning**{}\n\n", options.describe_event(event, None));
            append_folded(out, "reasoning", &[*event], limits);
        }
        TranscriptPart::Call { call, result } => {
            let tool = escape_markdown(call.tool_name.as_deref().unwrap_or("tool"));
            let line = options.describe_event(call, *result);
            let _ = write!(out, "\n**{tool}** {}{line}\n\n", inline_code(event_line(call)));
            if let Some(diff) = call.diff.as_ref().filter(|diff| !diff.text.is_empty()) {
                append_diff(out, call, diff, limits);
                let shown: Vec<&Event> = result.iter().copied().collect();
                if !shown.is_empty() {
                    append_folded(out, "result", &shown, limits);
                }
                return;
            }
            let shown: Vec<&Event> = std::iter::once(*call).chain(*result).collect();
            let name = if result.is_some() { "call and result" } else { "call" };
            append_folded(out, name, &shown, limits);
        }
        TranscriptPart::Result(event) => {
            let tool = escape_markdown(event.tool_name.as_deref().unwrap_or("tool"));
            let _ = write!(out, "\n**{tool}**{}\n\n", options.describe_event(event, None));
            append_folded(out, "result", &[*event], limits);
        }
        TranscriptPart::Notices(notices) => {
            let _ = write!(out, "\n*{}*", escape_markdown(&describe_notices(notices)));
            if let Some(first) = notices.first().filter(|_| options.has_ids) {
                let _ = write!(out, " · {}", inline_code(&first.event_id));
                if let [_, .., last] = notices.as_slice() {
                    let _ = write!(out, " to {}", inline_code(&last.event_id));
                }
            }
            out.push('\n');
        }
    }
}

/// Appends a prompt or an answer.
fn append_message(
    out: &mut String,
    name: &str,
    event: &Event,
    format_text: fn(&str) -> String,
    options: MarkdownOptions<'_>,
) {
    let (text, left) = truncate_chars(event_text(event), options.limits.message_chars);
    let text = shorten_image_notes(&text);
    let line = options.describe_event(event, None);
    let _ = write!(out, "\n**{name}**{line}\n\n{}", format_text(&text));
    append_omission(out, event, left);
}

/// Appends the edit of a call as a block in the language `diff`, folded at first.
fn append_diff(out: &mut String, call: &Event, diff: &EditDiff, limits: TextLimits) {
    out.push_str("<details><summary>edit</summary>\n\n");
    let lines: Vec<&str> = diff.text.lines().collect();
    let shown = lines.len().min(limits.edit_lines);
    out.push_str(&fence_language(&lines[..shown].join("\n"), "diff"));
    if shown < lines.len() {
        let id = escape_markdown(&shell_word(&call.event_id));
        let _ = writeln!(out, "\n*{} more lines: sessions event {id}*\n", lines.len() - shown);
    }
    out.push_str("\n</details>\n");
}

/// Appends texts that are folded at first.
fn append_folded(out: &mut String, name: &str, events: &[&Event], limits: TextLimits) {
    let _ = write!(out, "<details><summary>{name}</summary>\n\n");
    for event in events {
        let (text, left) = truncate_chars(event_text(event), limits.folded_chars);
        let text = shorten_image_notes(&text);
        if !text.trim().is_empty() {
            out.push_str(&fence_text(&text));
            out.push('\n');
        }
        append_omission(out, event, left);
    }
    out.push_str("</details>\n");
}

/// Appends the sentence about the `left` characters that are not shown, if there are any.
fn append_omission(out: &mut String, event: &Event, left: usize) {
    if let Some(sentence) = omission_sentence(event, left) {
        let _ = writeln!(out, "\n*{}*\n", escape_markdown(&sentence));
    }
}

/// Returns the text of an event; empty if it has none.
fn event_text(event: &Event) -> &str {
    event.text.as_deref().unwrap_or_default()
}
