//! Recognizes a Claude log by its first records, and reads the session's id and lineage from them
//! (docs/formats.md#claude-code).

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;
use simd_json::prelude::*;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::provider::copied::continued_session;
use crate::provider::format::{LogHead, SessionClaim};
use crate::provider::shared::identity::uuid_identity;
use crate::text::names::is_uuid;

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

pub(super) fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let records: Vec<&Json> =
        head.objects.iter().filter(|object| is_claude_record(object)).collect();
    if records.is_empty() {
        return None;
    }
    let session = first_text(&records, "sessionId");
    let first_record = records.iter().find_map(|record| record_identity(record));
    let first_response = first_response(&records);
    if let Some(agent) = find_subagent(head, &records) {
        let claim = claim_subagent(head, agent, session, first_record);
        return Some(SessionClaim { first_response, ..claim });
    }

    // `/branch` and `--fork-session` of version 2.1 name the original in every copied record.
    let original = records.iter().find_map(|object| object["forkedFrom"]["sessionId"].as_str());
    let claim = claim_session(head.file_stem(), session, original)
        .continuing(continued_session(records.iter().copied()));
    Some(SessionClaim { first_record, first_response, ..claim })
}

/// Returns whether a record is a response of the session itself, not of a subagent. The id of the
/// session, the identity of the first record and the original of a fork are in this record or an
/// earlier one. The log of a subagent has no such record.
pub(super) fn is_claim_complete(record: &Json) -> bool {
    record["isSidechain"] == false
        && record["sessionId"].is_string()
        && record_identity(record).is_some()
        && is_claude_record(record)
        && is_response(record)
}

/// Claims the log of a session that is not a subagent's. `session` is the id that its first record
/// names, `original` the session that it says it was forked from.
fn claim_session(stem: &str, session: Option<&str>, original: Option<&str>) -> SessionClaim {
    // A resumed log of version 1.0 begins with records of the old session, so the file name
    // decides.
    let native_id = if is_uuid(stem) { stem } else { session.unwrap_or(stem) };
    let forked_from = original.filter(|id| is_other_session(id, native_id));
    let resumed_from = session.filter(|id| is_other_session(id, native_id));
    let parents = [(Relation::ForkedFrom, forked_from), (Relation::ResumedFrom, resumed_from)];
    SessionClaim::new(Provider::Claude, native_id).with_parent(&parents)
}

/// Returns the id of the subagent that the whole log belongs to. The name of the file or its folder
/// says so, or else every message. A session's own log may have single messages of subagents.
fn find_subagent<'a>(head: &LogHead<'_>, records: &[&'a Json]) -> Option<&'a str> {
    let in_subagents = head.path.parent().is_some_and(|dir| dir.ends_with("subagents"));
    if !records.iter().any(|object| object["isSidechain"] == true) {
        return None;
    }

    let is_named = in_subagents || head.file_stem().starts_with("agent-");
    let is_own = is_named
        || !is_uuid(head.file_stem())
            && records
                .iter()
                .filter(|object| matches!(object["type"].as_str(), Some("user" | "assistant")))
                .all(|object| object["isSidechain"] == true);
    if is_own { first_text(records, "agentId") } else { None }
}

/// Claims the log of a subagent: `<sessionId>/subagents/agent-<id>.jsonl`. The folder names the
/// parent, or otherwise the records do.
fn claim_subagent(
    head: &LogHead<'_>,
    agent: &str,
    session: Option<&str>,
    first_record: Option<u64>,
) -> SessionClaim {
    let folder = head
        .path
        .parent()
        .filter(|dir| dir.ends_with("subagents"))
        .and_then(|dir| dir.parent()?.file_name()?.to_str());
    let parent = folder.filter(|name| is_uuid(name)).or(session);
    let claim = SessionClaim::new(Provider::Claude, format!("agent-{agent}"));
    SessionClaim {
        agent_id: Some(agent.to_owned()),
        first_record,
        ..claim.with_parent(&[(Relation::SubagentOf, parent)])
    }
}

/// Returns the first text under `key` in any of the records.
fn first_text<'a>(records: &[&'a Json], key: &str) -> Option<&'a str> {
    records.iter().find_map(|record| record[key].as_str())
}

/// Returns whether `id` is the id of another session than the log's own.
fn is_other_session(id: &str, own_id: &str) -> bool {
    id != own_id && is_uuid(id)
}

/// Returns whether a record was written by Claude Code, not by another agent with similar records.
fn is_claude_record(object: &Json) -> bool {
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

/// Returns the identity of a record: that of the record it is a copy of, if it names one.
fn record_identity(record: &Json) -> Option<u64> {
    uuid_identity(record["forkedFrom"]["messageUuid"].as_str().or(record["uuid"].as_str()))
}

/// Returns whether a record is a response of the model, with an id.
fn is_response(record: &Json) -> bool {
    record["type"] == "assistant"
        && record["isApiErrorMessage"] != true
        && record["message"]["model"] != "<synthetic>"
        && record["message"]["id"].as_str().is_some_and(|id| !id.is_empty())
}

/// Returns the identity of the first response among the first records of a log.
fn first_response(records: &[&Json]) -> Option<u64> {
    let response = records.iter().find(|record| is_response(record))?;
    let message = &response["message"];
    let id = message["id"].as_str()?;
    let content = serde_json::to_vec(&message["content"]).ok()?;
    Some(xxh3_64_with_seed(&content, xxh3_64(id.as_bytes())) | 1)
}
