//! Reads the archive: which sessions it has, and the content of their files.

use std::collections::HashMap;
use std::io::{self, Write};

use ingest::discover::is_log_file;
use ingest::redact::Redactor;
use ingest::rows::make_text_only;
use schemas::Provider;
use xxhash_rust::xxh3::xxh3_64;

use super::archive_file::{ArchiveFile, ArchivedFile};
use super::content::{FrameMasker, pack_bytes, unpack_frame};
use super::keep::{form_of, rules_of};
use super::names::{ARCHIVE_FILE, KeepLogs};
use crate::error::StoreError;
use crate::open_store::Store;

/// The archive of a store as it was when it was opened.
pub struct LogArchive {
    file: ArchiveFile,
    /// The files of each session of this machine, the log first.
    sessions: SessionFiles,
    /// Those of sessions of other machines.
    foreign: SessionFiles,
}

/// Files by the ids of their sessions, each with its id in the archive.
type SessionFiles = HashMap<String, Vec<(i64, ArchivedFile)>>;

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
    /// Returns whether there is an archive of the logs, whether or not it can be read.
    pub fn has_archive(&self) -> bool {
        std::fs::symlink_metadata(self.dir().join(ARCHIVE_FILE)).is_ok()
    }

    /// Opens the archive of the logs. Returns `None` if there is none.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn open_archive(&self) -> Result<Option<LogArchive>, StoreError> {
        let Some(file) = ArchiveFile::open(self.dir())? else { return Ok(None) };
        let mut sessions = SessionFiles::new();
        let mut foreign = SessionFiles::new();
        for (id, one) in file.read_files()? {
            let files = if one.origin.is_none() { &mut sessions } else { &mut foreign };
            files.entry(one.session_id.clone()).or_default().push((id, one));
        }
        for all in [&mut sessions, &mut foreign] {
            for files in all.values_mut() {
                files.sort_by_key(|(id, file)| (!file.is_log, *id));
            }
            // A session has no archive without its log.
            all.retain(|_, files| files.first().is_some_and(|(_, file)| file.is_log));
        }
        Ok(Some(LogArchive { file, sessions, foreign }))
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

    /// Returns the files that came with a session of another machine, its log first. Empty if its log
    /// did not come.
    pub fn foreign_files_of(&self, session_id: &str) -> impl Iterator<Item = &ArchivedFile> {
        self.foreign.get(session_id).into_iter().flatten().map(|(_, file)| file)
    }

    /// Returns the logs of sessions of other machines, by the ids of the sessions.
    pub fn foreign_logs(&self) -> impl Iterator<Item = (&str, &ArchivedFile)> {
        self.foreign.iter().filter_map(|(id, files)| Some((&**id, &files.first()?.1)))
    }

    /// Returns a hash of what the archive has of a session of this machine. `None` if its log is not
    /// archived.
    pub fn content_hash(&self, session_id: &str) -> Option<u64> {
        let files = self.sessions.get(session_id)?;
        let files: Vec<&ArchivedFile> = files.iter().map(|(_, file)| file).collect();
        Some(xxh3_64(&serde_json::to_vec(&files).unwrap_or_default()))
    }

    /// Returns the ids of the sessions whose log is archived, with their agents, in no particular order.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, Provider)> {
        self.sessions.iter().filter_map(|(id, files)| Some((&**id, files.first()?.1.provider)))
    }

    /// Returns the size of the logs in the archive, compressed, in bytes.
    pub fn packed_bytes(&self) -> u64 {
        let files = self.sessions.values().chain(self.foreign.values()).flatten();
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
        let is_masked_again = |file: &ArchivedFile| {
            file.keep == KeepLogs::Masked && file.rules != rules_of(Some(redactor))
        };
        self.unpack_by(file, |file| is_masked_again(file).then_some(redactor), out)
    }

    /// Writes the content of a file of a session with its secrets masked by the rules of `redactor`, also
    /// if it is kept byte for byte. Returns the number of bytes written.
    ///
    /// # Errors
    /// Fails if the archive is damaged or `out` cannot be written.
    pub fn unpack_masked(
        &self,
        file: &ArchivedFile,
        redactor: &Redactor,
        out: &mut dyn Write,
    ) -> Result<u64, UnpackError> {
        let is_masked = |file: &ArchivedFile| {
            file.keep == KeepLogs::Masked && file.rules == rules_of(Some(redactor))
        };
        self.unpack_by(file, |file| (!is_masked(file)).then_some(redactor), out)
    }

    /// Writes the content that a file has now, which may be more than when the archive was opened. It is
    /// masked if `redactor_for` returns a redactor for the file.
    fn unpack_by<'r>(
        &self,
        file: &ArchivedFile,
        redactor_for: impl FnOnce(&ArchivedFile) -> Option<&'r Redactor>,
        out: &mut dyn Write,
    ) -> Result<u64, UnpackError> {
        let all = if file.origin.is_none() { &self.sessions } else { &self.foreign };
        let files = all.get(&file.session_id).into_iter().flatten();
        let Some((id, file)) = files.into_iter().find(|(_, one)| one.path == file.path) else {
            return Ok(0);
        };
        let is_same = |now: &ArchivedFile| {
            (&now.session_id, &now.path, &now.origin)
                == (&file.session_id, &file.path, &file.origin)
        };
        let found = self.file.read_file(*id)?.filter(|(now, _)| is_same(now));
        let (file, frames) = found.ok_or_else(|| {
            let error =
                io::Error::new(io::ErrorKind::NotFound, "a log was removed from it meanwhile");
            StoreError::io(self.file.path())(error)
        })?;
        let mut masker =
            redactor_for(&file).map(|redactor| FrameMasker::new(redactor, form_of(&file)));
        let mut written = 0;
        if let (Some(masker), KeepLogs::Exact, false) =
            (&mut masker, file.keep, is_log_file(&file.path))
        {
            // In compressed cells no secret is found.
            let mut rows = Vec::new();
            for frame in &frames {
                unpack_frame(frame, None, &mut rows)?;
            }
            for frame in pack_bytes(&make_text_only(&rows)?, form_of(&file), None)? {
                written += unpack_frame(&frame, Some(masker), out)?;
            }
            return Ok(written);
        }
        for frame in frames {
            written += unpack_frame(&frame, masker.as_mut(), out)?;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::archive_file::ArchiveChange;
    use crate::archive::content::{ContentForm, pack_bytes};

    /// Makes `content` that of the only file.
    fn write_log(archive: &ArchiveFile, id: Option<i64>, content: &str) {
        let frames = pack_bytes(content.as_bytes(), ContentForm::Lines, None).expect("packs");
        let file = ArchivedFile {
            path: "/logs/a.jsonl".into(),
            session_id: "a".into(),
            is_log: true,
            keep: KeepLogs::Exact,
            frames: frames.len() as i64,
            end: content.len() as i64,
            ..ArchivedFile::default()
        };
        archive.apply(&[ArchiveChange { id, file, kept_frames: 0, frames }]).expect("applies");
    }

    fn read(archive: &LogArchive) -> Result<String, UnpackError> {
        let redactor = Redactor::new(&[]).expect("rules");
        let file = archive.files_of("a").next().expect("a file").clone();
        let mut content = Vec::new();
        archive.unpack(&file, &redactor, &mut content)?;
        Ok(String::from_utf8(content).expect("text"))
    }

    #[test]
    fn a_log_that_grows_while_it_is_read_is_whole() {
        let dir = tempfile::tempdir().expect("tempdir");
        let writer = ArchiveFile::open_for_writing(dir.path()).expect("opens");
        write_log(&writer, None, "line\n");
        let archive = Store::new(dir.path()).open_archive().expect("opens").expect("an archive");
        write_log(&writer, Some(1), "line\nline\n");
        assert_eq!(read(&archive).expect("reads"), "line\nline\n");

        // Reads in the middle of changes, too.
        std::thread::scope(|scope| {
            let growing = scope.spawn(|| {
                for lines in 3..200 {
                    write_log(&writer, Some(1), &"line\n".repeat(lines));
                }
            });
            while !growing.is_finished() {
                assert!(read(&archive).expect("reads").ends_with("line\n"));
            }
        });
        writer.remove(&[1]).expect("removes");
        let error = read(&archive).expect_err("is gone").to_string();
        assert!(!error.contains("damaged"), "{error}");
    }
}
