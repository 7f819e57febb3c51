//! Assembles the chats of Cursor's command line into lines (docs/formats.md#cursor). A chat has a
//! database of its own, which is never written to.
//!
//! ```text
//! ~/.cursor/chats/<hash of the folder>/<id>/store.db
//!   blobs(id, data)   a message as JSON, or a part of the state in Protocol Buffers
//!   meta(key, value)  "0": hex of {"agentId":"...","latestRootBlobId":"...","name":"...",...}
//!
//! {"store":"cursor","id":"<id>","title":"...","created":1790000000000,"cwd":"/...","model":"..."}
//! {"role":"user","content":"...","createdAt":1790000000000}
//! ```

use std::collections::HashMap;
use std::io;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Result};
use serde_json::{Value as Json, json};

use crate::provider::shared::database::cells::{cell_bytes, cell_integer, cell_text};
use crate::provider::shared::database::connection::{find_unread_rows, query_database};
use crate::provider::shared::database::own_database::{has_tables, list_own_database};
use crate::provider::shared::database::size_limit::{Piece, SizeLimit, oversized_record};
use crate::provider::shared::document::to_legible_text;
use crate::provider::shared::file_uri::file_uri_path;
use crate::provider::shared::protobuf::WireMessage;
use crate::provider::shared::sidecar;
use crate::source::assembly::Assembly;
use crate::source::container::MAX_DOCUMENT_BYTES;
use crate::text::names::encode_hex;

/// File name of the database of a chat.
pub(super) const DATABASE: &str = "store.db";

/// Value of `store` in the first line of a chat.
pub(super) const STORE: &str = "cursor";

/// Name of the file with the title of a chat, next to its database.
pub(super) const CHAT_META: &str = "meta.json";

/// The name of the program.
const AGENT: &str = "Cursor";

/// Maximum size in bytes of the file with the title of a chat.
const MAX_META_BYTES: u64 = 64 << 10;

/// Field of the root with the ids of the messages, in order.
const MESSAGES_FIELD: u32 = 1;

/// Field of the root with the URI of the folder.
const FOLDER_FIELD: u32 = 9;

pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "Cursor chat",
    shares_file: false,
    source_suffix: DATABASE,
    is_source: |path| {
        let chats = path.ancestors().nth(3);
        path.ends_with(DATABASE) && chats.is_some_and(|folder| folder.ends_with("chats"))
    },
    sessions: |database| list_own_database(database, &[CHAT_META]),
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: assemble_chat,
    ..Assembly::NONE
};

fn assemble_chat(database: &Path) -> io::Result<Vec<u8>> {
    let meta =
        sidecar::read_json(&database.with_file_name(CHAT_META), MAX_META_BYTES).unwrap_or_default();
    let folder = database.parent().and_then(Path::file_name).unwrap_or_default();
    query_database(database, AGENT, |connection| {
        read_chat(connection, &meta, &folder.to_string_lossy())
    })
}

/// Returns whether a file is a database with a chat.
pub(super) fn has_chat(database: &Path) -> bool {
    database.is_file() && has_tables(database, AGENT, &["blobs", "meta"])
}

/// A row with a message.
#[derive(Clone)]
struct MessageRow {
    id: String,
    bytes: u64,
}

impl MessageRow {
    fn piece(&self) -> Piece {
        Piece { bytes: self.bytes, id: self.id.clone() }
    }
}

/// Reads a chat as lines. `folder` is the name of its folder, which is its id.
fn read_chat(connection: &Connection, meta: &Json, folder: &str) -> Result<Vec<u8>> {
    let record = read_record(connection)?;
    let root_id = record["latestRootBlobId"].as_str().unwrap_or_default();
    let root = read_blob(connection, root_id)?.unwrap_or_default();
    let root = WireMessage::parse(&root).unwrap_or_default();

    let folder_uri = root.text(FOLDER_FIELD).and_then(file_uri_path);
    let cwd = [&record["workspacePath"], &meta["cwd"]].into_iter().find_map(Json::as_str);
    let created = [&meta["createdAtMs"], &record["createdAt"]];
    let header = json!({
        "store": STORE,
        "id": record["agentId"].as_str().unwrap_or(folder),
        "title": meta["title"].as_str().or(record["name"].as_str()),
        "created": created.into_iter().find(|time| !time.is_null()),
        "cwd": cwd.map(str::to_owned).or(folder_uri),
        "model": record["lastUsedModel"],
        "is_subagent": meta["isSubagent"],
    });
    let mut lines = header.to_string();
    lines.push('\n');

    let rows = ordered_messages(connection, &root)?;
    let limit =
        SizeLimit::of_session(rows.iter().map(MessageRow::piece).collect(), lines.len() as u64);
    for row in rows {
        let message = if limit.includes(&row.piece()) {
            let data = read_blob(connection, &row.id)?.unwrap_or_default();
            to_legible_text(&data).replace(['\n', '\r'], " ")
        } else {
            oversized_record(row.bytes, None)
        };
        lines.push_str(&message);
        lines.push('\n');
    }
    Ok(lines.into_bytes())
}

/// Reads the record that describes a chat: JSON, or the hexadecimal digits of JSON.
fn read_record(connection: &Connection) -> Result<Json> {
    let sql = "SELECT value FROM meta WHERE key = '0'";
    let value = connection.query_row(sql, [], |row| Ok(cell_text(row.get_ref(0)?))).optional()?;
    let value = value.unwrap_or_default();
    let digits = value.as_bytes().chunks(2).map(|pair| {
        let pair = str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    let decoded: Option<Vec<u8>> = digits.collect();
    Ok(serde_json::from_slice(decoded.as_deref().unwrap_or(value.as_bytes())).unwrap_or_default())
}

fn read_blob(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let sql = "SELECT data FROM blobs WHERE id = ?1";
    connection.query_row(sql, [id], |row| Ok(cell_bytes(row.get_ref(0)?).to_vec())).optional()
}

/// Returns the messages in the order of the root. Messages that the root does not name were
/// summarized or taken back; they are in the order of their rows among the others.
fn ordered_messages(connection: &Connection, root: &WireMessage<'_>) -> Result<Vec<MessageRow>> {
    // A blob that is too large to be read is taken for a message.
    let text = "CAST(data AS TEXT)";
    let sql = format!(
        "SELECT id, octet_length(data) FROM blobs WHERE substr(data, 1, 1) IN ('{{', x'7b') \
         AND CASE WHEN octet_length(data) > {MAX_DOCUMENT_BYTES} THEN 1 \
         WHEN json_valid({text}) THEN json_type({text}, '$.role') = 'text' END ORDER BY rowid"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut found = statement.query([])?;
    let mut stored = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    while let Some(row) = found.next()? {
        let id = cell_text(row.get_ref(0)?);
        let bytes = cell_integer(row.get_ref(1)?).max(0).cast_unsigned();
        places.insert(id.clone(), stored.len());
        stored.push(MessageRow { id, bytes });
    }

    let named: Vec<usize> =
        root.bytes(MESSAGES_FIELD).filter_map(|id| places.get(&encode_hex(id)).copied()).collect();
    let mut is_named = vec![false; stored.len()];
    for place in &named {
        is_named[*place] = true;
    }
    let mut others = (0..stored.len()).filter(|place| !is_named[*place]).peekable();
    let mut order = Vec::new();
    for place in named {
        while let Some(other) = others.next_if(|other| *other < place) {
            order.push(other);
        }
        order.push(place);
    }
    order.extend(others);
    Ok(order.into_iter().map(|place| stored[place].clone()).collect())
}
