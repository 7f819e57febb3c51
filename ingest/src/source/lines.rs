//! Splits a file into lines with their byte offsets, in memory bounded by the longest line kept.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::line_source::LineSource;

/// Number of bytes in the first read of a file, and by which the buffer grows: they fit the nearer
/// caches, and most logs are small.
const CHUNK_BYTES: usize = 128 << 10;

/// Number of bytes in the first read if only the beginning of a file is needed.
pub(crate) const SMALL_CHUNK_BYTES: usize = 32 << 10;

/// Maximum length in bytes of a line that is decoded. A longer line is reported and skipped without
/// being held in memory, so that ingest stays under 400 MB of memory, whatever the size of a line.
pub const MAX_LINE_BYTES: usize = 32 << 20;

/// A buffer of more bytes than this is a giant. Only one reader of the process holds a giant at a
/// time.
const GIANT_THRESHOLD_BYTES: usize = 8 << 20;

/// Held by the reader whose buffer is a giant.
static GIANT_BUFFER: Mutex<()> = Mutex::new(());

/// The bytes between two newlines, with their position in the file.
#[derive(Debug, PartialEq, Eq)]
pub enum LogLine<'a> {
    /// A line that ends with a newline.
    Whole {
        /// Position of `bytes` in the file, in bytes.
        offset: u64,
        /// The line without its line ending and a byte order mark.
        bytes: &'a [u8],
    },
    /// The end of the file without a newline. The decoder decides whether it is complete.
    Tail {
        /// Position of `bytes` in the file, in bytes.
        offset: u64,
        /// The line without a carriage return at its end and a byte order mark.
        bytes: &'a [u8],
    },
    /// A line of more than [`MAX_LINE_BYTES`] bytes.
    Oversized {
        /// Position of the line in the file, in bytes.
        offset: u64,
        /// Length of the line in bytes, without its newline.
        length: u64,
        /// The beginning of the line.
        head: &'a [u8],
        /// Whether a newline ends the line; false at the end of the file.
        has_newline: bool,
    },
}

/// Reads lines from a file that is positioned at `offset`.
pub struct LogLines<R> {
    file: R,
    buffer: Vec<u8>,
    /// The part of `buffer` not yet handed out.
    start: usize,
    end: usize,
    /// Length of the part of `buffer[start..end]` known to contain no newline.
    searched: usize,
    /// File offset of `buffer[start]`.
    offset: u64,
    /// Whether the end of the file was reached.
    is_at_end: bool,
    /// Maximum length of a line in bytes.
    max_line: usize,
    /// Size of a read in bytes.
    chunk: usize,
    /// Held while the buffer is a giant.
    giant: Option<MutexGuard<'static, ()>>,
}

impl<R: LineSource> LogLines<R> {
    /// Creates a reader of lines. `offset` is the current position of `file`.
    pub fn new(file: R, offset: u64) -> Self {
        Self::with_bounds(file, offset, MAX_LINE_BYTES, CHUNK_BYTES)
    }

    /// Creates a reader like [`Self::new`] of a file that has about `size` more bytes, which takes no
    /// more memory than they need. `size` is a hint: a file may grow or be compressed.
    pub(crate) fn of_size(file: R, offset: u64, size: u64) -> Self {
        Self::with_bounds(file, offset, MAX_LINE_BYTES, fitting_chunk(size, CHUNK_BYTES))
    }

    /// Creates a reader like [`Self::new`] with another maximum length of a line and another size
    /// of reads, both in bytes.
    pub fn with_bounds(file: R, offset: u64, max_line: usize, chunk: usize) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            searched: 0,
            offset,
            is_at_end: false,
            max_line,
            chunk,
            giant: None,
        }
    }

    /// Returns the file that is read. A caller that moves its position must restore it.
    pub(crate) fn file_mut(&mut self) -> &mut R {
        &mut self.file
    }

    /// Returns the file offset of the first byte not yet handed out.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next line, or `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read. A call after an error continues with the bytes
    /// that were not handed out.
    pub fn next_line(&mut self) -> io::Result<Option<LogLine<'_>>> {
        loop {
            let pending = &self.buffer[self.start..self.end];
            if let Some(found) = memchr::memchr(b'\n', &pending[self.searched..]) {
                let length = self.searched + found;
                if length > self.max_line {
                    // The length alone decides, so that the same lines are too long however the
                    // reads were split.
                    return self.skip_oversized().map(Some);
                }
                let (offset, bytes) = self.take_bytes(length, 1);
                return Ok(Some(LogLine::Whole { offset, bytes }));
            }

            self.searched = pending.len();
            if pending.len() > self.max_line {
                return self.skip_oversized().map(Some);
            }
            if self.is_at_end {
                if pending.is_empty() {
                    return Ok(None);
                }
                let length = pending.len();
                let (offset, bytes) = self.take_bytes(length, 0);
                return Ok(Some(LogLine::Tail { offset, bytes }));
            }
            self.fill_buffer()?;
        }
    }

    /// Hands out the next `length` bytes and skips the `ending` bytes after them. Returns the
    /// trimmed bytes with their offset in the file.
    fn take_bytes(&mut self, length: usize, ending: usize) -> (u64, &[u8]) {
        let start = self.start;
        let offset = self.offset;
        self.advance(length + ending);
        trim_line(&self.buffer[start..start + length], offset)
    }

    /// Marks the next bytes as handed out.
    fn advance(&mut self, by: usize) {
        self.start += by;
        self.offset += by as u64;
        self.searched = 0;
    }

    /// Reads more bytes, after moving the pending ones to the front of the buffer.
    fn fill_buffer(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let chunk = self.chunk;
        if self.giant.is_some() && self.end < chunk {
            self.buffer.truncate(2 * chunk);
            self.buffer.shrink_to_fit();
            self.giant = None;
        }
        if self.buffer.len() - self.end < chunk / 2 {
            let wanted = (self.buffer.len() * 2).clamp(chunk, self.max_line + 2 * chunk);
            let wanted = wanted.max(self.end + chunk);
            if wanted > GIANT_THRESHOLD_BYTES && self.giant.is_none() {
                self.giant = Some(GIANT_BUFFER.lock().unwrap_or_else(PoisonError::into_inner));
            }
            self.buffer.resize(wanted, 0);
        }

        let read = loop {
            match self.file.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.is_at_end = read == 0;
        self.end += read;
        Ok(())
    }

    /// Skips the rest of a line that is too long, and keeps its beginning. A hole in it, which a log
    /// may have after a crash of the machine, is not read.
    fn skip_oversized(&mut self) -> io::Result<LogLine<'_>> {
        const MAX_HEAD_BYTES: usize = 4096;
        let offset = self.offset;
        let head_length = MAX_HEAD_BYTES.min(self.end - self.start);
        let mut head = self.buffer[self.start..self.start + head_length].to_vec();

        let mut ended = false;
        loop {
            let pending = &self.buffer[self.start..self.end];
            if let Some(found) = memchr::memchr(b'\n', pending) {
                self.advance(found + 1);
                ended = true;
                break;
            }
            let is_in_zeros = pending.ends_with(&[0]);
            let length = pending.len();
            self.advance(length);
            if self.is_at_end {
                break;
            }
            if is_in_zeros {
                self.offset += self.file.skip_hole()?;
            }
            self.fill_buffer()?;
        }

        let length = self.offset - offset - u64::from(ended);
        // Shrinks the buffer again: one such line must not pin its memory.
        head.extend_from_slice(&self.buffer[self.start..self.end]);
        self.buffer = head;
        self.start = head_length;
        self.end = self.buffer.len();
        Ok(LogLine::Oversized {
            offset,
            length,
            head: &self.buffer[..head_length],
            has_newline: ended,
        })
    }
}

/// Returns the size of reads for a file of about `size` bytes. Half of a buffer must remain free
/// after the last read, or it is grown for the read that finds the end.
pub(crate) fn fitting_chunk(size: u64, most: usize) -> usize {
    usize::try_from(size.saturating_add(1).saturating_mul(2)).unwrap_or(most).clamp(1024, most)
}

/// Removes a carriage return at the end and, at the start of the file, a byte order mark. Returns
/// the offset of the remaining bytes, and the bytes.
fn trim_line(line: &[u8], offset: u64) -> (u64, &[u8]) {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.strip_prefix(MARK) {
        Some(rest) if offset == 0 => (MARK.len() as u64, rest),
        _ => (offset, line),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek as _, SeekFrom, Write as _};

    use super::*;
    use proptest::prelude::*;

    /// Gives at most `step` bytes a call.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(into.len()).min(self.0.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    impl LineSource for Drip<'_> {}

    fn split(data: &[u8], step: usize, max_line: usize) -> Vec<(u64, String)> {
        collect_lines(LogLines::with_bounds(Drip(data, step), 0, max_line, CHUNK_BYTES))
    }

    fn collect_lines(mut lines: LogLines<impl LineSource>) -> Vec<(u64, String)> {
        let mut out = Vec::new();
        while let Some(line) = lines.next_line().expect("no errors") {
            out.push(match line {
                LogLine::Whole { offset, bytes } => (offset, String::from_utf8_lossy(bytes).into()),
                LogLine::Tail { offset, bytes } => {
                    (offset, format!("tail {}", String::from_utf8_lossy(bytes)))
                }
                LogLine::Oversized { offset, length, has_newline: ended, .. } => {
                    (offset, format!("oversized {length} {ended}"))
                }
            });
        }
        out
    }

    #[test]
    fn endings_marks_and_tails() {
        let lines = split(b"\xef\xbb\xbfa\r\nb\n\nc", 3, 100);
        let want = [(3, "a"), (6, "b"), (8, ""), (9, "tail c")];
        assert_eq!(lines, want.map(|(offset, text)| (offset, text.to_owned())));
    }

    #[test]
    fn a_line_over_the_bound_costs_only_itself() {
        let mut data = b"first\n".to_vec();
        data.extend(vec![b'x'; 3 * CHUNK_BYTES]);
        data.extend(b"\nlast\n");
        let lines = split(&data, CHUNK_BYTES, CHUNK_BYTES);
        assert_eq!(lines[1], (6, format!("oversized {} true", 3 * CHUNK_BYTES)));
        assert_eq!(lines[2], (6 + 3 * CHUNK_BYTES as u64 + 1, "last".to_owned()));
    }

    #[test]
    fn the_bound_is_the_same_however_the_bytes_come() {
        let data = b"123\n1234\n12345\n123456";
        for step in 1..data.len() {
            let lines = split(data, step, 4);
            let want =
                [(0, "123"), (4, "1234"), (9, "oversized 5 true"), (15, "oversized 6 false")];
            assert_eq!(lines, want.map(|(offset, text)| (offset, text.to_owned())), "{step}");
        }
    }

    /// Counts the bytes that are read from a file. If `sees_holes` is false, the system does not tell
    /// holes from data.
    struct CountedFile {
        file: File,
        sees_holes: bool,
        bytes_read: u64,
    }

    impl Read for &mut CountedFile {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let read = self.file.read(into)?;
            self.bytes_read += read as u64;
            Ok(read)
        }
    }

    impl LineSource for &mut CountedFile {
        fn skip_hole(&mut self) -> io::Result<u64> {
            if self.sees_holes { self.file.skip_hole() } else { Ok(0) }
        }
    }

    /// Creates a file with these pieces of text, each at its position, and holes between them.
    fn sparse_file(pieces: &[(u64, &str)], length: u64) -> File {
        let mut file = tempfile::tempfile().expect("creates");
        for (position, text) in pieces {
            file.seek(SeekFrom::Start(*position)).expect("seeks");
            file.write_all(text.as_bytes()).expect("writes");
        }
        file.set_len(length).expect("grows");
        file.rewind().expect("rewinds");
        file
    }

    /// Returns the lines of a sparse file, and the number of bytes read for them.
    fn lines_of(
        pieces: &[(u64, &str)],
        length: u64,
        sees_holes: bool,
    ) -> (Vec<(u64, String)>, u64) {
        let file = sparse_file(pieces, length);
        let mut file = CountedFile { file, sees_holes, bytes_read: 0 };
        let max_line = 2 * CHUNK_BYTES;
        let lines = collect_lines(LogLines::with_bounds(&mut file, 0, max_line, CHUNK_BYTES));
        (lines, file.bytes_read)
    }

    #[test]
    fn holes_give_the_lines_that_reading_them_gives() {
        const MB: u64 = 1 << 20;
        let cases: [(&[(u64, &str)], u64); 6] = [
            (&[], 9 * MB),
            (&[(0, "a\n")], 9 * MB),
            (&[(0, "a\nb")], 9 * MB + 1),
            (&[(0, "a\nb"), (5 * MB, "c\nd\n")], 5 * MB + 4),
            (&[(3 * MB + 7, "\na\n"), (7 * MB, "b"), (8 * MB, "\nc")], 12 * MB),
            (&[(100, "a\n"), (MB / 8, "b\n")], MB / 4),
        ];
        for (pieces, length) in cases {
            let (want, _) = lines_of(pieces, length, false);
            assert_eq!(lines_of(pieces, length, true).0, want, "{pieces:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_hole_is_not_read() {
        let length = 1 << 40;
        for pieces in [&[(0, "a\nb"), (length - 3, "\nc\n")][..], &[(0, "a\nb")], &[]] {
            let (lines, bytes_read) = lines_of(pieces, length, true);
            let oversized = lines.iter().filter(|(_, text)| text.starts_with("oversized"));
            assert_eq!(oversized.count(), 1, "{lines:?}");
            assert!(bytes_read < 4 << 20, "{bytes_read} bytes read");
        }
    }

    proptest! {
        #[test]
        fn equals_a_plain_split(data in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), Just(b'\r')], 0..200), step in 1usize..50) {
            let mut want = Vec::new();
            let mut offset = 0;
            for part in data.split_inclusive(|b| *b == b'\n') {
                let whole = part.ends_with(b"\n");
                let body = part.strip_suffix(b"\n").unwrap_or(part);
                let body = String::from_utf8_lossy(body.strip_suffix(b"\r").unwrap_or(body)).into_owned();
                want.push((offset, if whole { body } else { format!("tail {body}") }));
                offset += part.len() as u64;
            }
            prop_assert_eq!(split(&data, step, 1000), want);
        }
    }
}
