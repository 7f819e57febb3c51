//! The lines of `sessions tail`: what happened in a session since the lines before.

use std::collections::HashSet;
use std::fmt::Write as _;

use schemas::EventType;
use schemas::tool::event::Event;

use crate::export::transcript::{describe_call, truncate_chars};
use crate::tools::Transcript;

/// The most characters of a prompt or an answer.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Formats a session as it grows.
#[derive(Debug, Default)]
pub struct LiveLines {
    /// The event after the last one that was formatted; `None` before the first lines.
    next: Option<u32>,
    /// Calls that were shown before they had a result.
    open_calls: HashSet<String>,
    /// The cost that was shown last.
    cost: String,
}

impl LiveLines {
    /// Returns the lines for the events that were added since the last call. The first call begins at
    /// the last prompt.
    pub(crate) fn next_lines(&mut self, whole: &Transcript) -> String {
        let first = self.next.unwrap_or_else(|| last_prompt(&whole.events));
        let mut out = String::new();
        for event in whole.events.iter().filter(|event| event.event_index >= first) {
            self.append_event(&mut out, event, &whole.events);
            self.next = Some(event.event_index + 1);
        }
        self.append_cost(&mut out, whole);
        out
    }

    fn append_event(&mut self, out: &mut String, event: &Event, all: &[Event]) {
        let text = event.text.as_deref().unwrap_or_default().trim();
        match event.event_type {
            EventType::User if !text.is_empty() => append_message(out, "\n> ", text),
            EventType::Message if !text.is_empty() => append_message(out, "\n  ", text),
            EventType::ToolCall => {
                let linked = event.linked_event_id.as_deref();
                let result = all.iter().find(|other| Some(other.event_id.as_str()) == linked);
                match result {
                    Some(result) => append_call(out, event, result),
                    None => {
                        let tool = event.tool_name.as_deref().unwrap_or("tool");
                        let _ = writeln!(out, "  … {tool} {}", describe_call(event));
                        self.open_calls.insert(event.event_id.clone());
                    }
                }
            }
            EventType::ToolResult => {
                let call = event.linked_event_id.as_deref().unwrap_or_default();
                let was_open = self.open_calls.remove(call);
                let call = all.iter().find(|other| other.event_id == call);
                // Otherwise the result was shown with its call.
                if was_open || call.is_none() {
                    append_call(out, call.unwrap_or(event), event);
                }
            }
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::TokenUsage
            | EventType::Notification => {}
        }
    }

    /// Appends the cost and the calls so far, if the cost is not the one shown last.
    fn append_cost(&mut self, out: &mut String, whole: &Transcript) {
        let tokens = whole.session.tokens.as_ref();
        let Some(cost) = tokens.and_then(|tokens| tokens.cost_usd) else { return };
        let cost = format!("${cost:.2}");
        if cost == self.cost {
            return;
        }
        let counts = whole.session.counts.unwrap_or_default();
        let failed = match counts.tool_errors {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let _ = writeln!(out, "  = {cost} so far, {} calls{failed}", counts.tool_calls);
        self.cost = cost;
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

fn append_message(out: &mut String, sign: &str, text: &str) {
    let (text, omitted) = truncate_chars(text, MAX_MESSAGE_CHARS);
    let _ = writeln!(out, "{sign}{}", text.replace('\n', "\n  "));
    if omitted > 0 {
        let _ = writeln!(out, "  ({omitted} more characters)");
    }
}

fn append_call(out: &mut String, call: &Event, result: &Event) {
    let has_failed =
        result.is_error == Some(true) || result.exit_code.is_some_and(|code| code != 0);
    let sign = if has_failed { '✗' } else { '✓' };
    let tool = call.tool_name.as_deref().unwrap_or("tool");
    let _ = write!(out, "  {sign} {tool} {}", describe_call(call));
    if let Some(code) = result.exit_code.filter(|code| *code != 0) {
        let _ = write!(out, "  exit code {code}");
    }
    if let Some(duration) = result.duration_ms.or(call.duration_ms) {
        let _ = write!(out, "  {duration} ms");
    }
    out.push('\n');
}
