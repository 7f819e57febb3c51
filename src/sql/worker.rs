//! The process that runs a query: it checks the query, opens DuckDB with access only to the allowed
//! files, and writes the rows. The operating system enforces these limits as well.

use std::io::{self, BufRead, Read, Write};

use duckdb::{Config, Connection};
use schemas::limits;
use schemas::tool::query::QueryColumn;
use serde_json::Value;

use super::error::Fault;
use super::output::Rows;
use super::plan::Plan;
use super::protocol::{Report, Request};
use super::query::Summary;
use super::views::{Definition, quote};
use super::{guard, hint};

/// Answers the request on `input`, which must be its only line. Writes the rows to `out` and the
/// outcome to `report`.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    out: Box<dyn Write + Send>,
    report: &mut dyn Write,
) -> io::Result<()> {
    let mut text = Vec::new();
    input.read_until(b'\n', &mut text)?;
    let request: Request = serde_json::from_slice(&text).map_err(io::Error::other)?;
    end_with(input)?;
    confine();
    let result = match answer(&request, out) {
        Ok(summary) => Report::Done(summary),
        Err(error) => Report::Failed(error),
    };
    serde_json::to_writer(&mut *report, &result).map_err(io::Error::other)?;
    report.write_all(b"\n")?;
    report.flush()
}

/// Aborts this process when `input` ends. The requesting process keeps it open while it waits; if
/// that process is killed, it cannot end the query itself.
fn end_with(mut input: impl Read + Send + 'static) -> io::Result<()> {
    let watch = move || {
        let _ = io::copy(&mut input, &mut io::sink());
        std::process::abort();
    };
    std::thread::Builder::new().spawn(watch).map(drop)
}

/// Limits the resources of this process to those that a query needs: memory, processor time (even
/// if nobody waits any more), and no writing of files.
#[cfg(unix)]
fn confine() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let threads = limits::SQL_THREADS.unsigned_abs();
    for (resource, most) in [
        (Resource::Data, limits::SQL_MEMORY_MB << 20),
        (Resource::Cpu, 2 * threads * limits::SQL_SECONDS),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        // If the system does not know a limit, only DuckDB's own limit applies.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

#[cfg(not(unix))]
fn confine() {}

fn answer(request: &Request, out: Box<dyn Write + Send>) -> Result<Summary, Fault> {
    let sql = request.sql.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    let connection = open().map_err(|error| engine_error(&error))?;
    let parsed: String = connection
        .query_row("SELECT json_serialize_sql(?::VARCHAR)", [sql], |row| row.get(0))
        .map_err(|error| hint::sql_error(&error, sql, 0, &[]))?;
    let parsed: Value = serde_json::from_str(&parsed).map_err(|_| {
        Fault::mistake("The query is nested too deeply. Use WITH to name its parts")
    })?;
    let used = guard::views_of(sql, &parsed)?;
    create(&connection, request, &used).map_err(|error| engine_error(&error))?;
    let plan = plan(&connection, request, sql, &used)?;
    let select = plan.select(sql, request.max_rows);
    let broken = |error: &duckdb::Error| hint::sql_error(error, sql, plan.before(), &used);
    let mut statement = connection.prepare(&select).map_err(|error| broken(&error))?;
    let schema = statement.stream_arrow([]).map_err(|error| broken(&error))?.get_schema();
    let mut rows = Rows::new(&plan, schema, request, out).map_err(|error| unwritten(&error))?;
    while let Some(chunk) = statement.step().map_err(|error| broken(&error))? {
        if !rows.write(&chunk.into()).map_err(|error| unwritten(&error))? {
            break;
        }
    }
    rows.finish().map_err(|error| unwritten(&error))
}

/// Opens DuckDB in memory, with as few features as needed.
fn open() -> duckdb::Result<Connection> {
    let config = Config::default()
        .threads(limits::SQL_THREADS)?
        .max_memory(&format!("{}MB", limits::SQL_ENGINE_MB))?
        .enable_autoload_extension(false)?;
    let connection = Connection::open_in_memory_with_flags(config)?;
    connection.execute_batch("SET temp_directory = ''; SET errors_as_json = true;")?;
    Ok(connection)
}

/// Creates the views that the query names and those that they need, then locks everything else.
fn create(connection: &Connection, request: &Request, used: &[&str]) -> duckdb::Result<()> {
    let mut wanted: Vec<&Definition> = Vec::new();
    let mut open: Vec<&str> = used.to_vec();
    while let Some(name) = open.pop() {
        let definition = request.views.iter().find(|view| view.name == name);
        if let Some(definition) = definition {
            open.extend(definition.needs.iter().map(String::as_str));
            // Views are created in reverse order, so the last place comes before every view that
            // names it.
            wanted.retain(|view| view.name != name);
            wanted.push(definition);
        }
    }
    for view in wanted.iter().rev() {
        connection.execute_batch(&format!("CREATE VIEW {} AS {}", view.name, view.sql))?;
    }
    let files: Vec<_> = request.files.iter().map(|file| quote(file)).collect();
    connection.execute_batch(&format!(
        "SET allowed_paths = [{}]; SET enable_external_access = false; SET lock_configuration = true;",
        files.join(", ")
    ))
}

/// Plans the columns of the query and how each is read.
fn plan(
    connection: &Connection,
    request: &Request,
    sql: &str,
    used: &[&str],
) -> Result<Plan, Fault> {
    const DESCRIBE: &str = "DESCRIBE SELECT * FROM (\n";
    let broken = |error: &duckdb::Error| hint::sql_error(error, sql, DESCRIBE.len(), used);
    let mut statement =
        connection.prepare(&format!("{DESCRIBE}{sql}\n)")).map_err(|error| broken(&error))?;
    let columns = statement
        .query_map([], |row| Ok(QueryColumn { name: row.get(0)?, sql_type: row.get(1)? }))
        .and_then(Iterator::collect::<duckdb::Result<Vec<_>>>)
        .map_err(|error| broken(&error))?;
    if columns.len() > limits::SQL_COLUMNS_MAX {
        return Err(Fault::TooManyColumns(columns.len()));
    }
    let binary = request.format.is_some_and(schemas::tool::query::QueryFormat::is_binary);
    Ok(Plan::new(columns, binary))
}

fn engine_error(error: &duckdb::Error) -> Fault {
    Fault::Engine(hint::words(error))
}

fn unwritten(error: &io::Error) -> Fault {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return Fault::OutputTooLarge;
    }
    Fault::Unwritten(error.to_string())
}
