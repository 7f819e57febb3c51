//! The one place that turns errors into messages, exit codes and tool errors.

use std::io::ErrorKind;

use schemas::{ErrorCode, ToolError};

use crate::store::StoreError;

/// A store's error as a tool answers it.
pub fn store_error(error: StoreError) -> ToolError {
    match error {
        StoreError::Newer { path, found, supported } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "The store in {} has schema version {found}; this program knows up to {supported}. Update sessions, or choose another store with --store",
                path.display()
            ),
        )
        .with("schema_version", found),
        StoreError::Older { path, found, supported } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "The store in {} was written by an earlier version (schema {found}, now {supported}). Move it away and run `sessions ingest`: the logs are read again",
                path.display()
            ),
        )
        .with("schema_version", found),
        StoreError::BadManifest { path, source } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} cannot be read ({source}). Move the store directory away and run `sessions ingest` to build it anew from the logs",
                path.display()
            ),
        ),
        StoreError::BadLabels { path, reason } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} cannot be read ({reason}) and was left alone. Mend it, or move it away to begin with no labels",
                path.display()
            ),
        )
        .with("path", path.to_string_lossy().into_owned()),
        StoreError::Damaged { path, reason } => ToolError::new(
            ErrorCode::StoreDamaged,
            format!(
                "{} is damaged ({reason}). Run `sessions ingest --verify`: it sets the segment aside and reads the logs again",
                path.display()
            ),
        )
        .with("path", path.to_string_lossy().into_owned()),
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
            ToolError::new(ErrorCode::StoreDamaged, format!("{}: {source}. {advice}", path.display()))
                .with("path", path.to_string_lossy().into_owned())
        }
    }
}
