//! Checks with DuckDB's own parser that a query is one SELECT over the views, its own common
//! tables, and functions that make rows out of values.
//!
//! The whole tree that `json_serialize_sql` returns is walked. Every table that it names must be
//! known at that place, so that no name falls through to the catalog, to a file or to a function.

use schemas::nearest;
use schemas::view::VIEWS;
use serde_json::{Map, Value};

use super::error::{Fault, Mistake};
use super::hint;
use base::sanitize::clean_text;

/// Table functions that are allowed: they return rows and read nothing.
const TABLE_FUNCTIONS: &[&str] = &["generate_series", "json_each", "json_tree", "range", "unnest"];

/// Functions that are not allowed: they report on the process or change it. All others only
/// compute.
const FORBIDDEN_FUNCTIONS: &[&str] = &[
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

/// Returns the names of the views that a parsed query names.
///
/// # Errors
///
/// If the query is not exactly one SELECT over the views.
pub(super) fn check_query(sql: &str, parsed: &Value) -> Result<Vec<&'static str>, Fault> {
    if parsed["error"] == true {
        return Err(parser_fault(sql, parsed));
    }
    let [statement] = parsed["statements"].as_array().map_or(&[][..], Vec::as_slice) else {
        return Err(not_allowed_fault("Give exactly one SELECT"));
    };
    let mut guard = QueryGuard::default();
    guard.check_value(statement)?;
    Ok(guard.used)
}

/// Converts the parser's error. Only SELECT can be serialized.
fn parser_fault(sql: &str, parsed: &Value) -> Fault {
    let message = parsed["error_message"].as_str().unwrap_or("not a SELECT");
    if parsed["error_type"] != "parser" {
        let message = "Give exactly one SELECT; PIVOT needs its values: ON column IN ('a', 'b')";
        return not_allowed_fault(message);
    }
    let at = parsed["position"].as_str().and_then(|at| at.parse().ok());
    let Some(place) = at.and_then(|at| hint::query_place(sql, at)) else {
        return Fault::mistake(clean_text(message));
    };
    let message = clean_text(&format!("{message}\n{place}"));
    Fault::Mistake(Mistake { message, place: Some((place.line, place.column)), name: None })
}

/// The state of the walk over the tree.
#[derive(Default)]
struct QueryGuard {
    /// Common tables that can be named at the current place.
    tables: Vec<String>,
    /// The views that were named until now.
    used: Vec<&'static str>,
}

impl QueryGuard {
    /// Checks a value of the tree with everything below it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
    fn check_value(&mut self, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Object(node) => self.check_node(node),
            Value::Array(items) => items.iter().try_for_each(|item| self.check_value(item)),
            _ => Ok(()),
        }
    }

    fn check_node(&mut self, node: &Map<String, Value>) -> Result<(), Fault> {
        let known = self.tables.len();
        if let Some(common) = node.get("cte_map") {
            // A common table can name those before it, and those of the enclosing queries.
            for entry in common["map"].as_array().into_iter().flatten() {
                self.check_value(&entry["value"])?;
                self.tables.push(value_text(&entry["key"]).to_owned());
            }
        }
        self.check_names(node)?;
        if node.get("type").map(value_text) == Some("RECURSIVE_CTE_NODE") {
            // Only the repeated part sees the table itself.
            for (key, part) in node.iter().filter(|(key, _)| *key != "right") {
                self.check_part(key, part)?;
            }
            self.tables.push(node.get("cte_name").map_or("", value_text).to_owned());
            self.check_value(node.get("right").unwrap_or(&Value::Null))?;
        } else {
            for (key, part) in node {
                self.check_part(key, part)?;
            }
        }
        self.tables.truncate(known);
        Ok(())
    }

    /// Checks a part of a node, unless it is the map of common tables, which is checked first.
    fn check_part(&mut self, key: &str, part: &Value) -> Result<(), Fault> {
        if key == "cte_map" { Ok(()) } else { self.check_value(part) }
    }

    /// Checks the names in a node itself, without its children.
    fn check_names(&mut self, node: &Map<String, Value>) -> Result<(), Fault> {
        match (field_text(node, "class"), field_text(node, "type")) {
            ("FUNCTION" | "WINDOW", _) => check_function(field_text(node, "function_name")),
            ("PARAMETER", _) => {
                let message = "Parameters are not supported. Write the value into the SQL";
                Err(Fault::mistake(message))
            }
            ("", "BASE_TABLE") => self.check_table(node),
            ("", "TABLE_FUNCTION") => {
                let name =
                    node.get("function").map_or("", |call| value_text(&call["function_name"]));
                check_table_function(name)
            }
            ("", "SHOW_REF") if node.get("query").is_none_or(Value::is_null) => {
                Err(not_allowed_fault("SHOW is not allowed. Use DESCRIBE or SUMMARIZE with a view"))
            }
            // These keys identify a table reference. Kinds that later versions add are refused.
            ("", kind)
                if node.contains_key("alias")
                    && node.contains_key("sample")
                    && !TABLE_KINDS.contains(&kind) =>
            {
                Err(not_allowed_fault(&format!("{kind} is not allowed")))
            }
            _ => Ok(()),
        }
    }

    /// Checks a reference to a table, which must be a common table or a view.
    fn check_table(&mut self, node: &Map<String, Value>) -> Result<(), Fault> {
        let name = field_text(node, "table_name");
        if !field_text(node, "schema_name").is_empty()
            || !field_text(node, "catalog_name").is_empty()
        {
            let message =
                format!("'{name}' is qualified with a schema or a catalog. Name the view alone");
            return Err(not_allowed_fault(&message));
        }
        if self.tables.iter().any(|table| table.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        let Some(view) = VIEWS.iter().find(|view| view.name.eq_ignore_ascii_case(name)) else {
            return Err(unknown_view_fault(name));
        };
        if !self.used.contains(&view.name) {
            self.used.push(view.name);
        }
        Ok(())
    }
}

fn unknown_view_fault(name: &str) -> Fault {
    let near = nearest(name, VIEWS.iter().map(|view| view.name));
    let suggestion = near.map(|near| format!(". Did you mean '{near}'?")).unwrap_or_default();
    let reason = format!("There is no view '{name}', and files cannot be read{suggestion}");
    Fault::NotAllowed { reason, name: Some(name.to_owned()) }
}

fn check_table_function(name: &str) -> Result<(), Fault> {
    if TABLE_FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let known = TABLE_FUNCTIONS.join(", ");
    Err(not_allowed_fault(&format!("The table function '{name}' is not allowed. Allowed: {known}")))
}

fn check_function(name: &str) -> Result<(), Fault> {
    let name = name.to_ascii_lowercase();
    let has_prefix = FORBIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if has_prefix || FORBIDDEN_FUNCTIONS.contains(&name.as_str()) {
        return Err(not_allowed_fault(&format!("The function '{name}' is not allowed")));
    }
    Ok(())
}

fn not_allowed_fault(reason: &str) -> Fault {
    Fault::NotAllowed { reason: reason.to_owned(), name: None }
}

/// Returns the text of a field; empty if the node does not have it.
fn field_text<'n>(node: &'n Map<String, Value>, key: &str) -> &'n str {
    node.get(key).map_or("", value_text)
}

fn value_text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
