//! The hooks of an agent, in the form of its configuration and of its plugins.
//!
//! ```text
//! Claude, Codex, Gemini  {"hooks": {"SessionStart": [{"matcher": "..", "hooks": [HANDLER]}]}}
//! Copilot                {"version": 1, "hooks": {"sessionStart": [HANDLER]}}
//! HANDLER                {"type": "command", "command": "sessions hook session-start --client claude"}
//! ```

use schemas::hook::{HookClient, HookName};
use serde_json::{Map, Value, json};

/// Time after which an agent ends a hook, in seconds. A hook ends by itself much earlier.
const TIMEOUT_SECONDS: u64 = 5;

/// The path of the program of all hooks in a plugin.
pub(super) const HOOK_LAUNCHER_PATH: &str = "bin/sessions-hook";

/// The path of the file with the hooks in a plugin.
pub(super) const HOOKS_PATH: &str = "hooks/hooks.json";

/// Returns the entry of each hook that an agent calls, by the agent's name of the event. `program` is
/// the beginning of the command line: the program and its first arguments.
pub fn hook_entries(client: HookClient, program: &str) -> Vec<(&'static str, Value)> {
    let mut entries = Vec::new();
    for hook in HookName::ALL {
        if let Some(event) = client.event_name(*hook) {
            let line = format!("{program} hook {hook} --client {client}");
            entries.push((event, hook_entry(client, *hook, &line)));
        }
    }
    entries
}

/// Returns the file of a plugin with the hooks. `root` is what the agent replaces by the folder of the
/// plugin.
pub(super) fn plugin_hooks(client: HookClient, root: &str) -> Value {
    let program = format!("sh \"{root}/{HOOK_LAUNCHER_PATH}\"");
    let mut events = Map::new();
    for (event, entry) in hook_entries(client, &program) {
        events.insert(event.to_owned(), json!([entry]));
    }
    json!({ "hooks": events })
}

/// Returns the entry of one hook.
fn hook_entry(client: HookClient, hook: HookName, line: &str) -> Value {
    let seconds = json!({ "type": "command", "command": line, "timeout": TIMEOUT_SECONDS });
    let handler = match client {
        HookClient::Claude | HookClient::Codex => seconds,
        HookClient::Gemini => json!({
            "name": "sessions",
            "type": "command",
            "command": line,
            "timeout": TIMEOUT_SECONDS * 1000,
        }),
        HookClient::Copilot => {
            return json!({
                "type": "command",
                "bash": line,
                "powershell": line,
                "timeoutSec": TIMEOUT_SECONDS,
            });
        }
    };
    match matcher_of(client, hook) {
        Some(matcher) => json!({ "matcher": matcher, "hooks": [handler] }),
        None => json!({ "hooks": [handler] }),
    }
}

/// Returns the pattern of what a hook is called for; `None` for everything. A process for every
/// read of a file would be of no use.
fn matcher_of(client: HookClient, hook: HookName) -> Option<&'static str> {
    match (hook, client) {
        (HookName::SessionStart, HookClient::Claude | HookClient::Codex) => Some("startup|clear"),
        (HookName::PreTool, HookClient::Claude | HookClient::Codex)
        | (HookName::PostToolFailure, HookClient::Codex) => Some("Bash"),
        (HookName::PostToolFailure, HookClient::Claude) => Some("Bash|mcp__.*"),
        (HookName::PostToolFailure, HookClient::Gemini) => Some("run_shell_command|mcp_.*"),
        (
            HookName::SessionStart
            | HookName::PreTool
            | HookName::PostToolFailure
            | HookName::Prompt
            | HookName::PreCompact
            | HookName::SessionEnd,
            _,
        ) => None,
    }
}
