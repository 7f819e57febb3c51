//! The keys of the objects of a lake.
//!
//! ```text
//! v1/events/p_provider=codex/p_date=2026-10-14/<session>-0-<hash>.parquet   events of a day
//! v1/events/p_provider=codex/p_date=2026-10-14/<session>-0-<hash>.skip      their skip index
//! v1/sessions/p_provider=codex/<session>/<machine>-<hash>.parquet           the row of the session
//! v1/logs/p_provider=codex/<session>/<machine>-<hash>.zst                   the log of the session
//! v1/machines/<machine>.json                                                what a machine has published
//! v1/tombstones/<log>.json                                                  a log that was forgotten
//! v1/days/2026-10-14.json                                                   the joined objects of a day
//! v1/days/2026-10-14/<hash>.parquet                                         events of many sessions
//! v1/days/2026-10-14/<hash>.skip                                            their skip index
//! ```
//!
//! The hash in the key of an object follows from its bytes and the machine that publishes it. So no
//! object is ever replaced by another one, and no machine removes that of another.
//!
//! Keys come from other machines too, so a reader accepts no other form of them.

use schemas::Provider;

use crate::export::file_stem;

/// Beginning of the paths that the sources of sessions from lakes have. No file has such a path.
pub const LAKE_PATH: &str = "lake:";

/// Beginning of the keys of listings.
pub const MACHINES: &str = "v1/machines/";

/// Beginning of the keys of tombstones.
pub const TOMBSTONES: &str = "v1/tombstones/";

/// Beginning of the keys of joined objects, and of the manifests that name them.
pub const DAYS: &str = "v1/days/";

/// Beginning of the keys of events.
const EVENTS: &str = "v1/events/";

/// Hexadecimal digits of the hash in a key.
pub const KEY_DIGITS: usize = 16;

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

/// Returns the key of events or of their skip index with the hash of an object in it.
pub fn key_with_hash(key: &str, hash: &str) -> String {
    match key.rsplit_once('.') {
        Some((name, ending)) => format!("{name}-{hash}.{ending}"),
        None => key.to_owned(),
    }
}

/// Returns the beginning of the keys of the rows that machines have published of a session.
pub fn session_folder(provider: Provider, session_id: &str) -> String {
    format!("v1/sessions/p_provider={provider}/{}/", file_stem(session_id))
}

/// Returns the key of the row of a session that a machine publishes.
pub fn session_key(provider: Provider, session_id: &str, machine_id: &str, hash: &str) -> String {
    format!("{}{machine_id}-{hash}.parquet", session_folder(provider, session_id))
}

/// Returns the key of the log of a session that a machine publishes.
pub fn log_key(provider: Provider, session_id: &str, machine_id: &str, hash: &str) -> String {
    format!("v1/logs/p_provider={provider}/{}/{machine_id}-{hash}.zst", file_stem(session_id))
}

/// Returns whether a key is that of the log of this session, published by this machine.
pub fn is_log_key(key: &str, provider: Provider, session_id: &str, machine_id: &str) -> bool {
    let hash = key.strip_suffix(".zst").and_then(|key| key.rsplit_once('-')).map(|(_, hash)| hash);
    hash.is_some_and(|hash| is_hash(hash) && log_key(provider, session_id, machine_id, hash) == key)
}

/// Returns the machine that published the row of a session with this key. `None` for another key.
pub fn row_publisher<'k>(key: &'k str, provider: Provider, session_id: &str) -> Option<&'k str> {
    let name = key.strip_prefix(session_folder(provider, session_id).as_str())?;
    let (machine, hash) = name.strip_suffix(".parquet")?.rsplit_once('-')?;
    (is_name(machine) && is_hash(hash)).then_some(machine)
}

/// Returns whether a key is that of the row of this session, published by this machine.
pub fn is_session_key(key: &str, provider: Provider, session_id: &str, machine_id: &str) -> bool {
    row_publisher(key, provider, session_id) == Some(machine_id)
}

/// Returns the key of the listing of a machine.
pub fn listing_key(machine_id: &str) -> String {
    format!("{MACHINES}{machine_id}.json")
}

/// Returns the key of the tombstone of a log.
pub fn tombstone_key(identity: &str) -> String {
    format!("{TOMBSTONES}{identity}.json")
}

/// Returns the key of the manifest of a day.
pub fn day_key(date: &str) -> String {
    format!("{DAYS}{date}.json")
}

/// Returns the beginning of the keys of the joined objects of a day.
pub fn day_folder(date: &str) -> String {
    format!("{DAYS}{date}/")
}

/// Returns the keys of a joined object of a day and of its skip index.
pub fn joined_keys(date: &str, hash: &str) -> [String; 2] {
    [".parquet", ".skip"].map(|ending| format!("{DAYS}{date}/{hash}{ending}"))
}

/// Returns whether a key is that of a joined object of a day, or of its skip index.
pub fn is_joined_key(key: &str, date: &str) -> bool {
    let name = key.strip_prefix(day_folder(date).as_str());
    let hash =
        name.and_then(|name| name.strip_suffix(".parquet").or_else(|| name.strip_suffix(".skip")));
    is_date(date) && hash.is_some_and(is_name)
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

/// Returns the day in the key of events or of their skip index, as YYYY-MM-DD.
pub fn events_date(key: &str) -> Option<&str> {
    let (_, rest) = key.strip_prefix(EVENTS)?.split_once("/p_date=")?;
    rest.split_once('/').map(|(date, _)| date)
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
    let part = part.and_then(|part| part.split_once('-'));
    is_date(date) && part.is_some_and(|(number, hash)| is_number(number) && is_hash(hash))
}

fn is_hash(text: &str) -> bool {
    text.len() == KEY_DIGITS
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
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
        let path = "p_provider=codex/p_date=2026-10-14/s1-0.parquet";
        let key = key_with_hash(&events_key(path), "0123456789abcdef");
        assert!(is_events_key(&key, Provider::Codex, "s1"), "{key}");
        assert!(!is_events_key(&key, Provider::Claude, "s1"));
        assert!(!is_events_key(&key, Provider::Codex, "s2"));
        assert!(!is_events_key(&key, Provider::Codex, "s1-0"));
        let index = index_key(&key);
        assert!(is_index_key(&index, Provider::Codex, "s1"));
        assert!(!is_events_key(&index, Provider::Codex, "s1"));
        for wrong in [
            "v1/events/p_provider=codex/p_date=../s1-0-0123456789abcdef.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/../s1-0-0123456789abcdef.parquet",
            "/v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123456789abcdef.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s1-0x-0123456789abcdef.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s1--0123456789abcdef.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14\\s1-0-0123456789abcdef.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s1-0.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123456789ABCDEF.parquet",
            "v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123.parquet",
        ] {
            assert!(!is_events_key(wrong, Provider::Codex, "s1"), "{wrong}");
        }
    }

    #[test]
    fn the_row_of_a_session_names_its_machine() {
        let key = session_key(Provider::Codex, "s1", "m1", "0123456789abcdef");
        assert_eq!(row_publisher(&key, Provider::Codex, "s1"), Some("m1"));
        assert!(is_session_key(&key, Provider::Codex, "s1", "m1"));
        let without_machine = "v1/sessions/p_provider=codex/s1.parquet";
        assert!(!is_session_key(without_machine, Provider::Codex, "s1", "m1"));
        for (id, machine) in [("s2", "m1"), ("s1", "m2")] {
            assert!(!is_session_key(&key, Provider::Codex, id, machine), "{id} {machine}");
        }
        let outside = "v1/sessions/p_provider=codex/s1/../m1-0123456789abcdef.parquet";
        assert_eq!(row_publisher(outside, Provider::Codex, "s1"), None);
    }

    #[test]
    fn the_log_of_a_session_is_that_of_its_machine() {
        let key = log_key(Provider::Codex, "s1", "m1", "0123456789abcdef");
        assert!(is_log_key(&key, Provider::Codex, "s1", "m1"));
        for (id, machine) in [("s2", "m1"), ("s1", "m2"), ("s1", "m")] {
            assert!(!is_log_key(&key, Provider::Codex, id, machine), "{id} {machine}");
        }
        for wrong in [
            "v1/logs/p_provider=codex/s1/../m1-0123456789abcdef.zst",
            "v1/logs/p_provider=codex/s1/m1-0123456789abcdeg.zst",
            "v1/logs/p_provider=codex/s1/m1-0123.zst",
            "/v1/logs/p_provider=codex/s1/m1-0123456789abcdef.zst",
        ] {
            assert!(!is_log_key(wrong, Provider::Codex, "s1", "m1"), "{wrong}");
        }
    }

    #[test]
    fn joined_objects_belong_to_their_day() {
        let [events, index] = joined_keys("2026-10-14", "a1b2");
        assert!(is_joined_key(&events, "2026-10-14") && is_joined_key(&index, "2026-10-14"));
        assert_eq!(json_name(&day_key("2026-10-14"), DAYS), Some("2026-10-14"));
        for wrong in [
            "v1/days/2026-10-14/../x.parquet",
            "v1/days/2026-10-14/.parquet",
            "v1/days/2026-10-14/a/b.skip",
            "v1/days/2026-10-15/a.skip",
            "v1/days/2026-10-14/a.json",
        ] {
            assert!(!is_joined_key(wrong, "2026-10-14"), "{wrong}");
        }
        assert!(!is_joined_key("v1/days/../a.skip", ".."));
    }

    #[test]
    fn names_of_listings_have_no_path() {
        assert_eq!(json_name("v1/machines/a1-b.json", MACHINES), Some("a1-b"));
        for wrong in ["v1/machines/../x.json", "v1/machines/a/b.json", "v1/machines/.json", "a1"] {
            assert_eq!(json_name(wrong, MACHINES), None, "{wrong}");
        }
    }
}
