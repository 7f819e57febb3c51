//! The cache of lakes: a store for each lake that an engine read, with what was loaded of it.
//!
//! ```text
//! lake-5f0c64b1a2e3d4f5        the store
//! lake-5f0c64b1a2e3d4f5.lock   locked while a process uses the store; its time is that of the last use
//! lakes.lock                   locked while stores are chosen and removed
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base::files::open_lock;

/// Beginning of the names of stores.
const PREFIX: &str = "lake-";

/// Ending of the names of stores that are being removed. A process that was killed may leave some.
const REMOVED: &str = ".removed";

/// What the cache keeps.
#[derive(Debug, Clone, Copy)]
struct CacheLimits {
    /// Time without use after which a store is removed.
    max_age: Duration,
    /// Most bytes of all stores together. Those that were not used for the longest time are removed
    /// first.
    max_bytes: u64,
}

const LIMITS: CacheLimits =
    CacheLimits { max_age: Duration::from_hours(30 * 24), max_bytes: 4 << 30 };

/// Keeps a store of the cache from being removed until it is dropped.
pub(crate) struct CachedStoreUse {
    _lock: File,
}

/// A store of the cache.
struct CachedStore {
    path: PathBuf,
    last_used: SystemTime,
    bytes: u64,
}

/// Removes the stores that are beyond the limits and that no process uses, and marks the store at
/// `path` as used. This store is removed as well, if it is too large alone.
///
/// # Errors
/// Fails if the folder or the locks cannot be used. Stores that cannot be removed stay.
pub(crate) fn use_cached_store(path: &Path) -> io::Result<CachedStoreUse> {
    use_with_limits(path, LIMITS, SystemTime::now())
}

fn use_with_limits(
    path: &Path,
    limits: CacheLimits,
    now: SystemTime,
) -> io::Result<CachedStoreUse> {
    let cache = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(cache)?;
    let cleaning = open_lock(&cache.join("lakes.lock"))?;
    cleaning.lock()?;
    let mut stores = find_stores(cache)?;
    if let Some(own) = stores.iter_mut().find(|store| store.path == path) {
        own.last_used = now;
    }
    // The wanted store comes last.
    stores.sort_by_key(|store| (store.path == path, store.last_used));
    let mut bytes: u64 = stores.iter().map(|store| store.bytes).sum();
    for store in &stores {
        let age = now.duration_since(store.last_used).unwrap_or_default();
        if (age > limits.max_age || bytes > limits.max_bytes) && remove_unused(&store.path)? {
            bytes -= store.bytes;
        }
    }
    let lock = open_lock(&lock_path(path))?;
    lock.lock_shared()?;
    lock.set_modified(now)?;
    Ok(CachedStoreUse { _lock: lock })
}

/// Removes all stores of the cache, because they may hold sessions that were forgotten. Returns those
/// that stay, because a process uses them.
///
/// # Errors
/// Fails if the folder or the locks cannot be used, or a store cannot be removed.
pub(crate) fn remove_cached_stores(cache: &Path) -> io::Result<Vec<PathBuf>> {
    if !cache.try_exists()? {
        return Ok(Vec::new());
    }
    let cleaning = open_lock(&cache.join("lakes.lock"))?;
    cleaning.lock()?;
    let mut in_use = Vec::new();
    for store in find_stores(cache)? {
        if !remove_unused(&store.path)? {
            in_use.push(store.path);
        }
    }
    Ok(in_use)
}

/// Returns the stores of the cache, and removes the remains of those that were being removed.
fn find_stores(cache: &Path) -> io::Result<Vec<CachedStore>> {
    let mut stores = Vec::new();
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        // A link is not ours.
        if !name.starts_with(PREFIX) || !entry.file_type()?.is_dir() {
            continue;
        }
        if name.ends_with(REMOVED) {
            fs::remove_dir_all(&path)?;
            continue;
        }
        let used = fs::metadata(lock_path(&path)).or_else(|_| entry.metadata())?;
        let bytes = count_bytes(&path);
        stores.push(CachedStore { path, last_used: used.modified()?, bytes });
    }
    Ok(stores)
}

/// Removes a store, unless a process uses it. Returns whether it was removed.
fn remove_unused(path: &Path) -> io::Result<bool> {
    let lock = open_lock(&lock_path(path))?;
    if lock.try_lock().is_err() {
        return Ok(false);
    }
    // A half-removed store must not be opened.
    let removed = with_ending(path, REMOVED);
    fs::rename(path, &removed)?;
    fs::remove_dir_all(&removed)?;
    drop(lock);
    // No process opens the lock meanwhile: that takes the other lock first.
    let _ = fs::remove_file(lock_path(path));
    Ok(true)
}

/// Returns the bytes of the files below a folder; those that vanish meanwhile do not count.
fn count_bytes(dir: &Path) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += count_bytes(&entry.path()),
            Ok(metadata) => bytes += metadata.len(),
            Err(_) => {}
        }
    }
    bytes
}

fn lock_path(store: &Path) -> PathBuf {
    with_ending(store, ".lock")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn limits(days: u32, bytes: u64) -> CacheLimits {
        CacheLimits { max_age: DAY * days, max_bytes: bytes }
    }

    /// Adds a store of `bytes` that was used `days` ago.
    fn add_store(cache: &Path, name: &str, bytes: usize, days: u32) -> PathBuf {
        let path = cache.join(name);
        fs::create_dir_all(path.join("segments")).expect("creates");
        fs::write(path.join("segments/events"), vec![0; bytes]).expect("writes");
        let lock = open_lock(&lock_path(&path)).expect("opens");
        lock.set_modified(SystemTime::now() - DAY * days).expect("sets the time");
        path
    }

    fn names(cache: &Path) -> Vec<String> {
        let entries = fs::read_dir(cache).expect("lists").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| !name.ends_with(".lock")).collect();
        names.sort();
        names
    }

    #[test]
    fn stores_go_by_age_and_then_by_size_the_oldest_first() {
        let dir = tempfile::tempdir().expect("tempdir");
        for (name, days) in [("lake-a", 40), ("lake-b", 9), ("lake-c", 5), ("lake-d", 1)] {
            add_store(dir.path(), name, 100, days);
        }
        add_store(dir.path(), "notes", 1000, 100);
        let now = SystemTime::now();
        let own = dir.path().join("lake-d");
        drop(use_with_limits(&own, limits(30, 1000), now).expect("cleans"));
        assert_eq!(names(dir.path()), ["lake-b", "lake-c", "lake-d", "notes"]);
        drop(use_with_limits(&own, limits(30, 250), now).expect("cleans"));
        assert_eq!(names(dir.path()), ["lake-c", "lake-d", "notes"]);
        assert!(!lock_path(&dir.path().join("lake-b")).exists());
        // A use makes a store the youngest one.
        drop(use_with_limits(&dir.path().join("lake-c"), limits(30, 150), now).expect("cleans"));
        assert_eq!(names(dir.path()), ["lake-c", "notes"]);
        // One that is too large alone begins again.
        drop(use_with_limits(&dir.path().join("lake-c"), limits(30, 50), now).expect("cleans"));
        assert_eq!(names(dir.path()), ["notes"]);
    }

    #[test]
    fn a_store_that_a_process_uses_stays() {
        let dir = tempfile::tempdir().expect("tempdir");
        let old = add_store(dir.path(), "lake-a", 100, 90);
        let own = add_store(dir.path(), "lake-b", 100, 1);
        let now = SystemTime::now();
        let long_ago = now - DAY * 60;
        let running = use_with_limits(&old, limits(90, 1000), long_ago).expect("is used");
        let also = use_with_limits(&old, limits(90, 1000), long_ago).expect("by two processes");
        for _ in 0..2 {
            drop(use_with_limits(&own, limits(30, 10), now).expect("cleans"));
            assert_eq!(names(dir.path()), ["lake-a"], "the other one is not used");
            add_store(dir.path(), "lake-b", 100, 1);
        }
        assert_eq!(remove_cached_stores(dir.path()).expect("removes"), [old]);
        assert_eq!(names(dir.path()), ["lake-a"]);
        add_store(dir.path(), "lake-b", 100, 1);
        drop(running);
        drop(use_with_limits(&own, limits(30, 1000), now).expect("cleans"));
        assert_eq!(names(dir.path()), ["lake-a", "lake-b"]);
        drop(also);
        drop(use_with_limits(&own, limits(30, 1000), now).expect("cleans"));
        assert_eq!(names(dir.path()), ["lake-b"]);
    }

    #[test]
    fn a_killed_removal_is_finished_and_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let other = tempfile::tempdir().expect("tempdir");
        fs::write(other.path().join("kept"), "x").expect("writes");
        add_store(dir.path(), "lake-a.removed", 100, 0);
        #[cfg(unix)]
        for name in ["lake-b", "lake-c.removed"] {
            std::os::unix::fs::symlink(other.path(), dir.path().join(name)).expect("links");
        }
        let own = dir.path().join("lake-d");
        drop(use_with_limits(&own, limits(0, 0), SystemTime::now()).expect("cleans"));
        assert!(!dir.path().join("lake-a.removed").exists());
        assert!(other.path().join("kept").exists());
    }
}
