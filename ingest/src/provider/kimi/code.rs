//! Decodes Kimi Code's `wire.jsonl`: flat records of what happened, from which the agent rebuilds
//! its state (docs/formats.md#kimi).
//!
//! ```text
//! {"type":"turn.prompt","time":1760000000000,"input":[...],"origin":{"kind":"user"}}
//! {"type":"context.append_message","time":...,"message":{"role":"user","content":[...]}}
//! {"type":"context.append_loop_event","time":...,"event":{"type":"tool.call","args":{...}}}
//! {"type":"usage.record","time":...,"usage":{"inputOther":...,"output":...}}
//! ```
//!
//! A prompt is recorded twice: as typed (`turn.prompt`) and as the resulting message. Tokens are
//! recorded at the end of a response and in a record of their own. Each counts once.

use schemas::{EventType, Usage};

use super::decoder::{KimiDecoder, push_notification};
use super::{context, wire};
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::provider::shared::refusal::push_refusal_words;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Fields that no notification repeats: the envelope, and texts as long as the system prompt.
const SKIPPED_FIELDS: &[&str] = &["type", "time", "agentId", "systemPrompt", "contextSummary"];

/// Known records that only report settings and progress.
const KNOWN_RECORDS: &[&str] = &[
    "config.update",
    "context.apply_compaction",
    "context.clear",
    "context.undo",
    "cron.add",
    "cron.cursor",
    "cron.delete",
    "file_history.checkpoint",
    "file_history.tracked",
    "forked",
    "full_compaction.begin",
    "full_compaction.cancel",
    "full_compaction.complete",
    "goal.clear",
    "goal.create",
    "goal.update",
    "interaction.request",
    "interaction.resolved",
    "interruptionReminder.recorded",
    "micro_compaction.apply",
    "permission.record_approval_result",
    "permission.set_mode",
    "plan.revision",
    "plan_mode.cancel",
    "plan_mode.enter",
    "plan_mode.exit",
    "plugin.session_start",
    "profile.bind",
    "runtime.set_binding",
    "staleGuard.cleared",
    "staleGuard.recorded",
    "swarm_mode.enter",
    "swarm_mode.exit",
    "task.started",
    "task.terminated",
    "task.waitDelivered",
    "tools.register_user_tool",
    "tools.reset_active_tools",
    "tools.set_active_tools",
    "tools.unregister_user_tool",
    "tools.update_store",
    "tower_mode.enter",
    "tower_mode.exit",
    "turn.cancel",
    "turn.ended",
    "turn.step.interrupted",
    "turn.step.retrying",
];

/// Decodes one record.
pub(super) fn decode_record(
    decoder: &mut KimiDecoder,
    object: Value<'_>,
    out: &mut Stream,
) -> RecordOutcome {
    let kind = object.text("type").unwrap_or("untyped");
    match kind {
        "turn.prompt" | "turn.steer" => decode_typed_prompt(decoder, object, out),
        "context.append_message" => decode_message(decoder, object, out),
        "context.append_loop_event" => match object.object("event") {
            Some(event) => decode_loop_event(decoder, event, out),
            None => decoder.push_record_fields(kind, object, SKIPPED_FIELDS, out),
        },
        "usage.record" => decode_usage(decoder, object, out),
        "llm.request" => {
            out.set_model(object.text("model"));
            RecordOutcome::Merged("request")
        }
        "metadata" => RecordOutcome::Merged("header"),
        "llm.tools_snapshot" | "mcp.tools_discovered" => RecordOutcome::Merged("tools"),
        "prompt.accepted" | "prompt.steered" | "prompt.completed" | "prompt.aborted" => {
            RecordOutcome::Merged("twin_of_turn")
        }
        _ if kind.starts_with("token_counting.") || kind == "context.update_token_count" => {
            RecordOutcome::Merged("context_size")
        }
        _ => {
            if !KNOWN_RECORDS.contains(&kind) {
                out.count_unknown("record", kind);
            }
            apply_settings(decoder, kind, object, out);
            decoder.push_record_fields(kind, object, SKIPPED_FIELDS, out)
        }
    }
}

/// Reads session properties from a record: folder, model, undone prompts.
fn apply_settings(decoder: &mut KimiDecoder, kind: &str, object: Value<'_>, out: &mut Stream) {
    let disclosure = object.object("environmentDisclosure");
    let disclosed_cwd = disclosure.and_then(|disclosure| disclosure.text("cwd"));
    out.set_cwd(object.text("cwd").or(disclosed_cwd));
    set_model_alias(object.text("modelAlias"), out);

    if kind == "context.undo" {
        let count = object.int("count").and_then(|count| u64::try_from(count).ok());
        decoder.state.depth = decoder.state.depth.saturating_sub(count.unwrap_or(1));
    }
}

/// Sets the model to its name in the settings, unless a request already gave a better one.
fn set_model_alias(alias: Option<&str>, out: &mut Stream) {
    if out.session.model.is_none() {
        out.set_model(alias.and_then(|alias| alias.rsplit('/').next()));
    }
}

/// The author of a text in the user's role.
enum TextAuthor<'a> {
    /// The user, in these words.
    User,
    /// The user, who typed this command. The text is the client's expansion of it.
    Command(String),
    /// The parent agent, addressing its subagent.
    Parent,
    /// The client. Holds the subtype of the notification.
    Machine(&'a str),
}

/// Origins of texts in the user's role.
const KNOWN_ORIGINS: &[&str] =
    &["injection", "plugin_command", "shell_command", "skill_activation", "system_trigger", "user"];

/// Returns the author of a text by its `origin`. A text without an origin is by the user.
fn text_author<'a>(origin: Option<Value<'a>>, text: &str) -> TextAuthor<'a> {
    let Some(origin) = origin else { return TextAuthor::User };
    let is_typed = origin.text("trigger") == Some("user-slash");
    match origin.text("kind").unwrap_or("user") {
        "user" => TextAuthor::User,
        "skill_activation" if is_typed => {
            TextAuthor::Command(slash_command(origin, "skillName", "skillArgs"))
        }
        "plugin_command" if is_typed => {
            TextAuthor::Command(slash_command(origin, "commandName", "commandArgs"))
        }
        "shell_command" if origin.text("phase") == Some("input") => {
            let inside = text.trim().strip_prefix("<bash-input>");
            let line = inside.and_then(|rest| rest.strip_suffix("</bash-input>"));
            TextAuthor::Command(format!("!{}", line.unwrap_or(text).trim()))
        }
        "system_trigger" if origin.text("name") == Some("subagent") => TextAuthor::Parent,
        "injection" => TextAuthor::Machine(origin.text("variant").unwrap_or("injection")),
        kind => TextAuthor::Machine(kind),
    }
}

/// Counts an unknown origin of a text, which the user may have typed or not.
fn count_unknown_origin(origin: Option<Value<'_>>, out: &mut Stream) {
    if let Some(kind) = origin.and_then(|origin| origin.text("kind"))
        && !KNOWN_ORIGINS.contains(&kind)
    {
        out.count_unknown("record", &format!("origin {kind}"));
    }
}

/// Returns a slash command as the user typed it. `name_key` and `args_key` are the fields of
/// `origin` that hold its parts.
fn slash_command(origin: Value<'_>, name_key: &str, args_key: &str) -> String {
    let name = origin.text(name_key).unwrap_or("");
    let args = origin.text(args_key).unwrap_or("");
    format!("/{name} {args}").trim_end().to_owned()
}

/// Decodes a prompt as typed (also while the agent worked), or another text that began a turn.
fn decode_typed_prompt(
    decoder: &mut KimiDecoder,
    object: Value<'_>,
    out: &mut Stream,
) -> RecordOutcome {
    let mut text = std::mem::take(&mut decoder.text);
    chat::append_field(object, "input", &mut text);
    count_unknown_origin(object.object("origin"), out);
    match text_author(object.object("origin"), &text) {
        TextAuthor::User | TextAuthor::Parent => {
            decoder.remember_prompt(&text);
            decoder.push_prompt(&text, out);
        }
        TextAuthor::Command(line) => decoder.push_prompt(&line, out),
        TextAuthor::Machine(subtype) => {
            decoder.remember_prompt(&text);
            push_notification(subtype, &text, out);
        }
    }
    decoder.text = text;
    RecordOutcome::Events
}

/// Decodes a message of the context. Typed prompts were already recorded; other texts are only
/// here.
fn decode_message(decoder: &mut KimiDecoder, object: Value<'_>, out: &mut Stream) -> RecordOutcome {
    let message = object.object("message").unwrap_or(object);
    let mut text = std::mem::take(&mut decoder.text);
    chat::append_field(message, "content", &mut text);
    let outcome = match message.text("role") {
        Some("user") if decoder.take_expected_prompt(&text) => {
            RecordOutcome::Merged("twin_of_prompt")
        }
        Some("user") => push_user_text(decoder, message.object("origin"), &text, out),
        Some("assistant") => context::decode_response(decoder, message, out),
        Some("tool") => {
            out.push_result(message.non_empty("toolCallId"), &text, message.flag("isError"), None);
            RecordOutcome::Events
        }
        role => {
            let role = role.unwrap_or("message");
            if role != "system" {
                out.count_unknown("record", &format!("message {role}"));
            }
            push_notification(role, &text, out)
        }
    };
    decoder.text = text;
    outcome
}

/// Pushes a text in the user's role that no record before it held: a prompt or a notification.
fn push_user_text(
    decoder: &mut KimiDecoder,
    origin: Option<Value<'_>>,
    text: &str,
    out: &mut Stream,
) -> RecordOutcome {
    let kind = origin.and_then(|origin| origin.text("kind"));
    count_unknown_origin(origin, out);
    match text_author(origin, text) {
        TextAuthor::User | TextAuthor::Parent => decoder.push_prompt(text, out),
        TextAuthor::Command(line) if kind == Some("shell_command") => {
            decoder.push_prompt(&line, out);
        }
        // The command itself was recorded before its expansion.
        TextAuthor::Command(_) => {
            push_notification(kind.unwrap_or("command"), text, out);
        }
        TextAuthor::Machine(subtype) => {
            let has_failed = origin.and_then(|origin| origin.flag("isError")) == Some(true);
            out.push_notice(subtype, text, has_failed.then_some(true));
        }
    }
    RecordOutcome::Events
}

/// Decodes an event within a response.
fn decode_loop_event(
    decoder: &mut KimiDecoder,
    event: Value<'_>,
    out: &mut Stream,
) -> RecordOutcome {
    let kind = event.text("type").unwrap_or("untyped");
    match kind {
        "step.begin" => {
            decoder.end_step("");
            RecordOutcome::Merged("marker")
        }
        "content.part" => match event.object("part") {
            Some(part) => wire::push_part(decoder, part, "", out),
            None => decoder.push_record_fields(kind, event, SKIPPED_FIELDS, out),
        },
        "tool.call" => push_tool_call(decoder, event, out),
        "tool.result" => decode_tool_result(decoder, event, out),
        "step.end" => {
            let ended = event.non_empty("messageId").zip(event.object("usage"));
            if let Some((id, tokens)) = ended {
                decoder.state.ended.insert(String::new(), (id.to_owned(), read_usage(tokens)));
            }
            RecordOutcome::Merged("marker")
        }
        _ => {
            out.count_unknown("record", kind);
            decoder.push_record_fields(kind, event, SKIPPED_FIELDS, out)
        }
    }
}

/// Pushes a tool call. Its arguments are an object, or a string with JSON or other text.
fn push_tool_call(decoder: &mut KimiDecoder, event: Value<'_>, out: &mut Stream) -> RecordOutcome {
    let step = decoder.ensure_step("", out);
    let arguments = Arguments::of_input(event.field("args"), &mut decoder.inner);
    let tool_name = event.text("name");
    let tool_call_id = event.non_empty("toolCallId");
    arguments.push_call_in_step(tool_name, tool_call_id, step, out);
    RecordOutcome::Events
}

/// Decodes a tool result. Its `note` is meant for the model alone. The exit code of a failed
/// command is in the last line of its output.
fn decode_tool_result(
    decoder: &mut KimiDecoder,
    event: Value<'_>,
    out: &mut Stream,
) -> RecordOutcome {
    let result = event.object("result");
    let value = result.and_then(|result| result.field("output")).or_else(|| event.field("result"));
    if let Some(output) = value {
        chat::append_content(output, &mut decoder.text);
    }

    let is_error = result.and_then(|result| result.flag("isError")).unwrap_or(false);
    let last_line = decoder.text.lines().next_back().unwrap_or("");
    let exit_code = if is_error { chat::parse_exit_code(last_line) } else { None };
    if let Some(note) = result.and_then(|result| result.non_empty("note")) {
        render::append_line(note, &mut decoder.text);
    }

    // A subagent's result begins with the subagent's id.
    let heading = decoder.text.lines().next().and_then(|line| line.strip_prefix("agent_id: "));
    let decoded = DecodedEvent {
        text: &decoder.text,
        tool_call_id: event.non_empty("toolCallId"),
        spawned_agent_id: heading.map(str::trim),
        is_error: Some(is_error),
        exit_code,
        ..DecodedEvent::default()
    };
    out.push_in_step(EventType::ToolResult, decoder.last_step(""), decoded);
    if is_error {
        push_refusal_words(&decoder.text, out);
    }
    RecordOutcome::Events
}

/// Pushes the tokens of a request. A response also gives them at its end, with the response's id. A
/// compaction gives them only here.
fn decode_usage(decoder: &mut KimiDecoder, object: Value<'_>, out: &mut Stream) -> RecordOutcome {
    set_model_alias(object.text("model"), out);
    let usage = object.object("usage").map(read_usage).unwrap_or_default();
    let ended = decoder.state.ended.remove("").filter(|(_, ended)| *ended == usage);
    let step = if object.text("usageScope") == Some("session") { 0 } else { decoder.last_step("") };
    let request_id = ended.as_ref().map(|(id, _)| id.as_str());
    out.push_in_step(
        EventType::TokenUsage,
        step,
        DecodedEvent { usage, request_id, ..DecodedEvent::default() },
    );
    RecordOutcome::Events
}

/// Reads token counts. The input excludes tokens read from or written to the cache.
fn read_usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("inputOther"),
        output: usage.int("output"),
        cache_read: usage.int("inputCacheRead"),
        cache_write: usage.int("inputCacheCreation"),
        ..Usage::default()
    }
}
