//! Statements of users, and columns for sums.

use arrow::array::RecordBatch;
use schemas::table::{EVENTS, EventColumn, SESSIONS};
use schemas::view::VIEWS;
use schemas::{ErrorCode, ToolError};
use spark_connect_proto::Relation;
use spark_connect_proto::expression::literal::LiteralType;

use super::connection::RunError;
use super::engine::SparkEngine;
use super::failure::{describe_failure, first_line, is_session_lost, is_unavailable};
use super::loader::{split_sessions, unreadable, with_store_types};
use super::pruning::object_path;
use super::relation::{Parameters, read_files, select};
use super::statement::check_statement;
use crate::lake::{LakeCatalog, LakeEvents};
use tools::{ColumnPart, ColumnScan, Examined, Stop, WantedColumns};

/// Computed columns of the views.
const COMPUTED: [(&str, &str); 2] = [
    ("event_id", "concat(session_id, ':', event_index) AS event_id"),
    ("duration_ms", "(unix_micros(ended_at) - unix_micros(started_at)) DIV 1000 AS duration_ms"),
];

/// Columns that only a store can compute.
const OMITTED: [&str; 2] = ["cost_usd", "cost_as_logged"];

/// Runs a statement over the views `sessions` and `events`. It cannot be anything but a query, because
/// it is a subquery of another one.
pub(super) fn run_query(
    engine: &SparkEngine,
    sql: &str,
    max_rows: usize,
    stop: Stop<'_>,
) -> Result<(Vec<RecordBatch>, Examined), ToolError> {
    check_statement(sql)?;
    let catalog = engine.catalog()?;
    let statement = sql.trim().trim_end_matches(';');
    let sql = format!("SELECT * FROM (\n{statement}\n) LIMIT {max_rows}");
    let views = vec![
        ("sessions", sessions_view(engine, &catalog)),
        ("events", events_view(engine, &catalog)),
    ];
    let relation = select(&sql, Parameters::default(), views);
    let mut batches = Vec::new();
    let result = engine.connection().try_run(&relation, stop, &mut |batch| {
        batches.push(batch);
        Ok(true)
    });
    match result {
        Ok(()) => {}
        Err(RunError::Tool(error)) => return Err(error),
        Err(RunError::Spark(error)) if is_unavailable(&error) || is_session_lost(&error) => {
            return Err(describe_failure(engine.connection().address(), &error));
        }
        Err(RunError::Spark(error)) => {
            let message = format!(
                "Spark refused the query: {}. With --engine a query is Spark SQL over the views \
                sessions and events; the other views and functions are available after `sessions \
                pull`",
                first_line(&error.get_message())
            );
            return Err(ToolError::new(ErrorCode::SqlError, message));
        }
    }
    let description = format!("Spark ran the query over {} objects", catalog.object_count());
    Ok((batches, Examined { description, ..Examined::default() }))
}

/// Prepares to read columns of the events of sessions with one query.
pub(super) fn plan_scan<'s>(
    engine: &'s SparkEngine,
    wanted: &'s WantedColumns<'s>,
) -> Result<ColumnScan<'s>, ToolError> {
    let catalog = engine.catalog()?;
    let selected = wanted.snapshot.sessions().iter().zip(wanted.is_selected);
    let selected = selected.filter(|(_, is_selected)| **is_selected);
    let sessions = selected.filter_map(|(row, _)| catalog.sessions.get(row.id()));
    let objects = sessions.flat_map(|session| &session.objects);
    let count = objects.clone().count();
    let paths = event_paths(engine, &catalog, objects);
    let description = format!("Spark read {count} of {} objects", catalog.object_count());
    let examined = Examined { description, ..Examined::default() };
    if paths.is_empty() {
        return Ok(ColumnScan { parts: Vec::new(), examined });
    }
    let mut parameters = Parameters::default();
    let mut conditions = vec!["true".to_owned()];
    if let Some(since) = wanted.since {
        let since = parameters.bind(LiteralType::Timestamp(since));
        conditions.push(format!("timestamp >= {since}"));
    }
    if let Some(until) = wanted.until {
        let until = parameters.bind(LiteralType::Timestamp(until));
        conditions.push(format!("timestamp < {until}"));
    }
    let mut names = vec![EventColumn::SessionId.name()];
    for column in &wanted.columns {
        if !names.contains(&column.name()) {
            names.push(column.name());
        }
    }
    let sql = format!(
        "SELECT {} FROM events WHERE {} ORDER BY session_id, event_index",
        names.join(", "),
        conditions.join(" AND ")
    );
    let relation = select(&sql, parameters, vec![("events", read_files(paths, &EVENTS))]);
    let part: ColumnPart<'s> = Box::new(move |take| {
        engine.connection().run(&relation, wanted.stop, &mut |batch| {
            let batch = with_store_types(&batch).map_err(|error| unreadable(&error))?;
            for (id, rows) in split_sessions(&batch) {
                let Some(session) = wanted.snapshot.session_position(id) else { continue };
                if !take(session, &rows) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    });
    Ok(ColumnScan { parts: vec![part], examined })
}

fn events_view(engine: &SparkEngine, catalog: &LakeCatalog) -> Relation {
    let objects = catalog.sessions.values().flat_map(|session| &session.objects);
    public_view("events", read_files(event_paths(engine, catalog, objects), &EVENTS))
}

/// Returns the paths of files with exactly the rows of these objects.
fn event_paths<'c>(
    engine: &SparkEngine,
    catalog: &'c LakeCatalog,
    objects: impl Iterator<Item = &'c LakeEvents> + Clone,
) -> Vec<String> {
    let keys = catalog.scanned_keys(objects);
    keys.into_iter().map(|key| object_path(engine.folder(), key)).collect()
}

fn sessions_view(engine: &SparkEngine, catalog: &LakeCatalog) -> Relation {
    let keys = catalog.row_keys().into_iter();
    let paths = keys.map(|key| object_path(engine.folder(), key)).collect();
    public_view("sessions", read_files(paths, &SESSIONS))
}

/// Returns the columns that a view has in a store, without those that only a store can compute.
fn public_view(name: &str, rows: Relation) -> Relation {
    let view = VIEWS.iter().find(|view| view.name == name);
    let mut columns = Vec::new();
    for column in view.into_iter().flat_map(|view| view.columns()) {
        if OMITTED.contains(&column.name) {
            continue;
        }
        let computed = COMPUTED.iter().find(|(name, _)| *name == column.name);
        let is_stored =
            EVENTS.columns.iter().chain(SESSIONS.columns).any(|c| c.name == column.name);
        match computed {
            Some((_, sql)) if name == "sessions" || !is_stored => columns.push((*sql).to_owned()),
            Some(_) | None => columns.push(format!("`{}`", column.name)),
        }
    }
    let sql = format!("SELECT {} FROM objects", columns.join(", "));
    select(&sql, Parameters::default(), vec![("objects", rows)])
}
