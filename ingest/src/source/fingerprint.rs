//! Recognises whether a log file still begins with the content that was read before.

use std::io::{self, Read, Seek, SeekFrom};

use schemas::session::SourceRow;
use xxhash_rust::xxh3::xxh3_64;

use crate::source::container::Content;

/// Maximum number of bytes hashed at the head, and again before the checkpoint.
const MAX_HASHED_BYTES: u64 = 1024;

/// Hashes that show whether the content read before is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Hash of the first `head_length` bytes.
    pub head_hash: i64,
    /// Number of bytes in each hash.
    pub head_length: i64,
    /// Hash of the `head_length` bytes before the checkpoint.
    pub tail_hash: i64,
}

impl Fingerprint {
    /// Takes the fingerprint of the first `consumed` bytes of a log. The read position is restored.
    pub(crate) fn of_content(content: &mut Content, consumed: u64) -> io::Result<Self> {
        let position = content.stream_position()?;
        let head_length = consumed.min(MAX_HASHED_BYTES);
        let head_hash = hash_range(content, 0, head_length)?;
        let tail_hash = if head_length == consumed {
            head_hash
        } else {
            hash_range(content, consumed - head_length, head_length)?
        };
        content.seek(SeekFrom::Start(position))?;
        Ok(Self { head_hash, head_length: head_length.cast_signed(), tail_hash })
    }

    /// Returns whether the log still begins with the content read up to the checkpoint.
    pub(crate) fn is_unchanged(content: &mut Content, row: &SourceRow) -> io::Result<bool> {
        let consumed = row.consumed.cast_unsigned();
        if content.length()? < consumed {
            return Ok(false);
        }
        let now = Self::of_content(content, consumed)?;
        Ok(now.head_hash == row.head_hash && now.tail_hash == row.tail_hash)
    }
}

/// Returns the hash of `length` bytes from `offset` on, at most [`MAX_HASHED_BYTES`]. Changes the read
/// position.
fn hash_range(content: &mut Content, offset: u64, length: u64) -> io::Result<i64> {
    let mut buffer = [0; MAX_HASHED_BYTES as usize];
    let room = buffer.len().min(usize::try_from(length).unwrap_or(usize::MAX));
    content.seek(SeekFrom::Start(offset))?;
    let mut filled = 0;
    while filled < room {
        match content.read(&mut buffer[filled..room]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(xxh3_64(&buffer[..filled]).cast_signed())
}
