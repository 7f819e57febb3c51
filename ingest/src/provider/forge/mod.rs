//! Reads the conversations of Forge from its database `~/.forge/.forge.db` (docs/formats.md#forge).
//!
//! ```text
//! conversations(conversation_id, title, context, created_at, updated_at, ...)
//!
//! context  {"messages":[{"message":{"text":{"role":"User","content":"...","raw_content":{...}}}},
//!           {"message":{"text":{"role":"Assistant","content":"...","model":"...","tool_calls":[...],
//!            "reasoning_details":[{"text":"..."}]}},"usage":{"prompt_tokens":{"actual":9},...}},
//!           {"message":{"tool":{"name":"...","call_id":"...","output":{"is_error":false,...}}}}]}
//! ```
//!
//! A conversation is assembled into a document with the columns of its row in `info`.

mod message;

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Result, Row};
use schemas::Provider;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

use self::message::ForgeDecoder;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::database::cells::{
    cell_bytes, cell_text, known_sql, read_table_names, select_cells,
};
use crate::provider::shared::database::connection::find_unread_rows;
use crate::provider::shared::database::document_text::{document_bytes, info_json};
use crate::provider::shared::database::listing::{ListedTable, ListedTables, TableGeneration};
use crate::provider::shared::database::tables::read_session_at;
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::source::assembly::{Assembly, RowTables};
use crate::source::container::MAX_DOCUMENT_BYTES;
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value, legible_json};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Forge,
    has_unique_ids: false,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// File name of the database.
const DATABASE: &str = ".forge.db";

/// The name of the program.
const AGENT: &str = "Forge";

/// Value of `store` in the documents of these conversations.
const STORE: &str = "forge";

/// The table of conversations.
const TABLE: &str = "conversations";

/// The columns that are read besides the messages.
const COLUMNS: &[&str] = &["title", "created_at", "updated_at"];

const TABLES: ListedTables<'_> = ListedTables {
    agent: AGENT,
    sessions: &[ListedTable {
        name: TABLE,
        session: "conversation_id",
        time: "unixepoch(ifnull(updated_at, created_at)) * 1000",
        // The descriptions of tools are not in the document.
        size: "ifnull(octet_length(context), 0) / 2",
        state: &["title"],
    }],
    records: &[],
    generations: &[TableGeneration { marks: &[TABLE], tables: &[TABLE] }],
};

const ASSEMBLY: Assembly = Assembly {
    name: "Forge database",
    source_suffix: DATABASE,
    is_source: |path| path.file_name().is_some_and(|name| name == DATABASE),
    sessions: |database| TABLES.list(database),
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: assemble_conversation,
    rows: Some(RowTables::new(AGENT, &[(TABLE, "conversation_id")])),
    ..Assembly::NONE
};

/// Returns the databases of this version, and of those that had no dot before the name of the folder.
fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let folders = match places.env_path("FORGE_CONFIG") {
        Some(folder) => vec![folder],
        None => vec![places.home_path(".forge"), places.home_path("forge")],
    };
    folders.iter().map(|folder| folder.join(DATABASE)).collect()
}

/// The fields of the messages of a conversation that its document has.
#[derive(Deserialize)]
struct StoredContext<'a> {
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
}

/// Assembles the document of the conversation at a path.
fn assemble_conversation(path: &Path) -> io::Result<Vec<u8>> {
    let (info, context) = read_session_at(path, AGENT, read_row)?;
    let context = legible_json(&context);
    let messages = if context.is_empty() {
        Vec::new()
    } else {
        let context: StoredContext<'_> =
            serde_json::from_str(&context).map_err(io::Error::other)?;
        context.messages.into_iter().map(|message| message.get().to_owned()).collect()
    };
    Ok(document_bytes(&info_json(STORE, info), &messages))
}

/// The id and the short columns of a conversation, and its context.
type ConversationRow = (Map<String, Json>, Vec<u8>);

/// Reads the row of a conversation.
fn read_row(connection: &Connection, id: &str) -> Result<Option<ConversationRow>> {
    if !read_table_names(connection)?.contains(TABLE) {
        return Ok(None);
    }
    let cells = format!(
        "CASE WHEN octet_length(context) <= {MAX_DOCUMENT_BYTES} THEN context END{}",
        select_cells(COLUMNS)
    );
    let cells = known_sql(connection, TABLE, &cells)?;
    let sql = format!("SELECT {cells} FROM {TABLE} WHERE conversation_id = ?1");
    let read = |row: &Row<'_>| {
        let mut info = Map::new();
        for (at, name) in COLUMNS.iter().enumerate() {
            info.insert((*name).to_owned(), cell_text(row.get_ref(at + 1)?).into());
        }
        info.insert("id".to_owned(), id.into());
        Ok((info, cell_bytes(row.get_ref(0)?).to_vec()))
    };
    connection.query_row(&sql, [id], read).optional()
}

/// Claims a conversation by the name of its store.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let id = head.stored_info(STORE)?["id"].as_str()?;
    Some(SessionClaim::new(Provider::Forge, id))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let conversation = Document::read(bytes, &ASSEMBLED, out, tally);
    let mut decoder = ForgeDecoder::default();
    conversation.with_info(|info| decoder.start = decode_header(info, out));
    conversation.for_each_record(out, tally, &mut |record, raw, at, out| {
        decoder.decode_record(record, raw, at, out)
    });
}

/// Reads the fields of a conversation. Returns the time at which it began.
fn decode_header(info: Value<'_>, out: &mut Stream) -> Option<i64> {
    let created = info.text("created_at").and_then(chat::parse_unzoned);
    out.extend_time_range(created);
    out.extend_time_range(info.text("updated_at").and_then(chat::parse_unzoned));
    out.offer_title(TitleFrom::Agent, info.text("title").unwrap_or(""));
    created
}
