//! Tombstones: what is forgotten leaves the lake, and nobody can forget for another machine.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::lake::{assert_sessions, content_objects, ingest_log, machine, objects, pull, push};
use crate::lake_compact::{check_joined, compact};

/// The listing of the machine of this name.
fn listing(lake: &Path, machine: &str) -> Value {
    let listings = objects(lake).into_iter().filter(|(key, _)| key.starts_with("v1/machines"));
    let mut listings = listings.map(|(_, bytes)| serde_json::from_slice(&bytes).expect("JSON"));
    listings.find(|listing: &Value| listing["machine"] == machine).expect("the listing")
}

/// The identity of the log of the only session that a machine lists.
fn log_of(lake: &Path, machine: &str) -> String {
    let listing = listing(lake, machine);
    let session = listing["sessions"].as_object().expect("sessions").values().next().expect("one");
    session["log"].text().to_owned()
}

fn stones(lake: &Path) -> Vec<PathBuf> {
    let keys = objects(lake).into_keys();
    keys.filter(|key| key.starts_with("v1/tombstones")).collect()
}

fn leave_stone(lake: &Path, log: &str, machine_id: &str) {
    let folder = lake.join("v1/tombstones");
    fs::create_dir_all(&folder).expect("creates");
    let stone = json!({ "log": log, "machine": machine_id, "forgotten_at": 1 });
    fs::write(folder.join(format!("{log}.json")), stone.to_string()).expect("writes");
}

fn warnings(report: &Value) -> usize {
    report["warnings"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_forged_tombstone_removes_nothing_and_is_reported() {
    let pier = machine("pier", "mira", "include = ['**']");
    ingest_log(&pier, "moor", "/code/harbor", "Moor the boat.");
    let tom = machine("tom", "tom", "include = ['**']");
    ingest_log(&tom, "sail", "/code/harbor", "Sail away.");
    let lake = pier.path("lake");
    push(&pier, &lake);
    push(&tom, &lake);
    let log = log_of(&lake, "pier");
    let ids = ["pier", "tom"].map(|name| listing(&lake, name)["id"].text().to_owned());
    let whole = content_objects(&lake);
    for author in [ids[0].as_str(), ids[1].as_str(), "0123456789abcdef01234567", "../x", ""] {
        let before = machine("server", "team", "");
        pull(&before, &lake);
        leave_stone(&lake, &log, author);
        for env in [&before, &machine("server", "team", ""), &pier] {
            pull(env, &lake);
        }
        let fresh = machine("server", "team", "");
        pull(&fresh, &lake);
        for env in [&before, &fresh] {
            assert_sessions(env, 2);
        }
        compact(&pier, &lake);
        assert_eq!(check_joined(&lake), (4, 0), "{author}");
        let dry = pier.json(["push", "--dry-run", &lake.to_string_lossy()]);
        assert_eq!((warnings(&dry), stones(&lake).len()), (1, 1), "{author}: {dry}");
        let pushed = push(&pier, &lake);
        assert_eq!(pushed["removed"], json!([]), "{author}");
        pushed["warnings"][0].shows("moor");
        assert_eq!(stones(&lake).len(), 0, "{author}");
        let again = push(&pier, &lake);
        assert_eq!((warnings(&again), &again["unchanged"]), (0, &json!(1)), "{author}: {again}");
        fs::remove_dir_all(lake.join("v1/days")).expect("removes");
    }
    assert_eq!(content_objects(&lake), whole);

    // A session whose first push comes after the tombstone.
    let quay = machine("quay", "mira", "include = ['**']");
    ingest_log(&quay, "dock", "/code/harbor", "Dock the boat.");
    let other = quay.path("other");
    push(&quay, &other);
    leave_stone(&lake, &log_of(&other, "quay"), &ids[1]);
    let pushed = push(&quay, &lake);
    assert_eq!((pushed["published"].as_array().map(Vec::len), warnings(&pushed)), (Some(1), 1));
}

#[test]
fn a_true_tombstone_reaches_every_machine_that_has_the_log() {
    let ingest = |env: &TestEnv| ingest_log(env, "moor", "/code/harbor", "Moor the boat.");
    let [pier, quay] = ["pier", "quay"].map(|name| machine(name, "mira", "include = ['**']"));
    ingest(&pier);
    ingest(&quay);
    let lake = pier.path("lake");
    push(&pier, &lake);
    push(&quay, &lake);
    let server = machine("server", "team", "");
    pull(&server, &lake);
    pier.run(["forget", "moor", "--yes"]).ok();
    push(&pier, &lake);
    pull(&server, &lake).has(json!({"removed": 1}));
    // A machine that holds the log does not publish it, whether it knew the lake before or not.
    let late = machine("late", "mira", "include = ['**']");
    ingest(&late);
    for env in [&quay, &late] {
        let pushed = push(env, &lake);
        assert_eq!(pushed["published"], json!([]));
        assert_eq!((&pushed["held_by_others"], warnings(&pushed)), (&json!(0), 0));
    }
    assert_eq!(stones(&lake).len(), 1);
    pull(&server, &lake).has(json!({"imported": 0}));
}

/// A machine that only holds a log cannot withdraw what another one publishes.
#[test]
fn a_publisher_that_did_not_forget_keeps_its_session() {
    let [pier, quay] = ["pier", "quay"].map(|name| machine(name, "mira", "include = ['**']"));
    let lake = pier.path("lake");
    for env in [&pier, &quay] {
        ingest_log(env, "moor", "/code/harbor", "Moor the boat.");
        push(env, &lake);
    }
    quay.run(["forget", "moor", "--yes"]).ok();
    push(&quay, &lake);
    assert_eq!(stones(&lake).len(), 1);
    let server = machine("server", "team", "");
    pull(&server, &lake).has(json!({"imported": 1}));
    let pushed = push(&pier, &lake);
    assert_eq!((&pushed["removed"], warnings(&pushed)), (&json!([]), 1));
    pull(&server, &lake).has(json!({"removed": 0}));
    // Its own word counts.
    pier.run(["forget", "moor", "--yes"]).ok();
    push(&pier, &lake);
    pull(&server, &lake).has(json!({"removed": 1}));
    push(&quay, &lake).has(json!({"published": []}));
}
