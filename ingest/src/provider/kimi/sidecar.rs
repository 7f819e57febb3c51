//! Reads the files next to a log of Kimi, which hold the session's title, its folder and the
//! session that it was forked from (docs/formats.md#kimi):
//!
//! ```text
//! Kimi Code  <session>/state.json  {"title":"...","workDir":"...","forkedFrom":"..."}
//! Kimi CLI   <session>/state.json  {"custom_title":"...","title_generated":false}
//!            ~/.kimi/kimi.json     {"session_to_workdir":{"<id>":"..."}}
//! ```

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::shared::sidecar;
use crate::stream::{Stream, TitleFrom};

/// Maximum size in bytes of a file that is read. A larger file is not one of those described here.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The facts about a session that its log does not record.
#[derive(Debug, Default)]
pub(super) struct SessionFacts {
    /// The folder in which the session ran.
    cwd: Option<String>,
    title: Option<(TitleFrom, String)>,
    /// The session that the log was copied from.
    pub forked_from: Option<String>,
}

impl SessionFacts {
    /// Returns a hash of the folder and the title, to find out later whether they changed. `None` if
    /// neither is known.
    pub(super) fn fingerprint(&self) -> Option<u64> {
        let is_known = self.cwd.is_some() || self.title.is_some();
        is_known.then(|| xxh3_64(format!("{:?}", (&self.cwd, &self.title)).as_bytes()))
    }

    /// Passes the folder and the title to the stream.
    pub(super) fn apply_to(&self, out: &mut Stream) {
        out.set_cwd(self.cwd.as_deref());
        if let Some((title_source, title)) = &self.title {
            out.offer_title(*title_source, title);
        }
    }
}

/// Reads the files next to `log`. Returns empty values for the log of a subagent.
pub(super) fn read_facts(log: &Path) -> SessionFacts {
    match session_folder(log) {
        Some((KimiGeneration::Code, folder)) => read_code_facts(folder),
        Some((KimiGeneration::Cli, folder)) => read_cli_facts(folder),
        None => SessionFacts::default(),
    }
}

/// Returns the path of the state file of a log's session.
pub(super) fn state_path(log: &Path) -> Option<PathBuf> {
    session_folder(log).map(|(_, folder)| folder.join(STATE_FILE))
}

/// Name of the file with the state of a session.
const STATE_FILE: &str = "state.json";

/// The two generations of Kimi.
enum KimiGeneration {
    Code,
    Cli,
}

/// Returns the folder of the session that a log belongs to. `None` for the log of a subagent, and
/// for a path without a folder.
fn session_folder(log: &Path) -> Option<(KimiGeneration, &Path)> {
    let folder = log.parent()?;
    match folder.parent() {
        Some(agents) if agents.ends_with("agents") => {
            if !folder.ends_with("main") {
                return None;
            }
            Some((KimiGeneration::Code, agents.parent()?))
        }
        Some(subagents) if subagents.ends_with("subagents") => None,
        _ => Some((KimiGeneration::Cli, folder)),
    }
}

/// Reads the state of Kimi Code: `<session>/state.json`.
fn read_code_facts(session: &Path) -> SessionFacts {
    let state = read_json(&session.join(STATE_FILE));
    let is_custom = state["isCustomTitle"] == true;
    let title_source = if is_custom { TitleFrom::User } else { TitleFrom::Agent };
    SessionFacts {
        cwd: non_empty_text(&state["workDir"]).or_else(|| non_empty_text(&state["cwd"])),
        title: non_empty_text(&state["title"]).map(|title| (title_source, title)),
        forked_from: non_empty_text(&state["forkedFrom"]),
    }
}

/// Reads the state of Kimi CLI: `<session>/state.json`, and one file with the folders of all
/// sessions.
fn read_cli_facts(session: &Path) -> SessionFacts {
    let state = read_json(&session.join(STATE_FILE));
    let title_source =
        if state["title_generated"] == true { TitleFrom::Agent } else { TitleFrom::User };
    let title = non_empty_text(&state["custom_title"]).map(|title| (title_source, title));

    let id = session.file_name().and_then(|name| name.to_str());
    let home = session.ancestors().nth(3);
    let folders = home.map(|home| read_json(&home.join("kimi.json"))).unwrap_or_default();
    let cwd = id.and_then(|id| non_empty_text(&folders["session_to_workdir"][id]));
    SessionFacts { cwd, title, forked_from: None }
}

/// Returns a value that is a non-empty string.
fn non_empty_text(value: &Json) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns the content of a file, or null if it cannot be read.
fn read_json(path: &Path) -> Json {
    sidecar::read_json(path, MAX_FILE_BYTES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_are_found() {
        let home = tempfile::tempdir().expect("tempdir");
        let write = |path: &str, content: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("creates");
            std::fs::write(path, content).expect("writes");
        };
        write("code/sessions/w/s/state.json", r#"{"title":"t","workDir":"/x","forkedFrom":"p"}"#);
        let found = read_facts(&home.path().join("code/sessions/w/s/agents/main/wire.jsonl"));
        assert_eq!(found.title, Some((TitleFrom::Agent, "t".to_owned())));
        assert_eq!((found.cwd.as_deref(), found.forked_from.as_deref()), (Some("/x"), Some("p")));
        let found = read_facts(&home.path().join("code/sessions/w/s/agents/agent-0/wire.jsonl"));
        assert!(found.title.is_none() && found.forked_from.is_none());
        write("cli/kimi.json", r#"{"work_dirs":[],"session_to_workdir":{"s":"/y"}}"#);
        write("cli/sessions/m/s/state.json", r#"{"custom_title":"mine"}"#);
        let found = read_facts(&home.path().join("cli/sessions/m/s/wire.jsonl"));
        assert_eq!(found.title, Some((TitleFrom::User, "mine".to_owned())));
        assert_eq!(found.cwd.as_deref(), Some("/y"));
    }
}
