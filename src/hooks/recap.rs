//! Says where the last sessions of a project ended.

use std::path::Path;

use schemas::session::SessionRow;
use schemas::{EventId, Timestamp, ToolError, Zone};

use super::fence::quote;
use super::project::describe_machine;
use base::dropped_text::{DROPPED_TITLE, kept_part};
use store::Snapshot;
use tools::error::store_error;
use tools::{
    HistoryScope, MAX_SINCE_BYTES, RecalledSession, SessionTail, describe_since, find_decisions,
    read_session_tail,
};

/// Maximum size in bytes of what is said about all sessions.
const MAX_RECAP_BYTES: usize = 1650;

/// Maximum number of sessions that are described.
const MAX_SESSIONS: usize = 3;

/// Sessions that ended longer ago than this are not described: 45 days, in microseconds.
const MAX_AGE_US: i64 = 45 * 24 * 3600 * 1_000_000;

/// Maximum number of decisions that are shown, and their size in bytes.
const MAX_DECISIONS: usize = 2;
const MAX_DECISION_BYTES: usize = 200;

/// Maximum number of to-dos that are shown.
const MAX_TODOS: usize = 4;

/// Maximum number of files that are shown.
const MAX_FILES: usize = 5;

/// Maximum sizes of quotes in bytes: of the newest session, and of those before it.
const NEWEST: QuoteSizes = QuoteSizes { title: 80, prompt: 160, answer: 420 };
const EARLIER: QuoteSizes = QuoteSizes { title: 70, prompt: 90, answer: 140 };

#[derive(Debug, Clone, Copy)]
struct QuoteSizes {
    title: usize,
    prompt: usize,
    answer: usize,
}

/// Where the last sessions ended.
pub(super) struct Recap {
    pub(super) text: String,
    /// The ids of the sessions and events that the text names.
    pub(super) ids: Vec<String>,
}

/// Describes the end of the newest sessions in `scope`, and decisions about files of the branch
/// that is checked out in `cwd`; `None` if there are no sessions.
pub(super) fn describe_last_sessions(
    snapshot: &Snapshot,
    scope: &HistoryScope,
    cwd: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Recap>, ToolError> {
    let sessions = snapshot.sessions();
    let mut recent: Vec<usize> = Vec::new();
    for position in &scope.sessions {
        let session = &sessions[*position];
        let is_recent = session.ended_at.is_some_and(|end| scope.until - end < MAX_AGE_US);
        let is_part = session.is_subagent || session.is_earlier_version;
        if is_recent && session.replay_events < session.events && !is_part {
            recent.push(*position);
        }
    }
    let end_of = |position: &usize| sessions[*position].ended_at.map(|end| end.min(scope.until));
    recent.sort_by(|a, b| end_of(b).cmp(&end_of(a)).then_with(|| a.cmp(b)));

    let mut last = Vec::new();
    for position in recent {
        let row = sessions[position].row().map_err(store_error)?;
        if row.user_messages > 0 {
            last.push((position, row));
        }
        if last.len() == MAX_SESSIONS {
            break;
        }
    }

    let mut recap = Recap { text: String::new(), ids: Vec::new() };
    let newest_branch = last.first().and_then(|(_, row)| row.git_branch.clone());
    for (position, row) in last {
        if stop() {
            break;
        }
        let tail = read_session_tail(snapshot, position, scope.until)?;
        let sizes = if recap.ids.is_empty() { NEWEST } else { EARLIER };
        let (mut text, ids) = describe_session(row, &tail, sizes, scope.until);
        let quoted = tail.prompt.iter().chain(&tail.answer);
        let passages = quoted
            .filter_map(|(id, text)| Some((id.parse::<EventId>().ok()?.index, text.as_str())));
        let recalled = RecalledSession { session: position, passages: passages.collect() };
        text.push_str(&since_line(snapshot, recalled, scope)?);
        if recap.text.len() + text.len() > MAX_RECAP_BYTES {
            break;
        }
        recap.text.push_str(&text);
        recap.ids.extend(ids);
    }
    if recap.ids.is_empty() {
        return Ok(None);
    }
    if let Some(branch) = read_branch(cwd).or(newest_branch) {
        for decision in find_decisions(snapshot, scope, &branch, MAX_DECISIONS, stop)? {
            let sentence = quote(&decision.sentence, MAX_DECISION_BYTES);
            let machine = describe_machine(sessions[decision.session].origin.machine.as_deref());
            let line = format!("- decided [{}]{machine}: {sentence}\n", decision.event_id);
            if recap.text.len() + line.len() <= MAX_RECAP_BYTES {
                recap.text.push_str(&line);
                recap.ids.push(decision.event_id);
            }
        }
    }
    Ok(Some(recap))
}

/// Returns the line about what happened since passages of a session, in sessions of `scope`; empty if nothing
/// is known.
pub(super) fn since_line(
    snapshot: &Snapshot,
    recalled: RecalledSession<'_>,
    scope: &HistoryScope,
) -> Result<String, ToolError> {
    let since =
        describe_since(snapshot, &[recalled], Some(scope), &Zone::UTC, MAX_SINCE_BYTES)?.pop();
    Ok(since.flatten().map_or_else(String::new, |since| {
        format!("  since then: {}\n", quote(&since, MAX_SINCE_BYTES))
    }))
}

/// Returns the branch that is checked out in a folder; `None` if it is not in a repository.
fn read_branch(cwd: &Path) -> Option<String> {
    let git = cwd.ancestors().map(|dir| dir.join(".git")).find(|git| git.exists())?;
    let mut head = git.join("HEAD");
    // In a worktree, `.git` is a file that names the folder with its `HEAD`.
    if git.is_file() {
        let pointer = std::fs::read_to_string(&git).ok()?;
        head = git.parent()?.join(pointer.strip_prefix("gitdir: ")?.trim()).join("HEAD");
    }
    let text = std::fs::read_to_string(head).ok()?;
    text.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
}

/// Returns the lines about one session, and the ids that they name.
fn describe_session(
    row: &SessionRow,
    tail: &SessionTail,
    sizes: QuoteSizes,
    until: i64,
) -> (String, Vec<String>) {
    let mut ids = vec![row.session_id.clone()];
    let ended = row.ended_at.map(|end| Timestamp(end.min(until)).to_string()).unwrap_or_default();
    let day = ended.get(..16).unwrap_or(&ended).replace('T', " ");
    let machine = describe_machine(row.machine.as_deref());
    let mut text =
        format!("- session {} ({}, ended {day} UTC{machine}", row.session_id, row.provider);
    if let Some(branch) = &row.git_branch {
        text.push_str(&format!(", branch {}", quote(branch, 40)));
    }
    text.push_str(")\n");
    if let Some(title) = row.title.as_deref().filter(|title| *title != DROPPED_TITLE) {
        text.push_str(&format!("  title: {}\n", quote(title, sizes.title)));
    }
    if let Some((id, prompt)) = tail.prompt.as_ref().filter(|(_, text)| has_words(text)) {
        text.push_str(&format!("  last prompt [{id}]: {}\n", quote(prompt, sizes.prompt)));
        ids.push(id.clone());
    }
    if let Some((id, answer)) = tail.answer.as_ref().filter(|(_, text)| has_words(text)) {
        text.push_str(&format!("  last answer [{id}]: {}\n", quote(answer, sizes.answer)));
        ids.push(id.clone());
    }
    for open in &tail.open_ends {
        text.push_str(&format!("  open: {open}.\n"));
    }
    if let Some(newest) = tail.open_todos.last() {
        let shown: Vec<String> =
            tail.open_todos.iter().take(MAX_TODOS).map(|todo| quote(&todo.text, 80)).collect();
        let id = &newest.event_id;
        text.push_str(&format!("  not done in its plan [{id}]: {}", shown.join(", ")));
        if tail.open_todos.len() > MAX_TODOS {
            text.push_str(&format!(" and {} more", tail.open_todos.len() - MAX_TODOS));
        }
        text.push('\n');
        ids.push(id.clone());
    }
    if !tail.edited.is_empty() {
        let files = tail.edited.iter().take(MAX_FILES).map(|path| shorten_path(row, path));
        text.push_str(&format!("  edited last: {}\n", files.collect::<Vec<_>>().join(", ")));
    }
    (text, ids)
}

/// Returns whether the retention left something of a text.
fn has_words(text: &str) -> bool {
    !kept_part(text).trim().is_empty()
}

/// Returns a path of a session relative to its folder, quoted.
fn shorten_path(row: &SessionRow, path: &str) -> String {
    let folder = row.cwd.as_deref().unwrap_or_default();
    let inner = path.strip_prefix(folder).filter(|_| !folder.is_empty());
    quote(inner.map_or(path, |inner| inner.trim_start_matches('/')), 80)
}
