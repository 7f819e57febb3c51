//! The commands of every agent, with where they are documented.

use schemas::Provider;

/// The commands of an agent.
pub(super) struct AgentCommands {
    /// The name of the program.
    pub(super) program: &'static str,
    pub(super) resume: ResumeWay,
    pub(super) start: StartWay,
}

/// How an agent resumes a session by its id.
pub(super) enum ResumeWay {
    /// With these arguments before the id.
    ById(&'static [&'static str]),
    /// It cannot, or it is not documented how; the text is the reason.
    Impossible(&'static str),
}

/// How an agent starts with a prompt and stays open.
pub(super) enum StartWay {
    /// With these arguments before the prompt.
    WithPrompt(&'static [&'static str]),
    /// It cannot, or it is not documented how.
    Impossible,
}

/// Returns the commands of an agent. Each arm says where they were verified, as of November 2026.
#[expect(clippy::too_many_lines, reason = "an arm for each agent")]
pub(super) fn commands_of(agent: Provider) -> &'static AgentCommands {
    use ResumeWay::{ById, Impossible};
    use StartWay::WithPrompt;

    match agent {
        // Verified: `claude --help` of 2.1.197.
        Provider::Claude => &AgentCommands {
            program: "claude",
            resume: ById(&["--resume"]),
            start: WithPrompt(&[]),
        },
        // Verified: the documentation of the npm package, `codex resume [SESSION_ID]` and
        // `codex [PROMPT]`.
        Provider::Codex => {
            &AgentCommands { program: "codex", resume: ById(&["resume"]), start: WithPrompt(&[]) }
        }
        // Verified: geminicli.com, session management and CLI cheatsheet; `gemini --help` of 0.61.0.
        Provider::Gemini => &AgentCommands {
            program: "gemini",
            resume: ById(&["--resume"]),
            start: WithPrompt(&["-i"]),
        },
        // Verified: opencode.ai/docs/cli; `opencode --help` of 1.18.33.
        Provider::OpenCode => &AgentCommands {
            program: "opencode",
            resume: ById(&["--session"]),
            start: WithPrompt(&["--prompt"]),
        },
        // Verified: issues of github/copilot-cli for `--resume`; `-i` only in other repositories.
        Provider::Copilot => &AgentCommands {
            program: "copilot",
            resume: ById(&["--resume"]),
            start: WithPrompt(&["-i"]),
        },
        // Verified: pi.dev/docs for `--session`; the prompt only in its README.
        Provider::Pi => {
            &AgentCommands { program: "pi", resume: ById(&["--session"]), start: WithPrompt(&[]) }
        }
        // Verified: the documentation of Qwen Code for `--resume`; `-i` is that of Gemini CLI, from
        // which it derives.
        Provider::Qwen => &AgentCommands {
            program: "qwen",
            resume: ById(&["--resume"]),
            start: WithPrompt(&["-i"]),
        },
        // Verified: the documentation of Kimi CLI and Kimi Code. A prompt runs without a terminal
        // interface and ends.
        Provider::Kimi => &AgentCommands {
            program: "kimi",
            resume: ById(&["--session"]),
            start: StartWay::Impossible,
        },
        // Verified: an issue of coder/registry and devhints.io. Chats of the editor are not known
        // to the program.
        Provider::Cursor => &AgentCommands {
            program: "cursor-agent",
            resume: ById(&["--resume"]),
            start: WithPrompt(&[]),
        },
        // Verified: the CLI reference of Factory.
        Provider::Droid => {
            &AgentCommands { program: "droid", resume: ById(&["--resume"]), start: WithPrompt(&[]) }
        }
        // Not verified in its own documentation; several public programs use it.
        Provider::Amp => &AgentCommands {
            program: "amp",
            resume: ById(&["threads", "continue"]),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it.
        Provider::Grok => &AgentCommands {
            program: "grok",
            resume: ById(&["--resume"]),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it with version 18.16.
        Provider::Omp => &AgentCommands {
            program: "omp",
            resume: ById(&["--resume"]),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it.
        Provider::TraeX => &AgentCommands {
            program: "traex",
            resume: ById(&["resume"]),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it.
        Provider::Campfire => &AgentCommands {
            program: "campfire",
            resume: ById(&["--session"]),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it.
        Provider::Goose => &AgentCommands {
            program: "goose",
            resume: ById(&["session", "--resume", "--session-id"]),
            start: StartWay::Impossible,
        },
        Provider::Crush => &AgentCommands {
            program: "crush",
            resume: ById(&["--session"]),
            start: StartWay::Impossible,
        },
        Provider::CursorIde => &AgentCommands {
            program: "cursor",
            resume: Impossible("the Cursor editor resumes chats only in its window"),
            start: StartWay::Impossible,
        },
        Provider::Zed => &AgentCommands {
            program: "zed",
            resume: Impossible("Zed resumes threads only in its window"),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it.
        Provider::Devin => {
            &AgentCommands { program: "devin", resume: ById(&["-r"]), start: StartWay::Impossible }
        }
        // Verified: the source of DeepSeek TUI, `deepseek resume SESSION_ID`; CodeWhale is its name now.
        Provider::CodeWhale => &AgentCommands {
            program: "codewhale",
            resume: ById(&["resume"]),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it.
        Provider::Dsh => &AgentCommands {
            program: "dsh",
            resume: ById(&["--profile", "tui", "--resume"]),
            start: StartWay::Impossible,
        },
        Provider::QwenPaw => &AgentCommands {
            program: "qwenpaw",
            resume: Impossible("no command is known with which QwenPaw resumes a session by id"),
            start: StartWay::Impossible,
        },
        Provider::Reasonix => &AgentCommands {
            program: "reasonix",
            resume: Impossible("no command is known with which Reasonix resumes a session by id"),
            start: StartWay::Impossible,
        },
        Provider::Piebald => &AgentCommands {
            program: "piebald",
            resume: Impossible("Piebald resumes chats only in its window"),
            start: StartWay::Impossible,
        },
        // Verified: the source of Codebuff, `codebuff --continue ID` and `codebuff [PROMPT]`.
        Provider::Codebuff => &AgentCommands {
            program: "codebuff",
            resume: ById(&["--continue"]),
            start: WithPrompt(&[]),
        },
        Provider::Cortex => &AgentCommands {
            program: "cortex",
            resume: Impossible(
                "no command is known with which Cortex Code resumes a session by id",
            ),
            start: StartWay::Impossible,
        },
        // Verified: the source of Forge, `forge conversation resume ID`.
        Provider::Forge => &AgentCommands {
            program: "forge",
            resume: ById(&["conversation", "resume"]),
            start: StartWay::Impossible,
        },
        Provider::Poolside => &AgentCommands {
            program: "pool",
            resume: Impossible("no command is known with which pool resumes a session by id"),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; a public program uses it.
        Provider::CodeBuddy => &AgentCommands {
            program: "codebuddy",
            resume: ById(&["--resume"]),
            start: StartWay::Impossible,
        },
        Provider::ZCode => &AgentCommands {
            program: "zcode",
            resume: Impossible("ZCode resumes sessions only in its window"),
            start: StartWay::Impossible,
        },
        // Not verified in its own documentation; its users run it.
        Provider::CommandCode => &AgentCommands {
            program: "commandcode",
            resume: ById(&["--resume"]),
            start: StartWay::Impossible,
        },
        // Warp's own help hides `--conversation`.
        Provider::Warp => &AgentCommands {
            program: "warp-terminal",
            resume: Impossible("Warp resumes conversations only in its window"),
            start: StartWay::Impossible,
        },
        Provider::Continue => &AgentCommands {
            program: "cn",
            resume: Impossible("Continue documents no command that resumes a session by id"),
            start: StartWay::Impossible,
        },
        // Aider 0.86.2: `--restore-chat-history` takes all chats of the file.
        Provider::Aider => &AgentCommands {
            program: "aider",
            resume: Impossible("Aider can restore the whole history of a folder, not one chat"),
            start: StartWay::Impossible,
        },
        Provider::ClaudeAi => &AgentCommands {
            program: "claude",
            resume: Impossible("a conversation of claude.ai is continued only on its page"),
            start: StartWay::Impossible,
        },
        Provider::ChatGpt => &AgentCommands {
            program: "chatgpt",
            resume: Impossible("a conversation of ChatGPT is continued only on its page"),
            start: StartWay::Impossible,
        },
        Provider::GeminiApps => &AgentCommands {
            program: "gemini",
            resume: Impossible("a conversation of the Gemini app is continued only on its page"),
            start: StartWay::Impossible,
        },
        // Verified: the documentation of the OpenHands CLI.
        Provider::OpenHands => &AgentCommands {
            program: "openhands",
            resume: ById(&["--resume"]),
            start: WithPrompt(&["-t"]),
        },
        // Verified: its source, 2.18.4.
        Provider::Vibe => {
            &AgentCommands { program: "vibe", resume: ById(&["--resume"]), start: WithPrompt(&[]) }
        }
        Provider::Junie => &AgentCommands {
            program: "junie",
            resume: Impossible("Junie documents no command that resumes a session by id"),
            start: StartWay::Impossible,
        },
        // Verified: its source: the name of a conversation resumes it.
        Provider::Gptme => {
            &AgentCommands { program: "gptme", resume: ById(&["--name"]), start: WithPrompt(&[]) }
        }
        Provider::OpenClaw => &AgentCommands {
            program: "openclaw",
            resume: Impossible("OpenClaw keeps its conversations in its gateway"),
            start: StartWay::Impossible,
        },
        Provider::Cline => &AgentCommands {
            program: "cline",
            resume: Impossible("Cline documents no command that resumes a session by id"),
            start: StartWay::Impossible,
        },
        Provider::Atif => &AgentCommands {
            program: "harbor",
            resume: Impossible(
                "a trajectory is a copy of a session, which only its own agent resumes",
            ),
            start: StartWay::Impossible,
        },
        Provider::IFlow => &AgentCommands {
            program: "iflow",
            resume: Impossible("iFlow CLI documents no command that resumes a session by id"),
            start: StartWay::Impossible,
        },
        Provider::Hermes => &AgentCommands {
            program: "hermes",
            resume: Impossible("Hermes documents no command that resumes a session by id"),
            start: StartWay::Impossible,
        },
        Provider::Antigravity => &AgentCommands {
            program: "antigravity",
            resume: Impossible("Antigravity resumes conversations only in its window"),
            start: StartWay::Impossible,
        },
        Provider::Kiro => &AgentCommands {
            program: "kiro-cli",
            resume: Impossible("Kiro CLI resumes only the last session of a folder"),
            start: StartWay::Impossible,
        },
        Provider::VsCopilot => &AgentCommands {
            program: "devenv",
            resume: Impossible("Copilot in Visual Studio resumes only in its window"),
            start: StartWay::Impossible,
        },
        Provider::VsCode => &AgentCommands {
            program: "code",
            resume: Impossible("VS Code resumes chats only in its window"),
            start: StartWay::Impossible,
        },
        Provider::Cowork
        | Provider::Xcode
        | Provider::CherryStudio
        | Provider::OpenClaude
        | Provider::Qoder
        | Provider::QoderWork
        | Provider::Kilo
        | Provider::MimoCode
        | Provider::IcodeMate
        | Provider::Omo
        | Provider::StepCode
        | Provider::Prime
        | Provider::Senpi
        | Provider::Gjc
        | Provider::Kimchi
        | Provider::QClaw
        | Provider::KimiClaw
        | Provider::KimiWork
        | Provider::Roo
        | Provider::Zoo
        | Provider::KiloCode
        | Provider::WorkBuddy => &AgentCommands {
            program: "",
            resume: Impossible("no command is known with which its agent resumes a session by id"),
            start: StartWay::Impossible,
        },
        Provider::Generic => &AgentCommands {
            program: "sessions",
            resume: Impossible("its log was written by a custom agent"),
            start: StartWay::Impossible,
        },
    }
}
