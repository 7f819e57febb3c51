//! Searches for odd characters, which users of similar programs reported as broken.

use serde_json::json;

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;

/// What a prompt says, and what finds it.
const ODD: &[(&str, &str)] = &[
    ("NOTE: caulk the seam", "\"NOTE: caulk\""),
    ("call std::mem::take here", "std::mem::take"),
    ("open http://127.0.0.1:9000/v1?a=1&b=2 now", "http://127.0.0.1:9000/v1?a=1&b=2"),
    ("the tank is 75% full", "75%"),
    ("the pilot's log", "pilot's"),
    (r"look in D:\Logs\sam", r"D:\Logs\sam"),
    ("write to ops@example.org", "ops@example.org"),
    ("built with C++ and node.js", "C++"),
    ("see array[0] (first)", "array[0]"),
    ("船舶已到港", "到港"),
    ("選択した型番はAB-9です", "AB-9"),
    ("등대 점검", "점검"),
    ("the crew 👨‍👩‍👧 is here", "👨‍👩‍👧"),
    ("the key-value mode: fast", "\"mode: fast\""),
];

fn odd_prompts() -> TestEnv {
    let env = TestEnv::new();
    let log: String = ODD
        .iter()
        .enumerate()
        .map(|(n, (text, _))| {
            let record = json!({
                "type": "user",
                "uuid": format!("0000000d-0000-4000-8000-{n:012}"),
                "sessionId": "d",
                "timestamp": format!("2026-10-01T10:00:{n:02}.000Z"),
                "message": { "role": "user", "content": text },
            });
            format!("{record}\n")
        })
        .collect();
    env.write("d.jsonl", log);
    env.ingest("d.jsonl");
    env
}

#[test]
fn odd_characters_are_found_as_they_stand() {
    let env = odd_prompts();
    for (n, (text, query)) in ODD.iter().enumerate() {
        let answer = env.json(["search", query]);
        let matches = answer["data"]["matches"].list();
        let found: Vec<_> = matches.iter().map(|event| event["event_id"].as_str()).collect();
        let index = format!(":{n}");
        assert!(
            matches!(found[..], [Some(id)] if id.ends_with(&index)),
            "{query} in {text}: {found:?}"
        );
    }
    let message = env.run(["search", "is:raining"]).error(2);
    message.shows(["is:raining", "Quote it"]);
    env.run(["search", "--", "-100821"]).fails(2).says("at least one word");
}
