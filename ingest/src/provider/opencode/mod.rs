//! OpenCode: the document of `opencode export`, and the two stores (docs/formats.md#opencode).
//!
//! Sessions of the stores are assembled into the bytes of such a document: from the tree of files
//! before 1.2 (`tree.rs`) or from the database of later versions (`database.rs`). Versions 1 write
//! a message as `{info, parts}` (`message.rs`), versions 2 as one object (`v2.rs`).

mod database;
mod document_text;
mod events;
mod message;
mod tree;
mod v2;

use std::path::PathBuf;

use schemas::Provider;
use schemas::event::Relation;
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_64;

use self::message::Decoder;
use crate::provider::format::{Claim, Format, Head, Places, Quirks, Reader, Tally};
use crate::provider::shared::chat;
use crate::provider::shared::document::{self, Document, Layout};
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{Fields, Value};

pub(crate) const FORMAT: Format = Format {
    provider: Provider::OpenCode,
    // A fork copies messages under new ids, so messages are identified by content.
    unique_ids: false,
    roots,
    sniff,
    quirks: Quirks {
        ids_descend: true,
        assemblies: &[database::ASSEMBLY, tree::ASSEMBLY],
        ..Quirks::NONE
    },
    reader: Reader::Document(read),
};

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let data = places.data("opencode");
    let mut roots = database::databases(&data);
    // A file name in the variable is relative to the data folder.
    roots.extend(places.set("OPENCODE_DB").map(|db| data.join(db)));
    roots.push(data.join("storage/session"));
    roots
}

fn sniff(head: &Head<'_>) -> Option<Claim> {
    match &head.document {
        Some(document) => match document.get("info") {
            Some(Json::Object(info)) => session(info, head).or_else(|| message(info, head)),
            // The session's fields exceed the part of the file that was read, so its name decides.
            Some(Json::Null) => head.stem().starts_with("ses_").then(|| claim(&Map::new(), head)),
            Some(_) => None,
            // A session's own file in the tree.
            None => session(document, head),
        },
        // The early form, one message per line.
        None => message(head.objects.first()?.get("info")?.as_object()?, head),
    }
}

/// Returns the claim of a document with these session fields.
fn session(info: &Map<String, Json>, head: &Head<'_>) -> Option<Claim> {
    let has = |key: &str| info.get(key).is_some_and(Json::is_string);
    let is_ours = has("id") && has("projectID") && info.get("time").is_some_and(Json::is_object);
    (is_ours && !has("role")).then(|| claim(info, head))
}

/// Returns the claim of a log with these message fields, which also name the session.
fn message(info: &Map<String, Json>, head: &Head<'_>) -> Option<Claim> {
    let text = |key: &str| info.get(key).and_then(Json::as_str);
    let is_ours = matches!(text("role"), Some("user" | "assistant")) && text("id").is_some();
    let mut session = Map::new();
    session.insert("id".to_owned(), text("sessionID")?.into());
    is_ours.then(|| claim(&session, head))
}

fn claim(info: &Map<String, Json>, head: &Head<'_>) -> Claim {
    let text = |key: &str| info.get(key).and_then(Json::as_str).filter(|text| !text.is_empty());
    // Some published logs have their ids masked.
    let id = text("id").filter(|id| *id != "REDACTED").unwrap_or_else(|| head.stem());
    let parent = text("parentID");
    let fork = text("forkSessionID");
    let relation = match (parent, fork) {
        (Some(_), _) => Some(Relation::SubagentOf),
        (None, Some(_)) => Some(Relation::ForkedFrom),
        (None, None) => None,
    };
    Claim {
        provider: Provider::OpenCode,
        native_id: id.to_owned(),
        // The parent's call refers to the subagent by this id.
        agent_id: parent.map(|_| id.to_owned()),
        parent: parent.or(fork).map(str::to_owned),
        relation,
        first_record: head.document.as_ref().and_then(first_message),
    }
}

/// Returns the identity of the first message: role, time and beginning. A fork that does not name
/// its original begins with the same message.
fn first_message(document: &Map<String, Json>) -> Option<u64> {
    let first = document.get("messages")?.get(0)?;
    let facts = first.get("info").unwrap_or(first);
    let who = ["role", "type"].iter().find_map(|key| facts.get(key)?.as_str())?;
    let created = facts.get("time")?.get("created")?.as_i64()?;
    let parts = first.get("parts").or_else(|| first.get("content")).and_then(Json::as_array);
    let texts = parts.into_iter().flatten().chain([first]).filter_map(|part| part.get("text"));
    let said = texts.filter_map(Json::as_str).find(|text| !text.is_empty())?;
    Some(xxh3_64(format!("{who} {created} {said}").as_bytes()) | 1)
}

/// Header fields of an export, and of a session's own file, which has no messages.
const LAYOUT: Layout =
    Layout { list: Some("messages"), header: &["info", "directory", "title", "version", "time"] };

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let mut decoder = Decoder::default();
    if document::is_lines(bytes, "messages") {
        document::lines(bytes, out, tally, &mut |message, span, out, tally| {
            out.begin_message(id(message));
            tally.object(decoder.message(message, span.at(), out));
        });
        return;
    }
    let document = Document::read(bytes, &LAYOUT, out, tally);
    // The message that the user went back to. It is kept if only a part of it is undone.
    let mut back = None;
    document.header(|fields| {
        let info = fields.object("info").unwrap_or(fields);
        header(info, out);
        back = info.object("revert").and_then(|revert| {
            Some((revert.non_empty("messageID")?.to_owned(), revert.field("partID").is_some()))
        });
    });
    let mut since = None;
    document::each(bytes, &document.records, out, tally, &mut |message, _, at, out| {
        let id = id(message);
        out.begin_message(id);
        let first = out.position();
        let outcome = decoder.message(message, at, out);
        if let Some((_, in_part)) = back.as_ref().filter(|(back, _)| Some(back.as_str()) == id) {
            since = Some(if *in_part { out.position() } else { first });
        }
        if let Some(since) = since {
            out.abandon(since);
        }
        outcome
    });
}

/// Returns a message's id.
fn id<'v>(message: Value<'v>) -> Option<&'v str> {
    message.object("info").unwrap_or(message).non_empty("id")
}

/// Beginnings of the placeholder titles that OpenCode gives to untitled sessions.
const NO_TITLES: &[&str] = &["New session - ", "Child session - "];

/// Reads the session's own fields.
fn header(info: Value<'_>, out: &mut Stream) {
    out.widen(chat::millis(info.object("time"), "created"));
    let location = info.object("location").and_then(|location| location.text("directory"));
    out.set_cwd(info.text("directory").or(location));
    out.set_version(info.text("version"));
    let title = info.text("title").unwrap_or("");
    if !NO_TITLES.iter().any(|start| title.starts_with(start)) {
        out.title(TitleFrom::Agent, title);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn check(path: &str, document: &str, want: Option<(&str, Option<&str>)>) {
        let document = serde_json::from_str(document).expect("json");
        let head = Head { path: Path::new(path), objects: Vec::new(), document, is_list: false };
        let got = sniff(&head).map(|claim| (claim.native_id, claim.parent));
        let want = want.map(|(id, parent)| (id.to_owned(), parent.map(str::to_owned)));
        assert_eq!(got, want, "{path}");
    }

    #[test]
    fn sessions_are_told_from_what_lies_beside_them() {
        let session = r#"{"id":"ses_1","projectID":"p","parentID":"ses_0","time":{"created":1}}"#;
        check("ses_1.json", session, Some(("ses_1", Some("ses_0"))));
        let export = format!(r#"{{"info":{session},"messages":null}}"#);
        check("export.json", &export, Some(("ses_1", Some("ses_0"))));
        check("ses_2.json", r#"{"info":null}"#, Some(("ses_2", None)));
        let line = r#"{"info":{"id":"msg_1","sessionID":"ses_3","role":"user"},"parts":[]}"#;
        check("early.jsonl", line, Some(("ses_3", None)));
        for other in [
            r#"{"info":null,"openapi":"3.1"}"#,
            r#"{"id":"p","worktree":"/","time":{"created":1}}"#,
            r#"{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1}}"#,
            r#"{"id":"prt_1","messageID":"msg_1","type":"text","text":"x"}"#,
        ] {
            check("other.json", other, None);
        }
    }
}
