//! What the store keeps about lakes: the id of this machine, and per lake what saves requests.

use std::collections::BTreeMap;

use ingest::text::names::encode_hex;
use schemas::{ErrorCode, ToolError};
use serde::{Deserialize, Serialize};

use base::random::random_bytes;
use store::Store;
use tools::error::store_error;

/// Random bytes of the id of a machine.
const ID_BYTES: usize = 12;

/// What the store keeps about lakes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LakeState {
    /// Id of this machine in all lakes; empty before the first push. It is random: machines of the
    /// same name must not share a listing.
    pub(super) id: String,
    /// By the name of the lake.
    pub(super) lakes: BTreeMap<String, KnownLake>,
}

/// What is known of a lake. Every part of it may be lost: it only saves requests, except `pending`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct KnownLake {
    /// The listing of this machine as it was last read or written, as JSON.
    pub(super) listing: Option<String>,
    /// Versions of the listings that the last push depended on, by machine: of this one, and of those
    /// that hold its sessions.
    pub(super) versions: BTreeMap<String, String>,
    /// Keys of the objects that a push is about to write. A push that was killed may have written
    /// them without listing them.
    pub(super) pending: Vec<String>,
    /// Versions of the listings whose sessions the last pull imported, by machine.
    pub(super) pulled_versions: BTreeMap<String, String>,
    /// What the last pull asked for and found.
    pub(super) pulled: Option<String>,
    /// Sessions of machines that others were found to contain: the machine and the id, with a hash of
    /// the objects and who has the other session.
    pub(super) contained: BTreeMap<String, String>,
    /// The times of its filter, in microseconds since the epoch.
    pub(super) pulled_since: Option<i64>,
    pub(super) pulled_until: Option<i64>,
}

impl LakeState {
    /// Reads the state. A file that cannot be parsed counts as none, except that it must not give
    /// this machine a new id without a word.
    pub(super) fn read(store: &Store) -> Result<Self, ToolError> {
        Self::parse(store, store.read_lake_state().map_err(store_error)?)
    }

    /// Applies `change` to the state and writes it, while no other process does so. Returns the state
    /// as it is then.
    pub(super) fn update(
        store: &Store,
        change: impl FnOnce(&mut Self) -> Result<(), ToolError>,
    ) -> Result<Self, ToolError> {
        let file = store.lock_lake_state().map_err(store_error)?;
        let mut state = Self::parse(store, file.read().map_err(store_error)?)?;
        change(&mut state)?;
        file.replace(&serde_json::to_vec(&state).unwrap_or_default()).map_err(store_error)?;
        Ok(state)
    }

    fn parse(store: &Store, bytes: Option<Vec<u8>>) -> Result<Self, ToolError> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!(
                "lakes.json in {} cannot be read: {error}. Remove it, and this machine publishes under a new id",
                store.dir().display()
            );
            ToolError::new(ErrorCode::StoreDamaged, message)
        })
    }

    /// Returns what is known of a lake.
    pub(super) fn lake(&mut self, name: &str) -> &mut KnownLake {
        self.lakes.entry(name.to_owned()).or_default()
    }

    /// Gives this machine an id, if it has none.
    pub(super) fn create_id(&mut self) -> Result<(), ToolError> {
        if !self.id.is_empty() {
            return Ok(());
        }
        let bytes = random_bytes::<ID_BYTES>().map_err(|error| {
            let message =
                format!("An id for this machine could not be created: {error}. Try again");
            ToolError::new(ErrorCode::InternalError, message)
        })?;
        self.id = encode_hex(bytes);
        Ok(())
    }
}
