//! Adds the logs of sessions of other machines to the archive.

use std::collections::HashSet;

use ingest::provider::has_lines;
use ingest::redact::Redactor;
use ingest::relocate::is_place_of_rows;
use schemas::Provider;

use super::archive_file::{ArchiveChange, ArchivedFile, LogOrigin};
use super::content::{ContentForm, pack_bytes};
use super::keep::rules_of;
use super::names::KeepLogs;
use crate::damage::Verify;
use crate::error::StoreError;
use crate::lake::keys::LAKE_PATH;
use crate::lake::log_object::PublishedLog;
use crate::writer::StoreWriter;

/// The log of a session of another machine.
pub struct ForeignLog<'l> {
    /// The id that the session has in the store.
    pub session_id: &'l str,
    pub provider: Provider,
    pub log: &'l PublishedLog,
    /// The SHA-256 of its object.
    pub object: &'l str,
}

impl StoreWriter {
    /// Replaces what the archive has of the logs of sessions of other machines by these. Their secrets are
    /// masked by the rules of `redactor`. Nothing of what is replaced stays.
    ///
    /// # Errors
    /// Fails if the archive cannot be read or written.
    pub fn archive_foreign_logs(
        &self,
        logs: &[ForeignLog<'_>],
        redactor: &Redactor,
    ) -> Result<(), StoreError> {
        if logs.is_empty() {
            return Ok(());
        }
        let (archive, files) = self.open_whole_archive(Verify::Some)?;
        let sessions: HashSet<&str> = logs.iter().map(|log| log.session_id).collect();
        // A log of this machine stays: its session has it whatever another machine publishes.
        let is_replaced =
            |file: &ArchivedFile| file.origin.is_some() && sessions.contains(&*file.session_id);
        let old: Vec<i64> =
            files.iter().filter(|(_, file)| is_replaced(file)).map(|(id, _)| *id).collect();
        archive.remove(&old)?;
        for log in logs {
            // The log comes last: without it a session has no archive.
            let mut changes = log.changes(redactor).map_err(StoreError::io(archive.path()))?;
            changes.reverse();
            archive.apply(&changes)?;
        }
        if old.is_empty() { Ok(()) } else { archive.erase_deleted() }
    }

    /// Removes the logs of sessions of other machines from the archive, so that no byte of them stays.
    ///
    /// # Errors
    /// Fails if the archive cannot be read or written.
    pub fn remove_foreign_logs(&self, sessions: &HashSet<String>) -> Result<(), StoreError> {
        if sessions.is_empty() {
            return Ok(());
        }
        self.remove_files(&|file| file.origin.is_some() && sessions.contains(&file.session_id))
    }
}

impl ForeignLog<'_> {
    /// Returns the files of the log as the archive keeps them, the log first.
    fn changes(&self, redactor: &Redactor) -> std::io::Result<Vec<ArchiveChange>> {
        let mut changes = Vec::new();
        for (at, file) in self.log.files.iter().enumerate() {
            let is_log = at == 0;
            let is_rows = is_place_of_rows(self.provider, &file.below);
            let lines = !is_rows && has_lines(self.provider, &file.below, is_log);
            let form = if lines { ContentForm::Lines } else { ContentForm::Document };
            let frames = pack_bytes(&file.content, form, Some(redactor))?;
            let length = file.content.len() as i64;
            let file = ArchivedFile {
                path: format!("{LAKE_PATH}{}", file.below),
                session_id: self.session_id.to_owned(),
                provider: self.provider,
                is_log,
                keep: KeepLogs::Masked,
                rules: rules_of(Some(redactor)),
                modified_us: file.modified_us,
                source_modified_us: file.modified_us,
                source_size: length,
                consumed: length,
                origin: Some(LogOrigin {
                    object: self.object.to_owned(),
                    below: file.below.clone(),
                    folder: self.log.folder.clone(),
                    repository: self.log.repository.clone(),
                }),
                ..ArchivedFile::default()
            };
            changes.push(ArchiveChange { id: None, kept_frames: 0, frames, file }.with_sums(None));
        }
        Ok(changes)
    }
}
