//! The log of what hooks said: one JSON object per line in `hooks.jsonl`, the newest last.
//!
//! ```text
//! {"time":1795660000000000,"client":"claude","hook":"prompt","session":"3f9a..","project":"harbor",
//!  "reason":"..","ids":["9ae8..:12"],"key":"5d41..","bytes":812,"ms":14}
//! ```
//!
//! It holds no text from logs. From it a hook knows what was already said in a session.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use base::files::open_regular;
use serde::{Deserialize, Serialize};

use super::disk::files;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::folder::{HOOK_LOG, HOOK_LOG_LOCK};

/// Size of the log in bytes from which its older half is removed.
const MAX_LOG_BYTES: usize = 1 << 20;

/// Time to wait for another hook that holds the log.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(40);

/// One thing that a hook said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookLogRow {
    /// Microseconds since the epoch.
    pub time: i64,
    /// The agent.
    pub client: String,
    /// The hook.
    pub hook: String,
    /// The session in which it was said, as the agent names it. `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Name of the folder in which the agent works.
    pub project: String,
    /// Why it was said.
    pub reason: String,
    /// The sessions and events that were quoted.
    pub ids: Vec<String>,
    /// A hash of what it was about.
    pub key: String,
    /// Size of the text in bytes.
    pub bytes: usize,
    /// Time that the hook took, in milliseconds.
    pub ms: u64,
}

/// The log while it is locked, so that two hooks at once do not say the same.
pub struct HookLog {
    lock: StoreLock,
    path: std::path::PathBuf,
    rows: Vec<HookLogRow>,
    bytes: usize,
}

impl HookLog {
    /// Locks and reads the log of the store in `dir`.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another hook holds it for longer than [`MAX_LOCK_WAIT`],
    /// [`StoreError::Io`] if it cannot be read.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        let lock = StoreLock::acquire_within(dir, HOOK_LOG_LOCK, MAX_LOCK_WAIT)?;
        let path = dir.join(HOOK_LOG);
        let bytes = files::read_if_exists(&path)?.unwrap_or_default();
        Ok(Self { lock, rows: parse_rows(&bytes), bytes: bytes.len(), path })
    }

    /// Returns what was said, the newest last.
    pub fn rows(&self) -> &[HookLogRow] {
        &self.rows
    }

    /// Adds a row. If the log is too long, its older half is removed.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be written, [`StoreError::Replaced`] if the store was moved.
    pub fn append(self, row: &HookLogRow) -> Result<(), StoreError> {
        self.lock.check_not_replaced()?;
        if self.bytes > MAX_LOG_BYTES {
            let newer = &self.rows[self.rows.len() / 2..];
            return self.replace_rows(newer.iter().chain([row]));
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let mut file =
            open_regular(&self.path, &mut options).map_err(StoreError::io(&self.path))?;
        file.write_all(encode_row(row).as_bytes()).map_err(StoreError::io(&self.path))
    }

    /// Removes the rows that quote or were said in one of these sessions.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be written.
    pub(super) fn remove_sessions(
        self,
        is_removed: impl Fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        let names = |row: &HookLogRow| {
            let quoted =
                row.ids.iter().map(|id| id.rsplit_once(':').map_or(id.as_str(), |(id, _)| id));
            quoted.chain(row.session.as_deref()).any(&is_removed)
        };
        if !self.rows.iter().any(names) {
            return Ok(());
        }
        self.replace_rows(self.rows.iter().filter(|row| !names(row)))
    }

    fn replace_rows<'r>(
        &self,
        rows: impl Iterator<Item = &'r HookLogRow>,
    ) -> Result<(), StoreError> {
        let text: String = rows.map(encode_row).collect();
        files::replace_file(&self.path, text.as_bytes())
    }
}

/// Returns what hooks said, the newest last; nothing if there is no log.
///
/// # Errors
/// [`StoreError::Io`] if the log cannot be read.
pub(super) fn read_hook_log(dir: &Path) -> Result<Vec<HookLogRow>, StoreError> {
    let bytes = files::read_if_exists(&dir.join(HOOK_LOG))?;
    Ok(parse_rows(&bytes.unwrap_or_default()))
}

/// Parses the rows. A line that a killed process left unfinished is skipped.
fn parse_rows(bytes: &[u8]) -> Vec<HookLogRow> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Returns a row as a line.
fn encode_row(row: &HookLogRow) -> String {
    format!("{}\n", serde_json::to_string(row).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(session: &str, id: &str) -> HookLogRow {
        HookLogRow {
            time: 1,
            client: "claude".to_owned(),
            hook: "prompt".to_owned(),
            session: Some(session.to_owned()),
            project: "harbor".to_owned(),
            reason: "x".repeat(200),
            ids: vec![id.to_owned()],
            key: "k".to_owned(),
            bytes: 10,
            ms: 1,
        }
    }

    fn add(dir: &Path, row: &HookLogRow) {
        HookLog::open(dir).expect("opens").append(row).expect("appends");
    }

    #[test]
    fn rows_are_read_back_and_a_broken_line_is_skipped() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert!(read_hook_log(dir.path()).expect("reads").is_empty());
        add(dir.path(), &row("a", "b:1"));
        let path = dir.path().join(HOOK_LOG);
        let mut text = std::fs::read(&path).expect("reads");
        text.extend_from_slice(b"{\"time\":\n");
        std::fs::write(&path, text).expect("writes");
        add(dir.path(), &row("c", "d:2"));
        let rows = read_hook_log(dir.path()).expect("reads");
        assert_eq!(rows, [row("a", "b:1"), row("c", "d:2")]);
    }

    #[test]
    fn a_long_log_loses_its_older_half() {
        let dir = tempfile::tempdir().expect("tempdir");
        let line = encode_row(&row("old", "o:1"));
        let lines = line.repeat(MAX_LOG_BYTES / line.len() + 2);
        std::fs::write(dir.path().join(HOOK_LOG), &lines).expect("writes");
        add(dir.path(), &row("new", "n:1"));
        let rows = read_hook_log(dir.path()).expect("reads");
        assert!(rows.len() < lines.len() / line.len() / 2 + 3, "{}", rows.len());
        assert_eq!(rows.last(), Some(&row("new", "n:1")));
    }

    #[test]
    fn rows_of_a_removed_session_go() {
        let dir = tempfile::tempdir().expect("tempdir");
        for row in [row("a", "b:1"), row("c", "d:2"), row("e", "a:3"), row("e", "a")] {
            add(dir.path(), &row);
        }
        let log = HookLog::open(dir.path()).expect("opens");
        log.remove_sessions(|id| id == "a").expect("removes");
        assert_eq!(read_hook_log(dir.path()).expect("reads"), [row("c", "d:2")]);
    }
}
