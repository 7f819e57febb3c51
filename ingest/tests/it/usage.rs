//! Tokens of each response are counted once, with the mode that decides their price.

use ingest::provider::format_of;
use schemas::session::{EventRow, ModelUsage};
use schemas::{EventType, Provider};

use crate::memory::{Memory, samples};
use crate::traps::{texts, user, write};

/// Counts of a Codex record: input with cached tokens, cached tokens, output.
fn codex_counts(input: i64, cached: i64, output: i64) -> String {
    format!(
        r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"total_tokens":{}}}"#,
        input + output
    )
}

/// The record of a response, with more fields of the payload.
fn response(id: &str, counts: &str, more: &str) -> (&'static str, String) {
    let payload =
        format!(r#"{{"thread_id":"t","turn_id":"1","response_id":"{id}","usage":{counts}{more}}}"#);
    ("token_usage_record", payload)
}

/// A `token_count` event.
fn count(total: &str, last: &str) -> (&'static str, String) {
    let info = format!(r#"{{"total_token_usage":{total},"last_token_usage":{last}}}"#);
    ("event_msg", format!(r#"{{"type":"token_count","info":{info},"rate_limits":null}}"#))
}

/// Ingests a rollout of Codex. Returns the rows with usage.
fn ingest_codex(records: &[(&'static str, String)]) -> (Memory, Vec<EventRow>) {
    let id = "a1f0e51c-2b7d-4c0e-9a35-d1e84b7092fb";
    let meta = ("session_meta", format!(r#"{{"id":"{id}","cwd":"/w","cli_version":"0.154.0"}}"#));
    let context = ("turn_context", r#"{"cwd":"/w","model":"gpt-5.6-terra"}"#.to_owned());
    let mut log = String::new();
    for (at, (kind, payload)) in [&meta, &context].into_iter().chain(records).enumerate() {
        log += &format!(
            r#"{{"timestamp":"2026-10-01T10:00:{at:02}.000Z","type":"{kind}","payload":{payload}}}"#
        );
        log.push('\n');
    }
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join(format!("rollout-2026-10-01T10-00-00-{id}.jsonl")), &log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let rows = usage_rows(&memory);
    (memory, rows)
}

fn usage_rows(memory: &Memory) -> Vec<EventRow> {
    let events = memory.events().into_iter();
    events.filter(|event| event.event_type == EventType::TokenUsage).collect()
}

/// Request, uncached input, cached input and output of a row.
fn counts(row: &EventRow) -> (Option<&str>, i64, i64, i64) {
    let of = |count: Option<i64>| count.unwrap_or(0);
    let cached = of(row.cache_read_tokens);
    (row.request_id.as_deref(), of(row.input_tokens), cached, of(row.output_tokens))
}

/// Outputs of versions of Copilot up to 1.0.12 before the first record that names a model.
#[test]
fn the_first_outputs_of_copilot_have_the_model_that_later_records_name() {
    let id = "b7c1a3de-52f4-4c1b-9a06-1f4e0d97c8aa";
    let record = |at: u32, kind: &str, data: &str| {
        format!(
            r#"{{"type":"{kind}","id":"{at:08}-52f4-4c1b-9a06-1f4e0d97c8aa","timestamp":"2026-10-01T10:00:{at:02}.000Z","parentId":null,"data":{{{data}}}}}"#
        ) + "\n"
    };
    let start =
        record(0, "session.start", &format!(r#""sessionId":"{id}","copilotVersion":"1.0.11""#));
    let output = |at: u32| {
        record(at, "assistant.message", r#""content":"I look.","outputTokens":12,"apiCallId":"a""#)
    };
    let tool = record(
        2,
        "tool.execution_complete",
        r#""toolCallId":"c","success":true,"model":"claude-sonnet-4.5""#,
    );
    let sums = |models: &[&str]| {
        let metric = |model: &&str| {
            format!(r#""{model}":{{"usage":{{"inputTokens":100,"outputTokens":12}}}}"#)
        };
        let metrics: Vec<_> = models.iter().map(metric).collect();
        record(
            3,
            "session.shutdown",
            &format!(r#""currentModel":"gpt-5","modelMetrics":{{{}}}"#, metrics.join(",")),
        )
    };
    let models = |memory: &Memory| -> Vec<Option<String>> {
        let events = memory.events().into_iter();
        // Without what the sums of the run have in addition.
        let of_messages = events
            .filter(|event| event.event_type == EventType::TokenUsage && event.subtype.is_none());
        of_messages.map(|event| event.model).collect()
    };
    let named = |model: &str| vec![Some(model.to_owned())];

    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join(id).join("events.jsonl");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
    for (rest, want) in [
        (String::new(), vec![None]),
        (tool.clone(), named("claude-sonnet-4.5")),
        (tool.clone() + &sums(&["gpt-5.2"]), named("gpt-5.2")),
        (sums(&["a", "b"]), named("gpt-5")),
    ] {
        // At once, and as the log grows.
        let whole = start.clone() + &output(1) + &rest;
        let memory = Memory::default();
        write(&path, &whole, 1);
        memory.ingest(dir.path());
        assert_eq!(models(&memory), want);

        let memory = Memory::default();
        let mut log = String::new();
        for (tick, line) in (2..).zip(whole.split_inclusive('\n')) {
            log += line;
            write(&path, &log, tick);
            memory.ingest(dir.path());
        }
        assert_eq!(models(&memory), want);
    }
}

#[test]
fn a_compaction_counts_though_the_totals_leave_it_out() {
    let first = codex_counts(1000, 400, 50);
    let compaction = codex_counts(6000, 5000, 200);
    let second = codex_counts(800, 300, 30);
    let total = codex_counts(1800, 700, 80);
    let (memory, rows) = ingest_codex(&[
        response("r1", &first, ""),
        count(&first, &first),
        response("rc", &compaction, ""),
        (
            "compacted",
            format!(
                r#"{{"message":"","compaction_response_id":"rc","latest_token_usage_record":{{"response_id":"rc","usage":{compaction}}}}}"#
            ),
        ),
        count(&first, &first),
        response("r2", &second, ""),
        count(&total, &second),
    ]);
    let counted: Vec<_> = rows.iter().map(counts).collect();
    let expected =
        [(Some("r1"), 600, 400, 50), (Some("rc"), 1000, 5000, 200), (Some("r2"), 500, 300, 30)];
    assert_eq!(counted, expected);
    assert_eq!(memory.sessions()[0].output_tokens, Some(280));
    assert_eq!(memory.sessions()[0].drift, None);
}

#[test]
fn totals_add_only_what_no_record_has() {
    let first = codex_counts(1000, 400, 50);
    let second = codex_counts(800, 300, 30);
    let both = codex_counts(1800, 700, 80);
    // The second response has no record, and the count of the third comes before its record.
    let more = codex_counts(1900, 700, 90);
    let third = codex_counts(100, 0, 10);
    let (_, rows) = ingest_codex(&[
        response("r1", &first, ""),
        count(&first, &first),
        count(&both, &second),
        count(&more, &third),
        response("r3", &third, ""),
        response("r1", &first, ""),
    ]);
    let counted: Vec<_> = rows.iter().map(counts).collect();
    assert_eq!(counted, [(Some("r1"), 600, 400, 50), (None, 500, 300, 30), (None, 100, 0, 10)]);

    // An aborted request is only in the growth of the totals.
    let (_, rows) = ingest_codex(&[
        response("r1", &first, ""),
        count(&first, &first),
        response("r2", &second, ""),
        count(&codex_counts(2300, 700, 85), &second),
    ]);
    let counted: Vec<_> = rows.iter().map(counts).collect();
    let expected = [(Some("r1"), 600, 400, 50), (Some("r2"), 500, 300, 30), (None, 500, 0, 5)];
    assert_eq!(counted, expected);
}

#[test]
fn a_service_tier_lasts_until_another_is_named() {
    let settings = |tier: &str| {
        let settings = format!(r#"{{"model":"gpt-5.6-terra","service_tier":{tier}}}"#);
        (
            "event_msg",
            format!(r#"{{"type":"thread_settings_applied","thread_settings":{settings}}}"#),
        )
    };
    let small = codex_counts(100, 0, 10);
    let (memory, rows) = ingest_codex(&[
        settings(r#""priority""#),
        response("r1", &small, ""),
        response("r2", &small, r#","service_tier":"flex""#),
        settings(r#""default""#),
        response("r3", &small, ""),
        ("turn_context", r#"{"model":"gpt-5.6-terra","service_tier":"priority"}"#.to_owned()),
        response("r4", &small, ""),
        settings("null"),
        response("r5", &small, ""),
    ]);
    let tiers: Vec<_> = rows.iter().map(|row| row.service_tier.as_deref()).collect();
    let expected = [Some("priority"), Some("flex"), Some("default"), Some("priority"), None];
    assert_eq!(tiers, expected);
    let models: Vec<ModelUsage> = memory.sessions()[0].model_usage();
    let modes: Vec<_> = models.iter().map(|entry| (entry.name(), entry.usage.output)).collect();
    let expected = [
        ("gpt-5.6-terra (service_tier priority)".to_owned(), Some(20)),
        ("gpt-5.6-terra (service_tier flex)".to_owned(), Some(10)),
        ("gpt-5.6-terra".to_owned(), Some(20)),
    ];
    assert_eq!(modes, expected);
}

/// A line of a response of Claude's.
fn claude(session: &str, n: u32, id: &str, text: &str, usage: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"0000000b-0000-4000-8000-{n:012}","sessionId":"{session}","timestamp":"2026-10-01T10:00:{:02}.000Z","message":{{"id":"{id}","role":"assistant","model":"claude-opus-4-8","content":[{{"type":"text","text":"{text}"}}],"usage":{{{usage}}}}}}}"#,
        n % 60
    ) + "\n"
}

fn ingest_claude(logs: &[(&str, String)]) -> Memory {
    let dir = tempfile::tempdir().expect("tempdir");
    for (at, (name, log)) in (1..).zip(logs) {
        write(&dir.path().join(format!("{name}.jsonl")), log, at);
    }
    let memory = Memory::default();
    memory.ingest(dir.path());
    memory
}

#[test]
fn the_mode_and_the_searches_of_a_request_are_kept() {
    let fast = r#""input_tokens":1,"output_tokens":2,"speed":"fast","service_tier":"batch","inference_geo":"us","server_tool_use":{"web_search_requests":3}"#;
    let plain = r#""input_tokens":1,"output_tokens":2,"speed":"standard","server_tool_use":{"web_search_requests":0}"#;
    let log = user("a", 1, "go")
        + &claude("a", 2, "m1", "one", fast)
        // Another line of the same response.
        + &claude("a", 3, "m1", "two", &fast.replace("\"output_tokens\":2", "\"output_tokens\":5"))
        + &claude("a", 4, "m2", "three", plain);
    let memory = ingest_claude(&[("a", log)]);
    let rows = usage_rows(&memory);
    let modes: Vec<_> = rows
        .iter()
        .map(|row| {
            let words = [&row.service_tier, &row.speed, &row.inference_geo];
            (words.map(|word| word.as_deref().unwrap_or("")), row.web_search_requests)
        })
        .collect();
    let fast = ["batch", "fast", "us"];
    assert_eq!(modes, [(fast, Some(3)), (fast, Some(0)), (["", "standard", ""], None)]);
    let models = memory.session("a").model_usage();
    assert_eq!(models[0].usage.web_search, Some(3));
    assert_eq!((models.len(), models[0].usage.output), (2, Some(5)));
}

#[test]
fn an_advisor_is_a_request_of_its_own_model() {
    let usage = |advisor: i64| {
        format!(
            r#""input_tokens":10,"output_tokens":20,"iterations":[{{"type":"message","input_tokens":4,"output_tokens":9}},{{"type":"advisor_message","model":"claude-opus-5","input_tokens":7,"output_tokens":{advisor}}},{{"type":"fallback_message","input_tokens":6,"output_tokens":11}}]"#
        )
    };
    let log = user("a", 1, "go")
        + &claude("a", 2, "m1", "one", &usage(1))
        + &claude("a", 3, "m1", "two", &usage(3));
    let memory = ingest_claude(&[("a", log)]);
    let session = memory.session("a");
    assert_eq!((session.input_tokens, session.output_tokens), (Some(17), Some(23)));
    assert_eq!(session.model.as_deref(), Some("claude-opus-4-8"));
    let models: Vec<_> =
        session.model_usage().into_iter().map(|m| (m.name(), m.usage.output)).collect();
    let expected =
        [("claude-opus-4-8".to_owned(), Some(20)), ("claude-opus-5".to_owned(), Some(3))];
    assert_eq!(models, expected);
    let requests: Vec<_> =
        usage_rows(&memory).into_iter().filter_map(|row| row.request_id).collect();
    assert_eq!(requests, ["m1", "m1:advisor_message:1", "m1:advisor_message:1"]);
}

const SMALL: &str = r#""input_tokens":100,"output_tokens":50"#;

#[test]
fn a_resumed_log_with_new_uuids_is_a_copy() {
    let original =
        user("a", 1, "list them") + &claude("a", 2, "m1", "four", SMALL) + &user("a", 3, "thanks");
    let resumed = user("b", 11, "list them")
        + &claude("b", 12, "m1", "four", SMALL)
        + &user("b", 13, "thanks")
        + &claude("b", 14, "m2", "welcome", r#""input_tokens":120,"output_tokens":30"#);
    let check = |memory: &Memory| {
        let usage: i64 = memory.sessions().iter().filter_map(|row| row.output_tokens).sum();
        assert_eq!(usage, 80);
        let copied: Vec<_> = memory
            .events()
            .into_iter()
            .filter(|event| event.is_replay && event.event_type != EventType::TokenUsage)
            .map(|event| (event.session_id, event.text))
            .collect();
        let texts = ["list them", "four", "thanks"];
        assert_eq!(copied, texts.map(|text| ("b".to_owned(), text.to_owned())));
        let session = memory.session("b");
        assert_eq!((session.turns, session.steps), (0, 1));
        assert_eq!(session.parent_session_id.as_deref(), Some("a"));
    };
    check(&ingest_claude(&[("a", original.clone()), ("b", resumed.clone())]));

    // In whatever order they arrive.
    for names in [["a", "b"], ["b", "a"]] {
        let dir = tempfile::tempdir().expect("tempdir");
        let memory = Memory::default();
        for name in names {
            let log = if name == "a" { &original } else { &resumed };
            write(&dir.path().join(format!("{name}.jsonl")), log, if name == "a" { 1 } else { 2 });
            memory.ingest(dir.path());
        }
        let output: i64 = memory.sessions().iter().filter_map(|row| row.output_tokens).sum();
        assert_eq!(output, 80, "{names:?}");
    }
}

#[test]
fn a_response_that_stands_again_far_below_counts_once() {
    let mut log = user("a", 1, "go");
    for n in 0..300 {
        log += &claude("a", 100 + n, &format!("m{n}"), &format!("text {n}"), SMALL);
    }
    log += &claude("a", 900, "m0", "text 0", SMALL);
    log += &claude("a", 901, "m299", "text 299", SMALL);
    let memory = ingest_claude(&[("a", log)]);
    let session = memory.session("a");
    assert_eq!((session.output_tokens, session.steps), (Some(300 * 50), 300));
    assert_eq!(texts(&memory).iter().filter(|text| *text == "text 0").count(), 2);
    assert_eq!(memory.events().iter().filter(|event| event.is_replay).count(), 3);
}

#[test]
fn the_largest_counts_of_a_response_win() {
    let log = user("a", 1, "go")
        + &claude("a", 2, "m1", "text", r#""input_tokens":100,"output_tokens":1"#)
        + &claude("a", 3, "m1", "text", SMALL)
        + &claude("a", 4, "m1", "text", r#""input_tokens":100,"output_tokens":3"#);
    assert_eq!(ingest_claude(&[("a", log)]).session("a").output_tokens, Some(50));
}

#[test]
fn a_record_with_tokens_that_the_decoder_does_not_know_lowers_the_confidence() {
    let small = codex_counts(100, 0, 10);
    let confidence = |records: &[(&'static str, String)]| {
        let (memory, _) = ingest_codex(records);
        let session = memory.sessions().remove(0);
        (session.usage_confidence, session.drift)
    };
    let known = [response("r1", &small, "")];
    assert_eq!(confidence(&known), (Some("measured".to_owned()), None));
    let odd = format!(r#"{{"type":"memory_request","cost":{{"usage":{small}}}}}"#);
    let records = [response("r1", &small, ""), ("event_msg", odd)];
    let (level, drift) = confidence(&records);
    assert_eq!(level.as_deref(), Some("partial"));
    assert!(drift.expect("drift").contains(r#""usage:event_msg/memory_request":1"#));
    // A record without counts does not matter, nor does a limit.
    let odd = r#"{"type":"memory_request","max_tokens":9,"tokens":0}"#.to_owned();
    let records = [response("r1", &small, ""), ("event_msg", odd)];
    assert_eq!(confidence(&records).0.as_deref(), Some("measured"));
}

#[test]
fn an_unknown_count_in_a_response_lowers_the_confidence() {
    let judge = |log: String| {
        let session = ingest_claude(&[("a", log)]).session("a");
        (session.usage_confidence.expect("known"), session.drift.unwrap_or_default())
    };
    let plain = user("a", 1, "go") + &claude("a", 2, "m1", "one", SMALL);
    assert_eq!(judge(plain.clone()), ("measured".to_owned(), String::new()));
    // Next to the known counts, before another field that is unknown.
    let usage = format!(r#"{SMALL},"judge_tokens":7,"tier_note":"x""#);
    let (level, drift) = judge(plain.clone() + &claude("a", 3, "m2", "two", &usage));
    assert_eq!(level, "partial");
    assert!(drift.contains(r#""usage:judge_tokens":1"#), "{drift}");
    assert!(!drift.contains("usage:tier_note"), "{drift}");
    // In an object of its own, before other unknown fields.
    let message = r#""judge":{"usage":{"prompt_tokens":7}},"note":1,"content""#;
    let line = claude("a", 3, "m2", "two", SMALL).replacen(r#""content""#, message, 1);
    let (level, drift) = judge(plain + &line);
    assert_eq!(level, "partial");
    assert!(drift.contains(r#""usage:judge":1"#), "{drift}");
}

#[test]
fn a_response_without_counts_lowers_the_confidence() {
    let counted = claude("a", 2, "m1", "one", SMALL);
    let confidence = |log: String| ingest_claude(&[("a", log)]).session("a").usage_confidence;
    let log = user("a", 1, "go") + &counted;
    assert_eq!(confidence(log.clone()).as_deref(), Some("measured"));
    let log = log + &claude("a", 3, "m2", "two", "");
    assert_eq!(confidence(log).as_deref(), Some("partial"));
}

#[test]
fn the_turns_of_grok_are_counted_from_its_updates() {
    let dir = tempfile::tempdir().expect("tempdir");
    let folder = dir.path().join("01a16000-0000-7000-8000-000000000002");
    std::fs::create_dir(&folder).expect("creates");
    let log = concat!(
        r#"{"type":"system","content":"You are Grok."}"#,
        "\n",
        r#"{"type":"user","content":"<user_query>go</user_query>","prompt_index":0}"#,
        "\n",
        r#"{"type":"assistant","content":"done","model_id":"grok-build"}"#,
        "\n"
    );
    let turn = |input: i64, models: &str| {
        format!(
            r#"{{"timestamp":1788422402,"params":{{"update":{{"sessionUpdate":"turn_completed","usage":{{"inputTokens":{input},"outputTokens":5,"cachedReadTokens":10,"reasoningTokens":2{models}}}}}}}}}"#
        ) + "\n"
    };
    let chunk = r#"{"timestamp":1,"params":{"update":{"sessionUpdate":"agent_message_chunk"},"_meta":{"totalTokens":900}}}"#;
    let mut updates = format!("{chunk}\n{}", turn(30, ""));
    write(&folder.join("chat_history.jsonl"), log, 1);
    write(&folder.join("updates.jsonl"), &updates, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let rows: Vec<_> = usage_rows(&memory).iter().map(|row| row.input_tokens).collect();
    assert_eq!(rows, [Some(20)]);

    // Only the updates grew; a turn with two models is two rows.
    let models = r#","modelUsage":{"grok-build":{"inputTokens":7,"outputTokens":1},"grok-5":{"inputTokens":8,"outputTokens":2}}"#;
    updates += &turn(15, models);
    write(&folder.join("updates.jsonl"), &updates, 2);
    memory.ingest(dir.path());
    let rows = usage_rows(&memory);
    let counted: Vec<_> = rows
        .iter()
        .map(|row| (row.model.as_deref(), row.input_tokens, row.output_tokens))
        .collect();
    let expected = [
        (Some("grok-build"), Some(20), Some(5)),
        (Some("grok-build"), Some(7), Some(1)),
        (Some("grok-5"), Some(8), Some(2)),
    ];
    assert_eq!(counted, expected);
    let session = &memory.sessions()[0];
    assert_eq!(session.usage_confidence.as_deref(), Some("measured"));
    assert_eq!(session.reasoning_tokens, Some(2));

    // The counts of a turn are those of its prompt, also when they are read later than the next.
    let next = r#"{"type":"user","content":"<user_query>and now</user_query>","prompt_index":1}"#;
    write(&folder.join("chat_history.jsonl"), &format!("{log}{next}\n"), 3);
    memory.ingest(dir.path());
    let turns: Vec<_> = usage_rows(&memory).iter().map(|row| row.turn_index).collect();
    assert_eq!(turns, [1, 2, 2]);
}

#[test]
fn a_subagent_of_version_1_0_without_records_lowers_the_confidence() {
    let ended = r#"{"type":"user","uuid":"0000000b-0000-4000-8000-000000000050","sessionId":"a","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"done"}]},"toolUseResult":{"content":[],"totalTokens":900,"totalToolUseCount":2}}"#;
    let own = user("a", 1, "go") + &claude("a", 2, "m1", "one", SMALL);
    let confidence = |log: String| ingest_claude(&[("a", log)]).session("a").usage_confidence;
    assert_eq!(confidence(format!("{own}{ended}\n")).as_deref(), Some("partial"));
    let inside = claude("a", 3, "m2", "sub", SMALL).replacen('{', r#"{"isSidechain":true,"#, 1);
    assert_eq!(confidence(format!("{own}{inside}{ended}\n")).as_deref(), Some("measured"));
}

#[test]
fn logs_of_another_decoder_are_read_again_once_and_those_gone_stay() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = |name: &str, n: u32| user(name, n, "go") + &claude(name, n + 1, name, "one", SMALL);
    for (name, n) in [("a", 1), ("b", 11)] {
        write(&dir.path().join(format!("{name}.jsonl")), &log(name, n), 1);
    }
    let memory = Memory::default();
    memory.ingest(dir.path());
    let before = memory.events();
    std::fs::remove_file(dir.path().join("b.jsonl")).expect("removes");
    memory.age_decoders();
    let again = memory.ingest(dir.path());
    assert_eq!((again.files_rewritten, again.bytes_read), (1, log("a", 1).len() as u64));
    assert_eq!(memory.events(), before);
    assert_eq!(memory.ingest(dir.path()).bytes_read, 0);
    let versions: Vec<_> = memory.sources().iter().map(|row| row.decoder_version).collect();
    let version = i64::from(format_of(Provider::Claude).decoder_version);
    assert_eq!(versions, [version, 0]);
}

#[test]
fn requests_of_qwens_client_are_counted_from_its_telemetry() {
    let head = |n: u32, rest: &str| {
        format!(
            r#"{{"uuid":"0000000d-0000-4000-8000-{n:012}","sessionId":"0000000d-0000-4000-8000-000000000000","timestamp":"2026-10-01T10:00:{n:02}.000Z","cwd":"/w","version":"0.24.1",{rest}}}"#
        ) + "\n"
    };
    let telemetry = |n: u32, id: &str, input: i64| {
        let event = format!(
            r#"{{"event.name":"qwen-code.api_response","response_id":"{id}","model":"qwen3-{id}","input_token_count":{input},"output_token_count":2,"total_token_count":{}}}"#,
            input + 2
        );
        let payload = format!(r#""systemPayload":{{"uiEvent":{event}}}"#);
        head(n, &format!(r#""type":"system","subtype":"ui_telemetry",{payload}"#))
    };
    let prompt = head(1, r#""type":"user","message":{"role":"user","parts":[{"text":"go"}]}"#);
    let answer = head(
        4,
        r#""type":"assistant","model":"qwen3-main","message":{"role":"model","parts":[{"text":"done"}]},"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11}"#,
    );
    // The client names the session before the model answers, and again at the end.
    let log = prompt + &telemetry(2, "title", 5) + &telemetry(3, "main", 9) + &answer;
    let memory = ingest_claude(&[("q", log.clone())]);
    let counted: Vec<_> = usage_rows(&memory)
        .into_iter()
        .map(|row| (row.request_id, row.model, row.input_tokens))
        .collect();
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        (text("title"), text("qwen3-title"), Some(5)),
        (text("main"), text("qwen3-main"), Some(9)),
    ];
    assert_eq!(counted, expected);
    assert_eq!(memory.sessions()[0].usage_confidence.as_deref(), Some("measured"));
    let memory = ingest_claude(&[("q", log + &telemetry(5, "title", 5))]);
    assert_eq!(memory.sessions()[0].usage_confidence.as_deref(), Some("partial"));
}

#[test]
fn the_sum_of_a_session_of_continue_counts_next_to_arguments_of_that_name() {
    let call = r#"{"id":"c","function":{"name":"save","arguments":{"promptTokens":7}}}"#;
    let message = |role: &str, more: &str| {
        format!(r#"{{"message":{{"role":"{role}","content":"count","id":"{role}"{more}}}}}"#)
    };
    let log = |usage: &str| {
        let answer = message("assistant", &format!(r#","toolCalls":[{call}]{usage}"#));
        format!(
            r#"{{"sessionId":"c-1","title":"t","workspaceDirectory":"/w","usage":{{"promptTokens":50,"completionTokens":5}},"history":[{},{answer}]}}"#,
            message("user", "")
        )
    };
    for (usage, input) in [("", 50), (r#","usage":{"promptTokens":40}"#, 40)] {
        let dir = tempfile::tempdir().expect("tempdir");
        write(&dir.path().join("c-1.json"), &log(usage), 1);
        let memory = Memory::default();
        memory.ingest(dir.path());
        assert_eq!(memory.session("c-1").usage().input, Some(input), "{usage}");
    }
}

/// A log that was appended to itself, as by a tool that synchronizes folders.
#[test]
fn records_that_stand_twice_in_a_log_count_once() {
    for path in [
        "gptme/logs/2026-10-28-brave-otter/conversation.jsonl",
        "junie/.junie/sessions/session-261028-090000-k7fd/events.jsonl",
    ] {
        let log = std::fs::read_to_string(samples().join(path)).expect("reads");
        let ingest = |log: &str| {
            let dir = tempfile::tempdir().expect("tempdir");
            let place = dir.path().join(path);
            std::fs::create_dir_all(place.parent().expect("a folder")).expect("creates");
            write(&place, log, 1);
            let memory = Memory::default();
            memory.ingest(dir.path());
            let row = |event: EventRow| format!("{:?} {}", event.event_type, event.text);
            let mut rows: Vec<String> = memory.events().into_iter().map(row).collect();
            // The result of a call is where the last of its records is.
            rows.sort();
            rows
        };
        let once = ingest(&log);
        assert!(once.iter().any(|row| row.starts_with("TokenUsage")), "{path}");
        assert_eq!(ingest(&log.repeat(2)), once, "{path}");
    }
}
