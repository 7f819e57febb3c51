//! Reads the archive: which sessions it has, and the content of their files.

use std::collections::HashMap;
use std::io::{self, Write};

use ingest::redact::Redactor;
use schemas::Provider;

use super::archive_file::{ArchiveFile, ArchivedFile};
use super::content::{FrameMasker, unpack_frame};
use super::keep::{form_of, rules_of};
use super::names::KeepLogs;
use crate::error::StoreError;
use crate::open_store::Store;

/// The archive of a store as it was when it was opened.
pub struct LogArchive {
    file: ArchiveFile,
    /// The files of each session, the log first.
    sessions: HashMap<String, Vec<(i64, ArchivedFile)>>,
}

/// What may fail when a file is written out.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The content cannot be written to where it goes.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl Store {
    /// Opens the archive of the logs. Returns `None` if there is none.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn open_archive(&self) -> Result<Option<LogArchive>, StoreError> {
        let Some(file) = ArchiveFile::open(self.dir())? else { return Ok(None) };
        let mut sessions: HashMap<String, Vec<(i64, ArchivedFile)>> = HashMap::new();
        for (id, one) in file.read_files()? {
            sessions.entry(one.session_id.clone()).or_default().push((id, one));
        }
        for files in sessions.values_mut() {
            files.sort_by_key(|(id, file)| (!file.is_log, *id));
        }
        // A session has no archive without its log.
        sessions.retain(|_, files| files.first().is_some_and(|(_, file)| file.is_log));
        Ok(Some(LogArchive { file, sessions }))
    }
}

impl LogArchive {
    /// Returns the files of a session, its log first. Empty if the session is not archived.
    pub fn files_of(&self, session_id: &str) -> impl Iterator<Item = &ArchivedFile> {
        self.sessions.get(session_id).into_iter().flatten().map(|(_, file)| file)
    }

    /// Returns whether the log of a session is archived.
    pub fn has_session(&self, session_id: &str) -> bool {
        self.sessions.contains_key(session_id)
    }

    /// Returns the ids of the sessions whose log is archived, with their agents, in no particular order.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, Provider)> {
        self.sessions.iter().filter_map(|(id, files)| Some((&**id, files.first()?.1.provider)))
    }

    /// Returns the size of the logs in the archive, compressed, in bytes.
    pub fn packed_bytes(&self) -> u64 {
        let files = self.sessions.values().flatten();
        files.map(|(_, file)| file.packed_bytes.cast_unsigned()).sum()
    }

    /// Returns how many logs are kept byte for byte.
    pub fn exact_logs(&self) -> usize {
        let files = self.sessions.values().flatten();
        files.filter(|(_, file)| file.is_log && file.keep == KeepLogs::Exact).count()
    }

    /// Writes the content of a file of a session. What is kept masked is masked by the rules of
    /// `redactor`, if others masked it. Returns the number of bytes written.
    ///
    /// # Errors
    /// Fails if the archive is damaged or `out` cannot be written.
    pub fn unpack(
        &self,
        file: &ArchivedFile,
        redactor: &Redactor,
        out: &mut dyn Write,
    ) -> Result<u64, UnpackError> {
        let files = self.sessions.get(&file.session_id).into_iter().flatten();
        let Some((id, file)) = files.into_iter().find(|(_, one)| one.path == file.path) else {
            return Ok(0);
        };
        let is_masked_again =
            file.keep == KeepLogs::Masked && file.rules != rules_of(Some(redactor));
        let mut masker = is_masked_again.then(|| FrameMasker::new(redactor, form_of(file)));
        let mut written = 0;
        self.file.for_each_frame(*id, file, |frame| {
            written += unpack_frame(&frame, masker.as_mut(), out)?;
            Ok::<_, UnpackError>(())
        })?;
        Ok(written)
    }
}
