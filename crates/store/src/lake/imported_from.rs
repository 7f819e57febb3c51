//! What the store keeps of an imported session, in the state of its source.

use ingest::provider::base_of;
use schemas::Provider;
use schemas::session::SourceRow;
use serde::{Deserialize, Serialize};

use super::keys::LAKE_PATH;

/// What the store keeps of the objects of an imported session, in the state of its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFrom {
    /// Id of the machine that published it.
    pub publisher: String,
    /// Hash of its objects.
    pub content: String,
    /// The identity of its log.
    pub log: String,
    /// Its id in the lake, if another imported session has it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_id: Option<String>,
    /// Number of its first events that are marked as copies because another session counts them.
    #[serde(default, skip_serializing_if = "schemas::is_default")]
    pub copied: usize,
}

impl ImportedFrom {
    /// Reads what the row of a source says. `None` for a log of this machine.
    pub fn of_source(row: &SourceRow) -> Option<Self> {
        let state = row.state.as_deref().filter(|_| row.path.starts_with(LAKE_PATH))?;
        serde_json::from_str(state).ok()
    }

    /// Returns whether the objects are those of another import.
    pub fn has_same_objects(&self, other: &Self) -> bool {
        self.publisher == other.publisher && self.content == other.content && self.log == other.log
    }
}

/// The format of a log and the hash of its first record. Copies of one history have the same.
pub(crate) type LogBeginning = (Provider, Option<i64>);

/// Returns how the log of a session begins; `None` for a file without a session.
pub(crate) fn beginning_of(source: &SourceRow) -> Option<LogBeginning> {
    source.session_id.as_ref()?;
    Some((base_of(source.provider?), source.first_record))
}
