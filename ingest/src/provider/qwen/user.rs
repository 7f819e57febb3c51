//! Decodes Qwen Code's `user` records: typed prompts, and text that no user typed
//! (docs/formats.md#qwen-code).

use super::machine;
use crate::provider::shared::function_response;
use crate::provider::shared::machine_text::find_machine_text;
use crate::provider::shared::prompt;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Text before a prompt that the user typed while tools were running.
const MID_TURN_PREFIX: &str = "[User message received during tool execution]: ";

/// The parts of a record, sorted by kind.
#[derive(Default)]
struct PromptParts {
    /// The text sent to the model, without the other parts.
    prompt: String,
    /// Pictures and other attachments, which the text shown to the user leaves out.
    attached: String,
    /// Text that no user typed, each with the subtype of its notification.
    machine: Vec<(&'static str, String)>,
}

/// Decodes a record. `starts_turn` is false for subagents inside a log.
pub(super) fn decode_user_record(object: Value<'_>, starts_turn: bool, out: &mut Stream) {
    let parts = object.object("message").and_then(|message| message.field("parts"));
    let answer = parts.is_some_and(function_response::is_answer_only);
    let subtype = machine_subtype(object).or(answer.then_some(function_response::SUBTYPE));
    if let Some(subtype) = subtype {
        let text = sent_text(object);
        return out.push_shortened(subtype, &text);
    }

    let parts = sort_parts(object);
    let shown = object.object("systemPayload").and_then(|payload| payload.non_empty("displayText"));
    let typed = strip_mid_turn_prefix(&parts.prompt);
    let prompt = shown.unwrap_or(typed);
    let separator = if prompt.is_empty() || parts.attached.is_empty() { "" } else { "\n" };
    prompt::push_prompt(&format!("{prompt}{separator}{}", parts.attached), starts_turn, out);

    if prompt.trim() != typed.trim() {
        out.push_notification("expanded_prompt", typed);
    }
    for (subtype, text) in &parts.machine {
        out.push_notification(subtype, text);
    }
}

/// Decodes the text that a slash command sent to the model. The command itself is the prompt.
pub(super) fn push_expansion(object: Value<'_>, out: &mut Stream) {
    out.push_notification("command_prompt", &sent_text(object));
}

/// Returns the prompt in a record as sent to the model.
pub(super) fn prompt_text(object: Value<'_>) -> String {
    strip_mid_turn_prefix(&sort_parts(object).prompt).to_owned()
}

/// Returns the subtype of a record that is machine text as a whole.
fn machine_subtype(object: Value<'_>) -> Option<&str> {
    let subtype = object.non_empty("subtype");
    let provenance = object.non_empty("provenance").filter(|origin| *origin != "real_user");
    let external_kind = object.non_empty("externalInputKind");
    match subtype {
        Some("mid_turn_user_message" | "realtime_message") => None,
        Some(subtype) => Some(subtype),
        None => provenance.or(external_kind),
    }
}

/// Sorts the parts of a record by kind.
fn sort_parts(object: Value<'_>) -> PromptParts {
    let mut sorted = PromptParts::default();
    let mut is_in_files = false;
    for part in object.object("message").map(|m| m.items("parts")).unwrap_or_default() {
        let Some(text) = part.text("text") else {
            render::begin_new_line(&mut sorted.attached);
            render::append_block(part, &mut sorted.attached);
            continue;
        };

        if let Some(row) = find_machine_text(machine::TEXTS, text) {
            is_in_files = row.start == machine::REFERENCED_FILES_HEADING;
            sorted.machine.push((row.subtype, text.to_owned()));
            continue;
        }

        match sorted.machine.last_mut() {
            Some((_, files)) if is_in_files => render::append_line(text, files),
            _ => render::append_line(text, &mut sorted.prompt),
        }
    }
    sorted
}

/// Returns a prompt without the text that Qwen Code put before it.
fn strip_mid_turn_prefix(prompt: &str) -> &str {
    prompt.trim_start().strip_prefix(MID_TURN_PREFIX).unwrap_or(prompt)
}

/// Returns all text of a record.
fn sent_text(object: Value<'_>) -> String {
    let mut text = String::new();
    let parts = object.object("message").and_then(|message| message.field("parts"));
    if let Some(parts) = parts {
        render::append_content(parts, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{LineItem, Parser};

    /// `parts` as JSON; the prompt, and the subtypes of machine text.
    fn check(parts: &str, prompt: &str, machine: &[&str]) {
        let json = format!("{{\"message\":{{\"role\":\"user\",\"parts\":{parts}}}}}");
        Parser::default().for_each_item(json.as_bytes(), &mut |found| {
            let LineItem::Object(object, _) = found else { panic!("{json}") };
            let sorted = sort_parts(object);
            assert_eq!(strip_mid_turn_prefix(&sorted.prompt), prompt, "{json}");
            let subtypes: Vec<_> = sorted.machine.iter().map(|(subtype, _)| *subtype).collect();
            assert_eq!(subtypes, machine, "{json}");
        });
    }

    #[test]
    fn prompts_are_told_from_machine_text() {
        check(r#"[{"text":"one"},{"text":"two"}]"#, "one\ntwo", &[]);
        check(
            r#"[{"text":"one"},{"text":"<qwen:user-prompt-submit-context>\nx"}]"#,
            "one",
            &["hook"],
        );
        check(
            r#"[{"text":"see @a"},{"text":"\n--- Content from referenced files ---"},{"text":"\nContent from @a:\n"},{"text":"fn"}]"#,
            "see @a",
            &["referenced_files"],
        );
        check(r#"[{"text":"\n[User message received during tool execution]: stop"}]"#, "stop", &[]);
        check("[]", "", &[]);
    }
}
