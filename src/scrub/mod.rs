//! Replaces the secrets in the agents' own logs and databases, after a backup of each, and extends a log by the
//! records that another machine added to it. A kill at any time leaves the old log or the new one. Nothing else
//! in this program changes the agents' logs, except that a backup is put back.

mod backup;
mod database;
mod log_file;
mod preparation;

use std::collections::{BTreeMap, HashSet};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingest::redact::Redactor;
use ingest::scrub::{
    ScrubOutcome, ScrubRules, ScrubbedLog, find_obstacle_to_rewriting, scrub_log, scrub_side_file,
};
use schemas::{Provider, ToolError};
use serde::Serialize;

use self::backup::BackupFolder;
pub use self::backup::{BackupAction, BackupData, find_backup, forget_backup, restore_backup};
use self::database::{LogsByPlace, ScrubbedDatabase, preview_database, scrub_database};
use self::log_file::LogFile;
use self::preparation::{Preparation, PreparedLog};
use crate::files::leftovers::create_temporary;
use crate::files::open_files::OpenFiles;
use crate::update::write_lock::take_write_lock;
use base::parallel::in_parallel;
use base::sanitize::clean_text;
use store::Store;
use tools::error::store_error;
use tools::secrets::{LogBackup, SecretLog, UnsearchedFile};

/// Number of logs that are replaced together: their new versions are on the disk at the same time, and
/// the store notes them in one commit.
const LOGS_AT_A_TIME: usize = 64;

/// What was replaced in the logs, or would be.
#[derive(Debug, Default, Serialize)]
pub struct ScrubData {
    /// False if this only shows what would be replaced.
    pub is_done: bool,
    pub logs: Vec<ScrubbedFile>,
    pub left_out: Vec<LeftOutLog>,
    /// The number of replaced places by kind.
    pub replaced: BTreeMap<String, u64>,
    /// The number of secrets that remain in these logs by kind, as an ingest counts them.
    pub remaining: BTreeMap<String, u64>,
    /// The cells of the databases that still have a replaced secret: those of other sessions, and of tables
    /// without rows of a session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_cells: Vec<LeftCells>,
    /// Files that exist and could not be searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsearched_files: Vec<UnsearchedFile>,
    /// The logs as they were before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<LogBackup>,
}

/// A log whose secrets were replaced, or would be.
#[derive(Debug, Serialize)]
pub struct ScrubbedFile {
    pub session_id: String,
    pub provider: Provider,
    pub file: String,
    pub replaced: BTreeMap<String, u64>,
    pub remaining: BTreeMap<String, u64>,
}

/// A log that stays as it is.
#[derive(Debug, Serialize)]
pub struct LeftOutLog {
    pub session_id: String,
    pub provider: Provider,
    pub file: String,
    pub reason: String,
}

/// The cells of a column that still have a secret that was replaced in others.
#[derive(Debug, Serialize)]
pub struct LeftCells {
    /// The database.
    pub file: String,
    pub table: String,
    pub column: String,
    /// The number of cells by the kind of the secret.
    pub cells: BTreeMap<String, u64>,
}

impl ScrubData {
    /// Returns whether the logs have none of the secrets any more.
    pub fn is_clean(&self) -> bool {
        self.left_out.is_empty()
            && self.remaining.is_empty()
            && self.left_cells.is_empty()
            && self.unsearched_files.is_empty()
            && (self.is_done || self.logs.is_empty())
    }

    fn leave_out(&mut self, log: &SecretLog, redactor: &Redactor, reason: impl Into<String>) {
        self.left_out.push(LeftOutLog {
            session_id: log.session_id.clone(),
            provider: log.provider,
            file: shown_text(&log.path, redactor),
            reason: reason.into(),
        });
    }

    fn add(&mut self, log: &SecretLog, redactor: &Redactor, scrubbed: ScrubbedLog) {
        for (sums, counts) in
            [(&mut self.replaced, &scrubbed.replaced), (&mut self.remaining, &scrubbed.remaining)]
        {
            for (kind, count) in counts {
                *sums.entry(kind.clone()).or_default() += count;
            }
        }
        self.logs.push(ScrubbedFile {
            session_id: log.session_id.clone(),
            provider: log.provider,
            file: shown_text(&log.path, redactor),
            replaced: scrubbed.replaced,
            remaining: scrubbed.remaining,
        });
    }

    /// Adds what came of a log. Returns it if it is yet to be replaced.
    fn add_prepared<'l>(
        &mut self,
        prepared: Preparation<'l>,
        redactor: &Redactor,
    ) -> Option<PreparedLog<'l>> {
        match prepared {
            Preparation::Ready(ready) => return Some(*ready),
            Preparation::Done(log, scrubbed) => self.add(log, redactor, scrubbed),
            Preparation::LeftOut(log, reason) => self.leave_out(log, redactor, reason),
        }
        None
    }

    /// Adds what came of the sessions of a database. An error is the reason why all of them are left out.
    fn add_database(
        &mut self,
        database: &Path,
        done: Result<ScrubbedDatabase<'_>, String>,
        sessions: &[&SecretLog],
        redactor: &Redactor,
    ) {
        match done {
            Ok(done) => {
                for session in done.sessions {
                    self.add_prepared(session, redactor);
                }
                self.left_cells.extend(done.left.into_iter().map(|left| LeftCells {
                    file: shown_text(&database.to_string_lossy(), redactor),
                    table: shown_text(&left.table, redactor),
                    column: shown_text(&left.column, redactor),
                    cells: left.cells,
                }));
            }
            Err(reason) => {
                for session in sessions {
                    self.leave_out(session, redactor, reason.as_str());
                }
            }
        }
    }
}

/// Returns a path or a name as it is shown.
fn shown_text(text: &str, redactor: &Redactor) -> String {
    clean_text(&redactor.mask(text, &mut <_>::default()))
}

/// Shows what would be replaced in these logs. Nothing is written but temporary files without names.
pub fn preview_scrub(
    logs: &[SecretLog],
    kind: Option<&str>,
    redactor: &Arc<Redactor>,
) -> Result<ScrubData, ToolError> {
    let rules = ScrubRules {
        redactor: Arc::clone(redactor),
        kind: kind.map(str::to_owned),
        aliases: Arc::default(),
    };
    let places = LogsByPlace::new(logs);
    let mut data = ScrubData::default();
    for (database, sessions) in &places.databases {
        let done = preview_database(database, sessions, &rules);
        data.add_database(database, done, sessions, redactor);
    }
    let open = OpenFiles::find();
    for files in [&places.side_files, &places.files] {
        for prepared in prepare_logs(files, &rules, &open, true) {
            if let Some(ready) = data.add_prepared(prepared, redactor) {
                data.add(ready.log, redactor, ready.scrubbed);
            }
        }
    }
    Ok(data)
}

/// Replaces the secrets in these logs. `kind` is the kind of secrets; `None` for all.
///
/// # Errors
/// Fails if the store or the folder of backups cannot be written. Logs that were replaced until then
/// have their backups.
pub fn scrub_logs(
    store: &Store,
    logs: &[SecretLog],
    kind: Option<&str>,
    redactor: &Arc<Redactor>,
) -> Result<ScrubData, ToolError> {
    let writer = take_write_lock(store)?;
    let rules = ScrubRules {
        redactor: Arc::clone(redactor),
        kind: kind.map(str::to_owned),
        aliases: writer.scrubbed_records(),
    };
    let mut data = ScrubData { is_done: true, ..ScrubData::default() };
    let backup = BackupFolder::create(store)?;
    let places = LogsByPlace::new(logs);
    for (database, sessions) in &places.databases {
        let done = scrub_database(database, sessions, &rules, &backup, &writer)?;
        data.add_database(database, done, sessions, redactor);
    }
    // The files next to a log come first: it is decoded with what they say.
    let batches = places.side_files.chunks(LOGS_AT_A_TIME);
    for batch in batches.chain(places.files.chunks(LOGS_AT_A_TIME)) {
        let mut ready = Vec::new();
        for prepared in prepare_logs(batch, &rules, &OpenFiles::find(), false) {
            ready.extend(data.add_prepared(prepared, redactor));
        }
        for prepared in &ready {
            backup.add(&prepared.file, &prepared.new, prepared.log.log.as_deref(), false)?;
        }
        let logs = ready.iter().map(|one| one.log.log.as_ref().unwrap_or(&one.log.path));
        let paths: HashSet<&str> = logs.map(String::as_str).collect();
        let pairs: Vec<(u64, u64)> =
            ready.iter().flat_map(|one| one.scrubbed.aliases.iter().copied()).collect();
        if !ready.is_empty() {
            writer.note_scrubbed_logs(&paths, &pairs).map_err(store_error)?;
        }
        // Reading and copying took a while, in which an agent may have begun to write.
        let open = OpenFiles::find();
        for prepared in ready {
            let PreparedLog { log, file, new, scrubbed } = prepared;
            match file.replace(new, &open) {
                Ok(()) => data.add(log, redactor, scrubbed),
                Err(reason) => data.leave_out(log, redactor, reason),
            }
        }
    }
    writer.unlock();
    drop(backup);
    data.backup = find_backup(store);
    Ok(data)
}

/// Replaces a log by what `extend` makes of its content, in one step. One that does not only get longer is
/// copied into the backup in `store` first.
///
/// # Errors
/// Returns the reason why the log stays as it is: it is in use, changed a moment ago or is not the user's
/// own, or that of `extend`.
pub(crate) fn extend_log(
    path: PathBuf,
    store: &Store,
    extend: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<(), String> {
    let file = LogFile::open(path, &OpenFiles::find())?;
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let unwritable = |error: std::io::Error| format!("its new version cannot be written: {error}");
    let mut content = file.content().try_clone().map_err(unreadable)?;
    let mut before = Vec::new();
    content.rewind().map_err(unreadable)?;
    content.read_to_end(&mut before).map_err(unreadable)?;
    let extended = extend(&before)?;
    let mut new = create_temporary(file.folder()).map_err(unwritable)?;
    new.write_all(&extended).map_err(unwritable)?;
    if !extended.starts_with(&before) {
        let backup = BackupFolder::create(store).map_err(|error| error.message)?;
        backup.add(&file, &new, None, true).map_err(|error| error.message)?;
    }
    // Copying took a while, in which an agent may have begun to write.
    file.replace(new, &OpenFiles::find())
}

/// Writes the new versions of logs next to them. A dry run gives each the folder for temporary files.
fn prepare_logs<'l>(
    logs: &[&'l SecretLog],
    rules: &ScrubRules,
    open: &OpenFiles,
    is_dry_run: bool,
) -> Vec<Preparation<'l>> {
    let prepare = |part: &[(usize, &'l SecretLog)]| {
        let prepared = part.iter().map(|(at, log)| {
            let prepared = prepare_log(log, rules, open, is_dry_run);
            (*at, prepared.unwrap_or_else(|reason| Preparation::LeftOut(log, reason)))
        });
        Ok::<_, std::convert::Infallible>(prepared.collect::<Vec<_>>())
    };
    let numbered: Vec<(usize, &SecretLog)> = logs.iter().copied().enumerate().collect();
    let Ok(parts) = in_parallel(&numbered, 1, prepare);
    let mut prepared: Vec<_> = parts.into_iter().flatten().collect();
    prepared.sort_by_key(|(at, _)| *at);
    prepared.into_iter().map(|(_, prepared)| prepared).collect()
}

/// Writes the new version of a log. An error is the reason why the log is left out.
fn prepare_log<'l>(
    log: &'l SecretLog,
    rules: &ScrubRules,
    open: &OpenFiles,
    is_dry_run: bool,
) -> Result<Preparation<'l>, String> {
    let path = PathBuf::from(&log.path);
    let file = match &log.log {
        Some(log) => LogFile::open_next_to(Path::new(log), path, open)?,
        None => match find_obstacle_to_rewriting(&log.path) {
            Some(reason) => return Err(reason.to_owned()),
            None => LogFile::open(path, open)?,
        },
    };
    let folder = if is_dry_run { tempfile::env::temp_dir() } else { file.folder().to_owned() };
    let unwritable = |error: std::io::Error| format!("its new version cannot be written: {error}");
    let mut new = create_temporary(&folder).map_err(unwritable)?;
    let outcome = if log.log.is_some() {
        scrub_side_file(file.path(), file.content(), new.as_file_mut(), log.provider, rules)
            .map(ScrubOutcome::Scrubbed)
    } else {
        let out = (new.as_file_mut(), &*folder);
        scrub_log(file.path(), file.content(), out, log.provider, rules)
    };
    match outcome.map_err(|error| format!("it cannot be read or rewritten: {error}"))? {
        ScrubOutcome::LeftOut(reason) => Err(reason.to_owned()),
        ScrubOutcome::Scrubbed(scrubbed) if scrubbed.replaced.is_empty() => {
            Ok(Preparation::Done(log, scrubbed))
        }
        ScrubOutcome::Scrubbed(scrubbed) => {
            Ok(Preparation::Ready(Box::new(PreparedLog { log, file, new, scrubbed })))
        }
    }
}
