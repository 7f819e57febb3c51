//! Says to the system which parts of logs its page cache should have.

#[cfg(target_os = "linux")]
use std::fs::File;

use super::candidate::{Container, LogCandidate};

/// Size in bytes from which hints are given. To open a smaller log once more costs as much as to wait
/// for the disk.
const MIN_BYTES: u64 = 64 << 10;

/// Number of bytes at the beginning of a log that are read ahead. The system by itself would read
/// more of each, up to all of it, and with a long history forget it before the log is decoded.
#[cfg(target_os = "linux")]
const HEAD_BYTES: u64 = 96 << 10;

/// Maximum number of bytes of a log that are read before it is decoded. While these are decoded, the
/// system notices that the log is read in order, and reads further ahead itself.
#[cfg(target_os = "linux")]
const MAX_AHEAD_BYTES: u64 = 4 << 20;

/// A hint about a log.
#[derive(Clone, Copy)]
pub(crate) enum CacheHint {
    /// Its beginning is needed soon. The system begins to read it, and the caller goes on.
    ReadHeadAhead,
    /// The same from this byte on: the log is decoded next.
    ReadAhead { start: u64 },
    /// It was read. To find memory for the next logs costs more if the system chooses what it forgets.
    Forget,
}

/// Gives a hint about a log. Does nothing if the log is small or assembled from other files.
pub(crate) fn give_cache_hint(file: &LogCandidate, hint: CacheHint) {
    let is_file = match file.container {
        Container::Plain | Container::Zstd | Container::Gzip => true,
        Container::Assembled(_) => false,
    };
    if is_file && file.size >= MIN_BYTES {
        advise(file, hint);
    }
}

/// Errors are left to the reader of the log.
#[cfg(target_os = "linux")]
fn advise(file: &LogCandidate, hint: CacheHint) {
    use std::num::NonZeroU64;

    use rustix::fs::{Advice, fadvise};

    let (start, length, advice) = match hint {
        CacheHint::ReadHeadAhead => (0, NonZeroU64::new(HEAD_BYTES), Advice::WillNeed),
        CacheHint::ReadAhead { start } => {
            (start, NonZeroU64::new(MAX_AHEAD_BYTES), Advice::WillNeed)
        }
        CacheHint::Forget => (0, None, Advice::DontNeed),
    };
    if let Ok(opened) = File::open(&file.path) {
        let _ = fadvise(&opened, start, length, advice);
    }
}

/// Other systems have no such call, or another one.
#[cfg(not(target_os = "linux"))]
fn advise(_: &LogCandidate, _: CacheHint) {}
