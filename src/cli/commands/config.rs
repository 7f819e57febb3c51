//! `sessions config`: shows every setting, its value and where it comes from.

use std::path::Path;

use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::config::overview::list_settings;
use crate::output::{Printer, settings_table};

pub(in crate::cli) fn run(
    store: Option<&Path>,
    timezone: Option<&str>,
    printer: &Printer,
) -> Result<CommandOutcome, CommandFailure> {
    let settings = list_settings(store, timezone)?;
    if printer.is_json {
        printer.print_json(&settings)?;
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[&str; 3]> = settings
        .iter()
        .map(|setting| [setting.name, setting.value.as_str(), setting.source.as_str()])
        .collect();
    if printer.terminal.is_screen {
        printer.print_painted(&settings_table(&rows, printer.terminal.width))?;
    } else {
        printer.print_painted(&settings_table(&rows, usize::MAX))?;
    }
    Ok(CommandOutcome::Done)
}
