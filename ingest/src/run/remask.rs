//! Masks rows again by newer rules, for sessions whose log is gone and that exist only as rows of
//! the store.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::error::ArrowError;
use schemas::EventType;
use schemas::problem::Problem;
use schemas::session::{SessionRow, SourceRow};
use schemas::table::{PROBLEMS, SESSIONS};

use crate::plan::compare::rules_version;
use crate::redact::columns::{ColumnMasker, map_texts};
use crate::redact::{MaskedSecrets, Redactor, SecretCounts, SessionSecrets, mask_text};
use crate::stream::DocumentMessages;
use crate::stream::ledger::Ledger;
use crate::text::sanitize::clean;

/// Masks the rows of one session again.
pub struct RowRemasker<'r> {
    redactor: &'r Redactor,
    /// The segment that the rows are written to.
    segment: i64,
    secrets: SessionSecrets,
    masker: ColumnMasker,
}

impl<'r> RowRemasker<'r> {
    /// Creates a masker whose rows look as if they had been read into `segment`.
    pub fn new(redactor: &'r Redactor, segment: i64) -> Self {
        Self {
            redactor,
            segment,
            secrets: SessionSecrets::default(),
            masker: ColumnMasker::default(),
        }
    }

    /// Masks rows of `events`, which have all columns.
    ///
    /// # Errors
    /// Returns an error of Arrow if the masked columns do not form a batch with the schema of
    /// `batch`.
    pub fn mask_events(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let (texts, commands) = self.mask_texts(batch);
        let sizes = texts.iter().flatten().map(|text| i32::try_from(text.len()));
        let sizes: Int32Array = sizes.map(|size| Some(size.unwrap_or(i32::MAX))).collect();
        let mut found = MaskedSecrets::new();
        let masked_batch = self.masker.mask_events(Some(self.redactor), batch, &mut found)?;
        let files =
            masked_batch.column_by_name("files").map(|files| self.mask_list(files, &mut found));
        self.secrets.note_column_secrets(found);

        let replaced: [(&str, Option<ArrayRef>); 5] = [
            ("text", Some(Arc::new(texts))),
            ("text_bytes", Some(Arc::new(sizes))),
            ("command", Some(Arc::new(commands))),
            ("files", files),
            ("segment", Some(Arc::new(Int64Array::from_value(self.segment, batch.num_rows())))),
        ];
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(masked_batch.columns()).map(|(field, column)| {
            let new = replaced.iter().find(|(name, _)| *name == field.name().as_str());
            new.and_then(|(_, new)| new.clone()).unwrap_or_else(|| Arc::clone(column))
        });
        let columns = columns.collect();
        RecordBatch::try_new(Arc::clone(&schema), columns)
    }

    /// Masks the session's row and adds the secrets masked in it and in its events to its counts.
    pub fn mask_session(mut self, row: &SessionRow) -> SessionRow {
        let mut masked = self.mask_session_columns(row);
        masked.live_from = self.segment;
        Ledger::from_row(&masked).write_to_row(&mut masked, self.secrets.counts());
        masked
    }

    /// Returns the secrets masked in the events so far and in these rows of their session, by kind.
    pub fn count_secrets(mut self, rows: &[SessionRow]) -> SecretCounts {
        for row in rows {
            self.mask_session_columns(row);
        }
        self.secrets.counts()
    }

    /// Masks the texts of a session's row.
    fn mask_session_columns(&mut self, row: &SessionRow) -> SessionRow {
        let mut found = MaskedSecrets::new();
        let mut masked = row.clone();
        self.masker.mask_row(Some(self.redactor), &SESSIONS, &mut masked, &mut found);
        self.secrets.note_column_secrets(found);
        masked
    }

    /// Masks the row of the log's file. The state of a decoder of lines is dropped, because it may
    /// hold text that is masked now; without it a log that comes back is read again. The state of a
    /// document is kept: it identifies messages by hash.
    pub fn mask_source(&self, row: &SourceRow) -> SourceRow {
        let redaction_rules = rules_version(Some(self.redactor));
        SourceRow { redaction_rules, ..without_line_state(row.clone()) }
    }

    /// Returns a problem of the log masked.
    pub fn mask_problem(&mut self, mut problem: Problem) -> Problem {
        let mut found = MaskedSecrets::new();
        self.masker.mask_row(Some(self.redactor), &PROBLEMS, &mut problem, &mut found);
        problem
    }

    /// Masks texts and commands together, as when they were read. Returns both columns.
    fn mask_texts(&mut self, batch: &RecordBatch) -> (StringArray, StringArray) {
        let texts = text_column(batch, "text");
        let commands = text_column(batch, "command");
        let kinds = text_column(batch, "event_type");
        let mut masked_texts: Vec<String> = Vec::new();
        let mut masked_commands: Vec<Option<String>> = Vec::new();
        for row in 0..batch.num_rows() {
            let text = clean(text_cell(texts, row).unwrap_or_default());
            let command = text_cell(commands, row).map(clean);
            let command_line = command.as_deref().unwrap_or_default();
            let is_result = text_cell(kinds, row) == Some(EventType::ToolResult.as_str());
            let printed_by = if is_result { command_line } else { "" };
            let masked =
                self.secrets.mask_event(Some(self.redactor), &text, command_line, &[], printed_by);
            masked_texts.push(masked.text.into_owned());
            let masked_command = masked.command.into_owned();
            masked_commands.push(command.is_some().then_some(masked_command));
        }
        (StringArray::from(masked_texts), StringArray::from(masked_commands))
    }

    /// Masks the texts in a column of lists. Secrets are added to `found`.
    fn mask_list(&self, column: &ArrayRef, found: &mut MaskedSecrets) -> ArrayRef {
        map_texts(column, &mut |text| {
            let cleaned = clean(text);
            let (masked, secrets) = mask_text(Some(self.redactor), &cleaned);
            found.extend(secrets);
            (masked != text).then(|| masked.into_owned())
        })
    }
}

/// Drops the state of a decoder of lines, which may hold text of the log; without it a log that grows
/// is read from its start. The state of a document is kept: it identifies messages by hash.
pub fn without_line_state(mut row: SourceRow) -> SourceRow {
    row.state = row.state.filter(|state| DocumentMessages::from_state(Some(state)).is_some());
    row
}

/// Returns a column of texts. `None` if the batch has no such column, or if it holds other values.
fn text_column<'b>(batch: &'b RecordBatch, name: &str) -> Option<&'b StringArray> {
    batch.column_by_name(name)?.as_string_opt::<i32>()
}

/// Returns a text of a column. `None` if the column is missing or the text is null.
fn text_cell(column: Option<&StringArray>, row: usize) -> Option<&str> {
    let column = column?;
    column.is_valid(row).then(|| column.value(row))
}

#[cfg(test)]
mod tests {
    use schemas::session::EventRow;

    use super::*;
    use crate::redact::UserRule;
    use crate::stream::batch::{EventBatch, EventCells, events_schema};

    #[test]
    fn the_result_of_a_command_that_prints_a_secret_is_masked() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let mut rows = EventBatch::default();
        for event_type in [EventType::ToolResult, EventType::ToolCall] {
            rows.push(&EventCells {
                session_id: "s",
                event_type,
                text: "barnacle",
                command: Some("pass show harbor"),
                ..EventCells::default()
            });
        }
        let batch = rows.finish(&events_schema(), 3);
        let masked = RowRemasker::new(&redactor, 9).mask_events(&batch).expect("masks");
        let texts = masked.column_by_name("text").expect("text").as_string::<i32>();
        assert_eq!((texts.value(0), texts.value(1)), ("[REDACTED:secret]", "barnacle"));
    }

    #[test]
    fn every_text_of_a_row_is_masked_and_the_rest_stays() {
        let rule = UserRule { name: "boat".to_owned(), regex: "Kittiwake".to_owned() };
        let redactor = Redactor::new(&[rule]).expect("a rule");
        let mut rows = EventBatch::default();
        let event = EventCells {
            session_id: "s",
            event_type: EventType::ToolCall,
            text: "command: sail Kittiwake\n# Kittiwake",
            command: Some("sail Kittiwake"),
            files: &["boats/Kittiwake.md".to_owned(), "README.md".to_owned()],
            git_branch: Some("Kittiwake"),
            request_id: Some("r"),
            ..EventCells::default()
        };
        rows.push(&event);
        rows.push(&EventCells { session_id: "s", ..EventCells::default() });
        let batch = rows.finish(&events_schema(), 3);
        let mut remask = RowRemasker::new(&redactor, 9);
        let masked = remask.mask_events(&batch).expect("masks");
        assert_eq!(masked.schema(), batch.schema());
        let row = |batch: &RecordBatch, at: usize| {
            let text = |name: &str| {
                let column = batch.column_by_name(name).expect(name).as_string::<i32>();
                column.is_valid(at).then(|| column.value(at).to_owned())
            };
            let files = batch.column_by_name("files").expect("files").as_list::<i32>();
            let files = files.is_valid(at).then(|| format!("{:?}", files.value(at)));
            (text("text"), text("command"), text("git_branch"), text("request_id"), files)
        };
        let (text, command, branch, request, files) = row(&masked, 0);
        assert_eq!(text.as_deref(), Some("command: sail [REDACTED:boat]\n# [REDACTED:boat]"));
        assert_eq!(command.as_deref(), Some("sail [REDACTED:boat]"));
        assert_eq!((branch.as_deref(), request.as_deref()), (Some("[REDACTED:boat]"), Some("r")));
        let files = files.expect("a list");
        assert!(files.contains("README.md") && !files.contains("Kittiwake"), "{files}");
        assert_eq!(row(&masked, 1), row(&batch, 1));
        // The columns that follow from the text are those of a log with the masked text.
        let read: Vec<EventRow> = serde_arrow::from_record_batch(&masked).expect("rows");
        let mut again = EventBatch::default();
        for row in &read {
            again.push(&EventCells::of(row));
        }
        assert_eq!(again.finish(&events_schema(), 9), masked);
        let of_row = SessionRow { title: Some("Of Kittiwake".to_owned()), ..SessionRow::default() };
        let session = remask.mask_session(&of_row);
        assert_eq!(session.title.as_deref(), Some("Of [REDACTED:boat]"));
        assert_eq!((session.live_from, session.redactions.as_deref()), (9, Some(r#"{"boat":2}"#)));
    }
}
