//! Machine text in the user's role as Qwen Code writes it, and the commands that it carries out
//! itself (docs/formats.md#qwen-code).

use crate::provider::shared::machine_text::MachineText;

/// Heading of the files that a prompt names by `@`. The parts after it are those files.
pub(super) const REFERENCED_FILES_HEADING: &str = "--- Content from referenced files ---";

/// Parts of a prompt that no user typed.
#[rustfmt::skip]
pub(super) const TEXTS: &[MachineText] = &[
    MachineText { start: "<qwen:user-prompt-submit-context>", end: "", subtype: "hook", seen: "docs" },
    MachineText { start: "<system-reminder>", end: "", subtype: "system_reminder", seen: "docs" },
    MachineText { start: REFERENCED_FILES_HEADING, end: "", subtype: "referenced_files", seen: "docs" },
];

/// Commands that set or show something, or end the session. The model is not asked.
#[rustfmt::skip]
pub(super) const CLIENT_COMMANDS: &[&str] = &[
    "/?", "/about", "/agents", "/approval-mode", "/arena", "/auth", "/bug", "/chat", "/clear",
    "/compress", "/context", "/copy", "/corgi", "/delete", "/diff", "/dir", "/directory", "/docs",
    "/doctor", "/editor", "/exit", "/export", "/extensions", "/help", "/hooks", "/ide",
    "/language", "/login", "/logout", "/lsp", "/mcp", "/memory", "/model", "/new", "/permissions",
    "/privacy", "/profile", "/quit", "/rename", "/reset", "/restore", "/resume", "/rewind",
    "/settings", "/setup-github", "/skills", "/stats", "/status", "/statusline", "/tasks",
    "/terminal-setup", "/theme", "/tools", "/trust", "/usage", "/vim",
];
