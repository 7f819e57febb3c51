//! Gives the system hints about which parts of logs to keep in its page cache.

#[cfg(target_os = "linux")]
use std::fs::File;
use std::iter;

use super::candidate::{Container, LogCandidate};
#[cfg(target_os = "linux")]
use super::lines::SMALL_CHUNK_BYTES;

/// Size in bytes from which a log gets hints. To open a smaller one twice costs as much as to wait for
/// the disk.
const MIN_HINTED_BYTES: u64 = 64 << 10;

/// Number of bytes at the beginning of a log that are read ahead: nearly all logs are recognized by
/// these. The system by itself would read more of each, up to all of it, and with a long history forget
/// it before the log is decoded.
#[cfg(target_os = "linux")]
const HEAD_BYTES: u64 = SMALL_CHUNK_BYTES as u64;

/// The same number for a log compressed by zstd: its decoder reads 128 KB at a time.
#[cfg(target_os = "linux")]
const ZSTD_HEAD_BYTES: u64 = 128 << 10;

/// Maximum number of bytes of a log that are read before it is decoded. While these are decoded, the
/// system notices that the log is read in order, and reads further ahead itself.
#[cfg(target_os = "linux")]
const MAX_AHEAD_BYTES: u64 = 4 << 20;

/// Number of files whose beginnings the system reads before they are examined: a disk takes longer to
/// answer than one file takes to be examined.
const FILES_AHEAD: usize = 8;

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

/// Returns the files one after the other, to be examined, and asks the system to read ahead the
/// beginnings of the next ones.
pub(crate) fn with_heads_ahead(files: Vec<LogCandidate>) -> impl Iterator<Item = LogCandidate> {
    for file in files.iter().take(FILES_AHEAD) {
        give_cache_hint(file, CacheHint::ReadHeadAhead);
    }
    let mut files = files.into_iter();
    iter::from_fn(move || {
        let file = files.next()?;
        if let Some(next) = files.as_slice().get(FILES_AHEAD - 1) {
            give_cache_hint(next, CacheHint::ReadHeadAhead);
        }
        Some(file)
    })
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

/// Passes a hint to the system. Errors surface when the log is read.
#[cfg(target_os = "linux")]
fn advise_system(file: &LogCandidate, hint: CacheHint) {
    use std::num::NonZeroU64;

    use rustix::fs::{Advice, fadvise};

    let is_zstd = file.container == Container::Zstd;
    let head = NonZeroU64::new(if is_zstd { ZSTD_HEAD_BYTES } else { HEAD_BYTES });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_their_order_whether_they_can_be_read_or_not() {
        let dir = tempfile::tempdir().expect("tempdir");
        let files: Vec<LogCandidate> = (0..2 * FILES_AHEAD + 1)
            .map(|number| {
                let path = dir.path().join(format!("{number}.jsonl"));
                std::fs::write(&path, vec![b'x'; 1 << 16]).expect("writes");
                let file = LogCandidate::from_path(path).expect("a file");
                if number % 3 == 0 {
                    std::fs::remove_file(&file.path).expect("removes");
                }
                file
            })
            .collect();
        assert!(with_heads_ahead(files.clone()).eq(files));
    }
}
