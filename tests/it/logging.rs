//! What the program tells of its work: nothing unless asked, and never what was asked or found.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::json;

use crate::env::TestEnv;

/// Runs a command with a value of `SESSIONS_LOG`, and lines on its stdin.
fn ran(env: &TestEnv, log: Option<&str>, args: &[&str], input: &str) -> Output {
    let mut command = env.command();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(log) = log {
        command.env("SESSIONS_LOG", log);
    }
    let mut child = command.spawn().expect("spawns");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(input.as_bytes()).expect("writes");
    drop(stdin);
    child.wait_with_output().expect("ends")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_ingest_tells_what_it_did_only_when_asked() {
    let env = TestEnv::new();
    let logs = crate::env::samples().join("pi");
    let ingest = ["ingest", "--quiet", logs.to_str().expect("UTF-8")];
    assert_eq!(stderr(&ran(&env, None, &ingest, "")), "");
    let told = stderr(&ran(&env, None, &[&["-v"], &ingest[..]].concat(), ""));
    assert!(told.contains("ingested files="), "{told}");
    let told = stderr(&ran(&env, Some("info"), &ingest, ""));
    assert!(told.contains("ingested files="), "{told}");
    let wrong = ran(&env, Some("loud"), &ingest, "");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("debug:/tmp/sessions.log"), "{}", stderr(&wrong));
    let nowhere = ran(&env, Some("info:/no/such/folder/x.log"), &ingest, "");
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("SESSIONS_LOG names this file"), "{}", stderr(&nowhere));
}

#[test]
fn a_server_tells_of_calls_into_a_file_but_not_what_they_asked() {
    let env = TestEnv::with_samples();
    let log = env.path("sessions.log");
    let info = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let search = json!({ "name": "search_events", "arguments": { "query": "retry_kittiwake" } });
    let lines: String = [(0, "initialize", info), (1, "tools/call", search)]
        .into_iter()
        .map(|(id, method, params)| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
                + "\n"
        })
        .collect();
    let value = format!("debug:{}", log.display());
    let output = ran(&env, Some(&value), &["mcp"], &lines);
    assert_eq!(stderr(&output), "");
    let told = fs::read_to_string(&log).expect("reads");
    assert!(told.contains("answered") && told.contains("search_events"), "{told}");
    assert!(!told.contains("kittiwake"), "{told}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&log).expect("there").permissions().mode() & 0o777, 0o600);
    }
}

/// A query's process says on stderr how it went, and must say nothing else there.
#[test]
fn queries_run_while_the_program_tells() {
    let env = TestEnv::with_samples();
    let output = ran(&env, Some("debug"), &["query", "SELECT 41 + 1 AS a", "--output", "csv"], "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\n42\n");
}
