//! Recognises OpenClaw's logs among those of the same engine.

use std::path::Path;

use serde_json::Value as Json;

use crate::provider::format::Head;

/// Names of the state folder: the present one first, then the former ones.
pub(super) const FOLDERS: &[&str] = &[".openclaw", ".moltbot", ".clawdbot"];

/// True if a log of this engine is OpenClaw's and not Pi's own. The header does not show it, but
/// entries that only OpenClaw writes and the path do.
pub(crate) fn is_ours(head: &Head<'_>) -> bool {
    let is_own_entry = |object: &Json| {
        let custom = object["customType"].as_str().unwrap_or("");
        custom.starts_with("openclaw") || object["message"]["provider"] == "openclaw"
    };
    let name = head.path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let is_copy = name.contains(".jsonl.") || name.contains(".checkpoint.");
    is_copy || is_own_place(head.path) || head.objects.iter().any(is_own_entry)
}

fn is_own_place(path: &Path) -> bool {
    let folders: Vec<&str> = path
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .filter_map(|part| part.as_os_str().to_str())
        .collect();
    // The nearest folder decides: a project that Pi works on may be OpenClaw itself.
    let named = folders.iter().rev().find_map(|folder| {
        let is_own = |own: &&str| own.trim_start_matches('.') == folder.trim_start_matches('.');
        match *folder {
            ".pi" | "pi" => Some(false),
            _ if folder.starts_with(".openclaw-") || FOLDERS.iter().any(is_own) => Some(true),
            _ => None,
        }
    });
    named.unwrap_or(matches!(folders.as_slice(), [.., "agents", _, "sessions"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_tells_whose_a_log_is() {
        let own = |path: &str| is_own_place(Path::new(path));
        assert!(own("/home/mira/.openclaw/agents/main/sessions/a.jsonl"));
        assert!(own("/srv/state/agents/main/sessions/a.jsonl"));
        assert!(!own("/home/mira/code/openclaw/.pi/agent/sessions/--x--/a.jsonl"));
        assert!(!own("/home/mira/.pi/agent/sessions/--x--/a.jsonl"));
    }
}
