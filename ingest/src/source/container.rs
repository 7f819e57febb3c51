//! Opens the content of a log: a plain file, a compressed one, or a document assembled from other
//! files. Codex compresses logs older than a week.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::SpooledTempFile;

use super::assembly::Assembly;
use super::candidate::{Container, LogCandidate};
use super::line_source::LineSource;

/// Maximum number of decompressed bytes held in memory. Longer content goes to a temporary file
/// without a name.
const MAX_MEMORY_BYTES: usize = 16 << 20;

/// Number of bytes that any compressed file may unpack to, whatever its size: this much does no
/// harm.
const ALWAYS_UNPACKED_BYTES: u64 = 256 << 20;

/// Maximum factor by which content beyond [`ALWAYS_UNPACKED_BYTES`] may exceed its compressed file.
/// Logs shrink 5 to 20 times, a log that repeats a picture in a hundred records shrinks a hundred
/// times. A bomb shrinks 1,000 times (gzip) to 30,000 times (zstd).
const MAX_UNPACKED_RATIO: u64 = 1000;

/// Maximum number of bytes that a compressed file may unpack to: twice the largest known log, of
/// 3.8 GB.
const MAX_UNPACKED_BYTES: u64 = 8 << 30;

/// A document of more bytes than this is a giant. A document is held in memory whole, and more than
/// once while it is assembled and decoded.
const GIANT_THRESHOLD_BYTES: u64 = 8 << 20;

/// Maximum size in bytes of a document that is read, because a document is held in memory whole.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// Returns the problem message for a document of `length` bytes that is too large.
pub(crate) fn oversized_message(length: u64) -> String {
    format!(
        "the document has {length} bytes and was not read: the limit is {MAX_DOCUMENT_BYTES} bytes"
    )
}

static GIANT_DOCUMENT: Mutex<()> = Mutex::new(());

/// Waits until no other thread holds a giant document, if `bytes` is the size of a giant. Other
/// threads wait until the guard is dropped.
pub(crate) fn lock_giant_document(bytes: u64) -> Option<MutexGuard<'static, ()>> {
    (bytes > GIANT_THRESHOLD_BYTES)
        .then(|| GIANT_DOCUMENT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the files that may contain a log, plain or compressed.
pub(crate) fn log_paths(log: &Path) -> [PathBuf; 4] {
    ["", ".zst", ".zstd", ".gz"].map(|extension| {
        let mut file = log.as_os_str().to_owned();
        file.push(extension);
        file.into()
    })
}

/// Returns whether a log exists, plain or compressed.
pub(crate) fn has_log(log: &Path) -> bool {
    log_paths(log).iter().any(|file| file.is_file())
}

/// The content of a log, readable from any position.
pub(crate) enum Content {
    /// A plain file.
    File(File),
    /// Unpacked content, and the reason if it is not complete.
    Unpacked(SpooledTempFile, Option<String>),
    /// Assembled content.
    Memory(Cursor<Vec<u8>>),
}

impl Content {
    /// Opens a candidate's content. The content of a damaged compressed file ends at the damage; it
    /// is an error only if nothing precedes the damage. Content that unpacks to more than the limit
    /// is cut there.
    pub(crate) fn open(file: &LogCandidate) -> io::Result<Self> {
        match file.container {
            Container::Plain => Ok(Self::File(File::open(&file.path)?)),
            Container::Zstd | Container::Gzip => {
                unpack_content(open_compressed(file)?, unpack_limit(file))
            }
            Container::Assembled(assembly) => {
                Ok(Self::Memory(Cursor::new(assemble_document(file, assembly)?)))
            }
        }
    }

    /// Opens the content for reading from its beginning, without seeking. It ends at damage, as that of
    /// [`Self::open`] does.
    pub(crate) fn open_stream(file: &LogCandidate) -> io::Result<Box<dyn LineSource>> {
        Ok(match file.container {
            Container::Plain => Box::new(File::open(&file.path)?),
            Container::Zstd | Container::Gzip => {
                let content = UntilDamage { packed: open_compressed(file)?, has_read: false };
                Box::new(content.take(unpack_limit(file)))
            }
            Container::Assembled(assembly) => {
                Box::new(Cursor::new(assemble_document(file, assembly)?))
            }
        })
    }

    /// Returns why this is not the complete content of a compressed file, and what the user can do.
    pub(crate) fn cut_reason(&self) -> Option<&str> {
        match self {
            Self::Unpacked(_, cut) => cut.as_deref(),
            Self::File(_) | Self::Memory(_) => None,
        }
    }

    /// Returns the length of the content in bytes.
    pub(crate) fn length(&mut self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Unpacked(..) | Self::Memory(_) => {
                let at = self.stream_position()?;
                let end = self.seek(SeekFrom::End(0))?;
                self.seek(SeekFrom::Start(at))?;
                Ok(end)
            }
        }
    }
}

/// Opens a compressed file as a decompressing reader.
fn open_compressed(file: &LogCandidate) -> io::Result<Box<dyn Read>> {
    let packed = File::open(&file.path)?;
    Ok(match file.container {
        Container::Zstd => Box::new(zstd::Decoder::new(packed)?),
        Container::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Container::Plain | Container::Assembled(_) => Box::new(packed),
    })
}

/// Compressed content that ends where it is damaged, unless nothing precedes the damage.
struct UntilDamage<R> {
    packed: R,
    has_read: bool,
}

impl<R: Read> Read for UntilDamage<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.packed.read(buffer) {
            Err(error) if self.has_read && error.kind() != io::ErrorKind::Interrupted => Ok(0),
            result => {
                self.has_read |= result.as_ref().is_ok_and(|read| *read > 0);
                result
            }
        }
    }
}

/// Returns the number of bytes that a compressed file may unpack to.
fn unpack_limit(file: &LogCandidate) -> u64 {
    file.size.saturating_mul(MAX_UNPACKED_RATIO).clamp(ALWAYS_UNPACKED_BYTES, MAX_UNPACKED_BYTES)
}

/// Unpacks and keeps at most `max_bytes`. Fails if the first bytes cannot be unpacked, or if the
/// unpacked bytes cannot be kept.
fn unpack_content(mut packed: impl Read, max_bytes: u64) -> io::Result<Content> {
    let mut spool = SpooledTempFile::new(MAX_MEMORY_BYTES);
    let mut buffer = vec![0; 128 << 10];
    let mut kept = 0;
    let cut = loop {
        let bytes = match packed.read(&mut buffer) {
            Ok(0) => break None,
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if kept == 0 => return Err(error),
            Err(error) => {
                break Some(format!(
                    "the compressed data is damaged after {kept} bytes, which were read: {error}"
                ));
            }
        };

        let room = usize::try_from(max_bytes - kept).unwrap_or(usize::MAX);
        let fitting = bytes.get(..room).unwrap_or(bytes);
        // A full disk is not the end of the log but an error, after which the next run tries again.
        spool.write_all(fitting)?;
        kept += fitting.len() as u64;
        if fitting.len() < bytes.len() {
            break Some(format!(
                "it unpacks to more than {max_bytes} bytes, and only these were read; if it is a \
                 log, unpack it next to the compressed file: the plain file is read without a limit"
            ));
        }
    };
    spool.rewind()?;
    Ok(Content::Unpacked(spool, cut))
}

/// Assembles the document of a session. Fails with [`io::ErrorKind::FileTooLarge`] if the document
/// exceeds [`MAX_DOCUMENT_BYTES`].
fn assemble_document(file: &LogCandidate, assembly: &Assembly) -> io::Result<Vec<u8>> {
    if file.size > MAX_DOCUMENT_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, oversized_message(file.size)));
    }
    (assembly.assemble)(&file.path)
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Unpacked(spool, _) => spool.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl LineSource for Content {
    fn skip_hole(&mut self) -> io::Result<u64> {
        match self {
            Self::File(file) => file.skip_hole(),
            Self::Unpacked(..) | Self::Memory(_) => Ok(0),
        }
    }
}

impl Seek for Content {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(position),
            Self::Unpacked(spool, _) => spool.seek(position),
            Self::Memory(bytes) => bytes.seek(position),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out, and why it is not all.
    fn unpacked(packed: impl Read, most: u64) -> (Vec<u8>, Option<String>) {
        let mut content = unpack_content(packed, most).expect("unpacks");
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).expect("reads");
        assert_eq!(content.length().expect("length"), bytes.len() as u64);
        (bytes, content.cut_reason().map(str::to_owned))
    }

    #[test]
    fn what_unpacks_to_more_than_a_log_is_cut() {
        let content = vec![b'x'; 300_000];
        let packed = zstd::encode_all(&*content, 3).expect("packs");
        let stream = || zstd::Decoder::new(&*packed).expect("opens");
        assert!(packed.len() < 1000);
        for most in [300_000, 300_001, 1 << 40] {
            assert_eq!(unpacked(stream(), most), (content.clone(), None), "{most}");
        }
        for most in [1, 131_072, 299_999] {
            let (bytes, cut) = unpacked(stream(), most);
            assert_eq!(bytes.len() as u64, most);
            let cut = cut.expect("a reason");
            assert!(cut.contains(&most.to_string()) && cut.contains("unpack it next to"), "{cut}");
        }
    }

    #[test]
    fn what_stands_before_damage_is_kept_and_the_damage_is_told() {
        /// Gives three bytes and then fails.
        struct Failing(bool);
        impl Read for Failing {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, false) {
                    into[..3].copy_from_slice(b"abc");
                    return Ok(3);
                }
                Err(io::Error::other("crooked"))
            }
        }
        let (bytes, cut) = unpacked(Failing(true), 100);
        assert_eq!(bytes, b"abc");
        assert!(cut.expect("a reason").ends_with("after 3 bytes, which were read: crooked"));
        assert!(unpack_content(Failing(false), 100).is_err());
    }

    #[test]
    fn the_limit_leaves_room_for_every_real_log() {
        let limit = |size: u64| {
            let (path, container) = ("x.jsonl.zst".into(), Container::Zstd);
            unpack_limit(&LogCandidate { path, size, modified_us: 0, container })
        };
        assert_eq!(limit(1000), 256 << 20);
        assert_eq!(limit(1 << 20), 1000 << 20, "a bomb of 1 MB");
        assert_eq!(limit(1 << 30), 8 << 30);
    }
}
