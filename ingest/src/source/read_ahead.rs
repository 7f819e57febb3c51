//! Asks the system to read logs before their turn comes, so that no worker waits for the disk.

#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;

use super::candidate::{Container, LogCandidate};

/// Size in bytes from which a log is read ahead. Opening a smaller one twice costs as much as the
/// wait for the disk.
const MIN_BYTES: u64 = 64 << 10;

/// Maximum number of bytes of a log that are read ahead. While these are decoded, the system
/// notices that the log is read in order, and reads further ahead itself.
#[cfg(target_os = "linux")]
const MAX_BYTES: u64 = 8 << 20;

/// Begins to read a log from byte `start` on into the cache of the system, without waiting. Does
/// nothing if the log is small or assembled from other files.
pub(crate) fn read_ahead(file: &LogCandidate, start: u64) {
    let is_file = match file.container {
        Container::Plain | Container::Zstd | Container::Gzip => true,
        Container::Assembled(_) => false,
    };
    if is_file && file.size.saturating_sub(start) >= MIN_BYTES {
        advise(file, start);
    }
}

/// Errors are left to the reader of the log.
#[cfg(target_os = "linux")]
fn advise(file: &LogCandidate, start: u64) {
    use rustix::fs::{Advice, fadvise};

    if let Ok(opened) = File::open(&file.path) {
        let length = NonZeroU64::new(MAX_BYTES);
        let _ = fadvise(&opened, start, length, Advice::WillNeed);
    }
}

/// Other systems have no such call, or another one.
#[cfg(not(target_os = "linux"))]
fn advise(_: &LogCandidate, _: u64) {}
