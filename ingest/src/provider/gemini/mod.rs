//! Reads the session logs of Gemini CLI from `~/.gemini/tmp/<project>/chats/session-*`
//! (docs/formats.md#gemini-cli).
//!
//! A `.json` log is one document with a list of messages. A `.jsonl` log holds the header, messages
//! and updates of earlier messages:
//!
//! ```text
//! {"sessionId":"...","projectHash":"...","startTime":"...","lastUpdated":"...","kind":"main"}
//! {"id":"...","timestamp":"...","type":"user","content":[{"text":"..."}]}
//! {"id":"...","type":"gemini","content":"...","thoughts":[...],"toolCalls":[...],"tokens":{...}}
//! {"$set":{"lastUpdated":"..."}}
//! ```
//!
//! Earlier content may change in both forms, so a log is read as a whole every time.

mod lines;
mod message;
mod place;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;

use self::lines::read_header;
use self::message::GeminiDecoder;
use crate::provider::copied::CONTINUES_FIELD;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{self, Document, DocumentLayout};
use crate::stream::Stream;
use crate::text::json::JsonFields;
use crate::text::names::is_uuid;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Gemini,
    has_unique_ids: true,
    decoder_version: 4,
    roots: |places| vec![home_folder(places).join("tmp")],
    sniff: claim_log,
    quirks: Quirks::NONE,
    reader: LogReader::Document(decode_log),
};

/// Returns the folder of the agent. The variable replaces the home folder.
pub(super) fn home_folder(places: &AgentFolders<'_>) -> PathBuf {
    match places.env_path("GEMINI_CLI_HOME") {
        Some(home) => home.join(".gemini"),
        None => places.home_path(".gemini"),
    }
}

/// Claims a log by its header: the fields of a document, or the first line.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let header = match head.document() {
        Some(document) => document,
        None => head.objects.first()?.as_object()?,
    };
    let is_gemini = header.contains_key("sessionId")
        && (header.contains_key("projectHash") || header.contains_key("startTime"))
        && !header.contains_key("type");
    if !is_gemini {
        return None;
    }

    let id = header.get("sessionId").and_then(Json::as_str).filter(|id| !id.is_empty());
    let is_subagent = header.get("kind").and_then(Json::as_str) == Some("subagent");
    // The log of a subagent is in a folder that is named after its parent.
    let folder = head.path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let parent = folder.filter(|name| is_subagent && is_uuid(name));
    let claim = SessionClaim {
        agent_id: parent.map(|_| head.file_stem().to_owned()),
        parent: parent.map(str::to_owned),
        relation: is_subagent.then_some(Relation::SubagentOf),
        ..SessionClaim::new(Provider::Gemini, id.unwrap_or_else(|| head.file_stem()))
    };
    Some(claim.continuing(header.get(CONTINUES_FIELD).and_then(Json::as_str)))
}

/// The field of a document that holds the messages.
const MESSAGES: &str = "messages";

const LAYOUT: DocumentLayout = DocumentLayout {
    list: Some(MESSAGES),
    header: &["sessionId", "startTime", "lastUpdated", "summary", "kind", "directories"],
};

/// Decodes a log of either form.
fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let cwd = place::find_cwd(Path::new(&out.session.source_path));
    out.set_cwd(cwd.as_deref());

    let (messages, dropped) = if document::is_lines(bytes, MESSAGES) {
        lines::collect_messages(bytes, out, tally)
    } else {
        let document = Document::read(bytes, &LAYOUT, out, tally);
        document.with_header(|fields| read_header(fields, out));
        (document.records, HashSet::new())
    };

    let mut decoder = GeminiDecoder::default();
    // Position at which the current run of removed messages began.
    let mut dropped_from = None;
    document::for_each_record(bytes, &messages, out, tally, &mut |message, _, at, out| {
        out.begin_message(message.non_empty("id"));
        let first = out.position();
        decoder.decode_message(message, at, out);
        if dropped.contains(&at.offset) {
            out.abandon_from(*dropped_from.get_or_insert(first));
        } else {
            dropped_from = None;
        }
        RecordOutcome::Events
    });
}
