//! Assembles the folder of a conversation into a document:
//! `{"info":{"store":"openhands","id":"...","model":"...",...},"messages":[<event>,...]}`.
//!
//! Events are never changed and `base_state.json` is written after each, so a conversation has changed
//! if that file or the folder of events has. The events themselves are not examined.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::de::IgnoredAny;
use serde_json::{Value as Json, json};

use crate::provider::shared::database::document_text::{document_bytes, info_json};
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, Piece, SizeLimit};
use crate::provider::shared::document::to_legible_text;
use crate::provider::shared::sidecar::without_mark;
use crate::source::assembly::{AssembledSession, Assembly, SessionList};
use crate::text::render;

/// Value of `store` in the documents of these conversations.
pub(super) const STORE: &str = "openhands";

/// File name of the state of a conversation.
pub(super) const BASE_STATE: &str = "base_state.json";

/// Name of the folder of its events.
const EVENTS: &str = "events";

/// The kind of a record that stands for a file that is not JSON.
pub(super) const UNREADABLE_EVENT: &str = "unreadable_event";

/// Maximum size in bytes of the text that is kept of a file that is not JSON.
const MAX_KEPT_BYTES: usize = 16 << 10;

pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "OpenHands conversation",
    shares_file: false,
    source_suffix: BASE_STATE,
    is_source: |path| path.ends_with(BASE_STATE) && events_folder(path).is_dir(),
    is_part: |path| path.ends_with(EVENTS) && path.with_file_name(BASE_STATE).is_file(),
    sessions: list_conversation,
    assemble: assemble_conversation,
    ..Assembly::NONE
};

fn events_folder(state: &Path) -> PathBuf {
    state.with_file_name(EVENTS)
}

/// Lists the one conversation of a folder.
fn list_conversation(state: &Path) -> io::Result<SessionList> {
    let metadata = fs::metadata(state)?;
    let mut updated_us = 0;
    for metadata in [&metadata, &fs::metadata(events_folder(state))?] {
        let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        updated_us = updated_us.max(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    }
    let path = state.to_owned();
    Ok(vec![AssembledSession { path, bytes: metadata.len(), updated_us }].into())
}

/// A file with an event.
struct EventFile {
    number: u64,
    name: String,
    bytes: u64,
}

impl EventFile {
    fn piece(&self) -> Piece {
        Piece { bytes: self.bytes, id: self.name.clone() }
    }
}

/// Lists the files of events in the order of their numbers.
fn list_events(folder: &Path) -> io::Result<Vec<EventFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("event-").filter(|_| name.ends_with(".json"));
        let number = number.and_then(|rest| rest.split('-').next()?.parse().ok());
        if let Some(number) = number {
            files.push(EventFile { number, bytes: entry.metadata()?.len(), name });
        }
    }
    files.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
    Ok(files)
}

fn assemble_conversation(path: &Path) -> io::Result<Vec<u8>> {
    let state = fs::read(path)?;
    // Without its state, a conversation would lose the tokens that are known of it.
    let state: Json = serde_json::from_str(without_mark(&to_legible_text(&state)))
        .map_err(|error| io::Error::other(format!("{BASE_STATE} is not valid JSON: {error}")))?;
    let folder_name = path.parent().and_then(Path::file_name).unwrap_or_default();
    let id = match state["id"].as_str().filter(|id| !id.is_empty()) {
        Some(id) => id.to_owned(),
        None => id_of_folder(&folder_name.to_string_lossy()),
    };
    // All else is configuration of the agent, and what the user let it know.
    let info = json!({
        "id": id,
        "model": state["agent"]["llm"]["model"],
        "workspace": { "working_dir": state["workspace"]["working_dir"] },
        "leaf_event_id": state["leaf_event_id"],
        "head_is_empty": state["head_is_empty"],
        "stats": state["stats"],
    });
    let info = info_json(STORE, info.as_object().cloned().unwrap_or_default());

    let folder = events_folder(path);
    let files = list_events(&folder)?;
    let pieces = files.iter().map(EventFile::piece).collect();
    let limit = SizeLimit::of_session(pieces, info.len() as u64);
    let mut events = Vec::with_capacity(files.len());
    for file in &files {
        events.push(if limit.includes(&file.piece()) {
            read_event(&folder, &file.name)?
        } else {
            json!({ "kind": OVERSIZED_RECORD, "bytes": file.bytes }).to_string()
        });
    }
    Ok(document_bytes(&info, &events))
}

/// Returns the id of a conversation as its state writes it, with the hyphens that the name of its folder
/// lacks.
fn id_of_folder(name: &str) -> String {
    if name.len() != 32 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return name.to_owned();
    }
    [&name[..8], &name[8..12], &name[12..16], &name[16..20], &name[20..]].join("-")
}

/// Reads the JSON of an event on one line.
fn read_event(folder: &Path, name: &str) -> io::Result<String> {
    let bytes = fs::read(folder.join(name))?;
    let text = to_legible_text(&bytes);
    let event = without_mark(&text).trim().replace(['\n', '\r'], " ");
    if event.starts_with('{') && serde_json::from_str::<IgnoredAny>(&event).is_ok() {
        return Ok(event);
    }
    let kept = &text[..render::truncation_point(&text, MAX_KEPT_BYTES)];
    Ok(json!({ "kind": UNREADABLE_EVENT, "name": name, "data": kept }).to_string())
}
