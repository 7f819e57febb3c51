//! `push` and `pull`: machines are homes with stores of their own, which share a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::crash::{compare, content};
use crate::env::{Random, SETTINGS, TestEnv, contents_below, samples};
use crate::freshness::until;
use crate::rounds::rounds;

/// A machine with its settings.
pub(crate) fn machine(name: &str, user: &str, publish: &str) -> TestEnv {
    let env = TestEnv::new();
    let identity = format!("[identity]\nmachine = '{name}'\nuser = '{user}'\n");
    env.write_settings(format!("{identity}[publish]\n{publish}\n"));
    env
}

/// A machine that publishes sessions with one prompt each, and the lake that it pushed them to.
pub(crate) fn pier_with(ids: &[&str]) -> (TestEnv, PathBuf) {
    let env = machine("pier", "mira", "include = ['**']");
    for id in ids {
        ingest_log(&env, id, "/code/harbor", &format!("Moor boat {id}."));
    }
    let lake = env.path("lake");
    push(&env, &lake);
    (env, lake)
}

/// Checks the number of sessions in a store.
#[track_caller]
pub(crate) fn assert_sessions(env: &TestEnv, number: usize) {
    assert_eq!(env.rows("SELECT 1 FROM sessions").len(), number);
}

/// A machine that publishes all projects, with the sample sessions.
pub(crate) fn laptop(name: &str, user: &str) -> TestEnv {
    let env = machine(name, user, "include = ['**']\ncontent = 'full'");
    env.ingest(samples());
    env
}

/// A session of a generic log. `prompt` is its only prompt.
pub(crate) fn ingest_log(env: &TestEnv, id: &str, cwd: &str, prompt: &str) {
    env.ingest(env.log(id).cwd(cwd).user(prompt).write_to(&format!("{id}.jsonl")));
}

pub(crate) fn push(env: &TestEnv, lake: &Path) -> Value {
    env.json(["push", &lake.to_string_lossy()])
}

pub(crate) fn pull(env: &TestEnv, lake: &Path) -> Value {
    env.json(["pull", &lake.to_string_lossy()])
}

/// The objects of a lake.
pub(crate) fn objects(lake: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    contents_below(lake)
}

/// The objects without the listings of machines.
pub(crate) fn content_objects(lake: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = objects(lake);
    found.retain(|key, _| !key.starts_with("v1/machines"));
    found
}

/// The path of the listing of the only machine of a lake.
pub(crate) fn listing_of(lake: &Path) -> PathBuf {
    let mut keys = objects(lake).into_keys().filter(|key| key.starts_with("v1/machines"));
    lake.join(keys.next().expect("a listing"))
}

#[test]
fn a_second_push_writes_nothing_with_two_requests() {
    let env = laptop("pier", "mira");
    let lake = env.path("lake");
    let first = push(&env, &lake);
    assert!(first["objects"].as_u64() > Some(10));
    let written = objects(&lake);
    let keys: Vec<_> = written.keys().map(|key| key.to_string_lossy().into_owned()).collect();
    assert!(keys.iter().any(|key| key.starts_with("v1/events/p_provider=claude/p_date=")));
    let events: Vec<_> = keys.iter().filter(|key| key.starts_with("v1/events")).collect();
    for key in events.iter().filter(|key| key.ends_with(".parquet")) {
        assert!(keys.contains(&key.replace(".parquet", ".skip")), "{key} has no index");
    }
    let second = push(&env, &lake);
    second.has(json!({"objects": 0, "published": []}));
    assert!(second["requests"].as_u64() <= Some(2));
    assert_eq!(objects(&lake), written);

    // Another lake gets the same bytes; so does one that was emptied.
    let other = env.path("other");
    push(&env, &other);
    assert_eq!(objects(&other), written);
    fs::remove_dir_all(lake.join("v1")).expect("removes");
    push(&env, &lake);
    assert_eq!(objects(&lake), written);
}

#[test]
fn only_what_grew_travels() {
    let env = laptop("pier", "mira");
    let lake = env.path("lake");
    push(&env, &lake);
    let before = objects(&lake);
    ingest_log(&env, "moor", "/code/harbor", "Moor the boat.");
    let grown = push(&env, &lake);
    assert_eq!(grown["published"].list().len(), 1);
    assert_eq!(grown["objects"], 3, "events, index and row: {grown}");
    let after = objects(&lake);
    assert_eq!(after.len(), before.len() + 3);
    let mut kept = before.iter().filter(|(key, _)| !key.starts_with("v1/machines"));
    assert!(kept.all(|(key, bytes)| after.get(key) == Some(bytes)));
}

#[test]
fn nothing_is_published_without_an_include() {
    let env = machine("pier", "mira", "");
    ingest_log(&env, "a", "/code/harbor", "Moor the boat.");
    let lake = env.path("lake");
    push(&env, &lake).has(json!({"objects": 0}));
    assert!(objects(&lake).is_empty());

    let env = machine("pier", "mira", "include = ['/code/**']\nexclude = ['/code/secret']");
    ingest_log(&env, "a", "/code/harbor", "Moor the boat.");
    ingest_log(&env, "b", "/code/secret/x", "Hide the boat.");
    ingest_log(&env, "c", "/elsewhere", "Sink the boat.");
    let dry = env.json(["push", "--dry-run", &lake.to_string_lossy()]);
    assert_eq!(dry["published"].list().len(), 1);
    assert!(dry["bytes"].as_u64() > Some(0) && objects(&lake).is_empty());
    assert_eq!(push(&env, &lake)["published"].list().len(), 1);
    let names = objects(&lake);
    assert!(names.keys().any(|key| key.to_string_lossy().contains("/a~")), "{:?}", names.keys());

    // A project that is excluded later leaves the lake.
    env.replace(SETTINGS, "/code/secret", "/code");
    assert_eq!(push(&env, &lake)["removed"].list().len(), 1);
    assert!(content_objects(&lake).is_empty());
}

#[test]
fn a_log_on_two_machines_is_published_once() {
    let first = laptop("pier", "mira");
    let lake = first.path("lake");
    push(&first, &lake);
    let before = content_objects(&lake);
    let second = laptop("quay", "mira");
    let pushed = push(&second, &lake);
    assert_eq!(pushed["objects"], 0);
    assert!(pushed["held_by_others"].as_u64() > Some(10));
    assert_eq!(content_objects(&lake), before);
    let again = push(&second, &lake);
    assert!(again["requests"].as_u64() <= Some(2));
    // Neither imports what it has itself.
    pull(&second, &lake).has(json!({"imported": 0}));

    let server = machine("server", "team", "");
    pull(&server, &lake).has(json!({"problems": []}));
    assert_eq!(
        server.number("SELECT count(DISTINCT machine) FROM sessions"),
        1,
        "each session is there once"
    );
    // When the first machine withdraws, the second one publishes.
    first.replace(SETTINGS, "'**'", "");
    push(&first, &lake);
    push(&second, &lake).has(json!({"held_by_others": 0}));
    pull(&server, &lake);
    assert_eq!(server.rows("SELECT DISTINCT machine FROM sessions"), [[json!("quay")]]);
}

#[test]
fn imported_sessions_answer_every_tool() {
    let pier = laptop("pier", "mira");
    let quay = machine("quay", "tom", "include = ['**']");
    ingest_log(&quay, "dredge", "/code/harbor", "Dredge the zanzibar channel.");
    let lake = pier.path("lake");
    push(&pier, &lake);
    push(&quay, &lake);

    let server = machine("server", "team", "");
    ingest_log(&server, "own", "/code/own", "Light the beacon.");
    pull(&server, &lake).has(json!({"problems": [], "machines": 2}));
    pull(&server, &lake).has(json!({"imported": 0, "requests": 1}));

    // Rows are those of the machine.
    let of_pier = "SELECT count(*) FROM events JOIN sessions USING (session_id) WHERE";
    assert_eq!(
        server.number(&format!("{of_pier} sessions.machine = 'pier'")),
        pier.number(&format!("{of_pier} cwd IS NOT NULL"))
    );

    let found = server.json(["search", "zanzibar user:tom machine:quay"]);
    found.has(json!({"metadata": {"results_returned": 1}}));
    let event = server.json(["event", found["data"]["matches"][0]["event_id"].text()]);
    event["data"]["events"][0]["text"].shows("Dredge");
    let listed = server.json(["list", "--user", "tom"]);
    let session = &listed["data"]["sessions"][0];
    session.has(json!({"machine": "quay"}));
    assert!(server.json(["show", session["session_id"].text()])["data"].is_object());
    assert_eq!(server.json(["stats", "--by", "user"])["data"]["groups"].list().len(), 3);
    server.json(["find", "zanzibar channel"])["data"].shows("dredge");
    // What was imported is not published again.
    server.write_settings(
        "[publish]\ninclude = ['**']\n[identity]\nmachine = 'server'\nuser = 'team'\n",
    );
    assert_eq!(push(&server, &lake)["published"].list().len(), 1);
}

#[test]
fn pull_takes_what_its_filters_select() {
    let (_pier, lake) = pier_with(&["moor"]);
    let quay = machine("quay", "tom", "include = ['**']");
    ingest_log(&quay, "dredge", "/code/channel", "Dredge the channel.");
    push(&quay, &lake);
    let place = lake.to_string_lossy();
    for (flag, value, projects) in [
        ("--user", "tom", &["channel"][..]),
        ("--project", "harbor", &["harbor"]),
        ("--since", "2027-01-01", &[]),
        ("--until", "2020-01-01", &[]),
    ] {
        let server = machine("server", "team", "");
        server.run(["pull", flag, value, &place]).ok();
        assert_eq!(server.texts("SELECT project FROM sessions"), projects, "{flag}");
        // A wider pull adds the others, and a narrower one removes nothing.
        pull(&server, &lake);
        assert_sessions(&server, 2);
        server.run(["pull", flag, value, &place]).ok();
        assert_sessions(&server, 2);
    }
}

#[test]
fn a_wider_time_of_the_same_day_imports_what_it_adds() {
    let (_pier, lake) = pier_with(&["moor"]);
    for (flag, narrow, wide) in [
        ("--until", "2026-10-29T05:00:00Z", "2026-10-29T07:00:00Z"),
        ("--since", "2026-10-29T07:00:00Z", "2026-10-29T05:00:00Z"),
    ] {
        let server = machine("server", "team", "");
        for (time, sessions) in [(narrow, 0), (wide, 1), (narrow, 1), (wide, 1)] {
            server.run(["pull", flag, time, &lake.to_string_lossy()]).ok();
            assert_sessions(&server, sessions);
        }
    }
}

#[test]
fn what_is_forgotten_leaves_the_lake_and_other_machines() {
    let pier = machine("pier", "mira", "include = ['**']");
    ingest_log(&pier, "moor", "/code/harbor", "Moor the boat.");
    ingest_log(&pier, "stay", "/code/harbor", "Stay here.");
    let quay = machine("quay", "mira", "include = ['**']");
    ingest_log(&quay, "moor", "/code/harbor", "Moor the boat.");
    let lake = pier.path("lake");
    push(&pier, &lake);
    push(&quay, &lake);
    let server = machine("server", "team", "");
    pull(&server, &lake);
    assert_sessions(&server, 2);

    pier.run(["forget", "moor", "--yes"]).ok();
    let pushed = push(&pier, &lake);
    assert_eq!(pushed["removed"].list().len(), 1);
    let left = content_objects(&lake);
    let of_events = |key: &&PathBuf| key.to_string_lossy().contains("moor");
    assert_eq!(left.keys().filter(of_events).count(), 0, "{:?}", left.keys());
    assert_eq!(left.keys().filter(|key| key.starts_with("v1/tombstones")).count(), 1);
    assert!(push(&pier, &lake)["requests"].as_u64() <= Some(2));
    // The other machine has the same log, and does not publish it either.
    push(&quay, &lake).has(json!({"objects": 0, "held_by_others": 0}));
    assert_eq!(content_objects(&lake), left);
    pull(&server, &lake).has(json!({"removed": 1}));
    assert_eq!(server.rows("SELECT title FROM sessions"), [[json!("Stay here.")]]);

    // What a reader forgets does not come again.
    let id = server.rows("SELECT session_id FROM sessions")[0][0].text().to_owned();
    server.run(["forget", &id, "--yes"]).ok();
    pull(&server, &lake).has(json!({"imported": 0}));
    // `--undo` takes the tombstone back.
    pier.run(["forget", "--undo", "moor"]).ok();
    pier.ingest("moor.jsonl");
    assert_eq!(push(&pier, &lake)["published"].list().len(), 1);
    assert_eq!(
        content_objects(&lake).keys().filter(|key| key.starts_with("v1/tombstones")).count(),
        0
    );
}

#[test]
fn no_object_has_a_home_path_unless_the_content_is_full() {
    for (content, has_home) in [("full", true), ("transcripts", false), ("usage", false)] {
        let env = machine("pier", "mira", &format!("include = ['**']\ncontent = '{content}'"));
        let home = env.root.path().to_string_lossy().into_owned();
        let cwd = format!("{home}/code/harbor");
        ingest_log(&env, "moor", &cwd, &format!("Moor {home}/boat with /home/tom/rope zanzibar."));
        let lake = env.path("lake");
        push(&env, &lake);
        let server = machine("server", "team", "");
        pull(&server, &lake).has(json!({"imported": 1}));
        let rows = ["SELECT * FROM sessions", "SELECT * FROM events"].map(|sql| server.rows(sql));
        let all = format!("{rows:?}");
        // The path of the lake itself is in this home.
        let all = all.replace(&*lake.to_string_lossy(), "");
        assert_eq!(all.contains(&home), has_home, "{content}: {all}");
        assert_eq!(all.contains("/home/tom"), has_home, "{content}: {all}");
        assert_eq!(all.contains("zanzibar"), content != "usage", "{content}: {all}");
        assert!(all.contains("harbor"), "{content}: the project stays: {all}");
    }
}

#[test]
fn unmasked_sessions_stay_unless_told_twice() {
    let env = machine("pier", "mira", "include = ['**']\ncontent = 'full'");
    env.log("a").cwd("/code").user("Moor.").write();
    env.run(["ingest", "--quiet", "--no-redact", "logs"]).ok();
    let lake = env.path("lake");
    let place = lake.to_string_lossy();
    env.run(["push", &place]).fails(1).says(["--no-redact", "--unredacted"]);
    env.run(["push", "--unredacted", &place]).fails(1);
    assert!(content_objects(&lake).is_empty());
    env.append(SETTINGS, "\nunredacted = true\n");
    env.run(["push", &place]).fails(1);
    assert!(content_objects(&lake).is_empty());
    env.run(["push", "--unredacted", &place]).ok();
    assert_eq!(content_objects(&lake).len(), 3);
}

#[test]
fn hostile_objects_cost_only_their_session() {
    let (env, lake) = pier_with(&["one", "two", "three"]);
    let written = objects(&lake);
    let damaged = |part: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let is_it = |key: &&PathBuf| key.to_string_lossy().contains(part);
        let key = written.keys().find(is_it).expect("the object");
        env.write(lake.join(key), change(written[key].clone()));
        let server = machine("server", "team", "");
        let pulled = pull(&server, &lake);
        env.write(lake.join(key), &written[key]);
        (server, pulled)
    };
    for part in ["/one~", "v1/sessions/p_provider=generic/two~"] {
        let (server, pulled) = damaged(part, &|mut bytes| {
            bytes[20] ^= 1;
            bytes
        });
        assert_eq!(pulled["imported"], 2, "{pulled}");
        assert_eq!(pulled["problems"].list().len(), 1);
        // Once the object is whole, the session comes.
        pull(&server, &lake).has(json!({"imported": 1}));
        assert_sessions(&server, 3);
    }
    let (server, pulled) = damaged("v1/machines", &|bytes| {
        let text = String::from_utf8(bytes).expect("JSON");
        text.replace("v1/sessions/", "v1/../../sessions/").into()
    });
    assert_eq!(pulled["imported"], 0, "{pulled}");
    pulled["problems"][0].shows("not valid");
    pull(&server, &lake).has(json!({"imported": 3}));
    // A listing that cannot be read removes nothing.
    env.write(listing_of(&lake), "{");
    pull(&server, &lake).has(json!({"removed": 0}));
    assert_sessions(&server, 3);
}

/// A server goes on importing what comes, and what is no longer published goes.
#[test]
fn a_watching_pull_follows_the_lake() {
    let (env, lake) = pier_with(&["one"]);
    let server = machine("server", "team", "");
    let args = ["pull", &lake.to_string_lossy(), "--watch", "--every", "1"];
    let mut watcher = server.cli(args).start();
    let wait_for = |wanted: &[&str]| {
        until(|| {
            let sql = "SELECT native_id FROM sessions ORDER BY native_id";
            let found = server.run(["query", "--quiet", "--output", "csv", sql]);
            found.stdout.lines().skip(1).eq(wanted.iter().copied())
        });
    };
    wait_for(&["one"]);
    ingest_log(&env, "two", "/code/harbor", "Moor boat two.");
    push(&env, &lake);
    wait_for(&["one", "two"]);
    env.run(["forget", "one", "--yes"]).ok();
    push(&env, &lake);
    wait_for(&["two"]);
    assert!(watcher.0.try_wait().expect("waits").is_none(), "it goes on");
}

/// Number of kills of each command; a release is tested with five times as many
/// (`SESSIONS_TEST_ROUNDS=500`).
pub(crate) const KILLS: usize = 4;

#[test]
fn a_killed_push_is_continued_and_readers_see_none_of_it() {
    let env = laptop("pier", "mira");
    let calm = env.path("calm");
    let start = Instant::now();
    push(&env, &calm);
    let whole = start.elapsed();
    let want = objects(&calm);
    let mut random = Random(11);
    let mut killed = 0;
    let kills = rounds(KILLS);
    for number in 0..20 * kills {
        let lake = env.path(format!("lake{number}"));
        if killed == kills
            || !env.cli(["push", &lake.to_string_lossy()]).kill_within(whole, &mut random)
        {
            continue;
        }
        killed += 1;
        let has_listing = objects(&lake).keys().any(|key| key.starts_with("v1/machines"));
        if !has_listing {
            pull(&machine("server", "team", ""), &lake).has(json!({"imported": 0}));
        }
        push(&env, &lake);
        let mut found = objects(&lake);
        // What was never moved to its place is removed after a day.
        found.retain(|key, _| !key.starts_with("v1/unfinished"));
        assert_eq!(found, want, "after {killed} kills");
    }
    assert_eq!(killed, kills, "the push is too quick to be killed");
}

#[test]
fn a_killed_pull_is_continued() {
    let env = laptop("pier", "mira");
    let lake = env.path("lake");
    push(&env, &lake);
    let calm = machine("server", "team", "");
    let start = Instant::now();
    pull(&calm, &lake);
    let whole = start.elapsed();
    let want = content(&calm);
    let place = lake.to_string_lossy();
    let mut random = Random(13);
    let mut killed = 0;
    let kills = rounds(KILLS);
    for _ in 0..20 * kills {
        let server = machine("server", "team", "");
        if killed < kills && server.cli(["pull", &place]).kill_within(whole, &mut random) {
            killed += 1;
            server.run(["pull", &place]).ok();
            compare(&want, &content(&server), killed);
        }
    }
    assert_eq!(killed, kills, "the pull is too quick to be killed");
}

#[test]
fn what_damage_took_of_a_pull_comes_back_with_the_next_one() {
    let (_pier, lake) = pier_with(&["one", "two"]);
    let server = machine("server", "team", "");
    pull(&server, &lake).has(json!({"imported": 2}));
    let is_index = |path: &PathBuf| path.ends_with("skip.idx");
    let files: Vec<PathBuf> =
        contents_below(&server.store()).into_keys().filter(is_index).collect();
    server.write(server.store().join(&files[0]), "damaged");
    let _ = server.run(["ingest", "--verify", "--quiet"]);
    assert_eq!(server.json(["list"])["data"]["sessions"].list().len(), 0);
    pull(&server, &lake).has(json!({"imported": 2, "problems": []}));
    assert_eq!(server.json(["list"])["data"]["sessions"].list().len(), 2);
    server.write("empty/.keep", "");
    server.run(["ingest", "--quiet", "empty"]).ok();
    assert_eq!(server.json(["list"])["warnings"], Value::Null);
}
