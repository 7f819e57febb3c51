//! Assembles chats of the database of the Cursor editor into documents
//! (docs/formats.md#cursor-editor). The database is never written to.
//!
//! ```text
//! {"info":{"store":"cursoride","composerId":"...","name":"...",...},
//!  "messages":[{"bubbleId":"...","type":1,"text":"..."},...]}
//! ```
//!
//! A bubble has dozens of fields that repeat the state of the window. The document has only those
//! that are read.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Result};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::provider::shared::database::cells::{
    cell_bytes, cell_integer, cell_text, read_table_names,
};
use crate::provider::shared::database::connection::{find_unread_rows, query_database};
use crate::provider::shared::database::document_text::{document_bytes, info_json};
use crate::provider::shared::database::listing::{DatabaseListing, DatabaseSession};
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, Piece, SizeLimit};
use crate::provider::shared::database::tables::{read_session_at, session_list};
use crate::source::assembly::{Assembly, RowTables};
use crate::text::json::legible_json;

/// Value of `store` in the documents of these chats.
pub(super) const STORE: &str = "cursoride";

/// File name of the database. Every editor derived from VS Code has one.
pub(in crate::provider) const DATABASE: &str = "state.vscdb";

/// The name of the program.
const AGENT: &str = "Cursor";

/// The table of values by their keys.
const VALUES: &str = "cursorDiskKV";

/// The table of the chats in newer versions.
const HEADERS: &str = "composerHeaders";

/// Beginning of the key of a chat.
const CHAT_KEY: &str = "composerData:";

/// Beginning of the key of a bubble, before the id of its chat.
const BUBBLE_KEY: &str = "bubbleId:";

/// The fields of a chat that its document has.
const CHAT_FIELDS: &[&str] = &[
    "composerId",
    "createdAt",
    "lastUpdatedAt",
    "modelConfig",
    "name",
    "subagentInfo",
    "workspaceIdentifier",
];

/// The fields of a bubble that its document has.
const BUBBLE_FIELDS: &[&str] = &[
    "bubbleId",
    "createdAt",
    "errorDetails",
    "images",
    "modelInfo",
    "text",
    "thinking",
    "timingInfo",
    "tokenCount",
    "toolFormerData",
    "type",
    "usageUuid",
];

/// Maximum size in bytes of the value of a chat that is read. It has the list of its bubbles.
const MAX_CHAT_BYTES: i64 = 32 << 20;

/// Assembles the chats in a database. The path of a chat is `<database>#<id>`.
pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "Cursor database",
    source_suffix: DATABASE,
    is_source: is_database,
    sessions: |database| {
        let sessions = query_database(database, AGENT, list_chats)?;
        Ok(session_list(database, DatabaseListing { sessions, defects: Vec::new() }))
    },
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: |path| read_session_at(path, AGENT, read_document),
    rows: Some(RowTables {
        values: Some((
            "cursorDiskKV",
            "key",
            &["composerData:", "bubbleId:", "messageRequestContext:", "checkpointId:"],
        )),
        ..RowTables::new(AGENT, &[("composerHeaders", "composerId")])
    }),
    ..Assembly::NONE
};

/// Returns whether a file is the database with the chats of all windows.
fn is_database(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == DATABASE)
        && path.parent().is_some_and(|folder| folder.ends_with("globalStorage"))
}

/// Returns whether a database has bubbles of a chat. One that cannot be read has none.
pub(in crate::provider) fn has_bubbles(database: &Path, chat: &str) -> bool {
    let keys = [format!("{BUBBLE_KEY}{chat}:"), format!("{BUBBLE_KEY}{chat};")];
    let found = query_database(database, AGENT, |connection| {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM {VALUES} WHERE key >= ?1 AND key < ?2 AND value IS NOT NULL)"
        );
        connection.query_row(&sql, [&keys[0], &keys[1]], |row| row.get(0))
    });
    found.unwrap_or(false)
}

/// Lists the chats in a database that have bubbles or a list of them.
fn list_chats(connection: &Connection) -> Result<Vec<DatabaseSession>> {
    let tables = read_table_names(connection)?;
    let mut found: BTreeMap<String, DatabaseSession> = BTreeMap::new();
    if !tables.contains(VALUES) {
        return Ok(Vec::new());
    }
    // The keys are in an index, and SQLite reads no value to return its length.
    for prefix in [CHAT_KEY, BUBBLE_KEY] {
        let sql = format!(
            "SELECT key, octet_length(value) FROM {VALUES} WHERE key >= ?1 AND key < ?2 \
             AND value IS NOT NULL"
        );
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query((prefix, prefix.replace(':', ";")))?;
        while let Some(row) = rows.next()? {
            let key = cell_text(row.get_ref(0)?);
            let bytes = cell_integer(row.get_ref(1)?);
            let Some(rest) = key.strip_prefix(prefix) else { continue };
            let id = rest.split(':').next().unwrap_or(rest);
            if prefix == CHAT_KEY && id.len() == rest.len() {
                let chat = DatabaseSession { id: id.to_owned(), updated_us: 0, bytes: 0, state: 0 };
                found.insert(id.to_owned(), chat);
            }
            let Some(chat) = found.get_mut(id) else { continue };
            if prefix == BUBBLE_KEY {
                chat.bytes = chat.bytes.saturating_add(bytes.max(0).cast_unsigned());
            }
            let seed = bytes.cast_unsigned();
            chat.state = chat.state.wrapping_add(xxh3_64_with_seed(key.as_bytes(), seed));
        }
    }
    if tables.contains(HEADERS) {
        add_times(connection, &mut found)?;
    }
    for chat in found.values_mut().filter(|chat| chat.bytes == 0) {
        chat.bytes = inline_bytes(connection, &chat.id)?;
    }
    // A draft has no bubbles.
    // The document has a part of the fields only. A size above its own would look like a log that
    // ends within a line.
    let chats = found.into_values().filter(|chat| chat.bytes > 0);
    Ok(chats.map(|chat| DatabaseSession { bytes: chat.bytes / 2, ..chat }).collect())
}

/// Returns the size of a chat of an old version, whose value has the bubbles itself; 0 if it has none.
fn inline_bytes(connection: &Connection, id: &str) -> Result<u64> {
    let sql = format!(
        "SELECT octet_length(value) FROM {VALUES} WHERE key = ?1 \
         AND octet_length(value) <= {MAX_CHAT_BYTES} \
         AND instr(CAST(value AS TEXT), '\"conversation\":[{{') > 0"
    );
    let read = |row: &rusqlite::Row<'_>| Ok(cell_integer(row.get_ref(0)?));
    let bytes = connection.query_row(&sql, [format!("{CHAT_KEY}{id}")], read).optional()?;
    Ok(bytes.unwrap_or(0).max(0).cast_unsigned())
}

/// Adds the times of the latest changes, which only newer versions have outside of the chats.
fn add_times(connection: &Connection, found: &mut BTreeMap<String, DatabaseSession>) -> Result<()> {
    let sql = format!("SELECT composerId, lastUpdatedAt FROM {HEADERS}");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(chat) = found.get_mut(&cell_text(row.get_ref(0)?)) {
            chat.updated_us = cell_integer(row.get_ref(1)?).saturating_mul(1000);
        }
    }
    Ok(())
}

/// Reads the document of a chat, or returns `None` if the database does not have the chat.
fn read_document(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let tables = read_table_names(connection)?;
    if !tables.contains(VALUES) {
        return Ok(None);
    }
    let Some(chat) = read_value(connection, &format!("{CHAT_KEY}{id}"), MAX_CHAT_BYTES)? else {
        return Ok(None);
    };
    let chat: Map<String, Json> = serde_json::from_str(&legible_json(&chat)).unwrap_or_default();
    let mut info: Map<String, Json> = CHAT_FIELDS
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), chat.get(*key)?.clone())))
        .collect();
    info.insert("composerId".to_owned(), id.into());
    if tables.contains(HEADERS) {
        add_head(connection, id, &mut info)?;
    }
    let info = info_json(STORE, info);

    // Chats of old versions have their bubbles in themselves.
    let listed = chat.get("fullConversationHeadersOnly").and_then(Json::as_array);
    let inside = chat.get("conversation").and_then(Json::as_array);
    let messages = match (listed.filter(|listed| !listed.is_empty()), inside) {
        (None, Some(inside)) => {
            let bubble_of = |bubble: &Json| {
                let id = bubble["bubbleId"].as_str().unwrap_or_default();
                bubble_json(bubble.to_string().as_bytes(), id)
            };
            inside.iter().map(bubble_of).collect()
        }
        (listed, _) => {
            let ids = listed.into_iter().flatten().filter_map(|head| head["bubbleId"].as_str());
            let keys: Vec<String> = match listed {
                Some(_) => ids.map(|bubble| format!("{BUBBLE_KEY}{id}:{bubble}")).collect(),
                None => bubble_keys(connection, id)?,
            };
            read_bubbles(connection, keys, info.len() as u64)?
        }
    };
    Ok(Some(document_bytes(&info, &messages)))
}

/// Adds fields of a chat that newer versions have in a table of their own.
fn add_head(connection: &Connection, id: &str, info: &mut Map<String, Json>) -> Result<()> {
    let sql = format!(
        "SELECT value FROM {HEADERS} WHERE composerId = ?1 AND octet_length(value) <= {MAX_CHAT_BYTES}"
    );
    let read = |row: &rusqlite::Row<'_>| Ok(cell_bytes(row.get_ref(0)?).to_vec());
    let Some(head) = connection.query_row(&sql, [id], read).optional()? else { return Ok(()) };
    let head: Map<String, Json> = serde_json::from_str(&legible_json(&head)).unwrap_or_default();
    for key in CHAT_FIELDS {
        if let Some(value) = head.get(*key).filter(|value| !value.is_null()) {
            info.entry((*key).to_owned()).or_insert_with(|| value.clone());
        }
    }
    Ok(())
}

/// Returns the keys of the bubbles of a chat that does not list them, in the order of their rows.
fn bubble_keys(connection: &Connection, id: &str) -> Result<Vec<String>> {
    let sql = format!(
        "SELECT key FROM {VALUES} WHERE key >= ?1 AND key < ?2 AND value IS NOT NULL ORDER BY rowid"
    );
    let mut statement = connection.prepare(&sql)?;
    let bounds = (format!("{BUBBLE_KEY}{id}:"), format!("{BUBBLE_KEY}{id};"));
    let keys = statement.query_map(bounds, |row| Ok(cell_text(row.get_ref(0)?)))?;
    keys.collect()
}

/// Reads bubbles by their keys. If they do not fit into a document with a header of `header_bytes`,
/// the largest are left out. Keys without a value are bubbles that Cursor removed.
fn read_bubbles(
    connection: &Connection,
    keys: Vec<String>,
    header_bytes: u64,
) -> Result<Vec<String>> {
    let mut pieces = Vec::with_capacity(keys.len());
    let sql = format!("SELECT octet_length(value) FROM {VALUES} WHERE key = ?1");
    let mut size = connection.prepare(&sql)?;
    for key in keys {
        let bytes = size.query_row([&key], |row| Ok(cell_integer(row.get_ref(0)?))).optional()?;
        if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
            pieces.push(Piece { bytes: bytes.cast_unsigned(), id: key });
        }
    }
    let all = pieces.iter().map(|piece| Piece { bytes: piece.bytes, id: piece.id.clone() });
    let limit = SizeLimit::of_session(all.collect(), header_bytes);
    let mut bubbles = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let id = piece.id.rsplit(':').next().unwrap_or_default();
        let value = if limit.includes(&piece) {
            read_value(connection, &piece.id, i64::MAX)?
        } else {
            None
        };
        bubbles.push(match value {
            Some(value) => bubble_json(&value, id),
            None => {
                let mut fields = Map::new();
                fields.insert("bubbleId".to_owned(), id.into());
                fields.insert("kind".to_owned(), OVERSIZED_RECORD.into());
                fields.insert("bytes".to_owned(), piece.bytes.into());
                Json::Object(fields).to_string()
            }
        });
    }
    Ok(bubbles)
}

/// Returns the fields of a bubble that are read. Of one that is not JSON, only the text is kept.
fn bubble_json(value: &[u8], id: &str) -> String {
    let text = legible_json(value);
    let mut record = format!("{{\"bubbleId\":{}", Json::from(id));
    match serde_json::from_str::<BTreeMap<String, &RawValue>>(&text) {
        Ok(fields) => {
            for key in BUBBLE_FIELDS.iter().filter(|key| **key != "bubbleId") {
                if let Some(value) = fields.get(*key) {
                    record.push_str(&format!(",\"{key}\":{}", value.get()));
                }
            }
        }
        Err(_) => {
            record.push_str(&format!(",\"kind\":\"unreadable\",\"text\":{}", Json::from(&*text)));
        }
    }
    record.push('}');
    record
}

/// Reads the value of a key that has at most `max_bytes`.
fn read_value(connection: &Connection, key: &str, max_bytes: i64) -> Result<Option<Vec<u8>>> {
    let sql = format!("SELECT value FROM {VALUES} WHERE key = ?1 AND octet_length(value) <= ?2");
    let read = |row: &rusqlite::Row<'_>| Ok(cell_bytes(row.get_ref(0)?).to_vec());
    connection.query_row(&sql, (key, max_bytes), read).optional()
}
