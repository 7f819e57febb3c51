//! Assembles sessions of OpenCode before 1.2 into the bytes of an export document
//! (docs/formats.md#opencode). Those versions kept a tree of files:
//!
//! ```text
//! storage/session/<project>/ses_*.json
//! storage/message/<session>/msg_*.json
//! storage/part/<message>/prt_*.json
//! ```
//!
//! The same tree gives the same bytes, so positions in them stay valid. Later versions copy the
//! tree into their database (`database.rs`) and leave it in place.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::record::{RecordPlace, record_with_ids};
use crate::provider::shared::database::document_text::{document_bytes, message_with_parts};
use crate::provider::shared::database::size_limit::{
    Piece, SizeLimit, limited_size, oversized_record,
};
use crate::source::assembly::{AssembledSession, Assembly};

/// Maximum number of bytes that are read of a file to find out where its record belongs.
const MAX_SCANNED_BYTES: u64 = 1 << 30;

/// Assembles the sessions of such a tree. The path of a session is that of its own file.
pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "OpenCode tree",
    shares_file: false,
    source_suffix: ".json",
    is_source: is_tree_session,
    is_part,
    sessions: |session_file| {
        let (bytes, updated_us) = tree_state(session_file)?;
        Ok(vec![AssembledSession { path: session_file.to_owned(), bytes, updated_us }].into())
    },
    assemble: assemble_tree,
    ..Assembly::NONE
};

/// Names of the folders of a tree that hold parts of sessions.
const PART_FOLDERS: &[&str] = &["message", "part", "session_diff", "session_share", "todo"];

/// Returns whether a folder of the tree holds parts of sessions, which are not logs of their own.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    PART_FOLDERS.contains(&name) && is_in_storage(path)
}

/// Returns whether the file is a session's own file in such a tree.
fn is_tree_session(path: &Path) -> bool {
    let sessions = path.parent().and_then(Path::parent);
    path.extension().is_some_and(|extension| extension == "json")
        && sessions.and_then(Path::file_name).is_some_and(|name| name == "session")
        && sessions.is_some_and(is_in_storage)
}

/// Returns whether the parent folder is the folder of a tree.
fn is_in_storage(folder: &Path) -> bool {
    folder.parent().is_some_and(is_storage)
}

/// Returns whether the name of a folder begins with `storage`, as the names of copies of `storage`
/// do, too.
fn is_storage(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("storage"))
}

/// Assembles the export document of a session in the tree.
fn assemble_tree(session_file: &Path) -> io::Result<Vec<u8>> {
    let info = read_whole_record(session_file)?;
    let mut tree = SessionTree::read_files(session_file)?;
    tree.assign_loose_parts();
    let limit = SizeLimit::of_session(tree.collect_pieces()?, info.len() as u64);

    let mut messages = Vec::with_capacity(tree.messages.len());
    for (path, part_paths) in &tree.messages {
        let info = read_record(path, &limit)?;
        let created = parse_fields(&info).created().unwrap_or(f64::MAX);
        let mut parts = Vec::with_capacity(part_paths.len());
        for path in part_paths {
            parts.push(read_record(path, &limit)?);
        }
        messages.push((created, message_with_parts(&info, &parts)));
    }

    // Files are listed by name, and the stable sort keeps that order for equal times.
    messages.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let messages: Vec<_> = messages.into_iter().map(|(_, message)| message).collect();
    Ok(document_bytes(&info, &messages))
}

/// Returns the record in a file as JSON or, if it is left out, the record that replaces it.
fn read_record(path: &Path, limit: &SizeLimit) -> io::Result<String> {
    let piece = describe_piece(path)?;
    if limit.includes(&piece) {
        return read_whole_record(path);
    }
    let fields = read_fields(path);
    let created = fields.created();
    let record = oversized_record(piece.bytes, created.as_ref().map(|time| time as &dyn Display));
    let id = fields.id.as_deref().map(|id| ("id", id));
    let name = name_in_tree(path);
    Ok(record_with_ids(record.as_bytes(), RecordPlace::File(&name), id.as_slice()))
}

/// Returns the record in a file as JSON.
fn read_whole_record(path: &Path) -> io::Result<String> {
    let name = name_in_tree(path);
    Ok(record_with_ids(&fs::read(path)?, RecordPlace::File(&name), &[]))
}

/// Returns the path of a file from the folder of its tree.
fn name_in_tree(path: &Path) -> String {
    let storage = path.ancestors().skip(1).find(|folder| is_storage(folder));
    let name = storage.and_then(|storage| path.strip_prefix(storage).ok()).unwrap_or(path);
    let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// Returns the size of the record in a file. Records of equal size are ordered by file name.
fn describe_piece(path: &Path) -> io::Result<Piece> {
    let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Piece { bytes: fs::metadata(path)?.len(), id })
}

/// Returns the approximate size in bytes of the document of a session, and the latest modification
/// of its files in microseconds.
fn tree_state(session_file: &Path) -> io::Result<(u64, i64)> {
    let tree = SessionTree::read_files(session_file)?;
    let mut files = vec![session_file];
    for (message, parts) in &tree.messages {
        files.push(message);
        files.extend(parts.iter().map(PathBuf::as_path));
    }
    files.extend(tree.loose.iter().map(PathBuf::as_path));

    let mut bytes: u64 = 0;
    let mut updated_us: i64 = 0;
    for file in files {
        let metadata = match fs::metadata(file) {
            // Undone messages vanish at any time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        bytes += metadata.len();
        updated_us = updated_us.max(i64::try_from(modified.as_micros()).unwrap_or(i64::MAX));
    }
    let header_bytes = fs::metadata(session_file)?.len();
    Ok((limited_size(header_bytes, bytes), updated_us))
}

/// The files of a session, sorted by name.
struct SessionTree {
    /// The file of each message, with the files of its parts.
    messages: Vec<(PathBuf, Vec<PathBuf>)>,
    /// Parts of any session, from versions that did not yet give each message a folder of parts.
    loose: Vec<PathBuf>,
}

impl SessionTree {
    /// Lists the files of the session in `session_file`.
    fn read_files(session_file: &Path) -> io::Result<Self> {
        let Some(storage) = session_file.ancestors().nth(3) else {
            let message =
                format!("{} is not in a storage tree of OpenCode", session_file.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        };

        let parts_folder = storage.join("part");
        let mut messages = Vec::new();
        for file in record_files(&storage.join("message"), session_file)? {
            let parts = record_files(&parts_folder, &file)?;
            messages.push((file, parts));
        }

        let has_parts = messages.iter().any(|(_, parts)| !parts.is_empty());
        let loose =
            if messages.is_empty() || has_parts { Vec::new() } else { json_files(&parts_folder)? };
        Ok(Self { messages, loose })
    }

    /// Assigns the loose parts to the messages that they belong to.
    fn assign_loose_parts(&mut self) {
        let mut parts_by_message: HashMap<String, Vec<PathBuf>> = HashMap::new();
        for path in self.loose.drain(..) {
            if let Some(message) = read_fields(&path).message_id {
                parts_by_message.entry(message).or_default().push(path);
            }
        }
        if parts_by_message.is_empty() {
            return;
        }
        for (message, parts) in &mut self.messages {
            let own = read_fields(message).id.and_then(|id| parts_by_message.remove(&id));
            parts.extend(own.unwrap_or_default());
        }
    }

    /// Returns the sizes of the messages and of their parts.
    fn collect_pieces(&self) -> io::Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for (message, parts) in &self.messages {
            pieces.push(describe_piece(message)?);
            for part in parts {
                pieces.push(describe_piece(part)?);
            }
        }
        Ok(pieces)
    }
}

/// Returns the files below `parent` with the records that belong to the record in `file`, sorted by
/// name; none if there is no folder for them.
fn record_files(parent: &Path, file: &Path) -> io::Result<Vec<PathBuf>> {
    match find_record_folder(parent, file) {
        Some(folder) => json_files(&folder),
        None => Ok(Vec::new()),
    }
}

/// Returns the folder below `parent` for the records that belong to the record in `file`. The
/// folder has the name of the file or, if the file was renamed, the id of its record. `None` if
/// there is no such folder, or if the record cannot be read.
fn find_record_folder(parent: &Path, file: &Path) -> Option<PathBuf> {
    let by_name = parent.join(file.file_stem()?);
    if by_name.is_dir() {
        return Some(by_name);
    }
    let id = read_fields(file).id?;
    // An id with a separator is not the name of a folder.
    if id.is_empty() || id.contains(['/', '\\']) {
        return None;
    }
    let by_id = parent.join(id);
    by_id.is_dir().then_some(by_id)
}

/// Returns the JSON files in a folder, sorted by name; none if the folder does not exist.
fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = list_folder(folder)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    Ok(files)
}

/// Returns the entries of a folder, sorted by name; none if the folder does not exist.
fn list_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The fields that show where a record belongs.
#[derive(Default, Deserialize)]
struct RecordFields {
    id: Option<String>,
    #[serde(rename = "messageID")]
    message_id: Option<String>,
    time: Option<RecordTime>,
}

#[derive(Deserialize)]
struct RecordTime {
    /// Milliseconds since 1970.
    created: Option<f64>,
}

impl RecordFields {
    /// Returns the time of the record in milliseconds since 1970.
    fn created(&self) -> Option<f64> {
        self.time.as_ref()?.created
    }
}

/// Parses a record. Returns empty fields if it is not valid.
fn parse_fields(json: &str) -> RecordFields {
    serde_json::from_str(json).unwrap_or_default()
}

/// Reads the fields of the record in a file without holding its texts in memory. Returns empty
/// fields if the file is not valid or has more than [`MAX_SCANNED_BYTES`].
fn read_fields(path: &Path) -> RecordFields {
    let Ok(file) = File::open(path) else { return RecordFields::default() };
    let reader = BufReader::new(file.take(MAX_SCANNED_BYTES));
    serde_json::from_reader(reader).unwrap_or_default()
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
        assert_eq!(messages[2]["info"]["type"], "unreadable_record");
        assert_eq!(messages[2]["info"]["damage"]["name"], "message/ses_1/msg_3.json");
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
