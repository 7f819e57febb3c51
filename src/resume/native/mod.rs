//! Writes a session of one agent as a session of another one, where that agent looks for its sessions.
//!
//! The records of the copy have ids that name the records they are copies of, so that the next ingest counts
//! them once (`ingest/src/provider/copied.rs`).

mod claude;
mod codex;
mod conversation;
mod gemini;
mod new_session;
mod opencode;
mod pi;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use ingest::discover::real_path;
use ingest::provider::format::AgentFolders;
use ingest::relocate::LogPlace;
use schemas::{ErrorCode, Provider, ToolError};
use serde_json::Value;

use self::conversation::CopiedConversation;
pub(crate) use self::conversation::read_conversation;
use self::new_session::{NewSession, new_uuid, place_new_log};
use super::{AgentCommand, ResumedSession};
use crate::files::restore::write_new_file;
use base::sanitize::clean_text;

/// Maximum length in characters of what an agent says when its import fails.
const MAX_ERROR_CHARS: usize = 500;

/// A session of another agent that is ready to be written.
pub(crate) struct NativeCopy {
    /// Where the session is written; `None` if the agent itself imports it.
    place: Option<LogPlace>,
    text: String,
    /// The command that resumes the session.
    pub(crate) command: AgentCommand,
}

/// Returns a copy of a conversation for another agent, which works in `folder`. Nothing is written.
///
/// # Errors
/// Fails if the agent's format is not one that is written, or if the copy would have no place.
pub(crate) fn prepare_copy(
    conversation: &CopiedConversation,
    agent: Provider,
    folder: &Path,
    folders: &AgentFolders<'_>,
) -> Result<NativeCopy, ToolError> {
    let folder = real_folder(folder);
    let Some(working) = folder.to_str() else {
        return Err(cannot_copy(format!("{} is not UTF-8. Use --folder DIR", folder.display())));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let uuid = new_uuid(now).map_err(cannot_copy)?;
    let is_imported = agent == Provider::OpenCode;
    let id = if is_imported { opencode::session_id(now, &uuid) } else { uuid };
    let new = NewSession { id, folder: working, now };
    let lines = |write: fn(&CopiedConversation, &NewSession<'_>) -> Vec<Value>| {
        json_lines(&write(conversation, &new))
    };
    let text = if agent == Provider::Claude {
        lines(claude::write_records)
    } else if agent == Provider::Codex {
        lines(codex::write_records)
    } else if agent == Provider::Gemini {
        lines(gemini::write_records)
    } else if agent == Provider::Pi {
        lines(pi::write_records)
    } else if is_imported {
        opencode::write_document(conversation, &new).to_string()
    } else {
        return Err(cannot_copy(format!(
            "--native writes sessions of claude, codex, gemini, opencode and pi, not of {agent}. Without it, the session is handed over"
        )));
    };
    let place = place_new_log(agent, &new, folders).map_err(|reason| {
        cannot_copy(format!("The session cannot be copied: {reason}. Use --folder DIR"))
    })?;
    let command = AgentCommand::resume(ResumedSession {
        session_id: &new.id,
        provider: agent,
        native_id: Some(&new.id),
        parent_of_subagent: None,
        later_version: None,
        is_log_gone: false,
    })?;
    let command = AgentCommand { folder: Some(folder.clone()), ..command };
    Ok(NativeCopy { place, text, command })
}

impl NativeCopy {
    /// Returns the file that is written.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.path.as_path())
    }

    /// Writes the session, or has the agent import it: `program` is the path of its program.
    ///
    /// # Errors
    /// Fails if the file cannot be written or exists, or if the agent does not import the session.
    pub(crate) fn write(&self, program: &Path) -> Result<(), ToolError> {
        let Some(LogPlace { path, marker }) = &self.place else { return self.import(program) };
        let marker = marker.as_ref().map(|(path, text)| (path, text));
        for (path, text) in marker.into_iter().chain([(path, &self.text)]) {
            let shown = clean_text(&path.to_string_lossy());
            let write = |out: &mut dyn io::Write| {
                let written = out.write_all(text.as_bytes()).map(|()| text.len() as u64);
                written.map_err(|error| format!("{shown} cannot be written: {error}"))
            };
            write_new_file(path, &shown, SystemTime::now(), write)
                .map_err(|reason| cannot_copy(reason).with_path(path))?;
        }
        Ok(())
    }

    /// Runs the agent's own import on a temporary file.
    fn import(&self, program: &Path) -> Result<(), ToolError> {
        let failed = |error: io::Error| {
            cannot_copy(format!(
                "The session cannot be written to a temporary file for {}: {error}",
                self.command.program
            ))
        };
        let mut document = tempfile::Builder::new();
        let document = document.prefix("sessions-").suffix(".json").tempfile();
        let mut document = document.map_err(failed)?;
        document.write_all(self.text.as_bytes()).map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("import").arg(document.path()).stdin(Stdio::null());
        if let Some(folder) = &self.command.folder {
            command.current_dir(folder);
        }
        let output = command.output().map_err(|error| {
            cannot_copy(format!("{} cannot be run: {error}", program.display()))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = clean_text(said.trim()).chars().take(MAX_ERROR_CHARS).collect();
        Err(cannot_copy(format!(
            "{} did not import the session: {said}. Without --native, it is handed over",
            self.command.program
        )))
    }
}

/// Returns a folder as the system names it, which is how agents name theirs.
fn real_folder(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    real_path(&absolute).unwrap_or(absolute)
}

/// Returns records as lines.
fn json_lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn cannot_copy(message: String) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgument, message)
}
