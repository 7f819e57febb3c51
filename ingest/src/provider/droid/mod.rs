//! Reads the logs of Factory Droid from `~/.factory/sessions/<cwd>/<uuid>.jsonl`, with a
//! `<uuid>.settings.json` next to each (docs/formats.md#droid), and the output of
//! `droid exec --output-format stream-json` (`stream.rs`). This is version 2 of the format, as of
//! CLI 0.18x to 0.22x: `session_start`, `message` with Anthropic's blocks, and records of the
//! session's state.

mod message;
pub(super) mod settings;
mod stream;

use std::path::{Path, PathBuf};

use schemas::event::Relation;
use schemas::session::ESTIMATED_SHARE;
use schemas::{Confidence, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::settings::DroidSettings;
use self::stream::StreamRun;
use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
    state_json,
};
use crate::provider::shared::identity::{begin_uuid_record, uuid_identity};
use crate::provider::shared::shares::{TokenShares, weigh_records};
use crate::stream::{RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Droid,
    has_unique_ids: true,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { companions: Some(|log| vec![settings::settings_path(log)]), ..Quirks::NONE },
    reader: LogReader::Lines(|_, state| {
        let state = state.and_then(|state| DroidState::deserialize(state).ok()).unwrap_or_default();
        Box::new(DroidDecoder {
            state,
            settings: DroidSettings::default(),
            shares: None,
            text: String::new(),
        })
    }),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    vec![places.home_path(".factory/sessions")]
}

/// Fields of a `session_start` that only Droid writes there.
const START_FIELDS: &[&str] = &["cwd", "title", "sessionTitle", "owner"];

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let Some(start) = head.objects.iter().find(|object| is_start(object)) else {
        return stream::find_session_id(&head.objects)
            .map(|id| SessionClaim::new(Provider::Droid, id));
    };
    let caller = text_field(start, "callingSessionId");
    let origin = text_field(start, "parent");
    let parents = [(Relation::SubagentOf, caller), (Relation::ForkedFrom, origin)];
    let first_record = head
        .objects
        .iter()
        .filter(|object| object["type"] == "message")
        .find_map(|message| uuid_identity(message["id"].as_str()));
    let native_id = text_field(start, "id").unwrap_or_else(|| head.file_stem());
    let claim = SessionClaim::new(Provider::Droid, native_id).with_parent(&parents);
    Some(SessionClaim { first_record, ..claim })
}

/// Returns whether an object is a `session_start` of Droid.
fn is_start(object: &Json) -> bool {
    object["type"] == "session_start"
        && object["id"].is_string()
        && START_FIELDS.iter().any(|key| object[*key].is_string())
}

/// Returns a text field. `None` if it is missing, empty or not a text.
fn text_field<'a>(object: &'a Json, key: &str) -> Option<&'a str> {
    object[key].as_str().filter(|text| !text.is_empty())
}

/// Returns the weight of a record in the totals of its session: its length in bytes, if it is a
/// response of the model.
fn response_weight(record: Value<'_>, raw: &[u8]) -> u64 {
    let message =
        if record.text("type") == Some("message") { record.object("message") } else { None };
    match message {
        Some(message) if message::is_response(message, message::visibility(message, record)) => {
            raw.len() as u64
        }
        Some(_) | None => 0,
    }
}

/// Returns the time of a record in microseconds. It is recorded as text or in milliseconds.
fn record_time(record: Value<'_>) -> Option<i64> {
    let time = parse_micros(record.text("timestamp"));
    time.or_else(|| Some(record.int("timestamp")?.saturating_mul(1000)))
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct DroidState {
    /// Fingerprint of the settings at the first response of the model. `None` before it.
    #[serde(default)]
    settings: Option<u64>,
    /// The run that a stream records.
    #[serde(default)]
    run: StreamRun,
}

struct DroidDecoder {
    state: DroidState,
    settings: DroidSettings,
    /// The totals in the settings. `None` if there are none, or if the log is continued.
    shares: Option<TokenShares>,
    text: String,
}

impl LineDecoder for DroidDecoder {
    /// Reads the settings. Their counts are totals, which may be ahead of the log or behind it, and
    /// every new response changes the shares of all others.
    fn prepare(&mut self, log: &Path) -> bool {
        // Without settings, as after a move of the log, nothing new is known.
        let Some(settings) = DroidSettings::read_for_log(log) else { return true };
        self.settings = settings;
        if let Some(before) = self.state.settings {
            return !self.settings.has_counts() && before == self.settings.fingerprint();
        }
        if self.settings.has_counts() {
            let weight = weigh_records(log, response_weight);
            self.shares = weight.ok().map(|weight| TokenShares::new(self.settings.usage, weight));
        }
        true
    }

    fn decode_record(
        &mut self,
        record: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let kind = record.text("type").unwrap_or("untyped");
        let message = if kind == "message" { record.object("message") } else { None };
        let has_id = message.is_some() || kind == "session_start";
        let is_event = stream::is_event(kind, record);
        if is_event {
            // Events of a stream share the id of their message.
            out.begin_record_by_content(at, raw, record_time(record));
        } else {
            let id = if has_id { record.text("id") } else { None };
            begin_uuid_record(id, raw, at, record_time(record), out);
        }

        self.text.clear();
        if let Some(message) = message {
            let visibility = message::visibility(message, record);
            // A notice may have the same parent as the next message. This does not make a branch.
            if let Some(parent) = record.non_empty("parentId")
                && visibility != Some("user_only")
            {
                out.link_to_parent(xxh3_64(parent.as_bytes()));
            }
            let is_response = message::is_response(message, visibility);
            if is_response && self.state.settings.is_none() {
                self.state.settings = Some(self.settings.fingerprint());
                out.set_model(self.settings.model.as_deref());
            }
            message::decode_message(message, visibility, &mut self.text, out);
            if is_response {
                self.push_share(raw, out);
            }
            return RecordOutcome::Events;
        }
        if is_event {
            return stream::decode_event(kind, record, &mut self.state.run, &mut self.text, out);
        }
        self.decode_side_record(kind, record, out);
        RecordOutcome::Events
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl DroidDecoder {
    /// Pushes the share of a response in the totals of the session. The event exists even while the
    /// totals are not known, so that no event changes its place when they come.
    fn push_share(&mut self, raw: &[u8], out: &mut Stream) {
        let mut usage = Usage::default();
        if let Some(shares) = &mut self.shares {
            usage = shares.take_share(raw.len() as u64);
            out.set_confidence(Confidence::Estimated);
        }
        out.push_counts(ESTIMATED_SHARE, usage, None);
    }

    /// Decodes a record that is not part of the conversation, of a known or unknown type.
    fn decode_side_record(&mut self, kind: &str, record: Value<'_>, out: &mut Stream) {
        let text = &mut self.text;
        let mut is_error = None;
        match kind {
            "session_start" => {
                out.set_cwd(record.text("cwd"));
                out.set_version(record.text("version"));
                let is_by_user = record.flag("isSessionTitleManuallySet") == Some(true);
                let title_source = if is_by_user { TitleFrom::User } else { TitleFrom::Agent };
                let title = record.non_empty("sessionTitle").or_else(|| record.text("title"));
                out.offer_title(
                    title_source,
                    title.filter(|title| *title != "New Session").unwrap_or(""),
                );
                render::append_notification(record, &["type", "id"], text);
            }
            "compaction_state" if record.non_empty("summaryText").is_some() => {
                text.push_str(record.text("summaryText").unwrap_or(""));
            }
            "todo_state" => {
                let todos = record.object("todos").unwrap_or(record);
                if let Some(todos) = todos.field("todos") {
                    render::append_value(todos, text);
                }
            }
            "agent_turn_outcome" => {
                is_error = (record.text("reason") == Some("error")).then_some(true);
                render::append_notification(record, &["type", "id", "turnId", "timestamp"], text);
            }
            "session_settings" => {
                out.set_model(record.text("model"));
                render::append_notification(record, &["type", "id", "timestamp"], text);
            }
            // The final text of the session is in a message.
            "session_end" => {
                render::append_notification(
                    record,
                    &["type", "id", "timestamp", "finalText"],
                    text,
                );
            }
            _ => {
                if kind != "compaction_state" {
                    out.count_unknown("record", kind);
                }
                render::append_notification(record, &["type", "id", "parentId", "timestamp"], text);
            }
        }
        render::truncate_notification(text);
        out.push_notice(kind, text, is_error);
    }
}
