//! Reads small files next to a log, which hold facts that the log does not record.

use std::path::Path;

use serde_json::Value as Json;

/// Returns the content of a file. Returns `None` if there is no such file, or if it has more than
/// `most` bytes, because it is then not the expected file.
pub(crate) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    let fits = metadata.is_file() && metadata.len() <= most;
    fits.then(|| std::fs::read(path).ok()).flatten()
}

/// Returns the JSON in a file of at most `most` bytes.
pub(crate) fn json(path: &Path, most: u64) -> Option<Json> {
    serde_json::from_slice(&read(path, most)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_small_file_tells_nothing() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a.json");
        assert_eq!(json(&path, 9), None);
        std::fs::write(&path, r#"{"a":[1]}"#).expect("writes");
        assert_eq!(json(&path, 9).expect("JSON")["a"][0], 1);
        assert_eq!(read(&path, 8), None);
        assert_eq!(read(dir.path(), u64::MAX), None);
    }
}
