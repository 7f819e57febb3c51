//! The columns of rows that a skip index is built from.

use arrow::array::{
    Array, AsArray, BooleanArray, Int32Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use ingest::provider::{base_of, response_key};
use schemas::EventType;
use schemas::table::EventColumn;

use super::event_reader::{column_of, flag_column, number_column, text_column, value_at};
use crate::index::{IndexWriter, RowFacts};
use base::dropped_text::kept_part;

/// Adds rows to a skip index. Returns the time of each row.
pub(crate) fn index_rows(index: &mut IndexWriter, batch: &RecordBatch) -> Vec<Option<i64>> {
    let columns = IndexedColumns::from_batch(batch);
    let mut times = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let facts = columns.read_facts(row);
        times.push(facts.time);
        let text = kept_part(value_at(columns.texts, row).unwrap_or(""));
        let tags = columns.tags.map(|column| value_at(column, row));
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
            times: number_column(batch, EventColumn::Timestamp),
            turns: number_column(batch, EventColumn::TurnIndex),
            steps: number_column(batch, EventColumn::StepIndex),
            replays: flag_column(batch, EventColumn::IsReplay),
            errors: flag_column(batch, EventColumn::IsError),
            files: column_of(batch, EventColumn::Files)
                .and_then(|column| column.as_list_opt::<i32>()),
            providers: text_column(batch, EventColumn::Provider),
            request_ids: text_column(batch, EventColumn::RequestId),
            counted_elsewhere: flag_column(batch, EventColumn::IsCountedElsewhere),
        }
    }

    /// Returns the facts of a row, without the positions of its tags and files.
    fn read_facts(&self, row: usize) -> RowFacts {
        let event_type = value_at(self.event_types, row).and_then(|name| name.parse().ok());
        RowFacts {
            time: value_at(self.times, row),
            turn_index: read_number(self.turns, row),
            step_index: read_number(self.steps, row),
            event_type: event_type.unwrap_or(EventType::Notification),
            is_replay: value_at(self.replays, row).unwrap_or(false),
            is_error: value_at(self.errors, row),
            tags: 0,
            file_list: 0,
        }
    }

    /// Returns the hash of the response whose tokens a row has, and whether another session counts
    /// it. `None` if the row names no response that other logs may have, or is copied with its log.
    fn read_response(&self, row: usize) -> Option<(u64, bool)> {
        let provider = value_at(self.providers, row)?.parse().ok()?;
        let response = response_key(provider, value_at(self.request_ids, row)?)?;
        let is_counted_elsewhere = value_at(self.counted_elsewhere, row).unwrap_or(false);
        let is_replay = value_at(self.replays, row).unwrap_or(false);
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

/// Returns the number in a row of a column; 0 if it is negative or there is no such column.
fn read_number(column: Option<&Int32Array>, row: usize) -> u32 {
    value_at(column, row).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}
