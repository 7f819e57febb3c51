//! Decodes Kimi CLI's `context.jsonl`: the messages as sent to the model, without times
//! (docs/formats.md#kimi). The only token count is the size of the context.
//!
//! ```text
//! {"role":"user","content":"..."}
//! {"role":"assistant","content":[{"type":"text","text":"..."}],"tool_calls":[...]}
//! {"role":"_usage","token_count":12000}
//! ```

use schemas::EventType;

use super::decoder::{KimiDecoder, push_notification};
use super::wire;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::chat;
use crate::provider::shared::refusal::push_refusal_words;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Beginnings of text that no user typed in the user's role, each with the subtype of its
/// notification.
const MACHINE_PREFIXES: &[(&str, &str)] = &[
    ("<system>CHECKPOINT", "checkpoint"),
    ("<system>Previous context has been compacted", "compact_summary"),
    ("<system>", "system"),
    ("<system-reminder>", "system_reminder"),
    ("<notification", "notification"),
];

/// Beginning of the result of a tool that failed.
const ERROR_PREFIX: &str = "<system>ERROR";

/// Decodes one message or marker.
pub(super) fn decode_record(
    decoder: &mut KimiDecoder,
    object: Value<'_>,
    out: &mut Stream,
) -> RecordOutcome {
    let mut text = std::mem::take(&mut decoder.text);
    let role = object.text("role").unwrap_or("untyped");
    if role != "assistant"
        && let Some(content) = object.field("content")
    {
        chat::append_content(content, &mut text);
    }
    let outcome = match role {
        "user" => push_user_text(decoder, &text, out),
        "assistant" => decode_response(decoder, object, out),
        "tool" => {
            out.push_result(
                object.non_empty("tool_call_id"),
                &text,
                text.starts_with(ERROR_PREFIX).then_some(true),
                None,
            );
            let error =
                text.strip_prefix(ERROR_PREFIX).and_then(|rest| rest.split_once("</system>"));
            if let Some((message, _)) = error {
                push_refusal_words(message.trim_start_matches([':', ' ']), out);
            }
            RecordOutcome::Events
        }
        "_usage" => RecordOutcome::Merged("context_size"),
        "_checkpoint" => RecordOutcome::Merged("marker"),
        "_system_prompt" | "system" => {
            render::truncate_notification(&mut text);
            push_notification("system_prompt", &text, out)
        }
        _ => {
            out.count_unknown("record", role);
            push_notification(role, &text, out)
        }
    };
    decoder.text = text;
    outcome
}

/// Pushes a prompt, or a notification if no user typed the text.
fn push_user_text(decoder: &mut KimiDecoder, text: &str, out: &mut Stream) -> RecordOutcome {
    let start = text.trim_start();
    let machine = MACHINE_PREFIXES.iter().find(|(prefix, _)| start.starts_with(prefix));
    if let Some((_, subtype)) = machine {
        return push_notification(subtype, text, out);
    }
    decoder.push_prompt(text, out);
    RecordOutcome::Events
}

/// Decodes one response of the model.
pub(super) fn decode_response(
    decoder: &mut KimiDecoder,
    message: Value<'_>,
    out: &mut Stream,
) -> RecordOutcome {
    decoder.end_step("");
    for part in message.items("content") {
        wire::push_part(decoder, part, "", out);
    }
    if let Some(text) = message.non_empty("content") {
        let step = decoder.ensure_step("", out);
        out.push_text_in_step(EventType::Message, step, text);
    }
    for key in ["tool_calls", "toolCalls"] {
        for call in message.items(key) {
            wire::push_tool_call(decoder, call, "", out);
        }
    }
    decoder.end_step("");
    RecordOutcome::Events
}
