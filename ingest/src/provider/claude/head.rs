//! Recognizes a Claude log by its first records, and reads the session's id and lineage from them
//! (docs/formats.md#claude-code).

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;

use crate::provider::format::{Claim, Head};
use crate::provider::shared::identity::{is_uuid, uuid_identity};

/// Types of records in a Claude log that are not part of the chain of messages.
const SIDE_TYPES: &[&str] = &[
    "file-history-snapshot",
    "summary",
    "queue-operation",
    "mode",
    "permission-mode",
    "last-prompt",
    "ai-title",
    "custom-title",
    "agent-name",
    "pr-link",
    "bridge-session",
    "progress",
    "attachment",
    "system",
];

pub(super) fn sniff(head: &Head<'_>) -> Option<Claim> {
    let ours = head.objects.iter().filter(|object| is_record(object)).collect::<Vec<_>>();
    if ours.is_empty() {
        return None;
    }
    let first = |key: &str| ours.iter().find_map(|object| object[key].as_str());
    let session = first("sessionId");
    let sidechain = |object: &&&Json| object["isSidechain"] == true;
    let agent = first("agentId").filter(|_| ours.iter().any(|object| sidechain(&object)));
    let first_record = ours.iter().find_map(|object| {
        uuid_identity(object["forkedFrom"]["messageUuid"].as_str().or(object["uuid"].as_str()))
    });
    if let Some(agent) = agent {
        // `<sessionId>/subagents/agent-<id>.jsonl`: the folder names the parent.
        let folder = head
            .path
            .parent()
            .filter(|dir| dir.ends_with("subagents"))
            .and_then(|dir| dir.parent()?.file_name()?.to_str());
        let session = folder.filter(|name| is_uuid(name)).or(session);
        return Some(Claim {
            provider: Provider::Claude,
            native_id: format!("agent-{agent}"),
            agent_id: Some(agent.to_owned()),
            parent: session.map(str::to_owned),
            relation: session.map(|_| Relation::SubagentOf),
            first_record,
        });
    }
    // A resumed log of version 1.0 begins with records of the old session, so the file name
    // decides.
    let stem = head.stem();
    let native_id = if is_uuid(stem) { stem } else { session.unwrap_or(stem) };
    let is_other = |session: &&str| *session != native_id && is_uuid(session);
    // `/branch` and `--fork-session` of version 2.1 name the original in every copied record.
    let original = ours.iter().find_map(|object| object["forkedFrom"]["sessionId"].as_str());
    let forked = original.filter(is_other).map(|id| (id, Relation::ForkedFrom));
    let resumed = session.filter(is_other).map(|id| (id, Relation::ResumedFrom));
    let (parent, relation) = forked.or(resumed).unzip();
    Some(Claim {
        provider: Provider::Claude,
        native_id: native_id.to_owned(),
        agent_id: None,
        parent: parent.map(str::to_owned),
        relation,
        first_record,
    })
}

/// Returns whether a record was written by Claude Code, not by an agent that borrowed its shape.
fn is_record(object: &Json) -> bool {
    let Some(kind) = object["type"].as_str() else { return false };
    if object.get("agentSlug").is_some() || object.get("systemPayload").is_some() {
        return false;
    }
    match kind {
        "user" | "assistant" => {
            let message = &object["message"];
            (message["role"].is_string() || message["content"].is_array())
                && message.get("parts").is_none()
                && message.get("content").is_some()
        }
        _ => {
            SIDE_TYPES.contains(&kind)
                && ["sessionId", "leafUuid", "messageId"].iter().any(|key| object[key].is_string())
        }
    }
}
