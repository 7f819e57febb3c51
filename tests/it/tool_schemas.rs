//! Checks the listed tools against the schemas that the APIs of models accept, because clients pass
//! the schemas on to these.
//!
//! The rules, as of November 2026:
//!
//! - **Gemini**, `functionDeclarations[].parameters` (<https://ai.google.dev/api/caching#Schema>): a
//!   subset of OpenAPI 3.0. `type` is one word and never a list ("Proto field is not repeating,
//!   cannot start list" refuses the whole request). An array has `items`. Only values of type string
//!   have an `enum`. There is no `const`, `oneOf`, `allOf`, `not` or `$ref`. Converters remove
//!   `additionalProperties`, which the field does not know.
//! - **OpenAI**, strict functions (<https://platform.openai.com/docs/guides/structured-outputs>,
//!   "Supported schemas"): the root is an object without `anyOf`. Every object has
//!   `additionalProperties: false` and requires all its properties; converters add the optional ones
//!   with null and drop `default`. At most 10 levels, 5,000 properties and 1,000 values of enums.
//!   No `allOf`, `oneOf`, `not`, `if`, `dependentRequired`, `patternProperties` or `$ref` outside
//!   of the schema. A name matches `^[a-zA-Z0-9_-]{1,64}$`.
//! - **Anthropic**, `tools[].input_schema`
//!   (<https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use>): JSON Schema
//!   2020-12 with `type: object` at the root, and there no `oneOf`, `allOf` or `anyOf`. A name
//!   matches `^[a-zA-Z0-9_-]{1,64}$`, and property names `^[a-zA-Z0-9_.-]{1,64}$`.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::mcp::Client;

/// The keywords that all three APIs accept after the conversions named above.
const KEYWORDS: &[&str] = &[
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "default",
    "additionalProperties",
];

const TYPES: &[&str] = &["string", "integer", "number", "boolean", "array", "object"];

/// The bounds of strict functions of OpenAI.
const MAX_LEVELS: usize = 10;
const MAX_ENUM_VALUES: usize = 1000;

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Appends what an API refuses in a schema. `place` names the schema.
fn append_refusals(schema: &Value, place: &str, level: usize, out: &mut Vec<String>) {
    let Some(object) = schema.as_object() else {
        out.push(format!("{place}: not an object"));
        return;
    };
    for keyword in object.keys().filter(|keyword| !KEYWORDS.contains(&keyword.as_str())) {
        out.push(format!("{place}: keyword {keyword}"));
    }
    let kind = schema["type"].as_str().unwrap_or("no single type");
    if !TYPES.contains(&kind) {
        out.push(format!("{place}: type {}", schema["type"]));
    }
    if level > MAX_LEVELS {
        out.push(format!("{place}: level {level}"));
    }
    if let Some(values) = schema.get("enum") {
        let values = values.as_array().map_or(&[][..], Vec::as_slice);
        let is_valid = kind == "string"
            && (1..=MAX_ENUM_VALUES).contains(&values.len())
            && values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty()));
        if !is_valid {
            out.push(format!("{place}: enum"));
        }
    }
    if (kind == "array") != schema["items"].is_object() {
        out.push(format!("{place}: items"));
    }
    if kind == "array" {
        append_refusals(&schema["items"], &format!("{place}[]"), level + 1, out);
    }
    if (kind == "object") != schema["properties"].is_object() {
        out.push(format!("{place}: properties"));
    }
    if kind == "object" && schema["additionalProperties"] != json!(false) {
        out.push(format!("{place}: additionalProperties"));
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        if !is_name(name) {
            out.push(format!("{place}: name {name}"));
        }
        append_refusals(property, &format!("{place}.{name}"), level + 1, out);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if name.as_str().is_none_or(|name| schema["properties"][name].is_null()) {
            out.push(format!("{place}: requires {name}"));
        }
    }
}

#[test]
fn every_api_accepts_the_listed_tools() {
    let env = TestEnv::new();
    let mut client = Client::legacy(&env);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().expect("tools");
    assert!(!tools.is_empty());
    let mut refusals = Vec::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_name(name) {
            refusals.push(format!("name {name}"));
        }
        append_refusals(&tool["inputSchema"], name, 1, &mut refusals);
    }
    assert!(refusals.is_empty(), "{refusals:#?}");
}

#[test]
fn the_rules_refuse_what_the_apis_refuse() {
    for (property, refusal) in [
        (json!({ "type": ["array", "string"], "items": { "type": "string" } }), "t.x: type"),
        (json!({ "type": ["string", "null"] }), "t.x: type"),
        (json!({ "type": "array" }), "t.x: items"),
        (json!({ "type": "integer", "enum": [1] }), "t.x: enum"),
        (json!({ "anyOf": [{ "type": "string" }] }), "t.x: keyword anyOf"),
        (json!({ "type": "object", "properties": {} }), "t.x: additionalProperties"),
        (json!({ "type": "string", "const": "a" }), "t.x: keyword const"),
    ] {
        let schema = json!({
            "type": "object", "properties": { "x": property }, "additionalProperties": false
        });
        let mut refusals = Vec::new();
        append_refusals(&schema, "t", 1, &mut refusals);
        assert!(refusals.iter().any(|found| found.starts_with(refusal)), "{refusals:?}");
    }
}
