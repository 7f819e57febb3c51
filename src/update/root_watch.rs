//! Remembers which logs changed below the known roots, so that a server need not check every file
//! before each answer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::RecommendedWatcher;

use super::ingest_logs::MAX_NAMED_FILES;
use super::watch::{FOLDER_WATCH_DELAY, Reported, start_watcher};

/// A scan of all files that takes longer than this is worth avoiding.
const SLOW_SCAN: Duration = Duration::from_millis(10);

/// Time after which all files are checked again, for changes that the system did not report.
const RESCAN_PERIOD: Duration = Duration::from_secs(60);

/// The files to check before an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilesToCheck {
    All,
    /// These, which may be none.
    Changed(Vec<PathBuf>),
}

/// Watches roots, once a scan of all their files turned out to be slow.
#[derive(Default)]
pub(super) struct RootWatch {
    reported: Arc<Mutex<Reported>>,
    /// The watched roots, and what owns the thread that hears of changes. `None` before the first slow
    /// scan.
    watcher: Option<(Vec<PathBuf>, RecommendedWatcher)>,
    /// The end of the last scan of all files that began while the roots were watched.
    last_scan: Option<Instant>,
}

impl RootWatch {
    /// Returns the files to check. `roots` are the current ones.
    pub(super) fn files_to_check(&mut self, roots: &[PathBuf]) -> FilesToCheck {
        let is_recent = self.last_scan.is_some_and(|last| last.elapsed() < RESCAN_PERIOD);
        let is_watched = self.watcher.as_ref().is_some_and(|(watched, _)| watched == roots);
        let mut reported = std::mem::take(&mut *lock(&self.reported));
        // Files written before the watch of their folder began are not reported.
        let is_settling = |folder: &Instant| folder.elapsed() < FOLDER_WATCH_DELAY + SLOW_SCAN;
        if let Some(folder) = reported.last_folder.filter(is_settling) {
            lock(&self.reported).last_folder.get_or_insert(folder);
        }
        reported.must_check_all |= reported.last_folder.is_some();
        let may_name = is_recent && is_watched && !reported.must_check_all;
        if may_name && reported.files.len() <= MAX_NAMED_FILES {
            return FilesToCheck::Changed(reported.files.into_iter().collect());
        }
        self.must_scan_all();
        FilesToCheck::All
    }

    /// Returns whether the system reports changes.
    #[cfg(test)]
    pub(super) fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    /// Schedules a scan of all files, because the named ones are not in the store yet.
    pub(super) fn must_scan_all(&mut self) {
        self.last_scan = None;
    }

    /// Records that a scan of all files took `time`. Begins to watch `roots` if that is slow
    /// and all known files are below them; then the next scan covers all files again, because some may
    /// have changed before the roots were watched.
    pub(super) fn record_full_scan(&mut self, roots: &[PathBuf], time: Duration, covers_all: bool) {
        if time < SLOW_SCAN || !covers_all {
            self.watcher = None;
            self.last_scan = None;
            return;
        }
        if self.watcher.as_ref().is_some_and(|(watched, _)| watched == roots) {
            self.last_scan = Some(Instant::now());
            return;
        }
        let reported = Arc::clone(&self.reported);
        let note = move |event: notify::Result<notify::Event>| match event {
            Ok(event) => lock(&reported).add(&event),
            Err(_) => lock(&reported).must_check_all = true,
        };
        self.last_scan = None;
        self.watcher = start_watcher(roots, note).map(|watcher| (roots.to_vec(), watcher));
    }
}

fn lock(reported: &Mutex<Reported>) -> std::sync::MutexGuard<'_, Reported> {
    reported.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks until `is_wanted` accepts the answer, because the system reports changes after a moment.
    fn wait_for(
        watch: &mut RootWatch,
        roots: &[PathBuf],
        is_wanted: impl Fn(&FilesToCheck) -> bool,
    ) -> bool {
        (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            is_wanted(&watch.files_to_check(roots))
        })
    }

    #[test]
    fn after_two_slow_looks_only_changed_files_are_named() {
        let dir = tempfile::tempdir().expect("tempdir");
        let roots = [dir.path().to_owned()];
        let mut watch = RootWatch::default();
        watch.record_full_scan(&roots, SLOW_SCAN, true);
        assert_eq!(watch.files_to_check(&roots), FilesToCheck::All, "the first one was too early");
        watch.record_full_scan(&roots, SLOW_SCAN, true);
        if !watch.is_watching() {
            // Without events, all files are checked each time.
            return assert_eq!(watch.files_to_check(&roots), FilesToCheck::All);
        }
        assert_eq!(watch.files_to_check(&roots), FilesToCheck::Changed(Vec::new()));

        let log = dir.path().join("a.jsonl");
        std::fs::write(dir.path().join("notes.txt"), "x").expect("writes");
        std::fs::write(&log, "{}\n").expect("writes");
        let named = FilesToCheck::Changed(vec![log.clone()]);
        assert!(wait_for(&mut watch, &roots, |found| *found == named));
        std::fs::create_dir(dir.path().join("project")).expect("creates");
        assert!(wait_for(&mut watch, &roots, |found| *found == FilesToCheck::All));
        watch.record_full_scan(&roots, SLOW_SCAN, true);
        std::fs::remove_file(&log).expect("removes");
        assert!(wait_for(&mut watch, &roots, |found| *found == FilesToCheck::All));
        watch.record_full_scan(&roots, SLOW_SCAN, true);
        let other = [dir.path().join("project")];
        assert_eq!(watch.files_to_check(&other), FilesToCheck::All, "the roots changed");
    }

    #[test]
    fn all_files_are_looked_at_if_that_is_fast_or_some_are_elsewhere() {
        let dir = tempfile::tempdir().expect("tempdir");
        let roots = [dir.path().to_owned()];
        let mut watch = RootWatch::default();
        for (time, covers_all) in [(Duration::from_millis(5), true), (SLOW_SCAN, false)] {
            for _ in 0..3 {
                watch.record_full_scan(&roots, time, covers_all);
                assert_eq!(watch.files_to_check(&roots), FilesToCheck::All);
            }
        }
    }
}
