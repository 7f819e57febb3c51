//! Views, errors, caps and forms of SQL on the sample sessions.

use schemas::view::{EXAMPLES, VIEWS};
use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::log::claude_record;
use crate::mcp::Client;

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

#[test]
fn views_are_as_documented() {
    let env = TestEnv::with_samples();
    let schema = env.run(["query", "--schema"]).ok();
    for view in VIEWS {
        let described = env.rows(&format!("DESCRIBE {}", view.name));
        let described: Vec<_> =
            described.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
        let documented: Vec<_> = view
            .columns()
            .map(|column| (Some(column.name), Some(column.kind.sql_type())))
            .collect();
        assert_eq!(described, documented, "{}", view.name);
        assert!(schema.contains(view.doc), "{}", view.name);
    }
    let empty = TestEnv::new();
    empty.write("odd.jsonl", "{\"nothing\":1}\n");
    empty.ingest("odd.jsonl");
    for view in VIEWS {
        let rows = empty.rows(&format!("SELECT count(*) FROM {}", view.name));
        assert_eq!(rows, [[json!(u8::from(view.name == "problems"))]], "{}", view.name);
        let described = empty.rows(&format!("DESCRIBE {}", view.name));
        let types: Vec<_> = described.iter().map(|row| row[1].as_str()).collect();
        let documented: Vec<_> =
            view.columns().map(|column| Some(column.kind.sql_type())).collect();
        assert_eq!(types, documented, "{} without rows", view.name);
    }
}

#[test]
fn the_examples_answer_their_questions() {
    let env = TestEnv::with_samples();
    assert!(EXAMPLES.len() >= 10);
    let schema = env.run(["query", "--schema"]).ok();
    for example in EXAMPLES {
        assert!(!env.rows(example.sql).is_empty(), "{}", example.question);
        assert!(schema.contains(example.sql), "{}", example.question);
    }
}

/// What one view says must be what another one, or another tool, says.
#[test]
fn views_agree_with_each_other() {
    let env = TestEnv::with_samples();
    let pairs = [
        ("SELECT count(*) FROM tool_calls", "SELECT sum(tool_calls) FROM sessions"),
        (
            "SELECT count(*), count(DISTINCT event_id) FROM tool_calls",
            "SELECT count(*), count(*) FROM events WHERE event_type = 'tool_call' AND NOT is_replay",
        ),
        (
            "SELECT sum(tool_calls), sum(tool_errors), sum(events) FROM turns",
            "SELECT sum(tool_calls), sum(tool_errors), sum(events - replay_events) FROM sessions",
        ),
        (
            "SELECT sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), \
             sum(cache_write_1h_tokens), sum(reasoning_tokens) FROM usage",
            "SELECT sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), \
             sum(cache_write_1h_tokens), sum(reasoning_tokens) FROM sessions",
        ),
        (
            "SELECT count(*) FROM files",
            "SELECT sum(len(files)) FROM events WHERE event_type = 'tool_call' AND NOT is_replay",
        ),
        (
            "SELECT count(*) FROM lineage",
            "SELECT count(*) FROM sessions WHERE parent_session_id IS NOT NULL",
        ),
        (
            "SELECT sum(text_bytes) FROM events",
            "SELECT sum(octet_length(encode(text))) FROM events",
        ),
    ];
    for (one, other) in pairs {
        let (one_rows, other_rows) = (env.rows(one), env.rows(other));
        assert_eq!(one_rows, other_rows, "{one}\n{other}");
        assert!(one_rows[0][0].as_u64() > Some(0), "{one}: {one_rows:?}");
    }
    let status = env.json(["status"]);
    let problems: u64 =
        status["problems"].as_object().expect("problems").values().filter_map(Value::as_u64).sum();
    assert_eq!(env.rows("SELECT count(*) FROM problems")[0][0], problems);
}

#[test]
fn calls_have_their_results_and_subagents_their_calls() {
    let env = TestEnv::with_samples();
    let edit = env.rows(&format!(
        "SELECT tool_name, tool_kind, path, result_event_id, is_error, duration_ms FROM tool_calls \
         WHERE event_id = '{MAIN}:31'"
    ));
    assert_eq!(edit[0][0], "Edit");
    assert_eq!(edit[0][1], "edit");
    assert!(edit[0][2].as_str().is_some_and(|path| path.ends_with("retry.rs")));
    assert_eq!(edit[0][3], format!("{MAIN}:33"));
    assert_eq!((&edit[0][4], &edit[0][5]), (&json!(false), &json!(119)));
    let spawned = env.rows(
        "SELECT l.parent_session_id, e.session_id, e.event_type, l.spawned_in_turn = e.turn_index \
         FROM lineage l JOIN events e ON e.event_id = l.spawned_by_event_id",
    );
    assert!(!spawned.is_empty());
    for row in spawned {
        assert_eq!((&row[0], &row[2], &row[3]), (&row[1], &json!("tool_result"), &json!(true)));
    }
    // Codex names what it started by the id of the session.
    let codex = env.rows(
        "SELECT count(*) FROM lineage WHERE provider = 'codex' AND relation = 'subagent_of' \
         AND spawned_by_event_id IS NOT NULL",
    );
    assert_ne!(codex[0][0], json!(0));
}

/// Logs of all agents of a Claude session name the session as their parent, and one may have started
/// another.
/// Some models restart the numbers of their calls in every turn; some logs repeat a result, or have it before
/// its call.
#[test]
fn calls_of_one_id_have_results_of_their_own() {
    let env = TestEnv::new();
    let mut log = env.log("run");
    for (command, code) in [("make", 0), ("make test", 2), ("make clean", 0)] {
        log = log.call("shell:0", "shell", json!({"command": command}));
        log = log.ended("shell:0", "done", code).ended("shell:0", "done", code);
    }
    let log = log.ended("early", "done", 7);
    log.call("early", "shell", json!({"command": "make early"})).ingest();
    let sql = "SELECT command, exit_code, result_event_id FROM tool_calls ORDER BY event_index";
    let want = [("make", 0, 1), ("make test", 2, 4), ("make clean", 0, 7), ("make early", 7, 9)];
    let want = want.map(|(command, code, result)| json!([command, code, format!("run:{result}")]));
    assert_eq!(json!(env.rows(sql)), json!(want));
    // So do single events, and results have their calls.
    for (event, linked) in [(0, 1), (1, 0), (2, 0), (3, 4), (5, 3), (6, 7), (9, 10), (10, 9)] {
        let event = env.json(["event", &format!("run:{event}")]);
        event["data"]["events"][0].has(json!({"linked_event_id": format!("run:{linked}")}));
    }
}

#[test]
fn an_agent_that_an_agent_started_is_linked_to_its_call() {
    let env = TestEnv::new();
    let root = "1f0e51c4-2b7d-4c0e-9a35-d1e84b7092fa";
    let write = |name: &str, agent: Option<&str>, starts: Option<&str>| {
        let append = |n: u32, kind: &str, content: Value, told: Option<Value>| {
            let mut record = claude_record(root, "/w", n, kind, content);
            record["uuid"] = format!("{}-{n}", agent.unwrap_or("root")).into();
            record["isSidechain"] = agent.is_some().into();
            if let Some(agent) = agent {
                record["agentId"] = agent.into();
            }
            if let Some(told) = told {
                record["toolUseResult"] = told;
            }
            env.append_event(format!("logs/p/{name}.jsonl"), &record);
        };
        append(0, "user", json!("look around"), None);
        let Some(started) = starts else { return };
        let id = format!("toolu_{started}");
        let call =
            json!([{"type": "tool_use", "id": id, "name": "Agent", "input": {"prompt": "go"}}]);
        append(1, "assistant", call, None);
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "seen"}]);
        append(2, "user", result, Some(json!({"agentId": started, "status": "completed"})));
    };
    write(root, None, Some("aaaa1111"));
    write(&format!("{root}/subagents/agent-aaaa1111"), Some("aaaa1111"), Some("bbbb2222"));
    write(&format!("{root}/subagents/agent-bbbb2222"), Some("bbbb2222"), None);
    env.ingest("logs");
    let rows = env.rows(
        "SELECT l.agent_id, e.tool_call_id, s.agent_id FROM lineage l \
         LEFT JOIN events e ON e.event_id = l.spawned_by_event_id \
         LEFT JOIN sessions s ON s.session_id = e.session_id ORDER BY 1",
    );
    let wanted = [
        [json!("aaaa1111"), json!("toolu_aaaa1111"), Value::Null],
        [json!("bbbb2222"), json!("toolu_bbbb2222"), json!("aaaa1111")],
    ];
    assert_eq!(rows, wanted);
}

/// The price table comes into SQL another way than into the list of sessions.
#[test]
fn costs_are_those_of_the_list() {
    let env = TestEnv::with_samples();
    let sql =
        "SELECT session_id, sum(cost_usd) FROM usage GROUP BY 1 HAVING sum(cost_usd) IS NOT NULL";
    let mut compared = 0;
    for row in env.rows(sql) {
        let id = row[0].text();
        let listed = env.json(["list", "--session-id", id]);
        let cost = listed["data"]["sessions"][0]["tokens"]["cost_usd"].as_f64().expect("cost");
        let sum = row[1].as_f64().expect("sum");
        assert!((cost - sum).abs() < 1e-9, "{id}: {cost} {sum}");
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
    let differing = "SELECT session_id FROM sessions s LEFT JOIN \
        (SELECT session_id, sum(cost_usd) AS cost FROM usage GROUP BY 1) u USING (session_id) \
        WHERE abs(coalesce(s.cost_usd, -1) - coalesce(u.cost, -1)) > 1e-6";
    assert_eq!(env.rows(differing), Vec::<Vec<Value>>::new());
    let by_project = env.json(["stats", "--by", "provider", "--limit", "500"]);
    let groups = by_project["data"]["groups"].list();
    let stats: f64 = groups.iter().filter_map(|group| group["cost_usd"].as_f64()).sum();
    let view = env.rows("SELECT sum(cost_usd) FROM sessions")[0][0].as_f64().expect("a sum");
    // Groups of statistics are rounded.
    assert!((stats - view).abs() < 1e-4, "{stats} {view}");
    let unpriced =
        env.rows("SELECT count(*) FROM usage WHERE model IS NULL AND cost_usd IS NOT NULL");
    assert_eq!(unpriced[0][0], 0);
}

#[test]
fn errors_say_where_and_what_there_is() {
    let env = TestEnv::with_samples();
    let cases = [
        ("SELECT even_index FROM events", "sql_error", "Did you mean 'event_index'?"),
        ("SELECT e.tool FROM events e", "sql_error", "Did you mean 'tool_name'?"),
        ("SELECT title FROM events", "sql_error", "'title' is a column of sessions, lineage"),
        (
            "SELECT 1,\n  nonsense FROM events",
            "sql_error",
            "at line 2, column 3: nonsense FROM events",
        ),
        ("SELEC 1", "sql_error", "at line 1, column 1: SELEC 1"),
        ("SELECT lenght(text) FROM events", "sql_error", "Did you mean \"length\"?"),
        ("SELECT * FROM event", "sql_not_allowed", "Did you mean 'events'?"),
        ("SELECT * FROM read_csv('x')", "sql_not_allowed", "read_csv"),
        ("SELECT 'x'::INTEGER", "sql_error", "Could not convert"),
    ];
    let mut client = Client::legacy(&env);
    for (sql, code, says) in cases {
        let error = client.fails("query_sql", json!({ "sql": sql }));
        assert_eq!(error["code"], code, "{sql}: {error}");
        error["message"].shows(says);
    }
    let error = client.fails("query_sql", json!({ "sql": "SELECT 1,\n  nonsense FROM events" }));
    error.has(json!({"details": {"line": 2, "column": 3}}));
    let long = format!("SELECT '{}'", "x".repeat(30_000));
    assert_eq!(client.fails("query_sql", json!({ "sql": long }))["code"], "invalid_argument");
    let error = client.fails("query_sql", json!({ "sql": "SELECT 1", "max_rows": 0 }));
    error["message"].shows("1-1000");
}

/// DuckDB repeats texts and names of a query in its message, however long they are.
#[test]
fn the_longest_error_is_an_answer() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    let name = "\u{1}".repeat(15_000);
    for (sql, begin, end) in [
        ("SELECT error('begin ' || repeat('q ', 500000) || 'end')", "begin q q", "q q end"),
        ("SELECT CAST(repeat('q', 90000) AS INTEGER)", "Could not convert string", "to INT32"),
        (&format!("SELECT \"{name}\" FROM events"), "Referenced column", "Candidate bindings"),
    ] {
        let error = client.fails("query_sql", json!({ "sql": sql }));
        assert_eq!(error["code"], "sql_error", "{sql:.80}: {error:#}");
        let message = error["message"].text();
        assert!(message.contains(begin) && message.contains(end), "{sql:.80}: {message}");
        assert!(message.len() < 5_000, "{sql:.80}: {} bytes", message.len());
    }
    client.end();
}

#[test]
fn what_does_not_fit_is_cut_and_said() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    let mut ask = |sql: &str, max_rows: u32| {
        let answer = client.call("query_sql", json!({ "sql": sql, "max_rows": max_rows }));
        let bytes = answer.to_string().len();
        assert!(bytes <= 100_000, "{sql}: {bytes} bytes");
        answer
    };
    ask("SELECT * FROM range(5)", 5).has(json!({
        "metadata": {"results_total": 5}, "warnings": null,
    }));
    let rows = ask("SELECT * FROM range(6)", 5);
    rows.has(json!({"metadata": {"results_truncated": true, "results_total_is": "at_least"}}));
    assert_eq!(rows["warnings"][0]["code"], "RESULTS_TRUNCATED");
    let bytes = ask("SELECT repeat('x', 1000) FROM range(1000)", 1000);
    let returned = bytes["data"]["rows"].as_array().map_or(0, Vec::len);
    assert!((50..1000).contains(&returned), "{returned}");
    bytes["warnings"][0]["message"].shows("bytes");
    let cell = ask("SELECT repeat('é', 100000) AS a, 1 AS b", 5);
    let shown = cell["data"]["rows"][0][0].text();
    let (head, rest) = shown.split_once('…').expect("a cut");
    let (kept, omitted) = (head.chars().count(), 100_000 - head.chars().count());
    assert_eq!(rest, format!(" (+{omitted} characters, from {})", kept + 1));
    let metadata = &cell["metadata"];
    metadata.has(json!({"results_truncated": true, "results_total": 1}));
    assert_eq!(cell["data"]["rows"][0][1], 1);
    // The worst row of all still fits.
    let columns: Vec<_> =
        (0..200).map(|n| format!("repeat(chr(1) || '\"', 9000) AS c{n}")).collect();
    let wide = ask(&format!("SELECT {} FROM range(3)", columns.join(", ")), 5);
    assert!(!wide["data"]["rows"].list().is_empty());
    let columns: Vec<_> = (0..201).map(|n| format!("{n} AS c{n}")).collect();
    client.fails("query_sql", json!({ "sql": format!("SELECT {}", columns.join(", ")) })).has(
        json!({
            "details": {"cap": "columns"},
        }),
    );
}

#[test]
fn values_keep_every_digit_and_their_type() {
    let env = TestEnv::with_samples();
    let sql = "SELECT 170141183460469231731687303715884105727::HUGEINT AS huge, sum(x)::HUGEINT AS sum, \
        340282366920938463463374607431768211455::UHUGEINT AS uhuge, 18446744073709551615::UBIGINT AS big, \
        1.5 AS decimal, 'NaN'::DOUBLE AS nan, NULL AS nothing, [1, NULL] AS list, {'a': 1, 'b': 'x'} AS object, \
        DATE '2026-10-01' AS day, TIMESTAMP '2026-10-01 12:00:00.5' AS time, INTERVAL 1 DAY AS span, \
        'a\u{1b}[31mb\u{202e}c' AS text, true AS yes, '\\xAA'::BLOB AS bytes FROM range(4) t(x)";
    let row = env.rows(sql).remove(0);
    let expected = json!([
        "170141183460469231731687303715884105727",
        6,
        "340282366920938463463374607431768211455",
        u64::MAX,
        1.5,
        "NaN",
        null,
        [1, null],
        { "a": 1, "b": "x" },
        "2026-10-01",
        "2026-10-01T12:00:00.500Z",
        "1 day",
        "abc",
        true,
        "\\xAA",
    ]);
    assert_eq!(Value::from(row), expected);
}

#[test]
fn rows_in_every_form() {
    let env = TestEnv::with_samples();
    let sql = "SELECT 1 AS n, 'a,\"b' AS t, NULL AS e UNION ALL SELECT 20, 'x|y', 'z' ORDER BY n";
    let ask = |form: &str| env.run(["query", "--output", form, sql]).ok();
    assert_eq!(env.run(["query", sql]).ok(), " n  t     e\n--  ----  -\n 1  a,\"b\n20  x|y   z\n");
    assert_eq!(ask("csv"), "n,t,e\n1,\"a,\"\"b\",\n20,x|y,z\n");
    assert_eq!(
        ask("markdown"),
        "| n | t | e |\n| ---: | --- | --- |\n| 1 | a,\"b |  |\n| 20 | x\\|y | z |\n"
    );
    let rows = json!([{ "n": 1, "t": "a,\"b", "e": null }, { "n": 20, "t": "x|y", "e": "z" }]);
    assert_eq!(serde_json::from_str::<Value>(&ask("json")).expect("JSON"), rows);
    let lines = ask("ndjson");
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    assert_eq!(lines.collect::<Value>(), rows);
    let none = env.run(["query", "--output", "json", "SELECT 1 WHERE false"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, "[]\n"));
    env.run(["query", "--max-rows", "3", "SELECT * FROM range(9)"]).says("--max-rows");
    env.json(["query", sql]).has(json!({"data": {"rows": [[1, "a,\"b", null], [20, "x|y", "z"]]}}));
}

#[test]
fn files_for_other_programs_hold_the_same_rows() {
    use arrow::array::{AsArray, RecordBatch};
    let env = TestEnv::with_samples();
    let sql = "SELECT session_id, started_at, sum(input_tokens) AS sum, list(model) AS models, DATE '2026-10-01' AS day \
        FROM sessions GROUP BY ALL ORDER BY session_id";
    let (parquet, arrow) = (env.path("rows.parquet"), env.path("rows.arrow"));
    for file in [&parquet, &arrow] {
        env.run(["query", sql, "-o", &file.to_string_lossy()]).ok();
    }
    let file = std::fs::File::open(&parquet).expect("opens");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.build())
        .expect("Parquet");
    let one: Vec<RecordBatch> = reader.map(|batch| batch.expect("batch")).collect();
    let file = std::fs::File::open(&arrow).expect("opens");
    let reader = arrow::ipc::reader::FileReader::try_new(file, None).expect("Arrow");
    let other: Vec<RecordBatch> = reader.map(|batch| batch.expect("batch")).collect();
    let whole = |batches: &[RecordBatch]| {
        let schema = batches.first().expect("rows").schema();
        arrow::compute::concat_batches(&schema, batches).expect("one batch")
    };
    let (one, other) = (whole(&one), whole(&other));
    assert_eq!(one.columns(), other.columns());
    let expected = env.rows("SELECT session_id FROM sessions ORDER BY 1");
    let ids = one.column(0).as_string::<i32>();
    assert!(expected.iter().map(|row| row[0].as_str()).eq(ids.iter()));
    assert_eq!(one.column(2).data_type(), &arrow::datatypes::DataType::Decimal128(38, 0));
    env.run(["query", "SELECT x", "-o", "rows.csv"]).fails(2);
    assert!(!env.path("rows.csv").exists());
    // Another file stays, unless it is asked for; the same rows are no other file.
    let (one, two) = (["query", "SELECT 1"], ["query", "SELECT 2"]);
    let to = |sql: [&str; 2], more: &[&str]| env.run([&sql, &["-o", "rows.csv"], more].concat());
    to(one, &[]).ok();
    to(one, &[]).ok();
    to(two, &[]).fails(2).says("--force");
    to(two, &["--force"]).ok();
    assert!(env.read("rows.csv").contains('2'));
    env.remove("rows.csv");
    assert_eq!(
        std::fs::read_dir(env.root.path()).expect("lists").count(),
        3,
        "store and two files"
    );
}
