//! Where the clients keep their configurations.

use std::path::PathBuf;

use ingest::provider::format::AgentFolders;
use schemas::client::Client;

/// Returns the configuration file of a client.
pub(super) fn config_path(client: Client, places: &AgentFolders<'_>) -> PathBuf {
    match client {
        Client::Claude => match places.env_path("CLAUDE_CONFIG_DIR") {
            Some(dir) => dir.join(".claude.json"),
            None => places.home_path(".claude.json"),
        },
        Client::Opencode => opencode_path(places),
        Client::Codex => client_folder(client, places).join("config.toml"),
        Client::Gemini | Client::Zed => client_folder(client, places).join("settings.json"),
        Client::Vscode | Client::Cursor => client_folder(client, places).join("mcp.json"),
        Client::Copilot => client_folder(client, places).join("mcp-config.json"),
        Client::ClaudeDesktop => client_folder(client, places).join("claude_desktop_config.json"),
        Client::Windsurf | Client::Antigravity => {
            client_folder(client, places).join("mcp_config.json")
        }
        Client::Jetbrains => client_folder(client, places).join("mcp/mcp.json"),
        Client::Cline => client_folder(client, places).join("settings/cline_mcp_settings.json"),
        Client::Goose => client_folder(client, places).join("config.yaml"),
        Client::Kiro => client_folder(client, places).join("settings/mcp.json"),
    }
}

/// Returns the folder that exists once a client has run.
pub(super) fn client_folder(client: Client, places: &AgentFolders<'_>) -> PathBuf {
    match client {
        Client::Claude => env_or_home(places, "CLAUDE_CONFIG_DIR", ".claude"),
        Client::Codex => env_or_home(places, "CODEX_HOME", ".codex"),
        Client::Copilot => env_or_home(places, "COPILOT_HOME", ".copilot"),
        // The variable replaces the home folder.
        Client::Gemini => match places.env_path("GEMINI_CLI_HOME") {
            Some(home) => home.join(".gemini"),
            None => places.home_path(".gemini"),
        },
        Client::Opencode => places.config_path("opencode"),
        Client::Vscode => places.application_path("Code/User"),
        Client::Cursor => places.home_path(".cursor"),
        Client::ClaudeDesktop => places.application_path("Claude"),
        Client::Windsurf => places.home_path(".codeium/windsurf"),
        // On macOS, too, Zed keeps its settings below `.config`.
        Client::Zed if cfg!(windows) => places.application_path("Zed"),
        Client::Zed => places.config_path("zed"),
        Client::Jetbrains => places.home_path(".junie"),
        Client::Cline => places.application_path("Code/User/globalStorage/saoudrizwan.claude-dev"),
        Client::Goose if cfg!(windows) => places.application_path("Block/goose/config"),
        Client::Goose => places.config_path("goose"),
        Client::Kiro => places.home_path(".kiro"),
        Client::Antigravity => antigravity_folder(places),
    }
}

fn env_or_home(places: &AgentFolders<'_>, variable: &str, folder: &str) -> PathBuf {
    places.env_path(variable).unwrap_or_else(|| places.home_path(folder))
}

/// Returns the folder that the editor and the command line share, or that of an earlier version, of
/// which each had its own.
fn antigravity_folder(places: &AgentFolders<'_>) -> PathBuf {
    let shared = places.home_path(".gemini/config");
    let earlier =
        [".gemini/antigravity-cli", ".gemini/antigravity"].map(|name| places.home_path(name));
    if shared.exists() {
        return shared;
    }
    earlier.into_iter().find(|folder| folder.exists()).unwrap_or(shared)
}

/// Returns the file that OpenCode reads: the one with comments if it exists, otherwise the one
/// without.
fn opencode_path(places: &AgentFolders<'_>) -> PathBuf {
    let folder = client_folder(Client::Opencode, places);
    let commented_path = folder.join("opencode.jsonc");
    if commented_path.exists() { commented_path } else { folder.join("opencode.json") }
}
