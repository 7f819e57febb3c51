//! `sessions forget`: the rows go from every file of the store, and their logs stay out.

use std::fs;
use std::path::{Path, PathBuf};

use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::env::{TestEnv, copy_folder};

/// Words that only the forgotten session has: in its prompt, its title, a command and a problem.
const SECRET: &str = "zebrafinch";

fn write_log(env: &TestEnv, name: &str, header: &Value, texts: &[&str]) -> PathBuf {
    let logs = env.path("logs");
    fs::create_dir_all(&logs).expect("creates");
    let path = logs.join(format!("{name}.jsonl"));
    let mut head = json!({"format": "sessions", "version": 1, "session_id": name});
    for (key, value) in header.as_object().expect("an object") {
        head[key] = value.clone();
    }
    let mut lines = vec![head.to_string()];
    for (at, text) in texts.iter().enumerate() {
        let kind = if at % 2 == 0 { "user" } else { "message" };
        let time = format!("2026-11-01T10:{at:02}:00Z");
        let id = format!("{:08x}-0000-4000-8000-000000000000", text.len() * 1000 + at);
        lines.push(json!({"type": kind, "timestamp": time, "text": text, "id": id}).to_string());
    }
    fs::write(&path, lines.join("\n") + "\n").expect("writes");
    path
}

fn append(path: &Path, text: &str) {
    let mut log = fs::read_to_string(path).expect("reads");
    log += &json!({"type": "user", "timestamp": "2026-11-02T09:00:00Z", "text": text}).to_string();
    log.push('\n');
    fs::write(path, log).expect("writes");
}

fn ingest(env: &TestEnv) -> Value {
    env.json(&["ingest", &env.path("logs").to_string_lossy()])
}

/// All files below a folder.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("lists") {
        let path = entry.expect("entry").path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

/// True if a file has the word in its bytes, or in a cell if it is Parquet. Case does not matter.
fn file_has(path: &Path, word: &str) -> bool {
    let bytes = fs::read(path).expect("reads");
    if String::from_utf8_lossy(&bytes).to_lowercase().contains(word) {
        return true;
    }
    if path.ends_with("rows.copy") {
        let plain = zstd::decode_all(&bytes[8..]).expect("decompresses");
        return String::from_utf8_lossy(&plain).to_lowercase().contains(word);
    }
    if path.extension().is_none_or(|ending| ending != "parquet") {
        return false;
    }
    let file = fs::File::open(path).expect("opens");
    // A damaged file has no cells to read.
    let Ok(reader) = ParquetRecordBatchReaderBuilder::try_new(file) else { return false };
    let reader = reader.build();
    for batch in reader.expect("reads") {
        let batch = batch.expect("a batch");
        for column in batch.columns() {
            // Times have no words, and their zone is not known here.
            let options = FormatOptions::default();
            let Ok(cells) = ArrayFormatter::try_new(column, &options) else { continue };
            for row in 0..batch.num_rows() {
                if cells.value(row).to_string().to_lowercase().contains(word) {
                    return true;
                }
            }
        }
    }
    false
}

/// The names of the store's files that have a word.
pub(crate) fn files_with(env: &TestEnv, word: &str) -> Vec<String> {
    let files = files_below(&env.store());
    let mut names: Vec<String> = files
        .iter()
        .filter(|path| file_has(path, word))
        .map(|path| path.file_name().expect("name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// A store of several segments: one session to forget, and others before and after it.
fn store_with_secret() -> TestEnv {
    let env = TestEnv::new();
    let early =
        write_log(&env, "early", &json!({"cwd": "/home/mira/code/harbor"}), &["Lights", "On"]);
    ingest(&env);
    let header = json!({"cwd": "/home/mira/clients/acme"});
    let texts = ["The zebrafinch invoice", "Zebrafinch paid", "Again zebrafinch"];
    let secret = write_log(&env, "secret", &header, &texts);
    ingest(&env);
    append(&early, "More lights");
    append(&secret, "A late zebrafinch");
    write_log(&env, "later", &json!({"cwd": "/home/mira/code/pier"}), &["Pier", "Built"]);
    ingest(&env);
    env.run(&["label", "secret", "--add", "zebrafinch-label"]).ok();
    env.run(&["label", "early", "--add", "kept"]).ok();
    env
}

const OTHERS: &str = "SELECT session_id, event_index, text, timestamp::VARCHAR FROM events WHERE session_id <> 'secret' ORDER BY ALL";

#[test]
fn no_file_of_the_store_has_a_forgotten_word() {
    let env = store_with_secret();
    let before = env.rows(OTHERS);
    let found = files_with(&env, SECRET);
    for name in ["events.parquet", "catalog.db", "rows.copy", "labels.json"] {
        assert!(found.iter().any(|file| file == name), "the test can see it in {name}: {found:?}");
    }

    let data = env.json(&["forget", "secret", "--yes"]);
    assert_eq!((&data["is_done"], &data["events"]), (&json!(true), &json!(4)), "{data}");
    assert_eq!(files_with(&env, SECRET), Vec::<String>::new());
    assert_eq!(env.rows(OTHERS), before, "the other sessions are as before");
    assert_eq!(env.run(&["search", SECRET]).code, 1);
    assert!(env.run(&["list", "--label", "kept"]).ok().contains("early"));
    let status = env.json(&["status"]);
    assert_eq!((&status["pending"], &status["files"]["excluded"]), (&json!(0), &json!(1)));
    env.run(&["ingest", "--quiet", "--verify", &env.path("logs").to_string_lossy()]).ok();
}

/// The names of the segments of the store.
fn segment_names(env: &TestEnv) -> Vec<String> {
    let segments = fs::read_dir(env.store().join("segments")).expect("lists");
    let names = segments.map(|entry| entry.expect("entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Only segments that share a session or a file with those of the forgotten session are written again.
#[test]
fn segments_without_the_forgotten_session_stay_as_they_are() {
    let env = TestEnv::new();
    for (name, text) in [("secret", "Zebrafinch"), ("early", "Lights"), ("later", "Pier")] {
        write_log(&env, name, &json!({"cwd": "/home/mira/code"}), &[text, &format!("{text} done")]);
        ingest(&env);
    }
    let before = segment_names(&env);
    assert_eq!(before.len(), 3, "{before:?}");
    let text = env.run(&["forget", "secret", "--yes"]).ok();
    assert!(text.contains("Forgot 1 session, with 2 events."), "{text}");
    let after = segment_names(&env);
    assert!(before[1..].iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    assert!(!after.contains(&before[0]), "{before:?} {after:?}");
}

#[test]
fn a_forgotten_log_is_not_read_again_until_undone() {
    let env = store_with_secret();
    env.run(&["forget", "secret", "--yes"]).ok();
    let log = env.path("logs/secret.jsonl");
    assert_eq!(ingest(&env)["files_excluded"], 1);
    append(&log, "Another zebrafinch");
    assert_eq!(ingest(&env)["lines"], 0);
    // A copy of the log elsewhere is the same log.
    fs::create_dir_all(env.path("logs/moved")).expect("creates");
    fs::copy(&log, env.path("logs/moved/renamed.jsonl")).expect("copies");
    ingest(&env);
    assert_eq!(files_with(&env, SECRET), Vec::<String>::new());
    assert_eq!(env.run(&["show", "secret"]).code, 1);

    let undone = env.json(&["forget", "--undo", "sec"]);
    assert_eq!(undone["undone"], json!(["secret"]));
    fs::remove_dir_all(env.path("logs/moved")).expect("removes");
    ingest(&env);
    env.run(&["search", "\"Another zebrafinch\""]).ok();
    assert_eq!(env.run(&["forget", "--undo"]).code, 1, "nothing is forgotten any more");
}

#[test]
fn nothing_changes_without_yes() {
    let env = store_with_secret();
    let generation = env.json(&["status"])["generation"].clone();
    let text = env.run(&["forget", "secret"]).ok();
    assert!(text.contains("secret") && text.contains("--yes"), "{text}");
    assert_eq!(env.json(&["status"])["generation"], generation);
    env.run(&["search", SECRET]).ok();
    let error = env.run(&["forget"]).fails(2);
    assert!(error.contains("--project"), "{error}");
}

#[test]
fn sessions_are_selected_by_every_criterion() {
    let env = store_with_secret();
    let selected = |args: &[&str]| {
        let mut words = vec!["forget"];
        words.extend(args);
        let data = env.json(&words);
        let sessions = data["sessions"].as_array().cloned().unwrap_or_default();
        let ids = sessions.iter().map(|one| one["session_id"].as_str().unwrap_or("").to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(selected(&["--project", "acme"]), ["secret"]);
    assert_eq!(selected(&["--query", "zebrafinch"]), ["secret"]);
    assert_eq!(selected(&["--provider", "generic"]), ["early", "later", "secret"]);
    assert_eq!(selected(&["--before", "2026-11-02"]), ["later"]);
    assert_eq!(selected(&["--provider", "generic", "--query", "lights"]), ["early"]);
    assert_eq!(env.run(&["forget", "--provider", "claude"]).code, 1);

    fs::create_dir_all(env.path(".config/sessions")).expect("creates");
    let settings = "[ingest]\nexclude = ['/home/mira/clients/**']\n";
    fs::write(env.path(".config/sessions/settings.toml"), settings).expect("writes");
    assert_eq!(selected(&["--excluded"]), ["secret"]);
}

#[test]
fn subagents_go_with_their_session_and_copies_are_named() {
    let env = TestEnv::new();
    write_log(&env, "main", &json!({}), &["The zebrafinch plan", "Planned"]);
    let of_main = json!({"parent_session_id": "main", "agent_id": "a1", "relation": "subagent_of"});
    write_log(&env, "helper", &of_main, &["Look at the zebrafinch", "Looked"]);
    let fork = json!({"parent_session_id": "main", "relation": "forked_from"});
    write_log(&env, "fork", &fork, &["The zebrafinch plan", "Planned", "Another way"]);
    ingest(&env);

    let data = env.json(&["forget", "main"]);
    let ids = |list: &Value| -> Vec<String> {
        let entries = list.as_array().expect("a list").iter();
        entries.map(|entry| entry["session_id"].as_str().expect("id").to_owned()).collect()
    };
    assert_eq!(ids(&data["sessions"]), ["helper", "main"], "{data}");
    assert_eq!(ids(&data["copies"]), ["fork"], "{data}");
    let data = env.json(&["forget", "main", "--with-copies", "--yes"]);
    assert_eq!(ids(&data["sessions"]), ["fork", "helper", "main"], "{data}");
    assert_eq!(files_with(&env, SECRET), Vec::<String>::new());
    assert_eq!(ingest(&env)["files_excluded"], 3);
}

#[test]
fn rows_that_were_read_again_are_not_revived() {
    let env = store_with_secret();
    // Rewritten, so that the store has superseded rows of it.
    let header = json!({"cwd": "/home/mira/code/harbor"});
    write_log(&env, "early", &header, &["Dark", "Off"]);
    ingest(&env);
    let before = env.rows(OTHERS);
    env.run(&["forget", "secret", "--yes"]).ok();
    assert_eq!(env.rows(OTHERS), before);
    write_log(&env, "next", &header, &["Next", "Done"]);
    ingest(&env);
    assert_eq!(env.rows("SELECT count(*) FROM events WHERE session_id = 'early'"), [[json!(2)]]);
}

/// A file that is removed must not bring sessions back without a word.
#[test]
fn a_lost_list_of_forgotten_sessions_is_noticed() {
    let env = TestEnv::new();
    write_log(&env, "one", &json!({}), &["forget the zebrafinch"]);
    write_log(&env, "two", &json!({}), &["keep this"]);
    ingest(&env);
    env.run(&["forget", "--yes", "one"]).ok();
    let list = env.path("store/forgotten.json");
    let content = fs::read(&list).expect("reads");
    fs::remove_file(&list).expect("removes");
    let logs = env.path("logs").to_string_lossy().into_owned();
    let refused = env.run(&["ingest", &logs]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("missing") && refused.stderr.contains("{}"),
        "{}",
        refused.stderr
    );
    assert_eq!(env.run(&["search", SECRET]).code, 1);

    fs::write(&list, content).expect("writes");
    assert_eq!(ingest(&env)["files_new"], 0);
    fs::write(&list, "{}").expect("writes");
    ingest(&env);
    assert_eq!(env.run(&["search", SECRET]).code, 0, "the user wanted it back");
}

/// What an engine loaded of a lake may hold the session too, and is loaded again when it is needed.
#[test]
fn no_cached_lake_holds_a_forgotten_session() {
    let env = store_with_secret();
    let cache = env.path(".cache/sessions");
    copy_folder(&env.store(), &cache.join("lake-0123456789abcdef"));
    assert!(files_below(&cache).iter().any(|path| file_has(path, SECRET)));
    env.run(&["forget", "secret"]).ok();
    assert!(!files_below(&cache).is_empty(), "without --yes nothing is removed");
    env.run(&["forget", "secret", "--yes"]).ok();
    assert!(files_below(&cache).iter().all(|path| path.ends_with("lakes.lock")));
}
