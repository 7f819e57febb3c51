//! Watches folders for `sessions ingest --watch`, which ingests logs as they change.
//!
//! File events report what changed. A check of all files every half minute finds what they missed,
//! and is the only source where a system gives no events. Changes are collected for a moment, so a
//! log that grows all the time costs a bounded number of runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ingest::discover::is_log_name;
use ingest::run::report::Report;
use ingest::source::candidate::{Candidate, Container};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use schemas::{ErrorCode, ToolError};

use super::ingest_logs::{BUSY_RETRY, IngestOptions, MAX_NAMED_FILES, ingest_logs};
use crate::config::environment::known_roots;
use crate::store::Store;

/// Time to wait for further changes after a change.
const SETTLE: Duration = Duration::from_millis(150);

/// Maximum time from the first change to the run.
const LONGEST: Duration = Duration::from_millis(400);

/// Interval between checks of all files.
const POLL: Duration = Duration::from_secs(30);

/// Interval between checks of all files where there are no file events.
const POLL_ONLY: Duration = Duration::from_secs(1);

/// The files to ingest next.
#[derive(Debug, PartialEq, Eq)]
pub enum Changed {
    /// These files.
    Files(Vec<PathBuf>),
    /// Everything that is new below the roots.
    Anything,
}

/// A watcher of folders.
pub struct Watch {
    events: Receiver<notify::Result<notify::Event>>,
    /// Kept because it owns the thread that sends events; `None` where the system gives no events.
    watcher: Option<RecommendedWatcher>,
    looked: Instant,
}

impl Watch {
    /// Watches `roots` and everything below them.
    pub fn new(roots: &[PathBuf]) -> Self {
        let (send, events) = channel();
        let watcher = notify::recommended_watcher(send).ok().and_then(|mut watcher| {
            let watch = |root: &PathBuf| watcher.watch(root, RecursiveMode::Recursive);
            roots.iter().map(watch).collect::<Result<Vec<_>, _>>().is_ok().then_some(watcher)
        });
        Self { events, watcher, looked: Instant::now() }
    }

    /// Returns true if the system reports changes; otherwise all files are checked every second.
    pub fn has_events(&self) -> bool {
        self.watcher.is_some()
    }

    /// Waits until something changes below the roots, or until the next check of all files is due.
    pub fn wait(&mut self) -> Changed {
        let poll = if self.watcher.is_some() { POLL } else { POLL_ONLY };
        let mut files = BTreeSet::new();
        let mut overflow = false;
        let mut first: Option<Instant> = None;
        loop {
            let wait = match first {
                None => poll.saturating_sub(self.looked.elapsed()),
                // A log that never stops growing must not delay the run forever.
                Some(first) => SETTLE.min(LONGEST.saturating_sub(first.elapsed())),
            };
            match self.events.recv_timeout(wait) {
                Ok(Ok(event)) => {
                    overflow |= event.need_rescan();
                    for path in event.paths.into_iter().filter(|_| !event.kind.is_access()) {
                        match wanted(&path) {
                            Wanted::File => {
                                files.insert(path);
                            }
                            Wanted::Everything => overflow = true,
                            Wanted::Nothing => {}
                        }
                    }
                }
                Ok(Err(_)) => overflow = true,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    self.watcher = None;
                    std::thread::sleep(wait.min(POLL_ONLY));
                    break;
                }
            }
            overflow |= files.len() > MAX_NAMED_FILES;
            if overflow || !files.is_empty() {
                first.get_or_insert_with(Instant::now);
            }
        }
        if overflow || files.is_empty() {
            self.looked = Instant::now();
            return Changed::Anything;
        }
        Changed::Files(files.into_iter().collect())
    }
}

/// Ingests, and then ingests every change below `paths` (or the known roots), until `report`
/// returns that it has seen enough. If another writer holds the lock, the function waits for it.
pub fn watch_logs(
    store: &Store,
    paths: &[PathBuf],
    options: &IngestOptions,
    mut report: impl FnMut(Report) -> bool,
) -> Result<(), ToolError> {
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    let mut watch = Watch::new(&roots);
    let mut next = roots.clone();
    loop {
        let anything = next == roots;
        match ingest_logs(store, &next, options, &()) {
            Ok(done) => {
                if !report(done) {
                    return Ok(());
                }
            }
            Err(error) if error.code == ErrorCode::StoreBusy => {
                std::thread::sleep(BUSY_RETRY);
                continue;
            }
            // A file may vanish between its change and its ingest.
            Err(error) if !anything && error.code == ErrorCode::InvalidArgument => {}
            Err(error) => return Err(error),
        }
        next = match watch.wait() {
            Changed::Files(files) => files,
            Changed::Anything => roots.clone(),
        };
    }
}

/// The files to ingest after a change of one file.
enum Wanted {
    File,
    /// All files, because the changed one is a part of a log that consists of many files.
    Everything,
    Nothing,
}

fn wanted(path: &Path) -> Wanted {
    if !path.is_file() {
        // Folders are found through the files in them; the next check finds files that vanished.
        return Wanted::Nothing;
    }
    match Candidate::named(path.to_owned()) {
        _ if !is_log_name(path) => Wanted::Nothing,
        Ok(file) if file.container == Container::Plain => Wanted::File,
        _ => Wanted::Everything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_log_is_named_and_other_files_are_not() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut watch = Watch::new(&[dir.path().to_owned()]);
        if !watch.has_events() {
            // Without events everything is looked at every second.
            return assert_eq!(watch.wait(), Changed::Anything);
        }
        std::fs::write(dir.path().join("notes.txt"), "x").expect("writes");
        let log = dir.path().join("a.jsonl");
        std::fs::write(&log, "{}\n").expect("writes");
        assert_eq!(watch.wait(), Changed::Files(vec![log]));
    }
}
