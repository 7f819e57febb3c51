//! The served tools: the registry's rows as the protocol has them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use schemas::tool::{CONTRACT_VERSION, NAMESPACE, TOOLS, ToolSpec};
use serde_json::{Value, json};

use crate::help::dashdash;

/// Every tool, in the order of names.
pub(super) fn tools() -> Vec<Tool> {
    TOOLS.iter().map(tool).collect()
}

/// The schema of a tool's arguments; made once, as every call is read by it.
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

/// The arguments as the list of tools shows them. The names of the agents, twenty words, stand
/// there once; where else an agent is asked for, its description says where.
fn listed(spec: &ToolSpec) -> Value {
    let mut schema = input(spec.name).clone();
    let provider = schema.pointer_mut("/properties/provider").and_then(Value::as_object_mut);
    if let Some(provider) = provider.filter(|_| spec.name != "list_sessions") {
        provider.remove("enum");
    }
    schema
}

/// The envelope around a tool's data, as far as a program needs it to go on: the rest of it is the
/// same for every tool and would be paid for nine times.
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
