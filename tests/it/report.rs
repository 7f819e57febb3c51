//! `sessions report`: one file, with the store's numbers, in which no text can do anything.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::env::TestEnv;

const HOSTILE: &str = "c8564f25-71e8-4af6-b5dc-c26a951636c4";

/// The page, and the data in it.
fn report(env: &TestEnv, args: &[&str]) -> (String, Value) {
    let page = env.run(&[&["report", "-o", "-"], args].concat()).ok();
    let (_, rest) = page.split_once(r#"id="data">"#).expect("data");
    let (data, _) = rest.split_once("</script>").expect("data ends");
    let data = serde_json::from_str(data).expect("JSON");
    (page, data)
}

fn sum(rows: &Value, field: &str) -> i64 {
    let rows = rows.as_array().expect("rows");
    rows.iter().filter_map(|row| row[field].as_i64()).sum()
}

fn cost(rows: &Value) -> f64 {
    rows.as_array().expect("rows").iter().filter_map(|row| row["cost_usd"].as_f64()).sum()
}

#[test]
fn the_numbers_are_those_of_the_store() {
    let env = TestEnv::with_samples();
    let (_, data) = report(&env, &[]);
    let sql = "SELECT sum(input_tokens)::BIGINT, sum(output_tokens)::BIGINT, sum(cache_read_tokens)::BIGINT, \
        sum(cache_write_tokens)::BIGINT, sum(tool_calls)::BIGINT, sum(tool_errors)::BIGINT FROM sessions";
    let want = &env.rows(sql)[0];
    for (at, field) in ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(data["totals"][field], want[at], "{field}");
        assert_eq!(sum(&data["days"], field), want[at].as_i64().expect("known"), "{field}");
        assert_eq!(sum(&data["sessions"], field), want[at].as_i64().expect("known"), "{field}");
    }
    assert_eq!(
        (&data["totals"]["tool_calls"], &data["totals"]["tool_errors"]),
        (&want[4], &want[5])
    );
    assert_eq!(sum(&data["tools"], "calls"), want[4].as_i64().expect("known"));
    assert_eq!(sum(&data["tools"], "errors"), want[5].as_i64().expect("known"));

    let listed = env.json(&["list", "--subagents", "--limit", "100"]);
    let listed = listed["data"]["sessions"].as_array().expect("sessions");
    let pages = data["sessions"].as_array().expect("sessions");
    let id = |session: &Value| session["session_id"].as_str().expect("id").to_owned();
    let ids = |sessions: &[Value]| sessions.iter().map(id).collect::<BTreeSet<_>>();
    assert_eq!(ids(pages), ids(listed));
    for session in listed {
        let page = pages.iter().find(|page| page["session_id"] == session["session_id"]);
        let page = page.expect("a page");
        // Where some kind of token has no rate the list gives no cost, the report that of the rest.
        if session["tokens"]["unpriced_models"].is_array() {
            continue;
        }
        let (got, want) = (page["cost_usd"].as_f64(), session["tokens"]["cost_usd"].as_f64());
        assert!((got.unwrap_or(0.0) - want.unwrap_or(0.0)).abs() < 1e-9, "{page}: {want:?}");
        assert_eq!(page["started_at"], session["started_at"]);
    }
    assert!((cost(&data["days"]) - cost(&data["sessions"])).abs() < 1e-9);
    let began = sum(&data["activity"], "sessions");
    assert_eq!(data["totals"]["sessions"].as_i64(), Some(began));
}

#[test]
fn sessions_lead_to_their_subagents_and_errors_to_their_events() {
    let env = TestEnv::with_samples();
    let (_, data) = report(&env, &[]);
    let pages = data["sessions"].as_array().expect("sessions");
    let main =
        pages.iter().find(|page| page["title"] == "Make clones of RetryBudget share one counter");
    let main = main.expect("the main session");
    let children = main["children"].as_array().expect("children");
    assert!(children.iter().any(|child| child == "agent-ab20cdd8693cc94e2"), "{children:?}");
    assert!(main["family_cost_usd"].as_f64() > main["cost_usd"].as_f64());
    let failure = &main["failures"][0];
    assert!(failure["text"].as_str().expect("text").starts_with("Exit code 101"));
    let event = env.json(&["event", failure["event_id"].as_str().expect("id")]);
    assert_eq!(event["data"]["events"][0]["is_error"], true);
    let turn =
        main["timeline"].as_array().expect("turns").iter().find(|turn| turn["turn_index"] == 1);
    let turn = turn.expect("turn 1");
    assert!(turn["prompt"].as_str().expect("prompt").starts_with("Since the connection pool"));
    assert!(turn["answer"].as_str().expect("answer").starts_with("The test is right"));
    for error in data["errors"].as_array().expect("errors") {
        assert!(error["count"].as_u64() > Some(1), "{error}");
    }
}

#[test]
fn the_page_loads_nothing_and_no_text_can_leave_its_place() {
    let env = TestEnv::with_samples();
    let (page, data) = report(&env, &[]);
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    for loading in ["<link", "src=\"", "@import", "url(", "<iframe", "<base"] {
        assert!(!page.contains(loading), "{loading}");
    }
    let (_, rest) = page.split_once(r#"id="data">"#).expect("data");
    let (json, _) = rest.split_once("</script>").expect("data ends");
    assert!(!json.contains('<'), "nothing in the data can end it");
    let pages = data["sessions"].as_array().expect("sessions");
    let hostile = pages.iter().find(|page| page["session_id"] == HOSTILE).expect("there");
    assert!(hostile["title"].as_str().expect("title").contains("<script>"), "as text");
    for bad in ["\\u001b", "\u{1b}", "\u{202e}", "\u{200b}"] {
        assert!(!json.contains(bad), "{bad:?}");
    }
}

#[test]
fn a_report_replaces_a_report_and_nothing_else() {
    let env = TestEnv::with_samples();
    assert!(env.run(&["report"]).ok().contains("report.html"));
    env.run(&["report", "--project", "harbor"]).ok();
    fs::write(env.path("report.html"), "<html>coverage</html>").expect("writes");
    assert!(env.run(&["report"]).fails(2).contains("-o"));
    assert!(fs::read_to_string(env.path("report.html")).expect("reads").contains("coverage"));
    let written = env.json(&["report", "-o", "mine/sessions.html"]);
    let size = fs::metadata(env.path("mine/sessions.html")).expect("there").len();
    assert_eq!(written["bytes"].as_u64(), Some(size));
}

#[test]
fn filters_hold_for_every_number() {
    let env = TestEnv::with_samples();
    assert!(
        env.run(&["report", "--since", "2099-01-01"])
            .fails(1)
            .contains("No session was active since")
    );
    let (_, data) = report(&env, &["--provider", "codex", "--since", "2026-10-01"]);
    let sql = "SELECT sum(output_tokens)::BIGINT, count(*) FILTER (event_type = 'tool_call') FROM events \
        WHERE provider = 'codex' AND NOT is_replay AND timestamp >= TIMESTAMP '2026-10-01'";
    let want = &env.rows(sql)[0];
    assert_eq!(data["totals"]["output_tokens"], want[0]);
    assert_eq!(data["totals"]["tool_calls"], want[1]);
    assert_eq!(data["provider"], "codex");
    assert_eq!(data["since"], "2026-10-01T00:00:00.000Z");

    let (_, data) = report(&env, &["--provider", "codex", "--until", "2026-10-14"]);
    let sql = "SELECT count(*) FILTER (event_type = 'tool_call') FROM events \
        WHERE provider = 'codex' AND NOT is_replay AND timestamp < TIMESTAMP '2026-10-14'";
    assert_eq!(data["totals"]["tool_calls"], env.rows(sql)[0][0]);
    assert_eq!(data["until"], "2026-10-14T00:00:00.000Z");
    let none = env.run(&["report", "--until", "1999-01-01"]).fails(1);
    assert!(none.contains("No session began before 1999-01-01"), "{none}");
}
