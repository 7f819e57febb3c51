//! `sessions hide`: leaves projects out from now on.

use super::forget::clear_lake_cache;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::config::user_settings::UserSettings;
use crate::setup::{change_config, exclude_folders};
use crate::update::forget::{forget_sessions, pattern_rule};
use tools::forget::{ForgetSelection, select_forgotten};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HideFlags {
    /// Projects to hide: names of folders, or patterns of their paths
    #[arg(value_name = "PROJECT", required = true)]
    project: Vec<String>,
    /// Hide them; without this, only show what would be removed
    #[arg(long)]
    yes: bool,
}

/// Adds the projects to `exclude` in the settings file, and then forgets their sessions: logs that are
/// read in between are left out already.
pub(in crate::cli) fn run(
    flags: &HideFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let printer = context.printer;
    let is_hidden = pattern_rule(&flags.project)?;
    let tools = context.create_tools();
    printer.print_warnings(&tools.store_warnings(&context.call)?)?;
    let selection = ForgetSelection::default();
    let mut data = select_forgotten(&tools, &selection, &is_hidden, &context.call)?;
    if flags.yes {
        add_to_settings(&flags.project, context)?;
        if !data.sessions.is_empty() {
            printer.print_note("Removing them from the store ...")?;
            forget_sessions(&context.store, &mut data)?;
            clear_lake_cache(printer)?;
        }
    }
    printer.print_value_on(&data, &context.layout())?;
    Ok(CommandOutcome::from_found(flags.yes || !data.sessions.is_empty()))
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
    let names = patterns.join("', '");
    let place = written.path.display();
    let note = if written.changed {
        format!("'{names}' is in `exclude` of {place} now: its logs are not read any more.")
    } else {
        format!("`exclude` of {place} has '{names}' already.")
    };
    context.printer.print_note(&note)?;
    Ok(())
}
