//! What a machine has published: one small object per machine, written last.
//!
//! ```text
//! {"version":1,"id":"6f1c..","machine":"laptop","user_name":"mira","sessions":{
//!   "9ae8..":{"provider":"codex","log":"6c62..","row":"91ab..","events":12,"first_record":-71,"objects":[
//!     {"key":"v1/events/p_provider=codex/p_date=2026-10-14/9ae8..-0-5b1d..parquet","bytes":5120,"sha256":".."}]}}}
//! ```
//!
//! A session of a listing that is not valid is left out, and costs no other one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemas::{Provider, ToolError};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entry::sha256;
use super::objects::ObjectContent;
use super::place::LakePlace;
use store::{
    LakeFile, MAX_OBJECT_BYTES, SessionSummary, events_date, is_events_key, is_index_key,
    is_log_key, is_session_key, listing_key,
};

/// Version of listings. Newer ones are not read.
const LISTING_VERSION: u32 = 1;

/// Most bytes of a listing that is read: about 180,000 sessions. They take as much memory again.
const MAX_LISTING_BYTES: u64 = 128 << 20;

/// Most sessions of a listing that is read, also of those that name no objects.
const MAX_SESSIONS: usize = 500_000;

/// Most bytes of a name in a listing.
const MAX_TEXT_BYTES: usize = 4096;

/// Most characters of the id of a session in a message.
const MAX_SHOWN_CHARS: usize = 80;

/// What a machine has published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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
    /// Ids of the sessions that are not valid.
    #[serde(skip)]
    pub invalid: BTreeSet<String>,
    /// Keys of objects that are not needed any more and are being removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
    /// Identities of forgotten logs for which this machine has left tombstones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tombstones: Vec<String>,
}

/// The form of a listing, whose sessions are parsed one by one.
#[derive(Deserialize)]
struct ListingForm<'l> {
    version: u32,
    #[serde(borrow)]
    id: Cow<'l, str>,
    machine: String,
    user_name: String,
    #[serde(borrow)]
    sessions: &'l RawValue,
    #[serde(default)]
    unused: Vec<String>,
    #[serde(default)]
    tombstones: Vec<String>,
}

/// What could be read of the listing of a machine.
pub(super) enum ReadListing {
    /// The machine has none.
    Missing,
    /// It is not valid; the text says why.
    Invalid(String),
    Valid(Box<MachineListing>),
}

impl ReadListing {
    /// Returns the listing, if it is valid.
    pub(super) fn valid(self) -> Option<MachineListing> {
        match self {
            Self::Valid(listing) => Some(*listing),
            Self::Missing | Self::Invalid(_) => None,
        }
    }
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
    #[serde(default, skip_serializing_if = "schemas::is_default")]
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
    /// Identity of the first record of its log; logs that share it share history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_record: Option<i64>,
    /// Its objects: the row of the session first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ListedObject>,
    /// Its log. Earlier programs do not know it, so it is not one of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_object: Option<ListedObject>,
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

impl ListedObject {
    pub(super) fn of(file: &LakeFile) -> Self {
        Self { key: file.key.clone(), bytes: file.bytes.len() as u64, sha256: sha256(&file.bytes) }
    }

    /// Reads the object. The error is the reason why it is not what the listing says.
    pub(super) fn read(&self, place: &LakePlace) -> Result<Result<Vec<u8>, String>, ToolError> {
        let bytes = match place.get(&self.key, self.bytes)? {
            ObjectContent::Whole(bytes) => bytes,
            ObjectContent::Missing => return Ok(Err(format!("{} is missing", self.key))),
            ObjectContent::Unreadable(reason) => return Ok(Err(format!("{}: {reason}", self.key))),
        };
        if bytes.len() as u64 != self.bytes || sha256(&bytes) != self.sha256 {
            return Ok(Err(format!("{} does not match its listing", self.key)));
        }
        Ok(Ok(bytes))
    }
}

impl ListedSession {
    /// Returns the keys of its objects.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.objects.iter().chain(&self.log_object).map(|object| object.key.as_str())
    }

    /// Returns the day of its last events, as YYYY-MM-DD. `None` if it has no events.
    pub(super) fn last_date(&self) -> Option<&str> {
        self.keys().filter_map(events_date).max()
    }

    /// Returns a hash of what the listing says about its content.
    pub(super) fn content_hash(&self) -> String {
        sha256(serde_json::to_string(&self.objects).unwrap_or_default().as_bytes())
    }

    /// Returns whether it has as many events as a session of the same log, and ends with it.
    pub(super) fn is_as_long_as(&self, session: &SessionSummary) -> bool {
        self.events == session.events
            && self.ended_at.is_some()
            && self.ended_at == session.ended_at
    }

    /// Returns whether the machine that lists it publishes it itself.
    pub(super) fn is_own(&self) -> bool {
        self.held_by.is_none()
    }

    /// Returns whether all keys are those of this session and machine, and the sizes are allowed.
    fn is_valid(&self, id: &str, machine_id: &str) -> bool {
        let mut texts = [self.project.as_ref(), self.cwd.as_ref(), Some(&self.log)].into_iter();
        if self.events < 0 || texts.any(|text| text.is_some_and(|it| it.len() > MAX_TEXT_BYTES)) {
            return false;
        }
        let Some((row, others)) = self.objects.split_first() else { return !self.is_own() };
        let is_own_log = |log: &ListedObject| {
            is_log_key(&log.key, self.provider, id, machine_id) && log.bytes <= MAX_OBJECT_BYTES
        };
        self.log_object.as_ref().is_none_or(is_own_log)
            && is_session_key(&row.key, self.provider, id, machine_id)
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

    /// Reads the listing of a machine.
    pub(super) fn read(place: &LakePlace, id: &str) -> Result<ReadListing, ToolError> {
        Ok(match place.get(&listing_key(id), MAX_LISTING_BYTES)? {
            ObjectContent::Missing => ReadListing::Missing,
            ObjectContent::Unreadable(reason) => ReadListing::Invalid(reason),
            ObjectContent::Whole(bytes) => match parse_listing(&bytes, id) {
                Ok(listing) => ReadListing::Valid(Box::new(listing)),
                Err(reason) => ReadListing::Invalid(reason),
            },
        })
    }

    /// Returns whether the machine publishes a session with this log itself.
    pub(super) fn publishes_log(&self, log: &str) -> bool {
        self.sessions.values().any(|listed| listed.is_own() && listed.log == log)
    }
}

/// Returns the id of a session of another machine for a message.
pub(super) fn shown_id(id: &str) -> String {
    id.escape_debug().take(MAX_SHOWN_CHARS).collect()
}

/// Parses the listing of the machine `id`. Sessions that name objects which are not theirs are in
/// [`MachineListing::invalid`].
///
/// # Errors
/// Returns the reason if it is not a listing of this machine.
pub fn parse_listing(bytes: &[u8], id: &str) -> Result<MachineListing, String> {
    let form: ListingForm<'_> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if form.version != LISTING_VERSION {
        return Err(format!("it has version {}, not {LISTING_VERSION}", form.version));
    }
    if form.id != id {
        return Err("it belongs to another machine".to_owned());
    }
    let names = [&form.machine, &form.user_name];
    if names.into_iter().any(|name| name.len() > MAX_TEXT_BYTES) {
        return Err("its names are too long".to_owned());
    }
    let mut listing = MachineListing {
        unused: form.unused,
        tombstones: form.tombstones,
        ..MachineListing::new(id, &form.machine, &form.user_name)
    };
    let mut sessions = serde_json::Deserializer::from_str(form.sessions.get());
    SessionsSeed(&mut listing)
        .deserialize(&mut sessions)
        .map_err(|error| format!("its sessions: {error}"))?;
    Ok(listing)
}

/// Adds sessions to a listing, one by one.
struct SessionsSeed<'l>(&'l mut MachineListing);

impl<'de> DeserializeSeed<'de> for SessionsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SessionsSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("sessions by their ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(id) = map.next_key::<String>()? {
            if self.0.sessions.len() + self.0.invalid.len() == MAX_SESSIONS {
                return Err(A::Error::custom(format!("there are more than {MAX_SESSIONS}")));
            }
            if id.len() > MAX_TEXT_BYTES {
                map.next_value::<IgnoredAny>()?;
                self.0.invalid.insert(shown_id(&id));
                continue;
            }
            let raw: &RawValue = map.next_value()?;
            let listed = serde_json::from_str::<ListedSession>(raw.get()).ok();
            match listed.filter(|listed| listed.is_valid(&id, &self.0.id)) {
                Some(listed) => {
                    self.0.sessions.insert(id, listed);
                }
                None => {
                    self.0.invalid.insert(id);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::session_key;

    fn listing(key: &str) -> MachineListing {
        let row = session_key(Provider::Codex, "s1", "m1", "0123456789abcdef");
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
            first_record: Some(-7),
            objects: objects.to_vec(),
            log_object: None,
        };
        let mut listing = MachineListing::new("m1", "laptop", "mira");
        listing.sessions.insert("s1".into(), session);
        listing
    }

    #[test]
    fn a_listing_comes_back_and_foreign_keys_are_refused() {
        let good =
            listing("v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123456789abcdef.parquet");
        assert_eq!(parse_listing(&good.encode(), "m1"), Ok(good.clone()));
        assert!(parse_listing(&good.encode(), "m2").is_err());
        for key in [
            "/etc/passwd",
            "v1/events/../../x.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s2-0-0123456789abcdef.parquet",
            "v1/machines/m2.json",
        ] {
            let parsed = parse_listing(&listing(key).encode(), "m1").expect("a listing");
            assert!(parsed.sessions.is_empty() && parsed.invalid.contains("s1"), "{key}");
        }
    }

    #[test]
    fn a_session_that_is_not_valid_costs_no_other_one() {
        let good =
            listing("v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123456789abcdef.parquet");
        let text = String::from_utf8(good.encode()).expect("JSON");
        for bad in [
            r#"{"provider":"evil","log":"f","row":"a","events":1}"#.to_owned(),
            r#"{"provider":"codex","log":"f","row":"a","events":-1,"held_by":"m2"}"#.to_owned(),
            r#"{"provider":"codex","log":"f","row":"a","events":1}"#.to_owned(),
            "7".to_owned(),
        ] {
            let text = text.replace(r#""sessions":{"#, &format!(r#""sessions":{{"bad":{bad},"#));
            let parsed = parse_listing(text.as_bytes(), "m1").expect("a listing");
            assert_eq!(parsed.sessions, good.sessions, "{bad}");
            assert!(parsed.invalid.contains("bad"), "{bad}");
        }
    }
}
