//! Files of a segment that are read in pieces, each compared with its checksum once.
//!
//! A segment has a file `checksums.bin`, which holds four bytes for every chunk of 4 KB of
//! `events.parquet`, then the same for `skip.idx`:
//!
//! ```text
//! [u32 little-endian; chunks of events.parquet][u32 little-endian; chunks of skip.idx]
//! ```
//!
//! A search reads a few hundred bytes here and there, so a checksum of a whole file or of a whole
//! section would cost far more than the search. A chunk is compared when this process first reads a
//! byte of it; later reads of it cost nothing more.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::files::open_for_reading;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::chunk_checksum::{CHUNK_BYTES, chunk_checksum};
use super::files;
use crate::error::StoreError;

/// Bytes of a file that are read at a time to compare them. They fit a near cache.
const VERIFIED_AT_ONCE: usize = 64 * CHUNK_BYTES;

/// A file whose chunks are compared with their checksums when they are first read.
#[derive(Debug)]
pub(crate) struct CheckedFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Empty for an object of a lake, whose chunks cannot be checked.
    checksums: Vec<u32>,
    /// One bit for each chunk, set once the chunk is verified.
    verified: Vec<AtomicU64>,
}

impl CheckedFile {
    /// Opens the file at `path`, which must have `length` bytes. `checksums` has one entry for each
    /// chunk, or none at all if the chunks cannot be checked.
    pub(crate) fn open(path: &Path, length: u64, checksums: Vec<u32>) -> Result<Self, StoreError> {
        let file = open_for_reading(path).map_err(|error| open_error(path, error))?;
        let found = file.metadata().map_err(StoreError::io(path))?.len();
        if found != length {
            return Err(StoreError::damaged(path, format!("{found} bytes instead of {length}")));
        }
        let chunks = length.div_ceil(CHUNK_BYTES as u64);
        if !checksums.is_empty() && checksums.len() as u64 != chunks {
            let reason = format!("{} checksums for {chunks} chunks", checksums.len());
            return Err(StoreError::damaged(path, reason));
        }
        let words = checksums.len().div_ceil(64);
        let verified = (0..words).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { path: path.to_owned(), file, length, checksums, verified })
    }

    /// Returns the path at which the file was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Fills `bytes` with the content from `offset` on.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the file is too short or a chunk differs from its checksum,
    /// [`StoreError::Io`] if it cannot be read.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), StoreError> {
        let end = offset.saturating_add(bytes.len() as u64);
        if end > self.length {
            let reason =
                format!("bytes {offset} to {end} were expected, but it has {} bytes", self.length);
            return Err(StoreError::damaged(&self.path, reason));
        }
        if self.is_verified(offset, end) {
            return files::read_at(&self.file, bytes, offset).map_err(StoreError::io(&self.path));
        }

        let chunks_start = offset - offset % CHUNK_BYTES as u64;
        let chunks_end = end.next_multiple_of(CHUNK_BYTES as u64).min(self.length);
        let mut chunks = vec![0; usize::try_from(chunks_end - chunks_start).unwrap_or(usize::MAX)];
        files::read_at(&self.file, &mut chunks, chunks_start)
            .map_err(StoreError::io(&self.path))?;
        let first = usize::try_from(chunks_start / CHUNK_BYTES as u64).unwrap_or(usize::MAX);
        self.verify_chunks(&chunks, first)?;

        let start = usize::try_from(offset - chunks_start).unwrap_or(usize::MAX);
        bytes.copy_from_slice(&chunks[start..start + bytes.len()]);
        Ok(())
    }

    /// Compares the chunks that have bytes of `part` with their checksums.
    ///
    /// # Errors
    /// As for [`Self::read_at`].
    pub(crate) fn verify_bytes(&self, part: Range<u64>) -> Result<(), StoreError> {
        let chunk = CHUNK_BYTES as u64;
        let end = part.end.next_multiple_of(chunk).min(self.length);
        let mut at = part.start - part.start % chunk;
        let mut chunks = vec![0; VERIFIED_AT_ONCE];
        while at < end {
            let count = usize::try_from(end - at).unwrap_or(usize::MAX).min(VERIFIED_AT_ONCE);
            let piece = &mut chunks[..count];
            files::read_at(&self.file, piece, at).map_err(StoreError::io(&self.path))?;
            self.verify_chunks(piece, usize::try_from(at / chunk).unwrap_or(usize::MAX))?;
            at += count as u64;
        }
        Ok(())
    }

    /// True if all chunks with bytes from `offset` to `end` are verified, or cannot be.
    fn is_verified(&self, offset: u64, end: u64) -> bool {
        if self.checksums.is_empty() {
            return true;
        }
        let chunk = CHUNK_BYTES as u64;
        (offset / chunk..end.div_ceil(chunk)).all(|at| {
            let word = usize::try_from(at / 64).unwrap_or(usize::MAX);
            self.verified[word].load(Ordering::Relaxed) & (1 << (at % 64)) != 0
        })
    }

    /// Compares the chunks from number `first` on with their checksums and marks them as verified.
    fn verify_chunks(&self, chunks: &[u8], first: usize) -> Result<(), StoreError> {
        for (chunk, at) in chunks.chunks(CHUNK_BYTES).zip(first..) {
            if self.checksums.get(at) != Some(&chunk_checksum(chunk)) {
                let reason =
                    format!("the bytes from {} on differ from their checksum", at * CHUNK_BYTES);
                return Err(StoreError::damaged(&self.path, reason));
            }
            self.verified[at / 64].fetch_or(1 << (at % 64), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Converts an error of opening a file of a segment: a missing file is damage, other errors stay
/// I/O errors.
pub(crate) fn open_error(path: &Path, error: io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::NotFound {
        return StoreError::damaged(path, "the file is missing");
    }
    StoreError::io(path)(error)
}

/// Gives the Parquet reader access to a [`CheckedFile`].
#[derive(Clone)]
pub(crate) struct ParquetInput(pub(crate) Arc<CheckedFile>);

impl Length for ParquetInput {
    fn len(&self) -> u64 {
        self.0.length
    }
}

impl ChunkReader for ParquetInput {
    type T = io::BufReader<CheckedFileReader>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(CheckedFileReader { file: Arc::clone(&self.0), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = vec![0; length];
        self.0.read_at(&mut bytes, start).map_err(|error| ParquetError::External(error.into()))?;
        Ok(bytes.into())
    }
}

/// Reads a file from a position on. Each reader has its own position, because threads share the
/// file.
pub(crate) struct CheckedFileReader {
    file: Arc<CheckedFile>,
    at: u64,
}

impl Read for CheckedFileReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let rest = self.file.length.saturating_sub(self.at);
        let length = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len());
        self.file.read_at(&mut bytes[..length], self.at).map_err(io::Error::other)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn checksums(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks(CHUNK_BYTES).map(chunk_checksum).collect()
    }

    fn file_with(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("tempfile");
        std::fs::write(file.path(), bytes).expect("writes");
        file
    }

    proptest! {
        #[test]
        fn a_read_is_right_or_says_that_it_is_not(
            length in 1..5 * CHUNK_BYTES, flipped in any::<prop::sample::Index>(),
            reads in proptest::collection::vec((any::<prop::sample::Index>(), 0..9000usize), 1..20),
        ) {
            let written: Vec<u8> = (0..length).map(|at| (at * 7 % 253) as u8).collect();
            let mut stored = written.clone();
            let flipped = flipped.index(length);
            stored[flipped] ^= 4;
            let file = file_with(&stored);
            let checked = CheckedFile::open(file.path(), length as u64, checksums(&written));
            let checked = checked.expect("opens");
            for (start, wanted) in reads {
                let start = start.index(length);
                let wanted = wanted.min(length - start);
                let mut bytes = vec![0; wanted];
                let chunks = start / CHUNK_BYTES..(start + wanted).div_ceil(CHUNK_BYTES);
                match checked.read_at(&mut bytes, start as u64) {
                    Ok(()) => prop_assert_eq!(&bytes, &written[start..start + wanted]),
                    Err(error) => {
                        let is_damage = matches!(error, StoreError::Damaged { .. });
                        prop_assert!(is_damage, "{}", error);
                        prop_assert!(chunks.contains(&(flipped / CHUNK_BYTES)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_part_is_verified_to_the_ends_of_its_chunks() {
        let chunk = CHUNK_BYTES as u64;
        let written: Vec<u8> = (0..200 * CHUNK_BYTES + 9).map(|at| (at * 7 % 253) as u8).collect();
        let length = written.len() as u64;
        for damaged in [0, 99 * CHUNK_BYTES + 5, written.len() - 1] {
            let mut stored = written.clone();
            stored[damaged] ^= 1;
            let file = file_with(&stored);
            let checked = CheckedFile::open(file.path(), length, checksums(&written));
            let checked = checked.expect("opens");
            let parts = [
                0..1,
                0..length,
                chunk - 1..99 * chunk,
                99 * chunk..99 * chunk + 1,
                100 * chunk..length - 9,
                100 * chunk..length,
            ];
            for part in parts {
                let chunks = part.start / chunk..part.end.div_ceil(chunk);
                let has_damage = chunks.contains(&(damaged as u64 / chunk));
                assert_eq!(checked.verify_bytes(part.clone()).is_err(), has_damage, "{part:?}");
            }
        }
    }

    #[test]
    fn length_and_checksums_must_fit_the_file() {
        let file = file_with(&[1; 5000]);
        assert!(CheckedFile::open(file.path(), 5001, Vec::new()).is_err());
        assert!(CheckedFile::open(file.path(), 5000, vec![0]).is_err());
        let unchecked = CheckedFile::open(file.path(), 5000, Vec::new()).expect("opens");
        assert!(unchecked.read_at(&mut [0; 10], 4990).is_ok());
        assert!(unchecked.read_at(&mut [0; 10], 4991).is_err());
        assert!(unchecked.read_at(&mut [0; 10], u64::MAX).is_err());
    }
}
