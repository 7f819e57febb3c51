//! Describes how a command ends, and turns it into the exit code of the process.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use schemas::ToolError;

use crate::output::Printer;

/// How a command ends.
pub(super) type CommandResult = Result<CommandOutcome, CommandFailure>;

/// The result of a command that ran to its end.
pub(super) enum CommandOutcome {
    Done,
    NothingFound,
    /// The arguments do not make sense; the answer says why.
    Wrong,
    /// Another program ran in place of this one and ended with this exit code.
    Ended(u8),
}

impl CommandOutcome {
    /// Returns the outcome of a command that looks for something: `Done` if it was found.
    pub(super) fn from_found(is_found: bool) -> Self {
        if is_found { Self::Done } else { Self::NothingFound }
    }
}

/// The reason why a command ended early.
pub(super) enum CommandFailure {
    Tool(ToolError),
    /// The user was asked something and chose nothing.
    Cancelled,
    /// stdout or stderr is gone.
    Output(io::Error),
}

impl From<ToolError> for CommandFailure {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Reports a failure to the user and returns the exit code: 0 done, 1 nothing found, 2 wrong usage,
/// 3 data or store trouble.
pub(super) fn report_result(result: CommandResult, printer: &Printer) -> ExitCode {
    match result {
        Ok(CommandOutcome::Done) => ExitCode::SUCCESS,
        Ok(CommandOutcome::NothingFound) => ExitCode::from(1),
        Ok(CommandOutcome::Wrong) => ExitCode::from(2),
        Ok(CommandOutcome::Ended(code)) => ExitCode::from(code),
        Err(CommandFailure::Cancelled) => ExitCode::from(1),
        Err(CommandFailure::Output(error)) => report_unwritten(printer, &error),
        Err(CommandFailure::Tool(error)) => {
            let code = error.code.exit_code();
            match printer.print_error(error) {
                Err(error) if printer.is_json && error.kind() != ErrorKind::BrokenPipe => {
                    report_unwritten(printer, &error)
                }
                _ => ExitCode::from(code),
            }
        }
    }
}

/// Reports that the answer could not be written, and returns the exit code. A reader that closes
/// its end early, such as `head`, is not a failure.
pub(super) fn report_unwritten(printer: &Printer, error: &io::Error) -> ExitCode {
    if error.kind() == ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    printer.print_output_error(error);
    ExitCode::from(3)
}
