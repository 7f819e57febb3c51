//! Replaces the secrets of sessions in the database of their agent: first in a copy, which shows what comes of
//! it, then in the database, in one transaction.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use ingest::scrub::{
    ColumnWithSecrets, DatabaseCopy, RowChange, ScrubOutcome, ScrubRules, ScrubbedLog,
    copy_database, find_database, replace_rows,
};
use schemas::ToolError;

use super::backup::BackupFolder;
use super::log_file::check_database;
use super::preparation::Preparation;
use crate::files::leftovers::create_temporary;
use crate::files::open_files::OpenFiles;
use store::StoreWriter;
use tools::error::store_error;
use tools::secrets::SecretLog;

/// Logs by where they are.
#[derive(Default)]
pub(super) struct LogsByPlace<'l> {
    /// The sessions of each database.
    pub(super) databases: BTreeMap<PathBuf, Vec<&'l SecretLog>>,
    pub(super) files: Vec<&'l SecretLog>,
    /// The files next to a log.
    pub(super) side_files: Vec<&'l SecretLog>,
}

impl<'l> LogsByPlace<'l> {
    pub(super) fn new(logs: &'l [SecretLog]) -> Self {
        let mut places = Self::default();
        for log in logs {
            if log.log.is_some() {
                places.side_files.push(log);
                continue;
            }
            match find_database(&log.path) {
                Some(database) => places.databases.entry(database).or_default().push(log),
                None => places.files.push(log),
            }
        }
        places
    }
}

/// What is to be done in a database.
#[derive(Default)]
struct DatabasePlan<'l> {
    changes: Vec<RowChange>,
    /// The sessions of these changes, in the same order.
    changed: Vec<(&'l SecretLog, ScrubbedLog)>,
    others: Vec<Preparation<'l>>,
    /// The columns that then still have the replaced secrets.
    left: Vec<ColumnWithSecrets>,
}

/// What came of the sessions of a database.
pub(super) struct ScrubbedDatabase<'l> {
    pub(super) sessions: Vec<Preparation<'l>>,
    /// The columns of the database that still have the replaced secrets.
    pub(super) left: Vec<ColumnWithSecrets>,
}

/// Shows what would be replaced in the sessions of a database.
pub(super) fn preview_database<'l>(
    database: &Path,
    logs: &[&'l SecretLog],
    rules: &ScrubRules,
) -> Result<ScrubbedDatabase<'l>, String> {
    check_database(database, &OpenFiles::find())?;
    Ok(plan_changes(database, logs, rules, &tempfile::env::temp_dir())?.finish())
}

/// Tries in a copy of a database what becomes of its sessions. The copy is in `folder`.
fn plan_changes<'l>(
    database: &Path,
    logs: &[&'l SecretLog],
    rules: &ScrubRules,
    folder: &Path,
) -> Result<DatabasePlan<'l>, String> {
    let uncopied = |error: std::io::Error| format!("it cannot be copied: {error}");
    let file = create_temporary(folder).map_err(uncopied)?;
    copy_database(database, file.path()).map_err(uncopied)?;
    let mut copy = DatabaseCopy::open(file.path(), rules, folder).map_err(uncopied)?;
    let mut plan = DatabasePlan::default();
    for log in logs {
        match copy.scrub_session(&log.path, log.provider) {
            Ok((ScrubOutcome::Scrubbed(scrubbed), Some(change))) => {
                plan.changes.push(change);
                plan.changed.push((log, scrubbed));
            }
            Ok((ScrubOutcome::Scrubbed(scrubbed), None)) => {
                plan.others.push(Preparation::Done(log, scrubbed));
            }
            Ok((ScrubOutcome::LeftOut(reason), _)) => {
                plan.others.push(Preparation::LeftOut(log, reason.to_owned()));
            }
            Err(error) => {
                let reason = format!("it cannot be read or rewritten: {error}");
                plan.others.push(Preparation::LeftOut(log, reason));
            }
        }
    }
    plan.left = copy.find_left_secrets().map_err(uncopied)?;
    Ok(plan)
}

impl<'l> DatabasePlan<'l> {
    /// Returns what came of the sessions once the changes are done.
    fn finish(self) -> ScrubbedDatabase<'l> {
        let changed = self.changed.into_iter();
        let changed = changed.map(|(log, scrubbed)| Preparation::Done(log, scrubbed));
        ScrubbedDatabase { sessions: changed.chain(self.others).collect(), left: self.left }
    }
}

/// Replaces the secrets of sessions in a database: of all for which it is possible, or of none.
///
/// # Errors
/// Fails if the folder of backups cannot be written. In the answer an error is the reason why the database
/// stays as it is.
pub(super) fn scrub_database<'l>(
    database: &Path,
    logs: &[&'l SecretLog],
    rules: &ScrubRules,
    backup: &BackupFolder,
    writer: &StoreWriter,
) -> Result<Result<ScrubbedDatabase<'l>, String>, ToolError> {
    if let Err(reason) = check_database(database, &OpenFiles::find()) {
        return Ok(Err(reason));
    }
    let kept = match backup.copy_database(database)? {
        Ok(kept) => kept,
        Err(reason) => return Ok(Err(reason)),
    };
    let plan = match plan_changes(kept.path(), logs, rules, backup.dir()) {
        Ok(plan) => plan,
        Err(reason) => return Ok(Err(reason)),
    };
    if plan.changes.is_empty() {
        return Ok(Ok(plan.finish()));
    }
    // Copying and reading took a while, in which the agent may have begun to write.
    if let Err(reason) = check_database(database, &OpenFiles::find()) {
        return Ok(Err(reason));
    }
    let changed = &plan.changed;
    let paths: HashSet<&str> = changed.iter().map(|(log, _)| log.path.as_str()).collect();
    let pairs: Vec<(u64, u64)> =
        changed.iter().flat_map(|(_, scrubbed)| scrubbed.aliases.iter().copied()).collect();
    let replaced = replace_rows(database, kept.hash(), &plan.changes, |scrubbed_hash| {
        kept.keep(backup, &paths, scrubbed_hash).map_err(|error| error.message)?;
        writer.note_scrubbed_logs(&paths, &pairs).map_err(|error| store_error(error).message)
    });
    if let Err(reason) = replaced {
        return Ok(Err(reason));
    }
    Ok(Ok(plan.finish()))
}
