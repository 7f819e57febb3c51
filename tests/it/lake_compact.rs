//! `sessions lake compact`: whatever happens to it, the objects of sessions stay as they are, and joined
//! objects repeat them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::compute::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use schemas::Timestamp;
use serde_json::{Value, json};
use sessions::lake::{LakeCatalog, LakeCompaction, LakePlace, compact_lake};

use crate::checks::{Checks, JsonChecks};
use crate::crash::content;
use crate::env::{Random, SETTINGS, TestEnv, copy_folder};
use crate::lake::{
    KILLS, content_objects, ingest_log, laptop, listing_of, machine, objects, pier_with, pull, push,
};
use crate::rounds::rounds;

const HOUR_US: i64 = 3_600_000_000;

pub(crate) fn compact(env: &TestEnv, lake: &Path) -> Value {
    env.json(["lake", "compact", &lake.to_string_lossy()])
}

/// Compacts a lake as if it were `hours` later than all its events.
fn compact_later(lake: &Path, hours: i64) -> LakeCompaction {
    let place = LakePlace::open(&lake.to_string_lossy()).expect("a place");
    let now = Timestamp::parse("2027-01-01T00:00:00Z").expect("a time");
    compact_lake(&place, Timestamp(now.0 + hours * HOUR_US)).expect("compacts")
}

/// The joined objects of a lake and their manifests.
pub(crate) fn joined_files(lake: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = objects(lake);
    found.retain(|key, _| key.starts_with("v1/days"));
    found
}

/// All that pushes wrote.
pub(crate) fn pushed_files(lake: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = objects(lake);
    found.retain(|key, _| !key.starts_with("v1/days") && !key.starts_with("v1/unfinished"));
    found
}

pub(crate) fn read_rows(path: &Path) -> RecordBatch {
    let file = fs::File::open(path).expect("opens");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let schema = builder.schema().clone();
    let batches: Result<Vec<_>, _> = builder.build().expect("reads").collect();
    concat_batches(&schema, &batches.expect("decodes")).expect("joins")
}

/// Checks that each joined object which readers use has the rows of its sources. Returns the number of
/// objects of sessions that are joined, and of those that are not: events and rows of sessions.
pub(crate) fn check_joined(lake: &Path) -> (usize, usize) {
    let (events, single_events) = check_joined_events(lake);
    let (rows, single_rows) = check_joined_rows(lake);
    (events + rows, single_events + single_rows)
}

/// Checks the joined objects with events.
fn check_joined_events(lake: &Path) -> (usize, usize) {
    let place = LakePlace::open(&lake.to_string_lossy()).expect("a place");
    let catalog = LakeCatalog::read(&place, None).expect("reads").expect("a catalog");
    let mut large = HashMap::new();
    let mut keys = HashSet::new();
    let mut counts = (0, 0);
    for events in catalog.sessions.values().flat_map(|session| &session.objects) {
        let Some(place) = &events.joined else {
            counts.1 += 1;
            continue;
        };
        counts.0 += 1;
        let key = &catalog.joined[place.object].key;
        keys.insert(key.as_str());
        let rows = large.entry(key).or_insert_with(|| read_rows(&lake.join(key)));
        let part = rows.slice(place.rows.start, place.rows.len());
        assert_eq!(read_rows(&lake.join(&events.key)), part, "{} in {key}", events.key);
    }
    let all: Vec<_> = catalog.sessions.values().flat_map(|session| &session.objects).collect();
    let scanned = catalog.scanned_keys(all.iter().copied());
    assert_eq!(scanned.len(), keys.len() + counts.1, "each row is scanned once");
    counts
}

/// Checks that the rows of all sessions are in the files that readers use, each once and as it is in
/// the object of its session. Returns the number of those that are joined, and of those that are not.
fn check_joined_rows(lake: &Path) -> (usize, usize) {
    let place = LakePlace::open(&lake.to_string_lossy()).expect("a place");
    let catalog = LakeCatalog::read(&place, None).expect("reads").expect("a catalog");
    let mut want = BTreeMap::new();
    for (id, session) in &catalog.sessions {
        want.insert(id.clone(), read_rows(&lake.join(&session.row.key)));
    }
    let mut found = BTreeMap::new();
    let mut single = 0;
    for key in catalog.row_keys() {
        let rows = read_rows(&lake.join(key));
        single += usize::from(key.starts_with("v1/sessions/"));
        let ids = rows.column_by_name("session_id").expect("ids").as_string::<i32>().clone();
        for (at, id) in ids.iter().flatten().enumerate() {
            assert!(found.insert(id.to_owned(), rows.slice(at, 1)).is_none(), "{id} twice");
        }
    }
    assert!(found == want, "the rows of sessions differ");
    (found.len() - single, single)
}

#[test]
fn a_compaction_repeats_the_rows_and_changes_no_object_of_a_session() {
    let env = laptop("pier", "mira");
    let lake = env.path("lake");
    push(&env, &lake);
    let before = machine("server", "team", "");
    pull(&before, &lake);
    let pushed = pushed_files(&lake);
    assert_eq!(check_joined(&lake).0, 0);

    let first = compact(&env, &lake);
    assert!(first["written"].as_u64() > Some(3) && first["left_out"] == 0);
    assert_eq!(pushed_files(&lake), pushed);
    let (joined, single) = check_joined(&lake);
    assert_eq!(first["joined"].as_u64(), Some(joined as u64));
    assert!(joined > 20 && single < joined, "{joined} {single}");
    let written = joined_files(&lake);

    // A second one has nothing to do.
    compact(&env, &lake).has(json!({
        "written": 0, "changed_days": 0, "unchanged": first["written"],
    }));
    assert_eq!(joined_files(&lake), written);

    // Pulls see the same, and pushes still need two requests.
    pull(&before, &lake).has(json!({"requests": 1}));
    let after = machine("server", "team", "");
    pull(&after, &lake);
    let rows = "SELECT bit_xor(hash(e)), count(*) FROM events e";
    assert_eq!(after.rows(rows), before.rows(rows));
    assert!(push(&env, &lake)["requests"].as_u64() <= Some(2));

    // Other lakes with the same objects get the same bytes.
    let other = env.path("other");
    push(&env, &other);
    compact(&env, &other);
    assert_eq!(joined_files(&other), written);
}

#[test]
fn forgotten_rows_leave_the_joined_objects_with_the_push() {
    let (env, lake) = pier_with(&["moor", "dock", "stay"]);
    compact(&env, &lake);
    assert_eq!(check_joined(&lake), (6, 0));

    env.run(["forget", "moor", "--yes"]).ok();
    push(&env, &lake);
    assert_eq!(joined_files(&lake), BTreeMap::new(), "nothing has the rows any more");
    assert_eq!(check_joined(&lake), (0, 4));
    compact(&env, &lake);
    assert_eq!(check_joined(&lake), (4, 0));
    let manifest = joined_files(&lake)[Path::new("v1/days/2026-10-29.json")].clone();
    let manifest = String::from_utf8(manifest).expect("JSON");
    manifest.shows("dock~").lacks("moor~");

    // Rows that are published in another way leave, too.
    env.append(SETTINGS, "content = 'usage'\n");
    push(&env, &lake);
    assert_eq!(joined_files(&lake), BTreeMap::new());
}

/// A push that is killed after it withdrew a session removes the joined rows when it is continued.
#[test]
fn an_unfinished_withdrawal_is_finished() {
    let (env, lake) = pier_with(&["moor", "dock", "stay"]);
    compact(&env, &lake);
    let joined = env.path("joined");
    copy_folder(&lake.join("v1/days"), &joined);
    env.run(["forget", "moor", "--yes"]).ok();
    push(&env, &lake);
    // The listing as it is before the objects are removed.
    let manifest = env.read_json("joined/2026-10-29.json");
    let mut keys = Vec::new();
    for object in ["objects", "rows"].iter().flat_map(|kind| manifest[kind].list()) {
        let sources = object["sources"].list().iter();
        let of_moor = sources.filter(|source| source["session"].text().starts_with("moor~"));
        keys.extend(of_moor.map(|source| source["key"].clone()));
    }
    assert_eq!(keys.len(), 2);
    let mut listing = env.read_json(listing_of(&lake));
    listing["unused"] = json!(keys);
    env.write(listing_of(&lake), listing.to_string());
    copy_folder(&joined, &lake.join("v1/days"));

    assert_eq!(check_joined(&lake), (0, 4), "readers use none of it");
    push(&env, &lake);
    assert_eq!(joined_files(&lake), BTreeMap::new());
}

/// The rows of a session are joined on the day of its last events, which its key does not say.
#[test]
fn the_row_of_a_session_that_goes_on_leaves_its_old_day() {
    let (env, lake) = pier_with(&["moor", "dock"]);
    compact(&env, &lake);
    assert_eq!(check_joined(&lake), (4, 0));
    env.append_prompt("moor.jsonl", "2026-10-30T06:00:00Z", "Cast off.");
    env.ingest("moor.jsonl");
    push(&env, &lake);
    assert_eq!(check_joined(&lake), (2, 3), "the events of the first day stay joined");
    assert_eq!(joined_files(&lake).len(), 3, "its rows are removed");
    ingest_log(&env, "stay", "/code/harbor", "Stay.");
    push(&env, &lake);
    compact(&env, &lake);
    assert_eq!(check_joined(&lake), (5, 2));
}

#[test]
fn many_sessions_are_pulled_with_few_requests() {
    let env = machine("pier", "mira", "include = ['**']");
    for at in 0..40 {
        ingest_log(&env, &format!("boat{at}"), "/code/harbor", &format!("Moor boat {at}."));
    }
    let lake = env.path("lake");
    push(&env, &lake);
    let single = machine("server", "team", "");
    let before = pull(&single, &lake);
    compact(&env, &lake);
    let rows = "SELECT bit_xor(hash(e)), count(*) FROM events e";
    let sessions = "SELECT bit_xor(hash(s)), count(*) FROM sessions s";
    let joined = machine("server", "team", "");
    let after = pull(&joined, &lake);
    // Machines, the listing, days, one manifest, rows and events.
    assert_eq!((&before["requests"], &after["requests"]), (&json!(83), &json!(6)));
    for field in ["imported", "events", "bytes", "problems"] {
        assert_eq!(before[field], after[field], "{field}");
    }
    for sql in [rows, sessions] {
        assert_eq!(joined.rows(sql), single.rows(sql), "{sql}");
    }

    // Some that are new do not read what others have.
    for at in 0..5 {
        ingest_log(&env, &format!("late{at}"), "/code/harbor", "Moor late.");
    }
    push(&env, &lake);
    pull(&joined, &lake).has(json!({"imported": 5}));
    compact(&env, &lake);

    // Objects that are not what they should be are replaced by those of the sessions.
    let days = lake.join("v1/days/2026-10-29");
    for entry in fs::read_dir(&days).expect("lists").flatten() {
        let bytes = fs::read(entry.path()).expect("reads");
        let server = machine("server", "team", "");
        fs::write(entry.path(), &bytes[..bytes.len() / 2]).expect("writes");
        pull(&server, &lake).has(json!({"imported": 45, "problems": []}));
        fs::remove_file(entry.path()).expect("removes");
        let missing = machine("server", "team", "");
        pull(&missing, &lake).has(json!({"problems": []}));
        fs::write(entry.path(), &bytes).expect("writes");
        for sql in [rows, sessions] {
            assert_eq!(server.rows(sql), missing.rows(sql), "{sql}");
        }
    }
}

#[test]
fn what_comes_late_is_joined_and_replaced_objects_stay_for_an_hour() {
    let (env, lake) = pier_with(&["one", "two"]);
    // A day that is not over is left as it is.
    let place = LakePlace::open(&lake.to_string_lossy()).expect("a place");
    let evening = Timestamp::parse("2026-10-29T23:59:59Z").expect("a time");
    assert_eq!(compact_lake(&place, evening).expect("compacts").days, 0);
    compact_later(&lake, 0);
    let first = joined_files(&lake);
    assert_eq!(first.len(), 4);

    ingest_log(&env, "three", "/code/harbor", "Moor boat three.");
    push(&env, &lake);
    assert_eq!(check_joined(&lake), (4, 2));
    let second = compact_later(&lake, 1);
    assert_eq!((second.written, second.joined, second.removed), (2, 6, 0));
    assert_eq!(check_joined(&lake), (6, 0));
    let kept = joined_files(&lake);
    assert!(first.keys().all(|key| kept.contains_key(key)), "{:?}", kept.keys());
    assert_eq!(compact_later(&lake, 1).changed_days, 0);
    let third = compact_later(&lake, 3);
    assert_eq!((third.written, third.removed), (0, 3));
    assert_eq!(joined_files(&lake).len(), 4);
    assert_eq!(check_joined(&lake), (6, 0));
}

#[test]
fn damaged_and_missing_joined_objects_are_not_used() {
    let (env, lake) = pier_with(&["one", "two"]);
    compact(&env, &lake);
    let written = joined_files(&lake);
    for (key, bytes) in &written {
        let is_manifest = key.extension().is_some_and(|ending| ending == "json");
        let usable = if is_manifest { (0, 4) } else { (2, 2) };
        fs::remove_file(lake.join(key)).expect("removes");
        assert_eq!(check_joined(&lake), usable, "without {key:?}");
        fs::write(lake.join(key), &bytes[..bytes.len() / 2]).expect("writes");
        assert_eq!(check_joined(&lake), usable, "with a part of {key:?}");
        compact(&env, &lake);
        assert_eq!(joined_files(&lake), written, "{key:?} is written again");
    }
    // A manifest cannot name other files.
    let manifest = lake.join("v1/days/2026-10-29.json");
    let text = env.read(&manifest);
    env.write(&manifest, text.replace("v1/days/2026-10-29/", "v1/days/../../"));
    assert_eq!(check_joined(&lake), (0, 4));
    compact(&env, &lake);
    assert_eq!(joined_files(&lake), written);
}

#[test]
fn a_killed_compaction_is_continued() {
    let env = laptop("pier", "mira");
    let calm = env.path("calm");
    push(&env, &calm);
    let pushed = pushed_files(&calm);
    let lakes: Vec<PathBuf> = (0..rounds(KILLS)).map(|at| env.path(format!("lake{at}"))).collect();
    for lake in &lakes {
        copy_folder(&calm, lake);
    }
    let start = Instant::now();
    compact(&env, &calm);
    let whole = start.elapsed();
    let want = joined_files(&calm);
    let mut random = Random(17);
    for lake in &lakes {
        for _ in 0..4 {
            let compact = env.cli(["lake", "compact", &lake.to_string_lossy()]);
            compact.kill_within(whole, &mut random);
            assert_eq!(pushed_files(lake), pushed);
            check_joined(lake);
        }
        compact(&env, lake);
        assert_eq!(joined_files(lake), want);
    }
}

#[test]
fn compactions_and_pushes_at_once_are_harmless() {
    let env = laptop("pier", "mira");
    let quay = machine("quay", "tom", "include = ['**']");
    for id in ["moor", "dock", "stay"] {
        ingest_log(&quay, id, "/code/harbor", &format!("The zanzibar {id} of the harbor."));
    }
    let lake = env.path("lake");
    push(&env, &lake);
    push(&quay, &lake);
    quay.run(["forget", "moor", "--yes"]).ok();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| compact(&env, &lake));
        }
        scope.spawn(|| push(&quay, &lake));
        for _ in 0..5 {
            check_joined_events(&lake);
        }
    });
    check_joined(&lake);
    // Neither a manifest nor a listing names what was forgotten.
    for (key, bytes) in objects(&lake) {
        let has_name = String::from_utf8_lossy(&bytes).contains("moor~");
        assert!(!has_name || key.starts_with("v1/tombstones"), "{key:?}");
    }
    compact_later(&lake, 0);
    compact_later(&lake, 2);
    let calm = env.path("calm");
    push(&env, &calm);
    push(&quay, &calm);
    assert_eq!(content_objects(&lake).len(), {
        compact_later(&calm, 0);
        // The tombstone is in the first lake only.
        content_objects(&calm).len() + 1
    });
    assert_eq!(joined_files(&lake), joined_files(&calm));
    let server = machine("server", "team", "");
    pull(&server, &lake);
    assert_eq!(
        content(&server)[0].as_array().map(Vec::len),
        Some(server.rows("SELECT 1 FROM sessions").len())
    );
}
