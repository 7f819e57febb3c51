//! Names the agents whose logs are read.

use crate::closed_enum::closed_enum;

closed_enum! {
    /// The agent that wrote a log.
    Provider {
        /// Claude Code.
        Claude = "claude",
        /// Codex CLI.
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
        /// OpenCode.
        OpenCode = "opencode",
        /// GitHub Copilot CLI.
        Copilot = "copilot",
        /// Pi.
        Pi = "pi",
        /// OpenClaw, whose logs have the entries of Pi.
        OpenClaw = "openclaw",
        /// Qwen Code.
        Qwen = "qwen",
        /// Kimi CLI and Kimi Code.
        Kimi = "kimi",
        /// Cursor's agent.
        Cursor = "cursor",
        /// Factory Droid.
        Droid = "droid",
        /// Amp.
        Amp = "amp",
        /// Cline, its sessions as well as the tasks of its editor extension.
        Cline = "cline",
        /// iFlow CLI.
        IFlow = "iflow",
        /// Grok's agent.
        Grok = "grok",
        /// Hermes.
        Hermes = "hermes",
        /// Antigravity.
        Antigravity = "antigravity",
        /// Kiro CLI.
        Kiro = "kiro",
        /// GitHub Copilot in Visual Studio.
        VsCopilot = "vscopilot",
        /// The chat of VS Code and of editors derived from it, mostly with GitHub Copilot.
        VsCode = "vscode",
        /// Goose.
        Goose = "goose",
        /// Crush.
        Crush = "crush",
        /// The chats of the Cursor editor.
        CursorIde = "cursoride",
        /// The agent of Zed.
        Zed = "zed",
        /// Continue, the editor extension and the CLI.
        Continue = "continue",
        /// Aider.
        Aider = "aider",
        /// The agent of the terminal Warp.
        Warp = "warp",
        /// Devin CLI.
        Devin = "devin",
        /// CodeWhale, earlier DeepSeek TUI.
        CodeWhale = "codewhale",
        /// Cortex Code, the agent of Snowflake.
        Cortex = "cortex",
        /// Forge.
        Forge = "forge",
        /// The agent of Poolside, `pool`.
        Poolside = "poolside",
        /// CodeBuddy Code.
        CodeBuddy = "codebuddy",
        /// The conversations in an export of claude.ai.
        ClaudeAi = "claudeai",
        /// The conversations in an export of ChatGPT.
        ChatGpt = "chatgpt",
        /// What Google Takeout exports of the Gemini app.
        GeminiApps = "geminiapps",
        /// The CLI of OpenHands.
        OpenHands = "openhands",
        /// Mistral Vibe.
        Vibe = "vibe",
        /// Junie CLI.
        Junie = "junie",
        /// gptme.
        Gptme = "gptme",
        /// Command Code.
        CommandCode = "commandcode",
        /// ZCode, the agent of Z.ai.
        ZCode = "zcode",
        /// DeepSeek Harness, `dsh`.
        Dsh = "dsh",
        /// QwenPaw, earlier CoPaw.
        QwenPaw = "qwenpaw",
        /// Reasonix.
        Reasonix = "reasonix",
        /// Piebald.
        Piebald = "piebald",
        /// Codebuff, earlier Manicode, and Freebuff.
        Codebuff = "codebuff",
        /// Any agent whose session was exported as a trajectory in the Agent Trajectory Interchange
        /// Format.
        Atif = "atif",
        /// Any other program that writes the line format documented for custom agents.
        Generic = "generic",
        /// Claude Cowork, the local agent of the Claude app.
        Cowork = "cowork",
        /// Claude in Xcode.
        Xcode = "xcode",
        /// Cherry Studio.
        CherryStudio = "cherrystudio",
        /// OpenClaude.
        OpenClaude = "openclaude",
        /// Qoder CLI.
        Qoder = "qoder",
        /// QoderWork.
        QoderWork = "qoderwork",
        /// TraeX, the CLI of Trae.
        TraeX = "traex",
        /// Kilo, the CLI and the extension that shares its store.
        Kilo = "kilo",
        /// MiMo Code.
        MimoCode = "mimocode",
        /// IcodeMate.
        IcodeMate = "icodemate",
        /// Oh My Pi.
        Omp = "omp",
        /// OmO.
        Omo = "omo",
        /// StepCode.
        StepCode = "stepcode",
        /// Prime Agent.
        Prime = "prime",
        /// Campfire.
        Campfire = "campfire",
        /// Senpi.
        Senpi = "senpi",
        /// gajae-code.
        Gjc = "gjc",
        /// Kimchi.
        Kimchi = "kimchi",
        /// QClaw.
        QClaw = "qclaw",
        /// KimiClaw.
        KimiClaw = "kimiclaw",
        /// Kimi Work, the desktop app of Kimi.
        KimiWork = "kimiwork",
        /// Roo Code.
        Roo = "roo",
        /// Zoo Code.
        Zoo = "zoo",
        /// The Kilo Code extension before it shared the store of Kilo.
        KiloCode = "kilocode",
        /// WorkBuddy, the desktop agent that shares its format with CodeBuddy Code.
        WorkBuddy = "workbuddy",
    }
}

impl Provider {
    /// Returns the name of the agent, or of the format if any agent may have it, in messages.
    pub const fn agent_name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::OpenCode => "OpenCode",
            Self::Copilot => "GitHub Copilot CLI",
            Self::Pi => "Pi",
            Self::OpenClaw => "OpenClaw",
            Self::Qwen => "Qwen Code",
            Self::Kimi => "Kimi CLI",
            Self::Cursor => "Cursor",
            Self::Droid => "Factory Droid",
            Self::Amp => "Amp",
            Self::Cline => "Cline",
            Self::IFlow => "iFlow",
            Self::Grok => "Grok",
            Self::Hermes => "Hermes",
            Self::Antigravity => "Antigravity",
            Self::Kiro => "Kiro",
            Self::VsCopilot => "Visual Studio Copilot",
            Self::VsCode => "VS Code chat",
            Self::Goose => "Goose",
            Self::Crush => "Crush",
            Self::CursorIde => "Cursor editor",
            Self::Zed => "Zed",
            Self::Continue => "Continue",
            Self::Aider => "Aider",
            Self::Warp => "Warp",
            Self::Devin => "Devin CLI",
            Self::CodeWhale => "CodeWhale",
            Self::Cortex => "Cortex Code",
            Self::Forge => "Forge",
            Self::Poolside => "Poolside",
            Self::CodeBuddy => "CodeBuddy Code",
            Self::ClaudeAi => "claude.ai",
            Self::ChatGpt => "ChatGPT",
            Self::GeminiApps => "Gemini app",
            Self::OpenHands => "OpenHands CLI",
            Self::Vibe => "Mistral Vibe",
            Self::Junie => "Junie CLI",
            Self::Gptme => "gptme",
            Self::CommandCode => "Command Code",
            Self::ZCode => "ZCode",
            Self::Dsh => "DeepSeek Harness",
            Self::QwenPaw => "QwenPaw",
            Self::Reasonix => "Reasonix",
            Self::Piebald => "Piebald",
            Self::Codebuff => "Codebuff",
            Self::Atif => "ATIF trajectories",
            Self::Generic => "generic lines",
            Self::Cowork => "Claude Cowork",
            Self::Xcode => "Claude in Xcode",
            Self::CherryStudio => "Cherry Studio",
            Self::OpenClaude => "OpenClaude",
            Self::Qoder => "Qoder",
            Self::QoderWork => "QoderWork",
            Self::TraeX => "TraeX",
            Self::Kilo => "Kilo",
            Self::MimoCode => "MiMo Code",
            Self::IcodeMate => "IcodeMate",
            Self::Omp => "Oh My Pi",
            Self::Omo => "OmO",
            Self::StepCode => "StepCode",
            Self::Prime => "Prime Agent",
            Self::Campfire => "Campfire",
            Self::Senpi => "Senpi",
            Self::Gjc => "gajae-code",
            Self::Kimchi => "Kimchi",
            Self::QClaw => "QClaw",
            Self::KimiClaw => "KimiClaw",
            Self::KimiWork => "Kimi Work",
            Self::Roo => "Roo Code",
            Self::Zoo => "Zoo Code",
            Self::KiloCode => "Kilo Code",
            Self::WorkBuddy => "WorkBuddy",
        }
    }
}

/// The agent of a row that does not name one yet.
impl Default for Provider {
    fn default() -> Self {
        Self::Generic
    }
}
