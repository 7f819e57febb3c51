//! Sessions that agents keep in a database: a database that grows, is locked, is vacuumed or is
//! damaged, read with the samples of each agent.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ingest::plan::safe_session_id;
use ingest::provider::FORMATS;
use rusqlite::Connection;
use schemas::EventType;

use crate::hermes;
use crate::memory::{Memory, samples};

/// A database among the samples, and how its agent continues a session in it.
struct SampleDatabase {
    /// The path below the samples.
    path: &'static str,
    /// A session in it.
    session: &'static str,
    /// Adds the prompt "One more thing." to the session.
    prompt: &'static str,
    /// Changes the title of the session to "Another title", without a new time.
    title: Option<&'static str>,
}

const DATABASES: &[SampleDatabase] = &[
    SampleDatabase {
        path: "opencode/opencode.db",
        session: "ses_ea7f62808fffffeX7Gh9COlzBlDEM",
        prompt: r#"INSERT INTO message VALUES ('msg_z', 'ses_ea7f62808fffffeX7Gh9COlzBlDEM',
            1792478500000, 1792478500000, '{"role":"user","time":{"created":1792478500000}}');
            INSERT INTO part VALUES ('prt_z', 'msg_z', 'ses_ea7f62808fffffeX7Gh9COlzBlDEM',
            1792478500000, 1792478500000, '{"type":"text","text":"One more thing."}')"#,
        // OpenCode writes a new time with each change.
        title: None,
    },
    // The tables of version 2.
    SampleDatabase {
        path: "opencode/opencode.db",
        session: "ses_ea76a93c8fffffe6oTmVLqxUT3Hoh",
        prompt: r#"INSERT INTO session_message VALUES ('msg_z', 'ses_ea76a93c8fffffe6oTmVLqxUT3Hoh',
            'user', 99, 1792487700000, 1792487700000,
            '{"time":{"created":1792487700000},"text":"One more thing.","files":[]}')"#,
        title: None,
    },
    SampleDatabase {
        path: HERMES,
        session: "s1",
        prompt: "INSERT INTO messages (session_id, role, content, timestamp)
            VALUES ('s1', 'user', 'One more thing.', 1006)",
        title: Some("UPDATE sessions SET title = 'Another title' WHERE id = 's1'"),
    },
    SampleDatabase {
        path: "goose/sessions/sessions.db",
        session: "20261025_1",
        prompt: r#"INSERT INTO messages (session_id, role, content_json, created_timestamp)
            VALUES ('20261025_1', 'user', '[{"type":"text","text":"One more thing."}]', 1793000000)"#,
        title: Some("UPDATE sessions SET name = 'Another title' WHERE id = '20261025_1'"),
    },
    SampleDatabase {
        path: "crush/crush.db",
        session: "4e7a0d16-93c8-4f25-b0a1-6d82e9f5c374",
        prompt: r#"INSERT INTO messages (id, session_id, role, parts, created_at, updated_at)
            VALUES ('2d6e', '4e7a0d16-93c8-4f25-b0a1-6d82e9f5c374', 'user',
            '[{"type":"text","data":{"text":"One more thing."}}]', 1793000000, 1793000000)"#,
        title: Some("UPDATE sessions SET title = 'Another title' WHERE parent_session_id IS NULL"),
    },
    SampleDatabase {
        path: "cursoride/globalStorage/state.vscdb",
        session: "8c3f51d0-a2e7-4b96-8d14-70f9e6b5c2a3",
        prompt: r#"INSERT INTO cursorDiskKV VALUES
            ('bubbleId:8c3f51d0-a2e7-4b96-8d14-70f9e6b5c2a3:b1',
            '{"bubbleId":"b1","type":1,"text":"One more thing."}');
            UPDATE cursorDiskKV SET value = json_insert(value, '$.fullConversationHeadersOnly[#]',
            json('{"bubbleId":"b1","type":1}'))
            WHERE key = 'composerData:8c3f51d0-a2e7-4b96-8d14-70f9e6b5c2a3'"#,
        title: Some(
            "UPDATE cursorDiskKV SET value = json_set(value, '$.name', 'Another title')
            WHERE key = 'composerData:8c3f51d0-a2e7-4b96-8d14-70f9e6b5c2a3'",
        ),
    },
    SampleDatabase {
        path: "cursor-cli/chats/8f0c7be1d24a6953ab0e61f7c8d5b342/5c0e9b27-41d8-4f6a-8a93-d7b2e60f1c48/store.db",
        session: "5c0e9b27-41d8-4f6a-8a93-d7b2e60f1c48",
        prompt: r#"INSERT INTO blobs VALUES
            ('b1', CAST('{"role":"user","content":"One more thing."}' AS BLOB))"#,
        title: None,
    },
    SampleDatabase {
        path: "antigravity-ide/conversations/b7d3e810-5f2c-4a69-9e04-1c86f0a2d75b.db",
        session: "b7d3e810-5f2c-4a69-9e04-1c86f0a2d75b",
        // A step of the kind 14 with the time 5.1.1 and the text 19.2.
        prompt: "INSERT INTO steps (idx, step_type, status, step_payload) VALUES (14, 14, 3,
            x'080e2a080a0608a4a29cd7069a0111120f4f6e65206d6f7265207468696e672e')",
        title: None,
    },
    SampleDatabase {
        path: "zed/threads/threads.db",
        session: "3fa1c90e-5d28-47b6-9e04-8b7c6d1f2a53",
        prompt: r#"UPDATE threads SET updated_at = '2025-11-03T11:00:00+00:00', data =
            CAST(json_insert(CAST(data AS TEXT), '$.messages[#]', json('{"id":3,"role":"user",
            "segments":[{"type":"text","text":"One more thing."}]}')) AS BLOB)
            WHERE data_type = 'json'"#,
        title: None,
    },
    SampleDatabase {
        path: "warp/warp.sqlite",
        session: "d58c0f31-e94b-47a6-8b20-6f13a9e27c54",
        prompt: r#"INSERT INTO ai_queries (exchange_id, conversation_id, start_ts, input, output_status)
            VALUES ('x', 'd58c0f31-e94b-47a6-8b20-6f13a9e27c54', '2026-10-31 09:00:00',
            '[{"Query":{"text":"One more thing."}}]', '"Pending"')"#,
        title: None,
    },
    SampleDatabase {
        path: "devin/cli/sessions.db",
        session: "quiet-lantern-4f2a",
        prompt: r#"INSERT INTO message_nodes (session_id, node_id, parent_node_id, chat_message, created_at)
            VALUES ('quiet-lantern-4f2a', 17, 16,
            '{"message_id":"x","role":"user","content":"One more thing."}', 1793400000)"#,
        title: Some("UPDATE sessions SET title = 'Another title' WHERE id = 'quiet-lantern-4f2a'"),
    },
    SampleDatabase {
        path: "zcode/cli/db/db.sqlite",
        session: "sess_4d1e7a90-5b3c-4f82-a6d7-90c2e8b5f143",
        prompt: r#"INSERT INTO message VALUES ('m', 'sess_4d1e7a90-5b3c-4f82-a6d7-90c2e8b5f143', 99,
            '{"role":"user","time":{"created":1793480000000}}', 1793480000000, 1793480000000);
            INSERT INTO part VALUES ('p', 'm', 'sess_4d1e7a90-5b3c-4f82-a6d7-90c2e8b5f143', 0,
            '{"type":"text","text":"One more thing."}', 1793480000000, 1793480000000)"#,
        title: Some("UPDATE session SET title = 'Another title' WHERE title LIKE 'Release%'"),
    },
    SampleDatabase {
        path: "piebald/app.db",
        session: "piebald-1",
        prompt: "INSERT INTO messages (id, parent_chat_id, parent_message_id, role, created_at)
            VALUES (90, 1, 6, 'user', '2026-11-01T15:00:00+00:00');
            INSERT INTO message_parts VALUES (90, 90, 'text', 0);
            INSERT INTO message_part_text VALUES (90, 0);
            INSERT INTO message_content_nodes VALUES (90, 90, 'text', 0);
            INSERT INTO message_node_text VALUES (90, 'One more thing.')",
        title: Some("UPDATE chats SET title = 'Another title' WHERE id = 1"),
    },
    SampleDatabase {
        path: "forge/.forge.db",
        session: "6a0f8d53-21c7-4e9b-b8d4-f7e3095ac612",
        prompt: r#"UPDATE conversations SET updated_at = '2026-11-01 10:00:00', context =
            json_insert(context, '$.messages[#]', json('{"message":{"text":{"role":"User",
            "content":"One more thing."}}}'))
            WHERE conversation_id = '6a0f8d53-21c7-4e9b-b8d4-f7e3095ac612'"#,
        title: Some("UPDATE conversations SET title = 'Another title' WHERE title LIKE 'Split%'"),
    },
];

/// The database of Hermes, whose samples are logs.
const HERMES: &str = "hermes/state.db";

/// A copy of a sample database in a folder of its own, as its agent names the folders.
fn copy(sample: &SampleDatabase) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join(sample.path);
    fs::create_dir_all(path.parent().expect("folder")).expect("creates");
    if sample.path == HERMES {
        let connection = Connection::open(&path).expect("opens");
        connection.execute_batch(hermes::TABLES).expect("creates");
        connection.execute_batch(hermes::CONVERSATION).expect("fills");
    } else {
        fs::copy(samples().join(sample.path), &path).expect("copies");
    }
    (dir, path)
}

fn prompts(memory: &Memory, session: &str) -> Vec<String> {
    let events = memory.events().into_iter().filter(|event| event.session_id == session);
    let prompts = events.filter(|event| event.event_type == EventType::User && !event.is_replay);
    prompts.map(|event| event.text).collect()
}

/// Every database that is read is in the table, so that what is below holds for each.
#[test]
fn every_database_is_among_the_samples() {
    // Files of the names of the samples.
    let paths: Vec<PathBuf> = DATABASES.iter().map(|sample| copy(sample).1).collect();
    for format in &FORMATS {
        for assembly in format.quirks.assemblies {
            let is_database = [".db", ".sqlite", ".vscdb"]
                .iter()
                .any(|extension| assembly.source_suffix.ends_with(extension));
            let is_sample = paths.iter().any(|path| (assembly.is_source)(path));
            assert!(is_sample || !is_database, "{}", assembly.name);
        }
    }
}

#[test]
fn a_database_that_grows_gives_the_same_as_one_read_at_once() {
    for sample in DATABASES {
        let (dir, path) = copy(sample);
        let connection = Connection::open(&path).expect("opens");
        connection.pragma_update(None, "journal_mode", "wal").expect("wal");
        let memory = Memory::default();
        memory.ingest(dir.path());
        let before = memory.events();
        assert!(!prompts(&memory, sample.session).is_empty(), "{}", sample.path);

        connection.execute_batch(sample.prompt).expect(sample.path);
        memory.ingest(dir.path());
        assert_eq!(
            prompts(&memory, sample.session).last().map(String::as_str),
            Some("One more thing."),
            "{}",
            sample.path
        );
        let whole = Memory::default();
        whole.ingest(dir.path());
        assert_eq!(memory.events().len(), whole.events().len(), "{}", sample.path);
        for (a, b) in memory.events().iter().zip(&whole.events()) {
            assert_eq!(a.event_index, b.event_index, "{}", sample.path);
            assert_eq!(a.text, b.text, "{}", sample.path);
        }
        // The events of before keep their places.
        for event in &before {
            let now = memory.events();
            let same = now.iter().find(|now| {
                now.session_id == event.session_id && now.event_index == event.event_index
            });
            assert_eq!(same.map(|same| &same.text), Some(&event.text), "{}", sample.path);
        }
    }
}

#[test]
fn a_title_that_changes_without_a_new_time_is_read() {
    for sample in DATABASES {
        let Some(title) = sample.title else { continue };
        let (dir, path) = copy(sample);
        let memory = Memory::default();
        memory.ingest(dir.path());
        Connection::open(&path).expect("opens").execute_batch(title).expect(sample.path);
        memory.ingest(dir.path());
        let session = memory.session(sample.session);
        assert_eq!(session.title.as_deref(), Some("Another title"), "{}", sample.path);
    }
}

#[test]
fn a_database_is_read_while_its_agent_holds_locks_and_is_never_changed() {
    for sample in DATABASES {
        let (dir, path) = copy(sample);
        let connection = Connection::open(&path).expect("opens");
        connection.execute_batch("BEGIN EXCLUSIVE").expect("locks");
        let before = fs::read(&path).expect("reads");
        let memory = Memory::default();
        let report = memory.ingest(dir.path());
        assert!(report.problems.is_empty(), "{} {:?}", sample.path, report.problem_list);
        assert!(!prompts(&memory, sample.session).is_empty(), "{}", sample.path);
        drop(connection);

        assert_eq!(fs::read(&path).expect("reads"), before);
        let files = fs::read_dir(path.parent().expect("folder")).expect("lists").count();
        assert_eq!(files, 1, "nothing is left next to {}", sample.path);
    }
}

#[test]
fn a_database_that_is_vacuumed_is_not_read_again() {
    for sample in DATABASES {
        let (dir, path) = copy(sample);
        let memory = Memory::default();
        memory.ingest(dir.path());
        let before = memory.events();
        let connection = Connection::open(&path).expect("opens");
        connection.pragma_update(None, "page_size", 4096).expect("page size");
        connection.execute_batch("VACUUM").expect("vacuums");
        let report = memory.ingest(dir.path());
        assert_eq!(report.objects, 0, "{}", sample.path);
        assert_eq!(memory.events(), before, "{}", sample.path);
    }
}

/// Its agent may write all pages of a database again at any time. What is read then is whole, or the
/// next run reads it.
#[test]
fn a_database_that_is_vacuumed_while_it_is_read_loses_nothing() {
    for sample in DATABASES {
        let (dir, path) = copy(sample);
        let whole = Memory::default();
        whole.ingest(dir.path());
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let connection = Connection::open(&path).expect("opens");
                while !is_done.load(Ordering::Relaxed) {
                    // Fails while the database is read.
                    let _ = connection.execute_batch("VACUUM");
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            for _ in 0..2 {
                let memory = Memory::default();
                let report = memory.ingest(dir.path());
                let is_reported = !report.problem_list.is_empty();
                assert!(is_reported || memory.events() == whole.events(), "{}", sample.path);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        let memory = Memory::default();
        let report = memory.ingest(dir.path());
        assert_eq!(memory.events(), whole.events(), "{} {:?}", sample.path, report.problem_list);
    }
}

/// Every byte that is flipped, and every end that is missing, is a problem at most.
#[test]
fn a_damaged_database_is_a_problem_at_most() {
    // A database with sessions of two versions is damaged once.
    let mut damaged = HashSet::new();
    for sample in DATABASES.iter().filter(|sample| damaged.insert(sample.path)) {
        let (dir, path) = copy(sample);
        let whole = fs::read(&path).expect("reads");
        for at in (0..whole.len()).step_by(whole.len() / 97) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xa5;
            fs::write(&path, &bytes).expect("writes");
            Memory::default().ingest(dir.path());
            fs::write(&path, &whole[..at]).expect("writes");
            Memory::default().ingest(dir.path());
        }
    }
}

/// Cells of other types than the agent writes, ids that are paths, and content that is not JSON: the sample, and
/// the statements that write them.
fn hostile_rows() -> [(&'static str, String); 10] {
    let deep = "[".repeat(100_000);
    [
        (
            "goose/sessions/sessions.db",
            format!(
                "UPDATE messages SET content_json = '{deep}' WHERE id = 1;
             UPDATE messages SET content_json = x'ff00ff', created_timestamp = 'soon' WHERE id = 2;
             UPDATE messages SET content_json = '\"plain words\"' WHERE id = 3;
             UPDATE usage_ledger SET input_tokens = -9, total_tokens = 9223372036854775807;
             INSERT INTO sessions (id, working_dir) VALUES ('../../etc/passwd#x', '/');
             INSERT INTO messages (session_id, role, content_json, created_timestamp)
             VALUES ('../../etc/passwd#x', 'odd role', '[{{\"type\":\"new kind\"}}]', 1)"
            ),
        ),
        (
            "crush/crush.db",
            format!(
                "UPDATE messages SET parts = '{deep}' WHERE role = 'user';
             UPDATE messages SET parts = '[{{\"type\":\"new\",\"data\":7}}]' WHERE role = 'tool';
             UPDATE sessions SET cost = 1e308, prompt_tokens = -1, updated_at = 'now'"
            ),
        ),
        (
            "cursoride/globalStorage/state.vscdb",
            format!(
                "UPDATE cursorDiskKV SET value = '{deep}' WHERE key LIKE 'bubbleId:%:1%';
             UPDATE cursorDiskKV SET value = 7 WHERE key LIKE 'bubbleId:%:2%';
             INSERT INTO cursorDiskKV VALUES ('composerData:../x', '{{}}'),
             ('bubbleId:../x:y', '{{\"type\":99}}')"
            ),
        ),
        (
            "antigravity-ide/conversations/b7d3e810-5f2c-4a69-9e04-1c86f0a2d75b.db",
            "UPDATE steps SET step_payload = x'0affffff' WHERE idx = 2;
             UPDATE steps SET status = 'done', step_type = 'x' WHERE idx = 5;
             UPDATE gen_metadata SET data = x'120affff';
             UPDATE trajectory_meta SET cascade_id = '../../x'"
                .to_owned(),
        ),
        (
            "zed/threads/threads.db",
            format!(
                "UPDATE threads SET data = CAST('{deep}' AS BLOB) WHERE data_type = 'json';
             UPDATE threads SET data = x'28b52ffd00' WHERE data_type = 'zstd'"
            ),
        ),
        (
            "zcode/cli/db/db.sqlite",
            format!(
                "UPDATE message SET data = '{deep}' WHERE data LIKE '%todo_reminder%';
             UPDATE part SET data = x'ff' WHERE data LIKE '%hologram%';
             UPDATE part SET data = '7', message_id = 'none' WHERE data LIKE '%I ask git%'"
            ),
        ),
        (
            "piebald/app.db",
            format!(
                "UPDATE message_node_text SET content = '{deep}' WHERE node_id = 1;
             UPDATE messages SET role = 'odd role', created_at = 7 WHERE id = 4;
             UPDATE message_part_tool_call SET tool_input = x'ff', provider_tool_use_id = 9;
             UPDATE message_parts SET part_type = 'new kind', part_index = 'x' WHERE id = 3"
            ),
        ),
        (
            "forge/.forge.db",
            format!(
                "UPDATE conversations SET context = '{deep}' WHERE title IS NULL;
             UPDATE conversations SET updated_at = x'ff', context = '{{\"messages\":[7,\"x\",{{}}]}}'
             WHERE title LIKE 'Split%'"
            ),
        ),
        (
            "devin/cli/sessions.db",
            format!(
                "UPDATE message_nodes SET chat_message = '{deep}' WHERE node_id = 1;
             UPDATE message_nodes SET chat_message = '[]', node_id = 99 WHERE node_id = 2;
             UPDATE message_nodes SET parent_node_id = node_id WHERE node_id = 5;
             UPDATE subagent_heads SET chain_node_id = 9223372036854775807"
            ),
        ),
        (
            "warp/warp.sqlite",
            format!(
                "UPDATE ai_queries SET input = '{deep}' WHERE id = 1;
             UPDATE ai_queries SET start_ts = 7, output_status = x'ff' WHERE id = 2;
             UPDATE agent_conversations SET conversation_data = '[7]';
             UPDATE agent_tasks SET task = x'0affffff' WHERE id = 1"
            ),
        ),
    ]
}

#[test]
fn hostile_rows_are_kept_as_text_or_reported() {
    for (path, sql) in hostile_rows() {
        let sample = DATABASES.iter().find(|sample| sample.path == path).expect(path);
        let (dir, path) = copy(sample);
        let connection = Connection::open(&path).expect("opens");
        connection.execute_batch(&sql).expect(sample.path);
        drop(connection);
        let memory = Memory::default();
        let report = memory.ingest(dir.path());
        let is_reported = !report.problems.is_empty()
            || memory.sessions().iter().any(|session| session.drift.is_some());
        assert!(is_reported, "{}", sample.path);
    }
}

/// Ids may have the sign that separates them from the database in the path of a session.
#[test]
fn a_session_whose_id_has_a_number_sign_is_read() {
    for (path, keys) in [
        (
            "devin/cli/sessions.db",
            &["sessions.id", "message_nodes.session_id", "subagent_heads.session_id"][..],
        ),
        ("zcode/cli/db/db.sqlite", &["session.id", "message.session_id", "part.session_id"]),
        ("forge/.forge.db", &["conversations.conversation_id"]),
        (
            "warp/warp.sqlite",
            &[
                "agent_conversations.conversation_id",
                "agent_tasks.conversation_id",
                "ai_queries.conversation_id",
            ],
        ),
    ] {
        let sample = DATABASES.iter().find(|sample| sample.path == path).expect(path);
        let (dir, path) = copy(sample);
        let session = sample.session;
        let renamed = format!("{session}#1%23");
        let mut sql = "PRAGMA foreign_keys = OFF;".to_owned();
        for key in keys {
            let (table, key) = key.split_once('.').expect("a table");
            sql += &format!("UPDATE {table} SET {key} = '{renamed}' WHERE {key} = '{session}';");
        }
        Connection::open(&path).expect("opens").execute_batch(&sql).expect(sample.path);
        let memory = Memory::default();
        memory.ingest(dir.path());
        assert!(!prompts(&memory, &safe_session_id(&renamed)).is_empty(), "{}", sample.path);
        let again = memory.ingest(dir.path());
        assert_eq!(again.files_unchanged, again.files, "{}", sample.path);
    }
}

/// The texts of Piebald are in tables of nodes. The table of their kinds only separates reasoning from messages;
/// without the tables of nodes, the messages that have lost their texts are counted.
#[test]
fn texts_of_piebald_are_read_without_the_table_of_their_kinds() {
    let sample = DATABASES.iter().find(|sample| sample.path == "piebald/app.db").expect("piebald");
    let (dir, path) = copy(sample);
    let whole = Memory::default();
    whole.ingest(dir.path());
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch("DROP TABLE message_part_text").expect("drops");
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(prompts(&memory, sample.session), prompts(&whole, sample.session));
    let texts = |memory: &Memory| -> Vec<String> {
        memory.events().into_iter().map(|event| event.text).collect()
    };
    assert_eq!(texts(&memory), texts(&whole));

    connection.execute_batch("DROP TABLE message_node_text").expect("drops");
    memory.ingest(dir.path());
    let drift = Memory::default();
    drift.ingest(dir.path());
    let drift = drift.session(sample.session).drift;
    assert!(drift.is_some_and(|drift| drift.contains("block:text")));
}

/// Sums of a session without a time of their own have that of its last message: otherwise the sums of
/// no day would have them.
#[test]
fn sums_of_a_session_have_a_time() {
    let memory = Memory::default();
    memory.ingest(&samples());
    let events = memory.events().into_iter();
    let without = events.filter(|event| event.timestamp.is_none() && !event.usage().is_unknown());
    assert_eq!(without.map(|event| event.session_id).collect::<Vec<_>>(), [""; 0]);
}

/// Other versions of an agent may not have each column. Those that a session can do without cost nothing
/// else.
#[test]
fn a_column_that_is_missing_costs_no_session() {
    for (path, columns) in [
        (
            "forge/.forge.db",
            &["conversations.title", "conversations.created_at", "conversations.updated_at"][..],
        ),
        (
            "devin/cli/sessions.db",
            &["sessions.last_activity_at", "message_nodes.created_at", "subagent_heads.updated_at"],
        ),
        ("zcode/cli/db/db.sqlite", &["session.time_updated", "message.time_updated"]),
        (
            "antigravity-ide/conversations/b7d3e810-5f2c-4a69-9e04-1c86f0a2d75b.db",
            &["steps.error_details", "trajectory_metadata_blob.data"],
        ),
        (
            "piebald/app.db",
            &["chats.updated_at", "chats.is_deleted", "messages.error", "messages.updated_at"],
        ),
        (
            "warp/warp.sqlite",
            &[
                "agent_conversations.last_modified_at",
                "agent_tasks.last_modified_at",
                "ai_queries.model_id",
            ],
        ),
    ] {
        let sample = DATABASES.iter().find(|sample| sample.path == path).expect(path);
        for column in columns {
            let (dir, path) = copy(sample);
            let (table, name) = column.split_once('.').expect("a table");
            let connection = Connection::open(&path).expect("opens");
            connection
                .execute_batch(&format!("ALTER TABLE {table} RENAME COLUMN {name} TO other_name"))
                .expect(column);
            drop(connection);
            let memory = Memory::default();
            let report = memory.ingest(dir.path());
            assert!(report.problems.is_empty(), "{column}: {:?}", report.problems);
            assert!(!prompts(&memory, sample.session).is_empty(), "{column}");
        }
    }
}

/// A copy of a database, as in a backup, counts nothing a second time.
#[test]
fn copies_of_a_database_count_once() {
    for sample in DATABASES {
        let (dir, path) = copy(sample);
        let counts = |memory: &Memory| {
            let own: Vec<_> = memory.events().into_iter().filter(|e| !e.is_replay).collect();
            let tokens: i64 = own.iter().map(|event| event.usage().total()).sum();
            (own.len(), tokens)
        };
        let one = Memory::default();
        one.ingest(dir.path());

        let (other, _) = copy(sample);
        let both = Memory::default();
        both.ingest_all(&[dir.path().to_owned(), other.path().to_owned()]);
        assert_eq!(counts(&both), counts(&one), "{}", path.display());
    }
}

/// The editor keeps a chat in its database, and writes a transcript of it without tokens and results.
#[test]
fn a_transcript_of_a_chat_in_the_database_is_no_second_session() {
    let chat = "8c3f51d0-a2e7-4b96-8d14-70f9e6b5c2a3";
    let other = "0b6f1f7e-3f0c-4a4e-9f4b-1d2c3b4a5f60";
    let home = tempfile::tempdir().expect("tempdir");
    let record =
        r#"{"role":"user","message":{"content":[{"type":"text","text":"Count the boats"}]}}"#;
    for id in [chat, other] {
        let folder = home.path().join(".cursor/projects/work-pier/agent-transcripts").join(id);
        fs::create_dir_all(&folder).expect("creates");
        fs::write(folder.join(format!("{id}.jsonl")), format!("{record}\n")).expect("writes");
    }
    let database = home.path().join(".config/Cursor/User/globalStorage/state.vscdb");
    fs::create_dir_all(database.parent().expect("a folder")).expect("creates");
    fs::copy(samples().join("cursoride/globalStorage/state.vscdb"), &database).expect("copies");

    let memory = Memory::default();
    let report = memory.ingest(home.path());
    assert_eq!(report.files_sidecar, 1, "{report:?}");
    let mut found: Vec<String> = memory.sessions().into_iter().map(|row| row.session_id).collect();
    found.retain(|id| [chat, other].iter().any(|known| id.starts_with(known)));
    found.sort();
    assert_eq!(found, [other, chat]);
}

/// Agents whose chats have a database each write a transcript of them as well.
#[test]
fn a_transcript_of_a_chat_with_a_database_is_no_second_session() {
    let home = tempfile::tempdir().expect("tempdir");
    let cursor = "5c0e9b27-41d8-4f6a-8a93-d7b2e60f1c48";
    let antigravity = "b7d3e810-5f2c-4a69-9e04-1c86f0a2d75b";
    let step = r#"{"step_index":0,"source":"USER_EXPLICIT","type":"USER_INPUT","content":"Hi"}"#;
    let message = r#"{"role":"user","message":{"content":[{"type":"text","text":"Hi"}]}}"#;
    for (folder, name, line) in [
        (format!(".cursor/projects/w/agent-transcripts/{cursor}"), cursor, message),
        (
            format!(".gemini/antigravity/brain/{antigravity}/.system_generated/logs"),
            "transcript_full",
            step,
        ),
    ] {
        let folder = home.path().join(folder);
        fs::create_dir_all(&folder).expect("creates");
        fs::write(folder.join(format!("{name}.jsonl")), format!("{line}\n")).expect("writes");
    }
    let memory = Memory::default();
    memory.ingest(home.path());
    assert_eq!(prompts(&memory, cursor), ["Hi"]);
    assert_eq!(prompts(&memory, antigravity), ["Hi"]);

    for (id, place) in [
        (cursor, format!(".cursor/chats/8f0c/{cursor}/store.db")),
        (antigravity, format!(".gemini/antigravity/conversations/{antigravity}.db")),
    ] {
        let sample = DATABASES.iter().find(|sample| sample.session == id).expect(id);
        let path = home.path().join(place);
        fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        fs::copy(samples().join(sample.path), &path).expect("copies");
    }
    let whole = Memory::default();
    let report = whole.ingest(home.path());
    assert_eq!((report.files_sidecar, whole.sessions().len()), (2, 2), "{report:?}");
}

/// A step of Antigravity that ends after later ones appears in its place.
#[test]
fn a_step_that_ends_late_is_read() {
    let sample = DATABASES.iter().find(|sample| sample.path.starts_with("antigravity-ide"));
    let sample = sample.expect("a sample");
    let (dir, path) = copy(sample);
    let set = |status: i64| {
        let connection = Connection::open(&path).expect("opens");
        connection
            .execute("UPDATE steps SET status = ?1 WHERE idx = 4", [status])
            .expect("updates");
    };
    let texts = |memory: &Memory| -> Vec<String> {
        memory
            .events()
            .into_iter()
            .filter(|event| !event.is_replay)
            .map(|event| event.text)
            .collect()
    };
    set(2);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let before = memory.events().len();
    set(3);
    memory.ingest(dir.path());
    assert_eq!(memory.events().len(), before + 1);
    assert_eq!(memory.sessions().len(), 1);
    let whole = Memory::default();
    whole.ingest(dir.path());
    assert_eq!(texts(&memory), texts(&whole));
}

#[test]
fn a_transcript_of_a_session_in_the_database_is_not_read() {
    let sample = DATABASES.iter().find(|sample| sample.path.starts_with("devin"));
    let (dir, path) = copy(sample.expect("a sample"));
    let folder = path.with_file_name("transcripts");
    fs::create_dir_all(&folder).expect("creates");
    for id in ["quiet-lantern-4f2a", "old-lantern-77b1"] {
        let transcript = format!(
            r#"{{"schema_version":"ATIF-v1.7","session_id":"{id}","agent":{{"name":"devin",
            "version":"1"}},"steps":[{{"step_id":1,"source":"user","message":"Hello"}}]}}"#
        );
        fs::write(folder.join(format!("{id}.json")), transcript).expect("writes");
    }
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(report.files_sidecar, 1, "{report:?}");
    assert_eq!(prompts(&memory, "old-lantern-77b1"), ["Hello"]);
}

/// A change that is not committed may be rolled back.
#[test]
fn an_unfinished_change_with_a_rollback_journal_is_not_read() {
    let sample = DATABASES.iter().find(|sample| sample.path.starts_with("cursoride"));
    let sample = sample.expect("a sample");
    let (dir, path) = copy(sample);
    let connection = Connection::open(&path).expect("opens");
    connection.pragma_update(None, "journal_mode", "delete").expect("a journal");
    // Pages are written into the database before the commit.
    connection.pragma_update(None, "cache_size", 1).expect("a small cache");
    connection.execute_batch("BEGIN").expect("begins");
    let filler = "INSERT INTO cursorDiskKV SELECT 'filler:' || column1, printf('%.5000c', 'x') \
        FROM (VALUES (1), (2), (3), (4), (5), (6))";
    connection.execute_batch(filler).expect("inserts");
    connection.execute_batch(sample.prompt).expect("inserts");

    let memory = Memory::default();
    memory.ingest(dir.path());
    let found = prompts(&memory, sample.session);
    assert!(!found.iter().any(|prompt| prompt == "One more thing."), "{found:?}");

    connection.execute_batch("COMMIT").expect("commits");
    memory.ingest(dir.path());
    let found = prompts(&memory, sample.session);
    assert_eq!(found.last().map(String::as_str), Some("One more thing."));
}

#[test]
fn a_call_that_failed_names_its_folder_as_well() {
    let sample = DATABASES.iter().find(|sample| sample.path.starts_with("cursoride"));
    let sample = sample.expect("a sample");
    let (dir, path) = copy(sample);
    let change = r#"UPDATE cursorDiskKV SET value = json_set(value,
        '$.toolFormerData.result', '{"output":"x","resultingWorkingDirectory":"/srv/pier"}',
        '$.toolFormerData.error', '{"clientVisibleErrorMessage":"failed"}')
        WHERE key LIKE 'bubbleId:8c3f51d0%:5a70f9c3%';
        UPDATE composerHeaders SET value = json_remove(value, '$.workspaceIdentifier')"#;
    Connection::open(&path).expect("opens").execute_batch(change).expect("updates");
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.session(sample.session).cwd.as_deref(), Some("/srv/pier"));
}

#[test]
fn a_call_with_the_name_of_the_ledger_is_not_a_row_of_it() {
    let sample = DATABASES.iter().find(|sample| sample.path.starts_with("goose"));
    let sample = sample.expect("a sample");
    let (dir, path) = copy(sample);
    let change = r#"DELETE FROM usage_ledger;
        UPDATE messages SET content_json = replace(content_json, '"arguments":{',
        '"arguments":{"table":"usage_ledger",') WHERE id = 2"#;
    Connection::open(&path).expect("opens").execute_batch(change).expect("updates");
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.session(sample.session).usage().input, Some(15560));
}

/// Versions of ZCode name the last message that was undone, or the first one after it.
#[test]
fn what_the_user_of_zcode_undid_is_abandoned_in_both_forms() {
    let zcode = DATABASES.iter().find(|sample| sample.path.starts_with("zcode")).expect("zcode");
    let undone = |change: &str| {
        let (dir, path) = copy(zcode);
        Connection::open(&path).expect("opens").execute_batch(change).expect("sql");
        let memory = Memory::default();
        memory.ingest(dir.path());
        memory.session(zcode.session).abandoned
    };
    assert_eq!(undone("").as_deref(), Some("10-13"));
    let of = |text: &str| format!("(SELECT message_id FROM part WHERE data LIKE '%{text}%')");
    let (first, next) = (of("into the README"), of("into the CHANGELOG"));
    let older = format!(
        "UPDATE session SET revert = json_object('targetMessageID', {first}, \
         'createdMessageID', {next}) WHERE revert IS NOT NULL"
    );
    assert_eq!(undone(&older).as_deref(), Some("10-13"));
    let of_nothing = r#"UPDATE session SET revert = '{"targetMessageID":"gone"}'"#;
    assert_eq!(undone(of_nothing), None);
}
