//! Stores that are newer, damaged, full or out of reach: a clear message, the right exit code,
//! nothing lost that was there.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::checks::{Checks, JsonChecks};
use crate::env::{Ran, TestEnv, manifest_of, replace_manifest, samples};

fn count(env: &TestEnv) -> serde_json::Value {
    env.rows("SELECT count(*), count(DISTINCT session_id) FROM events").remove(0).into()
}

#[test]
fn a_newer_or_older_store_is_refused_and_left_alone() {
    let env = TestEnv::with_samples();
    let before = manifest_of(&env.store());
    for (other, says) in [(99, "Update sessions"), (1, "earlier")] {
        let mut changed = before.clone();
        changed["schema_version"] = other.into();
        replace_manifest(&env.store(), changed);
        let changed = manifest_of(&env.store());
        for args in [&["list"][..], &["ingest", "--quiet", &samples().to_string_lossy()]] {
            env.run(args).fails(3).says(other.to_string()).says(says);
        }
        assert_eq!(manifest_of(&env.store()), changed);
    }
}

#[test]
fn a_damaged_segment_is_set_aside_and_read_again() {
    let env = TestEnv::with_samples();
    let before = count(&env);
    let segments = fs::read_dir(env.store().join("segments")).expect("segments");
    let events = segments
        .map(|entry| entry.expect("entry").path().join("events.parquet"))
        .find(|path| path.exists())
        .expect("events");
    let mut bytes = fs::read(&events).expect("reads");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    env.write(&events, &bytes);
    env.run(["status"]).shows("DAMAGED");
    env.write(&events, &bytes[..middle]);
    env.run(["search", "budget"]).fails(3).says(["damaged", "sessions ingest"]);
    env.ingest(samples());
    assert_eq!(count(&env), before);
    assert!(env.store().join("damaged").is_dir());
}

#[test]
fn tables_of_later_versions_are_left_alone() {
    let env = TestEnv::with_samples();
    let before = count(&env);
    let mut changed = manifest_of(&env.store());
    let mut kept = Vec::new();
    for segment in changed["segments"].as_array_mut().expect("segments") {
        let folder = format!("segments/{:010}", segment["number"].as_i64().expect("a number"));
        let file = env.store().join(folder).join("tides.idx");
        env.write(&file, "tides");
        kept.push(file);
        let table = json!({ "table": "tides", "bytes": 5, "xxh3": "0" });
        segment["files"].as_array_mut().expect("files").push(table);
    }
    replace_manifest(&env.store(), changed);

    let status = env.json(["status"]);
    assert_eq!(status["warnings"].list().len(), 0);
    let log = env.path("moor.jsonl");
    let head = r#"{"format":"sessions","version":1,"session_id":"moor","cwd":"/code"}"#;
    let event = r#"{"type":"user","timestamp":"2026-10-29T06:00:00Z","text":"Moor."}"#;
    env.write(&log, format!("{head}\n{event}\n"));
    env.json(["ingest", "--verify", &log.to_string_lossy()]).has(json!({"segments_set_aside": 0}));
    assert_eq!(count(&env)[0].as_i64(), before[0].as_i64().map(|events| events + 1));
    let tables = manifest_of(&env.store()).to_string().matches("tides").count();
    assert!(tables > 0 && tables == kept.len(), "{tables} of {}", kept.len());
    assert!(kept.iter().all(|file| file.exists()));
}

/// The newest segment that has events.
fn newest_segment(env: &TestEnv) -> std::path::PathBuf {
    let segments = fs::read_dir(env.store().join("segments")).expect("segments");
    let folders = segments.map(|entry| entry.expect("entry").path());
    let newest = folders.filter(|folder| folder.join("events.parquet").exists()).max();
    newest.expect("a segment with events")
}

/// A store of two folders, each ingested on its own.
fn store_of_two_folders() -> (TestEnv, String, String) {
    let env = TestEnv::new();
    let [pi, codex] = ["pi", "codex"].map(|name| {
        let logs = env.path(name);
        crate::env::copy_folder(&samples().join(name), &logs);
        let logs = logs.to_string_lossy().into_owned();
        env.ingest(&logs);
        logs
    });
    (env, pi, codex)
}

#[test]
fn logs_outside_the_given_folders_are_read_again_after_damage() {
    let (env, pi, codex) = store_of_two_folders();
    let before = count(&env);
    for file in ["events.parquet", "rows.copy"] {
        fs::write(newest_segment(&env).join(file), "damaged").expect("writes");
        env.ingest(&pi).has(json!({"segments_set_aside": 1}));
        assert_eq!(count(&env), before, "{file}");
        let status = env.json(["status"]);
        assert_eq!(status["warnings"].list().len(), 0);
    }

    // Logs that are away, as on a disk that is not mounted, stay known as missing.
    fs::write(newest_segment(&env).join("events.parquet"), "damaged").expect("writes");
    fs::rename(&codex, env.path("away")).expect("moves");
    let report = env.ingest(&pi);
    report["notices"].to_string().shows("missing since");
    for args in [&["status"][..], &["list"], &["search", "retry"]] {
        let answer = env.json(args);
        answer["warnings"].to_string().shows("missing since");
    }
    fs::rename(env.path("away"), &codex).expect("moves");
    env.ingest(&pi);
    assert_eq!(count(&env), before);
    assert!(env.json(["list"])["warnings"].is_null(), "nothing is missing any more");
}

#[test]
fn a_segment_that_is_gone_is_read_again() {
    let (env, pi, _) = store_of_two_folders();
    let before = count(&env);
    fs::remove_dir_all(newest_segment(&env)).expect("removes");
    env.ingest(&pi);
    assert_eq!(count(&env), before);
    assert_eq!(env.json(["status"])["warnings"].to_string(), "[]");
}

/// The catalog is made again from the copies in the segments, also for logs that are gone.
#[test]
fn a_damaged_catalog_is_made_again() {
    let (env, pi, codex) = store_of_two_folders();
    let before = [count(&env), env.rows("SELECT * FROM sessions ORDER BY ALL").into()];
    fs::rename(&codex, env.path("away")).expect("moves");
    let catalog = env.store().join("catalog.db");
    let size = fs::metadata(&catalog).expect("found").len() as usize;
    for damaged in [vec![0; size], b"{".to_vec()] {
        env.write(&catalog, damaged);
        env.run(["list"]).fails(3).says("catalog.db is damaged");
        env.ingest(&pi).has(json!({"files_new": 0, "segments_set_aside": 0}));
        let after = [count(&env), env.rows("SELECT * FROM sessions ORDER BY ALL").into()];
        assert_eq!(after, before);
    }
}

/// A bit that fell over by itself: size and time of the file are those of the commit.
#[test]
fn verify_finds_what_size_and_time_do_not_tell() {
    let env = TestEnv::with_samples();
    let before = count(&env);
    let skip = fs::read_dir(env.store().join("segments")).expect("segments");
    let skip = skip
        .map(|entry| entry.expect("entry").path().join("skip.idx"))
        .find(|path| path.exists())
        .expect("an index");
    let modified = fs::metadata(&skip).and_then(|data| data.modified()).expect("time");
    let mut bytes = fs::read(&skip).expect("reads");
    *bytes.last_mut().expect("bytes") ^= 1;
    env.write(&skip, &bytes);
    let file = fs::File::options().write(true).open(&skip).expect("opens");
    file.set_modified(modified).expect("sets");
    env.json(["ingest", "--verify", &samples().to_string_lossy()]).has(json!({
        "segments_set_aside": 1,
    }));
    assert_eq!(count(&env), before);
}

#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing_that_was_there() {
    let env = TestEnv::new();
    let claude = samples().join("claude");
    env.ingest(&claude);
    let before = count(&env);
    // Writes beyond 8 KiB a file fail, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" ingest --quiet \"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_sessions")]).arg(samples());
    shell.env("SESSIONS_STORE", env.store()).env("HOME", env.root.path());
    Ran::from(shell.output().expect("runs"))
        .fails(3)
        .says(["store", "Nothing that was committed is lost"]);
    assert_eq!(count(&env), before);
    env.ingest(samples());
    let fresh = TestEnv::with_samples();
    assert_eq!(count(&env), count(&fresh));
}

#[test]
fn a_store_that_cannot_be_made_is_said() {
    let env = TestEnv::new();
    fs::write(env.store(), "a file where the store should be").expect("writes");
    env.run(["ingest", "--quiet", &samples().to_string_lossy()]).fails(3).says("store");
    env.run(["list"]).fails(3);
}

#[cfg(unix)]
#[test]
fn the_store_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::with_samples();
    let mut open = vec![env.store()];
    while let Some(path) = open.pop() {
        let mode = fs::metadata(&path).expect("metadata").permissions().mode() & 0o777;
        let want = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, want, "{}", path.display());
        if path.is_dir() {
            open.extend(
                fs::read_dir(&path).expect("lists").map(|entry| entry.expect("entry").path()),
            );
        }
    }
}

#[test]
fn only_one_writes_and_the_other_is_told() {
    let env = TestEnv::with_samples();
    let store = store::Store::new(env.store());
    let writer = store.open_writer(store::Verify::Some).expect("first");
    env.run(["ingest", "--quiet", &samples().to_string_lossy()])
        .fails(3)
        .says("Another process is writing");
    env.run(["search", "budget", "--quiet"]).ok();
    drop(writer);
    env.ingest(samples());
}
