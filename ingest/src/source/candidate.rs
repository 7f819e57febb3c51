//! A file, or a part of one, that may be a log, and how its content is stored.

use std::fs::Metadata;
use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use super::assembly::Assembly;

/// How the content of a candidate is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Plain,
    Zstd,
    Gzip,
    /// A session that is not a file of its own.
    Assembled(&'static Assembly),
}

impl Container {
    /// Splits a file name into the compression that its extension shows and the name without it.
    pub(crate) fn of_name(name: &str) -> (Self, &str) {
        match (name.strip_suffix(".zst"), name.strip_suffix(".gz")) {
            (Some(plain), _) => (Self::Zstd, plain),
            (None, Some(plain)) => (Self::Gzip, plain),
            (None, None) => (Self::Plain, name),
        }
    }
}

/// A file that may be a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    pub size: u64,
    pub modified_us: i64,
    pub container: Container,
}

impl Candidate {
    /// Returns the candidate for a single file.
    pub fn named(path: PathBuf) -> io::Result<Self> {
        let metadata = std::fs::metadata(&path)?;
        Ok(Self::file(path, &metadata))
    }

    /// Returns the candidate for a file with this metadata.
    pub(crate) fn file(path: PathBuf, metadata: &Metadata) -> Self {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_us =
            modified.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
        let name = path.to_string_lossy();
        let (container, _) = Container::of_name(&name);
        Self { size: metadata.len(), modified_us, container, path }
    }

    /// Returns the path as the store keeps it: without the extension of a compression, so that a
    /// log stays the same one when it is compressed.
    pub fn key(&self) -> String {
        let path = self.path.to_string_lossy();
        Container::of_name(&path).1.to_owned()
    }
}
