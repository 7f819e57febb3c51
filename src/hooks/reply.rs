//! Encodes the answer of a hook as the agent expects it on stdout.

use schemas::hook::{HookClient, HookName};
use serde_json::{Value, json};

/// Returns the JSON that adds `text` to the context of the agent; `None` if the agent takes no text
/// at this moment.
pub fn encode_reply(client: HookClient, hook: HookName, text: &str) -> Option<Value> {
    match hook {
        HookName::PreCompact | HookName::SessionEnd => return None,
        HookName::SessionStart
        | HookName::Prompt
        | HookName::PreTool
        | HookName::PostToolFailure => {}
    }
    let event = client.event_name(hook)?;
    Some(match client {
        HookClient::Claude | HookClient::Codex | HookClient::Gemini => {
            json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
        }
        HookClient::Copilot => json!({ "additionalContext": text }),
    })
}
