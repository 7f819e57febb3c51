//! SQL over a snapshot: DuckDB in memory, views over the live segments. Only this module names
//! duckdb, and DuckDB is opened only when a query comes.

use std::fmt::Write as _;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use duckdb::Connection;
use schemas::table::{Column, ColumnType, EVENTS, PROBLEMS, SESSIONS, Table};
use schemas::{ErrorCode, ToolError};
use serde::Serialize;
use serde_json::Value;

use crate::clean::clean;
use crate::error::store_error;
use crate::store::{Snapshot, Store};

/// Tables that can be queried.
const VIEWS: &[Table] = &[EVENTS, SESSIONS, PROBLEMS];

/// Most memory a query may take, and the time after which it is stopped.
const MEMORY: &str = "512MB";
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The rows of a query.
#[derive(Debug, Serialize)]
pub struct ResultTable {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// More rows were there than asked for.
    pub truncated: bool,
}

/// The views and their columns, as text.
pub fn schema_text() -> String {
    let mut out = String::new();
    for table in VIEWS {
        let _ = writeln!(out, "{}: {}", table.name, table.doc);
        for column in public(table) {
            let _ =
                writeln!(out, "    {:<20} {:<10} {}", column.name, sql_type(column), column.doc);
        }
        out.push('\n');
    }
    out
}

fn public(table: &Table) -> impl Iterator<Item = &Column> {
    table.columns.iter().filter(|column| !column.internal)
}

const fn sql_type(column: &Column) -> &'static str {
    match column.kind {
        ColumnType::Text => "VARCHAR",
        ColumnType::Int => "INTEGER",
        ColumnType::BigInt => "BIGINT",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Timestamp => "TIMESTAMP",
        ColumnType::TextList => "VARCHAR[]",
    }
}

/// Runs one SELECT over the present generation and returns at most `max_rows` rows.
pub fn query(store: &Store, sql: &str, max_rows: usize) -> Result<ResultTable, ToolError> {
    let snapshot = store.snapshot().map_err(store_error)?;
    let connection = open(&snapshot, store).map_err(|error| sql_error(&error))?;
    only_a_select(&connection, sql)?;
    // Without a limit of ours DuckDB would make the whole result before the first row is seen.
    let body = sql.trim().trim_end_matches(';');
    let limited = format!("SELECT * FROM (\n{body}\n) LIMIT {}", max_rows + 1);
    let (done, watched) = std::sync::mpsc::channel::<()>();
    let interrupt = connection.interrupt_handle();
    let watch = std::thread::spawn(move || {
        let late =
            watched.recv_timeout(TIME_LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if late {
            interrupt.interrupt();
        }
        late
    });
    let result = fetch(&connection, &limited, max_rows);
    drop(done);
    match (result, watch.join()) {
        (Err(_), Ok(true)) => Err(ToolError::new(
            ErrorCode::SqlError,
            format!(
                "The query was stopped after {} s. Narrow it with WHERE or aggregate less",
                TIME_LIMIT.as_secs()
            ),
        )),
        (result, _) => result,
    }
}

fn fetch(connection: &Connection, sql: &str, max_rows: usize) -> Result<ResultTable, ToolError> {
    let mut statement = connection.prepare(sql).map_err(|error| sql_error(&error))?;
    let batches = statement.query_arrow([]).map_err(|error| sql_error(&error))?;
    let columns = batches.get_schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut table = ResultTable { columns, rows: Vec::new(), truncated: false };
    for batch in batches {
        for row in 0..batch.num_rows() {
            if table.rows.len() == max_rows {
                table.truncated = true;
                return Ok(table);
            }
            table.rows.push(row_values(&batch, row));
        }
    }
    Ok(table)
}

/// A connection that can read the views and nothing else, its configuration locked.
fn open(snapshot: &Snapshot, store: &Store) -> duckdb::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    let mut setup = String::new();
    for table in VIEWS {
        let _ = writeln!(setup, "{};", view(snapshot, table));
    }
    let segments = quote(&store.dir().join("segments").to_string_lossy());
    let _ = write!(
        setup,
        "SET temp_directory = ''; SET memory_limit = '{MEMORY}'; SET threads = 2; SET autoinstall_known_extensions = false; \
         SET autoload_known_extensions = false; SET allowed_directories = [{segments}]; \
         SET enable_external_access = false; SET lock_configuration = true;"
    );
    connection.execute_batch(&setup)?;
    Ok(connection)
}

/// The definition of a view over the live rows of a table.
fn view(snapshot: &Snapshot, table: &Table) -> String {
    let with_rows =
        snapshot.segments().iter().filter(|segment| segment.entry.file(table.name).is_some());
    let files: Vec<_> =
        with_rows.map(|segment| quote(&segment.path(table.name).to_string_lossy())).collect();
    let name = table.name;
    let columns: Vec<_> = public(table).collect();
    if files.is_empty() {
        let nulls: Vec<_> =
            columns.iter().map(|c| format!("NULL::{} AS {}", sql_type(c), c.name)).collect();
        return format!("CREATE VIEW {name} AS SELECT {} WHERE false", nulls.join(", "));
    }
    let select: Vec<_> = columns
        .iter()
        .map(|column| match column.kind {
            // Plain timestamps in UTC: their type with a zone would need ICU to be shown.
            ColumnType::Timestamp => format!("make_timestamp(epoch_us(t.{0})) AS {0}", column.name),
            _ => format!("t.{}", column.name),
        })
        .collect();
    let rows = format!("read_parquet([{}]) t", files.join(", "));
    let live = match name {
        // The row with the highest segment number of a session counts.
        "sessions" => {
            "QUALIFY row_number() OVER (PARTITION BY t.session_id ORDER BY t.segment DESC) = 1"
                .to_owned()
        }
        "events" => {
            let superseded = snapshot.superseded();
            let dead: Vec<_> = superseded
                .map(|row| {
                    format!(
                        "(t.session_id = {} AND t.segment < {})",
                        quote(&row.session_id),
                        row.live_from
                    )
                })
                .collect();
            if dead.is_empty() {
                String::new()
            } else {
                format!("WHERE NOT ({})", dead.join(" OR "))
            }
        }
        _ => String::new(),
    };
    format!("CREATE VIEW {name} AS SELECT {} FROM {rows} {live}", select.join(", "))
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Asks DuckDB's own parser whether `sql` is exactly one SELECT.
fn only_a_select(connection: &Connection, sql: &str) -> Result<(), ToolError> {
    let json: String = connection
        .query_row(&format!("SELECT json_serialize_sql({})", quote(sql)), [], |row| row.get(0))
        .map_err(|error| sql_error(&error))?;
    let parsed: Value = serde_json::from_str(&json).unwrap_or_default();
    if parsed["error"] == true {
        let message = parsed["error_message"].as_str().unwrap_or("not a SELECT");
        let code = if parsed["error_type"] == "parser" {
            ErrorCode::SqlError
        } else {
            ErrorCode::SqlNotAllowed
        };
        return Err(ToolError::new(
            code,
            format!(
                "{message}. One SELECT over the views events, sessions and problems is allowed"
            ),
        ));
    }
    if parsed["statements"].as_array().map(Vec::len) != Some(1) {
        return Err(ToolError::new(ErrorCode::SqlNotAllowed, "Give exactly one SELECT"));
    }
    Ok(())
}

fn sql_error(error: &duckdb::Error) -> ToolError {
    let message = match error {
        duckdb::Error::DuckDBFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    };
    ToolError::new(
        ErrorCode::SqlError,
        format!("{message}\n`sessions query --schema` shows the views and their columns"),
    )
}

fn row_values(batch: &RecordBatch, row: usize) -> Vec<Value> {
    batch.columns().iter().map(|column| value(column, row)).collect()
}

fn value(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        other => {
            let options =
                FormatOptions::new().with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.3fZ"));
            let text = ArrayFormatter::try_new(column, &options)
                .map(|format| format.value(row).to_string());
            let text = clean(&text.unwrap_or_default());
            match text.parse::<i64>() {
                Ok(number) if other.is_integer() => number.into(),
                _ => text.into(),
            }
        }
    }
}

impl ResultTable {
    /// What to say beside the rows.
    pub fn note(&self) -> Option<String> {
        self.truncated
            .then(|| format!("only the first {} rows; --max-rows shows more", self.rows.len()))
    }
}
