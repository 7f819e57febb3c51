//! Opens, creates and replaces the files of a store.
//!
//! Every file is for its owner only, is never reached through a symbolic link, and holds either its
//! old or its new content after a crash. No other module of the store opens a file by itself.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::Path;

use base::files::{open_for_reading, private_dir_builder};
use tempfile::NamedTempFile;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::chunk_checksum::{CHUNK_BYTES, chunk_checksum};
use crate::error::StoreError;

/// Separates the name of a file from the random end of its temporary copy:
/// `.manifest.json.tmp-x1y2z3`.
const TEMPORARY_INFIX: &str = ".tmp-";

/// Bytes of a file that are read at a time to compute its checksum.
const READ_BYTES: usize = 1 << 18;

/// Creates a directory and its parents, readable by the owner only.
pub(crate) fn create_private_dirs(dir: &Path) -> Result<(), StoreError> {
    private_dir_builder(true).create(dir).map_err(StoreError::io(dir))
}

/// Creates one directory, readable by the owner only. Its parent must exist: a store that is moved
/// away during an ingest must not be created again at its old place.
pub(crate) fn create_private_dir(dir: &Path) -> Result<(), StoreError> {
    private_dir_builder(false).create(dir).map_err(StoreError::io(dir))
}

/// Returns the content of a regular file.
///
/// # Errors
/// Fails as [`open_for_reading`] does, or if the file cannot be read.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_for_reading(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the content of a regular file; `None` if there is no file.
///
/// # Errors
/// Fails as [`read_file`] does.
pub(crate) fn read_if_exists(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match read_file(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path)(error)),
    }
}

/// Bytes that are collected before they are written. The Parquet writer hands over a few KB at a
/// time.
const BUFFER_BYTES: usize = 32 * CHUNK_BYTES;

/// A new file, with the checksums of the bytes written to it. The last bytes reach the file in
/// [`Self::finish`].
pub(crate) struct NewFile {
    file: File,
    length: u64,
    hash: Xxh3Default,
    /// The bytes that are not written yet, from the beginning of a chunk on.
    buffer: Vec<u8>,
    /// True after a write that failed, when a part of the buffer may be in the file.
    has_failed: bool,
    chunk_checksums: Vec<u32>,
}

/// A finished file: its length and its checksums.
pub(crate) struct FileSums {
    pub(crate) length: u64,
    /// xxh3 of the whole file, in hexadecimal.
    pub(crate) xxh3: String,
    /// One for each [`CHUNK_BYTES`] of the file.
    pub(crate) chunks: Vec<u32>,
}

impl NewFile {
    /// Takes a file that was just created and is empty.
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            length: 0,
            hash: Xxh3Default::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            has_failed: false,
            chunk_checksums: Vec::new(),
        }
    }

    /// Writes the last bytes and syncs the file. Returns its length and checksums.
    pub(crate) fn finish(mut self) -> io::Result<FileSums> {
        self.write_buffer()?;
        self.file.sync_all()?;
        let xxh3 = format_hash(self.hash.digest());
        Ok(FileSums { length: self.length, xxh3, chunks: self.chunk_checksums })
    }

    /// Writes the collected bytes, and adds them to the checksums.
    fn write_buffer(&mut self) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.has_failed = true;
        self.file.write_all(&self.buffer)?;
        self.has_failed = false;
        self.length += self.buffer.len() as u64;
        self.hash.update(&self.buffer);
        self.chunk_checksums.extend(self.buffer.chunks(CHUNK_BYTES).map(chunk_checksum));
        self.buffer.clear();
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        let count = bytes.len().min(BUFFER_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == BUFFER_BYTES {
            self.write_buffer()?;
        }
        Ok(count)
    }

    /// Writes nothing: a part of a chunk has no checksum.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fills `bytes` with the content of the file from `offset` on. Does not use the file's own
/// position on Unix.
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset);
    #[cfg(windows)]
    {
        let mut filled = 0;
        while filled < bytes.len() {
            let at = offset + filled as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[filled..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }
}

/// Replaces the file at `path` by `content` in one step. The content is on disk when this returns.
/// A link at `path` is replaced, not followed.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    write_and_rename(dir, path, content).map_err(StoreError::io(path))?;
    sync_dir(dir)
}

fn write_and_rename(dir: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = new_temporary_copy(dir, path)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Creates an empty file in `dir` that is to replace the file at `path`. Only its owner can read it, and
/// it is removed if it is not persisted.
pub(crate) fn new_temporary_copy(dir: &Path, path: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(&temporary_prefix(path)).tempfile_in(dir)
}

/// Removes temporary copies of the file at `path` that killed runs left behind in [`replace_file`]. The
/// caller holds the lock under which that file is replaced, so no other process is replacing it.
pub(crate) fn remove_temporary_copies(path: &Path) {
    let prefix = temporary_prefix(path);
    let Some(entries) = path.parent().and_then(|dir| fs::read_dir(dir).ok()) else { return };
    for entry in entries.flatten() {
        let is_copy = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
        if is_copy && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // If it cannot be removed now, the next run tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the beginning of the names of temporary copies of the file at `path`.
fn temporary_prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}{TEMPORARY_INFIX}")
}

/// True if a file of this name is a temporary copy of one of `names`.
pub(crate) fn is_temporary_copy(name: &OsStr, names: &[&str]) -> bool {
    let Some(name) = name.to_str().and_then(|name| name.strip_prefix('.')) else { return false };
    let original = name.split_once(TEMPORARY_INFIX).map(|(original, _)| original);
    original.is_some_and(|original| names.contains(&original))
}

/// Makes the entries of a directory durable, if the platform supports it.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::io(dir))?;
    }
    Ok(())
}

/// Returns the length of a file and its xxh3 in hexadecimal.
pub(crate) fn checksum_file(path: &Path) -> Result<(u64, String), StoreError> {
    let mut file = open_for_reading(path).map_err(StoreError::io(path))?;
    let mut hash = Xxh3Default::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut length = 0;
    loop {
        let read = file.read(&mut buffer).map_err(StoreError::io(path))?;
        if read == 0 {
            return Ok((length, format_hash(hash.digest())));
        }
        length += read as u64;
        hash.update(&buffer[..read]);
    }
}

/// Returns the xxh3 of `bytes` in hexadecimal, as manifests hold it.
pub(crate) fn checksum_bytes(bytes: &[u8]) -> String {
    format_hash(xxh3_64(bytes))
}

fn format_hash(hash: u64) -> String {
    format!("{hash:016x}")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::super::held_folder::HeldFolder;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_no_file_of_a_store() {
        let dir = tempfile::tempdir().expect("tempdir");
        let target = dir.path().join("target");
        fs::write(&target, "theirs").expect("writes");
        let link = dir.path().join("labels.json");
        symlink(&target, &link).expect("links");
        let folder = HeldFolder::open(dir.path()).expect("opens");
        assert!(read_file(&link).is_err() && folder.create_file("labels.json").is_err());
        assert_eq!(fs::read(&target).expect("reads"), b"theirs");
    }

    #[test]
    fn a_replaced_link_leaves_its_target_alone() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (target, path) = (dir.path().join("target"), dir.path().join("manifest.json"));
        fs::write(&target, "theirs").expect("writes");
        symlink(&target, &path).expect("links");
        replace_file(&path, b"ours").expect("replaces");
        assert_eq!(fs::read(&target).expect("reads"), b"theirs");
        assert_eq!(read_file(&path).expect("reads"), b"ours");
    }

    #[test]
    fn only_temporary_copies_of_the_file_are_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("manifest.json");
        let kept =
            ["manifest.json", "labels.json", ".labels.json.tmp-a", ".manifest.json", "x.tmp-a"];
        let removed = [".manifest.json.tmp-a", ".manifest.json.tmp-Zz9"];
        for name in kept.iter().chain(&removed) {
            fs::write(dir.path().join(name), "").expect("writes");
        }
        remove_temporary_copies(&path);
        for name in kept {
            assert!(dir.path().join(name).exists(), "{name}");
        }
        for name in removed {
            assert!(!dir.path().join(name).exists(), "{name}");
            assert!(is_temporary_copy(OsStr::new(name), &["manifest.json"]), "{name}");
        }
        assert!(!is_temporary_copy(OsStr::new(".labels.json.tmp-a"), &["manifest.json"]));
    }

    #[test]
    fn chunks_are_the_same_however_a_file_is_written() {
        let dir = tempfile::tempdir().expect("tempdir");
        let length = 2 * BUFFER_BYTES + CHUNK_BYTES + 17;
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        let folder = HeldFolder::open(dir.path()).expect("opens");
        let whole: Vec<u32> = bytes.chunks(CHUNK_BYTES).map(chunk_checksum).collect();
        let chunk = CHUNK_BYTES;
        for piece in [1, chunk - 1, chunk, chunk + 1, BUFFER_BYTES, BUFFER_BYTES + 1, length] {
            let path = dir.path().join(piece.to_string());
            let mut file = NewFile::new(folder.create_file(&piece.to_string()).expect("creates"));
            bytes.chunks(piece).for_each(|part| file.write_all(part).expect("writes"));
            let sums = file.finish().expect("writes");
            assert_eq!(sums.chunks, whole, "{piece}");
            assert_eq!((sums.length, sums.xxh3.clone()), checksum_file(&path).expect("reads"));
            assert_eq!(sums.xxh3, checksum_bytes(&bytes));
        }
    }
    #[test]
    fn nothing_is_written_after_a_write_that_failed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("file");
        fs::write(&path, "").expect("writes");
        let mut file = NewFile::new(File::open(&path).expect("opens for reading"));
        assert!(file.write_all(&[1; BUFFER_BYTES]).is_err());
        assert!(file.write(&[1]).is_err());
        assert!(file.finish().is_err());
        let mut short = NewFile::new(File::open(&path).expect("opens for reading"));
        short.write_all(b"a few bytes").expect("keeps them");
        assert!(short.finish().is_err());
    }
}
