//! Reads the sessions and tasks of Cline (docs/formats.md#cline).
//!
//! A session is a document with the manifest `<id>.json` next to it:
//! `~/.cline/data/sessions/<id>/<id>.messages.json`, decoded in `message.rs`. A task of the editor
//! extension is a list: `tasks/<id>/ui_messages.json`, decoded in `task.rs`.
//!
//! Two kinds of files are not logs. `<id>.compaction.json` holds what the model sees instead of a
//! long session. A task's `api_conversation_history.json` is the same conversation as it was sent
//! to the model.

mod message;
mod task;

use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;

use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{self, Document, DocumentLayout};
use crate::provider::shared::sidecar;
use crate::stream::{Stream, TitleFrom};

/// Maximum size in bytes of a manifest.
const MAX_MANIFEST_BYTES: u64 = 4 << 20;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Cline,
    // Messages have ids, but the log names the session from which it was forked.
    has_unique_ids: false,
    decoder_version: 3,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| manifest_path(log).into_iter().collect()),
        is_sidecar: Some(|name, has| {
            let session = name.strip_suffix(".compaction.json");
            session.is_some_and(|session| has(&format!("{session}.messages.json")))
        }),
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

/// File name of a task's log.
const TASK_FILE: &str = "ui_messages.json";

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let data = places.env_path("CLINE_DATA_DIR").unwrap_or_else(|| places.home_path(".cline/data"));
    let sessions =
        places.env_path("CLINE_SESSION_DATA_DIR").unwrap_or_else(|| data.join("sessions"));
    let mut roots = vec![sessions, data.join("tasks")];
    roots.extend(places.editor_paths("globalStorage/saoudrizwan.claude-dev/tasks"));
    roots
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let Some(document) = head.document() else { return claim_task(head) };
    let is_session = ["messages", "sessionId", "version", "updated_at"]
        .iter()
        .all(|key| document.contains_key(*key));
    let is_compaction = document.contains_key("source_message_count")
        || head.path.to_string_lossy().ends_with(".compaction.json");
    if !is_session || is_compaction {
        return None;
    }
    let id = document.get("sessionId").and_then(Json::as_str).filter(|id| !id.is_empty());
    Some(claim_session(id, head))
}

/// Claims the document of a session. Without an `id`, its file name is the id.
fn claim_session(id: Option<&str>, head: &LogHead<'_>) -> SessionClaim {
    let stem = head.file_stem();
    let id = id.unwrap_or_else(|| stem.strip_suffix(".messages").unwrap_or(stem));
    // Sessions of other agents are in the folder of the root session, as `<root>__<agent>` and
    // `<root>__teamtask__<agent>__<task>`.
    let folder = head.path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let agent = folder.and_then(|root| id.strip_prefix(root)?.strip_prefix("__"));
    let root = if agent.is_some() { folder } else { None };

    let manifest = read_manifest(head.path).unwrap_or_default();
    let fork = manifest["metadata"]["fork"]["forkedFromSessionId"].as_str();
    let parents = [(Relation::SubagentOf, root), (Relation::ForkedFrom, fork)];
    SessionClaim {
        agent_id: agent.map(|agent| agent.strip_prefix("teamtask__").unwrap_or(agent).to_owned()),
        ..SessionClaim::new(Provider::Cline, id).with_parent(&parents)
    }
}

/// Claims the messages of a task. The folder is named after the task.
fn claim_task(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.first()?;
    let is_task = head.path.file_name().is_some_and(|name| name == TASK_FILE)
        && first["ts"].is_number()
        && matches!(first["type"].as_str(), Some("say" | "ask"));
    if !is_task {
        return None;
    }
    let folder = head.path.parent()?.file_name()?.to_string_lossy();
    Some(SessionClaim::new(Provider::Cline, folder))
}

/// Returns the path of a session's manifest: `<id>/<id>.json`. Sessions of other agents in that
/// folder share it.
pub(super) fn manifest_path(log: &Path) -> Option<PathBuf> {
    let folder = log.parent()?;
    Some(folder.join(format!("{}.json", folder.file_name()?.to_string_lossy())))
}

/// Reads the manifest of a session.
fn read_manifest(log: &Path) -> Option<Json> {
    sidecar::read_json(&manifest_path(log)?, MAX_MANIFEST_BYTES)
}

const SESSION_LAYOUT: DocumentLayout = DocumentLayout { list: Some("messages"), header: &[] };

const TASK_LAYOUT: DocumentLayout = DocumentLayout { list: None, header: &[] };

/// Decodes the list of a task, or the document of a session with its manifest.
fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    if document::is_list(bytes) {
        let document = Document::read(bytes, &TASK_LAYOUT, out, tally);
        let mut decoder = task::ClineTaskDecoder::default();
        document.for_each_record(out, tally, &mut |message, _, at, out| {
            decoder.decode_message(message, at, out)
        });
        return;
    }

    let document = Document::read(bytes, &SESSION_LAYOUT, out, tally);
    let path = PathBuf::from(&out.session.source_path);
    let manifest = read_manifest(&path).unwrap_or_default();
    out.set_cwd(manifest["cwd"].as_str());
    out.set_repository(manifest["workspace_root"].as_str());
    // The title names the whole session, not the part of another agent.
    if out.session.agent_id.is_none() {
        out.offer_title(TitleFrom::Summary, manifest["metadata"]["title"].as_str().unwrap_or(""));
    }

    let mut decoder = message::ClineSessionDecoder::default();
    document.for_each_record(out, tally, &mut |message, _, at, out| {
        decoder.decode_message(message, at, out)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, document: Option<&str>, first: &str, want: Option<(&str, Option<&str>)>) {
        let head = LogHead {
            path: Path::new(path),
            objects: serde_json::from_str(first).into_iter().collect(),
            fields: document.map(|json| serde_json::from_str(json).expect("json")),
            is_list: false,
        };
        let got = claim_log(&head).map(|claim| (claim.native_id, claim.agent_id));
        let want = want.map(|(id, agent)| (id.to_owned(), agent.map(str::to_owned)));
        assert_eq!(got, want, "{path}");
    }

    #[test]
    fn sessions_and_tasks_are_told_from_their_copies() {
        let session = r#"{"version":1,"updated_at":"t","sessionId":"1_a","messages":null}"#;
        check("1_a.messages.json", Some(session), "", Some(("1_a", None)));
        check("1_a.compaction.json", Some(session), "", None);
        let agent =
            r#"{"version":1,"updated_at":"t","sessionId":"1_a__teamtask__bo__x","messages":null}"#;
        let want = Some(("1_a__teamtask__bo__x", Some("bo__x")));
        check("1_a/bo__x.messages.json", Some(agent), "", want);
        let gemini = r#"{"sessionId":"g","projectHash":"h","messages":null}"#;
        check("session.json", Some(gemini), "", None);
        let said = r#"{"ts":1,"type":"say","say":"task","text":"x"}"#;
        check("tasks/17/ui_messages.json", None, said, Some(("17", None)));
        check("tasks/17/other.json", None, said, None);
        check("tasks/17/ui_messages.json", None, r#"{"role":"user"}"#, None);
    }
}
