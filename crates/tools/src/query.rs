//! Runs `query_sql`, which answers SQL queries over the views of the store.

use std::io::{self, Write};
use std::time::Duration;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::query::{QueryArgs, QueryData, QueryFormat};
use schemas::{ErrorCode, ToolError, limits};

use super::reply::answer::{Reply, RowTotal};
use super::reply::call::Call;
use super::reply::history::{Examined, NeededEvents, WriteError};
use super::reply::interface::Interface;
use super::reply::scope::SessionFilters;
use super::reply::tools::Tools;
use super::reply::usage_warnings::usage_warnings;
use crate::error::store_error;
use sql::{SqlLimit, SqlQuery, SqlSummary};
use store::Snapshot;

/// Counts the bytes that pass through it.
pub(super) struct CountedWriter<'w> {
    out: &'w mut dyn Write,
    bytes: usize,
}

impl<'w> CountedWriter<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> Self {
        Self { out, bytes: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Write for CountedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Runs a query and writes its rows to `out` in the requested format. Returns what was written and
/// what was examined.
pub(super) fn write_rows(
    tools: &Tools,
    query: &SqlQuery<'_>,
    out: &mut dyn Write,
    call: &Call<'_>,
) -> Result<(SqlSummary, Examined), WriteError> {
    tools.open_view(call, &NeededEvents::Rows)?;
    let snapshot = tools.snapshot(call)?;
    tools.history().run_query(snapshot, tools.prices(), query, out, call.stop)
}

/// Returns the rows that a view has of some sessions, session by session. `order` is the order within a
/// session.
pub(super) fn read_view(
    tools: &Tools,
    view: &str,
    order: &str,
    sessions: &[String],
    format: QueryFormat,
    call: &Call<'_>,
) -> Result<Vec<u8>, ToolError> {
    let sql = format!("SELECT * FROM {view} ORDER BY session_id, {order}");
    let query = SqlQuery {
        sql: &sql,
        format: Some(format),
        max_rows: u32::MAX as usize,
        max_bytes: limits::SQL_OUTPUT_BYTES,
        max_time: Duration::from_secs(limits::SQL_SECONDS),
        sessions: Some(sessions),
    };
    let mut rows = Vec::new();
    let (summary, _) = write_rows(tools, &query, &mut rows, call)?;
    if summary.cut.is_some() {
        let message = format!("the rows of {view} do not fit into {} bytes", query.max_bytes);
        return Err(ToolError::new(ErrorCode::InternalError, message));
    }
    Ok(rows)
}

/// Returns the query of a call, with the limits of an answer.
fn limited_query<'a>(args: &'a QueryArgs, call: &Call<'_>) -> Result<SqlQuery<'a>, ToolError> {
    Ok(SqlQuery {
        sql: &args.sql,
        format: None,
        max_rows: checked_limit("max_rows", args.max_rows, limits::SQL_ROWS, limits::SQL_ROWS_MAX)?,
        max_bytes: limits::ANSWER_BYTES as u64,
        max_time: call.remaining_query_time(),
        sessions: None,
    })
}

pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &QueryArgs,
    call: &Call<'_>,
) -> Result<Reply<QueryData>, ToolError> {
    let query = limited_query(args, call)?;
    let mut json = Vec::new();
    let (summary, examined) = write_rows(tools, &query, &mut json, call)?;
    let data: QueryData = serde_json::from_slice(&json)
        .map_err(|error| ToolError::new(ErrorCode::InternalError, error.to_string()))?;
    let mut reply = Reply::new(data, summary.rows);
    let has_more = summary.cut.is_some();
    reply.is_truncated = has_more || summary.cells_cut > 0;
    reply.total = Some(if has_more {
        RowTotal::AtLeast(summary.rows + 1)
    } else {
        RowTotal::Exact(summary.rows)
    });
    let census = SessionFilters::default().count_sessions(snapshot);
    let total = census.total;
    let mut scope = format!("the whole store: {total} sessions ({})", census.describe_classes());
    examined.append_to(&mut scope);
    reply.scope = Some(scope);
    reply.warnings = cut_warnings(tools.caller.interface, &summary);
    if args.sql.to_ascii_lowercase().contains("usage") {
        let rows = snapshot.read_rows().map_err(store_error)?;
        reply.warnings.extend(usage_warnings(rows, tools.prices(), &|_| true));
    }
    if summary.rows == 0 && !has_more {
        reply.hint = Some("No rows. DESCRIBE <view> shows the columns of a view.".to_owned());
    }
    Ok(reply)
}

/// Returns a warning about rows that were left out, and one about cells that were cut.
fn cut_warnings(interface: Interface, summary: &SqlSummary) -> Vec<Warning> {
    let rows = summary.rows;
    let mut messages = Vec::new();
    match summary.cut {
        None => {}
        Some(SqlLimit::Rows) => messages.push(format!(
            "Only the first {rows} rows are shown; max_rows allows {}. Aggregate, or narrow with WHERE",
            limits::SQL_ROWS_MAX
        )),
        Some(SqlLimit::Bytes) => messages.push(format!(
            "Only the first {rows} rows fit into the {} bytes of an answer. Select fewer columns, or left(text, 300)",
            limits::ANSWER_BYTES
        )),
    }
    if summary.cells_cut > 0 {
        messages.push(format!(
            "{} cells were cut. Each ends with the position of its rest: substr(<column>, <position>). {} shows whole texts",
            summary.cells_cut,
            interface.format_call("get_event_details", &[("event_ids", "[...]")])
        ));
    }

    let code = WarningCode::ResultsTruncated;
    messages.into_iter().map(|message| Warning::new(code, Severity::Warning, message)).collect()
}
