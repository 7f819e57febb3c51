//! The programs that the server can be registered with.

use crate::event::closed_enum;

closed_enum! {
    /// A program that talks to MCP servers.
    Client {
        Claude = "claude",
        Codex = "codex",
        Gemini = "gemini",
        Opencode = "opencode",
        Vscode = "vscode",
        Cursor = "cursor",
    }
}
