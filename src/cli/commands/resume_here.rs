//! `sessions resume` for a session of another machine: restores its log here first.

use std::path::{Path, PathBuf};

use ingest::provider::format::AgentFolders;
use schemas::{ErrorCode, ToolError};

use super::ingest::ingest_paths;
use crate::cli::context::CommandContext;
use crate::cli::exit::CommandFailure;
use crate::config::environment;
use crate::config::user_settings::UserSettings;
use crate::resume::{AgentCommand, ResumedSession, program_not_found};
use crate::travel::{FolderSearch, TravellingSession, find_folder, find_traveller, resolve_folder};
use base::sanitize::clean_text;
use store::{LogArchive, LogOrigin};
use tools::error::store_error;
use tools::reply::call::Call;
use tools::{Handover, Tools};

/// Returns what an agent needs to resume a session.
pub(super) fn resumed(handover: &Handover) -> ResumedSession<'_> {
    ResumedSession {
        session_id: &handover.session_id,
        provider: handover.provider,
        native_id: handover.native_id.as_deref(),
        parent_of_subagent: handover.parent_of_subagent.as_deref(),
        later_version: handover.later_version.as_deref(),
        is_log_gone: handover.is_log_gone,
    }
}

/// How the user wants a session of another machine.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    /// The folder that the user names.
    pub(super) folder: Option<&'a Path>,
    /// True if nothing is written.
    pub(super) is_print_only: bool,
}

/// A session of another machine, and its log; an error if that did not come with it.
struct Traveller {
    session: TravellingSession,
    log: Result<(LogArchive, LogOrigin), ToolError>,
}

/// Restores the log of a session of another machine, or what another machine has more of a session, so
/// that this one can resume it. Returns the handover as it is then; `None` if this machine has all of the
/// session. With `--print` nothing is written.
pub(super) fn bring_session(
    handover: &Handover,
    arrival: Arrival<'_>,
    tools: &Tools,
    context: &CommandContext<'_>,
) -> Result<Option<Handover>, CommandFailure> {
    // The snapshot of the handover may be one whose files another process has removed since.
    let call = context.call.next();
    let find = |call| tools.read_store(call, &mut || find_log(handover, tools, call));
    let Some(Traveller { session, log }) = find(&call)? else { return Ok(None) };
    let origin = match log {
        Ok((_, origin)) => origin,
        // The log that is here can be resumed without what another machine added.
        Err(error) if session.is_local() && !handover.is_log_gone => {
            context.printer.print_note(&error.message)?;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    // What the agent cannot do is reported before anything is written.
    let command = AgentCommand::resume(ResumedSession { is_log_gone: false, ..resumed(handover) })?;
    if !arrival.is_print_only && environment::find_program(command.program).is_none() {
        return Err(program_not_found(command.program).into());
    }
    let folder = match session.local_folder(tools.snapshot(&call)?) {
        Some(folder) => folder,
        None => choose_folder(&session, handover, &origin, arrival, tools, context)?,
    };
    // The agent may run in another folder than the one that its log names.
    let run_folder = resolve_folder(arrival.folder.unwrap_or(&folder));
    let run_folder = match run_folder {
        Err(_) if arrival.is_print_only => folder.clone(),
        resolved => resolved?,
    };
    let redactor = tools.create_redactor()?;
    let home = environment::home_dir();
    let folders = AgentFolders::new(&home, &environment::read_variable);
    // Another process may have brought the session meanwhile, or replaced its log in the archive.
    let call = context.call.next();
    let journey = tools.read_store(&call, &mut || {
        let found = find_log(handover, tools, &call)?;
        let Some(Traveller { session, log }) = found else { return Ok(None) };
        let (archive, _) = log?;
        let snapshot = tools.snapshot(&call)?;
        session.prepare(snapshot, &archive, &folder, &redactor, &folders).map(Some)
    })?;
    let folder = run_folder.to_string_lossy().into_owned();
    let brought = Handover { folder: Some(folder), is_log_gone: false, ..handover.clone() };
    let Some(journey) = journey else { return Ok(Some(brought)) };
    let log = journey.log().map(|log| clean_text(&log.to_string_lossy())).unwrap_or_default();
    let machine = &session.machine;
    if arrival.is_print_only {
        context.printer.print_note(&format!(
            "The session is of {machine}. Without --print, its log is written to {log} first"
        ))?;
    } else {
        journey.write(tools.store(), &redactor, &folders)?;
        context.printer.print_note(&format!("The log from {machine} was written to {log}"))?;
        // If the store is busy, the next ingest reads it.
        if let Err(error) = ingest_paths(&journey.logs(), context) {
            context.printer.print_note(&error.message)?;
        }
    }
    Ok(Some(brought))
}

/// Finds the session of another machine that is to be resumed, with its log. `None` if this machine has
/// all of it.
fn find_log(
    handover: &Handover,
    tools: &Tools,
    call: &Call<'_>,
) -> Result<Option<Traveller>, ToolError> {
    // First: a log of this machine that continues the session takes its log out of the archive.
    let archive = tools.store().open_archive().map_err(store_error)?;
    let is_restorable = |archive: &LogArchive| archive.has_session(&handover.session_id);
    if handover.is_log_gone && archive.as_ref().is_some_and(is_restorable) {
        // What this machine has of the log comes back byte for byte, and then what is missing of it.
        return Ok(None);
    }
    let snapshot = tools.snapshot(call)?;
    let user_name = &tools.store().identity().user_name;
    let Some(session) = find_traveller(snapshot, &handover.session_id, user_name)? else {
        return Ok(None);
    };
    let origin = session.origin(snapshot, archive.as_ref()).cloned();
    let Some(archive) = archive else {
        return Ok(origin.err().map(|error| Traveller { session, log: Err(error) }));
    };
    Ok(Some(Traveller { session, log: origin.map(|origin| (archive, origin)) }))
}

/// Returns the folder that the flags name, otherwise that of the same repository, otherwise the one that
/// the user chooses.
fn choose_folder(
    traveller: &TravellingSession,
    handover: &Handover,
    origin: &LogOrigin,
    arrival: Arrival<'_>,
    tools: &Tools,
    context: &CommandContext<'_>,
) -> Result<PathBuf, CommandFailure> {
    if let Some(given) = arrival.folder {
        return Ok(resolve_folder(given)?);
    }
    let here = environment::current_dir();
    let settings = UserSettings::read()?;
    let search = FolderSearch {
        snapshot: tools.snapshot(&context.call)?,
        folder: origin.folder.as_deref(),
        repository: origin.repository.as_ref(),
        here: here.as_deref(),
        projects: &settings.projects,
    };
    if let Some(folder) = find_folder(&search)? {
        return Ok(folder);
    }
    let message = format!(
        "Session {} of the machine {} ran in {}. No folder of the same repository is known here",
        handover.session_id,
        traveller.machine,
        clean_text(origin.folder.as_deref().unwrap_or("an unknown folder")),
    );
    let printer = context.printer;
    let error = |message: &str| {
        let message = format!(
            "{message}. Name the folder with --in FOLDER, or for all sessions under [projects] in settings.toml"
        );
        CommandFailure::from(ToolError::new(ErrorCode::InvalidArgument, message))
    };
    if printer.is_json || !printer.is_interactive() {
        return Err(error(&message));
    }
    let here = here.unwrap_or_default();
    let options = [
        format!("restore it here, in {}", here.display()),
        "restore it in another folder".to_owned(),
    ];
    match printer.choose(&message, &options)? {
        Some(0) => Ok(resolve_folder(&here)?),
        Some(_) => Ok(resolve_folder(&PathBuf::from(printer.ask("Folder:")?))?),
        None => Err(CommandFailure::Cancelled),
    }
}
