//! The names of the packages. Who publishes them, and where, is in `[workspace.package]` of `Cargo.toml`.

/// The name on crates.io, PyPI and npm. `sessions` on crates.io belongs to someone else.
pub(crate) const PACKAGE: &str = "sessions-mcp";

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

pub(crate) const HOMEPAGE: &str = env!("CARGO_PKG_HOMEPAGE");

pub(crate) const LICENCE: &str = env!("CARGO_PKG_LICENSE");

/// Who publishes, with an address: `NAME <ADDRESS>`.
pub(crate) const MAINTAINER: &str = env!("CARGO_PKG_AUTHORS");

/// The name for winget, which starts with the owner of the repository.
pub(crate) const WINGET_IDENTIFIER: &str = "AgentSessions.Sessions";

pub(crate) const DESCRIPTION: &str =
    "Search, analyze and query the session logs of your coding agents, locally.";

/// File name of the bill of materials.
pub(crate) const SBOM_NAME: &str = "sessions-mcp.cdx.json";

/// Returns the name of who publishes, without the address.
pub(crate) fn publisher() -> &'static str {
    MAINTAINER.split(" <").next().unwrap_or_default()
}

/// Returns the owner of the repository on GitHub.
pub(crate) fn owner() -> &'static str {
    REPOSITORY.split('/').nth(3).unwrap_or_default()
}

/// Returns the name in the MCP registry.
pub(crate) fn registry_name() -> String {
    format!("io.github.{}/sessions", owner())
}
