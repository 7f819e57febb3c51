//! Exports `sessions`, `usage` and `tool_calls`: the rows that the views of SQL have of the selected
//! sessions, as one file. Sessions are queried in groups, so that a query needs little memory.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use schemas::tool::query::QueryFormat;
use schemas::{ErrorCode, ExportFormat, ExportTable, ToolError};

use crate::files::outfile::file_error;
use store::{Snapshot, TableFile, TableFileForm};
use tools::error::store_error;
use tools::{Call, Tools};

/// Most sessions of one query.
const MAX_GROUP_SESSIONS: usize = 200;

/// Most events of the sessions of one query, unless it is a single session.
const MAX_GROUP_EVENTS: i64 = 20_000;

/// Reads a table of the selected sessions.
pub(super) struct TableReader<'a> {
    pub(super) table: ExportTable,
    pub(super) tools: &'a Tools,
    pub(super) snapshot: &'a Snapshot,
    pub(super) call: &'a Call<'a>,
}

impl TableReader<'_> {
    /// Writes the table as Parquet, Arrow or JSON lines, and returns the number of rows.
    ///
    /// # Errors
    /// Fails for other formats, and if the rows cannot be read or written.
    pub(super) fn write_file(
        &self,
        sessions: &[usize],
        format: ExportFormat,
        file: &mut File,
        path: &Path,
    ) -> Result<u64, ToolError> {
        let form = match format {
            ExportFormat::Parquet => TableFileForm::Parquet,
            ExportFormat::Arrow => TableFileForm::Arrow,
            ExportFormat::Jsonl => {
                let mut lines = 0;
                self.read_lines(sessions, &mut |text| {
                    lines += text.lines().count() as u64;
                    file.write_all(text.as_bytes()).map_err(|error| file_error(path, &error))?;
                    Ok(true)
                })?;
                return Ok(lines);
            }
            ExportFormat::Markdown
            | ExportFormat::Html
            | ExportFormat::Atif
            | ExportFormat::Otel
            | ExportFormat::Sts
            | ExportFormat::Logs => return Err(no_table(format)),
        };
        let mut out = TableFile::new(form, file, path);
        for group in self.group_sessions(sessions) {
            let rows = self.read_group(&group, QueryFormat::Arrow)?;
            out.append(&rows).map_err(store_error)?;
        }
        out.finish().map_err(store_error)
    }

    /// Passes the rows as JSON lines to `take`, until it returns false.
    pub(super) fn read_lines(
        &self,
        sessions: &[usize],
        take: &mut dyn FnMut(&str) -> Result<bool, ToolError>,
    ) -> Result<(), ToolError> {
        for group in self.group_sessions(sessions) {
            let rows = self.read_group(&group, QueryFormat::Ndjson)?;
            if !take(&String::from_utf8_lossy(&rows))? {
                break;
            }
        }
        Ok(())
    }

    fn read_group(&self, group: &[String], format: QueryFormat) -> Result<Vec<u8>, ToolError> {
        let order = match self.table {
            ExportTable::Events | ExportTable::ToolCalls => "event_index",
            ExportTable::Sessions => "started_at",
            ExportTable::Usage => "step_index, timestamp, event_id",
        };
        self.call.ensure_running()?;
        self.tools.read_view(self.table.as_str(), order, group, format, self.call)
    }

    /// Returns the ids of the sessions, in groups for one query each.
    fn group_sessions(&self, sessions: &[usize]) -> Vec<Vec<String>> {
        let mut groups: Vec<Vec<String>> = Vec::new();
        let mut events = 0;
        for row in sessions.iter().filter_map(|at| self.snapshot.sessions().get(*at)) {
            let is_full = events + row.events > MAX_GROUP_EVENTS
                || groups.last().is_some_and(|group| group.len() == MAX_GROUP_SESSIONS);
            if groups.is_empty() || is_full {
                groups.push(Vec::new());
                events = 0;
            }
            events += row.events;
            if let Some(group) = groups.last_mut() {
                group.push(row.session_id.clone());
            }
        }
        groups
    }
}

/// Returns the error for a table in a format of whole sessions.
pub(super) fn no_table(format: ExportFormat) -> ToolError {
    let message = format!(
        "table: {format} is a format of whole sessions. Use parquet, arrow or jsonl with --table"
    );
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "table")
}
