//! Assembles the conversations in Antigravity's databases into the records of its transcripts
//! (docs/formats.md#antigravity). A conversation has a database of its own, which is never written to.
//!
//! ```text
//! ~/.gemini/antigravity*/conversations/<id>.db, also implicit/<id>.db
//!   steps(idx, step_type, status, step_payload, error_details)   gen_metadata(idx, data)
//!   trajectory_meta(cascade_id)                      trajectory_metadata_blob(id, data)
//!
//! payload   1 type  4 status  5 {1 time 4 call 9 usage 11 model}  and the field of its kind
//! call      1 id  2 name  3 arguments as JSON      usage  2 input 3 output 4 cache write 5 cache read
//! data      1 {4 usage 19 model 21 shown model}  2 steps
//!
//! {"store":"antigravity","id":"...","cwd":"...","branch":"...","title":"..."}
//! {"step_index":2,"source":"MODEL","type":"RUN_COMMAND","status":"DONE","time":..., ...}
//! ```
//!
//! A step appears when it has ended, so that the records of a conversation are only added, never
//! changed.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Result};
use serde_json::{Map, Value as Json, json};

use crate::provider::shared::database::cells::{
    cell_bytes, cell_integer, known_sql, read_table_names,
};
use crate::provider::shared::database::connection::{find_unread_rows, query_database};
use crate::provider::shared::database::own_database::{has_tables, list_own_database};
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, Piece, SizeLimit};
use crate::provider::shared::file_uri::file_uri_path;
use crate::provider::shared::protobuf::WireMessage;
use crate::source::assembly::Assembly;
use crate::text::render::truncation_point;

/// Value of `store` in the first line of a conversation.
pub(super) const STORE: &str = "antigravity";

/// The type of a record with the tokens of a request.
pub(super) const USAGE: &str = "USAGE";

/// The name of the program.
const AGENT: &str = "Antigravity";

/// Folders with the databases of conversations.
const FOLDERS: &[&str] = &["conversations", "implicit"];

/// Maximum length in bytes of the texts of a step that is not shown.
const MAX_NOTED_BYTES: usize = 16 << 10;

const USER_INPUT: i64 = 14;
const PLANNER_RESPONSE: i64 = 15;
const RUN_COMMAND: i64 = 21;
const CHECKPOINT: i64 = 23;

/// A kind of step: its number, its field in a payload, and its name in a transcript.
type StepKind = (i64, u32, &'static str);

/// The kinds of steps that are known.
const KINDS: &[StepKind] = &[
    (5, 10, "CODE_ACTION"),
    (7, 13, "GREP_SEARCH"),
    (8, 14, "VIEW_FILE"),
    (9, 15, "LIST_DIRECTORY"),
    (USER_INPUT, 19, "USER_INPUT"),
    (PLANNER_RESPONSE, 20, "PLANNER_RESPONSE"),
    (RUN_COMMAND, 28, "RUN_COMMAND"),
    (CHECKPOINT, 30, "CHECKPOINT"),
    (38, 47, "MCP_TOOL"),
    (90, 103, "EPHEMERAL_MESSAGE"),
    (98, 111, "CONVERSATION_HISTORY"),
    (101, 114, "SYSTEM_MESSAGE"),
    (132, 140, "GENERIC"),
];

/// The texts of results: the number of the kind, and the path of fields of each text in the order of
/// preference.
const RESULTS: &[(i64, &[&[u32]])] = &[
    (5, &[&[2, 1, 8]]),
    (7, &[&[5], &[3]]),
    (8, &[&[4], &[9]]),
    (RUN_COMMAND, &[&[21, 1], &[4]]),
    (38, &[&[3]]),
    (132, &[&[2, 1]]),
];

/// Values of `status` of a step that has ended: done, cancelled, failed.
const ENDED: &[(i64, &str)] = &[(3, "DONE"), (6, "CANCELED"), (7, "ERROR")];

pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "Antigravity conversation",
    shares_file: false,
    source_suffix: ".db",
    is_source: is_conversation,
    sessions: |database| list_own_database(database, &[]),
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: |database| {
        let id = database.file_stem().unwrap_or_default().to_string_lossy();
        query_database(database, AGENT, |connection| read_conversation(connection, &id))
    },
    ..Assembly::NONE
};

/// Returns whether a file is the database of a conversation: `antigravity*/conversations/<id>.db`.
fn is_conversation(path: &Path) -> bool {
    let mut names = path.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str());
    path.extension().is_some_and(|extension| extension == "db")
        && names.next().is_some_and(|folder| FOLDERS.contains(&folder))
        && names.next().is_some_and(|folder| folder.starts_with(STORE))
}

/// Returns whether a database has the conversation of a transcript.
pub(super) fn has_database(agent: &Path, conversation: &str) -> bool {
    let name = format!("{conversation}.db");
    let mut databases = FOLDERS.iter().map(|folder| agent.join(folder).join(&name));
    databases.any(|database| database.is_file() && has_tables(&database, AGENT, &["steps"]))
}

/// The tokens of one request.
struct Generation {
    idx: i64,
    /// The steps that it made.
    steps: Vec<i64>,
    model: Option<String>,
    usage: Option<Json>,
}

/// Reads a conversation as lines. `name` is the name of its file, which is its id.
fn read_conversation(connection: &Connection, name: &str) -> Result<Vec<u8>> {
    let tables = read_table_names(connection)?;
    if !tables.contains("steps") {
        return Ok(Vec::new());
    }
    let mut info = read_info(connection, &tables, name)?;
    let generations =
        if tables.contains("gen_metadata") { read_generations(connection)? } else { Vec::new() };
    let has_counts = generations.iter().any(|generation| generation.usage.is_some());
    let mut by_step: BTreeMap<i64, Vec<&Generation>> = BTreeMap::new();
    for generation in &generations {
        let step = generation.steps.first().copied().unwrap_or(generation.idx);
        by_step.entry(step).or_default().push(generation);
    }

    let mut lines = Vec::new();
    for StepRow { idx, kind, status, payload, error, bytes } in read_steps(connection)? {
        let Some((_, status)) = ENDED.iter().find(|(number, _)| *number == status) else {
            continue;
        };
        let mut record = json!({ "step_index": idx, "status": status });
        let made = by_step.remove(&idx).unwrap_or_default();
        match WireMessage::parse(&payload).filter(|_| bytes == 0) {
            None => {
                record["source"] = "UNKNOWN".into();
                record["type"] = if bytes > 0 { OVERSIZED_RECORD } else { "UNREADABLE" }.into();
                record["bytes"] = bytes.max(payload.len() as u64).into();
            }
            Some(payload) => {
                let step = Step { kind: payload.int(1).unwrap_or(kind), payload };
                let model = made.iter().find_map(|generation| generation.model.clone());
                step.describe(&error, model, &mut record);
                if step.kind == CHECKPOINT && record["title"].is_string() {
                    info.insert("title".to_owned(), record["title"].clone());
                }
                if !has_counts {
                    lines.push(record);
                    lines.extend(step.usage().map(|usage| usage_record(idx, None, &usage)));
                    continue;
                }
            }
        }
        lines.push(record);
        lines.extend(made.iter().filter_map(|generation| generation_record(generation)));
    }
    // Requests whose step is not there, or has not ended.
    let others = by_step.values().flatten();
    lines.extend(others.filter_map(|generation| generation_record(generation)));

    let mut text = Json::Object(info).to_string();
    for line in lines {
        text.push('\n');
        text.push_str(&line.to_string());
    }
    text.push('\n');
    Ok(text.into_bytes())
}

fn generation_record(generation: &Generation) -> Option<Json> {
    let usage = generation.usage.as_ref()?;
    Some(usage_record(generation.idx, generation.model.as_deref(), usage))
}

/// Returns the record of the tokens of a request. Those of a step have no model of their own.
fn usage_record(number: i64, model: Option<&str>, usage: &Json) -> Json {
    json!({"step_index": number, "source": "SYSTEM", "type": USAGE, "model": model, "usage": usage})
}

/// Reads the fields of a conversation.
fn read_info(
    connection: &Connection,
    tables: &HashSet<String>,
    name: &str,
) -> Result<Map<String, Json>> {
    let first = |table: &str, column: &str| -> Result<Option<Vec<u8>>> {
        if !tables.contains(table) {
            return Ok(None);
        }
        let column = known_sql(connection, table, column)?;
        let sql = format!("SELECT {column} FROM {table} ORDER BY rowid LIMIT 1");
        connection.query_row(&sql, [], |row| Ok(cell_bytes(row.get_ref(0)?).to_vec())).optional()
    };
    let id = first("trajectory_meta", "cascade_id")?.and_then(|id| String::from_utf8(id).ok());
    let blob = first("trajectory_metadata_blob", "data")?.unwrap_or_default();
    let blob = WireMessage::parse(&blob).unwrap_or_default();
    let workspace = blob.message(1).unwrap_or_default();
    let folder = workspace.text(1).or_else(|| blob.text(7)).and_then(file_uri_path);
    let info = json!({
        "store": STORE,
        "id": id.filter(|id| !id.is_empty()).unwrap_or_else(|| name.to_owned()),
        "cwd": folder,
        "branch": workspace.text(4),
        "time": blob.message(2).and_then(|time| micros(&time)),
    });
    Ok(info.as_object().cloned().unwrap_or_default())
}

/// Reads the requests and their tokens.
fn read_generations(connection: &Connection) -> Result<Vec<Generation>> {
    let mut statement = connection.prepare("SELECT idx, data FROM gen_metadata ORDER BY idx")?;
    let mut rows = statement.query([])?;
    let mut generations = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(data) = WireMessage::parse(cell_bytes(row.get_ref(1)?)) else { continue };
        let chat = data.message(1).unwrap_or_default();
        let model = [19, 21].into_iter().find_map(|field| chat.text(field));
        generations.push(Generation {
            idx: cell_integer(row.get_ref(0)?),
            steps: data.numbers_in(2),
            model: model.filter(|model| !model.is_empty()).map(str::to_owned),
            usage: chat.message(4).and_then(|usage| read_usage(&usage)),
        });
    }
    Ok(generations)
}

/// Reads token counts. `None` if there are none.
fn read_usage(usage: &WireMessage<'_>) -> Option<Json> {
    let count = |field: u32| usage.int(field).filter(|count| *count >= 0);
    let counts = json!({"input": count(2), "output": count(3), "cache_write": count(4),
        "cache_read": count(5)});
    (2..=5).any(|field| count(field).is_some_and(|count| count > 0)).then_some(counts)
}

/// A row of the table of steps.
struct StepRow {
    idx: i64,
    kind: i64,
    status: i64,
    payload: Vec<u8>,
    error: Vec<u8>,
    /// The size of a payload that was left out, otherwise 0.
    bytes: u64,
}

/// Reads the steps in order. If they do not fit into a document, the largest are left out.
fn read_steps(connection: &Connection) -> Result<Vec<StepRow>> {
    let cells = known_sql(connection, "steps", "idx, octet_length(step_payload)")?;
    let mut statement =
        connection.prepare(&format!("SELECT rowid, {cells} FROM steps ORDER BY 2"))?;
    let mut rows = statement.query([])?;
    let mut pieces = Vec::new();
    while let Some(row) = rows.next()? {
        let bytes = cell_integer(row.get_ref(2)?).max(0).cast_unsigned();
        pieces.push(Piece { bytes, id: format!("{:020}", cell_integer(row.get_ref(0)?)) });
    }
    let all = pieces.iter().map(|piece| Piece { bytes: piece.bytes, id: piece.id.clone() });
    let limit = SizeLimit::of_session(all.collect(), 0);

    let cells = known_sql(connection, "steps", "idx, step_type, status")?;
    let error = format!(
        "CASE WHEN octet_length(error_details) <= {MAX_NOTED_BYTES} THEN error_details END"
    );
    let long = known_sql(connection, "steps", &format!("step_payload, {error}"))?;
    let mut select =
        connection.prepare(&format!("SELECT {cells}, {long} FROM steps WHERE rowid = ?1"))?;
    let mut without = connection.prepare(&format!("SELECT {cells} FROM steps WHERE rowid = ?1"))?;
    let mut steps = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let number = piece.id.parse::<i64>().unwrap_or_default();
        let is_read = limit.includes(&piece);
        let statement = if is_read { &mut select } else { &mut without };
        steps.push(statement.query_row([number], |row| {
            let long = |at: usize| -> Result<Vec<u8>> {
                Ok(if is_read { cell_bytes(row.get_ref(at)?).to_vec() } else { Vec::new() })
            };
            Ok(StepRow {
                idx: cell_integer(row.get_ref(0)?),
                kind: cell_integer(row.get_ref(1)?),
                status: cell_integer(row.get_ref(2)?),
                payload: long(3)?,
                error: long(4)?,
                bytes: if is_read { 0 } else { piece.bytes },
            })
        })?);
    }
    Ok(steps)
}

/// A step whose payload was read.
struct Step<'a> {
    kind: i64,
    payload: WireMessage<'a>,
}

impl Step<'_> {
    /// Returns the envelope with the time, the call and the tokens.
    fn metadata(&self) -> WireMessage<'_> {
        self.payload.message(5).unwrap_or_default()
    }

    fn usage(&self) -> Option<Json> {
        self.metadata().message(9).and_then(|usage| read_usage(&usage))
    }

    /// Adds what a transcript says of a step to its record. `model` is that of its request.
    fn describe(&self, error: &[u8], model: Option<String>, record: &mut Json) {
        let metadata = self.metadata();
        let known = KINDS.iter().find(|(kind, ..)| *kind == self.kind);
        let body = known.and_then(|(_, field, _)| self.payload.message(*field)).unwrap_or_default();
        let name = known.map_or_else(|| format!("STEP_{}", self.kind), |it| it.2.to_owned());
        record["type"] = name.into();
        if known.is_none() {
            record["is_unknown"] = true.into();
        }
        record["time"] = metadata.message(1).and_then(|time| micros(&time)).into();
        let call = metadata.message(4);
        match (self.kind, call.as_ref().and_then(|call| call.text(1))) {
            (USER_INPUT, _) => {
                record["source"] = "USER_EXPLICIT".into();
                let item = body.messages(3).find_map(|item| item.text(1).filter(has_words));
                let text = body.text(2).filter(has_words).or(item);
                record["content"] = text.or_else(|| body.text(1)).into();
            }
            (PLANNER_RESPONSE, _) => {
                record["source"] = "MODEL".into();
                record["content"] = body.text(1).into();
                record["thinking"] = body.text(3).into();
                let calls = body.messages(7).map(|call| {
                    json!({"id": call.text(1), "name": call.text(2), "arguments": call.text(3)})
                });
                record["tool_calls"] = calls.collect();
                let number = metadata.int(11).map(|number| format!("model-{number}"));
                record["model"] = model.or(number).into();
            }
            (kind, Some(id)) => {
                record["source"] = "MODEL".into();
                record["tool_call_id"] = id.into();
                record["tool"] = call.as_ref().and_then(|call| call.text(2)).into();
                record["content"] = error_text(error).or_else(|| result_text(kind, &body)).into();
                if kind == RUN_COMMAND {
                    // Zero is not written.
                    let zero = (record["status"] == "DONE").then_some(0);
                    record["exit_code"] = body.int(6).or(zero).into();
                }
            }
            (kind, None) => {
                record["source"] = known.map_or("UNKNOWN", |_| "SYSTEM").into();
                if kind == CHECKPOINT {
                    record["title"] = body.text(10).filter(has_words).into();
                }
                let mut text = error_text(error).unwrap_or_default();
                if text.is_empty() {
                    body.append_texts(&mut text);
                    text.truncate(truncation_point(&text, MAX_NOTED_BYTES));
                }
                record["content"] = text.into();
            }
        }
    }
}

fn has_words(text: &&str) -> bool {
    !text.trim().is_empty()
}

/// Returns what a result says: its text, or all texts in it.
fn result_text(kind: i64, body: &WireMessage<'_>) -> Option<String> {
    let paths = RESULTS.iter().find(|(known, _)| *known == kind).map_or(&[][..], |it| it.1);
    let found = paths.iter().find_map(|path| {
        let (field, above) = path.split_last()?;
        let text =
            if above.is_empty() { body.text(*field) } else { body.message_at(above)?.text(*field) };
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    });
    found.or_else(|| {
        let mut text = String::new();
        body.append_texts(&mut text);
        text.truncate(truncation_point(&text, MAX_NOTED_BYTES));
        (!text.is_empty()).then_some(text)
    })
}

/// Returns the message of an error: the one for the model, or the one for the user.
fn error_text(details: &[u8]) -> Option<String> {
    let details = WireMessage::parse(details)?;
    let text = [9, 1, 2].into_iter().find_map(|field| details.text(field).filter(has_words));
    text.map(str::to_owned)
}

/// Returns a time `{1 seconds 2 nanoseconds}` in microseconds since 1970.
fn micros(time: &WireMessage<'_>) -> Option<i64> {
    let micros = time.int(1)?.saturating_mul(1_000_000);
    Some(micros.saturating_add(time.int(2).unwrap_or(0) / 1000))
}
