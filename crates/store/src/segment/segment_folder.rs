//! The folder of a segment under construction, which is removed unless the segment is committed.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use crate::disk::files::NewFile;
use crate::disk::held_folder::HeldFolder;
use crate::error::StoreError;
use crate::manifest::{SEGMENT_TABLES, SegmentEntry, file_name};

/// A folder that removes itself when dropped, so that a failed write, as on a full disk, leaves no
/// files behind.
pub(crate) struct SegmentFolder {
    /// The folder of all segments.
    segments: Arc<HeldFolder>,
    name: String,
    /// `None` until it is created.
    folder: Option<HeldFolder>,
    is_kept: bool,
}

impl SegmentFolder {
    /// Prepares the folder of segment `number` in the folder `segments`. It is created with its
    /// first file.
    pub(super) fn new(segments: &Arc<HeldFolder>, number: i64) -> Self {
        let name = SegmentEntry::folder_name(number);
        Self { segments: Arc::clone(segments), name, folder: None, is_kept: false }
    }

    /// Returns the path of the file of `table`, for messages.
    pub(super) fn file_path(&self, table: &str) -> PathBuf {
        self.segments.path().join(&self.name).join(file_name(table))
    }

    /// Creates the file of `table`, and the folder before its first file.
    ///
    /// # Errors
    /// Fails if the parent folder is gone or cannot be written, or if something else has one of the
    /// names.
    pub(super) fn create_file(&mut self, table: &str) -> Result<NewFile, StoreError> {
        let path = self.file_path(table);
        let folder = match &mut self.folder {
            Some(folder) => folder,
            none => none.insert(self.segments.create_folder(&self.name)?),
        };
        folder.create_file(&file_name(table)).map(NewFile::new).map_err(StoreError::io(&path))
    }

    /// Makes the names of the folder and of its files durable.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        folder.sync()?;
        self.segments.sync()
    }

    /// Checks that the files of the segment are at their paths, with the sizes of `entry`.
    ///
    /// # Errors
    /// [`StoreError::Disturbed`] if one of them, or the folder, was removed or changed.
    pub(crate) fn check_files(&self, entry: &SegmentEntry) -> Result<(), StoreError> {
        for file in &entry.files {
            let path = self.file_path(&file.table);
            let reason = match fs::symlink_metadata(&path) {
                Ok(found) if !found.is_file() => "it is not a regular file".to_owned(),
                Ok(found) if found.len() != file.bytes => {
                    format!("it has {} bytes instead of {}", found.len(), file.bytes)
                }
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => "it is gone".to_owned(),
                Err(error) => return Err(StoreError::io(&path)(error)),
            };
            return Err(StoreError::Disturbed { path, reason });
        }
        Ok(())
    }

    /// Keeps the folder, because a manifest names the segment.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for SegmentFolder {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let Some(folder) = &self.folder else { return };
        // The next run removes whatever cannot be removed now.
        for table in SEGMENT_TABLES {
            folder.remove_file(&file_name(table));
        }
        self.segments.remove_folder(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_folder_goes_unless_it_is_kept() {
        let dir = tempfile::tempdir().expect("tempdir");
        let segments = Arc::new(HeldFolder::open(dir.path()).expect("opens"));
        let create = || {
            let mut folder = SegmentFolder::new(&segments, 1);
            folder.create_file("events").expect("creates");
            folder.create_file("problems").expect("creates");
            assert!(folder.file_path("events").exists());
            folder
        };
        let path = dir.path().join("0000000001");
        drop(create());
        assert!(!path.exists());
        create().keep();
        assert!(path.join("events.parquet").exists());
        let taken = SegmentFolder::new(&segments, 1).create_file("events");
        assert!(taken.is_err(), "another writer has it");
        assert!(path.join("events.parquet").exists());
    }

    /// The store is moved away and another one takes its place, which has a segment of this number.
    #[cfg(unix)]
    #[test]
    fn another_store_in_the_same_place_is_left_alone() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (store, moved) = (dir.path().join("store"), dir.path().join("moved"));
        fs::create_dir(&store).expect("creates");
        let segments = Arc::new(HeldFolder::open(&store).expect("opens"));
        let mut begun = SegmentFolder::new(&segments, 1);
        begun.create_file("events").expect("creates");
        fs::rename(&store, &moved).expect("moves");
        let theirs = store.join("0000000001");
        fs::create_dir_all(&theirs).expect("creates");
        let mut file = begun.create_file("skip").expect("creates");
        file.write_all(b"ours").expect("writes");
        file.finish().expect("writes");
        let mut next = SegmentFolder::new(&segments, 2);
        next.create_file("events").expect("creates");
        assert_eq!(fs::read(moved.join("0000000001/skip.idx")).expect("reads"), b"ours");
        assert!(moved.join("0000000002/events.parquet").exists());
        fs::write(theirs.join("skip.idx"), "theirs").expect("writes");
        drop((begun, next));
        assert_eq!(fs::read(theirs.join("skip.idx")).expect("reads"), b"theirs");
        assert!(!store.join("0000000002").exists());
        assert_eq!(
            fs::read_dir(&moved).expect("lists").count(),
            0,
            "what was not committed is gone"
        );
    }
}
