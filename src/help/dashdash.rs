//! The dashdash blocks of the server, its tools and its resources, as JSON.

use schemas::ErrorCode;
use schemas::tool::{ServedTools, TOOLS, ToolSpec};
use serde_json::{Map, Value, json};

use super::guide;

/// The version of dashdash that the blocks follow.
pub const SPEC_VERSION: &str = "0.2.0";

/// Returns the access that the tools need: `read` if every tool only reads.
pub fn access_level() -> &'static str {
    if TOOLS.iter().all(|tool| tool.is_read_only()) { "read" } else { "interact" }
}

/// Returns the block of a server that serves these tools.
pub fn server_block(served: ServedTools) -> Map<String, Value> {
    let tools: Vec<_> = served.specs().map(|tool| tool.name).collect();
    into_object(json!({
        "specVersion": SPEC_VERSION,
        "identity": { "name": "sessions", "description": guide::DESCRIPTION },
        "accessLevel": access_level(),
        // Required by the specification, null where there is none.
        "alternativeAccess": { "cliUrl": null, "apiUrl": null, "webUrl": null },
        "install": { "cargo": "cargo xtask install" },
        "requires": { "auth": "none", "env": [], "scopes": [] },
        "invocation": { "modelInvocable": true, "userInvocable": true, "allowedTools": tools },
        "contentVersion": env!("CARGO_PKG_VERSION"),
    }))
}

/// Returns a tool's block for the list of tools. It is short, because every session pays for the
/// list.
pub fn tool_block(spec: &ToolSpec) -> Value {
    json!({
        "category": spec.category,
        "operationType": spec.risk,
        "idempotent": true,
        "cliEquivalent": format!("sessions {}", spec.command),
    })
}

/// Returns a tool's whole block.
pub fn full_tool_block(spec: &ToolSpec) -> Value {
    let examples: Vec<_> = spec
        .examples
        .iter()
        .map(|example| {
            let input: Value = serde_json::from_str(example.arguments).unwrap_or_default();
            json!({ "description": example.description, "input": input, "command": example.command })
        })
        .collect();
    json!({
        "name": spec.name,
        "category": spec.category,
        "operationType": spec.risk,
        "idempotent": true,
        "sideEffects": [],
        "reversible": spec.is_read_only(),
        "cliEquivalent": format!("sessions {}", spec.command),
        "examples": examples,
        "errors": error_list(spec.all_errors()),
    })
}

/// Returns a resource's block.
pub fn resource_block(kind: &str, refreshable: bool, command: &str) -> Value {
    json!({
        "resourceType": kind,
        "refreshable": refreshable,
        "cacheDuration": 0,
        "cliEquivalent": format!("sessions {command}"),
    })
}

/// Returns error codes with their meanings and what to do.
pub fn error_list(codes: impl Iterator<Item = ErrorCode>) -> Value {
    codes
        .map(|code| {
            json!({ "code": code, "description": code.meaning(), "resolution": code.resolution() })
        })
        .collect()
}

fn into_object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value { object } else { Map::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_hold_what_the_specification_requires() {
        let block = server_block(ServedTools::ALL);
        for field in ["specVersion", "identity", "accessLevel", "alternativeAccess"] {
            assert!(block.contains_key(field), "{field}");
        }
        let description = block["identity"]["description"].as_str().expect("text");
        assert!(description.contains("Use when the user asks"));
        for spec in TOOLS {
            assert!(tool_block(spec).to_string().len() < 120, "{}", spec.name);
            assert!(
                full_tool_block(spec)["errors"].as_array().is_some_and(|list| !list.is_empty())
            );
        }
    }
}
