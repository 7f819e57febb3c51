//! `sessions report`: one file, with what the tools answer, in which no text can do anything.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;

const HOSTILE: &str = "c8564f25-71e8-4af6-b5dc-c26a951636c4";
const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// The page, and the data in it.
fn report(env: &TestEnv, args: &[&str]) -> (String, Value) {
    let page = env.run([&["report", "-o", "-"], args].concat()).ok();
    let (_, rest) = page.split_once(r#"id="data">"#).expect("data");
    let (data, _) = rest.split_once("</script>").expect("data ends");
    let data = serde_json::from_str(data).expect("JSON");
    (page, data)
}

/// The conversation of a session in a page.
fn talk(page: &str, session: &str) -> Value {
    let start = format!("data-talk=\"{session}\">");
    let (_, rest) = page.split_once(&start).expect("a conversation");
    let (base64, _) = rest.split_once("</script>").expect("its end");
    let bytes = STANDARD.decode(base64).expect("base64");
    let mut json = String::new();
    ZlibDecoder::new(bytes.as_slice()).read_to_string(&mut json).expect("compressed");
    serde_json::from_str(&json).expect("JSON")
}

fn rows<'a>(data: &'a Value, list: &str) -> &'a [Value] {
    data[list].list()
}

fn sum(rows: &[Value], field: &str) -> i64 {
    rows.iter().filter_map(|row| row[field].as_i64()).sum()
}

fn sum_tokens(rows: &[Value], field: &str) -> i64 {
    rows.iter().filter_map(|row| row["tokens"]["counted_once"][field].as_i64()).sum()
}

#[test]
fn the_numbers_are_those_of_the_store() {
    let env = TestEnv::with_samples();
    let (_, data) = report(&env, &[]);
    let sql = "SELECT sum(input_tokens)::BIGINT, sum(output_tokens)::BIGINT, sum(cache_read_tokens)::BIGINT, \
        sum(cache_write_tokens)::BIGINT, sum(tool_calls)::BIGINT, sum(tool_errors)::BIGINT FROM sessions";
    let want: Vec<i64> =
        env.rows(sql)[0].iter().map(|value| value.as_i64().expect("known")).collect();
    let days = rows(&data, "days");
    for (at, field) in ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(sum_tokens(days, field), want[at], "{field}");
    }
    for list in ["days", "tools", "spreads"] {
        assert_eq!(sum(rows(&data, list), "tool_calls"), want[4], "{list}");
        assert_eq!(sum(rows(&data, list), "tool_errors"), want[5], "{list}");
    }

    let page = |number| {
        env.json(["list", "--subagents", "--format", "full", "--limit", "100", "--page", number])
    };
    let listed: Vec<Value> = ["1", "2"]
        .iter()
        .flat_map(|number| page(number)["data"]["sessions"].list().to_vec())
        .collect();
    let id = |session: &Value| session["session_id"].text().to_owned();
    let ids = |sessions: &[Value]| sessions.iter().map(id).collect::<BTreeSet<_>>();
    let sessions = rows(&data, "sessions");
    assert_eq!(ids(sessions), ids(&listed));
    for session in &listed {
        let row = sessions.iter().find(|row| row["session_id"] == session["session_id"]);
        assert_eq!(row.expect("a row"), session);
        let cells = days.iter().filter(|cell| cell["group"]["session"] == session["session_id"]);
        let cost: f64 = cells.filter_map(|cell| cell["cost_usd"].as_f64()).sum();
        // Where some kind of token has no rate, the list gives no cost and a cell that of the rest.
        if session["tokens"]["unpriced_models"].is_null() {
            let listed_cost = session["tokens"]["cost_usd"].as_f64().unwrap_or(0.0);
            // The costs of cells are rounded.
            assert!((cost - listed_cost).abs() < 1e-4, "{session}: {cost}");
        }
    }
}

#[test]
fn conversations_are_whole_and_lead_to_their_subagents() {
    let env = TestEnv::with_samples();
    let (page, data) = report(&env, &[]);
    let main = talk(&page, MAIN);
    let events = rows(&main, "events");
    let all = env.number(&format!("SELECT count(*) FROM events WHERE session_id = '{MAIN}'"));
    assert_eq!(events.len() as i64, all, "a position is an index");
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["event_index"].as_u64(), Some(at as u64));
    }
    let failed = events.iter().find(|event| event["is_error"] == true).expect("a failure");
    assert!(failed["text"].text().starts_with("Exit code 101"), "{failed}");
    let shown = env.json(["show", "--detail-level", "summary", MAIN]);
    // The page shows no excerpts of what the conversation has.
    let mut summary = shown["data"]["summary"].clone();
    summary
        .as_object_mut()
        .expect("an object")
        .retain(|name, _| ["tools", "end", "children"].contains(&name.as_str()));
    assert_eq!(main["details"]["summary"], summary);
    let costs = rows(&main, "costs");
    let cost: f64 = costs.iter().filter_map(|turn| turn[1].as_f64()).sum();
    let listed = shown["data"]["session"]["tokens"]["cost_usd"].as_f64().expect("priced");
    assert!((cost - listed).abs() < 1e-9, "{costs:?}");

    let sql = "SELECT session_id, spawned_by_event_id FROM lineage \
        WHERE relation = 'subagent_of' AND starts_with(spawned_by_event_id, parent_session_id)";
    let lineage = env.rows(sql);
    assert!(!lineage.is_empty());
    for row in lineage {
        let child = row[0].text();
        assert_eq!(data["spawned"][child], row[1], "{child}");
    }
    for finding in rows(&data, "findings") {
        assert!(finding["occurrences"].as_u64() > Some(1), "{finding}");
    }
}

#[test]
fn hours_and_edits_are_those_of_the_events() {
    let env = TestEnv::with_samples();
    let (_, data) = report(&env, &[]);
    let hours = rows(&data, "hours");
    let events: i64 = hours.iter().filter_map(|hour| hour[2].as_i64()).sum();
    let ids: Vec<_> = rows(&data, "sessions")
        .iter()
        .map(|row| format!("'{}'", row["session_id"].text()))
        .collect();
    let sql = format!(
        "SELECT count(*) FROM events WHERE NOT is_replay AND timestamp IS NOT NULL \
         AND event_type IN ('user', 'message', 'tool_call') AND session_id IN ({})",
        ids.join(", ")
    );
    assert_eq!(events, env.number(&sql));
    let edits: Vec<_> = rows(&data, "edits").iter().map(|edit| edit[0].text()).collect();
    let sql = "SELECT event_id FROM tool_calls WHERE tool_kind IN ('edit', 'write') \
        AND is_error IS DISTINCT FROM true AND path IS NOT NULL ORDER BY timestamp DESC NULLS LAST";
    let want = env.texts(sql);
    let want: Vec<&str> = want.iter().map(String::as_str).collect();
    assert_eq!(edits.first(), want.first());
    assert_eq!(edits.iter().collect::<BTreeSet<_>>(), want.iter().collect());
}

#[test]
fn the_page_loads_nothing_and_no_text_can_leave_its_place() {
    let env = TestEnv::with_samples();
    let (page, data) = report(&env, &[]);
    page.shows([
        "default-src 'none'; script-src 'sha256-",
        "require-trusted-types-for 'script'; trusted-types 'none'",
    ]);
    let (own, _) = page.split_once("id=\"licences\"").expect("the libraries");
    own.lacks(["<link", "src=\"", "@import", "<iframe", "<base"]);
    let (_, rest) = page.split_once(r#"id="data">"#).expect("data");
    let (json, _) = rest.split_once("</script>").expect("data ends");
    assert!(!json.contains('<'), "nothing in the data can end it");
    let sessions = rows(&data, "sessions");
    let hostile = sessions.iter().find(|row| row["session_id"] == HOSTILE).expect("there");
    assert!(hostile["title"].text().contains("<script>"), "as text");
    let talk = talk(&page, HOSTILE).to_string();
    for bad in ["\\u001b", "\u{1b}", "\u{202e}", "\u{200b}"] {
        assert!(!json.contains(bad) && !talk.contains(bad), "{bad:?}");
    }
}

#[test]
fn a_report_replaces_a_report_and_nothing_else() {
    let env = TestEnv::with_samples();
    env.run(["report"]).shows("report.html");
    let has_main = || {
        let page = env.read("report.html");
        page.contains(&format!("data-talk=\"{MAIN}\""))
    };
    assert!(has_main());
    env.run(["report", "--provider", "codex"]).ok();
    assert!(!has_main(), "the second report replaces the first one");
    // There is no permission to replace any other file.
    env.run(["report", "--force"]).fails(2).says("--force");
    assert!(!has_main());
    env.write("report.html", "<html>coverage</html>");
    env.run(["report"]).fails(2).says("-o");
    assert!(env.read("report.html").contains("coverage"));
    let written = env.json(["report", "-o", "mine/sessions.html"]);
    let size = fs::metadata(env.path("mine/sessions.html")).expect("there").len();
    assert_eq!(written["bytes"].as_u64(), Some(size));
    assert_eq!(written["files"], 1);
}

#[test]
fn filters_hold_for_every_number() {
    let env = TestEnv::with_samples();
    env.run(["report", "--since", "2099-01-01"]).fails(1).says("No session was active since");
    let (_, data) = report(&env, &["--provider", "codex", "--since", "2026-10-01"]);
    let sql = "SELECT sum(output_tokens)::BIGINT, count(*) FILTER (event_type = 'tool_call') FROM events \
        WHERE provider = 'codex' AND NOT is_replay AND timestamp >= TIMESTAMP '2026-10-01'";
    let want = &env.rows(sql)[0];
    assert_eq!(Some(sum_tokens(rows(&data, "days"), "output_tokens")), want[0].as_i64());
    assert_eq!(Some(sum(rows(&data, "days"), "tool_calls")), want[1].as_i64());
    data.has(json!({"provider": "codex", "since": "2026-10-01T00:00:00.000Z"}));

    let (_, data) = report(&env, &["--provider", "codex", "--until", "2026-10-14"]);
    let sql = "SELECT count(*) FILTER (event_type = 'tool_call') FROM events \
        WHERE provider = 'codex' AND NOT is_replay AND timestamp < TIMESTAMP '2026-10-14'";
    assert_eq!(Some(sum(rows(&data, "days"), "tool_calls")), env.rows(sql)[0][0].as_i64());
    assert_eq!(data["until"], "2026-10-14T00:00:00.000Z");
    env.run(["report", "--until", "1999-01-01"])
        .fails(1)
        .says("No session began before 1999-01-01");
}
