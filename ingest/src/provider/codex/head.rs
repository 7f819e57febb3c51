//! Recognizes a Codex log by its first records, and reads the session's id and lineage from them
//! (docs/formats.md#codex).

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;

use crate::provider::copied::continued_session;
use crate::provider::format::{LogHead, SessionClaim};
use crate::text::names::is_uuid;

/// Types of records that wrap a payload.
const WRAPPED_TYPES: &[&str] =
    &["session_meta", "response_item", "event_msg", "turn_context", "compacted"];

pub(super) fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let header = head.objects.first().filter(|object| is_flat_header(object));
    if header.is_none() && !head.objects.iter().any(is_wrapped) {
        return None;
    }

    // The first session_meta names the session; later ones are resumes or copied history.
    let session_meta = head.objects.iter().find(|object| object["type"] == "session_meta");
    let meta = session_meta.map(|object| &object["payload"]).or(header);
    let stem = head.file_stem();
    let id_in_file_name =
        stem.get(stem.len().saturating_sub(36)..).filter(|tail| is_uuid(tail)).unwrap_or(stem);

    let subagent_source = meta.map(|meta| &meta["source"]["subagent"]);
    let is_subagent = subagent_source.is_some_and(|source| !source.is_null());
    let spawning_thread =
        subagent_source.and_then(|source| source["thread_spawn"]["parent_thread_id"].as_str());
    let subagent_parent = if is_subagent {
        spawning_thread.or_else(|| text_field(meta, "parent_thread_id"))
    } else {
        None
    };
    let fork_parent = text_field(meta, "forked_from_id");
    let is_review = subagent_source.and_then(Json::as_str) == Some("review");
    let relation = if is_review {
        Some(Relation::ReviewOf)
    } else if is_subagent {
        Some(Relation::SubagentOf)
    } else {
        fork_parent.map(|_| Relation::ForkedFrom)
    };
    let claim = SessionClaim {
        agent_id: text_field(meta, "agent_nickname").map(str::to_owned),
        parent: subagent_parent.or(fork_parent).map(str::to_owned),
        relation,
        ..SessionClaim::new(
            Provider::Codex,
            text_field(meta, "id").filter(|id| !id.is_empty()).unwrap_or(id_in_file_name),
        )
    };
    Some(claim.continuing(continued_session(meta.into_iter())))
}

/// Returns whether a record is the metadata of a session, which alone decides what its log claims.
pub(super) fn is_claim_complete(record: &Json) -> bool {
    record["type"] == "session_meta" && record["payload"]["id"].is_string()
}

/// Returns whether an object is a record that wraps a payload.
fn is_wrapped(object: &Json) -> bool {
    object["payload"].is_object()
        && object["type"].as_str().is_some_and(|kind| WRAPPED_TYPES.contains(&kind))
}

/// Returns whether an object is the header of a log of the flat generation.
fn is_flat_header(object: &Json) -> bool {
    object["id"].is_string()
        && object["timestamp"].is_string()
        && object.get("type").is_none()
        && (object.get("instructions").is_some() || object.get("git").is_some())
}

/// Returns a text field of the session's metadata.
fn text_field<'a>(meta: Option<&'a Json>, key: &str) -> Option<&'a str> {
    meta?[key].as_str()
}
