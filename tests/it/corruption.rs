//! Whatever byte of a store changes, every answer is right or says that it is not.
//!
//! Size and modification time of the file stay as they were, so nothing but its content tells.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemas::Timestamp;
use schemas::envelope::{ToolAnswer, Warning, WarningCode};
use schemas::tool::details::DetailArgs;
use schemas::tool::event::EventArgs;
use schemas::tool::list::ListArgs;
use schemas::tool::query::QueryArgs;
use schemas::tool::search::SearchArgs;
use schemas::tool::stats::StatsArgs;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::Store;
use tools::{Call, Tools};

use crate::checks::{Checks, JsonChecks};
use crate::env::{Random, TestEnv, copy_folder, samples};
use crate::rounds;

/// Corruptions of each kind of file in all rounds.
const ROUNDS: usize = 40;

/// One corruption in this many is looked at through SQL, too, which starts a process each time.
const SQL_EVERY: usize = 20;

/// An answer: its data, or the code of its error. Warnings are what an answer says of the store; a
/// sample with an unknown count of tokens is no damage.
#[derive(Debug, PartialEq)]
struct Observed {
    data: Result<Value, String>,
    warnings: usize,
}

fn arguments<T: DeserializeOwned>(arguments: Value) -> T {
    serde_json::from_value(arguments).expect("valid arguments")
}

fn observe<T: serde::Serialize>(answer: Result<ToolAnswer<T>, schemas::ToolError>) -> Observed {
    match answer {
        Ok(answer) => {
            let of_store = |warning: &&Warning| warning.code != WarningCode::UsageIncomplete;
            Observed {
                data: Ok(json!([answer.data, answer.pagination])),
                warnings: answer.warnings.iter().filter(of_store).count(),
            }
        }
        Err(error) => Observed { data: Err(format!("{:?}", error.code)), warnings: 0 },
    }
}

/// Asks a new store, as a new process would, everything that reads its files.
fn ask(store: &Path, event: &str, with_sql: bool) -> Vec<(String, Observed)> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_sessions"));
    let tools = Tools::new(Arc::new(Store::new(store))).with_program(program);
    let call = Call::new(Timestamp(0), &|| false);
    let mut answers = Vec::new();
    for query in [
        "retry",
        "\"retry budget\"",
        "error -retry",
        "/as+ert/ total:exact",
        "tool:Bash",
        "label:kept",
        "zzyzx",
        "why did the test fail sort:relevance",
    ] {
        let args: SearchArgs = arguments(json!({ "query": query }));
        answers.push((query.to_owned(), observe(tools.search_events(&args, &call))));
    }
    let list: ListArgs = arguments(json!({ "limit": 100 }));
    answers.push(("list".to_owned(), observe(tools.list_sessions(&list, &call))));
    let args: EventArgs = arguments(json!({ "event_ids": [event] }));
    answers.push(("event".to_owned(), observe(tools.get_event_details(&args, &call))));
    let session = event.rsplit_once(':').expect("an event id").0;
    for level in ["summary", "full"] {
        let args: DetailArgs = arguments(json!({ "session_id": session, "detail_level": level }));
        answers.push((level.to_owned(), observe(tools.get_session_details(&args, &call))));
    }
    let args: StatsArgs = arguments(json!({ "group_by": ["tool", "error"] }));
    answers.push(("stats".to_owned(), observe(tools.session_stats(&args, &call))));
    if with_sql {
        for sql in [
            "SELECT count(*), sum(length(text)), bit_xor(hash(text)) FROM events",
            "SELECT kind, count(*) FROM problems GROUP BY 1 ORDER BY 1",
            "SELECT bit_xor(hash(s)) FROM sessions s",
            "SELECT session_id, label, note FROM labels ORDER BY ALL",
        ] {
            let args: QueryArgs = arguments(json!({ "sql": sql }));
            answers.push((sql.to_owned(), observe(tools.query_sql(&args, &call))));
        }
    }
    answers
}

/// Changes some bytes of a file, never its size or modification time.
fn corrupt(path: &Path, random: &mut Random) {
    let modified = fs::metadata(path).and_then(|found| found.modified()).expect("a time");
    let mut bytes = fs::read(path).expect("reads");
    let before = bytes.clone();
    while bytes == before {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => {
                // A sector that was never written.
                let end = bytes.len().min(at + 512);
                bytes[at..end].fill(0);
            }
            _ => {
                let end = bytes.len().min(at + 1 + random.below(64));
                bytes[at..end].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            }
        }
    }
    fs::write(path, &bytes).expect("writes");
    let file = fs::File::options().write(true).open(path).expect("opens");
    file.set_modified(modified).expect("sets");
}

/// A store with the samples, labels, and problems, and an event of its largest session.
fn store_with_everything() -> (TestEnv, String) {
    let env = TestEnv::new();
    let logs = env.path("logs");
    copy_folder(&samples(), &logs);
    fs::write(
        logs.join("pi/broken.jsonl"),
        "{\"type\":\"session\",\"version\":3,\"id\":\"5f3a\"}\n{\"type\":\n",
    )
    .expect("writes");
    env.ingest(&logs);
    let rows = env.rows("SELECT session_id FROM events GROUP BY 1 ORDER BY count(*) DESC LIMIT 1");
    let session = rows[0][0].text().to_owned();
    env.run(["label", &session, "--add", "kept", "--note", "for later"]).ok();
    (env, format!("{session}:3"))
}

/// Every file of the store by its name, in the segment with the most bytes where there are several.
fn files(store: &Path) -> BTreeMap<String, PathBuf> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    let segments = fs::read_dir(store.join("segments")).expect("segments");
    let folders = segments.map(|entry| entry.expect("entry").path());
    for folder in folders.chain([store.to_owned()]) {
        for entry in fs::read_dir(folder).expect("lists") {
            let path = entry.expect("entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
            let is_larger = found.get(&name).is_none_or(|known| size(known) < size(&path));
            if path.is_file()
                && !name.ends_with(".lock")
                && !name.ends_with("-shm")
                && size(&path) > 0
                && is_larger
            {
                found.insert(name, path);
            }
        }
    }
    found
}

#[test]
fn every_answer_of_a_corrupted_store_is_right_or_says_that_it_is_not() {
    let (env, event) = store_with_everything();
    let right = ask(&env.store(), &event, true);
    for (question, answer) in &right {
        assert!(answer.data.is_ok() && answer.warnings == 0, "{question}: {answer:?}");
    }
    let files = files(&env.store());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "catalog.db",
            "checksums.bin",
            "events.parquet",
            "labels.json",
            "problems.parquet",
            "rows.copy",
            "skip.idx"
        ]
    );
    let rounds = rounds::rounds(ROUNDS);
    let mut random = Random(29);
    for (name, path) in &files {
        let written = fs::read(path).expect("reads");
        let mut noticed = 0;
        for round in 0..rounds {
            corrupt(path, &mut random);
            let answers = ask(&env.store(), &event, round % SQL_EVERY == 0);
            let mut is_noticed = false;
            for ((question, answer), (_, right)) in answers.iter().zip(&right) {
                let says_so = answer.data.is_err() || answer.warnings > 0;
                is_noticed |= says_so;
                assert!(
                    says_so || answer == right,
                    "{name}, round {round}: {question} was answered wrongly without a word"
                );
            }
            noticed += usize::from(is_noticed);
        }
        fs::write(path, &written).expect("restores");
        // The copy of the rows is read only if the catalog is damaged.
        assert_eq!(noticed > 0, name != "rows.copy", "{name}: {noticed} of {rounds}");
    }
    assert_eq!(ask(&env.store(), &event, true), right);
}

/// A file that is longer or shorter than the manifest says, or missing.
#[test]
fn sizes_are_compared_with_the_manifest() {
    let (env, event) = store_with_everything();
    let files = files(&env.store());
    for name in ["events.parquet", "skip.idx", "checksums.bin", "rows.copy"] {
        let path = &files[name];
        // The copy of the rows is read only if the catalog is damaged.
        let is_read = name != "rows.copy";
        let written = fs::read(path).expect("reads");
        let longer = [&written[..], b"x"].concat();
        for changed in [Some(&longer[..]), Some(&written[..written.len() - 1]), Some(b""), None] {
            match changed {
                Some(bytes) => fs::write(path, bytes).expect("writes"),
                None => fs::remove_file(path).expect("removes"),
            }
            let answers = ask(&env.store(), &event, false);
            assert!(!is_read || answers.iter().any(|(_, answer)| answer.data.is_err()), "{name}");
            for (question, answer) in answers {
                assert!(answer.data.is_err() || answer.warnings > 0, "{name}: {question}");
            }
            for args in [
                &["status"][..],
                &["doctor"],
                &["list"],
                &["query", "SELECT count(*) FROM sessions"],
                &["report", "-o", "-"],
            ] {
                let ran = env.run(args);
                let said = format!("{}{}", ran.stdout, ran.stderr);
                said.shows("damaged");
            }
            let ran = env.run(["search", "retry", "--quiet"]);
            assert_eq!(ran.code, if is_read { 3 } else { 0 }, "{name}: {}", ran.stderr);
            assert!(!is_read || ran.stderr.contains("sessions ingest --verify"), "{name}");
        }
        fs::write(path, &written).expect("restores");
    }
}

#[test]
fn segments_without_a_catalog_are_no_empty_store() {
    let (env, _) = store_with_everything();
    fs::remove_file(env.store().join("catalog.db")).expect("removes");
    for args in [&["search", "retry"][..], &["list"], &["status"], &["query", "SELECT 1"]] {
        env.run(args).fails(3).says(["no catalog.db", "rebuild"]);
    }
    let logs = env.path("logs");
    env.run(["ingest", "--quiet", &logs.to_string_lossy()]).fails(3).says("no catalog.db");
    assert!(env.store().join("segments").is_dir(), "nothing is removed");
    // What the message advises.
    fs::rename(env.store(), env.path("moved")).expect("moves");
    env.ingest(&logs);
    env.run(["search", "retry", "--quiet"]).ok();
}

#[test]
fn a_removed_label_file_is_said_by_every_command() {
    let (env, _) = store_with_everything();
    fs::remove_file(env.store().join("labels.json")).expect("removes");
    for args in [&["search", "label:kept"][..], &["list"], &["status"], &["doctor"]] {
        let answer = env.json(args);
        let warnings = answer["warnings"].to_string();
        warnings.shows(["labels.json", "missing"]);
    }
    let written = fs::read_dir(env.store()).expect("lists").flatten();
    assert!(written.into_iter().all(|entry| entry.file_name() != "labels.json"));
}

#[test]
fn a_label_file_without_its_checksum_is_said() {
    let (env, _) = store_with_everything();
    let path = env.store().join("labels.json");
    let text = env.read(&path);
    let mut labels: Value = serde_json::from_str(&text).expect("JSON");
    labels.as_object_mut().expect("an object").remove("checksum").expect("a checksum");
    env.write(&path, labels.to_string());
    for args in [&["list"][..], &["status"]] {
        let answer = env.json(args);
        answer["warnings"].to_string().shows("its checksum differs");
    }
}

#[test]
fn an_emptied_label_file_is_said() {
    let (env, _) = store_with_everything();
    env.write("store/labels.json", "");
    let answer = env.json(["search", "label:kept"]);
    answer["warnings"].to_string().shows("labels.json");
    assert!(env.json(["list"])["warnings"].to_string().contains("labels.json"));
}
