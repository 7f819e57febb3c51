//! Gemini CLI: `~/.gemini/tmp/<hash>/chats/session-*.json` (one document) and `.jsonl` (header,
//! messages, updates); FORMATS.md section 3. Both change what was written before, so both are
//! read whole every time.

mod message;

use schemas::Provider;
use schemas::event::Relation;
use serde_json::value::RawValue;

use self::message::Decoder;
use super::document::{self, Document, Layout, Span};
use super::{Claim, Format, Head, Outcome, Reader, Tally, is_uuid};
use crate::json::{Fields, Value};
use crate::stream::{Stream, TitleFrom, micros};

pub const FORMAT: Format = Format {
    provider: Provider::Gemini,
    unique_ids: true,
    roots: |places| vec![places.home(".gemini/tmp")],
    sniff,
    reader: Reader::Document(read),
};

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let header = match &head.document {
        Some(document) => document,
        None => head.objects.first()?.as_object()?,
    };
    let is_ours = header.contains_key("sessionId")
        && (header.contains_key("projectHash") || header.contains_key("startTime"))
        && !header.contains_key("type");
    if !is_ours {
        return None;
    }
    let text = |key: &str| header.get(key).and_then(|value| value.as_str());
    let folder = head.path.parent().and_then(|p| p.file_name()).and_then(|name| name.to_str());
    let parent = folder.filter(|name| is_uuid(name) && text("kind") == Some("subagent"));
    Some(Claim {
        provider: Provider::Gemini,
        native_id: text("sessionId")
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| head.stem())
            .to_owned(),
        agent_id: parent.map(|_| head.stem().to_owned()),
        parent: parent.map(str::to_owned),
        relation: (text("kind") == Some("subagent")).then_some(Relation::SubagentOf),
        first_record: None,
    })
}

const LAYOUT: Layout = Layout {
    list: Some("messages"),
    header: &["sessionId", "startTime", "lastUpdated", "summary", "kind", "directories"],
};

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let messages = if document::is_lines(bytes, "messages") {
        lines(bytes, out, tally)
    } else {
        let document = Document::read(bytes, &LAYOUT, out, tally);
        document.header(|fields| header(fields, out));
        document.records
    };
    let mut decoder = Decoder::default();
    document::each(bytes, &messages, out, tally, &mut |message, at, out| {
        decoder.message(message, at, out);
        Outcome::Events
    });
}

/// The session's own fields.
fn header(object: Value<'_>, out: &mut Stream) {
    for key in ["startTime", "lastUpdated"] {
        out.widen(micros(object.text(key)));
    }
    out.title(TitleFrom::Agent, object.text("summary").unwrap_or(""));
    let directories = object.items("directories");
    out.set_cwd(directories.first().and_then(|first| crate::json::string(*first)));
}

/// Messages of the line form, in their last state: the same id written again replaces, `$set`
/// replaces the list, `$rewindTo` cuts it.
fn lines(bytes: &[u8], out: &mut Stream, tally: &mut Tally) -> Vec<Span> {
    let mut messages: Vec<(String, Span)> = Vec::new();
    document::lines(bytes, out, tally, &mut |object, span, out, tally| {
        if let Some(set) = object.object("$set") {
            header(set, out);
            if set.field("messages").is_some() {
                messages = set_messages(span.of(bytes), span);
            }
            tally.object(Outcome::Merged("update"));
        } else if let Some(id) = object.text("$rewindTo") {
            let keep = messages
                .iter()
                .position(|(known, _)| known == id)
                .map_or(messages.len(), |at| at + 1);
            messages.truncate(keep);
            tally.object(Outcome::Merged("update"));
        } else if object.field("type").is_none() && object.field("sessionId").is_some() {
            header(object, out);
            tally.object(Outcome::Merged("document_header"));
        } else {
            let id = object.text("id").unwrap_or("").to_owned();
            match messages.iter_mut().find(|(known, _)| !id.is_empty() && *known == id) {
                Some(known) => {
                    known.1 = span;
                    tally.object(Outcome::Merged("rewritten_message"));
                }
                None => messages.push((id, span)),
            }
        }
    });
    messages.into_iter().map(|(_, span)| span).collect()
}

/// The messages inside a `$set` line.
fn set_messages(line: &[u8], at: Span) -> Vec<(String, Span)> {
    #[derive(serde::Deserialize)]
    struct Update<'a> {
        #[serde(rename = "$set", borrow)]
        set: Set<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Set<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Id {
        id: Option<String>,
    }
    let Ok(update) = serde_json::from_slice::<Update<'_>>(line) else { return Vec::new() };
    let base = line.as_ptr() as usize;
    let span = |raw: &&RawValue| {
        let id =
            serde_json::from_str::<Id>(raw.get()).ok().and_then(|id| id.id).unwrap_or_default();
        let offset = at.offset + (raw.get().as_ptr() as usize - base);
        (id, Span { offset, length: raw.get().len(), line: at.line })
    };
    update.set.messages.iter().map(span).collect()
}
