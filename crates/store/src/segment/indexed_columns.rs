//! The columns of rows that a skip index is built from.

use arrow::array::{
    Array, AsArray, BooleanArray, Int32Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use ingest::provider::{base_of, response_key};
use schemas::EventType;
use schemas::table::EventColumn;

use super::event_reader::column_of;
use crate::index::{IndexWriter, RowFacts};
use base::dropped_text::kept_part;

/// Adds rows to a skip index. Returns the time of each row.
pub(crate) fn index_rows(index: &mut IndexWriter, batch: &RecordBatch) -> Vec<Option<i64>> {
    let columns = IndexedColumns::from_batch(batch);
    let mut times = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let facts = columns.read_facts(row);
        times.push(facts.time);
        let text = kept_part(read_text(columns.texts, row).unwrap_or(""));
        let tags = columns.tags.map(|column| read_text(column, row));
        index.push(text, facts, tags, &columns.read_paths(row));
        if facts.event_type == EventType::TokenUsage
            && let Some((response, is_counted_elsewhere)) = columns.read_response(row)
        {
            index.push_response(response, is_counted_elsewhere);
        }
    }
    times
}

/// The columns of a batch that the skip index is built from.
struct IndexedColumns<'b> {
    texts: Option<&'b StringArray>,
    event_types: Option<&'b StringArray>,
    /// Tool, subtype, model and branch.
    tags: [Option<&'b StringArray>; 4],
    times: Option<&'b TimestampMicrosecondArray>,
    turns: Option<&'b Int32Array>,
    steps: Option<&'b Int32Array>,
    replays: Option<&'b BooleanArray>,
    errors: Option<&'b BooleanArray>,
    files: Option<&'b ListArray>,
    providers: Option<&'b StringArray>,
    request_ids: Option<&'b StringArray>,
    counted_elsewhere: Option<&'b BooleanArray>,
}

impl<'b> IndexedColumns<'b> {
    fn from_batch(batch: &'b RecordBatch) -> Self {
        Self {
            texts: text_column(batch, EventColumn::Text),
            event_types: text_column(batch, EventColumn::EventType),
            tags: [
                text_column(batch, EventColumn::ToolName),
                text_column(batch, EventColumn::Subtype),
                text_column(batch, EventColumn::Model),
                text_column(batch, EventColumn::GitBranch),
            ],
            times: column_of(batch, EventColumn::Timestamp)
                .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>()),
            turns: column_of(batch, EventColumn::TurnIndex)
                .and_then(|column| column.as_primitive_opt::<Int32Type>()),
            steps: column_of(batch, EventColumn::StepIndex)
                .and_then(|column| column.as_primitive_opt::<Int32Type>()),
            replays: column_of(batch, EventColumn::IsReplay)
                .and_then(|column| column.as_boolean_opt()),
            errors: column_of(batch, EventColumn::IsError)
                .and_then(|column| column.as_boolean_opt()),
            files: column_of(batch, EventColumn::Files)
                .and_then(|column| column.as_list_opt::<i32>()),
            providers: text_column(batch, EventColumn::Provider),
            request_ids: text_column(batch, EventColumn::RequestId),
            counted_elsewhere: column_of(batch, EventColumn::IsCountedElsewhere)
                .and_then(|column| column.as_boolean_opt()),
        }
    }

    /// Returns the facts of a row, without the positions of its tags and files.
    fn read_facts(&self, row: usize) -> RowFacts {
        let event_type = read_text(self.event_types, row).and_then(|name| name.parse().ok());
        RowFacts {
            time: self.times.filter(|times| times.is_valid(row)).map(|times| times.value(row)),
            turn_index: read_number(self.turns, row),
            step_index: read_number(self.steps, row),
            event_type: event_type.unwrap_or(EventType::Notification),
            is_replay: read_flag(self.replays, row).unwrap_or(false),
            is_error: read_flag(self.errors, row),
            tags: 0,
            file_list: 0,
        }
    }

    /// Returns the hash of the response whose tokens a row has, and whether another session counts
    /// it. `None` if the row names no response that other logs may have, or is copied with its log.
    fn read_response(&self, row: usize) -> Option<(u64, bool)> {
        let provider = read_text(self.providers, row)?.parse().ok()?;
        let response = response_key(provider, read_text(self.request_ids, row)?)?;
        let is_counted_elsewhere = read_flag(self.counted_elsewhere, row).unwrap_or(false);
        let is_replay = read_flag(self.replays, row).unwrap_or(false);
        (is_counted_elsewhere || !is_replay)
            .then(|| (response.response_hash(base_of(provider)), is_counted_elsewhere))
    }

    /// Returns the paths that a row names, with newlines between them.
    fn read_paths(&self, row: usize) -> String {
        let Some(files) = self.files.filter(|files| files.is_valid(row)) else {
            return String::new();
        };
        let list = files.value(row);
        let Some(paths) = list.as_string_opt::<i32>() else { return String::new() };
        let paths: Vec<&str> = paths.iter().flatten().collect();
        paths.join("\n")
    }
}

pub(super) fn text_column(batch: &RecordBatch, column: EventColumn) -> Option<&StringArray> {
    column_of(batch, column)?.as_string_opt::<i32>()
}

/// Returns the text in a row of a column, if it has one.
fn read_text(column: Option<&StringArray>, row: usize) -> Option<&str> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

/// Returns the number in a row of a column; 0 if it is negative or there is no such column.
fn read_number(column: Option<&Int32Array>, row: usize) -> u32 {
    column.map_or(0, |column| u32::try_from(column.value(row)).unwrap_or(0))
}

/// Returns the boolean in a row of a column, if it has one.
fn read_flag(column: Option<&BooleanArray>, row: usize) -> Option<bool> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}
