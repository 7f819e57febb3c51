//! A store directory, from which readers take snapshots and a writer takes the lock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use super::catalog::CATALOG_FILE;
use super::condition::{inspect_store, make_private};
use super::damage::Verify;
use super::disk::files;
use super::error::StoreError;
use super::folder;
use super::forgotten::ForgottenLogs;
use super::hook_log::{HookLog, HookLogRow, read_hook_log};
use super::identity::Identity;
use super::labels::LabelBook;
use super::lake_state::{LakeStateFile, read_lake_state};
use super::manifest::Manifest;
use super::segment::session_summary::SessionSummary;
use super::segment::source_table::SourceTable;
use super::snapshot::Snapshot;
use super::sources::read_table_of;
use super::visible::VisibleCounts;
use super::writer::StoreWriter;

/// Number of attempts to take a snapshot of a store that other processes change.
const MAX_ATTEMPTS: usize = 4;

/// Decides which sessions a reader may see.
pub type SessionRule = Arc<dyn Fn(&SessionSummary) -> bool + Send + Sync>;

/// The part of another store that a store shows.
struct Restriction {
    whole: Arc<Store>,
    is_allowed: SessionRule,
    /// The last snapshot of the whole, and the part of it that is shown.
    last: Mutex<Option<(Arc<Snapshot>, Arc<Snapshot>)>>,
}

/// A store directory. It is cheap to open: nothing is read until it is needed.
pub struct Store {
    dir: PathBuf,
    identity: Arc<Identity>,
    restriction: Option<Restriction>,
    /// What readers of a part of the store see instead of rows of it.
    visible_counts: VisibleCounts,
    /// The last snapshot taken. A new one reads only the segments that were added since.
    last: Mutex<Option<LastSnapshot>>,
}

/// The last snapshot taken, with the hash of its manifest as JSON; `None` if there was none.
struct LastSnapshot {
    snapshot: Arc<Snapshot>,
    manifest_hash: Option<u128>,
}

impl Store {
    /// Returns the store in `dir`, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            identity: Arc::default(),
            restriction: None,
            visible_counts: VisibleCounts::default(),
            last: Mutex::new(None),
        }
    }

    /// Sets the machine and the user of the store. Without this, they have empty names.
    #[must_use]
    pub fn with_identity(self, identity: Identity) -> Self {
        Self { identity: Arc::new(identity), ..self }
    }

    /// Returns a view of a store whose snapshots have only the sessions that `is_allowed` accepts.
    pub fn restricted(whole: &Arc<Self>, is_allowed: SessionRule) -> Self {
        Self {
            dir: whole.dir.clone(),
            identity: Arc::clone(&whole.identity),
            restriction: Some(Restriction {
                whole: Arc::clone(whole),
                is_allowed,
                last: Mutex::new(None),
            }),
            visible_counts: VisibleCounts::default(),
            last: Mutex::new(None),
        }
    }

    /// Returns the machine and the user of the store.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns whether the directory does not exist, or is empty.
    pub fn is_absent(&self) -> bool {
        match std::fs::read_dir(&self.dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Returns a snapshot of the current generation; an empty one if there is no store yet.
    pub fn take_snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        self.retry_if_changed(&|| {
            let snapshot = self.take_lazy_snapshot()?;
            snapshot.read_rows()?;
            Ok(snapshot)
        })
    }

    /// Returns a snapshot whose rows of sessions are read when they are needed.
    pub fn take_lazy_snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        match &self.restriction {
            Some(restriction) => self.retry_if_changed(&|| restriction.take_snapshot()),
            None => self.retry_if_changed(&|| self.take_current_snapshot()),
        }
    }

    /// Returns a snapshot of the current generation if it is another one than that of `before`: what
    /// could not be read of `before` was perhaps removed, because `compact` and `forget` remove what
    /// they replace.
    pub fn take_newer_snapshot(&self, before: &Snapshot) -> Option<Arc<Snapshot>> {
        let now = self.take_lazy_snapshot().ok()?;
        let is_newer =
            now.manifest().generation != before.manifest().generation || !before.has_all_overlays();
        is_newer.then_some(now)
    }

    /// Calls `take`, which takes a snapshot, and calls it again if files are missing, until the same
    /// manifest fails twice: between two readings of files, another process may remove some of them.
    fn retry_if_changed(
        &self,
        take: &dyn Fn() -> Result<Arc<Snapshot>, StoreError>,
    ) -> Result<Arc<Snapshot>, StoreError> {
        let mut failed = None;
        for _ in 1..MAX_ATTEMPTS {
            let taken = take();
            if taken.as_ref().is_ok_and(|taken| taken.condition().resized.is_none()) {
                return taken;
            }
            let manifest = self.read_manifest_hash();
            if failed == Some(manifest) {
                return taken;
            }
            failed = Some(manifest);
        }
        take()
    }

    /// Returns the hash of the manifest as JSON; `None` if it cannot be read.
    fn read_manifest_hash(&self) -> Option<u128> {
        Manifest::read_json(&self.dir).ok().flatten().map(|json| xxh3_128(json.as_bytes()))
    }

    /// Takes a snapshot, or returns the last one if nothing changed since.
    fn take_current_snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        let json = self.read_manifest_json()?;
        let manifest_hash = json.as_deref().map(|json| xxh3_128(json.as_bytes()));

        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.as_ref().map(|last| &*last.snapshot);
        let labels = LabelBook::read(&self.dir, before.map(Snapshot::shared_labels));
        if let Some(LastSnapshot { snapshot, manifest_hash: last_hash }) = &*last
            && *last_hash == manifest_hash
            && Arc::ptr_eq(snapshot.shared_labels(), &labels)
            && self.is_condition_current(snapshot)
        {
            return Ok(Arc::clone(snapshot));
        }

        let manifest = self.parse_manifest(json.as_deref())?;
        let condition = inspect_store(&self.dir, &manifest);
        let snapshot = Snapshot::load(&self.dir, manifest, before)?;
        let snapshot = snapshot.with_labels(labels).with_condition(condition);
        let snapshot = Arc::new(snapshot.with_identity(Arc::clone(&self.identity)));
        *last = Some(LastSnapshot { snapshot: Arc::clone(&snapshot), manifest_hash });
        Ok(snapshot)
    }

    /// Returns the current manifest and the latest state of every source. No snapshot is taken for
    /// it, unless the store is a view of another one.
    pub fn read_source_table(&self) -> Result<(Manifest, SourceTable), StoreError> {
        if self.restriction.is_some() {
            let snapshot = self.take_lazy_snapshot()?;
            return Ok((snapshot.manifest().clone(), snapshot.read_source_table()?));
        }
        let manifest = self.read_manifest()?;
        let sources = read_table_of(&self.dir, &manifest)?;
        Ok((manifest, sources))
    }

    pub(super) fn read_manifest(&self) -> Result<Manifest, StoreError> {
        self.parse_manifest(self.read_manifest_json()?.as_deref())
    }

    fn parse_manifest(&self, json: Option<&str>) -> Result<Manifest, StoreError> {
        let parse = |json: &str| Manifest::parse(&self.dir.join(CATALOG_FILE), json.as_bytes());
        json.map_or_else(|| Ok(Manifest::default()), parse)
    }

    /// True if nothing was found wrong when the snapshot was taken, or if the same is still wrong.
    /// Files that were intact are checked again when they are read.
    fn is_condition_current(&self, snapshot: &Snapshot) -> bool {
        let condition = snapshot.condition();
        condition.is_good() || *condition == inspect_store(&self.dir, snapshot.manifest())
    }

    /// Reads the manifest as JSON; `None` if there is no store yet. Fails if there is no manifest,
    /// but segments. Looks for the manifest again before it fails, because another process may have
    /// created the store in the meantime.
    fn read_manifest_json(&self) -> Result<Option<String>, StoreError> {
        let found = Manifest::read_json(&self.dir)?;
        if found.is_some() {
            return Ok(found);
        }
        match folder::refuse_lost_manifest(&self.dir) {
            Ok(()) => Ok(None),
            Err(error) => Manifest::read_json(&self.dir)?.ok_or(error).map(Some),
        }
    }

    /// Returns the path of the file with the HTTP server's token.
    pub fn token_path(&self) -> PathBuf {
        self.dir.join(folder::TOKEN_FILE)
    }

    /// Reads the token of the HTTP server; `None` if none was written.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if it is a link or not a regular file.
    pub fn read_token(&self) -> Result<Option<String>, StoreError> {
        let bytes = files::read_if_exists(&self.token_path())?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Writes the token of the HTTP server, readable by the owner only.
    pub fn write_token(&self, token: &str) -> Result<(), StoreError> {
        files::create_private_dirs(&self.dir)?;
        files::replace_file(&self.token_path(), token.as_bytes())
    }

    /// Reads what `push` and `pull` keep about lakes; `None` if there is nothing yet.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read_lake_state(&self) -> Result<Option<Vec<u8>>, StoreError> {
        read_lake_state(&self.dir)
    }

    /// Locks what `push` and `pull` keep about lakes.
    ///
    /// # Errors
    /// Fails if another process holds the lock for long, or if it cannot be taken.
    pub fn lock_lake_state(&self) -> Result<LakeStateFile, StoreError> {
        LakeStateFile::lock(&self.dir)
    }

    /// Reads the logs that were forgotten.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read_forgotten(&self) -> Result<ForgottenLogs, StoreError> {
        ForgottenLogs::read(&self.dir)
    }

    /// Locks the log of what hooks said.
    ///
    /// # Errors
    /// Fails if another hook holds it, or if it cannot be read.
    pub fn open_hook_log(&self) -> Result<HookLog, StoreError> {
        HookLog::open(&self.dir)
    }

    /// Returns what hooks said, the newest last.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn read_hook_log(&self) -> Result<Vec<HookLogRow>, StoreError> {
        read_hook_log(&self.dir)
    }

    /// Makes the files and folders of the store private again. Returns a notice for the user if
    /// others were able to write to them; `None` if not, or if there is no store yet.
    ///
    /// # Errors
    /// Fails if the manifest cannot be read, or a mode cannot be changed.
    pub fn make_private(&self) -> Result<Option<String>, StoreError> {
        match Manifest::read(&self.dir)? {
            Some(manifest) => make_private(&self.dir, &manifest),
            None => Ok(None),
        }
    }

    /// Applies `change` to the session labels while holding their lock. Returns
    /// [`StoreError::Busy`] if another process holds the lock for more than two seconds. Does not
    /// wait for an ingest.
    pub fn update_labels<T>(
        &self,
        change: impl FnOnce(&mut LabelBook) -> T,
    ) -> Result<T, StoreError> {
        LabelBook::update(&self.dir, change)
    }

    /// Takes the write lock and sets damaged segments aside. Returns [`StoreError::Busy`] if
    /// another process holds the lock.
    pub fn open_writer(&self, verify: Verify) -> Result<StoreWriter, StoreError> {
        StoreWriter::open(&self.dir, verify)
    }
}

impl Restriction {
    /// Returns the allowed part of the current generation.
    fn take_snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        let whole = self.whole.take_lazy_snapshot()?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, part)) = &*last
            && Arc::ptr_eq(known, &whole)
            && part.has_all_overlays()
        {
            return Ok(Arc::clone(part));
        }
        let part = whole.restrict(&*self.is_allowed);
        let part = self.whole.visible_counts.count_visible(&self.whole.dir, &whole, part)?;
        let part = Arc::new(part);
        *last = Some((whole, Arc::clone(&part)));
        Ok(part)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_snapshot_is_kept_while_nothing_changes() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = Store::new(dir.path());
        drop(store.open_writer(Verify::Some).expect("opens"));
        let take = || store.take_snapshot().expect("takes");
        let unlabelled = take();
        assert!(Arc::ptr_eq(&unlabelled, &take()));
        let label = |labels: &mut LabelBook| {
            labels.entry("session").labels.push("one".to_owned());
        };
        store.update_labels(label).expect("labels");
        let labelled = take();
        assert!(!Arc::ptr_eq(&unlabelled, &labelled) && Arc::ptr_eq(&labelled, &take()));
        fs::remove_file(dir.path().join("labels.json")).expect("removes");
        let damaged = take();
        assert!(damaged.labels().damage().is_some() && Arc::ptr_eq(&damaged, &take()));
    }

    #[test]
    fn a_snapshot_is_taken_again_once_the_store_is_private() {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = Store::new(dir.path());
        drop(store.open_writer(Verify::Some).expect("opens"));
        let manifest = dir.path().join("catalog.db");
        fs::set_permissions(&manifest, fs::Permissions::from_mode(0o666)).expect("sets");
        let writable = || {
            let snapshot = store.take_snapshot().expect("takes");
            snapshot.condition().writable.clone().map(|found| found.reason)
        };
        assert_eq!(writable().as_deref(), Some("has mode 666"));
        let notice = store.make_private().expect("changes");
        assert!(notice.is_some_and(|notice| notice.contains("mode 666")));
        let mode = fs::metadata(&manifest).expect("found").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(writable(), None);
        assert_eq!(store.make_private().expect("changes nothing"), None);
    }
}
