//! The manifests of the plugins, each in the form that its client reads.

use serde_json::{Value, json};

use super::hooks::HOOKS_PATH;

/// The name of the plugins, of their marketplaces, and of the server in them.
pub(super) const NAME: &str = "sessions";

/// The path of the launcher in every plugin.
pub(super) const LAUNCHER_PATH: &str = "bin/sessions-mcp";

/// The path of the module in a package of npm.
pub(super) const MODULE_PATH: &str = "index.js";

pub(super) const DESCRIPTION: &str =
    "Search and analyze the history of your coding agents, locally and offline.";

const VERSION: &str = env!("CARGO_PKG_VERSION");

const HOMEPAGE: &str = env!("CARGO_PKG_HOMEPAGE");

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// Returns the name of who publishes, without the address.
fn author() -> &'static str {
    env!("CARGO_PKG_AUTHORS").split(" <").next().unwrap_or_default()
}

/// Environment variables that say where logs and the store are. Clients do not pass them to servers
/// unless the plugin names them.
const VARIABLES: &[PlaceVariable] = &[
    PlaceVariable {
        name: "CLAUDE_CONFIG_DIR",
        title: "Claude Code folder",
        description: "Where Claude Code keeps its logs, if not in ~/.claude",
    },
    PlaceVariable {
        name: "CODEX_HOME",
        title: "Codex folder",
        description: "Where Codex keeps its logs, if not in ~/.codex",
    },
    PlaceVariable {
        name: "SESSIONS_STORE",
        title: "Sessions store",
        description: "Where sessions keeps its store, if not in the default folder",
    },
];

/// An environment variable that names a folder.
struct PlaceVariable {
    name: &'static str,
    title: &'static str,
    description: &'static str,
}

pub(super) fn claude_marketplace() -> Value {
    json!({
        "name": NAME,
        "owner": { "name": author() },
        "metadata": { "description": DESCRIPTION, "version": VERSION },
        "plugins": [{
            "name": NAME,
            "source": "./claude",
            "description": DESCRIPTION,
        }],
    })
}

/// Returns the manifest of Claude Code, whose fields are also in those of other clients.
pub(super) fn claude_plugin() -> Value {
    json!({
        "name": NAME,
        "version": VERSION,
        "description": DESCRIPTION,
        "author": { "name": author() },
        "homepage": HOMEPAGE,
        "repository": REPOSITORY,
        "license": LICENSE,
        "keywords": ["history", "sessions", "search", "mcp"],
    })
}

pub(super) fn claude_mcp() -> Value {
    let command = format!("${{CLAUDE_PLUGIN_ROOT}}/{LAUNCHER_PATH}");
    json!({ "mcpServers": { NAME: { "command": command, "args": [] } } })
}

pub(super) fn codex_marketplace() -> Value {
    json!({
        "name": NAME,
        "interface": { "displayName": "sessions" },
        "plugins": [{
            "name": NAME,
            "source": { "source": "local", "path": "./codex" },
            "policy": { "installation": "AVAILABLE", "authentication": "ON_INSTALL" },
            "category": "Productivity",
        }],
    })
}

pub(super) fn codex_plugin() -> Value {
    let more = json!({
        "skills": "./skills/",
        "hooks": format!("./{HOOKS_PATH}"),
        "mcpServers": "./.mcp.json",
        "interface": {
            "displayName": "Session history",
            "shortDescription": DESCRIPTION,
            "developerName": author(),
            "category": "Productivity",
            "capabilities": ["Read"],
            "websiteURL": HOMEPAGE,
        },
    });
    join_fields(claude_plugin(), more)
}

/// Returns an object with the fields of both, in this order.
fn join_fields(mut first: Value, mut second: Value) -> Value {
    if let (Some(fields), Some(more)) = (first.as_object_mut(), second.as_object_mut()) {
        fields.append(more);
    }
    first
}

/// Codex starts the server in the folder of the plugin, and passes only the variables named.
pub(super) fn codex_mcp() -> Value {
    let variables: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
    json!({
        "mcpServers": {
            NAME: { "command": "sh", "args": [LAUNCHER_PATH], "cwd": ".", "env_vars": variables },
        },
    })
}

pub(super) fn gemini_extension() -> Value {
    let mut settings = Vec::new();
    for variable in VARIABLES {
        settings.push(json!({
            "name": variable.title,
            "description": variable.description,
            "envVar": variable.name,
            "sensitive": false,
        }));
    }
    let command = format!("${{extensionPath}}/{LAUNCHER_PATH}");
    json!({
        "name": NAME,
        "version": VERSION,
        "description": DESCRIPTION,
        "mcpServers": { NAME: { "command": command, "args": [] } },
        "settings": settings,
    })
}

/// The npm package whose module OpenCode loads.
pub(super) fn opencode_package() -> Value {
    npm_package("opencode", "opencode-plugin")
}

/// The npm package that pi installs. Its field `pi` names what pi loads.
pub(super) fn pi_package() -> Value {
    let mut manifest = npm_package("pi", "pi-package");
    manifest["pi"] = json!({ "extensions": [format!("./{MODULE_PATH}")], "skills": ["./skills"] });
    manifest
}

fn npm_package(client: &str, keyword: &str) -> Value {
    json!({
        "name": format!("{}-{client}", env!("CARGO_PKG_NAME")),
        "version": VERSION,
        "description": DESCRIPTION,
        "author": author(),
        "homepage": HOMEPAGE,
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
        "license": LICENSE,
        "keywords": [keyword, "history", "sessions", "search", "mcp"],
        "type": "module",
        "main": format!("./{MODULE_PATH}"),
    })
}

/// The manifest of Agent Plugins 1.0.0, which allows no other fields.
pub(super) fn agent_plugin_plugin() -> Value {
    let schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
    join_fields(json!({ "$schema": schema }), claude_plugin())
}

pub(super) fn agent_plugin_mcp() -> Value {
    let command = format!("./{LAUNCHER_PATH}");
    json!({
        "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
        "mcpServers": { NAME: { "type": "stdio", "command": command, "args": [] } },
    })
}
