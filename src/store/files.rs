//! Private directories and files, written so that a crash leaves the old or the new content.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3Default;

use super::StoreError;

/// Creates a directory and its parents, readable by the owner only.
pub(super) fn create_private_dir(dir: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(StoreError::io(dir))
}

/// Creates or truncates a file, readable by the owner only.
pub(super) fn create_private_file(path: &Path) -> Result<File, StoreError> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(StoreError::io(path))
}

/// A new file and the hash of what was written to it.
pub(super) struct NewFile {
    file: File,
    length: u64,
    hash: Xxh3Default,
}

impl NewFile {
    /// Creates or truncates it, readable by the owner only.
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { file: create_private_file(path)?, length: 0, hash: Xxh3Default::new() })
    }

    /// Length and hash, as [`checksum`] tells them, once all is on disk.
    pub(super) fn finish(self) -> io::Result<(u64, String)> {
        self.file.sync_all()?;
        Ok((self.length, hexadecimal(&self.hash)))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Fills `bytes` from the file at `offset`; the file's own position is not used.
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}

/// Replaces `path` by `content` in one step, on disk when this returns.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        // tempfile creates with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(StoreError::io(path))?;
    sync_dir(dir)
}

/// Makes the entries of a directory durable, where the platform can.
pub(super) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(StoreError::io(dir))?;
    }
    Ok(())
}

/// Length and xxh3 hash of a file, in hexadecimal.
pub(super) fn checksum(path: &Path) -> Result<(u64, String), StoreError> {
    let mut file = File::open(path).map_err(StoreError::io(path))?;
    let mut hash = Xxh3Default::new();
    let mut buffer = vec![0; 1 << 18];
    let mut length = 0;
    loop {
        let read = io::Read::read(&mut file, &mut buffer).map_err(StoreError::io(path))?;
        if read == 0 {
            return Ok((length, hexadecimal(&hash)));
        }
        length += read as u64;
        hash.update(&buffer[..read]);
    }
}

fn hexadecimal(hash: &Xxh3Default) -> String {
    format!("{:016x}", hash.digest())
}
