//! Reads the messages of a session from the rows of the database of Hermes, as JSON.
//!
//! Rows are read one by one in the order of their ids. Long cells of rows that are left out are
//! never loaded: SQLite returns the length of a cell without its content.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Result, Row, Statement};
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_64;

use super::counts::SessionCounts;
use crate::provider::shared::database::cells::{
    cell_integer, cell_json, cell_micros, read_columns,
};
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, Piece, SizeLimit};

/// Columns of a message that may be long.
const LONG_COLUMNS: &[&str] =
    &["content", "tool_calls", "reasoning", "reasoning_content", "codex_reasoning_items"];

/// Other columns of a message that its JSON shows. Flags are last.
const SHORT_COLUMNS: &[&str] = &[
    "role",
    "tool_call_id",
    "tool_name",
    "finish_reason",
    "display_kind",
    "timestamp",
    "observed",
    "_compressed_summary",
    "active",
    "compacted",
];

/// Columns whose text is JSON.
const JSON_COLUMNS: &[&str] = &["tool_calls", "codex_reasoning_items"];

/// Beginning of content that is JSON, not text.
const JSON_CONTENT: &str = "\0json:";

/// Returns SQL for the number of bytes in the long columns of a message, of those in `columns`.
pub(super) fn length_sql(columns: &HashSet<String>) -> String {
    let present = LONG_COLUMNS.iter().filter(|name| columns.contains(**name));
    let lengths: Vec<String> =
        present.map(|name| format!("ifnull(octet_length({name}), 0)")).collect();
    format!("(0 + {})", lengths.join(" + "))
}

/// Reads the messages of a session, and the records of counts that no message shares. If they do
/// not fit into a document with a header of `header_bytes`, the largest messages are left out.
pub(super) fn read_messages(
    connection: &Connection,
    session_id: &str,
    header_bytes: u64,
    counts: &mut SessionCounts,
) -> Result<Vec<String>> {
    let columns = read_columns(connection, "messages")?;
    let sizes = read_sizes(connection, session_id, &columns)?;
    let pieces = sizes.iter().map(|(id, bytes)| message_piece(*id, *bytes)).collect();
    let limit = SizeLimit::of_session(pieces, header_bytes);

    let mut rows = MessageRows::new(connection, &columns)?;
    let mut messages: Vec<StoredMessage> = Vec::with_capacity(sizes.len());
    let mut known: HashMap<String, usize> = HashMap::new();
    for (id, bytes) in sizes {
        let message = if limit.includes(&message_piece(id, bytes)) {
            rows.read_message(id)?
        } else {
            rows.read_oversized(id, bytes)?
        };
        // A message that outlives a compression is stored a second time.
        match known.get(&message.id).and_then(|at| messages.get_mut(*at)) {
            Some(original) => original.is_abandoned &= message.is_abandoned,
            None => {
                known.insert(message.id.clone(), messages.len());
                messages.push(message);
            }
        }
    }
    for message in &mut messages {
        message.add_share(counts);
    }
    Ok(with_unshared_counts(messages, counts))
}

/// Reads the ids of the messages of a session in their order, each with the size of the message.
fn read_sizes(
    connection: &Connection,
    session_id: &str,
    columns: &HashSet<String>,
) -> Result<Vec<(i64, u64)>> {
    let length = length_sql(columns);
    let sql = format!("SELECT id, {length} FROM messages WHERE session_id = ?1 ORDER BY id");
    let mut statement = connection.prepare(&sql)?;
    let read = |row: &Row<'_>| {
        let bytes = cell_integer(row.get_ref(1)?).max(0).cast_unsigned();
        Ok((cell_integer(row.get_ref(0)?), bytes))
    };
    statement.query_map([session_id], read)?.collect()
}

/// Returns a message as a piece of a document. Pieces of equal size are sorted by id.
fn message_piece(id: i64, bytes: u64) -> Piece {
    Piece { bytes, id: format!("{id:020}") }
}

/// Inserts the records of counts that no message shares where their requests began. Returns all
/// records as JSON.
fn with_unshared_counts(messages: Vec<StoredMessage>, counts: &SessionCounts) -> Vec<String> {
    let mut unshared = counts.unshared_records().into_iter().peekable();
    let mut records = Vec::with_capacity(messages.len());
    for message in messages {
        while let Some((_, record)) =
            unshared.next_if(|(time, _)| time.is_some() && message.time > *time)
        {
            records.push(record.to_string());
        }
        records.push(message.into_json());
    }
    records.extend(unshared.map(|(_, record)| record.to_string()));
    records
}

/// Reads single messages.
struct MessageRows<'c> {
    /// Selects the columns `names` of a message.
    whole: Statement<'c>,
    /// Selects the columns `names` up to `short_count`.
    short: Statement<'c>,
    names: Vec<&'static str>,
    short_count: usize,
}

impl<'c> MessageRows<'c> {
    fn new(connection: &'c Connection, columns: &HashSet<String>) -> Result<Self> {
        let is_present = |name: &&&str| columns.contains(**name);
        let mut names: Vec<&'static str> =
            SHORT_COLUMNS.iter().filter(is_present).copied().collect();
        let short_count = names.len();
        let short = connection.prepare(&select_message(&names))?;
        names.extend(LONG_COLUMNS.iter().filter(is_present).copied());
        let whole = connection.prepare(&select_message(&names))?;
        Ok(Self { whole, short, names, short_count })
    }

    /// Reads a message with all its columns.
    fn read_message(&mut self, id: i64) -> Result<StoredMessage> {
        let names = &self.names;
        self.whole.query_row([id], |row| StoredMessage::read(row, names))
    }

    /// Reads a message that is left out. A record with its size takes its place.
    fn read_oversized(&mut self, id: i64, bytes: u64) -> Result<StoredMessage> {
        let names = self.names.get(..self.short_count).unwrap_or_default();
        let mut message = self.short.query_row([id], |row| StoredMessage::read(row, names))?;
        message.id = format!("{id} {}", message.id);
        message.fields.insert("role".to_owned(), OVERSIZED_RECORD.into());
        message.fields.insert("bytes".to_owned(), bytes.into());
        Ok(message)
    }
}

/// Returns SQL that selects columns of the message with an id.
fn select_message(names: &[&str]) -> String {
    format!("SELECT {} FROM messages WHERE id = ?1", names.join(", "))
}

/// A message of a session.
struct StoredMessage {
    fields: Map<String, Json>,
    time: Option<i64>,
    /// Hash of the message and its time. Copies have the same in all sessions and databases.
    id: String,
    /// Whether the user took the message back.
    is_abandoned: bool,
}

impl StoredMessage {
    /// Reads a message from a row with the columns `names`.
    fn read(row: &Row<'_>, names: &[&str]) -> Result<Self> {
        let mut cells = Map::new();
        let mut time = None;
        let mut seconds = None;
        for (at, name) in names.iter().enumerate() {
            let cell = row.get_ref(at)?;
            if *name == "timestamp" {
                time = cell_micros(cell);
                seconds = cell_json(cell);
            } else if let Some(value) = cell_json(cell) {
                cells.insert((*name).to_owned(), value);
            }
        }
        let is_set = |name: &str| cells.get(name).and_then(Json::as_i64) == Some(1);
        // A message that only a compression took out of the model's context is part of the
        // conversation.
        let is_live = is_set("active") || is_set("compacted") || !cells.contains_key("active");
        cells.remove("active");
        cells.remove("compacted");

        let key = format!("{:016x}", xxh3_64(Json::from(cells.clone()).to_string().as_bytes()));
        let mut fields: Map<String, Json> =
            cells.into_iter().map(|(name, value)| parse_cell(name, value)).collect();
        let id = format!("{key} {}", time.unwrap_or(0));
        fields.insert("id".to_owned(), id.as_str().into());
        fields.insert("content_key".to_owned(), key.into());
        if let Some(seconds) = seconds {
            fields.insert("timestamp".to_owned(), seconds);
        }
        Ok(Self { fields, time, id, is_abandoned: !is_live })
    }

    /// Adds the share of a response of the model in the counts of its session.
    fn add_share(&mut self, counts: &mut SessionCounts) {
        let is_empty = |name: &str| match self.fields.get(name) {
            None | Some(Json::Null) => true,
            Some(Json::String(text)) => text.is_empty(),
            Some(Json::Array(items)) => items.is_empty(),
            Some(_) => false,
        };
        let is_response = self.fields.get("role").is_some_and(|role| role == "assistant")
            && self.fields.get("_compressed_summary").and_then(Json::as_i64) != Some(1)
            && !LONG_COLUMNS.iter().all(|name| is_empty(name));
        if !is_response {
            return;
        }
        let weight = Json::from(self.fields.clone()).to_string().len() as u64;
        self.fields.insert("weight".to_owned(), weight.into());
        if let Some(number) = counts.add_response(self.time, weight) {
            self.fields.insert("share".to_owned(), number.into());
        }
    }

    fn into_json(mut self) -> String {
        if self.is_abandoned {
            self.fields.insert("abandoned".to_owned(), true.into());
        }
        Json::from(self.fields).to_string()
    }
}

/// Parses a cell that holds JSON. A cell that cannot be parsed stays text.
fn parse_cell(name: String, value: Json) -> (String, Json) {
    let json = match value.as_str() {
        Some(text) if JSON_COLUMNS.contains(&name.as_str()) => Some(text),
        Some(text) if name == "content" => text.strip_prefix(JSON_CONTENT),
        Some(_) | None => None,
    };
    let parsed = json.and_then(|json| serde_json::from_str(json).ok());
    (name, parsed.unwrap_or(value))
}
