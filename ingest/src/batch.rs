//! Arrow: the schemas of [`schemas::table`], and the builder of event batches.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, RecordBatch, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use schemas::Usage;
use schemas::table::{ColumnType, EVENTS, Table};

/// The Arrow schema of a table.
pub fn arrow_schema(table: &Table) -> SchemaRef {
    let fields = table.columns.iter().map(|column| {
        let kind = match column.kind {
            ColumnType::Text => DataType::Utf8,
            ColumnType::Int => DataType::Int32,
            ColumnType::BigInt => DataType::Int64,
            ColumnType::Bool => DataType::Boolean,
            ColumnType::TextList => DataType::new_list(DataType::Utf8, true),
            ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            ColumnType::Date => DataType::Date32,
            ColumnType::Double => DataType::Float64,
        };
        Field::new(column.name, kind, column.nullable)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// One event, complete: what [`crate::stream::Stream`] makes of a draft.
#[derive(Debug, Default)]
pub struct EventCells<'a> {
    pub event_index: i32,
    pub turn_index: i32,
    pub step_index: i32,
    pub event_type: &'a str,
    pub subtype: Option<&'a str>,
    pub timestamp: Option<i64>,
    pub text: &'a str,
    pub tool_name: Option<&'a str>,
    pub tool_kind: Option<&'a str>,
    pub tool_call_id: Option<&'a str>,
    /// Paths with newlines between them; empty is none.
    pub files: &'a str,
    pub command: Option<&'a str>,
    pub spawned_agent_id: Option<&'a str>,
    pub is_error: Option<bool>,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<i64>,
    pub model: Option<&'a str>,
    pub git_branch: Option<&'a str>,
    pub usage: Usage,
    pub request_id: Option<&'a str>,
    pub is_replay: bool,
    pub is_sidechain: bool,
    pub source_offset: i64,
    pub source_length: i64,
    pub record_hash: i64,
}

/// Bytes of text that there is room for at first, and at most after a batch: room that grows is
/// copied.
const ROOM: usize = 256 << 10;
const MOST_ROOM: usize = 4 << 20;

/// Collects events of one stream into a record batch with the columns of `events`.
#[derive(Default)]
pub struct EventBatch {
    session_id: StringBuilder,
    event_index: Int32Builder,
    turn_index: Int32Builder,
    step_index: Int32Builder,
    event_type: StringBuilder,
    subtype: StringBuilder,
    timestamp: TimestampMicrosecondBuilder,
    provider: StringBuilder,
    text: StringBuilder,
    text_sizes: Int32Builder,
    tool_name: StringBuilder,
    tool_kind: StringBuilder,
    tool_call_id: StringBuilder,
    files: ListBuilder<StringBuilder>,
    command: StringBuilder,
    spawned_agent_id: StringBuilder,
    is_error: BooleanBuilder,
    exit_code: Int32Builder,
    duration_ms: Int64Builder,
    model: StringBuilder,
    git_branch: StringBuilder,
    input_tokens: Int64Builder,
    output_tokens: Int64Builder,
    cache_read_tokens: Int64Builder,
    cache_write_tokens: Int64Builder,
    cache_write_1h_tokens: Int64Builder,
    reasoning_tokens: Int64Builder,
    request_id: StringBuilder,
    is_replay: BooleanBuilder,
    is_sidechain: BooleanBuilder,
    source_offset: Int64Builder,
    source_length: Int64Builder,
    record_hash: Int64Builder,
    text_bytes: usize,
}

impl EventBatch {
    /// A batch with room for the texts of a log.
    pub fn with_room() -> Self {
        Self { text: StringBuilder::with_capacity(ROOM >> 8, ROOM), ..Self::default() }
    }

    /// Events collected.
    pub fn len(&self) -> usize {
        use arrow::array::ArrayBuilder as _;
        self.record_hash.len()
    }

    /// True when nothing is collected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of text collected.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Adds one event.
    pub fn push(&mut self, session_id: &str, provider: &str, event: &EventCells<'_>) {
        self.session_id.append_value(session_id);
        self.event_index.append_value(event.event_index);
        self.turn_index.append_value(event.turn_index);
        self.step_index.append_value(event.step_index);
        self.event_type.append_value(event.event_type);
        self.subtype.append_option(event.subtype);
        self.timestamp.append_option(event.timestamp);
        self.provider.append_value(provider);
        self.text.append_value(event.text);
        self.text_sizes.append_value(i32::try_from(event.text.len()).unwrap_or(i32::MAX));
        self.tool_name.append_option(event.tool_name);
        self.tool_kind.append_option(event.tool_kind);
        self.tool_call_id.append_option(event.tool_call_id);
        for path in event.files.lines() {
            self.files.values().append_value(path);
        }
        self.files.append(!event.files.is_empty());
        self.command.append_option(event.command);
        self.spawned_agent_id.append_option(event.spawned_agent_id);
        self.is_error.append_option(event.is_error);
        self.exit_code.append_option(event.exit_code);
        self.duration_ms.append_option(event.duration_ms);
        self.model.append_option(event.model);
        self.git_branch.append_option(event.git_branch);
        self.input_tokens.append_option(event.usage.input);
        self.output_tokens.append_option(event.usage.output);
        self.cache_read_tokens.append_option(event.usage.cache_read);
        self.cache_write_tokens.append_option(event.usage.cache_write);
        self.cache_write_1h_tokens.append_option(event.usage.cache_write_1h);
        self.reasoning_tokens.append_option(event.usage.reasoning);
        self.request_id.append_option(event.request_id);
        self.is_replay.append_value(event.is_replay);
        self.is_sidechain.append_value(event.is_sidechain);
        self.source_offset.append_value(event.source_offset);
        self.source_length.append_value(event.source_length);
        self.record_hash.append_value(event.record_hash);
        self.text_bytes += event.text.len();
    }

    /// The rows collected so far as a batch of `schema` (that of [`EVENTS`]), written in
    /// `segment`; the builder is empty afterwards.
    ///
    /// # Panics
    /// Never: the columns are those of the schema, which a test asserts.
    pub fn finish(&mut self, schema: &SchemaRef, segment: i64) -> RecordBatch {
        let rows = self.len();
        let room = StringBuilder::with_capacity(rows, self.text_bytes.min(MOST_ROOM));
        let mut text = std::mem::replace(&mut self.text, room);
        let timestamp = std::mem::take(&mut self.timestamp).with_timezone("UTC").finish();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.session_id.finish()),
            Arc::new(self.event_index.finish()),
            Arc::new(self.turn_index.finish()),
            Arc::new(self.step_index.finish()),
            Arc::new(self.event_type.finish()),
            Arc::new(self.subtype.finish()),
            Arc::new(timestamp),
            Arc::new(self.provider.finish()),
            Arc::new(text.finish()),
            Arc::new(self.text_sizes.finish()),
            Arc::new(self.tool_name.finish()),
            Arc::new(self.tool_kind.finish()),
            Arc::new(self.tool_call_id.finish()),
            Arc::new(self.files.finish()),
            Arc::new(self.command.finish()),
            Arc::new(self.spawned_agent_id.finish()),
            Arc::new(self.is_error.finish()),
            Arc::new(self.exit_code.finish()),
            Arc::new(self.duration_ms.finish()),
            Arc::new(self.model.finish()),
            Arc::new(self.git_branch.finish()),
            Arc::new(self.input_tokens.finish()),
            Arc::new(self.output_tokens.finish()),
            Arc::new(self.cache_read_tokens.finish()),
            Arc::new(self.cache_write_tokens.finish()),
            Arc::new(self.cache_write_1h_tokens.finish()),
            Arc::new(self.reasoning_tokens.finish()),
            Arc::new(self.request_id.finish()),
            Arc::new(self.is_replay.finish()),
            Arc::new(self.is_sidechain.finish()),
            Arc::new(self.source_offset.finish()),
            Arc::new(self.source_length.finish()),
            Arc::new(self.record_hash.finish()),
            Arc::new(arrow::array::Int64Array::from_value(segment, rows)),
        ];
        self.text_bytes = 0;
        RecordBatch::try_new(schema.clone(), columns).expect("columns of the events table")
    }
}

/// The Arrow schema of `events`.
pub fn events_schema() -> SchemaRef {
    arrow_schema(&EVENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_the_columns_of_the_table() {
        let mut batch = EventBatch::default();
        let event = EventCells { event_type: "user", text: "hello", ..EventCells::default() };
        batch.push("s", "claude", &event);
        assert_eq!((batch.len(), batch.text_bytes()), (1, 5));
        let rows = batch.finish(&events_schema(), 7);
        assert_eq!(rows.num_rows(), 1);
        assert!(batch.is_empty());
    }
}
