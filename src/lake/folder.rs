//! A lake in a folder, for example one that machines share over a network.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::objects::{ObjectInfo, Objects};
use crate::files::outfile::open_regular;

/// A lake in a folder. A key is the path of a file below it.
pub(super) struct FolderPlace(PathBuf);

impl FolderPlace {
    pub(super) fn new(root: PathBuf) -> Self {
        Self(root)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.0.join(key)
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
            // Names with a dot are of objects that are still being written.
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
        write_object(&self.path(key), &bytes).map_err(|error| error.to_string())
    }

    fn delete(&self, key: &str) -> Result<(), String> {
        match fs::remove_file(self.path(key)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Writes a file next to its place and moves it there. Every user of the lake may read it, as far as
/// the folder allows.
fn write_object(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tmp-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
