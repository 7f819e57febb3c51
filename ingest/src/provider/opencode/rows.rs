//! Reads the messages of a session from the rows of a database, as JSON.
//!
//! Rows are sorted here, because SQLite sorts rows together with their data and holds several
//! copies of that data. Rows that are left out are never loaded: SQLite returns the length of a
//! cell without its content.

use std::collections::BTreeMap;
use std::fmt::Display;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result, Row};

use super::record::{RecordPlace, missing_message, record_with_ids};
use crate::provider::shared::database::cells::{cell_bytes, cell_integer, cell_text};
use crate::provider::shared::database::document_text::message_with_parts;
use crate::provider::shared::database::size_limit::{Piece, SizeLimit, oversized_record};

/// The columns of a row that hold a piece: its id, its size, and its data unless it is left out.
const PIECE_COLUMNS: &str = "CAST(id AS TEXT), octet_length(data), \
    CASE WHEN octet_length(data) < ?2 OR (octet_length(data) = ?2 AND CAST(id AS TEXT) < ?3) \
    THEN data END";

/// The tables that hold the conversation of a session.
#[derive(Clone, Copy)]
pub(super) enum MessageTables {
    /// Versions 1: `message`, and `part` if the database has that table.
    Old { has_parts: bool },
    /// Versions 2: `session_message`.
    New,
}

/// Reads the messages of a session. If they do not fit into a document with a header of
/// `header_bytes`, the largest messages and parts are left out.
pub(super) fn read_messages(
    connection: &Connection,
    id: &str,
    tables: MessageTables,
    header_bytes: u64,
) -> Result<Vec<String>> {
    let pieces = collect_pieces(connection, id, tables)?;
    let limit = SizeLimit::of_session(pieces, header_bytes);
    let reader = PieceReader { connection, session_id: id, limit };
    match tables {
        MessageTables::Old { has_parts } => reader.read_old_messages(has_parts),
        MessageTables::New => reader.read_new_messages(),
    }
}

/// Reads the pieces of a session.
struct PieceReader<'c> {
    connection: &'c Connection,
    session_id: &'c str,
    limit: SizeLimit,
}

/// A message or part that was read.
struct ReadPiece {
    id: String,
    bytes: u64,
    /// Its data, or `None` if it is left out.
    data: Option<Vec<u8>>,
}

impl ReadPiece {
    /// Returns the JSON of the piece, which is a row of `table`, or the record that replaces it.
    /// `created` is the time of the piece in milliseconds since 1970, if it is known.
    fn to_json(&self, table: &str, created: Option<i64>, ids: &[(&str, &str)]) -> String {
        let place = RecordPlace::Row { table, id: &self.id };
        match &self.data {
            Some(data) => record_with_ids(data, place, ids),
            None => {
                let created = created.as_ref().map(|time| time as &dyn Display);
                let record = oversized_record(self.bytes, created);
                // A record that replaces a message has its own type.
                let ids: Vec<_> = ids.iter().copied().filter(|(key, _)| *key != "type").collect();
                record_with_ids(record.as_bytes(), place, &ids)
            }
        }
    }
}

impl PieceReader<'_> {
    /// Reads the messages of versions 2.
    fn read_new_messages(&self) -> Result<Vec<String>> {
        let mut messages = Vec::new();
        self.read_rows("session_message", "seq, type", |row, piece| {
            let position = cell_integer(row.get_ref(3)?);
            let kind = cell_text(row.get_ref(4)?);
            let ids = [("id", piece.id.as_str()), ("type", kind.as_str())];
            messages.push((position, piece.to_json("session_message", None, &ids)));
            Ok(())
        })?;
        messages.sort_by_key(|(position, _)| *position);
        Ok(messages.into_iter().map(|(_, message)| message).collect())
    }

    /// Reads the messages of versions 1, with their parts if the database has a table of parts.
    fn read_old_messages(&self, has_parts: bool) -> Result<Vec<String>> {
        let mut parts_by_message =
            if has_parts { self.read_old_parts()? } else { PartsByMessage::new() };
        let session_id = self.session_id;
        let mut messages = Vec::new();
        self.read_rows("message", "time_created", |row, piece| {
            let created = cell_integer(row.get_ref(3)?);
            let ids = [("id", piece.id.as_str()), ("sessionID", session_id)];
            let info = piece.to_json("message", Some(created), &ids);
            messages.push(OldMessage { created, id: piece.id, info });
            Ok(())
        })?;
        messages.sort();

        let mut whole = Vec::with_capacity(messages.len());
        for OldMessage { id: message_id, info, .. } in messages {
            let parts = parts_by_message.remove(&message_id).unwrap_or_default();
            whole.push(message_with_parts(&info, &parts_in_order(parts)));
        }
        for (message_id, parts) in parts_by_message {
            let first_part = parts.iter().map(|(id, _)| id.as_str()).min().unwrap_or_default();
            let ids = [("id", message_id.as_str()), ("sessionID", session_id)];
            let info = missing_message(&ids, first_part);
            whole.push(message_with_parts(&info, &parts_in_order(parts)));
        }
        Ok(whole)
    }

    /// Reads the parts of versions 1.
    fn read_old_parts(&self) -> Result<PartsByMessage> {
        let session_id = self.session_id;
        let mut parts = PartsByMessage::new();
        self.read_rows("part", "message_id", |row, piece| {
            let message_id = cell_text(row.get_ref(3)?);
            let ids = [
                ("id", piece.id.as_str()),
                ("sessionID", session_id),
                ("messageID", message_id.as_str()),
            ];
            let part = piece.to_json("part", None, &ids);
            parts.entry(message_id).or_default().push((piece.id, part));
            Ok(())
        })?;
        Ok(parts)
    }

    /// Passes every piece of the session in a table to `take`, with its row. Its columns from 3 on
    /// are `columns`.
    fn read_rows(
        &self,
        table: &str,
        columns: &str,
        mut take: impl FnMut(&Row<'_>, ReadPiece) -> Result<()>,
    ) -> Result<()> {
        let sql = format!("SELECT {PIECE_COLUMNS}, {columns} FROM {table} WHERE session_id = ?1");
        let mut statement = self.connection.prepare(&sql)?;
        let bound = self.limit.smallest_left_out();
        let bound_bytes = i64::try_from(bound.bytes).unwrap_or(i64::MAX);
        let mut rows = statement.query((self.session_id, bound_bytes, &bound.id))?;
        while let Some(row) = rows.next()? {
            let piece = read_piece(row)?;
            let data = row.get_ref(2)?;
            let is_left_out = data == ValueRef::Null && piece.bytes > 0;
            let data = if is_left_out { None } else { Some(cell_bytes(data).to_vec()) };
            take(row, ReadPiece { id: piece.id, bytes: piece.bytes, data })?;
        }
        Ok(())
    }
}

/// Returns the sizes of all pieces of a session.
fn collect_pieces(
    connection: &Connection,
    session_id: &str,
    tables: MessageTables,
) -> Result<Vec<Piece>> {
    let tables: &[&str] = match tables {
        MessageTables::Old { has_parts: true } => &["message", "part"],
        MessageTables::Old { has_parts: false } => &["message"],
        MessageTables::New => &["session_message"],
    };
    let mut pieces = Vec::new();
    for table in tables {
        let sql = format!(
            "SELECT CAST(id AS TEXT), octet_length(data) FROM {table} WHERE session_id = ?1"
        );
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([session_id])?;
        while let Some(row) = rows.next()? {
            pieces.push(read_piece(row)?);
        }
    }
    Ok(pieces)
}

/// Reads the id and the size of a piece from the first two columns of a row.
fn read_piece(row: &Row<'_>) -> Result<Piece> {
    let id = cell_text(row.get_ref(0)?);
    let bytes = cell_integer(row.get_ref(1)?).max(0).cast_unsigned();
    Ok(Piece { bytes, id })
}

/// Parts of versions 1, each with its id and in no particular order, by the id of their message.
type PartsByMessage = BTreeMap<String, Vec<(String, String)>>;

/// Returns the JSON of parts, sorted by their ids.
fn parts_in_order(mut parts: Vec<(String, String)>) -> Vec<String> {
    parts.sort_by(|(a, _), (b, _)| a.cmp(b));
    parts.into_iter().map(|(_, part)| part).collect()
}

/// A row of the table `message`. Messages are sorted by these fields in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OldMessage {
    created: i64,
    id: String,
    info: String,
}
