//! The lines of `sessions tail`: what happened in a session since the lines before. Each call is one line,
//! printed when its result is known. At a terminal, running calls and the cost so far are below the other
//! lines, and the next lines replace them.

use schemas::EventType;
use schemas::tool::event::Event;

use super::conversation_blocks::{CallStatus, call_line};
use super::layout::Layout;
use super::markdown::wrap_markdown;
use super::painted::{COST, DIM, FAILED, PLAIN, PROMPT, Painted, STRONG};
use super::wrapped::wrap_lines;
use crate::export::transcript::{event_line, truncate_chars};
use base::cells::{text_width, truncate_end};
use base::numbers::{count_of, format_dollars};
use base::sanitize::one_line;
use tools::Transcript;

/// The most characters of a prompt or an answer.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// The cells before each text.
const INDENT: &str = "  ";

/// Formats a session as it grows.
pub struct LiveLines {
    layout: Layout,
    /// The event after the last one that was formatted; `None` before the first lines.
    next: Option<u32>,
    /// The calls without a result, in their order.
    open_calls: Vec<String>,
    /// The number of lines about the current state.
    state_rows: usize,
}

impl LiveLines {
    pub(crate) const fn new(layout: Layout) -> Self {
        Self { layout, next: None, open_calls: Vec::new(), state_rows: 0 }
    }

    /// Returns the line that names the session.
    pub(crate) fn heading(&self, whole: &Transcript) -> String {
        let title = whole.session.title.as_deref().unwrap_or_default();
        let heading = format!("following {}  {}", whole.session.session_id, one_line(title));
        truncate_end(&heading, self.layout.width)
    }

    /// Returns the number of lines that the next ones replace.
    pub(crate) const fn state_rows(&self) -> usize {
        self.state_rows
    }

    /// Returns the lines for the events that were added since the last call. The first call begins at
    /// the last prompt.
    pub(crate) fn next_lines(&mut self, whole: &Transcript) -> Painted {
        let first = self.next.unwrap_or_else(|| last_prompt(&whole.events));
        let mut out = Painted::new();
        for event in whole.events.iter().filter(|event| event.event_index >= first) {
            self.push_event(&mut out, event, whole);
            self.next = Some(event.event_index + 1);
        }
        self.state_rows = 0;
        out
    }

    /// Returns the lines about the current state: the running calls, and the cost so far.
    pub(crate) fn state_lines(&mut self, whole: &Transcript) -> Painted {
        let mut out = Painted::new();
        for id in &self.open_calls {
            if let Some(call) = whole.events.iter().find(|event| event.event_id == *id) {
                self.push_call(&mut out, call, None);
            }
        }
        self.push_cost(&mut out, whole);
        self.state_rows = out.as_str().lines().count();
        out
    }

    fn push_event(&mut self, out: &mut Painted, event: &Event, whole: &Transcript) {
        let text = event.text.as_deref().unwrap_or_default().trim();
        match event.event_type {
            EventType::User if !text.is_empty() => self.push_message(out, true, text),
            EventType::Message if !text.is_empty() => self.push_message(out, false, text),
            EventType::ToolCall => {
                let linked = event.linked_event_id.as_deref();
                let mut events = whole.events.iter();
                let result = events.find(|other| Some(other.event_id.as_str()) == linked);
                match result {
                    Some(result) => self.push_call(out, event, Some(result)),
                    None => self.open_calls.push(event.event_id.clone()),
                }
            }
            EventType::ToolResult => {
                let call = event.linked_event_id.as_deref().unwrap_or_default();
                let was_open = self.open_calls.iter().any(|open| open == call);
                self.open_calls.retain(|open| open != call);
                let call = whole.events.iter().find(|other| other.event_id == call);
                // Otherwise the result was shown with its call.
                if was_open || call.is_none() {
                    self.push_call(out, call.unwrap_or(event), Some(event));
                }
            }
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::TokenUsage
            | EventType::Notification => {}
        }
    }

    fn push_message(&self, out: &mut Painted, is_prompt: bool, text: &str) {
        let (text, omitted) = truncate_chars(text, MAX_MESSAGE_CHARS);
        let text = self.layout.text(&text);
        out.end_line();
        let width = self.layout.width.saturating_sub(INDENT.len());
        if is_prompt || self.layout.is_plain {
            for (row, line) in wrap_lines(&text, width).iter().enumerate() {
                let sign = if is_prompt && row == 0 { "> " } else { INDENT };
                out.push(PROMPT, sign).push(if is_prompt { STRONG } else { PLAIN }, line);
                out.end_line();
            }
        } else {
            for line in wrap_markdown(&text, width) {
                out.push(PLAIN, INDENT);
                for piece in &line {
                    out.push(piece.kind.style(), &piece.text);
                }
                out.end_line();
            }
        }
        if omitted > 0 {
            out.push(DIM, &format!("{INDENT}({omitted} more characters)"));
            out.end_line();
        }
    }

    /// Appends the line of a call: its outcome, tool, subject, exit code and duration.
    fn push_call(&self, out: &mut Painted, call: &Event, result: Option<&Event>) {
        let status = CallStatus::of(result);
        let code = result.and_then(|result| result.exit_code).filter(|code| *code != 0);
        let code = code.map(|code| format!("  exit code {code}")).unwrap_or_default();
        let duration = result.and_then(|result| result.duration_ms.or(call.duration_ms));
        let duration = duration.and_then(|duration| u64::try_from(duration).ok());
        let duration = duration.map(|ms| format!("  {}", self.layout.duration(ms)));
        let duration = duration.unwrap_or_default();
        let tool = one_line(call.tool_name.as_deref().unwrap_or("tool"));
        let used = INDENT.len() + text_width(&code) + text_width(&duration);
        let width = self.layout.width.saturating_sub(used);

        // A path is relative where a user reads it, and whole for programs.
        let path = call.files.first().filter(|_| self.layout.is_plain && call.command.is_none());
        let subject = one_line(path.map_or_else(|| event_line(call), String::as_str));
        out.push(PLAIN, INDENT).push_texts(&call_line(status, &tool, &subject, width));
        out.push(FAILED, &code).push(DIM, &duration);
        out.end_line();
    }

    /// Appends the cost and the calls so far.
    fn push_cost(&self, out: &mut Painted, whole: &Transcript) {
        let tokens = whole.session.tokens.as_ref();
        let Some(cost) = tokens.and_then(|tokens| tokens.cost_usd) else { return };
        let cost = format_dollars(cost);
        let counts = whole.session.counts.unwrap_or_default();
        out.push(DIM, "  = ").push(COST, &cost);
        out.push(DIM, &format!(" so far, {}", count_of(counts.tool_calls, "call")));
        if counts.tool_errors > 0 {
            out.push(DIM, ", ").push(FAILED, &format!("{} failed", counts.tool_errors));
        }
        out.end_line();
    }
}

/// Returns the index of the last prompt; 0 if there is none.
fn last_prompt(events: &[Event]) -> u32 {
    let prompts = events.iter().filter(|event| event.event_type == EventType::User);
    let real = prompts.filter(|event| event.turn_index > 0);
    // A turn begins at its prompt, and other events of the user may follow.
    let turn = real.map(|event| event.turn_index).max().unwrap_or(0);
    let first = events.iter().find(|event| event.turn_index == turn);
    first.map_or(0, |event| event.event_index)
}
