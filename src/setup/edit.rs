//! Adds an entry to a configuration in JSON (with comments), TOML or YAML, and leaves the rest of the
//! text unchanged.

use std::ffi::OsStr;
use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table};

use super::entry::{SERVER_NAME, ServerEntry, has_value};
use super::yaml::{add_to_yaml, remove_from_yaml};

/// Edits a text without what editors on Windows add and the parsers do not expect: a byte order mark, and
/// `\r\n` at the end of every line. A text that changes gets them back.
pub(super) fn edit_plain(
    text: &str,
    edit: impl FnOnce(&str) -> Result<String, String>,
) -> Result<String, String> {
    const BYTE_ORDER_MARK: &str = "\u{feff}";

    let plain = text.trim_start_matches(BYTE_ORDER_MARK);
    let mark = &text[..text.len() - plain.len()];
    let lines = plain.matches('\n').count();
    let is_windows = lines > 0 && plain.matches("\r\n").count() == lines;
    let plain = if is_windows { plain.replace("\r\n", "\n") } else { plain.to_owned() };
    let edited = edit(&plain)?;
    if edited == plain {
        return Ok(text.to_owned());
    }
    let edited = if is_windows { edited.replace('\n', "\r\n") } else { edited };
    Ok(format!("{mark}{edited}"))
}

/// Returns `text` with the entry added. The error is the reason why the text cannot take the entry.
pub(super) fn add_entry(path: &Path, text: &str, entry: &ServerEntry) -> Result<String, String> {
    match path.extension().and_then(OsStr::to_str) {
        Some("toml") => add_to_toml(text, entry),
        Some("yaml") => add_to_yaml(text, entry),
        Some(_) | None => add_to_json(text, entry),
    }
}

/// Returns `text` without the entry. The error is the reason why the text cannot be changed.
pub(super) fn remove_entry(path: &Path, text: &str, entry: &ServerEntry) -> Result<String, String> {
    match path.extension().and_then(OsStr::to_str) {
        Some("toml") => remove_from_toml(text, entry),
        Some("yaml") => Ok(remove_from_yaml(text, entry)),
        Some(_) | None => remove_from_json(text, entry),
    }
}

/// Parses JSON with comments.
pub(super) fn parse_json(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| format!("it is not JSON ({error})"))
}

fn parse_toml(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error| format!("it is not TOML ({error})"))
}

fn remove_from_json(text: &str, entry: &ServerEntry) -> Result<String, String> {
    let root = parse_json(text)?;
    let Some(mut object) = root.object_value() else { return Ok(text.to_owned()) };
    for table in entry_tables(entry, &object) {
        let Some(inner) = object.object_value(table) else { return Ok(text.to_owned()) };
        object = inner;
    }
    if let Some(property) = object.get(SERVER_NAME) {
        property.remove();
    }
    Ok(root.to_string())
}

fn remove_from_toml(text: &str, entry: &ServerEntry) -> Result<String, String> {
    let mut document = parse_toml(text)?;
    if let Some(table) = document.get_mut(entry.table).and_then(Item::as_table_like_mut) {
        table.remove(SERVER_NAME);
    }
    Ok(document.to_string())
}

fn add_to_json(text: &str, entry: &ServerEntry) -> Result<String, String> {
    let root = parse_json(text)?;
    let mut object = root.object_value_or_create().ok_or("it is not a JSON object")?;
    for table in entry_tables(entry, &object) {
        object = object
            .object_value_or_create(table)
            .ok_or_else(|| format!("'{table}' in it is not an object"))?;
    }

    match object.get(SERVER_NAME) {
        // Additional fields of an existing entry belong to the user.
        Some(known) => {
            let known = known
                .object_value()
                .ok_or_else(|| format!("'{SERVER_NAME}' in it is not an object"))?;
            for (name, value) in &entry.fields {
                match known.get(name) {
                    Some(field)
                        if field.to_serde_value().is_some_and(|known| has_value(&known, value)) => {
                    }
                    Some(field) => field.set_value(to_cst_value(value)),
                    None => {
                        known.append(name, to_cst_value(value));
                    }
                }
            }
        }
        None => {
            let fields =
                entry.fields.iter().map(|(name, value)| (name.clone(), to_cst_value(value)));
            object.append(SERVER_NAME, CstInputValue::Object(fields.collect()));
        }
    }
    Ok(root.to_string())
}

/// Returns the tables around the entry. OpenCode 2 has its servers one table deeper; a file that
/// contains that table is for OpenCode 2.
fn entry_tables(entry: &ServerEntry, root: &CstObject) -> Vec<&'static str> {
    let mut tables = vec![entry.table];
    let inner = root.object_value("mcp").and_then(|mcp| mcp.object_value("servers"));
    // In the older format, a server itself may be named `servers`.
    if tables == ["mcp"] && inner.is_some_and(|servers| servers.get("type").is_none()) {
        tables.push("servers");
    }
    tables
}

/// Converts a value to the form in which the JSON editor takes it.
pub(super) fn to_cst_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(to_cst_value).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(name, value)| (name.clone(), to_cst_value(value))).collect(),
        ),
    }
}

fn add_to_toml(text: &str, entry: &ServerEntry) -> Result<String, String> {
    let mut document = parse_toml(text)?;
    let mut item = document.as_item_mut();
    for name in [entry.table, SERVER_NAME] {
        if item.is_inline_table() {
            return Err(format!("'{name}' would have to go into an inline table"));
        }
        let table = item.as_table_like_mut().ok_or("a value is where a table should be")?;
        item = table.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            // A table that contains only tables needs no line of its own.
            table.set_implicit(name != SERVER_NAME);
            Item::Table(table)
        });
    }

    let table =
        item.as_table_like_mut().ok_or_else(|| format!("'{SERVER_NAME}' in it is not a table"))?;
    for (name, value) in &entry.fields {
        // Values that are already correct keep their formatting and their comments.
        if table.get(name).and_then(to_json).is_some_and(|known| has_value(&known, value)) {
            continue;
        }
        if let Some(value) = to_toml_item(value) {
            table.insert(name, value);
        }
    }
    Ok(document.to_string())
}

/// Returns the text of the settings file of this program with patterns of folders added to `exclude`.
/// Everything else stays as it is.
pub(crate) fn exclude_folders(text: &str, patterns: &[String]) -> Result<String, String> {
    let mut document = parse_toml(text)?;
    let ingest = document.entry("ingest").or_insert_with(|| Item::Table(Table::new()));
    let ingest = ingest.as_table_like_mut().ok_or("'ingest' in it is not a table")?;
    let exclude = ingest.entry("exclude").or_insert_with(|| toml_edit::value(Array::new()));
    let exclude = exclude.as_array_mut().ok_or("'exclude' in it is not a list")?;
    for pattern in patterns {
        if !exclude.iter().any(|known| known.as_str() == Some(pattern)) {
            exclude.push(pattern);
        }
    }
    Ok(document.to_string())
}

/// Returns the text of the settings file of this program without patterns of folders in `exclude`. Everything
/// else stays as it is.
pub(crate) fn include_folders(text: &str, patterns: &[String]) -> Result<String, String> {
    let mut document = parse_toml(text)?;
    let exclude = document.get_mut("ingest").and_then(|ingest| ingest.get_mut("exclude"));
    if let Some(exclude) = exclude.and_then(Item::as_array_mut) {
        let is_named = |known: &toml_edit::Value| {
            known.as_str().is_some_and(|known| patterns.iter().any(|pattern| pattern == known))
        };
        exclude.retain(|known| !is_named(known));
    }
    Ok(document.to_string())
}

/// Converts an item of TOML; `None` for kinds of values that no setting of the server has.
fn to_json(item: &Item) -> Option<Value> {
    if let Some(items) = item.as_array() {
        return Some(items.iter().map(toml_edit::Value::as_str).collect());
    }
    item.as_str().map(Value::from).or_else(|| item.as_bool().map(Value::from))
}

/// Converts a value to TOML; `None` for kinds of values that no setting of the server has.
#[expect(clippy::wildcard_enum_match_arm, reason = "settings of servers are made of these")]
fn to_toml_item(value: &Value) -> Option<Item> {
    match value {
        Value::String(text) => Some(toml_edit::value(text.as_str())),
        Value::Bool(value) => Some(toml_edit::value(*value)),
        Value::Array(values) => {
            Some(toml_edit::value(values.iter().filter_map(Value::as_str).collect::<Array>()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(table: &'static str) -> ServerEntry {
        let fields = json!({ "command": "/opt/sessions", "args": ["mcp"] });
        ServerEntry { table, fields: fields.as_object().cloned().expect("object") }
    }

    fn added_to(name: &str, text: &str, table: &'static str) -> Result<String, String> {
        edit_plain(text, |text| add_entry(Path::new(name), text, &entry(table)))
    }

    /// What was added goes, and everything else stays as it was.
    #[test]
    fn an_added_entry_is_removed() {
        for (name, table, before) in [
            (
                "a.json",
                "mcpServers",
                "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n",
            ),
            (
                "a.toml",
                "mcp_servers",
                "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n",
            ),
            ("a.yaml", "extensions", "mode: x # mine\nextensions:\n  other:\n    cmd: x\n"),
        ] {
            let remove = |text: &str| {
                edit_plain(text, |text| remove_entry(Path::new(name), text, &entry(table)))
            };
            let windows = format!("\u{feff}{}", before.replace('\n', "\r\n"));
            for before in [before, windows.as_str()] {
                let after = added_to(name, before, table).expect("adds");
                assert_ne!(after, before, "{name}");
                assert_eq!(after.contains("\r\n"), before.contains("\r\n"), "{name}");
                assert!(!after.replace("\r\n", "").contains('\r'), "{name}");
                assert_eq!(remove(&after).as_deref(), Ok(before), "{name}");
                assert_eq!(remove(before).as_deref(), Ok(before), "{name}");
            }
        }
    }

    #[test]
    fn json_keeps_its_comments_and_everything_else() {
        let before = "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }, // keep\n  },\n}\n";
        let after = added_to("a.json", before, "mcpServers").expect("edits");
        for kept in
            ["// mine", "\"theme\": \"dark\"", "\"other\": { \"command\": \"x\" }", "// keep"]
        {
            assert!(after.contains(kept), "{kept}: {after}");
        }
        assert!(after.contains("\"/opt/sessions\""), "{after}");
        assert_eq!(added_to("a.json", &after, "mcpServers").as_ref(), Ok(&after), "twice");
    }

    #[test]
    fn a_file_that_is_not_there_is_made_of_the_entry_alone() {
        let made = added_to("a.json", "", "mcpServers").expect("makes");
        let value: Value = serde_json::from_str(&made).expect("JSON");
        assert_eq!(value["mcpServers"]["sessions"]["args"], json!(["mcp"]));
        let made = added_to("a.toml", "", "mcp_servers").expect("makes");
        assert!(made.starts_with("[mcp_servers.sessions]\n"), "{made}");
    }

    #[test]
    fn an_entry_that_is_there_is_brought_up_to_date_with_its_further_fields() {
        let before = "{\"mcpServers\": {\"sessions\": {\"command\": \"/old\", \"timeout\": 5}}}";
        let after = added_to("a.json", before, "mcpServers").expect("edits");
        let value: Value = serde_json::from_str(&after).expect("JSON");
        let own = &value["mcpServers"]["sessions"];
        assert_eq!((&own["command"], &own["timeout"]), (&json!("/opt/sessions"), &json!(5)));
        let before =
            "model = \"x\" # mine\n\n[mcp_servers.sessions]\ncommand = \"/old\"\nenabled = true\n";
        let after = added_to("a.toml", before, "mcp_servers").expect("edits");
        for line in [
            "model = \"x\" # mine",
            "command = \"/opt/sessions\"",
            "enabled = true",
            "args = [\"mcp\"]",
        ] {
            assert!(after.contains(line), "{line}: {after}");
        }
        assert_eq!(added_to("a.toml", &after, "mcp_servers").as_ref(), Ok(&after), "twice");
    }

    #[test]
    fn arguments_that_the_user_added_stay() {
        for (name, table, before) in [
            (
                "a.json",
                "mcpServers",
                r#"{"mcpServers":{"sessions":{"command":"/opt/sessions","args":["mcp","--profile","memory"]}}}"#,
            ),
            (
                "a.toml",
                "mcp_servers",
                "[mcp_servers.sessions]\ncommand = \"/opt/sessions\"\nargs = [\"mcp\", \"--profile\", \"memory\"]\n",
            ),
            (
                "a.yaml",
                "extensions",
                "extensions:\n  sessions:\n    command: \"/opt/sessions\"\n    args: [\"mcp\", \"--profile\", \"memory\"]\n",
            ),
        ] {
            assert_eq!(added_to(name, before, table).as_deref(), Ok(before), "{name}");
        }
    }

    #[test]
    fn what_cannot_take_it_is_refused() {
        for (name, text) in [
            ("a.json", "{ broken"),
            ("a.json", "[]"),
            ("a.json", "{\"mcpServers\": 3}"),
            ("a.json", "{\"mcpServers\": {\"sessions\": 3}}"),
            ("a.toml", "= broken"),
            ("a.toml", "mcpServers = 3"),
        ] {
            assert!(added_to(name, text, "mcpServers").is_err(), "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_stays() {
        for (name, text) in [("a.json", "{}"), ("a.toml", "model = \"x\"\n"), ("a.yaml", "a: 1\n")]
        {
            let text = format!("\u{feff}{text}");
            let after = added_to(name, &text, "mcpServers").expect("edits");
            assert!(after.starts_with('\u{feff}') && after.contains("/opt/sessions"), "{after}");
            assert_eq!(after.matches('\u{feff}').count(), 1);
            assert_eq!(added_to(name, &after, "mcpServers").as_ref(), Ok(&after), "twice");
        }
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn both_kinds_of_opencode_are_known() {
        let old = added_to("a.json", "{\"mcp\": {}}", "mcp").expect("edits");
        let new = added_to("a.json", "{\"mcp\": {\"servers\": {}}}", "mcp").expect("edits");
        assert!(parsed(&old)["mcp"]["sessions"].is_object());
        assert!(parsed(&new)["mcp"]["servers"]["sessions"].is_object());
    }

    #[test]
    fn patterns_are_added_once_and_the_rest_of_the_file_stays() {
        let acme = ["acme".to_owned()];
        let add = |text: &str| edit_plain(text, |text| exclude_folders(text, &acme)).expect("adds");
        assert_eq!(add(""), "[ingest]\nexclude = [\"acme\"]\n");
        let kept = "# mine\n[display]\ntimezone = \"UTC\" # home\n";
        assert!(add(kept).starts_with(kept));
        let both = add("[ingest]\nexclude = [\"~/secret/**\"] # never\n");
        assert_eq!(both, "[ingest]\nexclude = [\"~/secret/**\", \"acme\"] # never\n");
        assert_eq!(add(&both), both);
        let windows = "\u{feff}# mine\r\n[ingest]\r\nexclude = []\r\n";
        assert_eq!(add(windows), windows.replace("[]", "[\"acme\"]"));
        for invalid in ["[ingest", "ingest = 3", "[ingest]\nexclude = \"acme\""] {
            assert!(exclude_folders(invalid, &acme).is_err(), "{invalid}");
        }
    }
}
