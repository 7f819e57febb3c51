//! `sessions ingest --watch`: ingests what changes, as it changes.
//!
//! File events say what changed; a look at everything every half minute finds what they missed,
//! and is all there is where a system gives no events. Changes are collected for a moment, so a
//! log that grows all the time costs a bounded number of runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ingest::container::Container;
use ingest::discover::{Candidate, is_log_name};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// After the first sign of a change this long is waited for more of them.
const SETTLE: Duration = Duration::from_millis(150);

/// Longest time from the first sign to the run.
const LONGEST: Duration = Duration::from_millis(400);

/// Everything is looked at this often.
const POLL: Duration = Duration::from_secs(30);

/// The same where there are no file events.
const POLL_ONLY: Duration = Duration::from_secs(1);

/// More changed files than this are not named one by one.
const NAMED: usize = 200;

/// What to ingest next.
#[derive(Debug, PartialEq, Eq)]
pub enum Changed {
    /// These files.
    Files(Vec<PathBuf>),
    /// Whatever is new below the roots.
    Anything,
}

/// Watches folders.
pub struct Watch {
    events: Receiver<notify::Result<notify::Event>>,
    /// Kept for its thread; `None` where the system gives no events.
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

    /// Whether the system tells of changes; else they are looked for every second.
    pub fn has_events(&self) -> bool {
        self.watcher.is_some()
    }

    /// Waits until something changed below the roots, or until it is time to look at everything.
    pub fn wait(&mut self) -> Changed {
        let poll = if self.watcher.is_some() { POLL } else { POLL_ONLY };
        let mut files = BTreeSet::new();
        let mut overflow = false;
        let mut first: Option<Instant> = None;
        loop {
            let wait = match first {
                None => poll.saturating_sub(self.looked.elapsed()),
                // A log that never stops growing must not put the run off for ever.
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
            overflow |= files.len() > NAMED;
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

/// What a change of a file asks for.
enum Wanted {
    File,
    /// It is a part of a log that is put together from many.
    Everything,
    Nothing,
}

fn wanted(path: &Path) -> Wanted {
    if !path.is_file() {
        // Folders are found with the files in them, what vanished with the next look.
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
