//! Exports of chat services: one file with many conversations, of which a later one has more.

use std::fs;
use std::path::{Path, PathBuf};

use schemas::problem::{Problem, ProblemKind};
use serde_json::{Value as Json, json};

use crate::memory::{Memory, samples};

/// Adds a prompt to an export.
type AddPrompt = fn(&mut Vec<Json>);

/// The samples, and how a later export of each differs.
const EXPORTS: &[(&str, AddPrompt)] = &[
    ("claudeai/conversations.json", |export| {
        let conversation = &mut export[0];
        let messages = conversation["chat_messages"].as_array_mut().expect("messages");
        let last = messages.last().map(|message| message["uuid"].clone());
        messages.push(json!({
            "uuid": "019f1c20-3a51-7c04-a6be-11d0c2f58eff", "sender": "human",
            "text": "One more thing.", "created_at": "2026-11-01T08:00:00Z",
            "parent_message_uuid": last,
        }));
        conversation["updated_at"] = "2026-11-01T08:00:00Z".into();
    }),
    ("chatgpt/conversations-000.json", |export| {
        let conversation = &mut export[0];
        let id = "a0f7c1d2-6b35-4e89-9c04-1d8e52f7b6ff";
        let current = conversation["current_node"].clone();
        let message = json!({
            "id": id, "author": { "role": "user" }, "create_time": 1793520000.0,
            "content": { "content_type": "text", "parts": ["One more thing."] },
            "recipient": "all", "metadata": {},
        });
        conversation["mapping"][id] =
            json!({ "id": id, "message": message, "parent": current, "children": [] });
        conversation["current_node"] = id.into();
        conversation["update_time"] = 1793520000.0.into();
    }),
    ("geminiapps/MyActivity.json", |export| {
        let mut entry = export[1].clone();
        entry["title"] = "Prompted One more thing.".into();
        entry["time"] = "2026-11-01T08:00:00Z".into();
        entry["safeHtmlItem"] = json!([]);
        export.insert(0, entry);
    }),
];

/// A copy of a sample in a folder below `dir`.
fn copy(dir: &Path, folder: &str, sample: &str) -> PathBuf {
    let path = dir.join(folder).join(sample);
    fs::create_dir_all(path.parent().expect("folder")).expect("creates");
    let export = fs::read(samples().join(sample)).expect("reads");
    // Written like the one with another prompt.
    let export: Json = serde_json::from_slice(&export).expect("JSON");
    fs::write(&path, export.to_string()).expect("writes");
    path
}

/// Adds a prompt to an export.
fn add_prompt(path: &Path, add: AddPrompt) {
    let mut export: Json = serde_json::from_slice(&fs::read(path).expect("reads")).expect("JSON");
    add(export.as_array_mut().expect("a list"));
    fs::write(path, export.to_string()).expect("writes");
}

/// The texts of all prompts that are not copies, sorted.
fn prompts(memory: &Memory) -> Vec<String> {
    let events = memory.events().into_iter();
    let own =
        events.filter(|event| event.event_type == schemas::EventType::User && !event.is_replay);
    let mut texts: Vec<String> = own.map(|event| event.text).collect();
    texts.sort();
    texts
}

#[test]
fn an_export_that_is_replaced_by_a_later_one_keeps_its_events_at_their_places() {
    for (sample, add) in EXPORTS {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = copy(dir.path(), "", sample);
        let memory = Memory::default();
        memory.ingest(&path);
        let before = memory.events();
        assert!(before.len() > 7, "{sample}");
        assert_eq!(memory.ingest(&path).files_opened, 0, "{sample}");

        add_prompt(&path, *add);
        // The others have the same bytes.
        assert_eq!(memory.ingest(&path).files_opened, 1, "{sample}");
        let now = memory.events();
        assert_eq!(now.len(), before.len() + 1, "{sample}");
        for event in &before {
            let same = now.iter().find(|now| {
                now.session_id == event.session_id && now.event_index == event.event_index
            });
            assert_eq!(same.map(|same| &same.text), Some(&event.text), "{sample}");
        }
        assert!(prompts(&memory).contains(&"One more thing.".to_owned()), "{sample}");
    }
}

#[test]
fn what_two_exports_share_counts_once() {
    for (sample, add) in EXPORTS {
        let dir = tempfile::tempdir().expect("tempdir");
        let first = copy(dir.path(), "january", sample);
        let second = copy(dir.path(), "march", sample);
        let once = Memory::default();
        once.ingest(&first);
        add_prompt(&second, *add);
        for paths in [[&first, &second], [&second, &first]] {
            let memory = Memory::default();
            for path in paths {
                memory.ingest(path);
            }
            let mut expected = prompts(&once);
            expected.push("One more thing.".to_owned());
            expected.sort();
            assert_eq!(prompts(&memory), expected, "{sample}");
        }
    }
}

#[test]
fn an_export_that_is_cut_loses_no_conversation() {
    for (sample, _) in EXPORTS {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = copy(dir.path(), "", sample);
        let memory = Memory::default();
        memory.ingest(&path);
        let before = memory.events().len();
        let whole = fs::read(&path).expect("reads");
        for length in [whole.len() - 1, whole.len() / 2, 70, 1, 0] {
            fs::write(&path, &whole[..length]).expect("writes");
            let report = memory.ingest(&path);
            let is_reported =
                !report.problem_list.is_empty() || report.files_unknown + report.files_empty > 0;
            assert!(is_reported, "{sample} {length}");
            assert_eq!(memory.events().len(), before, "{sample} {length}");
        }

        fs::write(&path, &whole[..whole.len() - 1]).expect("writes");
        let report = Memory::default().ingest(&path);
        let [problem] = report.problem_list.as_slice() else { panic!("{:?}", report.problem_list) };
        assert_eq!(problem.kind, ProblemKind::Unreadable);
        assert!(problem.message.contains("download it again"), "{}", problem.message);
    }
}

#[test]
fn a_list_of_other_conversations_is_no_export() {
    for content in [
        r#"[{"id":"a","title":"t","mapping":{},"inserted_at":"2026-10-01T08:00:00Z"}]"#,
        r#"[{"uuid":"a","messages":[{"role":"user","content":"chat_messages"}]}]"#,
        r#"{"uuid":"a","chat_messages":[]}"#,
        "[]",
        "",
    ] {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("conversations.json");
        fs::write(&path, content).expect("writes");
        let memory = Memory::default();
        memory.ingest(&path);
        assert!(memory.sessions().is_empty(), "{content}");
    }
}

#[test]
fn conversations_without_an_id_or_with_the_same_one_are_told_apart() {
    let message = |text: &str| json!({ "sender": "human", "text": text });
    let conversation =
        |id: &str, text: &str| json!({ "uuid": id, "chat_messages": [message(text)] });
    let export = json!([
        conversation("a", "the first"),
        conversation("", "lost"),
        conversation("a", "the second"),
        conversation("a#b", "the third"),
    ]);
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("conversations.json");
    fs::write(&path, export.to_string()).expect("writes");
    let memory = Memory::default();
    let report = memory.ingest(&path);
    assert_eq!(prompts(&memory), ["the first", "the second", "the third"]);
    let has_no_id = |problem: &Problem| problem.message.contains("has no id");
    assert_eq!(report.problem_list.iter().filter(|problem| has_no_id(problem)).count(), 1);
}

/// Reads an export with this content.
fn read(content: &str) -> (Memory, Vec<Problem>) {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("conversations.json");
    fs::write(&path, content).expect("writes");
    let memory = Memory::default();
    let report = memory.ingest(&path);
    assert_eq!(report.files_unknown, 0, "{:?}", report.problem_list);
    (memory, report.problem_list)
}

#[test]
fn conversations_are_known_whatever_is_before_their_messages() {
    let long = "An essay. ".repeat(20_000);
    let mut fields = json!({ "summary": long, "title": long, "safe_urls": [long, long] });
    fields["create_time"] = 1.5.into();
    let message = json!({ "uuid": "1", "sender": "human", "text": "Hello" });
    let mut of_claude = fields.clone();
    of_claude["uuid"] = "a".into();
    of_claude["chat_messages"] = json!([message]);
    let node = json!({ "id": "1", "message": { "id": "1", "author": { "role": "user" },
        "content": { "content_type": "text", "parts": ["Hello"] } } });
    fields["conversation_id"] = "b".into();
    let rest = fields.to_string();
    let before = format!("[{},\"mapping\":{{\"1\":{node}}}}}]", rest.trim_end_matches('}'));
    let after = format!("[{{\"mapping\":{{\"1\":{node}}},{}]", &rest[1..]);
    for content in [json!([of_claude]).to_string(), before, after] {
        let (memory, problems) = read(&content);
        assert_eq!(prompts(&memory), ["Hello"]);
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn an_error_in_a_message_costs_only_that_part() {
    let of_claude = r#"[{"uuid":"a","name":NaN,"chat_messages":[
        {"uuid":"1","sender":"human","text":"one"},
        {"uuid":"2","sender":"human","text":"two","index":0x2},
        {"uuid":"3","sender":"human","text":"\x"},
        {"uuid":"4","sender":"human","text":"four"}]}]"#;
    let (memory, problems) = read(of_claude);
    assert_eq!(prompts(&memory), ["four", "one", "two"]);
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!(problem.kind, ProblemKind::BadJson);
    let place = format!("at byte {} of the export", of_claude.find("NaN").expect("there"));
    assert!(problem.message.contains(&place), "{}", problem.message);
    assert!(problem.message.contains("2 more places"), "{}", problem.message);

    let node = |id: &str, parent: &str, time: &str| {
        format!(
            r#""{id}":{{"id":"{id}","parent":"{parent}","message":{{"id":"{id}","author":{{"role":"user"}},
            "create_time":{time},"content":{{"content_type":"text","parts":["{id}"]}}}}}}"#
        )
    };
    let nodes = [node("x", "", "1"), node("y", "x", "NaN"), node("z", "y", "3")].join(",");
    let (memory, problems) =
        read(&format!(r#"[{{"id":"b","create_time":-Infinity,"mapping":{{{nodes}}}}}]"#));
    assert_eq!(prompts(&memory), ["x", "y", "z"]);
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn any_number_of_elements_without_an_id_is_one_problem() {
    let (memory, problems) = read(&format!(
        r#"[{{"uuid":"a","chat_messages":[{{"sender":"human","text":"Hello"}}]}}{}]"#,
        ",{}".repeat(5000)
    ));
    assert_eq!(prompts(&memory), ["Hello"]);
    let [problem] = problems.as_slice() else { panic!("{} problems", problems.len()) };
    assert!(problem.message.contains("4999 more places"), "{}", problem.message);
}

#[test]
fn prompts_to_gemini_are_read_by_conversation_and_in_their_order() {
    let entry = |title: &str, time: &str, id: &str| {
        json!({
            "header": "Gemini Apps", "title": title, "time": time,
            "details": [{ "url": format!("https://gemini.google.com/app/{id}") }],
        })
    };
    let export = json!([
        entry("Prompted a, later", "2026-03-01T08:00:00Z", "a"),
        entry("Prompted b", "2026-02-01T08:00:00Z", "b"),
        entry("Used Gemini Apps", "2026-01-03T08:00:00Z", ""),
        entry("Prompted a", "2026-01-02T08:00:00Z", "a"),
        entry("Prompted alone", "2026-01-01T08:00:00Z", ""),
        entry("Gave feedback", "2026-01-01T07:00:00Z", ""),
    ]);
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("My Activity.json");
    fs::write(&path, export.to_string()).expect("writes");
    let memory = Memory::default();
    memory.ingest(&path);
    let texts = |id: &str| {
        let events = memory.events().into_iter().filter(|event| event.session_id == id);
        events.map(|event| event.text).collect::<Vec<_>>()
    };
    let ids: Vec<String> =
        memory.sessions().into_iter().map(|session| session.session_id).collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert_eq!(texts("a"), ["a", "a, later"], "{ids:?}");
    assert_eq!(texts("b"), ["b"]);
    assert_eq!(texts("gemini-activity"), ["Gave feedback", "Used Gemini Apps"]);

    // The activities of another product are no conversations.
    let search =
        json!([{ "header": "Search", "title": "Searched for a", "time": "2026-01-01T08:00:00Z" }]);
    let path = dir.path().join("MyActivity.json");
    fs::write(&path, search.to_string()).expect("writes");
    let memory = Memory::default();
    memory.ingest(&path);
    assert!(memory.sessions().is_empty());
}
