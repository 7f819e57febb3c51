//! The served tools: the rows of the registry in the form of the protocol.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use schemas::envelope::CONTRACT_VERSION;
use schemas::tool::{ServedTools, ToolSpec, find_servable_tool, label};
use serde_json::{Value, json};

use super::web::app;

/// Largest answer in characters, for clients that cap results.
const MAX_RESULT_CHARS: u32 = 100_000;

/// Returns the served tools, ordered by name. The tool that changes labels is listed only if the
/// server allows it, because its description costs every session tokens.
pub(super) fn list_tools(served: ServedTools, allows_labels: bool) -> Vec<Tool> {
    let listed = served.specs().filter(|spec| allows_labels || spec.name != label::SPEC.name);
    listed.map(|spec| to_protocol_tool(spec, served)).collect()
}

/// Returns the schema of a tool's arguments. It is built once, because reading every call needs it.
pub(super) fn input_schema(name: &str) -> &'static Value {
    static INPUTS: LazyLock<HashMap<&str, Value>> = LazyLock::new(|| {
        let names = ServedTools::servable_names().filter_map(find_servable_tool);
        names.map(|spec| (spec.name, (spec.input)())).collect()
    });
    INPUTS.get(name).unwrap_or(&Value::Null)
}

/// Returns a tool in the form of the protocol. Its texts name only tools that are served.
fn to_protocol_tool(spec: &'static ToolSpec, served: ServedTools) -> Tool {
    let mut tool = Tool::default();
    tool.name = spec.name.into();
    tool.title = Some(spec.title.to_owned());
    tool.description = Some(served.reword(spec.description).into());
    tool.input_schema = Arc::new(into_object(listed_input_schema(spec, served)));
    tool.output_schema = Some(Arc::new(output_schema()));
    tool.annotations = Some(
        ToolAnnotations::new()
            .read_only(spec.is_read_only())
            .destructive(!spec.is_read_only())
            .idempotent(true)
            .open_world(false),
    );
    tool.meta = Some(MetaObject(into_object(json!({
        "anthropic/maxResultSizeChars": MAX_RESULT_CHARS,
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
fn listed_input_schema(spec: &ToolSpec, served: ServedTools) -> Value {
    let mut schema = input_schema(spec.name).clone();
    for property in
        schema["properties"].as_object_mut().into_iter().flat_map(|all| all.values_mut())
    {
        if let Some(Value::String(text)) = property.get_mut("description") {
            *text = served.reword(text);
        }
    }
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
        let small = list_tools(ServedTools::MEMORY, false);
        let tools = [list_tools(ServedTools::ALL, true), small].concat();
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
