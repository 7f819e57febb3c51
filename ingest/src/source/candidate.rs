//! A file, or a part of one, that may be a log, and how its content is stored.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::assembly::Assembly;

/// How the content of a candidate is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// A file that is not compressed.
    Plain,
    /// A file compressed with Zstandard.
    Zstd,
    /// A file compressed with gzip.
    Gzip,
    /// A session that does not have a file to itself.
    Assembled(&'static Assembly),
}

impl Container {
    /// Splits a file name into the compression that its extension shows and the name without it.
    pub(crate) fn of_name(name: &str) -> (Self, &str) {
        if let Some(plain) = name.strip_suffix(".zst").or_else(|| name.strip_suffix(".zstd")) {
            (Self::Zstd, plain)
        } else if let Some(plain) = name.strip_suffix(".gz") {
            (Self::Gzip, plain)
        } else {
            (Self::Plain, name)
        }
    }
}

/// A file, or a part of one, that may be a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCandidate {
    /// The path of the file; `<file>#<session id>` if sessions share the file.
    pub path: PathBuf,
    /// Size in bytes: of the file as it is stored, or approximately of the assembled document.
    pub size: u64,
    /// Time of the latest change, in microseconds since 1970; 0 if it is unknown.
    pub modified_us: i64,
    /// How the content is stored.
    pub container: Container,
}

/// The size of a file and when it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    size: u64,
    /// As in [`LogCandidate`].
    modified_us: i64,
}

impl FileState {
    /// Returns the state of a file with this metadata.
    pub(crate) fn of_metadata(metadata: &Metadata) -> Self {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_us =
            modified.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
        Self { size: metadata.len(), modified_us }
    }
}

impl LogCandidate {
    /// Returns the candidate for the file at a path, which is in this state.
    pub(crate) fn new(path: PathBuf, state: FileState) -> Self {
        let FileState { size, modified_us } = state;
        let (container, _) = Container::of_name(&path_text(&path));
        Self { path, size, modified_us, container }
    }

    /// Returns the candidate for a single file.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the file cannot be read.
    pub fn from_path(path: PathBuf) -> io::Result<Self> {
        let metadata = std::fs::metadata(&path)?;
        Ok(Self::new(path, FileState::of_metadata(&metadata)))
    }

    /// Returns the path as the store keeps it: without the extension of a compression, so that a
    /// log stays the same log when it is compressed.
    pub fn key(&self) -> String {
        Container::of_name(&path_text(&self.path)).1.to_owned()
    }

    /// Calls `use_key` with the [key](Self::key), which is not copied for it.
    pub fn with_key<T>(&self, use_key: impl FnOnce(&str) -> T) -> T {
        use_key(Container::of_name(&path_text(&self.path)).1)
    }

    /// Orders by key, and the files of one log from the plain one on.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let (own, others) = (path_text(&self.path), path_text(&other.path));
        let by_key = Container::of_name(&own).1.cmp(Container::of_name(&others).1);
        by_key.then_with(|| self.path.cmp(&other.path))
    }

    /// Returns whether two files are of the same log.
    pub(crate) fn has_key_of(&self, other: &Self) -> bool {
        let (own, others) = (path_text(&self.path), path_text(&other.path));
        Container::of_name(&own).1 == Container::of_name(&others).1
    }
}

/// Returns the text of a path, with a placeholder for what is not UTF-8.
fn path_text(path: &Path) -> Cow<'_, str> {
    // This is the faster way, and few paths are something else.
    path.to_str().map_or_else(|| path.to_string_lossy(), Cow::Borrowed)
}
