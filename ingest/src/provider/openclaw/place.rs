//! Recognises OpenClaw's logs among those of the same engine.

use std::path::Path;

use schemas::Provider;
use serde_json::Value as Json;

use crate::provider::alias::alias_at;
use crate::provider::format::LogHead;

/// Names of the state folder: the present one first, then the former ones.
pub(super) const STATE_FOLDERS: &[&str] = &[".openclaw", ".moltbot", ".clawdbot"];

/// Returns whether a log of this engine is OpenClaw's and not Pi's. The header does not show it,
/// but the path and entries that only OpenClaw writes do.
pub(crate) fn is_openclaw_log(head: &LogHead<'_>) -> bool {
    let name = head.path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let is_copy = name.contains(".jsonl.") || name.contains(".checkpoint.");
    is_copy || is_openclaw_path(head.path) || head.objects.iter().any(is_openclaw_entry)
}

/// Returns whether only OpenClaw writes such an entry.
fn is_openclaw_entry(entry: &Json) -> bool {
    let custom_type = entry["customType"].as_str().unwrap_or("");
    custom_type.starts_with("openclaw") || entry["message"]["provider"] == "openclaw"
}

/// Returns whether a path is inside a state folder of OpenClaw. The nearest folder with a known
/// name decides, because a project that Pi works on may be OpenClaw itself.
fn is_openclaw_path(path: &Path) -> bool {
    if alias_at(Provider::OpenClaw, path).is_some() {
        return true;
    }
    if alias_at(Provider::Pi, path).is_some() {
        return false;
    }
    let folders: Vec<&str> = path
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .filter_map(|part| part.as_os_str().to_str())
        .collect();
    for folder in folders.iter().rev() {
        if matches!(*folder, ".pi" | "pi") {
            return false;
        }
        if folder.starts_with(".openclaw-") || is_state_folder(folder) {
            return true;
        }
    }
    matches!(folders.as_slice(), [.., "agents", _, "sessions"])
}

/// Returns whether a folder has the name of a state folder, with or without the leading dot.
fn is_state_folder(name: &str) -> bool {
    let name = name.trim_start_matches('.');
    STATE_FOLDERS.iter().any(|folder| folder.trim_start_matches('.') == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_tells_whose_a_log_is() {
        let own = |path: &str| is_openclaw_path(Path::new(path));
        assert!(own("/home/mira/.openclaw/agents/main/sessions/a.jsonl"));
        assert!(own("/srv/state/agents/main/sessions/a.jsonl"));
        assert!(!own("/home/mira/code/openclaw/.pi/agent/sessions/--x--/a.jsonl"));
        assert!(!own("/home/mira/.pi/agent/sessions/--x--/a.jsonl"));
        assert!(own("/home/pi/.qclaw/agents/main/sessions/a.jsonl"));
        assert!(!own("/home/openclaw/.omp/agent/sessions/--x--/a.jsonl"));
    }
}
