//! Traps of Claude Code's logs (docs/formats.md#claude-code).

use schemas::EventType;
use schemas::session::EventRow;

use crate::memory::Memory;
use crate::traps::{texts, user, write};

/// The uuid of the record that [`user`] makes.
fn uuid(n: u32) -> String {
    format!("0000000a-0000-4000-8000-{n:012}")
}

#[test]
fn a_summary_titles_the_session_that_has_its_message() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let memory = Memory::default();
    let summary = |text: &str, n: u32| {
        format!("{{\"type\":\"summary\",\"summary\":\"{text}\",\"leafUuid\":\"{}\"}}\n", uuid(n))
    };
    let title = || memory.session("a").title;
    let mut log = summary("Another session's", 9) + &user("a", 1, "the first prompt");
    write(&path, &log, 1);
    memory.ingest(dir.path());
    assert_eq!(title().as_deref(), Some("the first prompt"));
    // What was read in an earlier run counts as well.
    log += &summary("What it came to", 1);
    write(&path, &log, 2);
    memory.ingest(dir.path());
    assert_eq!(title().as_deref(), Some("What it came to"));
    log += &(user("a", 2, "more") + &summary("Later", 2) + &summary("Elsewhere", 7));
    write(&path, &log, 3);
    memory.ingest(dir.path());
    assert_eq!(title().as_deref(), Some("Later"));
    log += "{\"type\":\"custom-title\",\"customTitle\":\"Mine\"}\n";
    log += &summary("Last", 2);
    write(&path, &log, 4);
    memory.ingest(dir.path());
    assert_eq!(title().as_deref(), Some("Mine"));
}

#[test]
fn what_a_subagent_said_is_read_where_only_the_list_has_it() {
    let part = |n: u32, id: &str, part: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{}","timestamp":"2026-10-01T10:01:{n:02}.000Z","message":{{"id":"{id}","role":"assistant","model":"m","content":[{part}],"usage":{{"input_tokens":1,"output_tokens":2}}}}}}"#,
            uuid(n)
        )
    };
    let said = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let call = |id: &str| {
        format!(
            r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{"file_path":"/{id}"}}}}"#
        )
    };
    let progress = |n: u32, message: &str, list: &[String]| {
        format!(
            r#"{{"type":"progress","uuid":"{}","sessionId":"a","timestamp":"2026-10-01T10:02:{n:02}.000Z","data":{{"type":"agent_progress","agentId":"b","message":{message},"normalizedMessages":[{}]}}}}"#,
            uuid(50 + n),
            list.join(",")
        ) + "\n"
    };
    // The list has everything so far each time, calls under uuids of their own.
    let list = [
        part(11, "m1", &said("I look.")),
        part(12, "m1", &call("c1")),
        part(13, "m2", &said("And there.")),
        part(14, "m2", &call("c2")),
    ];
    let log = user("a", 1, "go")
        + &progress(1, &part(21, "m1", &call("c1")), &list[..2])
        + &progress(2, &part(22, "m2", &call("c2")), &list);
    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    write(&dir.path().join("a.jsonl"), &log, 1);
    memory.ingest(dir.path());
    let shown = |event: EventRow| format!("{} {}", event.event_type, event.is_sidechain);
    let kinds: Vec<_> = memory.events().into_iter().map(shown).collect();
    let (said, counted, called) = ("message true", "token_usage true", "tool_call true");
    assert_eq!(kinds, ["user false", said, counted, called, said, counted, called]);
    let texts = texts(&memory);
    assert_eq!([&*texts[1], &*texts[4]], ["I look.", "And there."]);
    assert_eq!(memory.session("a").usage().output, Some(4));
}

#[test]
fn the_project_is_the_folder_of_the_session_not_of_its_first_record() {
    let dir = tempfile::tempdir().expect("tempdir");
    let session = "b7c1a3de-52f4-4c1b-9a06-1f4e0d97c8aa";
    let fork = "b7c1a3de-52f4-4c1b-9a06-1f4e0d97c8ab";
    let at = |cwd: &str, record: String| record.replacen('{', &format!("{{\"cwd\":\"{cwd}\","), 1);
    let sidechain = |record: String| {
        record.replacen('{', "{\"agentId\":\"acompact-1\",\"isSidechain\":true,", 1)
    };
    let folder = dir.path().join("projects/-home-mira-code-harbor");
    let agent = folder.join(session).join("subagents/agent-acompact-1.jsonl");
    let main = at("/home/mira/code/harbor", user(session, 1, "go"));
    let own = at("/home/mira/code/harbor/ui", sidechain(user(session, 2, "summarize")));
    let copied = at("/home/mira/elsewhere", user(fork, 3, "go"))
        + &at("/home/mira/code/harbor", user(fork, 4, "go on"));
    std::fs::create_dir_all(agent.parent().expect("a folder")).expect("creates");
    let fork_path = folder.join(format!("{fork}.jsonl"));
    write(&folder.join(format!("{session}.jsonl")), &main, 1);
    write(&agent, &own, 1);
    write(&fork_path, copied.lines().next().expect("a line"), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.session(fork).project.as_deref(), Some("elsewhere"));

    // A later reading finds the folder, and keeps it.
    let later = copied.clone() + &at("/home/mira/code/harbor/ui", user(fork, 5, "and on"));
    for (tick, log) in [(2, copied), (3, later)] {
        write(&fork_path, &log, tick);
        memory.ingest(dir.path());
        for id in [session, "agent-acompact-1", fork] {
            let row = memory.session(id);
            assert_eq!(row.project.as_deref(), Some("harbor"), "{id}");
            assert_eq!(row.cwd.as_deref(), Some("/home/mira/code/harbor"), "{id}");
        }
    }
}

#[test]
fn what_a_hook_says_is_no_prompt() {
    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    let log =
        user("a", 1, "go") + &user("a", 2, "Operation stopped by hook: Another session is active");
    write(&dir.path().join("a.jsonl"), &log, 1);
    memory.ingest(dir.path());
    assert_eq!(memory.session("a").turns, 1);
}

#[test]
fn a_queued_prompt_is_one_whatever_was_removed_before_it() {
    let operation = |name: &str, content: &str| {
        let time = r#""timestamp":"2026-10-01T10:00:30.000Z","sessionId":"a""#;
        format!("{{\"type\":\"queue-operation\",\"operation\":\"{name}\",{time}{content}}}\n")
    };
    let queued = |text: &str| operation("enqueue", &format!(",\"content\":\"{text}\""));
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let memory = Memory::default();
    // It does not say that a machine's words are removed.
    let mut log = user("a", 1, "go")
        + &queued("<task-notification> done")
        + &queued("fix it")
        + &operation("remove", "")
        + &operation("dequeue", "")
        + &user("a", 2, "fix it");
    write(&path, &log, 1);
    memory.ingest(dir.path());
    assert_eq!(memory.session("a").turns, 2);
    // The same words again are another prompt.
    log += &user("a", 3, "fix it");
    log += &(queued("fix it") + &operation("dequeue", "") + &user("a", 4, "fix it"));
    write(&path, &log, 2);
    memory.ingest(dir.path());
    assert_eq!(memory.session("a").turns, 4);
}

#[test]
fn a_prompt_that_was_dequeued_waits_no_longer() {
    let operation = |name: &str, content: &str| {
        let time = r#""timestamp":"2026-10-01T10:00:30.000Z","sessionId":"a""#;
        format!("{{\"type\":\"queue-operation\",\"operation\":\"{name}\",{time}{content}}}\n")
    };
    let queued = |text: &str| operation("enqueue", &format!(",\"content\":\"{text}\""));
    // The user record has more than the text that waited.
    let log = user("a", 1, "go")
        + &queued("first")
        + &operation("dequeue", "")
        + &user("a", 2, "first, and @a.rs")
        + &answer(3, "", "m")
        + &queued("second")
        + &operation("remove", "")
        + &queued("/review main")
        + &queued("third")
        + &operation("dequeue", "")
        + &user("a", 4, "<command-message>review</command-message>")
        + &operation("remove", "");
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    write(&path, &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let prompts = |memory: &Memory| {
        let events = memory.events().into_iter();
        let typed = events.filter(|event| event.event_type == EventType::User);
        typed.map(|event| event.text).collect::<Vec<_>>()
    };
    assert_eq!(prompts(&memory), ["go", "first, and @a.rs", "second", "/", "third"]);

    // A log that is read while it grows gives the same.
    let grown = Memory::default();
    let mut end = 0;
    for (tick, line) in log.split_inclusive('\n').enumerate() {
        end += line.len();
        write(&path, &log[..end], 2 + tick as u64);
        grown.ingest(dir.path());
    }
    assert_eq!(prompts(&grown), prompts(&memory));
}

/// A line of an answer of a model.
fn answer(n: u32, more: &str, model: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{}","sessionId":"a","timestamp":"2026-10-01T10:00:{n:02}.000Z",{more}"message":{{"id":"m{n}","role":"assistant","model":"{model}","content":[{{"type":"text","text":"said {n}"}}]}}}}"#,
        uuid(n)
    ) + "\n"
}

#[test]
fn one_row_of_a_subagent_does_not_make_a_log_its_own() {
    let side = r#""isSidechain":true,"agentId":"b","#;
    let main = r#""isSidechain":false,"#;
    let log = user("a", 1, "go") + &answer(2, side, "small") + &answer(3, main, "large");
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let session = memory.session("a");
    assert_eq!((session.agent_id, session.relation), (None, None));

    // Without a message of the session itself it is the subagent's.
    let dir = tempfile::tempdir().expect("tempdir");
    write(
        &dir.path().join("copy.jsonl"),
        &(answer(2, side, "small") + &answer(3, side, "small")),
        1,
    );
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.session("agent-b").agent_id.as_deref(), Some("b"));
}

#[test]
fn the_model_of_a_subagent_is_not_that_of_the_session() {
    let side = r#""isSidechain":true,"agentId":"b","#;
    let log = user("a", 1, "go")
        + &answer(2, "", "large")
        + &answer(3, side, "small")
        + &user("a", 4, "go on")
        + &answer(5, "", "large");
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let models: Vec<_> = memory.events().into_iter().map(|event| event.model).collect();
    let models: Vec<_> = models.iter().map(Option::as_deref).collect();
    let (large, small) = (Some("large"), Some("small"));
    assert_eq!(models, [None, large, small, large, large]);
}

/// A result of a call, with what the client notes next to it.
fn result(n: u32, call: &str, text: &str, twin: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{}","sessionId":"a","timestamp":"2026-10-01T10:03:{n:02}.000Z","toolUseResult":{twin},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]}}}}"#,
        uuid(n)
    ) + "\n"
}

#[test]
fn the_result_of_an_edit_says_how_many_lines_it_changed() {
    let dir = tempfile::tempdir().expect("tempdir");
    let hunk = r#"{"oldStart":2,"lines":[" a","-b","+c","+d"]}"#;
    let log = user("a", 1, "edit it")
        + &result(2, "t1", "updated", &format!(r#"{{"structuredPatch":[{hunk},{hunk}]}}"#))
        + &result(3, "t2", "created", r#"{"type":"create","structuredPatch":[]}"#)
        + &result(4, "t3", "odd", r#"{"structuredPatch":[{"lines":"+a"},7,null]}"#);
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let results =
        memory.events().into_iter().filter(|event| event.event_type == EventType::ToolResult);
    let texts: Vec<_> = results.map(|event| event.text).collect();
    assert_eq!(texts, ["updated\n(4 lines added, 2 removed)", "created", "odd"]);
}

#[test]
fn what_a_command_printed_is_kept_where_its_result_leaves_it_out() {
    let printed = |n: u32, call: &str, text: &str| {
        format!(
            r#"{{"type":"progress","uuid":"{}","sessionId":"a","parentToolUseID":"{call}","data":{{"type":"bash_progress","output":"x","fullOutput":"{text}"}}}}"#,
            uuid(n)
        ) + "\n"
    };
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let log = user("a", 1, "build it")
        + &printed(2, "t1", "one")
        + &printed(3, "t1", "one\\ntwo")
        + &result(4, "t1", "one\\ntwo\\nthree", "{}")
        + &printed(5, "t2", "compiling a\\ncompiling b")
        + &result(6, "t2", "Command running in background", "{}");
    write(&path, &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let kept = |memory: &Memory| -> Vec<_> {
        let events = memory.events().into_iter();
        let kept = events.filter(|event| event.subtype.as_deref() == Some("bash_output"));
        kept.map(|event| (event.text, event.source_offset as usize)).collect()
    };
    let at = log.find("compiling").and_then(|at| log[..at].rfind('\n')).expect("a line") + 1;
    assert_eq!(kept(&memory), [("compiling a\ncompiling b".to_owned(), at)]);
    // Of a long one the end.
    let long = "ü".repeat(20_000);
    let end = printed(7, "t3", &long) + &result(8, "t3", "Command running in background", "{}");
    let elsewhere = tempfile::tempdir().expect("tempdir");
    write(&elsewhere.path().join("b.jsonl"), &(user("b", 1, "and this") + &end), 1);
    let other = Memory::default();
    other.ingest(elsewhere.path());
    assert_eq!(kept(&other)[0].0, "ü".repeat(8 << 10));
    // In two runs as in one.
    let cut = log.rfind("{\"type\":\"user\"").expect("a result");
    write(&path, &log[..cut], 2);
    let again = Memory::default();
    again.ingest(dir.path());
    write(&path, &log, 3);
    again.ingest(dir.path());
    assert_eq!(kept(&again), kept(&memory));
}

#[test]
fn commands_of_the_client_are_shown_as_typed() {
    let command = format!(
        r#"{{"type":"system","subtype":"local_command","uuid":"{}","sessionId":"a","content":"<command-name>/mcp</command-name>\n<command-args></command-args>"}}"#,
        uuid(1)
    ) + "\n";
    let printed = command.replace(&uuid(1), &uuid(2)).replace(
        "<command-name>/mcp</command-name>\\n<command-args></command-args>",
        "<local-command-stdout>dismissed</local-command-stdout>",
    );
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join("a.jsonl"), &(command + &printed), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let shown: Vec<_> = memory.events().into_iter().map(|e| (e.event_type, e.text)).collect();
    assert_eq!(shown[0], (EventType::Notification, "/mcp".to_owned()));
    assert_eq!(shown[1].0, EventType::Notification);
    assert_eq!(memory.session("a").turns, 0);
}

#[test]
fn counts_are_partial_where_a_subagents_log_is_missing() {
    let usage = format!(
        r#"{{"type":"assistant","uuid":"{}","sessionId":"a","message":{{"id":"m","role":"assistant","model":"m","content":[],"usage":{{"input_tokens":1,"output_tokens":2}}}}}}"#,
        uuid(2)
    ) + "\n";
    let ended = r#"{"agentId":"b1","totalTokens":900}"#;
    let log = user("a", 1, "go") + &usage + &result(3, "t1", "done", ended);
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join("a.jsonl"), &log, 1);
    let confidence = |dir: &std::path::Path| {
        let memory = Memory::default();
        memory.ingest(dir);
        memory.session("a").usage_confidence
    };
    assert_eq!(confidence(dir.path()).as_deref(), Some("partial"));
    // One that works in the background has used nothing yet when its call ends.
    let launched = r#"{"isAsync":true,"status":"async_launched","agentId":"b1"}"#;
    let log = user("a", 1, "go") + &usage + &result(3, "t1", "launched", launched);
    write(&dir.path().join("a.jsonl"), &log, 1);
    assert_eq!(confidence(dir.path()).as_deref(), Some("partial"));
    write(&dir.path().join("agent-b1.jsonl"), &user("a", 9, "sub"), 1);
    assert_eq!(confidence(dir.path()).as_deref(), Some("measured"));
}

#[test]
fn a_record_that_stands_twice_leaves_no_branch_behind() {
    let said = |n: u32, parent: u32| {
        let line = user("a", n, &format!("ask {n}"));
        line.replacen('{', &format!(r#"{{"parentUuid":"{}","#, uuid(parent)), 1)
    };
    let log = [said(2, 1), said(3, 2), said(3, 2), said(4, 3)].concat();
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let session = memory.session("a");
    assert_eq!((session.abandoned, session.turns, session.replay_events), (None, 3, 1));
    // Going back there is another matter.
    let log = [said(2, 1), said(3, 2), said(4, 2)].concat();
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.session("a").abandoned.as_deref(), Some("1-1"));
}

#[test]
fn an_answer_without_words_is_no_message() {
    let said = |n: u32, text: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{}","sessionId":"a","message":{{"id":"m{n}","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}}],"usage":{{"output_tokens":2}}}}}}"#,
            uuid(n)
        ) + "\n"
    };
    let dir = tempfile::tempdir().expect("tempdir");
    write(
        &dir.path().join("a.jsonl"),
        &(user("a", 1, "go") + &said(2, "\\n\\n") + &said(3, "Done.")),
        1,
    );
    let memory = Memory::default();
    memory.ingest(dir.path());
    let row = memory.session("a");
    assert_eq!((row.messages, row.steps, row.output_tokens), (1, 2, Some(4)));
}

#[test]
fn a_prompt_that_was_taken_back_names_the_session_no_longer() {
    let head = format!(
        r#"{{"type":"system","subtype":"info","uuid":"{}","sessionId":"a","content":"hello"}}"#,
        uuid(1)
    ) + "\n";
    let prompt = |n: u32, parent: u32, text: &str| {
        let parent = format!(r#""parentUuid":"{}","uuid""#, uuid(parent));
        user("a", n, text).replacen(r#""uuid""#, &parent, 1)
    };
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let memory = Memory::default();
    let mut log = head + &prompt(2, 1, "the wrong words");
    let mut title_with = |more: &str| {
        log += more;
        write(&path, &log, log.len() as u64);
        memory.ingest(dir.path());
        memory.session("a").title.expect("a title")
    };
    assert_eq!(title_with(""), "the wrong words");
    assert_eq!(title_with(&prompt(3, 1, "the right words")), "the right words");
    assert_eq!(title_with(&prompt(4, 3, "and more")), "the right words");
    // Going back behind the first prompt changes nothing.
    assert_eq!(title_with(&prompt(5, 3, "or less")), "the right words");
}

#[test]
fn what_a_call_printed_is_whole_where_the_model_saw_a_part() {
    let dir = tempfile::tempdir().expect("tempdir");
    let result = |n: u32, content: &str, twin: &str| {
        format!(
            r#"{{"type":"user","uuid":"{}","sessionId":"a","timestamp":"2026-10-01T10:01:{n:02}.000Z","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{n}","content":"{content}"}}]}},"toolUseResult":{twin}}}"#,
            uuid(n)
        ) + "\n"
    };
    let whole = "one\\ntwo\\n".repeat(40);
    let preview =
        r"<persisted-output>\nOutput too large (42KB).\n\nPreview:\none\n</persisted-output>";
    let cut = r"<status>failed</status>\n[Truncated. Full output: /tmp/x]\ntwo";
    let log = user("a", 1, "go")
        + &result(2, preview, &format!(r#"{{"stdout":"{whole}","stderr":""}}"#))
        + &result(3, preview, &format!(r#"{{"mode":"content","content":"{whole}"}}"#))
        + &result(4, cut, &format!(r#"{{"task":{{"output":"{whole}","exitCode":3}}}}"#))
        + &result(5, "one", &format!(r#"{{"stdout":"{whole}"}}"#))
        + &result(6, preview, r#"{"stdout":"one"}"#);
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let results: Vec<EventRow> = memory
        .events()
        .into_iter()
        .filter(|event| event.event_type == EventType::ToolResult)
        .collect();
    let whole = whole.replace("\\n", "\n");
    for result in &results[..3] {
        assert_eq!(result.text, whole);
    }
    assert_eq!(results[2].exit_code, Some(3));
    assert_eq!(results[3].text, "one");
    assert!(results[4].text.starts_with("<persisted-output>"));
}

#[test]
fn a_refusal_says_why_and_which_model_took_over() {
    let dir = tempfile::tempdir().expect("tempdir");
    let notice = r#"{"type":"system","subtype":"api_refusal","uuid":"0000000a-0000-4000-8000-000000000009","sessionId":"a","timestamp":"2026-10-01T10:00:09.000Z","content":"refusal","apiRefusalCategory":"policy","apiRefusalExplanation":null,"originalModel":"m","fallbackModel":"n"}"#;
    write(&dir.path().join("a.jsonl"), &(user("a", 1, "go") + notice + "\n"), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let told = "refusal\napiRefusalCategory: policy\noriginalModel: m\nfallbackModel: n";
    assert_eq!(texts(&memory), ["go", told]);
}

/// A result that was written before its call takes over the same columns, in one reading and in two.
#[test]
fn a_result_before_its_call_is_given_its_tool() {
    let line = |n: u32, role: &str, block: &str| {
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"{}\",\"sessionId\":\"a\",\"timestamp\":\
             \"2026-10-01T10:00:{n:02}.000Z\",\"message\":{{\"role\":\"{role}\",\"content\":[{block}]}}}}\n",
            uuid(n)
        )
    };
    let result = |n: u32, id: &str| {
        line(
            n,
            "user",
            &format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{id}"}}"#),
        )
    };
    let call = |n: u32, id: &str| {
        let input = r#"{"command":"cat a.rs","file_path":"/p/a.rs"}"#;
        line(
            n,
            "assistant",
            &format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{input}}}"#),
        )
    };
    let prompt = user("a", 1, "go");
    let head = prompt + &result(2, "early") + &result(3, "orphan");
    let rest = call(4, "early") + &result(5, "late") + &call(6, "late");

    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let whole = Memory::default();
    write(&path, &(head.clone() + &rest), 1);
    whole.ingest(dir.path());
    let results = |memory: &Memory| -> Vec<EventRow> {
        let events = memory.events().into_iter();
        events.filter(|event| event.event_type == EventType::ToolResult).collect()
    };
    let [early, orphan, late] = results(&whole).try_into().expect("three results");
    for named in [early, late] {
        assert_eq!(named.tool_name.as_deref(), Some("Bash"), "{}", named.text);
        assert_eq!(named.tool_kind.as_deref(), Some("execute"));
        assert_eq!(named.command.as_deref(), Some("cat a.rs"));
        assert_eq!(named.files, Some(vec!["/p/a.rs".to_owned()]));
    }
    assert_eq!((orphan.tool_name, orphan.files), (None, None));

    let grown = Memory::default();
    write(&path, &head, 2);
    grown.ingest(dir.path());
    assert_eq!(results(&grown)[0].tool_name, None);
    write(&path, &(head + &rest), 3);
    assert_eq!(grown.ingest(dir.path()).files_rewritten, 1);
    let rows = |memory: &Memory| -> Vec<_> {
        let events = memory.events().into_iter();
        events.map(|event| EventRow { segment: 0, ..event }).collect()
    };
    assert_eq!(rows(&grown), rows(&whole));
    // Nothing changes any more, so the log is continued.
    let more = std::fs::read_to_string(&path).expect("reads") + &user("a", 7, "thanks");
    write(&path, &more, 4);
    assert_eq!(grown.ingest(dir.path()).files_grown, 1);
}
