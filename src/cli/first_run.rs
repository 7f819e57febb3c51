//! The first run, before any log was read. `sessions` alone on a terminal shows whose logs there are, and
//! offers to read them. Commands that read sessions, such as `sessions search`, read the logs first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::ingest::provider::format::AgentFolders;
use schemas::{ErrorCode, Timestamp, ToolError};

use super::commands::ingest;
use super::context::CommandContext;
use super::exit::CommandFailure;
use crate::config::environment;
use crate::output::{
    Printer, encrypted_logs_text, first_ingest_line, found_logs_line, found_logs_text,
    path_below_home, searched_folders,
};
use store::{KeepLogs, Store, is_store};
use tools::doctor::DoctorData;
use tools::{Call, Interface, Tools};

const LATER: &str =
    "Run `sessions ingest` to read them later. `sessions --help` lists all commands";

/// What comes of the offer to read the logs.
pub(super) enum FirstRunOffer {
    Accepted,
    Declined,
    /// The user cannot be asked, or there is a store already.
    NotMade,
}

/// Offers the first ingest to a user at a terminal, and runs it if the user agrees.
pub(super) fn offer_and_ingest(
    store: Option<PathBuf>,
    printer: &Printer,
) -> Result<FirstRunOffer, CommandFailure> {
    let store = Arc::new(Store::new(store.unwrap_or_else(environment::default_store)));
    let offer = offer_first_ingest(store.dir(), printer)?;
    if matches!(offer, FirstRunOffer::Accepted) {
        read_first_logs(&store, printer)?;
    }
    Ok(offer)
}

/// Creates the context of the ingest.
fn create_context<'a>(store: &Arc<Store>, printer: &'a Printer) -> CommandContext<'a> {
    CommandContext {
        store: Arc::clone(store),
        interface: Interface::Commands,
        call: Call::new(Timestamp::now(), &|| false),
        engine: None,
        printer,
    }
}

/// Offers the first ingest into `store`. Scripts are never asked: input and output must be terminals.
fn offer_first_ingest(store: &Path, printer: &Printer) -> Result<FirstRunOffer, CommandFailure> {
    let is_automatic = environment::read_variable("CI").is_some();
    if is_automatic || !printer.is_interactive() || is_store(store) {
        return Ok(FirstRunOffer::NotMade);
    }
    let found = find_logs(&Arc::new(Store::new(store.to_owned())))?;
    let text = found_logs_text(&found).ok_or_else(|| no_logs(&found))?;
    printer.print_data(&text)?;
    let question = format!(
        "Read them into {}? Secrets are masked, and nothing leaves this machine.",
        path_below_home(store, &environment::home_dir())
    );
    if printer.confirm(&question)? {
        return Ok(FirstRunOffer::Accepted);
    }
    printer.print_note(LATER)?;
    Ok(FirstRunOffer::Declined)
}

/// Reads the logs of this machine before the first command that needs them, with a progress bar at a
/// terminal. What is read is said on stderr, so that stdout has the answer of the command only.
///
/// # Errors
/// Fails if there are no logs, or if they cannot be ingested. A folder that is not a store is left to the command, whose
/// error says what is wrong with it.
pub(super) fn ingest_on_first_use(
    store: &Arc<Store>,
    printer: &Printer,
) -> Result<(), CommandFailure> {
    if !has_no_commit(store) {
        return Ok(());
    }
    let found = find_logs(store)?;
    let line = found_logs_line(&found).ok_or_else(|| no_logs(&found))?;
    let folder = path_below_home(store.dir(), &environment::home_dir());
    printer.print_note(&format!("first use: reading {line} into {folder}, secrets masked"))?;
    read_first_logs(store, printer)
}

/// Reads the logs of this machine, and says in a line how many sessions they hold.
fn read_first_logs(store: &Arc<Store>, printer: &Printer) -> Result<(), CommandFailure> {
    let report = ingest::ingest_default_logs(&create_context(store, printer))?;
    printer.print_note(&first_ingest_line(&report))?;
    ingest::print_failures(&report, printer)?;
    Ok(())
}

/// Returns the error that no agent has logs on this machine.
fn no_logs(found: &DoctorData) -> ToolError {
    let folders = searched_folders(found, &environment::home_dir());
    let message = format!(
        "No logs of coding agents were found. Looked in {folders}. Use an agent first, or name a folder with logs: `sessions ingest PATH`{}",
        encrypted_logs_text(found)
    );
    ToolError::new(ErrorCode::IndexEmpty, message)
}

/// Returns true if the folder is missing or empty, or if its store was created and never written.
fn has_no_commit(store: &Store) -> bool {
    !is_store(store.dir())
        && store.take_lazy_snapshot().is_ok_and(|snapshot| snapshot.manifest().generation == 0)
}

/// Finds the logs of the agents on this machine.
fn find_logs(store: &Arc<Store>) -> Result<DoctorData, ToolError> {
    let home = environment::home_dir();
    let places = AgentFolders::new(&home, &environment::read_variable);
    Tools::new(Arc::clone(store)).run_doctor(&places, KeepLogs::default())
}
