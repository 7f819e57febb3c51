//! Reads the sessions of Crush from the database of each project, `<project>/.crush/crush.db`. Crush
//! lists the projects in `crush/projects.json` of its data folder (docs/formats.md#crush).
//!
//! ```text
//! sessions(id, parent_session_id, title, prompt_tokens, cost, created_at, ...)
//! messages(id, session_id, role, parts, model, provider, created_at, is_summary_message)
//! ```
//!
//! The database is assembled into a document (`shared/database/tables.rs`).

mod message;

use std::path::{Path, PathBuf};

use schemas::{Confidence, EventType, Provider, Usage};
use serde_json::Value as Json;

use self::message::CrushDecoder;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Platform, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::database::tables::{
    RecordTable, SESSIONS, SessionTables, claim_stored, split_session_path,
};
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::provider::shared::identity::begin_header_record;
use crate::provider::shared::{chat, sidecar};
use crate::source::assembly::{Assembly, RowTables};
use crate::stream::{DecodedEvent, Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Crush,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// File name of the database.
const DATABASE: &str = "crush.db";

/// Value of `store` in the documents of these sessions.
const STORE: &str = "crush";

const TABLES: SessionTables = SessionTables {
    agent: "Crush",
    store: STORE,
    sessions: SESSIONS,
    session_columns: &[
        "parent_session_id",
        "title",
        "prompt_tokens",
        "cost",
        "created_at",
        "updated_at",
    ],
    // Seconds, whatever the comments of the schema say.
    session_time: "updated_at * 1000",
    records: &[RecordTable {
        name: "messages",
        columns: &[
            "id",
            "role",
            "model",
            "created_at",
            "updated_at",
            "finished_at",
            "is_summary_message",
        ],
        content: Some("parts"),
        order: "created_at",
        time: "updated_at * 1000",
    }],
};

const ASSEMBLY: Assembly = Assembly {
    name: "Crush database",
    source_suffix: DATABASE,
    is_source: |path| path.file_name().is_some_and(|name| name == DATABASE),
    sessions: |database| TABLES.list(database),
    find_defect: |database| TABLES.find_defect(database),
    assemble: |path| TABLES.assemble(path),
    rows: Some(RowTables::new(TABLES.agent, &[(TABLES.sessions, "id")])),
    ..Assembly::NONE
};

/// Maximum size in bytes of the list of projects.
const MAX_PROJECTS_BYTES: u64 = 4 << 20;

/// Title that Crush gives to a session until the model has named it.
const PLACEHOLDER_TITLE: &str = "New Session";

/// Returns the database of each project that Crush lists.
fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let data = match places.env_path("CRUSH_GLOBAL_DATA") {
        Some(data) => data,
        None if places.platform() == Platform::Windows => places.local_path("crush"),
        None => places.data_path("crush"),
    };
    let list = sidecar::read_json(&data.join("projects.json"), MAX_PROJECTS_BYTES);
    let list = list.unwrap_or_default();
    let projects = list["projects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let folders = projects.iter().filter_map(|project| {
        let folder = Path::new(project["data_dir"].as_str()?);
        let project = Path::new(project["path"].as_str().unwrap_or(""));
        // A folder may be given from that of the project.
        Some(project.join(folder)).filter(|folder| folder.is_absolute())
    });
    folders.map(|folder| folder.join(DATABASE)).collect()
}

/// Claims a session by the name of its store.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let info = head.stored_info(STORE)?;
    let id = info["id"].as_str()?;
    Some(claim_stored(Provider::Crush, id, &info["parent_session_id"]))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let mut decoder = CrushDecoder::default();
    let session = Document::read(bytes, &ASSEMBLED, out, tally);
    let model = last_model(&session);
    session.with_info(|info| decode_header(info, model.as_deref(), out));
    session.for_each_record(out, tally, &mut |message, _, at, out| {
        decoder.decode_message(message, at, out)
    });
}

/// Returns the model of the last response.
fn last_model(session: &Document<'_>) -> Option<String> {
    session.raw_records().rev().find_map(|raw| {
        let message: Json = serde_json::from_slice(raw).ok()?;
        message["model"].as_str().filter(|model| !model.is_empty()).map(str::to_owned)
    })
}

/// Reads the fields of a session. The events of its counts come first, so that no event changes its
/// place when the session grows.
fn decode_header(info: Value<'_>, model: Option<&str>, out: &mut Stream) {
    let updated = info.field("updated_at").and_then(chat::parse_time);
    out.extend_time_range(info.field("created_at").and_then(chat::parse_time));
    out.extend_time_range(updated);
    let title = info.text("title").unwrap_or("");
    if title != PLACEHOLDER_TITLE {
        out.offer_title(TitleFrom::Agent, title);
    }
    out.set_cwd(project_folder(&out.session.source_path).as_deref());
    out.set_model(model);

    // The count is that of the last request, which the next one replaces. The cost is that of all
    // requests. `completion_tokens` also had what was read from the cache in early versions.
    let usage =
        Usage { input: info.int("prompt_tokens").filter(|count| *count > 0), ..Usage::default() };
    out.set_confidence(Confidence::Partial);
    begin_header_record(updated, out);
    let last = DecodedEvent { subtype: Some("last_request"), usage, ..DecodedEvent::default() };
    out.push(EventType::TokenUsage, last);
    // Crush adds the cost of a subagent to that of its parent.
    if info.non_empty("parent_session_id").is_none() {
        let cost = DecodedEvent {
            subtype: Some("session_cost"),
            cost: info.cost("cost"),
            ..DecodedEvent::default()
        };
        out.push(EventType::TokenUsage, cost);
    }
}

/// Returns the folder of the project whose database holds a session. `None` if the database is in
/// another place.
fn project_folder(session: &str) -> Option<String> {
    let (database, _) = split_session_path(Path::new(session))?;
    let data = database.parent().filter(|data| data.ends_with(".crush"))?;
    Some(data.parent()?.to_str()?.to_owned())
}
