//! `--engine spark://HOST:PORT`. Needs the feature `spark` and a cluster: `cargo xtask test --spark`
//! starts one and sets `SESSIONS_SPARK`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemas::{Timestamp, ToolError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sessions::lake::{LakeCatalog, LakePlace};
use sessions::spark::{EngineLimits, SparkEngine};
use store::Store;
use tools::{Call, Tools};

use crate::env::{Ran, Running, TestEnv, samples};
use crate::left_out::report_left_out;
use crate::mcp::Client;

/// The questions, which both engines must answer alike.
const QUESTIONS: &str = include_str!("spark/questions.jsonl");

/// Pages that are compared of each question.
const PAGES: usize = 4;

/// Maximum time until the Connect server answers.
const START: Duration = Duration::from_secs(240);

/// Maximum time of a query of SQL: the machine may have other tests to run.
const MAX_QUERY: Duration = Duration::from_secs(240);

/// Tests that use the cluster run one at a time.
static CLUSTER: Mutex<()> = Mutex::new(());

/// How to run the tests that end processes of Spark.
const OWN_CLUSTER: &str = "`cargo xtask test --spark` runs these tests on a cluster of its own";

/// The settings of a machine that publishes everything.
const SETTINGS: &str =
    "[identity]\nmachine = 'pier'\nuser = 'mira'\n[publish]\ninclude = ['**']\ncontent = 'full'\n";

/// Returns the address of the cluster, once it answers.
fn cluster() -> Option<String> {
    let Ok(address) = std::env::var("SESSIONS_SPARK") else {
        report_left_out("set SESSIONS_SPARK to a Spark Connect server to run these tests", "");
        return None;
    };
    let host = address.trim_start_matches("spark://");
    let until = Instant::now() + START;
    while std::net::TcpStream::connect(host).is_err() {
        assert!(Instant::now() < until, "{address} does not answer");
        std::thread::sleep(Duration::from_millis(500));
    }
    Some(address)
}

/// A machine that pushed the sample sessions into `lake`, and pulled them into the store `pulled`.
fn machine_with_lake() -> TestEnv {
    let env = TestEnv::new();
    let settings = env.path(".config/sessions");
    std::fs::create_dir_all(&settings).expect("creates");
    std::fs::write(settings.join("settings.toml"), SETTINGS).expect("writes");
    env.run(["ingest", "--quiet", &samples().to_string_lossy()]).ok();
    env.run(["push", &env.path("lake").to_string_lossy()]).ok();
    let pulled = env.path("pulled").to_string_lossy().into_owned();
    env.run(["--store", &pulled, "pull", &env.path("lake").to_string_lossy()]).ok();
    env
}

fn unmasked() -> Result<Arc<ingest::redact::Redactor>, ToolError> {
    sessions::config::settings::create_redactor()
}

/// The tools over the imported sessions.
fn embedded(env: &TestEnv) -> Tools {
    Tools::new(Store::new(env.path("pulled")))
        .with_program(PathBuf::from(env!("CARGO_BIN_EXE_sessions")))
}

/// The tools over the lake.
fn on_spark(env: &TestEnv, address: &str, name: &str, limits: EngineLimits) -> Tools {
    let lake = env.path("lake").to_string_lossy().into_owned();
    let engine = SparkEngine::new(address, &lake, unmasked).expect("an engine");
    Tools::new(Store::new(env.path(name))).with_history(Arc::new(engine.with_limits(limits)))
}

/// Parses the arguments of a tool.
fn parse<A: DeserializeOwned>(args: &Value) -> A {
    serde_json::from_value(args.clone()).unwrap_or_else(|error| panic!("{args}: {error}"))
}

/// Returns the answer of a tool, or its error, as JSON.
fn ask(tools: &Tools, tool: &str, args: &Value) -> Value {
    let now = Timestamp::parse("2026-10-22T12:00:00Z").expect("a time");
    let call = Call::new(now, &|| false).with_query_time(MAX_QUERY);
    match tool {
        "search_events" => as_json(tools.search_events(&parse(args), &call)),
        "list_sessions" => as_json(tools.list_sessions(&parse(args), &call)),
        "get_session_details" => as_json(tools.get_session_details(&parse(args), &call)),
        "get_event_details" => as_json(tools.get_event_details(&parse(args), &call)),
        "session_stats" => as_json(tools.session_stats(&parse(args), &call)),
        "query_sql" => as_json(tools.query_sql(&parse(args), &call)),
        _ => panic!("{tool} is not asked here"),
    }
}

fn as_json<T: Serialize>(result: Result<T, ToolError>) -> Value {
    match result {
        Ok(answer) => serde_json::to_value(answer).expect("encodes"),
        Err(error) => json!({ "error": { "code": error.code, "message": error.message } }),
    }
}

/// What two answers must have in common.
fn essence(answer: &Value, tool: &str, has_totals: bool) -> Value {
    if tool == "query_sql" {
        let is_error = answer.get("error").is_some();
        return json!([answer["data"]["rows"], answer["metadata"]["results_truncated"], is_error]);
    }
    if answer.get("error").is_some() {
        return answer.clone();
    }
    let metadata = &answer["metadata"];
    let mut common = json!({
        "data": answer["data"],
        "pagination": answer["pagination"],
        "warnings": answer["warnings"],
        "confidence": metadata["confidence"],
        "index_size": metadata["index_size"],
    });
    if has_totals {
        let hint = answer["hint"].as_str().unwrap_or("");
        common["total"] = json!([metadata["results_total"], metadata["results_total_is"]]);
        common["hint"] = hint.split("The index was updated").next().into();
    }
    common
}

/// Asks both, page by page, and compares the answers. Returns how many pages there were.
fn compare(expected: &Tools, found: &Tools, tool: &str, args: &Value, has_totals: bool) -> usize {
    let mut args = args.clone();
    for page in 1..=PAGES {
        let wanted = ask(expected, tool, &args);
        let answer = ask(found, tool, &args);
        assert_eq!(
            essence(&answer, tool, has_totals),
            essence(&wanted, tool, has_totals),
            "{tool} {args}, page {page}: {:?}",
            answer["metadata"]["scope"]
        );
        if tool != "query_sql"
            && let Some(scope) = wanted["metadata"]["scope"].as_str()
        {
            let described = answer["metadata"]["scope"].as_str().unwrap_or("");
            assert!(described.starts_with(scope), "{tool} {args}: {described}");
        }
        let next = &wanted["pagination"]["next_cursor"];
        if next.is_null() || args.get("event_ids").is_some() {
            return page;
        }
        args["cursor"] = next.clone();
    }
    PAGES
}

/// The questions: the tool, and its arguments.
fn questions() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for line in QUESTIONS.lines().filter(|line| !line.is_empty()) {
        let question: Value = serde_json::from_str(line).expect(line);
        let tool = question["tool"].as_str().expect("a tool").to_owned();
        all.push((tool, question["args"].clone()));
    }
    all
}

/// Returns the number of joined objects that readers of a lake use.
fn joined_objects(lake: &Path) -> usize {
    let place = LakePlace::open(&lake.to_string_lossy()).expect("a place");
    let catalog = LakeCatalog::read(&place, None).expect("reads").expect("a catalog");
    catalog.joined.len()
}

/// Removes the manifests of every second day, as if a compaction had not come to them yet.
fn forget_some_days(lake: &Path) {
    let entries = std::fs::read_dir(lake.join("v1/days")).expect("lists").flatten();
    let mut manifests: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    manifests.retain(|path| path.is_file());
    manifests.sort();
    for path in manifests.iter().step_by(2) {
        std::fs::remove_file(path).expect("removes");
    }
}

#[test]
fn spark_answers_like_the_store() {
    let Some(address) = cluster() else { return };
    let _cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let env = machine_with_lake();
    let store = embedded(&env);
    let spark = on_spark(&env, &address, "loaded", EngineLimits::default());
    let questions = questions();
    assert!(questions.len() >= 60, "{}", questions.len());
    let mut pages = 0;
    for (tool, args) in &questions {
        pages += compare(&store, &spark, tool, args, true);
    }
    assert!(pages > questions.len(), "some answers have several pages");

    // The same while a compaction joins the objects of one day after the other.
    let lake = env.path("lake");
    env.run(["lake", "compact", &lake.to_string_lossy()]).ok();
    forget_some_days(&lake);
    let joined = joined_objects(&lake);
    for (tool, args) in questions.iter().filter(|(tool, _)| tool != "get_event_details") {
        compare(&store, &spark, tool, args, true);
    }

    // Spark filters and counts, instead of loading all that may match.
    let counted =
        EngineLimits { load_bytes: 0, counted_events: i64::MAX, ..EngineLimits::default() };
    let spark = on_spark(&env, &address, "counted", counted);
    let searches = questions.iter().filter(|(tool, _)| tool == "search_events");
    for (tool, args) in searches.clone() {
        compare(&store, &spark, tool, args, true);
    }

    // The nearest days first: totals are those of what was searched. All days are joined.
    env.run(["lake", "compact", &lake.to_string_lossy()]).ok();
    assert!(0 < joined && joined < joined_objects(&lake), "{joined}");
    let near = EngineLimits { load_bytes: 0, counted_events: 0, ..EngineLimits::default() };
    let spark = on_spark(&env, &address, "near", near);
    for (tool, args) in searches {
        compare(&store, &spark, tool, args, false);
    }
    let answer = ask(&spark, "search_events", &json!({ "query": "the", "limit": 1 }));
    let scope = answer["metadata"]["scope"].as_str().expect("a scope");
    assert!(scope.contains("the newest day with candidates searched"), "{scope}");
    assert_eq!(answer["metadata"]["results_total_is"], "at_least", "{answer}");
    let answer = ask(&spark, "search_events", &json!({ "query": "zebrafish" }));
    let scope = answer["metadata"]["scope"].as_str().expect("a scope");
    assert!(scope.contains("the skip indexes excluded"), "{scope}");
}

#[test]
fn the_command_line_answers_over_a_lake() {
    let Some(address) = cluster() else { return };
    let _cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let env = machine_with_lake();
    let lake = env.path("lake").to_string_lossy().into_owned();
    let engine = ["--engine", &address, "--lake", &lake];
    let run = |args: &[&str]| env.run([&engine, args].concat());
    let pulled = env.path("pulled").to_string_lossy().into_owned();
    let here = |args: &[&str]| env.run([&["--store", &pulled, "--no-refresh"], args].concat());
    for args in [
        &["search", "budget", "--events", "--page", "2", "-n", "3"][..],
        &["list", "--no-pager"],
        &["stats", "--by", "tool"],
        &["event", "9ae82b3a:3"],
    ] {
        assert_eq!(run(args).ok(), here(args).ok(), "{args:?}");
    }
    let table = run(&["query", "SELECT count(*) AS n FROM events"]).ok();
    assert_eq!(table, here(&["query", "SELECT count(*) AS n FROM events"]).ok());
    run(&["query", "SELECT reflect('a', 'b')"]).fails(2).says("reflect");
    run(&["find", "budget"]).fails(2).says("sessions pull");
    assert!(run(&["show", "9ae82b3a"]).ok().contains("9ae82b3a"));
    // Commands that name a lake themselves do not use the engine of the environment.
    for args in
        [&["push", &lake][..], &["lake", "compact", &lake], &["--store", &pulled, "pull", &lake]]
    {
        let mut command = env.command();
        command.env("SESSIONS_ENGINE", &address).env("SESSIONS_LAKE", &lake);
        Ran::from(command.args(args).output().expect("runs")).ok();
    }

    // What was loaded of lakes that nobody reads any more goes.
    let cache = env.path(".cache/sessions");
    let old = cache.join("lake-0000000000000000");
    std::fs::create_dir_all(old.join("segments")).expect("creates");
    let lock = std::fs::File::create(cache.join("lake-0000000000000000.lock")).expect("creates");
    let used = std::time::SystemTime::now() - Duration::from_hours(31 * 24);
    lock.set_modified(used).expect("sets the time");
    run(&["list", "--no-pager"]).ok();
    let entries = std::fs::read_dir(&cache).expect("lists").flatten();
    let kept = entries.filter(|entry| entry.path().is_dir()).count();
    assert_eq!((old.exists(), kept), (false, 1), "the store of this lake stays");
}

#[test]
fn a_server_that_is_gone_is_reported_and_a_call_can_be_cancelled() {
    let env = machine_with_lake();
    let gone = on_spark(&env, "spark://127.0.0.1:9", "gone", EngineLimits::default());
    let answer = ask(&gone, "get_session_details", &json!({ "session_id": "9ae82b3a" }));
    assert_eq!(answer["error"]["code"], "store_unavailable", "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("spark://127.0.0.1:9") && message.contains("docs/team.md"),
        "{message}"
    );
    // The rows of sessions are in the lake itself.
    assert!(ask(&gone, "list_sessions", &json!({})).get("error").is_none());
    for (address, lake) in [("http://x", "lake"), ("spark://", "lake"), ("spark://x:1", "s3://b/c")]
    {
        let lake = if lake == "lake" { env.path("lake") } else { PathBuf::from(lake) };
        assert!(SparkEngine::new(address, &lake.to_string_lossy(), unmasked).is_err(), "{address}");
    }

    let Some(address) = cluster() else { return };
    let _cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let spark = on_spark(&env, &address, "cancelled", EngineLimits::default());
    let started = Instant::now();
    let stop = || started.elapsed() > Duration::from_millis(1500);
    let call = Call::new(Timestamp::now(), &stop);
    let sql =
        "SELECT count(*) FROM range(100000) a CROSS JOIN range(100000000) b WHERE a.id + b.id = -1";
    let args = json!({ "sql": sql });
    let error = tools_error(spark.query_sql(&parse(&args), &call));
    assert_eq!(error["code"], "cancelled", "{error}");
    // The cluster is free again: the query does not continue.
    let answer = ask(&spark, "query_sql", &json!({ "sql": "SELECT count(*) FROM sessions" }));
    assert_eq!(answer["data"]["rows"][0][0], 102, "{answer}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

fn tools_error<T: Serialize>(result: Result<T, ToolError>) -> Value {
    as_json(result)["error"].clone()
}

/// Returns the ids of a worker of the cluster and of its executors.
fn worker_with_executors(id: &str) -> Vec<String> {
    let listed = Command::new("ps").args(["-eo", "pid=,ppid="]).output().expect("ps");
    let mut ids = vec![id.to_owned()];
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let mut parts = line.split_whitespace();
        if let (Some(pid), Some(parent)) = (parts.next(), parts.next())
            && ids.iter().any(|id| id == parent)
        {
            ids.push(pid.to_owned());
        }
    }
    ids
}

#[test]
fn a_worker_killed_in_mid_scan_changes_no_answer() {
    let Some(address) = cluster() else { return };
    let Ok(processes) = std::env::var("SESSIONS_SPARK_PROCESSES") else {
        report_left_out(OWN_CLUSTER, "");
        return;
    };
    let _cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let env = machine_with_lake();
    let spark = on_spark(&env, &address, "killed", EngineLimits::default());
    // A scan of a few seconds on each of the two workers.
    let sql = "SELECT count(*), sum(length(text) + pmod(b.id, 2)) FROM events CROSS JOIN range(0, 4000, 1, 16) b";
    let args = json!({ "sql": sql });
    let started = Instant::now();
    let calm = ask(&spark, "query_sql", &args);
    let calm_time = started.elapsed();
    assert!(calm.get("error").is_none(), "{calm}");

    let worker = PathBuf::from(&processes).join("worker2.pid");
    let worker = std::fs::read_to_string(worker).expect("a worker");
    let killer = std::thread::spawn(move || {
        std::thread::sleep(calm_time / 3);
        for id in worker_with_executors(&worker) {
            Ran::from(Command::new("kill").args(["-KILL", &id]).output().expect("kill")).ok();
        }
    });
    let started = Instant::now();
    let killed = ask(&spark, "query_sql", &args);
    killer.join().expect("kills");
    assert_eq!(killed["data"], calm["data"]);
    eprintln!(
        "a scan of {calm_time:?} took {:?} with one of two workers killed",
        started.elapsed()
    );
}

/// A Connect server that a test starts and ends. It runs the queries itself.
struct OwnServer(Running);

impl OwnServer {
    /// Starts a server and waits until it answers.
    fn start(spark: &Path, env: &TestEnv, port: u16) -> Self {
        let arguments = format!(
            "--class org.apache.spark.sql.connect.service.SparkConnectServer --master local[1] \
             --driver-memory 1g --conf spark.sql.session.timeZone=Asia/Tokyo --conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1 \
             --conf spark.connect.grpc.binding.address=127.0.0.1 \
             --conf spark.connect.grpc.binding.port={port} spark-internal"
        );
        let child = Command::new(spark.join("bin/spark-submit"))
            .args(arguments.split_whitespace())
            .current_dir(env.root.path())
            .env("SPARK_HOME", spark)
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .env("SPARK_NO_DAEMONIZE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Self(Running(child.expect("spawns")));
        let until = Instant::now() + START;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.0.0.try_wait().expect("waits").is_none(), "the server ended");
            assert!(Instant::now() < until, "the server does not answer");
            std::thread::sleep(Duration::from_millis(200));
        }
        server
    }
}

/// Runs a statement on a server. Returns its first value, or the error.
fn query(server: &mut Client, sql: &str) -> Result<Value, String> {
    let arguments = json!({ "name": "query_sql", "arguments": { "sql": sql } });
    let result = server.request("tools/call", arguments)["result"].clone();
    if result["isError"] == true {
        return Err(result.to_string());
    }
    Ok(result["structuredContent"]["data"]["rows"][0][0].clone())
}

/// Returns the folder of the Spark that the cluster runs.
fn spark_home() -> Option<PathBuf> {
    let processes = PathBuf::from(std::env::var_os("SESSIONS_SPARK_PROCESSES")?);
    let libraries = processes.parent()?.join("venv/lib").read_dir().ok()?.flatten();
    let mut found = libraries.map(|entry| entry.path().join("site-packages/pyspark"));
    found.find(|path| path.join("bin/spark-submit").is_file())
}

#[test]
fn a_server_of_tools_survives_that_the_connect_server_starts_again() {
    let Some(spark) = spark_home() else {
        report_left_out(OWN_CLUSTER, "");
        return;
    };
    let _cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let env = machine_with_lake();
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("binds");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let count = "SELECT count(*) FROM sessions";
    let zone = "SELECT current_timezone()";
    let file = format!("SELECT * FROM csv.`{}`", env.path("lake/v1").display());

    let first = OwnServer::start(&spark, &env, port);
    let mut tools = {
        let (engine, lake) = (format!("spark://127.0.0.1:{port}"), env.path("lake"));
        Client::legacy_with(&env, &["--engine", &engine, "--lake", &lake.to_string_lossy()])
    };
    assert_eq!(query(&mut tools, count), Ok(json!(102)));
    drop(first);
    let gone = query(&mut tools, count).expect_err("the server is gone");
    assert!(gone.contains("store_unavailable") && gone.contains("connects again"), "{gone}");

    let second = OwnServer::start(&spark, &env, port);
    assert_eq!(query(&mut tools, count), Ok(json!(102)));
    assert_eq!(query(&mut tools, zone), Ok(json!("UTC")));
    drop(second);
    // Nobody asked anything while it was gone. The settings of a session hold in the next one, too.
    let _third = OwnServer::start(&spark, &env, port);
    assert_eq!(query(&mut tools, zone), Ok(json!("UTC")));
    assert!(query(&mut tools, &file).is_err(), "a query reads files");
    assert_eq!(query(&mut tools, count), Ok(json!(102)));
}
