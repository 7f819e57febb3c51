//! Skips the holes of sparse files, which take no space on the disk but as long to read as data.

use std::fs::File;
use std::io::{self, Cursor, Read, Take};

/// Content that is read line by line.
pub trait LineSource: Read {
    /// Moves the read position to the end of the hole that it is in, and returns the number of bytes
    /// skipped. A hole has zeros only. Returns 0 outside holes, and if the system does not tell holes
    /// from data: then reading the zeros gives the same lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the read position cannot be moved.
    fn skip_hole(&mut self) -> io::Result<u64> {
        Ok(0)
    }
}

impl LineSource for File {
    #[cfg(target_os = "linux")]
    fn skip_hole(&mut self) -> io::Result<u64> {
        use std::io::Seek as _;

        use rustix::fs::{SeekFrom, seek};
        use rustix::io::Errno;

        // A pipe has neither positions nor holes.
        let Ok(start) = self.stream_position() else { return Ok(0) };
        // Taken first: what is appended meanwhile is not in the hole.
        let length = self.metadata()?.len();
        let end = match seek(&*self, SeekFrom::Data(start)) {
            Ok(end) => end,
            // The file ends with the hole.
            Err(Errno::NXIO) => self.seek(io::SeekFrom::Start(length.max(start)))?,
            Err(_) => return Ok(0),
        };
        Ok(end - start)
    }
}

impl LineSource for &[u8] {}

impl LineSource for Cursor<Vec<u8>> {}

impl<R: Read> LineSource for Take<R> {}

impl<S: LineSource + ?Sized> LineSource for Box<S> {
    fn skip_hole(&mut self) -> io::Result<u64> {
        (**self).skip_hole()
    }
}
