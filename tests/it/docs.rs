//! The documentation that is made from the registry and from real answers. With `UPDATE_DOCS=1`
//! it is written, otherwise compared.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use schemas::tool::search::SearchArgs;
use schemas::tool::{TOOLS, ToolSpec, memory, namespace};
use schemas::{ErrorCode, Timestamp};
use serde_json::{Value, json};
use sessions::help::reference;
use store::{Store, Verify};
use tools::{Call, Tools};

use crate::env::{TestEnv, compare, samples};
use crate::mcp::Client;

fn check(name: &str, wanted: &str) {
    compare("UPDATE_DOCS", name, wanted);
}

#[test]
fn the_readme_names_the_server_for_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(path).expect("reads");
    assert!(
        text.contains(&format!("mcp-name: {}/sessions", namespace())),
        "the registry looks for it"
    );
}

/// `npx skills add` reads this file of the repository.
#[test]
fn the_skill_in_the_repository_is_the_one_that_is_printed() {
    check("skills/sessions/SKILL.md", &TestEnv::new().run(["skill"]).ok());
}

const HEAD: &str = "\
# The tools over MCP

Made from the registry of tools and from real answers on `sample-sessions`: `UPDATE_DOCS=1 cargo test --test it docs` writes
this page, and a test compares it. In the examples long texts, lists and cursors are cut (`…`), and times, durations and token
counts of `metadata` are set to fixed values.

Every answer is one envelope, the same as the command's with `--json`; errors are tool results with `isError: true`.
What does not apply is absent, never null.

";

#[test]
fn the_page_about_mcp_says_what_is_served() {
    let env = TestEnv::with_sample_copy();
    let mut client = Client::legacy_with(&env, &["--allow-labels", "--no-refresh"]);
    let mut page = format!("{HEAD}{}\n", reference::tool_table());
    for tool in TOOLS {
        page.push_str(&describe_tool(tool, &mut client, &env));
    }
    let mut small = Client::legacy_with(&env, &["--profile", "memory", "--no-refresh"]);
    page.push_str(&describe_tool(&memory::SPEC, &mut small, &env));
    page.push_str(SMALL_TOOL);
    let _ = write!(page, "## The envelope\n\n{}\n## Errors\n\n", reference::envelope_text());
    for code in ErrorCode::ALL {
        page.push_str(&reference::error_text(*code));
        let example =
            provoke(*code, &mut client).filter(|(error, _)| error["code"] == code.as_str());
        assert!(example.is_some() || NOT_SHOWN.contains(code), "{code} has no example");
        let text = match example {
            Some((error, env_of_error)) => {
                let error = json!({ "status": "error", "error": error });
                let env = env_of_error.as_ref().unwrap_or(&env);
                format!("\n```json\n{}\n```\n\n", pretty(&fixed(error, env)))
            }
            None => "\nNo example: it cannot be provoked here.\n\n".to_owned(),
        };
        page.push_str(&text);
    }
    check("docs/mcp.md", &format!("{}\n", page.trim_end()));
}

const SMALL_TOOL: &str = "\
This tool is not one of the ten: `sessions mcp --profile memory` serves it instead of them. It answers with \
them, so `data` of other calls is that of `get_event_details`, `get_session_details`, `list_sessions`, \
`analyze_session` or `search_events`. [answers.md](answers.md#some-tools-or-one) says which, and what it saves.

";

/// The text about a tool, with its examples and the answer to the first of them.
fn describe_tool(tool: &ToolSpec, client: &mut Client, env: &TestEnv) -> String {
    let mut text = reference::tool_text(tool);
    for (at, example) in tool.examples.iter().enumerate() {
        let arguments: Value = serde_json::from_str(example.arguments).expect("JSON");
        let asked = pretty(&arguments);
        let _ = write!(text, "\n{}:\n\n```json\n{asked}\n```\n", example.description);
        let answer = client.call(tool.name, arguments);
        if at == 0 {
            let _ = write!(text, "\n```json\n{}\n```\n", pretty(&fixed(answer, env)));
        }
    }
    text.push('\n');
    text
}

/// Codes that may go without an example: bugs, what needs time, and what nothing answers with yet.
const NOT_SHOWN: &[ErrorCode] = &[ErrorCode::InternalError, ErrorCode::RateLimitExceeded];

/// An error of this code, if it can be had, and the place where it was made if that is another.
fn provoke(code: ErrorCode, client: &mut Client) -> Option<(Value, Option<TestEnv>)> {
    let mut fails = |tool: &str, arguments: Value| Some((client.fails(tool, arguments), None));
    let command = |env: TestEnv, words: &[&str]| {
        let answer = env.json(words);
        Some((answer["error"].clone(), Some(env)))
    };
    match code {
        ErrorCode::InvalidArgument => fails("search_events", json!({ "query": "x", "limit": 0 })),
        ErrorCode::InvalidQuery => fails("search_events", json!({ "query": "\"open" })),
        ErrorCode::InvalidCursor => {
            fails("search_events", json!({ "query": "x", "cursor": "zzz" }))
        }
        ErrorCode::InvalidSessionId => fails("get_session_details", json!({ "session_id": "9" })),
        ErrorCode::InvalidEventId => fails("get_event_details", json!({ "event_ids": ["x"] })),
        ErrorCode::InvalidDetailLevel => {
            fails("get_session_details", json!({ "session_id": "9ae82b3a", "detail_level": "all" }))
        }
        ErrorCode::AmbiguousSessionPrefix => {
            fails("get_session_details", json!({ "session_id": "01a" }))
        }
        ErrorCode::SessionNotFound => {
            fails("get_session_details", json!({ "session_id": "ffffffff" }))
        }
        ErrorCode::EventNotFound => {
            fails("get_event_details", json!({ "event_ids": ["9ae82b3a:9999"] }))
        }
        ErrorCode::SqlError => {
            command(TestEnv::with_samples(), &["query", "SELECT nonsense FROM events"])
        }
        ErrorCode::SqlNotAllowed => {
            command(TestEnv::with_samples(), &["query", "SELECT 1; SELECT 2"])
        }
        ErrorCode::IndexEmpty => command(TestEnv::new(), &["list"]),
        ErrorCode::StoreBusy => {
            let env = TestEnv::with_samples();
            let _writer = Store::new(env.store()).open_writer(Verify::Some).expect("lock");
            let answer = env.json(["ingest", &samples().to_string_lossy()]);
            Some((answer["error"].clone(), Some(env)))
        }
        ErrorCode::StoreDamaged => {
            let env = TestEnv::with_samples();
            // SQLite takes a file of a few bytes for an empty database as soon as it may write.
            env.write("store/catalog.db", "{".repeat(8192));
            command(env, &["list"])
        }
        ErrorCode::StoreUnavailable => {
            let env = TestEnv::new();
            fs::create_dir_all(env.store()).expect("creates");
            env.write("store/notes.txt", "mine");
            let logs = samples().to_string_lossy().into_owned();
            command(env, &["ingest", &logs])
        }
        ErrorCode::Cancelled => {
            let env = TestEnv::with_samples();
            let tools = Tools::new(Store::new(env.store()));
            let args = SearchArgs { query: "budget".to_owned(), ..SearchArgs::default() };
            let error = tools.search_events(&args, &Call::new(Timestamp(0), &|| true));
            let error = error.expect_err("cancelled");
            Some((serde_json::to_value(error).expect("JSON"), Some(env)))
        }
        ErrorCode::SearchTimeout => {
            let env = TestEnv::with_samples();
            let tools = Tools::new(Store::new(env.store()));
            let query = "budget sort:relevance".to_owned();
            let args = SearchArgs { query, ..SearchArgs::default() };
            let hasty = Call::new(Timestamp(0), &|| false).with_search_time(Duration::ZERO);
            let error = tools.search_events(&args, &hasty).expect_err("out of time");
            Some((serde_json::to_value(error).expect("JSON"), Some(env)))
        }
        ErrorCode::RateLimitExceeded | ErrorCode::InternalError => None,
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

/// An answer as every run gives it, short enough to be read.
fn fixed(mut answer: Value, env: &TestEnv) -> Value {
    let cursor = answer["pagination"]["next_cursor"].as_str().map(str::to_owned);
    if let Some(metadata) = answer.get_mut("metadata").and_then(Value::as_object_mut) {
        for (name, value) in [
            ("tokens", json!(412)),
            ("duration_ms", json!(3)),
            ("timestamp", json!("2026-11-22T09:30:00.000Z")),
            ("index_last_updated", json!("2026-11-22T09:29:58.120Z")),
        ] {
            if metadata.contains_key(name) {
                metadata.insert(name.to_owned(), value);
            }
        }
    }
    let places = [samples(), env.root.path().to_owned()];
    let names = ["~/sample-sessions", "~"];
    let places = places.iter().map(|place| {
        let real = place.canonicalize().unwrap_or_else(|_| place.clone());
        real.to_string_lossy().into_owned()
    });
    let cursor = cursor.into_iter().map(|cursor| (cursor, "eyJiIjoi…"));
    let places: Vec<_> = places.zip(names).chain(cursor).collect();
    short(answer, &places)
}

/// Cuts texts and lists; places of this machine and cursors are replaced.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn short(value: Value, places: &[(String, &str)]) -> Value {
    match value {
        Value::String(mut text) => {
            for (place, name) in places {
                text = text.replace(place, name);
            }
            match text.char_indices().nth(300) {
                Some((at, _)) => format!("{}…", &text[..at]).into(),
                None => text.into(),
            }
        }
        Value::Array(items) => {
            let more = items.len().saturating_sub(2);
            let kept = items.into_iter().take(2).map(|item| short(item, places));
            let rest = (more > 0).then(|| Value::from(format!("… {more} more")));
            kept.chain(rest).collect()
        }
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, short(value, places))).collect()
        }
        other => other,
    }
}
