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
use super::plan::{Plan, is_number};
use super::protocol::Request;
use super::query::{Cut, Summary};
use crate::base::sanitize::head;
use crate::base::text_table::aligned;
use crate::store::ParquetFile;

/// A writer for the rows of a query.
pub(super) struct Rows<'p> {
    plan: &'p Plan,
    /// The columns with the names of the query.
    schema: SchemaRef,
    left: usize,
    summary: Summary,
    sink: Sink,
}

enum Sink {
    /// The data of a tool's answer: as many rows as fit.
    Data {
        data: QueryData,
        room: usize,
        cell: usize,
        out: Capped,
    },
    /// All rows are kept because the widths of columns are known only at the end.
    Table {
        rows: Vec<Vec<String>>,
        out: Capped,
    },
    Lines {
        format: QueryFormat,
        out: Capped,
    },
    Parquet(Box<ParquetFile<Capped>>),
    Arrow(Box<FileWriter<Capped>>),
}

/// A writer that fails after `left` bytes.
struct Capped {
    out: Box<dyn Write + Send>,
    left: u64,
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let left = self.left.checked_sub(written as u64);
        self.left = left.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<'p> Rows<'p> {
    /// Starts the format that the request names.
    pub(super) fn new(
        plan: &'p Plan,
        schema: SchemaRef,
        request: &Request,
        out: Box<dyn Write + Send>,
    ) -> io::Result<Self> {
        let fields = schema
            .fields()
            .iter()
            .zip(&plan.columns)
            .map(|(field, column)| Field::new(&column.name, field.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let out = Capped { out, left: request.max_bytes };
        let sink = match request.format {
            None => Sink::data(plan, out),
            Some(QueryFormat::Table) => Sink::Table { rows: Vec::new(), out },
            Some(QueryFormat::Parquet) => {
                Sink::Parquet(Box::new(ParquetFile::new(out, Arc::clone(&schema))?))
            }
            Some(QueryFormat::Arrow) => {
                Sink::Arrow(Box::new(FileWriter::try_new(out, &schema).map_err(cause)?))
            }
            Some(format) => Sink::lines(plan, format, out)?,
        };
        Ok(Self { plan, schema, left: request.max_rows, summary: Summary::default(), sink })
    }

    /// Writes the rows of a batch; returns false if no more rows are wanted.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<bool> {
        let more = batch.num_rows() > self.left;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec())
            .map_err(cause)?
            .slice(0, batch.num_rows().min(self.left));
        if more {
            self.summary.cut = Some(Cut::Rows);
        }
        self.left -= batch.num_rows();
        let whole = match &mut self.sink {
            Sink::Parquet(file) => Some(file.write(&batch)),
            Sink::Arrow(file) => Some(file.write(&batch).map_err(cause)),
            Sink::Data { .. } | Sink::Table { .. } | Sink::Lines { .. } => None,
        };
        let Some(written) = whole else { return self.rows(&batch) };
        written?;
        self.summary.rows += batch.num_rows();
        Ok(self.summary.cut.is_none())
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<bool> {
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter().zip(&self.plan.forms);
            let values: Vec<_> =
                columns.map(|(column, form)| cells::value(column, row, *form)).collect();
            if !self.sink.put(self.plan, values, &mut self.summary)? {
                self.summary.cut = Some(Cut::Bytes);
                return Ok(false);
            }
            self.summary.rows += 1;
        }
        Ok(self.summary.cut.is_none())
    }

    /// Completes the output.
    pub(super) fn finish(self) -> io::Result<Summary> {
        let mut out = match self.sink {
            Sink::Data { data, mut out, .. } => {
                serde_json::to_writer(&mut out, &data)?;
                out
            }
            Sink::Table { rows, mut out } => {
                let columns = &self.plan.columns;
                let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                let right: Vec<_> = columns.iter().map(|c| is_number(&c.sql_type)).collect();
                out.write_all(aligned(&names, &right, &rows).as_bytes())?;
                out
            }
            Sink::Lines { format, mut out } => {
                if format == QueryFormat::Json {
                    out.write_all(if self.summary.rows == 0 { b"[]\n" } else { b"\n]\n" })?;
                }
                out
            }
            Sink::Parquet(file) => file.finish()?,
            Sink::Arrow(file) => file.into_inner().map_err(cause)?,
        };
        out.flush()?;
        Ok(self.summary)
    }
}

impl Sink {
    /// Starts the data of a tool's answer. Cells are limited so that one row always fits.
    fn data(plan: &Plan, out: Capped) -> Self {
        let columns = plan.columns.clone();
        let named = serde_json::to_vec(&columns).map_or(0, |json| json.len()) + FRAME;
        let room = usize::try_from(out.left).unwrap_or(usize::MAX).saturating_sub(named);
        let share = (room / columns.len().max(1)).saturating_sub(FRAME);
        let data = QueryData { columns, rows: Vec::new() };
        Self::Data { data, room, cell: share.min(limits::SQL_CELL_BYTES), out }
    }

    fn lines(plan: &Plan, format: QueryFormat, mut out: Capped) -> io::Result<Self> {
        let names: Vec<_> = plan.columns.iter().map(|column| column.name.clone()).collect();
        match format {
            QueryFormat::Csv => {
                let names: Vec<_> = names.into_iter().map(Value::String).collect();
                writeln!(out, "{}", cells::csv(&names))?;
            }
            QueryFormat::Markdown => {
                let rules = plan.columns.iter().map(|column| {
                    if is_number(&column.sql_type) { "---:" } else { "---" }.to_owned()
                });
                writeln!(out, "{}", cells::markdown(&names))?;
                writeln!(out, "{}", cells::markdown(&rules.collect::<Vec<_>>()))?;
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
    fn put(&mut self, plan: &Plan, values: Vec<Value>, summary: &mut Summary) -> io::Result<bool> {
        match self {
            Self::Data { data, room, cell, .. } => {
                let cut = values.into_iter().map(|value| cut(value, *cell, &mut summary.cells_cut));
                let values: Vec<_> = cut.collect();
                let bytes = serde_json::to_vec(&values).map_or(0, |json| json.len()) + 1;
                let Some(rest) = room.checked_sub(bytes) else { return Ok(false) };
                *room = rest;
                data.rows.push(values);
            }
            Self::Table { rows, .. } => rows.push(values.iter().map(cells::short).collect()),
            Self::Lines { format: QueryFormat::Csv, out } => {
                writeln!(out, "{}", cells::csv(&values))?;
            }
            Self::Lines { format: QueryFormat::Markdown, out } => {
                let texts: Vec<_> = values.iter().map(cells::text).collect();
                writeln!(out, "{}", cells::markdown(&texts))?;
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
const FRAME: usize = 40;

/// Truncates a value to at most `most` bytes of JSON. A truncated text ends with the number of
/// omitted characters and the position where they start.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are short")]
fn cut(value: Value, most: usize, cells_cut: &mut usize) -> Value {
    let text = match value {
        Value::String(text) => text,
        value @ (Value::Array(_) | Value::Object(_)) => {
            let json = value.to_string();
            if json.len() <= most {
                return value;
            }
            json
        }
        other => return other,
    };
    let (kept, omitted) = head(&text, most);
    if omitted == 0 {
        return Value::String(text);
    }
    *cells_cut += 1;
    let next = kept.chars().count() + 1;
    Value::String(format!("{kept}… (+{omitted} characters, from {next})"))
}

/// Returns the underlying I/O error, if there is one.
fn cause(error: ArrowError) -> io::Error {
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
        let text = cut(Value::from("abcdef"), 4, &mut cells_cut);
        assert_eq!((text, cells_cut), (Value::from("abcd… (+2 characters, from 5)"), 1));
        assert_eq!(cut(Value::from(123_456), 1, &mut cells_cut), Value::from(123_456));
        let list = cut(serde_json::json!([1, 2, 3, 4]), 4, &mut cells_cut);
        assert_eq!(list, Value::from("[1,2… (+5 characters, from 5)"));
    }

    #[test]
    fn more_than_the_cap_is_refused() {
        let mut capped = Capped { out: Box::new(io::sink()), left: 5 };
        capped.write_all(b"12345").expect("fits");
        let error = capped.write_all(b"6").expect_err("does not");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
