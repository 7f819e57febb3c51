//! Reads the saved sessions of CodeWhale, earlier DeepSeek TUI, from `~/.codewhale/sessions/<id>.json`
//! and `~/.deepseek/sessions` (docs/formats.md#codewhale).
//!
//! ```text
//! {"schema_version":1,
//!  "metadata":{"id":"<uuid>","title":"...","created_at":"...","updated_at":"...","total_tokens":9,
//!    "model":"...","workspace":"/...","cost":{"session_cost_usd":0.1,...},"parent_session_id":"..."},
//!  "messages":[{"role":"user","content":[{"type":"text","text":"..."}]},...]}
//! ```
//!
//! A session has at most the last 500 messages. They have no times and no ids.

use std::path::PathBuf;

use schemas::event::Relation;
use schemas::{Provider, Usage};

use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{Document, DocumentLayout};
use crate::provider::shared::identity::{ContentIds, begin_header_record};
use crate::provider::shared::machine_text::MachineText;
use crate::provider::shared::{blocks, drift};
use crate::stream::{RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::CodeWhale,
    has_unique_ids: false,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { machine_texts: MACHINE_TEXTS, ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

const LAYOUT: DocumentLayout = DocumentLayout { list: Some("messages"), header: &["metadata"] };

/// Text that CodeWhale puts before a prompt.
const MACHINE_TEXTS: &[MachineText] =
    &[MachineText::documented("<turn_meta>", "</turn_meta>", "turn_meta")];

/// Title of a session without a prompt.
const PLACEHOLDER_TITLE: &str = "New Session";

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let homes = match places.env_path("CODEWHALE_HOME") {
        Some(home) => vec![home],
        None => vec![places.home_path(".codewhale"), places.home_path(".deepseek")],
    };
    homes.iter().map(|home| home.join("sessions")).collect()
}

/// Claims a saved session. One that is saved in the middle of a turn repeats it.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let metadata = head.document()?.get("metadata")?;
    let id = metadata["id"].as_str().filter(|id| !id.is_empty())?;
    let is_session = metadata["workspace"].is_string()
        && metadata["total_tokens"].is_number()
        && metadata["message_count"].is_number();
    if !is_session || head.path.parent().is_some_and(|folder| folder.ends_with("checkpoints")) {
        return None;
    }
    let parent = metadata["parent_session_id"].as_str().filter(|parent| !parent.is_empty());
    let claim = SessionClaim::new(Provider::CodeWhale, id);
    Some(claim.with_parent(&[(Relation::ForkedFrom, parent)]))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let session = Document::read(bytes, &LAYOUT, out, tally);
    let mut start = None;
    session.with_header(|header| {
        if let Some(metadata) = header.object("metadata") {
            start = decode_metadata(metadata, out);
        }
    });
    let mut ids = ContentIds::default();
    session.for_each_record(out, tally, &mut |message, raw, at, out| {
        let id = ids.next(raw, out);
        decode_message(message, (&id, raw), start.take(), at, out)
    });
}

/// Reads the fields that describe a session. Returns the time at which it began.
fn decode_metadata(metadata: Value<'_>, out: &mut Stream) -> Option<i64> {
    let created = parse_micros(metadata.text("created_at"));
    let updated = parse_micros(metadata.text("updated_at"));
    out.extend_time_range(created);
    out.extend_time_range(updated);
    out.set_cwd(metadata.text("workspace"));
    out.set_model(metadata.text("model"));
    let title = metadata.text("title").unwrap_or("");
    if title != PLACEHOLDER_TITLE {
        out.offer_title(TitleFrom::Summary, title);
    }

    // A sum of input and output, which is neither.
    let total = metadata.int("total_tokens").unwrap_or(0);
    let cost = metadata.object("cost");
    let dollars = |key: &str| cost.and_then(|cost| cost.cost(key)).unwrap_or(0.0);
    let cost = dollars("session_cost_usd") + dollars("subagent_cost_usd");
    if total > 0 || cost > 0.0 {
        begin_header_record(created, out);
        if cost > 0.0 {
            out.push_counts("session_cost", Usage::default(), Some(cost));
        }
        out.push_notification("usage", &format!("total_tokens: {total}"));
    }
    created
}

/// Decodes one message. `id` is the same whenever the document is written again.
fn decode_message(
    message: Value<'_>,
    (id, raw): (&str, &[u8]),
    start: Option<i64>,
    at: RecordAt,
    out: &mut Stream,
) -> RecordOutcome {
    out.begin_message(Some(id));
    out.begin_record_by_content(at, raw, start);
    let content = message.field("content");
    match message.text("role") {
        Some("user") => blocks::push_user_content(content, MACHINE_TEXTS, out),
        Some("assistant") => {
            out.begin_step();
            blocks::push_response_content(content, out);
        }
        role => drift::push_unknown_record(role, message, &["role"], out),
    }
    RecordOutcome::Events
}
