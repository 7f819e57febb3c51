//! `sessions export`: what it writes holds what the store holds, and every text stays text.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Date32Type, Int64Type, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::checks::Checks;
use crate::env::{TestEnv, contents_below};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";
const HOSTILE: &str = "c8564f25-71e8-4af6-b5dc-c26a951636c4";

fn number(env: &TestEnv, sql: &str) -> i64 {
    env.rows(sql)[0][0].as_i64().expect("a number")
}

#[test]
fn parquet_holds_every_event_in_the_layout_of_the_lake() {
    let env = TestEnv::with_samples();
    let done = env.json(["export", "--format", "parquet", "-o", "lake"]);
    let events = number(&env, "SELECT count(*) FROM events");
    assert_eq!(done["events"], events);
    let (mut rows, mut output) = (0, 0);
    for path in contents_below(&env.path("lake")).keys() {
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let [provider, date, name] = parts.as_slice() else { panic!("{}", path.display()) };
        assert!(name.ends_with("-0.parquet"), "{name}");
        let file = fs::File::open(env.path("lake").join(path)).expect("opens");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
        let schema = reader.schema().clone();
        let kind = |name: &str| schema.field_with_name(name).expect(name).data_type().clone();
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!((kind("timestamp"), kind("event_date")), (time, DataType::Date32));
        assert!(schema.field_with_name("record_hash").is_err(), "bookkeeping stays in the store");
        for batch in reader.build().expect("reads") {
            let batch = batch.expect("reads");
            rows += batch.num_rows() as i64;
            let column = |name: &str| batch.column_by_name(name).expect(name).clone();
            let providers = column("provider");
            let dates = column("event_date");
            let dates = dates.as_primitive::<Date32Type>();
            for row in 0..batch.num_rows() {
                assert_eq!(
                    *provider,
                    format!("p_provider={}", providers.as_string::<i32>().value(row))
                );
                // Events without a time lie with the beginning of their session.
                if dates.is_valid(row) {
                    let day = dates.value_as_date(row).expect("a day");
                    assert_eq!(*date, format!("p_date={day}"));
                }
            }
            output += arrow::compute::sum(column("output_tokens").as_primitive::<Int64Type>())
                .unwrap_or(0);
        }
    }
    assert_eq!(rows, events);
    assert_eq!(output, number(&env, "SELECT sum(output_tokens)::BIGINT FROM events"));
}

#[test]
fn files_that_are_there_stay_unless_they_hold_the_same() {
    let env = TestEnv::with_samples();
    let args = ["export", "--format", "parquet", "-o", "lake", "--session-id", MAIN];
    let first = env.json(args);
    assert_eq!(first["files_unchanged"], 0);
    let again = env.json(args);
    assert_eq!((again["files"].as_u64(), &again["files_unchanged"]), (Some(0), &first["files"]));
    let lake = contents_below(&env.path("lake"));
    let victim = env.path("lake").join(lake.keys().next().expect("a file"));
    env.write(&victim, "something else");
    env.run(args).fails(2).says("--force");
    assert_eq!(env.read(&victim), "something else");
    env.run([&args[..], &["--force"]].concat()).ok();
    assert_eq!(contents_below(&env.path("lake")), lake);
}

/// Two machines that see the same log, one in pieces, publish the same bytes.
#[test]
fn bytes_follow_from_the_content_alone() {
    let record = |n: usize, day: usize| {
        format!(
            "{{\"type\":\"user\",\"sessionId\":\"s\",\"timestamp\":\"2026-10-{day:02}T10:00:00.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"prompt {n}\"}}}}\n"
        )
    };
    let lines: Vec<String> = (0..40).map(|n| record(n, 1 + n / 15)).collect();
    let lake = |pieces: &[usize]| {
        let env = TestEnv::new();
        for end in pieces {
            env.write("s.jsonl", lines[..*end].concat());
            env.ingest("s.jsonl");
        }
        env.run(["export", "--format", "parquet", "-o", "lake"]).ok();
        contents_below(&env.path("lake"))
    };
    let whole = lake(&[40]);
    assert_eq!(whole.len(), 3, "{:?}", whole.keys());
    assert_eq!(whole, lake(&[7, 20, 21, 40]));
}

#[test]
fn arrow_is_one_file_with_every_event() {
    let env = TestEnv::with_samples();
    env.run(["export", "--format", "arrow", "-o", "events.arrow", "--provider", "codex"]).ok();
    let file = fs::File::open(env.path("events.arrow")).expect("opens");
    let reader = arrow::ipc::reader::FileReader::try_new(file, None).expect("Arrow");
    let rows: usize = reader.map(|batch| batch.expect("reads").num_rows()).sum();
    let events = number(&env, "SELECT count(*) FROM events WHERE provider = 'codex'");
    assert_eq!(rows as i64, events);
}

#[test]
fn json_lines_are_events_as_the_tools_give_them() {
    let env = TestEnv::with_samples();
    let text = env.run(["export", "--format", "jsonl"]).ok();
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ids: BTreeSet<_> = events.iter().map(|event| event["event_id"].to_string()).collect();
    assert_eq!(ids.len(), events.len());
    assert_eq!(events.len() as i64, number(&env, "SELECT count(*) FROM events"));
    let output: i64 = events.iter().filter_map(|e| e["usage"]["output_tokens"].as_i64()).sum();
    assert_eq!(output, number(&env, "SELECT sum(output_tokens)::BIGINT FROM events"));
    let id = format!("{MAIN}:14");
    let one = events.iter().find(|event| event["event_id"] == id.as_str()).expect("there");
    assert_eq!(*one, env.json(["event", &id])["data"]["events"][0]);
    env.run(["export", "--format", "jsonl", "-o", "events.jsonl"]).ok();
    assert_eq!(env.read("events.jsonl"), text);
}

#[test]
fn transcripts_tell_the_story_with_coordinates() {
    let env = TestEnv::with_samples();
    for format in ["markdown", "html"] {
        let ids: &[&str] = if format == "markdown" { &["--ids"] } else { &[] };
        let args = ["export", "--format", format, "--session-id", "9ae82b3a"];
        let text = env.run([&args, ids].concat()).ok();
        let order = [
            "Make clones of RetryBudget share one counter",
            "Since the connection pool landed",
            "cargo test --lib retry",
            "Exit code 101",
            "Two ways out:",
            "Share the counter. But first",
            "was updated.",
        ];
        let mut from = 0;
        for part in order {
            let at = text[from..].find(part).unwrap_or_else(|| panic!("{format}: no {part}"));
            from += at;
        }
        for id in ["5", "9", "14", "17", "31"] {
            assert!(text.contains(&format!("{MAIN}:{id}")), "{format}: no event {id}");
        }
        text.shows("failed");
    }
    // Without --ids a reader sees the id of the session alone, and times of the own clock.
    let export = |zone: &str| env.run(["export", "md", MAIN, "--timezone", zone]).ok();
    export("utc").lacks(">\n>\n>");
    let (utc, tokyo) = (export("utc"), export("Asia/Tokyo"));
    assert!(!utc.contains(&format!("`{MAIN}:")) && utc.contains(MAIN), "{utc}");
    assert!(tokyo.contains(" Asia/Tokyo |") && tokyo != utc, "{tokyo}");
    tokyo.lacks(["Z |", "Z\n"]);
    env.run(["export", "jsonl", MAIN, "--ids"]).fails(2).says("--ids");
    env.run(["export", "--format", "markdown", "-o", "out", "--provider", "codex"]).ok();
    let sql = "SELECT count(*) FROM sessions WHERE provider = 'codex' \
        AND user_messages + messages + tool_calls > 0";
    assert_eq!(contents_below(&env.path("out")).len() as i64, number(&env, sql));
    env.run(["export", "--format", "html", "-o", "one.html", "--session-id", MAIN]).ok();
    assert!(env.path("one.html").is_file());
}

/// The query by which the live page asks for the kinds of a session's events.
fn page_map_query(session: &str) -> String {
    let source = include_str!("../../src/page/source/filter.tsx");
    let (_, query) =
        source.split_once("const mapQuery = (session: string) => `").expect("the query");
    let (query, _) = query.split_once("`;").expect("its end");
    query
        .replace("${session}", &format!("'{session}'"))
        .replace("${REPEAT}", "=")
        .replace("${ROW}", "4000")
        .replace("${COMPACTION.source}", "compact")
        .replace("${STOP.source}", "interrupted")
}

/// As after a second compaction, which writes what is kept again.
#[test]
fn a_log_that_repeats_its_own_rows_is_told_once() {
    let env = TestEnv::new();
    let id = "b7c1a3de-52f4-4c1b-9a06-1f4e0d97c8aa";
    let row = |n: usize, text: &str| {
        format!(
            r#"{{"type":"user","uuid":"{n:08}-0000-4000-8000-000000000000","sessionId":"{id}","timestamp":"2026-10-01T10:00:{n:02}.000Z","cwd":"/w","message":{{"role":"user","content":"{text}"}}}}"#
        ) + "\n"
    };
    let kept = row(2, "Paint the pier.") + &row(3, "Go on.");
    let log = row(1, "Count the berths.") + &kept + &row(4, "Go on.") + &kept + &row(5, "Thanks.");
    env.write(format!("logs/{id}.jsonl"), log);
    env.run(["ingest", "logs"]).ok();
    assert_eq!(env.rows(&page_map_query(id)), [[json!("pppp==p")]], "the live page");
    for format in ["markdown", "html"] {
        let text = env.run(["export", "--format", format, "--session-id", id]).ok();
        // The page has a list of the turns before them.
        let text = text.rsplit_once("<main>").map_or(&*text, |(_, events)| events);
        let text = text.split("<script").next().expect("the events");
        for (words, times) in [("Paint the pier.", 1), ("Go on.", 2), ("Thanks.", 1)] {
            assert_eq!(text.matches(words).count(), times, "{format}: {words}");
        }
    }
}

#[test]
fn transcripts_show_edits_as_diffs() {
    let env = TestEnv::with_samples();
    let markdown = env.run(["export", "--format", "markdown", "--session-id", MAIN]).ok();
    let (_, diff) = markdown.split_once("```diff\n").expect("a diff");
    let (diff, _) = diff.split_once("\n```").expect("its end");
    assert!(diff.lines().any(|line| line.starts_with('+')), "{diff}");
    assert!(diff.lines().all(|line| ["+", "-", " "].iter().any(|sign| line.starts_with(sign))));
}

#[test]
fn long_results_are_whole_if_asked_for() {
    let env = TestEnv::new();
    let result = format!("{}the end", "boats ".repeat(1000));
    let lines = [
        json!({"format": "sessions", "version": 1, "session_id": "long"}),
        json!({"type": "user", "text": "Count the boats"}),
        json!({"type": "tool_call", "tool_name": "shell", "tool_call_id": "c", "input": {"command": "ls"}}),
        json!({"type": "tool_result", "tool_call_id": "c", "text": result}),
    ];
    env.write("long.jsonl", lines.map(|line| format!("{line}\n")).concat());
    env.ingest("long.jsonl");
    env.run(["export", "md", "long"]).shows("more characters: sessions event").lacks("the end");
    let whole = env.run(["export", "md", "long", "--whole"]).ok();
    whole.shows("the end").lacks("more characters");
    env.run(["export", "html", "long", "--whole"]).fails(2).says("--whole");
}

#[test]
fn hostile_text_stays_text() {
    let env = TestEnv::with_samples();
    let html = env.run(["export", "--format", "html", "--session-id", HOSTILE]).ok();
    let (head, rest) = html.split_once("<div id=\"plain\">").expect("the events");
    head.shows("default-src 'none'; script-src 'sha256-");
    let (plain, data) = rest.split_once("<script type=\"application/json\"").expect("the data");
    let lower = plain.to_lowercase();
    lower.lacks(["<script", "<img", "onerror=alert(1)>", "href=\"javascript", "<iframe"]);
    assert!(plain.contains("&lt;script&gt;"), "it is there as text");
    let (data, script) = data.split_once("</script>").expect("the data ends");
    assert!(!data.contains('<'), "nothing in the data can end it");
    assert_eq!(script.matches("<script").count(), 2, "the licences and the page's own script");
    let markdown = env.run(["export", "--format", "markdown", "--session-id", HOSTILE]).ok();
    let outside = outside_of_fences(&markdown);
    outside.lacks(["<script", "<img"]);
    for text in [plain.to_owned(), data.to_owned(), markdown] {
        for bad in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{7}'] {
            assert!(!text.contains(bad), "{bad:?}");
        }
    }
}

/// The backticks of a line that opens a fence.
fn fence_start(line: &str) -> Option<&str> {
    let ticks = line.strip_suffix("text").or_else(|| line.strip_suffix("diff"))?;
    Some(ticks).filter(|ticks| ticks.starts_with("```"))
}

/// The lines of a document that are not inside a fence.
fn outside_of_fences(markdown: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut out = String::new();
    for line in markdown.lines() {
        match fence {
            Some(end) if line == end => fence = None,
            Some(_) => {}
            None => match fence_start(line) {
                Some(ticks) => fence = Some(ticks),
                None => {
                    out.push_str(line);
                    out.push('\n');
                }
            },
        }
    }
    assert!(fence.is_none(), "a fence is not closed");
    out
}

#[test]
fn wrong_calls_say_what_is_needed() {
    let env = TestEnv::with_samples();
    env.run(["export", "--format", "parquet"]).fails(2).says("-o");
    env.run(["export", "--format", "arrow"]).fails(2).says("-o");
    env.run(["export", "--format", "html"]).fails(2).says("--session-id");
    env.run(["export", "--format", "xml"]).fails(2).says("markdown");
    env.run(["export", "--format", "jsonl", "--since", "2099-01-01"])
        .fails(1)
        .says("No session was active since");
    env.run(["export", "--format", "jsonl", "--session-id", "ffffff"])
        .fails(1)
        .says("sessions list");
}

/// The rows of a Parquet file and the sum of a column of whole numbers.
fn count_and_sum(path: &Path, column: &str) -> (i64, i64) {
    let file = fs::File::open(path).expect("opens");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let (mut rows, mut sum) = (0, 0);
    for batch in reader.build().expect("reads") {
        let batch = batch.expect("reads");
        rows += batch.num_rows() as i64;
        let values = batch.column_by_name(column).expect(column);
        sum += values.as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
    }
    (rows, sum)
}

#[test]
fn tables_hold_the_rows_of_their_views() {
    let env = TestEnv::with_samples();
    for (table, column) in
        [("sessions", "output_tokens"), ("usage", "output_tokens"), ("tool_calls", "duration_ms")]
    {
        let name = format!("{table}.parquet");
        let done = env.json(["export", "parquet", "--table", table, "-o", &name]);
        let sql = format!("SELECT count(*), sum({column})::BIGINT FROM {table}");
        let want = env.rows(&sql)[0].clone();
        let (rows, sum) = count_and_sum(&env.path(&name), column);
        assert_eq!(want, [Value::from(rows), Value::from(sum)], "{table}");
        assert_eq!(done["rows"], rows, "{table}");

        let lines = env.run(["export", "jsonl", "--table", table]).ok();
        assert_eq!(lines.lines().count() as i64, rows, "{table}");
        let arrow = format!("{table}.arrow");
        env.run(["export", "arrow", "--table", table, "-o", &arrow]).ok();
        let file = fs::File::open(env.path(&arrow)).expect("opens");
        let reader = arrow::ipc::reader::FileReader::try_new(file, None).expect("Arrow");
        let zone = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let schema = reader.schema();
        let time = if table == "sessions" { "started_at" } else { "timestamp" };
        assert_eq!(schema.field_with_name(time).expect(time).data_type(), &zone, "{table}");
    }

    let one = env.run(["export", "jsonl", MAIN, "--table", "tool_calls"]).ok();
    let sql = format!("SELECT count(*) FROM tool_calls WHERE session_id = '{MAIN}'");
    assert_eq!(one.lines().count() as i64, number(&env, &sql));
    assert!(one.lines().all(|line| line.contains(MAIN)));
    let early = env.run(["export", "jsonl", "--table", "sessions", "--until", "2026-10-10"]).ok();
    let sql = "SELECT count(*) FROM sessions WHERE started_at < TIMESTAMP '2026-10-10'";
    assert_eq!(early.lines().count() as i64, number(&env, sql));
    let error = env.run(["export", "parquet", "--table", "usage"]).error(2);
    error.shows("-o usage.parquet");
    env.run(["export", "md", "--table", "usage"]).fails(2).says("parquet, arrow or jsonl");
}
