//! Calls that run while `compact` or `forget` removes the files of their snapshot: they answer from
//! the store as it is then, and only real damage is reported.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemas::price::PriceTable;
use schemas::tool::query::QueryFormat;
use schemas::{ErrorCode, ExportFormat, ExportTable, Timestamp, ToolError};
use serde_json::{Value, json};
use sessions::export::{ExportArgs, export_sessions};
use sessions::report::SessionsReport;
use sql::SqlQuery;
use store::Store;
use tools::{Call, SessionSelection, Tools};

use crate::checks::Checks;
use crate::env::TestEnv;

/// A store of two segments, of which each session has one.
fn store_of_two() -> TestEnv {
    let env = TestEnv::new();
    for (id, hour) in [("first", "06"), ("second", "07")] {
        let log = env.log(id).cwd("/code/harbor").at(&format!("2026-10-29T{hour}:00:00Z"));
        log.user("Paint the lighthouse.").message("It is painted.").ingest();
    }
    env
}

fn tools_of(env: &TestEnv) -> Tools {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_sessions"));
    Tools::new(Arc::new(Store::new(env.store()))).with_program(program)
}

fn selection() -> SessionSelection {
    SessionSelection {
        session_ids: Vec::new(),
        provider: None,
        project: None,
        since: None,
        until: None,
    }
}

/// Something that reads the store. Returns its answer as text.
type Reading = fn(&TestEnv, &Tools, &Call<'_>) -> Result<String, ToolError>;

fn parse<T: serde::de::DeserializeOwned>(arguments: Value) -> T {
    serde_json::from_value(arguments).expect("arguments")
}

fn to_text(answer: impl serde::Serialize) -> String {
    serde_json::to_string(&answer).expect("JSON")
}

fn export(
    env: &TestEnv,
    tools: &Tools,
    call: &Call<'_>,
    format: ExportFormat,
    output: Option<&str>,
) -> Result<String, ToolError> {
    let args = ExportArgs {
        format,
        table: ExportTable::Events,
        selection: selection(),
        output: output.map(|name| env.path(name)),
        force: false,
        images: false,
        whole: false,
        has_ids: false,
        has_content: false,
    };
    let mut text = String::new();
    let summary = export_sessions(tools, &args, &PriceTable::built_in(), call, &mut |more| {
        text.push_str(more);
        true
    })?;
    Ok(to_text(summary) + &text)
}

/// Every way in which the program reads the store for an answer.
const READINGS: [(&str, Reading); 15] = [
    ("search_events", |_, tools, call| {
        tools.search_events(&parse(json!({ "query": "lighthouse" })), call).map(to_text)
    }),
    ("search_sessions", |_, tools, call| {
        tools.search_sessions(&parse(json!({ "query": "lighthouse" })), call).map(to_text)
    }),
    ("list_sessions", |_, tools, call| tools.list_sessions(&parse(json!({})), call).map(to_text)),
    ("get_session_details", |_, tools, call| {
        tools.get_session_details(&parse(json!({ "session_id": "second" })), call).map(to_text)
    }),
    ("get_event_details", |_, tools, call| {
        tools.get_event_details(&parse(json!({ "event_ids": ["second:0"] })), call).map(to_text)
    }),
    ("analyze_session", |_, tools, call| {
        tools.analyze_session(&parse(json!({ "session_id": "second" })), call).map(to_text)
    }),
    ("session_stats", |_, tools, call| {
        tools.session_stats(&parse(json!({ "group_by": "session" })), call).map(to_text)
    }),
    ("query_sql", |_, tools, call| {
        let sql = "SELECT session_id, text FROM events";
        tools.query_sql(&parse(json!({ "sql": sql })), call).map(to_text)
    }),
    ("query", |_, tools, call| {
        let query = SqlQuery {
            sql: "SELECT session_id FROM sessions",
            format: Some(QueryFormat::Ndjson),
            max_rows: 100,
            max_bytes: 1 << 20,
            max_time: Duration::from_secs(30),
            sessions: None,
        };
        let mut out = Vec::new();
        match tools.write_query(&query, &mut out, call) {
            Ok(_) => Ok(String::from_utf8(out).expect("UTF-8")),
            Err(tools::WriteError::Tool(error)) => Err(error),
            Err(tools::WriteError::Output(error)) => panic!("{error}"),
        }
    }),
    ("show", |_, tools, call| {
        tools.read_transcript("second", call).map(|_| "the whole of second".to_owned())
    }),
    ("resume", |_, tools, call| {
        tools.write_handover(Some("second"), None, call).map(|handover| handover.text)
    }),
    ("export jsonl", |env, tools, call| export(env, tools, call, ExportFormat::Jsonl, None)),
    ("export parquet", |env, tools, call| {
        export(env, tools, call, ExportFormat::Parquet, Some("lake"))?;
        let found = fs::read_dir(env.path("lake")).expect("lists").count();
        Ok(format!("second {found}"))
    }),
    ("export markdown", |env, tools, call| {
        export(env, tools, call, ExportFormat::Markdown, Some("pages"))?;
        Ok(if env.path("pages/second.md").exists() { "second" } else { "none" }.to_owned())
    }),
    ("report", |_, tools, call| {
        let prices = PriceTable::built_in();
        let report = SessionsReport::read(tools, &selection(), &prices, call)?;
        Ok(format!("second of {}", report.session_count()))
    }),
];

#[test]
fn a_call_whose_files_are_removed_answers_from_the_store_as_it_is_then() {
    for (command, sessions) in [(&["compact"][..], 2), (&["forget", "first", "--yes"], 1)] {
        for (name, read) in READINGS {
            let env = store_of_two();
            if command[0] == "forget" {
                // A segment of the other session alone would stay.
                env.run(["compact"]).ok();
            }
            let tools = tools_of(&env);
            let call = Call::new(Timestamp::now(), &|| false);
            assert!(tools.answer_state(&call).is_some(), "the call has its snapshot");
            env.run(command).ok();
            let answer = read(&env, &tools, &call);
            let answer = answer.unwrap_or_else(|error| panic!("{command:?} {name}: {error}"));
            answer.shows("second");
            let seen = call.taken_snapshot().expect("a snapshot").sessions().len();
            assert_eq!(seen, sessions, "{command:?} {name}");
        }
    }
}

#[test]
fn a_file_that_is_really_missing_is_reported_as_before() {
    for (name, read) in READINGS {
        let env = store_of_two();
        let tools = tools_of(&env);
        let call = Call::new(Timestamp::now(), &|| false);
        assert!(tools.answer_state(&call).is_some(), "the call has its snapshot");
        for segment in fs::read_dir(env.store().join("segments")).expect("lists").flatten() {
            fs::remove_dir_all(segment.path()).expect("removes");
        }
        match read(&env, &tools, &call) {
            // The catalog has the rows of sessions.
            Ok(answer) => {
                assert!(["list_sessions", "query"].contains(&name), "{name}: {answer}");
            }
            Err(error) => assert_eq!(error.code, ErrorCode::StoreDamaged, "{name}: {error}"),
        }
    }
}

#[test]
fn status_counts_no_segment_as_damaged_that_was_merged_meanwhile() {
    let env = store_of_two();
    let tools = tools_of(&env);
    let call = Call::new(Timestamp::now(), &|| false);
    assert!(tools.answer_state(&call).is_some());
    env.run(["compact"]).ok();
    let status = tools.collect_status(&[]).expect("reads");
    assert!(status.damaged_segments.is_empty() && status.sessions == 2);
}
