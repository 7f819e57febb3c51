//! The keys of the objects of a lake.
//!
//! ```text
//! v1/events/p_provider=codex/p_date=2026-10-14/<session>-0.parquet   events of a day
//! v1/events/p_provider=codex/p_date=2026-10-14/<session>-0.skip      their skip index
//! v1/sessions/p_provider=codex/<session>.parquet                     the row of the session
//! v1/machines/<machine>.json                                         what a machine has published
//! v1/tombstones/<log>.json                                           a log that was forgotten
//! ```
//!
//! Keys come from other machines too, so a reader accepts no other form of them.

use schemas::Provider;

use crate::store::export::file_stem;

/// Beginning of the paths that the sources of sessions from lakes have. No file has such a path.
pub const LAKE_PATH: &str = "lake:";

/// Beginning of the keys of listings.
pub const MACHINES: &str = "v1/machines/";

/// Beginning of the keys of tombstones.
pub const TOMBSTONES: &str = "v1/tombstones/";

/// Beginning of the keys of events.
const EVENTS: &str = "v1/events/";

/// Most bytes of a name in a key.
const MAX_NAME_BYTES: usize = 160;

/// Returns the key of events, given their path below the root of an export.
pub(super) fn events_key(path: &str) -> String {
    format!("{EVENTS}{path}")
}

/// Returns the key of the skip index of the events with this key.
pub(super) fn index_key(events_key: &str) -> String {
    format!("{}.skip", events_key.trim_end_matches(".parquet"))
}

/// Returns the key of the row of a session.
pub fn session_key(provider: Provider, session_id: &str) -> String {
    format!("v1/sessions/p_provider={provider}/{}.parquet", file_stem(session_id))
}

/// Returns the key of the listing of a machine.
pub fn listing_key(machine_id: &str) -> String {
    format!("{MACHINES}{machine_id}.json")
}

/// Returns the key of the tombstone of a log.
pub fn tombstone_key(identity: &str) -> String {
    format!("{TOMBSTONES}{identity}.json")
}

/// Returns the name in a key of the form `PREFIX<name>.json`. `None` if it has another form.
pub fn json_name<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    let name = key.strip_prefix(prefix)?.strip_suffix(".json")?;
    is_name(name).then_some(name)
}

/// Returns whether a key is that of events of this session.
pub fn is_events_key(key: &str, provider: Provider, session_id: &str) -> bool {
    is_object_of(key, ".parquet", provider, session_id)
}

/// Returns whether a key is that of a skip index of this session.
pub fn is_index_key(key: &str, provider: Provider, session_id: &str) -> bool {
    is_object_of(key, ".skip", provider, session_id)
}

fn is_object_of(key: &str, ending: &str, provider: Provider, session_id: &str) -> bool {
    let start = format!("{EVENTS}p_provider={provider}/p_date=");
    let Some((date, name)) = key.strip_prefix(start.as_str()).and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    let part = name
        .strip_prefix(file_stem(session_id).as_str())
        .and_then(|rest| rest.strip_prefix('-')?.strip_suffix(ending));
    is_date(date) && part.is_some_and(is_number)
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte))
}

fn is_number(text: &str) -> bool {
    (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a text is a day such as 2026-10-14; years may have more digits or a sign.
fn is_date(text: &str) -> bool {
    (1..=16).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_of_the_session_are_accepted() {
        let key = events_key("p_provider=codex/p_date=2026-10-14/s1-0.parquet");
        assert!(is_events_key(&key, Provider::Codex, "s1"));
        assert!(!is_events_key(&key, Provider::Claude, "s1"));
        assert!(!is_events_key(&key, Provider::Codex, "s2"));
        let index = index_key(&key);
        assert!(is_index_key(&index, Provider::Codex, "s1"));
        assert!(!is_events_key(&index, Provider::Codex, "s1"));
        for wrong in [
            "v1/events/p_provider=codex/p_date=../s1-0.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/../s1-0.parquet",
            "/v1/events/p_provider=codex/p_date=2026-10-14/s1-0.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s1-0x.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s1-.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14\\s1-0.parquet",
        ] {
            assert!(!is_events_key(wrong, Provider::Codex, "s1"), "{wrong}");
        }
    }

    #[test]
    fn names_of_listings_have_no_path() {
        assert_eq!(json_name("v1/machines/a1-b.json", MACHINES), Some("a1-b"));
        for wrong in ["v1/machines/../x.json", "v1/machines/a/b.json", "v1/machines/.json", "a1"] {
            assert_eq!(json_name(wrong, MACHINES), None, "{wrong}");
        }
    }
}
