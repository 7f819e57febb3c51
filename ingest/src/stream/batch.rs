//! Builds Arrow batches of events, and the Arrow schemas of [`schemas::table`].

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, AsArray, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder,
    RecordBatch, StringArray, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use schemas::session::EventRow;
use schemas::table::{ColumnType, EVENTS, EventColumn, Table};
use schemas::{EventType, Provider, Usage, event_columns};

use super::tool_kind::tool_kind;

/// Returns the Arrow schema of a table.
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
        Field::new(column.name, kind, column.is_nullable)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Most bytes of text that a batch reserves after its rows were taken.
const MAX_RESERVED_TEXT_BYTES: usize = 4 << 20;

/// The type of a cell of an event; `'a` is the lifetime of its texts.
macro_rules! cell {
    ($a:lifetime optional TextList) => { &$a [String] };
    ($a:lifetime optional $kind:ident) => { Option<cell!($a required $kind)> };
    ($a:lifetime internal $kind:ident) => { cell!($a required $kind) };
    ($a:lifetime required Text) => { &$a str };
    ($a:lifetime required Word) => { &$a str };
    ($a:lifetime required EventType) => { EventType };
    ($a:lifetime required Provider) => { Provider };
    ($a:lifetime required Int) => { i32 };
    ($a:lifetime required BigInt) => { i64 };
    ($a:lifetime required Timestamp) => { i64 };
    ($a:lifetime required Bool) => { bool };
}

/// Converts a value that was read back into a cell.
macro_rules! cell_of {
    (optional Text $value:expr) => {
        $value.as_deref()
    };
    (optional Word $value:expr) => {
        $value.as_deref()
    };
    (optional TextList $value:expr) => {
        $value.as_deref().unwrap_or_default()
    };
    (required Text $value:expr) => {
        &$value
    };
    ($need:ident $kind:ident $value:expr) => {
        $value
    };
}

/// The Arrow builder of a column.
macro_rules! builder {
    (Text) => { StringBuilder };
    (Word) => { StringBuilder };
    (EventType) => { StringBuilder };
    (Provider) => { StringBuilder };
    (TextList) => { ListBuilder<StringBuilder> };
    (Int) => { Int32Builder };
    (BigInt) => { Int64Builder };
    (Timestamp) => { TimestampMicrosecondBuilder };
    (Bool) => { BooleanBuilder };
}

/// Creates the builder of a column, without space for rows: a batch may hold only one, and there
/// are as many batches as logs.
macro_rules! empty {
    (Int) => {
        Int32Builder::with_capacity(0)
    };
    (BigInt) => {
        Int64Builder::with_capacity(0)
    };
    (Timestamp) => {
        TimestampMicrosecondBuilder::with_capacity(0)
    };
    (Bool) => {
        BooleanBuilder::with_capacity(0)
    };
    (TextList) => {
        ListBuilder::with_capacity(empty!(Text), 0)
    };
    ($kind:ident) => {
        StringBuilder::with_capacity(0, 0)
    };
}

/// Appends a cell to its builder.
macro_rules! append {
    (required EventType $builder:expr, $cell:expr) => {
        $builder.append_value($cell.as_str())
    };
    (required Provider $builder:expr, $cell:expr) => {
        $builder.append_value($cell.as_str())
    };
    (optional TextList $builder:expr, $cell:expr) => {{
        for text in $cell {
            $builder.values().append_value(text);
        }
        $builder.append(!$cell.is_empty());
    }};
    (optional $kind:ident $builder:expr, $cell:expr) => {
        $builder.append_option($cell)
    };
    ($need:ident $kind:ident $builder:expr, $cell:expr) => {
        $builder.append_value($cell)
    };
}

/// Takes the column that a builder collected; the builder is empty afterwards.
macro_rules! finish {
    (Timestamp $builder:expr) => {
        std::mem::replace(&mut $builder, empty!(Timestamp)).with_timezone("UTC").finish()
    };
    ($kind:ident $builder:expr) => {
        $builder.finish()
    };
}

/// Returns a value that no other column has in all rows.
#[cfg(test)]
macro_rules! sample {
    (optional TextList $column:expr, $row:expr, $files:expr) => {
        $files
    };
    (optional $kind:ident $column:expr, $row:expr, $files:expr) => {
        Some(sample!(required $kind $column, $row, $files))
    };
    (required Text $column:expr, $row:expr, $files:expr) => {
        $column.name()
    };
    (required Word $column:expr, $row:expr, $files:expr) => {
        $column.name()
    };
    (required EventType $column:expr, $row:expr, $files:expr) => {
        EventType::ToolResult
    };
    (required Provider $column:expr, $row:expr, $files:expr) => {
        Provider::Codex
    };
    (required Bool $column:expr, $row:expr, $files:expr) => {
        ($column as usize >> $row) & 1 == 1
    };
    (internal Bool $column:expr, $row:expr, $files:expr) => {
        sample!(required Bool $column, $row, $files)
    };
    ($need:ident $kind:ident $column:expr, $row:expr, $files:expr) => {
        $column as _
    };
}

/// Expands to the tokens after the name. The name only limits a repetition to the given columns.
macro_rules! given {
    ($given:ident $($what:tt)*) => { $($what)* };
}

/// Declares the cells of an event and the builders of a batch from the columns of `events`.
macro_rules! declare {
    ($(column {
        [$(given $given:ident)? $(derived $derived:ident)?] $name:ident: $need:ident $kind:ident = $doc:literal
    })*) => {
        /// A complete event: a decoded event with the fields that [`crate::stream::Stream`] adds.
        #[derive(Debug, Default)]
        pub struct EventCells<'a> {
            $($(
                #[doc = concat!($doc, " (`EventColumn::", stringify!($given), "`)")]
                pub $name: cell!('a $need $kind),
            )?)*
        }

        impl<'a> EventCells<'a> {
            /// Returns sample cells: over the rows no two columns have the same values. Texts are
            /// the name of their column.
            #[cfg(test)]
            fn distinct(row: usize, files: &'a [String]) -> Self {
                Self {
                    $($($name: sample!($need $kind EventColumn::$given, row, files),)?)*
                }
            }

            /// Returns the cells of a row that was read back.
            pub fn of(row: &'a EventRow) -> Self {
                Self { $($($name: given!($given cell_of!($need $kind row.$name)),)?)* }
            }
        }

        /// One builder for each column of `events`.
        struct Builders { $($name: builder!($kind)),* }

        impl Default for Builders {
            fn default() -> Self {
                Self { $($name: empty!($kind)),* }
            }
        }

        impl Builders {
            /// Appends the given columns of an event; the caller appends the derived ones.
            fn append(&mut self, event: &EventCells<'_>) {
                $($(given!($given append!($need $kind self.$name, event.$name));)?)*
            }

            /// Takes the columns in the order of the table; the builders are empty afterwards.
            fn finish(&mut self) -> Vec<ArrayRef> {
                vec![$(Arc::new(finish!($kind self.$name))),*]
            }
        }
    };
}

event_columns!(declare);

impl EventCells<'_> {
    /// Returns cells that hold these counts alone.
    pub fn from_usage(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
            cache_write_1h_tokens: usage.cache_write_1h,
            reasoning_tokens: usage.reasoning,
            web_search_requests: usage.web_search,
            ..Self::default()
        }
    }
}

/// Collects events of one stream, or of several one after the other, into a record batch with the
/// columns of `events`.
#[derive(Default)]
pub struct EventBatch {
    builders: Builders,
    text_bytes: usize,
    /// Results whose call came after them, in the order of the calls.
    named: Vec<NamedResult>,
}

/// What a result takes over from a call that came after it.
struct NamedResult {
    row: usize,
    tool: String,
    files: Vec<String>,
    command: String,
}

impl EventBatch {
    /// Number of events collected.
    pub fn len(&self) -> usize {
        self.builders.record_hash.len()
    }

    /// Returns true if nothing is collected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of text collected.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Adds one event.
    pub fn push(&mut self, event: &EventCells<'_>) {
        self.builders.append(event);
        let length = i32::try_from(event.text.len()).unwrap_or(i32::MAX);
        self.builders.text_bytes.append_value(length);
        self.text_bytes += event.text.len();
    }

    /// Gives the result in `row` the columns of its call, which came after it.
    pub(super) fn name_result(&mut self, row: usize, tool: &str, files: &[String], command: &str) {
        let (tool, files, command) = (tool.to_owned(), files.to_vec(), command.to_owned());
        self.named.push(NamedResult { row, tool, files, command });
    }

    /// Takes the rows collected so far as a batch of `schema` (that of [`EVENTS`]), written in
    /// `segment`. The builder is empty afterwards.
    ///
    /// # Panics
    /// Never: the columns match the schema, as both come from one list.
    pub fn finish(&mut self, schema: &SchemaRef, segment: i64) -> RecordBatch {
        let rows = self.len();
        self.builders.segment.append_value_n(segment, rows);
        let mut columns = self.builders.finish();
        for result in std::mem::take(&mut self.named) {
            result.write_to(&mut columns);
        }

        let reserved_bytes = std::mem::take(&mut self.text_bytes).min(MAX_RESERVED_TEXT_BYTES);
        self.builders.text = StringBuilder::with_capacity(rows, reserved_bytes);
        RecordBatch::try_new(schema.clone(), columns).expect("columns of the events table")
    }
}

impl NamedResult {
    /// Writes the values into the columns of the table. Columns are copied, as few results come
    /// before their calls.
    fn write_to(&self, columns: &mut [ArrayRef]) {
        let kind = tool_kind(&self.tool, &self.command).as_str();
        let command = (!self.command.is_empty()).then_some(self.command.as_str());
        for (column, value) in [
            (EventColumn::ToolName, Some(self.tool.as_str())),
            (EventColumn::ToolKind, Some(kind)),
            (EventColumn::Command, command),
        ] {
            let texts = columns[column as usize].as_string::<i32>().iter().enumerate();
            let texts = texts.map(|(row, text)| if row == self.row { value } else { text });
            columns[column as usize] = Arc::new(texts.collect::<StringArray>());
        }

        let mut lists = empty!(TextList);
        let old = columns[EventColumn::Files as usize].as_list::<i32>();
        for (row, paths) in old.iter().enumerate() {
            if row == self.row {
                self.files.iter().for_each(|path| lists.values().append_value(path));
                lists.append(!self.files.is_empty());
                continue;
            }
            if let Some(paths) = &paths {
                paths.as_string::<i32>().iter().for_each(|path| lists.values().append_option(path));
            }
            lists.append(paths.is_some());
        }
        columns[EventColumn::Files as usize] = Arc::new(lists.finish());
    }
}

/// The rows of one session in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRows<'b> {
    /// The id of the session.
    pub session_id: &'b str,
    /// Positions of the rows.
    pub rows: Range<usize>,
}

/// Returns the rows of each session in a batch of events, in their order. Empty if the batch has no
/// rows or no column of session ids.
pub fn rows_by_session(batch: &RecordBatch) -> Vec<SessionRows<'_>> {
    let column = batch.column_by_name(EventColumn::SessionId.name());
    let Some(ids) = column.and_then(|column| column.as_string_opt::<i32>()) else {
        return Vec::new();
    };
    let mut sessions: Vec<SessionRows<'_>> = Vec::new();
    for (row, session_id) in ids.iter().enumerate() {
        let session_id = session_id.unwrap_or_default();
        match sessions.last_mut() {
            Some(last) if last.session_id == session_id => last.rows.end = row + 1,
            Some(_) | None => sessions.push(SessionRows { session_id, rows: row..row + 1 }),
        }
    }
    sessions
}

/// Returns the Arrow schema of `events`.
pub fn events_schema() -> SchemaRef {
    arrow_schema(&EVENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_session_are_one_range() {
        let mut batch = EventBatch::default();
        for session_id in ["a", "a", "b", "c", "c"] {
            batch.push(&EventCells { session_id, ..EventCells::default() });
        }
        let batch = batch.finish(&events_schema(), 1);
        let found: Vec<_> = rows_by_session(&batch)
            .into_iter()
            .map(|session| (session.session_id, session.rows))
            .collect();
        assert_eq!(found, [("a", 0..2), ("b", 2..3), ("c", 3..5)]);
        assert_eq!(rows_by_session(&batch.slice(0, 0)), []);
    }

    /// A column that is forgotten, or takes the value of another, does not come back.
    #[test]
    fn every_column_comes_back_with_its_own_value() {
        let files = ["src/a.rs".to_owned(), "b c.md".to_owned()];
        let mut batch = EventBatch::default();
        // As many rows as there are bits in the number of a column, and one of nothing.
        (0..8).for_each(|row| batch.push(&EventCells::distinct(row, &files)));
        batch.push(&EventCells::default());
        assert_eq!((batch.len(), batch.text_bytes()), (9, 8 * "text".len()));
        let rows = batch.finish(&events_schema(), 99);
        assert!(batch.is_empty() && batch.text_bytes() == 0);
        for (at, (column, array)) in EventColumn::ALL.iter().zip(rows.columns()).enumerate() {
            assert_eq!(rows.schema().index_of(column.name()).ok(), Some(*column as usize));
            let other = rows.columns()[..at].iter().position(|other| other == array);
            assert_eq!(other, None, "{} has the values of another", column.name());
        }
        let read: Vec<EventRow> = serde_arrow::from_record_batch(&rows).expect("rows");
        assert_eq!((read[0].text_bytes, read[8].text_bytes), (4, 0));
        assert_eq!((read[0].segment, read[8].segment), (99, 99));
        let mut again = EventBatch::default();
        for row in &read {
            again.push(&EventCells::of(row));
        }
        assert_eq!(again.finish(&events_schema(), 99), rows);
    }
}
