//! A lake in a folder, for example one that machines share over a network.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::files::{open_for_reading, private_dir_builder};

use super::objects::{ObjectContent, ObjectInfo, Objects, too_long};

/// The folder of a lake in which objects are written before they are moved to their place.
const UNFINISHED: &str = "v1/unfinished";

/// End of the names of listings, tombstones and manifests. No folder of a lake has such a name.
const LISTING_ENDING: &str = ".json";

/// Beginning of the names of unfinished objects.
const UNFINISHED_PREFIX: &str = ".tmp-";

/// Age at which an unfinished object is taken to be left by a killed push.
const ABANDONED_AFTER: Duration = Duration::from_hours(24);

/// A lake in a folder. A key is the path of a file below it.
pub(super) struct FolderPlace {
    root: PathBuf,
    clearing: Once,
}

impl FolderPlace {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, clearing: Once::new() }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }
}

impl Objects for FolderPlace {
    fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, String> {
        let entries = match fs::read_dir(self.path(prefix)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| error.to_string())?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Another machine removed it meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.to_string()),
            };
            // What is neither a file nor a folder is listed, so that the reader reports it.
            let is_folder = metadata.is_dir() && !name.ends_with(LISTING_ENDING);
            if name.starts_with('.') || is_folder {
                continue;
            }
            let changed = metadata.modified().ok();
            let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let version =
                format!("{}-{}", metadata.len(), changed.map_or(0, |time| time.as_nanos()));
            found.push(ObjectInfo { key: format!("{prefix}{name}"), version });
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<ObjectContent, String> {
        match read_regular(&self.path(key), max_bytes) {
            Ok(content) => Ok(content),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(ObjectContent::Missing),
            // A folder that cannot be listed is not one bad object.
            Err(error) => match fs::read_dir(&self.root) {
                Ok(_) => Ok(ObjectContent::Unreadable(error.to_string())),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), String> {
        let unfinished = self.path(UNFINISHED);
        self.clearing.call_once(|| remove_abandoned(&unfinished));
        write_object(&self.root, &self.path(key), &unfinished, &bytes)
            .map_err(|error| error.to_string())
    }

    fn delete(&self, key: &str) -> Result<(), String> {
        match fs::remove_file(self.path(key)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Reads a file of at most `max_bytes`. A link, a pipe or a device in its place is not opened: what it
/// leads to is not an object, and may never end.
fn read_regular(path: &Path, max_bytes: u64) -> std::io::Result<ObjectContent> {
    let not_a_file = || ObjectContent::Unreadable("it is not a regular file".to_owned());
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(not_a_file());
    }
    // Another machine may have replaced it meanwhile.
    let file = open_for_reading(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(not_a_file());
    }
    if metadata.len() > max_bytes {
        return Ok(too_long(max_bytes));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Ok(too_long(max_bytes));
    }
    Ok(ObjectContent::Whole(bytes))
}

/// Writes a file into the folder `unfinished` of the lake at `root` and moves it to its place.
fn write_object(root: &Path, path: &Path, unfinished: &Path, bytes: &[u8]) -> std::io::Result<()> {
    private_dir_builder(true).create(root)?;
    let access = LakeAccess::of_lake(root)?;
    for folder in [unfinished, path.parent().unwrap_or(root)] {
        access.create_folders(root, folder)?;
    }
    let mut file = tempfile::Builder::new().prefix(UNFINISHED_PREFIX).tempfile_in(unfinished)?;
    file.write_all(bytes)?;
    access.allow_reading(file.as_file())?;
    file.persist(path)?;
    Ok(())
}

/// Who may use what is written to a lake: the owner, and those for whom the folder of the lake is open.
struct LakeAccess {
    /// Mode of the folder of the lake.
    #[cfg(unix)]
    mode: u32,
}

impl LakeAccess {
    #[cfg(unix)]
    fn of_lake(root: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        Ok(Self { mode: fs::metadata(root)?.permissions().mode() & 0o7777 })
    }

    #[cfg(not(unix))]
    fn of_lake(_: &Path) -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Creates the folders from `root` down to `folder` that do not exist. The group of a shared folder
    /// may write in them, whatever the umask is.
    fn create_folders(&self, root: &Path, folder: &Path) -> std::io::Result<()> {
        let mut missing: Vec<&Path> = Vec::new();
        for part in folder.ancestors().take_while(|part| *part != root) {
            if part.is_dir() {
                break;
            }
            missing.push(part);
        }
        for part in missing.into_iter().rev() {
            match fs::create_dir(part) {
                Ok(()) => self.open_folder(part)?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn open_folder(&self, folder: &Path) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder, fs::Permissions::from_mode(self.mode | 0o700))
    }

    #[cfg(not(unix))]
    fn open_folder(&self, _: &Path) -> std::io::Result<()> {
        Ok(())
    }

    /// Lets those read a file who may list the folder of the lake. It was created for its owner only.
    #[cfg(unix)]
    fn allow_reading(&self, file: &fs::File) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(self.mode & 0o666 | 0o600))
    }

    #[cfg(not(unix))]
    fn allow_reading(&self, _: &fs::File) -> std::io::Result<()> {
        Ok(())
    }
}

/// Removes what killed pushes left in the folder `unfinished`, unless that is a link: other machines
/// write to the lake, and a link may lead anywhere. What cannot be removed is left.
fn remove_abandoned(unfinished: &Path) {
    if !fs::symlink_metadata(unfinished).is_ok_and(|metadata| metadata.is_dir()) {
        return;
    }
    let Ok(entries) = fs::read_dir(unfinished) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX);
        let Some(metadata) = entry.metadata().ok().filter(|file| is_ours && file.is_file()) else {
            continue;
        };
        let changed = metadata.modified().ok();
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        if age.is_some_and(|age| age > ABANDONED_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file of a push that was killed `hours` ago.
    fn leave(dir: &Path, name: &str, hours: u64) {
        fs::create_dir_all(dir).expect("creates");
        let file = fs::File::create(dir.join(name)).expect("creates");
        let changed = SystemTime::now() - Duration::from_hours(hours);
        file.set_modified(changed).expect("sets the time");
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("lists").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_push_left_is_removed_after_a_day() {
        let dir = tempfile::tempdir().expect("tempdir");
        let unfinished = dir.path().join(UNFINISHED);
        leave(&unfinished, ".tmp-old", 30);
        leave(&unfinished, ".tmp-new", 1);
        leave(&unfinished, "notes.txt", 300);
        let place = FolderPlace::new(dir.path().to_owned());
        place.put("v1/machines/a.json", b"{}".to_vec()).expect("writes");
        assert_eq!(names(&unfinished), [".tmp-new", "notes.txt"]);
        assert_eq!(place.list("v1/machines/").expect("lists").len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_removed_behind_a_link() {
        let (dir, other) = (tempfile::tempdir(), tempfile::tempdir());
        let (dir, other) = (dir.expect("tempdir"), other.expect("tempdir"));
        leave(other.path(), ".tmp-old", 30);
        fs::create_dir_all(dir.path().join("v1")).expect("creates");
        std::os::unix::fs::symlink(other.path(), dir.path().join(UNFINISHED)).expect("links");
        let _ = FolderPlace::new(dir.path().to_owned()).put("v1/a", Vec::new());
        assert_eq!(names(other.path()), [".tmp-old"]);
    }
}
