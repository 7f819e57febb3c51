//! Publishes the archived logs of sessions, with their secrets masked, so that another machine can resume
//! them.

use std::path::Path;

use ingest::discover::is_log_file;
use ingest::redact::columns::mask_name;
use ingest::relocate::{below_log_folder, is_place_of_rows, select_travelling_rows};
use ingest::rows::has_rows;
use schemas::ToolError;

use super::work::Push;
use crate::lake::entry::hash_in_key;
use store::{
    ArchivedFile, LakeFile, LogArchive, MAX_LOG_BYTES, PublishedFile, PublishedLog, Repository,
    UnpackError, log_key,
};
use tools::error::{store_error, unusable_path};

/// What the archive has of the log of a session.
enum ArchivedLog<'l> {
    /// The files, the log first.
    Whole(&'l LogArchive, Vec<&'l ArchivedFile>),
    /// Nothing, or only a part.
    Missing,
    /// The log has no place on another machine: it is a part of a database whose rows do not travel, larger
    /// than an object, outside the folders of its agent, or has a secret in its name.
    Unmovable,
    /// The session has no log of its own.
    None,
}

impl Push<'_> {
    /// Returns what the archive has of the log of the session at a position.
    fn find_log(&self, at: usize) -> ArchivedLog<'_> {
        let session = &self.own[at];
        let path = &session.source.path;
        let below = below_log_folder(session.row.provider, Path::new(path), &self.logs.folders());
        if session.row.is_earlier_version() {
            return ArchivedLog::None;
        }
        // A file whose name has a secret has no other name there.
        let has_place = is_log_file(path) || has_rows(path);
        if !has_place || below.is_none_or(|below| self.has_secret(&below)) {
            return ArchivedLog::Unmovable;
        }
        let Some(archive) = &self.logs.archive else { return ArchivedLog::Missing };
        let files: Vec<&ArchivedFile> = archive.files_of(&session.row.session_id).collect();
        let log = files.first();
        let is_whole =
            |log: &&ArchivedFile| log.path == *path && log.consumed >= session.source.consumed;
        if log.copied().filter(is_whole).is_none() {
            return ArchivedLog::Missing;
        }
        let bytes: i64 = files.iter().map(|file| file.end).sum();
        if bytes.cast_unsigned() > MAX_LOG_BYTES {
            return ArchivedLog::Unmovable;
        }
        ArchivedLog::Whole(archive, files)
    }

    /// Returns a hash of the log that is published of the session at a position; `None` if none is.
    pub(super) fn log_hash(&self, at: usize) -> Option<u64> {
        if !self.logs.is_wanted {
            return None;
        }
        match self.find_log(at) {
            ArchivedLog::Whole(archive, _) => archive.content_hash(&self.own[at].row.session_id),
            ArchivedLog::Missing | ArchivedLog::Unmovable | ArchivedLog::None => None,
        }
    }

    /// Counts whether the log of the session at a position is published.
    pub(super) fn count_log(&mut self, at: usize) {
        if !self.logs.is_wanted {
            return;
        }
        match self.find_log(at) {
            ArchivedLog::Whole(..) => self.report.logs += 1,
            ArchivedLog::Missing => self.report.unarchived += 1,
            ArchivedLog::Unmovable => self.report.unmovable += 1,
            ArchivedLog::None => {}
        }
    }

    /// Returns whether a place or an address has a secret, or a user before the host, which may be one.
    fn has_secret(&self, name: &str) -> bool {
        let authority = name.split_once("://").map_or(name, |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        authority.contains('@') || mask_name(Some(self.redactor), name) != name
    }

    /// Encodes the log of the session at a position. `None` if none is published.
    ///
    /// # Errors
    /// Fails if the archive cannot be read.
    pub(super) fn encode_log(&self, at: usize) -> Result<Option<LakeFile>, ToolError> {
        if !self.logs.is_wanted {
            return Ok(None);
        }
        let session = &self.own[at];
        let ArchivedLog::Whole(archive, files) = self.find_log(at) else { return Ok(None) };
        let folders = self.logs.folders();
        let mut published = Vec::new();
        for file in files {
            let path = Path::new(&file.path);
            let Some(below) = below_log_folder(file.provider, path, &folders) else { continue };
            let mut content = Vec::new();
            archive.unpack_masked(file, self.redactor, &mut content).map_err(
                |error| match error {
                    UnpackError::Store(error) => store_error(error),
                    UnpackError::Write(error) => unusable_path(path, error),
                },
            )?;
            if is_place_of_rows(file.provider, &below) {
                match select_travelling_rows(file.provider, &below, &content, None) {
                    Ok(rows) => content = rows,
                    Err(reason) => {
                        tracing::warn!(session = self.lake_ids[at], %reason, "a log is not published");
                        return Ok(None);
                    }
                }
            }
            published.push(PublishedFile { below, modified_us: file.modified_us, content });
        }
        // So has a file next to it.
        if published.iter().any(|file| self.has_secret(&file.below)) {
            tracing::warn!(
                session = self.lake_ids[at],
                "a log is not published: its name has a secret"
            );
            return Ok(None);
        }
        let folder = session.row.cwd.clone();
        let repository = folder.as_deref().and_then(|folder| self.logs.repository_of(folder));
        let repository = repository.map(|repository| Repository {
            remote: repository
                .remote
                .filter(|remote| !remote.contains('?') && !self.has_secret(remote)),
            ..repository
        });
        let repository = repository.filter(|repository| !self.has_secret(&repository.below));
        let log = PublishedLog { folder, repository, files: published };
        let lake_id = &self.lake_ids[at];
        let provider = session.row.provider;
        let bytes = match log.encode(lake_id, provider) {
            Ok(bytes) => bytes,
            Err(reason) => {
                tracing::warn!(session = lake_id, %reason, "a log is not published");
                return Ok(None);
            }
        };
        let machine = self.state.id.as_str();
        let hash = hash_in_key(machine, std::iter::once(bytes.as_slice()));
        Ok(Some(LakeFile { key: log_key(provider, lake_id, machine, &hash), bytes }))
    }
}
