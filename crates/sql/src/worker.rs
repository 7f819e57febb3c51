//! The process that runs a query: it checks the query, opens DuckDB with access only to the allowed
//! files, and writes the rows. The operating system enforces these limits as well.

use std::io::{self, BufRead, Read, Write};

use arrow::ipc::reader::StreamReader;
use duckdb::{Config, Connection};
use schemas::limits;
use schemas::table::{ColumnType, SESSIONS};
use schemas::tool::query::{QueryColumn, QueryFormat};
use serde_json::Value;

use super::error::Fault;
use super::hint::SentQuery;
use super::output::RowWriter;
use super::plan::ColumnPlan;
use super::protocol::{WorkerReport, WorkerRequest};
use super::query::SqlSummary;
use super::views::{SESSION_TABLE, ViewDefinition, quote_text};
use super::{guard, hint};

/// Answers the request on `input`: a line, and the rows of sessions that it names. Writes the rows to `out` and the
/// outcome to `report`.
pub fn serve_request(
    mut input: impl BufRead + Send + 'static,
    out: Box<dyn Write + Send>,
    report: &mut dyn Write,
) -> io::Result<()> {
    let mut text = Vec::new();
    input.read_until(b'\n', &mut text)?;
    let request: WorkerRequest = serde_json::from_slice(&text).map_err(io::Error::other)?;
    let mut sessions = vec![0; request.session_bytes];
    input.read_exact(&mut sessions)?;
    abort_at_end_of(input)?;
    limit_resources();
    let result = match run_query(&request, &sessions, out) {
        Ok(summary) => WorkerReport::Done(summary),
        Err(error) => WorkerReport::Failed(error),
    };
    serde_json::to_writer(&mut *report, &result).map_err(io::Error::other)?;
    report.write_all(b"\n")?;
    report.flush()
}

/// Aborts this process when `input` ends. The requesting process keeps it open while it waits; if
/// that process is killed, it cannot end the query itself.
fn abort_at_end_of(mut input: impl Read + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        std::process::abort();
    })?;
    Ok(())
}

/// Limits the resources of this process to those that a query needs: memory and processor time.
/// It may not write files. The limits also apply if the requesting process no longer waits.
#[cfg(unix)]
fn limit_resources() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let threads = limits::SQL_THREADS.unsigned_abs();
    for (resource, maximum) in [
        (Resource::Data, limits::SQL_MEMORY_MB << 20),
        (Resource::Cpu, 2 * threads * limits::SQL_SECONDS),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        // If the system does not know a limit, only DuckDB's own limit applies.
        let _ = setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) });
    }
}

#[cfg(not(unix))]
fn limit_resources() {}

/// Checks and runs a query, and writes its rows to `out`.
fn run_query(
    request: &WorkerRequest,
    sessions: &[u8],
    out: Box<dyn Write + Send>,
) -> Result<SqlSummary, Fault> {
    let sql = request.sql.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    let connection = open_duckdb().map_err(|error| engine_fault(&error))?;
    let parsed = parse_query(&connection, sql)?;
    let used = guard::check_query(sql, &parsed)?;
    create_session_table(&connection, sessions)
        .map_err(|error| Fault::Engine(error.to_string()))?;
    create_views(&connection, request, &used).map_err(|error| engine_fault(&error))?;
    let plan = plan_columns(&connection, request, sql, &used)?;

    let select = plan.select_sql(sql, request.output.max_rows);
    let sent = SentQuery { sql, before: plan.prefix_bytes(), used: &used };
    let mut statement =
        connection.prepare(&select).map_err(|error| hint::query_fault(&error, &sent))?;
    let schema =
        statement.stream_arrow([]).map_err(|error| hint::query_fault(&error, &sent))?.get_schema();

    let mut rows =
        RowWriter::new(&plan, schema, request.output, out).map_err(|error| output_fault(&error))?;
    while let Some(chunk) = statement.step().map_err(|error| hint::query_fault(&error, &sent))? {
        if !rows.write_batch(&chunk.into()).map_err(|error| output_fault(&error))? {
            break;
        }
    }
    rows.finish().map_err(|error| output_fault(&error))
}

/// Returns the tree of a query, as DuckDB's parser builds it.
fn parse_query(connection: &Connection, sql: &str) -> Result<Value, Fault> {
    let sent = SentQuery { sql, before: 0, used: &[] };
    let tree: String = connection
        .query_row("SELECT json_serialize_sql(?::VARCHAR)", [sql], |row| row.get(0))
        .map_err(|error| hint::query_fault(&error, &sent))?;
    serde_json::from_str(&tree)
        .map_err(|_| Fault::mistake("The query is nested too deeply. Use WITH to name its parts"))
}

/// Opens DuckDB in memory, with as few features as needed.
fn open_duckdb() -> duckdb::Result<Connection> {
    let config = Config::default()
        .threads(limits::SQL_THREADS)?
        .max_memory(&format!("{}MB", limits::SQL_ENGINE_MB))?
        .enable_autoload_extension(false)?;
    let connection = Connection::open_in_memory_with_flags(config)?;
    connection.execute_batch("SET temp_directory = ''; SET errors_as_json = true;")?;
    Ok(connection)
}

/// Creates the table of sessions from an Arrow stream, unless the query names no session.
fn create_session_table(
    connection: &Connection,
    rows: &[u8],
) -> Result<(), Box<dyn std::error::Error>> {
    if rows.is_empty() {
        return Ok(());
    }
    let columns: Vec<_> = SESSIONS
        .columns
        .iter()
        .map(|column| {
            let is_time = column.kind == ColumnType::Timestamp;
            let kind = if is_time { "TIMESTAMPTZ" } else { column.kind.sql_type() };
            format!("{} {kind}", column.name)
        })
        .collect();
    connection.execute_batch(&format!("CREATE TABLE {SESSION_TABLE}({})", columns.join(", ")))?;
    let mut appender = connection.appender(SESSION_TABLE)?;
    for batch in StreamReader::try_new(rows, None)? {
        appender.append_record_batch(batch?)?;
    }
    appender.flush()?;
    Ok(())
}

/// Creates the views that the query names and those that they need, then locks everything else.
fn create_views(
    connection: &Connection,
    request: &WorkerRequest,
    used: &[&str],
) -> duckdb::Result<()> {
    let mut wanted: Vec<&ViewDefinition> = Vec::new();
    let mut open: Vec<&str> = used.to_vec();
    while let Some(name) = open.pop() {
        let Some(view) = request.views.iter().find(|view| view.name == name) else { continue };
        open.extend(view.needs.iter().map(String::as_str));
        // Views are created in reverse order, so the last place comes before every view that
        // names it.
        wanted.retain(|other| other.name != name);
        wanted.push(view);
    }
    for view in wanted.iter().rev() {
        connection.execute_batch(&format!("CREATE VIEW {} AS {}", view.name, view.sql))?;
    }

    let files: Vec<_> = request.files.iter().map(|file| quote_text(file)).collect();
    connection.execute_batch(&format!(
        "SET allowed_paths = [{}]; SET enable_external_access = false; SET lock_configuration = true;",
        files.join(", ")
    ))
}

/// Plans the columns of the query and how each is read.
fn plan_columns(
    connection: &Connection,
    request: &WorkerRequest,
    sql: &str,
    used: &[&str],
) -> Result<ColumnPlan, Fault> {
    const DESCRIBE: &str = "DESCRIBE SELECT * FROM (\n";
    let sent = SentQuery { sql, before: DESCRIBE.len(), used };
    let mut statement = connection
        .prepare(&format!("{DESCRIBE}{sql}\n)"))
        .map_err(|error| hint::query_fault(&error, &sent))?;
    let columns = statement
        .query_map([], |row| Ok(QueryColumn { name: row.get(0)?, sql_type: row.get(1)? }))
        .and_then(Iterator::collect::<duckdb::Result<Vec<_>>>)
        .map_err(|error| hint::query_fault(&error, &sent))?;
    if columns.len() > limits::SQL_COLUMNS_MAX {
        return Err(Fault::TooManyColumns(columns.len()));
    }
    let is_binary = request.output.format.is_some_and(QueryFormat::is_binary);
    Ok(ColumnPlan::new(columns, is_binary))
}

fn engine_fault(error: &duckdb::Error) -> Fault {
    Fault::Engine(hint::describe_error(error))
}

fn output_fault(error: &io::Error) -> Fault {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return Fault::OutputTooLarge;
    }
    Fault::Unwritten(error.to_string())
}
