//! Damage of single bytes and rows in the stores of OpenCode: each flip gives all events or a
//! reported problem, and costs no more than its record.

use std::fs;
use std::path::{Path, PathBuf};

use ingest::run::report::IngestReport;
use rusqlite::Connection;
use schemas::problem::ProblemKind;

use crate::memory::{Memory, copy_folder, samples};
use crate::traps::texts;

/// The number of events in the sample database.
const DATABASE_EVENTS: usize = 25;

/// Distance of the bytes that are flipped, coprime to the page size, so that all parts of a page are
/// reached.
const FLIP_STEP: usize = 61;

fn sample_database() -> Vec<u8> {
    fs::read(samples().join("opencode/opencode.db")).expect("reads")
}

/// Ingests what is in a folder.
fn ingest(folder: &Path) -> (Memory, IngestReport) {
    let memory = Memory::default();
    let report = memory.ingest(folder);
    (memory, report)
}

/// Ingests a database with these bytes.
fn ingest_database(bytes: &[u8]) -> (Memory, IngestReport) {
    let dir = tempfile::tempdir().expect("tempdir");
    fs::write(dir.path().join("opencode.db"), bytes).expect("writes");
    ingest(dir.path())
}

/// Ingests the sample database after `sql`.
fn ingest_changed(sql: &str) -> (Memory, IngestReport) {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("opencode.db");
    fs::write(&path, sample_database()).expect("writes");
    Connection::open(&path).expect("opens").execute_batch(sql).expect("sql");
    ingest(dir.path())
}

/// Returns whether a user is told that something was not read as expected.
fn is_reported(memory: &Memory, report: &IngestReport) -> bool {
    !report.problem_list.is_empty() || memory.sessions().iter().any(|row| row.drift.is_some())
}

/// Checks one flip of a database. Returns the number of events that it cost.
fn check_flip(bytes: &[u8], offset: usize, value: u8) -> usize {
    let mut flipped = bytes.to_vec();
    flipped[offset] = value;
    let (memory, report) = ingest_database(&flipped);
    let lost = DATABASE_EVENTS.saturating_sub(memory.events().len());
    assert!(
        lost == 0 || is_reported(&memory, &report),
        "{lost} events are lost without a word: byte {offset} of {} is {value}",
        bytes[offset]
    );
    lost
}

#[test]
fn flips_that_lost_rows_are_reported() {
    let bytes = sample_database();
    assert_eq!(ingest_database(&bytes).0.events().len(), DATABASE_EVENTS);
    let ids_and_pages = [
        (3378, 74),
        (3836, 14),
        (14292, 197),
        (14340, 39),
        (15352, 18),
        (16525, 205),
        (24423, 134),
    ];
    for (offset, value) in ids_and_pages {
        check_flip(&bytes, offset, value);
    }
    assert!(check_flip(&bytes, 23438, b'~') > 0);
}

#[test]
fn no_flip_of_a_database_loses_events_without_a_word() {
    let bytes = sample_database();
    for (number, offset) in (0..bytes.len()).step_by(FLIP_STEP).enumerate() {
        let bits = [0x01, 0x20, 0xff, 0x80][number % 4];
        check_flip(&bytes, offset, bytes[offset] ^ bits);
    }
}

#[test]
fn a_row_that_is_not_an_object_costs_that_row() {
    let update =
        |table: &str, data: &str| format!("UPDATE {table} SET data = {data} WHERE rowid = 4");
    for table in ["session_message", "part"] {
        for (data, kind) in [
            ("'{bad'", ProblemKind::BadJson),
            ("'[1]'", ProblemKind::NotAnObject),
            ("''", ProblemKind::BadJson),
            ("x'00ff'", ProblemKind::BadJson),
            ("7", ProblemKind::NotAnObject),
        ] {
            let (memory, report) = ingest_changed(&update(table, data));
            let [problem] = report.problem_list.try_into().expect("one problem");
            assert_eq!(problem.kind, kind, "{table} {data}");
            let place = format!("of the table {table}");
            assert!(problem.message.contains(&place), "{}", problem.message);
            assert!(problem.path.contains("opencode.db#ses_"), "{}", problem.path);
            // A record has at most four events, and its text is kept as one.
            assert!(memory.events().len() >= DATABASE_EVENTS - 4, "{table} {data}");
        }
    }
}

#[test]
fn the_parts_of_a_message_that_is_not_an_object_are_kept() {
    let (memory, report) = ingest_changed("UPDATE message SET data = '{bad'");
    assert_eq!(report.problems, [("bad_json", 2)].into());
    // The texts of both messages are notifications.
    assert_eq!(memory.events().len(), DATABASE_EVENTS + 2);
}

#[test]
fn repaired_rows_are_kept_and_reported() {
    for (from, kind) in [("char(1)", "control_characters"), ("CAST(x'ff' AS TEXT)", "invalid_utf8")]
    {
        let sql = format!(
            "UPDATE part SET data = CAST(replace(data, 'Which crate', 'Which' || {from} || 'crate') \
             AS TEXT) WHERE rowid = 1"
        );
        let (memory, report) = ingest_changed(&sql);
        assert_eq!(memory.events().len(), DATABASE_EVENTS);
        assert_eq!(report.problems, [(kind, 1)].into());
        assert!(report.problem_list[0].message.contains("of the table part"));
    }
}

#[test]
fn rows_without_a_session_or_a_message_are_reported() {
    let (memory, report) = ingest_changed(
        "UPDATE session_message SET session_id = 'ses_no', \
        seq = rowid + 99 WHERE rowid IN (2, 3)",
    );
    assert_eq!(report.problems, [("incomplete_record", 1)].into());
    let message = &report.problem_list[0].message;
    assert!(message.starts_with("2 rows of the table `session_message`"), "{message}");
    assert!(message.contains("msg_158956fbb005001343k3Cr6xd9"), "{message}");
    assert!(memory.events().len() < DATABASE_EVENTS);

    let (memory, report) =
        ingest_changed("UPDATE part SET message_id = 'msg_no' WHERE rowid IN (3, 4)");
    assert_eq!(report.problems, [("incomplete_record", 1)].into());
    assert!(report.problem_list[0].message.contains("prt_15809e447005001YuiIL7vOijk"));
    assert_eq!(memory.events().len(), DATABASE_EVENTS);
}

#[test]
fn a_database_without_its_tables_is_reported() {
    for sql in ["DROP TABLE part", "ALTER TABLE session_message RENAME TO session_massage"] {
        let (_, report) = ingest_changed(sql);
        assert_eq!(report.problems, [("unreadable", 1)].into(), "{sql}");
    }
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("opencode.db");
    let connection = Connection::open(&path).expect("opens");
    assert!(ingest(dir.path()).1.problem_list.is_empty(), "it is about to be filled");
    connection.execute_batch("CREATE TABLE other (a TEXT)").expect("sql");
    assert_eq!(ingest(dir.path()).1.problems, [("unreadable", 1)].into());
}

/// Lists the JSON files below a folder.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("lists") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files.extend(json_files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns the bytes of a document after each kind of damage.
fn damaged_documents(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut damaged = vec![bytes[..bytes.len() / 2].to_vec(), b"[1]".to_vec(), Vec::new()];
    for (at, byte) in bytes.iter().enumerate() {
        let flips: &[u8] = match byte {
            b'{' | b'}' | b'"' | b'[' | b']' => b"~",
            _ if at % 97 == 0 => &[1, 0xff],
            _ => &[],
        };
        for flip in flips {
            let mut bytes = bytes.to_vec();
            bytes[at] = *flip;
            damaged.push(bytes);
        }
    }
    damaged
}

#[test]
fn no_damage_of_a_file_of_a_tree_loses_events_without_a_word() {
    let dir = tempfile::tempdir().expect("tempdir");
    let storage = dir.path().join("storage");
    copy_folder(&samples().join("opencode/storage"), &storage);
    let whole = ingest(dir.path()).0.events().len();
    for path in json_files(&storage) {
        let bytes = fs::read(&path).expect("reads");
        for damaged in damaged_documents(&bytes) {
            fs::write(&path, &damaged).expect("writes");
            let (memory, report) = ingest(dir.path());
            let lost = whole.saturating_sub(memory.events().len());
            assert!(
                lost == 0 || is_reported(&memory, &report),
                "{lost} events are lost without a word: {} is {}",
                path.display(),
                String::from_utf8_lossy(&damaged)
            );
        }
        fs::write(&path, &bytes).expect("writes");
    }
}

#[test]
fn the_session_of_a_damaged_file_keeps_its_messages() {
    let dir = tempfile::tempdir().expect("tempdir");
    let storage = dir.path().join("storage");
    copy_folder(&samples().join("opencode/storage"), &storage);
    let whole = texts(&ingest(dir.path()).0);
    let session = json_files(&storage.join("session")).remove(0);
    fs::write(&session, "{\"id\":\"ses_").expect("writes");
    let (memory, report) = ingest(dir.path());
    assert_eq!(texts(&memory), whole);
    assert_eq!(report.problems, [("bad_json", 1)].into());
    assert!(report.problem_list[0].message.contains("the file session/"));
}

/// Documents of other agents, each with words of a record in it.
const DOCUMENTS: &[(&str, &str)] = &[
    ("gemini/tmp/harbor/chats/session-2026-10-16T07-45-be34bc14.json", "\"content\": \""),
    ("amp/threads/T-019a2b7e-41c8-7d30-9b15-6e0f3c8a7d24.json", "\"text\": \""),
];

#[test]
fn control_characters_in_a_document_cost_nothing() {
    for (name, before) in DOCUMENTS {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join(Path::new(name).file_name().expect("name"));
        let text = fs::read_to_string(samples().join(name)).expect("reads");
        let at = text.find(before).expect("the words") + before.len();
        fs::write(&path, &text).expect("writes");
        let whole = ingest(dir.path()).0.events().len();
        fs::write(&path, format!("{}\u{1}{}", &text[..at], &text[at..])).expect("writes");
        let (memory, report) = ingest(dir.path());
        assert_eq!(memory.events().len(), whole, "{name}");
        assert_eq!(report.problems, [("control_characters", 2)].into(), "{name}");
    }
}
