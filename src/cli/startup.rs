//! What commands and the picker do before they run: start the log, refuse flags that they cannot heed,
//! mask the stored text by the rules in force.

use schemas::{ErrorCode, ToolError};

use super::exit::CommandFailure;
use crate::config::environment;
use crate::output::{Printer, logging};
use crate::update::masking::mask_by_rules_in_force;
use store::{Store, is_store};

/// What a command does with the text of the store. If the rules for secrets changed, the text is masked
/// by them first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TextUse {
    /// Nothing, or a server does it.
    #[default]
    None,
    /// It shows some. If the store cannot be masked, a note says so.
    Shows,
    /// It writes some into a file, a lake or the prompt of an agent. If the store cannot be masked, the
    /// command fails.
    PassesOn,
}

/// Starts the log of the program. `verbose` is the number of `-v`.
pub(super) fn start_logging(verbose: u8) -> Result<(), ToolError> {
    logging::start(verbose, environment::read_variable(logging::LOG_VARIABLE).as_deref())
}

/// Returns the error for a command that cannot answer over a lake.
pub(super) fn refuse_engine() -> ToolError {
    let message = "--engine answers search, list, show, event, stats, usage, query and mcp only. Import the lake with sessions pull, and run the command without --engine and without SESSIONS_ENGINE in the environment";
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "engine")
}

/// Masks the text of the store by the rules for secrets in force, if these changed and the command uses
/// it.
pub(super) fn mask_stored_text(
    store: &Store,
    text: TextUse,
    printer: &Printer,
) -> Result<(), CommandFailure> {
    if text == TextUse::None || !is_store(store.dir()) {
        return Ok(());
    }
    match mask_by_rules_in_force(store) {
        Ok(notice) => {
            if let Some(notice) = notice {
                printer.print_note(&notice)?;
            }
        }
        Err(error) if text == TextUse::PassesOn => return Err(error.into()),
        // The command says itself what is wrong with a store that cannot be read.
        Err(_) if store.take_lazy_snapshot().is_err() => {}
        Err(error) => printer.print_note(&format!(
            "The rules for secrets changed, but they could not be applied to the store, so this \
            may show secrets: {}",
            error.message
        ))?,
    }
    Ok(())
}
