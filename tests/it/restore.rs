//! The archive of logs, and `sessions restore`: what was deleted comes back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::checks::{Checks as _, JsonChecks};
use crate::crash::{compare, content};
use crate::env::{Random, TestEnv, contents_below, copy_folder, files_below, samples};
use crate::log::claude_record;
use crate::rounds::rounds;

const EXACT: &str = "[store]\nkeep_logs = 'exact'\n";
const MASKED: &str = "[store]\nkeep_logs = 'masked'\n";

/// A token in the shape of one of GitHub's, and what is shown in its place.
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const MASK: &str = "[REDACTED:github_token]";

/// Files of the samples that do not come back: sessions in databases or in many files, indexes that
/// several sessions share, and what is not a log.
const NOT_RESTORED: [&str; 17] = [
    // What comes back of databases are rows; see `sessions_of_databases_come_back_row_by_row`.
    ".db",
    ".sqlite",
    ".vscdb",
    "opencode/storage/",
    "openhands/",
    "cursor-cli/",
    // A compressed log comes back plain.
    "harbor-window-fork/",
    "chatgpt/",
    "claudeai/",
    "geminiapps/",
    "index.jsonl",
    "sessions.json",
    "kimi.json",
    "workspace.json",
    "broken/",
    ".md",
    "MANIFEST.toml",
];

/// A home with the sample sessions, which are ingested.
fn home_with_samples(settings: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write_settings(settings);
    copy_folder(&samples(), &env.path("home"));
    fs::remove_file(env.path("home/.gitattributes")).expect("removes");
    env.ingest("home");
    env
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name")
}

/// The files that a restore brings back.
fn restorable(files: &BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_restored = |path: &Path| {
        let name = path.to_string_lossy();
        !NOT_RESTORED.iter().any(|part| name.contains(part))
    };
    files
        .iter()
        .filter(|(path, _)| is_restored(path))
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect()
}

/// Removes the files that can be restored, and the folders that are empty then.
fn delete_logs(env: &TestEnv, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for path in files.keys() {
        env.remove(env.path("home").join(path));
    }
}

#[test]
fn a_home_whose_logs_were_deleted_comes_back_whole() {
    let env = home_with_samples(EXACT);
    let logs = restorable(&contents_below(&env.path("home")));
    let before = content(&env);
    delete_logs(&env, &logs);
    env.ingest("home");
    let data = env.json(["restore", "--all", "--lost"]);
    let back = restorable(&contents_below(&env.path("home")));
    let missing: Vec<_> = logs.keys().filter(|path| !back.contains_key(*path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for (path, bytes) in &logs {
        assert_eq!(&back[path], bytes, "{}", path.display());
    }
    assert!(data["restored"].as_u64().is_some_and(|count| count > 30), "{data}");

    // It is not read a second time.
    env.ingest("home").has(json!({"files_new": 0}));
    compare(&before, &content(&env), 0);
    env.run(["restore", "--all", "--lost"]).shows("nothing to restore");
}

#[test]
fn masked_logs_come_back_with_nothing_changed_but_secrets() {
    let env = home_with_samples(MASKED);
    let logs = restorable(&contents_below(&env.path("home")));
    let before = env.rows(TEXTS);
    delete_logs(&env, &logs);
    env.ingest("home");
    env.run(["restore", "--all", "--lost"]).ok();
    let back = restorable(&contents_below(&env.path("home")));
    let mut masked = 0;
    for (path, bytes) in &logs {
        if &back[path] == bytes {
            continue;
        }
        masked += 1;
        check_masked(bytes, &back[path], path);
    }
    assert!(masked > 0, "some sample has a secret");
    env.ingest("home").has(json!({"files_new": 0}));
    assert_eq!(env.rows(TEXTS), before);
}

/// The events of all sessions, and which count. Their places in the logs change with the masks.
const TEXTS: &str = "SELECT session_id, event_index, event_type, is_replay, input_tokens, hash(text) \
    FROM events ORDER BY ALL";

/// Checks that a log equals another one but for placeholders of secrets.
fn check_masked(log: &[u8], masked: &[u8], path: &Path) {
    let (log, masked) = (String::from_utf8_lossy(log), String::from_utf8_lossy(masked));
    let mut rest = &*log;
    for (at, part) in masked.split("[REDACTED:").enumerate() {
        let part = if at == 0 { part } else { part.split_once(']').expect("a placeholder").1 };
        let found = rest.find(part).unwrap_or_else(|| panic!("{}: {part}", path.display()));
        assert!(at > 0 || found == 0, "{}", path.display());
        rest = &rest[found + part.len()..];
    }
    assert!(rest.is_empty(), "{}", path.display());
    for (one, other) in log.lines().zip(masked.lines()) {
        let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
        assert_eq!(is_json(one), is_json(other), "{}: {other}", path.display());
    }
}

/// The path of a log of Claude Code in the home of a test.
const CLAUDE_LOG: &str =
    ".claude/projects/-home-mira-pier/3f9a0c11-2222-4333-8444-555566667777.jsonl";
const CLAUDE_ID: &str = "3f9a0c11-2222-4333-8444-555566667777";

/// A record of a log of Claude Code.
fn record(number: u32, text: &str) -> String {
    format!("{}\n", claude_record(CLAUDE_ID, "/home/mira/pier", number, "user", text))
}

#[test]
fn a_log_that_grows_in_pieces_is_archived_as_at_once() {
    for settings in [EXACT, MASKED] {
        let env = TestEnv::new();
        env.write_settings(settings);
        let long = "Long lines compress well. ".repeat(2000);
        let mut whole = String::new();
        for number in 0..40 {
            let text = format!("{number}: {TOKEN} {}", if number % 5 == 0 { &long } else { "" });
            let record = record(number, &text);
            // The last line is not complete at some times.
            let cut = if number % 7 == 3 { record.len() / 2 } else { record.len() };
            env.append(CLAUDE_LOG, &record[..cut]);
            env.run(["ingest", "--quiet"]).ok();
            env.append(CLAUDE_LOG, &record[cut..]);
            whole.push_str(&record);
        }
        env.run(["ingest", "--quiet"]).ok();
        env.remove(CLAUDE_LOG);
        env.run(["restore", CLAUDE_ID]).shows("restored");
        let wanted = if settings == EXACT { whole } else { whole.replace(TOKEN, MASK) };
        assert!(env.read(CLAUDE_LOG) == wanted, "{settings}");
    }
}

#[test]
fn a_log_written_anew_replaces_what_was_archived() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    env.write(CLAUDE_LOG, record(0, "First") + &record(1, "Second"));
    env.run(["ingest", "--quiet"]).ok();
    let other = record(0, "Third") + &record(1, "Fourth") + &record(2, "Fifth");
    env.write(CLAUDE_LOG, &other);
    env.run(["ingest", "--quiet"]).ok();
    env.remove(CLAUDE_LOG);
    env.run(["restore", CLAUDE_ID]).ok();
    assert_eq!(env.read(CLAUDE_LOG), other);
}

#[test]
fn a_log_that_exists_stays_as_it_is() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    let log = record(0, "Paint the lighthouse");
    env.write(CLAUDE_LOG, &log);
    env.run(["ingest", "--quiet"]).ok();
    env.run(["restore", CLAUDE_ID]).shows("nothing to restore");
    env.write(CLAUDE_LOG, "other");
    env.run(["restore", CLAUDE_ID]).shows("nothing to restore");
    assert_eq!(env.read(CLAUDE_LOG), "other");

    // In another home there is none yet, but once.
    env.run(["restore", CLAUDE_ID, "--to", "elsewhere", "--dry-run"]).shows("Nothing was written");
    assert!(!env.path("elsewhere").exists());
    env.run(["restore", CLAUDE_ID, "--to", "elsewhere"]).shows("Restored 1 session");
    let copy = Path::new("elsewhere").join(CLAUDE_LOG);
    assert_eq!(env.read(&copy), log);
    env.write(&copy, "changed");
    env.run(["restore", CLAUDE_ID, "--to", "elsewhere"]).shows("nothing to restore");
    assert_eq!(env.read(&copy), "changed");
    assert_eq!(files_below(&env.path("elsewhere")).len(), 1, "no copy is left");
}

#[cfg(unix)]
#[test]
fn what_is_restored_is_for_its_owner_only() {
    use std::os::unix::fs::MetadataExt as _;
    let env = TestEnv::new();
    env.write_settings(EXACT);
    env.write(CLAUDE_LOG, record(0, "Paint the lighthouse"));
    let modified = fs::metadata(env.path(CLAUDE_LOG)).and_then(|found| found.modified());
    env.run(["ingest", "--quiet"]).ok();
    env.remove(".claude");
    env.run(["restore", CLAUDE_ID]).ok();
    let mode = |path: &Path| fs::metadata(path).expect("found").mode() & 0o777;
    assert_eq!(mode(&env.path(CLAUDE_LOG)), 0o600);
    assert_eq!(mode(&env.path(".claude/projects")), 0o700);
    assert_eq!(mode(&env.store().join("archive.db")), 0o600);
    let restored = fs::metadata(env.path(CLAUDE_LOG)).and_then(|found| found.modified());
    let micros = |time: std::io::Result<std::time::SystemTime>| {
        time.expect("a time").duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_micros()
    };
    assert_eq!(micros(restored), micros(modified));
}

#[test]
fn an_old_log_is_restored_so_that_its_agent_does_not_delete_it_again() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    let log = env.write(CLAUDE_LOG, record(0, "Paint the lighthouse"));
    let old = std::time::SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    fs::File::options().write(true).open(&log).expect("opens").set_modified(old).expect("sets");
    env.run(["ingest", "--quiet"]).ok();
    env.remove(CLAUDE_LOG);
    env.run(["restore", CLAUDE_ID]).ok();
    let age = fs::metadata(&log).expect("there").modified().expect("a time").elapsed();
    assert!(age.is_ok_and(|age| age < Duration::from_secs(3600)));
    env.json(["ingest"]).has(json!({"events": 0, "files_new": 0}));
}

#[test]
fn what_cannot_be_restored_says_why() {
    let env = TestEnv::new();
    env.write(CLAUDE_LOG, record(0, "Paint the lighthouse"));
    env.run(["ingest", "--quiet"]).ok();
    assert!(!env.store().join("archive.db").exists(), "nothing is kept by default");
    env.remove(CLAUDE_LOG);
    env.run(["ingest", "--quiet"]).ok();
    env.run(["restore", CLAUDE_ID]).fails(1).shows(["not archived", "keep_logs"]);
    env.run(["restore", "--all", "--lost"]).fails(0).shows("1 could not be restored");
    env.run(["restore", "no-such-session"]).fails(1).says("no-such-session");
    env.run(["restore"]).fails(2);
    env.run(["forget", CLAUDE_ID, "--yes"]).ok();
    env.run(["restore", CLAUDE_ID]).fails(1).says(["was forgotten", "nothing of it is kept"]);
}

/// The words in the archive, compressed or not.
pub(crate) fn archive_has(env: &TestEnv, word: &str) -> bool {
    let store = env.store();
    ["archive.db", "archive.db-wal"].iter().any(|name| {
        let bytes = fs::read(store.join(name)).unwrap_or_default();
        let has = |bytes: &[u8]| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        let frames = bytes.windows(4).enumerate().filter(|(_, part)| *part == magic);
        has(&bytes)
            || frames.map(|(at, _)| at).any(|at| {
                let mut text = Vec::new();
                let mut decoder = zstd::Decoder::new(&bytes[at..]).expect("a decoder");
                let _ = std::io::copy(&mut decoder, &mut text);
                has(&text)
            })
    })
}

#[test]
fn forget_leaves_no_byte_in_the_archive() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    env.write(CLAUDE_LOG, record(0, "The zebrafinch invoice"));
    env.log("other").user("Lights").write();
    env.run(["ingest", "--quiet", ".claude", "logs"]).ok();
    env.append(CLAUDE_LOG, &record(1, "Late zebrafinch"));
    env.run(["ingest", "--quiet", ".claude", "logs"]).ok();
    assert!(archive_has(&env, "zebrafinch") && archive_has(&env, "Lights"));
    env.run(["forget", CLAUDE_ID, "--yes"]).ok();
    assert!(!archive_has(&env, "zebrafinch") && archive_has(&env, "Lights"));
    env.append(CLAUDE_LOG, &record(2, "Again zebrafinch"));
    env.run(["ingest", "--quiet", ".claude", "logs"]).ok();
    assert!(!archive_has(&env, "zebrafinch"));
    env.remove("logs/other.jsonl");
    env.run(["restore", "other"]).ok();
}

#[test]
fn a_log_with_copies_of_a_forgotten_session_is_not_archived() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    env.write(CLAUDE_LOG, record(0, "The zebrafinch invoice") + &record(1, "Zebrafinch paid"));
    let fork = CLAUDE_LOG.replace("3f9a0c11", "4f9a0c11");
    let forked = (record(0, "The zebrafinch invoice") + &record(1, "Zebrafinch paid"))
        .replace("3f9a0c11", "4f9a0c11")
        + &record(9, "Build the pier").replace("3f9a0c11", "4f9a0c11");
    env.run(["ingest", "--quiet"]).ok();
    env.write(&fork, &forked);
    env.run(["ingest", "--quiet"]).ok();
    env.run(["forget", CLAUDE_ID, "--yes"]).ok();
    assert!(!archive_has(&env, "zebrafinch") && !archive_has(&env, "Zebrafinch"));
    env.run(["ingest", "--quiet"]).ok();
    env.append(&fork, &record(10, "Paint it").replace("3f9a0c11", "4f9a0c11"));
    env.run(["ingest", "--quiet"]).ok();
    assert!(!archive_has(&env, "zebrafinch") && !archive_has(&env, "Zebrafinch"));
}

#[test]
fn the_retention_takes_the_log_with_the_texts() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    env.log("old").at("2025-01-01T10:00:00Z").user("The zebrafinch invoice").write();
    env.log("new").user("Lights").write();
    env.ingest("logs");
    assert!(archive_has(&env, "zebrafinch"));
    env.write_settings("[store]\nkeep_logs = 'exact'\nkeep = 'usage after 2026-06-01'\n");
    env.run(["compact"]).ok();
    assert!(!archive_has(&env, "zebrafinch") && archive_has(&env, "Lights"));
    env.ingest("logs");
    assert!(!archive_has(&env, "zebrafinch"));
    env.remove("logs/old.jsonl");
    env.ingest("logs");
    env.run(["restore", "old"]).fails(1).shows("The retention dropped its texts");
}

#[test]
fn an_excluded_log_is_not_archived() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    env.log("acme").cwd("/home/mira/acme").user("The zebrafinch invoice").write();
    env.log("pier").cwd("/home/mira/pier").user("Lights").write();
    let excluding = format!("{EXACT}[ingest]\nexclude = ['/home/mira/acme']\n");
    env.write_settings(&excluding);
    env.ingest("logs");
    assert!(!archive_has(&env, "zebrafinch") && archive_has(&env, "Lights"));
    env.write_settings(EXACT);
    env.ingest("logs");
    assert!(archive_has(&env, "zebrafinch"));
    env.write_settings(&excluding);
    env.run(["forget", "--excluded", "--yes"]).ok();
    assert!(!archive_has(&env, "zebrafinch") && archive_has(&env, "Lights"));
}

#[test]
fn the_setting_decides_about_logs_that_are_gone_too() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    env.write(CLAUDE_LOG, record(0, &format!("Use {TOKEN} here")));
    env.run(["ingest"]).shows("byte for byte");
    env.append(CLAUDE_LOG, &record(1, "More"));
    env.run(["ingest"]).lacks("byte for byte");
    env.run(["doctor"]).shows("byte for byte");
    env.run(["config"]).shows("store.keep_logs");
    env.remove(CLAUDE_LOG);
    env.run(["ingest", "--quiet"]).ok();
    assert!(archive_has(&env, TOKEN));
    env.json(["status"]).has(json!({"lost_logs": {"claude": {"sessions": 1, "archived": 1}}}));

    env.write_settings(MASKED);
    env.run(["ingest", "--quiet"]).ok();
    assert!(!archive_has(&env, TOKEN) && archive_has(&env, MASK));
    env.write_rule("boat", "here");
    env.run(["restore", CLAUDE_ID]).shows("secrets masked");
    assert!(env.read(CLAUDE_LOG).contains(&format!("Use {MASK} [REDACTED:boat]")));

    env.write_settings("[store]\nkeep_logs = 'no'\n");
    env.run(["ingest", "--quiet"]).ok();
    assert!(env.store().join("archive.db").exists(), "what is archived stays");
    env.run(["compact"]).says("The archive of logs was removed");
    assert!(!env.store().join("archive.db").exists());
}

#[test]
fn a_killed_ingest_loses_and_doubles_nothing_in_the_archive() {
    let calm = home_with_samples(EXACT);
    let logs = restorable(&contents_below(&calm.path("home")));
    let start = Instant::now();
    let env = TestEnv::new();
    env.write_settings(EXACT);
    copy_folder(&samples(), &env.path("home"));
    env.ingest("home");
    let whole = start.elapsed();
    let mut random = Random(11);
    for _ in 0..rounds(20) {
        env.remove("store");
        env.cli(["ingest", "--quiet", "home"]).kill_within(whole, &mut random);
        env.ingest("home");
        delete_logs(&env, &logs);
        env.run(["restore", "--all"]).ok();
        let back = restorable(&contents_below(&env.path("home")));
        for (path, bytes) in &logs {
            assert!(back.get(path) == Some(bytes), "{}", path.display());
        }
    }
}

#[test]
fn a_corrupted_archive_gives_no_wrong_log_and_is_repaired() {
    let env = home_with_samples(EXACT);
    let files = contents_below(&env.path("home"));
    let logs = restorable(&files);
    let archive = env.store().join("archive.db");
    let written = fs::read(&archive).expect("reads");
    let mut random = Random(5);
    let mut noticed = 0;
    for round in 0..rounds(60) {
        let mut bytes = written.clone();
        for _ in 0..1 + random.below(8) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&archive, &bytes).expect("writes");
        let to = format!("elsewhere-{round}");
        let ran = env.run(["restore", "--all", "--to", &to]);
        noticed += usize::from(ran.code != 0 || ran.stdout.contains("failed"));
        for (path, found) in restorable(&contents_below(&env.path(&to).join("home"))) {
            assert!(files.get(&path) == Some(&found), "{}", path.display());
        }
    }
    assert!(noticed > 0, "some damage is noticed");

    // What is whole stays, and the rest is archived again, wherever the damage is.
    let places = 12;
    for place in 1..=places {
        let at = written.len() * place / (places + 1);
        let mut bytes = written.clone();
        bytes[at..at + 64].fill(0);
        fs::write(&archive, &bytes).expect("writes");
        env.run(["ingest", "--quiet", "--verify", "home"]).ok();
        delete_logs(&env, &logs);
        env.run(["restore", "--all"]).ok();
        assert!(restorable(&contents_below(&env.path("home"))) == logs, "damage at {at}");
    }
}

/// The database of OpenCode stays when its last session is deleted.
#[test]
fn a_session_that_was_deleted_from_a_database_has_no_log() {
    let env = TestEnv::new();
    let place = env.path(".local/share/opencode/opencode.db");
    fs::create_dir_all(place.parent().expect("a folder")).expect("creates");
    fs::copy(samples().join("opencode/opencode.db"), &place).expect("copies");
    env.run(["ingest", "--quiet"]).ok();
    let database = rusqlite::Connection::open(&place).expect("opens");
    for table in ["session", "message", "part", "session_v2", "session_message"] {
        database.execute(&format!("DELETE FROM {table}"), []).expect("deletes");
    }
    let gone = |env: &TestEnv, flags: &[&str]| {
        let data = env.json([&["restore", "--all", "--dry-run"], flags].concat());
        assert!(data["sessions"].list().iter().all(|one| one["outcome"] != "log_exists"), "{data}");
    };
    gone(&env, &["--no-refresh"]);
    env.run(["ingest", "--quiet"]).ok();
    gone(&env, &[]);
    let lost = env.number("SELECT count(*) FROM sessions WHERE NOT source_gone");
    assert_eq!(lost, 0);
}

/// The logs as the agents wrote them, but for secrets, also where they are kept byte for byte.
#[test]
fn logs_are_exported_with_their_secrets_masked() {
    let env = home_with_samples(EXACT);
    env.write(CLAUDE_LOG, record(0, &format!("Use {TOKEN} here")));
    env.run(["ingest", "--quiet"]).ok();
    env.json(["export", "logs", "-o", "out"]).has(json!({ "format": "logs" }));
    let out = env.path("out");
    let exported = contents_below(&out);
    assert!(exported.len() > 80, "{}", exported.len());
    let log = exported.iter().find(|(path, _)| CLAUDE_LOG.ends_with(file_name(path)));
    let (path, content) = log.expect("the log");
    assert!(path.starts_with("claude"), "{path:?}");
    assert_eq!(String::from_utf8_lossy(content), record(0, &format!("Use {MASK} here")));

    // What was forgotten is not there any more.
    let id = env.texts(&format!("SELECT session_id FROM events WHERE text = 'Use {MASK} here'"));
    env.run(["forget", &id[0], "--yes"]).ok();
    env.run(["export", "logs", "-o", "again"]).ok();
    let again = contents_below(&env.path("again"));
    assert!(!again.keys().any(|path| CLAUDE_LOG.ends_with(file_name(path))));
    env.run(["export", "logs"]).fails(2).says("logs needs a folder: -o FOLDER");
}

/// The whole folder of an agent goes, and with it the folder that is looked for.
#[test]
fn a_folder_of_logs_that_was_removed_comes_back() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    let samples = samples().join("claude");
    copy_folder(&samples, &env.path(".claude"));
    env.run(["ingest", "--quiet"]).ok();
    let logs = restorable(&contents_below(&env.path(".claude")));
    fs::remove_dir_all(env.path(".claude")).expect("removes");
    env.run(["ingest", "--quiet"]).ok();
    assert_eq!(env.number("SELECT count(*) FROM sessions WHERE NOT source_gone"), 0);
    env.run(["restore", "--all", "--lost"]).ok();
    assert!(restorable(&contents_below(&env.path(".claude"))) == logs);
    env.run(["ingest", "--quiet"]).ok();
    assert_eq!(env.number("SELECT count(*) FROM sessions WHERE source_gone"), 0);
}

#[test]
fn a_database_that_was_removed_takes_its_logs_with_it() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    let place = env.path(".local/share/opencode/opencode.db");
    let empty = env.path(".local/share/opencode/storage/session/empty");
    fs::create_dir_all(empty).expect("creates");
    fs::copy(samples().join("opencode/opencode.db"), &place).expect("copies");
    env.run(["ingest", "--quiet"]).ok();
    let logs = rows_of(&place);
    fs::remove_file(&place).expect("removes");
    env.run(["ingest", "--quiet"]).ok();
    assert_eq!(env.number("SELECT count(*) FROM sessions WHERE NOT source_gone"), 0);
    env.json(["restore", "--all", "--lost"])["sessions"][0]["reason"].shows("Start OpenCode once");

    // OpenCode creates a new one.
    fs::copy(samples().join("opencode/opencode.db"), &place).expect("copies");
    let database = rusqlite::Connection::open(&place).expect("opens");
    for table in ["part", "message", "session", "session_v2", "session_message"] {
        database.execute(&format!("DELETE FROM {table}"), []).expect("deletes");
    }
    database.close().expect("closes");
    env.run(["restore", "--all", "--lost"]).ok();
    assert!(rows_of(&place) == logs);
    env.run(["ingest", "--quiet"]).ok();
    assert_eq!(env.number("SELECT count(*) FROM sessions WHERE source_gone"), 0);
}

/// Continue shows the sessions of its list, from which it removes those that it deletes.
#[test]
fn a_restored_session_is_in_the_list_of_its_agent_again() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    copy_folder(&samples().join("continue"), &env.path(".continue"));
    env.run(["ingest", "--quiet"]).ok();
    let before = content(&env);
    let name = ".continue/sessions/sessions.json";
    let entries =
        |text: &str| serde_json::from_str::<Vec<serde_json::Value>>(text).expect("a list");
    let listed = entries(&env.read(name));
    let other = r#"[{"sessionId":"other"}]"#;
    env.write(name, other);
    let log = ".continue/sessions/e5c81f07-2d94-4b6a-9f30-a7d1c6e8b254.json";
    env.remove(log);
    env.run(["restore", "--all", "--lost", "--dry-run"]).ok();
    assert_eq!(env.read(name), other);
    env.run(["restore", "--all", "--lost"]).ok();
    let now = entries(&env.read(name));
    assert_eq!(now[0], entries(other)[0]);
    assert_eq!(now[1..], listed);
    assert_eq!(env.read(format!("{name}.bak")), other);
    env.run(["ingest", "--quiet"]).ok();
    assert_eq!(content(&env), before);

    // One that is not a list stays as it is.
    env.remove(log);
    env.write(name, "{");
    let data = env.json(["restore", "--all", "--lost"]);
    data["sessions"][0]["reason"].shows(["does not list it", "sessions.json"]);
    assert_eq!(env.read(name), "{");
    assert!(env.path(log).exists());
}

/// Gemini CLI goes by the last record of a log, whatever the time of the file.
#[test]
fn a_log_that_its_agent_would_delete_again_is_restored_with_a_warning() {
    let env = TestEnv::new();
    env.write_settings(EXACT);
    copy_folder(&samples().join("gemini"), &env.path(".gemini"));
    let logs = contents_below(&env.path(".gemini"));
    let log = logs.keys().find(|path| file_name(path).starts_with("session-")).expect("a log");
    let log = env.path(".gemini").join(log);
    let file = fs::File::options().append(true).open(&log).expect("opens");
    let day = std::time::Duration::from_secs(86_400);
    file.set_modified(std::time::SystemTime::now() - day * 40).expect("sets the time");
    env.run(["ingest", "--quiet"]).ok();
    fs::remove_file(&log).expect("removes");
    env.run(["ingest", "--quiet"]).ok();
    let restore = || {
        let data = env.json(["restore", "--all", "--lost", "--dry-run"]);
        assert_eq!(data["restored"], 1, "{data}");
        data["sessions"][0]["reason"].clone()
    };
    restore().shows(["older than 30 days", "general.sessionRetention.maxAge"]);
    env.write(".gemini/settings.json", r#"{"general":{"sessionRetention":{"maxAge":"12m"}}}"#);
    assert_eq!(restore(), serde_json::Value::Null);
}

/// The databases of the samples, at the places of their agents, and the tables of their sessions.
pub(crate) const DATABASES: [(&str, &str, &[&str]); 9] = [
    (
        "opencode/opencode.db",
        "opencode.db",
        &["part", "message", "session", "session_v2", "session_message"],
    ),
    ("goose/sessions/sessions.db", "goose/sessions/sessions.db", &["messages", "sessions"]),
    ("crush/crush.db", "crush.db", &["messages", "sessions"]),
    ("zed/threads/threads.db", "threads/threads.db", &["threads"]),
    ("zcode/cli/db/db.sqlite", "cli/db/db.sqlite", &["part", "message", "session"]),
    ("devin/cli/sessions.db", "cli/sessions.db", &["message_nodes", "subagent_heads", "sessions"]),
    ("forge/.forge.db", ".forge.db", &["conversations"]),
    (
        "cursoride/globalStorage/state.vscdb",
        "globalStorage/state.vscdb",
        &["cursorDiskKV", "composerHeaders"],
    ),
    ("warp/warp.sqlite", "warp.sqlite", &["agent_tasks", "ai_queries", "agent_conversations"]),
];

/// All cells of all tables of a database, in no order.
pub(crate) fn rows_of(place: &Path) -> BTreeMap<String, Vec<String>> {
    let database = rusqlite::Connection::open(place).expect("opens");
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut names = database.prepare(names).expect("prepares");
    let names = names.query_map([], |row| row.get::<_, String>(0)).expect("lists");
    let mut tables = BTreeMap::new();
    for name in names.map(|name| name.expect("a name")) {
        let mut rows = database.prepare(&format!("SELECT * FROM \"{name}\"")).expect("prepares");
        let columns = rows.column_count();
        let rows = rows.query_map([], |row| {
            let cells = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at));
            Ok(format!("{:?}", cells.collect::<Result<Vec<_>, _>>()?))
        });
        let mut rows: Vec<String> = rows.expect("reads").map(|row| row.expect("a row")).collect();
        rows.sort();
        tables.insert(name, rows);
    }
    tables
}

#[test]
fn sessions_of_databases_come_back_row_by_row() {
    for (sample, name, tables) in DATABASES {
        let env = TestEnv::new();
        env.write_settings(EXACT);
        let place = env.path("home").join(name);
        fs::create_dir_all(place.parent().expect("a folder")).expect("creates");
        fs::copy(samples().join(sample), &place).expect("copies");
        let database = rusqlite::Connection::open(&place).expect("opens");
        if name == "opencode.db" {
            // What OpenCode has besides: a row that sessions share, and other rows of a session.
            let others = "CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT NOT NULL);
                INSERT INTO project SELECT DISTINCT project_id, 'x' FROM session;
                CREATE TABLE todo (session_id TEXT, at REAL, packed BLOB);
                INSERT INTO todo SELECT id, 0.5, x'00ff80' FROM session;
                CREATE TABLE event_sequence (aggregate_id TEXT PRIMARY KEY, seq INTEGER);
                INSERT INTO event_sequence SELECT id, 1 FROM session;
                CREATE TABLE event (id TEXT PRIMARY KEY, data TEXT, aggregate_id TEXT NOT NULL
                    REFERENCES event_sequence(aggregate_id));
                INSERT INTO event SELECT id, data, session_id FROM part;";
            database.execute_batch(others).expect("changes");
        }
        if name == "crush.db" {
            let triggers = "CREATE TRIGGER counted AFTER INSERT ON messages BEGIN UPDATE sessions
                    SET message_count = message_count + 1 WHERE id = new.session_id; END;
                CREATE TRIGGER touched AFTER UPDATE ON sessions BEGIN UPDATE sessions
                    SET updated_at = 1 WHERE id = new.id; END;";
            database.execute_batch(triggers).expect("changes");
        }
        if name.ends_with("state.vscdb") {
            // A draft is not a session.
            let draft = "DELETE FROM cursorDiskKV WHERE key LIKE '%:00000000-%'";
            database.execute_batch(draft).expect("changes");
        }
        if name == ".forge.db" {
            // Nor is a conversation that has not begun.
            let empty = "DELETE FROM conversations WHERE ifnull(context, '') = ''";
            database.execute_batch(empty).expect("changes");
        }
        env.ingest("home");
        let (before, logs) = (content(&env), rows_of(&place));
        assert!(env.number("SELECT count(*) FROM sessions") > 0, "{name}");

        let others: &[&str] = if name == "opencode.db" {
            &["todo", "project", "event", "event_sequence"]
        } else {
            &[]
        };
        for table in others.iter().chain(tables) {
            database.execute(&format!("DELETE FROM {table}"), []).expect("deletes");
        }
        env.ingest("home");
        let lost = "SELECT count(*) FROM sessions WHERE source_gone";
        assert_eq!(env.number(lost), env.number("SELECT count(*) FROM sessions"), "{name}");
        // The agent has it open.
        #[cfg(target_os = "linux")]
        {
            let mut held = std::process::Command::new("sleep");
            let file = fs::File::open(&place).expect("opens");
            let mut held = held.arg("60").stdin(Stdio::from(file)).spawn().expect("spawns");
            let data = env.json(["restore", "--all", "--lost"]);
            held.kill().expect("ends");
            held.wait().expect("waits");
            assert_eq!(data["restored"], 0, "{name}");
            data["sessions"][0]["reason"].shows("a process has its database open");
        }
        database.close().expect("closes");
        let emptied = fs::read(&place).expect("reads");
        let dry = env.json(["restore", "--all", "--lost", "--dry-run"]);
        assert!(fs::read(&place).expect("reads") == emptied, "{name}");
        let data = env.json(["restore", "--all", "--lost"]);
        assert_eq!(data["not_restored"], 0, "{name}: {data}");
        assert_eq!(dry["sessions"], data["sessions"], "{name}");
        assert!(rows_of(&place) == logs, "{name}");
        env.ingest("home");
        assert_eq!(content(&env), before, "{name}");
        // What is there stays.
        let again = env.json(["restore", "--all"]);
        assert_eq!(again["restored"], 0, "{name}");
        assert_eq!(rows_of(&place), logs, "{name}");
    }
}

#[test]
fn rows_that_do_not_fit_are_not_put_back() {
    let env = TestEnv::new();
    env.write_settings(MASKED);
    let place = env.path("home/opencode.db");
    fs::create_dir_all(env.path("home")).expect("creates");
    fs::copy(samples().join("opencode/opencode.db"), &place).expect("copies");
    {
        let database = rusqlite::Connection::open(&place).expect("opens");
        let secret = format!(r#"{{"type":"text","text":"Use {TOKEN}."}}"#);
        database.execute("UPDATE part SET data = ?1", [secret]).expect("changes");
        let todo = "CREATE TABLE todo (session_id TEXT, text TEXT);
            INSERT INTO todo SELECT id, 'Moor.' FROM session UNION SELECT id, '' FROM session_v2";
        database.execute_batch(todo).expect("changes");
    }
    env.ingest("home");
    assert!(!archive_has(&env, TOKEN) && archive_has(&env, MASK));
    let fails = |change: &dyn Fn(&rusqlite::Connection), word: &str| {
        let database = rusqlite::Connection::open(&place).expect("opens");
        for table in ["part", "message", "session", "session_v2", "session_message", "todo"] {
            database.execute(&format!("DELETE FROM {table}"), []).expect("deletes");
        }
        change(&database);
        database.close().expect("closes");
        let before = rows_of(&place);
        let dry = env.json(["restore", "--all", "--lost", "--dry-run"]);
        assert_eq!(rows_of(&place), before, "{word}");
        let data = env.json(["restore", "--all", "--lost"]);
        assert_eq!(data["restored"], 0, "{word}: {data}");
        data["sessions"][0]["reason"].shows(word);
        assert_eq!(rows_of(&place), before, "{word}");
        assert_eq!(dry["sessions"], data["sessions"], "{word}");
    };
    let run = |sql: &'static str| {
        move |db: &rusqlite::Connection| db.execute_batch(sql).expect("changes")
    };
    fails(&run("ALTER TABLE todo RENAME COLUMN text TO content"), "no column text");
    fails(
        &run("ALTER TABLE todo RENAME COLUMN content TO text;
            CREATE TRIGGER refuse BEFORE INSERT ON todo BEGIN SELECT RAISE(ABORT, 'no'); END"),
        "is refused: no",
    );
    fails(&run("DROP TRIGGER refuse; DROP TABLE todo"), "no table todo");
    fs::remove_file(&place).expect("removes");
    let data = env.json(["restore", "--all", "--lost"]);
    data["sessions"][0]["reason"].shows("Start OpenCode once");
}

/// A home with a copy of a sample database that is changed by SQL and then ingested.
fn home_with_database(sample: &str, settings: &str, sql: &str) -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    env.write_settings(settings);
    let place = env.path("home").join(sample);
    fs::create_dir_all(place.parent().expect("a folder")).expect("creates");
    fs::copy(samples().join(sample), &place).expect("copies");
    change_database(&place, sql);
    env.ingest("home");
    (env, place)
}

fn change_database(place: &Path, sql: &str) {
    rusqlite::Connection::open(place).expect("opens").execute_batch(sql).expect("changes");
}

/// Agents leave some rows of a session that they delete, and change them.
#[test]
fn rows_that_an_agent_left_stay_as_they_are() {
    let (env, place) = home_with_database("cursoride/globalStorage/state.vscdb", EXACT, "");
    let deleted =
        "DELETE FROM composerHeaders; DELETE FROM cursorDiskKV WHERE key LIKE 'composerData:%';
        UPDATE cursorDiskKV SET value = 'changed' WHERE key LIKE 'bubbleId:%'";
    change_database(&place, deleted);
    let left = rows_of(&place);
    env.ingest("home");
    let data = env.json(["restore", "--all", "--lost"]);
    assert!(data["restored"].as_u64() > Some(0), "{data}");
    let now = rows_of(&place);
    for row in left.values().flatten() {
        assert!(now.values().flatten().any(|found| found == row), "{row}");
    }
    assert!(now.values().flatten().any(|row| row.contains("composerData:")));
}

#[test]
fn a_key_of_another_session_is_not_taken() {
    let (env, place) = home_with_database("goose/sessions/sessions.db", EXACT, "");
    change_database(
        &place,
        "PRAGMA foreign_keys = OFF; DELETE FROM usage_ledger; DELETE FROM sessions;
            UPDATE messages SET session_id = 'another'",
    );
    let left = rows_of(&place);
    env.ingest("home");
    let data = env.json(["restore", "--all", "--lost"]);
    data["sessions"][0]["reason"].shows("has a key that another row has");
    assert_eq!(rows_of(&place), left);
}

/// Secrets are found by the name of their column, whatever the type of the cell, and in text that the
/// database has compressed, also if it was archived before it was to be masked.
#[test]
fn secrets_are_found_in_cells_of_any_type() {
    let extra = "CREATE TABLE extra (session_id TEXT, password BLOB);
        INSERT INTO extra SELECT id, CAST('zz82kfhgQ01mmPq' AS BLOB) FROM sessions";
    let (env, _) = home_with_database("goose/sessions/sessions.db", MASKED, extra);
    assert!(
        env.number("SELECT count(*) FROM sessions") > 0 && !archive_has(&env, "zz82kfhgQ01mmPq")
    );

    let (env, place) = home_with_database("zed/threads/threads.db", EXACT, "");
    {
        let database = rusqlite::Connection::open(&place).expect("opens");
        let text = format!(
            r#"{{"version":"0.3.0","title":"Moor","messages":[{{"User":{{"id":"u1","content":[{{"Text":"Use {TOKEN}."}}]}}}}]}}"#
        );
        let packed = zstd::bulk::compress(text.as_bytes(), 3).expect("packs");
        let sql = "UPDATE threads SET data_type = 'zstd', data = ?1";
        database.execute(sql, [packed]).expect("changes");
    }
    env.ingest("home");
    change_database(&place, "DELETE FROM threads");
    env.write_settings(MASKED);
    env.ingest("home");
    assert!(env.json(["restore", "--all", "--lost"])["restored"].as_u64() > Some(0));
    let database = rusqlite::Connection::open(&place).expect("opens");
    let mut cells = database.prepare("SELECT data FROM threads").expect("prepares");
    let cells = cells.query_map([], |row| row.get::<_, Vec<u8>>(0)).expect("reads");
    for cell in cells {
        let text = zstd::decode_all(&cell.expect("a cell")[..]).expect("unpacks");
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains(MASK) && !text.contains(TOKEN), "{text}");
    }
}

/// What a killed process wrote is taken back, and the session restored.
#[test]
fn a_change_that_was_killed_is_taken_back_before_a_restore() {
    let (env, place) = home_with_database("goose/sessions/sessions.db", EXACT, "");
    let rows = rows_of(&place);
    change_database(&place, "DELETE FROM messages; DELETE FROM usage_ledger; DELETE FROM sessions");
    {
        // The files as they are in the middle of a transaction.
        let database = rusqlite::Connection::open(&place).expect("opens");
        let change = "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN;
            CREATE TABLE filler (text TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO filler SELECT hex(randomblob(500)) FROM n;";
        database.execute_batch(change).expect("changes");
        for end in ["", "-journal"] {
            let file = format!("{}{end}", place.display());
            fs::copy(&file, format!("{file}.copy")).expect("copies");
        }
        database.execute_batch("ROLLBACK").expect("ends");
    }
    for end in ["", "-journal"] {
        let file = format!("{}{end}", place.display());
        fs::rename(format!("{file}.copy"), &file).expect("moves");
    }
    let data = env.json(["restore", "--all"]);
    assert_eq!(data["not_restored"], 0, "{data}");
    assert!(rows_of(&place) == rows);

    fs::write(&place, [7; 3000]).expect("writes");
    let data = env.json(["restore", "--all"]);
    data["sessions"][0]["reason"].shows("Whether its log exists is not known");
}
