//! Plans how the columns of a query are read: types that every format can hold as they are, the
//! rest as text.

use std::collections::HashSet;

use schemas::tool::query::QueryColumn;

use crate::base::sanitize::{clean, head};

/// Maximum length in bytes of a column's name and type: a name may be a whole expression, and a
/// type a whole enum.
const NAME_BYTES: usize = 120;

/// The way to read a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
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
pub(super) struct Plan {
    pub columns: Vec<QueryColumn>,
    pub forms: Vec<Form>,
    /// The text before the query in [`Self::select`].
    prefix: String,
}

impl Plan {
    /// Plans the columns. `binary` is true for Parquet and Arrow, which can also hold days, bytes
    /// and lists.
    pub(super) fn new(mut columns: Vec<QueryColumn>, binary: bool) -> Self {
        let forms: Vec<_> = columns.iter().map(|column| form(&column.sql_type, binary)).collect();
        let read: Vec<_> = forms
            .iter()
            .enumerate()
            .map(|(at, form)| match form {
                Form::Plain => format!("c{at}"),
                Form::Text | Form::Whole => format!("c{at}::VARCHAR AS c{at}"),
                Form::Json => format!("to_json(c{at})::VARCHAR AS c{at}"),
            })
            .collect();
        let prefix = format!("SELECT {} FROM (\n", read.join(", "));
        let mut known = HashSet::new();
        for (at, column) in columns.iter_mut().enumerate() {
            column.name = head(&clean(&column.name), NAME_BYTES).0.to_owned();
            column.sql_type = head(&column.sql_type, NAME_BYTES).0.to_owned();
            // The names in a JSON object must be different.
            if !known.insert(column.name.clone()) {
                column.name = format!("{}_{at}", column.name);
            }
        }
        Self { columns, forms, prefix }
    }

    /// Returns the query with its columns read as planned. Without this limit DuckDB would compute
    /// the whole result; one row more than requested shows that there are more.
    pub(super) fn select(&self, sql: &str, max_rows: usize) -> String {
        let names: Vec<_> = (0..self.columns.len()).map(|at| format!("c{at}")).collect();
        let limit = max_rows.saturating_add(1);
        format!("{}{sql}\n) AS query({}) LIMIT {limit}", self.prefix, names.join(", "))
    }

    /// Returns the number of bytes before the query in [`Self::select`].
    pub(super) fn before(&self) -> usize {
        self.prefix.len()
    }
}

const PLAIN: &[&str] = &[
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

fn form(sql_type: &str, binary: bool) -> Form {
    let plain = |name: &str| PLAIN.contains(&name) || name.starts_with("DECIMAL(");
    let of_lists = sql_type.trim_end_matches("[]");
    // Arrow has no 128-bit integer; its decimals have one digit less.
    if sql_type == "HUGEINT" {
        return if binary { Form::Plain } else { Form::Whole };
    }
    if plain(sql_type) || binary && (plain(of_lists) || ["DATE", "BLOB"].contains(&of_lists)) {
        return Form::Plain;
    }
    let nested = ["STRUCT(", "MAP(", "JSON"].iter().any(|start| sql_type.starts_with(start));
    if nested || sql_type.ends_with(']') { Form::Json } else { Form::Text }
}

/// Returns true if the values of a type are numbers.
pub(super) fn is_number(sql_type: &str) -> bool {
    sql_type.starts_with("DECIMAL(")
        || sql_type == "HUGEINT"
        || PLAIN.contains(&sql_type) && !["BOOLEAN", "VARCHAR", "TIMESTAMP"].contains(&sql_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_form() {
        assert_eq!(form("DECIMAL(18,3)", false), Form::Plain);
        assert_eq!((form("HUGEINT", false), form("HUGEINT", true)), (Form::Whole, Form::Plain));
        assert_eq!((form("DATE", false), form("DATE", true)), (Form::Text, Form::Plain));
        assert_eq!((form("VARCHAR[]", false), form("VARCHAR[]", true)), (Form::Json, Form::Plain));
        assert_eq!(form("STRUCT(a HUGEINT)", true), Form::Json);
        assert_eq!(form("INTEGER[3]", true), Form::Json);
        for odd in ["UUID", "INTERVAL", "TIMESTAMP WITH TIME ZONE", "UHUGEINT", "\"NULL\"", "BIT"] {
            assert_eq!(form(odd, true), Form::Text, "{odd}");
        }
        assert!(is_number("HUGEINT") && !is_number("VARCHAR"));
    }
}
