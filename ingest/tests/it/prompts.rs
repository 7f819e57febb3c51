//! What is a prompt and what a machine wrote in the user's role, and which results failed, in the
//! logs of several agents (docs/formats.md).

use std::path::Path;

use ingest::provider::FORMATS;
use schemas::EventType;

use crate::left_out::report_left_out;
use crate::memory::Memory;
use crate::traps::write;

/// The id of the sessions made here.
const ID: &str = "b7c1a3de-52f4-4c1b-9a06-1f4e0d97c8aa";

/// Reads a log with these lines from a file of this name.
fn read(name: &str, lines: &[String]) -> Memory {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
    write(&path, &(lines.join("\n") + "\n"), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    memory
}

/// Prompts as `> text`, notifications as their subtype, other events as their type.
fn shown(memory: &Memory) -> Vec<String> {
    let events = memory.events().into_iter();
    let show = |event: schemas::session::EventRow| match event.event_type {
        EventType::User => format!("> {}", event.text),
        EventType::Notification => event.subtype.unwrap_or_default(),
        kind @ (EventType::Message
        | EventType::Reasoning
        | EventType::ToolCall
        | EventType::ToolResult
        | EventType::TokenUsage) => kind.to_string(),
    };
    events.map(show).collect()
}

/// The titles of all sessions.
fn title(memory: &Memory) -> Option<String> {
    memory.sessions().into_iter().find_map(|session| session.title)
}

/// Whether each result failed.
fn failures(memory: &Memory) -> Vec<bool> {
    let events = memory.events().into_iter();
    let results = events.filter(|event| event.event_type == EventType::ToolResult);
    results.map(|event| event.is_error == Some(true)).collect()
}

fn codex(records: &[(&str, &str)]) -> Memory {
    let meta = ("session_meta", &*format!(r#"{{"id":"{ID}","cwd":"/w"}}"#));
    let line = |(at, (kind, payload)): (usize, &(&str, &str))| {
        format!(
            r#"{{"timestamp":"2026-10-01T10:00:{at:02}.000Z","type":"{kind}","payload":{payload}}}"#
        )
    };
    let lines: Vec<_> = std::iter::once(&meta).chain(records).enumerate().map(line).collect();
    read(&format!("rollout-2026-10-01T10-00-00-{ID}.jsonl"), &lines)
}

#[test]
fn each_block_of_a_codex_message_is_judged() {
    let item = r##"{"type":"message","role":"user","content":[
        {"type":"input_text","text":"<recommended_plugins>\n- a\n</recommended_plugins>"},
        {"type":"input_text","text":"# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"},
        {"type":"input_text","text":"<environment_context>\n<cwd>/w</cwd>\n</environment_context>\nFix the build."}]}"##
        .replace('\n', " ");
    let event = r#"{"type":"user_message","message":"Fix the build."}"#;
    let memory = codex(&[("response_item", &item), ("event_msg", event)]);
    let machine = ["recommended_plugins", "agents_md", "environment_context"];
    assert_eq!(shown(&memory)[1..4], machine);
    assert_eq!(shown(&memory)[4..], ["> Fix the build."]);
    assert_eq!(title(&memory).as_deref(), Some("Fix the build."));
}

#[test]
fn a_review_is_one_prompt() {
    let begin = r#"{"type":"entered_review_mode","target":{"type":"uncommittedChanges"},"user_facing_hint":"current changes"}"#;
    let prompt = r#"{"type":"user_message","message":"Review the current code changes (staged, unstaged, and untracked files)."}"#;
    let end = r#"{"type":"exited_review_mode","review_output":null}"#;
    let typed = r#"{"type":"user_message","message":"Thanks."}"#;
    let event = |event| ("event_msg", event);
    let memory = codex(&[begin, prompt, prompt, end, typed].map(event));
    let review = ["entered_review_mode", "> /review current changes", "review_prompt"];
    assert_eq!(shown(&memory)[1..4], review);
    assert_eq!(shown(&memory)[4..], ["exited_review_mode", "> Thanks."]);

    // The user's own instructions, and what the user typed before the review ended.
    let begin = r#"{"type":"entered_review_mode","target":{"type":"custom","instructions":"check auth"},"user_facing_hint":"check auth"}"#;
    let prompt = r#"{"type":"user_message","message":"check auth"}"#;
    let memory = codex(&[typed, begin, prompt, prompt, typed].map(event));
    let prompts: Vec<_> = shown(&memory).into_iter().filter(|text| text.starts_with('>')).collect();
    assert_eq!(prompts, ["> Thanks.", "> /review check auth", "> Thanks."]);
}

#[test]
fn requests_for_tools_of_the_client_are_calls() {
    let request = r#"{"type":"dynamic_tool_call_request","callId":"c1","turnId":"t","namespace":"app","tool":"draw","arguments":{"path":"a.png"}}"#;
    let response = r#"{"type":"dynamic_tool_call_response","call_id":"c1","turn_id":"t","tool":"draw","arguments":{},"content_items":[{"type":"inputText","text":"no canvas"}],"success":false,"error":null,"duration":{"secs":2,"nanos":0}}"#;
    let memory = codex(&[("event_msg", request), ("event_msg", response)]);
    let events = memory.events();
    let [_, call, result] = events.as_slice() else { panic!("{:?}", shown(&memory)) };
    assert_eq!(call.event_type, EventType::ToolCall);
    assert_eq!(call.tool_name.as_deref(), Some("app__draw"));
    assert_eq!(result.event_type, EventType::ToolResult);
    assert_eq!(result.tool_name.as_deref(), Some("app__draw"));
    assert_eq!((result.is_error, result.duration_ms), (Some(true), Some(2000)));
    assert_eq!(result.text, "no canvas");

    // An item that records the same call is the event.
    let call = r#"{"type":"function_call","call_id":"c1","name":"draw","arguments":"{}"}"#;
    let output = r#"{"type":"function_call_output","call_id":"c1","output":"no canvas"}"#;
    let memory = codex(&[
        ("response_item", call),
        ("event_msg", request),
        ("event_msg", response),
        ("response_item", output),
    ]);
    assert_eq!(shown(&memory)[1..], ["tool_call", "tool_result"]);
    assert_eq!(failures(&memory), [true]);
}

#[test]
fn failures_of_codex_that_only_words_tell() {
    let outputs = [
        r#"[{"type":"input_text","text":"Script failed\nWall time 0.1 seconds\nOutput:\n"},{"type":"input_text","text":"Script error:\nboom"}]"#,
        r#""collab spawn failed: agent thread limit reached""#,
        r#""resources/list failed for `probe`: connection closed""#,
        r#"[{"type":"input_text","text":"Script completed\nWall time 0.1 seconds\nOutput:\n"}]"#,
        r#""Script failed to find it is what the test prints""#,
    ];
    let mut records = Vec::new();
    for (at, output) in outputs.iter().enumerate() {
        records.push(format!(
            r#"{{"type":"custom_tool_call","call_id":"c{at}","name":"exec","input":"x"}}"#
        ));
        records.push(format!(
            r#"{{"type":"custom_tool_call_output","call_id":"c{at}","output":{output}}}"#
        ));
    }
    let records: Vec<_> = records.iter().map(|record| ("response_item", record.as_str())).collect();
    assert_eq!(failures(&codex(&records)), [true, true, true, false, false]);
}

/// A log of Claude Code with these records, without their common fields.
fn claude(records: &[String]) -> Memory {
    let line = |(at, record): (usize, &String)| {
        format!(
            r#"{{"uuid":"{at:08}-0000-4000-8000-000000000000","sessionId":"{ID}","timestamp":"2026-10-01T10:00:{:02}.000Z",{record}}}"#,
            at % 60
        )
    };
    let lines: Vec<_> = records.iter().enumerate().map(line).collect();
    read(&format!("{ID}.jsonl"), &lines)
}

/// The fields of a prompt in a log of Claude Code, after `more` fields.
fn claude_said(more: &str, text: &str) -> String {
    format!(r#"{more}"type":"user","message":{{"role":"user","content":"{text}"}}"#)
}

/// Texts that Claude Code writes for other sessions, agents and tasks, and the subtypes of their
/// notifications.
const CLAUDE_MACHINE_TEXTS: &[(&str, &str)] = &[
    (r#"<teammate-message teammate_id=\"a\">\nDone.\n</teammate-message>"#, "teammate_message"),
    (
        r#"Another Claude session sent a message:\n<teammate-message teammate_id=\"a\">\nDone.\n</teammate-message>"#,
        "cross_session_message",
    ),
    (
        r#"Another Claude session sent a message:\n<cross-session-message from=\"b\">\nDone.\n</cross-session-message>\n\nThis came from another Claude session."#,
        "cross_session_message",
    ),
    (
        "Another Claude session sent a message: <agent-message>x</agent-message>",
        "cross_session_message",
    ),
    (r#"<cross-session-message from=\"b\">Done.</cross-session-message>"#, "cross_session_message"),
    (r#"<\\cross-session-message from=\"b\">Done."#, "cross_session_message"),
    (
        r#"<agent-message from=\"c\">\n[Subagent hand-back] Done.\n</agent-message>"#,
        "agent_message",
    ),
    ("<ci-monitor-event>\\nA check failed.\\n</ci-monitor-event>", "ci_monitor_event"),
    (r#"<scheduled-task name=\"d\">Look.</scheduled-task>"#, "scheduled_task"),
    ("[SYSTEM NOTIFICATION - NOT USER INPUT]\\nA task ended.", "task_notification"),
    (r#"A session-scoped Stop hook is now active with condition: \"green\"."#, "goal"),
    ("Goal check-in: the goal is still active.", "goal"),
    ("Stop hook feedback:\\nRun the tests.", "hook"),
];

#[test]
fn what_other_sessions_and_agents_of_claude_write_is_no_prompt() {
    let human = r#""origin":{"kind":"human"},"#;
    let typed = [
        "Explain what a <teammate-message> block is.",
        "Another Claude session sent a message: what does that mean?",
        "<agent-messages> is the wrong name.",
    ];
    let texts = CLAUDE_MACHINE_TEXTS.iter().map(|(text, _)| *text).chain(typed);
    let records: Vec<_> = texts.map(|text| claude_said(human, text)).collect();
    let memory = claude(&records);
    let mut want: Vec<_> =
        CLAUDE_MACHINE_TEXTS.iter().map(|(_, subtype)| (*subtype).to_owned()).collect();
    want.extend(typed.map(|text| format!("> {text}")));
    assert_eq!(shown(&memory), want);
    assert_eq!(title(&memory).as_deref(), Some(typed[0]));
}

#[test]
fn what_other_sessions_and_agents_of_claude_write_is_no_prompt_in_the_queue() {
    let operation = |name: &str, content: &str| {
        format!(r#""type":"queue-operation","operation":"{name}"{content}"#)
    };
    for (text, subtype) in CLAUDE_MACHINE_TEXTS {
        // The user's text is the one that is taken up in the middle of the turn.
        let memory = claude(&[
            operation("enqueue", &format!(r#","content":"{text}""#)),
            operation("enqueue", r#","content":"Fix it.""#),
            operation("remove", ""),
            operation("remove", ""),
        ]);
        let prompts: Vec<_> =
            shown(&memory).into_iter().filter(|text| text.starts_with('>')).collect();
        assert_eq!(prompts, ["> Fix it."], "{text}");

        let attached = format!(
            r#""type":"attachment","attachment":{{"type":"queued_command","commandMode":"prompt","prompt":"{text}"}}"#
        );
        assert_eq!(shown(&claude(&[attached])), [*subtype], "{text}");
    }
}

#[test]
fn records_of_claude_that_name_their_origin() {
    let record = |fields: &str| claude_said(fields, "Go on.");
    let attached = |origin: &str| {
        format!(
            r#""type":"attachment","attachment":{{"type":"queued_command","commandMode":"prompt","prompt":"Go on.","origin":{{"kind":"{origin}"}}}}"#
        )
    };
    let memory = claude(&[
        record(r#""origin":{"kind":"peer"},"#),
        record(r#""origin":{"kind":"coordinator"},"#),
        record(r#""origin":{"kind":"auto-continuation"},"#),
        record(r#""origin":{"kind":"scheduled-trigger"},"#),
        record(r#""promptSource":"system","#),
        attached("peer"),
        record(r#""origin":{"kind":"human"},"promptSource":"typed","#),
        record(r#""origin":{"kind":"channel"},"#),
        record(r#""origin":{"kind":"a later kind"},"#),
        attached("human"),
    ]);
    let machine = [
        "cross_session_message",
        "agent_message",
        "continuation",
        "scheduled_task",
        "system_prompt",
        "cross_session_message",
    ];
    assert_eq!(shown(&memory)[..6], machine);
    assert_eq!(shown(&memory)[6..], ["> Go on."; 4]);
}

/// Words that a user typed while refusing a call, in the result of the call.
const REFUSAL: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\\nuse bun, not npm";

#[test]
fn words_typed_while_refusing_a_call_are_words_of_the_user() {
    let want = ["> Fix it.", "tool_result", "user_words"];
    let typed =
        |text: &str| format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#);
    let result = |more: &str, text: &str| {
        format!(
            r#"{more}"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"{text}"}}]}}"#
        )
    };
    let memory = claude(&[typed("Fix it."), result("", REFUSAL)]);
    assert_eq!(shown(&memory), want);
    assert_eq!(memory.events()[2].text, "use bun, not npm");
    assert_eq!(memory.session(ID).turns, 1);
    assert_eq!(title(&memory).as_deref(), Some("Fix it."));

    // A field of its own has the words, too.
    let field = r#""userFeedback":"use bun, not npm","toolDenialKind":"user-rejected","#;
    for text in ["Denied.", REFUSAL] {
        assert_eq!(shown(&claude(&[typed("Fix it."), result(field, text)])), want);
    }
    assert!(claude(&[typed("Fix it."), result(field, "Denied.")]).sessions()[0].drift.is_none());
    // A call may print the same words.
    let printed = result("", REFUSAL).replace("true", "false");
    assert_eq!(shown(&claude(&[typed("Fix it."), printed])), want[..2]);

    let failed = |error: &str| {
        format!(
            r#"{{"type":"toolResult","id":"x","timestamp":"2026-10-01T10:00:02.000Z","parentId":null,"data":{{"toolCallId":"c","success":false,"error":{{"message":"{error}","code":"rejected"}}}}}}"#
        )
        .replace("toolResult", "tool.execution_complete")
    };
    let memory = read(
        &format!("{ID}/events.jsonl"),
        &[
            format!(r#"{{"type":"session.start","id":"s","timestamp":"2026-10-01T10:00:00.000Z","parentId":null,"data":{{"sessionId":"{ID}","copilotVersion":"1.0.64"}}}}"#),
            r#"{"type":"user.message","id":"u","timestamp":"2026-10-01T10:00:01.000Z","parentId":null,"data":{"content":"Fix it."}}"#.to_owned(),
            failed("The user rejected this tool call. User feedback: use bun, not npm"),
        ],
    );
    assert_eq!(shown(&memory)[1..], want);

    let message = |role: &str, part: &str| {
        format!(
            r#"{{"info":{{"id":"msg_{role}","sessionID":"ses_1","role":"{role}","time":{{"created":1}}}},"parts":[{part}]}}"#
        )
    };
    let feedback = "The user rejected permission to use this specific tool call with the following feedback: use bun, not npm";
    let call = format!(
        r#"{{"type":"tool","callID":"c","tool":"bash","state":{{"status":"error","input":{{"command":"npm i"}},"error":"{feedback}"}}}}"#
    );
    let document = format!(
        r#"{{"info":{{"id":"ses_1","projectID":"p","directory":"/w","version":"1.2.16","time":{{"created":1,"updated":9}}}},"messages":[{},{}]}}"#,
        message("user", r#"{"type":"text","text":"Fix it."}"#),
        message("assistant", &call),
    );
    let memory = read("ses_1.json", &[document]);
    assert_eq!(shown(&memory), ["> Fix it.", "tool_call", "tool_result", "user_words"]);
}

#[test]
fn a_session_begins_with_its_first_prompt_not_with_settings() {
    let built_in = |name: &str, args: &str| {
        format!(
            r"<command-name>/{name}</command-name>\n<command-message>{name}</command-message>\n<command-args>{args}</command-args>"
        )
    };
    for settings in [
        [built_in("effort", "high"), built_in("login", "")],
        ["/effort high".to_owned(), "/login".to_owned()],
    ] {
        let texts = settings.iter().map(String::as_str).chain(["Fix it."]);
        let records: Vec<_> = texts.map(|text| claude_said("", text)).collect();
        let memory = claude(&records);
        assert_eq!(shown(&memory), ["client_command", "client_command", "> Fix it."]);
        assert_eq!(memory.session(ID).turns, 1);
    }
    // What a summary is to keep are words of the user, but no prompt.
    let memory = claude(&[claude_said("", &built_in("compact", "keep the names"))]);
    assert_eq!(shown(&memory), ["user_words"]);
    assert_eq!(memory.events()[0].text, "/compact keep the names");
}

/// A log of OpenClaw with these messages.
fn openclaw(messages: &[String]) -> Memory {
    let header = format!(
        r#"{{"type":"session","version":3,"id":"{ID}","timestamp":"2026-10-01T10:00:00.000Z","cwd":"/w"}}"#
    );
    let line = |(at, message): (usize, &String)| {
        format!(
            r#"{{"type":"message","id":"e{at}","parentId":null,"timestamp":"2026-10-01T10:00:{at:02}.000Z","message":{message}}}"#
        )
    };
    let mut lines = vec![header];
    lines.extend(messages.iter().enumerate().map(line));
    read(&format!(".openclaw/agents/main/sessions/{ID}.jsonl"), &lines)
}

#[test]
fn what_the_gateway_of_openclaw_writes_is_no_prompt() {
    let said = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let texts = [
        "[OpenClaw heartbeat poll]",
        "[Mon 2026-10-19 10:12 GMT+2] [System] Your previous turn was interrupted by a gateway restart.",
        "[Retry after the previous model attempt failed] Go on.",
        r"Conversation context (untrusted, chronological, selected for current message):\n#1 Wed 2026-06-17 23:50:44 GMT+3 Mira: a\n\n[Mon 2026-10-19 10:12 GMT+2] What broke?",
    ];
    let memory = openclaw(&texts.map(said));
    let machine = ["heartbeat", "interrupted", "retry", "inbound_context"];
    assert_eq!(shown(&memory)[1..5], machine);
    assert_eq!(shown(&memory)[5..], ["> What broke?"]);
    assert_eq!(title(&memory).as_deref(), Some("What broke?"));
}

#[test]
fn messages_that_waited_in_openclaw_are_prompts_of_their_own() {
    let said = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let block = r#"Conversation info (untrusted metadata):\n```json\n{\"message_id\": \"7\"}\n```\n\nSender (untrusted metadata):\n```json\n{\"name\": \"Mira\"}\n```"#;
    let queue = format!(
        r"[Queued messages while agent was busy]\n\n---\nQueued #1\n{block}\n\nWhat broke?\n\n---\nQueued #2 (from Jo)\nSystem: [2026-10-19 10:12:00 GMT+2] Exec failed (a, code 1) :: one\nSystem: two\n\n---\nQueued #3\n{block}\n\nAnd why?"
    );
    let memory = openclaw(&[said(&queue)]);
    let context = "inbound_context";
    let want =
        [context, context, "> What broke?", context, context, "> And why?"].map(str::to_owned);
    assert_eq!(shown(&memory)[1..], want);
    assert_eq!(memory.session(ID).turns, 2);
    assert_eq!(title(&memory).as_deref(), Some("What broke?"));
}

#[test]
fn lines_of_the_system_of_openclaw_are_one_block() {
    let said = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let events = r"System: [2026-10-19 10:12:00 GMT+2] Exec completed (a, code 0) :: one\nSystem: two\nSystem:\nSystem (untrusted): [2026-10-19 10:13:00 GMT+2] Reaction added";
    let memory = openclaw(&[
        said(&format!(r"{events}\n\n[Mon 2026-10-19 10:14 GMT+2] What broke?")),
        said(events),
        said(
            r"What broke?\n\nThe previous attempt did not produce a user-visible answer. Continue.",
        ),
        said(r"ok\n\nThe latest user message is a short approval to proceed. Do not recap."),
    ]);
    let want = ["inbound_context", "> What broke?", "inbound_context", "retry", "> ok"];
    assert_eq!(shown(&memory)[1..], want);
}

#[test]
fn a_command_of_opencode_is_shown_as_typed() {
    let message = |at: u32, part: &str| {
        format!(
            r#"{{"info":{{"id":"msg_{at}","sessionID":"ses_1","role":"user","time":{{"created":{at}}}}},"parts":[{part}]}}"#
        )
    };
    let subtask = |fields: &str| {
        format!(r#"{{"type":"subtask","agent":"build","description":"look",{fields}}}"#)
    };
    let review = r#""command":"review","prompt":"You review code.\n\n---\n\nInput: main only\n\n---\n\nRead the diff.""#;
    let bare = r#""command":"review","prompt":"You review code.\n\n---\n\nInput: \n\n---\n\nRead the diff.""#;
    let document = format!(
        r#"{{"info":{{"id":"ses_1","projectID":"p","directory":"/w","version":"1.2.16","time":{{"created":1,"updated":9}}}},"messages":[{}]}}"#,
        [
            message(1, &subtask(bare)),
            message(2, &subtask(review)),
            message(3, &subtask(r#""command":"deploy","prompt":"Ship it.""#)),
            message(4, &subtask(r#""prompt":"Look at the lock.""#)),
        ]
        .join(",")
    );
    let memory = read("ses_1.json", &[document]);
    let want = [
        "> /review",
        "command_prompt",
        "> /review main only",
        "command_prompt",
        "> /deploy",
        "command_prompt",
        "> Look at the lock.",
    ];
    assert_eq!(shown(&memory), want);
    assert_eq!(title(&memory).as_deref(), Some("/review main only"));
    assert!(memory.events().iter().any(|event| event.text.contains("Read the diff.")));
}

#[test]
fn a_warning_of_codex_for_the_model_is_no_prompt() {
    let item = |text: &str| {
        format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
        )
    };
    let event = |text: &str| format!(r#"{{"type":"user_message","message":"{text}"}}"#);
    let (typed, warning) = ("Warning: the build is slow.", "Warning: apply_patch was requested.");
    let memory = codex(&[
        ("response_item", &item(typed)),
        ("event_msg", &event(typed)),
        ("response_item", &item(warning)),
        ("event_msg", &event("Go on.")),
        ("response_item", &item("Go on.")),
    ]);
    assert_eq!(shown(&memory)[1..], [&format!("> {typed}"), "warning", "> Go on."]);

    // Where no event repeats a prompt, nothing tells a warning from a prompt.
    let memory = codex(&[("response_item", &item("Go on.")), ("response_item", &item(warning))]);
    assert_eq!(shown(&memory)[1..], ["> Go on.", &format!("> {warning}")]);
}

#[test]
fn answers_of_tools_in_the_role_of_the_user_are_no_prompts() {
    let answer = r#"{"functionResponse":{"id":"c","name":"read","response":{"output":"x"}}}"#;
    let picture = r#"{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}"#;
    let lists = [
        format!("[{answer}]"),
        format!("[{answer},{picture}]"),
        format!(r#"[{picture},{{"text":"What is this?"}}]"#),
    ];
    let gemini = |(at, parts): (usize, &String)| {
        format!(
            r#"{{"id":"{at}","timestamp":"2026-10-01T10:00:0{at}.000Z","type":"user","content":{parts}}}"#
        )
    };
    let header = format!(
        r#"{{"sessionId":"{ID}","projectHash":"h","startTime":"2026-10-01T10:00:00.000Z","lastUpdated":"2026-10-01T10:00:09.000Z","kind":"main"}}"#
    );
    let mut lines = vec![header];
    lines.extend(lists.iter().enumerate().map(gemini));
    let memory = read("chats/session-2026-10-01T10-00-b7c1a3de.jsonl", &lines);
    let want = ["function_response", "function_response", "> [image/png 8 bytes]\nWhat is this?"];
    assert_eq!(shown(&memory), want);

    let user =
        |parts: &String| format!(r#""type":"user","message":{{"role":"user","parts":{parts}}}"#);
    let memory = qwen(&lists.each_ref().map(user));
    assert_eq!(shown(&memory)[..2], want[..2]);
    assert!(shown(&memory)[2].contains("What is this?"));
}

#[test]
fn failures_of_openclaw_that_only_details_tell() {
    let result = |details: &str| {
        format!(
            r#"{{"role":"toolResult","toolCallId":"c","toolName":"exec","content":[{{"type":"text","text":"x"}}],"details":{details},"isError":false}}"#
        )
    };
    let details = [
        r#"{"status":"failed","exitCode":null}"#,
        r#"{"status":"completed","exitCode":null,"exitSignal":"SIGKILL"}"#,
        r#"{"status":"completed","exitCode":null,"exitSignal":9}"#,
        r#"{"status":"completed","exitCode":0,"exitSignal":null}"#,
        r#"{"status":"running"}"#,
    ];
    assert_eq!(failures(&openclaw(&details.map(result))), [true, true, true, false, false]);
}

/// A log of Qwen Code with these records, without their common fields.
fn qwen(records: &[String]) -> Memory {
    let line = |(at, record): (usize, &String)| {
        format!(
            r#"{{"uuid":"{at:08}-0000-4000-8000-000000000000","sessionId":"{ID}","timestamp":"2026-10-01T10:00:{at:02}.000Z",{record}}}"#
        )
    };
    let lines: Vec<_> = records.iter().enumerate().map(line).collect();
    read(&format!("chats/{ID}.jsonl"), &lines)
}

#[test]
fn commands_of_qwen_code_that_only_set_something_are_no_prompts() {
    let command = |raw: &str| {
        format!(
            r#""type":"system","subtype":"slash_command","systemPayload":{{"phase":"invocation","rawCommand":"{raw}"}}"#
        )
    };
    let typed =
        r#""type":"user","message":{"role":"user","parts":[{"text":"Fix it."}]}"#.to_owned();
    let memory =
        qwen(&[command("/model qwen3"), command("/deploy staging"), command("/auth"), typed]);
    let want = ["client_command", "> /deploy staging", "client_command", "> Fix it."];
    assert_eq!(shown(&memory), want);
    assert_eq!(title(&memory).as_deref(), Some("/deploy staging"));
}

#[test]
fn a_subagent_of_qwen_code_that_failed_is_a_failure() {
    let result = |status: &str| {
        format!(
            r#""type":"tool_result","message":{{"role":"user","parts":[{{"functionResponse":{{"id":"c","name":"task","response":{{"output":"x"}}}}}}]}},"toolCallResult":{{"callId":"c","status":"success","resultDisplay":{{"type":"task_execution","status":"{status}"}}}}"#
        )
    };
    let typed =
        r#""type":"user","message":{"role":"user","parts":[{"text":"Fix it."}]}"#.to_owned();
    let memory = qwen(&[typed, result("failed"), result("completed")]);
    assert_eq!(failures(&memory), [true, false]);
}

#[test]
fn a_cursor_log_without_a_time_has_that_of_its_file() {
    let root = tempfile::tempdir().expect("tempdir");
    let project = root.path().join("home/My Project");
    std::fs::create_dir_all(&project).expect("creates");
    let path = project.to_str().expect("a name");
    let slug: String =
        path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = root.path().join(format!("logs/{}/agent-transcripts/{ID}", &slug[1..]));
    std::fs::create_dir_all(&folder).expect("creates");
    let log = folder.join(format!("{ID}.jsonl"));
    let said = |text: &str| format!(r#"{{"role":"user","message":{{"content":"{text}"}}}}"#) + "\n";
    write(&log, &said("Go."), 7);
    let memory = Memory::default();
    memory.ingest(&root.path().join("logs"));
    let session = memory.session(ID);
    assert_eq!(session.project.as_deref(), Some("My Project"));
    assert_eq!(session.cwd.as_deref(), Some(path));
    assert_eq!(session.started_at, Some(1_800_000_007_000_000));
    assert_eq!(session.time_source.as_deref(), Some("file"));
    assert!(memory.events().iter().all(|event| event.timestamp.is_none()));

    // The file's time is the last one, and the first time of a record replaces it.
    write(&log, &(said("Go.") + &said("On.")), 9);
    memory.ingest(&root.path().join("logs"));
    assert_eq!(memory.session(ID).started_at, Some(1_800_000_009_000_000));
    assert_eq!(memory.session(ID).time_source.as_deref(), Some("file"));
    let timed = said(
        "<timestamp>Friday, Sep 4, 2026, 2:21 AM (UTC)</timestamp>\\n<user_query>x</user_query>",
    );
    write(&log, &(said("Go.") + &said("On.") + &timed), 11);
    memory.ingest(&root.path().join("logs"));
    let session = memory.session(ID);
    assert_eq!(
        (session.started_at, session.ended_at),
        (Some(1_788_488_460_000_000), Some(1_788_488_460_000_000))
    );
    assert_eq!(session.time_source.as_deref(), Some("record"));
}

#[test]
fn tables_of_machine_text_are_whole() {
    for format in &FORMATS {
        for (at, row) in format.quirks.machine_texts.iter().enumerate() {
            let place = format!("{} {:?}", format.provider, row.start);
            assert!(!row.start.trim().is_empty() && !row.subtype.is_empty(), "{place}");
            let is_version = row.seen.starts_with(|c: char| c.is_ascii_digit());
            assert!(row.seen == "docs" || is_version, "{place}: {:?}", row.seen);
            let rows = format.quirks.machine_texts.iter().take(at);
            let hides = rows.into_iter().find(|earlier| row.start.starts_with(earlier.start));
            assert_eq!(hides, None, "{place}: an earlier row hides it");
        }
    }
}

/// No prompt in the real logs begins with machine text, of any agent.
#[test]
fn prompts_in_real_logs_are_typed() {
    let Some(logs) = std::env::var_os("SESSIONS_REAL_LOGS") else {
        report_left_out("set SESSIONS_REAL_LOGS to a folder of real logs to run these tests", "");
        return;
    };
    let memory = Memory::default();
    memory.ingest(Path::new(&logs));
    let starts: Vec<_> = FORMATS
        .iter()
        .flat_map(|format| format.quirks.machine_texts)
        .map(|row| row.start)
        .collect();
    for event in memory.events() {
        let is_machine = starts.iter().any(|start| event.text.trim_start().starts_with(start));
        let place = format!("{}:{}", event.session_id, event.event_index);
        assert!(event.event_type != EventType::User || !is_machine, "{place}: {}", event.text);
    }
}
