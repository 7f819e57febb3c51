//! The files with what a user decided: labels, forgotten sessions, sessions whose texts were dropped,
//! and records whose secrets were replaced in their log. No log has that, so it is not in the catalog, which can be rebuilt, and a file that is
//! damaged or missing is an error instead of empty.
//!
//! ```text
//! {"version":3,"checksum":"6c62272e07bb0142","content":{..}}
//! ```
//!
//! The holder of a lock replaces them by rename.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::disk::files;
use super::disk::lock::{StoreLock, WRITE_LOCK};
use super::error::{StoreError, UserFile};

/// Name of the lock file that is held while the labels change.
pub(super) const LABELS_LOCK: &str = "labels.lock";

/// Version of the files. Another one is refused.
const VERSION: u32 = 3;

/// Content by which the user says that a lost file is to begin again.
const START_AGAIN: &[u8] = b"{}";

#[derive(Serialize, Deserialize)]
struct SignedContent {
    version: u32,
    /// xxh3 of `content`.
    #[serde(default)]
    checksum: String,
    #[serde(default)]
    content: Box<RawValue>,
}

impl UserFile {
    pub(super) const ALL: [Self; 4] =
        [Self::Labels, Self::Forgotten, Self::Reduced, Self::Scrubbed];

    /// Returns the name of the file in the folder of the store.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels.json",
            Self::Forgotten => "forgotten.json",
            Self::Reduced => "reduced.json",
            Self::Scrubbed => "scrubbed.json",
        }
    }

    /// Returns the name of the lock that is held while the file changes.
    pub(super) const fn lock_name(self) -> &'static str {
        match self {
            Self::Labels => LABELS_LOCK,
            Self::Forgotten | Self::Reduced | Self::Scrubbed => WRITE_LOCK,
        }
    }

    /// Reads the file in the store at `dir`. It is empty if nothing was ever written to it.
    ///
    /// # Errors
    /// [`StoreError::BadUserFile`] if the file is damaged, is of another version, or is missing
    /// although it was written, [`StoreError::Io`] if it cannot be read.
    pub(super) fn read<T: DeserializeOwned + Default>(self, dir: &Path) -> Result<T, StoreError> {
        match self.read_bytes(dir)? {
            Some(bytes) => self.parse(dir, &bytes),
            None => Ok(T::default()),
        }
    }

    /// Returns the bytes of the file; `None` if nothing was ever written to it.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub(super) fn read_bytes(self, dir: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = files::read_if_exists(&dir.join(self.name()))?;
        if bytes.is_some() || !StoreLock::has_written(dir, self.lock_name(), self.name()) {
            return Ok(bytes);
        }
        let what = match self {
            Self::Labels => "sessions were labelled",
            Self::Forgotten => "sessions were forgotten",
            Self::Reduced => "texts were dropped",
            Self::Scrubbed => "secrets were replaced in logs",
        };
        Err(self.error(dir, format!("it is missing, although {what}")))
    }

    /// Parses the bytes of the file.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub(super) fn parse<T: DeserializeOwned + Default>(
        self,
        dir: &Path,
        bytes: &[u8],
    ) -> Result<T, StoreError> {
        if bytes.trim_ascii() == START_AGAIN {
            return Ok(T::default());
        }
        let bad = |error: serde_json::Error| self.error(dir, error.to_string());
        let signed: SignedContent = serde_json::from_slice(bytes).map_err(bad)?;
        if signed.version != VERSION {
            let version = signed.version;
            let reason = format!("it has version {version}, and only {VERSION} is read");
            return Err(self.error(dir, reason));
        }
        if signed.checksum != files::checksum_bytes(signed.content.get().as_bytes()) {
            return Err(self.error(dir, "its checksum differs".to_owned()));
        }
        serde_json::from_str(signed.content.get()).map_err(bad)
    }

    /// Replaces the file in the store at `dir`, while `lock` is held.
    pub(super) fn write<T: Serialize>(
        self,
        dir: &Path,
        lock: &StoreLock,
        content: &T,
    ) -> Result<(), StoreError> {
        let path = dir.join(self.name());
        let encoding_error = |error: serde_json::Error| StoreError::io(&path)(error.into());
        let content = serde_json::value::to_raw_value(content).map_err(encoding_error)?;
        let checksum = files::checksum_bytes(content.get().as_bytes());
        let signed = SignedContent { version: VERSION, checksum, content };
        let json = serde_json::to_vec(&signed).map_err(encoding_error)?;

        files::remove_temporary_copies(&path);
        lock.check_not_replaced()?;
        files::replace_file(&path, &json)?;
        // The file is in its place already, so a full disk must not fail the call now.
        if let Err(error) = lock.record_written(self.name()) {
            tracing::warn!(%error, "{} could not be marked", self.lock_name());
        }
        Ok(())
    }

    fn error(self, dir: &Path, reason: String) -> StoreError {
        StoreError::BadUserFile { file: self, path: dir.join(self.name()), reason }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    type Content = BTreeMap<String, u32>;

    #[test]
    fn reads_what_it_writes_and_refuses_what_was_changed() {
        for file in UserFile::ALL {
            let dir = tempfile::tempdir().expect("tempdir");
            let dir = dir.path();
            let reason = || match file.read::<Content>(dir) {
                Err(StoreError::BadUserFile { reason, .. }) => reason,
                other => panic!("{other:?}"),
            };
            assert_eq!(file.read::<Content>(dir).expect("no file"), Content::new());
            let lock = StoreLock::acquire(dir, file.lock_name()).expect("locks");
            let content = Content::from([("s1".to_owned(), 3)]);
            file.write(dir, &lock, &content).expect("writes");
            assert_eq!(file.read::<Content>(dir).expect("reads"), content);

            let path = dir.join(file.name());
            let written = fs::read_to_string(&path).expect("reads");
            for (text, wanted) in [
                (written.replace("s1", "s2"), "checksum"),
                (written.replace("\"checksum\":", "\"sum\":"), "checksum"),
                (written.replace("\"version\":3", "\"version\":9"), "version 9"),
                (r#"{"version":2,"sessions":{}}"#.to_owned(), "version 2"),
                (String::new(), "EOF"),
                ("{".to_owned(), "EOF"),
            ] {
                fs::write(&path, &text).expect("writes");
                assert!(reason().contains(wanted), "{text}: {}", reason());
            }

            fs::remove_file(&path).expect("removes");
            assert!(reason().contains("missing"));
            fs::write(&path, "{}\n").expect("writes");
            assert_eq!(file.read::<Content>(dir).expect("begins again"), Content::new());
        }
    }
}
