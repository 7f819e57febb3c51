//! Reads the session logs of Kiro CLI (docs/formats.md#kiro):
//!
//! ```text
//! ~/.kiro/sessions/cli/<id>.jsonl  a journal: {"version":"v1","kind":"Prompt","data":{...}}
//! ~/.kiro/sessions/cli/<id>.json   describes the session of the journal
//! any .json or .jsonl file         conversations: {"conversation_id":"...","history":[...]}
//! ```
//!
//! `/chat save` and others write conversations, pretty-printed or one to a line. None of these
//! files counts tokens, because Kiro bills credits.

mod message;

use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;

use self::message::KiroDecoder;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{self, Document, DocumentLayout, RecordSpan};
use crate::provider::shared::sidecar;
use crate::stream::{Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};

/// Maximum size in bytes of the file that describes the session of a journal.
const MAX_SESSION_FILE_BYTES: u64 = 16 << 20;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Kiro,
    // A compacted session begins with messages of the one before.
    has_unique_ids: false,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { companions: Some(|log| vec![session_file_path(log)]), ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let home = places.env_path("KIRO_HOME").unwrap_or_else(|| places.home_path(".kiro"));
    vec![home.join("sessions/cli")]
}

/// Kinds of records that may begin a journal.
const FIRST_KINDS: &[&str] = &["Prompt", "AssistantMessage", "ToolResults"];

/// Claims a conversation by its fields, and a journal by its first record.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.first();
    let fields = head.document().or_else(|| first?.as_object());
    if let Some(fields) = fields
        && fields.contains_key(HISTORY)
        && let Some(id) = fields.get("conversation_id").and_then(Json::as_str)
    {
        let native_id = if id.is_empty() { head.file_stem() } else { id };
        return Some(SessionClaim::new(Provider::Kiro, native_id));
    }

    let first = first?;
    let is_journal = first["kind"].as_str().is_some_and(|kind| FIRST_KINDS.contains(&kind))
        && first["data"].is_object()
        && first.get("type").is_none();
    is_journal.then(|| claim_journal(head))
}

/// Returns the claim of a journal. The file next to it names its parent.
fn claim_journal(head: &LogHead<'_>) -> SessionClaim {
    let about = read_session_file(head.path).unwrap_or_default();
    let parent = about["parent_session_id"].as_str().filter(|id| !id.is_empty());
    let reason = about["session_created_reason"].as_str().unwrap_or("").to_ascii_lowercase();
    let relation = if reason.contains("agent") {
        Relation::SubagentOf
    } else if reason.contains("compact") {
        Relation::ContinuedFrom
    } else {
        Relation::ForkedFrom
    };
    let is_subagent = parent.is_some() && relation == Relation::SubagentOf;
    SessionClaim {
        agent_id: is_subagent.then(|| head.file_stem().to_owned()),
        ..SessionClaim::new(Provider::Kiro, head.file_stem()).with_parent(&[(relation, parent)])
    }
}

/// Returns the path of the file with Kiro's data about a journal's session.
pub(super) fn session_file_path(journal: &Path) -> PathBuf {
    journal.with_extension("json")
}

/// Reads the file next to a journal, which describes the journal's session.
fn read_session_file(journal: &Path) -> Option<Json> {
    sidecar::read_json(&session_file_path(journal), MAX_SESSION_FILE_BYTES)
}

/// The field of a conversation that holds its entries.
const HISTORY: &str = "history";

const LAYOUT: DocumentLayout =
    DocumentLayout { list: Some(HISTORY), header: &["model", "model_info", "conversation_id"] };

/// Decodes a log: one conversation, or lines that are records of a journal or conversations.
fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let mut decoder = KiroDecoder::default();
    if !document::is_lines(bytes, HISTORY) {
        let all = RecordSpan { offset: 0, length: bytes.len(), line: 1 };
        return decode_conversation(bytes, all, &mut decoder, out, tally);
    }

    let path = PathBuf::from(&out.session.source_path);
    if let Some(about) = read_session_file(&path) {
        apply_session_file(&about, out);
    }

    // A conversation that is written again replaces its earlier version.
    let mut conversations: Vec<(String, RecordSpan)> = Vec::new();
    document::for_each_line(bytes, out, tally, &mut |record, span, out, tally| {
        if record.field(HISTORY).is_none() {
            return tally.count_object(decoder.decode_journal_record(record, span.position(), out));
        }
        let id = record.text("conversation_id").unwrap_or("").to_owned();
        match conversations.iter_mut().find(|(known, _)| *known == id) {
            Some((_, latest)) => {
                *latest = span;
                tally.count_object(RecordOutcome::Merged("rewritten_conversation"));
            }
            None => conversations.push((id, span)),
        }
    });

    for (_, span) in conversations {
        // The line of the conversation is already counted.
        tally.lines -= 1;
        decode_conversation(bytes, span, &mut decoder, out, tally);
    }
}

/// Decodes the conversation in a part of a log.
fn decode_conversation(
    bytes: &[u8],
    place: RecordSpan,
    decoder: &mut KiroDecoder,
    out: &mut Stream,
    tally: &mut RecordTally,
) {
    let document = Document::read(place.record_bytes(bytes), &LAYOUT, out, tally);
    document.with_header(|fields| decode_header(fields, out));

    let mut entries = document.records;
    for entry in &mut entries {
        entry.offset += place.offset;
        entry.line += place.line - 1;
    }
    document::for_each_record(bytes, &entries, out, tally, &mut |entry, _, at, out| {
        decoder.decode_entry(entry, at, out)
    });
}

/// Reads a conversation's own fields.
fn decode_header(fields: Value<'_>, out: &mut Stream) {
    out.set_model(fields.text("model"));
    out.set_model(fields.object("model_info").and_then(|model| model.text("model_id")));
}

/// Passes the content of the file next to a journal to the stream.
fn apply_session_file(about: &Json, out: &mut Stream) {
    for key in ["created_at", "updated_at"] {
        out.extend_time_range(parse_micros(about[key].as_str()));
    }
    out.set_cwd(about["cwd"].as_str());
    out.set_model(about["session_state"]["rts_model_state"]["model_info"]["model_id"].as_str());
    out.offer_title(TitleFrom::Summary, about["title"].as_str().unwrap_or(""));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, lines: &[&str], want: Option<&str>) {
        let parse = |line: &&str| serde_json::from_str(line).expect("json");
        let objects = lines.iter().map(parse).collect();
        let head = LogHead { path: Path::new(path), objects, fields: None, is_list: false };
        assert_eq!(claim_log(&head).map(|claim| claim.native_id).as_deref(), want, "{lines:?}");
    }

    #[test]
    fn journals_and_conversations_are_told_from_others() {
        check("k.jsonl", &[r#"{"version":"v1","kind":"Prompt","data":{}}"#], Some("k"));
        check("x.json", &[r#"{"conversation_id":"c","history":[]}"#], Some("c"));
        check("x.json", &[r#"{"session_id":"k","session_state":{}}"#], None);
        check("x.jsonl", &[r#"{"kind":"Prompt","type":"x","data":{}}"#], None);
        check("x.jsonl", &[r#"{"kind":"main","sessionId":"g"}"#], None);
        check("x.jsonl", &[], None);
    }
}
