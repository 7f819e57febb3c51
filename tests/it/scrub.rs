//! `sessions secrets --scrub`: replaces secrets in the agents' own logs, changes nothing else there, and
//! leaves the store as it was.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::{Random, TestEnv, copy_folder, make_old, samples};
use crate::lake::{machine, pull, push};
use crate::log::claude_record;

pub(crate) const MASK: &str = "[REDACTED:github_token]";

pub(crate) fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

fn make_all_old(folder: &Path) {
    for file in walk(folder) {
        make_old(&file);
    }
}

/// Runs the command, which must not print the token, and returns its answer.
pub(crate) fn scrub(env: &TestEnv, args: &[&str], code: i32) -> Value {
    let ran = env.run([&["secrets", "--scrub", "--json"], args].concat()).exits(code);
    ran.stdout.lacks("ghp_a1");
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// Everything that the store has of events but their places in the logs, and of sessions but the
/// number of masked secrets.
pub(crate) fn content(env: &TestEnv) -> Value {
    let events = "SELECT * EXCLUDE (source_offset, source_length) FROM events ORDER BY session_id, event_index";
    let events = if env.run(["query", "--quiet", events]).code > 1 {
        "SELECT * FROM events ORDER BY session_id, event_index"
    } else {
        events
    };
    let mut sessions = env.json(["list"])["data"]["sessions"].clone();
    for session in sessions.as_array_mut().expect("a list") {
        session.as_object_mut().expect("an object").remove("redactions");
    }
    json!([env.rows(events), sessions])
}

/// A record of Codex, the given seconds into its log.
fn codex_record(second: usize, kind: &str, payload: &Value) -> String {
    let timestamp = format!("2026-10-01T10:{:02}:{:02}.000Z", second / 60, second % 60);
    format!("{}\n", json!({ "timestamp": timestamp, "type": kind, "payload": payload }))
}

/// The records of Codex of a turn, which has the token in the prompt, a command and its output.
fn codex_turn(second: usize, number: usize) -> String {
    let arguments = json!({ "command": ["curl", "-H", format!("X-Key: {}", token())] }).to_string();
    let prompt = json!({ "type": "message", "role": "user", "content": [
        { "type": "input_text", "text": format!("Use {} in step {number}", token()) },
    ] });
    let call = json!({ "type": "function_call", "name": "shell", "call_id": format!("c{number}"),
        "arguments": arguments });
    let output = json!({ "type": "function_call_output", "call_id": format!("c{number}"),
        "output": json!({ "output": format!("sent {}", token()), "metadata": {} }).to_string() });
    codex_record(second, "response_item", &prompt)
        + &codex_record(second + 1, "response_item", &call)
        + &codex_record(second + 2, "response_item", &output)
}

const PARENT: &str = "a1f0e51c-2b7d-4c0e-9a35-d1e84b7092fa";
const FORK: &str = "b2f0e51c-2b7d-4c0e-9a35-d1e84b7092fb";

/// Writes a log of Codex and a fork of it, which copies its records, whose identity is their content.
fn write_codex_fork(env: &TestEnv) -> [PathBuf; 2] {
    let history: String = (1..=4).map(|number| codex_turn(number * 10, number)).collect();
    let parent = codex_record(0, "session_meta", &json!({ "id": PARENT, "cwd": "/w" }));
    let fork = json!({ "id": FORK, "cwd": "/w", "forked_from_id": PARENT });
    let fork = codex_record(100, "session_meta", &fork) + &parent + &history;
    [(PARENT, parent + &history), (FORK, fork + &codex_turn(110, 11))].map(|(id, text)| {
        let path = env.write(format!("logs/rollout-2026-10-01T10-00-00-{id}.jsonl"), text);
        make_old(&path);
        path
    })
}

#[test]
fn only_the_secrets_of_a_log_change() {
    let env = TestEnv::new();
    let mut lines = Vec::new();
    for number in 1..=3 {
        let mut record = claude_record("leak", "/work", number, "user", format!("Use {}", token()));
        record["toolUseResult"] = json!({ "stdout": token(), "n": 1.0, "é": "\u{1b}[1m\t/" });
        lines.push(record.to_string().replace('/', "\\/") + "\r\n");
    }
    let thought = json!([{ "type": "thinking", "thinking": "so", "signature": token() }]);
    lines.push(format!("{}\n\n", claude_record("leak", "/work", 4, "assistant", thought)));
    lines.push(format!("not JSON: {}\n", token()));
    let text = lines.concat();
    let log = env.write("logs/leak.jsonl", &text);
    make_old(&log);
    let modified = fs::metadata(&log).expect("is there").modified().expect("a time");
    env.ingest("logs");

    let preview = scrub(&env, &[], 1);
    preview.has(json!({ "is_done": false, "replaced": { "github_token": 7 }, "left_out": [] }));
    assert_eq!(env.read(&log), text, "a preview changes nothing");
    assert!(!env.path("store/log-backup").exists());

    let done = scrub(&env, &["--yes"], 0);
    done.has(json!({
        "is_done": true, "replaced": { "github_token": 7 }, "remaining": {}, "left_out": [],
        "backup": { "logs": 1, "bytes": text.len() },
    }));
    let wanted = text.replace(&token(), MASK);
    let wanted = wanted
        .replace(&format!(r#""signature":"{MASK}""#), &format!(r#""signature":"{}""#, token()));
    assert_eq!(env.read(&log), wanted, "the signature goes back to the service");
    let metadata = fs::metadata(&log).expect("is there");
    assert_eq!(metadata.modified().expect("a time"), modified);
    env.run(["secrets"]).ok().shows("as they were before --scrub or `resume`");
    assert_eq!(scrub(&env, &["--yes"], 0)["logs"], json!([]), "nothing is left to do");
}

#[test]
fn the_store_stays_as_it_was() {
    let env = TestEnv::new();
    write_codex_fork(&env);
    env.log("leak").cwd("/work").title("A leak").user(&format!("Use {}", token())).write();
    let twice = format!("DB_PASSWORD={0} and again {0}", "kJ8dPq2mXv7Lr4TzWb9");
    env.log("context").cwd("/work").command("cat .env", &twice, 0).write();
    for log in ["leak", "context"] {
        make_old(&env.path(format!("logs/{log}.jsonl")));
    }
    env.ingest("logs");
    env.run(["label", "leak", "--add", "kept", "--note", "a note"]).ok();
    let before = content(&env);

    let done = scrub(&env, &["--yes"], 0);
    assert_eq!(done["logs"].list().len(), 4, "{done}");
    let report = env.ingest("logs");
    report.has(json!({ "files_rewritten": 4 }));
    assert_eq!(content(&env), before);
    env.run(["secrets"]).ok();
    assert_eq!(env.session_ids().len(), 4, "no log is an earlier version of itself");

    // Logs that grow are continued, and a store that begins again reads the same.
    env.append("logs/leak.jsonl", &format!("{}\n", json!({ "type": "user", "text": "Next" })));
    env.ingest("logs").has(json!({ "files_grown": 1, "events": 1 }));
}

#[test]
fn a_copy_that_keeps_its_secrets_stays_a_copy() {
    let env = TestEnv::new();
    let [_, fork] = write_codex_fork(&env);
    env.ingest("logs");
    let before = content(&env);
    // An agent has the fork open, so only its original is scrubbed.
    let _open = File::open(&fork).expect("opens");
    let text = env.read(&fork);
    if cfg!(target_os = "linux") {
        let done = scrub(&env, &["--yes"], 1);
        done["left_out"][0].has(json!({ "session_id": FORK, "reason": "a process has it open" }));
    }
    assert_eq!(env.read(&fork), text);
    env.ingest("logs");
    assert_eq!(content(&env), before);
}

#[test]
fn forgotten_records_stay_forgotten() {
    let env = TestEnv::new();
    write_codex_fork(&env);
    env.ingest("logs");
    env.run(["forget", PARENT, "--yes"]).ok();
    env.ingest("logs");
    let before = content(&env);
    let done = scrub(&env, &["--yes"], 0);
    assert_eq!(done["logs"].each("session_id"), [FORK]);
    env.ingest("logs");
    assert_eq!(content(&env), before);
}

#[test]
fn reduced_and_unmasked_sessions_are_read_again_as_what_they_are() {
    let env = TestEnv::new();
    write_codex_fork(&env);
    env.write_settings("[store]\nkeep = ['transcripts after 1d']\n");
    env.ingest("logs");
    env.run(["compact"]).ok();
    let before = content(&env);
    scrub(&env, &["--yes"], 0);
    env.ingest("logs");
    assert_eq!(content(&env), before);

    let unmasked = TestEnv::new();
    write_codex_fork(&unmasked);
    unmasked.run(["ingest", "--quiet", "--no-redact", "logs"]).ok();
    let masked = TestEnv::new();
    write_codex_fork(&masked);
    masked.ingest("logs");
    let done = scrub(&unmasked, &["--yes"], 0);
    assert_eq!(done["logs"].list().len(), 2);
    unmasked.ingest("logs");
    assert_eq!(content(&unmasked)[0], content(&masked)[0]);
}

#[test]
fn an_archive_keeps_no_secret_of_a_scrubbed_log() {
    for keep in ["exact", "masked"] {
        let env = TestEnv::new();
        env.write_settings(format!("[store]\nkeep_logs = '{keep}'\n"));
        let [log, _] = write_codex_fork(&env);
        let text = env.read(&log);
        env.ingest("logs");
        let before = content(&env);
        scrub(&env, &["--yes"], 0);
        env.ingest("logs");
        env.remove(&log);
        env.run(["restore", PARENT]).ok();
        assert_eq!(env.read(&log), text.replace(&token(), MASK), "{keep}");
        env.ingest("logs");
        assert_eq!(content(&env), before, "{keep}");

        // Until then nothing of it is archived.
        make_old(&log);
        env.run(["secrets", "--restore-backup", "--yes"]).ok();
        env.remove(&log);
        let restored = env.json(["restore", "--no-refresh", PARENT]);
        assert!(!log.exists(), "{restored}");
    }
}

/// A file next to a log, and text in it.
const SIDE_FILES: [(&str, &str); 6] = [
    (
        "kimi/sessions/278a9d733829b651e35513e5e2a98521/b92f5e7c-f6c8-493b-929e-d28196c194bf/context.jsonl",
        "The dashboard says",
    ),
    (
        "claude/projects/-home-mira-code-harbor/9ae82b3a-fd82-48da-afd8-479f58648cbe/subagents/agent-ab20cdd8693cc94e2.meta.json",
        "Find who clones",
    ),
    (
        "grok/sessions/%2Fhome%2Fmira%2Fcode%2Fharbor/01a16469-9b80-7e09-9210-af9b16703813/summary.json",
        "Ordering of the budget",
    ),
    ("cline/data/sessions/1792569917330_k7Rwq/1792569917330_k7Rwq.json", "Changelog entry"),
    ("kiro/sessions/cli/7c1f0c52-3a57-4f0b-9a51-1f2c9e6b40d3.json", "Load test and"),
    ("vibe/logs/session/session_20261027_081500_b4f0a1c7/meta.json", "Slow tests of"),
];

/// The output of a tool of Claude Code, which is in a file of its own.
const TOOL_RESULT: &str = "claude/projects/-home-mira-code-harbor/9ae82b3a-fd82-48da-afd8-479f58648cbe/tool-results/toolu_1.txt";

#[test]
fn files_next_to_a_log_are_listed_and_scrubbed() {
    let env = TestEnv::new();
    env.write_settings("[store]\nkeep_logs = 'exact'\n");
    for agent in ["kimi", "claude", "grok", "cline", "kiro", "vibe"] {
        copy_folder(&samples().join(agent), &env.path("home").join(agent));
    }
    env.write(Path::new("home").join(TOOL_RESULT), "[begin] x [end]\n");
    let mut files = Vec::new();
    for (name, words) in SIDE_FILES.into_iter().chain([(TOOL_RESULT, "[begin]")]) {
        let path = env.path("home").join(name);
        let text = env.read(&path);
        let leaking = text.replacen(words, &format!("{words} {} ", token()), 1);
        assert_ne!(leaking, text, "{name}");
        env.write(&path, &leaking);
        files.push((path, leaking));
    }
    make_all_old(&env.path("home"));
    env.ingest("home");
    let before = content(&env);

    let listed = env.run(["secrets", "--json"]).exits(1);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let tokens = listed["secrets"].list().iter().filter(|one| one["kind"] == "github_token");
    let mut shown: Vec<&str> = tokens.map(|one| one["file"].as_str().expect("a path")).collect();
    let mut wanted: Vec<&str> =
        files.iter().map(|(path, _)| path.to_str().expect("a path")).collect();
    shown.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(shown, wanted, "each under its own name, once");

    let kind = ["--kind", "github_token"];
    let preview = scrub(&env, &kind, 1);
    preview.has(json!({ "remaining": {}, "left_out": [] }));
    let done = scrub(&env, &[&kind[..], &["--yes"]].concat(), 0);
    assert_eq!(done["logs"], preview["logs"]);
    done.has(json!({ "backup": { "logs": files.len() } }));
    for (path, leaking) in &files {
        // A title is also the name of the session.
        assert!(!env.read(path).contains(&token()), "{}", path.display());
        assert!(env.read(path) == leaking.replace(&token(), MASK), "{}", path.display());
    }
    env.ingest("home");
    assert_eq!(content(&env), before);
    env.run(["secrets", "--kind", "github_token"]).ok();

    // The archive has what is there now.
    let main = env.path("home").join(TOOL_RESULT.split_once("/tool-results").expect("a folder").0);
    env.remove(main.with_extension("jsonl"));
    env.remove(main.join("tool-results"));
    env.run(["restore", "9ae82b3a"]).ok();
    assert_eq!(env.read(env.path("home").join(TOOL_RESULT)), format!("[begin] {MASK}  x [end]\n"));

    make_all_old(&env.path("home"));
    env.run(["secrets", "--restore-backup", "--yes"]).ok();
    for (path, leaking) in &files {
        assert!(env.read(path) == *leaking, "{}", path.display());
    }
    env.ingest("home");
    assert_eq!(content(&env), before);
    env.run(["secrets", "--kind", "github_token"]).fails(1);

    // An agent that writes its log may write the others.
    make_all_old(&env.path("home"));
    let log = env.path("home").join(SIDE_FILES[0].0).with_file_name("wire.jsonl");
    let now = File::options().append(true).open(log).expect("opens");
    now.set_modified(SystemTime::now()).expect("sets");
    let done = scrub(&env, &kind, 1);
    done["left_out"].list()[0]["reason"].shows("its log is in use");
}

#[test]
fn a_published_session_is_published_once() {
    let env = machine("pier", "mira", "include = ['**']\ncontent = 'full'");
    write_codex_fork(&env);
    env.ingest("logs");
    push(&env, &env.path("lake"));
    let other = machine("quay", "noor", "include = ['**']\ncontent = 'full'");
    pull(&other, &env.path("lake"));
    let before = content(&other);
    scrub(&env, &["--yes"], 0);
    env.ingest("logs");
    push(&env, &env.path("lake"));
    pull(&other, &env.path("lake"));
    assert_eq!(content(&other), before);
}

#[test]
fn logs_that_are_not_to_be_replaced_are_left_out() {
    let env = TestEnv::new();
    let write = |name: &str| {
        let log = env.log(name).user(&format!("Use {}", token())).write();
        make_old(&log);
        log
    };
    let recent = write("recent");
    File::options()
        .append(true)
        .open(recent)
        .expect("opens")
        .set_modified(SystemTime::now())
        .expect("sets");
    let packed = write("packed");
    let compressed = zstd::encode_all(&*fs::read(&packed).expect("reads"), 3).expect("packs");
    env.write("logs/packed.jsonl.zst", compressed);
    env.remove(packed);
    let mut wanted = vec![("recent", "last minute"), ("packed", "compressed")];
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let linked = write("linked");
        fs::hard_link(&linked, env.path("second-name")).expect("links");
        let readonly = write("readonly");
        fs::set_permissions(readonly, fs::Permissions::from_mode(0o400)).expect("sets the mode");
        let moved = write("moved");
        fs::rename(&moved, env.path("elsewhere.jsonl")).expect("moves");
        symlink(env.path("elsewhere.jsonl"), moved).expect("links");
        wanted.extend([("linked", "hard link"), ("readonly", "read-only")]);
    }
    env.ingest("logs");
    let done = scrub(&env, &["--yes"], 1);
    assert_eq!(done["logs"], json!([]));
    assert!(!env.path("store/log-backup").exists(), "nothing was replaced");
    for (id, reason) in wanted {
        let left_out = done["left_out"].list();
        let log = left_out.iter().find(|log| log["session_id"] == id).expect(id);
        log["reason"].shows(reason);
    }
    env.run(["secrets", "--yes"]).fails(2);
    env.run(["secrets", "--scrub", "--forget-backup"]).fails(2);
}

#[test]
fn what_remains_is_counted() {
    let env = TestEnv::new();
    // The events of a call name its id, which is not replaced.
    let log = env
        .log("leak")
        .user(&format!("Use {}", token()))
        .event(json!({ "type": "tool_call", "tool_name": "Read", "tool_call_id": token(), "input": {} }))
        .write();
    make_old(&log);
    env.ingest("logs");
    let done = scrub(&env, &["--yes"], 1);
    done.has(json!({ "replaced": { "github_token": 1 }, "remaining": { "github_token": 1 } }));
    env.ingest("logs");
    env.run(["secrets"]).fails(1).shows("leak").lacks("ghp_a1");
    let again = env.run(["secrets", "--scrub", "--yes"]).fails(1);
    again.shows("1 secret remains: 1 github_token").lacks("ghp_a1");
}

#[test]
fn a_kind_narrows_what_is_replaced() {
    let env = TestEnv::new();
    env.write_rule("boat", "Kittiwake");
    let log = env.log("leak").user(&format!("Kittiwake, {}", token())).write();
    make_old(&log);
    env.ingest("logs");
    scrub(&env, &["--kind", "boat", "--yes"], 0).has(json!({ "replaced": { "boat": 1 } }));
    env.read(&log).shows([&token(), "[REDACTED:boat]"]).lacks("Kittiwake");
    env.ingest("logs");
    make_old(&log);
    scrub(&env, &["--yes"], 0).has(json!({ "replaced": { "github_token": 1 } }));

    // Step by step, everything comes back.
    env.run(["secrets", "--restore-backup", "--yes"]).ok();
    env.read(&log).shows([&token(), "Kittiwake"]);
    env.ingest("logs");
    assert_eq!(scrub(&env, &[], 1)["replaced"], json!({ "boat": 1, "github_token": 1 }));
}

#[test]
fn the_backup_is_private_and_stays_until_it_is_forgotten() {
    let env = TestEnv::new();
    let log = env.log("leak").user(&format!("Use {}", token())).write();
    make_old(&log);
    let text = env.read(&log);
    env.ingest("logs");
    env.run(["secrets", "--forget-backup"]).fails(2).says("no backup");
    scrub(&env, &["--yes"], 0);
    let run = fs::read_dir(env.path("store/log-backup")).expect("reads").next();
    let run = run.expect("a run").expect("reads").path();
    assert_eq!(env.read(run.join("1-leak.jsonl.bak")), text);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!((mode(&env.path("store/log-backup")), mode(&run)), (0o700, 0o700));
        assert_eq!(mode(&run.join("1-leak.jsonl.bak")), 0o600);
    }
    env.ingest("logs");
    env.ingest("store");
    assert_eq!(env.session_ids(), ["leak"], "a backup is not a log");

    env.append_prompt(&log, "2026-10-30T06:00:00Z", "More");
    make_old(&log);
    let grown = env.read(&log);
    env.run(["secrets", "--restore-backup", "--yes"])
        .fails(1)
        .shows(["changed since", "1-leak.jsonl.bak"]);
    assert_eq!(env.read(&log), grown, "a log that grew is not overwritten");

    env.run(["secrets", "--forget-backup"]).ok().shows("Would remove 1 log");
    assert!(run.exists());
    env.run(["secrets", "--forget-backup", "--yes"]).ok();
    assert!(!env.path("store/log-backup").exists());
}

#[test]
fn a_kill_leaves_the_old_log_or_the_new_one() {
    let mut random = Random(7);
    let mut replaced = 0;
    for round in 0..12 {
        let env = TestEnv::new();
        let mut logs = Vec::new();
        for number in 0..6 {
            let log = env.log(&format!("leak{number}")).user(&format!("Use {}", token())).write();
            make_old(&log);
            logs.push((log.clone(), env.read(&log)));
        }
        env.ingest("logs");
        let before = content(&env);
        let time = Duration::from_millis(100 + round * 30 + random.below(60) as u64);
        env.cli(["secrets", "--scrub", "--yes", "--no-refresh"]).kill_after(time);
        for (log, text) in &logs {
            let now = env.read(log);
            if now != *text {
                assert_eq!(now, text.replace(&token(), MASK));
                replaced += 1;
                let name = log.file_name().expect("a name").to_string_lossy().into_owned();
                let has_backup = walk(&env.path("store/log-backup"))
                    .into_iter()
                    .any(|file| file.to_string_lossy().contains(&name) && env.read(&file) == *text);
                assert!(has_backup, "{name}");
            }
        }
        env.ingest("logs");
        assert_eq!(content(&env), before, "round {round}");
        scrub(&env, &["--yes"], 0);
        assert!(logs.iter().all(|(log, text)| env.read(log) == text.replace(&token(), MASK)));
    }
    assert!(replaced > 0 || cfg!(debug_assertions), "no run was killed late enough");
}

/// The files in a folder, at any depth.
pub(crate) fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}
