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
use ingest::run::report::IngestReport;
use ingest::source::candidate::{Container, LogCandidate};
use notify::{EventHandler, RecommendedWatcher, RecursiveMode, Watcher};
use schemas::{ErrorCode, ToolError};

use super::ingest_logs::{IngestOptions, MAX_NAMED_FILES, ingest_logs};
use super::write_lock::BUSY_RETRY;
use crate::config::environment::known_roots;
use store::Store;

/// Time to wait for further changes after a change.
const SETTLE_TIME: Duration = Duration::from_millis(150);

/// Maximum time from the first change to the run.
const MAX_DELAY: Duration = Duration::from_millis(400);

/// Interval between checks of all files.
const CHECK_PERIOD: Duration = Duration::from_secs(30);

/// Time after a new folder appeared until its watch has begun: files may have been written before.
pub(super) const FOLDER_WATCH_DELAY: Duration = Duration::from_millis(600);

/// Interval between checks of all files where there are no file events.
const CHECK_PERIOD_WITHOUT_EVENTS: Duration = Duration::from_secs(1);

/// The files to ingest next.
#[derive(Debug, PartialEq, Eq)]
pub enum ChangedLogs {
    /// These files.
    Files(Vec<PathBuf>),
    /// Everything that is new below the roots.
    Anything,
}

/// A watcher of folders.
pub struct LogWatcher {
    events: Receiver<notify::Result<notify::Event>>,
    /// Kept because it owns the thread that sends events; `None` where the system gives no events.
    watcher: Option<RecommendedWatcher>,
    /// The time of the last check of all files.
    last_check: Instant,
    /// When all files are checked because of a new folder whose watch has begun by then.
    folder_check: Option<Instant>,
}

impl LogWatcher {
    /// Watches `roots` and everything below them.
    pub fn new(roots: &[PathBuf]) -> Self {
        let (send, events) = channel();
        let watcher = start_watcher(roots, send);
        Self { events, watcher, last_check: Instant::now(), folder_check: None }
    }

    /// Returns true if the system reports changes; otherwise all files are checked every second.
    pub fn has_events(&self) -> bool {
        self.watcher.is_some()
    }

    /// Waits until something changes below the roots, or until the next check of all files is due.
    pub fn wait_for_change(&mut self) -> ChangedLogs {
        let mut reported = Reported::default();
        // The time of the first change.
        let mut first: Option<Instant> = None;
        loop {
            let wait = match first {
                None => self.time_to_check(),
                // A log that never stops growing must not delay the run forever.
                Some(first) => SETTLE_TIME.min(MAX_DELAY.saturating_sub(first.elapsed())),
            };
            match self.events.recv_timeout(wait) {
                Ok(Ok(event)) => reported.add(&event),
                Ok(Err(_)) => reported.must_check_all = true,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    self.watcher = None;
                    std::thread::sleep(wait.min(CHECK_PERIOD_WITHOUT_EVENTS));
                    break;
                }
            }
            if reported.must_check_all
                || !reported.files.is_empty()
                || reported.last_folder.is_some()
            {
                first.get_or_insert_with(Instant::now);
            }
        }
        let Reported { files, must_check_all, last_folder } = reported;
        if let Some(folder) = last_folder {
            self.folder_check = Some(folder + FOLDER_WATCH_DELAY);
        }
        if must_check_all || last_folder.is_some() || files.is_empty() {
            self.last_check = Instant::now();
            self.folder_check = self.folder_check.filter(|due| *due > self.last_check);
            return ChangedLogs::Anything;
        }
        ChangedLogs::Files(files.into_iter().collect())
    }

    /// Returns the time until the next check of all files.
    fn time_to_check(&self) -> Duration {
        let period =
            if self.watcher.is_some() { CHECK_PERIOD } else { CHECK_PERIOD_WITHOUT_EVENTS };
        let regular = period.saturating_sub(self.last_check.elapsed());
        match self.folder_check {
            Some(due) => regular.min(due.saturating_duration_since(Instant::now())),
            None => regular,
        }
    }
}

/// What the system reported since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Reported {
    pub(super) files: BTreeSet<PathBuf>,
    pub(super) must_check_all: bool,
    /// When the last new folder appeared.
    pub(super) last_folder: Option<Instant>,
}

impl Reported {
    pub(super) fn add(&mut self, event: &notify::Event) {
        if event.kind.is_access() {
            return;
        }
        // Files in a new folder may have been written before the folder was watched, and those of a
        // removed one are gone.
        self.must_check_all |= event.need_rescan() || event.kind.is_remove();
        for path in &event.paths {
            self.add_path(path);
        }
    }

    fn add_path(&mut self, path: &Path) {
        match files_to_ingest(path) {
            FilesToIngest::File => {
                self.files.insert(path.to_owned());
            }
            FilesToIngest::Everything => self.must_check_all = true,
            FilesToIngest::NewFolder => self.last_folder = Some(Instant::now()),
            FilesToIngest::Nothing => {}
        }
        self.must_check_all |= self.files.len() > MAX_NAMED_FILES;
    }
}

/// Starts to watch `roots`, whose events go to `handler`; `None` if the system has no watcher or one
/// of them cannot be watched.
pub(super) fn start_watcher(
    roots: &[PathBuf],
    handler: impl EventHandler,
) -> Option<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(handler).ok()?;
    // A root that cannot be listed has no events; the check of all files reports it.
    for root in roots.iter().filter(|root| can_be_read(root)) {
        watcher.watch(root, RecursiveMode::Recursive).ok()?;
    }
    Some(watcher)
}

/// Returns true if a root is a file, or a folder that can be listed.
pub(super) fn can_be_read(root: &Path) -> bool {
    root.is_file() || std::fs::read_dir(root).is_ok()
}

/// Ingests, and then ingests every change below `paths` (or the known roots), until `report`
/// returns false. If another writer holds the lock, the function waits for it.
///
/// `create_options` is called before each run, so that a watch of days follows the rules of masking
/// and retention that are in force by then. While they cannot be read, nothing is ingested.
pub fn watch_logs(
    store: &Store,
    paths: &[PathBuf],
    create_options: &dyn Fn() -> Result<IngestOptions, ToolError>,
    mut report: impl FnMut(IngestReport) -> bool,
) -> Result<(), ToolError> {
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    let mut watch = LogWatcher::new(&roots);
    // Without paths, an unreadable root is a problem of the report; with paths, it is an error.
    let mut next = paths.to_vec();
    let mut options = create_options()?;
    loop {
        let is_everything = next == paths;
        match ingest_logs(store, &next, &options, &()) {
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
            Err(error) if !is_everything && error.code == ErrorCode::InvalidArgument => {}
            Err(error) => return Err(error),
        }
        next = match watch.wait_for_change() {
            ChangedLogs::Files(files) => files,
            ChangedLogs::Anything => paths.to_vec(),
        };
        options = wait_for_options(create_options);
    }
}

/// Returns the options of the next run. Waits while they cannot be read: a file of settings may be
/// in the middle of an edit.
fn wait_for_options(
    create_options: &dyn Fn() -> Result<IngestOptions, ToolError>,
) -> IngestOptions {
    let mut is_reported = false;
    loop {
        match create_options() {
            Ok(options) => return options,
            Err(error) if is_reported => tracing::debug!(%error, "the settings are still invalid"),
            Err(error) => {
                tracing::warn!(%error, "nothing is ingested until the settings are valid");
                is_reported = true;
            }
        }
        std::thread::sleep(BUSY_RETRY);
    }
}

/// The files to ingest after a change of one file.
enum FilesToIngest {
    File,
    /// All files, because the changed one is a part of a log that consists of many files.
    Everything,
    /// All files, because folders and files in it may be older than its watch.
    NewFolder,
    Nothing,
}

/// Returns the files to ingest after a change of `path`.
fn files_to_ingest(path: &Path) -> FilesToIngest {
    if path.is_dir() {
        return FilesToIngest::NewFolder;
    }
    // The next check finds files that vanished.
    if !path.is_file() {
        return FilesToIngest::Nothing;
    }
    if !is_log_name(path) {
        return FilesToIngest::Nothing;
    }
    match LogCandidate::from_path(path.to_owned()) {
        Ok(file) if file.container == Container::Plain => FilesToIngest::File,
        _ => FilesToIngest::Everything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_log_is_named_and_other_files_are_not() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut watch = LogWatcher::new(&[dir.path().to_owned()]);
        if !watch.has_events() {
            // Without events all files are checked every second.
            return assert_eq!(watch.wait_for_change(), ChangedLogs::Anything);
        }
        std::fs::write(dir.path().join("notes.txt"), "x").expect("writes");
        let log = dir.path().join("a.jsonl");
        std::fs::write(&log, "{}\n").expect("writes");
        assert_eq!(watch.wait_for_change(), ChangedLogs::Files(vec![log]));
    }

    #[test]
    fn all_files_are_checked_again_when_the_watch_of_a_new_folder_has_begun() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut watch = LogWatcher::new(&[dir.path().to_owned()]);
        if !watch.has_events() {
            return;
        }
        let start = Instant::now();
        std::fs::create_dir_all(dir.path().join("project/session/subagents")).expect("creates");
        for _ in 0..2 {
            assert_eq!(watch.wait_for_change(), ChangedLogs::Anything);
        }
        assert!(start.elapsed() >= FOLDER_WATCH_DELAY && watch.folder_check.is_none());
    }
}
