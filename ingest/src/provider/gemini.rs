//! Gemini CLI: `~/.gemini/tmp/<hash>/chats/session-*.json` (one document) and `.jsonl` (header,
//! messages, updates); FORMATS.md section 3. Both change what was written before, so both are
//! read whole every time.

use schemas::Provider;
use schemas::event::Relation;
use schemas::problem::ProblemKind;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::gemini_message::Decoder;
use super::{Claim, Format, Head, Outcome, Reader, Tally, is_uuid};
use crate::json::{Fields, Found, Parser};
use crate::lines::{Line, Lines};
use crate::stream::{RecordAt, Stream, TitleFrom, micros};

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

/// Where a message lies in the file.
#[derive(Debug, Clone, Copy)]
struct Span {
    offset: usize,
    length: usize,
    line: u64,
}

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let start = bytes.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(0);
    let first_line = &bytes
        [start..start + memchr::memchr(b'\n', &bytes[start..]).unwrap_or(bytes.len() - start)];
    let mut parser = Parser::default();
    let spans = if parser.is_complete(first_line)
        && !first_line.is_empty()
        && is_lines(bytes, first_line)
    {
        lines(bytes, &mut parser, out, tally)
    } else {
        document(bytes, out, tally)
    };
    let mut decoder = Decoder::default();
    for span in spans {
        let at =
            RecordAt { offset: span.offset as u64, length: span.length as u64, line: span.line };
        let raw = &bytes[span.offset..span.offset + span.length];
        parser.each(raw, &mut |found| match found {
            Found::Object(message, _) => {
                tally.object(Outcome::Events);
                decoder.message(message, at, out);
            }
            Found::Problem(kind, _, message) => out.problem(at, kind, message),
        });
    }
}

/// A whole document may stand on one line too: only a header without messages begins lines.
fn is_lines(bytes: &[u8], first_line: &[u8]) -> bool {
    first_line.len() + 1 < bytes.len()
        || memchr::memmem::find(first_line, b"\"messages\"").is_none()
}

/// The session's own fields.
fn header(object: crate::json::Value<'_>, out: &mut Stream) {
    for key in ["startTime", "lastUpdated"] {
        out.widen(micros(object.text(key)));
    }
    out.title(TitleFrom::Agent, object.text("summary").unwrap_or(""));
    let directories = object.items("directories");
    out.set_cwd(directories.first().and_then(|first| crate::json::string(*first)));
}

/// Messages of a pretty-printed document; those before a cut are kept.
fn document(bytes: &[u8], out: &mut Stream, tally: &mut Tally) -> Vec<Span> {
    let text = String::from_utf8_lossy(bytes);
    let whole = RecordAt { offset: 0, length: bytes.len() as u64, line: 0 };
    if matches!(text, std::borrow::Cow::Owned(_)) {
        // Offsets would no longer fit the file.
        out.problem(
            whole,
            ProblemKind::InvalidUtf8,
            "the document is not UTF-8 and was not read".to_owned(),
        );
        return Vec::new();
    }
    let mut document = Document::default();
    let result =
        DocumentSeed(&mut document).deserialize(&mut serde_json::Deserializer::from_str(&text));
    tally.lines += text.lines().count() as u64;
    tally.object(Outcome::Merged("document_header"));
    let mut parser = Parser::default();
    let fields = serde_json::to_vec(&document.header).unwrap_or_default();
    parser.each(&fields, &mut |found| {
        if let Found::Object(object, _) = found {
            header(object, out);
        }
    });
    if let Err(error) = result {
        let message = format!("the document ends early or is no JSON: {error}");
        out.problem(whole, ProblemKind::BadJson, message);
    }
    let base = text.as_ptr() as usize;
    let mut line = 1;
    let mut counted = 0;
    let span = |raw: &&RawValue| {
        let offset = raw.get().as_ptr() as usize - base;
        line += memchr::memchr_iter(b'\n', &bytes[counted..offset]).count() as u64;
        counted = offset;
        Span { offset, length: raw.get().len(), line }
    };
    document.messages.iter().map(span).collect()
}

/// Messages of the line form, in their last state: the same id written again replaces, `$set`
/// replaces the list, `$rewindTo` cuts it.
fn lines(bytes: &[u8], parser: &mut Parser, out: &mut Stream, tally: &mut Tally) -> Vec<Span> {
    let mut messages: Vec<(String, Span)> = Vec::new();
    let mut reader = Lines::new(bytes, 0);
    let mut number = 0;
    while let Ok(Some(line)) = reader.next_line() {
        number += 1;
        tally.lines += 1;
        let (offset, line) = match line {
            Line::Whole { offset, bytes } | Line::Tail { offset, bytes } => (offset, bytes),
            Line::Oversized { offset, length, .. } => {
                let at = RecordAt { offset, length, line: number };
                out.problem(
                    at,
                    ProblemKind::OversizedRecord,
                    format!("a line of {length} bytes was not read"),
                );
                continue;
            }
        };
        parser.each(line, &mut |found| match found {
            Found::Object(object, at) => {
                let base = usize::try_from(offset).unwrap_or(usize::MAX);
                let span = Span { offset: base + at.start, length: at.len(), line: number };
                if let Some(set) = object.object("$set") {
                    header(set, out);
                    if set.field("messages").is_some() {
                        messages =
                            set_messages(&bytes[span.offset..span.offset + span.length], span);
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
            }
            Found::Problem(kind, _, message) => {
                let at = RecordAt { offset, length: line.len() as u64, line: number };
                out.problem(at, kind, message);
            }
        });
    }
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

/// A document taken apart as far as it goes.
#[derive(Default)]
struct Document<'a> {
    header: serde_json::Map<String, serde_json::Value>,
    messages: Vec<&'a RawValue>,
}

/// Fills a document while it is read, so that what stands before an error is kept.
struct DocumentSeed<'d, 'a>(&'d mut Document<'a>);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with messages")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "messages" => map.next_value_seed(MessagesSeed(&mut self.0.messages))?,
                "sessionId" | "startTime" | "lastUpdated" | "summary" | "kind" | "directories" => {
                    self.0.header.insert(key, map.next_value()?);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct MessagesSeed<'d, 'a>(&'d mut Vec<&'a RawValue>);

impl<'de> DeserializeSeed<'de> for MessagesSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MessagesSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(message) = seq.next_element()? {
            self.0.push(message);
        }
        Ok(())
    }
}
