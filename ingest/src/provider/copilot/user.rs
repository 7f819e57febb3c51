//! Decodes the user's side of a GitHub Copilot CLI log: prompts, commands run with `!`, and machine
//! text in the user's role (docs/formats.md#github-copilot-cli).

use schemas::EventType;

use super::{machine, tool};
use crate::provider::shared::machine_text::split_machine_text;
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};

/// Pushes a message in the user's role. In a subagent the parent model wrote it, and it begins no
/// turn.
pub(super) fn push_user_message(
    data: Value<'_>,
    is_sidechain: bool,
    text: &mut String,
    out: &mut Stream,
) {
    text.clear();
    tool::append_content(data.field("content"), text);
    for attachment in data.items("attachments") {
        let kind = attachment.text("type").unwrap_or("attachment");
        let keys = ["path", "filePath", "url", "displayName"];
        if let Some(name) = keys.iter().find_map(|key| attachment.non_empty(key)) {
            text.push_str(&format!("\n[{kind} {name}]"));
        }
    }

    let mut text = text.trim_start_matches('\n');
    if let Some(subtype) = machine_origin(data) {
        return out.push_notification(subtype, text);
    }
    while let Some(block) = split_machine_text(machine::TEXTS, text) {
        out.push_notification(block.subtype, block.text);
        text = block.rest;
        if text.is_empty() {
            return;
        }
    }
    if !is_sidechain {
        out.begin_turn();
        out.offer_title(TitleFrom::Prompt, text);
    }
    out.push_text(EventType::User, text);
}

/// Pushes a command that the user ran with `!`.
pub(super) fn push_command(data: Value<'_>, text: &mut String, out: &mut Stream) {
    let command = data.object("arguments").and_then(|arguments| arguments.text("command"));
    text.clear();
    text.push('!');
    text.push_str(command.or_else(|| data.text("toolName")).unwrap_or(""));
    out.push_prompt(text);
}

/// Returns the subtype of a message in the user's role that the user did not write.
fn machine_origin(data: Value<'_>) -> Option<&str> {
    if data.flag("isAutopilotContinuation") == Some(true) {
        return Some("autopilot");
    }
    let source = data.non_empty("source")?;
    let origin = source.split('-').next().unwrap_or(source);
    let is_by_user = matches!(origin, "user" | "command") || source == "autopilot-objective";
    (!is_by_user).then_some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Parser, decode_embedded};

    #[test]
    fn machine_text_is_told_by_its_source() {
        let check = |json: &str, want: Option<&str>| {
            let read = |value: Value<'_>| assert_eq!(machine_origin(value), want, "{json}");
            assert!(decode_embedded(json, &mut Parser::default(), read));
        };
        check(r#"{"content":"x"}"#, None);
        check(r#"{"source":"user"}"#, None);
        check(r#"{"source":"skill-pdf"}"#, Some("skill"));
        check(r#"{"source":"agent-7"}"#, Some("agent"));
        check(r#"{"source":"autopilot-objective"}"#, None);
        check(r#"{"isAutopilotContinuation":true}"#, Some("autopilot"));
    }
}
