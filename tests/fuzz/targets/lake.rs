//! Lake: any bytes as a listing, as the manifest of a day, or as the objects of a session, are refused
//! with a reason or give what a lake may hold. Nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schemas::Provider;
use sessions::lake::{decode_session, parse_day_manifest, parse_listing};

fuzz_target!(|input: &[u8]| {
    let [kind, low, high, data @ ..] = input else { return };
    if kind % 3 == 2 {
        if let Ok(manifest) = parse_day_manifest(data, "2026-10-14") {
            for object in &manifest.objects {
                let key = &object.events.key;
                assert!(key.starts_with("v1/days/2026-10-14/") && !key.contains(".."));
            }
        }
        return;
    }
    if kind % 3 == 0 {
        if let Ok(listing) = parse_listing(data, "m1") {
            for object in listing.sessions.values().flat_map(|session| &session.objects) {
                assert!(object.key.starts_with("v1/") && !object.key.contains(".."));
            }
        }
        return;
    }
    // The row of the session, then its events.
    let cut = usize::from(u16::from_le_bytes([*low, *high])).min(data.len());
    let (row, events) = data.split_at(cut);
    let objects = vec![row.to_vec(), events.to_vec()];
    if let Ok((published, events)) = decode_session(objects, "s1", Provider::Codex) {
        assert_eq!(published.row.events, i64::try_from(events.num_rows()).expect("few"));
    }
});
