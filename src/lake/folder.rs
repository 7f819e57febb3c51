//! A lake in a folder, for example one that machines share over a network.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::objects::{ObjectInfo, Objects};
use crate::files::outfile::open_regular;

/// The folder of a lake in which objects are written before they are moved to their place.
const UNFINISHED: &str = "v1/unfinished";

/// Beginning of the names of unfinished objects.
const UNFINISHED_PREFIX: &str = ".tmp-";

/// Age from which on an unfinished object is of a push that was killed.
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
            if name.starts_with('.') || !metadata.is_file() {
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

    fn get(&self, key: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, String> {
        let file = match open_regular(&self.path(key)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > max_bytes {
            return Err(format!("it has more than {max_bytes} bytes"));
        }
        Ok(Some(bytes))
    }

    fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), String> {
        let unfinished = self.path(UNFINISHED);
        self.clearing.call_once(|| remove_abandoned(&unfinished));
        write_object(&self.path(key), &unfinished, &bytes).map_err(|error| error.to_string())
    }

    fn delete(&self, key: &str) -> Result<(), String> {
        match fs::remove_file(self.path(key)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Writes a file into the folder `unfinished` and moves it to its place. Every user of the lake may
/// read it, as far as the folder allows.
fn write_object(path: &Path, unfinished: &Path, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(unfinished)?;
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED_PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(unfinished)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
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
