//! Writes the rows of a query in the requested format, up to the limits.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter;
use schemas::limits;
use schemas::tool::query::{QueryData, QueryFormat};
use serde_json::{Map, Value};

use super::cells;
use super::plan::{ColumnPlan, is_number};
use super::protocol::OutputRequest;
use super::query::{SqlLimit, SqlSummary};
use base::sanitize::truncate_for_json;
use base::text_table::format_table;
use store::ParquetFile;

/// A writer for the rows of a query.
pub(super) struct RowWriter<'p> {
    plan: &'p ColumnPlan,
    /// The columns with the names of the query.
    schema: SchemaRef,
    /// The number of rows that may still be written.
    rows_left: usize,
    summary: SqlSummary,
    sink: RowSink<'p>,
}

/// The destination of the rows, by format.
enum RowSink<'p> {
    /// The data of a tool's answer: as many rows as fit.
    Data {
        data: QueryData,
        /// The number of bytes that further rows may take.
        room: usize,
        /// Maximum number of bytes of a cell.
        cell: usize,
        out: CappedWriter<'p>,
    },
    /// All rows are kept because the widths of columns are known only at the end.
    Table {
        rows: Vec<Vec<String>>,
        out: CappedWriter<'p>,
    },
    /// One line, or one object, for each row.
    Lines {
        format: QueryFormat,
        out: CappedWriter<'p>,
    },
    Parquet(Box<ParquetFile<CappedWriter<'p>>>),
    Arrow(Box<FileWriter<CappedWriter<'p>>>),
}

/// A writer that fails after `left` bytes.
struct CappedWriter<'p> {
    out: Box<dyn Write + Send + 'p>,
    bytes_left: u64,
}

impl Write for CappedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let left = self.bytes_left.checked_sub(written as u64);
        self.bytes_left = left.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<'p> RowWriter<'p> {
    /// Starts the format that the request names.
    pub(super) fn new(
        plan: &'p ColumnPlan,
        schema: SchemaRef,
        output: OutputRequest,
        out: Box<dyn Write + Send + 'p>,
    ) -> io::Result<Self> {
        let mut fields = Vec::new();
        for (field, column) in schema.fields().iter().zip(&plan.columns) {
            fields.push(Field::new(&column.name, field.data_type().clone(), true));
        }
        let schema = Arc::new(Schema::new(fields));

        let capped = CappedWriter { out, bytes_left: output.max_bytes };
        let sink = match output.format {
            None => RowSink::start_data(plan, capped),
            Some(QueryFormat::Table) => RowSink::Table { rows: Vec::new(), out: capped },
            Some(QueryFormat::Parquet) => {
                RowSink::Parquet(Box::new(ParquetFile::new(capped, Arc::clone(&schema))?))
            }
            Some(QueryFormat::Arrow) => {
                RowSink::Arrow(Box::new(FileWriter::try_new(capped, &schema).map_err(io_cause)?))
            }
            Some(format) => RowSink::start_lines(plan, format, capped)?,
        };
        Ok(Self { plan, schema, rows_left: output.max_rows, summary: SqlSummary::default(), sink })
    }

    /// Writes the rows of a batch; returns false if no more rows are wanted.
    pub(super) fn write_batch(&mut self, batch: &RecordBatch) -> io::Result<bool> {
        if batch.num_rows() > self.rows_left {
            self.summary.cut = Some(SqlLimit::Rows);
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec())
            .map_err(io_cause)?
            .slice(0, batch.num_rows().min(self.rows_left));
        self.rows_left -= batch.num_rows();

        match &mut self.sink {
            RowSink::Parquet(file) => file.write(&batch)?,
            RowSink::Arrow(file) => file.write(&batch).map_err(io_cause)?,
            RowSink::Data { .. } | RowSink::Table { .. } | RowSink::Lines { .. } => {
                return self.write_rows(&batch);
            }
        }
        self.summary.rows += batch.num_rows();
        Ok(self.summary.cut.is_none())
    }

    /// Writes the rows of a batch one by one; returns false if no more rows are wanted.
    fn write_rows(&mut self, batch: &RecordBatch) -> io::Result<bool> {
        for row in 0..batch.num_rows() {
            let mut values = Vec::with_capacity(batch.num_columns());
            for (column, form) in batch.columns().iter().zip(&self.plan.forms) {
                values.push(cells::cell_value(column, row, *form));
            }
            if !self.sink.write_row(self.plan, values, &mut self.summary)? {
                self.summary.cut = Some(SqlLimit::Bytes);
                return Ok(false);
            }
            self.summary.rows += 1;
        }
        Ok(self.summary.cut.is_none())
    }

    /// Completes the output.
    pub(super) fn finish(self) -> io::Result<SqlSummary> {
        let mut out = match self.sink {
            RowSink::Data { data, mut out, .. } => {
                serde_json::to_writer(&mut out, &data)?;
                out
            }
            RowSink::Table { rows, mut out } => {
                let columns = &self.plan.columns;
                let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                let right: Vec<_> = columns.iter().map(|c| is_number(&c.sql_type)).collect();
                out.write_all(format_table(&names, &right, &rows).as_bytes())?;
                out
            }
            RowSink::Lines { format, mut out } => {
                if format == QueryFormat::Json {
                    out.write_all(if self.summary.rows == 0 { b"[]\n" } else { b"\n]\n" })?;
                }
                out
            }
            RowSink::Parquet(file) => file.finish()?,
            RowSink::Arrow(file) => file.into_inner().map_err(io_cause)?,
        };
        out.flush()?;
        Ok(self.summary)
    }
}

impl<'p> RowSink<'p> {
    /// Starts the data of a tool's answer. Cells are limited so that one row always fits.
    fn start_data(plan: &ColumnPlan, out: CappedWriter<'p>) -> Self {
        let columns = plan.columns.clone();
        let columns_bytes = serde_json::to_vec(&columns).map_or(0, |json| json.len());
        let room = usize::try_from(out.bytes_left).unwrap_or(usize::MAX);
        let room = room.saturating_sub(columns_bytes + FRAME_BYTES);
        let share = (room / columns.len().max(1)).saturating_sub(FRAME_BYTES);
        let data = QueryData { columns, rows: Vec::new() };
        Self::Data { data, room, cell: share.min(limits::SQL_CELL_BYTES), out }
    }

    /// Starts a format with lines, and writes its header.
    fn start_lines(
        plan: &ColumnPlan,
        format: QueryFormat,
        mut out: CappedWriter<'p>,
    ) -> io::Result<Self> {
        let names: Vec<_> = plan.columns.iter().map(|column| column.name.clone()).collect();
        match format {
            QueryFormat::Csv => {
                let names: Vec<_> = names.into_iter().map(Value::String).collect();
                writeln!(out, "{}", cells::csv_line(&names))?;
            }
            QueryFormat::Markdown => {
                let mut rules = Vec::new();
                for column in &plan.columns {
                    let rule = if is_number(&column.sql_type) { "---:" } else { "---" };
                    rules.push(rule.to_owned());
                }
                writeln!(out, "{}", cells::markdown_row(&names))?;
                writeln!(out, "{}", cells::markdown_row(&rules))?;
            }
            QueryFormat::Table
            | QueryFormat::Json
            | QueryFormat::Ndjson
            | QueryFormat::Parquet
            | QueryFormat::Arrow => {}
        }
        Ok(Self::Lines { format, out })
    }

    /// Adds a row; returns false if it does not fit.
    fn write_row(
        &mut self,
        plan: &ColumnPlan,
        values: Vec<Value>,
        summary: &mut SqlSummary,
    ) -> io::Result<bool> {
        match self {
            Self::Data { data, room, cell, .. } => {
                let cells_cut = &mut summary.cells_cut;
                let values = values.into_iter().map(|value| truncate_cell(value, *cell, cells_cut));
                let values: Vec<_> = values.collect();
                let bytes = serde_json::to_vec(&values).map_or(0, |json| json.len()) + 1;
                let Some(rest) = room.checked_sub(bytes) else { return Ok(false) };
                *room = rest;
                data.rows.push(values);
            }
            Self::Table { rows, .. } => {
                let cells = values.iter().zip(&plan.columns);
                rows.push(cells.map(|(value, column)| cells::table_cell(value, column)).collect());
            }
            Self::Lines { format: QueryFormat::Csv, out } => {
                writeln!(out, "{}", cells::csv_line(&values))?;
            }
            Self::Lines { format: QueryFormat::Markdown, out } => {
                let texts: Vec<_> = values.iter().map(cells::value_text).collect();
                writeln!(out, "{}", cells::markdown_row(&texts))?;
            }
            Self::Lines { format, out } => {
                let names = plan.columns.iter().map(|column| column.name.clone());
                let object: Map<_, _> = names.zip(values).collect();
                if *format == QueryFormat::Json {
                    out.write_all(if summary.rows == 0 { b"[\n" } else { b",\n" })?;
                    serde_json::to_writer(&mut *out, &object)?;
                } else {
                    serde_json::to_writer(&mut *out, &object)?;
                    out.write_all(b"\n")?;
                }
            }
            // Whole batches are written to these sinks in `write`.
            Self::Parquet(_) | Self::Arrow(_) => {}
        }
        Ok(true)
    }
}

/// Bytes reserved around each value, and around all of them.
const FRAME_BYTES: usize = 40;

/// Truncates a value to at most `max_bytes` bytes of JSON. A truncated text ends with the number of
/// omitted characters and the position where they start.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are short")]
fn truncate_cell(value: Value, max_bytes: usize, cells_cut: &mut usize) -> Value {
    let text = match value {
        Value::String(text) => text,
        value @ (Value::Array(_) | Value::Object(_)) => {
            let json = value.to_string();
            if json.len() <= max_bytes {
                return value;
            }
            json
        }
        other => return other,
    };
    let (kept, omitted) = truncate_for_json(&text, max_bytes);
    if omitted == 0 {
        return Value::String(text);
    }
    *cells_cut += 1;
    let next = kept.chars().count() + 1;
    Value::String(format!("{kept}… (+{omitted} characters, from {next})"))
}

/// Returns the underlying I/O error, if there is one.
fn io_cause(error: ArrowError) -> io::Error {
    if let ArrowError::IoError(_, error) = error {
        return error;
    }
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_counted() {
        let mut cells_cut = 0;
        let text = truncate_cell(Value::from("abcdef"), 4, &mut cells_cut);
        assert_eq!((text, cells_cut), (Value::from("abcd… (+2 characters, from 5)"), 1));
        assert_eq!(truncate_cell(Value::from(123_456), 1, &mut cells_cut), Value::from(123_456));
        let list = truncate_cell(serde_json::json!([1, 2, 3, 4]), 4, &mut cells_cut);
        assert_eq!(list, Value::from("[1,2… (+5 characters, from 5)"));
    }

    #[test]
    fn more_than_the_cap_is_refused() {
        let mut capped = CappedWriter { out: Box::new(io::sink()), bytes_left: 5 };
        capped.write_all(b"12345").expect("fits");
        let error = capped.write_all(b"6").expect_err("does not");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
