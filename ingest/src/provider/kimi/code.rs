//! Decodes Kimi Code's `wire.jsonl`: flat records of what happened, from which the agent rebuilds
//! its state (docs/formats.md#kimi). A prompt is recorded twice: as typed (`turn.prompt`) and as
//! the resulting message. Tokens are recorded at the end of a response and in a record of their
//! own. Each counts once.

use schemas::{EventType, Usage};

use super::decoder::{Decoder, told};
use super::{context, wire};
use crate::provider::format::Outcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::chat;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value, string};
use crate::text::render;

/// Fields that no notification repeats: the envelope, and texts as long as the system prompt.
const SKIP: &[&str] = &["type", "time", "agentId", "systemPrompt", "contextSummary"];

/// Known records that only report settings and progress.
const KNOWN: &[&str] = &[
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
pub(super) fn record(decoder: &mut Decoder, object: Value<'_>, out: &mut Stream) -> Outcome {
    let kind = object.text("type").unwrap_or("untyped");
    match kind {
        "turn.prompt" | "turn.steer" => typed(decoder, object, out),
        "context.append_message" => message(decoder, object, out),
        "context.append_loop_event" => match object.object("event") {
            Some(event) => loop_event(decoder, event, out),
            None => decoder.notify(kind, object, SKIP, out),
        },
        "usage.record" => usage_record(decoder, object, out),
        "llm.request" => {
            out.set_model(object.text("model"));
            Outcome::Merged("request")
        }
        "metadata" => Outcome::Merged("header"),
        "llm.tools_snapshot" | "mcp.tools_discovered" => Outcome::Merged("tools"),
        "prompt.accepted" | "prompt.steered" | "prompt.completed" | "prompt.aborted" => {
            Outcome::Merged("twin_of_turn")
        }
        _ if kind.starts_with("token_counting.") || kind == "context.update_token_count" => {
            Outcome::Merged("context_size")
        }
        _ => {
            if !KNOWN.contains(&kind) {
                out.drift("record", kind);
            }
            settings(decoder, kind, object, out);
            decoder.notify(kind, object, SKIP, out)
        }
    }
}

/// Reads session properties from a record: folder, model, undone prompts.
fn settings(decoder: &mut Decoder, kind: &str, object: Value<'_>, out: &mut Stream) {
    let disclosed = object.object("environmentDisclosure");
    out.set_cwd(object.text("cwd").or_else(|| disclosed.and_then(|place| place.text("cwd"))));
    alias(object.text("modelAlias"), out);
    if kind == "context.undo" {
        let count = object.int("count").and_then(|count| u64::try_from(count).ok());
        decoder.state.depth = decoder.state.depth.saturating_sub(count.unwrap_or(1));
    }
}

/// Sets the model to its name in the settings, unless a request already gave a better one.
fn alias(alias: Option<&str>, out: &mut Stream) {
    if out.session.model.is_none() {
        out.set_model(alias.and_then(|alias| alias.rsplit('/').next()));
    }
}

/// The author of a text in the user's role.
enum Author<'a> {
    /// The user, in these words.
    Person,
    /// The user, who typed this command; the text is the client's expansion of it.
    Command(String),
    /// The parent agent, addressing its subagent.
    Parent,
    /// The client; holds the subtype of the notification.
    Machine(&'a str),
}

fn author<'a>(origin: Option<Value<'a>>, text: &str) -> Author<'a> {
    let Some(origin) = origin else { return Author::Person };
    let by_person = origin.text("trigger") == Some("user-slash");
    let command = |name: &str, args: &str| {
        let name = origin.text(name).unwrap_or("");
        format!("/{name} {}", origin.text(args).unwrap_or("")).trim_end().to_owned()
    };
    match origin.text("kind").unwrap_or("user") {
        "user" => Author::Person,
        "skill_activation" if by_person => Author::Command(command("skillName", "skillArgs")),
        "plugin_command" if by_person => Author::Command(command("commandName", "commandArgs")),
        "shell_command" if origin.text("phase") == Some("input") => {
            let inside = text.trim().strip_prefix("<bash-input>");
            let line = inside.and_then(|rest| rest.strip_suffix("</bash-input>"));
            Author::Command(format!("!{}", line.unwrap_or(text).trim()))
        }
        "system_trigger" if origin.text("name") == Some("subagent") => Author::Parent,
        "injection" => Author::Machine(origin.text("variant").unwrap_or("injection")),
        kind => Author::Machine(kind),
    }
}

/// Decodes a prompt as typed (also while the agent worked), or another text that began a turn.
fn typed(decoder: &mut Decoder, object: Value<'_>, out: &mut Stream) -> Outcome {
    let mut text = std::mem::take(&mut decoder.text);
    object.field("input").inspect(|input| chat::content(*input, &mut text));
    match author(object.object("origin"), &text) {
        Author::Person | Author::Parent => {
            decoder.expect(&text);
            decoder.prompt(&text, out);
        }
        Author::Command(line) => decoder.prompt(&line, out),
        Author::Machine(subtype) => {
            decoder.expect(&text);
            told(subtype, &text, out);
        }
    }
    decoder.text = text;
    Outcome::Events
}

/// Decodes a message of the context. Typed prompts were already recorded; other texts are only
/// here.
fn message(decoder: &mut Decoder, object: Value<'_>, out: &mut Stream) -> Outcome {
    let message = object.object("message").unwrap_or(object);
    let mut text = std::mem::take(&mut decoder.text);
    message.field("content").inspect(|content| chat::content(*content, &mut text));
    let origin = message.object("origin");
    let outcome = match message.text("role") {
        Some("user") if decoder.expected(&text) => Outcome::Merged("twin_of_prompt"),
        Some("user") => {
            let shell = origin.is_some_and(|origin| origin.text("kind") == Some("shell_command"));
            match author(origin, &text) {
                Author::Person | Author::Parent => decoder.prompt(&text, out),
                Author::Command(line) if shell => decoder.prompt(&line, out),
                // The expansion of a command follows the command itself.
                Author::Command(_) => {
                    told(origin.and_then(|o| o.text("kind")).unwrap_or("command"), &text, out);
                }
                Author::Machine(subtype) => {
                    let failed = origin.and_then(|origin| origin.flag("isError"));
                    let is_error = failed.filter(|failed| *failed);
                    let subtype = Some(subtype);
                    let draft = Draft { subtype, text: &text, is_error, ..Draft::default() };
                    out.push(EventType::Notification, draft);
                }
            }
            Outcome::Events
        }
        Some("assistant") => context::reply(decoder, message, out),
        Some("tool") => {
            let draft = Draft {
                text: &text,
                tool_call_id: message.non_empty("toolCallId"),
                is_error: message.flag("isError"),
                ..Draft::default()
            };
            out.push(EventType::ToolResult, draft);
            Outcome::Events
        }
        role => told(role.unwrap_or("message"), &text, out),
    };
    decoder.text = text;
    outcome
}

/// Decodes an event within a response.
fn loop_event(decoder: &mut Decoder, event: Value<'_>, out: &mut Stream) -> Outcome {
    let kind = event.text("type").unwrap_or("untyped");
    match kind {
        "step.begin" => {
            decoder.end_step("");
            Outcome::Merged("marker")
        }
        "content.part" => match event.object("part") {
            Some(part) => wire::part(decoder, part, "", out),
            None => decoder.notify(kind, event, SKIP, out),
        },
        "tool.call" => {
            let step = decoder.step("", out);
            let mut arguments = Arguments::default();
            if let Some(input) = event.field("args") {
                match string(input) {
                    Some(text) => arguments.read_json_text(text, &mut decoder.inner),
                    None => arguments.read(input),
                }
            }
            let tool_name = event.text("name");
            let tool_call_id = event.non_empty("toolCallId");
            let draft = Draft { tool_name, tool_call_id, ..arguments.draft() };
            out.push_in(EventType::ToolCall, step, draft);
            Outcome::Events
        }
        "tool.result" => result(decoder, event, out),
        "step.end" => {
            let ended = event.non_empty("messageId").zip(event.object("usage"));
            if let Some((id, tokens)) = ended {
                decoder.state.ended.insert(String::new(), (id.to_owned(), usage(tokens)));
            }
            Outcome::Merged("marker")
        }
        _ => {
            out.drift("record", kind);
            decoder.notify(kind, event, SKIP, out)
        }
    }
}

/// Decodes a tool result. `note` is meant for the model alone. A failed command gives its exit code
/// in the last line.
fn result(decoder: &mut Decoder, event: Value<'_>, out: &mut Stream) -> Outcome {
    let result = event.object("result");
    let value = result.and_then(|result| result.field("output")).or_else(|| event.field("result"));
    value.inspect(|output| chat::content(*output, &mut decoder.text));
    let failed = result.and_then(|result| result.flag("isError")).unwrap_or(false);
    let last = decoder.text.lines().next_back().unwrap_or("");
    let exit_code = chat::exit_code(last).filter(|_| failed);
    if let Some(note) = result.and_then(|result| result.non_empty("note")) {
        render::add_line(note, &mut decoder.text);
    }
    // A subagent's result begins with the subagent's id.
    let heading = decoder.text.lines().next().and_then(|line| line.strip_prefix("agent_id: "));
    let draft = Draft {
        text: &decoder.text,
        tool_call_id: event.non_empty("toolCallId"),
        spawned_agent_id: heading.map(str::trim),
        is_error: Some(failed),
        exit_code,
        ..Draft::default()
    };
    out.push_in(EventType::ToolResult, decoder.last_step(""), draft);
    Outcome::Events
}

/// Appends the tokens of a request. A response also gives them at its end, with the response's id;
/// a compaction has only this record.
fn usage_record(decoder: &mut Decoder, object: Value<'_>, out: &mut Stream) -> Outcome {
    alias(object.text("model"), out);
    let usage = object.object("usage").map(usage).unwrap_or_default();
    let ended = decoder.state.ended.remove("").filter(|(_, ended)| *ended == usage);
    let step = if object.text("usageScope") == Some("session") { 0 } else { decoder.last_step("") };
    let request_id = ended.as_ref().map(|(id, _)| id.as_str());
    out.push_in(EventType::TokenUsage, step, Draft { usage, request_id, ..Draft::default() });
    Outcome::Events
}

/// Reads token counts. The input excludes tokens read from or written to the cache.
fn usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("inputOther"),
        output: usage.int("output"),
        cache_read: usage.int("inputCacheRead"),
        cache_write: usage.int("inputCacheCreation"),
        ..Usage::default()
    }
}
