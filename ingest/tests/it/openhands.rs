//! Conversations of OpenHands, which are a folder with a file for each event.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};

use crate::memory::{Memory, samples};
use crate::traps::texts;

const CONVERSATION: &str = "openhands/conversations/7d41c8f09b2e4a6583f1d0c5e7a92b64";

const ID: &str = "7d41c8f0-9b2e-4a65-83f1-d0c5e7a92b64";

/// The files of events of the sample, in their order.
fn events() -> Vec<PathBuf> {
    let folder = fs::read_dir(samples().join(CONVERSATION).join("events")).expect("lists");
    let mut events: Vec<_> = folder.map(|entry| entry.expect("entry").path()).collect();
    events.sort();
    events
}

/// Writes the sample with these events below `dir`, as it is after `seconds`.
fn write(dir: &Path, events: &[PathBuf], seconds: u64) -> PathBuf {
    let folder = dir.join(CONVERSATION);
    fs::create_dir_all(folder.join("events")).expect("creates");
    for event in events {
        let name = event.file_name().expect("name");
        fs::copy(event, folder.join("events").join(name)).expect("copies");
    }
    let state = folder.join("base_state.json");
    fs::copy(samples().join(CONVERSATION).join("base_state.json"), &state).expect("copies");
    let time = SystemTime::now() + Duration::from_secs(seconds);
    let file = File::options().append(true).open(&state).expect("opens");
    file.set_modified(time).expect("sets the time");
    folder
}

#[test]
fn a_conversation_that_grows_gives_the_same_as_one_read_at_once() {
    let whole = Memory::default();
    let dir = tempfile::tempdir().expect("tempdir");
    write(dir.path(), &events(), 0);
    whole.ingest(dir.path());

    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    for count in 0..=events().len() {
        write(dir.path(), &events()[..count], count as u64 * 10);
        let report = memory.ingest(dir.path());
        assert_eq!(report.files_unknown, 0, "{count}");
    }
    assert_eq!(memory.ingest(dir.path()).files_opened, 0);
    assert_eq!(texts(&memory), texts(&whole));
    let (now, at_once) = (memory.session(ID), whole.session(ID));
    assert_eq!((now.input_tokens, now.output_tokens), (Some(1300), Some(267)));
    assert_eq!(now.usage_by_model, at_once.usage_by_model);
    assert_eq!(now.abandoned, at_once.abandoned);
}

#[test]
fn an_event_that_is_no_json_costs_only_itself() {
    let dir = tempfile::tempdir().expect("tempdir");
    let folder = write(dir.path(), &events(), 0);
    let third = folder.join("events").join(events()[2].file_name().expect("name"));
    fs::write(&third, "{\"kind\":\"ActionEvent\",\"id\":").expect("writes");
    fs::write(folder.join("events/.eventlog.lock"), "").expect("writes");
    fs::write(folder.join("TASKS.json"), "[]").expect("writes");
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!((report.sessions, report.files_unknown), (1, 0));
    let problems = memory.problems();
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(problem.message.contains("event-00002-"), "{}", problem.message);
    let session = memory.session(ID);
    assert_eq!((session.turns, session.tool_calls), (2, 3));
    // The second call of its response has the counts.
    assert_eq!(session.input_tokens, Some(1300));
}

#[test]
fn a_conversation_with_many_calls_of_the_model_is_known() {
    let dir = tempfile::tempdir().expect("tempdir");
    let state = write(dir.path(), &events(), 0).join("base_state.json");
    let mut content: Json =
        serde_json::from_slice(&fs::read(&state).expect("reads")).expect("JSON");
    let call = |number: usize| json!({ "response_id": format!("other-{number}"), "model": "m", "prompt_tokens": 1 });
    let calls = content["stats"]["usage_to_metrics"]["agent"]["token_usages"].as_array_mut();
    calls.expect("responses").extend((0..2000).map(call));
    fs::write(&state, content.to_string()).expect("writes");
    let memory = Memory::default();
    assert_eq!(memory.ingest(dir.path()).files_unknown, 0);
    assert_eq!(memory.session(ID).input_tokens, Some(3300));
}

#[test]
fn a_state_that_is_cut_changes_nothing_that_was_read() {
    let dir = tempfile::tempdir().expect("tempdir");
    let state = write(dir.path(), &events(), 0).join("base_state.json");
    let memory = Memory::default();
    memory.ingest(dir.path());
    let (before, usage) = (texts(&memory), memory.session(ID).input_tokens);

    let whole = fs::read_to_string(&state).expect("reads");
    fs::write(&state, &whole[..whole.len() / 2]).expect("writes");
    let report = memory.ingest(dir.path());
    assert_eq!((texts(&memory), memory.session(ID).input_tokens), (before.clone(), usage));
    assert_eq!(memory.sessions().len(), 1);
    let problems = report.problem_list;
    let [problem] = problems.as_slice() else { panic!("{problems:?} {:?}", memory.problems()) };
    assert!(problem.message.contains("base_state.json is not valid JSON"), "{}", problem.message);

    // Neither a byte order mark nor a missing id is another session.
    for content in [format!("\u{feff}{whole}"), whole.replacen("\"id\"", "\"no_id\"", 1)] {
        fs::write(&state, content).expect("writes");
        memory.ingest(dir.path());
        assert_eq!(memory.sessions().len(), 1);
        assert_eq!((texts(&memory), memory.session(ID).input_tokens), (before.clone(), usage));
    }
}
