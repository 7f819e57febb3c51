//! `sessions hide`: leaves projects out from now on.

use std::collections::HashSet;

use schemas::{ErrorCode, ToolError};

use super::forget::clear_lake_cache;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::patterns::pattern_of_name;
use crate::config::user_settings::UserSettings;
use crate::setup::{change_config, exclude_folders};
use crate::update::forget::forget_sessions;
use crate::update::log_rules::pattern_rule;
use store::is_store;
use tools::error::store_error;
use tools::forget::{ForgetSelection, select_forgotten};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HideFlags {
    /// Projects to hide: names of folders, or patterns of their paths
    #[arg(value_name = "PROJECT", required = true)]
    project: Vec<String>,
    /// Also sessions that hold copies of the selected sessions' events, or the originals
    #[arg(long)]
    with_copies: bool,
    /// Hide them; without this, only show what would be removed
    #[arg(long)]
    yes: bool,
}

/// Adds the projects to `exclude` in the settings file, and then forgets their sessions: logs that are
/// read in between are left out already.
pub(in crate::cli) fn run(flags: &HideFlags, context: &CommandContext<'_>) -> CommandResult {
    let printer = context.printer;
    let has_store = is_store(context.store.dir());
    let patterns = patterns_of(&flags.project, has_store, context)?;
    let is_hidden = pattern_rule(&patterns)?;
    if flags.yes {
        add_to_settings(&patterns, context)?;
    }
    if !has_store {
        printer.print_note("No logs have been read yet, so there is nothing to remove.")?;
        return Ok(CommandOutcome::from_found(flags.yes));
    }

    let tools = context.create_tools();
    printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let selection =
        ForgetSelection { with_copies: flags.with_copies, ..ForgetSelection::default() };
    let mut data = select_forgotten(&tools, &selection, &is_hidden, &context.call)?;
    let is_found = !data.sessions.is_empty();
    if flags.yes && is_found {
        printer.print_note("Removing them from the store ...")?;
        forget_sessions(&context.store, &mut data)?;
        clear_lake_cache(printer)?;
    }
    if flags.yes && !is_found {
        let note = "No session that was read is in such a folder. `sessions stats --by project` lists the projects.";
        printer.print_note(note)?;
    }
    if is_found || !flags.yes {
        printer.print_value(&data, &context.layout())?;
    }
    if !flags.yes {
        let names = quoted(&patterns);
        printer.print_note(&format!("--yes also adds {names} to `exclude` in the settings."))?;
    }
    Ok(CommandOutcome::from_found(flags.yes || is_found))
}

/// Returns the patterns of the projects. The name of a known project is no pattern, whatever characters it
/// has.
fn patterns_of(
    projects: &[String],
    has_store: bool,
    context: &CommandContext<'_>,
) -> Result<Vec<String>, CommandFailure> {
    let mut known = HashSet::new();
    if has_store {
        let snapshot = context.store.take_lazy_snapshot().map_err(store_error)?;
        known.extend(snapshot.sessions().iter().filter_map(|row| row.origin.project.clone()));
    }
    let mut patterns = Vec::new();
    for project in projects {
        if project.trim().trim_matches(['*', '/', '\\', '.']).is_empty() {
            let message = format!(
                "'{project}' names no project. `sessions stats --by project` lists their names"
            );
            return Err(ToolError::new(ErrorCode::InvalidArgument, message).into());
        }
        let is_name = known.contains(project) && !project.contains(['/', '\\']);
        patterns.push(if is_name { pattern_of_name(project) } else { project.clone() });
    }
    Ok(patterns)
}

/// Adds patterns to `exclude`, and says where that is.
fn add_to_settings(
    patterns: &[String],
    context: &CommandContext<'_>,
) -> Result<(), CommandFailure> {
    // What cannot be read must not be changed.
    UserSettings::read()?;
    let path = UserSettings::path();
    let written = change_config(&path, context.call.now, |text| exclude_folders(text, patterns))?;
    let names = quoted(patterns);
    let place = written.path.display();
    let note = if written.changed {
        format!(
            "Added {names} to `exclude` in {place}: such logs are not read any more. To undo this, remove it there, then run `sessions forget --undo ID...` for the sessions below (without ids, all that was ever forgotten comes back)."
        )
    } else {
        format!("`exclude` in {place} has {names} already.")
    };
    context.printer.print_note(&note)?;
    Ok(())
}

/// Returns the patterns in quotes.
fn quoted(patterns: &[String]) -> String {
    format!("'{}'", patterns.join("', '"))
}
