//! Traps of the logs of other agents, and of what lies beside logs.

use std::fs;

use crate::memory::{Memory, samples};
use crate::traps::{user, write};

#[test]
fn what_an_editor_of_cline_answers_in_json_is_read() {
    let dir = tempfile::tempdir().expect("tempdir");
    let result = |success: bool| {
        let json = format!(
            r#"{{"query":"edit:/w/a.rs","result":"line one\nline two","success":{success}}}"#
        );
        let json = serde_json::to_string(&json).expect("a string");
        format!(r#"{{"type":"tool_result","tool_use_id":"c","name":"editor","content":{json}}}"#)
    };
    let message = |n: u32, role: &str, block: &str| {
        format!(r#"{{"id":"m{n}","role":"{role}","ts":{n},"content":[{block}]}}"#)
    };
    let messages = [
        message(1, "user", r#"{"type":"text","text":"go on"}"#),
        message(2, "user", &result(true)),
        message(3, "user", &result(false)),
    ];
    let log = format!(
        r#"{{"version":1,"updated_at":"2026-10-21T08:06:24.900Z","agent":"lead","sessionId":"1_a","messages":[{}]}}"#,
        messages.join(",")
    );
    fs::create_dir_all(dir.path().join("1_a")).expect("creates");
    write(&dir.path().join("1_a/1_a.messages.json"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let events = memory.events();
    let results: Vec<_> = events.iter().filter(|event| event.event_type == "tool_result").collect();
    assert_eq!(results.len(), 2);
    assert!(
        results.iter().all(|result| result.text.contains("line one\nline two")
            || result.text.contains("line one\n  line two")),
        "{results:?}"
    );
    assert_eq!([results[0].is_error, results[1].is_error], [Some(false), Some(true)]);
}

#[test]
fn files_that_tell_of_a_log_are_no_unknown_ones() {
    let dir = tempfile::tempdir().expect("tempdir");
    let subagents = dir.path().join("a/subagents");
    fs::create_dir_all(&subagents).expect("creates");
    write(&dir.path().join("a.jsonl"), &user("a", 1, "one"), 1);
    write(&subagents.join("agent-x.jsonl"), &user("a", 2, "two"), 1);
    write(&subagents.join("agent-x.meta.json"), r#"{"agentType":"Explore"}"#, 1);
    // It tells of nothing.
    write(&subagents.join("agent-y.meta.json"), r#"{"agentType":"Explore"}"#, 1);
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!((report.files_beside, report.files_unknown), (1, 1));
    assert_eq!(memory.ingest(dir.path()).files_unchanged, 4);
    // The other one of Kimi is an index of folders.
    for (provider, files) in
        [("grok", (1, 0)), ("kimi", (2, 1)), ("droid", (2, 0)), ("kiro", (1, 0)), ("cline", (1, 0))]
    {
        let report = Memory::default().ingest(&samples().join(provider));
        assert_eq!((report.files_beside, report.files_unknown), files, "{provider}");
    }
}
