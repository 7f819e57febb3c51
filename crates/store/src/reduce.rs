//! Replaces texts of rows by what a level of retention keeps of them.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, RecordBatch, StringArray};
use schemas::EventType;
use schemas::session::SessionRow;
use schemas::table::EventColumn;

use super::error::StoreError;
use super::reduced_sessions::KeepLevel;
use super::segment::event_reader::{column_of, text_column, with_columns};
use base::dropped_text::{DROPPED_TITLE, kept_length, kept_part, mark_dropped};

/// Maximum number of bytes that the text of a call may have besides its command and files. A longer
/// one holds more input.
const MAX_OTHER_INPUT_BYTES: usize = 128;

/// The columns of rows of events that decide what is dropped.
pub(super) struct ReducedColumns<'b> {
    pub(super) types: &'b StringArray,
    pub(super) texts: &'b StringArray,
    commands: &'b StringArray,
    files: &'b ListArray,
}

impl<'b> ReducedColumns<'b> {
    /// Returns the columns; `None` if the batch lacks one.
    pub(super) fn from_batch(batch: &'b RecordBatch) -> Option<Self> {
        Some(Self {
            types: text_column(batch, EventColumn::EventType)?,
            texts: text_column(batch, EventColumn::Text)?,
            commands: text_column(batch, EventColumn::Command)?,
            files: column_of(batch, EventColumn::Files)?.as_list_opt::<i32>()?,
        })
    }

    /// Returns the text that replaces that of a row; `None` if it stays.
    pub(super) fn reduce_text(&self, row: usize, level: KeepLevel) -> Option<String> {
        let text = self.texts.value(row);
        if text.is_empty() || level == KeepLevel::Full {
            return None;
        }
        let event_type = self.types.value(row).parse::<EventType>().ok()?;
        let kept = match (event_type, level) {
            // The text of token counts is a quota.
            (EventType::TokenUsage, _) => return None,
            (EventType::ToolCall, KeepLevel::Transcripts) => self.outline_call(row)?,
            (
                EventType::User | EventType::Message | EventType::Notification,
                KeepLevel::Transcripts | KeepLevel::Full,
            ) => return None,
            (EventType::ToolResult | EventType::Reasoning, _)
            | (EventType::ToolCall, KeepLevel::Full | KeepLevel::Usage)
            | (EventType::User | EventType::Message | EventType::Notification, KeepLevel::Usage) => {
                String::new()
            }
        };
        let is_reduced = kept_length(text.as_bytes()) < text.len() && kept_part(text) == kept;
        (!is_reduced).then(|| mark_dropped(&kept, text.len()))
    }

    /// Returns the command and the files of a call; `None` if its text has little else.
    fn outline_call(&self, row: usize) -> Option<String> {
        let mut lines = Vec::new();
        let mut outlined_bytes = 0;
        if self.commands.is_valid(row) {
            outlined_bytes += self.commands.value(row).len();
            lines.push(format!("command: {}", self.commands.value(row)));
        }
        let files = self.files.is_valid(row).then(|| self.files.value(row));
        let files = files.as_ref().and_then(|files| files.as_string_opt::<i32>());
        for file in files.into_iter().flatten().flatten() {
            outlined_bytes += file.len();
            lines.push(format!("file: {file}"));
        }
        let other_bytes = self.texts.value(row).len().saturating_sub(outlined_bytes);
        (other_bytes > MAX_OTHER_INPUT_BYTES).then(|| lines.join("\n"))
    }
}

/// Returns rows of a session with the texts that `level` keeps. Only those rows are changed for which
/// `is_reduced` returns true.
pub(super) fn reduce_batch(
    rows: &RecordBatch,
    level: KeepLevel,
    is_reduced: &dyn Fn(usize) -> bool,
) -> Result<RecordBatch, StoreError> {
    let Some(columns) = ReducedColumns::from_batch(rows) else { return Ok(rows.clone()) };
    let mut texts = Vec::with_capacity(rows.num_rows());
    let mut commands = Vec::with_capacity(rows.num_rows());
    for row in 0..rows.num_rows() {
        let is_reduced = is_reduced(row);
        let reduced = if is_reduced { columns.reduce_text(row, level) } else { None };
        texts.push(reduced.unwrap_or_else(|| columns.texts.value(row).to_owned()));
        let keeps_command = !is_reduced || level < KeepLevel::Usage;
        let has_command = columns.commands.is_valid(row) && keeps_command;
        commands.push(has_command.then(|| columns.commands.value(row)));
    }
    let sizes = texts.iter().map(|text| i32::try_from(text.len()).unwrap_or(i32::MAX));
    let sizes: ArrayRef = Arc::new(sizes.map(Some).collect::<Int32Array>());
    let commands: ArrayRef = Arc::new(StringArray::from(commands));
    let texts: ArrayRef = Arc::new(StringArray::from(texts));

    let changed = [
        (EventColumn::Text, texts),
        (EventColumn::TextBytes, sizes),
        (EventColumn::Command, commands),
    ];
    with_columns(rows, changed).map_err(|error| StoreError::damaged(Path::new("events"), error))
}

/// Returns the row of a session with what `level` keeps. A title that tells a conversation from an
/// empty session stays.
pub(super) fn reduce_session(row: &SessionRow, level: KeepLevel) -> SessionRow {
    if level < KeepLevel::Usage || row.title.is_none() {
        return row.clone();
    }
    let reduced = SessionRow { title: Some(DROPPED_TITLE.to_owned()), ..row.clone() };
    if reduced.is_conversation() == row.is_conversation() { reduced } else { row.clone() }
}
