//! Reads the fields of a row that the sums use.

use arrow::array::{
    AsArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::Int64Type;
use schemas::price::PriceMode;
use schemas::table::EventColumn;
use schemas::{EventType, Usage};

use store::{column_of, flag_column, number_column, text_column, value_at};

/// Value of the event type column for a call.
pub(super) const CALL: &str = EventType::ToolCall.as_str();

/// Value of the event type column for the result of a call.
pub(super) const RESULT: &str = EventType::ToolResult.as_str();

/// Value of the event type column for token counts.
pub(super) const USAGE: &str = EventType::TokenUsage.as_str();

/// The fields of a row that the sums use.
pub(super) struct StatsFact<'b> {
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
    /// The number of the part of the trend that the row falls into.
    pub span: Option<usize>,
}

/// The columns of a batch; columns that were not requested are absent.
pub(super) struct StatsColumns<'b> {
    pub(super) event_type: Option<&'b StringArray>,
    pub(super) subtype: Option<&'b StringArray>,
    pub(super) timestamp: Option<&'b TimestampMicrosecondArray>,
    pub(super) is_replay: Option<&'b BooleanArray>,
    pub(super) is_error: Option<&'b BooleanArray>,
    pub(super) duration_ms: Option<&'b Int64Array>,
    pub(super) text_bytes: Option<&'b Int32Array>,
    pub(super) model: Option<&'b StringArray>,
    pub(super) request_id: Option<&'b StringArray>,
    pub(super) tokens: [Option<&'b Int64Array>; 7],
    /// Service tier, speed and place of inference.
    pub(super) mode: [Option<&'b StringArray>; 3],
    pub(super) tool_name: Option<&'b StringArray>,
    pub(super) tool_kind: Option<&'b StringArray>,
    pub(super) git_branch: Option<&'b StringArray>,
    pub(super) files: Option<&'b ListArray>,
}

impl<'b> StatsColumns<'b> {
    pub(super) fn from_batch(batch: &'b RecordBatch) -> Self {
        Self {
            event_type: text_column(batch, EventColumn::EventType),
            subtype: text_column(batch, EventColumn::Subtype),
            timestamp: number_column(batch, EventColumn::Timestamp),
            is_replay: flag_column(batch, EventColumn::IsReplay),
            is_error: flag_column(batch, EventColumn::IsError),
            duration_ms: number_column(batch, EventColumn::DurationMs),
            text_bytes: number_column(batch, EventColumn::TextBytes),
            model: text_column(batch, EventColumn::Model),
            request_id: text_column(batch, EventColumn::RequestId),
            tokens: EventColumn::TOKENS.map(|column| number_column::<Int64Type>(batch, column)),
            mode: EventColumn::MODE.map(|column| text_column(batch, column)),
            tool_name: text_column(batch, EventColumn::ToolName),
            tool_kind: text_column(batch, EventColumn::ToolKind),
            git_branch: text_column(batch, EventColumn::GitBranch),
            files: column_of(batch, EventColumn::Files).and_then(|c| c.as_list_opt::<i32>()),
        }
    }

    /// Returns the token counts of a row.
    pub(super) fn read_usage(&self, row: usize) -> Usage {
        let [input, output, cache_read, cache_write, cache_write_1h, reasoning, web_search] =
            self.tokens.map(|column| value_at(column, row));
        Usage { input, output, cache_read, cache_write, cache_write_1h, reasoning, web_search }
    }

    /// Returns the mode in which the request of a row was served.
    pub(super) fn read_mode(&self, row: usize) -> PriceMode {
        let [service_tier, speed, inference_geo] = self.mode.map(|column| value_at(column, row));
        PriceMode::from_log(service_tier, speed, inference_geo)
    }
}
