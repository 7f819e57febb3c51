//! What a machine has published: one small object per machine, written last.
//!
//! ```text
//! {"version":1,"id":"6f1c..","machine":"laptop","user_name":"mira","sessions":{
//!   "9ae8..":{"provider":"codex","log":"6c62..","row":"91ab..","events":12,"objects":[
//!     {"key":"v1/events/p_provider=codex/p_date=2026-10-14/9ae8..-0.parquet","bytes":5120,"sha256":".."}]}}}
//! ```

use std::collections::BTreeMap;

use schemas::{Provider, ToolError};
use serde::{Deserialize, Serialize};

use super::entry::sha256;
use super::place::LakePlace;
use crate::store::{
    LakeFile, MAX_OBJECT_BYTES, events_date, is_events_key, is_index_key, listing_key, session_key,
};

/// Version of listings. Newer ones are not read.
const LISTING_VERSION: u32 = 1;

/// Most sessions of a listing that is read.
const MAX_SESSIONS: usize = 10_000_000;

/// Most bytes of a name in a listing.
const MAX_TEXT_BYTES: usize = 4096;

/// What a machine has published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineListing {
    version: u32,
    /// Id of the machine.
    pub id: String,
    /// Its name.
    pub machine: String,
    /// The name of its user.
    pub user_name: String,
    /// By the id that the session has in the lake.
    pub sessions: BTreeMap<String, ListedSession>,
    /// Keys of objects that are not needed any more and are being removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
    /// Identities of forgotten logs for which this machine has left tombstones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tombstones: Vec<String>,
}

/// A session that a machine has published, or holds as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSession {
    /// The agent that wrote the log.
    pub provider: Provider,
    /// The identity of its log.
    pub log: String,
    /// Hash of what the objects depend on.
    pub row: String,
    /// Version of the rules that masked it; 0 if none did, or if an earlier program published it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rules: i64,
    /// Number of its events.
    pub events: i64,
    /// The id of another machine that has published the same log. Then there are no objects here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// Name of its project, for readers that want some projects only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Time of its last event, microseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Its objects: the row of the session first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ListedObject>,
}

/// An object of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedObject {
    /// Its key.
    pub key: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
}

/// Returns whether a number is zero, which a listing leaves out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl ListedObject {
    pub(super) fn of(file: &LakeFile) -> Self {
        Self { key: file.key.clone(), bytes: file.bytes.len() as u64, sha256: sha256(&file.bytes) }
    }

    /// Reads the object. The error is the reason why it is not what the listing says.
    pub(super) fn read(&self, place: &LakePlace) -> Result<Result<Vec<u8>, String>, ToolError> {
        let Some(bytes) = place.get(&self.key, self.bytes.saturating_add(1))? else {
            return Ok(Err(format!("{} is missing", self.key)));
        };
        if bytes.len() as u64 != self.bytes || sha256(&bytes) != self.sha256 {
            return Ok(Err(format!("{} is not what its listing says", self.key)));
        }
        Ok(Ok(bytes))
    }
}

impl ListedSession {
    /// Returns the keys of its objects.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.objects.iter().map(|object| object.key.as_str())
    }

    /// Returns the day of its last events, as YYYY-MM-DD. `None` if it has no events.
    pub(super) fn last_date(&self) -> Option<&str> {
        self.keys().filter_map(events_date).max()
    }

    /// Returns a hash of what the listing says about its content.
    pub(super) fn content_hash(&self) -> String {
        sha256(serde_json::to_string(&self.objects).unwrap_or_default().as_bytes())
    }

    /// Returns whether all keys are those of this session, and the sizes are allowed.
    fn is_valid(&self, id: &str) -> bool {
        let Some((row, others)) = self.objects.split_first() else { return self.held_by.is_some() };
        let texts = [self.project.as_ref(), self.cwd.as_ref(), Some(&self.log)];
        row.key == session_key(self.provider, id)
            && texts.into_iter().flatten().all(|text| text.len() <= MAX_TEXT_BYTES)
            && id.len() <= MAX_TEXT_BYTES
            && self.events >= 0
            && self.objects.iter().all(|object| object.bytes <= MAX_OBJECT_BYTES)
            && others.iter().all(|object| {
                is_events_key(&object.key, self.provider, id)
                    || is_index_key(&object.key, self.provider, id)
            })
    }
}

impl MachineListing {
    /// Returns the empty listing of a machine.
    pub(super) fn new(id: &str, machine: &str, user_name: &str) -> Self {
        Self {
            version: LISTING_VERSION,
            id: id.to_owned(),
            machine: machine.to_owned(),
            user_name: user_name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the bytes of the object.
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the listing of a machine. `None` if it has none. The error in the result is the reason
    /// why it is not valid.
    pub(super) fn read(
        place: &LakePlace,
        id: &str,
    ) -> Result<Option<Result<Self, String>>, ToolError> {
        let bytes = place.get(&listing_key(id), MAX_OBJECT_BYTES)?;
        Ok(bytes.map(|bytes| parse_listing(&bytes, id)))
    }
}

/// Parses the listing of the machine `id`.
///
/// # Errors
/// Returns the reason if it is not a listing of this machine, or if it names objects that are not
/// those of its sessions.
pub fn parse_listing(bytes: &[u8], id: &str) -> Result<MachineListing, String> {
    let listing: MachineListing =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if listing.version != LISTING_VERSION {
        return Err(format!("it has version {}, not {LISTING_VERSION}", listing.version));
    }
    if listing.id != id {
        return Err("it is of another machine".to_owned());
    }
    if listing.sessions.len() > MAX_SESSIONS {
        return Err(format!("it has more than {MAX_SESSIONS} sessions"));
    }
    let names = [&listing.machine, &listing.user_name];
    if names.into_iter().any(|name| name.len() > MAX_TEXT_BYTES) {
        return Err("its names are too long".to_owned());
    }
    match listing.sessions.iter().find(|(id, session)| !session.is_valid(id)) {
        Some((id, _)) => Err(format!("its session '{}' is not valid", id.escape_debug())),
        None => Ok(listing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(key: &str) -> MachineListing {
        let row = session_key(Provider::Codex, "s1");
        let objects = [row.as_str(), key].map(|key| ListedObject {
            key: key.to_owned(),
            bytes: 3,
            sha256: String::new(),
        });
        let session = ListedSession {
            provider: Provider::Codex,
            log: "f0".into(),
            row: "a1".into(),
            rules: 0,
            events: 1,
            held_by: None,
            project: None,
            cwd: None,
            ended_at: None,
            objects: objects.to_vec(),
        };
        let mut listing = MachineListing::new("m1", "laptop", "mira");
        listing.sessions.insert("s1".into(), session);
        listing
    }

    #[test]
    fn a_listing_comes_back_and_foreign_keys_are_refused() {
        let good = listing("v1/events/p_provider=codex/p_date=2026-10-14/s1-0.parquet");
        assert_eq!(parse_listing(&good.encode(), "m1"), Ok(good.clone()));
        assert!(parse_listing(&good.encode(), "m2").is_err());
        for key in [
            "/etc/passwd",
            "v1/events/../../x.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s2-0.parquet",
            "v1/machines/m2.json",
        ] {
            assert!(parse_listing(&listing(key).encode(), "m1").is_err(), "{key}");
        }
    }
}
