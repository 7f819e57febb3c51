//! Kiro CLI: the journals `~/.kiro/sessions/cli/<id>.jsonl` with `<id>.json` next to them, and
//! conversations as one document `{conversation_id, history}` (docs/formats.md#kiro). `/chat save`
//! and others write such documents, pretty-printed or one to a line. None of these counts tokens:
//! Kiro bills credits.

mod message;

use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;

use self::message::Decoder;
use crate::provider::format::{Claim, Format, Head, Outcome, Places, Quirks, Reader, Tally};
use crate::provider::shared::document::{self, Document, Layout, Span};
use crate::stream::{Stream, TitleFrom, micros};
use crate::text::json::{Fields, Value};

pub(super) const FORMAT: Format = Format {
    provider: Provider::Kiro,
    // A compacted session begins with messages of the one before.
    unique_ids: false,
    roots,
    sniff,
    quirks: Quirks { companion: Some(|log| Some(about_path(log))), ..Quirks::NONE },
    reader: Reader::Document(read),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let home = places.set("KIRO_HOME").unwrap_or_else(|| places.home(".kiro"));
    vec![home.join("sessions/cli")]
}

/// Kinds of records that may begin a journal.
const KINDS: &[&str] = &["Prompt", "AssistantMessage", "ToolResults"];

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let first = head.objects.first();
    let conversation = match (&head.document, first.and_then(Json::as_object)) {
        (Some(document), _) => Some(document),
        (None, first) => first,
    };
    let id = conversation
        .filter(|fields| fields.contains_key("history"))
        .and_then(|fields| fields.get("conversation_id")?.as_str());
    if let Some(id) = id {
        return Some(Claim {
            provider: Provider::Kiro,
            native_id: Some(id).filter(|id| !id.is_empty()).unwrap_or(head.stem()).to_owned(),
            agent_id: None,
            parent: None,
            relation: None,
            first_record: None,
        });
    }
    let first = first?;
    let is_journal = first["kind"].as_str().is_some_and(|kind| KINDS.contains(&kind))
        && first["data"].is_object()
        && first.get("type").is_none();
    is_journal.then(|| journal(head))
}

fn journal(head: &Head<'_>) -> Claim {
    let about = about(head.path).unwrap_or_default();
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
    Claim {
        provider: Provider::Kiro,
        native_id: head.stem().to_owned(),
        agent_id: is_subagent.then(|| head.stem().to_owned()),
        parent: parent.map(str::to_owned),
        relation: parent.map(|_| relation),
        first_record: None,
    }
}

/// Returns the path of the file with Kiro's data about a journal's session.
pub(super) fn about_path(journal: &Path) -> PathBuf {
    journal.with_extension("json")
}

/// Reads the file next to a journal, which describes the journal's session.
fn about(journal: &Path) -> Option<Json> {
    serde_json::from_slice(&std::fs::read(about_path(journal)).ok()?).ok()
}

const LAYOUT: Layout =
    Layout { list: Some("history"), header: &["model", "model_info", "conversation_id"] };

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let mut decoder = Decoder::default();
    if !document::is_lines(bytes, "history") {
        let all = Span { offset: 0, length: bytes.len(), line: 1 };
        return conversation(bytes, all, &mut decoder, out, tally);
    }
    let path = PathBuf::from(&out.session.source_path);
    if let Some(about) = about(&path) {
        session(&about, out);
    }
    // A conversation that is written again replaces its earlier version.
    let mut conversations: Vec<(String, Span)> = Vec::new();
    document::lines(bytes, out, tally, &mut |record, span, out, tally| {
        if record.field("history").is_none() {
            return tally.object(decoder.journal(record, span.at(), out));
        }
        let id = record.text("conversation_id").unwrap_or("").to_owned();
        match conversations.iter_mut().find(|(known, _)| *known == id) {
            Some(known) => {
                known.1 = span;
                tally.object(Outcome::Merged("rewritten_conversation"));
            }
            None => conversations.push((id, span)),
        }
    });
    for (_, span) in conversations {
        // The line of the conversation is already counted.
        tally.lines -= 1;
        conversation(bytes, span, &mut decoder, out, tally);
    }
}

/// Decodes the conversation in a part of a log.
fn conversation(
    bytes: &[u8],
    place: Span,
    decoder: &mut Decoder,
    out: &mut Stream,
    tally: &mut Tally,
) {
    let document = Document::read(place.of(bytes), &LAYOUT, out, tally);
    document.header(|fields| header(fields, out));
    let shift = |span: &Span| Span {
        offset: place.offset + span.offset,
        length: span.length,
        line: place.line + span.line - 1,
    };
    let entries: Vec<Span> = document.records.iter().map(shift).collect();
    document::each(bytes, &entries, out, tally, &mut |entry, _, at, out| {
        decoder.entry(entry, at, out)
    });
}

/// Reads a conversation's own fields.
fn header(fields: Value<'_>, out: &mut Stream) {
    out.set_model(fields.text("model"));
    out.set_model(fields.object("model_info").and_then(|model| model.text("model_id")));
}

/// Passes the content of the file next to a journal to the stream.
fn session(about: &Json, out: &mut Stream) {
    for key in ["created_at", "updated_at"] {
        out.widen(micros(about[key].as_str()));
    }
    out.set_cwd(about["cwd"].as_str());
    out.set_model(about["session_state"]["rts_model_state"]["model_info"]["model_id"].as_str());
    out.title(TitleFrom::Summary, about["title"].as_str().unwrap_or(""));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, lines: &[&str], want: Option<&str>) {
        let parse = |line: &&str| serde_json::from_str(line).expect("json");
        let objects = lines.iter().map(parse).collect();
        let head = Head { path: Path::new(path), objects, document: None, is_list: false };
        assert_eq!(sniff(&head).map(|claim| claim.native_id).as_deref(), want, "{lines:?}");
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
