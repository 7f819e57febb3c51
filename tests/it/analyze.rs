//! What `analyze_session` finds in the sample sessions, and that it counts as SQL does.

use schemas::Timestamp;
use schemas::envelope::WarningCode;
use schemas::tool::analyze::AnalyzeArgs;
use serde_json::{Value, json};
use store::Store;
use tools::{Call, Tools};

use crate::checks::{Checks, JsonChecks};
use crate::env::{TestEnv, real_logs, samples};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";
const CLOSED: &str = "error: the harbor is closed";
const REBASED: &str = "01a13941-6cb9-7f1e-a741-65890d73c8a5";

fn findings(answer: &Value) -> &[Value] {
    answer["data"]["findings"].list()
}

/// The finding of a check at an event.
fn at<'a>(answer: &'a Value, check: &str, event: &str) -> &'a Value {
    let here = |finding: &&Value| finding["check"] == check && finding["event_id"] == event;
    findings(answer).iter().find(here).unwrap_or_else(|| panic!("{check} {event}: {answer:#}"))
}

#[test]
fn the_failing_test_and_its_fix_come_out() {
    let env = TestEnv::with_samples();
    let answer = env.json(["analyze", "9ae82b3a"]);
    let failure = at(&answer, "failures", &format!("{MAIN}:14"));
    failure.has(json!({
        "severity": "warning", "turn_index": 1, "call": "cargo test --lib retry 2>&1",
        "reason": "Failed with exit code 101. The same command succeeded after 3 other calls, including 1 edit.",
        "fix": {
            "event_id": format!("{MAIN}:34"), "result_event_id": format!("{MAIN}:36"),
            "match": "same_call",
        },
    }));
    let starts = |value: &Value, text: &str| value.text().starts_with(text);
    assert!(starts(&failure["message"], "assertion failed: budget.remaining() == 3"));
    assert!(failure["fix"].get("diff").is_none(), "the command is the same");
    let edit = &failure["fix"]["edits"][0];
    assert_eq!(edit["event_id"], format!("{MAIN}:31"));
    assert!(starts(&edit["diff"], "+ use std::sync::Arc;\n- /// Counts"), "{edit}");
    env.run(["analyze", "9ae82b3a"]).shows(["fixed by", "+ use std::sync::Arc;"]);
}

#[test]
fn what_stopped_a_session_and_what_it_forgot() {
    let env = TestEnv::with_samples();
    let answer = env.json(["analyze", "9ae82b3a", "--limit", "100"]);
    let stopped = at(&answer, "interruptions", &format!("{MAIN}:61"));
    assert_eq!(stopped["related_event_ids"][0], format!("{MAIN}:62"));
    assert!(stopped["message"].text().starts_with("No, leave that"));
    at(&answer, "context", &format!("{MAIN}:44")).has(json!({
        "reason": "Compacted from 25533 to 21553 tokens; the summary leaves out 0 of 2 prompts and 0 of 1 files",
    }));
    let context = &answer["data"]["context"];
    context.has(json!({"requests": 11, "compactions": 1, "peak_tokens": 25533}));
    assert_eq!(context["series"][0], json!([7, 20333]));
    // A refusal is no failure.
    let refused = env.json(["analyze", "be34bc14", "--limit", "100"]);
    let denied = findings(&refused).iter().find(|f| f["check"] == "interruptions");
    denied.expect("refused").has(json!({"severity": "warning", "event_index": 32}));
    let is_failure = |f: &Value| f["check"] == "failures" && f["event_index"] == 32;
    assert!(!findings(&refused).iter().any(is_failure));
    // Only what was asked for.
    let ended = env.json(["analyze", "14612321", "--checks", "ends"]);
    let reasons =
        ["The last prompt has no answer: an error came instead", "The session ends with an error"];
    assert_eq!(ended["data"]["findings"].each("reason"), reasons);
    assert!(ended["data"].get("context").is_none());
}

#[test]
fn an_error_of_two_agents_recurs_with_the_fix_that_worked_last() {
    // Of these agents only: the story is told in the samples of others too.
    let env = TestEnv::new();
    env.cli(["ingest"]).args(["claude", "codex"].map(|name| samples().join(name))).run().ok();
    let answer = env.json(["analyze", "--limit", "100"]);
    let signature = "assertion failed: budget.remaining() == <n>";
    let recurring = |answer: &Value| {
        let found = findings(answer).iter().find(|finding| finding["signature"] == signature);
        found.cloned()
    };
    let error = recurring(&answer).expect("the error");
    error.has(json!({
        "occurrences": 2, "sessions": 2, "fixed": 2,
        // The last time.
        "event_id": format!("{REBASED}:9"),
        "fix": {"event_id": format!("{REBASED}:25")},
    }));
    assert_eq!(error["related_event_ids"][0], format!("{MAIN}:14"));
    assert_eq!(error["fix"]["edits"][0]["event_id"], format!("{REBASED}:22"));
    let is_bash = |tool: &Value| tool["tool_name"] == "Bash" && tool["errors"] == 2;
    assert!(answer["data"]["tools"].list().iter().any(is_bash));
    // Of one agent it happened once.
    for (flag, value, is_found) in [
        ("--provider", "claude", false),
        ("--since", "2026-10-13", false),
        ("--until", "2026-10-15", true),
        ("--until", "2026-10-01", false),
    ] {
        let narrowed = env.json(["analyze", flag, value, "--limit", "100"]);
        assert_eq!(recurring(&narrowed).is_some(), is_found, "{flag} {value}");
    }
    let one = env.json(["analyze", REBASED, "--until", "2026-10-01"]);
    one["warnings"][0]["message"].shows("until");
}

#[test]
fn last_is_the_newest_that_passes_and_pages_follow_each_other() {
    let env = TestEnv::with_samples();
    for filters in [&[][..], &["--provider", "codex"], &["--project", "harbor"]] {
        let listed = env.json([&["list", "--limit", "1"][..], filters].concat());
        env.json([&["analyze", "last"][..], filters].concat()).has(json!({
            "data": {"session": {"session_id": listed["data"]["sessions"][0]["session_id"]}},
        }));
        let listed = env.json([&["list", "--limit", "100"][..], filters].concat());
        let listed = listed["data"]["sessions"].list().to_vec();
        let failed = env.json([&["analyze", "last_failed"][..], filters].concat());
        let newest = env.rows(&format!(
            "SELECT session_id FROM sessions WHERE tool_errors > 0 AND session_id IN ('{}') ORDER BY ended_at DESC",
            listed.iter().filter_map(|row| row["session_id"].as_str()).collect::<Vec<_>>().join("','")
        ));
        assert_eq!(failed["data"]["session"]["session_id"], newest[0][0], "{filters:?}");
        assert!(!findings(&failed).is_empty(), "{filters:?}");
    }
    for args in [&["analyze", "9ae82b3a"][..], &["analyze"]] {
        let whole = env.json([args, &["--limit", "100"]].concat());
        let pages = env.pages(&[args, &["--limit", "1"]].concat());
        let paged: Vec<Value> = pages.iter().flat_map(|page| findings(page).to_vec()).collect();
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
    env.run(["analyze", "ffffffff"]).fails(1).says("sessions list");
    env.run(["analyze", "--checks", "all"]).fails(2).says("interruptions");
    env.run(["analyze", "--limit", "0"]).fails(2).says("1-100");
    env.run(["analyze", "--cursor", "abc"]).fails(2).says("next_cursor");
    env.run(["analyze", "last", "--project", "nowhere"]).fails(1).says("No session");
    env.run(["analyze", "--project", "nowhere"]).fails(1).says("No session has project 'nowhere'");
    let ignored = env.json(["analyze", "9ae82b3a", "--project", "harbor"]);
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
        let session = row[0].text();
        let args = ["analyze", session, "--limit", "100"];
        let checks = ["--checks", "failures", "--checks", "interruptions"];
        let mut counted = 0;
        for answer in env.pages(&[&args[..], &checks].concat()) {
            assert!(answer.to_string().len() <= 100_000, "{session}");
            let results = findings(&answer).iter().filter(|f| f["event_type"] == "tool_result");
            counted += results.map(|f| f["occurrences"].as_u64().unwrap_or(1)).sum::<u64>();
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
    let answer = env.json(["analyze", "--limit", "100"]);
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

/// Ingests a log of calls of one tool, which fail and succeed in turn.
fn ingest_calls(env: &TestEnv, name: &str, tool: &str, inputs: &[Value]) {
    let mut log = env.log(name).user("Go on");
    for (at, input) in inputs.iter().enumerate() {
        log = log.call(&format!("c{at}"), tool, input.clone());
        log = if at % 2 == 0 {
            log.failure(&format!("c{at}"), "Entity not found: no such entity")
        } else {
            log.result(&format!("c{at}"), "Here it is")
        };
    }
    log.ingest();
}

#[test]
fn a_call_of_the_same_tool_fixes_only_the_same_target() {
    let env = TestEnv::new();
    let same = [
        json!({"title": "Mend the pier", "team": "Troy", "limit": 30}),
        json!({"title": "Mend the pier", "team": "Harbor", "limit": 30}),
    ];
    ingest_calls(&env, "same", "mcp__tracker__create", &same);
    let others = [
        json!({"issue": "A-1", "limit": 30}),
        json!({"issue": "B-2", "limit": 30}),
        json!({"plan": "Paint it", "limit": 30}),
        json!({"plan": "Burn it", "limit": 30}),
    ];
    ingest_calls(&env, "others", "ExitPlanMode", &others);

    let answer = env.json(["analyze", "same"]);
    let fix = &findings(&answer)[0]["fix"];
    assert_eq!(fix["match"], "same_tool");
    let answer = env.json(["analyze", "others"]);
    let of_failures = findings(&answer).iter().filter(|finding| finding["check"] == "failures");
    for finding in of_failures {
        assert_eq!(finding.get("fix"), None, "{finding:#}");
    }

    let recurring = env.json(["analyze"]);
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
    env.log("pasted-1")
        .cwd("/p")
        .at("2026-10-01T10:00:00Z")
        .user("CI fails:\nE   ImportError: libpier.so.3: cannot open shared object file")
        .edit("/p/ci.yml", "a", "b")
        .message("CI now installs libpier3.")
        .user("Thanks.")
        .ingest();

    let asked = "ImportError: libpier.so.3: cannot open shared object file";
    let answer = env.json(["analyze", "--query", asked]);
    findings(&answer)[0].has(json!({
        "event_id": "pasted-1:0", "message": "CI now installs libpier3.",
        "related_event_ids": ["pasted-1:3", "pasted-1:1"],
    }));
    let later = env.json(["analyze", "--query", asked, "--since", "2026-10-02"]);
    assert!(findings(&later).is_empty());
}

/// Only the newest sessions are compared, the answer says so, and `until` reaches the others.
#[test]
fn a_long_history_is_compared_from_its_newest_sessions_on() {
    let env = TestEnv::new();
    for day in 1..=6 {
        let log = env.log(&format!("day{day}")).all_at(&format!("2026-10-{day:02}T10:00:00Z"));
        log.user("build it").command("make harbor", CLOSED, 2).write();
    }
    env.ingest("logs");
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
    for (id, days) in [("long", ["01", "20"]), ("one", ["10", "10"]), ("other", ["10", "10"])] {
        let log = days.iter().fold(env.log(id), |log, day| {
            log.all_at(&format!("2026-10-{day}T10:00:00Z")).command("make harbor", CLOSED, 2)
        });
        log.write();
    }
    env.ingest("logs");
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
