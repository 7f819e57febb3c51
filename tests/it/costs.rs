//! Costs by the mode in which requests were served, the same in every answer.

use schemas::price::{STANDARD_GEOS, STANDARD_SPEEDS, STANDARD_TIERS};
use serde_json::{Value, json};

use crate::checks::Checks;
use crate::env::TestEnv;

/// A line of a response of Claude's, with this usage.
fn response(n: u32, model: &str, usage: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"0000000c-0000-4000-8000-{n:012}","sessionId":"c","timestamp":"2026-10-01T10:00:{n:02}.000Z","message":{{"id":"msg_{n}","role":"assistant","model":"{model}","content":[{{"type":"text","text":"answer {n}"}}],"usage":{{{usage}}}}}}}"#
    ) + "\n"
}

/// Ingests the responses as one session, `c`.
fn ingest(responses: &[(&str, &str)]) -> TestEnv {
    let env = TestEnv::new();
    let log: String =
        (1..).zip(responses).map(|(n, (model, usage))| response(n, model, usage)).collect();
    env.write("c.jsonl", log);
    env.ingest("c.jsonl");
    env
}

fn close(found: &Value, expected: f64) {
    let found_cost = found.as_f64().expect("a cost");
    assert!((found_cost - expected).abs() < 1e-6, "{found}, not {expected}");
}

/// The warning of an answer about modes without a price.
fn price_warning(answer: &Value) -> Option<String> {
    let warnings = answer["warnings"].as_array()?;
    let warning = warnings.iter().find(|warning| warning["code"] == "UNKNOWN_PRICE_MODE")?;
    warning["message"].as_str().map(str::to_owned)
}

const BASE: &str = r#""input_tokens":1000,"output_tokens":2000"#;

#[test]
fn every_mode_has_its_price_and_all_answers_agree() {
    let with = |more: &str| format!("{BASE},{more}");
    let modes = [
        (with(r#""speed":"standard","service_tier":"standard""#), 0.055),
        (with(r#""speed":"fast""#), 0.110),
        (with(r#""service_tier":"batch""#), 0.0275),
        (with(r#""inference_geo":"us""#), 0.0605),
        (with(r#""inference_geo":"global""#), 0.055),
        (with(r#""speed":"fast","inference_geo":"us""#), 0.121),
        (with(r#""server_tool_use":{"web_search_requests":3,"web_fetch_requests":4}"#), 0.085),
    ];
    let responses: Vec<_> =
        modes.iter().map(|(usage, _)| ("claude-opus-4-8", usage.as_str())).collect();
    let env = ingest(&responses);
    let rows = env.rows("SELECT cost_usd FROM usage ORDER BY timestamp");
    for (row, (_, cost)) in rows.iter().zip(&modes) {
        close(&row[0], *cost);
    }
    let sum: f64 = modes.iter().map(|(_, cost)| cost).sum();
    let stats = env.json(["stats", "--by", "session"]);
    close(&stats["data"]["groups"][0]["cost_usd"], sum);
    let listed = env.json(["list"]);
    close(&listed["data"]["sessions"][0]["tokens"]["cost_usd"], sum);
    assert_eq!(price_warning(&listed), None);
}

/// A price that changed, on both sides of midnight in UTC.
#[test]
fn the_day_of_a_request_decides_its_price_in_all_answers() {
    let env = TestEnv::new();
    let usage = r#""input_tokens":1000000,"output_tokens":1000000"#;
    let times = ["2026-08-21T01:59:59+02:00", "2026-08-20T22:00:00-02:00"];
    let mut log = String::new();
    for (n, time) in (1..).zip(times) {
        let line = response(n, "gpt-5.6-sol", usage);
        log.push_str(&line.replace(&format!("2026-10-01T10:00:{n:02}.000Z"), time));
    }
    env.write("c.jsonl", log);
    env.ingest("c.jsonl");

    let rows = env.rows("SELECT cost_usd FROM usage ORDER BY timestamp");
    let days = env.json(["stats", "--by", "day"]);
    for (day, cost) in [55.0, 38.0].into_iter().enumerate() {
        close(&rows[day][0], cost);
        close(&days["data"]["groups"][day]["cost_usd"], cost);
    }
    close(&env.json(["list"])["data"]["sessions"][0]["tokens"]["cost_usd"], 93.0);
    close(&env.rows("SELECT cost_usd FROM sessions")[0][0], 93.0);
}

#[test]
fn a_mode_without_a_price_is_named_and_costs_nothing_known() {
    let scale = format!(r#"{BASE},"service_tier":"scale""#);
    let env = ingest(&[("claude-opus-4-8", BASE), ("claude-opus-4-8", &scale)]);
    let rows = env.rows("SELECT cost_usd, service_tier FROM usage ORDER BY timestamp");
    close(&rows[0][0], 0.055);
    assert_eq!(rows[1], [Value::Null, json!("scale")]);
    for call in [&["list"][..], &["stats", "--by", "model"]] {
        let message = price_warning(&env.json(call)).expect("a warning");
        message.shows("claude-opus-4-8 (service_tier scale)");
    }
}

#[test]
fn codex_requests_cost_what_their_tier_costs() {
    let usage = r#"{"input_tokens":100000,"output_tokens":10000}"#;
    let record = |n: u32, kind: &str, payload: &str| {
        format!(
            r#"{{"timestamp":"2026-10-01T10:00:{n:02}.000Z","type":"{kind}","payload":{payload}}}"#
        ) + "\n"
    };
    let settings = |tier: &str| {
        format!(
            r#"{{"type":"thread_settings_applied","thread_settings":{{"model":"gpt-5.6-terra","service_tier":"{tier}"}}}}"#
        )
    };
    let response = |id: &str| format!(r#"{{"response_id":"{id}","usage":{usage}}}"#);
    let log = record(1, "session_meta", r#"{"id":"d","cwd":"/w","cli_version":"0.154.0"}"#)
        + &record(2, "event_msg", &settings("priority"))
        + &record(3, "token_usage_record", &response("r1"))
        + &record(4, "event_msg", &settings("default"))
        + &record(5, "token_usage_record", &response("r2"));
    let env = TestEnv::new();
    env.write("rollout-d.jsonl", log);
    env.ingest("rollout-d.jsonl");
    let rows = env.rows("SELECT cost_usd, request_id FROM usage ORDER BY timestamp");
    close(&rows[0][0], 0.64);
    close(&rows[1][0], 0.32);
    assert_eq!(rows[1][1], "r2");
}

#[test]
fn the_view_knows_the_words_for_the_normal_price() {
    let sql = include_str!("../../crates/sql/src/views/usage.sql");
    for words in [STANDARD_TIERS, STANDARD_SPEEDS, STANDARD_GEOS] {
        let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let list = format!("IN ({})", quoted.join(", "));
        assert!(sql.contains(&list), "{list}");
    }
}

/// A line of a response of Pi's, whose log states `cost`.
fn priced_response(n: u32, model: &str, cost: &str) -> String {
    format!(
        r#"{{"type":"message","id":"m{n}","parentId":null,"timestamp":"2026-10-01T10:00:{n:02}.000Z","message":{{"role":"assistant","model":"{model}","content":[{{"type":"text","text":"answer {n}"}}],"usage":{{"input":1000,"output":2000,"cost":{{"input":1,"total":{cost}}}}}}}}}"#
    ) + "\n"
}

#[test]
fn the_cost_that_a_log_states_is_shown_next_to_ours() {
    let env = TestEnv::new();
    let mut log = r#"{"type":"session","version":3,"id":"01a15338-58d8-7a36-8980-b409e8a22c87","timestamp":"2026-10-01T10:00:00.000Z","cwd":"/w"}"#.to_owned() + "\n";
    log += r#"{"type":"message","id":"m0","parentId":null,"timestamp":"2026-10-01T10:00:00.000Z","message":{"role":"user","content":"measure the berths"}}"#;
    log += "\n";
    log += &priced_response(1, "claude-opus-4-8", "0.056");
    let path = env.path("pi.jsonl");
    env.write(&path, &log);
    let ingest = || env.ingest(&path);
    ingest();
    let tokens = |env: &TestEnv| env.json(["list"])["data"]["sessions"][0]["tokens"].clone();
    close(&tokens(&env)["cost_usd"], 0.055);
    close(&tokens(&env)["cost_as_logged"], 0.056);
    assert_eq!(env.json(["doctor"])["cost_differences"], json!([]), "below 5 %");

    // The sum goes on where the log goes on. What is free or unknown to the agent is no cost, and tokens
    // without one are not compared.
    log += &priced_response(2, "claude-opus-4-8", "0.08");
    log += &priced_response(3, "claude-opus-4-8", "0");
    log += &priced_response(4, "claude-opus-4-8", "-1");
    env.write(&path, &log);
    ingest();
    close(&tokens(&env)["cost_usd"], 4.0 * 0.055);
    close(&tokens(&env)["cost_as_logged"], 0.136);
    close(&env.rows("SELECT cost_as_logged FROM sessions")[0][0], 0.136);
    let differences = env.json(["doctor"])["cost_differences"].clone();
    assert_eq!(differences[0]["model"], "claude-opus-4-8");
    close(&differences[0]["cost_usd"], 0.110);
    close(&differences[0]["cost_as_logged"], 0.136);
    env.run(["doctor"])
        .shows("claude-opus-4-8: $0.11 by the price table, $0.14 in the logs (-19 %)");
    env.run(["show", "01a15338"]).shows("as logged");
}

#[test]
fn opencode_and_cline_state_costs_too() {
    let env = TestEnv::new();
    let open = r#"{"info":{"id":"ses_1","projectID":"p","directory":"/w","title":"berths","time":{"created":1792396697004,"updated":1792396701586}},"messages":[{"info":{"role":"user","id":"msg_1","sessionID":"ses_1","time":{"created":1792396697904}},"parts":[{"type":"text","text":"measure","id":"prt_1"}]},{"info":{"role":"assistant","id":"msg_2","sessionID":"ses_1","modelID":"claude-haiku-4.5","cost":0.25,"tokens":{"input":100,"output":7,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1792396698256}},"parts":[{"type":"text","text":"done","id":"prt_2"}]}]}"#;
    env.write("export.json", open);
    let cline = r#"[{"ts":1792396697004,"type":"say","say":"task","text":"measure the quay"},{"ts":1792396697104,"type":"say","say":"api_req_started","text":"{\"request\":\"x\",\"tokensIn\":10,\"tokensOut\":5,\"cost\":0.5}"},{"ts":1792396698004,"type":"say","say":"text","text":"done"}]"#;
    let task = env.path("tasks/1792396697004");
    env.write(task.join("ui_messages.json"), cline);
    for log in ["export.json", "tasks"] {
        env.ingest(log);
    }
    let rows = env.rows("SELECT provider, cost_as_logged FROM sessions ORDER BY provider");
    assert_eq!(rows, [[json!("cline"), json!(0.5)], [json!("opencode"), json!(0.25)]]);
}
