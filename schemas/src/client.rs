//! The programs that the server can be registered with.

use crate::closed_enum::closed_enum;

closed_enum! {
    /// A program that talks to MCP servers.
    Client {
        /// Claude Code.
        Claude = "claude",
        /// Codex CLI.
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
        /// GitHub Copilot CLI.
        Copilot = "copilot",
        /// OpenCode.
        Opencode = "opencode",
        /// Visual Studio Code.
        Vscode = "vscode",
        /// Cursor.
        Cursor = "cursor",
    }
}
