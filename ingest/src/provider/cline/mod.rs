//! Cline: the documents of its sessions (`~/.cline/data/sessions/<id>/<id>.messages.json`, decoded
//! in `message.rs`) with the manifest `<id>.json` next to them, and the tasks of its editor
//! extension (`tasks/<id>/ui_messages.json`, decoded in `task.rs`); see docs/formats.md#cline.
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

use crate::provider::format::{Claim, Format, Head, Places, Quirks, Reader, Tally};
use crate::provider::shared::document::{self, Document, Layout};
use crate::stream::{Stream, TitleFrom};

pub(super) const FORMAT: Format = Format {
    provider: Provider::Cline,
    // Messages have ids, but the log names the session from which it was forked.
    unique_ids: false,
    roots,
    sniff,
    quirks: Quirks {
        companion: Some(manifest_path),
        is_beside_log: Some(|name, has| {
            let session = name.strip_suffix(".compaction.json");
            session.is_some_and(|session| has(&format!("{session}.messages.json")))
        }),
        ..Quirks::NONE
    },
    reader: Reader::Document(read),
};

/// File name of a task's log.
const TASK: &str = "ui_messages.json";

/// Configuration folders of the editors in which the extension keeps its tasks.
const EDITORS: &[&str] = &["Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf"];

fn roots(places: &Places<'_>) -> Vec<PathBuf> {
    let data = places.set("CLINE_DATA_DIR").unwrap_or_else(|| places.home(".cline/data"));
    let sessions = places.set("CLINE_SESSION_DATA_DIR").unwrap_or_else(|| data.join("sessions"));
    let tasks = "User/globalStorage/saoudrizwan.claude-dev/tasks";
    let mut roots = vec![sessions, data.join("tasks")];
    for editor in EDITORS {
        roots.push(places.config(&format!("{editor}/{tasks}")));
        roots.push(places.home(&format!("Library/Application Support/{editor}/{tasks}")));
        roots.extend(places.set("APPDATA").map(|data| data.join(editor).join(tasks)));
    }
    roots.push(places.home(".vscode-server/data").join(tasks));
    roots
}

fn sniff(head: &Head<'_>) -> Option<Claim> {
    match &head.document {
        Some(document) => {
            let has = |key: &str| document.contains_key(key);
            let is_ours =
                has("messages") && has("sessionId") && has("version") && has("updated_at");
            let is_copy = has("source_message_count")
                || head.path.to_string_lossy().ends_with(".compaction.json");
            let id = document.get("sessionId").and_then(Json::as_str).filter(|id| !id.is_empty());
            (is_ours && !is_copy).then(|| session(id, head))
        }
        None => task(head),
    }
}

fn session(id: Option<&str>, head: &Head<'_>) -> Claim {
    let stem = head.stem();
    let id = id.unwrap_or_else(|| stem.strip_suffix(".messages").unwrap_or(stem));
    // Sessions of other agents are in the folder of the root session, as `<root>__<agent>` and
    // `<root>__teamtask__<agent>__<task>`.
    let folder = head.path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let (root, agent) =
        folder.and_then(|root| Some((root, id.strip_prefix(root)?.strip_prefix("__")?))).unzip();
    let manifest = manifest(head.path).unwrap_or_default();
    let fork = manifest["metadata"]["fork"]["forkedFromSessionId"].as_str();
    let relation = match (root, fork) {
        (Some(_), _) => Some(Relation::SubagentOf),
        (None, Some(_)) => Some(Relation::ForkedFrom),
        (None, None) => None,
    };
    Claim {
        provider: Provider::Cline,
        native_id: id.to_owned(),
        agent_id: agent.map(|agent| agent.strip_prefix("teamtask__").unwrap_or(agent).to_owned()),
        parent: root.or(fork).map(str::to_owned),
        relation,
        first_record: None,
    }
}

fn task(head: &Head<'_>) -> Option<Claim> {
    let first = head.objects.first()?;
    let is_ours = head.path.file_name().is_some_and(|name| name == TASK)
        && first["ts"].is_number()
        && matches!(first["type"].as_str(), Some("say" | "ask"));
    let folder = head.path.parent()?.file_name()?.to_string_lossy();
    is_ours.then(|| Claim {
        provider: Provider::Cline,
        native_id: folder.into_owned(),
        agent_id: None,
        parent: None,
        relation: None,
        first_record: None,
    })
}

/// Returns the path of a session's manifest: `<id>/<id>.json`. Sessions of other agents in that
/// folder share it.
pub(super) fn manifest_path(log: &Path) -> Option<PathBuf> {
    let folder = log.parent()?;
    Some(folder.join(format!("{}.json", folder.file_name()?.to_string_lossy())))
}

fn manifest(log: &Path) -> Option<Json> {
    serde_json::from_slice(&std::fs::read(manifest_path(log)?).ok()?).ok()
}

const SESSION: Layout = Layout { list: Some("messages"), header: &[] };

const TASK_LIST: Layout = Layout { list: None, header: &[] };

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    if document::is_list(bytes) {
        let document = Document::read(bytes, &TASK_LIST, out, tally);
        let mut decoder = task::Decoder::default();
        document::each(bytes, &document.records, out, tally, &mut |message, _, at, out| {
            decoder.message(message, at, out)
        });
        return;
    }
    let document = Document::read(bytes, &SESSION, out, tally);
    let path = PathBuf::from(&out.session.source_path);
    let manifest = manifest(&path).unwrap_or_default();
    out.set_cwd(manifest["cwd"].as_str());
    out.set_repository(manifest["workspace_root"].as_str());
    // The title names the whole session, not the part of another agent.
    if out.session.agent_id.is_none() {
        out.title(TitleFrom::Summary, manifest["metadata"]["title"].as_str().unwrap_or(""));
    }
    let mut decoder = message::Decoder::default();
    document::each(bytes, &document.records, out, tally, &mut |message, _, at, out| {
        decoder.message(message, at, out)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, document: Option<&str>, first: &str, want: Option<(&str, Option<&str>)>) {
        let head = Head {
            path: Path::new(path),
            objects: serde_json::from_str(first).into_iter().collect(),
            document: document.map(|json| serde_json::from_str(json).expect("json")),
            is_list: false,
        };
        let got = sniff(&head).map(|claim| (claim.native_id, claim.agent_id));
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
