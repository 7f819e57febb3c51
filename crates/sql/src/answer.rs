//! Writes rows that another engine returned, like those of a query here.

use std::io;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::array_value_to_string;
use schemas::tool::query::QueryColumn;
use serde_json::Value;

use super::output::RowWriter;
use super::plan::ColumnPlan;
use super::protocol::OutputRequest;
use super::query::{SqlQuery, SqlSummary};

/// Returns rows in a format, or as the data of a tool's answer: as many as the limits of `query` allow.
///
/// # Errors
/// Returns the reason if the rows cannot be written.
pub fn encode_rows(
    batches: &[RecordBatch],
    query: &SqlQuery<'_>,
) -> Result<(Vec<u8>, SqlSummary), String> {
    let mut readable = Vec::new();
    for batch in batches {
        readable.push(readable_batch(batch)?);
    }
    let schema = readable.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let plan = ColumnPlan::new(batches.first().map_or_else(Vec::new, describe_columns), false);
    let mut bytes = Vec::new();
    let written = write_rows(&plan, schema, OutputRequest::of_query(query), &readable, &mut bytes);
    Ok((bytes, written.map_err(|error| error.to_string())?))
}

fn write_rows(
    plan: &ColumnPlan,
    schema: Arc<Schema>,
    output: OutputRequest,
    batches: &[RecordBatch],
    out: &mut Vec<u8>,
) -> io::Result<SqlSummary> {
    let mut writer = RowWriter::new(plan, schema, output, Box::new(out))?;
    for batch in batches {
        if !writer.write_batch(batch)? {
            break;
        }
    }
    writer.finish()
}

/// Returns the columns with the names that DuckDB has for their types.
fn describe_columns(batch: &RecordBatch) -> Vec<QueryColumn> {
    let fields = batch.schema().fields().clone();
    let columns = fields.iter().map(|field| QueryColumn {
        name: field.name().clone(),
        sql_type: sql_type(field.data_type()),
    });
    columns.collect()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other types are read as text")]
fn sql_type(kind: &DataType) -> String {
    match kind {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Timestamp(_, _) => "TIMESTAMP".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::List(field) => format!("{}[]", sql_type(field.data_type())),
        _ => "VARCHAR".to_owned(),
    }
}

/// Returns the rows with the types that an answer can hold: lists as JSON, other types as text.
fn readable_batch(batch: &RecordBatch) -> Result<RecordBatch, String> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let column = readable_column(column).map_err(|error| error.to_string())?;
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|error| error.to_string())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other types are read as text")]
fn readable_column(column: &ArrayRef) -> Result<ArrayRef, arrow::error::ArrowError> {
    match column.data_type() {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(_, _)
        | DataType::Timestamp(_, _)
        | DataType::Utf8 => Ok(Arc::clone(column)),
        DataType::Date32 => cast(column, &DataType::Utf8),
        DataType::List(field) if *field.data_type() == DataType::Utf8 => Ok(texts_as_json(column)),
        _ => {
            let mut texts = Vec::with_capacity(column.len());
            for row in 0..column.len() {
                let is_null = column.is_null(row);
                texts.push(if is_null { None } else { Some(array_value_to_string(column, row)?) });
            }
            Ok(Arc::new(StringArray::from(texts)))
        }
    }
}

/// Returns lists of texts as JSON.
fn texts_as_json(column: &ArrayRef) -> ArrayRef {
    let lists = column.as_list::<i32>();
    let texts = lists.iter().map(|list| {
        let list = list?;
        let texts = list.as_string::<i32>().iter();
        Some(Value::from(texts.map(|text| text.map(str::to_owned)).collect::<Vec<_>>()).to_string())
    });
    Arc::new(texts.collect::<StringArray>())
}
