//! A folder of a store that is held open while it is written to.
//!
//! A store may be moved, removed or replaced while its writer runs. A file that is created by path
//! is then created in whatever is at that path. A file that is created in a held folder is created
//! in that folder, wherever it is, or the call fails if the folder is gone.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::error::StoreError;

/// An open folder. Systems other than Unix do not let a folder be moved while a file in it is open,
/// and the lock of the store is such a file. On these systems, the path is enough.
pub(crate) struct HeldFolder {
    path: PathBuf,
    #[cfg(unix)]
    handle: File,
}

impl HeldFolder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// Fails if it cannot be opened, or if it is a symbolic link or not a folder.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        #[cfg(unix)]
        {
            let folder =
                rustix::fs::open(path, folder_flags(), Mode::empty()).map_err(|error| {
                    let error = match error {
                        rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => io::Error::other(
                            "it is not a folder, and a store follows no links. Put the real folder there",
                        ),
                        error => error.into(),
                    };
                    StoreError::io(path)(error)
                })?;
            Ok(Self { path: path.to_owned(), handle: folder.into() })
        }
        #[cfg(not(unix))]
        Ok(Self { path: path.to_owned() })
    }

    /// Returns the path of the folder when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates and opens the folder `name` in this one, for its owner only.
    ///
    /// # Errors
    /// Fails if this folder is gone or cannot be written, or if something in it has that name.
    pub(crate) fn create_folder(&self, name: &str) -> Result<Self, StoreError> {
        let path = self.path.join(name);
        #[cfg(unix)]
        {
            let folder = rustix::fs::mkdirat(&self.handle, name, Mode::RWXU)
                .and_then(|()| {
                    rustix::fs::openat(&self.handle, name, folder_flags(), Mode::empty())
                })
                .map_err(|error| StoreError::io(&path)(error.into()))?;
            Ok(Self { path, handle: folder.into() })
        }
        #[cfg(not(unix))]
        {
            super::files::create_private_dir(&path)?;
            Ok(Self { path })
        }
    }

    /// Creates the file `name` in the folder, for its owner only.
    ///
    /// # Errors
    /// Fails if the folder is gone or cannot be written, or if something in it has that name.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        #[cfg(unix)]
        {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?;
            Ok(file.into())
        }
        #[cfg(not(unix))]
        std::fs::OpenOptions::new().write(true).create_new(true).open(self.path.join(name))
    }

    /// True if the folder is still at its path and holds a folder with each of `names`.
    pub(crate) fn is_whole(&self, mut names: impl Iterator<Item = String>) -> bool {
        #[cfg(unix)]
        {
            let Ok(held) = self.handle.metadata() else { return false };
            let Ok(found) = std::fs::symlink_metadata(&self.path) else { return false };
            if !super::lock::is_same_file(&held, &found) {
                return false;
            }
        }
        // The path leads to this folder, so the entries below the path are in it.
        names.all(|name| self.path.join(name).is_dir())
    }

    /// Makes the entries of the folder durable, if the platform supports it.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        #[cfg(unix)]
        self.handle.sync_all().map_err(StoreError::io(&self.path))?;
        Ok(())
    }

    /// Removes the file `name` from the folder, if there is one.
    pub(crate) fn remove_file(&self, name: &str) {
        #[cfg(unix)]
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::empty());
        #[cfg(not(unix))]
        let _ = std::fs::remove_file(self.path.join(name));
    }

    /// Removes the folder `name` from this one, if it is empty.
    pub(crate) fn remove_folder(&self, name: &str) {
        #[cfg(unix)]
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR);
        #[cfg(not(unix))]
        let _ = std::fs::remove_dir(self.path.join(name));
    }
}

/// Returns the flags that open a real folder, not a link to one.
#[cfg(unix)]
fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}
