//! What happens to logs: they are compressed, vanish, branch, and are written while we watch.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::env::{TestEnv, copy_folder, samples};

const CODEX: &str = "codex/sessions/2026/10/14/rollout-2026-10-14T09-12-31-01a13941-6cb9-7f1e-a741-65890d73c8a5.jsonl";

/// Its id is its name.
const CURSOR: &str = "cursor/projects/home-mira-code-harbor/agent-transcripts/bd9a5fef-432c-429a-93ba-2f5d10a06795/bd9a5fef-432c-429a-93ba-2f5d10a06795.jsonl";

fn events(env: &TestEnv) -> serde_json::Value {
    let sql = "SELECT session_id, event_index, event_type, text, source_offset, source_length \
        FROM events ORDER BY ALL";
    env.rows(sql).into()
}

#[test]
fn a_log_stays_the_same_when_it_is_compressed() {
    let suffixes = ["zst", "gz"].into_iter();
    for (log, suffix) in suffixes.flat_map(|suffix| [(CODEX, suffix), (CURSOR, suffix)]) {
        let bytes = fs::read(samples().join(log)).expect("sample");
        let env = TestEnv::new();
        let plain = env.path("logs/rollout.jsonl");
        let packed = env.path(&format!("logs/rollout.jsonl.{suffix}"));
        fs::create_dir_all(env.path("logs")).expect("creates");
        let half = bytes[..bytes.len() / 2].to_vec();
        fs::write(&plain, &half).expect("writes");
        let logs = env.path("logs").to_string_lossy().into_owned();
        env.run(&["ingest", "--quiet", &logs]).ok();
        // For a moment both are there: the plain one counts.
        fs::write(&plain, &bytes).expect("writes");
        fs::write(&packed, pack(&bytes, suffix)).expect("writes");
        let grown = env.json(&["ingest", &logs]);
        assert_eq!((&grown["files_grown"], &grown["files_new"]), (&1.into(), &0.into()), "{grown}");
        let before = events(&env);
        fs::remove_file(&plain).expect("removes");
        let after = env.json(&["ingest", &logs]);
        assert_eq!((&after["events"], &after["files_vanished"]), (&0.into(), &0.into()), "{after}");
        assert_eq!(env.json(&["ingest", &logs])["files_opened"], 0, "known again");
        assert_eq!(events(&env), before);
        // One that was never seen plain gives the same.
        let fresh = TestEnv::new();
        fresh.run(&["ingest", "--quiet", &packed.to_string_lossy()]).ok();
        assert_eq!(events(&fresh), before, "{suffix}");
    }
}

/// What lies beside a log tells what it is, compressed as well: the longer transcript, the logs of
/// its subagents.
#[test]
fn folders_stay_the_same_when_all_their_logs_are_compressed() {
    let [plain, packed] = [(); 2].map(|()| TestEnv::new());
    for env in [&plain, &packed] {
        copy_folder(&samples(), &env.path("logs"));
    }
    compress(&packed.path("logs"));
    for env in [&plain, &packed] {
        env.json(&["ingest", &env.path("logs").to_string_lossy()]);
    }
    let counted =
        "SELECT session_id, events, replay_events, output_tokens FROM sessions ORDER BY 1";
    assert_eq!(packed.rows(counted), plain.rows(counted));
    assert_eq!(events(&packed), events(&plain));
}

/// Compresses all files of lines below a folder.
fn compress(folder: &Path) {
    for entry in fs::read_dir(folder).expect("reads").flatten() {
        let path = entry.path();
        if path.is_dir() {
            compress(&path);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            let bytes = fs::read(&path).expect("reads");
            fs::remove_file(&path).expect("removes");
            fs::write(format!("{}.gz", path.display()), pack(&bytes, "gz")).expect("writes");
        }
    }
}

/// What a line repeats is told by each of the records in it, not by the first alone, whether the
/// lines came at once or one after the other.
#[test]
fn every_record_of_a_line_is_known_again() {
    let span = |id: &str| {
        let attribute = |key: &str, value: &str| {
            format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
        };
        let attributes = [
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.conversation.id", "harbor-1"),
            attribute("gen_ai.tool.name", "run_build"),
            attribute("gen_ai.tool.call.result", &format!("built {id}")),
        ];
        let attributes = attributes.join(",");
        format!(
            r#"{{"traceId":"t1","spanId":"{id}","name":"execute_tool","attributes":[{attributes}]}}"#
        )
    };
    let spans = ["a", "b", "c"].map(span).join(",");
    let line = format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"vs-copilot"}}}}]}},"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#
    ) + "\n";
    let sql = "SELECT text, is_replay, count(*) FROM events WHERE event_type = 'tool_result' \
        GROUP BY ALL ORDER BY ALL";
    let [at_once, one_by_one] = [[2].as_slice(), &[1, 2]].map(|lengths| {
        let env = TestEnv::new();
        let log = env.path("logs/1_VSGitHubCopilot_traces.jsonl");
        fs::create_dir_all(env.path("logs")).expect("creates");
        for lines in lengths {
            fs::write(&log, line.repeat(*lines)).expect("writes");
            env.run(&["ingest", "--quiet", &env.path("logs").to_string_lossy()]).ok();
        }
        env.rows(sql)
    });
    let wanted = ["a", "b", "c"].map(|id| {
        [false, true].map(|again| {
            let row: Vec<serde_json::Value> =
                vec![format!("built {id}").into(), again.into(), 1.into()];
            row
        })
    });
    assert_eq!(at_once, wanted.concat());
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
    fs::write(env.path("cut.jsonl.gz"), packed).expect("writes");
    let report = env.json(&["ingest", &env.path("cut.jsonl.gz").to_string_lossy()]);
    assert!(report["events"].as_u64() > Some(5), "{report}");
    assert_eq!(report["problems"]["unpacked_in_part"], 1, "{report}");
}

/// A file of a few kilobytes that unpacks to more than any log of its size.
#[test]
fn a_compressed_log_that_is_a_bomb_is_read_up_to_the_limit() {
    const LIMIT: usize = 256 << 20;
    let mut bytes = fs::read(samples().join(CODEX)).expect("sample");
    bytes.resize(LIMIT + (8 << 20), 0);
    let env = TestEnv::new();
    let packed = env.path("bomb.jsonl.zst");
    fs::write(&packed, pack(&bytes, "zst")).expect("writes");
    let report = env.json(&["ingest", &packed.to_string_lossy()]);
    assert!(report["events"].as_u64() > Some(5), "{report}");
    assert_eq!(report["problems"]["unpacked_in_part"], 1, "{report}");
    assert!(report["problem_list"].to_string().contains(&LIMIT.to_string()), "{report}");
}

#[test]
fn what_was_read_stays_when_the_log_vanishes() {
    let env = TestEnv::new();
    let log = env.path("logs/rollout.jsonl");
    fs::create_dir_all(env.path("logs")).expect("creates");
    fs::copy(samples().join(CODEX), &log).expect("copies");
    let logs = env.path("logs").to_string_lossy().into_owned();
    env.run(&["ingest", "--quiet", &logs]).ok();
    let before = events(&env);
    fs::remove_file(&log).expect("removes");
    assert_eq!(env.json(&["ingest", &logs])["files_vanished"], 1);
    assert_eq!(events(&env), before);
    let doctor = env.json(&["doctor"]);
    let codex = doctor["providers"].as_array().expect("providers");
    let codex = codex.iter().find(|row| row["provider"] == "codex").expect("codex");
    assert_eq!(codex["sources_gone"], 1, "{codex}");
}

#[test]
fn a_log_that_was_away_goes_on_where_it_was() {
    let env = TestEnv::new();
    let bytes = fs::read(samples().join(CODEX)).expect("sample");
    let half = bytes.iter().take(bytes.len() / 2).rposition(|byte| *byte == b'\n').expect("lines");
    let log = env.path("logs/rollout.jsonl");
    fs::create_dir_all(env.path("logs")).expect("creates");
    fs::write(&log, &bytes[..=half]).expect("writes");
    let logs = env.path("logs").to_string_lossy().into_owned();
    env.run(&["ingest", "--quiet", &logs]).ok();
    fs::remove_file(&log).expect("removes");
    env.run(&["ingest", "--quiet", &logs]).ok();
    fs::write(&log, &bytes).expect("writes");
    let back = env.json(&["ingest", &logs]);
    assert_eq!(back["bytes_read"], bytes.len() - half - 1, "{back}");
    let fresh = TestEnv::new();
    fresh.run(&["ingest", "--quiet", &logs]).ok();
    assert_eq!(events(&env), events(&fresh));
}

/// Rows that a later document no longer has come from the store, also from merged segments.
#[test]
fn what_a_rewritten_document_no_longer_holds_stays() {
    const LOG: &str = "gemini/tmp/harbor/chats/session-2026-10-16T07-45-be34bc14.json";
    let env = TestEnv::new();
    let log = env.path("logs/session-1.json");
    fs::create_dir_all(env.path("logs")).expect("creates");
    let logs = env.path("logs").to_string_lossy().into_owned();
    let mut document: serde_json::Value =
        serde_json::from_slice(&fs::read(samples().join(LOG)).expect("sample")).expect("json");
    let all = document["messages"].as_array().expect("messages").clone();
    let mut ingest = |messages: Vec<serde_json::Value>| {
        document["messages"] = messages.into();
        fs::write(&log, document.to_string()).expect("writes");
        env.run(&["ingest", "--quiet", &logs]).ok();
    };
    let sql = "SELECT event_index, turn_index, event_type, text, tool_name, files, command, model, \
        output_tokens, timestamp FROM events ORDER BY event_index";
    let sums = "SELECT turns, tool_calls, output_tokens, tool_errors FROM sessions";
    ingest(all.clone());
    let (rows, counts) = (env.rows(sql), env.rows(sums));
    let mut prompt = all[1].clone();
    (prompt["id"], prompt["displayContent"]) = ("again".into(), serde_json::Value::Null);
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
    let turns = |counts: &[Vec<serde_json::Value>]| counts[0][0].as_i64().expect("turns");
    let after = env.rows(sums);
    assert_eq!((turns(&after), &after[0][1..]), (turns(&counts) + 1, &counts[0][1..]));
    let found = env.json(&["search", "Zephyr again"]);
    assert_eq!(found["data"]["matches"].as_array().map(Vec::len), Some(1), "{found}");
    let id = found["data"]["matches"][0]["event_id"].as_str().expect("an id").to_owned();
    let last = rows.len() - 1;
    let gone = id.rsplit_once(':').map(|(session, _)| format!("{session}:{last}"));
    let gone = env.json(&["event", &gone.expect("coordinates")]);
    let gone = &gone["data"]["events"][0];
    assert_eq!((&gone["is_abandoned"], gone.get("source")), (&true.into(), None), "{gone}");
}

/// The rules of masking change while the document is away, so that the store's rows are masked again.
#[test]
fn what_a_document_no_longer_holds_survives_new_rules() {
    let env = TestEnv::new();
    let (log, rules) = (env.path("logs/session-1.json"), env.path("redact.toml"));
    fs::create_dir_all(env.path("logs")).expect("creates");
    let message =
        |n: usize| format!(r#"{{"id":"m{n}","type":"user","content":"prompt {n} of Kittiwake"}}"#);
    let write = |messages: &[usize]| {
        let messages: Vec<_> = messages.iter().map(|n| message(*n)).collect();
        let messages = messages.join(",");
        let document =
            format!(r#"{{"sessionId":"s-1","projectHash":"p","messages":[{messages}]}}"#);
        fs::write(&log, document).expect("writes");
    };
    let ingest = || {
        let mut command = env.command();
        command.env("SESSIONS_REDACT", &rules).args(["ingest", "--quiet"]).arg(env.path("logs"));
        assert!(command.status().expect("runs").success());
    };
    fs::write(&rules, "").expect("writes");
    write(&[1, 2]);
    ingest();
    write(&[1]);
    ingest();
    fs::remove_file(&log).expect("removes");
    fs::write(&rules, "[[rule]]\nname = \"boat\"\nregex = \"Kittiwake\"\n").expect("writes");
    ingest();
    write(&[1, 3]);
    ingest();
    let texts: Vec<_> =
        [1, 2, 3].map(|n| serde_json::json!([format!("prompt {n} of [REDACTED:boat]")])).to_vec();
    let rows = env.rows("SELECT text FROM events ORDER BY event_index");
    assert_eq!(serde_json::json!(rows), serde_json::json!(texts));
    let counted = env.rows("SELECT redactions FROM sessions");
    assert_eq!(counted, [[serde_json::json!(r#"{"boat":3}"#)]]);
}

#[test]
fn a_log_that_moved_is_the_same_session() {
    let env = TestEnv::new();
    let bytes = fs::read(samples().join(CODEX)).expect("sample");
    let half = bytes.iter().take(bytes.len() / 2).rposition(|byte| *byte == b'\n').expect("lines");
    for folder in ["logs/sessions", "logs/archived_sessions"] {
        fs::create_dir_all(env.path(folder)).expect("creates");
    }
    let [old, new] = ["sessions", "archived_sessions"]
        .map(|folder| env.path(&format!("logs/{folder}/rollout.jsonl")));
    fs::write(&old, &bytes[..=half]).expect("writes");
    let logs = env.path("logs").to_string_lossy().into_owned();
    env.run(&["ingest", "--quiet", &logs]).ok();
    fs::remove_file(&old).expect("removes");
    fs::write(&new, &bytes).expect("writes");
    let moved = env.json(&["ingest", &logs]);
    assert_eq!((&moved["files_new"], &moved["files_grown"]), (&0.into(), &1.into()), "{moved}");
    assert_eq!(moved["bytes_read"], bytes.len() - half - 1);
    let again = env.json(&["ingest", &logs]);
    assert_eq!((&again["files_opened"], &again["files_vanished"]), (&0.into(), &0.into()));
    let fresh = TestEnv::new();
    fresh.run(&["ingest", "--quiet", &new.to_string_lossy()]).ok();
    assert_eq!(events(&env), events(&fresh));
    let gone = env.rows("SELECT source_gone, count(*) FROM sessions GROUP BY ALL");
    assert_eq!(gone, [[serde_json::json!(false), 1.into()]]);
    assert_eq!(env.json(&["status"])["files"], serde_json::json!({"moved": 1, "ok": 1}));
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
        let place = env.path("logs").join(file);
        fs::create_dir_all(place.with_file_name("")).expect("creates");
        fs::copy(samples().join(file), place).expect("copies");
    }
    let logs = env.path("logs").to_string_lossy().into_owned();
    let replace = |file: &str, from: &str, to: &str| {
        let place = env.path("logs").join(file);
        let text = fs::read_to_string(&place).expect("reads");
        assert!(text.contains(from), "{file}: {from}");
        fs::write(place, text.replace(from, to)).expect("writes");
    };
    let output = || {
        env.rows("SELECT sum(output_tokens) FROM events WHERE provider = 'droid'")[0][0].as_i64()
    };
    let titles = || env.rows("SELECT title FROM sessions ORDER BY provider")[1..].concat();
    env.run(&["ingest", "--quiet", &logs]).ok();
    let before = events(&env);
    assert_eq!(output(), Some(1388));
    assert_eq!(env.json(&["ingest", &logs])["files_opened"], 0);

    replace(&files[1], "\"outputTokens\": 1388", "\"outputTokens\": 1400");
    replace(&files[3], "Is budget.remaining() == 3 still asserted", "Of Kimi");
    replace(&files[5], "Load test and the budget", "Of Kiro");
    replace(
        &files[7],
        "\"generated_title\": \"Ordering",
        "\"generated_title\": \"Of Grok, ordering",
    );
    let told = env.json(&["ingest", &logs]);
    assert_eq!(told["files_opened"], 4, "{told}");
    let total: u64 = [0, 2, 4, 6]
        .map(|at| fs::metadata(env.path("logs").join(&files[at])).expect("is there").len())
        .iter()
        .sum();
    assert_eq!(told["bytes_read"], total, "rows follow from both files: {told}");
    assert_eq!(output(), Some(1400), "shares of the new total");
    assert_eq!(titles(), ["Of Grok, ordering of the budget counter", "Of Kimi", "Of Kiro"]);
    let after = events(&env);
    let rows = |value: &serde_json::Value| value.as_array().map_or(0, Vec::len);
    assert_eq!(rows(&after), rows(&before), "the shares change, not the events");
    assert_eq!(env.json(&["ingest", &logs])["files_opened"], 0);

    // A watch names the file that changed alone.
    replace(&files[1], "\"outputTokens\": 1400", "\"outputTokens\": 1450");
    let settings = env.path("logs").join(&files[1]).to_string_lossy().into_owned();
    assert_eq!(env.json(&["ingest", &settings])["files_opened"], 1);
    assert_eq!(output(), Some(1450));
}

#[test]
fn doctor_names_every_agent_and_what_was_unknown() {
    let env = TestEnv::with_samples();
    let doctor = env.json(&["doctor"]);
    let providers = doctor["providers"].as_array().expect("providers");
    assert_eq!(providers.len(), schemas::Provider::ALL.len());
    for row in providers.iter().filter(|row| row["base"].is_null()) {
        assert!(row["sessions"].as_u64() > Some(0), "a sample of each decoder: {row}");
    }
    let drift = doctor["drift"].as_array().expect("drift");
    let unknown = |row: &&serde_json::Value| row["provider"] == "claude" && row["kind"] == "record";
    assert!(drift.iter().any(|row| unknown(&row)), "{drift:?}");
}

/// Checks that an ingest and `doctor` report the unreadable folders of Codex.
#[cfg(unix)]
fn check_unreadable(env: &TestEnv) {
    let said = env.run(&["ingest"]).ok();
    let line = said.lines().find(|line| line.contains(".codex/sessions")).expect("a problem");
    assert!(line.contains("unreadable"), "{line}");
    assert!(said.contains("Check their permissions"), "{said}");
    let report = env.json(&["ingest"]);
    assert!(report["problems"]["unreadable"].as_u64() >= Some(1), "{report}");

    let said = env.run(&["doctor"]).ok();
    let mut lines = said.lines().skip_while(|line| !line.contains(".codex/sessions"));
    let place = lines.next().expect("the folder");
    assert!(!place.contains("does not exist"), "{place}");
    let reason = lines.next().expect("the reason");
    assert!(reason.contains("cannot be read") && reason.contains("permissions"), "{said}");
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
    let said = env.run(&["doctor"]).ok();
    let place = said.lines().find(|line| line.contains(".codex/sessions")).expect("the folder");
    assert!(place.contains("does not exist"), "{place}");
}

#[test]
fn subagents_count_into_the_session_that_started_them() {
    let env = TestEnv::with_samples();
    let list = env.json(&["list", "--limit", "100"]);
    let sessions = list["data"]["sessions"].as_array().expect("sessions");
    let parent = sessions
        .iter()
        .find(|row| row["session_id"] == "9ae82b3a-fd82-48da-afd8-479f58648cbe")
        .expect("the parent");
    assert_eq!(parent["with_subagents"]["subagents"], 1, "{parent}");
    let sum = |tokens: &serde_json::Value| tokens["counted_once"]["output_tokens"].as_i64();
    let own = sum(&parent["tokens"]).expect("tokens");
    assert_eq!(sum(&parent["with_subagents"]["tokens"]), Some(own + 441));
    assert!(parent["tokens"]["cost_usd"].as_f64() > Some(0.0), "{parent}");
    let agent = "agent-ab20cdd8693cc94e2";
    assert!(!sessions.iter().any(|row| row["session_id"] == agent));
    let all = env.json(&["list", "--limit", "100", "--subagents"]);
    let all = all["data"]["sessions"].as_array().expect("sessions");
    assert!(all.iter().any(|row| row["session_id"] == agent));
    // A fork is a session of its own, and what it copied is recorded but counted once.
    let fork = sessions.iter().find(|row| row["relation"] == "forked_from").expect("a fork");
    let tokens = &fork["tokens"];
    assert!(
        tokens["as_recorded"]["output_tokens"].as_i64()
            > tokens["counted_once"]["output_tokens"].as_i64(),
        "{fork}"
    );
}

#[test]
fn a_line_is_there_within_a_second_of_being_written() {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("logs")).expect("creates");
    let log = env.path("logs/rollout.jsonl");
    let bytes = fs::read(samples().join(CODEX)).expect("sample");
    let cut = bytes.iter().position(|b| *b == b'\n').expect("a line") + 1;
    fs::write(&log, &bytes[..cut]).expect("writes");
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
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
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
    let folder = env.path(".claude/projects/-work-harbor");
    fs::create_dir_all(&folder).expect("creates");
    let day = Duration::from_secs(86_400);
    for (at, age) in [(1, 1), (2, 24), (3, 29)] {
        let id = format!("0000000{at}-0000-4000-8000-000000000000");
        let record = json!({ "type": "user", "uuid": id, "sessionId": id, "cwd": "/work/harbor",
            "timestamp": "2026-11-01T10:00:00Z", "version": "2.0.0",
            "message": { "role": "user", "content": "Count boats" } });
        let log = folder.join(format!("{id}.jsonl"));
        fs::write(&log, format!("{record}\n")).expect("writes");
        let file = fs::File::options().append(true).open(&log).expect("opens");
        file.set_modified(SystemTime::now() - day * age).expect("sets the time");
    }
    env.run(&["ingest", "--quiet"]).ok();
    let retention = || {
        let doctor = env.json(&["doctor"]);
        let agents = doctor["providers"].as_array().expect("a list").clone();
        let claude = agents.into_iter().find(|agent| agent["provider"] == "claude");
        claude.expect("Claude Code")["retention"].clone()
    };
    let found = retention();
    assert_eq!([&found["days"], &found["due"]], [&json!(30), &json!(2)], "{found}");
    let said = env.run(&["doctor"]).ok();
    assert!(said.contains("30 days") && said.contains("2 within a week"), "{said}");

    fs::write(env.path(".claude/settings.json"), r#"{"cleanupPeriodDays": 365}"#).expect("writes");
    let found = retention();
    assert_eq!([&found["days"], &found["due"]], [&json!(365), &json!(0)], "{found}");
}
