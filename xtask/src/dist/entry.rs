//! The files of an archive. All have the same time, so that equal input gives equal archives.

/// Seconds since 1970 of the first moment that a zip file can record, 1980-01-01.
pub(crate) const FIXED_TIME: u64 = 315_532_800;

/// Permissions of a program.
pub(crate) const PROGRAM: u32 = 0o755;

/// Permissions of any other file.
pub(crate) const PLAIN: u32 = 0o644;

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchiveFile {
    /// The path in the archive, with slashes.
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

impl ArchiveFile {
    pub(crate) fn program(path: impl Into<String>, bytes: &[u8]) -> Self {
        Self { path: path.into(), mode: PROGRAM, bytes: bytes.to_vec() }
    }

    pub(crate) fn plain(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: PLAIN, bytes: bytes.into() }
    }
}
