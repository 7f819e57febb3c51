//! The store never harms the files of others, and never commits to a place that is not its own.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::checks::{Checks, JsonChecks};
use crate::env::{Ran, TestEnv, samples};

/// The id of a session of the samples.
fn first_session(env: &TestEnv) -> String {
    env.texts("SELECT min(session_id) FROM sessions").remove(0)
}

fn pi_logs() -> String {
    samples().join("pi").to_string_lossy().into_owned()
}

#[test]
fn a_folder_of_somebody_else_is_not_a_store() {
    for foreign in [
        "segments/my_audio/a.wav",
        "segments/0000000001/a.wav",
        // Names that the store uses too.
        "segments/0000000001/events.parquet",
        "segments/0000000001/skip.idx",
        "damaged/a.wav",
        "notes.txt",
        "src/x",
    ] {
        let env = TestEnv::new();
        let file = env.store().join(foreign);
        env.write(&file, "x");
        env.run(["ingest", "--quiet", &pi_logs()]).fails(3).says(["is not a store", "--store"]);
        assert_eq!(env.read(&file), "x");
        assert!(!env.store().join("write.lock").exists(), "nothing is written there");
    }
}

#[test]
fn what_others_put_into_a_store_stays() {
    let env = TestEnv::with_samples();
    let segments = env.store().join("segments");
    let foreign = ["my_audio/a.wav", "0000000099/a.wav", "0000000098/sub/b", "00000000000/c"];
    for file in foreign {
        env.write(segments.join(file), "x");
    }
    let orphan = segments.join("0000000097");
    env.write(orphan.join("events.parquet"), "half");
    env.ingest(pi_logs());
    for file in foreign {
        assert!(segments.join(file).exists(), "{file}");
    }
    assert!(!orphan.exists(), "a segment that no manifest names goes");
    env.run(["search", "error", "--quiet"]).ok();
}

#[cfg(unix)]
#[test]
fn links_in_a_store_are_not_followed() {
    use std::os::unix::fs::symlink;
    let env = TestEnv::with_samples();
    let theirs = env.path("theirs");
    env.write(theirs.join("0000000050/events.parquet"), "x");
    symlink(theirs.join("0000000050"), env.store().join("segments/0000000050")).expect("links");
    env.ingest(pi_logs());
    assert!(theirs.join("0000000050/events.parquet").exists());

    // A segment of ours that is now behind a link, in part or as a whole, is read again.
    let before = env.rows("SELECT count(*) FROM events");
    for linked in ["", "rows.copy"] {
        let segments = names_in(&env.store().join("segments"));
        let live = segments.iter().filter(|name| **name != "0000000050").max();
        let place = env.store().join("segments").join(live.expect("a segment")).join(linked);
        let place = std::path::PathBuf::from(place.to_string_lossy().trim_end_matches('/'));
        let away = env.path(format!("away-{linked}"));
        fs::rename(&place, &away).expect("moves");
        symlink(&away, &place).expect("links");
        let said = env.run(["list"]).stderr;
        said.shows("damaged");
        env.ingest(samples()).has(json!({"segments_set_aside": 1}));
        assert_eq!(env.rows("SELECT count(*) FROM events"), before);
        assert!(away.exists(), "what the link leads to stays");
    }

    let target = env.path("target");
    env.write(&target, "precious");
    for lock in ["write.lock", "labels.lock"] {
        let path = env.store().join(lock);
        let _ = fs::remove_file(&path);
        symlink(&target, &path).expect("links");
    }
    let message = env.run(["ingest", "--quiet", &pi_logs()]).error(3);
    message.shows(["write.lock", "regular file"]);
    let session = first_session(&env);
    env.run(["label", &session, "--add", "x"]).fails(3).says("labels.lock");
    assert_eq!(env.read(&target), "precious");
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("sets");
}

#[cfg(unix)]
fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("found").permissions().mode() & 0o777
}

/// A folder or file of each kind in the store, with the mode that it should have.
#[cfg(unix)]
fn places(env: &TestEnv) -> Vec<(std::path::PathBuf, u32)> {
    let segment = fs::read_dir(env.store().join("segments")).expect("lists").next();
    let segment = segment.expect("a segment").expect("an entry").path();
    vec![
        (env.store(), 0o700),
        (env.store().join("segments"), 0o700),
        (segment.clone(), 0o700),
        (segment.join("rows.copy"), 0o600),
        (env.store().join("catalog.db"), 0o600),
    ]
}

#[cfg(unix)]
#[test]
fn a_store_that_others_can_write_is_reported_and_made_private() {
    let env = TestEnv::with_samples();
    for (place, private) in places(&env) {
        for (mode, is_reported) in [(0o777, true), (0o720, true), (0o755, false), (private, false)]
        {
            set_mode(&place, mode);
            let report = env.ingest(pi_logs());
            let notices = report["notices"].to_string();
            assert_eq!(
                notices.contains("Other users were able to write to"),
                is_reported,
                "{} {mode:o} {report}",
                place.display()
            );
            assert_eq!(mode_of(&place), private, "{} {mode:o}", place.display());
        }
    }
}

/// Commands that only read say it and change nothing; commands that write make it private.
#[cfg(unix)]
#[test]
fn every_command_says_that_others_can_write_to_the_store() {
    let env = TestEnv::with_samples();
    let session = first_session(&env);
    let export = env.path("export.jsonl").to_string_lossy().into_owned();
    fs::create_dir_all(env.path("empty")).expect("creates");
    let logs = env.path("empty").to_string_lossy().into_owned();
    for (place, private) in places(&env) {
        set_mode(&place, 0o777);
        for args in [
            &["status"][..],
            &["doctor"],
            &["list"],
            &["search", "retry"],
            &["show", &session],
            &["stats", "--by", "tool"],
            &["usage"],
            &["analyze", &session],
            &["query", "SELECT count(*) FROM sessions"],
            &["export", "--format", "jsonl", "-o", &export, "--force"],
            &["report", "-o", "-"],
            &["forget", &session],
            &["compact", "--dry-run"],
        ] {
            let ran = env.run(args).exits(0);
            (ran.stdout + &ran.stderr).shows("Other users can write to the store");
            assert_eq!(mode_of(&place), 0o777, "{args:?}");
        }
        for args in [&["label", &session, "--add", "x"][..], &["ingest", "--dry-run", &logs]] {
            set_mode(&place, 0o777);
            let ran = env.run(args);
            (ran.stdout + &ran.stderr).shows("Other users");
            assert_eq!(mode_of(&place), private, "{args:?}: {}", place.display());
        }
        env.run(["list"]).lacks("Other users");
    }
}

/// Starts an ingest that takes a while, and waits until its first segment is being written.
fn start_ingest(env: &TestEnv, logs: &Path) -> Child {
    let mut command = env.command();
    command.args(["ingest", "--json"]).arg(logs);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("starts");
    let segments = env.store().join("segments");
    let until = Instant::now() + Duration::from_secs(20);
    while fs::read_dir(&segments).map_or(0, |entries| entries.count()) == 0 {
        assert!(Instant::now() < until, "no segment was begun");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Logs that take an ingest long enough to be disturbed: 30 MB of prompts.
fn large_logs(env: &TestEnv) -> std::path::PathBuf {
    let logs = env.path("logs");
    let text = "what became of the retry budget in the scheduler ".repeat(20);
    for session in 0..30 {
        let lines: String =
            (0..1000).map(|number| crate::work::prompt(session, number, &text)).collect();
        crate::work::append(&logs, session, &lines);
    }
    logs
}

#[cfg(unix)]
#[test]
fn an_ingest_does_not_report_success_when_its_store_went_away() {
    let env = TestEnv::new();
    let logs = large_logs(&env);
    let other = TestEnv::with_samples();
    for replace in ["moved", "removed", "replaced", "segments"] {
        let _ = fs::remove_dir_all(env.store());
        let child = start_ingest(&env, &logs);
        match replace {
            "removed" => {
                // Files may be added while it goes.
                while fs::remove_dir_all(env.store()).is_err() {}
            }
            "segments" => {
                let segments = env.store().join("segments");
                fs::rename(&segments, env.path("segments-gone")).expect("moves");
                fs::create_dir(&segments).expect("creates");
            }
            _ => fs::rename(env.store(), env.path(format!("gone-{replace}"))).expect("moves"),
        }
        if replace == "replaced" {
            crate::env::copy_folder(&other.store(), &env.store());
        }
        let ran = Ran::from(child.wait_with_output().expect("ends")).fails(3);
        (ran.stdout + &ran.stderr).shows("moved, removed or replaced");
        if replace == "replaced" {
            let same = |name: &str| {
                fs::read(other.store().join(name)).expect("reads")
                    == fs::read(env.store().join(name)).expect("reads")
            };
            assert!(same("catalog.db"), "the catalog of another store");
            env.run(["ingest", "--verify", "--quiet", &pi_logs()]).ok();
            assert_eq!(
                env.rows("SELECT count(*) FROM events"),
                other.rows("SELECT count(*) FROM events")
            );
            // Both stores have a segment 1; only what its manifest lists stays in the moved one.
            let moved = env.path("gone-replaced");
            let manifest = crate::env::manifest_of(&moved).to_string();
            for name in names_in(&moved.join("segments")) {
                let number: i64 = name.parse().expect("a number");
                manifest.shows(format!("\"number\":{number},"));
            }
        } else if replace != "segments" {
            assert!(!env.store().exists(), "{replace}: the store came into being again");
        }
    }
    // What was committed before the move is a store as ever.
    env.run(["status", "--store", &env.path("gone-moved").to_string_lossy()]).ok();
}

#[test]
fn a_segment_whose_files_were_touched_is_not_committed() {
    let env = TestEnv::new();
    let logs = large_logs(&env);
    let child = start_ingest(&env, &logs);
    let segments = env.store().join("segments");
    let until = Instant::now() + Duration::from_secs(20);
    let events = loop {
        let mut folders = fs::read_dir(&segments).expect("lists").flatten();
        let found = folders.find_map(|folder| {
            let events = folder.path().join("events.parquet");
            events.exists().then_some(events)
        });
        if let Some(events) = found {
            break events;
        }
        assert!(Instant::now() < until, "no events were written");
        std::thread::sleep(Duration::from_millis(1));
    };
    env.remove(&events);
    let ran = Ran::from(child.wait_with_output().expect("ends")).fails(3);
    (ran.stdout + &ran.stderr).shows(["changed by another program", "it is gone"]);
    assert!(!events.parent().expect("a folder").exists(), "the rest of the segment goes");
    env.ingest(&logs);
    assert_eq!(env.rows("SELECT count(*) FROM events")[0][0], 30_000);
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("lists");
    entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_half_written_segment() {
    let env = TestEnv::with_samples();
    let before = names_in(&env.store().join("segments"));
    let logs = large_logs(&env);
    // Writes beyond 8 KiB a file fail, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" ingest --quiet \"$1\"";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_sessions")]).arg(&logs);
    shell.env("SESSIONS_STORE", env.store()).env("HOME", env.root.path());
    Ran::from(shell.output().expect("runs")).fails(3);
    assert_eq!(names_in(&env.store().join("segments")), before);
}

#[test]
fn temporary_files_of_killed_runs_go_with_the_next_one() {
    let env = TestEnv::with_samples();
    let session = first_session(&env);
    let of_killed = [".catalog.db.tmp-a1B2c3", ".labels.json.tmp-a1B2c3", ".http-token.tmp-a1B2c3"];
    for name in of_killed.iter().chain(&["mine.tmp"]) {
        env.write(env.store().join(name), "half");
    }
    let old = fs::File::options()
        .write(true)
        .open(env.store().join(".http-token.tmp-a1B2c3"))
        .expect("opens");
    let an_hour = Duration::from_secs(3600);
    old.set_modified(std::time::SystemTime::now() - an_hour).expect("sets");
    env.ingest(pi_logs());
    env.run(["label", &session, "--add", "x"]).ok();
    let left: Vec<_> =
        names_in(&env.store()).into_iter().filter(|name| name.contains("tmp")).collect();
    assert_eq!(left, ["mine.tmp"]);
}
