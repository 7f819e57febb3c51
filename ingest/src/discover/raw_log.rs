//! Opens the log of a known session again, for a record of it or for the archive.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use schemas::session::SourceRow;

use super::reach::shared_database;
use crate::provider::assemblies;
use crate::source::candidate::{Container, LogCandidate};
use crate::source::container::{Content, MAX_DOCUMENT_BYTES, log_paths};
use crate::source::fingerprint::Fingerprint;

/// The content of a log, in the bytes in which its decoder reads it: unpacked, and for a session in a
/// database as one document.
pub struct RawLog {
    content: Content,
    modified_us: i64,
}

impl RawLog {
    /// Opens the log that the store knows as `key`.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::NotFound`] if the log does not exist, and the errors of opening it.
    pub fn open(key: &str) -> io::Result<Self> {
        let file = find_candidate(key)?;
        let content = Content::open(&file)?;
        Ok(Self { content, modified_us: file.modified_us })
    }

    /// Returns when the file changed last before it was opened, in microseconds since the epoch.
    pub fn modified_us(&self) -> i64 {
        self.modified_us
    }

    /// Returns the length of the content in bytes.
    ///
    /// # Errors
    /// Returns the errors of reading the file.
    pub fn length(&mut self) -> io::Result<u64> {
        self.content.length()
    }

    /// Returns whether the log still begins with what was ingested of it, as its source says.
    ///
    /// # Errors
    /// Returns the errors of reading the file.
    pub fn begins_with(&mut self, source: &SourceRow) -> io::Result<bool> {
        Fingerprint::is_unchanged(&mut self.content, source)
    }

    /// Returns the hashes of the first and of the last of the first `consumed` bytes, as sources have
    /// them.
    ///
    /// # Errors
    /// Returns the errors of reading the file.
    pub fn hash_ends(&mut self, consumed: u64) -> io::Result<(i64, i64)> {
        let print = Fingerprint::of_content(&mut self.content, consumed)?;
        Ok((print.head_hash, print.tail_hash))
    }

    /// Reads `length` bytes at `offset`, or what the log has of them.
    ///
    /// # Errors
    /// Returns the errors of reading, and an error if the record is larger than a document may be.
    pub fn read_record(&mut self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        if length > MAX_DOCUMENT_BYTES {
            let message = format!("the record is larger than {MAX_DOCUMENT_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        self.content.seek(SeekFrom::Start(offset))?;
        let mut record = Vec::new();
        (&mut self.content).take(length).read_to_end(&mut record)?;
        Ok(record)
    }
}

/// Returns whether the log known as `key` is a file to itself, and not a part of a database or made of
/// many files.
pub fn is_log_file(key: &str) -> bool {
    let source = Path::new(shared_database(key).unwrap_or(key));
    !assemblies().any(|assembly| assembly.has_source(source))
}

/// Returns the file or the part of a database that holds the log known as `key`.
pub(crate) fn find_candidate(key: &str) -> io::Result<LogCandidate> {
    let source = Path::new(shared_database(key).unwrap_or(key));
    if let Some(assembly) = assemblies().find(|assembly| assembly.has_source(source)) {
        let container = Container::Assembled(assembly);
        return Ok(LogCandidate { path: PathBuf::from(key), size: 0, modified_us: 0, container });
    }
    let path = log_paths(Path::new(key)).into_iter().find(|path| path.is_file());
    LogCandidate::from_path(path.ok_or(io::ErrorKind::NotFound)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_again_also_if_compressed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let log = dir.path().join("s.jsonl");
        let key = log.to_string_lossy().into_owned();
        let missing = RawLog::open(&key).err().expect("missing");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);

        let packed = zstd::encode_all(&b"{\"a\":1}\n{\"b\":2}\n"[..], 3).expect("packs");
        std::fs::write(dir.path().join("s.jsonl.zst"), packed).expect("writes");
        let mut raw = RawLog::open(&key).expect("opens");
        assert_eq!(raw.read_record(0, 7).expect("reads"), b"{\"a\":1}");
        assert_eq!(raw.read_record(8, 5).expect("reads"), b"{\"b\":");
        assert!(raw.read_record(0, u64::MAX).is_err());
    }
}
