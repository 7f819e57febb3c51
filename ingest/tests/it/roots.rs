//! The folders of every agent on every platform, and the variables that move them, against a golden file.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ingest::provider::format::{AgentFolders, Platform};
use ingest::provider::{all_providers, log_folders};
use schemas::Provider;

use crate::memory::samples;

const PLATFORMS: [(Platform, &str); 3] =
    [(Platform::Linux, "Linux"), (Platform::MacOs, "macOS"), (Platform::Windows, "Windows")];

/// The variables that move the files of all programs.
const SHARED: [&str; 5] =
    ["APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/// Creates a home with the files that name or are databases: some agents keep each in another place.
fn create_home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("tempdir");
    let write = |name: &str, content: &str| {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        fs::write(path, content).expect("writes");
    };
    for name in ["opencode.db", "opencode-beta.db"] {
        write(&format!(".local/share/opencode/{name}"), "");
    }
    for editor in [".config", "Library/Application Support", "AppData/Roaming"] {
        write(&format!("{editor}/Code/User/workspaceStorage/0a1b/chatSessions/c.json"), "");
    }
    write(".openclaw/agents/helper/sessions/s.jsonl", "");
    write(".qwenpaw/workspaces/helper/sessions/s.json", "");
    let project = home.path().join("harbor");
    write("harbor/.crush/crush.db", "");
    let projects = serde_json::json!({"projects": [{"path": project, "data_dir": ".crush"}]});
    for folder in [".local/share", "AppData/Local"] {
        write(&format!("{folder}/crush/projects.json"), &projects.to_string());
    }
    home
}

/// Returns the folders of an agent below the home folder, with a variable or without.
fn folders(
    provider: Provider,
    platform: Platform,
    home: &Path,
    moved: Option<&str>,
    asked: &RefCell<BTreeSet<String>>,
) -> Vec<String> {
    let variable = |name: &str| {
        if !SHARED.contains(&name) {
            asked.borrow_mut().insert(name.to_owned());
        }
        (moved == Some(name)).then(|| "/moved".to_owned())
    };
    let places = AgentFolders::on_platform(platform, home, &variable);
    let folders = log_folders(provider, &places);
    let named = folders.iter().map(|folder| match folder.strip_prefix(home) {
        Ok(below) => Path::new("~").join(below),
        Err(_) => folder.clone(),
    });
    named.map(|folder| folder.to_string_lossy().replace('\\', "/")).collect()
}

/// Appends the folders that `list` returns of each platform, each once with its platforms.
fn append_folders(label: &str, list: &dyn Fn(Platform) -> Vec<String>, out: &mut String) {
    let mut order = Vec::new();
    let mut platforms: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (platform, name) in PLATFORMS {
        for folder in list(platform) {
            if !platforms.contains_key(&folder) {
                order.push(folder.clone());
            }
            platforms.entry(folder).or_default().push(name);
        }
    }
    for folder in order {
        let on = &platforms[&folder];
        let on = if on.len() == PLATFORMS.len() { "all".to_owned() } else { on.join(", ") };
        let _ = writeln!(out, "  {label}{on}: {folder}");
    }
}

#[test]
fn folders_are_those_of_the_golden_file() {
    let home = create_home();
    let home = home.path();
    let mut got = String::new();
    for provider in all_providers() {
        let _ = writeln!(got, "{} ({provider})", provider.agent_name());
        let asked = RefCell::default();
        let usual = |platform| folders(provider, platform, home, None, &asked);
        append_folders("", &usual, &mut got);
        let variables = asked.borrow().clone();
        for variable in variables {
            let moved = |platform| {
                let usual = folders(provider, platform, home, None, &asked);
                let mut moved = folders(provider, platform, home, Some(&variable), &asked);
                moved.retain(|folder| !usual.contains(folder));
                moved
            };
            append_folders(&format!("{variable}, "), &moved, &mut got);
        }
    }

    let golden = samples().with_file_name("ingest").join("tests/roots.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &got).expect("writes");
    }
    let wanted = fs::read_to_string(golden).unwrap_or_default();
    for (got, wanted) in got.lines().zip(wanted.lines()) {
        assert_eq!(got, wanted);
    }
    assert_eq!(got.len(), wanted.len());
}
