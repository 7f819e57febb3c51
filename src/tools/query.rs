//! `query_sql`.

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::query::{QueryArgs, QueryData};
use schemas::{ErrorCode, ToolError, limits};

use super::interface::Interface;
use super::{Call, Reply, Tools};
use crate::sql::{Cut, Query, QueryError, Summary};
use crate::store::Snapshot;

pub(super) fn run(
    tools: &Tools,
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
    let summary = tools
        .sandbox
        .run(snapshot, tools.prices(), &query, &mut json, call.stop)
        .map_err(|error| match error {
            QueryError::Tool(error) => error,
            QueryError::Output(error) => {
                ToolError::new(ErrorCode::InternalError, error.to_string())
            }
        })?;
    let data: QueryData = serde_json::from_slice(&json)
        .map_err(|error| ToolError::new(ErrorCode::InternalError, error.to_string()))?;
    let mut reply = Reply::new(data, summary.rows);
    let more = summary.cut.is_some();
    reply.truncated = more || summary.cells_cut > 0;
    // One row more is known to be there.
    reply.total = Some((summary.rows + usize::from(more), !more));
    reply.warnings = warnings(tools.caller.interface, &summary);
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
