//! Reads the chats of VS Code and of editors derived from it, mostly with GitHub Copilot, from
//! `<editor>/User/workspaceStorage/<hash>/chatSessions/<id>.json` or `.jsonl`, and those of windows
//! without a folder from `<editor>/User/globalStorage/emptyWindowChatSessions`
//! (docs/formats.md#vs-code-chat).
//!
//! A `.json` file is the chat as one document. A `.jsonl` file is a log of operations on such a
//! document, whose first line is the document as it was (`operations.rs`):
//!
//! ```text
//! {"version":3,"sessionId":"...","creationDate":1792570000000,"requests":[{"requestId":"...",...}]}
//!
//! {"kind":0,"v":{"version":3,"sessionId":"...","requests":[]}}
//! {"kind":2,"k":["requests"],"v":[{"requestId":"...","message":{...},"response":[...]}]}
//! {"kind":1,"k":["requests",0,"result"],"v":{"metadata":{...}}}
//! ```

mod operations;
mod request;
mod tool;

use std::path::{Path, PathBuf};

use schemas::Provider;
use serde_json::Value as Json;

use self::operations::{ChatReplay, HEADER, REQUESTS};
use self::request::{RequestDecoder, request_identity};
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{self, Document, DocumentLayout};
use crate::provider::shared::file_uri::file_uri_path;
use crate::provider::shared::{chat, sidecar};
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, LineItem, Parser, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::VsCode,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { is_sidecar: Some(|name, _| name == WORKSPACE_FILE), ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

const LAYOUT: DocumentLayout = DocumentLayout { list: Some(REQUESTS), header: HEADER };

/// Name of the file that names the folder of a workspace.
const WORKSPACE_FILE: &str = "workspace.json";

/// Maximum size in bytes of that file.
const MAX_WORKSPACE_FILE_BYTES: u64 = 64 << 10;

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let mut roots = places.editor_paths("globalStorage/emptyWindowChatSessions");
    for storage in places.editor_paths("workspaceStorage") {
        // A workspace has files of many extensions next to its chats.
        let workspaces = std::fs::read_dir(storage).into_iter().flatten().flatten();
        let chats = workspaces.map(|workspace| workspace.path().join("chatSessions"));
        roots.extend(chats.filter(|chats| chats.is_dir()));
    }
    roots
}

/// Claims a chat by its fields, or by the first operation of its log.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.first();
    if let Some(first) = first
        && first["kind"] == 0
        && first["v"].get(REQUESTS).is_some_and(Json::is_array)
    {
        return Some(claim_chat(head, first["v"]["sessionId"].as_str(), &first["v"][REQUESTS]));
    }

    let fields = head.document()?;
    let is_chat = fields.contains_key(REQUESTS)
        && ["responderUsername", "initialLocation", "requesterUsername"]
            .iter()
            .any(|key| fields.contains_key(*key));
    let id = fields.get("sessionId").and_then(Json::as_str);
    is_chat.then(|| claim_chat(head, id, fields.get(REQUESTS).unwrap_or(&Json::Null)))
}

/// Returns the claim of a chat with these requests, which may be unknown.
fn claim_chat(head: &LogHead<'_>, id: Option<&str>, requests: &Json) -> SessionClaim {
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| head.file_stem());
    SessionClaim {
        first_record: requests[0]["requestId"].as_str().map(|id| request_identity(id, 0)),
        ..SessionClaim::new(Provider::VsCode, id)
    }
}

/// Decodes a chat of either form.
fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let mut decoder = RequestDecoder::default();
    if is_operation_log(bytes) {
        return decode_operations(bytes, &mut decoder, out, tally);
    }

    let chat = Document::read(bytes, &LAYOUT, out, tally);
    chat.with_header(|header| decode_header(header, out));
    chat.for_each_record(out, tally, &mut |request, raw, at, out| {
        decoder.decode_request(request, raw, at, out);
        RecordOutcome::Events
    });
}

/// Returns whether a log begins with an operation.
fn is_operation_log(bytes: &[u8]) -> bool {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let mut is_operation = false;
    Parser::default().for_each_item(&bytes[..end], &mut |found| {
        if let LineItem::Object(object, _) = found {
            is_operation |= object.int("kind").is_some() && object.field("v").is_some();
        }
    });
    is_operation
}

/// Replays the operations of a log, and decodes the chat that they give.
fn decode_operations(
    bytes: &[u8],
    decoder: &mut RequestDecoder,
    out: &mut Stream,
    tally: &mut RecordTally,
) {
    let mut replay = ChatReplay::default();
    document::for_each_line(bytes, out, tally, &mut |_, span, out, tally| {
        tally.count_object(replay.apply_line(span.record_bytes(bytes), span.position(), out));
    });

    let mut parser = Parser::default();
    parser.for_each_item(replay.header().as_bytes(), &mut |found| {
        if let LineItem::Object(header, _) = found {
            decode_header(header, out);
        }
    });
    for request in replay.requests() {
        let raw = request.value.to_string();
        let first = out.position();
        parser.for_each_item(raw.as_bytes(), &mut |found| match found {
            LineItem::Object(object, _) => {
                decoder.decode_request(object, raw.as_bytes(), request.at, out);
            }
            LineItem::Problem(kind, _, message) => out.push_problem(request.at, kind, message),
        });
        if request.is_removed {
            out.abandon_from(first);
        }
    }
}

/// Reads the fields that describe a chat.
fn decode_header(header: Value<'_>, out: &mut Stream) {
    for key in ["creationDate", "lastMessageDate"] {
        out.extend_time_range(chat::read_millis(Some(header), key));
    }
    for key in ["computedTitle", "customTitle"] {
        out.offer_title(TitleFrom::Agent, header.text(key).unwrap_or(""));
    }
    let folder = header.text("workingDirectory").and_then(file_uri_path);
    let folder = folder.or_else(|| workspace_folder(Path::new(&out.session.source_path)));
    out.set_cwd(folder.as_deref());
}

/// Returns the folder of the workspace in whose storage a chat is. `None` if the window had no
/// folder, or if the chat is in another place.
fn workspace_folder(log: &Path) -> Option<String> {
    let chats = log.parent().filter(|chats| chats.ends_with("chatSessions"))?;
    let workspace =
        sidecar::read_json(&chats.parent()?.join(WORKSPACE_FILE), MAX_WORKSPACE_FILE_BYTES)?;
    if let Some(folder) = workspace["folder"].as_str() {
        return file_uri_path(folder);
    }
    // A workspace of several folders is a file in one of them.
    let file = ["workspace", "configuration"].iter().find_map(|key| workspace[key].as_str())?;
    Some(Path::new(&file_uri_path(file)?).parent()?.to_str()?.to_owned())
}
