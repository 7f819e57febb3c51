//! Turns rows of the small tables into Arrow columns. An ingest of many small logs spends much of its
//! time on these rows, so each cell is appended to its column at once.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Int64Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use serde::Serialize;

use super::row_encoder::{CellSink, RowError, push_cells};

/// Bytes of text that are reserved for each row of a column of texts.
const RESERVED_TEXT_BYTES: usize = 8;

/// Converts rows to a batch of `schema`, which has a field for each field of the structs, in the same
/// order.
pub(in crate::store) fn to_batch<T: Serialize>(
    schema: &SchemaRef,
    rows: &[T],
) -> Result<RecordBatch, ArrowError> {
    let mut columns = TableColumns::new(schema, rows.len())?;
    for row in rows {
        columns.push(row).map_err(|error| ArrowError::from_external_error(error.into()))?;
    }
    columns.finish(schema)
}

/// The columns of a table under construction.
pub(super) struct TableColumns {
    columns: Vec<NamedBuilder>,
    /// Position after the column of the present cell.
    at: usize,
}

struct NamedBuilder {
    name: String,
    builder: CellBuilder,
}

impl TableColumns {
    /// Returns the columns of `schema` with room for this many rows.
    pub(super) fn new(schema: &SchemaRef, rows: usize) -> Result<Self, ArrowError> {
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let builder = CellBuilder::new(field.data_type(), rows)
                .ok_or_else(|| ArrowError::SchemaError(format!("no rows have a {field}")))?;
            columns.push(NamedBuilder { name: field.name().clone(), builder });
        }
        Ok(Self { columns, at: 0 })
    }

    /// Appends a row, which has a field for each column, in the same order.
    pub(super) fn push<T: Serialize>(&mut self, row: &T) -> Result<(), RowError> {
        self.at = 0;
        push_cells(row, self)
    }

    /// Returns the rows as a batch of `schema`, which is that of the columns.
    pub(super) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        // A batch checks that all columns have as many cells.
        let arrays = self.columns.into_iter().map(|column| column.builder.finish()).collect();
        RecordBatch::try_new(Arc::clone(schema), arrays)
    }
}

/// Collects the cells of a column.
enum CellBuilder {
    Text(StringBuilder),
    Number(Int64Builder),
    Time(TimestampMicrosecondBuilder),
    Flag(BooleanBuilder),
}

impl CellBuilder {
    /// Returns the builder of a column of this type; `None` if no row has values of the type.
    fn new(kind: &DataType, rows: usize) -> Option<Self> {
        if *kind == DataType::Utf8 {
            let bytes = rows.saturating_mul(RESERVED_TEXT_BYTES);
            return Some(Self::Text(StringBuilder::with_capacity(rows, bytes)));
        }
        if *kind == DataType::Int64 {
            return Some(Self::Number(Int64Builder::with_capacity(rows)));
        }
        if *kind == DataType::Boolean {
            return Some(Self::Flag(BooleanBuilder::with_capacity(rows)));
        }
        if matches!(kind, DataType::Timestamp(..)) {
            let builder = TimestampMicrosecondBuilder::with_capacity(rows);
            return Some(Self::Time(builder.with_data_type(kind.clone())));
        }
        None
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Number(mut builder) => Arc::new(builder.finish()),
            Self::Time(mut builder) => Arc::new(builder.finish()),
            Self::Flag(mut builder) => Arc::new(builder.finish()),
        }
    }
}

impl TableColumns {
    /// Returns the builder of the present cell.
    fn present(&mut self) -> Result<&mut CellBuilder, RowError> {
        let column = self.at.checked_sub(1).and_then(|at| self.columns.get_mut(at));
        column.map(|column| &mut column.builder).ok_or_else(|| RowError::unsupported("this cell"))
    }
}

impl CellSink for TableColumns {
    fn begin_cell(&mut self, name: &'static str) -> Result<(), RowError> {
        if self.columns.get(self.at).is_none_or(|column| column.name != name) {
            return Err(RowError(format!("the table has no column {name} here")));
        }
        self.at += 1;
        Ok(())
    }

    fn push_absent(&mut self) -> Result<(), RowError> {
        match self.present()? {
            CellBuilder::Text(builder) => builder.append_null(),
            CellBuilder::Number(builder) => builder.append_null(),
            CellBuilder::Time(builder) => builder.append_null(),
            CellBuilder::Flag(builder) => builder.append_null(),
        }
        Ok(())
    }

    fn mark_present(&mut self) {}

    fn push_flag(&mut self, flag: bool) -> Result<(), RowError> {
        let CellBuilder::Flag(builder) = self.present()? else {
            return Err(RowError::unsupported("a flag in this column"));
        };
        builder.append_value(flag);
        Ok(())
    }

    fn push_number(&mut self, number: i64) -> Result<(), RowError> {
        match self.present()? {
            CellBuilder::Number(builder) => builder.append_value(number),
            CellBuilder::Time(builder) => builder.append_value(number),
            CellBuilder::Text(_) | CellBuilder::Flag(_) => {
                return Err(RowError::unsupported("a number in this column"));
            }
        }
        Ok(())
    }

    fn push_text(&mut self, text: &str) -> Result<(), RowError> {
        let CellBuilder::Text(builder) = self.present()? else {
            return Err(RowError::unsupported("a text in this column"));
        };
        builder.append_value(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ingest::stream::batch::arrow_schema;
    use schemas::Provider;
    use schemas::problem::ProblemKind;
    use schemas::session::{ProblemRow, SessionRow, SourceRow, SourceStatus};
    use schemas::table::{PROBLEMS, SESSIONS, SOURCES, Table};
    use serde::de::DeserializeOwned;

    use super::*;

    fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        table: &Table,
        rows: &[T],
    ) {
        let batch = to_batch(&arrow_schema(table), rows).expect("fits");
        let back: Vec<T> = serde_arrow::from_record_batch(&batch).expect("reads");
        assert_eq!(back, rows);
    }

    #[test]
    fn the_rows_fit_the_tables() {
        let source = SourceRow::unread("/x".into(), SourceStatus::UnknownFormat, 1, 0);
        let known = SourceRow { provider: Some(Provider::Codex), head_hash: -7, ..source.clone() };
        check(&SOURCES, &[source, known]);
        let session =
            SessionRow { session_id: "s".into(), started_at: Some(5), ..SessionRow::default() };
        let gone = SessionRow { source_gone: true, title: Some("t".into()), ..session.clone() };
        check(&SESSIONS, &[session, gone]);
        let kind = ProblemKind::BadJson.as_str().to_owned();
        let (path, message) = ("/x".to_owned(), "m".to_owned());
        check(&PROBLEMS, &[ProblemRow { path, line: 1, byte: 2, kind, message, segment: 3 }]);
        check::<SessionRow>(&SESSIONS, &[]);
    }

    #[test]
    fn rows_of_another_table_are_refused() {
        let source = SourceRow::unread("/x".into(), SourceStatus::Ok, 1, 0);
        let error = to_batch(&arrow_schema(&SESSIONS), &[source]).expect_err("other columns");
        assert!(error.to_string().contains("no column path"), "{error}");
    }
}
