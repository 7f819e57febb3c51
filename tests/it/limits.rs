//! Which requests count against the rate limit, and how they are refused above it.

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::http::Server;
use crate::mcp::Client;

/// Requests that cost work and are not calls of tools.
fn counted() -> Vec<(&'static str, Value)> {
    let prompt = json!({ "type": "ref/prompt", "name": "weekly_summary" });
    let argument = json!({ "name": "project", "value": "h" });
    vec![
        ("resources/read", json!({ "uri": "sessions://status" })),
        ("resources/read", json!({ "uri": "sessions://ai-help" })),
        ("resources/read", json!({ "uri": "sessions://session/9ae82b3a" })),
        ("resources/read", json!({ "uri": "sessions://no-such-resource" })),
        ("prompts/get", json!({ "name": "weekly_summary" })),
        ("prompts/get", json!({ "name": "no_such_prompt" })),
        ("completion/complete", json!({ "ref": prompt, "argument": argument })),
        ("ai_help", json!({})),
        ("tools/call", json!({ "name": "no_such_tool", "arguments": {} })),
    ]
}

/// Requests that are answered from what the server holds ready.
const FREE: &[&str] =
    &["tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping"];

fn check_refused(answer: &Value, method: &str) {
    let error = &answer["error"];
    assert_eq!(error["code"], -32000, "{method}: {answer}");
    error["message"].shows("Wait");
    let data = &error["data"];
    data.has(json!({
        "code": "rate_limit_exceeded", "retryable": true, "details": {"limit_per_minute": 1},
    }));
    let wait = data["details"]["retry_after_ms"].as_u64();
    assert!(wait.is_some_and(|wait| wait > 0), "{method}: {answer}");
}

#[test]
fn whatever_costs_work_counts_in_both_eras() {
    let env = TestEnv::with_samples();
    let flags = ["--rate-limit", "1"];
    for (method, params) in counted() {
        for mut client in [Client::legacy_with(&env, &flags), Client::modern_with(&env, &flags)] {
            for free in FREE {
                let answer = client.request(free, json!({}));
                // The later era has no ping.
                let is_known = answer.get("result").is_some() || *free == "ping";
                assert!(is_known, "{free}: {answer}");
            }
            let first = client.request(method, params.clone());
            assert_ne!(first["error"]["code"], -32000, "{method}: {first}");
            check_refused(&client.request(method, params.clone()), method);
            // One budget for all.
            client.fails("list_sessions", json!({})).has(json!({"code": "rate_limit_exceeded"}));
        }
    }
}

#[test]
fn a_call_of_a_tool_leaves_nothing_for_other_requests() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy_with(&env, &["--rate-limit", "1"]);
    client.call("list_sessions", json!({ "limit": 1 }));
    for (method, params) in counted() {
        check_refused(&client.request(method, params), method);
    }
}

#[test]
fn the_limit_holds_over_http() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &["--no-auth", "--rate-limit", "1"], &[]);
    let read = json!({ "uri": "sessions://status" });
    assert_eq!(server.post("resources/read", read.clone(), &[]).status, 200);
    let refused = server.post("resources/read", read, &[]);
    check_refused(&refused.json(), "resources/read");
    check_refused(&server.post("ai_help", json!({}), &[]).json(), "ai_help");
}
