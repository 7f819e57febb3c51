//! The first run: `sessions` without arguments, or a question such as `sessions search`, on a terminal
//! before any log was read. It shows whose logs there are, and offers to read them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::ingest::provider::format::AgentFolders;
use schemas::Timestamp;

use super::commands::ingest::{self, IngestFlags};
use super::context::CommandContext;
use super::exit::CommandFailure;
use crate::config::environment;
use crate::output::{Printer, found_logs_text};
use crate::store::{Store, is_store};
use crate::tools::{Call, Interface, Tools};

const NO_LOGS: &str =
    "No logs of coding agents were found. `sessions doctor` shows where they were looked for";

const LATER: &str =
    "Run `sessions ingest` to read them later. `sessions --help` lists all commands";

/// What comes of the offer to read the logs.
pub(super) enum FirstRunOffer {
    Accepted,
    Declined,
    /// Nobody could answer, or there is a store already.
    NotMade,
}

/// Offers the first ingest to a user at a terminal, and runs it if the user agrees.
pub(super) fn offer_and_ingest(
    store: Option<PathBuf>,
    printer: &Printer,
) -> Result<FirstRunOffer, CommandFailure> {
    let dir = store.unwrap_or_else(environment::default_store);
    let offer = offer_first_ingest(&dir, printer)?;
    if matches!(offer, FirstRunOffer::Accepted) {
        let context = CommandContext {
            store: Arc::new(Store::new(dir)),
            interface: Interface::Commands,
            call: Call::new(Timestamp::now(), &|| false),
            printer,
        };
        ingest::run(&IngestFlags::default(), &context)?;
    }
    Ok(offer)
}

/// Offers the first ingest into `store`. Scripts are never asked: input and output must be terminals.
fn offer_first_ingest(store: &Path, printer: &Printer) -> Result<FirstRunOffer, CommandFailure> {
    let is_automatic = environment::read_variable("CI").is_some();
    if is_automatic || !printer.is_interactive() || is_store(store) {
        return Ok(FirstRunOffer::NotMade);
    }
    let home = environment::home_dir();
    let places = AgentFolders::new(&home, &environment::read_variable);
    let found = Tools::new(Arc::new(Store::new(store.to_owned()))).run_doctor(&places)?;
    let Some(text) = found_logs_text(&found) else {
        printer.print_note(NO_LOGS)?;
        return Ok(FirstRunOffer::NotMade);
    };
    printer.print_data(&text)?;
    let question = format!(
        "Read them into {}? Secrets are masked, and nothing leaves this machine.",
        store.display()
    );
    if printer.confirm(&question)? {
        return Ok(FirstRunOffer::Accepted);
    }
    printer.print_note(LATER)?;
    Ok(FirstRunOffer::Declined)
}
