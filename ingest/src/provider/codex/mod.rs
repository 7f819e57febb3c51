//! Codex CLI: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl`, in both generations
//! (docs/formats.md#codex): flat items, and items wrapped as `{timestamp, type, payload}`.
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
mod output;
mod tokens;

use std::collections::VecDeque;
use std::path::PathBuf;

use schemas::{EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::ended::{Answered, EndedCalls};
use crate::provider::format::{Format, LineDecoder, Outcome, Places, Quirks, Reader};
use crate::provider::shared::drift;
use crate::stream::{Draft, RecordAt, Stream, micros};
use crate::text::json::{Fields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Codex,
    unique_ids: false,
    roots,
    sniff: head::sniff,
    quirks: Quirks {
        // Other agents begin a subagent's log without a copied history.
        subagents_repeat_parent: true,
        ..Quirks::NONE
    },
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, text: String::new(), inner: Parser::default() })
    }),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let codex = places.set("CODEX_HOME").unwrap_or_else(|| places.home(".codex"));
    vec![codex.join("sessions"), codex.join("archived_sessions")]
}

/// Number of texts remembered to find twins. Twins are a few records apart.
const RECENT: usize = 32;

/// Maximum number of remembered prompts that may still be taken back.
const STANDING: usize = 4096;

/// The forms in which a text may be recorded, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Family {
    /// A `response_item`.
    Item = 1,
    /// An `event_msg` of a kind of its own.
    Message = 2,
    /// An `event_msg/item_completed`.
    Completed = 4,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Hash of role and text of the last messages, with the families in which each was recorded.
    recent: VecDeque<(u64, u8)>,
    /// True while a model response is under way.
    in_response: bool,
    /// True if the last event was a prompt from a `response_item`.
    #[serde(default)]
    after_item: bool,
    /// Position of the first event of each prompt that was not taken back.
    #[serde(default)]
    standing: VecDeque<i32>,
    /// The totals in the last `token_count`.
    totals: Option<Usage>,
    /// True once the first `session_meta` was read.
    named: bool,
    #[serde(default)]
    ended: EndedCalls,
    #[serde(default)]
    answered: Answered,
    /// Time of the last record of a copied beginning whose original is not known.
    #[serde(default)]
    burst: Option<i64>,
    /// Time of the last record that was written together with the head of a fork.
    #[serde(default)]
    lead: Option<i64>,
}

struct Decoder {
    state: State,
    text: String,
    /// Parser for JSON inside strings.
    inner: Parser,
}

impl LineDecoder for Decoder {
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let time = micros(object.text("timestamp"));
        let payload = object.object("payload");
        let identity = content_identity(payload.unwrap_or(object), raw);
        self.lead(time, payload, identity, out);
        out.begin_record(at, identity, time);
        self.copied_burst(time, out);
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
                // `replacement_history` repeats messages that are already in the log.
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

/// Counts the unknown types and fields of a record. The flat generation no longer changes, so its
/// records are not checked.
fn drift(object: Value<'_>, payload: Option<Value<'_>>, out: &mut Stream) {
    let (Some(payload), Some(kind)) = (payload, object.text("type")) else { return };
    match payload.text("type").filter(|_| matches!(kind, "response_item" | "event_msg")) {
        Some(inner) => {
            let kind = format!("{kind}/{inner}");
            drift::record(&kind, known::RECORDS, out);
        }
        None => drift::record(kind, known::RECORDS, out),
    }
    drift::fields(object, known::FIELDS, out);
    drift::fields(payload, known::FIELDS, out);
}

/// Minimum length in bytes from which a record gets an identity. Shorter ones, such as reasoning
/// without its text, are not distinctive enough. Messages get an identity at any length.
const LEAST_IDENTITY: usize = 160;

/// Returns the identity of a record, computed from its content. Copies in a fork have new
/// timestamps, so the timestamp is left out.
fn content_identity(payload: Value<'_>, raw: &[u8]) -> Option<u64> {
    let is_said =
        matches!(payload.text("type"), Some("message" | "user_message" | "agent_message"));
    // The end of a call is mostly a twin without an event, so the order of the original does not
    // include it. A fork may keep the end and drop the call.
    let is_end = || payload.text("type").is_some_and(|kind| kind.ends_with("_end"));
    if raw.len() < LEAST_IDENTITY && !is_said || is_end() {
        return None;
    }
    let stamped = raw.strip_prefix(br#"{"timestamp":"#).and_then(|rest| {
        let rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', rest)?;
        rest.get(end + 1..)
    });
    Some(xxh3_64(stamped.unwrap_or(raw)) | 1)
}

impl Decoder {
    fn session_meta(&mut self, meta: Value<'_>, time: Option<i64>, out: &mut Stream) -> Outcome {
        // Copied history includes the parent's own header.
        let first = !std::mem::replace(&mut self.state.named, true);
        let other = meta.text("id") != out.session.native_id.as_deref();
        if !first && other && !out.has_history() && out.session.relation.is_some() {
            self.state.burst = time;
            self.copied_burst(time, out);
        }
        if first {
            self.state.lead = time.filter(|_| out.session.relation.is_some());
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

    /// Returns whether a text was already recorded in another family. Remembers the text otherwise.
    fn is_twin(&mut self, role: &str, text: &str, family: Family) -> bool {
        let mut key = role.as_bytes().to_vec();
        // Only items name the images.
        let lines = text.trim().lines().filter(|line| !line.starts_with("[image"));
        lines.for_each(|line| key.extend_from_slice(line.trim().as_bytes()));
        let hash = xxh3_64(&key);
        let family = family as u8;
        let twin = |entry: &&mut (u64, u8)| entry.0 == hash && entry.1 & family == 0;
        if let Some((_, families)) = self.state.recent.iter_mut().find(twin) {
            *families |= family;
            return true;
        }
        if self.state.recent.len() == RECENT {
            self.state.recent.pop_front();
        }
        self.state.recent.push_back((hash, family));
        false
    }

    fn reply(&mut self, text: &str, family: Family, out: &mut Stream) -> Outcome {
        if self.is_twin("assistant", text, family) {
            return Outcome::Merged("twin_of_message");
        }
        self.respond(out);
        self.state.after_item = false;
        out.push(EventType::Message, Draft { text, ..Draft::default() });
        Outcome::Events
    }

    fn prompt(&mut self, text: &str, family: Family, out: &mut Stream) -> Outcome {
        // With images, the two forms differ in wording but are next to each other.
        let follows = std::mem::take(&mut self.state.after_item) && family != Family::Item;
        if self.is_twin("user", text, family) || follows {
            return Outcome::Merged("twin_of_prompt");
        }
        self.state.in_response = false;
        self.state.after_item = family == Family::Item;
        if self.state.standing.len() == STANDING {
            self.state.standing.pop_front();
        }
        self.state.standing.push_back(out.position());
        let (context, typed) = output::request(text);
        if let Some(text) = context {
            let subtype = Some("ide_context");
            out.push(EventType::Notification, Draft { subtype, text, ..Draft::default() });
        }
        out.prompt(typed);
        Outcome::Events
    }

    /// Abandons the last `prompts` prompts, which were taken back, and all events after them.
    fn roll_back(&mut self, prompts: usize, out: &mut Stream) {
        let standing = &mut self.state.standing;
        let undone = standing.split_off(standing.len().saturating_sub(prompts));
        if let Some(first) = undone.front() {
            out.abandon(*first);
        }
    }

    /// Begins a model response unless one is under way.
    fn respond(&mut self, out: &mut Stream) {
        if !std::mem::replace(&mut self.state.in_response, true) {
            out.begin_step();
        }
    }

    /// Decodes a record without a rule of its own: a notification with its fields as text.
    fn unknown(&mut self, kind: &str, record: Value<'_>, out: &mut Stream) -> Outcome {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        render::fields(record, &["type", "last_agent_message"], &mut text);
        if text.is_empty() {
            text.push_str(&out.words_of_name(kind));
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
        self.state.after_item = false;
        out.push(
            EventType::Notification,
            Draft { subtype: Some(subtype), text, is_error, ..Draft::default() },
        );
        Outcome::Events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_known_by_all_but_its_time() {
        let said = "x".repeat(LEAST_IDENTITY);
        let identity = |line: &str| {
            let mut identity = None;
            Parser::default().each(line.as_bytes(), &mut |found| {
                let crate::text::json::Found::Object(object, _) = found else {
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
