//! Reads the threads of Zed's agent from its database `threads/threads.db` (docs/formats.md#zed).
//!
//! ```text
//! threads(id, summary, updated_at, data_type, data, parent_id, folder_paths, created_at)
//!
//! data  {"version":"0.3.0","title":"...","model":{"provider":"...","model":"..."},
//!        "request_token_usage":{"<id of a prompt>":{"input_tokens":9,...}},
//!        "messages":[{"User":{"id":"...","content":[...]}},{"Agent":{"content":[...],...}}]}
//! ```
//!
//! `data` is compressed with Zstandard, or plain JSON in old rows. A thread is assembled into a
//! document with the columns of its row in `info`, and without what is not read.

mod message;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Result, Row};
use schemas::Provider;
use schemas::session::SHUTDOWN_SUM;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

use self::message::ZedDecoder;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Platform, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::database::cells::{
    cell_bytes, cell_text, read_columns, read_table_names, select_cells,
};
use crate::provider::shared::database::connection::find_unread_rows;
use crate::provider::shared::database::document_text::{document_bytes, info_json};
use crate::provider::shared::database::listing::{ListedTable, ListedTables, TableGeneration};
use crate::provider::shared::database::tables::{claim_stored, read_session_at};
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::provider::shared::identity::begin_header_record;
use crate::source::assembly::{Assembly, RowTables};
use crate::source::container::MAX_DOCUMENT_BYTES;
use crate::stream::{Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Zed,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// The database, from the folder of its data.
const DATABASE: &str = "threads/threads.db";

/// The name of the program.
const AGENT: &str = "Zed";

/// Value of `store` in the documents of these sessions.
const STORE: &str = "zed";

/// The columns that are read besides the data.
const COLUMNS: &[&str] = &["summary", "updated_at", "created_at", "parent_id", "folder_paths"];

const TABLES: ListedTables<'_> = ListedTables {
    agent: AGENT,
    sessions: &[ListedTable {
        name: "threads",
        session: "id",
        time: "unixepoch(updated_at) * 1000",
        // At least this much: text that is compressed becomes several times as large.
        size: "octet_length(data)",
        state: COLUMNS,
    }],
    records: &[],
    generations: &[TableGeneration { marks: &["threads"], tables: &["threads"] }],
};

const ASSEMBLY: Assembly = Assembly {
    name: "Zed database",
    source_suffix: "threads.db",
    is_source: |path| path.ends_with(DATABASE),
    sessions: |database| TABLES.list(database),
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: assemble_thread,
    rows: Some(RowTables::new(AGENT, &[("threads", "id")])),
    ..Assembly::NONE
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let data = match places.platform() {
        Platform::Linux => places.data_path("zed"),
        Platform::MacOs => places.application_path("Zed"),
        Platform::Windows => places.local_path("Zed"),
    };
    let flatpak = places.home_path(".var/app/dev.zed.Zed/data/zed");
    vec![data.join(DATABASE), flatpak.join(DATABASE)]
}

/// The fields of a thread that its document has. Others, such as the changes of the working tree,
/// may be large.
#[derive(Deserialize)]
struct StoredThread<'a> {
    title: Option<String>,
    summary: Option<String>,
    model: Option<Json>,
    cumulative_token_usage: Option<Json>,
    request_token_usage: Option<Json>,
    initial_project_snapshot: Option<ProjectSnapshot>,
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
}

/// The state of the project when the thread began.
#[derive(Deserialize)]
struct ProjectSnapshot {
    #[serde(default)]
    worktree_snapshots: Vec<WorktreeSnapshot>,
}

#[derive(Deserialize)]
struct WorktreeSnapshot {
    worktree_path: Option<String>,
    git_state: Option<GitState>,
}

#[derive(Deserialize)]
struct GitState {
    current_branch: Option<String>,
}

/// Assembles the document of the thread at a path.
fn assemble_thread(path: &Path) -> io::Result<Vec<u8>> {
    let ThreadRow { mut info, data_type, data } = read_session_at(path, AGENT, read_row)?;
    let text = match data_type.as_str() {
        "json" => data,
        _ => decompress(&data)?,
    };
    let thread: StoredThread<'_> = serde_json::from_slice(&text).map_err(io::Error::other)?;

    let title = thread.title.or(thread.summary);
    let snapshot = thread.initial_project_snapshot;
    let worktree = snapshot.and_then(|snapshot| snapshot.worktree_snapshots.into_iter().next());
    let branch = worktree.as_ref().and_then(|worktree| worktree.git_state.as_ref());
    let branch = branch.and_then(|state| state.current_branch.clone());
    info.insert("title".to_owned(), json!(title));
    info.insert("model".to_owned(), json!(thread.model));
    info.insert("worktree".to_owned(), json!(worktree.and_then(|worktree| worktree.worktree_path)));
    info.insert("branch".to_owned(), json!(branch));
    info.insert("total_usage".to_owned(), json!(thread.cumulative_token_usage));
    info.insert("usage".to_owned(), json!(thread.request_token_usage));
    let messages: Vec<String> = thread.messages.into_iter().map(message_json).collect();
    Ok(document_bytes(&info_json(STORE, info), &messages))
}

/// Returns a message as a JSON object. Some are only a word.
fn message_json(raw: &RawValue) -> String {
    let raw = raw.get();
    if raw.starts_with('{') { raw.to_owned() } else { format!("{{\"marker\":{raw}}}") }
}

/// The row of a thread.
struct ThreadRow {
    /// The short columns, and the id.
    info: Map<String, Json>,
    data_type: String,
    data: Vec<u8>,
}

/// Reads the row of a thread.
fn read_row(connection: &Connection, id: &str) -> Result<Option<ThreadRow>> {
    if !read_table_names(connection)?.contains("threads") {
        return Ok(None);
    }
    let present = read_columns(connection, "threads")?;
    let columns: Vec<&str> =
        COLUMNS.iter().copied().filter(|name| present.contains(*name)).collect();
    let sql = format!(
        "SELECT data_type, CASE WHEN octet_length(data) <= {MAX_DOCUMENT_BYTES} THEN data END{} \
         FROM threads WHERE id = ?1",
        select_cells(&columns)
    );
    let read = |row: &Row<'_>| {
        let mut info = Map::new();
        for (at, name) in columns.iter().enumerate() {
            info.insert((*name).to_owned(), cell_text(row.get_ref(at + 2)?).into());
        }
        info.insert("id".to_owned(), id.into());
        let data_type = cell_text(row.get_ref(0)?);
        Ok(ThreadRow { info, data_type, data: cell_bytes(row.get_ref(1)?).to_vec() })
    };
    connection.query_row(&sql, [id], read).optional()
}

/// Decompresses the data of a thread.
fn decompress(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut reader = zstd::stream::read::Decoder::new(data)?.take(MAX_DOCUMENT_BYTES + 1);
    reader.read_to_end(&mut text)?;
    if text.len() as u64 > MAX_DOCUMENT_BYTES {
        let message = format!("the thread has more than {MAX_DOCUMENT_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

/// Claims a thread by the name of its store.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let info = head.stored_info(STORE)?;
    let id = info["id"].as_str()?;
    Some(claim_stored(Provider::Zed, id, &info["parent_id"]))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let thread = Document::read(bytes, &ASSEMBLED, out, tally);
    let mut decoder = ZedDecoder::default();
    thread.with_info(|info| decode_header(info, &mut decoder, out));
    thread.for_each_record(out, tally, &mut |message, raw, at, out| {
        decoder.decode_message(message, raw, at, out)
    });
}

/// Reads the fields of a thread. Messages have no times and no model.
fn decode_header(info: Value<'_>, decoder: &mut ZedDecoder, out: &mut Stream) {
    let updated = parse_micros(info.text("updated_at"));
    let created = parse_micros(info.text("created_at")).or(updated);
    out.extend_time_range(created);
    out.extend_time_range(updated);
    decoder.begin(created, info);
    let title = info.non_empty("title").or_else(|| info.non_empty("summary"));
    out.offer_title(TitleFrom::Agent, title.unwrap_or(""));
    let folder = info.text("folder_paths").and_then(|paths| paths.lines().next());
    out.set_cwd(folder.filter(|folder| !folder.is_empty()).or_else(|| info.text("worktree")));
    out.set_branch(info.text("branch"));
    out.set_model(info.object("model").and_then(|model| model.text("model")));

    let usage = info.object("total_usage").map(chat::read_anthropic_usage).unwrap_or_default();
    if usage.total() > 0 {
        begin_header_record(updated, out);
        out.push_counts(SHUTDOWN_SUM, usage, None);
    }
}
