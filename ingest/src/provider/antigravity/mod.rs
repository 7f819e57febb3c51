//! Reads the conversations of Antigravity from `~/.gemini/antigravity*/conversations/<id>.db`
//! (`database.rs`) and from the transcripts
//! `~/.gemini/antigravity*/brain/<id>/.system_generated/logs/transcript_full.jsonl`
//! (docs/formats.md#antigravity). `transcript.jsonl` in the same folder has the same records with
//! long fields cut. It is read only if there is no full transcript, and a transcript only if there is
//! no database.
//!
//! In a transcript calls have no ids. Their results follow in the order of the calls, as separate
//! records named after the tool. Each result gets the position of its call (`<step_index>.<n>`) as its
//! id. Every argument is JSON in a string. There are no token counts.

mod database;

use std::collections::VecDeque;
use std::path::Path;

use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use simd_json::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::{
    LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, push_oversized};
use crate::provider::shared::{chat, drift};
use crate::source::container::has_log;
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Antigravity,
    has_unique_ids: false,
    decoder_version: 3,
    roots: |places| {
        ["antigravity", "antigravity-cli", "antigravity-ide"]
            .iter()
            .flat_map(|place| ["brain", "conversations", "implicit"].map(|folder| (place, folder)))
            .map(|(place, folder)| places.home_path(&format!(".gemini/{place}/{folder}")))
            .collect()
    },
    sniff: claim_log,
    quirks: Quirks {
        is_sidecar: Some(|name, has| name == "transcript.jsonl" && has("transcript_full.jsonl")),
        is_stored_elsewhere: Some(is_in_database),
        assemblies: &[database::ASSEMBLY],
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|_, state| {
        let state =
            state.and_then(|state| AntigravityState::deserialize(state).ok()).unwrap_or_default();
        Box::new(AntigravityDecoder { state, text: String::new(), inner: Parser::default() })
    }),
};

/// Tags at which the text that the client appends to a prompt may start.
const CLIENT_TAGS: &[&str] = &["<ADDITIONAL_METADATA>", "<USER_SETTINGS_CHANGE>"];

/// Types of records of the program that become a notification. Types of the model are names of tools.
const KNOWN_NOTICES: &[&str] = &[
    "CHECKPOINT",
    "CODE_ACTION",
    "CONVERSATION_HISTORY",
    "EPHEMERAL_MESSAGE",
    "ERROR_MESSAGE",
    "GENERIC",
    "GREP_SEARCH",
    "LIST_DIRECTORY",
    "MCP_TOOL",
    "RUN_COMMAND",
    "SYSTEM_MESSAGE",
    "VIEW_FILE",
];

/// Fields of the records of transcripts. Sorted.
const KNOWN_FIELDS: &[&str] = &[
    "content",
    "created_at",
    "error",
    "source",
    "status",
    "step_index",
    "thinking",
    "tool_calls",
    "truncated_fields",
    "type",
];

/// Words before the name of the model in a prompt that reports a change of the model.
const MODEL_CHANGE: &str = "`Model Selection` from ";

/// Number of lines at the start of a result that are searched for an exit code. The lines after
/// them are output.
const HEAD_LINES: usize = 4;

/// Returns whether the conversation of a transcript has a database.
fn is_in_database(path: &Path) -> bool {
    let generated = path.ancestors().find(|place| place.ends_with(".system_generated"));
    let agent = generated.and_then(|place| place.ancestors().nth(3));
    agent.is_some_and(|agent| {
        conversation_id(path).is_some_and(|id| database::has_database(agent, id))
    })
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    if let Some(info) = head.objects.first().filter(|first| first["store"] == database::STORE) {
        return Some(SessionClaim::new(Provider::Antigravity, info["id"].as_str()?));
    }
    let is_cut = head.file_stem() == "transcript"
        && has_log(&head.path.with_file_name("transcript_full.jsonl"));
    if is_cut || is_in_database(head.path) || !head.objects.iter().any(is_step) {
        return None;
    }
    Some(SessionClaim::new(
        Provider::Antigravity,
        conversation_id(head.path).unwrap_or_else(|| head.file_stem()),
    ))
}

/// Returns whether an object is a record of Antigravity.
fn is_step(object: &Json) -> bool {
    object["step_index"].is_number() && object["source"].is_string() && object["type"].is_string()
}

/// Returns the name of the folder that contains `.system_generated`.
fn conversation_id(path: &Path) -> Option<&str> {
    let place = path.ancestors().find(|place| place.ends_with(".system_generated"))?;
    place.parent()?.file_name()?.to_str()
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct AntigravityState {
    /// Ids of calls whose results have not been read yet, in order.
    waiting: VecDeque<String>,
    /// True if the records are those of a database.
    #[serde(default)]
    is_database: bool,
}

struct AntigravityDecoder {
    state: AntigravityState,
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for AntigravityDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        if object.text("store") == Some(database::STORE) {
            self.state.is_database = true;
            out.extend_time_range(object.int("time"));
            out.set_cwd(object.text("cwd"));
            out.set_branch(object.text("branch"));
            out.offer_title(TitleFrom::Agent, object.text("title").unwrap_or(""));
            return RecordOutcome::Merged("header");
        }
        self.text.clear();
        let kind = object.text("type").unwrap_or("untyped");
        if self.state.is_database {
            // The tokens of a step come after it, and its model with them.
            let id = out.session.native_id.as_deref().unwrap_or("");
            let step = object.int("step_index").unwrap_or_default();
            let identity = xxh3_64(format!("{id} {kind} {step}").as_bytes()) | 1;
            out.begin_record(at, Some(identity), object.int("time"));
        } else {
            out.begin_record_by_content(at, raw, parse_micros(object.text("created_at")));
        }
        let is_unknown = object.flag("is_unknown") == Some(true);
        if is_unknown {
            out.count_unknown("record", kind);
        }
        if !self.state.is_database {
            drift::count_unknown_fields(object, KNOWN_FIELDS, out);
        }
        match (object.text("source"), kind) {
            (_, OVERSIZED_RECORD) => {
                push_oversized("step", object.int("bytes").unwrap_or(0), at, out);
            }
            (_, database::USAGE) => push_usage(object, out),
            (_, "USER_INPUT") => self.decode_user_input(object, out),
            (_, "PLANNER_RESPONSE" | "GENERATE_RESPONSE") => self.decode_response(object, out),
            (Some("MODEL"), _) | (_, "TOOL_RESPONSE") => self.decode_tool_result(kind, object, out),
            (source, _) => {
                let is_known = source == Some("SYSTEM") && KNOWN_NOTICES.contains(&kind);
                if !is_known && !is_unknown {
                    out.count_unknown("record", kind);
                }
                if let Some(content) = object.text("content") {
                    self.text.push_str(content);
                } else {
                    let skip = ["step_index", "source", "type", "status", "created_at", "content"];
                    render::append_notification(object, &skip, &mut self.text);
                }
                render::truncate_notification(&mut self.text);
                let has_failed = kind == "ERROR_MESSAGE" || read_failure(object) == Some(true);
                out.push_notice(&kind.to_ascii_lowercase(), &self.text, has_failed.then_some(true));
            }
        }
        RecordOutcome::Events
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

/// Returns whether a step failed, or `None` if its status does not show how it ended.
fn read_failure(object: Value<'_>) -> Option<bool> {
    match object.text("status")? {
        "DONE" | "OK" | "SUCCESS" => Some(false),
        "ERROR" | "FAILED" | "CANCELED" => Some(true),
        _ => None,
    }
}

impl AntigravityDecoder {
    /// Decodes an input of the user. The text in which the client reports settings and open files
    /// becomes a notification.
    fn decode_user_input(&mut self, object: Value<'_>, out: &mut Stream) {
        self.state.waiting.clear();
        let content = object.text("content").unwrap_or("");
        let (prompt, context) = split_prompt(content);
        let context = context.trim();
        if !context.is_empty() {
            out.set_model(chosen_model(context));
            out.push_notification("user_context", context);
        }
        if !prompt.is_empty() {
            out.push_prompt(prompt);
        }
    }

    /// Decodes one response of the model.
    fn decode_response(&mut self, object: Value<'_>, out: &mut Stream) {
        self.state.waiting.clear();
        let thought = object.non_empty("thinking");
        let text = object.non_empty("content");
        let calls = object.items("tool_calls");
        if thought.is_none() && text.is_none() && calls.is_empty() {
            return;
        }

        out.set_model(object.text("model"));
        out.begin_step();
        if let Some(text) = thought {
            out.push_text(EventType::Reasoning, text);
        }
        if let Some(text) = text {
            out.push_text(EventType::Message, text);
        }
        let step = object.int("step_index").unwrap_or_default();
        for (number, call) in calls.into_iter().enumerate() {
            if let Some(arguments) = call.field("arguments") {
                let arguments = Arguments::of_input(Some(arguments), &mut self.inner);
                arguments.push_call(call.text("name"), call.non_empty("id"), out);
            } else {
                self.push_call(call, format!("{step}.{number}"), out);
            }
        }
    }

    /// Pushes a call and expects its result.
    fn push_call(&mut self, call: Value<'_>, id: String, out: &mut Stream) {
        let mut arguments = Arguments::default();
        if let Some(args) = call.field("args") {
            let plain = unquote_arguments(args);
            out.set_cwd(plain.get("Cwd").and_then(Json::as_str));
            arguments.read_json_text(&Json::Object(plain).to_string(), &mut self.inner);
        }
        let tool_name = call.text("name");
        arguments.push_call(tool_name, Some(&id), out);
        self.state.waiting.push_back(id);
    }

    /// Decodes the result of the first call whose result is missing.
    fn decode_tool_result(&mut self, kind: &str, object: Value<'_>, out: &mut Stream) {
        let own_id = object.non_empty("tool_call_id").map(str::to_owned);
        let id = own_id.or_else(|| self.state.waiting.pop_front());
        let tool = object.text("tool").map_or_else(|| kind.to_ascii_lowercase(), str::to_owned);
        chat::append_field(object, "content", &mut self.text);

        let exit_code = if self.state.is_database {
            object.int32("exit_code")
        } else if kind.contains("COMMAND") {
            self.text.lines().take(HEAD_LINES).find_map(chat::parse_exit_code)
        } else {
            None
        };
        let is_error = exit_code.map(|code| code != 0).or(read_failure(object));
        let decoded = DecodedEvent {
            subtype: (object.text("status") == Some("CANCELED")).then_some("cancelled"),
            text: &self.text,
            // If the call is known, the stream knows its tool.
            tool_name: (id.is_none() || self.state.is_database).then_some(tool.as_str()),
            tool_call_id: id.as_deref(),
            is_error,
            exit_code,
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Pushes the tokens of a request to the present step.
fn push_usage(object: Value<'_>, out: &mut Stream) {
    let Some(counts) = object.object("usage") else { return };
    let usage = Usage {
        input: counts.int("input"),
        output: counts.int("output"),
        cache_read: counts.int("cache_read"),
        cache_write: counts.int("cache_write"),
        ..Usage::default()
    };
    out.set_model(object.text("model"));
    out.push_usage(usage, None, None);
}

/// Splits the content of an input into the user's prompt and the text of the client.
fn split_prompt(content: &str) -> (&str, String) {
    if let Some((before, rest)) = content.split_once("<USER_REQUEST>") {
        let (prompt, after) = rest.split_once("</USER_REQUEST>").unwrap_or((rest, ""));
        return (prompt.trim(), format!("{}\n{}", before.trim(), after.trim()));
    }
    let at = CLIENT_TAGS.iter().filter_map(|tag| content.find(tag)).min();
    let (prompt, context) = content.split_at(at.unwrap_or(content.len()));
    (prompt.trim(), context.to_owned())
}

/// Returns the arguments without the quotes around each of them: `"\"/tmp\""` becomes `/tmp`.
fn unquote_arguments(args: Value<'_>) -> serde_json::Map<String, Json> {
    let mut plain = serde_json::Map::new();
    let Some(object) = args.as_object() else { return plain };
    for (key, value) in &object {
        let text = string_value(value);
        let inner = text.filter(|text| text.starts_with('"'));
        let value = match (inner.and_then(|text| serde_json::from_str(text).ok()), text) {
            (Some(inner), _) => inner,
            (None, Some(text)) => Json::String(text.to_owned()),
            (None, None) => serde_json::from_str(&value.encode()).unwrap_or_default(),
        };
        plain.insert(key.to_owned(), value);
    }
    plain
}

/// Returns the model in "The user changed setting `Model Selection` from None to Gemini."
fn chosen_model(text: &str) -> Option<&str> {
    let (_, change) = text.split_once(MODEL_CHANGE)?;
    let (_, model) = change.lines().next()?.split_once(" to ")?;
    // The text after the full stop is another sentence.
    let model = model.split_once(". ").map_or(model, |(model, _)| model);
    Some(model.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::LineItem;

    #[test]
    fn arguments_lose_their_quotes_and_no_more() {
        let json = br#"{"Path":"\"/tmp/a b\"","Text":"say \"x\"","Deep":{"n":1},"N":"3"}"#;
        Parser::default().for_each_item(json, &mut |found| {
            let LineItem::Object(args, _) = found else { panic!("no object") };
            let want = r#"{"Path":"/tmp/a b","Text":"say \"x\"","Deep":{"n":1},"N":"3"}"#;
            assert_eq!(Json::Object(unquote_arguments(args)).to_string(), want);
        });
    }

    #[test]
    fn the_chosen_model_is_found() {
        let text = "changed setting `Model Selection` from None to Gemini 3.5 Flash (Medium).\nx";
        assert_eq!(chosen_model(text), Some("Gemini 3.5 Flash (Medium)"));
        let text = "changed setting `Model Selection` from A to B 2.5. No need to comment.";
        assert_eq!(chosen_model(text), Some("B 2.5"));
        assert_eq!(chosen_model("nothing"), None);
    }
}
