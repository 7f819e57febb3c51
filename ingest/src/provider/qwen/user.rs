//! Decodes Qwen Code's `user` records: typed prompts, and machine text in the user's role
//! (docs/formats.md#qwen-code).

use schemas::EventType;

use crate::provider::shared::prompt;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Beginnings of machine text among the parts of a prompt, each with the subtype that it gets.
const MACHINE: &[(&str, &str)] = &[
    ("<qwen:user-prompt-submit-context>", "hook"),
    ("<system-reminder>", "system_reminder"),
    (REFERENCED_FILES, "referenced_files"),
];

/// Heading of the files that a prompt names by `@`; the parts after it are those files.
const REFERENCED_FILES: &str = "--- Content from referenced files ---";

/// Text in front of a prompt that the user typed while tools were running.
const MID_TURN: &str = "[User message received during tool execution]: ";

/// The parts of a record, sorted by kind.
#[derive(Default)]
struct Parts {
    prompt: String,
    /// Pictures and other attachments, which the text shown to the user leaves out.
    attached: String,
    machine: Vec<(&'static str, String)>,
}

/// Decodes a record. `starts_turn` is false for subagents inside a log.
pub(super) fn record(object: Value<'_>, starts_turn: bool, out: &mut Stream) {
    if let Some(subtype) = machine(object) {
        let mut text = whole(object);
        render::cut(&mut text);
        return notify(subtype, &text, out);
    }
    let parts = sort(object);
    let shown = object.object("systemPayload").and_then(|payload| payload.non_empty("displayText"));
    let typed = typed(&parts.prompt);
    let prompt = shown.unwrap_or(typed);
    let joint = if prompt.is_empty() || parts.attached.is_empty() { "" } else { "\n" };
    prompt::typed(&format!("{prompt}{joint}{}", parts.attached), starts_turn, out);
    if prompt.trim() != typed.trim() {
        notify("expanded_prompt", typed, out);
    }
    for (subtype, text) in &parts.machine {
        notify(subtype, text, out);
    }
}

/// Decodes the text that a slash command sent to the model. The command itself is the prompt.
pub(super) fn expansion(object: Value<'_>, out: &mut Stream) {
    notify("command_prompt", &whole(object), out);
}

/// Returns the text of a record as sent to the model, without machine text.
pub(super) fn text_of(object: Value<'_>) -> String {
    typed(&sort(object).prompt).to_owned()
}

/// Returns the subtype of a record that is machine text as a whole.
fn machine(object: Value<'_>) -> Option<&str> {
    let subtype = object.non_empty("subtype");
    let provenance = object.non_empty("provenance").filter(|from| *from != "real_user");
    let from_outside = object.non_empty("externalInputKind");
    match subtype {
        Some("mid_turn_user_message" | "realtime_message") => None,
        Some(subtype) => Some(subtype),
        None => provenance.or(from_outside),
    }
}

fn sort(object: Value<'_>) -> Parts {
    let mut sorted = Parts::default();
    let mut in_files = false;
    for part in object.object("message").map(|m| m.items("parts")).unwrap_or_default() {
        let Some(text) = part.text("text") else {
            append(&mut sorted.attached, |out| render::block(part, out));
            continue;
        };
        let start = text.trim_start();
        let kind = MACHINE.iter().find(|(beginning, _)| start.starts_with(beginning));
        match kind {
            Some((beginning, subtype)) => {
                in_files = *beginning == REFERENCED_FILES;
                sorted.machine.push((*subtype, text.to_owned()));
            }
            None => match sorted.machine.last_mut().filter(|_| in_files) {
                Some((_, files)) => append(files, |out| out.push_str(text)),
                None => append(&mut sorted.prompt, |out| out.push_str(text)),
            },
        }
    }
    sorted
}

fn typed(prompt: &str) -> &str {
    prompt.trim_start().strip_prefix(MID_TURN).unwrap_or(prompt)
}

/// Returns all text of a record.
fn whole(object: Value<'_>) -> String {
    let mut text = String::new();
    let parts = object.object("message").and_then(|message| message.field("parts"));
    parts.inspect(|parts| render::content(*parts, &mut text));
    text
}

/// Appends text on a line of its own.
fn append(out: &mut String, what: impl FnOnce(&mut String)) {
    render::new_line(out);
    what(out);
}

fn notify(subtype: &str, text: &str, out: &mut Stream) {
    let draft = Draft { subtype: Some(subtype), text, ..Draft::default() };
    out.push(EventType::Notification, draft);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Found, Parser};

    /// `parts` as JSON; the prompt, and the subtypes of machine text.
    fn check(parts: &str, prompt: &str, machine: &[&str]) {
        let json = format!("{{\"message\":{{\"role\":\"user\",\"parts\":{parts}}}}}");
        Parser::default().each(json.as_bytes(), &mut |found| {
            let Found::Object(object, _) = found else { panic!("{json}") };
            let sorted = sort(object);
            assert_eq!(typed(&sorted.prompt), prompt, "{json}");
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
