//! Converts the cells of a batch to JSON values and the rows to text.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use schemas::Timestamp;
use schemas::tool::query::QueryColumn;
use serde_json::{Number, Value};

use super::plan::ColumnForm;
use base::sanitize::clean_text;

/// Maximum number of characters of a cell in a table for reading.
const MAX_TABLE_CELL_CHARS: usize = 80;

/// Number of decimals of an amount of money in a table for reading. A request may cost less than a
/// cent.
const MONEY_DIGITS: usize = 4;

/// Maximum number of decimal digits that a double represents without loss.
const MAX_EXACT_DIGITS: usize = 15;

/// Returns the value of a cell. Integers beyond 64 bits are strings, so that none is rounded.
#[expect(clippy::wildcard_enum_match_arm, reason = "a plan reads every other type as text")]
pub(super) fn cell_value(column: &dyn Array, row: usize, form: ColumnForm) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float32 => float_value(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float_value(column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, _) => {
            decimal_value(&column.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let time = column.as_primitive::<TimestampMicrosecondType>().value(row);
            Timestamp(time).to_string().into()
        }
        DataType::Utf8 => {
            let text = clean_text(column.as_string::<i32>().value(row));
            match form {
                ColumnForm::Whole => decimal_value(&text),
                ColumnForm::Json => serde_json::from_str(&text).unwrap_or(Value::String(text)),
                ColumnForm::Plain | ColumnForm::Text => Value::String(text),
            }
        }
        // A plan reads every other type as text.
        other => format!("({other})").into(),
    }
}

/// Returns a float as a number, or as a string if it is not finite: JSON has no infinity.
fn float_value(number: f64) -> Value {
    Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

/// Returns a decimal number as a number if that loses no digit, otherwise as a string.
fn decimal_value(text: &str) -> Value {
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    match number {
        Some(number) if digits <= MAX_EXACT_DIGITS && text.contains('.') => Value::Number(number),
        _ => text.into(),
    }
}

/// Returns a value as text; null is empty.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a line of CSV (RFC 4180). Null is an empty cell, an empty text is two quotes.
pub(super) fn csv_line(values: &[Value]) -> String {
    values.iter().map(csv_cell).collect::<Vec<_>>().join(",")
}

fn csv_cell(value: &Value) -> String {
    let text = value_text(value);
    if value.is_null() {
        return text;
    }
    let must_quote =
        text.is_empty() || text.starts_with(' ') || text.contains([',', '"', '\n', '\r']);
    if must_quote { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Returns a line of a Markdown table.
pub(super) fn markdown_row(cells: &[String]) -> String {
    let cells = cells.iter().map(|text| text.replace('|', "\\|").replace('\n', "<br>"));
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// Returns a cell of a table for reading: one line of at most [`MAX_TABLE_CELL_CHARS`] characters,
/// then an ellipsis if there are more. Money is rounded.
pub(super) fn table_cell(value: &Value, column: &QueryColumn) -> String {
    if let Some(cost) = value.as_f64().filter(|_| is_money(column)) {
        return format!("{cost:.MONEY_DIGITS$}");
    }
    let text = value_text(value).replace('\n', "\\n").replace('\t', " ");
    match text.char_indices().nth(MAX_TABLE_CELL_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// True if a column has amounts of money: its name says so, and they are not whole numbers.
fn is_money(column: &QueryColumn) -> bool {
    let name = column.name.to_lowercase();
    ["DOUBLE", "FLOAT"].contains(&column.sql_type.as_str())
        && (name.contains("usd") || name.contains("cost"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_digit_is_lost() {
        assert_eq!(decimal_value("42"), json!(42));
        assert_eq!(decimal_value("18446744073709551615"), json!(u64::MAX));
        let huge = "170141183460469231731687303715884105727";
        assert_eq!(decimal_value(huge), json!(huge));
        assert_eq!(decimal_value("1.500"), json!(1.5));
        assert_eq!(decimal_value("0.12345678901234567890"), json!("0.12345678901234567890"));
        assert_eq!(float_value(f64::NAN), json!("NaN"));
    }

    #[test]
    fn money_is_rounded_in_tables() {
        let cell = |name: &str, sql_type: &str, value: Value| {
            let column = QueryColumn { name: name.to_owned(), sql_type: sql_type.to_owned() };
            table_cell(&value, &column)
        };
        assert_eq!(cell("sum(cost_usd)", "DOUBLE", json!(4.500_000_000_1)), "4.5000");
        assert_eq!(cell("cost_usd", "DOUBLE", json!(null)), "");
        assert_eq!(cell("rate", "DOUBLE", json!(0.123_456_7)), "0.1234567");
        assert_eq!(cell("cost", "BIGINT", json!(3)), "3");
    }

    #[test]
    fn rows_as_text() {
        let values = [json!(null), json!(""), json!("a,\"b\"\nc"), json!(1.5), json!([1])];
        assert_eq!(csv_line(&values), ",\"\",\"a,\"\"b\"\"\nc\",1.5,[1]");
        assert_eq!(markdown_row(&["a|b".to_owned(), "c\nd".to_owned()]), "| a\\|b | c<br>d |");
    }
}
