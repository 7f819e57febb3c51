//! Adds to the archive what was ingested of logs since, and takes out of it what must not be kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::parallel::in_parallel;
use ingest::discover::{RawLog, is_log_file};
use ingest::plan::rules_version;
use ingest::provider::{files_next_to, has_lines, list_names};
use ingest::redact::Redactor;
use ingest::rows::{has_rows, make_text_only, read_rows};
use ingest::source::candidate::LogCandidate;
use schemas::Provider;
use schemas::session::{SourceRow, SourceStatus};

use super::archive_file::{ArchiveChange, ArchiveFile, ArchiveState, ArchivedFile};
use super::content::{
    ContentForm, FrameMasker, SMALL_FRAME_BYTES, pack_bytes, pack_content, unpack_frame,
};
use super::names::{ARCHIVE_FILE, KeepLogs};
use crate::damage::Verify;
use crate::disk::database::remove_side_files;
use crate::error::StoreError;
use crate::forgotten_rows::has_forgotten_events;
use crate::lake::keys::LAKE_PATH;
use crate::reduced_sessions::KeepLevel;
use crate::snapshot::Snapshot;
use crate::writer::{StoreWriter, is_log_of};

/// Bytes of a log that are added in one step. A longer log takes several, so that its frames need not
/// be held in memory at once.
const STEP_BYTES: u64 = 32 << 20;

/// Logs that are added in one step.
const STEP_LOGS: usize = 64;

/// A file next to a log that has more bytes is not kept.
const MAX_SIDE_FILE_BYTES: u64 = 64 << 20;

/// What a user is told who lets logs be kept with their secrets.
const EXACT_NOTICE: &str = "Logs are kept byte for byte, with the secrets in them, because store.keep_logs in settings.toml is \"exact\". Only you can read them, and they are never published";

/// How the logs are kept from now on.
#[derive(Clone, Default)]
pub enum ArchiveRules {
    /// None is added.
    #[default]
    No,
    /// Their secrets are masked by these rules.
    Masked(Arc<Redactor>),
    /// Byte for byte.
    Exact,
}

impl ArchiveRules {
    fn keep(&self) -> KeepLogs {
        match self {
            Self::No => KeepLogs::No,
            Self::Masked(_) => KeepLogs::Masked,
            Self::Exact => KeepLogs::Exact,
        }
    }

    fn redactor(&self) -> Option<&Redactor> {
        match self {
            Self::Masked(redactor) => Some(redactor),
            Self::No | Self::Exact => None,
        }
    }
}

/// Returns the version of the rules as the archive has it: 0 without rules.
pub(super) fn rules_of(redactor: Option<&Redactor>) -> i64 {
    rules_version(redactor)
}

/// Returns how an archived file is divided into records.
pub(super) fn form_of(file: &ArchivedFile) -> ContentForm {
    form_of_path(file.provider, &file.path, file.is_log)
}

fn form_of_path(provider: Provider, path: &str, is_log: bool) -> ContentForm {
    // Rows of a database are a document, whatever form other logs of the agent have.
    let has_lines = is_log_file(path) && has_lines(provider, path, is_log);
    if has_lines { ContentForm::Lines } else { ContentForm::Document }
}

/// A log that the archive does not have as it was ingested.
struct OutdatedLog<'s> {
    source: &'s SourceRow,
    session_id: &'s str,
    provider: Provider,
    /// What the archive has of it, by path.
    known: ArchivedFiles,
}

/// What becomes of a log in the archive.
#[derive(Default)]
struct LogChanges {
    changes: Vec<ArchiveChange>,
    removed: Vec<i64>,
    /// True if the log has more bytes, which the next step adds.
    is_unfinished: bool,
}

impl StoreWriter {
    /// Makes the archive what `rules` say: adds what was ingested of logs since, masks again what other
    /// rules masked, and removes the logs of sessions that were forgotten or lost their texts. Returns
    /// notices for the user.
    ///
    /// # Errors
    /// Fails if the store or the archive cannot be read or written.
    pub fn archive_logs(
        &self,
        rules: &ArchiveRules,
        verify: Verify,
    ) -> Result<Vec<String>, StoreError> {
        if rules.keep() == KeepLogs::No {
            self.remove_left_logs()?;
            return Ok(Vec::new());
        }
        self.lock.check_not_replaced()?;
        let complete = ArchiveState {
            generation: self.current_manifest().generation,
            keep: rules.keep(),
            rules: rules_of(rules.redactor()),
        };
        let bring_up_to_date = || {
            let archive = ArchiveFile::open_for_writing(&self.dir)?;
            if verify == Verify::All {
                archive.verify()?;
            }
            let state = archive.read_state()?;
            if state == Some(complete) {
                return Ok(Vec::new());
            }
            let is_new_consent = rules.keep() == KeepLogs::Exact
                && state.is_none_or(|state| state.keep != KeepLogs::Exact);
            if is_new_consent {
                archive.write_state(&ArchiveState {
                    keep: KeepLogs::Exact,
                    ..ArchiveState::default()
                })?;
            }
            let files = archive.read_files()?;
            if self.bring_up_to_date(&archive, files, rules)? {
                archive.write_state(&complete)?;
            }
            Ok(if is_new_consent { vec![EXACT_NOTICE.to_owned()] } else { Vec::new() })
        };
        match bring_up_to_date() {
            Err(StoreError::Damaged { path, reason }) if path.ends_with(ARCHIVE_FILE) => {
                let kept = ArchiveFile::rebuild(&self.dir)?;
                let mut notices = bring_up_to_date()?;
                notices.push(format!(
                    "The archive of logs was damaged ({reason}). {kept} of its files are whole; the others were archived again if their logs exist"
                ));
                Ok(notices)
            }
            result => result,
        }
    }

    /// Removes the logs of sessions of other machines that are not here any more, once for each generation
    /// of the store.
    fn remove_left_logs(&self) -> Result<(), StoreError> {
        if std::fs::symlink_metadata(self.dir.join(ARCHIVE_FILE)).is_err() {
            return Ok(());
        }
        let generation = self.current_manifest().generation;
        let (archive, files) = self.open_whole_archive(Verify::Some)?;
        if archive.read_settled_generation()? == Some(generation) {
            return Ok(());
        }
        let snapshot = self.take_snapshot()?;
        let left = files.iter().filter(|(_, file)| is_left(file, &snapshot));
        let left: Vec<i64> = left.map(|(id, _)| *id).collect();
        if !left.is_empty() {
            archive.remove(&left)?;
            archive.erase_deleted()?;
        }
        archive.write_settled_generation(generation)
    }

    /// Removes the whole archive.
    ///
    /// # Errors
    /// Fails if a file of it cannot be removed.
    pub fn remove_archive(&self) -> Result<(), StoreError> {
        self.lock.check_not_replaced()?;
        let path = self.dir.join(ARCHIVE_FILE);
        remove_side_files(&path)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(&path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Adds, masks and removes. Returns false if a log could not be read, or changed since it was
    /// ingested: it is left to a later run.
    fn bring_up_to_date(
        &self,
        archive: &ArchiveFile,
        files: BTreeMap<i64, ArchivedFile>,
        rules: &ArchiveRules,
    ) -> Result<bool, StoreError> {
        let snapshot = self.take_snapshot()?;
        let reduced = self.reduced_sessions()?;
        let forgotten = self.forgotten_logs()?;
        let forgotten: HashSet<&str> = forgotten.session_ids().collect();
        let is_barred = |id: &str| forgotten.contains(id) || reduced.level_of(id) > KeepLevel::Full;
        let is_gone = |file: &ArchivedFile| is_barred(&file.session_id) || is_left(file, &snapshot);
        let barred = files.iter().filter(|(_, file)| is_gone(file));
        let barred: Vec<i64> = barred.map(|(id, _)| *id).collect();
        if !barred.is_empty() {
            archive.remove(&barred)?;
            archive.erase_deleted()?;
        }

        let mut known: HashMap<String, ArchivedFiles> = HashMap::new();
        for (id, file) in files {
            if !is_gone(&file) {
                let session = known.entry(file.session_id.clone()).or_default();
                session.insert(file.path.clone(), (id, file));
            }
        }
        let sources = snapshot.read_sources(false)?;
        let mut outdated = Vec::new();
        for source in &sources {
            let (Some(session_id), Some(provider)) = (&source.session_id, source.provider) else {
                continue;
            };
            if source.status != SourceStatus::Ok
                || source.path.starts_with(LAKE_PATH)
                || is_barred(session_id)
                || !(is_log_file(&source.path) || has_rows(&source.path))
                || !snapshot.session(session_id).is_some_and(|one| is_log_of(one, source))
            {
                continue;
            }
            let known = known.remove(session_id).unwrap_or_default();
            if known.get(&source.path).is_some_and(|(_, file)| is_current(file, source, rules)) {
                continue;
            }
            if !forgotten.is_empty() && has_blanked_events(&snapshot, session_id)? {
                let ids: Vec<i64> = known.into_values().map(|(id, _)| id).collect();
                archive.remove(&ids)?;
                continue;
            }
            outdated.push(OutdatedLog { source, session_id, provider, known });
        }
        let left_over = add_logs(archive, outdated, rules)?;
        let is_complete = left_over.is_empty();
        let gone = known.into_values().flatten();
        mask_rest(archive, gone.chain(left_over.into_iter().flatten()), rules)?;
        Ok(is_complete)
    }

    /// Removes the logs of sessions from the archive, so that no byte of them stays.
    pub(crate) fn remove_archived(
        &self,
        is_removed: &dyn Fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        self.remove_files(&|file| is_removed(&file.session_id))
    }

    /// Removes files from the archive, so that no byte of them stays.
    pub(super) fn remove_files(
        &self,
        is_removed: &dyn Fn(&ArchivedFile) -> bool,
    ) -> Result<(), StoreError> {
        if std::fs::symlink_metadata(self.dir.join(ARCHIVE_FILE)).is_err() {
            return Ok(());
        }
        let (archive, files) = self.open_whole_archive(Verify::All)?;
        let removed = files.iter().filter(|(_, file)| is_removed(file));
        archive.remove(&removed.map(|(id, _)| *id).collect::<Vec<_>>())?;
        archive.erase_deleted()
    }

    /// Opens the archive, which is created if there is none, and reads its list of files. One in which
    /// damage is found is replaced by one with the files that are whole.
    pub(super) fn open_whole_archive(
        &self,
        verify: Verify,
    ) -> Result<(ArchiveFile, BTreeMap<i64, ArchivedFile>), StoreError> {
        self.lock.check_not_replaced()?;
        let open = || {
            let archive = ArchiveFile::open_for_writing(&self.dir)?;
            if verify == Verify::All {
                // Damaged records may be of any session.
                archive.verify()?;
            }
            let files = archive.read_files()?;
            Ok((archive, files))
        };
        match open() {
            Err(StoreError::Damaged { .. }) => {
                ArchiveFile::rebuild(&self.dir)?;
                open()
            }
            result => result,
        }
    }
}

/// Returns whether a file came with a session of another machine that is not here any more: a log of this
/// machine continues it, or a run was killed before it removed the file.
fn is_left(file: &ArchivedFile, snapshot: &Snapshot) -> bool {
    let session = snapshot.session(&file.session_id);
    let is_imported = session.is_some_and(|one| one.origin.machine.is_some() && one.events > 0);
    file.origin.is_some() && !is_imported
}

/// Returns whether the archive has a log as it was ingested, kept as the rules say.
fn is_current(file: &ArchivedFile, source: &SourceRow, rules: &ArchiveRules) -> bool {
    is_of_rules(file, rules)
        && file.consumed == source.consumed
        && file.head_hash == source.head_hash
        && file.tail_hash == source.tail_hash
        && file.source_size == source.size
        && file.source_modified_us == source.modified_us
}

fn is_of_rules(file: &ArchivedFile, rules: &ArchiveRules) -> bool {
    file.keep == rules.keep() && file.rules == rules_of(rules.redactor())
}

/// Returns whether the archive has a file next to a log as it is, kept as the rules say. A log may have
/// thousands, of which few change.
fn is_same_side_file(file: &ArchivedFile, path: &Path, rules: &ArchiveRules) -> bool {
    let Ok(now) = LogCandidate::from_path(path.to_owned()) else { return false };
    is_of_rules(file, rules)
        && file.source_size.cast_unsigned() == now.size
        && file.modified_us == now.modified_us
}

/// Returns whether a session has events of records that were forgotten with another one. Its log has
/// these records.
fn has_blanked_events(snapshot: &Snapshot, session_id: &str) -> Result<bool, StoreError> {
    let Some(at) = snapshot.session_position(session_id) else { return Ok(false) };
    let session = snapshot.sessions()[at].row()?;
    Ok(session.replay_events > 0 && has_forgotten_events(snapshot, at)?)
}

/// What the archive has of the files of a session, by path.
type ArchivedFiles = BTreeMap<String, (i64, ArchivedFile)>;

/// Adds what the archive does not have of these logs. Returns what it has of those that could not be
/// read, or changed since they were ingested.
fn add_logs(
    archive: &ArchiveFile,
    mut outdated: Vec<OutdatedLog<'_>>,
    rules: &ArchiveRules,
) -> Result<Vec<ArchivedFiles>, StoreError> {
    let mut left_over = Vec::new();
    let mut folders: HashMap<PathBuf, Vec<String>> = HashMap::new();
    for log in &outdated {
        if let Some(folder) = Path::new(&log.source.path).parent()
            && !folders.contains_key(folder)
        {
            folders.insert(folder.to_owned(), list_names(folder));
        }
    }
    while !outdated.is_empty() {
        let step: Vec<_> = outdated.drain(..STEP_LOGS.min(outdated.len())).collect();
        let done = in_parallel(&step, 1, |logs| {
            let changed = logs.iter().map(|log| match log.collect_changes(rules, &folders) {
                Ok(changes) => (log.session_id, changes),
                Err(error) => {
                    tracing::debug!(path = log.source.path, %error, "a log was not archived");
                    (log.session_id, LogChanges::default())
                }
            });
            Ok::<_, StoreError>(changed.collect::<Vec<_>>())
        })?;
        let mut unfinished = HashSet::new();
        let mut left = HashSet::new();
        let mut changes = Vec::new();
        let mut removed = Vec::new();
        for (session_id, log) in done.into_iter().flatten() {
            if log.is_unfinished {
                unfinished.insert(session_id);
            } else if log.changes.is_empty() {
                left.insert(session_id);
            }
            changes.extend(log.changes);
            removed.extend(log.removed);
        }
        let is_left = |log: &&OutdatedLog<'_>| left.contains(log.session_id);
        left_over.extend(step.iter().filter(is_left).map(|log| log.known.clone()));
        archive.remove(&removed)?;
        archive.apply(&changes)?;
        if unfinished.is_empty() {
            continue;
        }
        let mut files = archive.read_files()?;
        for mut log in step.into_iter().filter(|log| unfinished.contains(log.session_id)) {
            let own = files.extract_if(.., |_, file| file.session_id == log.session_id);
            log.known = own.map(|(id, file)| (file.path.clone(), (id, file))).collect();
            outdated.push(log);
        }
    }
    Ok(left_over)
}

impl OutdatedLog<'_> {
    /// Returns what is added of the log and the files next to it, and what goes.
    fn collect_changes(
        &self,
        rules: &ArchiveRules,
        folders: &HashMap<PathBuf, Vec<String>>,
    ) -> io::Result<LogChanges> {
        let mut changes = LogChanges::default();
        let Some(change) = self.collect_log(rules)? else { return Ok(changes) };
        changes.is_unfinished = change.file.consumed < self.source.consumed;
        let path = Path::new(&self.source.path);
        changes.changes.push(change);
        let mut kept = HashSet::from([self.source.path.clone()]);
        let names = path.parent().and_then(|folder| folders.get(folder));
        for side_file in files_next_to(self.provider, path, names.map_or(&[], Vec::as_slice)) {
            let Some(side_path) = side_file.to_str() else { continue };
            let known = self.known.get(side_path);
            if known.is_some_and(|(_, file)| is_same_side_file(file, &side_file, rules)) {
                kept.insert(side_path.to_owned());
            } else if let Some(change) = self.collect_side_file(side_path, rules)? {
                changes.changes.push(change);
                kept.insert(side_path.to_owned());
            }
        }
        // The log was moved, or a file next to it was deleted while the log stayed.
        let gone = self.known.iter().filter(|(path, _)| !kept.contains(*path));
        changes.removed = gone.map(|(_, (id, _))| *id).collect();
        Ok(changes)
    }

    /// Returns what is added of the log. `None` if it changed since it was ingested.
    fn collect_log(&self, rules: &ArchiveRules) -> io::Result<Option<ArchiveChange>> {
        let source = self.source;
        let mut log = RawLog::open(&source.path)?;
        if !log.begins_with(source)? {
            return Ok(None);
        }
        if !is_log_file(&source.path) {
            return self.collect_rows(log, rules);
        }
        let form = form_of_path(self.provider, &source.path, true);
        let known = self.known.get(&source.path);
        let mut start = 0;
        let mut kept_frames = 0;
        if let Some((_, file)) = known
            && form == ContentForm::Lines
            && is_of_rules(file, rules)
            && file.consumed <= source.consumed
            && log.hash_ends(file.consumed.cast_unsigned())? == (file.head_hash, file.tail_hash)
        {
            let is_last_small = file.end - file.last_start < SMALL_FRAME_BYTES;
            let is_last_kept = !is_last_small && file.end <= file.consumed;
            kept_frames = if is_last_kept { file.frames } else { (file.frames - 1).max(0) };
            start = if is_last_kept { file.end } else { file.last_start }.cast_unsigned();
        }

        let ingested = source.consumed.cast_unsigned();
        let mut consumed = ingested;
        if form == ContentForm::Lines && ingested > start + STEP_BYTES {
            consumed = find_line_end(&mut log, start + STEP_BYTES, ingested)?;
        }
        let mut end = consumed;
        if rules.keep() == KeepLogs::Exact && consumed == ingested {
            // A line that is not complete yet.
            let size = source.size.cast_unsigned().min(log.length()?);
            let is_plain = Path::new(&source.path).is_file();
            end = if is_plain && source.size > 0 { end.max(size) } else { end };
        }
        let frames = pack_content(&mut log, form, start, end, rules.redactor())?;
        // It may have been written over meanwhile.
        if !log.begins_with(source)? {
            return Ok(None);
        }
        let file = self.archived_file(&mut log, consumed, rules)?;
        let before = known.map(|(_, file)| file).filter(|_| kept_frames > 0);
        let id = known.map(|(id, _)| *id);
        Ok(Some(ArchiveChange { id, kept_frames, frames, file }.with_sums(before)))
    }

    /// Returns the rows of a session in a database, whose document is `log`. `None` if they changed since
    /// the document was ingested.
    fn collect_rows(
        &self,
        mut log: RawLog,
        rules: &ArchiveRules,
    ) -> io::Result<Option<ArchiveChange>> {
        let source = self.source;
        let rows = read_rows(&source.path, rules.keep() == KeepLogs::Masked)?;
        // The rows are those of the document only if this is the same before and after.
        if !RawLog::open(&source.path)?.begins_with(source)? {
            return Ok(None);
        }
        let frames = pack_bytes(&rows, ContentForm::Document, rules.redactor())?;
        let file = self.archived_file(&mut log, source.consumed.cast_unsigned(), rules)?;
        let id = self.known.get(&source.path).map(|(id, _)| *id);
        Ok(Some(ArchiveChange { id, kept_frames: 0, frames, file }.with_sums(None)))
    }

    /// Returns the record of the log, which has `consumed` archived bytes.
    fn archived_file(
        &self,
        log: &mut RawLog,
        consumed: u64,
        rules: &ArchiveRules,
    ) -> io::Result<ArchivedFile> {
        let (head_hash, tail_hash) = log.hash_ends(consumed)?;
        Ok(ArchivedFile {
            path: self.source.path.clone(),
            session_id: self.session_id.to_owned(),
            provider: self.provider,
            is_log: true,
            keep: rules.keep(),
            rules: rules_of(rules.redactor()),
            modified_us: log.modified_us(),
            source_modified_us: self.source.modified_us,
            source_size: self.source.size,
            consumed: consumed.cast_signed(),
            head_hash,
            tail_hash,
            ..ArchivedFile::default()
        })
    }

    /// Returns the content of a file next to the log; `None` if it is too large.
    fn collect_side_file(
        &self,
        path: &str,
        rules: &ArchiveRules,
    ) -> io::Result<Option<ArchiveChange>> {
        let mut content = match RawLog::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let length = content.length()?;
        if length > MAX_SIDE_FILE_BYTES {
            return Ok(None);
        }
        let form = form_of_path(self.provider, path, false);
        let frames = pack_content(&mut content, form, 0, length, rules.redactor())?;
        let file = ArchivedFile {
            path: path.to_owned(),
            is_log: false,
            source_size: length.cast_signed(),
            ..self.archived_file(&mut content, length, rules)?
        };
        let id = self.known.get(path).map(|(id, _)| *id);
        Ok(Some(ArchiveChange { id, kept_frames: 0, frames, file }.with_sums(None)))
    }
}

impl ArchiveChange {
    /// Returns the change with the sums over all frames. `before` has those that stay.
    pub(super) fn with_sums(mut self, before: Option<&ArchivedFile>) -> Self {
        let file = &mut self.file;
        file.frames = self.kept_frames + self.frames.len() as i64;
        if let Some(before) = before {
            file.packed_bytes = before.packed_bytes;
            file.last_packed_bytes = before.last_packed_bytes;
            (file.last_start, file.end) = (before.last_start, before.end);
            if self.kept_frames < before.frames {
                file.packed_bytes -= before.last_packed_bytes;
            }
        }
        for frame in &self.frames {
            file.packed_bytes += frame.packed.len() as i64;
            file.last_packed_bytes = frame.packed.len() as i64;
            file.last_start = frame.start;
            file.end = frame.start + frame.length;
        }
        self
    }
}

/// Returns the position after the first line that ends at `from` or later, at most `end`.
fn find_line_end(log: &mut RawLog, from: u64, end: u64) -> io::Result<u64> {
    const READ_BYTES: u64 = 1 << 20;
    let mut at = from;
    while at < end {
        let bytes = log.read_record(at, READ_BYTES.min(end - at))?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(found) = memchr::memchr(b'\n', &bytes) {
            return Ok(at + found as u64 + 1);
        }
        at += bytes.len() as u64;
    }
    Ok(end)
}

/// Masks the files whose logs are gone, if other rules masked them, or none although they are to be
/// masked. Exact logs are not made of masked ones.
fn mask_rest(
    archive: &ArchiveFile,
    files: impl Iterator<Item = (String, (i64, ArchivedFile))>,
    rules: &ArchiveRules,
) -> Result<(), StoreError> {
    let Some(redactor) = rules.redactor() else { return Ok(()) };
    let mut has_masked = false;
    for (_, (id, file)) in files {
        if is_of_rules(&file, rules) {
            continue;
        }
        let damaged = |error| StoreError::damaged(archive.path(), error);
        let mut masker = FrameMasker::new(redactor, form_of(&file));
        let mut frames = Vec::new();
        let mut rows = (!is_log_file(&file.path)).then(Vec::new);
        archive.for_each_frame(id, &file, |frame| {
            match &mut rows {
                Some(rows) => drop(unpack_frame(&frame, None, rows).map_err(damaged)?),
                None => frames.push(masker.mask_frame(&frame).map_err(damaged)?),
            }
            Ok::<_, StoreError>(())
        })?;
        has_masked = true;
        if let Some(rows) = rows {
            // Secrets in bytes that are not text cannot be found.
            let Ok(rows) = make_text_only(&rows) else {
                archive.remove(&[id])?;
                continue;
            };
            frames = pack_bytes(&rows, ContentForm::Document, Some(redactor)).map_err(damaged)?;
        }
        let file = ArchivedFile { keep: KeepLogs::Masked, rules: rules_of(Some(redactor)), ..file };
        let change = ArchiveChange { id: Some(id), kept_frames: 0, frames, file };
        archive.apply(&[change.with_sums(None)])?;
    }
    if has_masked { archive.erase_deleted() } else { Ok(()) }
}
