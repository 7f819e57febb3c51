//! The dashdash blocks of the server, its tools and its resources, as JSON.

use schemas::ErrorCode;
use schemas::tool::{Risk, TOOLS, ToolSpec};
use serde_json::{Map, Value, json};

use super::guide;

/// The version of dashdash that is followed.
pub const SPEC_VERSION: &str = "0.2.0";

/// `read` while every tool only reads.
pub fn access_level() -> &'static str {
    if TOOLS.iter().all(|tool| tool.read_only) { "read" } else { "interact" }
}

/// The server's block.
pub fn server() -> Map<String, Value> {
    let tools: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
    object(json!({
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

/// A tool's block as it stands in the list of tools, which every session pays for: what it does to
/// data is said by the annotations there.
pub fn tool(spec: &ToolSpec) -> Value {
    json!({
        "category": spec.category,
        "cliEquivalent": format!("sessions {}", spec.command),
    })
}

/// A tool's whole block.
pub fn tool_in_full(spec: &ToolSpec) -> Value {
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
        "operationType": operation(spec),
        "idempotent": spec.idempotent,
        "sideEffects": [],
        "reversible": !spec.destructive,
        "cliEquivalent": format!("sessions {}", spec.command),
        "examples": examples,
        "errors": errors(spec.all_errors()),
    })
}

/// A resource's block.
pub fn resource(kind: &str, refreshable: bool, command: &str) -> Value {
    json!({
        "resourceType": kind,
        "refreshable": refreshable,
        "cacheDuration": 0,
        "cliEquivalent": format!("sessions {command}"),
    })
}

/// Codes with what they mean and what to do.
pub fn errors(codes: impl Iterator<Item = ErrorCode>) -> Value {
    codes
        .map(|code| {
            json!({ "code": code, "description": code.meaning(), "resolution": code.resolution() })
        })
        .collect()
}

fn operation(spec: &ToolSpec) -> &'static str {
    match spec.risk {
        Risk::Read => "read",
        Risk::Write => "write",
        Risk::Delete => "delete",
    }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value { object } else { Map::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_hold_what_the_specification_requires() {
        let block = server();
        for field in ["specVersion", "identity", "accessLevel", "alternativeAccess"] {
            assert!(block.contains_key(field), "{field}");
        }
        let description = block["identity"]["description"].as_str().expect("text");
        assert!(description.contains("Use when the user asks"));
        for spec in TOOLS {
            assert!(tool(spec).to_string().len() < 100, "{}", spec.name);
            assert!(tool_in_full(spec)["errors"].as_array().is_some_and(|list| !list.is_empty()));
        }
    }
}
