//! Reads whole files that must be small: those next to logs, and the configuration of git.

use std::path::Path;

/// Returns the content of a file. Returns `None` if it cannot be read, is not a regular file, or
/// has more than `max_bytes`, because it is then not the expected file.
pub(crate) fn read_bounded_file(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > max_bytes {
        return None;
    }
    std::fs::read(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_files_are_read() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a.json");
        assert_eq!(read_bounded_file(&path, 9), None);
        std::fs::write(&path, r#"{"a":[1]}"#).expect("writes");
        assert_eq!(read_bounded_file(&path, 9).expect("read"), br#"{"a":[1]}"#);
        assert_eq!(read_bounded_file(&path, 8), None);
        assert_eq!(read_bounded_file(dir.path(), u64::MAX), None);
    }
}
