//! What commands and the picker do before they run: start the log, refuse flags that they cannot heed.

use schemas::{ErrorCode, ToolError};

use crate::config::environment;
use crate::output::logging;

/// Starts the log of the program. `verbose` is the number of `-v`.
pub(super) fn start_logging(verbose: u8) -> Result<(), ToolError> {
    logging::start(verbose, environment::read_variable(logging::LOG_VARIABLE).as_deref())
}

/// Returns the error for a command that cannot answer over a lake.
pub(super) fn refuse_engine() -> ToolError {
    let message = "--engine answers search, list, show, event, stats, usage, query and mcp only. Import the lake with sessions pull, and run the command without --engine and without SESSIONS_ENGINE in the environment";
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "engine")
}
