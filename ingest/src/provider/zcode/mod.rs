//! Reads the sessions of ZCode from its database `~/.zcode/cli/db/db.sqlite` (docs/formats.md#zcode).
//!
//! ```text
//! session(id, parent_id, directory, title, task_type, revert, time_created, time_updated, ...)
//! message(id, session_id, sequence, data, time_created, time_updated)
//! part(id, message_id, session_id, sequence, data, time_created, time_updated)
//!
//! message  {"role":"user","semantics":{"kind":"user_prompt"},"time":{"created":1793400000000}}
//!          {"role":"assistant","modelID":"...","tokens":{"input":9,"output":2,"cache":{...}}}
//! part     {"type":"tool","callID":"c1","tool":"Bash","state":{"input":{...},"output":"..."}}
//! ```
//!
//! ZCode derives from OpenCode, but orders its messages by number, and counts tokens differently. The
//! database is assembled into a document (`shared/database/tables.rs`): each message, then its parts.

mod message;

use std::path::PathBuf;

use schemas::Provider;
use schemas::event::Relation;

use self::message::{MESSAGES, ZcodeDecoder};
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::database::tables::{RecordTable, SessionTables, claim_stored};
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::source::assembly::{Assembly, RowTables};
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::ZCode,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// The database, from the folder of ZCode.
const DATABASE: &str = "cli/db/db.sqlite";

/// Value of `store` in the documents of these sessions.
const STORE: &str = "zcode";

const TABLES: SessionTables = SessionTables {
    agent: "ZCode",
    store: STORE,
    sessions: "session",
    session_columns: &[
        "parent_id",
        "directory",
        "title",
        "task_type",
        "revert",
        "time_created",
        "time_updated",
    ],
    session_time: "time_updated",
    records: &[
        RecordTable {
            name: MESSAGES,
            columns: &["id"],
            content: Some("data"),
            // Messages and parts are only appended.
            order: "rowid",
            time: "time_updated",
        },
        RecordTable {
            name: "part",
            columns: &["id", "message_id"],
            content: Some("data"),
            order: "(SELECT m.rowid FROM message m WHERE m.id = message_id)",
            time: "time_updated",
        },
    ],
};

const ASSEMBLY: Assembly = Assembly {
    name: "ZCode database",
    source_suffix: "db.sqlite",
    is_source: |path| path.ends_with(DATABASE),
    sessions: |database| TABLES.list(database),
    find_defect: |database| TABLES.find_defect(database),
    assemble: |path| TABLES.assemble(path),
    rows: Some(RowTables::new(TABLES.agent, &[(TABLES.sessions, "id")])),
    ..Assembly::NONE
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    vec![places.home_path(".zcode").join(DATABASE)]
}

/// Claims a session by the name of its store.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let info = head.stored_info(STORE)?;
    let claim = claim_stored(Provider::ZCode, info["id"].as_str()?, &info["parent_id"]);
    if info["task_type"] == "fork" && claim.parent.is_some() {
        return Some(SessionClaim {
            agent_id: None,
            relation: Some(Relation::ForkedFrom),
            ..claim
        });
    }
    Some(claim)
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let session = Document::read(bytes, &ASSEMBLED, out, tally);
    let mut decoder = ZcodeDecoder::default();
    session.with_info(|info| {
        decode_header(info, out);
        decoder = ZcodeDecoder::new(info);
    });
    session.for_each_record(out, tally, &mut |record, raw, at, out| {
        decoder.decode_record(record, raw, at, out)
    });
}

fn decode_header(info: Value<'_>, out: &mut Stream) {
    out.extend_time_range(chat::read_millis(Some(info), "time_created"));
    out.extend_time_range(chat::read_millis(Some(info), "time_updated"));
    out.set_cwd(info.non_empty("directory"));
    out.offer_title(TitleFrom::Agent, info.text("title").unwrap_or(""));
}
