//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

/// Exact kinds; messages for people and models are made of them in `crate::error`.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is of schema version {found}, newer than {supported}", path.display())]
    Newer { path: PathBuf, found: u32, supported: u32 },
    #[error("{} is of schema version {found}, older than {supported}", path.display())]
    Older { path: PathBuf, found: u32, supported: u32 },
    #[error("{} is no manifest", path.display())]
    BadManifest { path: PathBuf, source: serde_json::Error },
    #[error("{} cannot be read: {reason}", path.display())]
    BadLabels { path: PathBuf, reason: String },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("another process is writing to {}", path.display())]
    Busy { path: PathBuf },
}

impl StoreError {
    /// Names the file an I/O error is about.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// A file of a segment that cannot be what was written.
    pub(super) fn damaged(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}
