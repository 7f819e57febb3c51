//! Reads `meta.json` next to the messages of a session, and that of the session which was compacted
//! into it.

use std::fs;
use std::path::Path;

use schemas::Usage;
use serde_json::Value as Json;

use crate::provider::shared::sidecar;

/// File name of the messages of a session.
pub(super) const MESSAGES: &str = "messages.jsonl";

/// File name of the metadata of a session.
pub(super) const META: &str = "meta.json";

/// Maximum size in bytes of that file, which has the configuration and the tools, too.
const MAX_META_BYTES: u64 = 16 << 20;

/// Length in bytes of the part of a session's id in the name of its folder.
const SHORT_ID_BYTES: usize = 8;

/// Returns the metadata next to the messages of a session. Other files in its folder are copies, and have
/// none.
pub(super) fn meta_of(log: &Path) -> Option<Json> {
    let meta = log.ends_with(MESSAGES).then(|| log.with_file_name(META))?;
    sidecar::read_json(&meta, MAX_META_BYTES)
}

/// Returns the part of a session's id by which Vibe shows it.
pub(super) fn short_id(id: &str) -> &str {
    id.get(..SHORT_ID_BYTES).unwrap_or(id)
}

/// Returns the short id of the session whose subagent is in `folder`: `<session>/agents/<folder>`.
pub(super) fn parent_of_subagent(folder: &Path) -> Option<&str> {
    let agents = folder.parent().filter(|agents| agents.ends_with("agents"))?;
    agents.parent()?.file_name()?.to_str()?.rsplit('_').next()
}

/// Returns the metadata of the session that was compacted into the one in `folder`: the counts of that
/// one include those of the other. `messages` are the bytes of its log. Null if no session was compacted,
/// and `None` if the metadata of that session is not there any more.
pub(super) fn counts_of_compacted(folder: &Path, meta: &Json, messages: &[u8]) -> Option<Json> {
    let first: Json = messages
        .split(|byte| *byte == b'\n')
        .next()
        .and_then(|line| serde_json::from_slice(line).ok())
        .unwrap_or_default();
    let Some(parent) = meta["parent_session_id"].as_str().filter(|_| first["injected"] == true)
    else {
        return Some(Json::Null);
    };
    let end = format!("_{}", short_id(parent));
    let siblings = folder.parent().and_then(|sessions| fs::read_dir(sessions).ok());
    siblings
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|sibling| sibling.file_name().to_string_lossy().ends_with(&end))
        .filter_map(|sibling| meta_of(&sibling.path().join(MESSAGES)))
        .find(|sibling| sibling["session_id"] == parent)
}

/// Reads the counts of a session. The prompt includes what was read from the cache.
pub(super) fn read_counts(stats: &Json) -> Usage {
    let cache_read = stats["session_cached_tokens"].as_i64();
    let prompt = stats["session_prompt_tokens"].as_i64();
    Usage {
        input: prompt.map(|prompt| prompt.saturating_sub(cache_read.unwrap_or(0)).max(0)),
        output: stats["session_completion_tokens"].as_i64(),
        cache_read,
        ..Usage::default()
    }
}
