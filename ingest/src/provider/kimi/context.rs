//! Decodes Kimi CLI's `context.jsonl`: the messages as sent to the model, without times. The only
//! token count is how full the context is (docs/formats.md#kimi).

use schemas::EventType;

use super::decoder::{Decoder, told};
use super::wire;
use crate::provider::format::Outcome;
use crate::provider::shared::chat;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Beginnings of machine text in the user's role, each with the subtype of its notification.
const MACHINE: &[(&str, &str)] = &[
    ("<system>CHECKPOINT", "checkpoint"),
    ("<system>Previous context has been compacted", "compact_summary"),
    ("<system>", "system"),
    ("<system-reminder>", "system_reminder"),
    ("<notification", "notification"),
];

/// Beginning of the result of a tool that failed.
const FAILED: &str = "<system>ERROR";

/// Decodes one message or marker.
pub(super) fn record(decoder: &mut Decoder, object: Value<'_>, out: &mut Stream) -> Outcome {
    let mut text = std::mem::take(&mut decoder.text);
    let role = object.text("role").unwrap_or("untyped");
    if role != "assistant" {
        object.field("content").inspect(|content| chat::content(*content, &mut text));
    }
    let outcome = match role {
        "user" => user(decoder, &text, out),
        "assistant" => reply(decoder, object, out),
        "tool" => {
            let draft = Draft {
                text: &text,
                tool_call_id: object.non_empty("tool_call_id"),
                is_error: text.starts_with(FAILED).then_some(true),
                ..Draft::default()
            };
            out.push(EventType::ToolResult, draft);
            Outcome::Events
        }
        "_usage" => Outcome::Merged("context_size"),
        "_checkpoint" => Outcome::Merged("marker"),
        "_system_prompt" | "system" => {
            render::cut(&mut text);
            told("system_prompt", &text, out)
        }
        _ => {
            out.drift("record", role);
            told(role, &text, out)
        }
    };
    decoder.text = text;
    outcome
}

fn user(decoder: &mut Decoder, text: &str, out: &mut Stream) -> Outcome {
    let start = text.trim_start();
    if let Some((_, subtype)) = MACHINE.iter().find(|(words, _)| start.starts_with(words)) {
        return told(subtype, text, out);
    }
    decoder.prompt(text, out);
    Outcome::Events
}

/// Decodes one response of the model.
pub(super) fn reply(decoder: &mut Decoder, message: Value<'_>, out: &mut Stream) -> Outcome {
    decoder.end_step("");
    for part in message.items("content") {
        wire::part(decoder, part, "", out);
    }
    if let Some(text) = message.non_empty("content") {
        let step = decoder.step("", out);
        out.push_in(EventType::Message, step, Draft { text, ..Draft::default() });
    }
    for key in ["tool_calls", "toolCalls"] {
        for call in message.items(key) {
            wire::call(decoder, call, "", out);
        }
    }
    decoder.end_step("");
    Outcome::Events
}
