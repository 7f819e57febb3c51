//! Traps of Codex's rollouts (docs/formats.md#codex).

use crate::memory::Memory;
use crate::traps::write;
use schemas::EventType;

const ID: &str = "a1f0e51c-2b7d-4c0e-9a35-d1e84b7092fa";

/// A rollout of these records, a second apart: each its type and its payload.
fn rollout(records: &[(&str, String)]) -> String {
    let meta = ("session_meta", format!(r#"{{"id":"{ID}","cwd":"/w","cli_version":"0.150.0"}}"#));
    let line = |(at, (kind, payload)): (usize, &(&str, String))| {
        let (minute, second) = (at / 60, at % 60);
        format!(
            r#"{{"timestamp":"2026-10-01T10:{minute:02}:{second:02}.000Z","type":"{kind}","payload":{payload}}}"#
        ) + "\n"
    };
    std::iter::once(&meta).chain(records).enumerate().map(line).collect()
}

/// A prompt as the item of a response, as a message, and as a completed item of a turn.
fn forms(text: &str, turn: usize) -> [(&'static str, String); 3] {
    let content = |kind: &str| format!(r#"[{{"type":"{kind}","text":"{text}"}}]"#);
    [
        (
            "response_item",
            format!(r#"{{"type":"message","role":"user","content":{}}}"#, content("input_text")),
        ),
        ("event_msg", format!(r#"{{"type":"user_message","message":"{text}"}}"#)),
        (
            "event_msg",
            format!(
                r#"{{"type":"item_completed","turn_id":"t{turn}","item":{{"type":"UserMessage","id":"i{turn}","content":{}}}}}"#,
                content("text")
            ),
        ),
    ]
}

fn ingest(records: &[(&str, String)]) -> Memory {
    let dir = tempfile::tempdir().expect("tempdir");
    write(
        &dir.path().join(format!("rollout-2026-10-01T10-00-00-{ID}.jsonl")),
        &rollout(records),
        1,
    );
    let memory = Memory::default();
    memory.ingest(dir.path());
    memory
}

#[test]
fn a_prompt_counts_once_in_whatever_forms_it_stands() {
    let orders: &[&[usize]] = &[
        &[0],
        &[1],
        &[2],
        &[2, 1],
        &[1, 2],
        &[0, 2],
        &[2, 0],
        &[2, 1, 0],
        &[2, 0, 1],
        &[0, 1, 2],
        &[0, 2, 1],
        &[1, 2, 0],
    ];
    for order in orders {
        // The second time it is said again.
        let turn = |n: usize| {
            let begun = ("event_msg", format!(r#"{{"type":"task_started","turn_id":"t{n}"}}"#));
            let forms = forms("go on", n);
            std::iter::once(begun).chain(order.iter().map(move |form| forms[*form].clone()))
        };
        let records: Vec<_> = turn(1).chain(turn(2)).collect();
        let session = ingest(&records).session(ID);
        assert_eq!((session.user_messages, session.turns), (2, 2), "{order:?}");
    }
    // With an image the forms differ.
    let [_, message, _] = forms("look", 1);
    let content = r#"[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]"#;
    let item =
        ("response_item", format!(r#"{{"type":"message","role":"user","content":{content}}}"#));
    let begun = || ("event_msg", r#"{"type":"task_started"}"#.to_owned());
    for records in [
        vec![message.clone(), item.clone()],
        vec![message.clone(), begun(), item.clone()],
        vec![begun(), item, message],
    ] {
        assert_eq!(ingest(&records).session(ID).user_messages, 1);
    }
    // What was said in one form, and later in another, was said twice.
    let started = || ("event_msg", r#"{"type":"task_started"}"#.to_owned());
    let [item, message, completed] = forms("go on", 1);
    let records = [started(), item, message, started(), completed];
    assert_eq!(ingest(&records).session(ID).user_messages, 2);
}

#[test]
fn turns_that_were_rolled_back_are_a_branch_left_behind() {
    let said = |text: &str| {
        let [item, message, _] = forms(text, 1);
        let answer = format!(r#"{{"type":"agent_message","message":"re {text}"}}"#);
        [item, message, ("event_msg", answer)]
    };
    let undo = |turns: usize| {
        ("event_msg", format!(r#"{{"type":"thread_rolled_back","num_turns":{turns}}}"#))
    };
    let records = |parts: &[&[(&'static str, String)]]| parts.concat();
    let left = |records: &[(&'static str, String)]| {
        let memory = ingest(records);
        let session = memory.session(ID);
        let ranges = session.abandoned.unwrap_or_default();
        let events = memory.events();
        let is_left = |index: i32| {
            ranges.split(',').filter_map(|range| range.split_once('-')).any(|(first, last)| {
                (first.parse::<i32>().expect("a number")..=last.parse().expect("a number"))
                    .contains(&index)
            })
        };
        let left = events.iter().filter(|event| is_left(event.event_index));
        let left = left.filter(|event| event.event_type != EventType::Notification);
        left.map(|event| event.text.clone()).collect::<Vec<_>>()
    };
    let (one, two, three) = (said("one"), said("two"), said("three"));
    assert_eq!(left(&records(&[&one, &two, &[undo(1)]])), ["two", "re two"]);
    let last = records(&[&one, &two, &[undo(1)], &three, &[undo(2)]]);
    assert_eq!(left(&last), ["one", "re one", "two", "re two", "three", "re three"]);
    let more = records(&[&one, &[undo(0)], &two, &[undo(9)], &three]);
    assert_eq!(left(&more), ["one", "re one", "two", "re two"]);
}

#[test]
fn a_custom_call_with_arguments_has_its_command() {
    let call = |input: &str| {
        let input = serde_json::to_string(input).expect("a string");
        (
            "response_item",
            format!(
                r#"{{"type":"custom_tool_call","name":"shell","call_id":"c","input":{input}}}"#
            ),
        )
    };
    let calls =
        ingest(&[call(r#"{"command":["ls","-l"]}"#), call("*** Begin Patch"), call("{no json")]);
    let calls: Vec<_> =
        calls.events().into_iter().filter(|e| e.event_type == EventType::ToolCall).collect();
    assert_eq!(calls[0].command.as_deref(), Some("ls -l"));
    assert_eq!([&*calls[1].text, &*calls[2].text], ["*** Begin Patch", "{no json"]);
}

#[test]
fn a_thought_counts_once_in_whatever_form_it_stands() {
    let thought =
        |text: &str| ("event_msg", format!(r#"{{"type":"agent_reasoning","text":"{text}"}}"#));
    let item = |parts: &[&str]| {
        let part = |text: &&str| format!(r#"{{"type":"summary_text","text":"{text}"}}"#);
        let parts: Vec<String> = parts.iter().map(part).collect();
        let parts = parts.join(",");
        ("response_item", format!(r#"{{"type":"reasoning","summary":[{parts}],"content":null}}"#))
    };
    let thoughts = |records: &[(&'static str, String)]| {
        let memory = ingest(records);
        let events =
            memory.events().into_iter().filter(|event| event.event_type == EventType::Reasoning);
        events.map(|event| event.text).collect::<Vec<_>>()
    };
    for whole in [
        [item(&["**One**", "**Two**"]), thought("**One**"), thought("**Two**")],
        [thought("**One**"), item(&["**One**", "**Two**"]), thought("**Two**")],
        [thought("**One**"), thought("**Two**"), item(&["**One**", "**Two**"])],
    ] {
        let told = thoughts(&whole);
        assert_eq!(told.join("\n"), "**One**\n**Two**");
        assert_eq!(thoughts(&[whole.as_slice(), whole.as_slice()].concat()).len(), 2 * told.len());
    }
    assert_eq!(thoughts(&[thought("alone")]), ["alone"]);
    let completed = |texts: &str| {
        let item = format!(r#"{{"type":"Reasoning","summary_text":[{texts}],"raw_content":[]}}"#);
        ("event_msg", format!(r#"{{"type":"item_completed","item":{item}}}"#))
    };
    assert_eq!(thoughts(&[completed(r#""a","b""#)]), ["a\nb"]);
    assert_eq!(thoughts(&[item(&["a", "b"]), completed(r#""a","b""#)]), ["a\nb"]);
    assert_eq!(thoughts(&[completed("")]), [""; 0]);
    // The text of one is often kept by the provider.
    assert_eq!(thoughts(&[item(&[])]), [""]);
}

/// A script of the model runs tools that no item tells of; of the others the end is a twin.
#[test]
fn calls_that_only_their_end_tells_of_are_calls() {
    let tools = [
        (
            "CommandExecution",
            "exec_command_end",
            r#""command":["bash","-lc","paint --wet"],"aggregated_output":"wet paint","exit_code":3"#,
        ),
        (
            "McpToolCall",
            "mcp_tool_call_end",
            r#""invocation":{"server":"shop","tool":"paint","arguments":{"path":"a.rs"}},"result":{"Err":"wet paint"}"#,
        ),
        (
            "FileChange",
            "patch_apply_end",
            r#""changes":{"a.rs":{"update":{"unified_diff":"+x"}}},"stdout":"wet paint","success":false"#,
        ),
        (
            "Extension",
            "",
            r#""query":"paint","action":{"type":"search"},"error":"wet paint","status":"failed""#,
        ),
    ];
    let called = r#"{"type":"custom_tool_call","name":"shell","call_id":"c","input":"x"}"#;
    let answered = r#"{"type":"custom_tool_call_output","call_id":"c","output":"done"}"#;
    let [called, answered] = [called, answered].map(|item| ("response_item", item.to_owned()));
    for (item, end, facts) in tools {
        let took = r#""duration":{"secs":2,"nanos":0}"#;
        let item = format!(
            r#"{{"type":"item_completed","item":{{"type":"{item}","id":"c",{facts},{took}}}}}"#
        );
        let end = (!end.is_empty())
            .then(|| format!(r#"{{"type":"{end}","call_id":"c",{facts},{took}}}"#));
        for told in std::iter::once(item).chain(end) {
            let told = ("event_msg", told);
            let events = ingest(std::slice::from_ref(&told)).events();
            let [call, result] = &events[1..] else { panic!("{told:?}: {events:?}") };
            assert_eq!(call.event_type, EventType::ToolCall);
            assert_eq!(result.event_type, EventType::ToolResult);
            assert_eq!((&*result.text, result.is_error), ("wet paint", Some(true)), "{told:?}");
            assert_eq!(result.duration_ms, Some(2000));
            match call.tool_name.as_deref() {
                Some("exec_command") => {
                    assert_eq!(call.command.as_deref(), Some("paint --wet"));
                    assert_eq!(result.exit_code, Some(3));
                }
                Some("mcp__shop__paint" | "apply_patch") => {
                    assert_eq!(call.files.as_deref(), Some(["a.rs".to_owned()].as_slice()));
                }
                name => assert_eq!(name, Some("web_search")),
            }
            // Before the output, and after it.
            for records in [
                [called.clone(), told.clone(), answered.clone()],
                [called.clone(), answered.clone(), told.clone()],
            ] {
                assert_eq!(ingest(&records).events().len(), 3, "{records:?}");
            }
        }
    }
    let by_person = r#"{"type":"exec_command_end","call_id":"c","source":"user_shell"}"#;
    assert_eq!(ingest(&[("event_msg", by_person.to_owned())]).events().len(), 1);
    let by_person = r#"{"type":"CommandExecution","id":"c","source":"user_shell"}"#;
    let by_person = format!(r#"{{"type":"item_completed","item":{by_person}}}"#);
    assert_eq!(ingest(&[("event_msg", by_person)]).events().len(), 1);
}
