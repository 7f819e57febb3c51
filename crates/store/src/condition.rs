//! Checks the files of a store without reading them: whether each is in its place with the size
//! that the manifest lists, and whether other users can write to it.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::archive::names::ARCHIVE_FILE;
use super::catalog::CATALOG_FILE;
use super::error::{StoreError, UserFile};
use super::folder::SEGMENTS_FOLDER;
use super::manifest::{Manifest, SegmentEntry, file_name};
use base::parallel::in_parallel;

/// Number of segments whose files one thread checks before it takes more.
const SEGMENTS_AT_A_TIME: usize = 16;

/// What a check of the files of a store found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StoreCondition {
    /// Files that are missing or have another size than the manifest lists, and folders that are
    /// links.
    pub resized: Option<FoundFiles>,
    /// Files and folders that other users can write to.
    pub writable: Option<FoundFiles>,
    /// True if other users can read, write or enter some file or folder.
    pub is_shared: bool,
}

/// The first of some files, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundFiles {
    pub first: PathBuf,
    /// What was found about the first file, as a phrase that follows its path.
    pub reason: String,
    /// Number of files.
    pub count: usize,
}

/// Checks every file of the store that `manifest` lists, the manifest and the labels.
pub(super) fn inspect_store(dir: &Path, manifest: &Manifest) -> StoreCondition {
    let mut condition = StoreCondition::default();
    for path in store_places(dir) {
        if let Ok(found) = fs::symlink_metadata(&path) {
            condition.add_mode(&path, &found);
        }
    }
    let segments = dir.join(SEGMENTS_FOLDER);
    if fs::symlink_metadata(&segments).is_ok_and(|found| found.is_symlink()) {
        condition.add_resized(segments, "is a symbolic link".to_owned());
    }

    let parts = in_parallel(&manifest.segments, SEGMENTS_AT_A_TIME, |segments| {
        let mut part = StoreCondition::default();
        for segment in segments {
            part.add_segment(dir, segment);
        }
        Ok::<_, std::convert::Infallible>(part)
    });
    let Ok(mut parts) = parts;
    // The order of the parts depends on the threads; the first file must not.
    parts.sort_by(|a, b| a.first_paths().cmp(&b.first_paths()));
    for part in parts {
        merge_found(&mut condition.resized, part.resized);
        merge_found(&mut condition.writable, part.writable);
        condition.is_shared |= part.is_shared;
    }
    condition
}

/// Returns the folders and files of the store outside its segments.
fn store_places(dir: &Path) -> Vec<PathBuf> {
    let user_files = UserFile::ALL.map(UserFile::name);
    let names = [CATALOG_FILE, ARCHIVE_FILE, SEGMENTS_FOLDER].into_iter().chain(user_files);
    std::iter::once(dir.to_owned()).chain(names.map(|name| dir.join(name))).collect()
}

/// Returns the path of each file of a segment that the manifest lists, with its size.
fn segment_files(dir: &Path, segment: &SegmentEntry) -> impl Iterator<Item = (PathBuf, u64)> {
    let folder = SegmentEntry::folder_path(dir, segment.number);
    segment.known_files().map(move |file| (folder.join(file_name(&file.table)), file.bytes))
}

impl StoreCondition {
    /// Returns true if nothing was found that an answer has to mention.
    pub(super) fn is_good(&self) -> bool {
        self.resized.is_none() && self.writable.is_none()
    }

    fn add_segment(&mut self, dir: &Path, segment: &SegmentEntry) {
        let folder = SegmentEntry::folder_path(dir, segment.number);
        match fs::symlink_metadata(&folder) {
            Ok(found) if found.is_symlink() => {
                return self.add_resized(folder, "is a symbolic link".to_owned());
            }
            Ok(found) => self.add_mode(&folder, &found),
            // Its files are missing too, which is found next.
            Err(_) => {}
        }
        for (path, bytes) in segment_files(dir, segment) {
            let reason = match fs::symlink_metadata(&path) {
                Ok(found) if found.is_file() && found.len() == bytes => {
                    self.add_mode(&path, &found);
                    continue;
                }
                Ok(found) if !found.is_file() => "is not a regular file".to_owned(),
                Ok(found) => format!("has {} bytes instead of {bytes}", found.len()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => "is missing".to_owned(),
                Err(error) => format!("cannot be reached: {error}"),
            };
            self.add_resized(path, reason);
        }
    }

    fn add_resized(&mut self, path: PathBuf, reason: String) {
        merge_found(&mut self.resized, Some(FoundFiles { first: path, reason, count: 1 }));
    }

    /// Notes that others can do something with a file or folder, if they can.
    fn add_mode(&mut self, path: &Path, found: &Metadata) {
        let Some(mode) = mode_of(found).filter(|mode| mode & OTHERS_BITS != 0) else { return };
        self.is_shared = true;
        if mode & OTHERS_WRITE_BITS == 0 {
            return;
        }
        let reason = format!("has mode {mode:o}");
        let found = FoundFiles { first: path.to_owned(), reason, count: 1 };
        merge_found(&mut self.writable, Some(found));
    }

    fn first_paths(&self) -> [Option<&Path>; 2] {
        [&self.resized, &self.writable].map(|found| Some(&*found.as_ref()?.first))
    }
}

/// Adds `more` to `found`, whose first file stays the first.
fn merge_found(found: &mut Option<FoundFiles>, more: Option<FoundFiles>) {
    match (found.as_mut(), more) {
        (Some(found), Some(more)) => found.count += more.count,
        (None, more) => *found = more,
        (Some(_), None) => {}
    }
}

/// Mode bits that let other users read, write or enter.
const OTHERS_BITS: u32 = 0o077;

/// Mode bits that let other users write.
const OTHERS_WRITE_BITS: u32 = 0o022;

/// Returns the permission bits of a file or folder, not of a link; `None` where files have none.
fn mode_of(found: &Metadata) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if found.is_symlink() { None } else { Some(found.mode() & 0o777) }
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        None
    }
}

/// Makes the store private again: its folders and the files that `manifest` lists. Returns a notice
/// for the user if others were able to write to it, or if it belongs to another user.
///
/// # Errors
/// [`StoreError::Io`] if the mode of a file of this user cannot be changed.
pub(super) fn make_private(dir: &Path, manifest: &Manifest) -> Result<Option<String>, StoreError> {
    let mut places = store_places(dir);
    for segment in &manifest.segments {
        places.push(SegmentEntry::folder_path(dir, segment.number));
        places.extend(segment_files(dir, segment).map(|(path, _)| path));
    }

    let mut writable: Option<FoundFiles> = None;
    let mut foreign = None;
    for path in places {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let Some(mode) = mode_of(&found).filter(|mode| mode & OTHERS_BITS != 0) else { continue };
        if !is_own(&found) {
            foreign.get_or_insert((path, mode));
            continue;
        }
        set_private_mode(&path, &found).map_err(StoreError::io(&path))?;
        if mode & OTHERS_WRITE_BITS != 0 {
            let found = FoundFiles { first: path, reason: format!("mode {mode:o}"), count: 1 };
            merge_found(&mut writable, Some(found));
        }
    }

    if let Some((path, mode)) = foreign {
        return Ok(Some(format!(
            "{} belongs to another user and has mode {mode:o}: others may read or change it. Choose a folder of your own with --store",
            path.display()
        )));
    }
    Ok(writable.map(|found| {
        let more = match found.count {
            1 => String::new(),
            count => format!(" and {} more places in the store", count - 1),
        };
        format!(
            "Other users were able to write to {} ({}){more}. It is private now. If you do not trust them, run `sessions ingest --verify`",
            found.first.display(),
            found.reason
        )
    }))
}

/// True if the file or folder belongs to the user of this process.
fn is_own(found: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        found.uid() == rustix::process::geteuid().as_raw()
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        true
    }
}

/// Gives a file or folder the mode with which the store creates it.
fn set_private_mode(path: &Path, found: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = if found.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = (path, found);
        Ok(())
    }
}
