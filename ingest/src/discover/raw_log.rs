//! Opens the log of a known session again: for a record of it, or for all of it with masked secrets.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use schemas::Provider;

use super::reach::shared_database;
use super::sniff::{Sniffed, sniff};
use crate::provider::format::LogReader;
use crate::provider::{assemblies, format_of};
use crate::redact::{Redactor, mask_record};
use crate::source::candidate::{Container, LogCandidate};
use crate::source::container::{Content, MAX_DOCUMENT_BYTES, log_paths};
use crate::text::names::truncate_name;

/// The content of a log, in the bytes in which its decoder reads it: unpacked, and for a session in a
/// database as one document.
pub struct RawLog {
    file: LogCandidate,
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
        Ok(Self { file, content })
    }

    /// Returns whether the log still says that it is the log of this session. Another session may have
    /// been written to its path. The path of a session in a database names the session.
    pub fn is_log_of(&self, native_id: &str, redactor: &Redactor) -> bool {
        if matches!(self.file.container, Container::Assembled(_)) {
            return true;
        }
        match sniff(&self.file, Some(redactor)) {
            Ok(Sniffed::Log(claim)) => truncate_name(&claim.native_id) == native_id,
            Ok(Sniffed::Empty | Sniffed::Unknown(_)) | Err(_) => false,
        }
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

    /// Writes the log of an agent with its secrets masked: each line by itself, or a document as a
    /// whole. Lines and documents that are too large to be held are masked in pieces.
    ///
    /// # Errors
    /// Returns the errors of reading and of writing.
    pub fn write_masked(
        &mut self,
        provider: Provider,
        redactor: &Redactor,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.content.seek(SeekFrom::Start(0))?;
        let is_document = matches!(format_of(provider).reader, LogReader::Document(_));
        let mut reader = BufReader::new(&mut self.content);
        let mut record = Vec::new();
        loop {
            record.clear();
            let mut piece = (&mut reader).take(MAX_DOCUMENT_BYTES);
            if is_document {
                piece.read_to_end(&mut record)?;
            } else {
                piece.read_until(b'\n', &mut record)?;
            }
            if record.is_empty() {
                return Ok(());
            }
            // The end of a line is not a part of a string that was cut.
            let length = record.trim_ascii_end().len();
            let (body, line_end) = record.split_at(length);
            out.write_all(&mask_record(redactor, body))?;
            out.write_all(line_end)?;
        }
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
    fn records_and_whole_logs_are_read_again_also_if_compressed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let log = dir.path().join("s.jsonl");
        let token = concat!("ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let lines =
            format!("{{\"a\":1}}\n{{\"b\":\"{token}\"}}\n{{\"cut\":\"{token}\r\nnot JSON\n");
        let key = log.to_string_lossy().into_owned();
        let missing = RawLog::open(&key).err().expect("missing");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);

        let packed = zstd::encode_all(lines.as_bytes(), 3).expect("packs");
        std::fs::write(dir.path().join("s.jsonl.zst"), packed).expect("writes");
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let mut raw = RawLog::open(&key).expect("opens");
        assert_eq!(raw.read_record(0, 7).expect("reads"), b"{\"a\":1}");
        for provider in [Provider::Claude, Provider::Gemini] {
            let mut masked = Vec::new();
            raw.write_masked(provider, &redactor, &mut masked).expect("writes");
            let masked = String::from_utf8(masked).expect("UTF-8");
            assert!(!masked.contains(token), "{masked}");
            if provider == Provider::Claude {
                assert_eq!(masked, lines.replace(token, "[REDACTED:github_token]"));
            }
        }
        assert_eq!(raw.read_record(8, 5).expect("reads"), b"{\"b\":");
        assert!(raw.read_record(0, u64::MAX).is_err());
    }
}
