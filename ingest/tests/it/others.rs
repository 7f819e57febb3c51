//! Traps of the logs of other agents, and of the files next to logs.

use schemas::EventType;
use std::fs;

use crate::memory::{Memory, samples};
use crate::traps::{user, write};

#[test]
fn what_an_editor_of_cline_answers_in_json_is_read() {
    let dir = tempfile::tempdir().expect("tempdir");
    let result = |success: bool| {
        let json = format!(
            r#"{{"query":"edit:/w/a.rs","result":"line one\nline two","success":{success}}}"#
        );
        let json = serde_json::to_string(&json).expect("a string");
        format!(r#"{{"type":"tool_result","tool_use_id":"c","name":"editor","content":{json}}}"#)
    };
    let message = |n: u32, role: &str, block: &str| {
        format!(r#"{{"id":"m{n}","role":"{role}","ts":{n},"content":[{block}]}}"#)
    };
    let messages = [
        message(1, "user", r#"{"type":"text","text":"go on"}"#),
        message(2, "user", &result(true)),
        message(3, "user", &result(false)),
    ];
    let log = format!(
        r#"{{"version":1,"updated_at":"2026-10-21T08:06:24.900Z","agent":"lead","sessionId":"1_a","messages":[{}]}}"#,
        messages.join(",")
    );
    fs::create_dir_all(dir.path().join("1_a")).expect("creates");
    write(&dir.path().join("1_a/1_a.messages.json"), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let events = memory.events();
    let results: Vec<_> =
        events.iter().filter(|event| event.event_type == EventType::ToolResult).collect();
    assert_eq!(results.len(), 2);
    assert!(
        results.iter().all(|result| result.text.contains("line one\nline two")
            || result.text.contains("line one\n  line two")),
        "{results:?}"
    );
    assert_eq!([results[0].is_error, results[1].is_error], [Some(false), Some(true)]);
}

#[test]
fn files_that_tell_of_a_log_are_no_unknown_ones() {
    let dir = tempfile::tempdir().expect("tempdir");
    let subagents = dir.path().join("a/subagents");
    fs::create_dir_all(&subagents).expect("creates");
    write(&dir.path().join("a.jsonl"), &user("a", 1, "one"), 1);
    write(&subagents.join("agent-x.jsonl"), &user("a", 2, "two"), 1);
    write(&subagents.join("agent-x.meta.json"), r#"{"agentType":"Explore"}"#, 1);
    // The Entire CLI writes such a file for the log of any agent.
    write(&dir.path().join("a.metadata.json"), r#"{"session_id":"a","strategy":"manual"}"#, 1);
    // It tells of nothing.
    write(&subagents.join("agent-y.meta.json"), r#"{"agentType":"Explore"}"#, 1);
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!((report.files_sidecar, report.files_unknown), (2, 1));
    assert_eq!(memory.ingest(dir.path()).files_unchanged, 5);
    // The other one of Kimi is an index of folders.
    for (provider, files) in
        [("grok", (1, 0)), ("kimi", (2, 1)), ("droid", (2, 0)), ("kiro", (1, 0)), ("cline", (1, 0))]
    {
        let report = Memory::default().ingest(&samples().join(provider));
        assert_eq!((report.files_sidecar, report.files_unknown), files, "{provider}");
    }
}

/// Who goes back to an earlier branch lives there again (docs/formats.md#pi).
#[test]
fn a_pi_log_lives_where_its_last_entry_hangs() {
    let id = "7d1c52f0-93ab-4c06-8b5e-20f4a1d9e637";
    let entry = |(entry, parent): (char, char)| {
        let at = u32::from(entry) % 40 + 10;
        format!(
            r#"{{"type":"message","id":"entry-{entry}","parentId":"entry-{parent}","timestamp":"2026-10-19T08:12:{at}.120Z","message":{{"role":"user","content":[{{"type":"text","text":"said {entry}"}}]}}}}"#
        ) + "\n"
    };
    let head = format!(
        r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-10-19T08:12:00.120Z","cwd":"/w"}}"#
    ) + "\n";
    let left = |entries: &[(char, char)]| {
        let lines = entries.iter().map(|edge| entry(*edge));
        let dir = tempfile::tempdir().expect("tempdir");
        let name = format!("2026-10-19T08-12-00-120Z_{id}.jsonl");
        write(&dir.path().join(name), &(head.clone() + &lines.collect::<String>()), 1);
        let memory = Memory::default();
        memory.ingest(dir.path());
        memory.session(id).abandoned
    };
    let there = [('1', '0'), ('2', '1'), ('a', '2'), ('b', 'a'), ('c', '2'), ('d', 'c')];
    assert_eq!(left(&there).as_deref(), Some("3-4"));
    let back = [&there[..], &[('e', 'b'), ('f', 'e')]].concat();
    assert_eq!(left(&back).as_deref(), Some("5-6"));
    // The same entry, written again.
    let twice = [&there[..4], &there[3..4], &[('e', 'b')]].concat();
    assert_eq!(left(&twice), None);
}

/// `session.fork` of OpenCode 1.x names no original and gives every message another id.
#[test]
fn a_fork_of_opencode_is_known_by_its_first_message() {
    let message = |id: &str, n: u32| {
        let (role, tokens) = match n % 2 {
            0 => ("user", String::new()),
            _ => ("assistant", r#","tokens":{"input":100,"output":50,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"m","providerID":"p""#.to_owned()),
        };
        format!(
            r#"{{"info":{{"id":"msg_{id}{n}","role":"{role}","time":{{"created":{}}}{tokens}}},"parts":[{{"id":"prt_{id}{n}","type":"text","text":"said {n}"}}]}}"#,
            1_790_000_000_000_u64 + u64::from(n)
        )
    };
    let export = |id: &str, letter: &str, messages: &[u32]| {
        let list: Vec<_> = messages.iter().map(|n| message(letter, *n)).collect();
        format!(
            r#"{{"info":{{"id":"{id}","projectID":"p","directory":"/w","title":"Paint","time":{{"created":1790000000000,"updated":1790000009000}}}},"messages":[{}]}}"#,
            list.join(",")
        )
    };
    // Ids descend with time; the fork is the larger one.
    let (original, fork) = ("ses_2bef25635ffe", "ses_2bef11111ffe");
    let logs = [
        (original, export(original, "a", &[0, 1, 2, 3])),
        (fork, export(fork, "b", &[0, 1, 2, 3, 4, 5])),
    ];
    let dir = tempfile::tempdir().expect("tempdir");
    for (id, log) in &logs {
        write(&dir.path().join(format!("{id}.json")), log, 1);
    }
    let memory = Memory::default();
    memory.ingest(dir.path());
    let (first, second) = (memory.session(original), memory.session(fork));
    assert_eq!((first.turns, first.input_tokens), (2, Some(200)));
    assert_eq!((second.turns, second.input_tokens), (1, Some(100)));
    assert_eq!(first.relation, None);
    assert_eq!(second.relation.as_deref(), Some("forked_from"));
    assert_eq!(second.parent_session_id.as_deref(), Some(original));
    // One after the other, in either order: all of it counts once.
    for order in [[0, 1], [1, 0]] {
        let memory = Memory::default();
        let dir = tempfile::tempdir().expect("tempdir");
        for (id, log) in order.map(|at| &logs[at]) {
            write(&dir.path().join(format!("{id}.json")), log, 1);
            memory.ingest(dir.path());
        }
        let turns: i64 = memory.sessions().iter().map(|session| session.turns).sum();
        assert_eq!(turns, 3, "{order:?}");
    }
    // Another session that began in that moment with other words is its own.
    let other = "ses_2bef00000ffe";
    let alike = export(other, "c", &[0, 1]).replace("said", "asked");
    write(&dir.path().join("other.json"), &alike, 1);
    memory.ingest(dir.path());
    let other = memory.session(other);
    assert_eq!((other.turns, other.replay_events, other.relation), (1, 0, None));
}

/// A log of Droid with these responses of the model.
fn droid_log(responses: &[&str]) -> String {
    let mut log =
        r#"{"type":"session_start","id":"d1","owner":"kim","version":2,"cwd":"/w"}"#.to_owned();
    log.push('\n');
    for (n, response) in responses.iter().enumerate() {
        for (role, text) in [("user", "and now?"), ("assistant", *response)] {
            let id = format!("{role}{n}");
            let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
            log.push_str(&format!(
                r#"{{"type":"message","id":"{id}","timestamp":"2026-09-01T10:00:0{n}Z","message":{{"role":"{role}","content":{content}}}}}"#
            ));
            log.push('\n');
        }
    }
    log
}

fn droid_settings(input: i64, output: i64) -> String {
    format!(r#"{{"model":"m","tokenUsage":{{"inputTokens":{input},"outputTokens":{output}}}}}"#)
}

/// The output tokens of each response, with the index of its event.
fn shares(memory: &Memory) -> Vec<(i32, Option<i64>)> {
    let events = memory.events().into_iter();
    let usage = events.filter(|event| event.event_type == EventType::TokenUsage);
    usage.map(|event| (event.event_index, event.output_tokens)).collect()
}

#[test]
fn responses_of_droid_share_the_totals_in_its_settings() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = dir.path().join("d1.jsonl");
    let settings = dir.path().join("d1.settings.json");
    let memory = Memory::default();

    // Totals that come later move no event.
    write(&log, &droid_log(&["short"]), 1);
    memory.ingest(dir.path());
    assert_eq!(shares(&memory), [(3, None)]);
    assert_eq!(memory.session("d1").usage_confidence.as_deref(), Some("unknown"));
    write(&settings, &droid_settings(1000, 100), 2);
    memory.ingest(dir.path());
    assert_eq!(shares(&memory), [(3, Some(100))]);

    // A new response takes its share of the same totals.
    write(&log, &droid_log(&["short", &"a long answer ".repeat(50)]), 3);
    memory.ingest(dir.path());
    let taken = shares(&memory);
    let [(3, Some(first)), (6, Some(second))] = taken[..] else { panic!("{taken:?}") };
    assert!(first < second, "{taken:?}");
    assert_eq!(first + second, 100);

    write(&settings, &droid_settings(2500, 500), 4);
    memory.ingest(dir.path());
    let session = memory.session("d1");
    assert_eq!((session.input_tokens, session.output_tokens), (Some(2500), Some(500)));
    assert_eq!(session.usage_confidence.as_deref(), Some("estimated"));
    assert_eq!(session.model.as_deref(), Some("m"));

    // The totals stay when the settings are gone and the log is continued.
    fs::remove_file(&settings).expect("removes");
    write(&log, &droid_log(&["short", &"a long answer ".repeat(50), "more"]), 5);
    memory.ingest(dir.path());
    assert_eq!(memory.session("d1").output_tokens, Some(500));
    assert_eq!(shares(&memory).len(), 3);
}

#[test]
fn a_copy_of_a_droid_log_counts_no_tokens_again() {
    let dir = tempfile::tempdir().expect("tempdir");
    let both = droid_log(&["stacked", "strapped"]);
    fs::create_dir_all(dir.path().join("w")).expect("creates");
    write(&dir.path().join("w/d1.jsonl"), &both, 1);
    write(&dir.path().join("w/d1.settings.json"), &droid_settings(2500, 500), 1);
    write(&dir.path().join("d1.jsonl"), &droid_log(&["stacked"]), 1);
    write(&dir.path().join("d1.settings.json"), &droid_settings(1000, 200), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let sum: i64 = memory.sessions().iter().filter_map(|session| session.output_tokens).sum();
    assert_eq!(sum, 500);
}

/// An event of a trajectory of OpenClaw; `data` is its content as JSON.
fn trajectory_event(seq: i64, run: &str, kind: &str, data: &str) -> String {
    format!(
        "{{\"traceSchema\":\"openclaw-trajectory\",\"schemaVersion\":1,\"source\":\"runtime\",\
         \"type\":\"{kind}\",\"ts\":\"2026-10-24T09:00:{seq:02}Z\",\"seq\":{seq},\
         \"sessionId\":\"t1\",\"runId\":\"{run}\",\"workspaceDir\":\"/w/harbor\",\
         \"modelId\":\"m1\",\"data\":{data}}}\n"
    )
}

/// Two runs: the snapshot of the second has the messages of both, and the third lacks a snapshot.
fn trajectory() -> Vec<String> {
    let start = 1_792_832_400_000_i64;
    let user = |seconds: i64, text: &str| {
        format!(
            "{{\"role\":\"user\",\"timestamp\":{},\"content\":[{{\"type\":\"text\",\
             \"text\":\"{text}\"}}]}}",
            start + seconds * 1000
        )
    };
    let first = format!(
        "{},{{\"role\":\"assistant\",\"timestamp\":{},\"content\":[{{\"type\":\"toolCall\",\
         \"id\":\"c1\",\"name\":\"exec\",\"arguments\":{{\"command\":\"make\"}}}}],\
         \"usage\":{{\"input\":10,\"output\":1}}}},{{\"role\":\"toolResult\",\"timestamp\":{},\
         \"toolCallId\":\"c1\",\"toolName\":\"exec\",\"isError\":true,\
         \"content\":[{{\"type\":\"text\",\"text\":\"broken\"}}]}}",
        user(2, "Fix the crane"),
        start + 3000,
        start + 4000,
    );
    let second = format!(
        "{first},{},{{\"role\":\"assistant\",\"timestamp\":{},\"content\":[{{\"type\":\"text\",\
         \"text\":\"Done.\"}}],\"usage\":{{\"input\":20,\"output\":2}}}}",
        user(12, "And now?"),
        start + 13_000,
    );
    vec![
        trajectory_event(1, "r1", "session.started", "{}"),
        trajectory_event(2, "r1", "context.compiled", "{\"systemPrompt\":\"You are\"}"),
        trajectory_event(
            2,
            "r1",
            "prompt.submitted",
            "{\"prompt\":\"[Mon 2026-10-24 09:00 UTC] Fix the crane\",\"messages\":[]}",
        ),
        trajectory_event(
            5,
            "r1",
            "model.completed",
            &format!(
                "{{\"usage\":{{\"input\":15,\"output\":1}},\"assistantTexts\":[],\
                 \"messagesSnapshot\":[{first}]}}"
            ),
        ),
        trajectory_event(11, "r2", "session.started", "{}"),
        trajectory_event(12, "r2", "prompt.submitted", "{\"prompt\":\"And now?\"}"),
        trajectory_event(
            14,
            "r2",
            "model.completed",
            &format!(
                "{{\"usage\":{{\"input\":20,\"output\":2}},\"assistantTexts\":[\"Done.\"],\
                 \"messagesSnapshot\":[{second}]}}"
            ),
        ),
        trajectory_event(21, "r3", "prompt.submitted", "{\"prompt\":\"Paint it\"}"),
        trajectory_event(
            22,
            "r3",
            "tool.call",
            "{\"toolCallId\":\"c2\",\"name\":\"shell\",\"arguments\":{\"command\":\"paint\"}}",
        ),
        trajectory_event(
            23,
            "r3",
            "tool.result",
            "{\"toolCallId\":\"c2\",\"name\":\"shell\",\"success\":false,\"output\":\"no paint\"}",
        ),
        trajectory_event(
            24,
            "r3",
            "model.completed",
            "{\"usage\":{\"input\":30,\"output\":3},\"assistantTexts\":[\"There is none.\"]}",
        ),
    ]
}

#[test]
fn a_trajectory_of_openclaw_is_read_in_any_pieces_if_it_is_the_only_record() {
    let events = trajectory();
    for pieces in [1, 2, events.len()] {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("t1.trajectory.jsonl");
        let memory = Memory::default();
        for end in (1..=pieces).map(|piece| events.len() * piece / pieces) {
            std::fs::write(&path, events[..end].concat()).expect("writes");
            memory.ingest(dir.path());
        }

        let texts = |kind: EventType| {
            let events = memory.events().into_iter().filter(|event| event.event_type == kind);
            events.map(|event| event.text).collect::<Vec<_>>()
        };
        let prompts = ["Fix the crane", "And now?", "Paint it"];
        assert_eq!(texts(EventType::User), prompts, "{pieces}");
        assert_eq!(texts(EventType::Message), ["Done.", "There is none."], "{pieces}");
        assert_eq!(texts(EventType::ToolResult), ["broken", "no paint"], "{pieces}");
        let results = memory.events().into_iter().filter(|event| event.exit_code.is_none());
        let results = results.filter(|event| event.event_type == EventType::ToolResult);
        let commands: Vec<_> = results.map(|event| (event.command, event.is_error)).collect();
        let command = |name: &str| (Some(name.to_owned()), Some(true));
        assert_eq!(commands, [command("make"), command("paint")], "{pieces}");
        // Five tokens of the first run are of a request that its snapshot lacks.
        let session = memory.session("t1");
        let usage = session.usage();
        assert_eq!((usage.input, usage.output), (Some(65), Some(6)), "{pieces}");
        assert_eq!(session.cwd.as_deref(), Some("/w/harbor"));
        assert!(memory.events().iter().all(|event| !event.is_replay));
    }
}

#[test]
fn a_trajectory_next_to_its_log_is_not_read() {
    let header = "{\"type\":\"session\",\"version\":3,\"id\":\"t1\",\
        \"timestamp\":\"2026-10-24T09:00:00.000Z\",\"cwd\":\"/w\"}\n\
        {\"type\":\"message\",\"id\":\"a1\",\"parentId\":null,\
        \"timestamp\":\"2026-10-24T09:00:02.000Z\",\"message\":{\"role\":\"user\",\
        \"content\":\"Fix the crane\"}}\n";
    for log in ["t1.jsonl", "t1.jsonl.reset.2026-10-24T10-00-00.000Z"] {
        let dir = tempfile::tempdir().expect("tempdir");
        let folder = dir.path().join("agents/main/sessions");
        std::fs::create_dir_all(&folder).expect("creates");
        std::fs::write(folder.join("t1.trajectory.jsonl"), trajectory().concat()).expect("writes");
        let memory = Memory::default();
        memory.ingest(dir.path());
        assert_eq!(memory.sessions().len(), 1);

        // The log takes the place of the trajectory that was read without it.
        std::fs::write(folder.join(log), header).expect("writes");
        for _ in 0..2 {
            memory.ingest(dir.path());
            let events = memory.events().into_iter();
            let prompts: Vec<String> = events
                .filter(|event| event.event_type == EventType::User)
                .map(|event| event.text)
                .collect();
            assert_eq!(prompts, ["Fix the crane"], "{log}");
            assert_eq!(memory.sessions().len(), 1, "{log}");
        }
    }
}

/// DeepSeek Harness appends a compressed frame whenever it writes, and a later version of its format
/// writes a new file next to the log.
#[test]
fn a_log_of_compressed_frames_grows_and_its_earlier_version_is_no_second_session() {
    let dir = tempfile::tempdir().expect("tempdir");
    let folder = dir.path().join("sessions/--w--/s-1");
    fs::create_dir_all(&folder).expect("creates");
    let frame = |lines: &str| zstd::encode_all(lines.as_bytes(), 3).expect("compresses");
    let prompt = |seq: u32, text: &str| {
        format!(
            r#"{{"type":"user/message","seq":{seq},"time":17935308000{seq:02},"data":{{"id":"u{seq}","role":"user","content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"user"}}}},"surfaceOp":"append"}}
"#
        )
    };
    let header = r#"{"type":"session","version":0,"id":"s-1","createdAt":1793530800000,"cwd":"/w"}
"#;
    let prompts = |memory: &Memory| -> Vec<String> {
        let events = memory.events().into_iter();
        let events = events.filter(|event| event.event_type == EventType::User && !event.is_replay);
        events.map(|event| event.text).collect()
    };
    let log = folder.join("session.jsonl.zstd");
    let mut bytes = [frame(header), frame(&prompt(0, "one"))].concat();
    fs::write(&log, &bytes).expect("writes");
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(prompts(&memory), ["one"]);

    // A frame that is cut costs what is in it.
    let last = frame(&prompt(1, "two"));
    fs::write(&log, [&bytes, &last[..last.len() / 2]].concat()).expect("writes");
    memory.ingest(dir.path());
    assert_eq!(prompts(&memory), ["one"]);
    // So does a frame that lacks only its end, except for the events in its whole blocks.
    let noise: String =
        (0..40_000_u32).map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    let many = [prompt(1, "two"), prompt(2, &noise), prompt(3, "four")].concat();
    let many = frame(&many);
    fs::write(&log, [&bytes, &many[..many.len() - 9]].concat()).expect("writes");
    let cut = Memory::default();
    let report = cut.ingest(dir.path());
    assert_eq!(prompts(&cut), ["one", "two"]);
    assert_eq!((report.files_failed, cut.problems().len()), (0, 1), "{:?}", cut.problems());
    bytes.extend(last);
    fs::write(&log, &bytes).expect("writes");
    memory.ingest(dir.path());
    assert_eq!(prompts(&memory), ["one", "two"]);

    let later = header.replace("\"version\":0", "\"version\":3");
    let later = format!("{later}{}{}{}", prompt(0, "one"), prompt(1, "two"), prompt(2, "three"));
    fs::write(folder.join("session.v3.jsonl.zstd"), frame(&later)).expect("writes");
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(prompts(&memory), ["one", "two", "three"]);
    assert_eq!((report.files_sidecar, memory.sessions().len()), (1, 1), "{report:?}");
}
