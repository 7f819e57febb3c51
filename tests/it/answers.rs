//! Whether an agent can act on what the tools answer: which sessions an answer covers, that totals
//! agree, why nothing matches, and what fixed a failure.

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::log::Log;
use crate::mcp::Client;

/// The only finding of `analyze` with these arguments.
fn finding(env: &TestEnv, args: &[&str]) -> Value {
    let answer = env.json([&["analyze"], args].concat());
    let [finding] = answer["data"]["findings"].list() else { panic!("{answer:#}") };
    finding.clone()
}

/// The log of a session of the project `harbor`.
fn harbor_log<'e>(env: &'e TestEnv, session: &str) -> Log<'e> {
    env.log(session).cwd("/home/mira/harbor")
}

const BROKEN: &str = "error: the ledger of berths is locked";

#[test]
fn a_fix_is_shown_with_the_failure_that_it_fixed() {
    let env = TestEnv::new();
    for (session, day, is_fixed) in [("old", 1, true), ("newer", 2, false), ("newest", 3, false)] {
        let log = harbor_log(&env, session).at(&format!("2026-10-0{day}T06:00:00Z"));
        let log = log.user("Build it.").command("make berths", BROKEN, 2);
        if is_fixed { log.command("make berths", "done", 0) } else { log }.write();
    }
    env.ingest("logs");
    finding(&env, &[]).has(json!({
        "event_id": "old:2", "fix": {"event_id": "old:3"},
        "reason": "3 times in 3 sessions, fixed once, not the last 2 times. The time shown: The same command succeeded right afterwards.",
        "related_event_ids": ["newest:2", "newer:2"],
    }));
}

#[test]
fn a_call_in_parallel_with_a_failure_does_not_fix_it() {
    let env = TestEnv::new();
    let log = env.log("parallel").user("Build it.");
    log.call("c1", "shell", json!({"command": "make berths"}))
        .call("c2", "shell", json!({"command": "make berths -j1"}))
        .ended("c1", BROKEN, 2)
        .ended("c2", "done", 0)
        .ingest();
    finding(&env, &["parallel", "--checks", "failures"]).has(json!({"fix": null}));
}

#[test]
fn a_command_after_cd_is_the_same_command_there_and_another_one_elsewhere() {
    let env = TestEnv::new();
    let make = json!({"command": "make berths"});
    let named = json!({"command": "make berths", "workdir": "/home/mira/harbor/web"});
    let elsewhere = json!({"command": "make berths", "workdir": "/home/mira/pier"});
    let after_cd = |folder: &str| json!({"command": format!("cd {folder} && make berths")});
    let cases = [
        ("there", after_cd("/home/mira/harbor"), make.clone(), "same_call"),
        ("named", after_cd("web"), named, "same_call"),
        ("moved", make.clone(), after_cd("web"), "similar_command"),
        ("elsewhere", make, elsewhere, "similar_command"),
    ];
    for (session, failed, worked, _) in &cases {
        let log = harbor_log(&env, session).user("Build it.");
        log.shell(failed.clone(), BROKEN, 2).shell(worked.clone(), "done", 0).write();
    }
    env.ingest("logs");
    for (session, _, _, matched) in &cases {
        let found = finding(&env, &[session, "--checks", "failures"]);
        found.has(json!({"fix": {"match": matched}}));
        assert_eq!(found["fix"].get("diff").is_some(), *matched != "same_call");
    }
    // Over all sessions the same is found, although fewer columns are read.
    let found = finding(&env, &[]);
    let case = cases.iter().find(|case| found["session_id"] == case.0);
    found.has(json!({"fix": {"match": case.expect("a session").3}}));
}

#[test]
fn filters_that_match_nothing_are_named_with_the_nearest_names() {
    let env = TestEnv::new();
    let log = harbor_log(&env, "one").header("git_branch", "berth-ledger");
    log.user("Count the berths.").message("Nine.").ingest();
    let typo = "No session has project 'harbour'; did you mean 'harbor'?";
    for words in [
        &["list", "--project", "harbour"][..],
        &["stats", "--by", "tool", "--project", "harbour"],
        &["search", "berths", "--project", "harbour"],
        &["search", "berths sort:relevance", "--project", "harbour"],
        &["analyze", "--project", "harbour"],
    ] {
        let answer = env.json(words);
        answer["hint"].shows(typo);
        answer.has(json!({"metadata": {"scope": "0 sessions of project 'harbour'"}}));
    }
    env.json(["analyze", "last", "--project", "harbour"])["error"]["message"].shows(typo);
    env.run(["search", "berths", "--project", "harbour"]).fails(1).says(typo);
    for (command, words, says) in [
        (
            "list",
            "--provider=kiro",
            "No session is of the agent 'kiro'; sessions by agent: generic 1.",
        ),
        ("list", "--label=bug", "No session has label 'bug', and none has any."),
        ("list", "--since=2026-11-01", "No session was active since 2026-11-01T00:00:00.000Z."),
        ("search", "berths tool:Bash", "No event has tool 'bash', and none has any."),
        (
            "search",
            "berths branch:berth-leger",
            "No event has branch 'berth-leger'; did you mean 'berth-ledger'?",
        ),
    ] {
        env.json([command, words])["hint"].shows(says);
    }
    env.json(["list", "--project", "harbor"])
        .has(json!({"metadata": {"scope": "1 session of project 'harbor'"}}));
}

#[test]
fn totals_of_sessions_agree_and_say_what_they_leave_out() {
    let env = TestEnv::with_samples();
    let total = env.number("SELECT count(*) FROM sessions") as u64;
    let status = env.json(["status"]);
    assert_eq!(status["sessions"], total);
    let classes = status["sessions_by_class"].as_object().expect("classes");
    assert_eq!(classes.values().filter_map(Value::as_u64).sum::<u64>(), total, "{classes:?}");
    let class = |name: &str| classes[name].as_u64().expect("a count");
    let scope_starts = |answer: &Value, start: String| {
        assert!(answer["metadata"]["scope"].text().starts_with(&start), "not {start}");
    };

    let listed = env.json(["list", "--limit", "1"]);
    let own = class("conversations");
    assert_eq!(listed["metadata"]["results_total"], own);
    scope_starts(&listed, format!("{own} of {total} sessions; left out: "));
    env.json(["list", "--limit", "1", "--subagents"]).has(json!({
        "metadata": {"results_total": own + class("subagents")},
    }));
    assert_eq!(env.json(["analyze"])["data"]["sessions"], own + class("subagents"));

    let stats = env.json(["stats", "--by", "provider"]);
    let groups = stats["data"]["groups"].list();
    let counted: u64 = groups.iter().filter_map(|group| group["sessions"].as_u64()).sum();
    assert_eq!(counted, total - class("copies"));
    scope_starts(&stats, format!("{counted} of {total} sessions; left out: "));
    let sql = env.json(["query", "SELECT 1"]);
    scope_starts(&sql, format!("the whole store: {total} sessions ("));
}

#[test]
fn a_rare_word_of_another_project_does_not_silence_the_words_of_this_one() {
    let env = TestEnv::new();
    let of_harbor = (0..30).fold(harbor_log(&env, "here"), |log, number| {
        let word = if number % 3 == 0 { "an error in" } else { "a look at" };
        log.user(&format!("There is {word} the ledger of berth {number}."))
    });
    of_harbor.write();
    let of_pier = env.log("there").cwd("/home/mira/pier").user("Sentry shows an alarm.");
    (0..300).fold(of_pier, |log, at| log.user(&format!("Paint error plank {at} again."))).write();
    env.ingest("logs");

    let ten = json!({"metadata": {"results_total": 10}});
    env.json(["search", "error total:exact", "--project", "harbor"]).has(ten.clone());
    let query = "Sentry error Magento sort:relevance total:exact";
    let answer = env.json(["search", query, "--project", "harbor"]);
    answer.has(ten.clone());
    assert!(answer["hint"].text().starts_with(
        "\"Sentry\" occurs only outside the current filters. \"Magento\" occurs in no event."
    ));
    // A filter by type or tool counts as well.
    let query = ["search", "Sentry error sort:relevance total:exact"];
    env.json([&query[..], &["--event-type", "user", "--session-id", "here"]].concat()).has(ten);
    // Without ranking all words are required, and those that are missing are named.
    let hint = &env.json(["search", "error Magento"])["hint"];
    hint.shows("\"Magento\" occurs in no event.").lacks("\"error\" occurs");
}

#[test]
fn tools_fold_case_and_files_have_one_path() {
    let env = TestEnv::new();
    let mut log = harbor_log(&env, "one").user("Look at it.");
    for (id, tool, path) in [
        ("c1", "Read", "/home/mira/harbor/src/berth.rs"),
        ("c2", "read", "src/berth.rs"),
        ("c3", "Read", "./src/../src/berth.rs"),
    ] {
        log = log.call(id, tool, json!({"file_path": path})).failure(id, "failed");
    }
    log.ingest();
    env.json(["stats", "--by", "tool"])
        .has(json!({"data": {"groups": [{"group": {"tool": "Read"}, "tool_calls": 3}]}}));
    env.json(["stats", "--by", "file"])
        .has(json!({"data": {"groups": [{"group": {"file": "/home/mira/harbor/src/berth.rs"}}]}}));
    assert_eq!(
        env.json(["analyze"])["data"]["tools"],
        json!([{"tool_name": "Read", "calls": 3, "errors": 3}])
    );
}

#[test]
fn sql_has_the_texts_of_calls_and_says_what_became_of_files() {
    let env = TestEnv::new();
    let patch = "*** Begin Patch\n*** Add File: new.rs\n+x\n*** Update File: old.rs\n@@\n-a\n+b\n*** Delete File: gone.rs\n*** End Patch";
    let written = |path: &str| json!({"file_path": path, "content": "x"});
    let edited = json!({"file_path": "/d", "old_string": "x", "new_string": "y"});
    let mut log = harbor_log(&env, "one").user("Change it.");
    for (id, tool, input, output) in [
        ("c1", "apply_patch", json!(patch), "Success."),
        ("c2", "Write", written("/a"), "File created successfully at: /a"),
        ("c3", "Write", written("/b"), "The file /b has been updated."),
        ("c4", "Write", written("/c"), "ok"),
        ("c5", "Edit", edited, "ok"),
        ("c6", "Read", json!({"file_path": "/e"}), "file created"),
    ] {
        log = log.call(id, tool, input).result(id, output);
    }
    log.ingest();
    let rows = env.rows("SELECT path, change FROM files ORDER BY event_index, path");
    let changes = json!([
        ["gone.rs", "deleted"],
        ["new.rs", "added"],
        ["old.rs", "changed"],
        ["/a", "added"],
        ["/b", "changed"],
        ["/c", "written"],
        ["/d", "changed"],
        ["/e", null]
    ]);
    assert_eq!(json!(rows), changes);
    let texts = env.rows("SELECT input, output FROM tool_calls WHERE tool_call_id = 'c4'");
    texts[0][0].shows("/c");
    assert_eq!(texts[0][1], "ok");
    env.json(["query", "SELECT nosuchcolumn FROM labels"])["error"]["message"]
        .shows("Columns of labels: session_id, label, note, updated_at");
}

#[test]
fn blank_optional_arguments_are_absent() {
    let env = TestEnv::new();
    harbor_log(&env, "one").user("Count the berths.").ingest();
    let mut client = Client::legacy(&env);
    for (tool, arguments, blank) in [
        (
            "search_events",
            json!({"query": "berths"}),
            "cursor since project provider session_id event_type",
        ),
        ("list_sessions", json!({}), "cursor since project provider label format sort session_ids"),
        ("get_session_details", json!({"session_id": "one"}), "cursor turns detail_level"),
        ("get_event_details", json!({"event_ids": ["one:0"]}), "cursor fields"),
        ("analyze_session", json!({}), "cursor since project provider session_id checks"),
        (
            "session_stats",
            json!({"group_by": "provider"}),
            "since until project provider session_id sort",
        ),
        ("tool_metadata", json!({}), "tools"),
    ] {
        let plain = client.call(tool, arguments.clone());
        let mut blanks = arguments;
        for name in blank.split(' ') {
            blanks[name] = json!("");
        }
        let answer = client.call(tool, blanks);
        assert_eq!(answer["data"], plain["data"], "{tool}");
        assert_eq!(answer["warnings"], plain["warnings"], "{tool}");
    }
    let all = client.call("list_sessions", json!({}));
    let answer = client.call("list_sessions", json!({"session_ids": []}));
    assert_eq!((&answer["data"], &answer["hint"]), (&all["data"], &all["hint"]));
}

#[test]
fn all_groups_that_are_asked_for_are_printed() {
    let env = TestEnv::new();
    let calls = (0..400).map(|number| {
        json!({"type": "tool_call", "tool_name": format!("tool_{number:03}_{}", "x".repeat(200))})
    });
    env.log("s").events(calls).ingest();
    for (flags, groups, has_more) in [(&["-n", "500"][..], 400, false), (&[], 50, true)] {
        let stats = env.json([&["stats", "--by", "tool"], flags].concat());
        assert_eq!(stats["data"]["groups"].list().len(), groups);
        let page =
            json!({"pagination": {"has_more": has_more}, "metadata": {"results_total": 400}});
        stats.has(page);
    }
}
