//! Reads the session logs of Grok's agent from `~/.grok/sessions/<cwd, percent-encoded>/<id>/`
//! (docs/formats.md#grok).
//!
//! ```text
//! chat_history.jsonl  the log: {"type":"user","content":"...","prompt_index":0}
//! summary.json        describes the session: {"info":{"id":"...","cwd":"..."},"created_at":"..."}
//! updates.jsonl       the same conversation, a thousand times as long; only token counts are read
//! ```
//!
//! The records have neither times nor tokens. The summary has the times at which the session began
//! and ended. Without a summary, the time of the beginning is in the session's id, which is a uuid
//! of version 7.

mod usage;

use std::path::{Path, PathBuf};

use schemas::event::Relation;
use schemas::{EventType, Provider};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::usage::TurnCounts;
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
    state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::user_query::UserText;
use crate::provider::shared::{chat, drift, sidecar, user_query};
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::names::is_uuid;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Grok,
    has_unique_ids: false,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| vec![summary_path(log), usage::updates_path(log)]),
        is_sidecar: Some(|name, has| {
            matches!(name, "updates.jsonl" | "events.jsonl") && has("chat_history.jsonl")
        }),
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|claim, state| {
        Box::new(GrokDecoder {
            state: state.and_then(|state| GrokState::deserialize(state).ok()).unwrap_or_default(),
            start: uuid_time(&claim.native_id),
            summary: Json::Null,
            turns: Vec::new(),
            text: String::new(),
            inner: Parser::default(),
        })
    }),
};

/// Maximum size in bytes of a summary, which has a few lines. Larger files are not summaries.
const MAX_SUMMARY_BYTES: u64 = 1 << 20;

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let home = places.env_path("GROK_HOME").unwrap_or_else(|| places.home_path(".grok"));
    vec![home.join("sessions")]
}

/// Claims a log by its records. The id of the session is in the name of its folder or in its
/// summary.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    if !head.objects.iter().any(|object| is_grok_record(object, head.file_stem())) {
        return None;
    }

    let folder = head.path.parent().and_then(|dir| dir.file_name()).and_then(|name| name.to_str());
    let summary = read_summary(head.path).unwrap_or_default();
    let id = summary["info"]["id"].as_str().filter(|id| !id.is_empty());
    let native_id =
        folder.filter(|name| is_uuid(name)).or(id).or(folder).unwrap_or(head.file_stem());

    let is_subagent = summary["session_kind"] == "subagent";
    let parent = summary["parent_session_id"].as_str().filter(|id| *id != native_id);
    let relation =
        if is_subagent { Some(Relation::SubagentOf) } else { parent.map(|_| Relation::ForkedFrom) };
    Some(SessionClaim {
        agent_id: is_subagent.then(|| native_id.to_owned()),
        parent: parent.map(str::to_owned),
        relation,
        ..SessionClaim::new(Provider::Grok, native_id)
    })
}

/// Returns whether a record has fields that only Grok writes, or begins a file with Grok's name.
fn is_grok_record(object: &Json, stem: &str) -> bool {
    match object["type"].as_str() {
        Some("system") => {
            stem == "chat_history" && object["content"].is_string() && object.get("uuid").is_none()
        }
        Some("user") => {
            object.get("content").is_some()
                && has_any_field(object, &["prompt_index", "synthetic_reason"])
        }
        Some("assistant") => {
            object["content"].is_string()
                && has_any_field(object, &["model_id", "model_fingerprint"])
        }
        _ => false,
    }
}

fn has_any_field(object: &Json, keys: &[&str]) -> bool {
    keys.iter().any(|key| object.get(key).is_some())
}

/// Returns the path of the session's summary.
fn summary_path(log: &Path) -> PathBuf {
    log.with_file_name("summary.json")
}

/// Reads the summary next to the log.
fn read_summary(log: &Path) -> Option<Json> {
    sidecar::read_json(&summary_path(log), MAX_SUMMARY_BYTES)
}

/// Passes the facts about the session in the summary to the stream.
fn apply_summary(summary: &Json, out: &mut Stream) {
    out.set_repository(summary["git_remotes"][0].as_str());
    out.set_cwd(summary["info"]["cwd"].as_str());
    out.set_branch(summary["head_branch"].as_str());
    out.set_model(summary["current_model_id"].as_str());
    let root = summary["git_root_dir"].as_str();
    out.set_repository(root.map(|root| root.trim_end_matches('/')));
    out.offer_title(TitleFrom::Agent, summary_title(summary).unwrap_or(""));
}

fn summary_title(summary: &Json) -> Option<&str> {
    ["generated_title", "session_summary"].iter().find_map(|key| summary[*key].as_str())
}

/// Extends the session's time range by the times in the summary.
fn apply_summary_times(summary: &Json, out: &mut Stream) {
    for key in ["created_at", "last_active_at", "updated_at"] {
        out.extend_time_range(parse_micros(summary[key].as_str()));
    }
}

/// Returns a hash of the facts in a summary that the rows of earlier records depend on, to find out
/// later whether they changed.
fn fingerprint(summary: &Json) -> u64 {
    let facts = [
        summary["git_remotes"][0].as_str(),
        summary["info"]["cwd"].as_str(),
        summary["head_branch"].as_str(),
        summary["current_model_id"].as_str(),
        summary["git_root_dir"].as_str(),
        summary["created_at"].as_str(),
        summary_title(summary),
    ];
    xxh3_64(format!("{facts:?}").as_bytes())
}

/// Returns the time in a uuid of version 7 in microseconds. The first 48 bits of the uuid are
/// milliseconds.
fn uuid_time(id: &str) -> Option<i64> {
    let is_version_7 = is_uuid(id) && id.as_bytes().get(14) == Some(&b'7');
    if !is_version_7 {
        return None;
    }
    let digits = format!("{}{}", id.get(..8)?, id.get(9..13)?);
    let milliseconds = i64::from_str_radix(&digits, 16).ok()?;
    milliseconds.checked_mul(1000)
}

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct GrokState {
    /// True once the first record was read.
    begun: bool,
    /// True while a model response is under way. Its reasoning is in records before the answer.
    in_response: bool,
    /// Fingerprint of the summary when the first record was read.
    #[serde(default)]
    summary: u64,
    /// Number of turns that have begun.
    #[serde(default)]
    begun_turns: usize,
    /// Number of turns whose token counts were pushed.
    #[serde(default)]
    counted_turns: usize,
    /// Size of the log in bytes when it was read to its end.
    #[serde(default)]
    log_bytes: u64,
}

/// Decoder of one log.
struct GrokDecoder {
    state: GrokState,
    /// Time in microseconds at which the session began.
    start: Option<i64>,
    /// The content of the summary; null if there is none.
    summary: Json,
    /// The token counts of all turns that ended.
    turns: Vec<TurnCounts>,
    /// Text of the current record.
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for GrokDecoder {
    /// Reads the summary and the counts of the turns. The counts of a turn come before the next
    /// prompt, so counts or records that are new since the end of the log was read may belong before
    /// that end.
    fn prepare(&mut self, log: &Path) -> bool {
        self.summary = read_summary(log).unwrap_or_default();
        self.turns = usage::read_turns(log, &mut self.inner);
        self.start = parse_micros(self.summary["created_at"].as_str()).or(self.start);
        if !self.state.begun {
            return true;
        }

        // Without a summary or updates, as after a move of the log, nothing new is known.
        let has_changed =
            !self.summary.is_null() && fingerprint(&self.summary) != self.state.summary;
        let log_bytes = std::fs::metadata(log).map_or(0, |metadata| metadata.len());
        let has_all_counts = self.turns.is_empty()
            || self.turns.len() == self.state.counted_turns && log_bytes == self.state.log_bytes;
        !has_changed && has_all_counts
    }

    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let is_first = !std::mem::replace(&mut self.state.begun, true);
        if is_first {
            self.state.summary = fingerprint(&self.summary);
            apply_summary(&self.summary, out);
            apply_summary_times(&self.summary, out);
        }

        self.text.clear();
        let kind = object.text("type").unwrap_or("untyped");
        let mut words = UserText::default();
        if kind == "user" {
            chat::append_field(object, "content", &mut self.text);
            words = user_query::split_user_text(&self.text);
            if object.non_empty("synthetic_reason").is_none() && !words.prompt.is_empty() {
                self.push_turn_counts(self.state.begun_turns, at, out);
                self.state.begun_turns += 1;
            }
        }

        let time = if is_first { self.start } else { None };
        out.begin_record_by_content(at, raw, time);
        match kind {
            "user" => self.decode_user_message(object, &words, out),
            "assistant" => self.decode_response(object, out),
            "reasoning" => self.decode_reasoning(object, out),
            "backend_tool_call" => self.decode_backend_call(object, out),
            "tool_result" => self.decode_tool_result(object, out),
            "system" => {
                chat::append_field(object, "content", &mut self.text);
                out.push_shortened("system_prompt", &self.text);
            }
            _ => drift::push_unknown_record(Some(kind), object, &["type"], out),
        }
        if matches!(kind, "user" | "assistant" | "tool_result") {
            self.state.in_response = false;
        }
        RecordOutcome::Events
    }

    fn finish_reading(&mut self, at: RecordAt, out: &mut Stream) {
        if self.state.begun {
            apply_summary_times(&self.summary, out);
            self.push_turn_counts(self.turns.len(), at, out);
            self.state.log_bytes = at.offset;
        }
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl GrokDecoder {
    /// Pushes the token counts of turns that were not pushed yet, up to turn number `end`.
    fn push_turn_counts(&mut self, end: usize, at: RecordAt, out: &mut Stream) {
        for turn in self.turns.iter().take(end).skip(self.state.counted_turns) {
            usage::push_turn(turn, at, out);
            self.state.counted_turns += 1;
        }
    }

    /// Decodes a prompt, which may also be typed while the agent works. All other text from the
    /// client has a `synthetic_reason`.
    /// The text of the decoder is that of the record, and `words` are its parts.
    fn decode_user_message(&mut self, object: Value<'_>, words: &UserText, out: &mut Stream) {
        out.set_cwd(words.workspace.as_deref());
        let reason = object.non_empty("synthetic_reason");
        if let Some(reason) = reason.filter(|reason| *reason != "interjection") {
            return out.push_notification(reason, &self.text);
        }

        if let Some(interrupt) = object.non_empty("prior_turn_interrupt") {
            out.push_notification("interrupted", &out.words_of_name(interrupt));
        }
        words.push_context(out);
        if !words.prompt.is_empty() {
            out.push_prompt(&words.prompt);
        }
    }

    /// Decodes an answer and its calls. Older versions keep the reasoning in the same record.
    fn decode_response(&mut self, object: Value<'_>, out: &mut Stream) {
        out.set_model(object.text("model_id"));
        let reasoning = object.object("reasoning");
        if let Some(text) = reasoning.and_then(|reasoning| reasoning.non_empty("text")) {
            out.begin_response(&mut self.state.in_response);
            out.push_text(EventType::Reasoning, text);
        }

        chat::append_field(object, "content", &mut self.text);
        if !self.text.is_empty() {
            out.begin_response(&mut self.state.in_response);
            out.push_text(EventType::Message, &self.text);
        }

        for call in object.items("tool_calls") {
            out.begin_response(&mut self.state.in_response);
            self.push_tool_call(
                call.text("name"),
                call.non_empty("id"),
                call.field("arguments"),
                out,
            );
        }
    }

    /// Decodes the reasoning that precedes an answer or a call.
    fn decode_reasoning(&mut self, object: Value<'_>, out: &mut Stream) {
        out.begin_response(&mut self.state.in_response);
        for key in ["summary", "content"] {
            chat::append_field(object, key, &mut self.text);
        }
        out.push_text(EventType::Reasoning, &self.text);
    }

    /// Decodes a tool that ran on the server. Its answer is not recorded.
    fn decode_backend_call(&mut self, object: Value<'_>, out: &mut Stream) {
        out.begin_response(&mut self.state.in_response);
        let kind = object.object("kind").unwrap_or(object);
        let input = ["action", "input", "code"].iter().find_map(|key| kind.field(key));
        self.push_tool_call(kind.text("tool_type"), kind.non_empty("id"), input, out);
    }

    /// Pushes a call. `input` is an object, or a string with JSON or other text.
    fn push_tool_call(
        &mut self,
        tool_name: Option<&str>,
        tool_call_id: Option<&str>,
        input: Option<Value<'_>>,
        out: &mut Stream,
    ) {
        let arguments = Arguments::of_input(input, &mut self.inner);
        arguments.push_call(tool_name, tool_call_id, out);
    }

    /// Decodes the result of a tool.
    fn decode_tool_result(&mut self, object: Value<'_>, out: &mut Stream) {
        for key in ["content", "images"] {
            chat::append_field(object, key, &mut self.text);
        }
        let tool_call_id = object.non_empty("tool_call_id");
        let decoded = DecodedEvent { text: &self.text, tool_call_id, ..DecodedEvent::default() };
        out.push(EventType::ToolResult, decoded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_tell_when_the_session_began() {
        let time = uuid_time("01a13941-6cb9-7f1e-a741-65890d73c8a5");
        assert_eq!(time, Some(0x01a1_3941_6cb9 * 1000));
        assert_eq!(uuid_time("9ae82b3a-fd82-48da-afd8-479f58648cbe"), None);
        assert_eq!(uuid_time("session"), None);
    }
}
