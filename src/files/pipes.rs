//! Opens paths that users name and that may be pipes, without waiting for the program at the other
//! end: a pipe without one would block the process for good.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time to wait for the text of a pipe, such as that of a password manager that asks first.
const MAX_PIPE_WAIT: Duration = Duration::from_secs(60);

/// Maximum time to wait for a program that writes to a pipe: it may open the pipe a little later.
const MAX_WRITER_WAIT: Duration = Duration::from_secs(1);

/// Interval at which a pipe without data is read again.
const PIPE_CHECK_PERIOD: Duration = Duration::from_millis(20);

/// Opens a file to append to, and creates it readable by the owner only if it does not exist. A
/// terminal or another character device, and a pipe that another program reads, are also opened.
/// Writing to them does not wait: what a full pipe does not take is an error of the write.
///
/// # Errors
///
/// If the path cannot be opened for writing, or leads to anything else.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    open_at_once(&mut options)?;

    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        // The only meaning of this error for a pipe or a socket.
        Some(code) if is_without_other_end(code) => {
            io::Error::other("it is a named pipe that no program reads, or a socket")
        }
        Some(_) | None => error,
    })?;
    let metadata = file.metadata()?;
    if metadata.is_file() || is_stream(&metadata) {
        Ok(file)
    } else {
        Err(io::Error::other("it is neither a regular file nor a terminal"))
    }
}

/// Opens a regular file, or the output of another program: `<(pass show sessions)` is a pipe. The
/// reader waits for the text of a pipe for a limited time.
///
/// # Errors
///
/// If the path cannot be opened for reading.
pub(crate) fn open_to_read(path: &Path) -> io::Result<impl Read> {
    let mut options = OpenOptions::new();
    options.read(true);
    open_at_once(&mut options)?;
    let file = options.open(path)?;
    let is_pipe = is_stream(&file.metadata()?);
    Ok(PipeReader { file, is_pipe, has_read: false, start: Instant::now() })
}

/// A reader of an open file that waits for a limited time.
struct PipeReader {
    file: File,
    is_pipe: bool,
    /// True if something was read.
    has_read: bool,
    start: Instant,
}

impl Read for PipeReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(bytes) {
                Ok(0) if self.is_pipe && !self.has_read && !bytes.is_empty() => {
                    if self.start.elapsed() >= MAX_WRITER_WAIT {
                        let message = "it is not a regular file, and no program writes to it";
                        return Err(io::Error::other(message));
                    }
                    std::thread::sleep(PIPE_CHECK_PERIOD);
                }
                Ok(count) => {
                    self.has_read |= count > 0;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.start.elapsed() >= MAX_PIPE_WAIT {
                        let seconds = MAX_PIPE_WAIT.as_secs();
                        let message = format!("its text did not arrive within {seconds} seconds");
                        return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                    }
                    std::thread::sleep(PIPE_CHECK_PERIOD);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Makes opening and using a pipe return at once instead of waiting.
#[cfg(unix)]
fn open_at_once(options: &mut OpenOptions) -> io::Result<()> {
    let bits = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, bits);
    Ok(())
}

/// Does nothing: other systems have no pipes among their files.
#[cfg(not(unix))]
fn open_at_once(_options: &mut OpenOptions) -> io::Result<()> {
    Ok(())
}

/// True if the code is that of opening a pipe or a socket that has no other end.
#[cfg(unix)]
fn is_without_other_end(code: i32) -> bool {
    code == rustix::io::Errno::NXIO.raw_os_error()
}

#[cfg(not(unix))]
fn is_without_other_end(_code: i32) -> bool {
    false
}

/// True if an open file is a pipe or a character device.
#[cfg(unix)]
fn is_stream(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    kind.is_fifo() || kind.is_char_device()
}

#[cfg(not(unix))]
fn is_stream(_metadata: &Metadata) -> bool {
    false
}
