//! Opens the log of a known session again for a record of it.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::reach::shared_database;
use crate::provider::assemblies;
use crate::source::candidate::{Container, LogCandidate};
use crate::source::container::{Content, MAX_DOCUMENT_BYTES, log_paths};

/// The content of a log, in the bytes in which its decoder reads it: unpacked, and for a session in a
/// database as one document.
pub struct RawLog {
    content: Content,
}

impl RawLog {
    /// Opens the log that the store knows as `key`.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::NotFound`] if the log does not exist, and the errors of opening it.
    pub fn open(key: &str) -> io::Result<Self> {
        let file = find_candidate(key)?;
        let content = Content::open(&file)?;
        Ok(Self { content })
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

/// Returns the file or the part of a database that holds the log known as `key`.
fn find_candidate(key: &str) -> io::Result<LogCandidate> {
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
