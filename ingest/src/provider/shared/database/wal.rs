//! Checks the write-ahead log (`-wal`) next to a database. SQLite ignores bytes in it that are not
//! valid frames, and every frame after them, without an error: the rows in them are missing.
//!
//! ```text
//! header, 32 bytes  magic, version, page size, checkpoint, salt 1, salt 2, checksum (2 words)
//! frame, 24 bytes   page, database size, salt 1, salt 2, checksum (2 words); then the page
//! ```
//!
//! All numbers are big-endian words of 4 bytes. The checksum of a frame continues that of the frame
//! before it. After a checkpoint, the log is written again from its beginning with new salts. The
//! frames of before are still at its end, which is normal.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The magic number of a log. Its last bit is set if checksums are over big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// Maximum number of checkpoints for which frames written before them are recognised: each adds 1
/// to salt 1. A frame of another log is hardly ever this close.
const MAX_CHECKPOINTS: u32 = 1 << 16;

/// Time in which a running agent completes a frame that it is writing.
const FRAME_WRITE_TIME: Duration = Duration::from_millis(20);

/// Returns what is wrong with a write-ahead log. `None` if all of it is read, or if there is none.
///
/// A frame that is incomplete may be one that is written just now, so the log is then checked
/// again.
pub(super) fn find_log_defect(log: &Path) -> Option<String> {
    let defect = check_log(log).unwrap_or_else(|error| Some(error.to_string()))?;
    std::thread::sleep(FRAME_WRITE_TIME);
    let again = check_log(log).unwrap_or_else(|error| Some(error.to_string()))?;
    (again == defect).then_some(defect)
}

/// Checks a log once. See [`find_log_defect`].
fn check_log(log: &Path) -> io::Result<Option<String>> {
    let file = match File::open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(None);
    }

    let mut file = BufReader::new(file);
    let mut header = [0; HEADER_BYTES];
    if read_available(&mut file, &mut header)? < HEADER_BYTES {
        return Ok(Some(format!("it is cut after {length} bytes, inside its header")));
    }
    let Some(mut frames) = LogFrames::parse_header(&header) else {
        return Ok(Some(format!("its {length} bytes do not begin with the header of such a log")));
    };

    let mut offset = HEADER_BYTES as u64;
    let mut frame = vec![0; FRAME_HEADER_BYTES + frames.page_bytes];
    loop {
        let read = read_available(&mut file, &mut frame)?;
        let bytes = frame.get(..read).unwrap_or_default();
        match frames.check_frame(bytes) {
            FrameState::Valid => offset += read as u64,
            FrameState::Old | FrameState::End => return Ok(None),
            FrameState::Cut => {
                return Ok(Some(format!("it is cut at byte {length}, inside a frame")));
            }
            FrameState::Invalid => {
                return Ok(Some(format!(
                    "from byte {offset} of {length} on it holds no valid frames"
                )));
            }
        }
    }
}

/// The state of a frame.
enum FrameState {
    Valid,
    /// The frame was written before the last checkpoint, like all frames after it.
    Old,
    /// There is no further frame.
    End,
    /// The log ends inside the frame.
    Cut,
    Invalid,
}

/// What is known of a log while its frames are read.
struct LogFrames {
    page_bytes: usize,
    salt: (u32, u32),
    /// The checksum up to the last frame.
    sum: (u32, u32),
    is_big_endian: bool,
}

impl LogFrames {
    /// Parses the header of a log. `None` if it is not valid.
    fn parse_header(header: &[u8]) -> Option<Self> {
        let magic = word(header, 0)?;
        let page_bytes = word(header, 8)?;
        if magic & !1 != MAGIC
            || !page_bytes.is_power_of_two()
            || !(512..=65_536).contains(&page_bytes)
        {
            return None;
        }
        let is_big_endian = magic & 1 == 1;
        let sum = add_to_checksum((0, 0), header.get(..24)?, is_big_endian);
        if (word(header, 24)?, word(header, 28)?) != sum {
            return None;
        }
        let salt = (word(header, 16)?, word(header, 20)?);
        Some(Self { page_bytes: usize::try_from(page_bytes).ok()?, salt, sum, is_big_endian })
    }

    /// Checks the next frame. `bytes` is shorter than a frame at the end of the log.
    fn check_frame(&mut self, bytes: &[u8]) -> FrameState {
        if bytes.is_empty() {
            return FrameState::End;
        }
        let (Some(salt_1), Some(salt_2)) = (word(bytes, 8), word(bytes, 12)) else {
            return FrameState::Cut;
        };
        let checkpoints = self.salt.0.wrapping_sub(salt_1);
        if (1..=MAX_CHECKPOINTS).contains(&checkpoints) {
            return FrameState::Old;
        }
        if (salt_1, salt_2) != self.salt {
            return FrameState::Invalid;
        }
        let (Some(start), Some(page)) = (bytes.get(..8), bytes.get(FRAME_HEADER_BYTES..)) else {
            return FrameState::Cut;
        };
        if page.len() < self.page_bytes {
            return FrameState::Cut;
        }

        let sum = add_to_checksum(self.sum, start, self.is_big_endian);
        let sum = add_to_checksum(sum, page, self.is_big_endian);
        if (word(bytes, 16), word(bytes, 20)) != (Some(sum.0), Some(sum.1)) {
            return FrameState::Invalid;
        }
        self.sum = sum;
        FrameState::Valid
    }
}

/// Continues a checksum over bytes, whose number is a multiple of 8.
fn add_to_checksum(sum: (u32, u32), bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    let (mut first, mut second) = sum;
    for pair in bytes.as_chunks::<8>().0 {
        let [a, b, c, d, e, f, g, h] = *pair;
        let (left, right) = if is_big_endian {
            (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
        } else {
            (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
        };
        first = first.wrapping_add(left).wrapping_add(second);
        second = second.wrapping_add(right).wrapping_add(first);
    }
    (first, second)
}

/// Returns the big-endian word at `at`. `None` if the bytes end before it.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read.
fn read_available(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// A log with the frames of some rows, which are written again from the beginning after a
    /// checkpoint if `is_restarted`.
    fn log_bytes(is_restarted: bool) -> Vec<u8> {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a.db");
        let connection = Connection::open(&path).expect("opens");
        connection.pragma_update(None, "journal_mode", "wal").expect("wal");
        connection.execute_batch("CREATE TABLE t (a TEXT)").expect("creates");
        let insert = |rows: usize| {
            for _ in 0..rows {
                connection
                    .execute("INSERT INTO t VALUES (?1)", ["x".repeat(3000)])
                    .expect("inserts");
            }
        };
        insert(9);
        if is_restarted {
            let sql = "PRAGMA wal_checkpoint(RESTART)";
            connection.query_row(sql, [], |_| Ok(())).expect("checkpoint");
            insert(2);
        }
        std::fs::read(dir.path().join("a.db-wal")).expect("reads")
    }

    fn defect(bytes: &[u8]) -> Option<String> {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a.db-wal");
        std::fs::write(&path, bytes).expect("writes");
        find_log_defect(&path)
    }

    #[test]
    fn a_log_of_sqlite_has_no_defect_and_old_frames_are_none() {
        assert_eq!(defect(&log_bytes(false)), None);
        let restarted = log_bytes(true);
        assert_eq!(defect(&restarted), None);
        // The second row is followed by the frames of before.
        assert!(restarted.len() > 5 * 4096);
        assert_eq!(defect(b""), None);
        assert_eq!(find_log_defect(Path::new("/nowhere/a.db-wal")), None);
    }

    #[test]
    fn bytes_that_are_ignored_are_reported() {
        let log = log_bytes(false);
        let frame = FRAME_HEADER_BYTES + 4096;
        let changed = |at: usize| {
            let mut bytes = log.clone();
            bytes[at] ^= 0x40;
            bytes
        };
        let cut = &log[..log.len() - 100];
        let foreign = [&log[..HEADER_BYTES + frame], &log_bytes(false)[HEADER_BYTES..]].concat();
        for (bytes, what) in [
            (b"garbage".to_vec(), "cut after 7 bytes"),
            (vec![b'x'; 9000], "do not begin with the header"),
            (vec![0; 9000], "do not begin with the header"),
            (changed(17), "do not begin with the header"),
            (changed(HEADER_BYTES + 9), "from byte 32 of"),
            (changed(HEADER_BYTES + frame + 1000), "from byte 4152 of"),
            (cut.to_vec(), "inside a frame"),
            ([&log[..], b"more"].concat(), "inside a frame"),
            ([&log[..], &[b'x'; 99]].concat(), "holds no valid frames"),
            (foreign, "from byte 4152 of"),
        ] {
            let defect = defect(&bytes).expect(what);
            assert!(defect.contains(what), "{defect}");
        }
    }
}
