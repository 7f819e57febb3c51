//! The only place that converts errors to tool errors: a code, a message and advice.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

use schemas::{ErrorCode, ToolError};

use base::sanitize::clean_text;
use search::SearchError;
use sql::{Fault, Mistake, SqlError};
use store::{StoreError, UserFile};

/// Converts an error of the store to a tool error.
pub fn store_error(error: StoreError) -> ToolError {
    match error {
        StoreError::Newer { path, found, supported } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "The store in {} has schema version {found}; this program supports versions up to {supported}. Update sessions, or choose another store with --store",
                path.display()
            ),
        )
        .with_detail("schema_version", found),
        StoreError::Older { path, found, supported } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "The store in {} was written by an earlier version (schema {found}, now {supported}). Move it away and run `sessions ingest`: the logs are read again",
                path.display()
            ),
        )
        .with_detail("schema_version", found),
        StoreError::ForeignFolder { path, entry } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "{} is not a store: it holds '{}', which sessions did not write. Nothing was changed there. Move that away, or choose an empty or new folder with --store",
                path.display(),
                clean_text(&entry)
            ),
        )
        .with_path(&path),
        StoreError::LostManifest { path, segments } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} holds {segments} segments but no catalog.db, which lists the live ones. Restore that file from a backup, or move the folder away and run `sessions ingest` to rebuild the store from the logs",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::Replaced { path } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "The store in {} was moved, removed or replaced while it was being written. Data that was not committed before is in no store. Run the command again with the store that you want",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::Disturbed { path, reason } => ToolError::new(
            ErrorCode::StoreUnavailable,
            format!(
                "{} was changed by another program while its segment was being written ({reason}). The segment was not committed. Run the command again",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::BadUserFile { file, path, reason } => {
            let outcome = match file {
                UserFile::Labels => "there are no labels",
                UserFile::Forgotten => "forgotten logs that still exist are read again",
                UserFile::Scrubbed => {
                    "logs whose secrets were replaced may be counted a second time under their former content"
                }
                UserFile::Reduced => {
                    "logs that are read again bring back texts that the retention dropped, until the next `sessions compact`"
                }
            };
            unreadable_file(
                &path,
                format!("({reason}). Restore it from a backup, or write {{}} into it; then {outcome}"),
            )
        }
        StoreError::Damaged { path, reason } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} is damaged ({reason}). Run `sessions ingest --verify`: it restores what is damaged, and reads logs again if it has to",
                path.display()
            ),
        )
        .with_path(&path),
        StoreError::Busy { path } => ToolError::new(
            ErrorCode::StoreBusy,
            format!(
                "Another process is writing to the store in {}. The store can still be read; try again when the other process is done",
                path.display()
            ),
        ),
        StoreError::Io { path, source } => {
            let advice = io_advice(source.kind());
            ToolError::new(ErrorCode::StoreUnavailable, format!("{}: {source}. {advice}", path.display()))
                .with_path(&path)
        }
    }
}

/// Returns the error for a file of the store that cannot be read. `reason` is followed by advice.
fn unreadable_file(path: &Path, reason: String) -> ToolError {
    let message = format!("{} cannot be read {reason}", path.display());
    ToolError::new(ErrorCode::StoreDamaged, message).with_path(path)
}

/// Returns the next step after an error of the file system.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the advice for other errors of a disk is the same"
)]
fn io_advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::PermissionDenied => {
            "Check the permissions of the folder, or choose another store with --store"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "The disk is full. Nothing that was committed is lost. Free some space and run the command again"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "The file system is read-only. Choose another store with --store"
        }
        _ => "Nothing that was committed is lost. Run the command again",
    }
}

/// Returns the error of a search that ended early.
pub fn search_error(error: SearchError) -> ToolError {
    match error {
        SearchError::Cancelled => ToolError::new(ErrorCode::Cancelled, "The search was cancelled"),
        SearchError::TimedOut => {
            let message = "The search timed out. Narrow it with project, provider, since or until";
            ToolError::new(ErrorCode::SearchTimeout, message)
        }
        SearchError::Store(error) => store_error(error),
    }
}

/// Converts an error of an SQL query to a tool error.
pub fn sql_error(error: SqlError) -> ToolError {
    let message = error.to_string();
    match error {
        SqlError::Fault(fault) => fault_error(&fault),
        SqlError::TooLong => {
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "sql")
        }
        SqlError::OutOfTime(_) => {
            ToolError::new(ErrorCode::SqlError, message).with_detail("cap", "time")
        }
        SqlError::Busy => ToolError::new(ErrorCode::SearchTimeout, message),
        SqlError::Cancelled => ToolError::new(ErrorCode::Cancelled, message),
        SqlError::Killed(signal) => {
            ToolError::new(ErrorCode::InternalError, message).with_detail("signal", signal)
        }
        SqlError::Ended(_) | SqlError::NotStarted(_) | SqlError::Output(_) => {
            ToolError::new(ErrorCode::InternalError, message)
        }
        SqlError::Store(error) => store_error(error),
    }
}

/// Converts a fault that the process of a query reported to a tool error.
fn fault_error(fault: &Fault) -> ToolError {
    let message = fault.to_string();
    match fault {
        Fault::Mistake(Mistake { place, name, .. }) => {
            let mut error = ToolError::new(ErrorCode::SqlError, message);
            if let Some((line, column)) = place {
                error = error.with_detail("line", *line).with_detail("column", *column);
            }
            match name {
                Some(name) => error.with_detail("name", name.as_str()),
                None => error,
            }
        }
        Fault::NotAllowed { name: Some(name), .. } => {
            ToolError::new(ErrorCode::SqlNotAllowed, message).with_detail("name", name.as_str())
        }
        Fault::NotAllowed { name: None, .. } => ToolError::new(ErrorCode::SqlNotAllowed, message),
        Fault::OutOfMemory => {
            ToolError::new(ErrorCode::SqlError, message).with_detail("cap", "memory")
        }
        Fault::OutputTooLarge => {
            ToolError::new(ErrorCode::SqlError, message).with_detail("cap", "bytes")
        }
        Fault::TooManyColumns(_) => {
            ToolError::new(ErrorCode::SqlError, message).with_detail("cap", "columns")
        }
        Fault::Engine(_) => ToolError::new(ErrorCode::StoreDamaged, message),
        Fault::Unwritten(_) => ToolError::new(ErrorCode::InternalError, message),
    }
}

/// Creates the error for a file or folder that the user named and that cannot be used. `what` gives
/// the reason and the next step.
pub fn unusable_path(path: &Path, what: impl Display) -> ToolError {
    let message = format!("{}: {what}", path.display());
    ToolError::new(ErrorCode::InvalidArgument, message).with_path(path)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// The message of each kind of error of the file system must contain its advice.
    #[test]
    fn errors_of_the_file_system_are_not_taken_for_damage() {
        for (kind, advice) in [
            (ErrorKind::PermissionDenied, "Check the permissions"),
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
