//! Recognizes a Codex log by its first records, and reads the session's id and lineage from them
//! (docs/formats.md#codex).

use schemas::Provider;
use schemas::event::Relation;
use serde_json::Value as Json;

use crate::provider::format::{Claim, Head};
use crate::provider::shared::identity::is_uuid;

const WRAPPED: &[&str] =
    &["session_meta", "response_item", "event_msg", "turn_context", "compacted"];

pub(super) fn sniff(head: &Head<'_>) -> Option<Claim> {
    let wrapped = |object: &&Json| {
        object["payload"].is_object()
            && object["type"].as_str().is_some_and(|kind| WRAPPED.contains(&kind))
    };
    let flat = |object: &&Json| {
        object["id"].is_string()
            && object["timestamp"].is_string()
            && object.get("type").is_none()
            && (object.get("instructions").is_some() || object.get("git").is_some())
    };
    let header = head.objects.first().filter(flat);
    if header.is_none() && !head.objects.iter().any(|object| wrapped(&object)) {
        return None;
    }
    // The first session_meta names the session; later ones are resumes or copied history.
    let meta =
        head.objects.iter().find(|o| o["type"] == "session_meta").map(|o| &o["payload"]).or(header);
    let field = |key: &str| meta.and_then(|meta| meta[key].as_str()).map(str::to_owned);
    let stem = head.stem();
    let from_name =
        stem.get(stem.len().saturating_sub(36)..).filter(|tail| is_uuid(tail)).unwrap_or(stem);
    let spawned = meta.map(|meta| &meta["source"]["subagent"]);
    let is_subagent = spawned.is_some_and(|spawned| !spawned.is_null());
    let spawner =
        spawned.and_then(|s| s["thread_spawn"]["parent_thread_id"].as_str()).map(str::to_owned);
    let subagent_parent =
        if is_subagent { spawner.or_else(|| field("parent_thread_id")) } else { None };
    let fork_parent = field("forked_from_id");
    let is_review = spawned.and_then(Json::as_str) == Some("review");
    let relation = match (is_review, is_subagent, &fork_parent) {
        (true, ..) => Some(Relation::ReviewOf),
        (false, true, _) => Some(Relation::SubagentOf),
        (false, false, Some(_)) => Some(Relation::ForkedFrom),
        (false, false, None) => None,
    };
    Some(Claim {
        provider: Provider::Codex,
        native_id: field("id").filter(|id| !id.is_empty()).unwrap_or_else(|| from_name.to_owned()),
        agent_id: field("agent_nickname"),
        parent: subagent_parent.or(fork_parent),
        relation,
        first_record: None,
    })
}
