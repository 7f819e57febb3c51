//! The machine and the user of sessions: names from the settings, filters, groups, and stores of
//! versions that had no such columns.

use std::fs::{self, File};
use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::env::TestEnv;

/// Takes the columns of machine and user out of every segment, as earlier versions wrote them.
fn make_older(store: &Path) {
    let path = store.join("manifest.json");
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(&path).expect("reads")).expect("JSON");
    // Earlier versions wrote no checksum.
    manifest.as_object_mut().expect("an object").remove("xxh3");
    for segment in manifest["segments"].as_array_mut().expect("segments") {
        let number = segment["number"].as_i64().expect("a number");
        let folder = store.join("segments").join(format!("{number:010}"));
        let _ = fs::remove_file(folder.join("sessions.briefs"));
        let _ = fs::remove_file(folder.join("sessions.rows"));
        let files = segment["files"].as_array_mut().expect("files");
        files.retain(|file| file["table"] != "session_rows" && file["table"] != "session_briefs");
        for file in files.iter_mut().filter(|file| file["table"] == "sessions") {
            let table = folder.join("sessions.parquet");
            without_origin(&table);
            let bytes = fs::read(&table).expect("reads");
            file["bytes"] = json!(bytes.len());
            file["xxh3"] = json!(format!("{:016x}", xxh3_64(&bytes)));
        }
    }
    fs::write(&path, serde_json::to_vec(&manifest).expect("JSON")).expect("writes");
}

fn without_origin(table: &Path) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(table).expect("opens"))
        .expect("Parquet")
        .build()
        .expect("reads");
    let batches: Vec<_> = reader.map(|batch| batch.expect("reads")).collect();
    let schema = batches[0].schema();
    let kept: Vec<usize> = (0..schema.fields().len())
        .filter(|at| !["machine", "user_name"].contains(&schema.field(*at).name().as_str()))
        .collect();
    assert_eq!(kept.len() + 2, schema.fields().len());
    let first = batches[0].project(&kept).expect("projects");
    let mut writer =
        ArrowWriter::try_new(File::create(table).expect("creates"), first.schema(), None)
            .expect("begins");
    for batch in &batches {
        writer.write(&batch.project(&kept).expect("projects")).expect("writes");
    }
    writer.close().expect("ends");
}

fn check_names(env: &TestEnv, machine: &str, user: &str) {
    let rows = env.rows("SELECT DISTINCT machine, user_name FROM sessions");
    assert_eq!(rows, [[json!(machine), json!(user)]]);
    let found = env.json(&["list", "--machine", &machine.to_uppercase(), "--user", user]);
    assert!(found["data"]["sessions"].as_array().is_some_and(|found| !found.is_empty()), "{found}");
    // What is true of every session is not repeated for each.
    assert_eq!(found["data"]["sessions"][0].get("machine"), None, "{found}");
    let stats = env.json(&["stats", "--by", "machine,user"]);
    let groups = stats["data"]["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{stats}");
    assert_eq!(groups[0]["group"], json!({ "machine": machine, "user": user }));
}

#[test]
fn sessions_have_the_names_of_the_settings() {
    let env = TestEnv::with_samples();
    check_names(&env, "pier", "mira");
    let settings = env.path(".config/sessions");
    fs::create_dir_all(&settings).expect("creates");
    let text = "[identity]\nmachine = \"quay\"\nuser = \"tom\"\n";
    fs::write(settings.join("settings.toml"), text).expect("writes");
    check_names(&env, "quay", "tom");

    let settings = env.json(&["config"]);
    let value = |name: &str| {
        let all = settings.as_array().expect("settings");
        let found = all.iter().find(|setting| setting["name"] == name).expect("the setting");
        (found["value"].clone(), found["source"].clone())
    };
    let (machine, source) = value("identity.machine");
    assert_eq!(machine, "quay");
    assert!(source.as_str().is_some_and(|source| source.ends_with("settings.toml")), "{source}");
    assert_eq!(value("identity.user").0, "tom");
}

#[test]
fn filters_by_machine_and_user_say_why_nothing_matches() {
    let env = TestEnv::with_samples();
    for query in ["the machine:pier user:mir", "the -machine:quay"] {
        let found = env.json(&["search", query]);
        assert!(found["metadata"]["results_returned"].as_u64() > Some(0), "{query}: {found}");
    }
    let found = env.json(&["search", "the machine:pierr"]);
    assert!(found["hint"].as_str().is_some_and(|hint| hint.contains("'pier'")), "{found}");
    let none = env.json(&["search", "the", "--user", "mirra"]);
    assert!(none["hint"].as_str().is_some_and(|hint| hint.contains("'mira'")), "{none}");
    let listed = env.json(&["list", "--machine", "quay"]);
    assert_eq!(listed["metadata"]["results_returned"], 0, "{listed}");
    assert!(listed["hint"].as_str().is_some_and(|hint| hint.contains("machine 'quay'")));
    let stats = env.json(&["stats", "--by", "provider", "--user", "tom"]);
    assert_eq!(stats["data"]["groups"], json!([]), "{stats}");
}

#[test]
fn a_store_of_an_earlier_version_opens_with_the_names_of_this_machine() {
    let env = TestEnv::with_samples();
    let count = env.rows("SELECT count(*), sum(events) FROM sessions");
    make_older(&env.store());
    check_names(&env, "pier", "mira");
    assert_eq!(env.rows("SELECT count(*), sum(events) FROM sessions"), count);
    // Segments that are written from now on have the columns.
    let log = env.path("more.jsonl");
    let text = "{\"format\":\"sessions\",\"version\":1,\"session_id\":\"more\",\"cwd\":\"/code/harbor\"}\n{\"type\":\"user\",\"timestamp\":\"2026-10-29T06:00:00Z\",\"text\":\"Moor the boat.\"}\n";
    fs::write(&log, text).expect("writes");
    env.run(&["ingest", "--quiet", &log.to_string_lossy()]).ok();
    check_names(&env, "pier", "mira");
    let rows = env.rows("SELECT count(*) FROM sessions");
    assert_eq!(rows[0][0].as_i64(), count[0][0].as_i64().map(|count| count + 1));
}
