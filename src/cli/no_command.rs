//! `sessions` without a command: the picker at a terminal, and the help elsewhere.

use std::process::ExitCode;

use super::args::Args;
use super::exit::{CommandFailure, CommandOutcome, report_result};
use super::first_run::{FirstRunOffer, offer_and_ingest};
use super::screens::{can_show_screen, open_picker};
use super::startup::{refuse_engine, start_logging};
use crate::config::environment;
use crate::output::Printer;
use crate::screen::ScreenRefresh;
use store::is_store;

/// The remark after the first ingest where no screen can be shown.
const AFTER_FIRST_RUN: &str = "`sessions list` lists them, `sessions search WORDS` searches them";

/// Runs the program without a command. Prints `help` if no screen can be used.
pub(super) fn run(args: Args, help: &str, printer: &Printer) -> ExitCode {
    match open_screen(args, printer) {
        Ok(Some(outcome)) => report_result(Ok(outcome), printer),
        Ok(None) => {
            let _ = printer.print_wrong_usage(&format!("{help}\n"));
            ExitCode::from(2)
        }
        Err(failure) => report_result(Err(failure), printer),
    }
}

/// Offers the first ingest, or opens the picker if there is a store. Returns `None` if neither is
/// possible, or if JSON is wanted.
fn open_screen(args: Args, printer: &Printer) -> Result<Option<CommandOutcome>, CommandFailure> {
    start_logging(args.verbose)?;
    if printer.is_json {
        return Ok(None);
    }
    if printer.is_interactive() && args.engine.is_some() {
        return Err(refuse_engine().into());
    }
    let offer = offer_and_ingest(args.store.clone(), printer)?;
    let dir = args.store.unwrap_or_else(environment::default_store);
    match offer {
        FirstRunOffer::Declined => return Ok(Some(CommandOutcome::Done)),
        FirstRunOffer::Accepted if !can_show_screen(printer) => {
            printer.print_note(AFTER_FIRST_RUN)?;
            return Ok(Some(CommandOutcome::Done));
        }
        FirstRunOffer::NotMade if !can_show_screen(printer) || !is_store(&dir) => return Ok(None),
        FirstRunOffer::Accepted | FirstRunOffer::NotMade => {}
    }
    let refresh = if args.no_refresh { ScreenRefresh::Never } else { ScreenRefresh::WhileOpen };
    open_picker(dir, args.timezone.as_deref(), refresh, printer).map(Some)
}
