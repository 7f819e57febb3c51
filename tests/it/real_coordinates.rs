//! Turns, steps and tokens of real sessions against numbers found by reading the raw logs.

use serde::Deserialize;
use serde_json::Value;

use crate::env::{TestEnv, real_logs};

#[derive(Deserialize)]
struct Expectations {
    session: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    path: String,
    turns: i64,
    steps: i64,
    user_events: i64,
    tool_calls: i64,
    tool_results: i64,
    tool_errors: i64,
    tokens: Option<Tokens>,
    #[serde(default)]
    record: Vec<Record>,
}

#[derive(Deserialize)]
struct Tokens {
    input: Option<i64>,
    output: Option<i64>,
    cache_read: Option<i64>,
    cache_write: Option<i64>,
}

#[derive(Deserialize)]
struct Record {
    byte_offset: i64,
    byte_length: i64,
    event_type: String,
    turn_index: i64,
    step_index: Option<i64>,
}

#[test]
fn coordinates_are_those_found_by_hand() {
    let Some(logs) = real_logs() else { return };
    let expectations: Expectations =
        toml::from_str(include_str!("real_sessions.toml")).expect("expectations");
    assert!(expectations.session.len() >= 10);
    let mut wrong = Vec::new();
    for expected in &expectations.session {
        // Alone in its store: copies of it elsewhere do not matter here.
        let env = TestEnv::new();
        env.ingest(logs.join(&expected.path));
        let one = |sql: &str| env.rows(sql).pop().map_or(Value::Null, Value::from);
        let mut compare = |what: &str, got: &Value, want: i64| {
            if got.as_i64() != Some(want) {
                wrong.push(format!("{} {what}: {got}, by hand {want}", expected.path));
            }
        };
        let counts = one(
            "SELECT count(*) FILTER (event_type = 'user'), count(*) FILTER (event_type = 'tool_call'), \
            count(*) FILTER (event_type = 'tool_result'), count(*) FILTER (event_type = 'tool_result' AND is_error) \
            FROM events WHERE NOT is_replay",
        );
        let session = one(
            "SELECT turns, steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens FROM sessions",
        );
        compare("turns", &session[0], expected.turns);
        compare("steps", &session[1], expected.steps);
        compare("user events", &counts[0], expected.user_events);
        compare("tool calls", &counts[1], expected.tool_calls);
        compare("tool results", &counts[2], expected.tool_results);
        compare("tool errors", &counts[3], expected.tool_errors);
        if let Some(tokens) = &expected.tokens {
            let named = [
                ("input", tokens.input),
                ("output", tokens.output),
                ("cache_read", tokens.cache_read),
                ("cache_write", tokens.cache_write),
            ];
            for (at, (name, want)) in named.into_iter().enumerate() {
                if let Some(want) = want {
                    compare(name, &session[2 + at], want);
                }
            }
        }
        for record in &expected.record {
            let sql = format!(
                "SELECT source_length, turn_index, step_index FROM events WHERE source_offset = {} AND event_type = '{}' ORDER BY event_index LIMIT 1",
                record.byte_offset, record.event_type
            );
            let row = one(&sql);
            let what = format!("{} at byte {}", record.event_type, record.byte_offset);
            compare(&format!("{what} length"), &row[0], record.byte_length);
            compare(&format!("{what} turn"), &row[1], record.turn_index);
            if let Some(step) = record.step_index {
                compare(&format!("{what} step"), &row[2], step);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
