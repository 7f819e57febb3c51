//! A response that several logs have counts once in the whole store, with its largest counts, in
//! whatever order the logs are read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::TestEnv;

/// A line of a response: its number, and its output tokens so far.
type Line = (usize, i64);

/// Returns a log of Claude Code that shares no record with others. Odd sessions do not name the API
/// request, as a subagent's messages or a server in between do.
fn log(session: usize, prompt: &str, lines: &[Line]) -> String {
    let id = session_id(session);
    let mut records = vec![
        json!({"type": "user", "message": {"role": "user", "content": prompt}}),
        response(1000 + session, 1, session),
    ];
    records.extend(lines.iter().map(|(number, output)| response(*number, *output, session)));
    let mut text = String::new();
    for (at, record) in records.iter_mut().enumerate() {
        let record_id = session * 10_000 + at;
        record["uuid"] = format!("00000000-0000-4000-8000-{record_id:012}").into();
        record["sessionId"] = id.as_str().into();
        record["timestamp"] = format!("2026-10-{:02}T10:{at:02}:00Z", session + 1).into();
        text += &record.to_string();
        text.push('\n');
    }
    text
}

fn response(number: usize, output: i64, session: usize) -> Value {
    let text = format!("part {output} of answer {number}");
    let mut record = json!({"type": "assistant", "message": {
        "id": format!("msg_{number}"), "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 100, "output_tokens": output}}});
    if session.is_multiple_of(2) {
        record["requestId"] = format!("req_{number}").into();
    }
    record
}

fn session_id(session: usize) -> String {
    format!("{session:08}-2b7d-4c0e-9a35-d1e84b7092fa")
}

/// A store with logs that are written one after the other.
struct Logs {
    env: TestEnv,
}

impl Logs {
    fn new() -> Self {
        let env = TestEnv::new();
        std::fs::create_dir(env.path("logs")).expect("creates");
        Self { env }
    }

    fn path(&self, session: usize) -> PathBuf {
        self.env.path(format!("logs/{}.jsonl", session_id(session)))
    }

    fn write(&self, session: usize, lines: &[Line]) {
        self.write_text(session, log(session, "Begin", lines));
    }

    fn write_text(&self, session: usize, text: impl AsRef<[u8]>) {
        self.env.write(self.path(session), text);
    }

    fn remove(&self, session: usize) {
        self.env.remove(self.path(session));
    }

    fn ingest(&self) {
        self.env.ingest("logs");
    }

    /// Checks the output tokens that sessions count, without those of their own first responses.
    #[track_caller]
    fn assert_output(&self, expected: &[(usize, i64)]) {
        for (session, output) in expected {
            let id = session_id(*session);
            let sql = format!("SELECT output_tokens FROM sessions WHERE session_id = '{id}'");
            assert_eq!(self.env.number(&sql) - 1, *output, "{session}");
        }
    }

    /// Returns everything that is counted, by event and by session.
    fn counts(&self) -> [Vec<Vec<Value>>; 3] {
        [
            "SELECT session_id, event_index, event_type, is_replay, input_tokens, output_tokens FROM events ORDER BY ALL",
            "SELECT session_id, events, replay_events, input_tokens, output_tokens, recorded_output_tokens, usage_by_model, usage_confidence FROM sessions ORDER BY ALL",
            "SELECT session_id, request_id, sum(output_tokens) FROM usage GROUP BY ALL ORDER BY ALL",
        ]
        .map(|sql| self.env.rows(sql))
    }
}

#[test]
fn a_line_copied_to_another_log_counts_once_in_the_larger_one() {
    let logs = Logs::new();
    logs.write(0, &[(1, 10), (2, 20)]);
    logs.write(2, &[(3, 30), (1, 10)]);
    logs.ingest();
    logs.assert_output(&[(0, 30), (2, 30)]);
    // The original turns out to have been the beginning of the response only.
    logs.write(2, &[(3, 30), (1, 10), (1, 15)]);
    logs.ingest();
    logs.assert_output(&[(0, 20), (2, 45)]);
    // A log without the ids of API requests has it too.
    logs.write(1, &[(1, 15), (2, 25)]);
    logs.ingest();
    logs.assert_output(&[(0, 0), (1, 40), (2, 30)]);
    let stats = logs.env.json(["stats", "--by", "provider"]);
    let tokens = &stats["data"]["groups"][0]["tokens"];
    assert_eq!(tokens["counted_once"]["output_tokens"], 70 + 3);
    // The texts stay where they are.
    let copied = logs.env.rows("SELECT count(*) FROM events WHERE is_replay AND text <> ''");
    assert_eq!(copied, [[0]]);
}

#[test]
fn a_forgotten_response_counts_nowhere_until_it_comes_back() {
    let logs = Logs::new();
    logs.write(0, &[(1, 10)]);
    logs.ingest();
    logs.write(1, &[(1, 10), (2, 20)]);
    logs.ingest();
    logs.assert_output(&[(0, 10), (1, 20)]);
    logs.env.run(["forget", &session_id(0), "--yes"]).ok();
    // What the forgotten session said is a copy here.
    logs.assert_output(&[(1, 20)]);
    logs.env.run(["forget", "--undo"]).ok();
    logs.ingest();
    logs.assert_output(&[(0, 10), (1, 20)]);
    // A log that is gone keeps what it counts.
    logs.remove(0);
    logs.ingest();
    logs.assert_output(&[(0, 10), (1, 20)]);
    // A log that is written over does not.
    logs.write_text(1, log(1, "Begin otherwise", &[(1, 12)]));
    logs.ingest();
    logs.assert_output(&[(0, 0), (1, 12)]);
    logs.env.run(["compact"]).ok();
    logs.write_text(1, log(1, "Begin again", &[(2, 5)]));
    logs.ingest();
    // The earlier version of the log has larger counts of that response.
    logs.assert_output(&[(0, 10), (1, 0)]);
}

#[test]
fn problems_and_state_of_a_log_stay_when_another_session_counts_its_response() {
    let logs = Logs::new();
    let broken = log(0, "Begin", &[(1, 10)]) + "{\"type\": broken}\n";
    logs.write_text(0, &broken);
    logs.ingest();
    let problems = logs.env.rows("SELECT path, line, kind FROM problems");
    assert_eq!(problems.len(), 1);
    logs.write(2, &[(1, 20)]);
    logs.ingest();
    logs.assert_output(&[(0, 0), (2, 20)]);
    assert_eq!(logs.env.rows("SELECT path, line, kind FROM problems"), problems);
    // It is continued, not read again.
    let more = log(0, "Begin", &[(1, 10), (2, 7)]);
    let last = more.lines().last().expect("a line");
    logs.write_text(0, format!("{broken}{last}\n"));
    logs.env.ingest(logs.env.path("logs")).has(json!({"files_grown": 1}));
    logs.assert_output(&[(0, 7), (2, 20)]);
    assert_eq!(logs.env.rows("SELECT path, line, kind FROM problems"), problems);
}

/// Returns a rollout of Codex with these responses and their output tokens.
fn rollout(session: usize, responses: &[(&str, i64)]) -> String {
    let record = |at: usize, kind: &str, payload: Value| {
        let time = format!("2026-10-{:02}T10:{at:02}:00Z", session + 1);
        json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n"
    };
    let message = |role: &str, text: String| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    let meta = json!({"id": session_id(session), "cwd": "/home/mira/x", "cli_version": "0.160.0"});
    let mut log = record(0, "session_meta", meta);
    log += &record(1, "response_item", message("user", format!("Begin {session}")));
    for (at, (id, output)) in responses.iter().enumerate() {
        log += &record(2 * at + 2, "response_item", message("assistant", format!("Answer {id}")));
        let usage = json!({"input_tokens": 100, "output_tokens": output});
        let payload = json!({"turn_id": "1", "response_id": id, "usage": usage});
        log += &record(2 * at + 3, "token_usage_record", payload);
    }
    log
}

#[test]
fn a_response_of_codex_in_an_unrelated_log_counts_once() {
    let logs = Logs::new();
    let write = |session: usize, responses: &[(&str, i64)]| {
        let name = format!("logs/rollout-{}.jsonl", session_id(session));
        logs.env.write(name, rollout(session, responses));
    };
    write(0, &[("resp_a", 6), ("resp_b", 7)]);
    logs.ingest();
    write(1, &[("resp_c", 9), ("resp_a", 6)]);
    logs.ingest();
    // One less, as for the first response of the other logs here.
    logs.assert_output(&[(0, 12), (1, 8)]);
}

/// One thing that happens to the logs or to the store.
#[derive(Debug, Clone)]
enum Step {
    Append(usize, Line),
    Remove(usize),
    Compact,
    Ingest,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0usize..5, 0usize..4, 1i64..5).prop_map(|(log, number, output)| Step::Append(log, (number, output))),
        1 => (0usize..5).prop_map(Step::Remove),
        1 => Just(Step::Compact),
        5 => Just(Step::Ingest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Against a store that reads the last state of all logs at once, and against the largest counts
    /// of each response. Logs that lose records are in `earlier.rs`, forgotten ones in
    /// `forget_copies.rs`.
    #[test]
    fn every_response_counts_once_in_any_order(steps in proptest::collection::vec(step(), 1..24)) {
        let logs = Logs::new();
        let mut contents: BTreeMap<usize, Vec<Line>> = BTreeMap::new();
        let mut is_closed = [false; 5];
        for step in steps {
            match step {
                Step::Append(session, line) if !is_closed[session] => {
                    let content = contents.entry(session).or_default();
                    content.push(line);
                    logs.write(session, content);
                }
                Step::Remove(session) if !is_closed[session] && contents.contains_key(&session) => {
                    logs.ingest();
                    logs.remove(session);
                    is_closed[session] = true;
                }
                Step::Compact => {
                    let _ = logs.env.run(["compact"]);
                }
                Step::Ingest => logs.ingest(),
                Step::Append(..) | Step::Remove(_) => {}
            }
        }
        prop_assume!(!contents.is_empty());
        logs.ingest();

        let fresh = Logs::new();
        let mut largest: BTreeMap<usize, i64> = BTreeMap::new();
        for (session, lines) in &contents {
            fresh.write(*session, lines);
            largest.insert(1000 + session, 1);
            for (number, output) in lines {
                let known = largest.entry(*number).or_default();
                *known = (*known).max(*output);
            }
        }
        fresh.ingest();
        prop_assert_eq!(logs.counts(), fresh.counts());
        let total = logs.env.rows("SELECT sum(output_tokens), sum(input_tokens) FROM usage");
        let input = 100 * largest.len() as i64;
        prop_assert_eq!(&total, &[[json!(largest.values().sum::<i64>()), json!(input)]]);
    }
}
