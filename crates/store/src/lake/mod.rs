//! Sessions as objects of a lake: encodes them, decodes foreign ones, and writes these into segments.

pub(super) mod continued;
pub(super) mod copies;
pub(super) mod decode;
pub(super) mod encode;
pub(super) mod history;
pub(super) mod import;
pub(super) mod imported_from;
pub(super) mod joined;
pub(super) mod keys;
pub(super) mod log_object;
pub(super) mod session_object;

use std::path::Path;

use super::disk::checked_file::CheckedFile;
use super::error::StoreError;
use super::index::SkipIndex;

/// Opens a skip index of a lake in a folder, which must have `bytes` bytes.
///
/// # Errors
/// Fails if the file cannot be read, has another size, or is not a skip index of this version.
pub fn open_lake_index(path: &Path, bytes: u64) -> Result<SkipIndex, StoreError> {
    SkipIndex::open(CheckedFile::open(path, bytes, Vec::new())?)
}
