//! Assembles conversations of Warp's database into documents (docs/formats.md#warp). The database is
//! never written to.
//!
//! ```text
//! {"info":{"store":"warp","id":"...","title":"...",...},
//!  "messages":[{"kind":"exchange","id":"...","text":"...","model":"...","cwd":"..."},
//!              {"kind":"user_query","id":"...","text":"..."},...]}
//! ```

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde_json::{Map, Value as Json, json};

use super::task::{Task, TaskMessage, read_task};
use crate::provider::shared::chat::parse_unzoned;
use crate::provider::shared::database::cells::{
    cell_bytes, cell_integer, cell_text, known_sql, read_table_names, select_cells,
};
use crate::provider::shared::database::connection::find_unread_rows;
use crate::provider::shared::database::document_text::{document_bytes, info_json};
use crate::provider::shared::database::listing::{ListedTable, ListedTables, TableGeneration};
use crate::provider::shared::database::size_limit::{OVERSIZED_RECORD, Piece, SizeLimit};
use crate::provider::shared::database::tables::read_session_at;
use crate::source::assembly::{Assembly, RowTables};

/// Value of `store` in the documents of these conversations.
pub(super) const STORE: &str = "warp";

/// File name of the database.
pub(super) const DATABASE: &str = "warp.sqlite";

/// The name of the program.
const AGENT: &str = "Warp";

/// The fields of `conversation_data` that a document has.
const FIELDS: &[&str] = &["agent_name", "conversation_usage_metadata", "parent_conversation_id"];

const TABLES: ListedTables<'_> = ListedTables {
    agent: AGENT,
    sessions: &[
        ListedTable {
            name: "agent_conversations",
            session: "conversation_id",
            time: "unixepoch(last_modified_at) * 1000",
            size: "256",
            state: &["conversation_data"],
        },
        // Versions before June 2025 have no table of conversations.
        ListedTable {
            name: "ai_queries",
            session: "conversation_id",
            time: "unixepoch(start_ts) * 1000",
            size: "octet_length(input) / 4",
            state: &["output_status"],
        },
    ],
    records: &[ListedTable {
        name: "agent_tasks",
        session: "conversation_id",
        time: "unixepoch(last_modified_at) * 1000",
        // Most of a task is data of the server, which is not read. A size above that of the document
        // would look like a log that ends within a line.
        size: "octet_length(task) / 16",
        state: &[],
    }],
    generations: &[TableGeneration {
        marks: &["agent_conversations", "agent_tasks"],
        tables: &["agent_conversations", "agent_tasks", "ai_queries"],
    }],
};

/// Assembles the conversations in a database. The path of one is `<database>#<id>`.
pub(super) const ASSEMBLY: Assembly = Assembly {
    name: "Warp database",
    source_suffix: DATABASE,
    is_source: |path| path.file_name().is_some_and(|name| name == DATABASE),
    sessions: |database| TABLES.list(database),
    find_defect: |database| find_unread_rows(database, AGENT),
    assemble: |path| read_session_at(path, AGENT, read_document),
    rows: Some(RowTables {
        named: &[("agent_tasks", "conversation_id")],
        ..RowTables::new(
            AGENT,
            &[("agent_conversations", "conversation_id"), ("ai_queries", "conversation_id")],
        )
    }),
    ..Assembly::NONE
};

/// A record of a document, with what orders it.
struct OrderedRecord {
    time_us: i64,
    record: Json,
}

/// Reads the document of a conversation, or returns `None` if the database does not have it.
fn read_document(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let tables = read_table_names(connection)?;
    let mut info = Map::new();
    let mut is_known = false;
    if tables.contains("agent_conversations") {
        let sql = format!(
            "SELECT 0{} FROM agent_conversations WHERE conversation_id = ?1",
            select_cells(&["conversation_data"])
        );
        let read = |row: &Row<'_>| Ok(cell_text(row.get_ref(1)?));
        let data = connection.query_row(&sql, [id], read).optional()?;
        is_known = data.is_some();
        let data: Map<String, Json> =
            serde_json::from_str(&data.unwrap_or_default()).unwrap_or_default();
        info.extend(data.into_iter().filter(|(key, _)| FIELDS.contains(&key.as_str())));
    }

    let has_queries = tables.contains("ai_queries");
    let mut exchanges = if has_queries { read_exchanges(connection, id)? } else { Vec::new() };
    is_known |= !exchanges.is_empty();
    let mut models = exchanges.iter().rev().map(|exchange| &exchange.record["model"]);
    if let Some(model) = models.find(|model| model.as_str().is_some_and(|it| !it.is_empty())) {
        info.insert("model".to_owned(), model.clone());
    }

    let mut records = Vec::new();
    if tables.contains("agent_tasks") {
        for task in read_tasks(connection, id)? {
            if task.parent.is_none() && info.get("title").is_none() {
                info.insert("title".to_owned(), task.title.into());
            }
            for TaskMessage { time_us, record } in task.messages {
                let time_us = time_us.or_else(|| last_time(&records)).unwrap_or(0);
                records.push(OrderedRecord { time_us, record });
            }
        }
        if has_queries {
            mark_moved(connection, id, &exchanges, &mut records)?;
            remove_repeated(&records, &mut exchanges);
        }
    }
    records.extend(exchanges);
    if !is_known {
        return Ok(None);
    }

    records.sort_by_key(|record| record.time_us);
    info.insert("id".to_owned(), id.into());
    // The sums of a conversation have no time of their own. Records without a time are at 0 or at the
    // end of time.
    let times = records.iter().map(|record| record.time_us);
    let end = times.filter(|time| (1..i64::MAX).contains(time)).max();
    info.insert("end".to_owned(), end.into());
    let records: Vec<String> = records.iter().map(|record| record.record.to_string()).collect();
    Ok(Some(document_bytes(&info_json(STORE, info), &records)))
}

fn last_time(records: &[OrderedRecord]) -> Option<i64> {
    records.last().map(|record| record.time_us)
}

/// Reads the tasks of a conversation. If they do not fit into a document, the largest are left out.
fn read_tasks(connection: &Connection, id: &str) -> Result<Vec<Task>> {
    let sql =
        "SELECT id, octet_length(task) FROM agent_tasks WHERE conversation_id = ?1 ORDER BY id";
    let mut statement = connection.prepare(sql)?;
    let read = |row: &Row<'_>| {
        let bytes = cell_integer(row.get_ref(1)?).max(0).cast_unsigned();
        Ok(Piece { bytes, id: format!("{:020}", cell_integer(row.get_ref(0)?)) })
    };
    let pieces: Vec<Piece> = statement.query_map([id], read)?.collect::<Result<_>>()?;
    let all = pieces.iter().map(|piece| Piece { bytes: piece.bytes, id: piece.id.clone() });
    let limit = SizeLimit::of_session(all.collect(), 0);
    let mut select = connection.prepare("SELECT task FROM agent_tasks WHERE id = ?1")?;
    let mut tasks = Vec::new();
    for piece in pieces {
        if limit.includes(&piece) {
            let number = piece.id.parse::<i64>().unwrap_or_default();
            let task = select.query_row([number], |row| {
                let bytes = cell_bytes(row.get_ref(0)?);
                Ok(read_task(bytes).unwrap_or_else(|| unreadable(&piece, "unreadable")))
            })?;
            tasks.push(task);
        } else {
            tasks.push(unreadable(&piece, OVERSIZED_RECORD));
        }
    }
    Ok(tasks)
}

/// Returns a task whose only message says that it was not read.
fn unreadable(piece: &Piece, kind: &str) -> Task {
    let record = json!({"kind": kind, "id": format!("task {}", piece.id), "bytes": piece.bytes});
    let messages = vec![TaskMessage { time_us: None, record }];
    Task { parent: Some(String::new()), title: String::new(), messages }
}

/// Reads the requests of a conversation, each with its prompt. A request that was cancelled or failed
/// has a second record where it ended.
fn read_exchanges(connection: &Connection, id: &str) -> Result<Vec<OrderedRecord>> {
    const COLUMNS: &[&str] =
        &["exchange_id", "start_ts", "working_directory", "model_id", "output_status", "input"];
    let cells = known_sql(connection, "ai_queries", &format!("id{}", select_cells(COLUMNS)))?;
    // The third cell is the time.
    let sql = format!("SELECT {cells} FROM ai_queries WHERE conversation_id = ?1 ORDER BY 3, 1");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([id])?;
    let mut records: Vec<OrderedRecord> = Vec::new();
    let mut ended: Option<Json> = None;
    while let Some(row) = rows.next()? {
        let cell = |at: usize| row.get_ref(at).map(cell_text);
        let (exchange, start) = (cell(1)?, cell(2)?);
        let time_us = parse_unzoned(&start).or_else(|| last_time(&records)).unwrap_or(0);
        if let Some(record) = ended.take() {
            records.push(OrderedRecord { time_us, record });
        }
        let record = json!({"kind": "exchange", "id": exchange, "time": time_us,
            "text": query_text(&cell(6)?), "cwd": cell(3)?, "model": cell(4)?});
        records.push(OrderedRecord { time_us, record });
        let status = cell(5)?.trim_matches('"').to_owned();
        if matches!(status.as_str(), "Cancelled" | "Failed") {
            ended = Some(json!({"kind": "exchange_end", "id": format!("{exchange} end"),
                "status": status}));
        }
    }
    records.extend(ended.map(|record| OrderedRecord { time_us: i64::MAX, record }));
    Ok(records)
}

/// Returns the prompt in the input of a request: `[{"Query":{"text":"..."}}]`.
fn query_text(input: &str) -> Option<String> {
    let input: Json = serde_json::from_str(input).ok()?;
    let mut queries = input.as_array()?.iter().filter_map(|item| item["Query"]["text"].as_str());
    queries.find(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Returns the prompt of a record of a task.
fn task_prompt(record: &Json) -> Option<&str> {
    record["text"].as_str().filter(|_| record["kind"] == "user_query")
}

/// Marks the prompts of tasks that were typed in another conversation, from which Warp moved them to
/// this one, with these requests. The other conversations are read only if a prompt has no request.
fn mark_moved(
    connection: &Connection,
    id: &str,
    exchanges: &[OrderedRecord],
    records: &mut [OrderedRecord],
) -> Result<()> {
    let typed: HashSet<&str> =
        exchanges.iter().filter_map(|exchange| exchange.record["text"].as_str()).collect();
    let prompts = records.iter().filter_map(|record| task_prompt(&record.record));
    let others: HashSet<&str> = prompts.filter(|prompt| !typed.contains(prompt)).collect();
    if others.is_empty() {
        return Ok(());
    }

    let input = known_sql(connection, "ai_queries", "input")?;
    let sql = format!(
        "SELECT json_extract({input}, '$[0].Query.text') FROM ai_queries \
         WHERE conversation_id <> ?1 AND json_valid({input})"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([id])?;
    let mut moved = HashSet::new();
    while let Some(row) = rows.next()? {
        let text = cell_text(row.get_ref(0)?);
        if others.contains(text.as_str()) {
            moved.insert(text);
        }
    }
    for OrderedRecord { record, .. } in records {
        if task_prompt(record).is_some_and(|prompt| moved.contains(prompt)) {
            record["is_moved"] = true.into();
        }
    }
    Ok(())
}

/// Removes the prompts of requests that are in the tasks, each once.
fn remove_repeated(tasks: &[OrderedRecord], exchanges: &mut [OrderedRecord]) {
    let mut prompts: HashMap<&str, usize> = HashMap::new();
    for prompt in tasks.iter().filter_map(|record| task_prompt(&record.record)) {
        *prompts.entry(prompt).or_default() += 1;
    }
    for OrderedRecord { record, .. } in exchanges {
        let count = record["text"].as_str().and_then(|text| prompts.get_mut(text));
        if let Some(count) = count.filter(|count| **count > 0) {
            *count -= 1;
            record["text"] = Json::Null;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a field of a message of Protocol Buffers.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2];
        let mut length = content.len();
        while length > 127 {
            bytes.push((length & 127) as u8 | 128);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn moved_prompts_are_found_with_one_reading_of_the_other_conversations() {
        const COUNT: usize = 10_000;
        let mut connection = Connection::open_in_memory().expect("opens");
        connection
            .execute_batch(
                "CREATE TABLE agent_conversations (conversation_id, conversation_data);
                CREATE TABLE agent_tasks (id INTEGER PRIMARY KEY, conversation_id, task);
                CREATE TABLE ai_queries (id INTEGER PRIMARY KEY, exchange_id, conversation_id,
                start_ts, input, output_status);
                INSERT INTO agent_conversations VALUES ('c', '{}')",
            )
            .expect("creates");
        let transaction = connection.transaction().expect("begins");
        let mut task = Vec::new();
        for number in 0..COUNT {
            let text = format!("prompt {number}");
            let query = field(2, &field(1, text.as_bytes()));
            task.extend(field(5, &[field(1, text.as_bytes()), query].concat()));
            let conversation = if number % 2 == 0 { "c" } else { "other" };
            let input = json!([{"Query": {"text": text}}]).to_string();
            let sql = "INSERT INTO ai_queries (exchange_id, conversation_id, input) \
                VALUES (?1, ?2, ?3)";
            transaction.execute(sql, (number.to_string(), conversation, input)).expect("inserts");
        }
        let sql = "INSERT INTO agent_tasks (conversation_id, task) VALUES ('c', ?1)";
        transaction.execute(sql, [task]).expect("inserts");
        transaction.commit().expect("commits");

        let document = read_document(&connection, "c").expect("reads").expect("is there");
        let document: Json = serde_json::from_slice(&document).expect("is JSON");
        let records = document["messages"].as_array().expect("records");
        let count = |is_counted: &dyn Fn(&Json) -> bool| {
            records.iter().filter(|record| is_counted(record)).count()
        };
        assert_eq!(count(&|record| record["is_moved"] == true), COUNT / 2);
        assert_eq!(count(&|record| record["kind"] == "user_query"), COUNT);
        assert_eq!(
            count(&|record| record["kind"] == "exchange" && record["text"].is_null()),
            COUNT / 2
        );
    }
}
