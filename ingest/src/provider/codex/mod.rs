//! Reads the logs of Codex CLI from `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl`
//! (docs/formats.md#codex). There are two generations: flat items, and items that a record wraps:
//!
//! ```text
//! {"timestamp":"...","type":"session_meta","payload":{"id":"...","cwd":"...","git":{...}}}
//! {"timestamp":"...","type":"response_item","payload":{"type":"message","role":"user",...}}
//! {"timestamp":"...","type":"event_msg","payload":{"type":"user_message","message":"..."}}
//! ```
//!
//! By design, the same text is in a `response_item` and an `event_msg`. Whichever comes first
//! becomes the event, and its twin is merged.

mod completed;
mod copied;
mod ended;
mod event;
mod head;
mod item;
mod known;
mod machine;
mod output;
mod review;
mod tokens;
mod user_text;

use std::collections::VecDeque;
use std::path::PathBuf;

use schemas::{EventType, Provider};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use self::ended::{AnsweredCalls, EndedCalls};
use self::review::{Review, ReviewPrompt};
use self::tokens::CodexCounts;
use self::user_text::UserInput;
use crate::provider::copied::{copied_identity, is_head_of_copy};
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogReader, Quirks, RecordOutcome, state_json,
};
use crate::provider::shared::drift;
use crate::stream::{RecordAt, Stream, parse_micros, push_bounded};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Codex,
    has_unique_ids: false,
    decoder_version: 3,
    roots: log_roots,
    sniff: head::claim_log,
    quirks: Quirks {
        // Other agents begin a subagent's log without a copied history.
        subagents_repeat_parent: true,
        finds_copies_without_original: true,
        is_claim_complete: Some(head::is_claim_complete),
        machine_texts: machine::TEXTS,
        find_response: Some(tokens::find_response),
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| CodexState::deserialize(state).ok()).unwrap_or_default();
        Box::new(CodexDecoder { state, text: String::new(), inner: Parser::default() })
    }),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let codex = places.env_path("CODEX_HOME").unwrap_or_else(|| places.home_path(".codex"));
    vec![codex.join("sessions"), codex.join("archived_sessions")]
}

/// Maximum number of texts remembered to find twins. Twins are a few records apart.
const MAX_RECENT_TEXTS: usize = 32;

/// Maximum number of remembered prompts that may still be taken back.
const MAX_STANDING_PROMPTS: usize = 4096;

/// The forms in which a text may be recorded, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum RecordedForm {
    /// A `response_item`.
    Item = 1,
    /// An `event_msg` of a kind of its own.
    Message = 2,
    /// An `event_msg/item_completed`.
    Completed = 4,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct CodexState {
    /// Hash of role and text of the last messages, with the forms in which each was recorded.
    recent: VecDeque<(u64, u8)>,
    /// True while a model response is under way.
    in_response: bool,
    /// True if the last event was a prompt from a `response_item`.
    #[serde(default)]
    after_item: bool,
    /// Position of the first event of each prompt that was not taken back.
    #[serde(default)]
    standing: VecDeque<i32>,
    /// The tokens counted so far.
    counts: CodexCounts,
    /// True once an event repeated a prompt: the log has the prompts of the user twice.
    #[serde(default)]
    repeats_prompts: bool,
    /// The service tier of the requests that follow. `None` if the log gives none.
    #[serde(default)]
    service_tier: Option<String>,
    /// True once the first `session_meta` was read.
    named: bool,
    #[serde(default)]
    ended: EndedCalls,
    #[serde(default)]
    answered: AnsweredCalls,
    /// Calls of tools of the client that no item recorded.
    #[serde(default)]
    dynamic: AnsweredCalls,
    /// The review that is under way.
    #[serde(default)]
    review: Option<Review>,
    /// Time of the last record of a copied beginning whose original is not known.
    #[serde(default)]
    burst: Option<i64>,
    /// Time of the last record that was written together with the head of a fork.
    #[serde(default)]
    lead: Option<i64>,
}

struct CodexDecoder {
    state: CodexState,
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for CodexDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = parse_micros(object.text("timestamp"));
        let payload = object.object("payload");
        let identity = content_identity(payload.unwrap_or(object), raw);
        match copied_identity(payload.and_then(|payload| payload.text("id"))) {
            Some(original) => out.begin_copied_record(at, original, time),
            None if payload.is_some_and(is_head_of_copy) => {
                out.begin_copied_record(at, identity.unwrap_or(0), time);
            }
            None => {
                self.examine_lead_record(time, payload, identity, out);
                out.begin_record(at, identity, time);
                self.mark_copied_burst(time, out);
            }
        }
        count_drift(object, payload, out);

        match (object.text("type"), payload) {
            (Some("session_meta"), Some(meta)) => self.decode_session_meta(meta, time, out),
            (Some("turn_context"), Some(context)) => {
                out.set_cwd(context.text("cwd"));
                out.set_model(context.text("model"));
                self.apply_service_tier(context);
                RecordOutcome::Merged("turn_context")
            }
            (Some("response_item"), Some(item)) => self.decode_item(item, out),
            (Some("event_msg"), Some(event)) => self.decode_event(event, out),
            (Some("compacted"), Some(compacted)) => {
                // `replacement_history` repeats messages that are already in the log.
                let text = compacted.non_empty("message").unwrap_or("Context compacted");
                let outcome = self.push_notification("compacted", text, None, out);
                if let Some(record) = compacted.object("latest_token_usage_record") {
                    self.push_response_usage(record, out);
                }
                outcome
            }
            (Some("token_usage_record"), Some(record)) if record.object("usage").is_some() => {
                self.push_response_usage(record, out)
            }
            (Some(kind), Some(payload)) => self.push_unknown_record(kind, payload, out),
            (None, _) if object.text("record_type") == Some("state") => {
                RecordOutcome::Merged("state_marker")
            }
            (None, _) if object.non_empty("id").is_some() && !self.state.named => {
                self.decode_session_meta(object, time, out)
            }
            _ => self.decode_item(object, out),
        }
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

/// Counts the unknown types and fields of a record. The flat generation no longer changes, so its
/// records are not checked.
fn count_drift(object: Value<'_>, payload: Option<Value<'_>>, out: &mut Stream) {
    let Some(payload) = payload else { return };
    let Some(kind) = object.text("type") else { return };
    if matches!(kind, "response_item" | "event_msg")
        && let Some(inner) = payload.text("type")
    {
        drift::count_unknown_type(&format!("{kind}/{inner}"), known::RECORDS, out);
    } else {
        drift::count_unknown_type(kind, known::RECORDS, out);
    }
    drift::count_unknown_fields(object, known::FIELDS, out);
    drift::count_unknown_fields(payload, known::FIELDS, out);
}

/// Returns a hash of the role and the text of a message, by which its forms are recognized.
fn text_hash(role: &str, text: &str) -> u64 {
    let mut key = role.as_bytes().to_vec();
    for line in text.trim().lines() {
        // Only items name the images.
        if !line.starts_with("[image") {
            key.extend_from_slice(line.trim().as_bytes());
        }
    }
    xxh3_64(&key)
}

/// Minimum length in bytes from which a record gets an identity. Shorter ones, such as reasoning
/// without its text, are not distinctive enough. Messages get an identity at any length.
const MIN_IDENTITY_BYTES: usize = 160;

/// Returns the identity of a record, computed from its content. Copies in a fork have new
/// timestamps, so the timestamp is left out.
fn content_identity(payload: Value<'_>, raw: &[u8]) -> Option<u64> {
    let kind = payload.text("type").unwrap_or("");
    let is_message = matches!(kind, "message" | "user_message" | "agent_message");
    if raw.len() < MIN_IDENTITY_BYTES && !is_message {
        return None;
    }
    // The end of a call is mostly a twin without an event, so the order of the original does not
    // include it. A fork may keep the end and drop the call.
    if kind.ends_with("_end") {
        return None;
    }
    Some(xxh3_64(after_timestamp(raw).unwrap_or(raw)) | 1)
}

/// Returns the bytes of a record after its timestamp, if it begins with one.
fn after_timestamp(raw: &[u8]) -> Option<&[u8]> {
    let rest = raw.strip_prefix(br#"{"timestamp":"#)?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', rest)?;
    rest.get(end + 1..)
}

impl CodexDecoder {
    /// Decodes the header of the session, of a resumption, or of a copied history.
    fn decode_session_meta(
        &mut self,
        meta: Value<'_>,
        time: Option<i64>,
        out: &mut Stream,
    ) -> RecordOutcome {
        // Copied history includes the parent's own header.
        let is_first = !std::mem::replace(&mut self.state.named, true);
        let is_own = meta.text("id") == out.session.native_id.as_deref();
        let has_parent = out.session.relation.is_some();
        if !is_first && !is_own && !out.has_history() && has_parent {
            self.state.burst = time;
            self.mark_copied_burst(time, out);
        }
        if is_first {
            self.state.lead = if has_parent { time } else { None };
            out.set_version(meta.text("cli_version"));
        }
        if is_first || is_own {
            out.set_cwd(meta.text("cwd"));
            let git = meta.object("git");
            out.set_branch(git.and_then(|git| git.text("branch")));
            out.set_repository(git.and_then(|git| git.text("repository_url")));
        }

        self.text.clear();
        let skip = ["instructions", "base_instructions", "dynamic_tools", "type"];
        render::append_notification(meta, &skip, &mut self.text);
        out.push_notification("session_meta", &self.text);
        RecordOutcome::Events
    }

    /// Returns whether a text was already recorded in another form. Remembers the text otherwise.
    fn is_twin(&mut self, role: &str, text: &str, form: RecordedForm) -> bool {
        let hash = text_hash(role, text);
        let form_bit = form as u8;
        for (recent_hash, forms) in &mut self.state.recent {
            if *recent_hash == hash && *forms & form_bit == 0 {
                *forms |= form_bit;
                return true;
            }
        }
        push_bounded(&mut self.state.recent, MAX_RECENT_TEXTS, (hash, form_bit));
        false
    }

    /// Returns whether Codex itself wrote the text of an item: a warning that no event has. In a
    /// log that repeats prompts, an event follows a prompt that the user typed.
    fn is_warning(&self, text: &str) -> bool {
        let hash = text_hash("user", text);
        self.state.repeats_prompts
            && text.starts_with(machine::WARNING_START)
            && self.state.recent.iter().all(|(recent, _)| *recent != hash)
    }

    /// Pushes text of the model, unless it was already recorded in another form (a twin).
    fn push_reply(&mut self, text: &str, form: RecordedForm, out: &mut Stream) -> RecordOutcome {
        if self.is_twin("assistant", text, form) {
            return RecordOutcome::Merged("twin_of_message");
        }
        out.begin_response(&mut self.state.in_response);
        self.state.after_item = false;
        out.push_text(EventType::Message, text);
        RecordOutcome::Events
    }

    /// Decodes a message in the user's role from an event. Machine text in it is also in an item.
    fn decode_typed(
        &mut self,
        input: &UserInput,
        form: RecordedForm,
        out: &mut Stream,
    ) -> RecordOutcome {
        self.state.repeats_prompts = true;
        if input.is_machine_only() {
            return RecordOutcome::Merged("twin_of_machine_text");
        }
        self.push_prompt(&input.typed, form, out)
    }

    /// Pushes a prompt and the context that an editor added to it, unless the prompt was already
    /// recorded in another form (a twin).
    fn push_prompt(&mut self, text: &str, form: RecordedForm, out: &mut Stream) -> RecordOutcome {
        // With images, the two forms differ in wording but are next to each other.
        let follows_item = std::mem::take(&mut self.state.after_item) && form != RecordedForm::Item;
        if self.is_twin("user", text, form) || follows_item {
            return RecordOutcome::Merged("twin_of_prompt");
        }
        let command = match self.state.review.as_mut().and_then(|review| review.find_prompt(text)) {
            Some(ReviewPrompt::First(command)) => Some(command),
            Some(ReviewPrompt::Again) => return RecordOutcome::Merged("twin_of_prompt"),
            None => None,
        };

        self.state.in_response = false;
        self.state.after_item = form == RecordedForm::Item;
        push_bounded(&mut self.state.standing, MAX_STANDING_PROMPTS, out.position());

        let (context, typed) = user_text::split_request(text);
        if let Some(text) = context {
            out.push_notification("ide_context", text);
        }
        match command {
            Some(command) => {
                out.push_prompt(&command);
                self.push_notification("review_prompt", text, None, out);
            }
            None => out.push_prompt(typed),
        }
        RecordOutcome::Events
    }

    /// Abandons the last `prompts` prompts, which were taken back, and all events after them.
    fn roll_back(&mut self, prompts: usize, out: &mut Stream) {
        let standing = &mut self.state.standing;
        let undone = standing.split_off(standing.len().saturating_sub(prompts));
        if let Some(first) = undone.front() {
            out.abandon_from(*first);
        }
    }

    /// Decodes a record without a rule of its own into a notification with its fields as text.
    fn push_unknown_record(
        &mut self,
        kind: &str,
        record: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        render::append_notification(record, &["type", "last_agent_message"], &mut text);
        if text.is_empty() {
            text.push_str(&out.words_of_name(kind));
        }
        let is_error = matches!(kind, "error" | "stream_error").then_some(true);
        let outcome = self.push_notification(kind, &text, is_error, out);
        self.text = text;
        outcome
    }

    fn push_notification(
        &mut self,
        subtype: &str,
        text: &str,
        is_error: Option<bool>,
        out: &mut Stream,
    ) -> RecordOutcome {
        self.state.after_item = false;
        out.push_notice(subtype, text, is_error);
        RecordOutcome::Events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_known_by_all_but_its_time() {
        let said = "x".repeat(MIN_IDENTITY_BYTES);
        let identity = |line: &str| {
            let mut identity = None;
            Parser::default().for_each_item(line.as_bytes(), &mut |found| {
                let crate::text::json::LineItem::Object(object, _) = found else {
                    panic!("an object")
                };
                identity = content_identity(object, line.as_bytes());
            });
            identity
        };
        for space in ["", " "] {
            let line = |time: &str, said: &str| {
                format!(r#"{{"timestamp":{space}"{time}",{space}"text":{space}"{said}"}}"#)
            };
            let first = identity(&line("2026-10-01T10:00:00Z", &said));
            assert!(first.is_some());
            assert_eq!(identity(&line("2026-10-02T11:00:00Z", &said)), first);
            assert_ne!(identity(&line("2026-10-01T10:00:00Z", &(said.clone() + "y"))), first);
            assert_eq!(identity(&line("2026-10-01T10:00:00Z", "ok")), None);
        }
    }
}
