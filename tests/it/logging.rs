//! What the program tells of its work: nothing unless asked, and never what was asked or found.

use serde_json::json;

use crate::checks::Checks;
use crate::env::{Cli, TestEnv};

/// A command with a value of `SESSIONS_LOG`.
fn logged(env: &TestEnv, log: &str, args: &[&str]) -> Cli {
    env.cli(args).env("SESSIONS_LOG", log)
}

#[test]
fn an_ingest_tells_what_it_did_only_when_asked() {
    let env = TestEnv::new();
    let logs = crate::env::samples().join("pi");
    let ingest = ["ingest", "--quiet", logs.to_str().expect("UTF-8")];
    assert_eq!(env.run(ingest).stderr, "");
    env.run([&["-v"], &ingest[..]].concat()).says("ingested files=");
    let ingest = |log: &str| logged(&env, log, &ingest).run();
    ingest("info").says("ingested files=");
    ingest("loud").fails(2).says("debug:/tmp/sessions.log");
    ingest("info:/no/such/folder/x.log").fails(2).says("SESSIONS_LOG names this file");
}

#[test]
fn a_server_tells_of_calls_into_a_file_but_not_what_they_asked() {
    let env = TestEnv::with_samples();
    let log = env.path("sessions.log");
    let info = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let search = json!({ "name": "search_events", "arguments": { "query": "retry_kittiwake" } });
    let lines = [(0, "initialize", info), (1, "tools/call", search)].map(|(id, method, params)| {
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    });
    let server = logged(&env, &format!("debug:{}", log.display()), &["mcp"]);
    assert_eq!(server.stdin(lines.concat()).run().stderr, "");
    env.read(&log).shows(["answered", "search_events"]).lacks("kittiwake");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(&log).expect("there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
}

/// A query's process says on stderr how it went, and must say nothing else there.
#[test]
fn queries_run_while_the_program_tells() {
    let env = TestEnv::with_samples();
    let query = ["query", "SELECT 41 + 1 AS a", "--output", "csv"];
    logged(&env, "debug", &query).run().prints("a\n42\n");
}
