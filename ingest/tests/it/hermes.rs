//! Sessions in the database of Hermes, alone and next to saved sessions.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use schemas::session::EventRow;
use schemas::{EventType, Usage};

use crate::memory::Memory;

/// The tables that are read, as of schema 30 but without most columns that are not.
pub(crate) const TABLES: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT,
        model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL,
        ended_at REAL, end_reason TEXT, input_tokens INTEGER DEFAULT 0,
        output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
        cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, cwd TEXT,
        git_branch TEXT, title TEXT, title_source TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
        role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
        timestamp REAL NOT NULL, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
        codex_reasoning_items TEXT, observed INTEGER DEFAULT 0,
        _compressed_summary INTEGER NOT NULL DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
        compacted INTEGER NOT NULL DEFAULT 0, display_kind TEXT);
    CREATE TABLE session_model_usage (session_id TEXT NOT NULL, model TEXT NOT NULL,
        billing_provider TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '',
        input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
        cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0,
        reasoning_tokens INTEGER NOT NULL DEFAULT 0, first_seen REAL, last_seen REAL,
        PRIMARY KEY (session_id, model, billing_provider, task));";

/// A session of two turns, with a failing and a parallel call.
pub(crate) const CONVERSATION: &str = r#"
    INSERT INTO sessions (id, source, model, started_at, cwd, git_branch, title, title_source,
        input_tokens, output_tokens, cache_read_tokens)
        VALUES ('s1', 'cli', 'big', 1000, '/w/harbor', 'main', 'Fix the crane', 'llm',
        900, 90, 30);
    INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name,
        timestamp, reasoning, display_kind) VALUES
        ('s1', 'user', 'Fix the crane', NULL, NULL, NULL, 1001.5, NULL, NULL),
        ('s1', 'assistant', '', NULL, '[{"id":"c1","type":"function","function":
            {"name":"terminal","arguments":"{\"command\":\"make\"}"}}]', NULL, 1002, 'See.', NULL),
        ('s1', 'tool', '{"output":"broken","exit_code":2}', 'c1', NULL, 'terminal', 1003, NULL,
            NULL),
        ('s1', 'user', 'Interrupted work continues.', NULL, NULL, NULL, 1004, NULL,
            'auto_continue'),
        ('s1', 'assistant', 'It is broken.', NULL, NULL, NULL, 1005, NULL, NULL);"#;

/// The home of Hermes in a folder, with an open connection to its database.
struct Home {
    dir: tempfile::TempDir,
    connection: Connection,
}

impl Home {
    fn new(sql: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let connection = Connection::open(dir.path().join("state.db")).expect("opens");
        connection.pragma_update(None, "journal_mode", "wal").expect("wal");
        connection.execute_batch(TABLES).expect("tables");
        let home = Self { dir, connection };
        for sql in sql {
            home.execute(sql);
        }
        home
    }

    fn execute(&self, sql: &str) {
        self.connection.execute_batch(sql).expect(sql);
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a saved session.
    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join("sessions").join(name);
        fs::create_dir_all(path.parent().expect("folder")).expect("creates");
        fs::write(&path, content).expect("writes");
        path
    }
}

fn texts(memory: &Memory, kind: EventType) -> Vec<String> {
    let events = memory.events().into_iter();
    let own = events.filter(|event| event.event_type == kind && !event.is_replay);
    own.map(|event| event.text).collect()
}

fn usage_events(memory: &Memory, subtype: &str) -> Vec<EventRow> {
    let events = memory.events().into_iter();
    events.filter(|event| event.subtype.as_deref() == Some(subtype) && !event.is_replay).collect()
}

fn sum(events: &[EventRow]) -> Usage {
    events.iter().fold(Usage::default(), |sum, event| sum.plus(event.usage()))
}

fn line(role: &str, text: &str) -> String {
    format!(
        "{{\"role\":\"{role}\",\"content\":\"{text}\",\"timestamp\":\"2026-10-24T09:00:00\"}}\n"
    )
}

#[test]
fn a_session_of_the_database_is_decoded() {
    let home = Home::new(&[CONVERSATION]);
    let memory = Memory::default();
    memory.ingest(home.path());

    let session = memory.session("s1");
    assert_eq!(session.title.as_deref(), Some("Fix the crane"));
    assert_eq!(session.cwd.as_deref(), Some("/w/harbor"));
    assert_eq!(session.git_branch.as_deref(), Some("main"));
    assert_eq!(session.started_at, Some(1_000_000_000));
    assert_eq!(session.usage_confidence.as_deref(), Some("estimated"));
    assert_eq!(texts(&memory, EventType::User), ["Fix the crane"]);
    assert_eq!(texts(&memory, EventType::Reasoning), ["See."]);
    assert_eq!(texts(&memory, EventType::Message), ["It is broken."]);
    assert_eq!(texts(&memory, EventType::Notification), ["Interrupted work continues."]);
    let events = memory.events();
    let result = events.iter().find(|event| event.event_type == EventType::ToolResult);
    let result = result.expect("a result");
    assert_eq!(result.text, "broken");
    assert_eq!((result.exit_code, result.is_error), (Some(2), Some(true)));
    assert_eq!(result.command.as_deref(), Some("make"));

    // Totals without counts by model, as a gateway sets them.
    let shares = usage_events(&memory, "estimated_share");
    assert_eq!(shares.len(), 2);
    let total = sum(&shares);
    assert_eq!((total.input, total.output, total.cache_read), (Some(900), Some(90), Some(30)));
    assert!(shares.iter().all(|share| share.model.as_deref() == Some("big")));
}

#[test]
fn counts_belong_to_the_model_and_the_task_that_used_them() {
    let by_model = "
        INSERT INTO session_model_usage (session_id, model, billing_provider, task, input_tokens,
            output_tokens, first_seen, last_seen) VALUES
            ('s1', 'big', 'a', '', 500, 50, 1001.9, 1001.9),
            ('s1', 'big', 'b', '', 100, 10, 1001.9, 1002),
            ('s1', 'small', '', '', 300, 30, 1004.9, 1004.9),
            ('s1', 'tiny', '', 'title_generation', 70, 7, 1003.5, 1003.5),
            ('s1', 'unused', '', '', 0, 0, 1003, 1003);";
    let home = Home::new(&[CONVERSATION, by_model]);
    let memory = Memory::default();
    memory.ingest(home.path());

    let shares = usage_events(&memory, "estimated_share");
    let of = |event: &EventRow| (event.model.clone().unwrap_or_default(), event.usage().input);
    // 30 tokens of the cache are in the totals only, and so those of the session's model.
    assert_eq!(
        shares.iter().map(of).collect::<Vec<_>>(),
        [("big".to_owned(), Some(600)), ("small".to_owned(), Some(300))]
    );
    assert_eq!(sum(&shares).cache_read, Some(30));
    let answer = memory.events().into_iter().find(|event| event.text == "It is broken.");
    assert_eq!(answer.expect("the answer").model.as_deref(), Some("small"));
    let tasks = usage_events(&memory, "task_sum");
    let [task] = tasks.as_slice() else { panic!("{tasks:?}") };
    assert_eq!((task.text.as_str(), of(task)), ("title_generation", ("tiny".to_owned(), Some(70))));
    assert_eq!(task.timestamp, Some(1_003_500_000));
    // It comes after what was read when it was counted, whatever follows.
    let before = memory.events().into_iter().filter(|event| event.event_index < task.event_index);
    assert_eq!(before.filter(|event| event.event_type == EventType::ToolResult).count(), 1);
}

#[test]
fn a_session_that_grows_or_only_changes_its_counts_is_read_again() {
    let home = Home::new(&[CONVERSATION]);
    let memory = Memory::default();
    memory.ingest(home.path());
    let before = memory.events();
    assert_eq!(memory.ingest(home.path()).files_unchanged, 1);

    home.execute("UPDATE sessions SET input_tokens = 1000 WHERE id = 's1'");
    memory.ingest(home.path());
    assert_eq!(sum(&usage_events(&memory, "estimated_share")).input, Some(1000));
    home.execute(
        "INSERT INTO messages (session_id, role, content, timestamp)
        VALUES ('s1', 'user', 'Thanks', 1009)",
    );
    memory.ingest(home.path());
    assert_eq!(texts(&memory, EventType::User), ["Fix the crane", "Thanks"]);
    let coordinates = |event: &EventRow| (event.event_index, event.turn_index, event.event_type);
    let after = memory.events();
    assert!(before.iter().map(coordinates).eq(after.iter().take(before.len()).map(coordinates)));
}

#[test]
fn messages_that_were_taken_back_are_abandoned_and_compressed_ones_are_not() {
    let rewind = "
        INSERT INTO messages (session_id, role, content, timestamp, active, compacted) VALUES
            ('s1', 'user', 'Paint it', 1010, 0, 0), ('s1', 'assistant', 'Painted.', 1011, 0, 0);
        UPDATE messages SET active = 0, compacted = 1 WHERE timestamp < 1009;
        INSERT INTO messages (session_id, role, content, timestamp, _compressed_summary)
            VALUES ('s1', 'user', 'What happened so far', 1012, 1);
        INSERT INTO messages (session_id, role, content, timestamp)
            SELECT session_id, role, content, timestamp FROM messages WHERE timestamp = 1005;";
    let home = Home::new(&[CONVERSATION, rewind]);
    let memory = Memory::default();
    memory.ingest(home.path());

    // The answer that outlived the compression is one message.
    assert_eq!(texts(&memory, EventType::Message), ["It is broken.", "Painted."]);
    let summaries = usage_events(&memory, "compact_summary");
    assert_eq!(summaries.len(), 1);
    let painted: Vec<i32> = memory
        .events()
        .into_iter()
        .filter(|event| event.text.starts_with("Paint"))
        .map(|event| event.event_index)
        .collect();
    let abandoned = memory.session("s1").abandoned.expect("a range");
    assert_eq!(abandoned, format!("{}-{}", painted[0], painted[1] + 1));
}

#[test]
fn branches_continuations_and_subagents_name_their_parents() {
    let children = r#"
        INSERT INTO sessions (id, source, model_config, parent_session_id, started_at,
            input_tokens) VALUES
            ('fork', 'cli', '{"_branched_from":"s1"}', 's1', 2000, 40),
            ('agent', 'tool', '{"_delegate_from":"s1"}', 's1', 2000, 0),
            ('reset', 'telegram', '{"_reset_from":"s1"}', 's1', 2000, 0);
        INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, tool_name,
            timestamp, reasoning, display_kind)
            SELECT 'fork', role, content, tool_calls, tool_call_id, tool_name, timestamp,
            reasoning, display_kind FROM messages WHERE session_id = 's1';
        INSERT INTO messages (session_id, role, content, timestamp) VALUES
            ('fork', 'user', 'Try again', 2001), ('fork', 'assistant', 'Done.', 2002),
            ('agent', 'user', 'Look at the crane', 2001), ('reset', 'user', 'Good morning', 2001);"#;
    let home = Home::new(&[CONVERSATION, children]);
    let memory = Memory::default();
    memory.ingest(home.path());

    let lineage = |id: &str| {
        let session = memory.session(id);
        (session.parent_session_id, session.relation)
    };
    let parent = |relation: &str| (Some("s1".to_owned()), Some(relation.to_owned()));
    assert_eq!(lineage("fork"), parent("forked_from"));
    assert_eq!(lineage("agent"), parent("subagent_of"));
    assert_eq!(lineage("reset"), (None, None));
    let prompts = texts(&memory, EventType::User);
    assert_eq!(prompts.iter().filter(|prompt| *prompt == "Fix the crane").count(), 1);
    // The counts of the fork are those of its own response.
    let fork = usage_events(&memory, "estimated_share").into_iter();
    let fork: Vec<EventRow> = fork.filter(|event| event.session_id == "fork").collect();
    assert_eq!(fork.iter().map(|event| event.usage().input).collect::<Vec<_>>(), [Some(40)]);
}

#[test]
fn a_session_in_a_file_and_in_the_database_counts_once_in_any_order() {
    let document = "{\"session_id\":\"s1\",\"platform\":\"cli\",\
        \"session_start\":\"1970-01-01T00:16:40\",\"messages\":[\
        {\"role\":\"user\",\"content\":\"Fix the crane\"},\
        {\"role\":\"assistant\",\"content\":\"It is broken.\"}]}";
    let lines = line("session_meta\",\"platform\":\"cli", "")
        + &line("user", "Fix the crane")
        + &line("assistant", "It is broken.");
    for (name, content) in [("session_s1.json", document), ("s1.jsonl", &lines)] {
        for is_file_first in [false, true] {
            let home = Home::new(if is_file_first { &[] } else { &[CONVERSATION] });
            home.write(name, content);
            let memory = Memory::default();
            memory.ingest(home.path());
            if is_file_first {
                assert_eq!(texts(&memory, EventType::User), ["Fix the crane"], "{name}");
                home.execute(CONVERSATION);
                memory.ingest(home.path());
            }
            memory.ingest(home.path());

            let sessions = memory.sessions();
            let ids: Vec<&str> = sessions.iter().map(|row| row.session_id.as_str()).collect();
            assert_eq!(ids, ["s1"], "{name} {is_file_first}");
            assert_eq!(texts(&memory, EventType::User), ["Fix the crane"], "{name}");
            let total = sum(&usage_events(&memory, "estimated_share"));
            assert_eq!(total.input, Some(900), "{name} {is_file_first}");
        }
    }
}

#[test]
fn a_file_with_more_messages_than_the_database_stays_the_log() {
    let lines = line("session_meta\",\"platform\":\"cli", "")
        + &line("user", "One")
        + &line("assistant", "Two")
        + &line("user", "Three");
    let late = "INSERT INTO sessions (id, source, started_at) VALUES ('s1', 'cli', 1);
        INSERT INTO messages (session_id, role, content, timestamp)
            VALUES ('s1', 'user', 'Three', 3);";
    let home = Home::new(&[late]);
    home.write("s1.jsonl", &lines);
    let memory = Memory::default();
    memory.ingest(home.path());
    assert_eq!(texts(&memory, EventType::User), ["One", "Three"]);
    assert_eq!(memory.sessions().len(), 1);

    // Once the database has more, it is the log.
    let more = "INSERT INTO messages (session_id, role, content, timestamp) VALUES
        ('s1', 'assistant', 'Four', 4), ('s1', 'user', 'Five', 5), ('s1', 'user', 'Six', 6);";
    home.execute(more);
    memory.ingest(home.path());
    assert_eq!(memory.sessions().len(), 1);
    assert_eq!(texts(&memory, EventType::User), ["Three", "Five", "Six"]);
}

#[test]
fn older_tables_and_foreign_databases_are_read_as_far_as_they_go() {
    let dir = tempfile::tempdir().expect("tempdir");
    let connection = Connection::open(dir.path().join("state.db")).expect("opens");
    connection.execute_batch("CREATE TABLE other (a TEXT)").expect("sql");
    let memory = Memory::default();
    assert_eq!(memory.ingest(dir.path()).problems.len(), 0);
    assert!(memory.sessions().is_empty());

    connection
        .execute_batch(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL,
                input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER,
                cache_write_tokens INTEGER, reasoning_tokens INTEGER);
            CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,
                content TEXT, timestamp REAL);
            INSERT INTO sessions VALUES ('s0', 'cli', 'm', 1, NULL, NULL, NULL, NULL, NULL),
                ('empty', 'cli', 'm', 1, 0, 0, 0, 0, 0);
            INSERT INTO messages VALUES (1, 's0', 'user', char(0) || 'json:[{\"type\":\"text\",
                \"text\":\"Hello\"}]', 2), (2, 's0', 'assistant', 'Hi', 3);",
        )
        .expect("sql");
    memory.ingest(dir.path());
    assert_eq!(texts(&memory, EventType::User), ["Hello"]);
    assert_eq!(memory.sessions().len(), 1, "a session without content is left out");
    assert_eq!(memory.session("s0").usage_confidence.as_deref(), Some("unknown"));
}

#[test]
fn rows_that_lost_their_session_are_reported() {
    let lost = "INSERT INTO messages (session_id, role, content, timestamp)
            VALUES ('lost', 'user', 'Hello', 1001);
        INSERT INTO session_model_usage (session_id, model) VALUES ('lost', 'big')";
    let home = Home::new(&[CONVERSATION, lost]);
    let memory = Memory::default();
    let report = memory.ingest(home.path());
    assert_eq!(texts(&memory, EventType::User), ["Fix the crane"]);
    for table in ["`messages`", "`session_model_usage`"] {
        let mut messages = report.problem_list.iter().map(|problem| &problem.message);
        assert!(messages.any(|message| message.contains(table)), "{:?}", report.problem_list);
    }
}

#[test]
fn huge_messages_are_left_out_and_nothing_is_written() {
    let giant = "INSERT INTO messages (session_id, role, content, timestamp)
        VALUES ('s1', 'tool', printf('%.*c', 70000000, 'x'), 1006),
        ('s1', 'user', 'And now?', 1007);";
    let home = Home::new(&[CONVERSATION, giant]);
    let files = |folder: &Path| {
        let files = fs::read_dir(folder).expect("lists");
        let mut files: Vec<_> = files.map(|file| file.expect("file").path()).collect();
        files.sort();
        files
    };
    let copy = tempfile::tempdir().expect("tempdir");
    for extension in ["", "-wal"] {
        let name = format!("state.db{extension}");
        fs::copy(home.path().join(&name), copy.path().join(&name)).expect("copies");
    }
    let before: Vec<_> = files(copy.path()).iter().map(fs::read).map(Result::unwrap).collect();
    let memory = Memory::default();
    memory.ingest(copy.path());
    assert_eq!(texts(&memory, EventType::User), ["Fix the crane", "And now?"]);
    let left_out = usage_events(&memory, "oversized_record");
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].text.contains("70000000 bytes"), "{}", left_out[0].text);
    let after: Vec<_> = files(copy.path()).iter().map(fs::read).map(Result::unwrap).collect();
    assert_eq!(before.len(), 2);
    assert!(before == after, "the database and its log are as before");
}
