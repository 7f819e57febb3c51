//! Runs `query_sql`, which answers SQL queries over the views of the store.

use std::io::{self, Write};

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::query::{QueryArgs, QueryData};
use schemas::{ErrorCode, ToolError, limits};

use super::reply::answer::Reply;
use super::reply::call::Call;
use super::reply::interface::Interface;
use super::reply::shared_state::SharedState;
use crate::error::sql_error;
use crate::sql::{Cut, Query, SqlError, Summary};
use crate::store::Snapshot;

/// The error that ended a query whose rows go to a file or to the terminal.
#[derive(Debug)]
pub enum WriteError {
    Tool(ToolError),
    /// The output can no longer be written to.
    Output(io::Error),
}

impl From<ToolError> for WriteError {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

/// Runs a query and writes its rows to `out` in the requested format.
pub(super) fn write(
    shared: &SharedState,
    query: &Query<'_>,
    out: &mut dyn Write,
    call: &Call<'_>,
) -> Result<Summary, WriteError> {
    let snapshot = shared.snapshot(call)?;
    let result = shared.sandbox.run(snapshot, shared.prices(), query, out, call.stop);
    result.map_err(|error| {
        if let SqlError::Output(error) = error {
            WriteError::Output(error)
        } else {
            sql_error(error).into()
        }
    })
}

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &QueryArgs,
    call: &Call<'_>,
) -> Result<Reply<QueryData>, ToolError> {
    let max_rows =
        checked_limit("max_rows", args.max_rows, limits::SQL_ROWS, limits::SQL_ROWS_MAX)?;
    let max_bytes = limits::ANSWER_BYTES as u64;
    let time = call.query_left();
    let query = Query { sql: &args.sql, format: None, max_rows, max_bytes, time };
    let mut json = Vec::new();
    let summary = shared
        .sandbox
        .run(snapshot, shared.prices(), &query, &mut json, call.stop)
        .map_err(sql_error)?;
    let data: QueryData = serde_json::from_slice(&json)
        .map_err(|error| ToolError::new(ErrorCode::InternalError, error.to_string()))?;
    let mut reply = Reply::new(data, summary.rows);
    let more = summary.cut.is_some();
    reply.truncated = more || summary.cells_cut > 0;
    // At least one more row exists.
    reply.total = Some((summary.rows + usize::from(more), !more));
    reply.warnings = warnings(shared.caller.interface, &summary);
    if summary.rows == 0 && !more {
        reply.hint = Some("No row. DESCRIBE and the name of a view shows its columns.".to_owned());
    }
    Ok(reply)
}

fn warnings(interface: Interface, summary: &Summary) -> Vec<Warning> {
    let rows = summary.rows;
    let cut = summary.cut.map(|cut| match cut {
        Cut::Rows => format!(
            "Only the first {rows} rows; max_rows allows {}. Aggregate, or narrow with WHERE",
            limits::SQL_ROWS_MAX
        ),
        Cut::Bytes => format!(
            "Only the first {rows} rows fit the answer's {} bytes. Select fewer columns, or left(text, 300)",
            limits::ANSWER_BYTES
        ),
    });
    let cells = (summary.cells_cut > 0).then(|| {
        format!(
            "{} cells were cut; each ends with the character it goes on from: substr(<column>, <that>). {} shows whole texts",
            summary.cells_cut,
            interface.call("get_event_details", &[("event_ids", "[...]")])
        )
    });
    let warning = |message| Warning {
        code: WarningCode::ResultsTruncated,
        message,
        severity: Severity::Warning,
    };
    [cut, cells].into_iter().flatten().map(warning).collect()
}
