//! Brings the log of a session of another machine to this one, where its agent resumes it: into the folder
//! of the same repository, with the folder rewritten in its records. A log of the same session that is here
//! already and has less gets the rest.

mod folder;
mod longer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ingest::provider::format::AgentFolders;
use ingest::provider::{has_lines, is_tool_output};
use ingest::redact::columns::mask_name;
use ingest::redact::{Redactor, has_placeholder};
use ingest::relocate::{
    FolderMove, LogPlace, find_obstacle_to_moving, is_place_of_rows, place_log, rewrite_log,
    select_travelling_rows,
};
use ingest::rows::PutBack;
use ingest::scrub::find_database;
use schemas::{ErrorCode, Provider, ToolError};

pub(crate) use self::folder::{FolderSearch, find_folder, resolve_folder};
use self::longer::extend;
use crate::files::restore::{choose_time, put_back_unless_used, write_new_file};
use crate::scrub::extend_log;
use base::sanitize::clean_text;
use store::{
    ArchivedFile, EventHistory, LogArchive, LogCopies, LogOrigin, Snapshot, Store, UnpackError,
};
use tools::error::store_error;

/// Why a log does not get what another machine has of its session.
const OTHER_LOG: &str = "the log here has other records than the one from there";

/// A session of another machine that is to be resumed here.
#[derive(Debug, Clone)]
pub(crate) struct TravellingSession {
    /// Its position in the snapshot.
    at: usize,
    pub(crate) provider: Provider,
    /// The name of the machine.
    pub(crate) machine: String,
    /// The log of the same session that this machine has and that has less: its session and its path.
    local: Option<(usize, PathBuf)>,
}

/// The files that are written to resume a session here.
pub(crate) struct Journey {
    files: Vec<ArrivingFile>,
}

/// A file that comes from another machine.
struct ArrivingFile {
    place: LogPlace,
    content: Vec<u8>,
    provider: Provider,
    modified_us: i64,
    is_log: bool,
    has_lines: bool,
    /// True if the content is the rows of the session, which go into the database at the place.
    is_rows: bool,
    /// True if the log at the place is the beginning of this one.
    is_longer: bool,
}

/// Finds out whether a session that is to be resumed is one of another machine, or has more there. If its
/// log was deleted here, the whole log comes from there. What
/// another user added to a session of this machine comes only if the user names the session of the other
/// machine. `None` if this machine has all of it.
///
/// # Errors
/// Fails if the store cannot be read.
pub(crate) fn find_traveller(
    snapshot: &Snapshot,
    session_id: &str,
    user_name: &str,
) -> Result<Option<TravellingSession>, ToolError> {
    let Some(at) = snapshot.session_position(session_id) else { return Ok(None) };
    let logs = snapshot.logs_of_several_machines().map_err(store_error)?;
    let is_of_session = |copies: &&LogCopies| {
        let mut own = copies.local.iter().map(|(local, _)| local).chain(&copies.gone);
        copies.imported.contains(&at) || own.any(|own| *own == at)
    };
    let copies = logs.values().find(is_of_session);
    let travelling = |at: usize, local: Option<(usize, PathBuf)>| {
        let session = &snapshot.sessions()[at];
        let machine = clean_text(snapshot.machine_of(session));
        TravellingSession { at, provider: session.provider, machine, local }
    };
    let Some(LogCopies { local, gone, imported }) = copies else {
        let is_imported = snapshot.sessions()[at].origin.machine.is_some();
        return Ok(is_imported.then(|| travelling(at, None)));
    };
    let local = local.iter().map(|(at, path)| (at, Some(path)));
    for (local_at, path) in local.chain(gone.iter().map(|at| (at, None))) {
        let own = EventHistory::of_session(snapshot, *local_at).map_err(store_error)?;
        for other_at in imported {
            let origin = &snapshot.sessions()[*other_at].origin;
            if *other_at != at && origin.user_name.as_deref() != Some(user_name) {
                continue;
            }
            let other = EventHistory::of_session(snapshot, *other_at).map_err(store_error)?;
            if other.contains(&own) && (path.is_none() || !own.contains(&other)) {
                let local = path.map(|path| (*local_at, path.into()));
                return Ok(Some(travelling(*other_at, local)));
            }
        }
    }
    // Histories that parted: the log of this machine is resumed, or the other one has no place here.
    let is_imported = imported.contains(&at);
    Ok(is_imported.then(|| travelling(at, None)))
}

impl TravellingSession {
    /// Returns where the log comes from.
    ///
    /// # Errors
    /// Fails if the log did not come with the session, or if its agent cannot find it in another folder.
    pub(crate) fn origin<'a>(
        &self,
        snapshot: &Snapshot,
        archive: Option<&'a LogArchive>,
    ) -> Result<&'a LogOrigin, ToolError> {
        let id = snapshot.sessions()[self.at].id();
        let machine = &self.machine;
        let other = "`sessions resume ID --with AGENT` hands it over to an agent instead";
        if let Some(reason) = find_obstacle_to_moving(self.provider) {
            return Err(cannot_resume(format!(
                "Session {id} of the machine {machine} cannot be resumed here: {reason}. {other}"
            )));
        }
        let log = archive.and_then(|archive| archive.foreign_files_of(id).next());
        log.and_then(|log| log.origin.as_ref()).ok_or_else(|| {
            cannot_resume(format!(
                "Session {id} is of the machine {machine}, and its log did not come with it. There, set keep_logs = \"masked\" under [store] and logs = true under [publish] in settings.toml, and run `sessions ingest` and `sessions push`; then pull here, where keep_logs must not be \"no\". {other}"
            ))
        })
    }

    /// Returns whether this machine has a log of the same session.
    pub(crate) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Returns the folder of the log of the same session that this machine has.
    pub(crate) fn local_folder(&self, snapshot: &Snapshot) -> Option<PathBuf> {
        let (at, _) = self.local.as_ref()?;
        let folder = snapshot.sessions()[*at].origin.cwd.as_deref();
        // A folder whose name has a secret is not known.
        folder.filter(|folder| !has_placeholder(folder)).map(PathBuf::from)
    }

    /// Prepares the files of the session and of its subagents for a folder. Nothing is written.
    ///
    /// # Errors
    /// Fails if the archive cannot be read, the place of the log cannot be computed, or another file is
    /// there.
    pub(crate) fn prepare(
        &self,
        snapshot: &Snapshot,
        archive: &LogArchive,
        folder: &Path,
        redactor: &Redactor,
        folders: &AgentFolders<'_>,
    ) -> Result<Journey, ToolError> {
        let target = folder.to_str().ok_or_else(|| {
            cannot_resume(format!("The name of the folder {} is not UTF-8", folder.display()))
        })?;
        let mut files = Vec::new();
        for at in self.sessions_to_bring(snapshot) {
            let session = &snapshot.sessions()[at];
            let local = self.local.as_ref().filter(|_| at == self.at);
            let refused = |reason: String| {
                cannot_resume(format!(
                    "Session {} cannot be resumed here: {reason}. `sessions resume ID --with AGENT` hands it over to an agent instead",
                    session.id()
                ))
            };
            let log = archive.foreign_files_of(session.id()).next();
            let Some(log) = log.and_then(|log| log.origin.as_ref()) else { continue };
            for file in archive.foreign_files_of(session.id()) {
                let Some(origin) = &file.origin else { continue };
                let is_rows = is_place_of_rows(file.provider, &origin.below);
                let is_of_log = if is_rows {
                    file.is_log
                } else {
                    is_file_of_log(&origin.below, &log.below)
                        || is_tool_output(file.provider, origin.below.as_ref(), log.below.as_ref())
                };
                if !is_of_log {
                    return Err(refused(format!("{:?} is not a file of its log", origin.below)));
                }
                let known = local.filter(|_| file.is_log).map(|(_, path)| path.clone());
                let is_longer = known.is_some();
                let place = match known {
                    Some(path) => LogPlace { path, marker: None },
                    None => place_log(file.provider, &origin.below, target, folders)
                        .map_err(&refused)?,
                };
                let content = unpack(archive, file, origin, redactor, target);
                let content = content.map_err(|error| match error {
                    UnpackError::Store(error) => {
                        let message = refused(format!(
                            "its log cannot be read out of the archive: {error}. Run `sessions ingest --verify`, then pull again"
                        ));
                        ToolError { code: ErrorCode::StoreDamaged, ..message }
                    }
                    UnpackError::Write(error) => {
                        refused(format!("its log cannot be unpacked: {error}"))
                    }
                })?;
                files.push(ArrivingFile {
                    place,
                    content,
                    provider: file.provider,
                    modified_us: file.modified_us,
                    is_log: file.is_log,
                    has_lines: has_lines(file.provider, &origin.below, file.is_log),
                    is_rows,
                    is_longer,
                });
            }
        }
        // The log of the session comes last: with it, its agent can resume it.
        files.reverse();
        let mut journey = Journey { files };
        journey.check_places(snapshot.sessions()[self.at].id(), redactor)?;
        Ok(journey)
    }

    /// Returns the positions of the session, which is the first, and of those of its subagents that came with it.
    fn sessions_to_bring(&self, snapshot: &Snapshot) -> Vec<usize> {
        let mut found = vec![self.at];
        let of = &snapshot.sessions()[self.at].origin;
        let mut ids: Vec<&str> = vec![snapshot.sessions()[self.at].id()];
        if let Some((local, _)) = &self.local {
            ids.push(snapshot.sessions()[*local].id());
        }
        while let Some(id) = ids.pop() {
            for (at, session) in snapshot.sessions().iter().enumerate() {
                // Another machine or user may say of any session that it is a part of this one.
                let is_part = session.is_subagent
                    && session.origin.machine == of.machine
                    && session.origin.user_name == of.user_name
                    && session.parent_session_id.as_deref() == Some(id);
                if is_part && !found.contains(&at) {
                    found.push(at);
                    ids.push(session.id());
                }
            }
        }
        found
    }
}

/// Returns whether a file that another machine names is the log at `log`, or one next to it whose name
/// begins like that of the log. Agents read other files in their folders as instructions.
fn is_file_of_log(below: &str, log: &str) -> bool {
    let is_json = |name: &str| name.ends_with(".jsonl") || name.ends_with(".json");
    let stem = log.strip_suffix(".jsonl").or_else(|| log.strip_suffix(".json"));
    let rest = stem.and_then(|stem| below.strip_prefix(stem));
    rest.is_some_and(|rest| rest.starts_with('.') && !rest.contains('/') && is_json(rest))
}

/// Returns the content of a file of the archive with the folder in it moved to `target`.
fn unpack(
    archive: &LogArchive,
    file: &ArchivedFile,
    origin: &LogOrigin,
    redactor: &Redactor,
    target: &str,
) -> Result<Vec<u8>, UnpackError> {
    let mut content = Vec::new();
    archive.unpack(file, redactor, &mut content)?;
    let moved = origin.folder.as_ref().map(|from| FolderMove::new(from, target));
    if is_place_of_rows(file.provider, &origin.below) {
        let rows = select_travelling_rows(file.provider, &origin.below, &content, moved.as_ref());
        return Ok(rows.map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))?);
    }
    let Some(moved) = moved else { return Ok(content) };
    let has_lines = has_lines(file.provider, &origin.below, file.is_log);
    Ok(rewrite_log(file.provider, has_lines, &content, &moved).into_owned())
}

impl ArrivingFile {
    /// Returns the log that is here with what this one has more; see [`extend`].
    fn extend(&self, log: &[u8]) -> Option<Vec<u8>> {
        extend(log, &self.content, self.has_lines)
    }
}

impl Journey {
    /// Returns the place of the log.
    pub(crate) fn log(&self) -> Option<&Path> {
        self.files.last().map(|file| file.place.path.as_path())
    }

    /// Returns the logs and databases, to be ingested.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let logs = self.files.iter().filter(|file| file.is_log).map(|file| {
            let path = &file.place.path;
            let database = find_database(&path.to_string_lossy()).filter(|_| file.is_rows);
            database.unwrap_or_else(|| path.clone())
        });
        logs.collect()
    }

    /// Fails if the place of a log has another one, and finds out which logs have less here. A file that an
    /// earlier run wrote is not another one. Rows are compared when they are put back.
    fn check_places(&mut self, session_id: &str, redactor: &Redactor) -> Result<(), ToolError> {
        for file in self.files.iter_mut().filter(|file| file.is_log && !file.is_rows) {
            let path = &file.place.path;
            if file.is_longer || !has_other_content(path, &file.content) {
                continue;
            }
            let is_beginning = |found: Vec<u8>| file.extend(&found).is_some();
            let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
            if is_file && fs::read(path).is_ok_and(is_beginning) {
                file.is_longer = true;
                continue;
            }
            let shown = mask_name(Some(redactor), &path.to_string_lossy());
            return Err(cannot_resume(format!(
                "Session {session_id} cannot be resumed here: its log belongs at {shown}, where another file is. Move that file away if you do not need it, or use --with AGENT to hand the session over"
            ))
            .with_path(path));
        }
        Ok(())
    }

    /// Writes the files, none over another one, and puts rows into their database. A log that is here already and has less gets the rest,
    /// and keeps its own bytes; of one that is a document, a copy goes into the backup in `store`.
    ///
    /// # Errors
    /// Fails if a file cannot be written, or if a log that would change is in use or has other records.
    pub(crate) fn write(
        &self,
        store: &Store,
        redactor: &Redactor,
        folders: &AgentFolders<'_>,
    ) -> Result<(), ToolError> {
        for file in &self.files {
            let path = &file.place.path;
            let shown = mask_name(Some(redactor), &path.to_string_lossy());
            if file.is_rows {
                let rows = &file.content;
                put_back_unless_used(file.provider, path, rows, PutBack::Longer, None)
                    .map_err(|reason| cannot_resume(reason).with_path(path))?;
                continue;
            }
            let is_complete = || {
                fs::read(path)
                    .is_ok_and(|found| file.extend(&found).is_some_and(|all| all == found))
            };
            if file.is_longer && is_complete() {
                continue;
            }
            if file.is_longer {
                extend_log(path.clone(), store, |before| {
                    file.extend(before).ok_or_else(|| OTHER_LOG.to_owned())
                })
                .map_err(|reason| {
                    cannot_resume(format!(
                        "{shown} does not get what another machine added to its session: {reason}. Close the agent that uses it, then run `sessions ingest` and the command again"
                    ))
                })?;
                continue;
            }
            if let Some((marker, text)) = &file.place.marker
                && fs::symlink_metadata(marker).is_err()
            {
                write_file(marker, text.as_bytes(), file, folders, redactor)?;
            }
            if fs::symlink_metadata(path).is_err() {
                let written = write_file(path, &file.content, file, folders, redactor);
                // Another `resume` may have written it meanwhile.
                let is_there =
                    fs::symlink_metadata(path).is_ok() && !has_other_content(path, &file.content);
                if written.is_err() && !is_there {
                    return written;
                }
            }
        }
        Ok(())
    }
}

fn write_file(
    path: &Path,
    content: &[u8],
    file: &ArrivingFile,
    folders: &AgentFolders<'_>,
    redactor: &Redactor,
) -> Result<(), ToolError> {
    let shown = mask_name(Some(redactor), &path.to_string_lossy());
    let modified = choose_time(file.modified_us, file.provider, folders);
    let written = write_new_file(path, &shown, modified, |out| {
        let written = out.write_all(content).map(|()| content.len() as u64);
        written.map_err(|error| format!("{shown} cannot be written: {error}. Check the free space"))
    });
    written.map(|_| ()).map_err(|reason| cannot_resume(reason).with_path(path))
}

/// Returns whether there is a file with something else than `content` and what was added to it.
fn has_other_content(path: &Path, content: &[u8]) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let is_same = || fs::read(path).is_ok_and(|bytes| bytes.starts_with(content));
    !found.is_file() || !is_same()
}

fn cannot_resume(message: String) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_log_come_with_it() {
        let log = "x/3f9a/subagents/agent-ab20.jsonl";
        assert!(is_file_of_log(log, log));
        assert!(is_file_of_log("x/3f9a/subagents/agent-ab20.meta.json", log));
        assert!(is_file_of_log("x/3f9a.settings.json", "x/3f9a.jsonl"));
        for other in [
            "x/memory/MEMORY.md",
            "x/CLAUDE.md",
            "x/3f9a/subagents/agent-ab20.md",
            "x/3f9a/subagents/agent-ab20",
            "x/3f9a/subagents/agent-ab20.a/b.json",
            "x/3f9a/subagents/agent-ab201.jsonl",
            "y/3f9a/subagents/agent-ab20.jsonl",
        ] {
            assert!(!is_file_of_log(other, log), "{other}");
        }
        assert!(!is_file_of_log("x/MEMORY.md", "x/MEMORY.md"));

        let is_output =
            |path: &str| is_tool_output(Provider::Claude, path.as_ref(), "x/3f9a.jsonl".as_ref());
        assert!(is_output("x/3f9a/tool-results/toolu_1.txt"));
        for other in
            ["3f9a/tool-results/CLAUDE.md", "3f9a/tool-results/a/b.txt", "4f9a/tool-results/a.txt"]
        {
            assert!(!is_output(&format!("x/{other}")), "{other}");
        }
    }
}
