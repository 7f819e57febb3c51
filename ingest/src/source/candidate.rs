//! A file, or a part of one, that may be a log, and how its content is stored.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::PathBuf;
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
        if let Some(plain) = name.strip_suffix(".zst") {
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

impl LogCandidate {
    /// Returns the candidate for a single file.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the file cannot be read.
    pub fn from_path(path: PathBuf) -> io::Result<Self> {
        let metadata = std::fs::metadata(&path)?;
        Ok(Self::from_metadata(path, &metadata))
    }

    /// Returns the candidate for a file with this metadata.
    pub(crate) fn from_metadata(path: PathBuf, metadata: &Metadata) -> Self {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_us =
            modified.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
        let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        let (container, _) = Container::of_name(&name);
        Self { size: metadata.len(), modified_us, container, path }
    }

    /// Returns whether both have the same [`key`](Self::key).
    pub(crate) fn has_key_of(&self, other: &Self) -> bool {
        if self.path.to_str().is_some() && other.path.to_str().is_some() {
            self.key_bytes() == other.key_bytes()
        } else {
            self.key() == other.key()
        }
    }

    /// Orders by the bytes of the path without the extension of a compression, and then by those of
    /// the path. For paths that are texts, this is the order of their keys.
    pub(crate) fn compare_bytes(&self, other: &Self) -> Ordering {
        let by_key = self.key_bytes().cmp(other.key_bytes());
        by_key.then_with(|| self.path.as_os_str().cmp(other.path.as_os_str()))
    }

    fn key_bytes(&self) -> &[u8] {
        let path = self.path.as_os_str().as_encoded_bytes();
        let plain = path.strip_suffix(b".zst").or_else(|| path.strip_suffix(b".gz"));
        plain.unwrap_or(path)
    }

    /// Returns the path as the store keeps it: without the extension of a compression, so that a
    /// log stays the same log when it is compressed.
    pub fn key(&self) -> String {
        match self.path.to_str() {
            Some(path) => Container::of_name(path).1.to_owned(),
            None => Container::of_name(&self.path.to_string_lossy()).1.to_owned(),
        }
    }
}
