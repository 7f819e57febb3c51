//! The failures of a command, and the exit code of each.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

pub(crate) type Result<T> = std::result::Result<T, TaskFailure>;

#[derive(Debug)]
pub(crate) enum TaskFailure {
    /// The command line is not valid.
    Usage(String),
    /// A step could not be done.
    Step(String),
    /// A program that was run ended with this code, or by a signal if there is none. The program
    /// has printed the reason itself.
    Program { line: String, code: Option<i32> },
}

impl TaskFailure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn step(message: impl Into<String>) -> Self {
        Self::Step(message.into())
    }

    /// Creates an I/O error that names the action and the file.
    pub(crate) fn io<'a>(
        doing: &'a str,
        path: &'a Path,
    ) -> impl FnOnce(std::io::Error) -> TaskFailure + 'a {
        move |error| Self::Step(format!("cannot {doing} {}: {error}", path.display()))
    }

    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("error: {self}");
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Step(_) => ExitCode::FAILURE,
            Self::Program { code, .. } => {
                let code = code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
                code.map_or(ExitCode::FAILURE, ExitCode::from)
            }
        }
    }
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Step(message) => f.write_str(message),
            Self::Program { line, code: Some(code) } => write!(f, "`{line}` failed (exit {code})"),
            Self::Program { line, code: None } => write!(f, "`{line}` was killed by a signal"),
        }
    }
}
