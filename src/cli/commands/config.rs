//! `sessions config`: shows every setting, its value and where it comes from.

use std::path::Path;

use schemas::envelope::{Severity, Warning, WarningCode};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::overview::list_settings;
use crate::config::user_settings::UserSettings;
use crate::output::settings_table;
use crate::update::log_rules::{ExcludedByPattern, count_excluded};
use base::numbers::count_of;

pub(in crate::cli) fn run(
    store: Option<&Path>,
    timezone: Option<&str>,
    context: &CommandContext<'_>,
) -> CommandResult {
    let printer = context.printer;
    let settings = list_settings(store, timezone)?;
    if printer.is_json {
        printer.print_json(&settings)?;
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[&str; 3]> = settings
        .iter()
        .map(|setting| [setting.name, setting.value.as_str(), setting.source.as_str()])
        .collect();
    printer.print_painted(&settings_table(&rows, context.layout().width))?;
    print_exclusions(context)?;
    Ok(CommandOutcome::Done)
}

/// Says how many sessions each pattern of `ingest.exclude` leaves out, and warns of those that leave out
/// none.
fn print_exclusions(context: &CommandContext<'_>) -> Result<(), CommandFailure> {
    let patterns = UserSettings::read()?.ingest.exclude;
    for ExcludedByPattern { pattern, sessions } in count_excluded(&context.store, &patterns)? {
        if sessions > 0 {
            let sessions = count_of(sessions, "session");
            context.printer.print_note(&format!("exclude '{pattern}' leaves out {sessions}"))?;
            continue;
        }
        let message = format!(
            "exclude '{pattern}' leaves out no session. `sessions list --long` shows the folders of sessions"
        );
        let warning =
            Warning { code: WarningCode::ParameterIgnored, message, severity: Severity::Warning };
        context.printer.print_warnings(&[warning])?;
    }
    Ok(())
}
