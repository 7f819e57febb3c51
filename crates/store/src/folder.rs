//! Checks and cleans the folder of a store. Refuses a folder that belongs to something else, and
//! removes what killed runs left behind, never anything that the store did not write.
//!
//! ```text
//! catalog.db  archive.db  write.lock  labels.json  labels.lock  forgotten.json  reduced.json
//! scrubbed.json  http-token  hooks.jsonl  hooks.lock  lakes.json  lakes.lock
//! forgotten-5c0bcc12d8ae2ba1.bin
//! segments/0000000001/   events.parquet skip.idx checksums.bin rows.copy ...
//! damaged/0000000001/    segments that were set aside
//! log-backup/            logs as they were before `secrets --scrub`
//! readers/x1y2z3x1y2z3/   rows that readers of a server see instead of those of the segments
//! .catalog.db.tmp-x1y2z3   a replacement that was never moved to its place
//! ```

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::archive::names::{ARCHIVE_FILE, ARCHIVE_SIDE_FILES};
use super::catalog::{CATALOG_FILE, CATALOG_SIDE_FILES, Catalog};
use super::disk::files;
use super::disk::lock::{StoreLock, WRITE_LOCK};
use super::error::{StoreError, UserFile};
use super::forgotten::is_records_file;
use super::manifest::{Manifest, ROW_COPY, SEGMENT_TABLES, SegmentEntry, file_name};
use super::user_file::LABELS_LOCK;

/// Names of the store's files directly in its folder.
const OWN_FILES: [&str; 19] = [
    CATALOG_FILE,
    CATALOG_SIDE_FILES[0],
    CATALOG_SIDE_FILES[1],
    CATALOG_SIDE_FILES[2],
    ARCHIVE_FILE,
    ARCHIVE_SIDE_FILES[0],
    ARCHIVE_SIDE_FILES[1],
    ARCHIVE_SIDE_FILES[2],
    WRITE_LOCK,
    LABELS_LOCK,
    UserFile::Labels.name(),
    UserFile::Forgotten.name(),
    UserFile::Reduced.name(),
    UserFile::Scrubbed.name(),
    TOKEN_FILE,
    HOOK_LOG,
    HOOK_LOG_LOCK,
    LAKE_STATE,
    LAKE_STATE_LOCK,
];

/// Name of the file with the HTTP server's token, which the store keeps for it.
pub(super) const TOKEN_FILE: &str = "http-token";

/// Name of the file in which `push` and `pull` keep what they did.
pub(super) const LAKE_STATE: &str = "lakes.json";

/// Name of the lock file that is held while that file changes.
pub(super) const LAKE_STATE_LOCK: &str = "lakes.lock";

/// Name of the file with the log of hooks.
pub(super) const HOOK_LOG: &str = "hooks.jsonl";

/// Name of the lock file that is held while a hook answers.
pub(super) const HOOK_LOG_LOCK: &str = "hooks.lock";

/// Name of the folder with one folder for each segment.
pub(super) const SEGMENTS_FOLDER: &str = "segments";

/// Name of the folder to which damaged segments are moved.
const DAMAGED_FOLDER: &str = "damaged";

/// Name of the folder with the logs as they were before their secrets were replaced.
pub const LOG_BACKUP_FOLDER: &str = "log-backup";

/// Digits of a segment's folder name.
const NUMBER_DIGITS: usize = 10;

/// Age after which temporary copies of the token are removed. A process writes it without a lock, so
/// only old ones are certainly left behind.
const MAX_TEMPORARY_AGE: Duration = Duration::from_secs(10 * 60);

/// Checks a folder that has no manifest before anything is written into it.
///
/// # Errors
/// The errors of [`refuse_lost_manifest`].
/// [`StoreError::ForeignFolder`] if it holds anything that an interrupted first ingest does not
/// leave, or if `segments` is not a real folder. [`StoreError::Io`] if it cannot be read.
pub(super) fn refuse_foreign_folder(dir: &Path) -> Result<(), StoreError> {
    refuse_lost_manifest(dir)?;
    if let Some(entry) = find_foreign_entry(dir)? {
        return Err(StoreError::ForeignFolder { path: dir.to_owned(), entry });
    }
    Ok(())
}

/// Checks a folder without a manifest, under the write lock.
///
/// # Errors
/// [`StoreError::LostManifest`] if it holds complete segments: the manifest is written before the
/// first of them, so it was removed.
pub(super) fn refuse_lost_manifest(dir: &Path) -> Result<(), StoreError> {
    let Ok(entries) = fs::read_dir(dir.join(SEGMENTS_FOLDER)) else { return Ok(()) };
    // A segment whose writer was killed has no copy of its rows, which is written last.
    let copy = file_name(ROW_COPY);
    let mut segments = 0;
    for entry in entries.flatten() {
        if segment_number(&entry.file_name()).is_some() && entry.path().join(&copy).is_file() {
            segments += 1;
        }
    }
    if segments > 0 {
        return Err(StoreError::LostManifest { path: dir.to_owned(), segments });
    }
    Ok(())
}

/// Creates the catalog of a store that has none, before its first segment is written: segments without
/// a catalog have lost it.
pub(super) fn create_catalog(dir: &Path, lock: &StoreLock) -> Result<(), StoreError> {
    let is_new = fs::symlink_metadata(dir.join(CATALOG_FILE)).is_err();
    if is_new {
        refuse_lost_manifest(dir)?;
    }
    lock.check_not_replaced()?;
    let segments = dir.join(SEGMENTS_FOLDER);
    if !segments.is_dir() {
        files::create_private_dir(&segments)?;
    }
    if is_new { Catalog::create(dir, &Manifest::default().to_json(), &[]) } else { Ok(()) }
}

/// True if there is a store at `dir`: its manifest, and the lock under which it was written.
pub fn is_store(dir: &Path) -> bool {
    [CATALOG_FILE, WRITE_LOCK].iter().all(|name| dir.join(name).is_file())
}

/// Returns the name of an entry in the folder that the store did not write, if there is one.
fn find_foreign_entry(dir: &Path) -> Result<Option<String>, StoreError> {
    for entry in fs::read_dir(dir).map_err(StoreError::io(dir))? {
        let entry = entry.map_err(StoreError::io(dir))?;
        let kind = entry.file_type().map_err(StoreError::io(dir))?;
        let name = entry.file_name();
        let is_own = match name.to_str() {
            // The manifest is written before the first segment, so without a manifest a segment
            // is not ours, whatever the names of its files.
            Some(SEGMENTS_FOLDER) if kind.is_dir() => is_empty_folder(&entry.path())?,
            // Only the user removes backups of logs.
            Some(LOG_BACKUP_FOLDER) if kind.is_dir() => true,
            Some(DAMAGED_FOLDER) if kind.is_dir() => holds_segments_only(&entry.path())?,
            _ => kind.is_file() && is_own_file(&name),
        };
        if !is_own {
            return Ok(Some(name.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

fn is_own_file(name: &OsStr) -> bool {
    let is_listed =
        name.to_str().is_some_and(|name| OWN_FILES.contains(&name) || is_records_file(name));
    is_listed || files::is_temporary_copy(name, &OWN_FILES)
}

fn is_empty_folder(dir: &Path) -> Result<bool, StoreError> {
    Ok(fs::read_dir(dir).map_err(StoreError::io(dir))?.next().is_none())
}

fn holds_segments_only(segments: &Path) -> Result<bool, StoreError> {
    for entry in fs::read_dir(segments).map_err(StoreError::io(segments))? {
        let entry = entry.map_err(StoreError::io(segments))?;
        if segment_number(&entry.file_name()).is_none() || !is_removable_segment(&entry.path()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the number in the name of a segment's folder, which is ten digits and nothing else.
pub(super) fn segment_number(name: &OsStr) -> Option<i64> {
    let name = name.to_str()?;
    let is_number = name.len() == NUMBER_DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { name.parse().ok() } else { None }
}

/// True if `segment` is a real folder, not a link to one, and holds only files of the store.
fn is_removable_segment(segment: &Path) -> bool {
    if !is_real_folder(segment) {
        return false;
    }
    let Ok(entries) = fs::read_dir(segment) else { return false };
    let own_names = SEGMENT_TABLES.map(file_name);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let has_own_name = own_names.iter().any(|own| name == OsStr::new(own));
        if !has_own_name || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            return false;
        }
    }
    true
}

/// Removes a segment's folder if it holds only files of the store.
fn remove_segment(segment: &Path) {
    if is_removable_segment(segment) {
        // If it cannot be removed now, the next run tries again. No manifest names it.
        let _ = fs::remove_dir_all(segment);
    }
}

/// Creates the folder for damaged segments if it does not exist, and returns its path.
///
/// # Errors
/// [`StoreError::ForeignFolder`] if the name belongs to a link or to anything else that is not a
/// folder.
pub(super) fn create_damaged_folder(dir: &Path) -> Result<PathBuf, StoreError> {
    let damaged = dir.join(DAMAGED_FOLDER);
    if fs::symlink_metadata(&damaged).is_err() {
        files::create_private_dir(&damaged)?;
    }
    if !is_real_folder(&damaged) {
        let entry = DAMAGED_FOLDER.to_owned();
        return Err(StoreError::ForeignFolder { path: dir.to_owned(), entry });
    }
    Ok(damaged)
}

/// Removes the segments that were set aside as damaged, and nothing else from their folder.
pub(super) fn remove_damaged(dir: &Path) -> Result<(), StoreError> {
    let damaged = dir.join(DAMAGED_FOLDER);
    if !is_real_folder(&damaged) {
        return Ok(());
    }
    for entry in fs::read_dir(&damaged).map_err(StoreError::io(&damaged))? {
        let segment = entry.map_err(StoreError::io(&damaged))?;
        if segment_number(&segment.file_name()).is_some() && is_real_folder(&segment.path()) {
            remove_segment_files(&segment.path())?;
        }
    }
    // It stays if something of others is in it.
    let _ = fs::remove_dir(&damaged);
    Ok(())
}

/// Removes the files of the store from a segment's folder, and the folder if nothing else is in it.
pub(super) fn remove_segment_files(segment: &Path) -> Result<(), StoreError> {
    for name in SEGMENT_TABLES.map(file_name) {
        let path = segment.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            fs::remove_file(&path).map_err(StoreError::io(&path))?;
        }
    }
    let _ = fs::remove_dir(segment);
    Ok(())
}

/// True if `path` is a folder, and not a link to one.
pub(super) fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Moves a damaged segment out of the way. One that is gone already is not an error.
pub(super) fn set_segment_aside(dir: &Path, number: i64) -> Result<(), StoreError> {
    let from = SegmentEntry::folder_path(dir, number);
    let to = create_damaged_folder(dir)?.join(SegmentEntry::folder_name(number));
    if from.exists() { fs::rename(&from, &to).map_err(StoreError::io(&from)) } else { Ok(()) }
}

/// Returns whether a segment of this number has a folder in the store, also as a damaged one.
pub(super) fn has_segment_folder(dir: &Path, number: i64) -> bool {
    let name = SegmentEntry::folder_name(number);
    let places = [SEGMENTS_FOLDER, DAMAGED_FOLDER].map(|folder| dir.join(folder).join(&name));
    places.iter().any(|place| fs::symlink_metadata(place).is_ok())
}

/// Removes segments that `manifest` does not name, and temporary files. The caller holds the write
/// lock. Returns the highest number of a remaining segment folder; 0 if none remains.
pub(super) fn remove_leftovers(dir: &Path, manifest: &Manifest) -> i64 {
    for name in [CATALOG_FILE, ARCHIVE_FILE] {
        files::remove_temporary_copies(&dir.join(name));
    }
    remove_old_temporary_files(dir);
    let mut highest = 0;
    let Ok(entries) = fs::read_dir(dir.join(SEGMENTS_FOLDER)) else { return highest };
    for entry in entries.flatten() {
        let Some(number) = segment_number(&entry.file_name()) else { continue };
        if !manifest.includes_segment(number) {
            remove_segment(&entry.path());
        }
        if fs::symlink_metadata(entry.path()).is_ok() {
            highest = highest.max(number);
        }
    }
    highest
}

fn remove_old_temporary_files(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary = files::is_temporary_copy(&name, &[TOKEN_FILE]);
        let Ok(found) = entry.metadata() else { continue };
        let age = found.modified().ok().and_then(|modified| modified.elapsed().ok());
        if is_temporary && found.is_file() && age.is_some_and(|age| age > MAX_TEMPORARY_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ten_digits_name_a_segment() {
        for (name, number) in [("0000000001", Some(1)), ("0123456789", Some(123_456_789))] {
            assert_eq!(segment_number(OsStr::new(name)), number, "{name}");
        }
        for name in ["1", "my_audio", "+000000001", "00000000001", "000000000a", ""] {
            assert_eq!(segment_number(OsStr::new(name)), None, "{name}");
        }
    }

    #[test]
    fn folders_with_other_files_stay() {
        let dir = tempfile::tempdir().expect("tempdir");
        let segments = dir.path().join(SEGMENTS_FOLDER);
        let folder = |name: &str, file: &str| {
            fs::create_dir_all(segments.join(name)).expect("creates");
            fs::write(segments.join(name).join(file), "x").expect("writes");
        };
        folder("0000000001", "events.parquet");
        folder("0000000002", "a.wav");
        folder("my_audio", "events.parquet");
        fs::write(segments.join("0000000003"), "a file").expect("writes");
        assert_eq!(remove_leftovers(dir.path(), &Manifest::default()), 3);
        let left = |name: &str| segments.join(name).exists();
        assert!(!left("0000000001"));
        assert!(left("0000000002") && left("my_audio") && left("0000000003"));
        assert!(matches!(
            refuse_foreign_folder(dir.path()),
            Err(StoreError::ForeignFolder { entry, .. }) if entry == SEGMENTS_FOLDER
        ));
    }

    #[test]
    fn only_segments_are_removed_from_the_damaged_folder() {
        let dir = tempfile::tempdir().expect("tempdir");
        let write = |name: &str| {
            let path = dir.path().join("damaged").join(name);
            fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
            fs::write(path, "x").expect("writes");
        };
        write("0000000001/events.parquet");
        write("0000000002/skip.idx");
        remove_damaged(dir.path()).expect("removes");
        assert!(!dir.path().join("damaged").exists());

        let theirs = ["photos/a.jpg", "0000000001/a.wav", "b.txt"];
        for name in theirs {
            write(name);
        }
        write("0000000001/events.parquet");
        remove_damaged(dir.path()).expect("removes");
        for name in theirs {
            assert!(dir.path().join("damaged").join(name).exists(), "{name}");
        }
        assert!(!dir.path().join("damaged/0000000001/events.parquet").exists());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().expect("tempdir");
        let theirs = dir.path().join("theirs");
        fs::create_dir_all(&theirs).expect("creates");
        fs::write(theirs.join("events.parquet"), "x").expect("writes");
        let store = dir.path().join("store");
        fs::create_dir_all(store.join(SEGMENTS_FOLDER)).expect("creates");
        symlink(&theirs, store.join("segments/0000000001")).expect("links");
        assert_eq!(remove_leftovers(&store, &Manifest::default()), 1);
        assert!(theirs.join("events.parquet").exists());
        assert!(refuse_foreign_folder(&store).is_err());
        fs::remove_dir_all(store.join(SEGMENTS_FOLDER)).expect("removes");
        symlink(&theirs, store.join(SEGMENTS_FOLDER)).expect("links");
        assert!(refuse_foreign_folder(&store).is_err());
        symlink(&theirs, store.join(DAMAGED_FOLDER)).expect("links");
        assert!(create_damaged_folder(&store).is_err());
        remove_damaged(&store).expect("has nothing to remove");
        assert!(theirs.join("events.parquet").exists());
    }

    #[test]
    fn what_an_interrupted_first_ingest_leaves_is_a_store() {
        let dir = tempfile::tempdir().expect("tempdir");
        for name in ["write.lock", ".catalog.db.tmp-a1B2c3", TOKEN_FILE] {
            fs::write(dir.path().join(name), "").expect("writes");
        }
        fs::create_dir(dir.path().join(SEGMENTS_FOLDER)).expect("creates");
        fs::create_dir_all(dir.path().join("damaged/0000000001")).expect("creates");
        refuse_foreign_folder(dir.path()).expect("is ours");

        let segment = dir.path().join("segments/0000000001");
        fs::create_dir_all(&segment).expect("creates");
        fs::write(segment.join("events.parquet"), "").expect("writes");
        refuse_lost_manifest(dir.path()).expect("has no complete segment");
        assert!(matches!(
            refuse_foreign_folder(dir.path()),
            Err(StoreError::ForeignFolder { entry, .. }) if entry == SEGMENTS_FOLDER
        ));
        fs::write(segment.join("rows.copy"), "").expect("writes");
        assert!(matches!(
            refuse_lost_manifest(dir.path()),
            Err(StoreError::LostManifest { segments: 1, .. })
        ));
    }
}
