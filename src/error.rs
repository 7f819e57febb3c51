//! The only place that converts errors to tool errors: a code, a message and advice.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

use schemas::{ErrorCode, ToolError};

use crate::base::sanitize::clean;
use crate::sql::{Fault, Mistake, SqlError};
use crate::store::StoreError;

/// Converts an error of the store to a tool error.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the advice for other errors of a disk is the same"
)]
pub fn store_error(error: StoreError) -> ToolError {
    match error {
        StoreError::Newer { path, found, supported } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "The store in {} has schema version {found}; this program knows up to {supported}. Update sessions, or choose another store with --store",
                path.display()
            ),
        )
        .with("schema_version", found),
        StoreError::Older { path, found, supported } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "The store in {} was written by an earlier version (schema {found}, now {supported}). Move it away and run `sessions ingest`: the logs are read again",
                path.display()
            ),
        )
        .with("schema_version", found),
        StoreError::BadManifest { path, reason } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} cannot be read ({reason}). Move the store folder away and run `sessions ingest` to rebuild it from the logs",
                path.display()
            ),
        ),
        StoreError::ForeignFolder { path, entry } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "{} is not a store: it holds '{}', which sessions did not write. Nothing was changed there. Choose an empty or new folder with --store",
                path.display(),
                clean(&entry)
            ),
        )
        .with_path(&path),
        StoreError::LostManifest { path, segments } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} holds {segments} segments and no manifest.json, which names those that count. Restore that file from a backup, or move the folder away and run `sessions ingest` to rebuild the store from the logs",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::Replaced { path } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "The store in {} was moved, removed or replaced while it was being written. What was not committed before is not in any store. Run the command again with the store you mean",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::BadLabels { path, reason } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} cannot be read ({reason}) and was left alone. Repair it, or move it away to begin with no labels",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::Damaged { path, reason } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} is damaged ({reason}). Run `sessions ingest --verify`: it sets the segment aside and reads the logs again",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::Busy { path } => ToolError::new(
            ErrorCode::StoreBusy,
            format!(
                "Another process is writing to the store in {}. Reading goes on meanwhile; try again when it is done",
                path.display()
            ),
        ),
        StoreError::Io { path, source } => {
            let advice = match source.kind() {
                ErrorKind::PermissionDenied => "Check the rights of the directory, or choose another store with --store",
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "The disk is full: nothing that was there is lost. Make room and run the command again"
                }
                ErrorKind::ReadOnlyFilesystem => "The file system is read-only: choose another store with --store",
                _ => "Nothing that was committed is lost. Run the command again",
            };
            ToolError::new(ErrorCode::StoreUnavailable, format!("{}: {source}. {advice}", path.display()))
                .with_path(&path)
        }
    }
}

/// Converts an error of an SQL query to a tool error.
pub fn sql_error(error: SqlError) -> ToolError {
    let message = error.to_string();
    let answer = |code| ToolError::new(code, message);
    match error {
        SqlError::Fault(fault) => fault_error(&fault),
        SqlError::TooLong => answer(ErrorCode::InvalidArgument).with("field", "sql"),
        SqlError::OutOfTime(_) => answer(ErrorCode::SqlError).with("cap", "time"),
        SqlError::Busy => answer(ErrorCode::SearchTimeout),
        SqlError::Cancelled => answer(ErrorCode::Cancelled),
        SqlError::Killed(signal) => answer(ErrorCode::InternalError).with("signal", signal),
        SqlError::Ended(_) | SqlError::NotStarted(_) | SqlError::Output(_) => {
            answer(ErrorCode::InternalError)
        }
        SqlError::Store(error) => store_error(error),
    }
}

fn fault_error(fault: &Fault) -> ToolError {
    let answer = |code| ToolError::new(code, fault.to_string());
    match fault {
        Fault::Mistake(Mistake { place, name, .. }) => {
            let mut error = answer(ErrorCode::SqlError);
            if let Some((line, column)) = place {
                error = error.with("line", *line).with("column", *column);
            }
            match name {
                Some(name) => error.with("name", name.as_str()),
                None => error,
            }
        }
        Fault::NotAllowed { name: Some(name), .. } => {
            answer(ErrorCode::SqlNotAllowed).with("name", name.as_str())
        }
        Fault::NotAllowed { name: None, .. } => answer(ErrorCode::SqlNotAllowed),
        Fault::OutOfMemory => answer(ErrorCode::SqlError).with("cap", "memory"),
        Fault::OutputTooLarge => answer(ErrorCode::SqlError).with("cap", "bytes"),
        Fault::TooManyColumns(_) => answer(ErrorCode::SqlError).with("cap", "columns"),
        Fault::Engine(_) => answer(ErrorCode::StoreDamaged),
        Fault::Unwritten(_) => answer(ErrorCode::InternalError),
    }
}

/// Creates the error for a file or folder that the user named and that cannot be used. `what` gives
/// the reason and the next step.
pub(crate) fn unusable_path(path: &Path, what: impl Display) -> ToolError {
    let message = format!("{}: {what}", path.display());
    ToolError::new(ErrorCode::InvalidArgument, message).with_path(path)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// What the message of each kind of error of the file system must say.
    #[test]
    fn errors_of_the_file_system_are_not_taken_for_damage() {
        for (kind, advice) in [
            (ErrorKind::PermissionDenied, "Check the rights"),
            (ErrorKind::StorageFull, "The disk is full"),
            (ErrorKind::QuotaExceeded, "The disk is full"),
            (ErrorKind::ReadOnlyFilesystem, "read-only"),
            (ErrorKind::NotFound, "Run the command again"),
            (ErrorKind::NotADirectory, "Run the command again"),
            (ErrorKind::FileTooLarge, "Run the command again"),
            (ErrorKind::Interrupted, "Run the command again"),
            (ErrorKind::TimedOut, "Run the command again"),
            (ErrorKind::StaleNetworkFileHandle, "Run the command again"),
            (ErrorKind::ResourceBusy, "Run the command again"),
            (ErrorKind::Other, "Run the command again"),
        ] {
            let source = io::Error::from(kind);
            let error = store_error(StoreError::Io { path: "/stores/a".into(), source });
            assert_eq!(
                (error.code, error.retryable),
                (ErrorCode::StoreUnavailable, false),
                "{kind}"
            );
            assert!(error.message.starts_with("/stores/a: "), "{error}");
            assert!(error.message.contains(advice), "{error}");
            assert_eq!(error.details["path"], "/stores/a");
        }
    }

    #[test]
    fn a_store_of_another_version_is_not_taken_for_damage() {
        let newer = StoreError::Newer { path: "/stores/a".into(), found: 9, supported: 3 };
        let older = StoreError::Older { path: "/stores/a".into(), found: 1, supported: 3 };
        for error in [newer, older].map(store_error) {
            assert_eq!(error.code, ErrorCode::StoreUnavailable, "{error}");
        }
        let damaged = StoreError::Damaged { path: "/stores/a".into(), reason: "short".to_owned() };
        assert_eq!(store_error(damaged).code, ErrorCode::StoreDamaged);
    }
}
