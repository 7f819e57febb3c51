//! Reads the documents of `opencode export` and the two stores of OpenCode
//! (docs/formats.md#opencode).
//!
//! ```text
//! {"info":{"id":"ses_...","projectID":"...","time":{...},...},
//!  "messages":[{"info":{...},"parts":[...]}]}
//! ```
//!
//! Sessions of the stores are assembled into the bytes of such a document: from the tree of files
//! before 1.2 (`tree.rs`) or from the database of later versions (`database.rs`). Versions 1 write
//! a message as `{info, parts}` (`message.rs`), versions 2 as one object (`v2.rs`).

mod database;
mod events;
mod message;
mod record;
mod rows;
mod tree;
mod v2;

use std::path::PathBuf;

use schemas::Provider;
use schemas::event::Relation;
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_64;

use self::message::OpencodeDecoder;
use self::record::{UNREADABLE_RECORD, report_damage};
use crate::provider::copied::CONTINUES_SLUG;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::document::{self, Document, DocumentLayout};
use crate::stream::{RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};

pub(crate) const FORMAT: LogFormat = LogFormat {
    provider: Provider::OpenCode,
    // A fork copies messages under new ids, so messages are identified by content.
    has_unique_ids: false,
    decoder_version: 3,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        has_descending_ids: true,
        assemblies: &[database::ASSEMBLY, tree::ASSEMBLY],
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let data = places.data_path("opencode");
    let mut roots = database::find_databases(&data);
    // Also if it was deleted: what was read of it is gone.
    let usual = data.join("opencode.db");
    if !roots.contains(&usual) {
        roots.push(usual);
    }
    // A file name in the variable is relative to the data folder.
    roots.extend(places.env_path("OPENCODE_DB").map(|db| data.join(db)));
    roots.push(data.join("storage/session"));
    roots
}

/// Claims a document by the fields of its session or of a message in it.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    match head.document() {
        Some(document) => match document.get("info") {
            Some(Json::Object(info)) => claim_session(info, head)
                .or_else(|| claim_message(info, head))
                .or_else(|| claim_damaged_session(info, head)),
            // The session's fields exceed the part of the file that was read, so the name decides.
            Some(Json::Null) => {
                head.file_stem().starts_with("ses_").then(|| session_claim(&Map::new(), head))
            }
            Some(_) => None,
            // A session's own file in the tree.
            None => claim_session(document, head),
        },
        // The early form, one message per line.
        None => claim_message(head.objects.first()?.get("info")?.as_object()?, head),
    }
}

/// Returns the claim of a document with these session fields.
fn claim_session(info: &Map<String, Json>, head: &LogHead<'_>) -> Option<SessionClaim> {
    let is_session = has_text(info, "id")
        && has_text(info, "projectID")
        && info.get("time").is_some_and(Json::is_object)
        && !has_text(info, "role");
    is_session.then(|| session_claim(info, head))
}

/// Returns the claim of a log with these message fields, which also name the session.
fn claim_message(info: &Map<String, Json>, head: &LogHead<'_>) -> Option<SessionClaim> {
    let role = info.get("role").and_then(Json::as_str);
    if !matches!(role, Some("user" | "assistant")) || !has_text(info, "id") {
        return None;
    }
    let session_id = info.get("sessionID")?.as_str()?;
    let mut session = Map::new();
    session.insert("id".to_owned(), session_id.into());
    Some(session_claim(&session, head))
}

/// Returns the claim of a session of a tree whose own file is damaged. Its name is the id.
fn claim_damaged_session(info: &Map<String, Json>, head: &LogHead<'_>) -> Option<SessionClaim> {
    let is_damaged = info.get("type").and_then(Json::as_str) == Some(UNREADABLE_RECORD)
        && info.contains_key("damage");
    (is_damaged && head.file_stem().starts_with("ses_")).then(|| session_claim(&Map::new(), head))
}

fn has_text(info: &Map<String, Json>, key: &str) -> bool {
    info.get(key).is_some_and(Json::is_string)
}

/// Returns a field that is a non-empty string.
fn non_empty<'i>(info: &'i Map<String, Json>, key: &str) -> Option<&'i str> {
    info.get(key).and_then(Json::as_str).filter(|text| !text.is_empty())
}

/// Returns the claim of a log of the session with these fields.
fn session_claim(info: &Map<String, Json>, head: &LogHead<'_>) -> SessionClaim {
    // Some published logs have their ids masked.
    let id =
        non_empty(info, "id").filter(|id| *id != "REDACTED").unwrap_or_else(|| head.file_stem());
    let parent = non_empty(info, "parentID");
    let original = non_empty(info, "forkSessionID");
    let parents = [(Relation::SubagentOf, parent), (Relation::ForkedFrom, original)];
    let claim = SessionClaim {
        // The parent's call refers to the subagent by this id.
        agent_id: parent.map(|_| id.to_owned()),
        first_record: head.document().and_then(first_message_identity),
        ..SessionClaim::new(Provider::OpenCode, id).with_parent(&parents)
    };
    // The database keeps no field that OpenCode does not know.
    claim.continuing(non_empty(info, "slug").and_then(|slug| slug.strip_prefix(CONTINUES_SLUG)))
}

/// Returns the identity of the first message: role, time and beginning. A fork that does not name
/// its original begins with the same message.
fn first_message_identity(document: &Map<String, Json>) -> Option<u64> {
    let first = document.get("messages")?.get(0)?;
    let info = first.get("info").unwrap_or(first);
    let role = ["role", "type"].iter().find_map(|key| info.get(key)?.as_str())?;
    let created = info.get("time")?.get("created")?.as_i64()?;
    let parts = first.get("parts").or_else(|| first.get("content")).and_then(Json::as_array);
    let texts = parts.into_iter().flatten().chain([first]).filter_map(|part| part.get("text"));
    let beginning = texts.filter_map(Json::as_str).find(|text| !text.is_empty())?;
    Some(xxh3_64(format!("{role} {created} {beginning}").as_bytes()) | 1)
}

/// The field of an export that holds the messages.
const MESSAGES: &str = "messages";

/// Header fields of an export, and of a session's own file, which has no messages.
const LAYOUT: DocumentLayout = DocumentLayout {
    list: Some(MESSAGES),
    header: &["info", "directory", "title", "version", "time"],
};

/// Decodes a document, or a file with one message per line.
fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let mut decoder = OpencodeDecoder::default();
    if document::is_lines(bytes, MESSAGES) {
        return document::for_each_line_record(bytes, out, tally, &mut |message, _, at, out| {
            out.begin_message(message_id(message));
            decoder.decode_message(message, at, out)
        });
    }

    let document = Document::read(bytes, &LAYOUT, out, tally);
    let mut revert = None;
    document.with_header(|fields| {
        let info = fields.object("info").unwrap_or(fields);
        decode_header(info, out);
        report_damage(info, RecordAt::default(), out);
        revert = info.object("revert").and_then(Revert::parse);
    });

    let mut abandoned_from = None;
    document.for_each_record(out, tally, &mut |message, _, at, out| {
        let id = message_id(message);
        out.begin_message(id);
        let first = out.position();
        let outcome = decoder.decode_message(message, at, out);
        if let Some(revert) = &revert
            && id == Some(revert.message_id.as_str())
        {
            abandoned_from = Some(if revert.is_partial { out.position() } else { first });
        }
        if let Some(first) = abandoned_from {
            out.abandon_from(first);
        }
        outcome
    });
}

/// The message that the user went back to. All later messages are abandoned.
struct Revert {
    message_id: String,
    /// True if only a part of the message is undone. The message itself is then kept.
    is_partial: bool,
}

impl Revert {
    /// Reads the field `revert` of a session. Returns `None` if it names no message.
    fn parse(revert: Value<'_>) -> Option<Self> {
        Some(Self {
            message_id: revert.non_empty("messageID")?.to_owned(),
            is_partial: revert.field("partID").is_some(),
        })
    }
}

/// Returns a message's id.
fn message_id<'v>(message: Value<'v>) -> Option<&'v str> {
    message.object("info").unwrap_or(message).non_empty("id")
}

/// Beginnings of the placeholder titles that OpenCode gives to untitled sessions.
const PLACEHOLDER_TITLES: &[&str] = &["New session - ", "Child session - "];

/// Reads the session's own fields.
fn decode_header(info: Value<'_>, out: &mut Stream) {
    out.extend_time_range(chat::read_millis(info.object("time"), "created"));
    let location = info.object("location").and_then(|location| location.text("directory"));
    out.set_cwd(info.text("directory").or(location));
    out.set_version(info.text("version"));

    let title = info.text("title").unwrap_or("");
    if !PLACEHOLDER_TITLES.iter().any(|start| title.starts_with(start)) {
        out.offer_title(TitleFrom::Agent, title);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn check(path: &str, document: &str, want: Option<(&str, Option<&str>)>) {
        let document = serde_json::from_str(document).expect("json");
        let head = LogHead {
            path: Path::new(path),
            objects: Vec::new(),
            fields: document,
            is_list: false,
        };
        let got = claim_log(&head).map(|claim| (claim.native_id, claim.parent));
        let want = want.map(|(id, parent)| (id.to_owned(), parent.map(str::to_owned)));
        assert_eq!(got, want, "{path}");
    }

    #[test]
    fn sessions_are_told_from_the_files_next_to_them() {
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
