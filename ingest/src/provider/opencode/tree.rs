//! Assembles sessions of OpenCode before 1.2 into the bytes of an export document
//! (docs/formats.md#opencode). Those versions kept a tree of files
//! (`storage/session/<project>/ses_*.json`, `message/<session>/msg_*.json`,
//! `part/<message>/prt_*.json`). The same tree gives the same bytes, so positions in them stay
//! valid. Later versions copy the tree into their database (`database.rs`) and leave it in place.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::document_text::{document, message, object};
use crate::source::assembly::{AssembledSession, Assembly};

/// Sessions in such a tree; the path of one is that of its own file.
pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "OpenCode tree",
    shares_file: false,
    is_source: is_tree_session,
    is_part,
    sessions: |session_file| {
        let (bytes, updated_us) = tree_state(session_file)?;
        Ok(vec![AssembledSession { path: session_file.to_owned(), bytes, updated_us }])
    },
    assemble: assemble_tree,
};

/// True if a folder of the tree holds parts of sessions, which are not logs of their own.
fn is_part(path: &Path) -> bool {
    let parts = ["message", "part", "session_diff", "session_share", "todo"];
    path.file_name().is_some_and(|name| parts.iter().any(|part| name == *part)) && in_storage(path)
}

/// True if the file is a session's own file in such a tree.
fn is_tree_session(path: &Path) -> bool {
    let sessions = path.parent().and_then(Path::parent);
    path.extension().is_some_and(|extension| extension == "json")
        && sessions.and_then(Path::file_name).is_some_and(|name| name == "session")
        && sessions.is_some_and(in_storage)
}

/// True if the parent folder's name begins with `storage`: copies of `storage` keep that beginning.
fn in_storage(folder: &Path) -> bool {
    let around = folder.parent().and_then(Path::file_name);
    around.is_some_and(|name| name.to_string_lossy().starts_with("storage"))
}

/// Assembles the export document of a session in the tree.
fn assemble_tree(session_file: &Path) -> io::Result<Vec<u8>> {
    let info = read(session_file)?;
    let tree = Tree::of(session_file)?;
    let mut loose: HashMap<String, Vec<String>> = HashMap::new();
    for path in &tree.loose {
        let part = read(path)?;
        let message = fields(&part).message_id.unwrap_or_default();
        loose.entry(message).or_default().push(object(&part, &[]));
    }
    let mut messages = Vec::new();
    for (path, parts) in tree.messages {
        let info = read(&path)?;
        let fields = fields(&info);
        let parts = parts.iter().map(|path| Ok(object(&read(path)?, &[])));
        let mut parts = parts.collect::<io::Result<Vec<_>>>()?;
        parts.extend(fields.id.and_then(|id| loose.remove(&id)).unwrap_or_default());
        let created = fields.time.and_then(|time| time.created).unwrap_or(f64::MAX);
        messages.push((created, message(&object(&info, &[]), &parts)));
    }
    // Files are listed by name, and the stable sort keeps that order for equal times.
    messages.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let messages: Vec<_> = messages.into_iter().map(|(_, message)| message).collect();
    Ok(document(&object(&info, &[]), &messages))
}

/// Returns the size in bytes of all files of a session, and their latest modification in
/// microseconds.
fn tree_state(session_file: &Path) -> io::Result<(u64, i64)> {
    let tree = Tree::of(session_file)?;
    let parts = tree.messages.iter().flat_map(|(message, parts)| {
        std::iter::once(message.as_path()).chain(parts.iter().map(PathBuf::as_path))
    });
    let loose = tree.loose.iter().map(PathBuf::as_path);
    let mut state = (0, 0);
    for path in std::iter::once(session_file).chain(parts).chain(loose) {
        let metadata = match fs::metadata(path) {
            // Undone messages vanish at any time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = i64::try_from(modified.as_micros()).unwrap_or(i64::MAX);
        state = (state.0 + metadata.len(), modified.max(state.1));
    }
    Ok(state)
}

/// The files of a session, sorted by name.
struct Tree {
    /// The file of each message, with the files of its parts.
    messages: Vec<(PathBuf, Vec<PathBuf>)>,
    /// Parts of any session, from versions that did not yet give each message a folder of parts.
    loose: Vec<PathBuf>,
}

impl Tree {
    fn of(session_file: &Path) -> io::Result<Self> {
        let nowhere = || io::Error::new(io::ErrorKind::NotFound, "no session of a storage tree");
        let storage = session_file.ancestors().nth(3).ok_or_else(nowhere)?;
        let folder = folder(&storage.join("message"), session_file);
        let files = folder.map_or_else(|| Ok(Vec::new()), |folder| json_files(&folder))?;
        let mut messages = Vec::with_capacity(files.len());
        let mut has_folders = files.is_empty();
        for file in files {
            let parts = match self::folder(&storage.join("part"), &file) {
                Some(folder) => json_files(&folder)?,
                None => Vec::new(),
            };
            has_folders |= !parts.is_empty();
            messages.push((file, parts));
        }
        let loose = if has_folders { Vec::new() } else { json_files(&storage.join("part"))? };
        Ok(Self { messages, loose })
    }
}

/// Returns the folder below `parent` for the records that belong to the record in `file`. The
/// folder has the name of the file or, if the file was renamed, the id of its record.
fn folder(parent: &Path, file: &Path) -> Option<PathBuf> {
    let by_name = parent.join(file.file_stem()?);
    if by_name.is_dir() {
        return Some(by_name);
    }
    let id = fields(&read(file).ok()?).id.filter(|id| !id.is_empty() && !id.contains(['/', '\\']));
    id.map(|id| parent.join(id)).filter(|folder| folder.is_dir())
}

/// Returns the JSON files in a folder, sorted by name; none if the folder does not exist.
fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = list(folder)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    Ok(files)
}

/// Returns the entries of a folder, sorted by name; none if the folder does not exist.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// The fields that show where a record belongs.
#[derive(Default, Deserialize)]
struct Fields {
    id: Option<String>,
    #[serde(rename = "messageID")]
    message_id: Option<String>,
    time: Option<Time>,
}

#[derive(Deserialize)]
struct Time {
    created: Option<f64>,
}

fn fields(json: &str) -> Fields {
    serde_json::from_str(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    #[test]
    fn a_tree_becomes_a_document_in_the_order_of_times() {
        let dir = tempfile::tempdir().expect("tempdir");
        let write = |path: &str, text: &str| {
            let path = dir.path().join("storage").join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("creates");
            fs::write(&path, text).expect("writes");
            path
        };
        let session = write("session/p/ses_1.json", r#"{"id":"ses_1"}"#);
        write("message/ses_1/msg_1.json", r#"{"id":"msg_1","time":{"created":2}}"#);
        write("message/ses_1/msg_2.json", r#"{"id":"msg_2","time":{"created":1}}"#);
        write("message/ses_1/msg_3.json", r#"{"id":"msg_3","time":{"cre"#);
        write("part/msg_1/prt_2.json", "{}");
        write("part/msg_1/prt_1.json", r#"{"type":"text"}"#);
        write("part/msg_9/prt_3.json", "{}");
        let document = assemble_tree(&session).expect("assembles");
        for line in document.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            assert!(serde_json::from_slice::<Json>(line).is_err(), "no line is JSON by itself");
        }
        let json: Json = serde_json::from_slice(&document).expect("json");
        let messages = json["messages"].as_array().expect("list");
        let ids: Vec<_> = messages.iter().map(|message| message["info"]["id"].as_str()).collect();
        assert_eq!(ids, [Some("msg_2"), Some("msg_1"), None]);
        assert_eq!(messages[1]["parts"], serde_json::json!([{"type": "text"}, {}]));
        assert!(messages[2]["info"]["unreadable"].is_string());
        let (bytes, modified) = tree_state(&session).expect("state");
        assert!(bytes > 100 && modified > 0);
        assert!(is_tree_session(&session) && !is_tree_session(dir.path()));
    }

    #[test]
    fn parts_without_folders_are_found_by_their_message() {
        let dir = tempfile::tempdir().expect("tempdir");
        let storage = dir.path().join("storage");
        for folder in ["session/p", "message/s1", "part"] {
            fs::create_dir_all(storage.join(folder)).expect("creates");
        }
        let session = storage.join("session/p/ses_s1.json");
        fs::write(&session, r#"{"id":"s1"}"#).expect("writes");
        fs::write(storage.join("message/s1/msg_0001.json"), r#"{"id":"m1"}"#).expect("writes");
        fs::write(storage.join("part/prt_1.json"), r#"{"messageID":"m1"}"#).expect("writes");
        fs::write(storage.join("part/prt_2.json"), r#"{"messageID":"m2"}"#).expect("writes");
        let document = assemble_tree(&session).expect("assembles");
        let json: Json = serde_json::from_slice(&document).expect("json");
        let parts = serde_json::json!([{"messageID": "m1"}]);
        assert_eq!(json["messages"][0]["parts"], parts);
    }
}
