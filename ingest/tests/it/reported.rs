//! Situations that users of similar programs reported as wrong, each with a log of our own.

use std::path::Path;

use schemas::EventType;
use schemas::session::SessionRow;

use crate::memory::Memory;
use crate::traps::{texts, user, write};

/// Writes the files, which may stand in folders, and ingests them.
fn ingest(files: &[(&str, &str)]) -> Memory {
    let dir = tempfile::tempdir().expect("tempdir");
    for (name, content) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        write(&path, content, 1);
    }
    let memory = Memory::default();
    memory.ingest(dir.path());
    memory
}

/// Input, output, tokens read from and written to the cache.
fn tokens(row: &SessionRow) -> [i64; 4] {
    [row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens]
        .map(|count| count.unwrap_or(0))
}

/// The sums over all sessions.
fn all_tokens(memory: &Memory) -> [i64; 4] {
    let mut sums = [0; 4];
    for row in memory.sessions() {
        for (sum, count) in sums.iter_mut().zip(tokens(&row)) {
            *sum += count;
        }
    }
    sums
}

/// A line of a Claude log with one block of a response.
fn claude(n: u32, session: &str, message: &str, block: &str, usage: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{session:0>8}-0000-4000-8000-{n:012}","sessionId":"{session}","timestamp":"2026-10-01T10:00:{:02}.000Z","message":{{"id":"{message}","role":"assistant","model":"claude-opus-4-8","content":[{block}],"usage":{{{usage}}}}}}}"#,
        n % 60
    ) + "\n"
}

fn said(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

#[test]
fn responses_of_a_gateway_count_once_without_a_request_id() {
    let first = r#""input_tokens":70,"output_tokens":9"#;
    let second = r#""input_tokens":80,"output_tokens":4"#;
    let original = user("a", 1, "tide times")
        + &claude(2, "a", "m1", &said("high"), first)
        + &claude(3, "a", "m1", &said("at noon"), first);
    let resumed = user("b", 11, "tide times")
        + &claude(12, "b", "m1", &said("high"), first)
        + &claude(13, "b", "m1", &said("at noon"), first)
        + &user("b", 14, "and low?")
        + &claude(15, "b", "m2", &said("at six"), second);
    let memory = ingest(&[("a.jsonl", &original), ("b.jsonl", &resumed)]);
    assert_eq!(tokens(&memory.session("a")), [70, 9, 0, 0]);
    assert_eq!(tokens(&memory.session("b")), [80, 4, 0, 0]);
}

#[test]
fn the_last_line_of_a_response_has_its_counts() {
    let usage = |output: u32| {
        format!(
            r#""input_tokens":7,"output_tokens":{output},"cache_read_input_tokens":400,"cache_creation_input_tokens":90,"cache_creation":{{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":90}}"#
        )
    };
    let log = user("a", 1, "go")
        + &claude(2, "a", "m1", &said("one"), &usage(3))
        + &claude(3, "a", "m1", &said("two"), &usage(3))
        + &claude(4, "a", "m1", &said("three"), &usage(77));
    let memory = ingest(&[("a.jsonl", &log)]);
    let session = memory.session("a");
    assert_eq!(tokens(&session), [7, 77, 400, 90]);
    assert_eq!(session.cache_write_1h_tokens, Some(90));
}

#[test]
fn records_between_the_blocks_of_a_response_do_not_split_it() {
    let usage = r#""input_tokens":5,"output_tokens":60,"cache_read_input_tokens":10"#;
    let command = |n: u32| user("a", n, "<command-name>/model</command-name>");
    let log = user("a", 1, "go")
        + &claude(2, "a", "m1", &said("one"), usage)
        + &command(3)
        + &user("a", 4, "<local-command-stdout>Set model</local-command-stdout>")
        + &claude(5, "a", "m1", &said("two"), usage);
    let session = ingest(&[("a.jsonl", &log)]).session("a");
    assert_eq!((tokens(&session), session.steps, session.turns), ([5, 60, 10, 0], 1, 1));
}

#[test]
fn an_error_of_the_interface_is_no_model() {
    let nothing = r#""input_tokens":0,"output_tokens":0"#;
    let error = claude(3, "a", "e1", &said("API Error: overloaded"), nothing)
        .replace("claude-opus-4-8", "<synthetic>");
    let log = user("a", 1, "go")
        + &claude(2, "a", "m1", &said("done"), r#""input_tokens":10,"output_tokens":20"#)
        + &error;
    let memory = ingest(&[("a.jsonl", &log)]);
    let models: Vec<_> =
        memory.session("a").model_usage().iter().map(|model| model.name()).collect();
    assert_eq!(models, ["claude-opus-4-8"]);
    assert!(memory.events().iter().all(|event| event.model.as_deref() != Some("<synthetic>")));
    assert!(texts(&memory).iter().any(|text| text.contains("overloaded")));
}

#[test]
fn a_picture_in_a_prompt_is_named_and_its_bytes_are_not_text() {
    let picture = r#"[{\"type\":\"x\"}]"#;
    let content = format!(
        r#"[{{"type":"text","text":"what bird is this"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{}"}}}}]"#,
        "iVBORw0KGgo".repeat(9)
    );
    let log = user("a", 1, picture).replace(&format!(r#""{picture}""#), &content);
    let queued = r#"{"type":"attachment","uuid":"00000001-0000-4000-8000-000000000009","sessionId":"a","timestamp":"2026-10-01T10:00:09.000Z","attachment":{"type":"queued_command","prompt":"and its song","commandMode":"prompt"}}"#;
    let memory = ingest(&[("a.jsonl", &format!("{log}{queued}\n"))]);
    let prompts: Vec<_> =
        memory.events().into_iter().filter(|event| event.event_type == EventType::User).collect();
    assert_eq!(prompts.len(), 2, "{:?}", texts(&memory));
    assert!(prompts[0].text.starts_with("what bird is this"));
    assert_eq!(prompts[1].text, "and its song");
    assert!(texts(&memory).iter().all(|text| !text.contains("iVBORw0KGgo")));
}

const THREAD: &str = "a1f0e51c-2b7d-4c0e-9a35-d1e84b7092fb";

fn codex(at: usize, kind: &str, payload: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-10-01T10:00:{at:02}.000Z","type":"{kind}","payload":{payload}}}"#
    ) + "\n"
}

/// A turn of Codex with a model: a prompt and the totals after it.
fn codex_turn(at: usize, model: &str, total: [u32; 3], last: [u32; 3]) -> String {
    let counts = |[input, cached, output]: [u32; 3]| {
        format!(
            r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"total_tokens":{}}}"#,
            input + output
        )
    };
    let prompt = format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"ask {at}"}}]}}"#
    );
    let used = format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{},"last_token_usage":{}}}}}"#,
        counts(total),
        counts(last)
    );
    codex(at, "turn_context", &format!(r#"{{"cwd":"/w","model":"{model}"}}"#))
        + &codex(at + 1, "response_item", &prompt)
        + &codex(at + 2, "event_msg", &used)
}

#[test]
fn models_of_codex_change_by_turn_behind_a_long_first_line() {
    let head = |words: usize| {
        let instructions = "be brief ".repeat(words);
        format!(r#"{{"id":"{THREAD}","cwd":"/w","instructions":"{instructions}"}}"#)
    };
    let log = codex(0, "session_meta", &head(6000))
        + &codex_turn(1, "gpt-5.6-sol", [100, 0, 10], [100, 0, 10])
        + &codex(4, "session_meta", &head(1))
        + &codex_turn(5, "gpt-5.6-terra", [350, 50, 30], [250, 50, 20])
        + &codex_turn(9, "gpt-5.6-sol", [650, 100, 60], [300, 50, 30]);
    let name = format!("rollout-2026-10-01T10-00-00-{THREAD}.jsonl");
    let memory = ingest(&[(&name, &log)]);
    let models: Vec<_> = memory
        .session(THREAD)
        .model_usage()
        .iter()
        .map(|model| (model.name(), model.usage.input, model.usage.output))
        .collect();
    let expected = [("gpt-5.6-sol", 350, 40), ("gpt-5.6-terra", 200, 20)]
        .map(|(name, input, output)| (name.to_owned(), Some(input), Some(output)));
    assert_eq!(models, expected);
}

#[test]
fn a_rollout_that_was_archived_counts_once() {
    let head = codex(0, "session_meta", &format!(r#"{{"id":"{THREAD}","cwd":"/w"}}"#));
    let shorter = head + &codex_turn(1, "gpt-5.6-sol", [100, 0, 10], [100, 0, 10]);
    let whole = shorter.clone() + &codex_turn(5, "gpt-5.6-sol", [300, 0, 30], [200, 0, 20]);
    let name = format!("rollout-2026-10-01T10-00-00-{THREAD}.jsonl");
    let files = [format!("sessions/2026/10/01/{name}"), format!("archived_sessions/{name}")];
    for logs in [[&shorter, &whole], [&whole, &shorter]] {
        let memory = ingest(&[(&files[0], logs[0]), (&files[1], logs[1])]);
        assert_eq!(all_tokens(&memory), [300, 30, 0, 0]);
        assert_eq!(memory.session(THREAD).turns, 2);
    }
}

#[test]
fn the_history_that_a_compaction_keeps_is_no_text_again() {
    let kept =
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"ask 1"}]}"#;
    let history = vec![kept; 40].join(",");
    let compacted =
        codex(8, "compacted", &format!(r#"{{"message":"","replacement_history":[{history}]}}"#));
    let log = codex(0, "session_meta", &format!(r#"{{"id":"{THREAD}","cwd":"/w"}}"#))
        + &codex_turn(1, "gpt-5.6-sol", [100, 0, 10], [100, 0, 10])
        + &compacted.repeat(3);
    let name = format!("rollout-2026-10-01T10-00-00-{THREAD}.jsonl");
    let memory = ingest(&[(&name, &log)]);
    assert_eq!(memory.session(THREAD).turns, 1);
    assert_eq!(texts(&memory).iter().filter(|text| text.contains("ask 1")).count(), 1);
}

#[test]
fn a_session_of_droid_in_two_folders_counts_once() {
    let id = "b2f0e51c-2b7d-4c0e-9a35-d1e84b7092fa";
    let said = |n: u32, role: &str, text: &str| {
        format!(
            r#"{{"type":"message","id":"m{n}","timestamp":"2026-10-01T10:00:{n:02}.000Z","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ) + "\n"
    };
    let head = format!(r#"{{"type":"session_start","id":"{id}","title":"t","cwd":"/w"}}"#) + "\n";
    let shorter = head + &said(1, "user", "coil the rope") + &said(2, "assistant", "coiled");
    let whole = shorter.clone() + &said(3, "user", "hang it up") + &said(4, "assistant", "hung");
    let settings = |input: u32, output: u32| {
        format!(
            r#"{{"model":"gpt-5.5","tokenUsage":{{"inputTokens":{input},"outputTokens":{output},"cacheCreationTokens":0,"cacheReadTokens":0,"thinkingTokens":0}}}}"#
        )
    };
    let (few, many) = (settings(100, 20), settings(250, 50));
    let memory = ingest(&[
        (&format!("sessions/{id}.jsonl"), &shorter),
        (&format!("sessions/{id}.settings.json"), &few),
        (&format!("sessions/-w/{id}.jsonl"), &whole),
        (&format!("sessions/-w/{id}.settings.json"), &many),
    ]);
    assert_eq!(all_tokens(&memory), [250, 50, 0, 0]);
    let prompts: i64 = memory.sessions().iter().map(|row| row.user_messages).sum();
    assert_eq!(prompts, 2);
}

#[test]
fn the_folder_of_a_gemini_session_is_that_of_its_project_root() {
    let id = "c3f0e51c-2b7d-4c0e-9a35-d1e84b7092fa";
    let log = format!(
        r#"{{"sessionId":"{id}","projectHash":"ab","startTime":"2026-10-01T10:00:00.000Z","lastUpdated":"2026-10-01T10:00:00.000Z","kind":"main"}}"#
    ) + "\n"
        + r#"{"id":"u1","timestamp":"2026-10-01T10:00:01.000Z","type":"user","content":[{"text":"sand the hull"}]}"#
        + "\n";
    let memory = ingest(&[
        ("tmp/yard-2/chats/session-2026-10-01T10-00-c3f0e51c.jsonl", &log),
        ("tmp/yard-2/.project_root", "/home/sam/yard"),
    ]);
    let session = memory.session(id);
    assert_eq!(session.cwd.as_deref().map(Path::new), Some(Path::new("/home/sam/yard")));
    assert_eq!(session.project.as_deref(), Some("yard"));
}

fn copilot(n: u32, kind: &str, data: &str) -> String {
    format!(
        r#"{{"type":"{kind}","data":{data},"id":"0000000{n}-0000-4000-8000-000000000001","timestamp":"2026-10-01T10:00:0{n}.000Z","parentId":null}}"#
    ) + "\n"
}

#[test]
fn copilots_sums_at_a_shutdown_are_what_is_new_and_what_is_cached() {
    let id = "d4f0e51c-2b7d-4c0e-9a35-d1e84b7092fa";
    let log = copilot(
        1,
        "session.start",
        &format!(r#"{{"sessionId":"{id}","context":{{"cwd":"/w"}}}}"#),
    ) + &copilot(
        2,
        "user.message",
        r#"{"content":"[[ ## user_query ## ]]\n\ngrease the pulley"}"#,
    ) + &copilot(
        3,
        "assistant.message",
        r#"{"messageId":"m1","content":"greased","outputTokens":40}"#,
    ) + &copilot(
        4,
        "session.shutdown",
        r#"{"shutdownType":"routine","modelMetrics":{"m":{"requests":{"count":1},"usage":{"inputTokens":900,"outputTokens":40,"cacheReadTokens":600,"cacheWriteTokens":100}}}}"#,
    );
    let memory = ingest(&[(&format!("session-state/{id}/events.jsonl"), &log)]);
    let session = memory.session(id);
    assert_eq!(tokens(&session), [200, 40, 600, 100]);
    // The heading that a program set over its prompt is no word of it.
    assert_eq!(session.title.as_deref(), Some("grease the pulley"));
    assert_eq!(session.user_messages, 1);
    let heading = memory.events().into_iter().find(|event| event.text.contains("user_query"));
    assert_eq!(heading.map(|event| event.event_type), Some(EventType::Notification));
}
