//! Reads the session logs of CodeBuddy Code from `~/.codebuddy/projects/<cwd>/<session>.jsonl`
//! (docs/formats.md#codebuddy).
//!
//! ```text
//! {"id":"<uuid>","timestamp":1793400000000,"type":"message","role":"user","sessionId":"<uuid>",
//!  "cwd":"...","content":[{"type":"input_text","text":"..."}]}
//! {"type":"function_call","callId":"c1","name":"Bash","arguments":"{...}","providerData":{
//!  "messageId":"...","model":"...","rawUsage":{...}},...}
//! {"type":"function_call_result","callId":"c1","status":"completed","output":{"text":"..."},...}
//! ```
//!
//! The records of one response have one `providerData.messageId`, and repeat its token counts.

mod message;

use std::path::Path;

use schemas::Provider;
use schemas::event::Relation;
use serde::Deserialize;

use self::message::{CodeBuddyDecoder, CodeBuddyState, MACHINE_TEXTS};
use crate::provider::format::{LogFormat, LogHead, LogReader, Quirks, SessionClaim};
use crate::provider::shared::identity::uuid_identity;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::CodeBuddy,
    has_unique_ids: true,
    decoder_version: 2,
    roots: |places| {
        let home = places.env_path("CODEBUDDY_CONFIG_DIR");
        vec![home.unwrap_or_else(|| places.home_path(".codebuddy")).join("projects")]
    },
    sniff: claim_log,
    quirks: Quirks { machine_texts: MACHINE_TEXTS, ..Quirks::NONE },
    reader: LogReader::Lines(|claim, state| {
        let state = state.and_then(|state| CodeBuddyState::deserialize(state).ok());
        Box::new(CodeBuddyDecoder::new(state.unwrap_or_default(), claim.agent_id.is_some()))
    }),
};

/// Claims a log by its first record of a conversation. The log of a subagent is in a folder of its
/// parent.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.iter().find(|object| is_conversation_record(object))?;
    let session = first["sessionId"].as_str().filter(|id| !id.is_empty())?;
    let first_record = uuid_identity(first["id"].as_str());
    let Some(parent) = parent_session(head.path) else {
        let claim = SessionClaim::new(Provider::CodeBuddy, session);
        return Some(SessionClaim { first_record, ..claim });
    };
    // Some versions write the id of the parent.
    let native_id = if session == parent { head.file_stem() } else { session };
    Some(SessionClaim {
        agent_id: Some(head.file_stem().to_owned()),
        parent: Some(parent.to_owned()),
        relation: Some(Relation::SubagentOf),
        first_record,
        ..SessionClaim::new(Provider::CodeBuddy, native_id)
    })
}

/// Returns whether a record is one of a conversation. Claude has some of the other records as well,
/// and times of Claude's and Pi's records are text.
fn is_conversation_record(object: &serde_json::Value) -> bool {
    let has_content = match object["type"].as_str() {
        Some("message") => object["role"].is_string() && !object["content"].is_null(),
        Some("function_call" | "function_call_result") => object["callId"].is_string(),
        Some("reasoning") => !object["rawContent"].is_null(),
        _ => false,
    };
    has_content && object["timestamp"].is_number() && object["sessionId"].is_string()
}

/// Returns the session in whose folder the log of a subagent is: `<session>/subagents/<agent>.jsonl`.
fn parent_session(log: &Path) -> Option<&str> {
    let folder = log.parent().filter(|folder| folder.ends_with("subagents"))?;
    folder.parent()?.file_name()?.to_str()
}
