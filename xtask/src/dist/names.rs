//! The names of the packages.

/// The name on crates.io, PyPI and npm. `sessions` on crates.io belongs to someone else.
pub(super) const PACKAGE: &str = "sessions-mcp";

/// The name in the MCP registry.
pub(super) const REGISTRY_NAME: &str = "io.github.agent-sessions/sessions";

pub(super) const REPOSITORY: &str = "https://github.com/agent-sessions/sessions";

pub(super) const DESCRIPTION: &str =
    "Search, analyze and query the session logs of your coding agents, locally.";

/// File name of the bill of materials.
pub(super) const SBOM_NAME: &str = "sessions-mcp.cdx.json";
