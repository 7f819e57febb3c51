//! Gives the system hints about which parts of logs to keep in its page cache.

#[cfg(target_os = "linux")]
use std::fs::File;

use super::candidate::{Container, LogCandidate};

/// Size in bytes from which a log gets hints. To open a smaller one twice costs as much as to wait for
/// the disk.
const MIN_HINTED_BYTES: u64 = 64 << 10;

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
    /// The system begins to read the beginning of the log, which is examined soon.
    ReadHeadAhead,
    /// The system begins to read the log, which is decoded next.
    ReadAhead {
        /// Position in the content from which it is decoded.
        #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux gets hints"))]
        start: u64,
    },
    /// The log was read, and its pages make room. If the system chooses the pages, finding room for
    /// the next logs costs more.
    Forget,
}

/// Gives a hint about a log. Does nothing if the log is small or assembled from other files.
pub(crate) fn give_cache_hint(file: &LogCandidate, hint: CacheHint) {
    let is_file = match file.container {
        Container::Plain | Container::Zstd | Container::Gzip => true,
        Container::Assembled(_) => false,
    };
    if is_file && file.size >= MIN_HINTED_BYTES {
        advise_system(file, hint);
    }
}

/// Passes a hint to the system. Whoever reads the log notices errors.
#[cfg(target_os = "linux")]
fn advise_system(file: &LogCandidate, hint: CacheHint) {
    use std::num::NonZeroU64;

    use rustix::fs::{Advice, fadvise};

    let head = NonZeroU64::new(HEAD_BYTES);
    let ahead = NonZeroU64::new(MAX_AHEAD_BYTES);
    let (start, length, advice) = match hint {
        CacheHint::ReadHeadAhead => (0, head, Advice::WillNeed),
        CacheHint::ReadAhead { start } if file.container == Container::Plain => {
            (start, ahead, Advice::WillNeed)
        }
        // A compressed log is unpacked from its beginning.
        CacheHint::ReadAhead { .. } => (0, ahead, Advice::WillNeed),
        CacheHint::Forget => (0, None, Advice::DontNeed),
    };
    if let Ok(opened) = File::open(&file.path) {
        let _ = fadvise(&opened, start, length, advice);
    }
}

/// Does nothing: other systems have no such call, or another one.
#[cfg(not(target_os = "linux"))]
fn advise_system(_: &LogCandidate, _: CacheHint) {}
