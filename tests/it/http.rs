//! The server over HTTP: tokens, hosts and origins, both eras, its end.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::TestEnv;
use crate::local_server::{LocalServer, Response};

pub(crate) struct Server(pub LocalServer);

impl Server {
    pub(crate) fn start(env: &TestEnv, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = env.command();
        command.args(["mcp", "--http", "127.0.0.1:0"]).args(flags);
        Self(LocalServer::start(command.envs(variables.iter().copied())))
    }

    /// A request of 2026-07-28.
    pub(crate) fn post(&self, method: &str, params: Value, more: &[(&str, &str)]) -> Response {
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or("").to_owned();
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        if !name.is_empty() {
            headers.push(("Mcp-Name", name.as_str()));
        }
        headers.extend(more);
        self.0.send("POST", "/mcp", &headers, &message(method, params))
    }
}

/// The text of a request of 2026-07-28.
pub(crate) fn message(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn token_of(env: &TestEnv) -> String {
    let token = env.read("store/http-token");
    format!("Bearer {token}")
}

#[test]
fn a_token_is_made_kept_and_asked_for() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &[], &[]);
    let token = token_of(&env);
    assert!(server.0.said.contains("http-token"), "{}", server.0.said);
    assert!(!server.0.said.contains(token.trim_start_matches("Bearer ")), "it is not shown");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(env.store().join("http-token")).expect("there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    for wrong in [None, Some("Bearer nonsense"), Some("Basic abc")] {
        let headers: Vec<_> = wrong.map(|value| ("Authorization", value)).into_iter().collect();
        let refused = server.post("tools/list", json!({}), &headers);
        assert_eq!(refused.status, 401, "{}", refused.body);
        assert!(
            refused.head.to_lowercase().contains("www-authenticate: bearer"),
            "{}",
            refused.head
        );
        // Clients show the user a refusal only if it is the protocol's.
        assert_eq!(refused.json()["error"]["message"], "a bearer token is needed");
    }
    let listed = server.post("tools/list", json!({}), &[("Authorization", &token)]);
    assert_eq!(listed.status, 200, "{}", listed.body);
    assert!(listed.json()["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 4));
    drop(server);
    let again = Server::start(&env, &[], &[]);
    let listed = again.post("tools/list", json!({}), &[("Authorization", &token)]);
    assert_eq!(listed.status, 200, "the token stays the same");
}

#[test]
fn a_token_can_be_given() {
    let env = TestEnv::with_samples();
    env.write("token", "a-token-of-my-own-making\n");
    let given = Server::start(&env, &["--token-file", "token"], &[]);
    let header = [("Authorization", "Bearer a-token-of-my-own-making")];
    assert_eq!(given.post("tools/list", json!({}), &header).status, 200);
    let variable = [("SESSIONS_HTTP_TOKEN", "a-token-of-my-own-making")];
    let server = Server::start(&env, &[], &variable);
    assert_eq!(server.post("tools/list", json!({}), &header).status, 200);
    assert!(!env.store().join("http-token").exists(), "none was made");
    env.write("short", "abc");
    env.run(["mcp", "--http", "127.0.0.1:0", "--token-file", "short"])
        .fails(2)
        .says("16 characters");
}

#[test]
fn without_a_token_only_on_loopback() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &["--no-auth"], &[]);
    assert_eq!(server.post("tools/list", json!({}), &[]).status, 200);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        env.run(["mcp", "--http", address, "--no-auth"]).fails(2).says("loopback");
    }
    env.run(["mcp", "--no-auth"]).fails(2).says("--http");
}

#[test]
fn hosts_origins_paths_methods_and_sizes_are_checked() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &["--no-auth"], &[]);
    let status = |headers: &[(&str, &str)]| server.post("tools/list", json!({}), headers).status;
    assert_eq!(status(&[("Host", "evil.example")]), 403);
    assert_eq!(status(&[("Origin", "http://evil.example")]), 403);
    assert_eq!(status(&[("Origin", "null")]), 403);
    assert_eq!(status(&[("Origin", "http://localhost:5173")]), 200);
    assert_eq!(status(&[("Host", "localhost")]), 200);
    assert_eq!(server.0.send("POST", "/", &[], "{}").status, 404);
    assert_eq!(server.0.send("GET", "/mcp", &[("Accept", "text/event-stream")], "").status, 405);
    assert_eq!(server.0.send("POST", "/mcp", &[("Accept", "text/html")], "{}").status, 406);
    // One byte too many, so that nothing of it is left unread when the server refuses.
    let search =
        |query: String| json!({ "name": "search_events", "arguments": { "query": query } });
    let frame = message("tools/call", search(String::new())).len();
    let long = search("x".repeat((1 << 20) + 1 - frame));
    assert_eq!(server.post("tools/call", long, &[]).status, 413);
    // It goes on after all that.
    assert_eq!(status(&[]), 200);
}

#[test]
fn both_eras_are_served_without_sessions() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &["--no-auth"], &[]);
    let call = json!({ "name": "search_events", "arguments": { "query": "budget", "limit": 2 } });
    let answer = server.post("tools/call", call, &[]).json();
    let data = &answer["result"]["structuredContent"]["data"];
    assert_eq!(data["matches"].list().len(), 2);
    let help = server.post("ai_help", json!({ "section": "overview" }), &[]).json();
    assert!(help["result"]["content"].is_string());
    let uri = "sessions://session/9ae82b3a";
    let read = server.post("resources/read", json!({ "uri": uri }), &[]).json();
    assert_eq!(read["result"]["contents"][0]["uri"], uri);
    let legacy = |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        server.0.send("POST", "/mcp", &headers, &body.to_string())
    };
    let info = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let hello = legacy("initialize", info);
    assert_eq!(hello.json()["result"]["protocolVersion"], "2025-11-25");
    assert!(!hello.head.to_lowercase().contains("mcp-session-id"), "{}", hello.head);
    for found in [hello.json(), server.post("server/discover", json!({}), &[]).json()] {
        assert_eq!(found["result"]["dashdash"]["specVersion"], "0.2.0", "{found}");
    }
    for listed in [legacy("tools/list", json!({})), server.post("tools/list", json!({}), &[])] {
        let listed = listed.json();
        for tool in listed["result"]["tools"].list() {
            crate::surface::check_tool_block(tool);
        }
    }
    for (method, list) in
        [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")]
    {
        for listed in [legacy(method, json!({})), server.post(method, json!({}), &[])] {
            let listed = listed.json();
            for resource in listed["result"][list].as_array().expect(list) {
                assert!(resource["dashdash"]["resourceType"].is_string(), "{resource}");
            }
        }
    }
    let call = json!({ "name": "list_sessions", "arguments": { "limit": 1 } });
    assert_eq!(legacy("tools/call", call).json()["result"]["structuredContent"]["status"], "ok");
}

#[cfg(unix)]
#[test]
fn asked_to_end_it_ends_well() {
    let env = TestEnv::with_samples();
    let mut server = Server::start(&env, &["--no-auth"], &[]);
    let pid = server.0.process.0.id().to_string();
    let killed = std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("runs");
    assert!(killed.success());
    assert_eq!(server.0.process.0.wait().expect("ends").code(), Some(0));
    let mut rest = String::new();
    server.0.stderr.read_to_string(&mut rest).expect("reads");
    assert_eq!(rest, "");
}

/// The output of another program is a pipe, whose text may come late.
#[cfg(unix)]
#[test]
fn a_token_may_come_from_another_program() {
    let env = TestEnv::with_samples();
    let pipe = env.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
    assert!(made.success());
    let token = "a-token-from-a-pipe";
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut file = std::fs::OpenOptions::new().write(true).open(pipe).expect("opens");
            std::thread::sleep(std::time::Duration::from_millis(1500));
            file.write_all(token.as_bytes()).expect("writes");
        }
    });
    let server = Server::start(&env, &["--token-file", &pipe.to_string_lossy()], &[]);
    writer.join().expect("ends");
    let header = format!("Bearer {token}");
    let listed = server.post("tools/list", json!({}), &[("Authorization", &header)]);
    assert_eq!(listed.status, 200, "{}", listed.body);
}

#[test]
fn errors_over_http_repeat_no_invisible_characters() {
    let env = TestEnv::with_samples();
    let server = Server::start(&env, &["--no-auth"], &[]);
    let hostile = "evil\u{1b}[31m\u{202e}\u{7}";
    let version = |version: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    };
    for (protocol, header_method) in
        [("2026-07-28", "tools/list"), ("2026-07-28", ""), ("2025-11-25", "")]
    {
        for (method, params) in [
            (hostile, json!({})),
            ("tools/call", json!({ "name": hostile, "arguments": {} })),
            ("resources/read", json!({ "uri": hostile })),
            ("ai_help", json!({ "section": hostile })),
            ("tools/list", json!({ "_meta": version(hostile) })),
            (hostile, json!({ "_meta": version("2026-07-28") })),
            ("tools/call", json!({ "name": hostile, "_meta": version("2026-07-28") })),
        ] {
            let mut headers = vec![
                ("Accept", "application/json, text/event-stream"),
                ("Content-Type", "application/json"),
                ("MCP-Protocol-Version", protocol),
            ];
            if !header_method.is_empty() {
                headers.push(("Mcp-Method", header_method));
            }
            for id in [json!(1), json!("a")] {
                let body =
                    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                let answer = server.0.send("POST", "/mcp", &headers, &body.to_string()).json();
                assert!(answer["error"]["message"].is_string() || answer["result"].is_object());
                assert!(!crate::surface::has_hostile_text(&answer), "{method} {params}: {answer}");
            }
        }
    }
    let broken = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"{hostile}\"");
    let headers = [("Content-Type", "application/json")];
    let answer = server.0.send("POST", "/mcp", &headers, &broken).json();
    assert!(!crate::surface::has_hostile_text(&answer));
}
