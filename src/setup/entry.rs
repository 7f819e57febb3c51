//! Describes the entry of the server in a client's configuration.

use serde_json::{Map, Value};

/// The name of the server in configurations.
pub(super) const SERVER_NAME: &str = "sessions";

/// The server's entry, and its location in the file.
#[derive(Debug, Clone)]
pub(super) struct ServerEntry {
    /// The table that holds the entries of servers.
    pub(super) table: &'static str,
    pub(super) fields: Map<String, Value>,
}

/// Returns whether a field of an existing entry has this value. Arguments that the user added at the end
/// of a list, such as `--profile memory`, stay.
pub(super) fn has_value(known: &Value, value: &Value) -> bool {
    match (known, value) {
        (Value::Array(known), Value::Array(values)) => known.starts_with(values),
        (known, value) => known == value,
    }
}
