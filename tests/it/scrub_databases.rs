//! `sessions secrets --scrub` for sessions in the databases of agents.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::{Value, json};

use crate::checks::{Checks as _, JsonChecks as _};
use crate::env::{Random, TestEnv, make_old, samples};
use crate::restore::{DATABASES, rows_of};
use crate::scrub::{MASK, content, scrub, token, walk};

/// Copies a sample to its place, with the token in the texts of its sessions.
fn write_database(env: &TestEnv, sample: &str, name: &str) -> PathBuf {
    let place = env.path("home").join(name);
    fs::create_dir_all(place.parent().expect("a folder")).expect("creates");
    fs::copy(samples().join(sample), &place).expect("copies");
    let database = Connection::open(&place).expect("opens");
    // So that the token is in rows only, and not in what earlier versions of them left in the file.
    database.execute_batch("PRAGMA secure_delete = ON").expect("sets");
    for (table, column, row, cell) in cells(&database) {
        let Some(text) = legible(&cell) else { continue };
        let mut leaking = text.clone();
        for key in ["text", "Text", "content"] {
            for start in [format!("\"{key}\":\""), format!("\"{key}\": \"")] {
                leaking = leaking.replacen(&start, &format!("{start}{} ", token()), 1);
            }
        }
        if leaking == text {
            continue;
        }
        let leaking = match cell {
            Cell::Text(_) => Cell::Text(leaking),
            Cell::Blob(bytes) if bytes == text.as_bytes() => Cell::Blob(leaking.into_bytes()),
            Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Blob(_) => {
                Cell::Blob(zstd::encode_all(leaking.as_bytes(), 1).expect("packs"))
            }
        };
        let sql = format!("UPDATE \"{table}\" SET \"{column}\" = ?1 WHERE rowid = ?2");
        database.execute(&sql, (leaking, row)).expect("changes");
    }
    database.close().expect("closes");
    make_old(&place);
    place
}

/// The cells of a database: table, column, number of the row and value.
fn cells(database: &Connection) -> Vec<(String, String, i64, Cell)> {
    let names = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.rootpage > 0 AND t.name NOT LIKE 'search%'";
    let mut names = database.prepare(names).expect("prepares");
    let names = names.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("lists");
    let names: Vec<(String, String)> = names.map(|name| name.expect("names")).collect();
    let mut cells = Vec::new();
    for (table, column) in names {
        let sql = format!("SELECT rowid, \"{column}\" FROM \"{table}\"");
        let mut rows = database.prepare(&sql).expect("prepares");
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("reads");
        for row in rows {
            let (row, cell) = row.expect("a row");
            cells.push((table.clone(), column.clone(), row, cell));
        }
    }
    cells
}

/// The text of a cell, unpacked.
fn legible(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text.clone()),
        Cell::Blob(bytes) => String::from_utf8(bytes.clone()).ok().or_else(|| {
            zstd::decode_all(&**bytes).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        }),
        Cell::Null | Cell::Integer(_) | Cell::Real(_) => None,
    }
}

/// Whether the files of a database have the token: any byte of them, or a packed cell.
fn leaks(place: &Path) -> bool {
    let has_token = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&token());
    let files = ["", "-wal", "-journal", "-shm"].map(|end| format!("{}{end}", place.display()));
    let is_in_files = files.iter().any(|file| fs::read(file).is_ok_and(|bytes| has_token(&bytes)));
    let database = Connection::open(place).expect("opens");
    is_in_files
        || cells(&database)
            .iter()
            .any(|cell| legible(&cell.3).is_some_and(|text| has_token(text.as_bytes())))
}

#[test]
fn secrets_go_from_every_database_and_come_back_from_the_backup() {
    for (sample, name, _) in DATABASES {
        let env = TestEnv::new();
        let place = write_database(&env, sample, name);
        env.ingest("home");
        let (before, rows) = (content(&env), rows_of(&place));
        let bytes = fs::read(&place).expect("reads");
        assert!(leaks(&place), "{name}");

        let preview = scrub(&env, &[], 1);
        preview.has(json!({ "is_done": false, "remaining": {}, "left_out": [] }));
        let places = preview["replaced"]["github_token"].as_i64().expect("a number");
        assert!(places > 0, "{name}");
        assert!(fs::read(&place).expect("reads") == bytes, "{name}: a preview changes nothing");
        assert!(!env.path("store/log-backup").exists());

        let done = scrub(&env, &["--yes"], 0);
        done.has(json!({
            "is_done": true, "replaced": { "github_token": places }, "remaining": {},
            "left_out": [], "backup": { "logs": 1, "bytes": bytes.len() },
        }));
        assert_eq!(done["logs"], preview["logs"], "{name}");
        assert!(!leaks(&place), "{name}");
        let masked: String = format!("{rows:?}").replace(&token(), MASK);
        if name != "threads/threads.db" {
            assert!(format!("{:?}", rows_of(&place)) == masked, "{name}: only masks change");
        }
        env.ingest("home");
        assert_eq!(content(&env), before, "{name}");
        env.run(["secrets"]).ok();
        make_old(&place);
        assert_eq!(scrub(&env, &["--yes"], 0)["logs"], json!([]), "nothing is left to do");

        env.run(["secrets", "--restore-backup"]).ok().shows("Would put 1 log back");
        assert!(!leaks(&place), "{name}");
        env.run(["secrets", "--restore-backup", "--yes"]).ok().shows("Put 1 log back");
        assert!(rows_of(&place) == rows, "{name}: the backup comes back");
        env.ingest("home");
        assert_eq!(content(&env), before, "{name}");
        env.run(["secrets", "--forget-backup", "--yes"]).ok();
        assert!(!env.path("store/log-backup").exists());
    }
}

const OPENCODE: (&str, &str) = ("opencode/opencode.db", "opencode.db");

fn write_opencode(env: &TestEnv) -> PathBuf {
    write_database(env, OPENCODE.0, OPENCODE.1)
}

#[test]
fn a_database_in_use_stays_as_it_is() {
    let env = TestEnv::new();
    let place = write_opencode(&env);
    env.ingest("home");
    let rows = rows_of(&place);
    let stays = |word: &str| {
        for flags in [&[][..], &["--yes"]] {
            let done = scrub(&env, flags, 1);
            assert_eq!(done["logs"], json!([]), "{word}");
            done["left_out"][0]["reason"].shows(word);
        }
        assert!(!env.path("store/log-backup").exists());
        assert_eq!(rows_of(&place), rows);
    };
    #[cfg(target_os = "linux")]
    {
        let mut held = std::process::Command::new("sleep");
        let file = File::open(&place).expect("opens");
        let mut held = held.arg("60").stdin(Stdio::from(file)).spawn().expect("spawns");
        stays("a process has it open");
        held.kill().expect("ends");
        held.wait().expect("waits");
    }
    let now = std::time::SystemTime::now();
    {
        let file = File::options().write(true).open(&place).expect("opens");
        file.set_modified(now).expect("sets the time");
    }
    stays("changed within the last minute");
    make_old(&place);
    let wal = env.write("home/opencode.db-wal", "");
    stays("changed within the last minute");
    fs::remove_file(wal).expect("removes");
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON part BEGIN SELECT RAISE(ABORT, 'no'); END";
    Connection::open(&place).expect("opens").execute_batch(refuse).expect("changes");
    make_old(&place);
    let done = scrub(&env, &["--yes"], 1);
    // The other sessions of the database are scrubbed.
    assert!(!done["logs"].list().is_empty(), "{done}");
    done["left_out"][0]["reason"].shows("no");
    make_old(&place);

    // Nor is a backup put over what an agent wrote since.
    let write = "UPDATE session SET title = 'Moor the boat'";
    Connection::open(&place).expect("opens").execute_batch(write).expect("changes");
    make_old(&place);
    let rows = rows_of(&place);
    env.run(["secrets", "--restore-backup", "--yes"]).fails(1).shows("changed since");
    assert_eq!(rows_of(&place), rows);
}

/// Newer OpenCode has the parts of a session a second time. Other tables name no session.
#[test]
fn what_is_left_of_a_replaced_secret_is_named() {
    let env = TestEnv::new();
    let place = write_opencode(&env);
    let change = |sql: &str| {
        Connection::open(&place).and_then(|it| it.execute_batch(sql)).expect("changes");
        make_old(&place);
    };
    change(
        "PRAGMA secure_delete = ON;
        CREATE TABLE event_sequence (aggregate_id TEXT PRIMARY KEY, seq INTEGER);
        INSERT INTO event_sequence SELECT DISTINCT session_id, 1 FROM part;
        CREATE TABLE event (id TEXT PRIMARY KEY, aggregate_id TEXT, data TEXT);
        INSERT INTO event SELECT id, session_id, json_object('part', json(data)) FROM part",
    );
    change(&format!("CREATE TABLE draft (prompt); INSERT INTO draft VALUES ('a {}')", token()));
    let quoted =
        serde_json::to_string(&json!({ "note": format!("\"{}\"", token()) })).expect("JSON");
    let packed = zstd::encode_all(quoted.as_bytes(), 1).expect("packs");
    let database = Connection::open(&place).expect("opens");
    database.execute("INSERT INTO draft VALUES (?1)", [packed]).expect("changes");
    database.close().expect("closes");
    make_old(&place);
    env.ingest("home");

    let left = json!([{ "table": "draft", "column": "prompt", "cells": { "github_token": 2 } }]);
    scrub(&env, &[], 1).has(json!({ "left_cells": left }));
    scrub(&env, &["--yes"], 1).has(json!({ "left_out": [], "remaining": {}, "left_cells": left }));
    let rows = rows_of(&place);
    assert!(!format!("{:?}", rows["event"]).contains(&token()));
    assert!(format!("{:?}", rows["event"]).contains(MASK));
    make_old(&place);
    env.run(["secrets", "--restore-backup", "--yes"]).ok();
    make_old(&place);
    let shown = env.run(["secrets", "--scrub", "--no-refresh"]).fails(1);
    shown
        .lacks("ghp_a1")
        .shows("would be still in other cells")
        .shows("2 github_token in draft.prompt");
    env.ingest("home");
    change("DROP TABLE draft");
    env.ingest("home");
    make_old(&place);
    scrub(&env, &["--yes"], 0);
    assert!(!leaks(&place));
}

/// A killed agent left a write-ahead log, and its database has a search index and times that it sets itself.
#[test]
fn search_indexes_and_write_ahead_logs_keep_no_secret() {
    let env = TestEnv::new();
    let place = write_database(&env, "crush/crush.db", "source.db");
    let copy = env.path("home/crush.db");
    {
        let database = Connection::open(&place).expect("opens");
        let index = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
            CREATE VIRTUAL TABLE search USING fts5(parts, content='messages', content_rowid='rowid');
            INSERT INTO search(rowid, parts) SELECT rowid, parts FROM messages;
            CREATE TRIGGER found AFTER UPDATE ON messages BEGIN
                INSERT INTO search(search, rowid, parts) VALUES ('delete', old.rowid, old.parts);
                INSERT INTO search(rowid, parts) VALUES (new.rowid, new.parts); END;
            CREATE TRIGGER dated AFTER UPDATE OF parts ON messages BEGIN
                UPDATE messages SET updated_at = 7 WHERE id = new.id; END;";
        database.execute_batch(index).expect("changes");
        for end in ["", "-wal"] {
            let to = format!("{}{end}", copy.display());
            fs::copy(format!("{}{end}", place.display()), &to).expect("copies");
            make_old(Path::new(&to));
        }
    }
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", place.display()));
    }
    env.ingest("home");
    let before = content(&env);
    let times = "SELECT group_concat(updated_at) FROM messages";
    let find = |sql: &str| -> String {
        let database = Connection::open(&copy).expect("opens");
        database.query_row(sql, [], |row| row.get(0)).expect("reads")
    };
    let found = format!("SELECT count(*) || '' FROM search('{}')", &token()[4..]);
    scrub(&env, &["--yes"], 0);
    assert!(!leaks(&copy));
    assert_eq!(find(&found), "0");
    assert_eq!(find("SELECT (count(*) > 0) || '' FROM search('REDACTED')"), "1");
    let bytes = fs::read(&copy).expect("reads").to_ascii_lowercase();
    let word = token()[8..].to_ascii_lowercase();
    assert!(!String::from_utf8_lossy(&bytes).contains(&word), "words of the index go, too");
    assert!(!find(times).contains(",7"), "times stay");
    env.ingest("home");
    assert_eq!(content(&env), before);
    make_old(&copy);
    env.run(["secrets", "--restore-backup", "--yes"]).ok();
    assert!(find(&found) != "0" && leaks(&copy));
}

#[test]
fn a_kill_leaves_the_old_database_or_the_new_one() {
    let mut random = Random(11);
    for round in 0..8 {
        let env = TestEnv::new();
        let place = write_opencode(&env);
        env.ingest("home");
        let (before, rows) = (content(&env), rows_of(&place));
        let masked = format!("{rows:?}").replace(&token(), MASK);
        let time = Duration::from_millis(60 + round * 40 + random.below(60) as u64);
        env.cli(["secrets", "--scrub", "--yes", "--no-refresh"]).kill_after(time);
        let now = rows_of(&place);
        if now != rows {
            assert_eq!(format!("{now:?}"), masked);
            let backups = walk(&env.path("store/log-backup"));
            let is_kept = |file: &PathBuf| {
                file.extension().is_some_and(|end| end == "bak") && rows_of(file) == rows
            };
            assert!(backups.iter().any(is_kept), "round {round}");
        }
        env.ingest("home");
        assert_eq!(content(&env), before, "round {round}");
        make_old(&place);
        // The kill may leave a journal into which nothing was written yet.
        let journal = place.with_extension("db-journal");
        if journal.exists() {
            make_old(&journal);
        }
        let done: Value = scrub(&env, &["--yes"], 0);
        assert_eq!(format!("{:?}", rows_of(&place)), masked, "{done}");
    }
}
