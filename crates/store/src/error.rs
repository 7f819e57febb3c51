//! The errors of a store.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// An error of a store. `crate::error` converts it to a message for users and models.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} has schema version {found}, newer than the supported version {supported}", path.display())]
    Newer { path: PathBuf, found: u32, supported: u32 },
    #[error("{} has schema version {found}, older than the supported version {supported}", path.display())]
    Older { path: PathBuf, found: u32, supported: u32 },
    /// The folder has no manifest and holds `entry`, which no store writes.
    #[error("{} is not a store: it holds '{entry}'", path.display())]
    ForeignFolder { path: PathBuf, entry: String },
    /// The folder has no manifest but holds complete segments.
    #[error("{} holds {segments} segments but no manifest", path.display())]
    LostManifest { path: PathBuf, segments: usize },
    /// The store at `path` is not the one that was locked.
    #[error("{} was moved, removed or replaced", path.display())]
    Replaced { path: PathBuf },
    /// A file of a segment changed before the segment was committed.
    #[error("{} was changed while its segment was being written: {reason}", path.display())]
    Disturbed { path: PathBuf, reason: String },
    /// A file with what a user decided cannot be read. `path` is the file, or one that belongs to
    /// it.
    #[error("{} cannot be read: {reason}", path.display())]
    BadUserFile { file: UserFile, path: PathBuf, reason: String },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("another process is writing to {}", path.display())]
    Busy { path: PathBuf },
}

/// A file with what a user decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserFile {
    Labels,
    Forgotten,
    Reduced,
    Scrubbed,
}

impl StoreError {
    /// Returns a function that adds the path of the file to an I/O error.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// Returns the error for a file of a segment that differs from what was written.
    pub(crate) fn damaged(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Converts an error of writing to an I/O error, because the data that is written is our own. Keeps
/// the text of the error and the kind of its innermost cause.
pub(super) fn write_error(path: &Path, error: impl Error + 'static) -> StoreError {
    let mut cause: &dyn Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let kind = cause.downcast_ref::<io::Error>().map_or(io::ErrorKind::Other, io::Error::kind);
    StoreError::Io { path: path.to_owned(), source: io::Error::new(kind, error.to_string()) }
}
