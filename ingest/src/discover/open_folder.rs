//! Examines many files of one folder. To look up a name in an open folder takes less time than a
//! path, whose folders are looked up one after the other.

use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat};

use crate::source::candidate::FileState;

/// A folder that is open while its files are examined.
#[cfg(target_os = "linux")]
pub(super) struct OpenFolder(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl OpenFolder {
    /// Opens the folder at `path` if this is its only path. `None` if it has others, or cannot be
    /// opened.
    pub(super) fn open_real(path: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        path.canonicalize().is_ok_and(|real| real == path).then_some(Self(folder))
    }

    /// Returns the state of the file of this name in the folder. `None` if it is something else, such
    /// as a folder or a link.
    ///
    /// # Errors
    /// Fails if there is nothing of this name, or if the system cannot tell.
    pub(super) fn examine(&self, name: &str) -> io::Result<Option<FileState>> {
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(found.st_mode).is_file();
        Ok(is_file.then(|| FileState::of_stat(&found)))
    }
}

/// Elsewhere a file may be found under several spellings of its name, so no path is its only one.
#[cfg(not(target_os = "linux"))]
pub(super) enum OpenFolder {}

#[cfg(not(target_os = "linux"))]
impl OpenFolder {
    pub(super) fn open_real(_: &Path) -> Option<Self> {
        None
    }

    pub(super) fn examine(&self, _: &str) -> io::Result<Option<FileState>> {
        match *self {}
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::source::candidate::LogCandidate;

    #[test]
    fn files_are_as_their_paths_say() {
        let dir = tempfile::tempdir().expect("tempdir");
        let dir = dir.path().canonicalize().expect("there");
        let times = [
            UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789),
            UNIX_EPOCH,
            UNIX_EPOCH - Duration::new(5, 1),
        ];
        for (number, time) in times.into_iter().enumerate() {
            let path = dir.join(format!("{number}"));
            fs::write(&path, "x".repeat(number)).expect("writes");
            let file = fs::File::options().write(true).open(&path).expect("opens");
            file.set_modified(time).expect("sets");
        }
        fs::create_dir(dir.join("folder")).expect("creates");
        symlink("1", dir.join("link")).expect("links");
        symlink("folder", dir.join("other")).expect("links");

        let folder = OpenFolder::open_real(&dir).expect("opens");
        for name in ["0", "1", "2"] {
            let path = dir.join(name);
            let state = folder.examine(name).expect("there").expect("a file");
            let expected = LogCandidate::from_path(path.clone()).expect("there");
            assert_eq!(LogCandidate::new(path, state), expected);
        }
        for name in ["folder", "link"] {
            assert!(folder.examine(name).expect("there").is_none(), "{name}");
        }
        assert!(folder.examine("nothing").is_err());
        for name in ["other", "folder/..", "0", "nowhere"] {
            assert!(OpenFolder::open_real(&dir.join(name)).is_none(), "{name}");
        }
    }
}
