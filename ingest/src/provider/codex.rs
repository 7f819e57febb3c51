//! Codex CLI: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl`, both generations (FORMATS.md
//! section 2): flat items, and items wrapped as `{timestamp, type, payload}`.
//!
//! The same text stands in `response_item` and `event_msg` by design; whichever comes first
//! counts, its twin is merged.

use std::collections::VecDeque;
use std::path::PathBuf;

use schemas::{Confidence, EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    Format, LineDecoder, Outcome, Places, Reader, codex_head, codex_output, codex_tokens, drift,
};
use crate::arguments::Arguments;
use crate::json::{Fields, Parser, Value};
use crate::render;
use crate::stream::{Draft, RecordAt, Stream, TitleFrom, micros};

pub const FORMAT: Format = Format {
    provider: Provider::Codex,
    unique_ids: false,
    roots,
    sniff: codex_head::sniff,
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, text: String::new(), inner: Parser::default() })
    }),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let codex = places.set("CODEX_HOME").unwrap_or_else(|| places.home(".codex"));
    vec![codex.join("sessions"), codex.join("archived_sessions")]
}

/// Records of a copied beginning follow each other within this time, in microseconds.
const BURST_GAP: i64 = 1_000_000;

/// Texts remembered for finding twins; twins stand a few records apart.
const RECENT: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Family {
    Item,
    Message,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Hash of role and text of the last messages, and the family each came from.
    recent: VecDeque<(u64, Family)>,
    /// A model response is under way.
    in_response: bool,
    /// The last event was a prompt out of a response_item.
    after_prompt: bool,
    /// The totals of the last token_count.
    totals: Option<Usage>,
    /// The first session_meta was seen.
    named: bool,
    /// Time of the last record of a copied beginning whose original is not known.
    #[serde(default)]
    burst: Option<i64>,
}

struct Decoder {
    state: State,
    text: String,
    /// Decodes JSON inside strings.
    inner: Parser,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let time = micros(object.text("timestamp"));
        out.begin_record(at, content_identity(raw), time);
        self.copied_burst(time, out);
        let payload = object.object("payload");
        drift(object, payload, out);
        match (object.text("type"), payload) {
            (Some("session_meta"), Some(meta)) => self.session_meta(meta, time, out),
            (Some("turn_context"), Some(context)) => {
                out.set_cwd(context.text("cwd"));
                out.set_model(context.text("model"));
                Outcome::Merged("turn_context")
            }
            (Some("response_item"), Some(item)) => self.item(item, out),
            (Some("event_msg"), Some(event)) => self.event(event, out),
            (Some("compacted"), Some(compacted)) => {
                // replacement_history repeats messages that stand in the log already.
                let text = compacted.non_empty("message").unwrap_or("Context compacted");
                self.notify("compacted", text, None, out)
            }
            (Some(kind), Some(payload)) => self.unknown(kind, payload, out),
            (None, _) if object.text("record_type") == Some("state") => {
                Outcome::Merged("state_marker")
            }
            (None, _) if object.non_empty("id").is_some() && !self.state.named => {
                self.session_meta(object, time, out)
            }
            _ => self.item(object, out),
        }
    }

    fn save(&self) -> Json {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

/// Counts what is not known of a record; the flat generation no longer changes.
fn drift(object: Value<'_>, payload: Option<Value<'_>>, out: &mut Stream) {
    let (Some(payload), Some(kind)) = (payload, object.text("type")) else { return };
    match payload.text("type").filter(|_| matches!(kind, "response_item" | "event_msg")) {
        Some(inner) => {
            let kind = format!("{kind}/{inner}");
            drift::record(&kind, drift::CODEX_RECORDS, out);
        }
        None => drift::record(kind, drift::CODEX_RECORDS, out),
    }
    drift::fields(object, drift::CODEX_FIELDS, out);
    drift::fields(payload, drift::CODEX_FIELDS, out);
}

/// Records shorter than this say too little to be told apart, as reasoning without its text.
const LEAST_IDENTITY: usize = 160;

/// Identity of a record by content. Copies in a fork are stamped anew, so the time is left out.
fn content_identity(raw: &[u8]) -> Option<u64> {
    if raw.len() < LEAST_IDENTITY {
        return None;
    }
    let stamped = raw.strip_prefix(br#"{"timestamp":""#).and_then(|rest| {
        let end = memchr::memchr(b'"', rest)?;
        rest.get(end + 1..)
    });
    Some(xxh3_64(stamped.unwrap_or(raw)) | 1)
}

impl Decoder {
    /// The beginning that a fork or a spawned agent copied from a log that is not there: it was
    /// written in one go (FORMATS.md section 12).
    fn copied_burst(&mut self, time: Option<i64>, out: &mut Stream) {
        let Some(last) = self.state.burst else { return };
        let now = time.unwrap_or(last);
        let goes_on = now - last <= BURST_GAP;
        self.state.burst = goes_on.then_some(now);
        out.set_copied(goes_on);
        if goes_on {
            out.set_confidence(Confidence::Estimated);
        }
    }

    fn session_meta(&mut self, meta: Value<'_>, time: Option<i64>, out: &mut Stream) -> Outcome {
        // Copied history brings the parent's own header along (FORMATS.md 2.4).
        let first = !std::mem::replace(&mut self.state.named, true);
        let other = meta.text("id") != out.session.native_id.as_deref();
        if !first && other && !out.has_history() && out.session.relation.is_some() {
            self.state.burst = time;
            self.copied_burst(time, out);
        }
        if first {
            out.set_version(meta.text("cli_version"));
        }
        if first || meta.text("id") == out.session.native_id.as_deref() {
            out.set_cwd(meta.text("cwd"));
            let git = meta.object("git");
            out.set_branch(git.and_then(|git| git.text("branch")));
            out.set_repository(git.and_then(|git| git.text("repository_url")));
        }
        self.text.clear();
        let skip = ["instructions", "base_instructions", "dynamic_tools", "type"];
        render::fields(meta, &skip, &mut self.text);
        let draft = Draft { subtype: Some("session_meta"), text: &self.text, ..Draft::default() };
        out.push(EventType::Notification, draft);
        Outcome::Events
    }

    /// Whether the other family said this already; remembers it otherwise.
    fn is_twin(&mut self, role: &str, text: &str, family: Family) -> bool {
        let mut key = role.as_bytes().to_vec();
        key.extend_from_slice(text.trim().as_bytes());
        let hash = xxh3_64(&key);
        let other = |entry: &(u64, Family)| entry.0 == hash && entry.1 != family;
        if let Some(found) = self.state.recent.iter().position(other) {
            self.state.recent.remove(found);
            return true;
        }
        if self.state.recent.len() == RECENT {
            self.state.recent.pop_front();
        }
        self.state.recent.push_back((hash, family));
        false
    }

    /// A response item, or an item of the flat generation.
    fn item(&mut self, item: Value<'_>, out: &mut Stream) -> Outcome {
        let kind = item.text("type").unwrap_or("untyped");
        self.text.clear();
        match kind {
            "message" => return self.message(item, out),
            "reasoning" => {
                self.respond(out);
                for key in ["summary", "content"] {
                    item.field(key)
                        .filter(|v| {
                            !matches!(
                                simd_json::prelude::TypedValue::value_type(v),
                                simd_json::ValueType::Null
                            )
                        })
                        .inspect(|parts| render::content(*parts, &mut self.text));
                }
                out.push(EventType::Reasoning, Draft { text: &self.text, ..Draft::default() });
            }
            "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "tool_search_call"
            | "web_search_call"
            | "image_generation_call" => {
                self.respond(out);
                self.call(kind, item, out);
            }
            "function_call_output"
            | "custom_tool_call_output"
            | "tool_search_output"
            | "local_shell_call_output" => {
                self.state.in_response = false;
                codex_output::result(item, &mut self.inner, &mut self.text, out);
            }
            _ => return self.unknown(kind, item, out),
        }
        self.state.after_prompt = false;
        Outcome::Events
    }

    fn call(&mut self, kind: &str, item: Value<'_>, out: &mut Stream) {
        let input =
            ["arguments", "input", "action", "query"].iter().find_map(|key| item.field(key));
        let mut arguments = Arguments::default();
        if let Some(input) = input {
            match crate::json::string(input) {
                // Arguments are JSON in a string; a custom tool's input is plain text.
                Some(json) if kind == "function_call" => {
                    arguments.read_json_text(json, &mut self.inner);
                }
                Some(text) => arguments.plain(text),
                None => arguments.read(input),
            }
        }
        let name = item.text("name").unwrap_or_else(|| kind.trim_end_matches("_call"));
        let full_name = item.non_empty("namespace").map(|namespace| format!("{namespace}__{name}"));
        let draft = Draft {
            tool_name: full_name.as_deref().or(Some(name)),
            tool_call_id: item.non_empty("call_id"),
            ..arguments.draft()
        };
        out.push(EventType::ToolCall, draft);
    }

    fn message(&mut self, item: Value<'_>, out: &mut Stream) -> Outcome {
        item.field("content").inspect(|content| render::content(*content, &mut self.text));
        let text = std::mem::take(&mut self.text);
        let outcome = match item.text("role") {
            Some("assistant") => self.reply(&text, Family::Item, out),
            Some("user") => match codex_output::machine_text(&text) {
                Some("user_shell_command") => self.shell_input(&text, out),
                Some(subtype) => self.notify(subtype, &text, None, out),
                None => self.prompt(&text, Family::Item, out),
            },
            role => self.notify(role.unwrap_or("message"), &text, None, out),
        };
        self.text = text;
        outcome
    }

    /// A command that the person ran: shown as typed, with what came of it.
    fn shell_input(&mut self, text: &str, out: &mut Stream) -> Outcome {
        let between = |open: &str, close: &str| {
            let (_, rest) = text.split_once(open)?;
            Some(rest.split_once(close)?.0.trim())
        };
        let Some(command) = between("<command>", "</command>") else {
            return self.notify("user_shell_command", text, None, out);
        };
        let outcome = self.prompt(&format!("!{command}"), Family::Item, out);
        match between("<result>", "</result>") {
            Some(result) => self.notify("bash_output", result, None, out),
            None => outcome,
        }
    }

    fn reply(&mut self, text: &str, family: Family, out: &mut Stream) -> Outcome {
        if self.is_twin("assistant", text, family) {
            return Outcome::Merged("twin_of_message");
        }
        self.respond(out);
        self.state.after_prompt = false;
        out.push(EventType::Message, Draft { text, ..Draft::default() });
        Outcome::Events
    }

    fn prompt(&mut self, text: &str, family: Family, out: &mut Stream) -> Outcome {
        // With images the two forms differ in wording, but stand next to each other.
        let follows = family == Family::Message && self.state.after_prompt;
        if self.is_twin("user", text, family) || follows {
            return Outcome::Merged("twin_of_prompt");
        }
        self.state.in_response = false;
        self.state.after_prompt = family == Family::Item;
        out.prompt(text);
        Outcome::Events
    }

    /// Begins a model response unless one is under way.
    fn respond(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.state.in_response, true) {
            out.begin_step();
        }
    }

    fn event(&mut self, event: Value<'_>, out: &mut Stream) -> Outcome {
        let kind = event.text("type").unwrap_or("untyped");
        let message = event.text("message").unwrap_or("");
        match kind {
            "token_count" => self.token_count(event, out),
            "user_message" => match codex_output::machine_text(message) {
                Some(_) => Outcome::Merged("twin_of_machine_text"),
                None => self.prompt(message, Family::Message, out),
            },
            "agent_message" => self.reply(message, Family::Message, out),
            "agent_reasoning" | "agent_reasoning_raw_content" | "agent_reasoning_section_break" => {
                Outcome::Merged("twin_of_reasoning")
            }
            "item_completed"
                if event
                    .object("item")
                    .is_some_and(|item| item.text("type") == Some("UserMessage")) =>
            {
                let mut text = String::new();
                event
                    .object("item")
                    .and_then(|item| item.field("content"))
                    .inspect(|content| render::content(*content, &mut text));
                self.prompt(&text, Family::Message, out)
            }
            // Their text stands in the tool's output item.
            "exec_command_end"
            | "exec_command_begin"
            | "exec_command_output_delta"
            | "patch_apply_begin"
            | "patch_apply_end"
            | "mcp_tool_call_begin"
            | "mcp_tool_call_end"
            | "web_search_begin"
            | "web_search_end"
            | "view_image_tool_call"
            | "image_generation_end" => Outcome::Merged("twin_of_tool_result"),
            _ => {
                if matches!(
                    kind,
                    "task_started" | "task_complete" | "turn_aborted" | "turn.completed"
                ) {
                    self.state.in_response = false;
                }
                if kind == "thread_name_updated" {
                    out.title(
                        TitleFrom::Agent,
                        event.text("thread_name").or_else(|| event.text("name")).unwrap_or(""),
                    );
                }
                self.unknown(kind, event, out)
            }
        }
    }

    /// A record without a rule of its own: a notification with its fields as text.
    fn unknown(&mut self, kind: &str, record: Value<'_>, out: &mut Stream) -> Outcome {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        render::fields(record, &["type", "last_agent_message"], &mut text);
        if text.is_empty() {
            text.push_str(&kind.replace('_', " "));
        }
        let is_error = matches!(kind, "error" | "stream_error").then_some(true);
        let outcome = self.notify(kind, &text, is_error, out);
        self.text = text;
        outcome
    }

    fn notify(
        &mut self,
        subtype: &str,
        text: &str,
        is_error: Option<bool>,
        out: &mut Stream,
    ) -> Outcome {
        self.state.after_prompt = false;
        out.push(
            EventType::Notification,
            Draft { subtype: Some(subtype), text, is_error, ..Draft::default() },
        );
        Outcome::Events
    }

    /// One usage per request: what the totals grew by, which includes requests that were aborted
    /// before they were recorded; `last_token_usage` at the start and where a total shrinks, which
    /// begins a new base (FORMATS.md 2.5).
    fn token_count(&mut self, event: Value<'_>, out: &mut Stream) -> Outcome {
        match codex_tokens::news(event, &mut self.state.totals) {
            Ok(usage) => {
                out.push(EventType::TokenUsage, Draft { usage, ..Draft::default() });
                Outcome::Events
            }
            Err(reason) => Outcome::Merged(reason),
        }
    }
}
