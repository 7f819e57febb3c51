//! Reads the sessions of Devin CLI from its database `devin/cli/sessions.db` (docs/formats.md#devin).
//!
//! ```text
//! sessions(id, working_directory, model, title, created_at, last_activity_at, ...)
//! message_nodes(session_id, node_id, parent_node_id, chat_message, created_at)
//! subagent_heads(session_id, agent_id, chain_node_id, updated_at)
//!
//! chat_message  {"message_id":"...","role":"assistant","content":"...","thinking":"...",
//!                "tool_calls":[{"id":"c1","name":"exec","arguments":{...}}],
//!                "metadata":{"created_at":"...","metrics":{...},...}}
//! ```
//!
//! The database is assembled into a document (`shared/database/tables.rs`). Its transcripts in ATIF
//! next to it are read only if it does not have their messages.

mod message;

use std::path::{Path, PathBuf};

use schemas::Provider;

use self::message::{DevinDecoder, HEADS};
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Platform, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::database::connection::query_database;
use crate::provider::shared::database::tables::{RecordTable, SESSIONS, SessionTables};
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::source::assembly::{Assembly, RowTables};
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Devin,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        is_stored_elsewhere: Some(is_in_database),
        assemblies: &[ASSEMBLY],
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

/// The database, from the folder of Devin's data.
const DATABASE: &str = "cli/sessions.db";

/// The name of the program.
const AGENT: &str = "Devin";

/// Value of `store` in the documents of these sessions.
const STORE: &str = "devin";

/// The table of messages.
const MESSAGES: &str = "message_nodes";

const TABLES: SessionTables = SessionTables {
    agent: AGENT,
    store: STORE,
    sessions: SESSIONS,
    session_columns: &["working_directory", "model", "title", "created_at", "last_activity_at"],
    session_time: "last_activity_at * 1000",
    records: &[
        RecordTable {
            name: MESSAGES,
            columns: &["node_id", "parent_node_id", "created_at"],
            content: Some("chat_message"),
            order: "node_id",
            time: "created_at * 1000",
        },
        RecordTable {
            name: HEADS,
            columns: &["agent_id", "chain_node_id"],
            content: None,
            // Before all messages.
            order: "-1",
            time: "updated_at * 1000",
        },
    ],
};

const ASSEMBLY: Assembly = Assembly {
    name: "Devin database",
    source_suffix: "sessions.db",
    is_source: |path| path.ends_with(DATABASE),
    sessions: |database| TABLES.list(database),
    find_defect: |database| TABLES.find_defect(database),
    assemble: |path| TABLES.assemble(path),
    rows: Some(RowTables::new(AGENT, &[(SESSIONS, "id")])),
    ..Assembly::NONE
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let folders = match places.platform() {
        Platform::Linux => vec![places.data_path("devin")],
        Platform::MacOs => vec![places.data_path("devin"), places.application_path("devin")],
        Platform::Windows => vec![places.application_path("devin")],
    };
    folders.iter().flat_map(|data| [data.join(DATABASE), data.join("cli/transcripts")]).collect()
}

/// Returns whether the session of a transcript is in the database next to its folder.
pub(in crate::provider) fn is_in_database(path: &Path) -> bool {
    let Some(folder) = path.parent().filter(|folder| folder.ends_with("cli/transcripts")) else {
        return false;
    };
    let database = folder.with_file_name("sessions.db");
    let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let is_known = database.is_file().then(|| {
        query_database(&database, AGENT, |connection| {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {MESSAGES} WHERE session_id = ?1)");
            connection.query_row(&sql, [id], |row| row.get(0))
        })
    });
    matches!(is_known, Some(Ok(true)))
}

/// Claims a session by the name of its store.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let id = head.stored_info(STORE)?["id"].as_str()?;
    Some(SessionClaim::new(Provider::Devin, id))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let session = Document::read(bytes, &ASSEMBLED, out, tally);
    session.with_info(|info| decode_header(info, out));
    let mut decoder = DevinDecoder::new(&session);
    session.for_each_record(out, tally, &mut |node, raw, at, out| {
        decoder.decode_node(node, raw, at, out)
    });
}

fn decode_header(info: Value<'_>, out: &mut Stream) {
    out.extend_time_range(info.field("created_at").and_then(chat::parse_time));
    out.extend_time_range(info.field("last_activity_at").and_then(chat::parse_time));
    out.set_cwd(info.text("working_directory"));
    out.set_model(info.text("model"));
    out.offer_title(TitleFrom::Agent, info.text("title").unwrap_or(""));
}
