//! Describes how a command ends, and turns it into the exit code of the process.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use schemas::ToolError;

use crate::output::Printer;

/// The result of a command that ran to its end.
pub(super) enum Outcome {
    Done,
    NothingFound,
    /// What was asked for makes no sense; the answer says why.
    Wrong,
}

impl Outcome {
    /// Returns the outcome of a command that looks for something: `Done` if it was found.
    pub(super) fn from_found(is_found: bool) -> Self {
        if is_found { Self::Done } else { Self::NothingFound }
    }
}

/// The reason why a command ended early.
pub(super) enum Failure {
    Tool(ToolError),
    /// stdout or stderr is gone.
    Output(io::Error),
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Reports a failure to the user and returns the exit code: 0 done, 1 nothing found, 2 wrong usage,
/// 3 data or store trouble.
pub(super) fn report_result(result: Result<Outcome, Failure>, printer: &Printer) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NothingFound) => ExitCode::from(1),
        Ok(Outcome::Wrong) => ExitCode::from(2),
        Err(Failure::Output(error)) => report_unwritten(printer, &error),
        Err(Failure::Tool(error)) => {
            let code = error.code.exit_code();
            match printer.error(error) {
                Err(error) if printer.json && error.kind() != ErrorKind::BrokenPipe => {
                    report_unwritten(printer, &error)
                }
                _ => ExitCode::from(code),
            }
        }
    }
}

/// Reports that the answer could not be written, and returns the exit code. A reader that has seen
/// enough and closed its end, such as `head`, is not a failure.
pub(super) fn report_unwritten(printer: &Printer, error: &io::Error) -> ExitCode {
    if error.kind() == ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    printer.unwritten(error);
    ExitCode::from(3)
}
