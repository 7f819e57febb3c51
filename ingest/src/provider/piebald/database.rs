//! Assembles the chats in Piebald's database into documents (docs/formats.md#piebald). The database is
//! never written to.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde_json::{Map, Value as Json};

use crate::provider::shared::database::cells::{
    cell_integer, cell_json, cell_text, known_sql, read_table_names,
};
use crate::provider::shared::database::connection::{find_unread_rows, query_database};
use crate::provider::shared::database::document_text::{document_bytes, info_json};
use crate::provider::shared::database::listing::{ListedTable, ListedTables, TableGeneration};
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, Piece, SizeLimit};
use crate::provider::shared::database::tables::{
    read_session, read_session_at, split_session_path,
};
use crate::source::assembly::{Assembly, SessionList};
use crate::source::container::MAX_DOCUMENT_BYTES;

/// Value of `store` in the documents of these chats.
pub(super) const STORE: &str = "piebald";

/// File name of the database.
pub(super) const DATABASE: &str = "app.db";

/// The name of the program.
const AGENT: &str = "Piebald";

const CHAT_COLUMNS: &[&str] = &[
    "title",
    "model",
    "created_at",
    "updated_at",
    "current_directory",
    "worktree_path",
    "branch_name",
    "project_id",
];

const MESSAGE_COLUMNS: &[&str] = &[
    "id",
    "parent_message_id",
    "role",
    "model",
    "created_at",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "finish_reason",
    "error",
];

const CALL_COLUMNS: &[&str] =
    &["tool_name", "tool_input", "tool_result", "tool_error", "tool_state"];

/// Tables with the texts of messages. That with the kinds of texts may be missing.
const TEXT_TABLES: &[&str] = &["message_content_nodes", "message_node_text"];
const TEXT_KINDS: &str = "message_part_text";

/// SQL of the calls in messages.
const CALLS: &str = "message_part_tool_call t JOIN message_parts p ON p.id = t.message_part_id \
    JOIN messages m ON m.id = p.parent_chat_message_id";

/// The fields of parts, by their ids.
type PartFields = HashMap<i64, Map<String, Json>>;

/// SQL of the time of the latest change of a row.
const CHANGED: &str = "unixepoch(ifnull(updated_at, created_at)) * 1000";

const TABLES: ListedTables<'_> = ListedTables {
    agent: AGENT,
    sessions: &[ListedTable {
        name: "chats",
        session: "id",
        time: CHANGED,
        size: "128",
        state: &["title", "updated_at"],
    }],
    records: &[ListedTable {
        name: "messages",
        session: "parent_chat_id",
        time: CHANGED,
        // At least this much; the texts are in other tables.
        size: "64",
        state: &["updated_at", "output_tokens"],
    }],
    generations: &[TableGeneration {
        marks: &["chats", "messages"],
        tables: &["chats", "messages", "message_parts"],
    }],
};

pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "Piebald database",
    source_suffix: DATABASE,
    is_source: |path| {
        path.ends_with(DATABASE) && path.parent().is_some_and(|folder| folder.ends_with(STORE))
    },
    sessions: list_chats,
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: |path| read_session_at(path, AGENT, read_document),
    ..Assembly::NONE
};

/// Lists the chats that the user did not delete.
fn list_chats(database: &Path) -> io::Result<SessionList> {
    let mut list = TABLES.list(database)?;
    if list.sessions.is_empty() {
        return Ok(list);
    }
    let deleted: HashSet<String> = query_database(database, AGENT, |connection| {
        let is_deleted = known_sql(connection, "chats", "is_deleted")?;
        let sql = format!("SELECT id FROM chats WHERE {is_deleted} <> 0");
        let mut statement = connection.prepare(&sql)?;
        statement.query_map([], |row| Ok(cell_text(row.get_ref(0)?)))?.collect()
    })?;
    list.sessions.retain(|chat| {
        !split_session_path(&chat.path).is_some_and(|(_, id)| deleted.contains(&id))
    });
    Ok(list)
}

/// Returns the id of a chat as its session has it. The number alone is that of a chat on any machine.
fn session_id(number: &str) -> String {
    format!("{STORE}-{number}")
}

/// Reads the document of a chat, or returns `None` if the database does not have it.
fn read_document(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let tables = read_table_names(connection)?;
    if !tables.contains("chats") || !tables.contains("messages") {
        return Ok(None);
    }
    let Some(mut info) = read_session(connection, "chats", CHAT_COLUMNS, id)? else {
        return Ok(None);
    };
    info.insert("id".to_owned(), session_id(id).into());
    let project = info.remove("project_id").and_then(|project| project.as_i64());
    if let Some(project) = project.filter(|_| tables.contains("projects")) {
        let sql = "SELECT directory FROM projects WHERE id = ?1";
        let read = |row: &Row<'_>| Ok(cell_text(row.get_ref(0)?));
        let folder = connection.query_row(sql, [project], read).optional()?;
        info.insert("directory".to_owned(), folder.into());
    }

    let has_parts = tables.contains("message_parts");
    let has_calls = has_parts && tables.contains("message_part_tool_call");
    let has_texts = has_parts && TEXT_TABLES.iter().all(|table| tables.contains(*table));
    if has_calls {
        let sql = format!("SELECT m.parent_chat_id FROM {CALLS} WHERE t.sub_agent_chat_id = ?1");
        let read = |row: &Row<'_>| Ok(session_id(&cell_text(row.get_ref(0)?)));
        let parent = connection.query_row(&sql, [id], read).optional()?;
        info.insert("parent".to_owned(), parent.into());
    }
    let info = info_json(STORE, info);

    let mut parts = PartFields::new();
    if has_texts {
        add_texts(connection, id, tables.contains(TEXT_KINDS), &mut parts)?;
    }
    if has_calls {
        add_calls(connection, id, &mut parts)?;
    }
    let mut by_message =
        if has_parts { read_parts(connection, id, &mut parts)? } else { HashMap::new() };
    let mut messages = read_messages(connection, id)?;
    for message in &mut messages {
        let number = message.get("id").and_then(Json::as_i64).unwrap_or_default();
        let parts = by_message.remove(&number).unwrap_or_default();
        message.insert("parts".to_owned(), parts.into());
    }
    Ok(Some(document_bytes(&info, &limit_messages(messages, info.len() as u64))))
}

/// Returns messages as JSON. If they do not fit into a document, the largest are left out.
fn limit_messages(messages: Vec<Map<String, Json>>, header_bytes: u64) -> Vec<String> {
    let texts: Vec<String> =
        messages.iter().map(|message| serde_json::to_string(message).unwrap_or_default()).collect();
    let piece = |at: usize| Piece { bytes: texts[at].len() as u64, id: format!("{at:020}") };
    let limit = SizeLimit::of_session((0..texts.len()).map(piece).collect(), header_bytes);
    let mut limited = Vec::with_capacity(texts.len());
    for (at, mut message) in messages.into_iter().enumerate() {
        if limit.includes(&piece(at)) {
            limited.push(texts[at].clone());
        } else {
            message.remove("parts");
            message.insert("type".to_owned(), OVERSIZED_RECORD.into());
            message.insert("bytes".to_owned(), texts[at].len().into());
            limited.push(Json::Object(message).to_string());
        }
    }
    limited
}

/// Returns SQL of the cells of columns that are not too large to be read, NULL for those that the table
/// does not have.
fn cells_sql(connection: &Connection, table: &str, columns: &[&str]) -> Result<String> {
    let cells: Vec<String> = columns
        .iter()
        .map(|name| {
            format!("CASE WHEN octet_length({name}) <= {MAX_DOCUMENT_BYTES} THEN {name} END")
        })
        .collect();
    known_sql(connection, table, &cells.join(", "))
}

/// Returns the cells of a row under the names of their columns.
fn row_fields(row: &Row<'_>, columns: &[&str]) -> Result<Map<String, Json>> {
    let mut fields = Map::new();
    for (at, name) in columns.iter().enumerate() {
        if let Some(value) = cell_json(row.get_ref(at)?) {
            fields.insert((*name).to_owned(), value);
        }
    }
    Ok(fields)
}

fn read_messages(connection: &Connection, id: &str) -> Result<Vec<Map<String, Json>>> {
    let cells = cells_sql(connection, "messages", MESSAGE_COLUMNS)?;
    let sql =
        format!("SELECT {cells} FROM messages WHERE parent_chat_id = ?1 ORDER BY created_at, id");
    let mut statement = connection.prepare(&sql)?;
    statement.query_map([id], |row| row_fields(row, MESSAGE_COLUMNS))?.collect()
}

/// Adds the texts of parts, which are in nodes. Without the table of their kinds, all are messages.
fn add_texts(
    connection: &Connection,
    chat: &str,
    has_kinds: bool,
    parts: &mut PartFields,
) -> Result<()> {
    let (kind, kinds) = if has_kinds {
        ("x.is_thinking", format!("LEFT JOIN {TEXT_KINDS} x ON x.message_part_id = p.id"))
    } else {
        ("NULL", String::new())
    };
    let sql = format!(
        "SELECT p.id, {kind}, \
         CASE WHEN octet_length(t.content) <= {MAX_DOCUMENT_BYTES} THEN t.content END \
         FROM messages m JOIN message_parts p ON p.parent_chat_message_id = m.id \
         {kinds} \
         JOIN message_content_nodes n ON n.parent_text_part_id = p.id \
         JOIN message_node_text t ON t.node_id = n.id \
         WHERE m.parent_chat_id = ?1 ORDER BY p.id, n.node_index, n.id"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([chat])?;
    while let Some(row) = rows.next()? {
        let fields = parts.entry(cell_integer(row.get_ref(0)?)).or_default();
        fields.insert("is_thinking".to_owned(), cell_json(row.get_ref(1)?).into());
        let mut text = cell_text(row.get_ref(2)?);
        if let Some(Json::String(before)) = fields.get("text") {
            text.insert_str(0, before);
        }
        fields.insert("text".to_owned(), text.into());
    }
    Ok(())
}

/// Adds the calls of parts with their results.
fn add_calls(connection: &Connection, chat: &str, parts: &mut PartFields) -> Result<()> {
    let cells = cells_sql(connection, CALLS, CALL_COLUMNS)?;
    let ids = known_sql(connection, CALLS, "p.id, provider_tool_use_id, sub_agent_chat_id")?;
    let sql = format!("SELECT {cells}, {ids} FROM {CALLS} WHERE m.parent_chat_id = ?1");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([chat])?;
    let first = CALL_COLUMNS.len();
    while let Some(row) = rows.next()? {
        let mut fields = row_fields(row, CALL_COLUMNS)?;
        fields.insert("call".to_owned(), cell_text(row.get_ref(first + 1)?).into());
        let agent = cell_text(row.get_ref(first + 2)?);
        if !agent.is_empty() {
            fields.insert("subagent".to_owned(), session_id(&agent).into());
        }
        parts.insert(cell_integer(row.get_ref(first)?), fields);
    }
    Ok(())
}

/// Takes the parts of each message, in order, out of `parts`.
fn read_parts(
    connection: &Connection,
    chat: &str,
    parts: &mut PartFields,
) -> Result<HashMap<i64, Vec<Json>>> {
    let sql = "SELECT m.id, p.id, p.part_type FROM messages m \
        JOIN message_parts p ON p.parent_chat_message_id = m.id \
        WHERE m.parent_chat_id = ?1 ORDER BY p.part_index, p.id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([chat])?;
    let mut by_message: HashMap<i64, Vec<Json>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let mut fields = parts.remove(&cell_integer(row.get_ref(1)?)).unwrap_or_default();
        fields.insert("part_type".to_owned(), cell_text(row.get_ref(2)?).into());
        by_message.entry(cell_integer(row.get_ref(0)?)).or_default().push(Json::Object(fields));
    }
    Ok(by_message)
}
