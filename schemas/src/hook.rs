//! The moments at which an agent calls a hook, and the agents that do.

use crate::closed_enum::closed_enum;

closed_enum! {
    /// A moment at which an agent calls `sessions hook`.
    HookName {
        /// A session begins.
        SessionStart = "session-start",
        /// The user sent a prompt.
        Prompt = "prompt",
        /// A tool is about to run.
        PreTool = "pre-tool",
        /// A tool failed.
        PostToolFailure = "post-tool-failure",
        /// The context is about to be compacted.
        PreCompact = "pre-compact",
        /// A session ended.
        SessionEnd = "session-end",
    }
}

closed_enum! {
    /// An agent that calls hooks.
    HookClient {
        /// Claude Code.
        Claude = "claude",
        /// Codex CLI.
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
        /// GitHub Copilot CLI.
        Copilot = "copilot",
    }
}

impl HookClient {
    /// Returns the name under which the agent calls a hook; `None` if it has no such moment, or if
    /// it does not pass on what the hook would say then.
    ///
    /// - Codex reports failed calls together with those that worked, and has no end of a session.
    /// - Gemini CLI reports failed calls together with those that worked, and a hook before a call
    ///   can change its arguments but say nothing to the model.
    /// - Copilot drops the output of a hook for prompts, and one before a call can only decide
    ///   whether it may run.
    pub fn event_name(self, hook: HookName) -> Option<&'static str> {
        let names = match hook {
            HookName::SessionStart => [
                Some("SessionStart"),
                Some("SessionStart"),
                Some("SessionStart"),
                Some("sessionStart"),
            ],
            HookName::Prompt => {
                [Some("UserPromptSubmit"), Some("UserPromptSubmit"), Some("BeforeAgent"), None]
            }
            HookName::PreTool => [Some("PreToolUse"), Some("PreToolUse"), None, None],
            HookName::PostToolFailure => [
                Some("PostToolUseFailure"),
                Some("PostToolUse"),
                Some("AfterTool"),
                Some("postToolUseFailure"),
            ],
            HookName::PreCompact => {
                [Some("PreCompact"), Some("PreCompact"), Some("PreCompress"), Some("preCompact")]
            }
            HookName::SessionEnd => {
                [Some("SessionEnd"), None, Some("SessionEnd"), Some("sessionEnd")]
            }
        };
        let [claude, codex, gemini, copilot] = names;
        match self {
            Self::Claude => claude,
            Self::Codex => codex,
            Self::Gemini => gemini,
            Self::Copilot => copilot,
        }
    }
}
