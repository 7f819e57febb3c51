//! The served tools: the rows of the registry in the form of the protocol.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use schemas::tool::{CONTRACT_VERSION, TOOLS, ToolSpec, label};
use serde_json::{Value, json};

use super::web::app;

/// Returns the tools, ordered by name. The tool that changes labels is listed only if the server
/// allows it, because its description costs every session tokens.
pub(super) fn list_tools(allows_labels: bool) -> Vec<Tool> {
    let served = TOOLS.iter().filter(|spec| allows_labels || spec.name != label::SPEC.name);
    served.map(to_protocol_tool).collect()
}

/// Returns the schema of a tool's arguments. It is built once, because reading every call needs it.
pub(super) fn input_schema(name: &str) -> &'static Value {
    static INPUTS: LazyLock<HashMap<&str, Value>> =
        LazyLock::new(|| TOOLS.iter().map(|spec| (spec.name, (spec.input)())).collect());
    INPUTS.get(name).unwrap_or(&Value::Null)
}

/// Returns a tool of the registry in the form of the protocol.
fn to_protocol_tool(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::default();
    tool.name = spec.name.into();
    tool.title = Some(spec.title.to_owned());
    tool.description = Some(spec.description.into());
    tool.input_schema = Arc::new(into_object(listed_input_schema(spec)));
    tool.output_schema = Some(Arc::new(output_schema()));
    tool.annotations = Some(
        ToolAnnotations::new()
            .read_only(spec.read_only)
            .destructive(spec.destructive)
            .idempotent(spec.idempotent)
            .open_world(spec.open_world),
    );
    tool.meta = Some(MetaObject(into_object(json!({
        "anthropic/maxResultSizeChars": spec.max_result_chars,
        "schema_version": CONTRACT_VERSION,
    }))));
    tool
}

/// Names the app that shows the results of a tool, if there is one.
pub(super) fn name_app(tool: &mut Tool) {
    if let (Some(uri), Some(meta)) = (app::app_of_tool(&tool.name), tool.meta.as_mut()) {
        meta.0.insert("ui".to_owned(), json!({ "resourceUri": uri }));
    }
}

/// Returns the arguments as the list of tools shows them. The names of the agents, which take forty
/// words, are left out: a description names the usual ones.
fn listed_input_schema(spec: &ToolSpec) -> Value {
    let mut schema = input_schema(spec.name).clone();
    if let Some(Value::Object(provider)) = schema.pointer_mut("/properties/provider") {
        provider.remove("enum");
    }
    schema
}

/// Returns the schema of every answer: an envelope around data. More would be paid for once per tool
/// in each conversation; answers show their fields, and `docs/mcp.md` lists them.
fn output_schema() -> JsonObject {
    let data = json!({ "data": { "type": "object" } });
    into_object(json!({ "type": "object", "properties": data, "required": ["data"] }))
}

/// Returns the fields of a JSON object; empty for any other value.
pub(super) fn into_object(value: Value) -> JsonObject {
    if let Value::Object(object) = value { object } else { JsonObject::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_is_described() {
        let tools = list_tools(true);
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
