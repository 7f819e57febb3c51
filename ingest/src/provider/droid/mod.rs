//! Factory Droid: `~/.factory/sessions/<cwd>/<uuid>.jsonl` with a `<uuid>.settings.json` next to it
//! (docs/formats.md#droid), and the output of `droid exec --output-format stream-json`
//! (`stream.rs`). This is version 2 of the format, as of CLI 0.18x to 0.22x: `session_start`,
//! `message` with Anthropic's blocks, and records of the session's state.

mod message;
pub(super) mod settings;
mod stream;

use std::path::PathBuf;

use schemas::event::Relation;
use schemas::{Confidence, EventType, Provider, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::settings::Settings;
use self::stream::Run;
use crate::provider::format::{Claim, Format, Head, LineDecoder, Outcome, Places, Quirks, Reader};
use crate::provider::shared::identity::{begin, uuid_identity};
use crate::stream::{Draft, RecordAt, Stream, TitleFrom, micros};
use crate::text::json::{Fields, Value};
use crate::text::render;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Droid,
    unique_ids: true,
    roots,
    sniff,
    quirks: Quirks { companion: Some(|log| Some(settings::path(log))), ..Quirks::NONE },
    reader: Reader::Lines(|_, state| {
        let state = state.and_then(|state| State::deserialize(state).ok()).unwrap_or_default();
        Box::new(Decoder { state, is_settled: false, text: String::new() })
    }),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    vec![places.home(".factory/sessions")]
}

/// Fields of a `session_start` that only Droid writes there.
const START_FIELDS: &[&str] = &["cwd", "title", "sessionTitle", "owner"];

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let is_start = |object: &&Json| {
        object["type"] == "session_start"
            && object["id"].is_string()
            && START_FIELDS.iter().any(|key| object[*key].is_string())
    };
    let Some(start) = head.objects.iter().find(is_start) else {
        return stream::session_id(&head.objects).map(|id| claim(id, None, None, None));
    };
    let field = |key: &str| start[key].as_str().filter(|value| !value.is_empty());
    let (parent, relation) = match (field("callingSessionId"), field("parent")) {
        (Some(caller), _) => (Some(caller), Some(Relation::SubagentOf)),
        (None, Some(origin)) => (Some(origin), Some(Relation::ForkedFrom)),
        (None, None) => (None, None),
    };
    let is_message = |object: &&Json| object["type"] == "message";
    let first = head
        .objects
        .iter()
        .filter(is_message)
        .find_map(|message| uuid_identity(message["id"].as_str()));
    Some(claim(field("id").unwrap_or_else(|| head.stem()), parent, relation, first))
}

fn claim(
    native_id: &str,
    parent: Option<&str>,
    relation: Option<Relation>,
    first_record: Option<u64>,
) -> Claim {
    Claim {
        provider: Provider::Droid,
        native_id: native_id.to_owned(),
        agent_id: None,
        parent: parent.map(str::to_owned),
        relation,
        first_record,
    }
}

/// Returns the time of a record in microseconds. It is recorded as text or in milliseconds.
fn moment(record: Value<'_>) -> Option<i64> {
    let milliseconds = || record.int("timestamp");
    micros(record.text("timestamp")).or_else(|| Some(milliseconds()?.saturating_mul(1000)))
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// The part of the session's total tokens that was counted.
    #[serde(default)]
    counted: Usage,
    /// True once the model has answered: tokens belong after its first words.
    #[serde(default)]
    answered: bool,
    /// The run that a stream records.
    #[serde(default)]
    run: Run,
}

struct Decoder {
    state: State,
    /// True if the settings were already read in this reading of the log.
    is_settled: bool,
    text: String,
}

impl LineDecoder for Decoder {
    fn record(&mut self, record: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
        let kind = record.text("type").unwrap_or("untyped");
        let message = record.object("message").filter(|_| kind == "message");
        // Events of a stream share the id of their message.
        let id = record.text("id").filter(|_| message.is_some() || kind == "session_start");
        let is_event = stream::is_event(kind, record);
        match is_event {
            true => out.begin_unnamed(at, raw, moment(record)),
            false => begin((id, uuid_identity(id)), raw, at, moment(record), out),
        }
        self.text.clear();
        if let Some(message) = message {
            let visibility = message.text("visibility").or_else(|| record.text("visibility"));
            // A notice may have the same parent as the next message. This does not make a branch.
            if let Some(parent) = record.non_empty("parentId")
                && visibility != Some("user_only")
            {
                out.branch(xxh3_64(parent.as_bytes()));
            }
            if message.text("role") == Some("assistant") && visibility.is_none_or(|v| v == "both") {
                self.state.answered = true;
                self.settle(out);
            }
            message::message(message, visibility, &mut self.text, out);
            return Outcome::Events;
        }
        if is_event {
            return stream::event(kind, record, &mut self.state.run, &mut self.text, out);
        }
        self.side_record(kind, record, out);
        Outcome::Events
    }

    fn end(&mut self, at: RecordAt, out: &mut Stream) {
        if self.state.answered {
            out.begin_record(at, None, None);
            self.settle(out);
        }
    }

    fn save(&self) -> Json {
        serde_json::to_value(&self.state).unwrap_or_default()
    }
}

impl Decoder {
    /// Reads the model and the tokens from the settings next to the log, once per reading. The log
    /// has no counts of its own. The counts in the settings are totals, which may be ahead of the
    /// log or behind it.
    fn settle(&mut self, out: &mut Stream) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        let Some(settings) = Settings::beside(&out.session.source_path) else { return };
        out.set_model(settings.model.as_deref());
        let news = settings.usage.minus(self.state.counted);
        self.state.counted = settings.usage;
        if news.is_growth() && news.total() > 0 {
            out.push_in(EventType::TokenUsage, 0, Draft { usage: news, ..Draft::default() });
            out.set_confidence(Confidence::Partial);
        }
    }

    /// Decodes a record that is not part of the conversation, of a known or unknown type.
    fn side_record(&mut self, kind: &str, record: Value<'_>, out: &mut Stream) {
        let text = &mut self.text;
        let mut is_error = None;
        match kind {
            "session_start" => {
                out.set_cwd(record.text("cwd"));
                out.set_version(record.text("version"));
                let by_person = record.flag("isSessionTitleManuallySet") == Some(true);
                let from = if by_person { TitleFrom::Person } else { TitleFrom::Agent };
                let title = record.non_empty("sessionTitle").or_else(|| record.text("title"));
                out.title(from, title.filter(|title| *title != "New Session").unwrap_or(""));
                render::fields(record, &["type", "id"], text);
            }
            "compaction_state" if record.non_empty("summaryText").is_some() => {
                text.push_str(record.text("summaryText").unwrap_or(""));
            }
            "todo_state" => {
                let todos = record.object("todos").unwrap_or(record);
                todos.field("todos").inspect(|todos| render::value(*todos, text));
            }
            "agent_turn_outcome" => {
                is_error = (record.text("reason") == Some("error")).then_some(true);
                render::fields(record, &["type", "id", "turnId", "timestamp"], text);
            }
            "session_settings" => {
                out.set_model(record.text("model"));
                render::fields(record, &["type", "id", "timestamp"], text);
            }
            // The final text of the session is in a message.
            "session_end" => {
                render::fields(record, &["type", "id", "timestamp", "finalText"], text);
            }
            _ => {
                if kind != "compaction_state" {
                    out.drift("record", kind);
                }
                render::fields(record, &["type", "id", "parentId", "timestamp"], text);
            }
        }
        render::cut(text);
        let draft = Draft { subtype: Some(kind), text, is_error, ..Draft::default() };
        out.push(EventType::Notification, draft);
    }
}
