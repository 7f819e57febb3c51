//! `sessions compact` and the retention of the settings file.

use std::sync::Arc;

use ingest::discover::discover;
use ingest::plan::plan;
use ingest::redact::Redactor;
use ingest::run::run;
use serde_json::{Value, json};
use store::{Store, Verify};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::forget::files_with;
use crate::lake::{machine, pull, push};

const OLD_TIME: &str = "2026-01-05T10:00:00Z";

fn write_settings(env: &TestEnv, keep: &str) {
    env.write_settings(format!("[store]\nkeep = {keep}\n"));
}

fn now() -> String {
    schemas::Timestamp::now().to_string()
}

/// Writes the log of a session in which every text has a word of its own. The words end in `name`.
fn write_log(env: &TestEnv, name: &str, time: &str) {
    let long = "with many more words that are not kept ".repeat(9);
    let call = json!({"type": "tool_call", "tool_name": "shell", "tool_call_id": "c1",
        "input": {"command": format!("ls shelf{name}"), "note": format!("input{name} {long}")},
        "usage": {"input_tokens": 7, "output_tokens": 3}});
    env.log(name)
        .cwd("/home/mira")
        .at(time)
        .user(&format!("Please list prompt{name}"))
        .event(json!({"type": "reasoning", "text": format!("Let me see thought{name}")}))
        .event(call)
        .result("c1", &format!("output{name} {long}"))
        .message(&format!("There is answer{name}"))
        .write();
}

/// A store with a session of January and one of now.
fn store_of_two() -> TestEnv {
    let env = TestEnv::new();
    write_log(&env, "old", OLD_TIME);
    env.ingest("logs");
    write_log(&env, "new", &now());
    env.ingest("logs");
    env
}

/// The texts of a session, in order.
fn texts(env: &TestEnv, session: &str) -> Vec<String> {
    env.texts(&format!(
        "SELECT text FROM events WHERE session_id = '{session}' ORDER BY event_index"
    ))
}

const COUNTS: &str = "SELECT session_id, event_index, event_type, turn_index, step_index, tool_name, input_tokens, output_tokens, timestamp::VARCHAR FROM events ORDER BY ALL";

/// Whether any file of the store has a word.
fn has(env: &TestEnv, word: &str) -> bool {
    !files_with(env, word).is_empty()
}

#[test]
fn transcripts_keep_prompts_answers_and_commands() {
    let env = store_of_two();
    let (old, new, counts) = (texts(&env, "old"), texts(&env, "new"), env.rows(COUNTS));
    write_settings(&env, "'transcripts after 90d'");

    let plan = env.json(["compact", "--dry-run"]);
    assert_eq!(plan["sessions"], 1);
    for event_type in ["tool_result", "tool_call", "reasoning"] {
        assert_eq!(plan["dropped"][event_type]["texts"], 1, "{plan}");
    }
    assert!(plan["freed_bytes"].as_u64() > Some(0));
    assert_eq!(texts(&env, "old"), old, "a dry run changes nothing");

    assert_eq!(env.json(["compact"])["dropped"], plan["dropped"]);
    for gone in ["thoughtold", "inputold", "outputold"] {
        assert!(!has(&env, gone), "{gone}: {:?}", files_with(&env, gone));
        env.run(["search", gone]).fails(1);
    }
    for kept in ["promptold", "shelfold", "answerold", "outputnew", "thoughtnew", "inputnew"] {
        env.run(["search", kept]).ok();
    }
    let after = texts(&env, "old");
    let output = old.iter().find(|text| text.starts_with("outputold")).expect("an output");
    let dropped = format!("[dropped by retention: {} bytes]", output.len());
    assert!(after.contains(&dropped), "{after:?}");
    assert_eq!(env.run(["search", "retention"]).code, 1, "what replaces a text is not searched");
    assert_eq!(texts(&env, "new"), new);
    assert_eq!(env.rows(COUNTS), counts);

    assert_eq!(env.json(["status"])["reduced_sessions"], json!({"transcripts": 1}));
    let again = env.json(["compact"]);
    assert_eq!((&again["sessions"], &again["dropped"]), (&json!(0), &json!({})), "once is enough");
    env.run(["ingest", "--quiet", "--verify", &env.path("logs").to_string_lossy()]).ok();
    assert_eq!(texts(&env, "old"), after);
}

#[test]
fn usage_keeps_no_text() {
    let env = store_of_two();
    let counts = env.rows(COUNTS);
    let files = env.rows("SELECT count(*), sum(tool_calls) FROM sessions");
    write_settings(&env, "['transcripts after 30d', 'usage after 90d']");
    env.run(["compact"]).ok();
    for gone in ["promptold", "thoughtold", "inputold", "shelfold", "outputold", "answerold"] {
        assert!(!has(&env, gone), "{gone}: {:?}", files_with(&env, gone));
    }
    assert_eq!(env.rows(COUNTS), counts);
    assert_eq!(env.rows("SELECT count(*), sum(tool_calls) FROM sessions"), files);
    env.run(["list"]).shows(["[dropped by retention]", "promptnew"]);
    assert_eq!(env.json(["status"])["reduced_sessions"], json!({"usage": 1}));
}

#[test]
fn a_log_that_is_read_again_brings_nothing_back() {
    let env = store_of_two();
    write_settings(&env, "'transcripts after 90d'");
    env.run(["compact"]).ok();
    // Other rules of masking have every log read again.
    env.write_rule("n", "answernew");
    assert_eq!(env.ingest("logs")["files_rewritten"], 2);
    assert!(!has(&env, "outputold") && !has(&env, "thoughtold") && has(&env, "promptold"));
    // What is added later is kept.
    env.append_prompt("logs/old.jsonl", OLD_TIME, "A late promptold");
    env.append_prompt("logs/old.jsonl", &now(), "An addition");
    env.ingest("logs");
    assert!(!has(&env, "outputold"));
    env.run(["search", "addition"]).ok();
}

#[test]
fn a_log_that_another_decoder_reads_again_brings_nothing_back() {
    let env = store_of_two();
    write_settings(&env, "'transcripts after 90d'");
    env.run(["compact"]).ok();
    let counts = env.rows(COUNTS);

    // The logs were read by a decoder of an earlier version.
    let redactor = Arc::new(Redactor::new(&[]).expect("rules"));
    let writer = Store::new(env.store()).open_writer(Verify::Some).expect("opens");
    let mut known = writer.collect_known_logs().expect("reads");
    for row in known.sources.values_mut() {
        row.decoder_version -= 1;
    }
    let plan = plan(discover(&[env.path("logs")]), &known, Some(&redactor));
    let report = run(plan, &&writer, Some(&redactor), &()).expect("runs");
    assert_eq!(report.files_rewritten, 2);
    drop(writer);

    assert_eq!(env.rows(COUNTS), counts);
    let texts = texts(&env, "old");
    assert!(texts.iter().any(|text| text.ends_with("promptold")), "{texts:?}");
    for word in ["outputold", "thoughtold", "inputold"] {
        assert!(!texts.iter().any(|text| text.contains(word)), "{word}: {texts:?}");
    }
    assert!(self::texts(&env, "new").iter().any(|text| text.starts_with("outputnew")));
    // What is added later is kept.
    env.append_prompt("logs/old.jsonl", &now(), "An addition");
    env.ingest("logs");
    assert!(!has(&env, "outputold"));
    env.run(["search", "addition"]).ok();
}

#[test]
fn full_reads_again_the_logs_that_still_exist() {
    let env = store_of_two();
    write_log(&env, "gone", OLD_TIME);
    env.ingest("logs");
    let old = texts(&env, "old");
    write_settings(&env, "'transcripts after 90d'");
    env.run(["compact"]).ok();
    env.remove("logs/gone.jsonl");
    env.ingest("logs");
    write_settings(&env, "'full'");
    env.ingest("logs").has(json!({"files_rewritten": 1}));
    assert_eq!(texts(&env, "old"), old);
    assert!(!has(&env, "outputgone"));
    assert_eq!(env.json(["status"])["reduced_sessions"], json!({"transcripts": 1}));
    assert_eq!(env.ingest("logs")["files_rewritten"], 0);
}

#[test]
fn every_answer_with_dropped_texts_says_so() {
    let env = store_of_two();
    write_settings(&env, "'transcripts after 90d'");
    let has_warning = |args: &[&str]| {
        let answer = env.json(args);
        let warnings = answer["warnings"].as_array().into_iter().flatten();
        warnings.into_iter().any(|warning| warning["code"] == "TEXTS_DROPPED")
    };
    let answers: [&[&str]; 5] = [
        &["show", "old"],
        &["show", "old", "--detail-level", "full"],
        &["event", "old:0", "new:0"],
        &["search", "promptold"],
        &["analyze", "old"],
    ];
    for args in answers {
        assert!(!has_warning(args), "{args:?} before anything was dropped");
    }
    env.run(["compact"]).ok();
    for args in answers {
        assert!(has_warning(args), "{args:?}");
    }
    assert!(!has_warning(&["show", "new"]) && !has_warning(&["event", "new:0"]));

    let export = |id: &str| env.run(["export", "--format", "markdown", "--session-id", id]);
    export("old").says("were dropped by the retention");
    export("new").lacks("were dropped by the retention");
}

#[test]
fn a_forgotten_session_leaves_no_trace_of_what_was_dropped() {
    let env = store_of_two();
    write_settings(&env, "'transcripts after 90d'");
    env.run(["compact"]).ok();
    env.read("store/reduced.json").shows("\"old\"");
    env.run(["forget", "old", "--yes"]).ok();
    env.read("store/reduced.json").lacks("\"old\"");

    // The rules apply to a session that comes back as to any other.
    env.run(["forget", "--undo", "old"]).ok();
    env.ingest("logs");
    assert!(texts(&env, "old").iter().any(|text| text.starts_with("outputold")));
    env.run(["compact"]).ok();
    assert!(!has(&env, "outputold") && has(&env, "promptold"));
}

#[test]
fn an_ingest_first_says_what_is_set() {
    let env = store_of_two();
    write_settings(&env, "'transcripts after 90d'");
    let report = env.ingest("logs");
    let notice = report["notices"][0].text().to_owned();
    notice.shows(["transcripts after 90d", "--dry-run"]);
    assert!(texts(&env, "old").iter().any(|text| text.starts_with("outputold")));

    let report = env.ingest("logs");
    let notice = report["notices"][0].text().to_owned();
    assert!(notice.starts_with("Texts of 1 sessions were dropped"), "{notice}");
    assert!(!texts(&env, "old").iter().any(|text| text.starts_with("outputold")));
    assert_eq!(env.ingest("logs")["notices"], Value::Null);
}

#[test]
fn without_retention_small_segments_are_merged_and_superseded_rows_go() {
    let env = store_of_two();
    // A new rule has the logs read again.
    env.write_rule("n", "answernew");
    env.ingest("logs");
    let counts = env.rows(COUNTS);
    assert!(has(&env, "answernew"), "superseded rows are still stored");
    for keep in ["'full'", "[]"] {
        write_settings(&env, keep);
        env.json(["compact"]).has(json!({"sessions": 0, "segments_after": 1}));
    }
    assert!(!has(&env, "answernew") && has(&env, "outputold"));
    assert_eq!(env.rows(COUNTS), counts);
}

#[test]
fn wrong_rules_are_named() {
    let env = TestEnv::new();
    for wrong in ["'transcript'", "'transcripts after soon'", "'usage 90d'", "'full after 90d'"] {
        write_settings(&env, wrong);
        env.run(["compact", "--dry-run"]).fails(2).says("store.keep");
    }
}

/// The owner's retention reaches the lake with the next push, and a pull brings back nothing that the
/// retention of the machine that reads has dropped, also if all of it is imported again.
#[test]
fn what_was_dropped_leaves_the_lake_and_no_pull_brings_it_back() {
    let publish = "include = ['**']\ncontent = 'full'";
    let owner = machine("pier", "mira", publish);
    write_log(&owner, "old", OLD_TIME);
    owner.ingest("logs");
    let lake = owner.path("lake");
    push(&owner, &lake);

    let reader = machine("quay", "tom", &format!("{publish}\n[store]\nkeep = 'usage after 90d'"));
    pull(&reader, &lake);
    assert!(has(&reader, "outputold"));
    reader.run(["compact"]).ok();
    reader.write_rule("n", "answernew");
    assert_eq!(pull(&reader, &lake)["imported"], 1, "other rules have it imported again");
    assert!(!has(&reader, "outputold") && !has(&reader, "promptold"));

    let named = "[identity]\nmachine = 'pier'\nuser = 'mira'\n[publish]\n";
    owner.write_settings(format!("{named}{publish}\n[store]\nkeep = 'usage after 90d'\n"));
    owner.run(["compact"]).ok();
    push(&owner, &lake);
    let later = machine("dock", "ana", publish);
    pull(&later, &lake);
    assert!(!has(&later, "outputold") && !has(&later, "promptold"));
}
