//! Reads the fields of a row that the sums use.

use arrow::array::{
    Array, AsArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use schemas::table::EventColumn;
use schemas::{EventType, Usage};

use crate::store::column_of;

pub(super) const CALL: &str = EventType::ToolCall.as_str();
pub(super) const RESULT: &str = EventType::ToolResult.as_str();
pub(super) const USAGE: &str = EventType::TokenUsage.as_str();

/// The fields of a row that the sums use.
pub(super) struct Fact<'b> {
    pub session: usize,
    pub event_type: &'b str,
    pub time: Option<i64>,
    pub is_replay: bool,
    pub is_error: Option<bool>,
    pub duration_ms: Option<i64>,
    pub text_bytes: u64,
    pub model: Option<&'b str>,
    pub tool_name: Option<&'b str>,
    pub tool_kind: Option<&'b str>,
    pub git_branch: Option<&'b str>,
    pub usage: Usage,
    pub cost: Option<f64>,
    /// The part of the trend that the row falls into.
    pub span: Option<usize>,
}

/// The columns of a batch; columns that were not requested are absent.
pub(super) struct Columns<'b> {
    pub(super) event_type: Option<&'b StringArray>,
    pub(super) subtype: Option<&'b StringArray>,
    pub(super) timestamp: Option<&'b TimestampMicrosecondArray>,
    pub(super) is_replay: Option<&'b BooleanArray>,
    pub(super) is_error: Option<&'b BooleanArray>,
    pub(super) duration_ms: Option<&'b Int64Array>,
    pub(super) text_bytes: Option<&'b Int32Array>,
    pub(super) model: Option<&'b StringArray>,
    pub(super) request_id: Option<&'b StringArray>,
    pub(super) tokens: [Option<&'b Int64Array>; 6],
    pub(super) tool_name: Option<&'b StringArray>,
    pub(super) tool_kind: Option<&'b StringArray>,
    pub(super) git_branch: Option<&'b StringArray>,
    pub(super) files: Option<&'b ListArray>,
}

impl<'b> Columns<'b> {
    pub(super) fn of(batch: &'b RecordBatch) -> Self {
        let column = |name| column_of(batch, name);
        let text = |name| column(name).and_then(|c| c.as_string_opt::<i32>());
        let flag = |name| column(name).and_then(|c| c.as_boolean_opt());
        let number = |name| column(name).and_then(|c| c.as_primitive_opt::<Int64Type>());
        Self {
            event_type: text(EventColumn::EventType),
            subtype: text(EventColumn::Subtype),
            timestamp: column(EventColumn::Timestamp)
                .and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>()),
            is_replay: flag(EventColumn::IsReplay),
            is_error: flag(EventColumn::IsError),
            duration_ms: number(EventColumn::DurationMs),
            text_bytes: column(EventColumn::TextBytes)
                .and_then(|c| c.as_primitive_opt::<Int32Type>()),
            model: text(EventColumn::Model),
            request_id: text(EventColumn::RequestId),
            tokens: EventColumn::TOKENS.map(number),
            tool_name: text(EventColumn::ToolName),
            tool_kind: text(EventColumn::ToolKind),
            git_branch: text(EventColumn::GitBranch),
            files: column(EventColumn::Files).and_then(|c| c.as_list_opt::<i32>()),
        }
    }

    pub(super) fn usage(&self, row: usize) -> Usage {
        let [input, output, cache_read, cache_write, cache_write_1h, reasoning] =
            self.tokens.map(|column| {
                column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
            });
        Usage { input, output, cache_read, cache_write, cache_write_1h, reasoning }
    }
}

/// Returns the text of a row; `None` if the column was not requested or the row has no value.
pub(super) fn text(column: Option<&StringArray>, row: usize) -> Option<&str> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

/// Returns the flag of a row; `None` if the column was not requested or the row has no value.
pub(super) fn flag(column: Option<&BooleanArray>, row: usize) -> Option<bool> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}
