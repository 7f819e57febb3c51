//! `sessions forget`: the rows go from every file of the store, and their logs stay out.

use std::fs;
use std::path::Path;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::checks::JsonChecks;
use crate::env::{TestEnv, copy_folder, files_below, paths_in};
use crate::log::Log;

/// Words that only the forgotten session has: in its prompt, its title, a command and a problem.
const SECRET: &str = "zebrafinch";

/// Writes a log in which prompts and answers take turns. Their ids follow from their texts.
fn write_log(log: Log, texts: &[&str]) {
    let events = texts.iter().enumerate().map(|(at, text)| {
        json!({
            "type": if at % 2 == 0 { "user" } else { "message" }, "text": text,
            "timestamp": format!("2026-11-01T10:{at:02}:00Z"),
            "id": format!("{:08x}-0000-4000-8000-000000000000", text.len() * 1000 + at),
        })
    });
    log.events(events).write();
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
    write_log(env.log("early").cwd("/home/mira/code/harbor"), &["Lights", "On"]);
    env.ingest("logs");
    let texts = ["The zebrafinch invoice", "Zebrafinch paid", "Again zebrafinch"];
    write_log(env.log("secret").cwd("/home/mira/clients/acme"), &texts);
    env.ingest("logs");
    env.append_prompt("logs/early.jsonl", "2026-11-02T09:00:00Z", "More lights");
    env.append_prompt("logs/secret.jsonl", "2026-11-02T09:00:00Z", "A late zebrafinch");
    write_log(env.log("later").cwd("/home/mira/code/pier"), &["Pier", "Built"]);
    env.ingest("logs");
    env.run(["label", "secret", "--add", "zebrafinch-label"]).ok();
    env.run(["label", "early", "--add", "kept"]).ok();
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

    env.json(["forget", "secret", "--yes"]).has(json!({"is_done": true, "events": 4}));
    assert_eq!(files_with(&env, SECRET), [""; 0]);
    assert_eq!(env.rows(OTHERS), before, "the other sessions are as before");
    env.run(["search", SECRET]).fails(1);
    env.run(["list", "--label", "kept"]).shows("early");
    env.json(["status"]).has(json!({"pending": 0, "files": {"excluded": 1}}));
    env.run(["ingest", "--quiet", "--verify", "logs"]).ok();
}

/// What `forget` writes first says what is left to do.
#[test]
fn the_next_ingest_completes_a_killed_forget() {
    let env = store_with_secret();
    let before = env.rows(OTHERS);
    let (store, copy) = (env.store(), env.path("copy"));
    copy_folder(&store, &copy);
    env.run(["forget", "secret", "--yes"]).ok();
    for path in paths_in(&store) {
        let name = path.file_name().expect("a name");
        if path.is_file() && name.to_string_lossy().starts_with("forgotten") {
            fs::copy(&path, copy.join(name)).expect("copies");
        }
    }
    fs::remove_dir_all(&store).expect("removes");
    fs::rename(&copy, &store).expect("renames");
    env.run(["show", "secret"]).ok();

    env.ingest("logs").has(json!({"files_excluded": 1}));
    assert_eq!(files_with(&env, SECRET), [""; 0]);
    assert_eq!(env.rows(OTHERS), before, "the other sessions are as before");
    env.run(["list", "--label", "kept"]).shows("early");
    // An undone one comes back, and stays.
    env.run(["forget", "--undo", "secret"]).ok();
    env.ingest("logs");
    env.run(["show", "secret"]).ok();
    env.ingest("logs");
    env.run(["show", "secret"]).ok();
}

/// The names of the segments of the store.
fn segment_names(env: &TestEnv) -> Vec<String> {
    let segments = paths_in(&env.store().join("segments")).into_iter();
    segments.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
}

/// Only segments that share a session or a file with those of the forgotten session are written again.
#[test]
fn segments_without_the_forgotten_session_stay_as_they_are() {
    let env = TestEnv::new();
    for (name, text) in [("secret", "Zebrafinch"), ("early", "Lights"), ("later", "Pier")] {
        write_log(env.log(name).cwd("/home/mira/code"), &[text, &format!("{text} done")]);
        env.ingest("logs");
    }
    let before = segment_names(&env);
    assert_eq!(before.len(), 3, "{before:?}");
    env.run(["forget", "secret", "--yes"]).shows("Forgot 1 session, with 2 events.");
    let after = segment_names(&env);
    assert!(before[1..].iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    assert!(!after.contains(&before[0]), "{before:?} {after:?}");
}

#[test]
fn a_forgotten_log_is_not_read_again_until_undone() {
    let env = store_with_secret();
    env.run(["forget", "secret", "--yes"]).ok();
    env.ingest("logs").has(json!({"files_excluded": 1}));
    env.append_prompt("logs/secret.jsonl", "2026-11-02T09:00:00Z", "Another zebrafinch");
    env.ingest("logs").has(json!({"lines": 0}));
    // A copy of the log elsewhere is the same log.
    env.write("logs/moved/renamed.jsonl", env.read("logs/secret.jsonl"));
    env.ingest("logs");
    assert_eq!(files_with(&env, SECRET), [""; 0]);
    env.run(["show", "secret"]).fails(1);

    env.json(["forget", "--undo", "sec"]).has(json!({"undone": ["secret"]}));
    env.remove("logs/moved");
    env.ingest("logs");
    env.run(["search", "\"Another zebrafinch\""]).ok();
    // Nothing is forgotten any more.
    env.run(["forget", "--undo"]).fails(1);
}

#[test]
fn nothing_changes_without_yes() {
    let env = store_with_secret();
    let generation = env.json(["status"])["generation"].clone();
    env.run(["forget", "secret"]).shows("secret").says("--yes");
    assert_eq!(env.json(["status"])["generation"], generation);
    env.run(["search", SECRET]).ok();
    env.run(["forget"]).fails(2).says("--project");
}

#[test]
fn sessions_are_selected_by_every_criterion() {
    let env = store_with_secret();
    env.write_settings("[ingest]\nexclude = ['/home/mira/clients/**']\n");
    for (flags, sessions) in [
        (&["--project", "acme"][..], &["secret"][..]),
        (&["--query", "zebrafinch"], &["secret"]),
        (&["--provider", "generic"], &["early", "later", "secret"]),
        (&["--before", "2026-11-02"], &["later"]),
        (&["--provider", "generic", "--query", "lights"], &["early"]),
        (&["--excluded"], &["secret"]),
    ] {
        let data = env.json([&["forget"], flags].concat());
        assert_eq!(data["sessions"].each("session_id"), sessions);
    }
    env.run(["forget", "--provider", "claude"]).fails(1);
}

#[test]
fn subagents_go_with_their_session_and_copies_are_named() {
    let env = TestEnv::new();
    write_log(env.log("main"), &["The zebrafinch plan", "Planned"]);
    let child = |id: &str, relation: &str| {
        env.log(id).header("parent_session_id", "main").header("relation", relation)
    };
    let helper = child("helper", "subagent_of").header("agent_id", "a1");
    write_log(helper, &["Look at the zebrafinch", "Looked"]);
    let fork = child("fork", "forked_from");
    write_log(fork, &["The zebrafinch plan", "Planned", "Another way"]);
    env.ingest("logs");

    let data = env.json(["forget", "main"]);
    assert_eq!(data["sessions"].each("session_id"), ["helper", "main"]);
    assert_eq!(data["copies"].each("session_id"), ["fork"]);
    let data = env.json(["forget", "main", "--with-copies", "--yes"]);
    assert_eq!(data["sessions"].each("session_id"), ["fork", "helper", "main"]);
    assert_eq!(files_with(&env, SECRET), [""; 0]);
    env.ingest("logs").has(json!({"files_excluded": 3}));
}

#[test]
fn rows_that_were_read_again_are_not_revived() {
    let env = store_with_secret();
    // Rewritten, so that the store has superseded rows of it.
    write_log(env.log("early").cwd("/home/mira/code/harbor"), &["Dark", "Off"]);
    env.ingest("logs");
    let before = env.rows(OTHERS);
    env.run(["forget", "secret", "--yes"]).ok();
    assert_eq!(env.rows(OTHERS), before);
    write_log(env.log("next").cwd("/home/mira/code/harbor"), &["Next", "Done"]);
    env.ingest("logs");
    assert_eq!(env.number("SELECT count(*) FROM events WHERE session_id = 'early'"), 2);
}

/// A file that is removed must not bring sessions back without a word.
#[test]
fn a_lost_list_of_forgotten_sessions_is_noticed() {
    let env = TestEnv::new();
    write_log(env.log("one"), &["forget the zebrafinch"]);
    write_log(env.log("two"), &["keep this"]);
    env.ingest("logs");
    env.run(["forget", "--yes", "one"]).ok();
    let list = "store/forgotten.json";
    let content = env.read(list);
    env.remove(list);
    env.run(["ingest", "logs"]).fails(3).says(["missing", "{}"]);
    env.run(["search", SECRET]).fails(1);

    env.write(list, content);
    env.ingest("logs").has(json!({"files_new": 0}));
    env.write(list, "{}");
    env.ingest("logs");
    // The user wanted it back.
    env.run(["search", SECRET]).ok();
}

/// What an engine loaded of a lake may hold the session too, and is loaded again when it is needed.
#[test]
fn no_cached_lake_holds_a_forgotten_session() {
    let env = store_with_secret();
    let cache = env.path(".cache/sessions");
    copy_folder(&env.store(), &cache.join("lake-0123456789abcdef"));
    assert!(files_below(&cache).iter().any(|path| file_has(path, SECRET)));
    env.run(["forget", "secret"]).ok();
    assert!(!files_below(&cache).is_empty(), "without --yes nothing is removed");
    env.run(["forget", "secret", "--yes"]).ok();
    assert!(files_below(&cache).iter().all(|path| path.ends_with("lakes.lock")));
}
