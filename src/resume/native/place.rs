//! Where agents look for the log of a session of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use ingest::provider::format::AgentFolders;
use ingest::provider::log_folders;
use schemas::Provider;
use serde_json::Value;

use super::new_session::{NewSession, time_text};

/// Where the log of a session goes.
#[derive(Debug, Default)]
pub(super) struct LogPlace {
    /// The log; `None` if the agent imports it.
    pub(super) file: Option<PathBuf>,
    /// A file that says whose the folder of the log is, and its text, if that folder is new.
    pub(super) marker: Option<(PathBuf, String)>,
}

impl LogPlace {
    fn at(file: PathBuf) -> Self {
        Self { file: Some(file), marker: None }
    }
}

/// Length in characters of the names of folders that Claude Code shortens.
const MAX_CLAUDE_FOLDER_CHARS: usize = 200;

/// The file in which Gemini CLI notes whose a folder is.
const GEMINI_MARKER: &str = ".project_root";

/// Returns the folder of an agent's logs: the first that exists, or the first.
fn log_folder(agent: Provider, folders: &AgentFolders<'_>) -> Result<PathBuf, String> {
    let all = log_folders(agent, folders);
    let existing = all.iter().find(|folder| folder.is_dir());
    let chosen = existing.or(all.first()).cloned();
    chosen.ok_or_else(|| format!("No folder for the logs of {agent} is known here"))
}

/// Returns `<projects>/<working directory>/<id>.jsonl`.
pub(super) fn claude_file(
    folders: &AgentFolders<'_>,
    new: &NewSession<'_>,
) -> Result<LogPlace, String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // Claude Code replaces UTF-16 units.
    let units = new.folder.chars().flat_map(|c| std::iter::repeat_n(plain(c), c.len_utf16()));
    let name: String = units.collect();
    if name.len() > MAX_CLAUDE_FOLDER_CHARS {
        return Err(format!(
            "The path {} is longer than 200 characters, and Claude Code shortens those in its own way. Use --folder DIR",
            new.folder
        ));
    }
    let file = log_folder(Provider::Claude, folders)?.join(name).join(format!("{}.jsonl", new.id));
    Ok(LogPlace::at(file))
}

/// Returns `<sessions>/YYYY/MM/DD/rollout-<time>-<id>.jsonl`.
pub(super) fn codex_file(
    folders: &AgentFolders<'_>,
    new: &NewSession<'_>,
) -> Result<LogPlace, String> {
    let time = time_text(new.now);
    let (day, _) = time.split_at(10);
    let name = format!("rollout-{}-{}.jsonl", time[..19].replace(':', "-"), new.id);
    let sessions = log_folder(Provider::Codex, folders)?;
    let folder = day.split('-').fold(sessions, |folder, part| folder.join(part));
    Ok(LogPlace::at(folder.join(name)))
}

/// Returns `<sessions>/--<working directory>--/<time>_<id>.jsonl`.
pub(super) fn pi_file(
    folders: &AgentFolders<'_>,
    new: &NewSession<'_>,
) -> Result<LogPlace, String> {
    let path = new.folder.strip_prefix(['/', '\\']).unwrap_or(new.folder);
    let folder = format!("--{}--", path.replace(['/', '\\', ':'], "-"));
    let time = time_text(new.now).replace([':', '.'], "-");
    let sessions = log_folder(Provider::Pi, folders)?;
    Ok(LogPlace::at(sessions.join(folder).join(format!("{time}_{}.jsonl", new.id))))
}

/// Returns `<project>/chats/session-<time>-<8 digits of the id>.jsonl`.
pub(super) fn gemini_file(
    folders: &AgentFolders<'_>,
    new: &NewSession<'_>,
) -> Result<LogPlace, String> {
    let projects = log_folder(Provider::Gemini, folders)?;
    // Gemini CLI compares paths of Windows in lower case.
    let folder = if cfg!(windows) { new.folder.to_lowercase() } else { new.folder.to_owned() };
    let project = match known_gemini_project(&projects, &folder) {
        Some(known) => projects.join(known),
        None => free_gemini_project(&projects, &folder),
    };
    let marker = project.join(GEMINI_MARKER);
    let is_marked = fs::symlink_metadata(&marker).is_ok();
    let marker = (!is_marked).then_some((marker, folder));
    let time = time_text(new.now)[..16].replace(':', "-");
    // The end of a UUID of version 7 is random, and its beginning is the time.
    let digits = &new.id[new.id.len() - 8..];
    let file = project.join("chats").join(format!("session-{time}-{digits}.jsonl"));
    Ok(LogPlace { file: Some(file), marker })
}

/// Returns the name that Gemini CLI gave a working directory: in its list, or in the folder of that name.
fn known_gemini_project(projects: &Path, folder: &str) -> Option<String> {
    let list = projects.parent().map(|gemini| gemini.join("projects.json"));
    let list = list.and_then(|list| fs::read(list).ok());
    let list: Value = list.and_then(|list| serde_json::from_slice(&list).ok()).unwrap_or_default();
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(is_slug_char);
    if let Some(name) = list["projects"][folder].as_str().filter(is_name) {
        return Some(name.to_owned());
    }
    let entries = fs::read_dir(projects).ok()?.flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.find(|name| {
        let owner = fs::read_to_string(projects.join(name).join(GEMINI_MARKER));
        owner.is_ok_and(|owner| owner.trim() == folder)
    })
}

/// Returns the folder of a project that is new to Gemini CLI, which takes the folder that is marked as its own.
fn free_gemini_project(projects: &Path, folder: &str) -> PathBuf {
    let name = Path::new(folder).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let words = name.split(|c| !is_slug_char(c) || c == '-').filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let name = if words.is_empty() { "project".to_owned() } else { words.join("-") };
    let history = projects.parent().map(|gemini| gemini.join("history"));
    let is_taken = |name: &str| {
        let folders = [Some(projects), history.as_deref()].into_iter().flatten();
        folders.into_iter().any(|folder| fs::symlink_metadata(folder.join(name)).is_ok())
    };
    let mut numbered = (0..).map(|number: u32| match number {
        0 => name.clone(),
        number => format!("{name}-{number}"),
    });
    projects.join(numbered.find(|name| !is_taken(name)).unwrap_or_default())
}

fn is_slug_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}
