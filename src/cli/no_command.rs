//! `sessions` without a command: the picker at a terminal, and the help elsewhere.

use std::path::PathBuf;
use std::process::ExitCode;

use super::exit::{CommandFailure, CommandOutcome, report_result};
use super::first_run::{FirstRunOffer, offer_and_ingest};
use super::screens::{can_show_screen, open_picker};
use crate::config::environment;
use crate::output::Printer;
use crate::store::is_store;

/// The next steps after the first ingest.
const AFTER_FIRST_RUN: &str = "Next: `sessions search WORDS` to search, `sessions setup --all --write` to give your agents the tools";

/// Runs the program without a command. Prints `help` if nobody could use a screen.
pub(super) fn run(help: &str, printer: &Printer) -> ExitCode {
    // The environment may name a store, which clap counts as an argument.
    let store = environment::read_variable("SESSIONS_STORE").map(PathBuf::from);
    match open_screen(store, printer) {
        Ok(Some(outcome)) => report_result(Ok(outcome), printer),
        Ok(None) => {
            let _ = printer.print_note(help);
            ExitCode::from(2)
        }
        Err(failure) => report_result(Err(failure), printer),
    }
}

/// Offers the first ingest, or opens the picker if there is a store. Returns `None` if neither is
/// possible.
fn open_screen(
    store: Option<PathBuf>,
    printer: &Printer,
) -> Result<Option<CommandOutcome>, CommandFailure> {
    match offer_and_ingest(store.clone(), printer)? {
        FirstRunOffer::Accepted => printer.print_note(AFTER_FIRST_RUN)?,
        FirstRunOffer::Declined => {}
        FirstRunOffer::NotMade => {
            let dir = store.unwrap_or_else(environment::default_store);
            if !can_show_screen(printer) || !is_store(&dir) {
                return Ok(None);
            }
            return open_picker(dir, printer).map(Some);
        }
    }
    Ok(Some(CommandOutcome::Done))
}
