//! Reads small files next to a log, which hold facts that the log does not record.

use std::path::Path;

use serde_json::Value as Json;

/// Returns the content of a file. Returns `None` if it cannot be read, is not a regular file, or
/// has more than `max_bytes`, because it is then not the expected file.
pub(crate) fn read_file(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > max_bytes {
        return None;
    }
    std::fs::read(path).ok()
}

/// Returns the JSON in a file of at most `max_bytes`. `None` in the cases of [`read_file`], and if
/// the content is not JSON.
pub(crate) fn read_json(path: &Path, max_bytes: u64) -> Option<Json> {
    serde_json::from_slice(&read_file(path, max_bytes)?).ok()
}

/// Returns whether a file is the metadata that the Entire CLI writes next to its copy of any
/// agent's log: `<id>.metadata.json` next to `<id>.jsonl`, or `metadata.json` next to `full.jsonl`.
/// `has` returns whether the folder has a log of a given name.
pub(crate) fn is_entire_metadata(name: &str, has: &dyn Fn(&str) -> bool) -> bool {
    if name == "metadata.json" {
        return has("full.jsonl");
    }
    let Some(log) = name.strip_suffix(".metadata.json") else { return false };
    ["jsonl", "json"].iter().any(|extension| has(&format!("{log}.{extension}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_files_are_read() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a.json");
        assert_eq!(read_json(&path, 9), None);
        std::fs::write(&path, r#"{"a":[1]}"#).expect("writes");
        assert_eq!(read_json(&path, 9).expect("JSON")["a"][0], 1);
        assert_eq!(read_file(&path, 8), None);
        assert_eq!(read_file(dir.path(), u64::MAX), None);
    }
}
