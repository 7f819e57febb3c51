//! Reads the files next to a log of Kimi for the session's title, its folder and the session that
//! it was forked from (docs/formats.md#kimi).

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::provider::shared::beside;
use crate::stream::{Stream, TitleFrom};

/// Largest file that is read, in bytes. The files are small, so a larger one is not one of them.
const BYTES: u64 = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct Beside {
    cwd: Option<String>,
    title: Option<(TitleFrom, String)>,
    /// The session that the log was copied from.
    pub forked_from: Option<String>,
}

impl Beside {
    /// Passes the folder and the title to the stream.
    pub(super) fn tell(&self, out: &mut Stream) {
        out.set_cwd(self.cwd.as_deref());
        if let Some((from, title)) = &self.title {
            out.title(*from, title);
        }
    }
}

/// Reads the files next to `log`. Returns empty values for the log of a subagent.
pub(super) fn of(log: &Path) -> Beside {
    match session(log) {
        Some((Generation::Code, folder)) => code(folder),
        Some((Generation::Cli, folder)) => cli(folder),
        None => Beside::default(),
    }
}

/// Returns the path of the state file of a log's session.
pub(super) fn state(log: &Path) -> Option<PathBuf> {
    session(log).map(|(_, folder)| folder.join(STATE))
}

const STATE: &str = "state.json";

/// The two generations of Kimi.
enum Generation {
    Code,
    Cli,
}

/// Returns the folder of the session that a log belongs to, or `None` for the log of a subagent.
fn session(log: &Path) -> Option<(Generation, &Path)> {
    let up = |places: usize| log.ancestors().nth(places);
    let named = |places, name: &str| up(places).is_some_and(|place| place.ends_with(name));
    if named(2, "agents") {
        return Some((Generation::Code, up(3)?)).filter(|_| named(1, "main"));
    }
    Some((Generation::Cli, up(1)?)).filter(|_| !named(2, "subagents"))
}

/// Reads the state of Kimi Code: `<session>/state.json`.
fn code(session: &Path) -> Beside {
    let state = json(&session.join(STATE));
    let is_custom = state["isCustomTitle"] == true;
    let from = if is_custom { TitleFrom::Person } else { TitleFrom::Agent };
    Beside {
        cwd: text(&state["workDir"]).or_else(|| text(&state["cwd"])),
        title: text(&state["title"]).map(|title| (from, title)),
        forked_from: text(&state["forkedFrom"]),
    }
}

/// Reads the state of Kimi CLI: `<session>/state.json`, and one file with the folders of all
/// sessions.
fn cli(session: &Path) -> Beside {
    let state = json(&session.join(STATE));
    let from = if state["title_generated"] == true { TitleFrom::Agent } else { TitleFrom::Person };
    let id = session.file_name().and_then(|name| name.to_str());
    let folders = session.ancestors().nth(3).map(|home| json(&home.join("kimi.json")));
    let folders = folders.unwrap_or_default();
    let cwd = id.and_then(|id| text(&folders["session_to_workdir"][id]));
    let title = text(&state["custom_title"]).map(|title| (from, title));
    Beside { cwd, title, forked_from: None }
}

fn text(value: &Json) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns the content of a file, or null if it cannot be read.
fn json(path: &Path) -> Json {
    beside::json(path, BYTES).unwrap_or_default()
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
        let found = of(&home.path().join("code/sessions/w/s/agents/main/wire.jsonl"));
        assert_eq!(found.title, Some((TitleFrom::Agent, "t".to_owned())));
        assert_eq!((found.cwd.as_deref(), found.forked_from.as_deref()), (Some("/x"), Some("p")));
        let found = of(&home.path().join("code/sessions/w/s/agents/agent-0/wire.jsonl"));
        assert!(found.title.is_none() && found.forked_from.is_none());
        write("cli/kimi.json", r#"{"work_dirs":[],"session_to_workdir":{"s":"/y"}}"#);
        write("cli/sessions/m/s/state.json", r#"{"custom_title":"mine"}"#);
        let found = of(&home.path().join("cli/sessions/m/s/wire.jsonl"));
        assert_eq!(found.title, Some((TitleFrom::Person, "mine".to_owned())));
        assert_eq!(found.cwd.as_deref(), Some("/y"));
    }
}
