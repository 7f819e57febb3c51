//! What files beside a log of Kimi's say of the session: its title, its folder, where it was forked
//! from (FORMATS.md section 9).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value as Json;

use crate::stream::{Stream, TitleFrom};

/// The files are small; more than this is none of them.
const BYTES: u64 = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct Beside {
    cwd: Option<String>,
    title: Option<(TitleFrom, String)>,
    /// The session whose log was copied.
    pub forked_from: Option<String>,
}

impl Beside {
    /// Tells the stream.
    pub fn tell(&self, out: &mut Stream) {
        out.set_cwd(self.cwd.as_deref());
        if let Some((from, title)) = &self.title {
            out.title(*from, title);
        }
    }
}

/// What stands beside `log`; nothing beside those of subagents.
pub(super) fn of(log: &Path) -> Beside {
    let named =
        |up: usize, name: &str| log.ancestors().nth(up).is_some_and(|place| place.ends_with(name));
    if named(2, "agents") {
        return if named(1, "main") { code(log) } else { Beside::default() };
    }
    if named(2, "subagents") { Beside::default() } else { cli(log) }
}

/// Kimi Code: `<session>/state.json`.
fn code(log: &Path) -> Beside {
    let state = json(log, 3, "state.json");
    let is_custom = state["isCustomTitle"] == true;
    let from = if is_custom { TitleFrom::Person } else { TitleFrom::Agent };
    Beside {
        cwd: text(&state["workDir"]).or_else(|| text(&state["cwd"])),
        title: text(&state["title"]).map(|title| (from, title)),
        forked_from: text(&state["forkedFrom"]),
    }
}

/// Kimi CLI: `<session>/state.json`, and the folders of all sessions in one file.
fn cli(log: &Path) -> Beside {
    let state = json(log, 1, "state.json");
    let from = if state["title_generated"] == true { TitleFrom::Agent } else { TitleFrom::Person };
    let session = log.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let folders = json(log, 4, "kimi.json");
    let cwd = session.and_then(|session| text(&folders["session_to_workdir"][session]));
    let title = text(&state["custom_title"]).map(|title| (from, title));
    Beside { cwd, title, forked_from: None }
}

fn text(value: &Json) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The file `name` in the folder that lies `up` places above the log; null when there is none.
fn json(log: &Path, up: usize, name: &str) -> Json {
    let read = || {
        let mut bytes = Vec::new();
        let file = File::open(log.ancestors().nth(up)?.join(name)).ok()?;
        file.take(BYTES).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    read().unwrap_or_default()
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
