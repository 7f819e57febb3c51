//! Opens the screens, and does what the user chose there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemas::{ErrorCode, Timestamp, ToolError, Zone};

use super::commands::forget;
use super::commands::resume::{self, ResumeFlags};
use super::context::CommandContext;
use super::exit::{CommandFailure, CommandOutcome, CommandResult};
use super::startup::{TextUse, mask_stored_text};
use crate::app;
use crate::config::user_settings::UserSettings;
use crate::config::{environment, settings};
use crate::output::Printer;
use crate::screen::{self, EnterAction, ScreenEnd, ScreenRefresh, ScreenSetup};
use base::shell_word::shell_word;
use tools::{Call, Interface};

/// Returns true if a screen can be shown: a user is at a terminal that can do more than print lines.
pub(super) fn can_show_screen(printer: &Printer) -> bool {
    let is_dumb = environment::read_variable("TERM").is_some_and(|kind| kind == "dumb");
    printer.is_interactive() && !is_dumb
}

/// Opens the picker over a store. `timezone` is the zone that the user named.
pub(super) fn open_picker(
    store: PathBuf,
    timezone: Option<&str>,
    refresh: ScreenRefresh,
    printer: &Printer,
) -> CommandResult {
    let zone = UserSettings::read()?.zone(timezone)?;
    let context = CommandContext {
        store: Arc::new(app::open_store(store)),
        interface: Interface::Commands,
        call: Call::new(Timestamp::now(), &|| false).with_zone(zone.clone()),
        engine: None,
        printer,
    };
    mask_stored_text(&context.store, TextUse::Shows, printer)?;
    let setup = create_setup(&context, zone, refresh, EnterAction::Open)?;
    finish(&|| Ok(screen::run_picker(&setup)?), &ResumeFlags::default(), &context)
}

/// Returns true if the user can be shown the picker instead of an error about a missing id.
pub(super) fn can_pick_session(context: &CommandContext<'_>) -> bool {
    !context.printer.is_json && context.engine.is_none() && can_show_screen(context.printer)
}

/// Opens the picker for a command that needs a session and names none. `resume_flags` are those of
/// `resume`: Enter resumes then. For `forget` it asks whether to forget the session, and otherwise it
/// opens it.
///
/// # Errors
/// Fails if no screen can be shown.
pub(super) fn pick_session(
    command: &str,
    resume_flags: Option<ResumeFlags>,
    context: &CommandContext<'_>,
) -> CommandResult {
    if !can_pick_session(context) {
        let message = format!(
            "'sessions {command}' needs the ID of a session. `sessions list` lists them; 'last' is the newest one"
        );
        let error = ToolError::new(ErrorCode::InvalidArgument, message);
        return Err(error.with_detail("field", "session_id").into());
    }
    let enter = match command {
        "resume" => EnterAction::Resume,
        "forget" => EnterAction::Forget,
        _ => EnterAction::Open,
    };
    let setup = create_setup(context, context.call.zone.clone(), ScreenRefresh::Never, enter)?;
    finish(&|| Ok(screen::run_picker(&setup)?), &resume_flags.unwrap_or_default(), context)
}

/// Opens the reading view of a session.
pub(super) fn open_reader(session_id: &str, context: &CommandContext<'_>) -> CommandResult {
    if !can_show_screen(context.printer) {
        let message = format!(
            "'sessions open' needs a terminal. `sessions show {}` prints the session",
            shell_word(session_id)
        );
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
    }
    let zone = context.call.zone.clone();
    let setup = create_setup(context, zone, ScreenRefresh::Never, EnterAction::Open)?;
    finish(&|| Ok(screen::run_reader(&setup, session_id)??), &ResumeFlags::default(), context)
}

fn create_setup(
    context: &CommandContext<'_>,
    zone: Zone,
    refresh: ScreenRefresh,
    enter: EnterAction,
) -> Result<ScreenSetup, ToolError> {
    let folder = environment::current_dir().unwrap_or_default();
    Ok(ScreenSetup {
        tools: Arc::new(app::create_screen_tools(Arc::clone(&context.store))?),
        prices: settings::read_prices()?,
        zone,
        project: project_folder(&folder),
        folder,
        has_color: context.printer.terminal.has_color,
        refresh,
        enter,
    })
}

/// Returns the folder of the repository around `folder`, or `folder` itself.
fn project_folder(folder: &Path) -> Option<String> {
    let root = folder.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(folder);
    root.to_str().filter(|root| !root.is_empty()).map(str::to_owned)
}

/// Shows a screen and does what the user chose there. A user who takes back a choice sees the screen again.
fn finish(
    show: &dyn Fn() -> Result<ScreenEnd, CommandFailure>,
    resume_flags: &ResumeFlags,
    context: &CommandContext<'_>,
) -> CommandResult {
    loop {
        match show()? {
            ScreenEnd::Closed => return Ok(CommandOutcome::Done),
            ScreenEnd::Signal(code) => return Ok(CommandOutcome::Ended(code)),
            ScreenEnd::Forget(session_id) => return forget::forget_session(session_id, context),
            ScreenEnd::Resume(session_id) => {
                match resume::run(&session_id, resume_flags, context) {
                    Err(CommandFailure::Cancelled) => {}
                    done => return done,
                }
            }
        }
    }
}
