//! Lake: any bytes as a listing, as the manifest of a day, as the objects of a session, as its log, or as a
//! joined object, are refused with a reason or give what a lake may hold. Nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ingest::relocate::is_safe_below;
use schemas::Provider;
use sessions::lake::{SessionPart, decode_session, parse_day_manifest, parse_listing};
use store::{PublishedLog, PublishedSession, check_events, decode_joined, slice_joined};

fuzz_target!(|input: &[u8]| {
    let [kind, low, high, data @ ..] = input else { return };
    if kind % 5 == 4 {
        if let Ok(log) = PublishedLog::decode(data, "s1", Provider::Codex) {
            assert!(log.files.iter().all(|file| is_safe_below(&file.below)));
        }
        return;
    }
    if kind % 5 == 3 {
        decode_joined_object(usize::from(*low), usize::from(*high), data);
        return;
    }
    if kind % 5 == 2 {
        if let Ok(manifest) = parse_day_manifest(data, "2026-10-14") {
            for object in manifest.objects.iter().chain(&manifest.rows) {
                let key = &object.object.key;
                assert!(key.starts_with("v1/days/2026-10-14/") && !key.contains(".."));
            }
        }
        return;
    }
    if kind % 5 == 0 {
        if let Ok(listing) = parse_listing(data, "m1") {
            for object in listing.sessions.values().flat_map(|session| session.objects.iter().chain(&session.log_object)) {
                assert!(object.key.starts_with("v1/") && !object.key.contains(".."));
            }
        }
        return;
    }
    // The row of the session, then its events.
    let cut = usize::from(u16::from_le_bytes([*low, *high])).min(data.len());
    let (row, events) = data.split_at(cut);
    let row = SessionPart::Object(row.to_vec());
    let events = vec![SessionPart::Object(events.to_vec())];
    if let Ok((published, events)) = decode_session(row, events, "s1", Provider::Codex) {
        assert_eq!(published.row.events, events.iter().map(|part| part.num_rows() as i64).sum::<i64>());
    }
});

/// Decodes a joined object of `count` rows, and takes those from `start` on.
fn decode_joined_object(count: usize, start: usize, data: &[u8]) {
    if let Ok(sessions) = PublishedSession::decode_all(data.to_vec(), count) {
        assert_eq!(sessions.len(), count);
    }
    let Ok(batches) = decode_joined(data.to_vec(), count) else { return };
    let start = start.min(count);
    if let Ok(rows) = slice_joined(&batches, start..count) {
        assert_eq!(rows.num_rows(), count - start);
        let _ = check_events(&rows, "s1", Provider::Codex);
    }
}
