//! The commands with which agents resume a session or start with a prompt, and the start of one.
//!
//! Ids and folders are data from logs: they are checked, and passed as arguments of a process, never
//! through a shell.

mod commands;
pub(crate) mod native;

use std::path::{Path, PathBuf};
use std::process::Command;

use schemas::{ErrorCode, Provider, ToolError};

use self::commands::{AgentCommands, ResumeWay, StartWay, commands_of};
use base::shell_word::{shell_line, shell_word};

/// Maximum length in bytes of a session id that is passed to an agent.
const MAX_ID_BYTES: usize = 200;

/// A command that resumes or starts an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// The name of the program.
    pub program: &'static str,
    pub arguments: Vec<String>,
    /// The folder in which the command runs; `None` for the current one.
    pub folder: Option<PathBuf>,
}

/// The session to resume.
#[derive(Debug, Clone, Copy)]
pub struct ResumedSession<'a> {
    pub session_id: &'a str,
    pub provider: Provider,
    /// The id that the agent gave the session.
    pub native_id: Option<&'a str>,
    /// The session that started this one as a subagent.
    pub parent_of_subagent: Option<&'a str>,
    /// The session of which this one is an earlier version.
    pub later_version: Option<&'a str>,
    pub is_log_gone: bool,
}

impl AgentCommand {
    /// Returns the command with which the session's own agent resumes it.
    ///
    /// # Errors
    ///
    /// Fails if the agent cannot resume a session by its id, or cannot have this session any more.
    pub fn resume(session: ResumedSession<'_>) -> Result<Self, ToolError> {
        let id = session.session_id;
        let other = "`sessions resume ID --with AGENT` hands it over to an agent instead";
        if let Some(parent) = session.parent_of_subagent {
            return Err(cannot_resume(format!(
                "Session {id} is the log of a subagent, which cannot be resumed. Resume the session that started it: {parent}"
            )));
        }
        if let Some(later) = session.later_version {
            return Err(cannot_resume(format!(
                "Session {id} is an earlier version of {later}, whose log was rewritten, so its \
                agent does not know it. Resume {later}; {other}"
            )));
        }
        let AgentCommands { program, resume, .. } = commands_of(session.provider);
        let before_id = match resume {
            ResumeWay::ById(before_id) => *before_id,
            ResumeWay::Impossible(reason) => {
                return Err(cannot_resume(format!(
                    "Session {id} cannot be resumed: {reason}. {other}"
                )));
            }
        };
        if session.is_log_gone {
            return Err(cannot_resume(format!(
                "Session {id} cannot be resumed: its log no longer exists. `sessions restore {id}` writes it back if it is archived; {other}"
            )));
        }
        let native_id = session.native_id.unwrap_or(id);
        if !is_safe_id(native_id) {
            return Err(cannot_resume(format!(
                "Session {id} cannot be resumed: the id in its log, '{}', is not one that an agent gives. {other}",
                shown_id(native_id)
            )));
        }
        let mut arguments: Vec<String> = before_id.iter().map(|word| (*word).to_owned()).collect();
        arguments.push(native_id.to_owned());
        Ok(Self { program, arguments, folder: None })
    }

    /// Returns the command that starts an agent with a prompt.
    ///
    /// # Errors
    ///
    /// Fails if the agent cannot be started with a prompt and stay open.
    pub fn start(agent: Provider, prompt: &str) -> Result<Self, ToolError> {
        let AgentCommands { program, start, .. } = commands_of(agent);
        let StartWay::WithPrompt(before_prompt) = start else {
            return Err(cannot_resume(format!(
                "{agent} has no documented command that starts it with a prompt. Add --print and paste the text"
            )));
        };
        let mut arguments: Vec<String> =
            before_prompt.iter().map(|word| (*word).to_owned()).collect();
        arguments.push(prompt.to_owned());
        Ok(Self { program, arguments, folder: None })
    }

    /// Returns the command as a line for a shell, with the folder if it has one.
    pub fn to_shell_line(&self) -> String {
        let arguments = self.arguments.iter().map(String::as_str);
        let command = shell_line(std::iter::once(self.program).chain(arguments));
        match &self.folder {
            Some(folder) => format!("cd {} && {command}", shell_word(&folder.to_string_lossy())),
            None => command,
        }
    }

    /// Runs the command with the program at `path` in place of this process where the system can do
    /// that. Otherwise waits for it, and returns its exit code.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be started.
    pub fn run(&self, path: &Path) -> Result<u8, ToolError> {
        let mut command = Command::new(path);
        command.args(&self.arguments);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let error = match replace_process(&mut command) {
            Ok(code) => return Ok(code),
            Err(error) => error,
        };
        let message = format!("{}: {} could not be started: {error}", path.display(), self.program);
        Err(ToolError::new(ErrorCode::InvalidArgument, message).with_path(path))
    }
}

#[cfg(unix)]
fn replace_process(command: &mut Command) -> std::io::Result<u8> {
    use std::os::unix::process::CommandExt as _;

    Err(command.exec())
}

#[cfg(not(unix))]
fn replace_process(command: &mut Command) -> std::io::Result<u8> {
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// Returns the folder in which a session is resumed: `given`, otherwise the one in the log.
///
/// # Errors
///
/// Fails if the log names no folder, or if the folder does not exist.
pub fn session_folder(
    session_id: &str,
    given: Option<&Path>,
    recorded: Option<&str>,
) -> Result<PathBuf, ToolError> {
    if let Some(given) = given {
        if given.is_dir() {
            return Ok(given.to_owned());
        }
        let message = format!("The folder {} does not exist", given.display());
        return Err(cannot_resume(message).with_path(given));
    }
    let Some(recorded) = recorded.map(Path::new) else {
        return Err(cannot_resume(format!("The log of session {session_id} names no folder")));
    };
    // A relative path, such as one of Windows elsewhere, would be another folder here.
    if recorded.is_absolute() && recorded.is_dir() {
        return Ok(recorded.to_owned());
    }
    let message = format!("The session's folder {} does not exist here", recorded.display());
    Err(cannot_resume(message).with_path(recorded))
}

/// Returns the error for an agent whose program is not installed.
pub fn program_not_found(program: &str) -> ToolError {
    cannot_resume(format!(
        "{program} was not found in the PATH. Install it, or add --print to see the command"
    ))
}

fn cannot_resume(message: String) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgument, message)
}

/// Returns true if an id cannot be taken for a flag, a path or anything else than an id.
fn is_safe_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && !id.starts_with(['-', '.'])
        && id.chars().all(is_plain)
}

/// Returns an id in the form in which a message repeats it.
fn shown_id(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(provider: Provider, native_id: &str) -> ResumedSession<'_> {
        ResumedSession {
            session_id: "s1",
            provider,
            native_id: Some(native_id),
            parent_of_subagent: None,
            later_version: None,
            is_log_gone: false,
        }
    }

    fn resume_line(session: ResumedSession<'_>) -> Result<String, String> {
        let folder = Some(PathBuf::from("/home/mira/my code"));
        let command =
            AgentCommand::resume(session).map(|command| AgentCommand { folder, ..command });
        command.map(|command| command.to_shell_line()).map_err(|error| error.message)
    }

    #[test]
    fn every_agent_gets_its_own_command() {
        for (provider, line) in [
            (Provider::Claude, "claude --resume a-1"),
            (Provider::Codex, "codex resume a-1"),
            (Provider::Gemini, "gemini --resume a-1"),
            (Provider::OpenCode, "opencode --session a-1"),
            (Provider::Copilot, "copilot --resume a-1"),
            (Provider::Pi, "pi --session a-1"),
            (Provider::TraeX, "traex resume a-1"),
        ] {
            let wanted = format!("cd '/home/mira/my code' && {line}");
            assert_eq!(resume_line(session(provider, "a-1")), Ok(wanted));
        }
    }

    #[test]
    fn an_id_that_is_not_an_id_is_refused() {
        let long = "a".repeat(MAX_ID_BYTES + 1);
        for id in ["-p", "--dangerously-skip-permissions", "a b", "$(x)", "../x", "a;b", "", &long]
        {
            let refused = resume_line(session(Provider::Claude, id));
            assert!(refused.is_err_and(|message| message.contains("--with")), "{id}");
        }
    }

    #[test]
    fn what_cannot_be_resumed_says_why() {
        let editor = session(Provider::VsCopilot, "a");
        assert!(resume_line(editor).is_err_and(|message| message.contains("Visual Studio")));
        let gone = ResumedSession { is_log_gone: true, ..session(Provider::Claude, "a") };
        assert!(resume_line(gone).is_err_and(|message| message.contains("no longer exists")));
        let subagent =
            ResumedSession { parent_of_subagent: Some("p9"), ..session(Provider::Claude, "a") };
        assert!(resume_line(subagent).is_err_and(|message| message.contains("p9")));
        let earlier =
            ResumedSession { later_version: Some("s9"), ..session(Provider::Claude, "a") };
        assert!(resume_line(earlier).is_err_and(|message| message.contains("Resume s9")));
        let start = AgentCommand::start(Provider::Kiro, "x");
        assert!(start.is_err_and(|error| error.message.contains("--print")));
        assert!(session_folder("s1", None, Some("relative")).is_err());
        assert!(session_folder("s1", None, Some("/no/such/folder")).is_err());
        assert!(session_folder("s1", None, None).is_err());
    }
}
