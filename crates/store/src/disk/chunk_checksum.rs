//! The checksum of a chunk, the unit in which the large files of a segment are checked.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes covered by one checksum: a page of the page cache, so that reading a whole chunk for a
/// few bytes of it causes no further I/O.
pub(crate) const CHUNK_BYTES: usize = 4 << 10;

/// Returns the checksum of one chunk: the lower half of its xxh3.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
pub(crate) fn chunk_checksum(chunk: &[u8]) -> u32 {
    xxh3_64(chunk) as u32
}
