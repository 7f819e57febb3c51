//! `push` and `pull`: machines are homes with stores of their own, which share a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crash::{compare, content};
use crate::env::{Ran, Random, TestEnv, samples};
use crate::rounds::rounds;

/// A machine with its settings.
pub(crate) fn machine(name: &str, user: &str, publish: &str) -> TestEnv {
    let env = TestEnv::new();
    let settings = env.path(".config/sessions");
    fs::create_dir_all(&settings).expect("creates");
    let text = format!("[identity]\nmachine = '{name}'\nuser = '{user}'\n[publish]\n{publish}\n");
    fs::write(settings.join("settings.toml"), text).expect("writes");
    env
}

/// A machine that publishes all projects, with the sample sessions.
pub(crate) fn laptop(name: &str, user: &str) -> TestEnv {
    let env = machine(name, user, "include = ['**']\ncontent = 'full'");
    env.run(&["ingest", "--quiet", &samples().to_string_lossy()]).ok();
    env
}

/// A session of a generic log. `prompt` is its only prompt.
pub(crate) fn ingest_log(env: &TestEnv, id: &str, cwd: &str, prompt: &str) {
    let log = env.path(&format!("{id}.jsonl"));
    let head = json!({ "format": "sessions", "version": 1, "session_id": id, "cwd": cwd });
    let event = json!({ "type": "user", "timestamp": "2026-10-29T06:00:00Z", "text": prompt });
    fs::write(&log, format!("{head}\n{event}\n")).expect("writes");
    env.run(&["ingest", "--quiet", &log.to_string_lossy()]).ok();
}

pub(crate) fn push(env: &TestEnv, lake: &Path) -> Value {
    env.json(&["push", &lake.to_string_lossy()])
}

pub(crate) fn pull(env: &TestEnv, lake: &Path) -> Value {
    env.json(&["pull", &lake.to_string_lossy()])
}

/// The objects of a lake.
pub(crate) fn objects(lake: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![lake.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                let key = entry.path().strip_prefix(lake).expect("below").to_owned();
                found.insert(key, fs::read(entry.path()).expect("reads"));
            }
        }
    }
    found
}

/// The objects without the listings of machines.
pub(crate) fn content_objects(lake: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = objects(lake);
    found.retain(|key, _| !key.starts_with("v1/machines"));
    found
}

pub(crate) fn count(env: &TestEnv, sql: &str) -> i64 {
    env.rows(sql)[0][0].as_i64().expect("a number")
}

#[test]
fn a_second_push_writes_nothing_with_two_requests() {
    let env = laptop("pier", "mira");
    let lake = env.path("lake");
    let first = push(&env, &lake);
    assert!(first["objects"].as_u64() > Some(10), "{first}");
    let written = objects(&lake);
    let keys: Vec<_> = written.keys().map(|key| key.to_string_lossy().into_owned()).collect();
    assert!(keys.iter().any(|key| key.starts_with("v1/events/p_provider=claude/p_date=")));
    let events: Vec<_> = keys.iter().filter(|key| key.starts_with("v1/events")).collect();
    for key in events.iter().filter(|key| key.ends_with(".parquet")) {
        assert!(keys.contains(&key.replace(".parquet", ".skip")), "{key} has no index");
    }
    let second = push(&env, &lake);
    assert_eq!((&second["objects"], &second["published"]), (&json!(0), &json!([])), "{second}");
    assert!(second["requests"].as_u64() <= Some(2), "{second}");
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
    assert_eq!(grown["published"].as_array().map(Vec::len), Some(1), "{grown}");
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
    assert_eq!(push(&env, &lake)["objects"], 0);
    assert!(objects(&lake).is_empty());

    let env = machine("pier", "mira", "include = ['/code/**']\nexclude = ['/code/secret']");
    ingest_log(&env, "a", "/code/harbor", "Moor the boat.");
    ingest_log(&env, "b", "/code/secret/x", "Hide the boat.");
    ingest_log(&env, "c", "/elsewhere", "Sink the boat.");
    let dry = env.json(&["push", "--dry-run", &lake.to_string_lossy()]);
    assert_eq!(dry["published"].as_array().map(Vec::len), Some(1), "{dry}");
    assert!(dry["bytes"].as_u64() > Some(0) && objects(&lake).is_empty());
    assert_eq!(push(&env, &lake)["published"].as_array().map(Vec::len), Some(1));
    let names = objects(&lake);
    assert!(names.keys().any(|key| key.to_string_lossy().contains("/a~")), "{:?}", names.keys());

    // A project that is excluded later leaves the lake.
    let settings = env.path(".config/sessions/settings.toml");
    let text = fs::read_to_string(&settings).expect("reads").replace("/code/secret", "/code");
    fs::write(&settings, text).expect("writes");
    let withdrawn = push(&env, &lake);
    assert_eq!(withdrawn["removed"].as_array().map(Vec::len), Some(1), "{withdrawn}");
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
    assert_eq!(pushed["objects"], 0, "{pushed}");
    assert!(pushed["held_by_others"].as_u64() > Some(10), "{pushed}");
    assert_eq!(content_objects(&lake), before);
    let again = push(&second, &lake);
    assert!(again["requests"].as_u64() <= Some(2), "{again}");
    // Neither imports what it has itself.
    assert_eq!(pull(&second, &lake)["imported"], 0);

    let server = machine("server", "team", "");
    let pulled = pull(&server, &lake);
    assert_eq!(pulled["problems"], json!([]), "{pulled}");
    assert_eq!(
        count(&server, "SELECT count(DISTINCT machine) FROM sessions"),
        1,
        "each session is there once"
    );
    // When the first machine withdraws, the second one publishes.
    let settings = first.path(".config/sessions/settings.toml");
    let text = fs::read_to_string(&settings).expect("reads").replace("'**'", "");
    fs::write(&settings, text).expect("writes");
    push(&first, &lake);
    let taken = push(&second, &lake);
    assert_eq!(taken["held_by_others"], 0, "{taken}");
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
    let pulled = pull(&server, &lake);
    assert_eq!(pulled["problems"], json!([]), "{pulled}");
    assert_eq!(pulled["machines"], 2);
    let again = pull(&server, &lake);
    assert_eq!((&again["imported"], &again["requests"]), (&json!(0), &json!(1)), "{again}");

    // Rows are those of the machine, by session and in all.
    let of_pier = "SELECT count(*), sum(text_bytes), count(tool_name), sum(input_tokens) FILTER (NOT is_replay) FROM events";
    let on_pier = pier.rows(of_pier);
    let here = server.rows(&format!(
        "{of_pier} WHERE session_id IN (SELECT session_id FROM sessions WHERE machine = 'pier')"
    ));
    let published = count(
        &pier,
        "SELECT count(*) FROM events JOIN sessions USING (session_id) WHERE cwd IS NOT NULL",
    );
    assert_eq!(here[0][0].as_i64(), Some(published), "{on_pier:?} {here:?}");

    let found = server.json(&["search", "zanzibar user:tom machine:quay"]);
    assert_eq!(found["metadata"]["results_returned"], 1, "{found}");
    let id = found["data"]["matches"][0]["event_id"].as_str().expect("an id").to_owned();
    let event = server.json(&["event", &id]);
    assert!(
        event["data"]["events"][0]["text"].as_str().is_some_and(|text| text.contains("Dredge"))
    );
    let listed = server.json(&["list", "--user", "tom"]);
    assert_eq!(listed["data"]["sessions"][0]["machine"], "quay", "{listed}");
    let session = listed["data"]["sessions"][0]["session_id"].as_str().expect("an id").to_owned();
    assert!(server.json(&["show", &session])["data"].is_object());
    let stats = server.json(&["stats", "--by", "user"]);
    assert_eq!(stats["data"]["groups"].as_array().map(Vec::len), Some(3), "{stats}");
    assert!(server.json(&["find", "zanzibar channel"])["data"].to_string().contains("dredge"));
    // What was imported is not published again.
    let text = "[publish]\ninclude = ['**']\n[identity]\nmachine = 'server'\nuser = 'team'\n";
    fs::write(server.path(".config/sessions/settings.toml"), text).expect("writes");
    assert_eq!(push(&server, &lake)["published"].as_array().map(Vec::len), Some(1));
}

#[test]
fn pull_takes_what_its_filters_select() {
    let pier = machine("pier", "mira", "include = ['**']");
    ingest_log(&pier, "moor", "/code/harbor", "Moor the boat.");
    let quay = machine("quay", "tom", "include = ['**']");
    ingest_log(&quay, "dredge", "/code/channel", "Dredge the channel.");
    let lake = pier.path("lake");
    push(&pier, &lake);
    push(&quay, &lake);
    let place = lake.to_string_lossy();
    for (flags, wanted) in [
        (["--user", "tom"], "channel"),
        (["--project", "harbor"], "harbor"),
        (["--since", "2027-01-01"], ""),
        (["--until", "2020-01-01"], ""),
    ] {
        let server = machine("server", "team", "");
        server.run(&["pull", flags[0], flags[1], &place]).ok();
        let rows = server.rows("SELECT project FROM sessions");
        let want: Vec<Vec<Value>> =
            [wanted].iter().filter(|one| !one.is_empty()).map(|one| vec![json!(one)]).collect();
        assert_eq!(rows, want, "{flags:?}");
        // A wider pull adds the others, and a narrower one removes nothing.
        pull(&server, &lake);
        assert_eq!(count(&server, "SELECT count(*) FROM sessions"), 2);
        server.run(&["pull", flags[0], flags[1], &place]).ok();
        assert_eq!(count(&server, "SELECT count(*) FROM sessions"), 2);
    }
}

#[test]
fn a_wider_time_of_the_same_day_imports_what_it_adds() {
    let pier = machine("pier", "mira", "include = ['**']");
    ingest_log(&pier, "moor", "/code/harbor", "Moor the boat.");
    let lake = pier.path("lake");
    push(&pier, &lake);
    let place = lake.to_string_lossy();
    for (flag, narrow, wide) in [
        ("--until", "2026-10-29T05:00:00Z", "2026-10-29T07:00:00Z"),
        ("--since", "2026-10-29T07:00:00Z", "2026-10-29T05:00:00Z"),
    ] {
        let server = machine("server", "team", "");
        for (time, sessions) in [(narrow, 0), (wide, 1), (narrow, 1), (wide, 1)] {
            server.run(&["pull", flag, time, &place]).ok();
            let rows = server.rows("SELECT session_id FROM sessions");
            assert_eq!(rows.len(), sessions, "{flag} {time}");
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
    assert_eq!(count(&server, "SELECT count(*) FROM sessions"), 2);

    pier.run(&["forget", "moor", "--yes"]).ok();
    let pushed = push(&pier, &lake);
    assert_eq!(pushed["removed"].as_array().map(Vec::len), Some(1), "{pushed}");
    let left = content_objects(&lake);
    let of_events = |key: &&PathBuf| key.to_string_lossy().contains("moor");
    assert_eq!(left.keys().filter(of_events).count(), 0, "{:?}", left.keys());
    assert_eq!(left.keys().filter(|key| key.starts_with("v1/tombstones")).count(), 1);
    assert!(push(&pier, &lake)["requests"].as_u64() <= Some(2));
    // The other machine has the same log, and does not publish it either.
    let honoured = push(&quay, &lake);
    assert_eq!((&honoured["objects"], &honoured["held_by_others"]), (&json!(0), &json!(0)));
    assert_eq!(content_objects(&lake), left);
    let pulled = pull(&server, &lake);
    assert_eq!(pulled["removed"], 1, "{pulled}");
    assert_eq!(server.rows("SELECT title FROM sessions"), [[json!("Stay here.")]]);

    // What a reader forgets does not come again.
    let id = server.rows("SELECT session_id FROM sessions")[0][0].as_str().expect("id").to_owned();
    server.run(&["forget", &id, "--yes"]).ok();
    assert_eq!(pull(&server, &lake)["imported"], 0);
    // `--undo` takes the tombstone back.
    pier.run(&["forget", "--undo", "moor"]).ok();
    pier.run(&["ingest", "--quiet", &pier.path("moor.jsonl").to_string_lossy()]).ok();
    assert_eq!(push(&pier, &lake)["published"].as_array().map(Vec::len), Some(1));
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
        assert_eq!(pull(&server, &lake)["imported"], 1);
        let all = format!(
            "{:?}{:?}",
            server.rows("SELECT * FROM sessions"),
            server.rows("SELECT * FROM events")
        );
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
    let publish = "include = ['**']\ncontent = 'full'";
    let env = machine("pier", "mira", publish);
    let log = env.path("a.jsonl");
    let head = json!({ "format": "sessions", "version": 1, "session_id": "a", "cwd": "/code" });
    let event = json!({ "type": "user", "timestamp": "2026-10-29T06:00:00Z", "text": "Moor." });
    fs::write(&log, format!("{head}\n{event}\n")).expect("writes");
    env.run(&["ingest", "--quiet", "--no-redact", &log.to_string_lossy()]).ok();
    let lake = env.path("lake");
    let place = lake.to_string_lossy();
    let refused = env.run(&["push", &place]).fails(1);
    assert!(refused.contains("--no-redact") && refused.contains("--unredacted"), "{refused}");
    env.run(&["push", "--unredacted", &place]).fails(1);
    assert!(content_objects(&lake).is_empty());
    let settings = env.path(".config/sessions/settings.toml");
    let text = fs::read_to_string(&settings).expect("reads") + "\nunredacted = true\n";
    fs::write(&settings, text).expect("writes");
    env.run(&["push", &place]).fails(1);
    assert!(content_objects(&lake).is_empty());
    env.run(&["push", "--unredacted", &place]).ok();
    assert_eq!(content_objects(&lake).len(), 3);
}

#[test]
fn hostile_objects_cost_only_their_session() {
    let env = machine("pier", "mira", "include = ['**']");
    for id in ["one", "two", "three"] {
        ingest_log(&env, id, "/code/harbor", &format!("Moor boat {id}."));
    }
    let lake = env.path("lake");
    push(&env, &lake);
    let written = objects(&lake);
    let damaged = |part: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let (key, bytes) = written
            .iter()
            .find(|(key, _)| key.to_string_lossy().contains(part))
            .expect("the object");
        let mut bytes = bytes.clone();
        change(&mut bytes);
        fs::write(lake.join(key), &bytes).expect("writes");
        let server = machine("server", "team", "");
        let pulled = pull(&server, &lake);
        fs::write(lake.join(key), &written[key]).expect("writes");
        (server, pulled)
    };
    for part in ["/one~", "v1/sessions/p_provider=generic/two~"] {
        let (server, pulled) = damaged(part, &|bytes| bytes[20] ^= 1);
        assert_eq!(pulled["imported"], 2, "{pulled}");
        assert_eq!(pulled["problems"].as_array().map(Vec::len), Some(1), "{pulled}");
        // Once the object is whole, the session comes.
        assert_eq!(pull(&server, &lake)["imported"], 1);
        assert_eq!(count(&server, "SELECT count(*) FROM sessions"), 3);
    }
    let (server, pulled) = damaged("v1/machines", &|bytes| {
        let text = String::from_utf8(bytes.clone()).expect("JSON");
        *bytes = text.replace("v1/sessions/", "v1/../../sessions/").into_bytes();
    });
    assert_eq!(pulled["imported"], 0, "{pulled}");
    assert!(pulled["problems"][0].as_str().is_some_and(|it| it.contains("not valid")), "{pulled}");
    assert_eq!(pull(&server, &lake)["imported"], 3);
    // A listing that cannot be read removes nothing.
    let key = written.keys().find(|key| key.starts_with("v1/machines")).expect("the listing");
    fs::write(lake.join(key), "{").expect("writes");
    assert_eq!(pull(&server, &lake)["removed"], 0);
    assert_eq!(count(&server, "SELECT count(*) FROM sessions"), 3);
}

/// A `pull --watch`, which ends with the test.
struct Watcher(Child);

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server goes on importing what comes, and what is no longer published goes.
#[test]
fn a_watching_pull_follows_the_lake() {
    let env = machine("pier", "mira", "include = ['**']");
    ingest_log(&env, "one", "/code/harbor", "Moor boat one.");
    let lake = env.path("lake");
    push(&env, &lake);
    let server = machine("server", "team", "");
    let args = ["pull", &lake.to_string_lossy(), "--watch", "--every", "1"];
    let mut command = server.command();
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let mut watcher = Watcher(command.spawn().expect("spawns"));
    let wait_for = |wanted: &[&str]| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let sql = "SELECT native_id FROM sessions ORDER BY native_id";
            let found = server.run(&["query", "--quiet", "--output", "csv", sql]);
            let ids: Vec<&str> = found.stdout.lines().skip(1).collect();
            if ids == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{ids:?}, not {wanted:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    wait_for(&["one"]);
    ingest_log(&env, "two", "/code/harbor", "Moor boat two.");
    push(&env, &lake);
    wait_for(&["one", "two"]);
    env.run(&["forget", "one", "--yes"]).ok();
    push(&env, &lake);
    wait_for(&["two"]);
    assert!(watcher.0.try_wait().expect("waits").is_none(), "it goes on");
}

/// Number of kills of each command; a release is tested with five times as many
/// (`SESSIONS_TEST_ROUNDS=500`).
pub(crate) const KILLS: usize = 4;

/// Runs a command of a machine, and kills it at an instant within `whole`. Returns whether it was killed.
pub(crate) fn run_killed(
    env: &TestEnv,
    args: &[&str],
    whole: Duration,
    random: &mut Random,
) -> bool {
    let mut command = env.command();
    command.args(args);
    kill_within(command, whole, random)
}

/// Runs a command, and kills it at an instant within `whole`. Returns whether it was killed.
pub(crate) fn kill_within(mut command: Command, whole: Duration, random: &mut Random) -> bool {
    let mut child = command.stdout(Stdio::null()).spawn().expect("spawns");
    std::thread::sleep(Duration::from_micros(random.below(whole.as_micros() as usize) as u64));
    let is_killed = child.try_wait().expect("waits").is_none();
    let _ = child.kill();
    let _ = child.wait();
    is_killed
}

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
    let mut lakes = 0;
    let kills = rounds(KILLS);
    while killed < kills {
        let lake = env.path(&format!("lake{lakes}"));
        lakes += 1;
        assert!(lakes < 20 * kills, "the push is too quick to be killed");
        if !run_killed(&env, &["push", &lake.to_string_lossy()], whole, &mut random) {
            continue;
        }
        killed += 1;
        let has_listing = objects(&lake).keys().any(|key| key.starts_with("v1/machines"));
        if !has_listing {
            let server = machine("server", "team", "");
            assert_eq!(pull(&server, &lake)["imported"], 0);
        }
        push(&env, &lake);
        let mut found = objects(&lake);
        // What was never moved to its place is removed after a day.
        found.retain(|key, _| !key.starts_with("v1/unfinished"));
        assert_eq!(found, want, "after {killed} kills");
    }
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
    let mut random = Random(13);
    let mut killed = 0;
    let mut tries = 0;
    let kills = rounds(KILLS);
    while killed < kills {
        tries += 1;
        assert!(tries < 20 * kills, "the pull is too quick to be killed");
        let server = machine("server", "team", "");
        if run_killed(&server, &["pull", &lake.to_string_lossy()], whole, &mut random) {
            killed += 1;
            let Ran { code, stdout, stderr } = server.run(&["pull", &lake.to_string_lossy()]);
            assert_eq!(code, 0, "{stdout}{stderr}");
            compare(&want, &content(&server), killed);
        }
    }
}
