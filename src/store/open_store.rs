//! A store directory, from which readers take snapshots and a writer takes the lock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::damage::Verify;
use super::disk::files;
use super::error::StoreError;
use super::folder;
use super::labels::LabelBook;
use super::manifest::Manifest;
use super::snapshot::Snapshot;
use super::writer::StoreWriter;

/// A store directory. It is cheap to open: nothing is read until it is needed.
pub struct Store {
    dir: PathBuf,
    /// The last snapshot taken. A new one reads only the segments that were added since.
    last: Mutex<Option<Arc<Snapshot>>>,
}

impl Store {
    /// Returns the store in `dir`, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), last: Mutex::new(None) }
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns a snapshot of the current generation; an empty one if there is no store yet.
    pub fn take_snapshot(&self) -> Result<Arc<Snapshot>, StoreError> {
        let manifest = match Manifest::read(&self.dir)? {
            Some(manifest) => manifest,
            None => self.read_missing_manifest()?,
        };

        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = LabelBook::read(&self.dir, last.as_deref().map(Snapshot::shared_labels));
        if let Some(snapshot) = &*last
            && snapshot.manifest().generation == manifest.generation
            && Arc::ptr_eq(snapshot.shared_labels(), &labels)
        {
            return Ok(Arc::clone(snapshot));
        }

        let snapshot = Snapshot::load(&self.dir, manifest, last.as_deref())?;
        let snapshot = Arc::new(snapshot.with_labels(labels));
        *last = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Returns the manifest for a folder in which none was found: an empty one, unless the folder
    /// holds segments. Reads the manifest again before it fails, because another process may have
    /// created the store in the meantime.
    fn read_missing_manifest(&self) -> Result<Manifest, StoreError> {
        match folder::refuse_lost_manifest(&self.dir) {
            Ok(()) => Ok(Manifest::default()),
            Err(error) => Manifest::read(&self.dir)?.ok_or(error),
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
        let path = self.token_path();
        match files::read_file(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(&path)(error)),
        }
    }

    /// Writes the token of the HTTP server, readable by the owner only.
    pub fn write_token(&self, token: &str) -> Result<(), StoreError> {
        files::create_private_dirs(&self.dir)?;
        files::replace_file(&self.token_path(), token.as_bytes())
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
