//! A folder of a store that is held open while it is written to.
//!
//! A store may be moved, removed or replaced while its writer runs. What is created by its path lands
//! in whatever stands at that path by then. What is created in a held folder lands in that folder,
//! wherever it is, or fails when it is gone.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use rustix::fs::{AtFlags, Mode, OFlags};

use super::StoreError;

/// An open folder. Systems other than Unix do not let a folder be moved while a file in it is open, as
/// the lock of the store is, so there the path is enough.
pub(super) struct HeldFolder {
    path: PathBuf,
    #[cfg(unix)]
    handle: File,
}

impl HeldFolder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// Fails if it is a symbolic link or no folder.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        #[cfg(unix)]
        {
            let open = || rustix::fs::open(path, folder_flags(), Mode::empty());
            let handle = open().map_err(|error| StoreError::io(path)(error.into()))?.into();
            Ok(Self { path: path.to_owned(), handle })
        }
        #[cfg(not(unix))]
        Ok(Self { path: path.to_owned() })
    }

    /// Where the folder was when it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates and opens the folder `name` in this one, for its owner only.
    ///
    /// # Errors
    /// Fails if this folder is gone, or if something in it has that name.
    pub(super) fn create_folder(&self, name: &str) -> Result<Self, StoreError> {
        let path = self.path.join(name);
        #[cfg(unix)]
        {
            let create = || {
                rustix::fs::mkdirat(&self.handle, name, Mode::RWXU)?;
                rustix::fs::openat(&self.handle, name, folder_flags(), Mode::empty())
            };
            let handle = create().map_err(|error| StoreError::io(&path)(error.into()))?.into();
            Ok(Self { path, handle })
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
    /// Fails if the folder is gone, or if something in it has that name.
    pub(super) fn create_file(&self, name: &str) -> io::Result<File> {
        #[cfg(unix)]
        {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?;
            Ok(file.into())
        }
        #[cfg(not(unix))]
        std::fs::OpenOptions::new().write(true).create_new(true).open(self.path.join(name))
    }

    /// Whether it is still at its place, and holds a folder of each of `names`.
    pub(super) fn is_whole(&self, mut names: impl Iterator<Item = String>) -> bool {
        #[cfg(unix)]
        {
            let found = std::fs::symlink_metadata(&self.path);
            let Ok((held, found)) = self.handle.metadata().and_then(|held| Ok((held, found?)))
            else {
                return false;
            };
            // Its path leads to it, so what the path leads to is in it.
            if !super::lock::is_same_file(&held, &found) {
                return false;
            }
        }
        names.all(|name| self.path.join(name).is_dir())
    }

    /// Makes its entries durable, where the platform can.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        #[cfg(unix)]
        self.handle.sync_all().map_err(StoreError::io(&self.path))?;
        Ok(())
    }

    /// Removes the file `name` of the folder, if there is one.
    pub(super) fn remove_file(&self, name: &str) {
        #[cfg(unix)]
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::empty());
        #[cfg(not(unix))]
        let _ = std::fs::remove_file(self.path.join(name));
    }

    /// Removes the folder `name` of this one, if it is empty.
    pub(super) fn remove_folder(&self, name: &str) {
        #[cfg(unix)]
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR);
        #[cfg(not(unix))]
        let _ = std::fs::remove_dir(self.path.join(name));
    }
}

#[cfg(unix)]
fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}
