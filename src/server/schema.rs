//! The served tools: the registry's rows with their schemas, small enough for a model's context.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemas::tool::{TOOLS, ToolSpec, details, event, list, query, search, stats};
use serde_json::{Value, json};

/// Every tool, in the order of names.
pub(super) fn tools() -> Vec<Tool> {
    TOOLS.iter().map(tool).collect()
}

fn tool(spec: &ToolSpec) -> Tool {
    let (input, data) = match spec.name {
        "search_events" => (input::<search::SearchArgs>(), output::<search::SearchData>()),
        "get_event_details" => (input::<event::EventArgs>(), output::<event::EventData>()),
        "list_sessions" => (input::<list::ListArgs>(), output::<list::ListData>()),
        "query_sql" => (input::<query::QueryArgs>(), output::<query::QueryData>()),
        "session_stats" => (input::<stats::StatsArgs>(), output::<stats::StatsData>()),
        _ => (input::<details::DetailArgs>(), output::<details::DetailData>()),
    };
    let mut tool = Tool::default();
    tool.name = spec.name.into();
    tool.title = Some(spec.title.to_owned());
    tool.description = Some(spec.description.into());
    tool.input_schema = Arc::new(input);
    tool.output_schema = Some(Arc::new(envelope(data)));
    tool.annotations = Some(
        ToolAnnotations::new()
            .read_only(spec.read_only)
            .destructive(spec.destructive)
            .idempotent(spec.idempotent)
            .open_world(spec.open_world),
    );
    let mut meta = JsonObject::new();
    meta.insert("anthropic/maxResultSizeChars".to_owned(), spec.max_result_chars.into());
    tool.meta = Some(MetaObject(meta));
    tool
}

/// The schema of a tool's arguments.
fn input<T: JsonSchema>() -> JsonObject {
    let mut schema =
        generate::<T>(schemars::generate::SchemaSettings::draft2020_12().for_deserialize());
    tidy(&mut schema, true);
    let mut schema = object(schema);
    schema.remove("description");
    schema
}

/// The schema of a tool's data: the names and types of its parts. What the rows hold would be
/// paid with every list of the tools; the rows show it themselves.
fn output<T: JsonSchema>() -> Value {
    let mut schema =
        generate::<T>(schemars::generate::SchemaSettings::draft2020_12().for_serialize());
    tidy(&mut schema, false);
    for part in
        schema["properties"].as_object_mut().into_iter().flat_map(|parts| parts.values_mut())
    {
        let inner = if part["type"] == "array" { &mut part["items"] } else { part };
        if inner["type"] == "object" {
            *inner = json!({ "type": "object" });
        }
    }
    schema
}

fn generate<T: JsonSchema>(settings: schemars::generate::SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The envelope around a tool's data (DESIGN.md section 6).
fn envelope(data: Value) -> JsonObject {
    object(json!({
        "type": "object",
        "properties": {
            "status": { "type": "string" },
            "data": data,
            "pagination": { "type": "object" },
            "hint": { "type": "string" },
            "warnings": { "type": "array" },
            "metadata": { "type": "object" },
        },
        "required": ["status", "data", "metadata"],
    }))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Takes out what costs tokens or makes clients complain: dialect, titles, number formats, the
/// null of optional fields, and descriptions where `described` is false.
fn tidy(schema: &mut Value, described: bool) {
    match schema {
        Value::Object(map) => {
            // A property may have one of these names: only keywords are strings or numbers.
            for keyword in ["$schema", "title", "format"] {
                if map.get(keyword).is_some_and(Value::is_string) {
                    map.remove(keyword);
                }
            }
            if !described {
                if map.get("description").is_some_and(Value::is_string) {
                    map.remove("description");
                }
                // What is absent when empty says nothing more as required.
                map.remove("required");
            }
            if map.get("minimum") == Some(&json!(0)) {
                map.remove("minimum");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [single] = types.as_slice() {
                    let single = single.clone();
                    map.insert("type".to_owned(), single);
                }
            }
            if let Some(Value::Array(options)) = map.get_mut("anyOf") {
                options.retain(|option| *option != json!({ "type": "null" }));
                if let [Value::Object(single)] = options.as_slice() {
                    let single = single.clone();
                    map.remove("anyOf");
                    map.extend(single);
                }
            }
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            map.values_mut().for_each(|value| tidy(value, described));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, described)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_small_and_every_argument_is_described() {
        let tools = tools();
        let json = serde_json::to_string(&tools).expect("serialises");
        assert!(json.len() / 4 <= 4000, "{} tokens", json.len() / 4);
        for tool in &tools {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            for (name, property) in tool.input_schema["properties"].as_object().expect("object") {
                assert!(property["description"].is_string(), "{}.{name}", tool.name);
            }
            let text = serde_json::to_string(tool).expect("serialises");
            for word in ["$schema", "uint32", "\"null\"", "$ref"] {
                assert!(!text.contains(word), "{} has {word}", tool.name);
            }
        }
    }
}
