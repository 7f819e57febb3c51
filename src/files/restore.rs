//! Writes logs of the archive back to where their agents expect them, never over another file.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ingest::discover::{LogFinder, LogPresence, is_log_file};
use ingest::provider::format::AgentFolders;
use ingest::provider::log_folders;
use ingest::provider::retention::{LogRetention, log_retention};
use ingest::provider::session_list::{add_to_session_list, session_list_of};
use ingest::redact::Redactor;
use ingest::redact::columns::mask_name;
use ingest::rows::{PutBack, put_back_rows, roll_back};
use ingest::scrub::{copy_database, find_database};
use schemas::{Provider, ToolError};
use tempfile::NamedTempFile;

use super::leftovers::create_temporary;
use super::open_files::find_use_of_database;
use super::outfile::{file_error, keep_copy, write_output};
use base::files::private_dir_builder;
use base::sanitize::clean_text;
use store::{ArchivedFile, KeepLogs, LogArchive, Snapshot};
use tools::Tools;
use tools::error::store_error;
use tools::reply::call::Call;
use tools::reply::log_presence::log_presence;
use tools::restore::{
    RestoreData, RestoreOutcome, RestoreSelection, RestoredSession, WrittenFile, explain_missing,
    select_restored,
};

/// How logs are restored.
pub(crate) struct RestoreOptions<'a> {
    /// The home folder of the user, and where agents keep their logs there.
    pub(crate) home: &'a Path,
    pub(crate) folders: &'a AgentFolders<'a>,
    /// The other home folder to which the logs go; `None` if they go back to their places.
    pub(crate) to: Option<&'a Path>,
    pub(crate) is_dry_run: bool,
    /// Whether logs are archived now.
    pub(crate) keep: KeepLogs,
}

/// What restores logs.
struct LogRestorer<'a> {
    archive: LogArchive,
    redactor: &'a Redactor,
    options: &'a RestoreOptions<'a>,
}

/// The databases that a run has to do with, each of which it lists and copies once.
#[derive(Default)]
struct RestoredDatabases {
    finder: LogFinder,
    /// Private copies, in which a dry run puts rows back.
    copies: HashMap<PathBuf, NamedTempFile>,
}

impl RestoredDatabases {
    /// Returns the private copy of the database of the session at `place`, with what was put back into it
    /// before. `None` if the database does not exist.
    fn copy_of(&mut self, place: &Path) -> Result<Option<&Path>, String> {
        let database =
            find_database(&place.to_string_lossy()).filter(|database| database.is_file());
        let Some(database) = database else { return Ok(None) };
        if !self.copies.contains_key(&database) {
            let copied = create_temporary(&tempfile::env::temp_dir()).and_then(|copy| {
                copy_database(&database, copy.path())?;
                Ok(copy)
            });
            let copy = copied.map_err(|error| {
                format!(
                    "Whether its rows fit is not known: the database cannot be copied into the temporary folder: {error}. Set TMPDIR to a folder with enough space"
                )
            })?;
            self.copies.insert(database.clone(), copy);
        }
        Ok(self.copies.get(&database).map(NamedTempFile::path))
    }
}

/// Restores the logs of the selected sessions.
///
/// # Errors
/// Fails if a session is not found, or if the store or the archive cannot be read. What prevents a
/// single log is in the answer.
pub(crate) fn restore_sessions(
    tools: &Tools,
    selection: &RestoreSelection,
    options: &RestoreOptions<'_>,
    call: &Call<'_>,
) -> Result<RestoreData, ToolError> {
    let redactor = tools.create_redactor()?;
    let archive = tools.store().open_archive().map_err(store_error)?;
    let mut databases = RestoredDatabases::default();
    let finder = &mut databases.finder;
    let selected = select_restored(tools, selection, archive.as_ref(), finder, call)?;
    let snapshot = tools.snapshot(call)?;
    let mut data = RestoreData { is_dry_run: options.is_dry_run, ..RestoreData::default() };
    let restorer = archive.map(|archive| LogRestorer { archive, redactor: &redactor, options });
    for at in selected {
        call.ensure_running()?;
        data.push(restore_session(snapshot, at, restorer.as_ref(), &mut databases, options)?);
    }
    Ok(data)
}

fn restore_session(
    snapshot: &Snapshot,
    at: usize,
    restorer: Option<&LogRestorer<'_>>,
    databases: &mut RestoredDatabases,
    options: &RestoreOptions<'_>,
) -> Result<RestoredSession, ToolError> {
    let session = &snapshot.sessions()[at];
    let mut restored = RestoredSession {
        session_id: session.id().to_owned(),
        provider: session.provider,
        title: session.row().map_err(store_error)?.title.as_deref().map(clean_text),
        outcome: RestoreOutcome::NotArchived,
        reason: None,
        files: Vec::new(),
    };
    let started_us = session.started_at.unwrap_or_default();
    let archive = restorer.map(|restorer| &restorer.archive);
    if let Some(restorer) = restorer.filter(|_| !options.is_dry_run) {
        restorer.end_killed_change(session.id());
    }
    if options.to.is_none() {
        match log_presence(session, archive, &mut databases.finder)? {
            LogPresence::Gone => {}
            LogPresence::Exists | LogPresence::Unknown(None) => {
                restored.outcome = RestoreOutcome::LogExists;
                return Ok(restored);
            }
            LogPresence::Unknown(Some(problem)) => {
                restored.outcome = RestoreOutcome::Failed;
                restored.reason = Some(format!("Whether its log exists is not known: {problem}"));
                return Ok(restored);
            }
        }
    }
    match restorer.filter(|restorer| restorer.archive.has_session(session.id())) {
        None => restored.reason = Some(explain_missing(snapshot, session, options.keep)?),
        Some(restorer) => {
            match restorer.restore_files(session.id(), databases, &mut restored.files) {
                Ok(outcome) => {
                    restored.outcome = outcome;
                    let listed = restorer.add_to_list(session.id(), started_us, outcome);
                    restored.reason =
                        listed.err().or_else(|| restorer.describe_deletion(session.id()));
                }
                Err(reason) => {
                    restored.outcome = RestoreOutcome::Failed;
                    restored.reason = Some(reason);
                }
            }
        }
    }
    Ok(restored)
}

impl LogRestorer<'_> {
    /// Writes the files of a session. The error says what failed and what to do next.
    fn restore_files(
        &self,
        session_id: &str,
        databases: &mut RestoredDatabases,
        written: &mut Vec<WrittenFile>,
    ) -> Result<RestoreOutcome, String> {
        let mut files = Vec::new();
        for file in self.archive.files_of(session_id) {
            let place = self.find_place(file)?;
            let is_missing = if is_log_file(&file.path) {
                fs::symlink_metadata(&place).is_err()
            } else {
                databases.finder.find(&place.to_string_lossy()) == LogPresence::Gone
            };
            if is_missing {
                files.push((file, place));
            } else if file.is_log {
                return Ok(RestoreOutcome::LogExists);
            }
        }
        // The log comes last: with it, the session is restored.
        files.reverse();
        for (file, place) in files {
            let bytes = if !is_log_file(&file.path) {
                self.put_back_rows(file, &place, databases)?
            } else if self.options.is_dry_run {
                self.unpack(file, &mut io::sink())?
            } else {
                self.write_file(file, &place)?
            };
            let path = mask_name(Some(self.redactor), &place.to_string_lossy());
            written
                .insert(0, WrittenFile { path, bytes, is_masked: file.keep == KeepLogs::Masked });
        }
        Ok(RestoreOutcome::Restored)
    }

    /// Adds a session whose log came back to the list in which its agent looks for it, and keeps the list as it was
    /// as a copy.
    fn add_to_list(
        &self,
        session_id: &str,
        started_us: i64,
        outcome: RestoreOutcome,
    ) -> Result<(), String> {
        let Some(log) = self.archive.files_of(session_id).next() else { return Ok(()) };
        let place = self.find_place(log)?;
        let Some(list) = session_list_of(log.provider, &place) else { return Ok(()) };
        if outcome != RestoreOutcome::Restored || self.options.is_dry_run {
            return Ok(());
        }
        let failed = |reason: String| {
            format!(
                "Its log is back, but {} does not list it: {} cannot be changed: {reason}",
                log.provider,
                mask_name(Some(self.redactor), &list.to_string_lossy())
            )
        };
        let describe = |error: io::Error| failed(error.to_string());
        let text = fs::read_to_string(&place).map_err(describe)?;
        let before = match fs::read_to_string(&list) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(describe)?),
        };
        let after = add_to_session_list(before.as_deref(), &text, started_us).map_err(failed)?;
        let Some(after) = after else { return Ok(()) };
        let permissions = fs::metadata(&list).ok().map(|found| found.permissions());
        let is_unchanged = || fs::read_to_string(&list).ok() == before;
        write_output(
            &list,
            || is_unchanged() && keep_copy(&list, ".bak").is_ok(),
            "Its agent changes it. End it, then restore the session again",
            |out| {
                let written = out.write_all(after.as_bytes());
                let is_set = written.and_then(|()| match permissions {
                    Some(permissions) => out.set_permissions(permissions),
                    None => Ok(()),
                });
                is_set.map_err(|error| file_error(&list, &error))
            },
        )
        .map(|_| ())
        .map_err(|error| failed(error.message))
    }

    /// Returns what the user must do lest the agent deletes the log at once. `None` if it does not: most agents go
    /// by the time of the file.
    fn describe_deletion(&self, session_id: &str) -> Option<String> {
        let log = self.archive.files_of(session_id).next()?;
        let retention = log_retention(log.provider, self.options.folders)?;
        if !retention.is_by_record || !is_deleted_at(age_of(log.modified_us), &retention) {
            return None;
        }
        let LogRetention { days, setting, file, .. } = retention;
        Some(format!(
            "{} deletes it again when it starts, because its last record is older than {days} days. Raise {setting}.maxAge in {} first",
            log.provider,
            mask_name(Some(self.redactor), &file.to_string_lossy())
        ))
    }

    /// Returns where a file goes.
    fn find_place(&self, file: &ArchivedFile) -> Result<PathBuf, String> {
        let path = Path::new(&file.path);
        let Some(to) = self.options.to else { return Ok(path.to_owned()) };
        if let Ok(below) = path.strip_prefix(self.options.home) {
            return Ok(to.join(below));
        }
        // A variable names the folder of the agent, which is at its usual place in the other home.
        let roots = log_folders(file.provider, self.options.folders);
        let targets = log_folders(file.provider, &AgentFolders::new(to, &|_| None));
        for (at, root) in roots.iter().enumerate() {
            if let Ok(below) = path.strip_prefix(root)
                && let Some(target) = targets.get(at).or_else(|| targets.first())
            {
                return Ok(target.join(below));
            }
        }
        Err(format!(
            "Its log was at {}, which is neither in the home folder nor in a folder of {}. Restore it without --to",
            mask_name(Some(self.redactor), &file.path),
            file.provider
        ))
    }

    /// Takes back what a killed restore wrote into the database of a session, as the next program does
    /// that opens it: until then it cannot be read.
    fn end_killed_change(&self, session_id: &str) {
        for file in self.archive.files_of(session_id) {
            let Ok(place) = self.find_place(file) else { continue };
            let Some(database) = find_database(&place.to_string_lossy()) else { continue };
            let mut journal = database.clone().into_os_string();
            journal.push("-journal");
            if Path::new(&journal).exists() && find_use_of_database(&database).is_none() {
                roll_back(&database);
            }
        }
    }

    /// Puts the rows of a session back into its database. A dry run puts them into a copy.
    fn put_back_rows(
        &self,
        file: &ArchivedFile,
        place: &Path,
        databases: &mut RestoredDatabases,
    ) -> Result<u64, String> {
        let mut rows = Vec::new();
        let bytes = self.unpack(file, &mut rows)?;
        let copy = if self.options.is_dry_run { databases.copy_of(place)? } else { None };
        put_back_unless_used(file.provider, place, &rows, PutBack::Missing, copy)?;
        Ok(bytes)
    }

    /// Writes a file in one step.
    fn write_file(&self, file: &ArchivedFile, place: &Path) -> Result<u64, String> {
        let modified = choose_time(file.modified_us, file.provider, self.options.folders);
        let shown = mask_name(Some(self.redactor), &place.to_string_lossy());
        write_new_file(place, &shown, modified, |out| self.unpack(file, out))
    }

    fn unpack(&self, file: &ArchivedFile, out: &mut dyn io::Write) -> Result<u64, String> {
        let unpacked = self.archive.unpack(file, self.redactor, out);
        unpacked.map_err(|error| {
            format!(
                "Its log could not be written out of the archive: {error}. `sessions ingest --verify` repairs the archive, and archives the log again if it exists"
            )
        })
    }
}

/// Refuses to change the database of a session whose agent may be running.
fn check_use(provider: Provider, place: &Path) -> Result<(), String> {
    let database = find_database(&place.to_string_lossy());
    match database.and_then(|database| find_use_of_database(&database)) {
        None => Ok(()),
        Some(reason) => Err(format!(
            "Its rows are not put back: {reason}. End {provider}, then run the command again"
        )),
    }
}

/// Puts the rows of a session into its database, unless its agent may be running. To try it, `copy` is a
/// private copy of the database, which gets them instead.
///
/// # Errors
/// Returns why nothing was put back.
pub(crate) fn put_back_unless_used(
    provider: Provider,
    place: &Path,
    rows: &[u8],
    what: PutBack,
    copy: Option<&Path>,
) -> Result<(), String> {
    check_use(provider, place)?;
    put_back_rows(&place.to_string_lossy(), rows, what, copy)
        .map_err(|reason| format!("Its rows are not put back: {reason}"))
}

/// Writes a file that does not exist, in one step, with folders for their owner only. `shown` is its path
/// for a message.
///
/// # Errors
/// Returns what failed and what to do next, also if the file exists.
pub(crate) fn write_new_file(
    place: &Path,
    shown: &str,
    modified: SystemTime,
    write: impl FnOnce(&mut dyn io::Write) -> Result<u64, String>,
) -> Result<u64, String> {
    let failed = |error: io::Error| {
        format!("{shown} cannot be written: {error}. Check the folder, then run the command again")
    };
    let folder = place.parent().unwrap_or(Path::new("."));
    private_dir_builder(true).create(folder).map_err(failed)?;
    let mut copy = create_temporary(folder).map_err(failed)?;
    let bytes = write(copy.as_file_mut())?;
    copy.as_file().set_modified(modified).map_err(failed)?;
    copy.as_file().sync_all().map_err(failed)?;
    copy.persist_noclobber(place).map_err(|error| failed(error.error))?;
    Ok(bytes)
}

/// Returns the time that a file gets: its own, in microseconds since the epoch, unless the agent would
/// delete it for its age.
pub(crate) fn choose_time(
    modified_us: i64,
    provider: Provider,
    folders: &AgentFolders<'_>,
) -> SystemTime {
    let is_deleted = log_retention(provider, folders)
        .is_some_and(|retention| is_deleted_at(age_of(modified_us), &retention));
    if is_deleted { SystemTime::now() } else { time_of(modified_us) }
}

fn time_of(modified_us: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(modified_us).unwrap_or(0))
}

fn age_of(modified_us: i64) -> Duration {
    SystemTime::now().duration_since(time_of(modified_us)).unwrap_or_default()
}

/// Returns whether an agent deletes logs of this age.
fn is_deleted_at(age: Duration, retention: &LogRetention) -> bool {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    age >= DAY * retention.days
}
