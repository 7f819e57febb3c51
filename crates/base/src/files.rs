//! Opens files that other programs may have replaced: links are not followed, and no pipe is waited
//! for.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens the regular file at `path` with `options`. A file that is created is for its owner only.
///
/// # Errors
/// Fails if the file cannot be opened, or if `path` is a symbolic link, a device, a FIFO or anything
/// else that is not a regular file.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        options.mode(0o600).custom_flags(flags.cast_signed());
    }
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other(
            "it is not a regular file, and links are not followed. Remove it and run the command again",
        ));
    }
    options.open(path)
}

/// Opens a file for reading, as [`open_regular`] does.
///
/// # Errors
/// Fails as [`open_regular`] does.
pub fn open_for_reading(path: &Path) -> io::Result<File> {
    open_regular(path, OpenOptions::new().read(true))
}

/// Opens the lock file at `path`, creating it if it does not exist. Its content is not changed.
///
/// # Errors
/// Fails as [`open_regular`] does.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    open_regular(path, &mut options)
}

/// Returns a builder of folders that are for their owner only.
pub fn private_dir_builder(is_recursive: bool) -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(is_recursive);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_devices_and_fifos_are_not_opened() {
        let dir = tempfile::tempdir().expect("tempdir");
        let target = dir.path().join("target");
        fs::write(&target, "theirs").expect("writes");
        let link = dir.path().join("write.lock");
        symlink(&target, &link).expect("links");
        assert!(open_for_reading(&link).is_err() && open_lock(&link).is_err());
        assert_eq!(fs::read(&target).expect("reads"), b"theirs");
        fs::remove_file(&link).expect("removes");
        symlink(dir.path().join("nowhere"), &link).expect("links");
        assert!(open_lock(&link).is_err(), "a dangling link");
        assert!(!dir.path().join("nowhere").exists());
        assert!(open_for_reading(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn a_lock_file_keeps_its_content() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("write.lock");
        fs::write(&path, "kept").expect("writes");
        open_lock(&path).expect("opens");
        assert_eq!(fs::read(&path).expect("reads"), b"kept");
    }
}
