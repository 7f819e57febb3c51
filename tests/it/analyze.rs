//! What `analyze_session` finds in the sample sessions, and that it counts as SQL does.

use schemas::Timestamp;
use schemas::envelope::WarningCode;
use schemas::tool::analyze::AnalyzeArgs;
use serde_json::{Value, json};
use store::Store;
use tools::{Call, Tools};

use crate::env::{TestEnv, real_logs, samples};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";
const REBASED: &str = "01a13941-6cb9-7f1e-a741-65890d73c8a5";

fn findings(answer: &Value) -> &[Value] {
    answer["data"]["findings"].as_array().expect("findings")
}

/// The finding of a check at an event.
fn at<'a>(answer: &'a Value, check: &str, event: &str) -> &'a Value {
    let here = |finding: &&Value| finding["check"] == check && finding["event_id"] == event;
    findings(answer).iter().find(here).unwrap_or_else(|| panic!("{check} {event}: {answer:#}"))
}

#[test]
fn the_failing_test_and_its_fix_come_out() {
    let env = TestEnv::with_samples();
    let answer = env.json(&["analyze", "9ae82b3a"]);
    let failure = at(&answer, "failures", &format!("{MAIN}:14"));
    assert_eq!((&failure["severity"], &failure["turn_index"]), (&"warning".into(), &1.into()));
    assert_eq!(failure["call"], "cargo test --lib retry 2>&1");
    let starts = |value: &Value, text: &str| value.as_str().is_some_and(|v| v.starts_with(text));
    assert!(starts(&failure["message"], "assertion failed: budget.remaining() == 3"), "{failure}");
    assert_eq!(
        failure["reason"],
        "Failed with exit code 101. The same command succeeded after 3 other calls, including 1 edit."
    );
    let fix = &failure["fix"];
    assert_eq!(
        (&fix["event_id"], &fix["result_event_id"], &fix["match"]),
        (&format!("{MAIN}:34").into(), &format!("{MAIN}:36").into(), &"same_call".into())
    );
    assert!(fix.get("diff").is_none(), "the command is the same");
    let edit = &fix["edits"][0];
    assert_eq!(edit["event_id"], format!("{MAIN}:31"));
    assert!(starts(&edit["diff"], "+ use std::sync::Arc;\n- /// Counts"), "{edit}");
    let text = env.run(&["analyze", "9ae82b3a"]).ok();
    assert!(text.contains("fixed by") && text.contains("+ use std::sync::Arc;"), "{text}");
}

#[test]
fn what_stopped_a_session_and_what_it_forgot() {
    let env = TestEnv::with_samples();
    let answer = env.json(&["analyze", "9ae82b3a", "--limit", "100"]);
    let stopped = at(&answer, "interruptions", &format!("{MAIN}:61"));
    assert_eq!(stopped["related_event_ids"][0], format!("{MAIN}:62"));
    assert!(stopped["message"].as_str().is_some_and(|text| text.starts_with("No, leave that")));
    let compacted = at(&answer, "context", &format!("{MAIN}:44"));
    assert_eq!(
        compacted["reason"],
        "Compacted from 25533 to 21553 tokens; the summary leaves out 0 of 2 prompts and 0 of 1 files"
    );
    let context = &answer["data"]["context"];
    assert_eq!(
        (&context["requests"], &context["compactions"], &context["peak_tokens"]),
        (&11.into(), &1.into(), &25533.into())
    );
    assert_eq!(context["series"][0], serde_json::json!([7, 20333]));
    // A refusal is no failure.
    let refused = env.json(&["analyze", "be34bc14", "--limit", "100"]);
    let denied =
        findings(&refused).iter().find(|f| f["check"] == "interruptions").expect("refused");
    assert_eq!((&denied["severity"], &denied["event_index"]), (&"warning".into(), &32.into()));
    assert!(
        findings(&refused).iter().all(|f| f["check"] != "failures" || f["event_index"] != 32),
        "{refused:#}"
    );
    // Only what was asked for.
    let ended = env.json(&["analyze", "14612321", "--checks", "ends"]);
    let reasons: Vec<_> = findings(&ended).iter().map(|f| f["reason"].as_str()).collect();
    assert_eq!(
        reasons,
        [
            Some("The last prompt has no answer: an error came instead"),
            Some("The session ends with an error")
        ]
    );
    assert!(ended["data"].get("context").is_none());
}

#[test]
fn an_error_of_two_agents_recurs_with_the_fix_that_worked_last() {
    // Of these agents only: the story is told in the samples of others too.
    let env = TestEnv::new();
    let folders = ["claude", "codex"].map(|name| samples().join(name));
    let folders = folders.map(|path| path.to_string_lossy().into_owned());
    env.run(&["ingest", "--quiet", &folders[0], &folders[1]]).ok();
    let answer = env.json(&["analyze", "--limit", "100"]);
    let signature = "assertion failed: budget.remaining() == <n>";
    let error = findings(&answer)
        .iter()
        .find(|finding| finding["signature"] == signature)
        .unwrap_or_else(|| panic!("{answer:#}"));
    assert_eq!(
        (&error["occurrences"], &error["sessions"], &error["fixed"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert_eq!(error["event_id"], format!("{REBASED}:9"), "the last time");
    assert_eq!(error["related_event_ids"][0], format!("{MAIN}:14"));
    assert_eq!(error["fix"]["event_id"], format!("{REBASED}:25"));
    assert_eq!(error["fix"]["edits"][0]["event_id"], format!("{REBASED}:22"));
    let tools = answer["data"]["tools"].as_array().expect("tools");
    assert!(
        tools.iter().any(|tool| tool["tool_name"] == "Bash" && tool["errors"] == 2),
        "{tools:?}"
    );
    // Of one agent it happened once.
    let claude = env.json(&["analyze", "--provider", "claude", "--limit", "100"]);
    assert!(findings(&claude).iter().all(|finding| finding["signature"] != signature));
    let late = env.json(&["analyze", "--since", "2026-10-13", "--limit", "100"]);
    assert!(findings(&late).iter().all(|finding| finding["signature"] != signature));
    let has = |until: &str| {
        let early = env.json(&["analyze", "--until", until, "--limit", "100"]);
        findings(&early).iter().any(|finding| finding["signature"] == signature)
    };
    assert!(has("2026-10-15") && !has("2026-10-01"));
    let one = env.json(&["analyze", REBASED, "--until", "2026-10-01"]);
    assert!(one["warnings"][0]["message"].as_str().is_some_and(|text| text.contains("until")));
}

#[test]
fn last_is_the_newest_that_passes_and_pages_follow_each_other() {
    let env = TestEnv::with_samples();
    for filters in [&[][..], &["--provider", "codex"], &["--project", "harbor"]] {
        let listed = env.json(&[&["list", "--limit", "1"][..], filters].concat());
        let last = env.json(&[&["analyze", "last"][..], filters].concat());
        assert_eq!(
            last["data"]["session"]["session_id"], listed["data"]["sessions"][0]["session_id"],
            "{filters:?}"
        );
        let listed = env.json(&[&["list", "--limit", "100"][..], filters].concat());
        let listed = listed["data"]["sessions"].as_array().expect("sessions").clone();
        let failed = env.json(&[&["analyze", "last_failed"][..], filters].concat());
        let newest = env.rows(&format!(
            "SELECT session_id FROM sessions WHERE tool_errors > 0 AND session_id IN ('{}') ORDER BY ended_at DESC",
            listed.iter().filter_map(|row| row["session_id"].as_str()).collect::<Vec<_>>().join("','")
        ));
        assert_eq!(failed["data"]["session"]["session_id"], newest[0][0], "{filters:?}");
        assert!(!findings(&failed).is_empty(), "{filters:?}");
    }
    for args in [&["analyze", "9ae82b3a"][..], &["analyze"]] {
        let whole = env.json(&[args, &["--limit", "100"]].concat());
        let (mut paged, mut cursor) = (Vec::new(), None);
        loop {
            let held: Option<String> = cursor.take();
            let mut args: Vec<&str> = args.to_vec();
            args.extend(["--limit", "1"]);
            args.extend(held.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]));
            let page = env.json(&args);
            paged.extend(findings(&page).to_vec());
            cursor = page["pagination"]["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(paged, findings(&whole), "{args:?}");
        assert_eq!(whole["metadata"]["results_total"], paged.len());
        let ranks: Vec<_> = paged
            .iter()
            .map(|f| ["error", "warning", "info"].iter().position(|s| f["severity"] == *s))
            .collect();
        assert!(ranks.is_sorted() && !ranks.is_empty(), "{ranks:?}");
    }
}

#[test]
fn wrong_arguments_say_what_is_right() {
    let env = TestEnv::with_samples();
    assert!(env.run(&["analyze", "ffffffff"]).fails(1).contains("sessions list"));
    assert!(env.run(&["analyze", "--checks", "all"]).fails(2).contains("interruptions"));
    assert!(env.run(&["analyze", "--limit", "0"]).fails(2).contains("1-100"));
    assert!(env.run(&["analyze", "--cursor", "abc"]).fails(2).contains("next_cursor"));
    assert!(env.run(&["analyze", "last", "--project", "nowhere"]).fails(1).contains("No session"));
    assert!(
        env.run(&["analyze", "--project", "nowhere"])
            .fails(1)
            .contains("No session has project 'nowhere'")
    );
    let ignored = env.json(&["analyze", "9ae82b3a", "--project", "harbor"]);
    assert_eq!(ignored["warnings"][0]["code"], "PARAMETER_IGNORED");
}

/// Every failed result that SQL counts is in one finding: it failed, or it was stopped. Refusals that
/// the log does not mark as failed come on top.
fn counts_as_sql_does(env: &TestEnv, least: usize) {
    let sql = "SELECT session_id, count(*) FROM events WHERE event_type = 'tool_result' AND is_error \
        AND NOT is_replay GROUP BY 1 ORDER BY 2 DESC LIMIT 60";
    let rows = env.rows(sql);
    assert!(rows.len() >= least, "{}", rows.len());
    for row in rows {
        let session = row[0].as_str().expect("id");
        let checks = ["--checks", "failures", "--checks", "interruptions"];
        let (mut counted, mut cursor) = (0, None);
        loop {
            let held: Option<String> = cursor.take();
            let mut args = vec!["analyze", session, "--limit", "100"];
            args.extend(checks);
            args.extend(held.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]));
            let answer = env.json(&args);
            assert!(answer.to_string().len() <= 100_000, "{session}");
            let results = findings(&answer).iter().filter(|f| f["event_type"] == "tool_result");
            counted += results.map(|f| f["occurrences"].as_u64().unwrap_or(1)).sum::<u64>();
            cursor = answer["pagination"]["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        assert!(Some(counted) >= row[1].as_u64(), "{session}: {counted}, {row:?}");
    }
}

#[test]
fn every_failed_result_is_in_one_finding() {
    counts_as_sql_does(&TestEnv::with_samples(), 10);
}

#[test]
fn real_failures_are_all_found_and_recurring_ones_fit_an_answer() {
    let Some(logs) = real_logs() else { return };
    let env = TestEnv::with_real_logs(&logs);
    counts_as_sql_does(&env, 50);
    let answer = env.json(&["analyze", "--limit", "100"]);
    assert!(answer.to_string().len() <= 100_000);
    let fixed: Vec<&Value> =
        findings(&answer).iter().filter(|finding| finding["fix"].is_object()).collect();
    assert!(fixed.len() > 10, "{} of {}", fixed.len(), findings(&answer).len());
    for finding in fixed {
        let fix = finding["fix"]["event_id"].as_str().and_then(|id| id.rsplit_once(':'));
        let (session, index) = fix.expect("the id of an event");
        assert_eq!(finding["session_id"], session, "{finding:#}");
        assert!(index.parse::<u64>().ok() > finding["event_index"].as_u64(), "{finding:#}");
    }
}

/// Writes a log of calls of one tool, which fail and succeed in turn.
fn write_calls(env: &TestEnv, name: &str, tool: &str, inputs: &[Value]) {
    let mut lines = vec![json!({"format": "sessions", "version": 1, "session_id": name})];
    lines.push(json!({"type": "user", "timestamp": "2026-11-01T10:00:00Z", "text": "Go on"}));
    for (at, input) in inputs.iter().enumerate() {
        let (id, time) = (format!("c{at}"), format!("2026-11-01T10:{:02}:00Z", at + 1));
        let has_failed = at % 2 == 0;
        let text = if has_failed { "Entity not found: no such entity" } else { "Here it is" };
        lines.push(json!({"type": "tool_call", "timestamp": time, "tool_name": tool,
                          "tool_call_id": id, "input": input}));
        lines.push(json!({"type": "tool_result", "timestamp": time, "tool_call_id": id,
                          "text": text, "is_error": has_failed}));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(env.path(&format!("{name}.jsonl")), lines.join("\n")).expect("writes");
    env.run(&["ingest", "--quiet", &format!("{name}.jsonl")]).ok();
}

#[test]
fn a_call_of_the_same_tool_fixes_only_the_same_target() {
    let env = TestEnv::new();
    let same = [
        json!({"title": "Mend the pier", "team": "Troy", "limit": 30}),
        json!({"title": "Mend the pier", "team": "Harbor", "limit": 30}),
    ];
    write_calls(&env, "same", "mcp__tracker__create", &same);
    let others = [
        json!({"issue": "A-1", "limit": 30}),
        json!({"issue": "B-2", "limit": 30}),
        json!({"plan": "Paint it", "limit": 30}),
        json!({"plan": "Burn it", "limit": 30}),
    ];
    write_calls(&env, "others", "ExitPlanMode", &others);

    let answer = env.json(&["analyze", "same"]);
    let fix = &findings(&answer)[0]["fix"];
    assert_eq!(fix["match"], "same_tool", "{answer:#}");
    let answer = env.json(&["analyze", "others"]);
    let of_failures = findings(&answer).iter().filter(|finding| finding["check"] == "failures");
    for finding in of_failures {
        assert_eq!(finding.get("fix"), None, "{finding:#}");
    }

    let recurring = env.json(&["analyze"]);
    let of_tool = |tool: &str| {
        let finding = findings(&recurring).iter().find(|finding| {
            finding["signature"].as_str().is_some_and(|signature| signature.contains(tool))
        });
        finding.map(|finding| (finding["fixed"].clone(), finding.get("fix").is_some()))
    };
    if let Some(found) = of_tool("ExitPlanMode") {
        assert_eq!(found, (json!(0), false), "{recurring:#}");
    }
}

#[test]
fn an_error_that_was_only_pasted_is_found_with_what_the_agent_did() {
    let env = TestEnv::new();
    let pasted = "CI fails:\nE   ImportError: libpier.so.3: cannot open shared object file";
    let events = [
        serde_json::json!({"format": "sessions", "version": 1, "session_id": "pasted-1", "agent": "pier", "cwd": "/p"}),
        serde_json::json!({"type": "user", "timestamp": "2026-10-01T10:00:00Z", "text": pasted}),
        serde_json::json!({"type": "tool_call", "timestamp": "2026-10-01T10:01:00Z", "tool_name": "Edit", "tool_call_id": "c1",
            "input": {"file_path": "/p/ci.yml", "old_string": "a", "new_string": "b"}}),
        serde_json::json!({"type": "tool_result", "timestamp": "2026-10-01T10:01:01Z", "tool_call_id": "c1", "text": "ok"}),
        serde_json::json!({"type": "message", "timestamp": "2026-10-01T10:02:00Z", "text": "CI now installs libpier3."}),
        serde_json::json!({"type": "user", "timestamp": "2026-10-01T10:03:00Z", "text": "Thanks."}),
    ];
    let lines = events.map(|event| event.to_string());
    let path = env.path("pasted.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").expect("writes");
    env.run(&["ingest", "--quiet", &path.to_string_lossy()]).ok();

    let asked = "ImportError: libpier.so.3: cannot open shared object file";
    let answer = env.json(&["analyze", "--query", asked]);
    let finding = &findings(&answer)[0];
    assert_eq!(finding["event_id"], "pasted-1:0", "{answer:#}");
    assert_eq!(finding["message"], "CI now installs libpier3.");
    assert_eq!(finding["related_event_ids"], serde_json::json!(["pasted-1:3", "pasted-1:1"]));
    let later = env.json(&["analyze", "--query", asked, "--since", "2026-10-02"]);
    assert!(findings(&later).is_empty(), "{later:#}");
}

/// Only the newest sessions are compared, the answer says so, and `until` reaches the others.
#[test]
fn a_long_history_is_compared_from_its_newest_sessions_on() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    std::fs::create_dir_all(&logs).expect("creates");
    for day in 1..=6 {
        let time = format!("2026-10-{day:02}T10:00:00Z");
        let lines = [
            json!({"format": "sessions", "version": 1, "session_id": format!("day{day}")}),
            json!({"type": "user", "timestamp": time, "text": "build it"}),
            json!({"type": "tool_call", "timestamp": time, "tool_call_id": "c", "tool_name": "Bash",
                "input": {"command": "make harbor"}}),
            json!({"type": "tool_result", "timestamp": time, "tool_call_id": "c",
                "text": "error: the harbor is closed", "exit_code": 2, "is_error": true}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(logs.join(format!("day{day}.jsonl")), text).expect("writes");
    }
    env.run(&["ingest", "--quiet", &logs.to_string_lossy()]).ok();
    let tools = Tools::new(Store::new(env.store()));
    let analyze = |events: u64, args: &AnalyzeArgs| {
        let call = Call::new(Timestamp(0), &|| false).with_analyzed_events(events);
        tools.analyze_session(args, &call).expect("answers")
    };

    let all = analyze(18, &AnalyzeArgs::default());
    assert_eq!((all.data.sessions, all.data.findings[0].occurrences), (6, Some(6)));
    assert!(all.warnings.is_empty() && all.metadata.results_total_is.is_none());

    for tool in [None, Some("make".to_owned())] {
        let newest = analyze(8, &AnalyzeArgs { tool: tool.clone(), ..AnalyzeArgs::default() });
        assert_eq!((newest.data.sessions, newest.data.findings[0].occurrences), (2, Some(2)));
        assert!(newest.data.findings[0].session_id.contains("day6"));
        assert_eq!(newest.metadata.results_total_is, Some("at_least"));
        let [warning] = newest.warnings.as_slice() else { panic!("{:?}", newest.warnings) };
        assert_eq!(warning.code, WarningCode::ResultsTruncated);
        let expected =
            "The newest 2 of 6 sessions were compared. Pass until 2026-10-05T10:00:00.000Z for";
        assert!(warning.message.starts_with(expected), "{}", warning.message);

        let until = Some("2026-10-05T10:00:00.000Z".to_owned());
        let earlier = analyze(8, &AnalyzeArgs { until, tool, ..AnalyzeArgs::default() });
        assert_eq!((earlier.data.sessions, earlier.data.findings[0].occurrences), (2, Some(2)));
        assert!(earlier.data.findings[0].session_id.contains("day4"));
    }

    // A session is analyzed, however long it is; and an error that has words is found by the index.
    assert_eq!(analyze(1, &AnalyzeArgs::default()).data.sessions, 1);
    let query = Some("error: the harbor is closed".to_owned());
    let known = analyze(1, &AnalyzeArgs { query, ..AnalyzeArgs::default() });
    assert_eq!((known.data.sessions, known.data.findings[0].occurrences), (6, Some(6)));
    assert!(known.warnings.is_empty(), "{:?}", known.warnings);
}

/// A session counts by when it was active last, so that `until` loses nothing.
#[test]
fn a_session_that_goes_on_is_among_the_newest() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    std::fs::create_dir_all(&logs).expect("creates");
    for (id, times) in [("long", ["01", "20"]), ("one", ["10", "10"]), ("other", ["10", "10"])] {
        let mut text = json!({"format": "sessions", "version": 1, "session_id": id}).to_string();
        for (at, day) in times.iter().enumerate() {
            let time = format!("2026-10-{day}T10:00:00Z");
            let call = format!("c{at}");
            for line in [
                json!({"type": "tool_call", "timestamp": time, "tool_call_id": call,
                    "tool_name": "Bash", "input": {"command": "make harbor"}}),
                json!({"type": "tool_result", "timestamp": time, "tool_call_id": call,
                    "text": "error: the harbor is closed", "exit_code": 2, "is_error": true}),
            ] {
                text.push_str(&format!("\n{line}"));
            }
        }
        std::fs::write(logs.join(format!("{id}.jsonl")), text + "\n").expect("writes");
    }
    env.run(&["ingest", "--quiet", &logs.to_string_lossy()]).ok();
    let tools = Tools::new(Store::new(env.store()));
    let analyze = |until: Option<&str>| {
        let call = Call::new(Timestamp(0), &|| false).with_analyzed_events(1);
        let args = AnalyzeArgs { until: until.map(str::to_owned), ..AnalyzeArgs::default() };
        tools.analyze_session(&args, &call).expect("answers")
    };
    let newest = analyze(None);
    assert_eq!((newest.data.sessions, newest.data.findings[0].occurrences), (1, Some(2)));
    assert!(newest.warnings[0].message.contains("until 2026-10-20T10:00:00.000Z"));
    // The long one again, with what it had before, and those that ended at the same moment.
    let earlier = analyze(Some("2026-10-20T10:00:00.000Z"));
    assert_eq!((earlier.data.sessions, earlier.data.findings[0].occurrences), (3, Some(5)));
    assert!(earlier.warnings.is_empty(), "{:?}", earlier.warnings);
}
