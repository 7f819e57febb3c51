//! The served tools: the rows of the registry in the form of the protocol.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use schemas::tool::{CONTRACT_VERSION, NAMESPACE, TOOLS, ToolSpec};
use serde_json::{Value, json};

use crate::help::dashdash;

/// Returns every tool, ordered by name.
pub(super) fn tools() -> Vec<Tool> {
    TOOLS.iter().map(tool).collect()
}

/// Returns the schema of a tool's arguments. It is built once, because reading every call needs it.
pub(super) fn input(name: &str) -> &'static Value {
    static INPUTS: LazyLock<HashMap<&str, Value>> =
        LazyLock::new(|| TOOLS.iter().map(|spec| (spec.name, (spec.input)())).collect());
    INPUTS.get(name).unwrap_or(&Value::Null)
}

fn tool(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::default();
    tool.name = spec.name.into();
    tool.title = Some(spec.title.to_owned());
    tool.description = Some(spec.description.into());
    tool.input_schema = Arc::new(object(listed(spec)));
    tool.output_schema = Some(Arc::new(envelope(spec)));
    tool.annotations = Some(
        ToolAnnotations::new()
            .read_only(spec.read_only)
            .destructive(spec.destructive)
            .idempotent(spec.idempotent)
            .open_world(spec.open_world),
    );
    tool.meta = Some(MetaObject(object(json!({
        "anthropic/maxResultSizeChars": spec.max_result_chars,
        "schema_version": CONTRACT_VERSION,
        (format!("{NAMESPACE}/dashdash")): dashdash::tool(spec),
    }))));
    tool
}

/// Returns the arguments as the list of tools shows them. Only one tool lists the names of the
/// agents, which take twenty words; wherever else an agent is an argument, the description refers
/// to that list.
fn listed(spec: &ToolSpec) -> Value {
    let mut schema = input(spec.name).clone();
    let provider = schema.pointer_mut("/properties/provider").and_then(Value::as_object_mut);
    if let Some(provider) = provider.filter(|_| spec.name != "list_sessions") {
        provider.remove("enum");
    }
    schema
}

/// Returns the schema of the envelope around a tool's data, limited to the parts that a program
/// needs to continue. The rest is the same for every tool and would be paid for nine times, once
/// per tool.
fn envelope(spec: &ToolSpec) -> JsonObject {
    let mut properties = json!({ "data": (spec.output)() });
    if input(spec.name)["properties"]["cursor"].is_object() {
        properties["pagination"] = json!({ "type": "object" });
    }
    object(json!({ "type": "object", "properties": properties, "required": ["data"] }))
}

pub(super) fn object(value: Value) -> JsonObject {
    if let Value::Object(object) = value { object } else { JsonObject::new() }
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
