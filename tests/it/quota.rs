//! The quotas that Codex records, and the status line.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::TestEnv;

/// Runs `statusline` with an input and returns its output.
fn statusline(env: &TestEnv, flags: &[&str], input: &str) -> String {
    let mut command = env.command();
    command.args(flags).arg("statusline").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    child.stdin.take().expect("stdin").write_all(input.as_bytes()).expect("writes");
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A store with a Codex session whose last count has these limits.
fn codex_store(limits: &Value) -> TestEnv {
    codex_store_with(std::slice::from_ref(limits))
}

/// A store with a Codex session whose counts have these limits.
fn codex_store_with(limits: &[Value]) -> TestEnv {
    let env = TestEnv::new();
    let id = "01a13941-6cb9-7f1e-a741-65890d73c8a5";
    let name = format!("rollout-2026-10-14T09-12-31-{id}.jsonl");
    let append = |second: usize, kind: &str, payload: Value| {
        let time = format!("2026-10-14T07:12:{second}Z");
        env.append_event(&name, &json!({"timestamp": time, "type": kind, "payload": payload}));
    };
    let meta = json!({"id": id, "timestamp": "2026-10-14T07:12:31Z", "cwd": "/home/mira/code",
        "originator": "codex_cli_rs", "cli_version": "0.99.0"});
    append(31, "session_meta", meta);
    append(40, "event_msg", json!({"type": "user_message", "message": "Fix the lights"}));
    let usage = |number: usize| {
        json!({"input_tokens": 100 * number, "output_tokens": 5 * number,
            "total_tokens": 105 * number})
    };
    for (at, limits) in limits.iter().enumerate() {
        let info = json!({"total_token_usage": usage(at + 1), "last_token_usage": usage(1)});
        let count = json!({"type": "token_count", "rate_limits": limits, "info": info});
        append(49 + at, "event_msg", count);
    }
    env.ingest(&name);
    env
}

/// A time in an hour, and one in the past, in seconds since the epoch.
fn in_an_hour() -> i64 {
    schemas::Timestamp::now().0 / 1_000_000 + 3_630
}

#[test]
fn the_latest_quota_of_codex_is_kept() {
    let resets_at = in_an_hour();
    let env = codex_store(&json!({
        "primary": {"used_percent": 23.5, "window_minutes": 300, "resets_at": resets_at},
        "secondary": {"used_percent": 55.0, "window_minutes": 10080, "resets_at": 1_000_000},
    }));
    let data = env.json(["usage", "--limits"]);
    let windows = &data["windows"];
    assert_eq!(data["version"], 1);
    windows[0].has(json!({"used_percent": 23.5, "window_minutes": 300}));
    let expected = schemas::Timestamp(resets_at * 1_000_000).to_string();
    windows[0].has(json!({"resets_at": expected.as_str(), "seen_at": "2026-10-14T07:12:49.000Z"}));
    // How much of a window that began again since is used is not known.
    windows[1].has(json!({"used_percent": 0.0, "resets_at": null, "has_begun_again": true}));

    env.run(["usage", "--limits"]).shows([
        "codex 5-hour limit: 23.5 % used, resets ",
        "codex 7-day limit: has reset, last seen 2026-10-14T",
    ]);
    let line = statusline(&env, &[], "");
    assert_eq!(line, "codex 5h 24 % (1h left)\n");
}

/// The last counts are of a model with its own quota, of an older session, and of none at all.
#[test]
fn the_quota_of_one_model_is_not_that_of_the_plan() {
    let resets_at = in_an_hour();
    let window = |used: f64, minutes: i64| json!({"used_percent": used, "window_minutes": minutes, "resets_at": resets_at});
    let env = codex_store_with(&[
        json!({"limit_id": "codex", "primary": window(70.0, 10080), "plan_type": "plus"}),
        json!({"limit_id": "codex", "primary": window(5.0, 300), "secondary": window(77.0, 10080), "plan_type": "pro"}),
        json!({"limit_id": "codex_bengalfox", "limit_name": "GPT-5.3; Spark", "primary": window(4.0, 300)}),
        json!({"limit_id": "codex_other", "primary": window(9.0, 300)}),
        json!({"limit_id": "premium", "primary": null, "secondary": null}),
    ]);
    let data = env.json(["usage", "--limits"]);
    let windows: Vec<_> = data["windows"]
        .list()
        .iter()
        .map(|window| (window["limit"].as_str(), window["used_percent"].as_f64().expect("a part")))
        .collect();
    assert_eq!(
        windows,
        [(None, 5.0), (None, 77.0), (Some("GPT-5.3, Spark"), 4.0), (Some("codex_other"), 9.0)]
    );
    env.run(["usage", "--limits"]).shows("codex_other");
    assert_eq!(statusline(&env, &[], ""), "codex 5h 5 % (1h left) | codex week 77 % (1h left)\n");
}

#[test]
fn logs_without_quotas_have_none() {
    let env = codex_store(&Value::Null);
    env.run(["usage", "--limits"]).fails(1);
    assert_eq!(env.json(["usage", "--limits"])["windows"], json!([]));
}

#[test]
fn the_status_line_takes_what_claude_code_passes() {
    let env = TestEnv::with_samples();
    let input = json!({
        "session_id": "9ae82b3a", "model": {"id": "claude-opus", "display_name": "Opus\n"},
        "cost": {"total_cost_usd": 0.123}, "context_window": {"used_percentage": 41},
        "rate_limits": {"five_hour": {"used_percentage": 12.0, "resets_at": in_an_hour()}},
    });
    let line = statusline(&env, &[], &input.to_string());
    assert_eq!(line, "Opus | $0.12 | context 41 % | claude 5h 12 % (1h left)\n");
    let data: Value =
        serde_json::from_str(&statusline(&env, &["--json"], &input.to_string())).expect("JSON");
    data.has(json!({"version": 1, "session_cost_usd": 0.123}));
    assert_eq!(data["windows"][0]["provider"], "claude");

    let counts = json!({ "context_window":
        { "total_input_tokens": 16_000, "context_window_size": 200_000 } });
    assert!(statusline(&env, &[], &counts.to_string()).contains("context 8 %"));
}

#[test]
fn the_status_line_needs_neither_input_nor_store() {
    let env = TestEnv::new();
    for input in ["", "no JSON", "[1]"] {
        assert_eq!(statusline(&env, &[], input), "sessions: no data yet\n");
    }
}
