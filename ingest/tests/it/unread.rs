//! Logs that can be read only in part, or not now: nothing is left unread without a word, and what
//! cannot be reached does not count as gone.

use std::fs;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use schemas::problem::ProblemKind;
use schemas::session::SourceStatus;
use serde_json::{Value as Json, json};

use crate::memory::{Memory, copy_folder, samples};
use crate::rewritten::gemini;
use crate::traps::{texts, user, write};

/// What a log of `lines` gives when it is read while it has only the first of them, and then whole.
fn read_in_two(name: &str, lines: &[String]) -> (tempfile::TempDir, Memory) {
    let dir = tempfile::tempdir().expect("tempdir");
    let (path, memory) = (dir.path().join(name), Memory::default());
    write(&path, &lines[0], 1);
    memory.ingest(dir.path());
    write(&path, &lines.concat(), 2);
    memory.ingest(dir.path());
    (dir, memory)
}

fn chat(role: &str, content: &str) -> String {
    format!(r#"{{"role":"{role}","content":"{content}"}}"#) + "\n"
}

#[test]
fn a_log_that_is_no_longer_recognised_is_read_on_and_reported_once() {
    let other = r#"{"type":"tool_call","name":"git"}"#.to_owned() + "\n";
    let lines = [chat("user", "first"), other.clone(), chat("assistant", "second")];
    let (dir, memory) = read_in_two("talk.jsonl", &lines);
    assert!(texts(&memory).contains(&"second".to_owned()), "{:?}", texts(&memory));
    let path = dir.path().join("talk.jsonl");
    write(&path, &(lines.concat() + &chat("user", "third")), 3);
    let report = memory.ingest(dir.path());
    assert_eq!((report.files_grown, report.files_unchanged), (1, 0));
    assert_eq!(texts(&memory).last().map(String::as_str), Some("third"));
    let kinds: Vec<_> = memory.problems().iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, [ProblemKind::UnknownFormat]);
    let [source] = memory.sources().try_into().expect("one source");
    assert_eq!(source.status, SourceStatus::Ok);
    assert!(source.reason.is_some());
    assert_eq!(memory.ingest(dir.path()).files_unchanged, 1);
}

#[test]
fn a_log_that_was_overwritten_with_something_unknown_has_not_vanished() {
    let other = "{\"hello\":1}\n".repeat(9);
    let of_claude = user("a", 1, "one") + &user("a", 2, "two");
    let logs = [
        ("a.jsonl", user("a", 1, "one"), of_claude),
        ("session-1.json", gemini(&[0, 1]), gemini(&[0, 1, 2])),
    ];
    for (name, first, whole_log) in logs {
        let dir = tempfile::tempdir().expect("tempdir");
        let (path, memory) = (dir.path().join(name), Memory::default());
        write(&path, &first, 1);
        memory.ingest(dir.path());
        let before = (memory.events(), memory.sessions());

        write(&path, &other, 2);
        let report = memory.ingest(dir.path());
        assert_eq!((report.files_vanished, report.files_unknown), (0, 1));
        let [problem] = report.problem_list.try_into().expect("one problem");
        assert_eq!(problem.kind, ProblemKind::UnknownFormat);
        assert!(problem.message.contains("keeps the events read before"), "{}", problem.message);
        assert_eq!((memory.events(), memory.sessions()), before);
        let [source] = memory.sources().try_into().expect("one source");
        let decoder = before.1[0].provider;
        assert_eq!((source.status, source.provider), (SourceStatus::UnknownFormat, Some(decoder)));
        let again = memory.ingest(dir.path());
        assert_eq!((again.files_unchanged, again.files_unknown), (1, 0));

        // It is gone for a while, and comes back as it was.
        fs::remove_file(&path).expect("removes");
        assert_eq!(memory.ingest(dir.path()).files_vanished, 1);
        assert!(memory.sessions()[0].source_gone);
        write(&path, &other, 2);
        assert_eq!(memory.ingest(dir.path()).files_unknown, 1);

        // The log itself comes back, and is continued.
        write(&path, &whole_log, 3);
        memory.ingest(dir.path());
        let whole = Memory::default();
        whole.ingest(dir.path());
        assert_eq!((memory.events(), memory.sessions()), (whole.events(), whole.sessions()));
    }
}

#[test]
fn a_log_gets_the_id_that_a_later_record_names() {
    let summary = r#"{"type":"summary","summary":"A title","leafUuid":"x"}"#.to_owned() + "\n";
    let codex = r#"{"timestamp":"2026-10-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"fine"}]}}"#;
    let of_claude = [summary, user("a", 1, "one"), user("a", 2, "two")];
    let of_codex = [chat("user", "first"), codex.to_owned() + "\n"];
    for lines in [&of_claude[..], &of_codex[..]] {
        let (dir, grown) = read_in_two("talk.jsonl", lines);
        let whole = Memory::default();
        whole.ingest(dir.path());
        assert_eq!(grown.events(), whole.events());
        let held = |memory: &Memory| {
            let sessions = memory.sessions().into_iter().filter(|session| session.events > 0);
            sessions.collect::<Vec<_>>()
        };
        assert_eq!(held(&grown), held(&whole));
        assert_eq!(grown.ingest(dir.path()).files_unchanged, 1);
    }
}

#[cfg(unix)]
#[test]
fn logs_that_cannot_be_reached_are_not_gone() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (folder, away) = (dir.path().join("logs"), tempfile::tempdir().expect("tempdir"));
    fs::create_dir(&folder).expect("creates");
    write(&folder.join("a.jsonl"), &user("a", 1, "one"), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let moved = away.path().join("logs");
    fs::rename(&folder, &moved).expect("moves");
    // A link that leads to itself, and a file where the folder was.
    for obstacle in [true, false] {
        if obstacle {
            std::os::unix::fs::symlink("logs", &folder).expect("links");
        } else {
            fs::write(&folder, "no folder").expect("writes");
        }
        let report = memory.ingest(dir.path());
        assert_eq!((report.files_vanished, report.problems.get("unreadable")), (0, Some(&1)));
        assert!(!memory.session("a").source_gone);
        assert_eq!(memory.sources()[0].status, SourceStatus::Ok);
        fs::remove_file(&folder).expect("removes");
    }
    let report = memory.ingest(dir.path());
    assert_eq!(report.files_vanished, 1);
    assert!(memory.session("a").source_gone);
}

const TABLES: &str = "
    CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT,
        title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
        time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
        time_created INTEGER, time_updated INTEGER, data TEXT);
    INSERT INTO session VALUES ('ses_1', 'p', NULL, '/w', 'A title', '1.2.0', 1, 2);
    INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 1, '{\"role\":\"user\"}');
    INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1, 9, '{\"type\":\"text\",\"text\":\"one\"}');";

/// Opens a database of OpenCode that keeps what changes in a log of its own.
fn opencode_database(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("opens");
    connection.pragma_update(None, "journal_mode", "wal").expect("wal");
    connection.execute_batch(TABLES).expect("sql");
    connection
}

#[test]
fn sessions_of_a_database_that_cannot_be_read_are_not_gone() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("opencode.db");
    drop(opencode_database(&path));
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(texts(&memory), ["one"]);
    let whole = fs::read(&path).expect("reads");
    fs::write(&path, "no database").expect("writes");
    let report = memory.ingest(dir.path());
    assert_eq!((report.files_vanished, report.problems.get("unreadable")), (0, Some(&1)));
    assert!(!memory.session("ses_1").source_gone);
    fs::write(&path, whole).expect("writes");
    Connection::open(&path).expect("opens").execute("DELETE FROM session", []).expect("deletes");
    assert_eq!(memory.ingest(dir.path()).files_vanished, 1);
}

#[test]
fn changes_next_to_a_database_without_their_index_are_read() {
    let dir = tempfile::tempdir().expect("tempdir");
    let source = dir.path().join("opencode.db");
    let connection = opencode_database(&source);
    let copy = tempfile::tempdir().expect("tempdir");
    let name = |extension: &str| format!("opencode.db{extension}");
    for extension in ["", "-wal"] {
        let (from, to) = (dir.path().join(name(extension)), copy.path().join(name(extension)));
        fs::copy(from, to).expect("copies");
    }
    drop(connection);
    let contents = || {
        let files = fs::read_dir(copy.path()).expect("lists");
        let mut files: Vec<_> = files.map(|file| file.expect("file").path()).collect();
        files.sort();
        files.into_iter().map(|path| (fs::read(&path).expect("reads"), path)).collect::<Vec<_>>()
    };
    let before = contents();
    let memory = Memory::default();
    memory.ingest(copy.path());
    assert_eq!(texts(&memory), ["one"]);
    assert_eq!(contents(), before, "nothing is written there");
}

#[test]
fn changes_that_sqlite_ignores_are_reported() {
    let dir = tempfile::tempdir().expect("tempdir");
    let source = dir.path().join("opencode.db");
    let connection = opencode_database(&source);
    let checkpoint = "PRAGMA wal_checkpoint(RESTART)";
    connection.query_row(checkpoint, [], |_| Ok(())).expect("checkpoint");
    let add = |id: &str, text: &str| {
        let sql = format!(
            "INSERT INTO part VALUES ('{id}', 'msg_1', 'ses_1', 1, 9, \
             '{{\"type\":\"text\",\"text\":\"{text}\"}}')"
        );
        connection.execute_batch(&sql).expect("sql");
    };
    add("prt_2", "two");
    add("prt_3", "three");
    let database = fs::read(&source).expect("reads");
    let log = fs::read(dir.path().join("opencode.db-wal")).expect("reads");
    // Old frames, from before the checkpoint, follow the new ones.
    let mut flipped = log.clone();
    flipped[32 + 2000] ^= 1;
    for (log, want, problems) in [
        (log.clone(), "one\ntwo\nthree", None),
        (flipped, "one", Some(1)),
        (b"garbage".repeat(2000), "one", Some(1)),
    ] {
        let copy = tempfile::tempdir().expect("tempdir");
        fs::write(copy.path().join("opencode.db"), &database).expect("writes");
        fs::write(copy.path().join("opencode.db-wal"), log).expect("writes");
        let memory = Memory::default();
        let report = memory.ingest(copy.path());
        assert_eq!(texts(&memory), [want]);
        assert_eq!(report.problems.get("unreadable").copied(), problems);
        for problem in &report.problem_list {
            assert!(problem.message.contains("write-ahead log (-wal)"), "{}", problem.message);
        }
    }
}

/// Flips a bit in the name of a column, which is no text then: the library panics on that.
fn damage_column(database: &Path) {
    let mut bytes = fs::read(database).expect("reads");
    let name = b"project_id";
    let at = bytes.windows(name.len()).position(|part| part == name).expect("the name");
    bytes[at] |= 0x80;
    fs::write(database, bytes).expect("writes");
}

const IN_CHILD: &str = "SESSIONS_TEST_IN_CHILD";

#[test]
fn a_damaged_database_is_one_problem_and_prints_nothing() {
    if std::env::var_os(IN_CHILD).is_none() {
        let name = "unread::a_damaged_database_is_one_problem_and_prints_nothing";
        let mut child = Command::new(std::env::current_exe().expect("path"));
        let child = child.args(["--exact", name, "--nocapture"]).env(IN_CHILD, "1");
        let output = child.output().expect("runs");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        assert!(!printed.contains("panicked"), "{printed}");
        return;
    }
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("opencode.db");
    drop(opencode_database(&path));
    damage_column(&path);
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(report.problems, [("unreadable", 1)].into());
    let message = &report.problem_list[0].message;
    assert!(message.contains("the database is damaged"), "{message}");
}

#[test]
fn empty_objects_hold_nothing() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = user("a", 1, "one") + &"{}\n".repeat(10_000) + &user("a", 2, "two");
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(texts(&memory), ["one", "two"]);
    assert_eq!(report.objects, 10_002);
    assert_eq!(report.objects_merged.get("empty_object"), Some(&10_000));
}

#[test]
fn sessions_are_known_however_long_their_descriptions_are() {
    let dir = tempfile::tempdir().expect("tempdir");
    let long = "x".repeat(200_000);
    let vibe = "vibe/logs/session/session_20251210_190000_c20e5b74.json";
    let mut session: Json =
        serde_json::from_slice(&fs::read(samples().join(vibe)).expect("reads")).expect("JSON");
    let mut metadata = json!({ "tools_available": [long] });
    let fields = session["metadata"].as_object().expect("fields").clone();
    metadata.as_object_mut().expect("fields").extend(fields);
    session["metadata"] = metadata;
    for content in [session.to_string(), serde_json::to_string_pretty(&session).expect("JSON")] {
        fs::write(dir.path().join("session_20251210_190000_c20e5b74.json"), content)
            .expect("writes");
        let memory = Memory::default();
        assert_eq!(memory.ingest(dir.path()).sessions, 1);
    }

    let zcode = dir.path().join("zcode");
    copy_folder(&samples().join("zcode"), &zcode);
    let memory = Memory::default();
    memory.ingest(&zcode);
    let sessions = memory.sessions().len();
    let database = Connection::open(zcode.join("cli/db/db.sqlite")).expect("opens");
    database.execute("UPDATE session SET revert = ?1", [&long]).expect("updates");
    drop(database);
    let memory = Memory::default();
    let report = memory.ingest(&zcode);
    assert_eq!((report.files_unknown, memory.sessions().len()), (0, sessions));
}

#[test]
fn tokens_of_a_compacted_session_that_is_gone_are_not_counted_for_the_next() {
    const PARENT: &str = "session_20261027_081500_b4f0a1c7";
    let dir = tempfile::tempdir().expect("tempdir");
    copy_folder(&samples().join("vibe/logs/session"), dir.path());
    let memory = Memory::default();
    memory.ingest(dir.path());
    let known = memory.session("0e7c92d1");
    assert!(known.input_tokens.is_some());

    fs::write(dir.path().join(PARENT).join("meta.json"), "{").expect("writes");
    let memory = Memory::default();
    memory.ingest(dir.path());
    let session = memory.session("0e7c92d1");
    assert_eq!(session.input_tokens, None);
    assert_eq!(session.usage_confidence.as_deref(), Some("partial"));
    let is_usage = |event: &schemas::session::EventRow| event.subtype.as_deref() == Some("usage");
    assert!(memory.events().iter().any(is_usage));
}
