//! Computes where an agent looks for the log of a session that ran in a folder.

use std::fs;
use std::path::{Component, Path, PathBuf};

use schemas::Provider;

use super::fields::hash_of_folder;
use super::rows::{below_database, place_rows, travels_as_rows};
use crate::provider::format::{AgentFolders, Platform};
use crate::provider::log_folders;
use crate::provider::shared::sidecar;
use crate::source::bounded_file::read_bounded_file;

/// Maximum length in bytes of the place of a log below the folder of its agent.
const MAX_BELOW_BYTES: usize = 1024;

/// Maximum number of characters of the name of a project's folder. Claude Code gives longer ones a hash.
const MAX_PROJECT_NAME_CHARS: usize = 200;

/// Maximum number of short names that are tried for a project of Gemini CLI.
const MAX_SHORT_NAMES: usize = 100;

/// Maximum size in bytes of the files in which Gemini CLI names its projects.
const MAX_REGISTRY_BYTES: u64 = 4 << 20;

/// Names that Windows keeps for devices.
const DEVICE_NAMES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// The place of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPlace {
    /// The path of the file.
    pub path: PathBuf,
    /// A file that tells the agent whose folder this is, and its content. It is written first if it does
    /// not exist.
    pub marker: Option<(PathBuf, String)>,
}

/// Returns the place of a file below the folder of its agent, with slashes. `None` if it is in no folder
/// of the agent.
pub fn below_log_folder(
    provider: Provider,
    path: &Path,
    folders: &AgentFolders<'_>,
) -> Option<String> {
    if let Some(below) = below_database(provider, path, folders) {
        return is_safe_below(&below).then_some(below);
    }
    let roots = log_folders(provider, folders);
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok())?;
    let names = below.components().map(|name| match name {
        Component::Normal(name) => name.to_str(),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    let below = names.collect::<Option<Vec<&str>>>()?.join("/");
    is_safe_below(&below).then_some(below)
}

/// Returns whether a place below the folder of an agent, which another machine names, leads to a file
/// there on every system.
pub fn is_safe_below(below: &str) -> bool {
    let is_safe_name = |name: &str| {
        let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let is_device = DEVICE_NAMES.iter().any(|device| {
            let rest = stem.strip_prefix(device);
            let has_number = matches!(*device, "com" | "lpt");
            rest.is_some_and(|rest| {
                if has_number { matches!(rest.as_bytes(), [b'0'..=b'9']) } else { rest.is_empty() }
            })
        });
        !name.is_empty()
            && !name.ends_with(['.', ' '])
            && !is_device
            && !name.chars().any(|c| c.is_control() || "\\:*?\"<>|".contains(c))
    };
    below.len() <= MAX_BELOW_BYTES && below.split('/').all(is_safe_name)
}

/// Returns why the logs of an agent cannot be moved to another folder. `None` if they can.
pub fn find_obstacle_to_moving(provider: Provider) -> Option<&'static str> {
    const OF_A_SERVICE: &str =
        "it is not known where its agent looks for the session in another folder";
    #[expect(clippy::wildcard_enum_match_arm, reason = "the place is known for these agents only")]
    match provider {
        Provider::Claude
        | Provider::Codex
        | Provider::Gemini
        | Provider::Qwen
        | Provider::Pi
        | Provider::Copilot
        | Provider::Droid
        | Provider::Amp
        | Provider::TraeX => None,
        _ if travels_as_rows(provider) => None,
        _ => Some(OF_A_SERVICE),
    }
}

/// Returns where an agent looks for the log of a session in `folder`, a full path of this machine.
/// `below` is the place of the log on the machine that it comes from; see [`below_log_folder`]. The name of
/// a project's folder in it is replaced.
///
/// # Errors
/// Returns the reason if the place cannot be computed.
pub fn place_log(
    provider: Provider,
    below: &str,
    folder: &str,
    folders: &AgentFolders<'_>,
) -> Result<LogPlace, String> {
    if !is_safe_below(below) {
        return Err("the place of its log is not valid".to_owned());
    }
    if let Some(reason) = find_obstacle_to_moving(provider) {
        return Err(reason.to_owned());
    }
    if let Some(place) = place_rows(provider, below, folders) {
        return Ok(LogPlace { path: place?, marker: None });
    }
    let roots = log_folders(provider, folders);
    let root = roots.iter().find(|root| root.is_dir()).or(roots.first());
    let root = root.ok_or("its agent has no folder for logs here")?;
    let in_project = below.split_once('/').map(|(_, rest)| rest);
    let rest = in_project.ok_or("its log was not in the folder of a project");
    let file_name = below.rsplit('/').next().unwrap_or(below);

    let mut marker = None;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others were refused above")]
    let (project, rest) = match provider {
        Provider::Claude => (Some(name_with_hyphens(folder)?), rest?),
        Provider::Qwen if folders.platform() == Platform::Windows => {
            (Some(name_with_hyphens(&folder.to_lowercase())?), rest?)
        }
        Provider::Qwen => (Some(name_with_hyphens(folder)?), rest?),
        // With a folder of the user's own there are none for projects.
        Provider::Pi if folders.env_path("PI_CODING_AGENT_SESSION_DIR").is_some() => {
            (None, file_name)
        }
        Provider::Pi => (Some(pi_name(folder)), file_name),
        Provider::Droid if folder.contains(['\\', ':']) => {
            return Err(
                "it is not known how Droid names the folders of projects on Windows".to_owned()
            );
        }
        Provider::Droid => (Some(folder.replace('/', "-")), rest?),
        Provider::Gemini => {
            let (name, file) = gemini_name(root, folder, folders.platform())?;
            marker = file;
            (Some(name), rest?)
        }
        // Codex, TraeX, Copilot and Amp keep the logs of all projects together.
        _ => (None, below),
    };
    let mut path = root.clone();
    path.extend(project);
    path.extend(rest.split('/'));
    Ok(LogPlace { path, marker })
}

/// Returns the name of a project's folder in which a hyphen replaces every unit of UTF-16 that is not an
/// ASCII letter or digit.
fn name_with_hyphens(folder: &str) -> Result<String, String> {
    let mut name = String::with_capacity(folder.len());
    for c in folder.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else {
            name.extend(std::iter::repeat_n('-', c.len_utf16()));
        }
    }
    if name.len() > MAX_PROJECT_NAME_CHARS {
        return Err("the path of the folder is too long for its agent to name it".to_owned());
    }
    Ok(name)
}

/// Returns the name of a project's folder of Pi.
fn pi_name(folder: &str) -> String {
    let folder = folder.strip_prefix(['/', '\\']).unwrap_or(folder);
    format!("--{}--", folder.replace(['/', '\\', ':'], "-"))
}

/// Returns the name of a project's folder of Gemini CLI, and the file that gives it to the project if it
/// is new: Gemini CLI looks in its list, then for such a file, and takes a free name at last.
fn gemini_name(
    root: &Path,
    folder: &str,
    platform: Platform,
) -> Result<(String, Option<(PathBuf, String)>), String> {
    let folder = match platform {
        Platform::Windows => folder.to_lowercase(),
        Platform::Linux | Platform::MacOs => folder.to_owned(),
    };
    let list = root.parent().map(|home| home.join("projects.json"));
    let list = list.and_then(|path| sidecar::read_json(&path, MAX_REGISTRY_BYTES));
    let projects = list.as_ref().and_then(|list| list["projects"].as_object());
    let owner = |name: &str| {
        let bytes = read_bounded_file(&root.join(name).join(".project_root"), MAX_REGISTRY_BYTES);
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim().to_owned())
    };
    let listed = projects.and_then(|projects| projects.get(&folder)?.as_str());
    if let Some(name) = listed.filter(|name| is_safe_below(name) && !name.contains('/'))
        && owner(name).is_none_or(|owner| owner == folder)
    {
        return Ok((name.to_owned(), None));
    }
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    if let Some(name) = names.iter().find(|name| owner(name).as_ref() == Some(&folder)) {
        return Ok((name.clone(), None));
    }
    // An earlier version has used the project.
    let hash = hash_of_folder(&folder);
    if names.contains(&hash) {
        return Ok((hash, None));
    }
    let base = short_name(&folder);
    let history = root.parent().map(|home| home.join("history"));
    let is_taken = |name: &String| {
        names.contains(name)
            || history.as_ref().is_some_and(|history| history.join(name).exists())
            || projects.is_some_and(|projects| {
                projects.values().any(|taken| taken.as_str() == Some(name.as_str()))
            })
    };
    let mut candidates = (0..MAX_SHORT_NAMES)
        .map(|number| if number == 0 { base.clone() } else { format!("{base}-{number}") });
    let name = candidates.find(|name| !is_taken(name));
    let name = name.ok_or("Gemini CLI has too many projects of this name")?;
    let marker = root.join(&name).join(".project_root");
    Ok((name, Some((marker, folder))))
}

/// Returns the short name of a folder: its last name in lower case, with single hyphens.
fn short_name(folder: &str) -> String {
    let last = folder.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = String::new();
    for c in last.to_lowercase().chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '-' };
        if c != '-' || !name.ends_with('-') {
            name.push(c);
        }
    }
    let name = name.strip_prefix('-').unwrap_or(&name);
    let name = name.strip_suffix('-').unwrap_or(name);
    if name.is_empty() { "project".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(provider: Provider, below: &str, folder: &str) -> Result<String, String> {
        let folders = AgentFolders::on_platform(Platform::Linux, Path::new("/home/tom"), &|_| None);
        let place = place_log(provider, below, folder, &folders)?;
        Ok(place.path.to_string_lossy().into_owned())
    }

    #[test]
    fn each_agent_names_the_folder_of_a_project_in_its_own_way() {
        for (provider, below, wanted) in [
            (
                Provider::Claude,
                "C--code-harbor/9ae8/subagents/agent-a.jsonl",
                ".claude/projects/-srv-my-code-2-harbor/9ae8/subagents/agent-a.jsonl",
            ),
            (
                Provider::Qwen,
                "x/chats/b7.jsonl",
                ".qwen/projects/-srv-my-code-2-harbor/chats/b7.jsonl",
            ),
            (
                Provider::Pi,
                "x/2026_b7.jsonl",
                ".pi/agent/sessions/--srv-my_code.2-harbor--/2026_b7.jsonl",
            ),
            (Provider::Droid, "x/b7.jsonl", ".factory/sessions/-srv-my_code.2-harbor/b7.jsonl"),
            (Provider::Codex, "2026/10/14/r.jsonl", ".codex/sessions/2026/10/14/r.jsonl"),
            (Provider::Copilot, "b7/events.jsonl", ".copilot/session-state/b7/events.jsonl"),
            (Provider::Amp, "T-1.json", ".local/share/amp/threads/T-1.json"),
            (Provider::Gemini, "x/chats/s.json", ".gemini/tmp/harbor/chats/s.json"),
        ] {
            let found = place(provider, below, "/srv/my_code.2/harbor");
            assert_eq!(found, Ok(format!("/home/tom/{wanted}")));
        }
        assert!(place(Provider::Kimi, "x/y.jsonl", "/srv").is_err());
        assert!(place(Provider::Droid, "x/y.jsonl", r"C:\srv").is_err());
        assert!(place(Provider::Claude, "y.jsonl", "/srv").is_err());
        assert!(place(Provider::Claude, "x/y.jsonl", &format!("/{}", "a".repeat(200))).is_err());
    }

    #[test]
    fn a_place_of_another_machine_leads_nowhere_else() {
        for below in ["x/y.jsonl", "x", "a b/ü.json", "common/command.jsonl", "x/.project_root"] {
            assert!(is_safe_below(below), "{below}");
        }
        let long = "a/".repeat(MAX_BELOW_BYTES) + "a";
        for below in [
            "",
            "/",
            "/etc/passwd",
            "../x",
            "x/../y",
            "x//y",
            "x/",
            ".",
            "x/.",
            "x\\y",
            "C:/x",
            "c:x",
            "x/nul",
            "x/CON.json",
            "x/com1",
            "x/y ",
            "x/y.",
            "x\0y",
            "x\ny",
            "x/y:z",
            &long,
        ] {
            assert!(!is_safe_below(below), "{below:?}");
            assert!(place(Provider::Codex, below, "/srv").is_err(), "{below:?}");
        }
    }

    #[test]
    fn gemini_finds_its_project_in_every_state_of_its_list() {
        let dir = tempfile::tempdir().expect("tempdir");
        let home = dir.path();
        let none = |_: &str| None;
        let folders = AgentFolders::on_platform(Platform::Linux, home, &none);
        let find = || {
            let found = place_log(Provider::Gemini, "x/chats/s.json", "/srv/My.Harbor", &folders);
            let found = found.expect("a place");
            let below = found.path.strip_prefix(home.join(".gemini/tmp")).expect("below");
            (below.to_string_lossy().into_owned(), found.marker.map(|(_, text)| text))
        };
        let new = Some("/srv/My.Harbor".to_owned());
        assert_eq!(find(), ("my-harbor/chats/s.json".to_owned(), new.clone()));
        fs::create_dir_all(home.join(".gemini/tmp/my-harbor")).expect("creates");
        assert_eq!(find(), ("my-harbor-1/chats/s.json".to_owned(), new));
        let hash = hash_of_folder("/srv/My.Harbor");
        fs::create_dir_all(home.join(".gemini/tmp").join(&hash)).expect("creates");
        assert_eq!(find(), (format!("{hash}/chats/s.json"), None));
        fs::write(home.join(".gemini/tmp/my-harbor/.project_root"), "/srv/My.Harbor\n")
            .expect("writes");
        assert_eq!(find(), ("my-harbor/chats/s.json".to_owned(), None));
        let list = r#"{"projects":{"/srv/My.Harbor":"quay"}}"#;
        fs::write(home.join(".gemini/projects.json"), list).expect("writes");
        assert_eq!(find(), ("quay/chats/s.json".to_owned(), None));
        fs::create_dir_all(home.join(".gemini/tmp/quay")).expect("creates");
        fs::write(home.join(".gemini/tmp/quay/.project_root"), "/else").expect("writes");
        assert_eq!(find(), ("my-harbor/chats/s.json".to_owned(), None));
    }
}
