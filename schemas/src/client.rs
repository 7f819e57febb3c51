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
        /// OpenCode.
        Opencode = "opencode",
        /// Visual Studio Code.
        Vscode = "vscode",
        /// Cursor.
        Cursor = "cursor",
        /// GitHub Copilot CLI.
        Copilot = "copilot",
        /// Claude Desktop.
        ClaudeDesktop = "claude-desktop",
        /// Windsurf.
        Windsurf = "windsurf",
        /// Zed.
        Zed = "zed",
        /// Junie, the agent of the JetBrains IDEs.
        Jetbrains = "jetbrains",
        /// Cline in Visual Studio Code.
        Cline = "cline",
        /// Goose.
        Goose = "goose",
        /// Kiro.
        Kiro = "kiro",
        /// Antigravity: the editor and the command line, which share a configuration.
        Antigravity = "antigravity",
    }
}
