//! What happens to logs: they are compressed, vanish, branch, and are written while we watch.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{TestEnv, copy_folder, files_below, samples};
use crate::log::claude_record;

const CODEX: &str = "codex/sessions/2026/10/14/rollout-2026-10-14T09-12-31-01a13941-6cb9-7f1e-a741-65890d73c8a5.jsonl";

/// Its id is its name.
const CURSOR: &str = "cursor/projects/home-mira-code-harbor/agent-transcripts/bd9a5fef-432c-429a-93ba-2f5d10a06795/bd9a5fef-432c-429a-93ba-2f5d10a06795.jsonl";

fn events(env: &TestEnv) -> Value {
    let sql = "SELECT session_id, event_index, event_type, text, source_offset, source_length \
        FROM events ORDER BY ALL";
    env.rows(sql).into()
}

#[test]
fn a_log_stays_the_same_when_it_is_compressed() {
    for (log, suffix) in [(CODEX, "zst"), (CURSOR, "zst"), (CODEX, "gz"), (CURSOR, "gz")] {
        let bytes = fs::read(samples().join(log)).expect("sample");
        let env = TestEnv::new();
        let packed = format!("logs/rollout.jsonl.{suffix}");
        env.write("logs/rollout.jsonl", &bytes[..bytes.len() / 2]);
        env.ingest("logs");
        // For a moment both are there: the plain one counts.
        env.write("logs/rollout.jsonl", &bytes);
        env.write(&packed, pack(&bytes, suffix));
        env.ingest("logs").has(json!({"files_grown": 1, "files_new": 0}));
        let before = events(&env);
        env.remove("logs/rollout.jsonl");
        env.ingest("logs").has(json!({"events": 0, "files_vanished": 0}));
        // It is known again.
        env.ingest("logs").has(json!({"files_opened": 0}));
        assert_eq!(events(&env), before);
        // One that was never seen plain gives the same.
        let fresh = TestEnv::new();
        fresh.ingest(env.path(&packed));
        assert_eq!(events(&fresh), before, "{suffix}");
    }
}

/// The files next to a log tell what it is, compressed as well: the longer transcript, the logs of
/// its subagents.
#[test]
fn folders_stay_the_same_when_all_their_logs_are_compressed() {
    let [plain, packed] = [(); 2].map(|()| TestEnv::new());
    copy_folder(&samples(), &plain.path("logs"));
    copy_folder(&samples(), &packed.path("logs"));
    compress(&packed.path("logs"));
    plain.ingest("logs");
    packed.ingest("logs");
    let counted =
        "SELECT session_id, events, replay_events, output_tokens FROM sessions ORDER BY 1";
    assert_eq!(packed.rows(counted), plain.rows(counted));
    assert_eq!(events(&packed), events(&plain));
}

/// Compresses all files of lines below a folder.
fn compress(folder: &Path) {
    let files = files_below(folder).into_iter();
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")) {
        let bytes = fs::read(&path).expect("reads");
        fs::remove_file(&path).expect("removes");
        fs::write(format!("{}.gz", path.display()), pack(&bytes, "gz")).expect("writes");
    }
}

/// What a line repeats is told by each of the records in it, not by the first alone, whether the
/// lines came at once or one after the other.
#[test]
fn every_record_of_a_line_is_known_again() {
    let span = |id: &str| {
        let attributes = [
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.conversation.id", "harbor-1"),
            ("gen_ai.tool.name", "run_build"),
            ("gen_ai.tool.call.result", &format!("built {id}")),
        ];
        let attributes =
            attributes.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}));
        json!({"traceId": "t1", "spanId": id, "name": "execute_tool", "attributes": attributes})
    };
    let spans = ["a", "b", "c"].map(span);
    let service = json!({"key": "service.name", "value": {"stringValue": "vs-copilot"}});
    let line = json!({"resourceSpans": [{
        "resource": {"attributes": [service]},
        "scopeSpans": [{"spans": spans}],
    }]});
    let sql = "SELECT text, is_replay, count(*) FROM events WHERE event_type = 'tool_result' \
        GROUP BY ALL ORDER BY ALL";
    let [at_once, one_by_one] = [[2].as_slice(), &[1, 2]].map(|lengths| {
        let env = TestEnv::new();
        for lines in lengths {
            env.write("logs/1_VSGitHubCopilot_traces.jsonl", format!("{line}\n").repeat(*lines));
            env.ingest("logs");
        }
        json!(env.rows(sql))
    });
    let wanted = ["a", "b", "c"].map(|id| {
        let text = format!("built {id}");
        [json!([text, false, 1]), json!([text, true, 1])]
    });
    assert_eq!(at_once, json!(wanted.concat()));
    assert_eq!(one_by_one, at_once);
}

fn pack(bytes: &[u8], suffix: &str) -> Vec<u8> {
    if suffix == "zst" {
        return zstd::encode_all(bytes, 3).expect("packs");
    }
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("packs");
    packer.finish().expect("packs")
}

#[test]
fn a_damaged_compressed_log_keeps_what_can_be_read() {
    let bytes = fs::read(samples().join(CODEX)).expect("sample");
    let env = TestEnv::new();
    let mut packed = pack(&bytes, "gz");
    packed.truncate(packed.len() / 2);
    env.write("cut.jsonl.gz", packed);
    let report = env.ingest("cut.jsonl.gz");
    assert!(report["events"].as_u64() > Some(5));
    assert_eq!(report["problems"]["unpacked_in_part"], 1);
}

/// A file of a few kilobytes that unpacks to more than any log of its size.
#[test]
fn a_compressed_log_that_is_a_bomb_is_read_up_to_the_limit() {
    const LIMIT: usize = 256 << 20;
    let mut bytes = fs::read(samples().join(CODEX)).expect("sample");
    bytes.resize(LIMIT + (8 << 20), 0);
    let env = TestEnv::new();
    let packed = env.path("bomb.jsonl.zst");
    env.write(&packed, pack(&bytes, "zst"));
    let report = env.ingest(&packed);
    assert!(report["events"].as_u64() > Some(5));
    assert_eq!(report["problems"]["unpacked_in_part"], 1);
    assert!(report["problem_list"].to_string().contains(&LIMIT.to_string()));
}

#[test]
fn what_was_read_stays_when_the_log_vanishes() {
    let env = TestEnv::new();
    let log = env.copy_sample(CODEX, "logs/rollout.jsonl");
    env.ingest("logs");
    let before = events(&env);
    env.remove(log);
    env.ingest("logs").has(json!({"files_vanished": 1}));
    assert_eq!(events(&env), before);
    let doctor = env.json(["doctor"]);
    let codex = doctor["providers"].list().iter().find(|row| row["provider"] == "codex");
    assert_eq!(codex.expect("codex")["sources_gone"], 1);
}

/// The bytes of a log, and the length of its first half, which ends with a line.
fn log_and_half() -> (Vec<u8>, usize) {
    let bytes = fs::read(samples().join(CODEX)).expect("sample");
    let half = bytes.iter().take(bytes.len() / 2).rposition(|byte| *byte == b'\n');
    (bytes, half.expect("lines") + 1)
}

#[test]
fn a_log_that_was_away_goes_on_where_it_was() {
    let env = TestEnv::new();
    let (bytes, half) = log_and_half();
    env.write("logs/rollout.jsonl", &bytes[..half]);
    env.ingest("logs");
    env.remove("logs/rollout.jsonl");
    env.ingest("logs");
    env.write("logs/rollout.jsonl", &bytes);
    env.ingest("logs").has(json!({"bytes_read": bytes.len() - half}));
    let fresh = TestEnv::new();
    fresh.ingest(env.path("logs"));
    assert_eq!(events(&env), events(&fresh));
}

/// Rows that a later document no longer has come from the store, also from merged segments.
#[test]
fn what_a_rewritten_document_no_longer_holds_stays() {
    const LOG: &str = "gemini/tmp/harbor/chats/session-2026-10-16T07-45-be34bc14.json";
    let env = TestEnv::new();
    let log = env.path("logs/session-1.json");
    let mut document: Value =
        serde_json::from_slice(&fs::read(samples().join(LOG)).expect("sample")).expect("json");
    let all = document["messages"].list().to_vec();
    let mut ingest = |messages: Vec<Value>| {
        document["messages"] = messages.into();
        env.write(&log, document.to_string());
        env.ingest("logs");
    };
    let sql = "SELECT event_index, turn_index, event_type, text, tool_name, files, command, model, \
        output_tokens, timestamp FROM events ORDER BY event_index";
    let sums = "SELECT turns, tool_calls, output_tokens, tool_errors FROM sessions";
    ingest(all.clone());
    let (rows, counts) = (env.rows(sql), env.rows(sums));
    let mut prompt = all[1].clone();
    (prompt["id"], prompt["displayContent"]) = ("again".into(), Value::Null);
    // Back to the second prompt, and on, so often that segments are merged.
    for length in 1..10 {
        let mut left = all[..7].to_vec();
        prompt["content"] = format!("Zephyr again{}", "!".repeat(length)).into();
        left.push(prompt.clone());
        ingest(left);
    }
    let now = env.rows(sql);
    assert_eq!(now[..rows.len()], rows);
    assert_eq!(now.len(), rows.len() + 1);
    let turns = |counts: &[Vec<Value>]| counts[0][0].as_i64().expect("turns");
    let after = env.rows(sums);
    assert_eq!((turns(&after), &after[0][1..]), (turns(&counts) + 1, &counts[0][1..]));
    let found = env.json(["search", "Zephyr again"]);
    assert_eq!(found["data"]["matches"].list().len(), 1);
    let id = found["data"]["matches"][0]["event_id"].text().to_owned();
    let last = rows.len() - 1;
    let gone = id.rsplit_once(':').map(|(session, _)| format!("{session}:{last}"));
    let gone = env.json(["event", &gone.expect("coordinates")]);
    let gone = &gone["data"]["events"][0];
    assert_eq!((&gone["is_abandoned"], gone.get("source")), (&true.into(), None));
}

/// The rules of masking change while the document is away, so that the store's rows are masked again.
#[test]
fn what_a_document_no_longer_holds_survives_new_rules() {
    let env = TestEnv::new();
    let ingest = |messages: &[usize]| {
        let messages: Vec<_> = messages
            .iter()
            .map(|n| json!({"id": format!("m{n}"), "type": "user", "content": format!("prompt {n} of Kittiwake")}))
            .collect();
        let document = json!({"sessionId": "s-1", "projectHash": "p", "messages": messages});
        env.write("logs/session-1.json", document.to_string());
        env.ingest("logs");
    };
    ingest(&[1, 2]);
    ingest(&[1]);
    env.remove("logs/session-1.json");
    env.write_rule("boat", "Kittiwake");
    env.ingest("logs");
    ingest(&[1, 3]);
    let texts = [1, 2, 3].map(|n| format!("prompt {n} of [REDACTED:boat]"));
    assert_eq!(env.texts("SELECT text FROM events ORDER BY event_index"), texts);
    assert_eq!(env.texts("SELECT redactions FROM sessions"), [r#"{"boat":3}"#]);
}

#[test]
fn a_log_that_moved_is_the_same_session() {
    let env = TestEnv::new();
    let (bytes, half) = log_and_half();
    env.write("logs/sessions/rollout.jsonl", &bytes[..half]);
    env.ingest("logs");
    env.remove("logs/sessions/rollout.jsonl");
    let moved = env.write("logs/archived_sessions/rollout.jsonl", &bytes);
    let report = env.ingest("logs");
    report.has(json!({"files_new": 0, "files_grown": 1, "bytes_read": bytes.len() - half}));
    env.ingest("logs").has(json!({"files_opened": 0, "files_vanished": 0}));
    let fresh = TestEnv::new();
    fresh.ingest(moved);
    assert_eq!(events(&env), events(&fresh));
    let gone = env.rows("SELECT source_gone, count(*) FROM sessions GROUP BY ALL");
    assert_eq!(gone, [[json!(false), json!(1)]]);
    assert_eq!(env.json(["status"])["files"], json!({"moved": 1, "ok": 1}));
}

#[test]
fn a_file_that_tells_of_a_log_may_change_alone() {
    let env = TestEnv::new();
    let droid = "droid/sessions/-home-mira-code-harbor/bd0faa6f-fde2-4301-b5df-41b9350611a0";
    let kimi = "kimi/sessions/wd_harbor_cef702472212/session_5aaa847f-c7d7-4ff7-bdbb-0fd6d8632f93";
    let kiro = "kiro/sessions/cli/7c1f0c52-3a57-4f0b-9a51-1f2c9e6b40d3";
    let grok = "grok/sessions/%2Fhome%2Fmira%2Fcode%2Fharbor/01a16469-9b80-7e09-9210-af9b16703813";
    let files = [
        format!("{droid}.jsonl"),
        format!("{droid}.settings.json"),
        format!("{kimi}/agents/main/wire.jsonl"),
        format!("{kimi}/state.json"),
        format!("{kiro}.jsonl"),
        format!("{kiro}.json"),
        format!("{grok}/chat_history.jsonl"),
        format!("{grok}/summary.json"),
    ];
    for file in &files {
        env.copy_sample(file, format!("logs/{file}"));
    }
    let replace = |file: &str, from: &str, to: &str| env.replace(format!("logs/{file}"), from, to);
    let output = || {
        env.rows("SELECT sum(output_tokens) FROM events WHERE provider = 'droid'")[0][0].as_i64()
    };
    let titles = || env.rows("SELECT title FROM sessions ORDER BY provider")[1..].concat();
    env.ingest("logs");
    let before = events(&env);
    assert_eq!(output(), Some(1388));
    assert_eq!(env.ingest("logs")["files_opened"], 0);

    replace(&files[1], "\"outputTokens\": 1388", "\"outputTokens\": 1400");
    replace(&files[3], "Is budget.remaining() == 3 still asserted", "Of Kimi");
    replace(&files[5], "Load test and the budget", "Of Kiro");
    replace(
        &files[7],
        "\"generated_title\": \"Ordering",
        "\"generated_title\": \"Of Grok, ordering",
    );
    let told = env.ingest("logs");
    assert_eq!(told["files_opened"], 4);
    let total: u64 = [0, 2, 4, 6]
        .map(|at| fs::metadata(env.path("logs").join(&files[at])).expect("is there").len())
        .iter()
        .sum();
    assert_eq!(told["bytes_read"], total, "rows follow from both files: {told}");
    assert_eq!(output(), Some(1400), "shares of the new total");
    assert_eq!(titles(), ["Of Grok, ordering of the budget counter", "Of Kimi", "Of Kiro"]);
    let after = events(&env);
    let rows = |value: &Value| value.as_array().map_or(0, Vec::len);
    assert_eq!(rows(&after), rows(&before), "the shares change, not the events");
    assert_eq!(env.ingest("logs")["files_opened"], 0);

    // A watch names the file that changed alone.
    replace(&files[1], "\"outputTokens\": 1400", "\"outputTokens\": 1450");
    assert_eq!(env.ingest(format!("logs/{}", files[1]))["files_opened"], 1);
    assert_eq!(output(), Some(1450));
}

#[test]
fn doctor_names_every_agent_and_what_was_unknown() {
    let doctor = TestEnv::with_samples().json(["doctor"]);
    let providers = doctor["providers"].list();
    assert_eq!(providers.len(), schemas::Provider::ALL.len());
    for row in providers.iter().filter(|row| row["base"].is_null()) {
        assert!(row["sessions"].as_u64() > Some(0), "a sample of each decoder: {row}");
    }
    let is_unknown = |row: &Value| row["provider"] == "claude" && row["kind"] == "record";
    assert!(doctor["drift"].list().iter().any(is_unknown));
}

/// Checks that an ingest and `doctor` report the unreadable folders of Codex.
#[cfg(unix)]
fn check_unreadable(env: &TestEnv) {
    let said = env.run(["ingest"]).ok();
    let line = said.lines().find(|line| line.contains(".codex/sessions")).expect("a problem");
    line.shows("unreadable");
    said.shows("Check their permissions");
    assert!(env.json(["ingest"])["problems"]["unreadable"].as_u64() >= Some(1));

    let said = env.run(["doctor"]).ok();
    let mut lines = said.lines().skip_while(|line| !line.contains(".codex/sessions"));
    lines.next().expect("the folder").lacks("does not exist");
    lines.next().expect("the reason").shows(["cannot be read", "permissions"]);
}

#[cfg(unix)]
#[test]
fn an_unreadable_folder_of_an_agent_is_a_problem_and_not_taken_for_gone() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let env = TestEnv::new();
    let folder = env.path(".codex");
    // Root reads every folder, but it cannot follow a link to itself.
    let kinds: [fn(&Path); 2] = [
        |folder| symlink(folder.file_name().expect("a name"), folder).expect("links"),
        |folder| {
            fs::create_dir_all(folder.join("sessions")).expect("creates");
            fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).expect("sets");
        },
    ];
    for make in kinds {
        make(&folder);
        let sessions = folder.join("sessions");
        if fs::read_dir(&sessions).is_err() {
            check_unreadable(&env);
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).ok();
        fs::remove_file(&folder).or_else(|_| fs::remove_dir_all(&folder)).expect("removes");
    }
    let said = env.run(["doctor"]).ok();
    let place = said.lines().find(|line| line.contains(".codex/sessions")).expect("the folder");
    place.shows("does not exist");
}

#[test]
fn subagents_count_into_the_session_that_started_them() {
    let env = TestEnv::with_samples();
    let list = env.json(["list", "--provider", "claude"]);
    let find = |list: &Value, field: &str, value: &str| {
        list["data"]["sessions"].list().iter().find(|row| row[field] == value).cloned()
    };
    let parent = find(&list, "session_id", "9ae82b3a-fd82-48da-afd8-479f58648cbe");
    let parent = parent.expect("the parent");
    assert_eq!(parent["with_subagents"]["subagents"], 1);
    let sum = |tokens: &Value, way: &str| tokens[way]["output_tokens"].as_i64();
    let own = sum(&parent["tokens"], "counted_once").expect("tokens");
    assert_eq!(sum(&parent["with_subagents"]["tokens"], "counted_once"), Some(own + 441));
    assert!(parent["tokens"]["cost_usd"].as_f64() > Some(0.0), "{parent}");
    let all = env.json(["list", "--provider", "claude", "--subagents"]);
    let agent = "agent-ab20cdd8693cc94e2";
    assert!(find(&list, "session_id", agent).is_none());
    assert!(find(&all, "session_id", agent).is_some());
    // A fork is a session of its own, and what it copied is recorded but counted once.
    let tokens = &find(&list, "relation", "forked_from").expect("a fork")["tokens"];
    assert!(sum(tokens, "as_recorded") > sum(tokens, "counted_once"), "{tokens}");
}

#[test]
fn a_line_is_there_within_a_second_of_being_written() {
    let env = TestEnv::new();
    let log = env.path("logs/rollout.jsonl");
    let bytes = fs::read(samples().join(CODEX)).expect("sample");
    let cut = bytes.iter().position(|b| *b == b'\n').expect("a line") + 1;
    env.write(&log, &bytes[..cut]);
    let mut child = env
        .command()
        .args(["ingest", "--watch", "--json"])
        .arg(env.path("logs"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut reports = BufReader::new(child.stdout.take().expect("piped"));
    let mut report = || {
        let mut text = String::new();
        // A report is an object over several lines, or one.
        loop {
            let read = reports.read_line(&mut text).expect("reads");
            assert!(read > 0, "ended: {text}");
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                return value;
            }
        }
    };
    assert_eq!(report()["files_new"], 1);
    let mut appended = fs::OpenOptions::new().append(true).open(&log).expect("opens");
    let written = Instant::now();
    appended.write_all(&bytes[cut..]).expect("appends");
    let grown = report();
    let waited = written.elapsed();
    child.kill().expect("ends");
    child.wait().expect("ends");
    assert_eq!(grown["files_grown"], 1, "{grown}");
    // A second is the promise on an idle machine; a busy one may take longer.
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}

#[test]
fn doctor_counts_the_logs_that_an_agent_deletes_soon() {
    let env = TestEnv::new();
    let day = Duration::from_secs(86_400);
    for (at, age) in [(1, 1), (2, 24), (3, 29)] {
        let id = format!("0000000{at}-0000-4000-8000-000000000000");
        let record = claude_record(&id, "/work/harbor", at, "user", "Count boats");
        let name = format!(".claude/projects/-work-harbor/{id}.jsonl");
        env.append_event(&name, &record);
        let file = fs::File::options().append(true).open(env.path(&name)).expect("opens");
        file.set_modified(SystemTime::now() - day * age).expect("sets the time");
    }
    env.run(["ingest", "--quiet"]).ok();
    let retention = || {
        let doctor = env.json(["doctor"]);
        let claude = doctor["providers"].list().iter().find(|agent| agent["provider"] == "claude");
        claude.expect("Claude Code")["retention"].clone()
    };
    retention().has(json!({"days": 30, "due": 2}));
    env.run(["doctor"]).shows(["30 days", "2 within a week"]);

    env.write(".claude/settings.json", r#"{"cleanupPeriodDays": 365}"#);
    retention().has(json!({"days": 365, "due": 0}));
}

#[test]
fn doctor_counts_the_logs_that_are_too_many_for_gemini() {
    let env = TestEnv::new();
    for log in
        ["session-2026-10-17T18-05-d6eac969.jsonl", "session-2026-10-18T09-12-805ba37b.jsonl"]
    {
        let name = format!("tmp/harbor/chats/{log}");
        env.copy_sample(&format!("gemini/{name}"), format!(".gemini/{name}"));
    }
    env.run(["ingest", "--quiet"]).ok();
    let due = || {
        let doctor = env.json(["doctor"]);
        let found = doctor["providers"].list().iter().find(|agent| agent["provider"] == "gemini");
        found.expect("Gemini CLI")["retention"].clone()
    };
    let all = due()["due"].as_u64().expect("a number");
    env.write(
        ".gemini/settings.json",
        r#"{"general":{"sessionRetention":{"maxAge":"999m","maxCount":1}}}"#,
    );
    due().has(json!({"count": 0}));
    assert!(due()["due"].as_u64() > Some(all), "{}", due());
    env.run(["doctor"]).shows("all but the newest 0 of a project");
}
