//! Readers of the HTTP server: each has a token and sees some projects, whatever it asks.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::checks::Checks;
use crate::env::TestEnv;
use crate::http::Server;

pub(crate) fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A store with a session of the project `harbor` and one of `secret`, and readers of both.
fn serve() -> (TestEnv, Server) {
    let env = TestEnv::new();
    for (id, project, word) in [("open", "harbor", "lighthouse"), ("shut", "secret", "zanzibar")] {
        env.log(id)
            .cwd(format!("/code/{project}"))
            .header("git_branch", format!("{word}-branch"))
            .user(&format!("Paint the {word}."))
            .call(
                "c1",
                &format!("{word}_tool"),
                json!({ "file_path": format!("/code/{project}/{word}.rs") }),
            )
            .failure("c1", &format!("error: no {word}"))
            .ingest();
        env.run(["label", id, "--add", word]).ok();
    }
    for (name, token, project) in
        [("ana", "token-of-ana-0123", "harbor"), ("bob", "token-of-bob-0123", "**")]
    {
        let reader = format!("[[reader]]\nname = '{name}'\ntoken_sha256 = '{}'\n", hash(token));
        env.append("readers.toml", &format!("{reader}projects = ['{project}']\n"));
    }
    let server = Server::start(&env, &["--readers", "readers.toml"], &[]);
    (env, server)
}

const ANA: (&str, &str) = ("Authorization", "Bearer token-of-ana-0123");
const BOB: (&str, &str) = ("Authorization", "Bearer token-of-bob-0123");

#[test]
fn a_reader_sees_its_projects_in_every_tool_resource_and_query() {
    let (_env, server) = serve();
    let calls = [
        ("search_events", json!({ "query": "paint" })),
        ("search_events", json!({ "query": "zanzibar" })),
        ("search_events", json!({ "query": "error branch:zanzibar" })),
        ("search_events", json!({ "query": "paint file:zanzibar tool:lighthous" })),
        ("search_events", json!({ "query": "paint label:zanziba" })),
        ("search_events", json!({ "query": "paint project:secre" })),
        ("search_sessions", json!({ "query": "who painted the zanzibar" })),
        ("list_sessions", json!({ "format": "full" })),
        ("list_sessions", json!({ "project": "secre" })),
        ("list_sessions", json!({ "session_ids": ["shut"] })),
        ("get_session_details", json!({ "session_id": "shut" })),
        ("get_session_details", json!({ "session_id": "open", "detail_level": "full" })),
        ("get_event_details", json!({ "event_ids": ["shut:0"] })),
        ("analyze_session", json!({})),
        ("analyze_session", json!({ "query": "error: no zanzibar" })),
        ("session_stats", json!({ "group_by": "project" })),
        ("session_stats", json!({ "group_by": ["tool", "file"] })),
        ("query_sql", json!({ "sql": "SELECT * FROM events" })),
        ("query_sql", json!({ "sql": "SELECT * FROM sessions" })),
        ("query_sql", json!({ "sql": "SELECT * FROM labels" })),
        ("query_sql", json!({ "sql": "SELECT * FROM tool_calls JOIN files USING (session_id)" })),
        ("query_sql", json!({ "sql": "SELECT * FROM problems" })),
    ];
    let mut seen = (0, 0);
    for (name, arguments) in calls {
        let asked = arguments.to_string();
        let params = json!({ "name": name, "arguments": arguments });
        let answer = server.post("tools/call", params.clone(), &[ANA]).json().to_string();
        // What the caller asked for may be repeated; nothing else of the other project may.
        answer.lacks([
            "/code/secret",
            "zanzibar.rs",
            "zanzibar-branch",
            "zanzibar_tool",
            "Paint the zanzibar",
        ]);
        let is_named = asked.contains("zanzi") || asked.contains("shut") || asked.contains("secre");
        assert!(is_named || !answer.contains("zanzibar"), "{name} {asked}: {answer}");
        seen.0 += usize::from(answer.contains("lighthouse"));
        let whole = server.post("tools/call", params, &[BOB]).json().to_string();
        seen.1 += usize::from(whole.contains("zanzibar"));
    }
    assert!(seen.0 >= 8 && seen.1 >= 12, "{seen:?}");
    for uri in ["sessions://session/shut", "sessions://event/shut:0"] {
        let refused = server.post("resources/read", json!({ "uri": uri }), &[ANA]).json();
        assert!(refused["error"].is_object());
    }
    let status = server.post("resources/read", json!({ "uri": "sessions://status" }), &[ANA]);
    status.json().lacks(["secret", "shut"]);
}

#[test]
fn only_tokens_of_the_file_open_and_readers_set_no_labels() {
    let (env, server) = serve();
    for token in
        ["Bearer nonsense", "Bearer token-of-ana-012", "Bearer token-of-ana-01234", "Basic x"]
    {
        let refused = server.post("tools/list", json!({}), &[("Authorization", token)]);
        assert_eq!(refused.status, 401, "{token}");
    }
    assert_eq!(server.post("tools/list", json!({}), &[]).status, 401);
    let listed = server.post("tools/list", json!({}), &[BOB]).json().to_string();
    listed.shows("search_events").lacks("update_session_labels");
    assert!(!env.store().join("http-token").exists(), "no other token is made");

    env.write("wrong.toml", "[[reader]]\nname = 'x'\n");
    env.run(["mcp", "--http", "127.0.0.1:0", "--readers", "wrong.toml"])
        .fails(2)
        .says(["wrong.toml", "token_sha256"]);
}
