//! The archive from which a push publishes logs, and the repositories of the folders in which they were
//! written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ingest::provider::format::AgentFolders;
use schemas::ToolError;

use super::report::PushOptions;
use crate::config::environment::read_variable;
use crate::git::find_repository;
use store::{LogArchive, Repository, Store};
use tools::error::store_error;

/// The logs that are published.
pub(super) struct LogSource {
    /// `None` if no logs are published.
    pub(super) archive: Option<LogArchive>,
    pub(super) is_wanted: bool,
    home: PathBuf,
    /// The repositories of working folders.
    repositories: Mutex<HashMap<String, Option<Repository>>>,
}

impl LogSource {
    /// Opens the archive of the logs, if the settings publish logs.
    pub(super) fn open(store: &Store, options: &PushOptions) -> Result<Self, ToolError> {
        let is_wanted = options.settings.publishes_logs();
        let archive = if is_wanted { store.open_archive().map_err(store_error)? } else { None };
        let repositories = Mutex::default();
        Ok(Self { archive, is_wanted, home: options.home.clone(), repositories })
    }

    /// Returns the folders of the agents on this machine.
    pub(super) fn folders(&self) -> AgentFolders<'_> {
        AgentFolders::new(&self.home, &read_variable)
    }

    /// Returns the repository of a working folder.
    pub(super) fn repository_of(&self, folder: &str) -> Option<Repository> {
        let known = |all: &HashMap<_, _>| all.get(folder).cloned();
        let mut repositories = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(repository) = known(&repositories) {
            return repository;
        }
        let found = find_repository(Path::new(folder));
        repositories.insert(folder.to_owned(), found.clone());
        found
    }
}
