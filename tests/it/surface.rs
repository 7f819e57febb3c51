//! What the server has besides tools that search: resources, prompts, completion, the manual, the
//! dashdash blocks, the description of the tools.

use schemas::envelope::CONTRACT_VERSION;
use schemas::tool::{TOOLS, namespace};
use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::mcp::Client;

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

fn dashdash() -> String {
    format!("{}/dashdash", namespace())
}

/// Reads a resource; its only content.
fn read(client: &mut Client, uri: &str) -> Value {
    let answer = client.request("resources/read", json!({ "uri": uri }));
    let contents = answer["result"]["contents"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(contents.len(), 1);
    assert_eq!(contents[0]["uri"], uri);
    contents[0].clone()
}

fn text(content: &Value) -> &str {
    content["text"].text()
}

#[test]
fn the_blocks_stand_where_clients_of_both_eras_look() {
    let env = TestEnv::new();
    let mut legacy = Client::spawn(&env, &[]);
    let info = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let initialized = legacy.request("initialize", info)["result"].clone();
    let discovered = Client::modern(&env).request("server/discover", json!({}))["result"].clone();
    for result in [initialized, discovered] {
        let block = &result["capabilities"]["extensions"][dashdash()];
        assert_eq!(block["specVersion"], "0.2.0", "{result}");
        // Labels are all that is written.
        assert_eq!(block["accessLevel"], "interact");
        assert_eq!(&result["capabilities"]["experimental"]["dashdash"], block);
        assert_eq!(&result["_meta"][dashdash()], block);
        assert_eq!(&result["dashdash"], block, "the member that the specification names");
        assert_eq!(result["_meta"]["schema_version"], CONTRACT_VERSION);
        for capability in ["tools", "resources", "prompts", "completions"] {
            assert!(result["capabilities"][capability].is_object(), "{capability}");
        }
    }
    let mut client = Client::modern(&env);
    let listed = client.request("tools/list", json!({}));
    for tool in listed["result"]["tools"].list() {
        assert_eq!(tool["_meta"]["schema_version"], CONTRACT_VERSION);
        check_tool_block(tool);
    }
    for (method, list) in
        [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")]
    {
        let listed = client.request(method, json!({}));
        assert!(listed["result"]["ttlMs"].as_u64() > Some(0));
        for resource in listed["result"][list].as_array().expect(list) {
            assert!(resource["dashdash"]["resourceType"].is_string(), "{resource}");
            assert_eq!(resource["_meta"][dashdash()], resource["dashdash"]);
        }
    }
}

#[test]
fn apps_are_named_to_clients_that_show_them() {
    let env = TestEnv::with_samples();
    let mime_type = "text/html;profile=mcp-app";
    let apps =
        json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": [mime_type] } } });
    for (capabilities, wanted) in [(apps, 2), (json!({}), 0)] {
        let mut client = Client::modern(&env);
        client.announce(&capabilities);
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let tools = tools.as_array().expect("tools");
        let named: Vec<&str> =
            tools.iter().filter_map(|tool| tool["_meta"]["ui"]["resourceUri"].as_str()).collect();
        let resources = client.request("resources/list", json!({}))["result"]["resources"].clone();
        let resources = resources.as_array().expect("resources");
        let listed = resources.iter().filter(|row| row["mimeType"] == mime_type);
        assert_eq!((named.len(), listed.count()), (wanted, wanted), "{named:?}");

        for uri in named {
            let app = read(&mut client, uri);
            app.has(json!({
                "mimeType": mime_type, "_meta": {"ui": {"csp": {"connectDomains": []}}},
            }));
            assert!(text(&app).starts_with("<!doctype html>"));
        }
    }
}

/// Checks the dashdash block of a tool in the list of tools.
pub(crate) fn check_tool_block(tool: &Value) {
    let spec = TOOLS.iter().find(|spec| tool["name"] == spec.name).expect("a row");
    let block = json!({
        "category": spec.category,
        "operationType": if spec.is_read_only() { "read" } else { "write" },
        "idempotent": true,
        "cliEquivalent": format!("sessions {}", spec.command),
    });
    assert_eq!(tool["dashdash"], block, "{tool}");
    assert!(tool["_meta"].get(dashdash()).is_none(), "once is enough: {tool}");
}

/// Returns true if a text of the value has a character that the sanitizer removes.
pub(crate) fn has_hostile_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(['\u{1b}', '\u{202e}', '\u{7}']),
        Value::Array(items) => items.iter().any(has_hostile_text),
        Value::Object(members) => members.values().any(has_hostile_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[test]
fn errors_of_the_protocol_repeat_no_invisible_characters() {
    let env = TestEnv::new();
    let hostile = "evil\u{1b}[31m\u{202e}\u{7}";
    let modern = json!({
        "io.modelcontextprotocol/protocolVersion": hostile,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for mut client in [Client::legacy(&env), Client::modern(&env), Client::spawn(&env, &[])] {
        for (method, params) in [
            (hostile, json!({})),
            ("tools/call", json!({ "name": hostile, "arguments": {} })),
            ("tools/call", json!({ "name": [hostile] })),
            ("resources/read", json!({ "uri": hostile })),
            ("prompts/get", json!({ "name": hostile })),
            ("prompts/get", json!({ "name": "recall", "arguments": { hostile: hostile } })),
            ("completion/complete", json!({ "ref": { "type": hostile }, "argument": hostile })),
            ("ai_help", json!({ "section": hostile })),
            ("ai_help", json!({ "format": hostile })),
            ("tools/list", json!({ "_meta": modern })),
        ] {
            let line = json!({ "jsonrpc": "2.0", "id": 77, "method": method, "params": params });
            client.send(&line.to_string());
            let answer = client.read();
            assert!(!has_hostile_text(&answer), "{method} {params}: {answer}");
        }
    }
}

#[test]
fn resources_are_read_in_both_eras() {
    let env = TestEnv::with_samples();
    for mut client in [Client::legacy(&env), Client::modern(&env)] {
        let status: Value =
            serde_json::from_str(text(&read(&mut client, "sessions://status"))).expect("JSON");
        assert!(status["sessions"].as_u64() > Some(10));
        let schema = read(&mut client, "sessions://schema");
        assert!(text(&schema).contains("events: ") && schema["mimeType"] == "text/plain");
        let help = read(&mut client, "sessions://ai-help");
        assert_eq!(text(&help), env.run(["--ai-help"]).ok());
        let session = read(&mut client, "sessions://session/9ae82b3a");
        let session: Value = serde_json::from_str(text(&session)).expect("JSON");
        assert_eq!(session["data"]["session"]["session_id"], MAIN);
        for uri in ["sessions://event/9ae82b3a:14", "sessions://event/9ae82b3a%3A14"] {
            let event: Value = serde_json::from_str(text(&read(&mut client, uri))).expect("JSON");
            assert_eq!(event["data"]["events"][0]["event_id"], format!("{MAIN}:14"));
        }
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn what_is_no_resource_is_said_to_be_none() {
    let env = TestEnv::with_samples();
    for (mut client, code) in [(Client::legacy(&env), -32002), (Client::modern(&env), -32602)] {
        for uri in [
            "sessions://nonsense",
            "sessions://session/ffffffff",
            "sessions://session/",
            "sessions://session/../../etc/passwd",
            "sessions://event/9ae82b3a:9999",
            "sessions://event/x",
            "file:///etc/passwd",
        ] {
            client.request("resources/read", json!({ "uri": uri })).has(json!({
                "error": {"code": code, "data": {"uri": uri}},
            }));
        }
    }
    let empty = TestEnv::new();
    let mut client = Client::legacy(&empty);
    let status: Value =
        serde_json::from_str(text(&read(&mut client, "sessions://status"))).expect("JSON");
    assert_eq!(status["sessions"], 0);
}

#[test]
fn prompts_name_tools_that_are_there() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    let listed = client.request("prompts/list", json!({}));
    let prompts = listed["result"]["prompts"].list().to_vec();
    assert_eq!(prompts.len(), 5);
    for prompt in prompts {
        let name = prompt["name"].text();
        let mut arguments = json!({});
        for argument in prompt["arguments"].list() {
            let argument = argument["name"].text();
            let handed_over = name == "resume" && argument == "session_id";
            let value = if handed_over { MAIN.into() } else { format!("some {argument}") };
            arguments[argument] = value.into();
        }
        let params = json!({ "name": name, "arguments": arguments });
        let answer = client.request("prompts/get", params);
        let message = &answer["result"]["messages"][0];
        assert_eq!(message["role"], "user");
        let text = message["content"]["text"].text();
        // What follows is from the log.
        let text = text.split("## Handover").next().unwrap_or_default();
        assert!(!text.contains('{'), "{text}");
        for argument in arguments.as_object().expect("object").values() {
            assert!(text.contains(argument.as_str().expect("text")), "{name}: {argument}");
        }
        for part in text.split('(').rev().skip(1) {
            let called = part.rsplit(|c: char| !c.is_ascii_lowercase() && c != '_').next();
            let called = called.unwrap_or_default();
            let known = !called.contains('_') || TOOLS.iter().any(|tool| tool.name == called);
            assert!(known, "{name} calls {called}");
        }
    }
    client.request("prompts/get", json!({ "name": "what_did_i_do_about" })).has(json!({
        "error": {"code": -32602},
    }));
}

#[test]
fn ids_and_projects_are_completed() {
    let env = TestEnv::with_samples();
    let mut client = Client::modern(&env);
    let mut complete = |reference: Value, name: &str, value: &str| {
        let argument = json!({ "name": name, "value": value });
        let answer = client
            .request("completion/complete", json!({ "ref": reference, "argument": argument }));
        answer["result"]["completion"].clone()
    };
    let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
    let template = |uri: &str| json!({ "type": "ref/resource", "uri": uri });
    complete(prompt("why_did_it_fail"), "session_id", "9ae8").has(json!({
        "values": [MAIN], "total": 1,
    }));
    assert_eq!(complete(prompt("weekly_summary"), "project", "HARB")["values"][0], "harbor");
    assert_eq!(complete(prompt("weekly_summary"), "colour", "x")["values"], json!([]));
    assert_eq!(
        complete(template("sessions://session/{id}"), "id", "9ae8")["values"],
        json!([MAIN])
    );
    complete(template("sessions://event/{id}"), "id", "9ae8").has(json!({
        "values": [format!("{MAIN}:")],
    }));
    assert_eq!(complete(prompt("nonsense"), "project", "x"), Value::Null);
    let all = complete(prompt("why_did_it_fail"), "session_id", "");
    assert!(all["values"].as_array().is_some_and(|values| values.len() <= 100));
}

#[test]
fn the_manual_is_answered_on_request() {
    let env = TestEnv::new();
    for (mut client, modern) in [(Client::legacy(&env), false), (Client::modern(&env), true)] {
        let whole = client.request("ai_help", json!({}))["result"].clone();
        assert_eq!(whole["contentType"], "text/markdown");
        assert_eq!(whole["content"].as_str(), Some(env.run(["--ai-help"]).ok().as_str()));
        assert_eq!(whole.get("resultType").is_some(), modern);
        let json = client.request("ai_help", json!({ "format": "json" }))["result"].clone();
        assert_eq!(json["metadata"]["name"], "sessions");
        for tool in json["sections"]["tools"].list() {
            for field in ["examples", "errors"] {
                assert!(tool[field].as_array().is_some_and(|list| !list.is_empty()), "{tool}");
            }
        }
        let part = client.request("ai_help", json!({ "section": "quick-reference" }));
        let part = part["result"]["content"].text();
        assert!(part.starts_with("## Quick Reference\n"));
        for params in [json!({ "section": "nonsense" }), json!({ "format": "pdf" })] {
            client.request("ai_help", params).has(json!({"error": {"code": -32602}}));
        }
        client.request("no_such_method", json!({})).has(json!({"error": {"code": -32601}}));
    }
}

#[test]
fn one_bad_id_of_several_costs_that_one_only() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    let ids = json!({ "event_ids": ["9ae82b3a:14", "nonsense"] });
    let events = client.call("get_event_details", ids);
    assert_eq!(events["data"]["events"].list().len(), 1);
    assert_eq!(events["data"]["not_found"], json!(["nonsense"]));
    let listed = client.call("list_sessions", json!({ "session_ids": ["9ae82b3a", "9"] }));
    assert_eq!(listed["data"]["sessions"].list().len(), 1);
    assert_eq!(listed["data"]["not_found"], json!(["9"]));
}

#[test]
fn tools_are_described_without_any_logs() {
    let env = TestEnv::new();
    let mut client = Client::legacy(&env);
    let all = client.call("tool_metadata", json!({}));
    let tools = all["data"]["tools"].list();
    assert_eq!(tools.len(), TOOLS.len());
    for tool in tools {
        for field in ["tool", "connectorId", "title", "riskLevel", "category", "actionTemplate"] {
            assert!(!tool[field].is_null(), "{field}: {tool}");
        }
        let spec = TOOLS.iter().find(|spec| tool["tool"] == spec.name).expect("a row");
        tool.has(json!({"connectorId": "sessions", "riskLevel": spec.risk.level()}));
        let categories = [(1, "read"), (2, "write"), (3, "delete")];
        let (_, category) =
            categories.iter().find(|(level, _)| tool["riskLevel"] == *level).expect("a level");
        assert_eq!(tool["category"], *category);
    }
    let some = client.call("tool_metadata", json!({ "tools": ["list_sessions", "nonsense"] }));
    assert_eq!(some["data"]["tools"][0]["tool"], "list_sessions");
    assert_eq!(some["data"]["not_found"], json!(["nonsense"]));
    some["hint"].shows("search_events");
    let one = client.call("tool_metadata", json!({ "tools": "search_events" }));
    assert_eq!(one["data"]["tools"].list().len(), 1);
    client.fails("tool_metadata", json!({ "tools": ["nonsense"] })).has(json!({
        "code": "invalid_argument", "details": {"field": "tools"},
    }));
}
