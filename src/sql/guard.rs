//! Checks with DuckDB's own parser that a query is one SELECT over the views, its own common
//! tables, and functions that make rows out of values.
//!
//! The whole tree that `json_serialize_sql` returns is walked. Every table that it names must be
//! known at that place, so that no name falls through to the catalog, to a file or to a function.

use schemas::view::VIEWS;
use serde_json::{Map, Value};

use super::error::{Fault, Mistake};
use super::hint;
use crate::base::sanitize::clean;

/// Table functions that are allowed: they return rows and read nothing.
const TABLE_FUNCTIONS: &[&str] = &["generate_series", "json_each", "json_tree", "range", "unnest"];

/// Functions that are not allowed: they report on the process or change it. All others only
/// compute.
const FORBIDDEN: &[&str] = &[
    "current_connection_id",
    "current_query",
    "current_query_id",
    "current_setting",
    "currval",
    "get_block_size",
    "getenv",
    "getvariable",
    "json_execute_serialized_sql",
    "json_serialize_plan",
    "nextval",
    "parse_duckdb_log_message",
    "sleep_ms",
    "txid_current",
    "write_log",
];

/// Name prefixes of further functions that are not allowed.
const FORBIDDEN_PREFIXES: &[&str] = &["__internal", "duckdb_", "inet_", "pg_", "pragma_", "read_"];

/// Kinds of table references that are allowed.
const TABLE_KINDS: &[&str] = &[
    "EMPTY",
    "EXPRESSION_LIST",
    "JOIN",
    "PIVOT",
    "SUBQUERY",
    "BASE_TABLE",
    "TABLE_FUNCTION",
    "SHOW_REF",
];

/// Returns the views that a parsed query names.
///
/// # Errors
///
/// If the query is not exactly one SELECT over the views.
pub(super) fn views_of(sql: &str, parsed: &Value) -> Result<Vec<&'static str>, Fault> {
    if parsed["error"] == true {
        return Err(not_parsed(sql, parsed));
    }
    let [statement] = parsed["statements"].as_array().map_or(&[][..], Vec::as_slice) else {
        return Err(refused("Give exactly one SELECT"));
    };
    let mut guard = Guard::default();
    guard.value(statement)?;
    Ok(guard.used)
}

/// Converts the parser's error. Only SELECT can be serialized.
fn not_parsed(sql: &str, parsed: &Value) -> Fault {
    let message = parsed["error_message"].as_str().unwrap_or("not a SELECT");
    if parsed["error_type"] != "parser" {
        let message = "Give exactly one SELECT; PIVOT needs its values: ON column IN ('a', 'b')";
        return refused(message);
    }
    let at = parsed["position"].as_str().and_then(|at| at.parse().ok());
    match at.and_then(|at| hint::place(sql, at)) {
        Some((line, column, near)) => {
            let message = format!("{message}\nat line {line}, column {column}: {near}");
            let message = clean(&message);
            Fault::Mistake(Mistake { message, place: Some((line, column)), name: None })
        }
        None => Fault::mistake(clean(message)),
    }
}

/// The state of the walk over the tree.
#[derive(Default)]
struct Guard {
    /// Common tables that can be named at the current place.
    tables: Vec<String>,
    used: Vec<&'static str>,
}

impl Guard {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
    fn value(&mut self, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Object(node) => self.node(node),
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item)),
            _ => Ok(()),
        }
    }

    fn node(&mut self, node: &Map<String, Value>) -> Result<(), Fault> {
        let known = self.tables.len();
        if let Some(common) = node.get("cte_map") {
            // A common table can name those before it, and those of the enclosing queries.
            for entry in common["map"].as_array().into_iter().flatten() {
                self.value(&entry["value"])?;
                self.tables.push(text(&entry["key"]).to_owned());
            }
        }
        self.check(node)?;
        if node.get("type").map(text) == Some("RECURSIVE_CTE_NODE") {
            // Only the repeated part sees the table itself.
            for (key, part) in node.iter().filter(|(key, _)| *key != "right") {
                self.part(key, part)?;
            }
            self.tables.push(node.get("cte_name").map_or("", text).to_owned());
            self.value(node.get("right").unwrap_or(&Value::Null))?;
        } else {
            for (key, part) in node {
                self.part(key, part)?;
            }
        }
        self.tables.truncate(known);
        Ok(())
    }

    fn part(&mut self, key: &str, part: &Value) -> Result<(), Fault> {
        if key == "cte_map" { Ok(()) } else { self.value(part) }
    }

    /// Checks the names in a node itself, without its children.
    fn check(&mut self, node: &Map<String, Value>) -> Result<(), Fault> {
        let field = |key: &str| node.get(key).map_or("", text);
        match (field("class"), field("type")) {
            ("FUNCTION" | "WINDOW", _) => function(field("function_name")),
            ("PARAMETER", _) => {
                let message = "Parameters cannot be given. Write the value into the SQL";
                Err(Fault::mistake(message))
            }
            ("", "BASE_TABLE") => self.table(node),
            ("", "TABLE_FUNCTION") => {
                let name = node.get("function").map_or("", |call| text(&call["function_name"]));
                table_function(name)
            }
            ("", "SHOW_REF") if node.get("query").is_none_or(Value::is_null) => {
                Err(refused("SHOW is not allowed; DESCRIBE and SUMMARIZE a view are"))
            }
            // These keys identify a table reference. Kinds that later versions add are refused.
            ("", kind)
                if node.contains_key("alias")
                    && node.contains_key("sample")
                    && !TABLE_KINDS.contains(&kind) =>
            {
                Err(refused(&format!("{kind} is not allowed")))
            }
            _ => Ok(()),
        }
    }

    fn table(&mut self, node: &Map<String, Value>) -> Result<(), Fault> {
        let field = |key: &str| node.get(key).map_or("", text);
        let name = field("table_name");
        if !field("schema_name").is_empty() || !field("catalog_name").is_empty() {
            let message = format!("'{name}': name a view alone, without a schema or catalog");
            return Err(refused(&message));
        }
        if self.tables.iter().any(|table| table.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        match VIEWS.iter().find(|view| view.name.eq_ignore_ascii_case(name)) {
            Some(view) => {
                if !self.used.contains(&view.name) {
                    self.used.push(view.name);
                }
                Ok(())
            }
            None => Err(unknown_table(name)),
        }
    }
}

fn unknown_table(name: &str) -> Fault {
    let near = hint::nearest(name, VIEWS.iter().map(|view| view.name));
    let near = near.map(|near| format!(". Did you mean '{near}'?")).unwrap_or_default();
    let reason = format!("There is no view '{name}', and files cannot be read{near}");
    Fault::NotAllowed { reason, name: Some(name.to_owned()) }
}

fn table_function(name: &str) -> Result<(), Fault> {
    if TABLE_FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let known = TABLE_FUNCTIONS.join(", ");
    Err(refused(&format!("The table function '{name}' is not allowed. Allowed: {known}")))
}

fn function(name: &str) -> Result<(), Fault> {
    let name = name.to_ascii_lowercase();
    let family = FORBIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if family || FORBIDDEN.contains(&name.as_str()) {
        return Err(refused(&format!("The function '{name}' is not allowed")));
    }
    Ok(())
}

fn refused(reason: &str) -> Fault {
    Fault::NotAllowed { reason: reason.to_owned(), name: None }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
