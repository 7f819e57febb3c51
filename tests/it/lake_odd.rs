//! Objects of a lake that are not what they should be cost their session only, whatever they are, and the
//! next pull takes it. Writing to a lake while it is read disturbs no reader.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::crash::{compare, content};
use crate::env::{Random, TestEnv};
use crate::lake::{ingest_log, machine, objects, pier_with, pull, push};
use crate::rounds::rounds;

/// Rounds of pushes during a pull; each kills some.
const ROUNDS: usize = 12;
use crate::lake_compact::compact;

/// A way in which an object can be odd.
type Oddity = (&'static str, fn(&Path));

/// Ways that need no system of a certain kind.
const ODDITIES: [Oddity; 8] = [
    ("it is longer than its listing says", |path| {
        let bytes = fs::read(path).expect("reads");
        fs::write(path, [bytes, b"more".to_vec()].concat()).expect("writes");
    }),
    ("it has gigabytes of nothing", |path| {
        let file = fs::File::create(path).expect("creates");
        file.set_len(3 << 30).expect("grows");
    }),
    ("it was cut", |path| {
        let bytes = fs::read(path).expect("reads");
        fs::write(path, &bytes[..bytes.len() / 2]).expect("writes");
    }),
    ("it is empty", |path| fs::write(path, "").expect("writes")),
    ("it is another object", |path| {
        fs::write(path, b"PAR1 something else PAR1").expect("writes");
    }),
    ("it changed", |path| {
        let mut bytes = fs::read(path).expect("reads");
        bytes[20] ^= 1;
        fs::write(path, bytes).expect("writes");
    }),
    ("it vanished", |path| fs::remove_file(path).expect("removes")),
    ("it is a folder", |path| {
        fs::remove_file(path).expect("removes");
        fs::create_dir(path).expect("creates");
    }),
];

#[cfg(unix)]
const UNIX_ODDITIES: [Oddity; 3] = [
    ("it is a pipe", |path| {
        fs::remove_file(path).expect("removes");
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("runs");
        assert!(made.success());
    }),
    ("it leads to a device", |path| {
        fs::remove_file(path).expect("removes");
        std::os::unix::fs::symlink("/dev/zero", path).expect("links");
    }),
    ("it leads to a file", |path| {
        let other = path.with_extension("other");
        fs::rename(path, &other).expect("moves");
        std::os::unix::fs::symlink(other, path).expect("links");
    }),
];

#[cfg(not(unix))]
const UNIX_ODDITIES: [Oddity; 0] = [];

fn remove(path: &Path) {
    let found = fs::symlink_metadata(path);
    if found.as_ref().is_ok_and(fs::Metadata::is_dir) {
        fs::remove_dir_all(path).expect("removes");
    } else if found.is_ok() {
        fs::remove_file(path).expect("removes");
    }
}

fn find(objects: &BTreeMap<PathBuf, Vec<u8>>, start: &str, part: &str, end: &str) -> PathBuf {
    let is_it = |key: &&PathBuf| {
        let text = key.to_string_lossy();
        text.starts_with(start) && text.contains(part) && text.ends_with(end)
    };
    objects.keys().find(is_it).expect("the object").clone()
}

fn problems(report: &Value) -> Vec<String> {
    let problems = report["problems"].list();
    problems.iter().map(|one| one.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn an_odd_object_costs_its_session_until_it_is_whole_again() {
    let (env, lake) = pier_with(&["one", "two", "three"]);
    let written = objects(&lake);
    let events = find(&written, "v1/events", "/one~", ".parquet");
    let row = find(&written, "v1/sessions", "/two~", ".parquet");
    let index = find(&written, "v1/events", "/three~", ".skip");
    let listing = find(&written, "v1/machines", "", ".json");
    for (what, change) in ODDITIES.iter().chain(&UNIX_ODDITIES) {
        for (key, imported, named) in [(&events, 2, "one~"), (&row, 2, "two~"), (&index, 3, "")] {
            let path = lake.join(key);
            change(&path);
            let server = machine("server", "team", "");
            let pulled = pull(&server, &lake);
            assert_eq!(pulled["imported"], imported, "{key:?}: {what}: {pulled}");
            let found = problems(&pulled);
            assert_eq!(found.len(), 3 - imported, "{key:?}: {what}: {found:?}");
            assert!(
                found.iter().all(|one| one.contains(named) && one.contains("pier")),
                "{found:?}"
            );
            let code = server.run(["pull", &lake.to_string_lossy()]).code;
            assert_eq!(code, i32::from(imported < 3), "{key:?}: {what}");

            // A compaction leaves it out as well, and says so.
            let compacted = compact(&env, &lake);
            assert_eq!(problems(&compacted).len(), 3 - imported, "{key:?}: {what}: {compacted}");

            remove(&path);
            remove(&path.with_extension("other"));
            remove(&lake.join("v1/days"));
            env.write(&path, &written[key]);
            assert_eq!(pull(&server, &lake)["imported"], 3 - imported, "{key:?}: {what}");
        }
        // A listing that cannot be read takes nothing away; one that is not there does.
        let server = machine("server", "team", "");
        pull(&server, &lake);
        let path = lake.join(&listing);
        change(&path);
        let pulled = pull(&server, &lake);
        let is_gone = *what == "it vanished";
        assert_eq!(pulled["removed"], if is_gone { 3 } else { 0 }, "{what}: {pulled}");
        assert_eq!(problems(&pulled).len(), usize::from(!is_gone), "{what}: {pulled}");
        remove(&path);
        remove(&path.with_extension("other"));
        env.write(&path, &written[&listing]);
    }
}

#[test]
fn an_entry_of_a_listing_that_is_not_valid_costs_no_other_one() {
    let (env, lake) = pier_with(&["one", "two"]);
    let key = lake.join(find(&objects(&lake), "v1/machines", "", ".json"));
    let whole = env.read(&key);
    let listing: Value = serde_json::from_str(&whole).expect("JSON");
    let sessions = listing["sessions"].as_object().expect("sessions");
    let (id, entry) = sessions.iter().find(|(id, _)| id.starts_with("one~")).expect("one");
    let changes: [(&str, Value); 6] = [
        ("provider", json!("evil")),
        ("events", json!(-5)),
        ("objects", json!([])),
        ("objects", json!([{ "key": "/etc/passwd", "bytes": 1, "sha256": "00" }])),
        ("objects", json!("none")),
        ("log", json!("x".repeat(1 << 20))),
    ];
    for (field, value) in changes {
        let mut changed = listing.clone();
        let mut bad = entry.clone();
        bad[field] = value.clone();
        changed["sessions"][id] = bad;
        // What was imported before stays.
        let server = machine("server", "team", "");
        pull(&server, &lake);
        env.write(&key, changed.to_string());
        let pulled = pull(&server, &lake);
        assert_eq!(pulled["removed"], 0, "{field}: {pulled}");
        assert!(problems(&pulled)[0].contains(id), "{field}: {pulled}");
        let fresh = machine("server", "team", "");
        assert_eq!(pull(&fresh, &lake)["imported"], 1, "{field}");
        env.write(&key, &whole);
    }
}

/// Pushes that are killed and pushes that end, during pulls that all succeed.
#[test]
fn a_pull_during_pushes_always_succeeds() {
    let env = machine("pier", "mira", "include = ['**']");
    for id in ["a", "b", "c", "d"] {
        ingest_log(&env, id, "/code/harbor", &format!("Moor boat {id}."));
    }
    let lake = env.path("lake");
    let place = lake.to_string_lossy().into_owned();
    let start = Instant::now();
    push(&env, &lake);
    let whole = start.elapsed();
    let server = machine("server", "team", "");
    let mut random = Random(23);
    let rounds = rounds(ROUNDS);
    for round in 0..rounds {
        let id = ["a", "b", "c", "d"][round % 4];
        ingest_log(&env, id, "/code/harbor", &format!("Moor boat {id} again, {round}."));
        std::thread::scope(|scope| {
            let is_killed = round % 3 == 0;
            let push = env.cli(["push", &place]);
            let kill_after = Random(random.below(1 << 30) as u64 + 1);
            scope.spawn(move || {
                let mut random = kill_after;
                if is_killed {
                    push.kill_within(whole, &mut random);
                } else {
                    push.run().ok();
                }
            });
            for _ in 0..3 {
                let pulled = server.json(["pull", &place]);
                assert_eq!(pulled["problems"], json!([]), "round {round}: {pulled}");
            }
        });
    }
    push(&env, &lake);
    pull(&server, &lake);
    let fresh = machine("server", "team", "");
    pull(&fresh, &lake);
    compare(&content(&fresh), &content(&server), rounds);
}

#[test]
fn the_first_push_and_pull_of_a_store_may_run_at_once() {
    for _ in 0..5 {
        let env = machine("pier", "mira", "include = ['**']");
        ingest_log(&env, "moor", "/code/harbor", "Moor the boat.");
        let lake = env.path("lake");
        let place = lake.to_string_lossy().into_owned();
        std::thread::scope(|scope| {
            for command in ["push", "pull", "push", "pull", "push", "pull"] {
                let env = &env;
                let place = &place;
                scope.spawn(move || env.run([command, place]).ok());
            }
        });
        let listings = objects(&lake).into_keys().filter(|key| key.starts_with("v1/machines"));
        assert_eq!(listings.count(), 1, "the machine has one id");
        // The first one may have to tidy up behind the others.
        push(&env, &lake);
        assert!(push(&env, &lake)["requests"].as_u64() <= Some(2));
    }
}

#[cfg(unix)]
#[test]
fn a_lake_is_as_private_as_its_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let modes = |lake: &Path| {
        let mut found = std::collections::BTreeSet::new();
        let mut open = vec![lake.to_owned()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).expect("lists").flatten() {
                let metadata = entry.metadata().expect("metadata");
                found.insert((metadata.is_dir(), metadata.permissions().mode() & 0o7777));
                if metadata.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        found.into_iter().collect::<Vec<_>>()
    };
    let env = machine("pier", "mira", "include = ['**']");
    ingest_log(&env, "moor", "/code/harbor", "Moor the boat.");
    let created = env.path("created");
    push(&env, &created);
    assert_eq!(modes(&created), [(false, 0o600), (true, 0o700)]);
    assert_eq!(fs::metadata(&created).expect("there").permissions().mode() & 0o777, 0o700);
    for (mode, file, folder) in
        [(0o700, 0o600, 0o700), (0o750, 0o640, 0o750), (0o2770, 0o660, 0o2770)]
    {
        let lake = env.path(format!("lake-{mode:o}"));
        fs::create_dir(&lake).expect("creates");
        fs::set_permissions(&lake, fs::Permissions::from_mode(mode)).expect("sets the mode");
        push(&env, &lake);
        assert_eq!(modes(&lake), [(false, file), (true, folder)], "{mode:o}");
    }
}

/// What a machine cannot import of another one is as good as absent: a log that both have is then
/// published by the other.
#[test]
fn a_log_whose_objects_are_odd_is_published_by_another_machine() {
    let pier = machine("pier", "mira", "include = ['**']");
    let quay = machine("quay", "mira", "include = ['**']");
    let lake = pier.path("lake");
    let log = |env: &TestEnv, prompts: &[&str]| {
        prompts.iter().fold(env.log("moor").cwd("/code"), |log, prompt| log.user(prompt)).ingest();
    };
    log(&pier, &["Moor.", "Dock.", "Rest."]);
    push(&pier, &lake);
    let events = find(&objects(&lake), "v1/events", "/moor~", ".parquet");
    fs::write(lake.join(events), "broken").expect("writes");
    log(&quay, &["Moor.", "Dock."]);
    assert_eq!(push(&quay, &lake)["published"].list().len(), 1);
    let server = machine("server", "team", "");
    let pulled = pull(&server, &lake);
    assert_eq!((pulled["imported"].as_i64(), problems(&pulled).len()), (Some(1), 1));
    assert_eq!(server.rows("SELECT machine, events FROM sessions"), [[json!("quay"), json!(2)]]);
}
