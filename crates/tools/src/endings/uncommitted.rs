//! Finds the files that a log shows as uncommitted: those of the last `git status`, and those that
//! were edited after it or after the last commit.

use std::collections::BTreeSet;

use schemas::tool::details::Uncommitted;

use crate::analyze::Action;
use crate::reply::convert;
use base::paths::path_below;
use base::sanitize::{clean_text, one_line};

/// Commands after which an earlier `git status` no longer holds.
const CHANGING_COMMANDS: &[&str] = &[
    "git commit",
    "git stash",
    "git reset",
    "git checkout",
    "git switch",
    "git restore",
    "git clean",
    "git merge",
    "git rebase",
    "git pull",
    "git cherry-pick",
    "git revert",
    "git am",
];

/// Headings of `git status` under which files are listed.
const FILE_HEADINGS: &[&str] = &[
    "Changes to be committed:",
    "Changes not staged for commit:",
    "Untracked files:",
    "Unmerged paths:",
];

/// The state of the working tree at a point of the session.
enum TreeState {
    /// The log does not show it.
    Unknown,
    /// After a commit.
    Committed,
    /// As a `git status` listed it.
    Listed { event_id: String, files: Vec<String> },
}

/// Returns the uncommitted files at the end; `None` if the log does not show any. At most
/// `max_files` files are in each list.
pub(super) fn find_uncommitted(
    actions: &[&Action<'_>],
    folder: Option<&str>,
    max_files: usize,
) -> Option<Uncommitted> {
    let mut state = TreeState::Unknown;
    let mut edited: BTreeSet<String> = BTreeSet::new();
    let mut last_edit = None;
    for action in actions.iter().filter(|action| action.has_succeeded()) {
        if action.is_edit() {
            edited.extend(files_below(action, folder));
            last_edit = Some(convert::event_id(action.call));
        }
        let Some(command) = action.command() else { continue };
        let Some(next) = state_after(action, command) else { continue };
        state = next;
        edited.clear();
        last_edit = None;
    }
    let (event_id, files) = match state {
        TreeState::Unknown => return None,
        TreeState::Committed => (None, Vec::new()),
        TreeState::Listed { event_id, files } => (Some(event_id), files),
    };
    if files.is_empty() && edited.is_empty() {
        return None;
    }
    let omitted = files.len().saturating_sub(max_files) + edited.len().saturating_sub(max_files);
    Some(Uncommitted {
        event_id: event_id.filter(|_| !files.is_empty()),
        files: files.into_iter().take(max_files).collect(),
        edit_event_id: last_edit,
        edited: edited.into_iter().take(max_files).collect(),
        omitted,
    })
}

/// Returns the files of an edit that are in the session's folder, relative to it.
fn files_below(action: &Action<'_>, folder: Option<&str>) -> Vec<String> {
    let Some(folder) = folder else { return Vec::new() };
    let below = action.files().iter().filter_map(|path| path_below(folder, path));
    below.map(|path| one_line(&clean_text(&path))).collect()
}

/// Returns the state that a command leaves or shows; `None` if it neither changes nor shows it.
fn state_after(action: &Action<'_>, command: &str) -> Option<TreeState> {
    let status = command.rfind("git status");
    let change = CHANGING_COMMANDS.iter().filter_map(|changing| command.rfind(changing)).max();
    let commit = command.rfind("git commit");
    match (status, change) {
        (Some(status), change) if change.is_none_or(|change| status > change) => {
            let output = clean_text(&action.result?.text);
            Some(match parse_status(&output) {
                Some(files) => {
                    TreeState::Listed { event_id: convert::event_id(action.outcome_event()), files }
                }
                None if commit.is_some() => TreeState::Committed,
                None => TreeState::Unknown,
            })
        }
        (_, Some(change)) if commit == Some(change) => Some(TreeState::Committed),
        (_, Some(_)) => Some(TreeState::Unknown),
        (_, None) => None,
    }
}

/// Returns the files that a `git status` lists, in its long or short form; `None` if the output is
/// neither.
fn parse_status(output: &str) -> Option<Vec<String>> {
    let mut files = Vec::new();
    let mut is_status = false;
    let mut is_listing = false;
    for line in output.lines() {
        let plain = line.strip_prefix("Output: ").unwrap_or(line);
        if plain.starts_with("On branch ") || plain.starts_with("HEAD detached ") {
            is_status = true;
            files.clear();
        } else if plain.starts_with("## ") {
            is_status = true;
        } else if plain.starts_with("nothing to commit") || plain.starts_with("no changes added") {
            is_listing = false;
        } else if FILE_HEADINGS.contains(&plain.trim_end()) {
            is_listing = true;
        } else if let Some(path) = short_status_path(plain).filter(|_| !is_listing) {
            is_status = true;
            push_file(&mut files, path);
        } else if let Some(path) = long_status_path(plain).filter(|_| is_listing) {
            push_file(&mut files, path);
        }
    }
    is_status.then_some(files)
}

fn push_file(files: &mut Vec<String>, path: &str) {
    let path = one_line(path.trim().trim_matches('"'));
    if !path.is_empty() && !files.contains(&path) {
        files.push(path);
    }
}

/// Returns the path of a line like ` M src/a.rs`.
fn short_status_path(line: &str) -> Option<&str> {
    let mut chars = line.chars();
    let (x, y, blank) = (chars.next()?, chars.next()?, chars.next()?);
    let is_state = |c: char| " MADRCUT?".contains(c);
    let has_change = x != ' ' || y != ' ';
    let is_untracked = (x == '?') == (y == '?');
    let rest = chars.as_str();
    let is_path = !rest.is_empty() && !rest.starts_with(' ');
    if is_state(x) && is_state(y) && has_change && is_untracked && blank == ' ' && is_path {
        // A renamed file is listed as `old -> new`.
        return Some(rest.rsplit(" -> ").next().unwrap_or(rest));
    }
    None
}

/// Returns the path of a line like `        modified:   src/a.rs`.
fn long_status_path(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('\t').or_else(|| line.strip_prefix("        "))?.trim();
    let path = match inner.split_once(":   ") {
        Some((_, path)) => path.trim(),
        None => inner,
    };
    Some(path.rsplit(" -> ").next().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_status_are_read() {
        let long = "On branch main\nChanges not staged for commit:\n  (use \"git add\")\n\tmodified:   a.rs\n\trenamed:    b.rs -> c.rs\n\nUntracked files:\n\td/\n\nno changes added to commit";
        assert_eq!(parse_status(long), Some(vec!["a.rs".into(), "c.rs".into(), "d/".into()]));
        let short = "Chunk ID: 1\nOutput:\n## main...origin/main\n M a.rs\n?? b/\nR  c -> d";
        assert_eq!(parse_status(short), Some(vec!["a.rs".into(), "b/".into(), "d".into()]));
        let clean = "On branch main\nnothing to commit, working tree clean";
        assert_eq!(parse_status(clean), Some(Vec::new()));
        for other in ["", "Modified: 6 files\n   a.rs", " 3 files changed", "A sentence here"] {
            assert_eq!(parse_status(other), None, "{other}");
        }
    }
}
