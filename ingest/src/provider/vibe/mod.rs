//! Reads the sessions of Mistral Vibe (docs/formats.md#mistral-vibe).
//!
//! ```text
//! ~/.vibe/logs/session/session_<time>_<id>/messages.jsonl
//!   {"role":"user","content":"...","message_id":"..."}
//!   {"role":"assistant","content":"...","reasoning_content":"...","message_id":"...",
//!    "tool_calls":[{"id":"...","function":{"name":"bash","arguments":"{...}"}}]}
//!   {"role":"tool","content":"...","name":"bash","tool_call_id":"..."}
//! next to it, meta.json
//!   {"session_id":"...","parent_session_id":null,"start_time":"...","title":"...","stats":{...},
//!    "environment":{"working_directory":"..."},"config":{"active_model":"..."}}
//! ```
//!
//! Before 2.0 a session was one file `session_<time>_<id>.json`: `{"metadata":{...},"messages":[...]}`.
//! Messages have no times, and tokens are sums of the session (`meta.rs`).

mod meta;

use std::path::{Path, PathBuf};

use schemas::event::Relation;
use schemas::session::SHUTDOWN_SUM;
use schemas::{Confidence, EventType, Provider};
use serde_json::Value as Json;

use self::meta::{MESSAGES, META, meta_of, short_id};
use crate::provider::format::{
    LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::document::{self, Document, DocumentLayout};
use crate::provider::shared::identity::{begin_header_record, begin_uuid_record, uuid_identity};
use crate::provider::shared::{chat, drift};
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Vibe,
    has_unique_ids: true,
    decoder_version: 1,
    roots: |places| {
        let home = places.env_path("VIBE_HOME").unwrap_or_else(|| places.home_path(".vibe"));
        vec![home.join("logs/session")]
    },
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| {
            if log.ends_with(MESSAGES) { vec![log.with_file_name(META)] } else { Vec::new() }
        }),
        is_sidecar: Some(|name, has| name == META && has(MESSAGES)),
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

/// The layout of a session in one file.
const LAYOUT: DocumentLayout = DocumentLayout { list: Some("messages"), header: &["metadata"] };

/// The beginnings of results that have failed, each with the subtype of its event.
const FAILURES: &[(&str, Option<&str>)] =
    &[("<tool_error>", None), ("<user_cancellation>", Some("cancelled"))];

/// Known fields of a message.
const KNOWN_MESSAGE: &[&str] = &[
    "content",
    "images",
    "injected",
    "message_id",
    "name",
    "reasoning_content",
    "reasoning_message_id",
    "reasoning_signature",
    "reasoning_state",
    "role",
    "tool_call_id",
    "tool_calls",
    "user_display_content",
];

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    if let Some(fields) = head.document().filter(|fields| fields.contains_key("metadata")) {
        let meta = &fields["metadata"];
        let is_session = fields.contains_key("messages") && meta["environment"].is_object();
        let id = meta["session_id"].as_str().filter(|_| is_session)?;
        return Some(claim_session(short_id(id), meta, &fields["messages"][0], None));
    }
    let first = head.objects.first()?;
    let id = match first["role"].as_str() {
        Some("user" | "assistant") => &first["message_id"],
        // The first message of a log without its beginning.
        Some("tool") => &first["tool_call_id"],
        Some(_) | None => return None,
    };
    id.as_str()?;
    let folder = head.path.parent()?;
    let meta = meta_of(head.path).unwrap_or_default();
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.filter(|_| head.path.ends_with(MESSAGES));
    // Other programs, too, call a file `messages.jsonl`.
    let is_session = |name: &&str| name.starts_with("session_") || meta["session_id"].is_string();
    if let Some(id) = name.filter(is_session).and_then(|name| name.rsplit('_').next()) {
        return Some(claim_session(id, &meta, first, meta::parent_of_subagent(folder)));
    }
    // A copy somewhere else is known by its messages.
    let is_copy = first["injected"].is_boolean();
    is_copy.then(|| claim_session(head.file_stem(), &Json::Null, first, None))
}

/// Claims the session with an id. `first` is its first message, and `root` the session whose subagent
/// it is. Ids are those of eight characters that Vibe shows and takes: the names of folders have them, and
/// the messages are written before the file with the whole id.
fn claim_session(id: &str, meta: &Json, first: &Json, root: Option<&str>) -> SessionClaim {
    let parent = meta["parent_session_id"].as_str().filter(|parent| !parent.is_empty());
    let parent = parent.map(short_id);
    // A fork begins with the messages of its parent, a compacted session with a summary.
    let is_compacted = first["injected"] == true;
    let relation = if is_compacted { Relation::ContinuedFrom } else { Relation::ForkedFrom };
    let parents = [(Relation::SubagentOf, root), (relation, parent)];
    SessionClaim {
        agent_id: root.map(|_| id.to_owned()),
        first_record: uuid_identity(first["message_id"].as_str()),
        ..SessionClaim::new(Provider::Vibe, id).with_parent(&parents)
    }
}

/// Decodes a log of either form.
fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let mut decoder = VibeDecoder::default();
    if document::is_lines(bytes, "messages") {
        let log = PathBuf::from(&out.session.source_path);
        let folder = log.parent().unwrap_or_else(|| Path::new(""));
        let meta = meta_of(&log).unwrap_or_default();
        let earlier = meta::counts_of_compacted(folder, &meta, bytes);
        decoder.decode_meta(&meta, earlier.as_ref(), out);
        document::for_each_line_record(bytes, out, tally, &mut |message, raw, at, out| {
            decoder.decode_message(message, raw, at, out)
        });
        return out.count_earlier_steps();
    }

    let session = Document::read(bytes, &LAYOUT, out, tally);
    let meta = session.fields().get("metadata").cloned().unwrap_or_default();
    decoder.decode_meta(&meta, Some(&Json::Null), out);
    session.for_each_record(out, tally, &mut |message, raw, at, out| {
        decoder.decode_message(message, raw, at, out)
    });
    out.count_earlier_steps();
}

/// Decodes the messages of one session in order.
#[derive(Default)]
struct VibeDecoder {
    /// When the session began, until the first message has it.
    start: Option<i64>,
    /// Text of the current event.
    text: String,
    parser: Parser,
}

impl VibeDecoder {
    /// Reads the fields that describe a session. Those of `earlier`, the session that was compacted,
    /// are in its counts. If they are not known, its counts would count tokens twice.
    fn decode_meta(&mut self, meta: &Json, earlier: Option<&Json>, out: &mut Stream) {
        // Old versions wrote local times.
        let time = |key: &str| meta[key].as_str().and_then(chat::parse_unzoned);
        self.start = time("start_time");
        let end = time("end_time");
        out.extend_time_range(self.start);
        out.extend_time_range(end);
        out.set_cwd(meta["environment"]["working_directory"].as_str());
        out.set_branch(meta["git_branch"].as_str());
        out.set_model(meta["config"]["active_model"].as_str());
        let is_users = meta["title_source"] == "manual";
        let offered_by = if is_users { TitleFrom::User } else { TitleFrom::Agent };
        out.offer_title(offered_by, meta["title"].as_str().unwrap_or(""));

        let stats = &meta["stats"];
        let Some(earlier) = earlier else {
            if stats.is_object() {
                begin_header_record(end, out);
                out.push_notification("usage", &stats.to_string());
                out.set_confidence(Confidence::Partial);
            }
            return;
        };
        let usage = meta::read_counts(stats).minus(meta::read_counts(&earlier["stats"]));
        if usage.is_growth() && usage.total() > 0 {
            let cost = |stats: &Json| stats["session_cost"].as_f64().unwrap_or(0.0);
            let cost = cost(stats) - cost(&earlier["stats"]);
            begin_header_record(end, out);
            out.push_counts(SHUTDOWN_SUM, usage, Some(cost).filter(|cost| *cost > 0.0));
        }
    }

    fn decode_message(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let id = message.text("message_id");
        begin_uuid_record(id, raw, at, self.start.take(), out);
        drift::count_unknown_fields(message, KNOWN_MESSAGE, out);
        self.text.clear();
        chat::append_field(message, "content", &mut self.text);
        match message.text("role") {
            Some("user") if message.flag("injected") == Some(true) => {
                out.push_shortened("injected", &self.text);
            }
            Some("user") => {
                for image in message.items("images") {
                    let name = image.text("alias").unwrap_or("image");
                    render::append_line(&format!("[{name}]"), &mut self.text);
                }
                out.push_prompt(&self.text);
            }
            Some("assistant") => self.decode_answer(message, out),
            Some("tool") => self.decode_result(message, out),
            role => {
                let role = role.unwrap_or("untyped");
                if role != "system" {
                    out.count_unknown("record", role);
                }
                out.push_shortened(role, &self.text);
            }
        }
        RecordOutcome::Events
    }

    fn decode_answer(&mut self, message: Value<'_>, out: &mut Stream) {
        out.begin_step();
        if let Some(reasoning) = message.non_empty("reasoning_content") {
            out.push_text(EventType::Reasoning, reasoning);
        }
        out.push_text(EventType::Message, &self.text);
        for call in message.items("tool_calls") {
            let function = call.object("function");
            let input = function.and_then(|function| function.field("arguments"));
            let arguments = Arguments::of_input(input, &mut self.parser);
            let name = function.and_then(|function| function.text("name"));
            arguments.push_call(name, call.non_empty("id"), out);
        }
    }

    fn decode_result(&self, message: Value<'_>, out: &mut Stream) {
        let failure = FAILURES.iter().find(|(start, _)| self.text.starts_with(start));
        let decoded = DecodedEvent {
            subtype: failure.and_then(|(_, subtype)| *subtype),
            text: &self.text,
            tool_name: message.non_empty("name"),
            tool_call_id: message.non_empty("tool_call_id"),
            is_error: Some(failure.is_some()),
            exit_code: failure.and_then(|_| parse_return_code(&self.text)),
            ..DecodedEvent::default()
        };
        out.push(EventType::ToolResult, decoded);
    }
}

/// Parses the exit code in the text of a command that failed.
fn parse_return_code(text: &str) -> Option<i32> {
    let (_, rest) = text.split_once("\nReturn code: ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}
