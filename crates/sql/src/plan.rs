//! Plans how the columns of a query are read: types that every format can hold as they are, the
//! rest as text.

use std::collections::HashSet;

use schemas::tool::query::QueryColumn;

use base::sanitize::{clean_text, truncate_for_json};

/// Maximum length in bytes of a column's name and type: a name may be a whole expression, and a
/// type a whole enum.
const MAX_NAME_BYTES: usize = 120;

/// The way to read a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnForm {
    /// The value as it is.
    Plain,
    /// The text that DuckDB writes for the value.
    Text,
    /// The text that DuckDB writes for an integer.
    Whole,
    /// JSON text, which becomes a value again if the format of the rows has nested values.
    Json,
}

/// The columns of a query and the way to read each.
pub(super) struct ColumnPlan {
    pub columns: Vec<QueryColumn>,
    pub forms: Vec<ColumnForm>,
    /// The text before the query in the planned statement.
    prefix: String,
}

impl ColumnPlan {
    /// Plans the columns. `is_binary` is true for Parquet and Arrow, which can also hold days, bytes
    /// and lists.
    pub(super) fn new(mut columns: Vec<QueryColumn>, is_binary: bool) -> Self {
        let mut forms = Vec::new();
        let mut selected = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let form = column_form(&column.sql_type, is_binary);
            forms.push(form);
            selected.push(match form {
                ColumnForm::Plain => format!("c{at}"),
                ColumnForm::Text | ColumnForm::Whole => format!("c{at}::VARCHAR AS c{at}"),
                ColumnForm::Json => format!("to_json(c{at})::VARCHAR AS c{at}"),
            });
        }
        let prefix = format!("SELECT {} FROM (\n", selected.join(", "));

        let mut known = HashSet::new();
        for (at, column) in columns.iter_mut().enumerate() {
            column.name = truncate_for_json(&clean_text(&column.name), MAX_NAME_BYTES).0.to_owned();
            column.sql_type = truncate_for_json(&column.sql_type, MAX_NAME_BYTES).0.to_owned();
            // The names in a JSON object must be different.
            if !known.insert(column.name.clone()) {
                column.name = format!("{}_{at}", column.name);
            }
        }
        Self { columns, forms, prefix }
    }

    /// Returns the statement that reads the columns of a query as planned. Without its limit DuckDB
    /// would compute the whole result. One row more than requested shows that there are more.
    pub(super) fn select_sql(&self, sql: &str, max_rows: usize) -> String {
        let names: Vec<_> = (0..self.columns.len()).map(|at| format!("c{at}")).collect();
        let limit = max_rows.saturating_add(1);
        format!("{}{sql}\n) AS query({}) LIMIT {limit}", self.prefix, names.join(", "))
    }

    /// Returns the number of bytes before the query in the planned statement.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }
}

/// Types that every format can hold, besides decimals.
const PLAIN_TYPES: &[&str] = &[
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "FLOAT",
    "DOUBLE",
    "VARCHAR",
    "TIMESTAMP",
];

/// Returns the way to read a column of a type. `is_binary` is true for Parquet and Arrow.
fn column_form(sql_type: &str, is_binary: bool) -> ColumnForm {
    // Arrow has no 128-bit integer; its decimals have one digit less.
    if sql_type == "HUGEINT" {
        return if is_binary { ColumnForm::Plain } else { ColumnForm::Whole };
    }
    if is_plain(sql_type) {
        return ColumnForm::Plain;
    }
    let element = sql_type.trim_end_matches("[]");
    if is_binary && (is_plain(element) || ["DATE", "BLOB"].contains(&element)) {
        return ColumnForm::Plain;
    }
    let is_nested = ["STRUCT(", "MAP(", "JSON"].iter().any(|start| sql_type.starts_with(start));
    if is_nested || sql_type.ends_with(']') { ColumnForm::Json } else { ColumnForm::Text }
}

fn is_plain(sql_type: &str) -> bool {
    PLAIN_TYPES.contains(&sql_type) || sql_type.starts_with("DECIMAL(")
}

/// Returns true if the values of a type are numbers.
pub(super) fn is_number(sql_type: &str) -> bool {
    sql_type.starts_with("DECIMAL(")
        || sql_type == "HUGEINT"
        || PLAIN_TYPES.contains(&sql_type)
            && !["BOOLEAN", "VARCHAR", "TIMESTAMP"].contains(&sql_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_form() {
        assert_eq!(column_form("DECIMAL(18,3)", false), ColumnForm::Plain);
        assert_eq!(
            (column_form("HUGEINT", false), column_form("HUGEINT", true)),
            (ColumnForm::Whole, ColumnForm::Plain)
        );
        assert_eq!(
            (column_form("DATE", false), column_form("DATE", true)),
            (ColumnForm::Text, ColumnForm::Plain)
        );
        assert_eq!(
            (column_form("VARCHAR[]", false), column_form("VARCHAR[]", true)),
            (ColumnForm::Json, ColumnForm::Plain)
        );
        assert_eq!(column_form("STRUCT(a HUGEINT)", true), ColumnForm::Json);
        assert_eq!(column_form("INTEGER[3]", true), ColumnForm::Json);
        for odd in ["UUID", "INTERVAL", "TIMESTAMP WITH TIME ZONE", "UHUGEINT", "\"NULL\"", "BIT"] {
            assert_eq!(column_form(odd, true), ColumnForm::Text, "{odd}");
        }
        assert!(is_number("HUGEINT") && !is_number("VARCHAR"));
    }
}
