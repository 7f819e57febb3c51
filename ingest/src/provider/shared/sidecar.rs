//! Reads small files next to a log, which hold facts that the log does not record.

use std::path::Path;
use std::time::UNIX_EPOCH;

use serde_json::Value as Json;

use crate::source::bounded_file::read_bounded_file;

/// Returns the JSON in a file of at most `max_bytes`. `None` in the cases of [`read_bounded_file`],
/// and if the content is not JSON.
pub(crate) fn read_json(path: &Path, max_bytes: u64) -> Option<Json> {
    let bytes = read_bounded_file(path, max_bytes)?;
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)).ok()
}

/// Returns a text without the byte order mark that some editors put before it.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns when a file was last changed, in microseconds since 1970.
pub(crate) fn file_time(path: &Path) -> Option<i64> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    i64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
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
    fn only_small_json_is_read() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("a.json");
        assert_eq!(read_json(&path, 9), None);
        std::fs::write(&path, r#"{"a":[1]}"#).expect("writes");
        assert_eq!(read_json(&path, 9).expect("JSON")["a"][0], 1);
        assert_eq!(read_json(&path, 8), None);
        std::fs::write(&path, "\u{feff}[1]").expect("writes");
        assert_eq!(read_json(&path, 9).expect("JSON")[0], 1);
    }
}
