//! Finds the files that other processes have open.

use std::fs::Metadata;
use std::path::Path;
use std::time::Duration;

/// A file that changed within this time may be one that an agent is writing.
pub(crate) const MIN_AGE: Duration = Duration::from_secs(60);

/// The files that processes of the user have open, as the system identifies them. Empty on systems
/// that do not list them: there only the time of the latest change shows that a log is in use.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    #[cfg(target_os = "linux")]
    files: std::collections::HashSet<(u64, u64)>,
}

impl OpenFiles {
    /// Finds the files that processes other than this one have open.
    #[cfg(target_os = "linux")]
    pub(crate) fn find() -> Self {
        use std::os::unix::fs::MetadataExt as _;

        let own = std::process::id().to_string();
        let mut files = std::collections::HashSet::new();
        // Processes that end meanwhile, and those of other users, cannot be read.
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = process.file_name();
            let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
            if !is_process || name.to_str() == Some(&own) {
                continue;
            }
            let opened = std::fs::read_dir(process.path().join("fd"));
            for file in opened.into_iter().flatten().flatten() {
                if let Ok(found) = std::fs::metadata(file.path())
                    && found.is_file()
                {
                    files.insert((found.dev(), found.ino()));
                }
            }
        }
        Self { files }
    }

    /// This system does not list the files that processes have open.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn find() -> Self {
        Self::default()
    }

    /// Returns whether a process has the file with this metadata open.
    #[cfg(target_os = "linux")]
    pub(crate) fn includes(&self, found: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        self.files.contains(&(found.dev(), found.ino()))
    }

    /// No file is known to be open.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn includes(&self, _: &Metadata) -> bool {
        false
    }
}

/// Returns why a database may be in use by its agent; `None` if it is not.
pub(crate) fn find_use_of_database(database: &Path) -> Option<&'static str> {
    let open = OpenFiles::find();
    for suffix in ["", "-wal", "-journal"] {
        let mut path = database.as_os_str().to_owned();
        path.push(suffix);
        let Ok(found) = std::fs::metadata(&path) else { continue };
        if open.includes(&found) {
            return Some("a process has its database open");
        }
        // A system that does not say which files are open only shows when they changed.
        let age = found.modified().ok().and_then(|changed| changed.elapsed().ok());
        if cfg!(not(target_os = "linux")) && age.is_none_or(|age| age < MIN_AGE) {
            return Some("its database changed within the last minute");
        }
    }
    None
}
