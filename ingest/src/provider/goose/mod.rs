//! Reads the sessions of Goose from its database `sessions/sessions.db`, and those of versions
//! before 1.10 from `sessions/<id>.jsonl` next to it (docs/formats.md#goose).
//!
//! ```text
//! sessions(id, name, description, working_dir, created_at, updated_at, parent_session_id, ...)
//! messages(id, session_id, role, content_json, created_timestamp, metadata_json)
//! usage_ledger(id, session_id, created_timestamp, model, input_tokens, output_tokens, cost, ...)
//!
//! <id>.jsonl  {"description":"...","working_dir":"...","total_tokens":9,...}
//!             {"role":"user","created":1753340000,"content":[{"type":"text","text":"..."}]}
//! ```
//!
//! The database is assembled into a document (`shared/database/tables.rs`). Its rows of the ledger
//! are among the messages in the order of their times.

mod message;

use std::path::{Path, PathBuf};

use schemas::session::SHUTDOWN_SUM;
use schemas::{Provider, Usage};
use serde_json::Value as Json;

use self::message::{GooseDecoder, LEDGER, MESSAGES};
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Platform, Quirks, RecordOutcome, RecordTally,
    SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::database::connection::query_database;
use crate::provider::shared::database::tables::{
    RecordTable, SESSIONS, SessionTables, claim_stored,
};
use crate::provider::shared::document::{self, ASSEMBLED, Document};
use crate::provider::shared::identity::begin_header_record;
use crate::source::assembly::{Assembly, RowTables};
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value, decode_embedded};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Goose,
    has_unique_ids: false,
    decoder_version: 3,
    roots: |places| vec![sessions_folder(places)],
    sniff: claim_log,
    quirks: Quirks {
        is_stored_elsewhere: Some(is_in_database),
        assemblies: &[ASSEMBLY],
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

/// File name of the database.
const DATABASE: &str = "sessions.db";

/// The name of the program.
const AGENT: &str = "Goose";

/// Value of `store` in the documents of these sessions.
const STORE: &str = "goose";

const TABLES: SessionTables = SessionTables {
    agent: AGENT,
    store: STORE,
    sessions: SESSIONS,
    session_columns: &[
        "name",
        "description",
        "user_set_name",
        "session_type",
        "working_dir",
        "created_at",
        "updated_at",
        "model_config_json",
        "parent_session_id",
        "accumulated_input_tokens",
        "accumulated_output_tokens",
        "accumulated_total_tokens",
    ],
    session_time: "unixepoch(updated_at) * 1000",
    records: &[
        RecordTable {
            name: "messages",
            columns: &["id", "role", "created_timestamp", "metadata_json"],
            content: Some("content_json"),
            order: "created_timestamp",
            time: "created_timestamp * 1000",
        },
        RecordTable {
            name: LEDGER,
            columns: &[
                "id",
                "created_timestamp",
                "model",
                "input_tokens",
                "output_tokens",
                "total_tokens",
                "cache_read_tokens",
                "cache_write_tokens",
                "cost",
                "is_compaction",
            ],
            content: None,
            order: "created_timestamp",
            time: "created_timestamp * 1000",
        },
    ],
};

const ASSEMBLY: Assembly = Assembly {
    name: "Goose database",
    source_suffix: DATABASE,
    is_source: is_database,
    sessions: |database| TABLES.list(database),
    find_defect: |database| TABLES.find_defect(database),
    assemble: |path| TABLES.assemble(path),
    rows: Some(RowTables::new(AGENT, &[(TABLES.sessions, "id")])),
    ..Assembly::NONE
};

/// Beginnings of the titles that Goose gives to sessions without one.
const PLACEHOLDER_TITLES: &[&str] = &["CLI Session", "New Chat", "New session"];

/// Returns the folder of the sessions. Goose uses the folders of Linux on macOS, too.
fn sessions_folder(places: &AgentFolders<'_>) -> PathBuf {
    let data = match places.env_path("GOOSE_PATH_ROOT") {
        Some(root) => root.join("data"),
        None if places.platform() == Platform::Windows => {
            places.application_path("Block/goose/data")
        }
        None => places.data_path("goose"),
    };
    data.join("sessions")
}

/// Returns whether a file is the database of Goose, which is in a folder named `sessions`.
fn is_database(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == DATABASE)
        && path.parent().is_some_and(|folder| folder.ends_with("sessions"))
}

/// Returns whether the session of a file is in the database next to it, to which later versions copy
/// it.
fn is_in_database(path: &Path) -> bool {
    let database = path.with_file_name(DATABASE);
    if path.extension().is_none_or(|extension| extension != "jsonl") || !is_database(&database) {
        return false;
    }
    let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let count = database.is_file().then(|| {
        query_database(&database, AGENT, |connection| {
            let sql = "SELECT count(*) FROM messages WHERE session_id = ?1";
            connection.query_row(sql, [id], |row| row.get::<_, i64>(0))
        })
    });
    matches!(count, Some(Ok(count)) if count > 0)
}

/// Claims a session of the database by the name of its store, and a file by its first line.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    if let Some(info) = head.stored_info(STORE) {
        return Some(claim_stored(
            Provider::Goose,
            info["id"].as_str()?,
            &info["parent_session_id"],
        ));
    }
    let first = head.objects.first()?;
    let is_header = first["working_dir"].is_string()
        && first["description"].is_string()
        && first.get("role").is_none();
    (is_header && !is_in_database(head.path))
        .then(|| SessionClaim::new(Provider::Goose, head.file_stem()))
}

/// Decodes a log of either form.
fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let mut decoder = GooseDecoder::default();
    if document::is_lines(bytes, MESSAGES) {
        document::for_each_line_record(bytes, out, tally, &mut |object, raw, at, out| {
            if object.text("role").is_none() && object.text("working_dir").is_some() {
                // Without a time, its counts would be in the sums of no day.
                decode_header(object, true, last_time(bytes), out);
                return RecordOutcome::Merged("header");
            }
            decoder.decode_record(object, raw, at, out)
        });
        return out.count_earlier_steps();
    }

    let session = Document::read(bytes, &ASSEMBLED, out, tally);
    let has_ledger = session.has_record(LEDGER, |record| record.text("table") == Some(LEDGER));
    session.with_info(|info| decode_header(info, !has_ledger, None, out));
    session.for_each_record(out, tally, &mut |record, raw, at, out| {
        decoder.decode_record(record, raw, at, out)
    });
    if !has_ledger {
        out.count_earlier_steps();
    }
}

/// Returns the time of the last message in a file of lines, in microseconds since 1970.
fn last_time(bytes: &[u8]) -> Option<i64> {
    let lines = bytes.split(|byte| *byte == b'\n').rev();
    let messages = lines.filter_map(|line| serde_json::from_slice::<Json>(line).ok());
    let seconds = messages.into_iter().find_map(|message| message["created"].as_i64())?;
    seconds.checked_mul(1_000_000).filter(|micros| *micros > 0)
}

/// Reads the fields that describe a session. Without a ledger they have the only token counts. `end` is
/// the time of these if the fields have none.
fn decode_header(info: Value<'_>, has_counts: bool, end: Option<i64>, out: &mut Stream) {
    let updated = info.text("updated_at").and_then(chat::parse_unzoned);
    out.extend_time_range(info.text("created_at").and_then(chat::parse_unzoned));
    out.extend_time_range(updated);
    out.set_cwd(info.text("working_dir"));
    let title = info.non_empty("name").or_else(|| info.non_empty("description")).unwrap_or("");
    let is_users = info.int("user_set_name") == Some(1);
    // A number may follow.
    let words = title.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '#'));
    if is_users || !PLACEHOLDER_TITLES.contains(&words) {
        out.offer_title(if is_users { TitleFrom::User } else { TitleFrom::Agent }, title);
    }
    let mut model = None;
    decode_embedded(
        info.text("model_config_json").unwrap_or(""),
        &mut Parser::default(),
        |config| {
            model = config.text("model_name").map(str::to_owned);
        },
    );
    out.set_model(model.as_deref());

    let usage = Usage {
        input: info.int("accumulated_input_tokens"),
        output: info.int("accumulated_output_tokens"),
        ..Usage::default()
    };
    if has_counts && usage.total() > 0 {
        begin_header_record(updated.or(end), out);
        out.push_counts(SHUTDOWN_SUM, usage, None);
    }
}
