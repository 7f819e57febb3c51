//! What Codex copies when it forks a thread or spawns an agent (docs/formats.md#codex).

use crate::memory::Memory;
use crate::traps::write;

const PARENT: &str = "a1f0e51c-2b7d-4c0e-9a35-d1e84b7092fa";
const CHILD: &str = "b2f0e51c-2b7d-4c0e-9a35-d1e84b7092fb";

/// A line of a rollout, the given seconds into it.
fn line(at: usize, kind: &str, payload: &str) -> String {
    let (hour, minute, second) = (10 + at / 3600, at / 60 % 60, at % 60);
    format!(
        r#"{{"timestamp":"2026-10-01T{hour}:{minute:02}:{second:02}.000Z","type":"{kind}","payload":{payload}}}"#
    ) + "\n"
}

fn head(at: usize, id: &str, more: &str) -> String {
    line(at, "session_meta", &format!(r#"{{"id":"{id}","cwd":"/w"{more}}}"#))
}

/// One turn: a prompt, what the model answered, and what both have used so far.
fn turn(at: impl Fn(usize) -> usize, n: usize) -> String {
    let prompt = format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"ask {n}"}}]}}"#
    );
    let answer = format!(r#"{{"type":"agent_message","message":"answer {n}"}}"#);
    let counts = |n: usize| {
        format!(
            r#"{{"input_tokens":{},"cached_input_tokens":0,"output_tokens":{},"reasoning_output_tokens":0,"total_tokens":{}}}"#,
            n * 1000,
            n * 100,
            n * 1100
        )
    };
    let used = format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{},"last_token_usage":{},"model_context_window":1000}}}}"#,
        counts(n),
        counts(1)
    );
    line(at(0), "response_item", &prompt)
        + &line(at(3), "event_msg", &answer)
        + &line(at(6), "event_msg", &used)
}

fn ingest(logs: &[(&str, String)]) -> Memory {
    let dir = tempfile::tempdir().expect("tempdir");
    for (id, log) in logs {
        let name = format!("rollout-2026-10-01T10-00-00-{id}.jsonl");
        write(&dir.path().join(name), log, 1);
    }
    let memory = Memory::default();
    memory.ingest(dir.path());
    memory
}

/// An agent that was given the last three turns of forty, and its own turn.
fn last_turns() -> [(&'static str, String); 2] {
    let parent =
        head(0, PARENT, "") + &(1..=40).map(|n| turn(|more| n * 60 + more, n)).collect::<String>();
    let spawned = format!(
        r#","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{PARENT}","depth":1}}}}}}"#
    );
    let child = head(2500, CHILD, &spawned)
        + &(38..=40).map(|n| turn(|_| 2500, n)).collect::<String>()
        + &turn(|more| 2510 + more, 41);
    [(PARENT, parent), (CHILD, child)]
}

#[test]
fn an_agent_that_got_the_last_turns_counts_its_own_only() {
    let child = ingest(&last_turns()).session(CHILD);
    assert_eq!((child.turns, child.replay_events), (1, 9));
    assert_eq!((child.input_tokens, child.output_tokens), (Some(1000), Some(100)));
    assert_eq!(child.title.as_deref(), Some("ask 41"));
    assert_eq!(child.usage_confidence.as_deref(), Some("measured"));
}

#[test]
fn of_a_parent_that_is_not_there_no_tokens_are_counted() {
    let [_, child] = last_turns();
    let child = ingest(&[child]).session(CHILD);
    assert_eq!((child.input_tokens, child.output_tokens), (Some(1000), Some(100)));
    assert_eq!(child.usage_confidence.as_deref(), Some("estimated"));
}

#[test]
fn the_ends_of_copied_calls_are_no_calls_of_the_copy() {
    let patch = |n: usize| {
        let changes = format!(r#"{{"a{n}.rs":{{"update":{{"unified_diff":"+{n}"}}}}}}"#);
        let id = format!("c{n}");
        [
            format!(
                r#"{{"type":"custom_tool_call","name":"apply_patch","call_id":"{id}","input":"*** Update File: a{n}.rs"}}"#
            ),
            format!(
                r#"{{"type":"patch_apply_end","call_id":"{id}","stdout":"done","success":true,"changes":{changes},"filler":"{}"}}"#,
                "x".repeat(100)
            ),
            format!(r#"{{"type":"custom_tool_call_output","call_id":"{id}","output":"done"}}"#),
        ]
    };
    let turns = 1..=40;
    let parent = turns.clone().map(|n| {
        let [call, end, output] = patch(n);
        turn(|more| n * 60 + more, n)
            + &line(n * 60 + 7, "response_item", &call)
            + &line(n * 60 + 8, "event_msg", &end)
            + &line(n * 60 + 9, "response_item", &output)
    });
    let parent = head(0, PARENT, "") + &parent.collect::<String>();
    let copied = turns.map(|n| turn(|_| 2500, n)).collect::<String>()
        + &(1..=40).map(|n| line(2500, "event_msg", &patch(n)[1])).collect::<String>();
    let spawned = format!(
        r#","source":{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{PARENT}","depth":1}}}}}}"#
    );
    let child = head(2500, CHILD, &spawned)
        + &head(2500, PARENT, "")
        + &copied
        + &turn(|more| 2510 + more, 41);
    let child = ingest(&[(PARENT, parent), (CHILD, child)]).session(CHILD);
    assert_eq!((child.tool_calls, child.turns), (0, 1));
    assert_eq!(child.input_tokens, Some(1000));
}

#[test]
fn machine_text_tells_the_folder_and_is_no_prompt() {
    let said = |at: usize, text: &str| {
        line(
            at,
            "response_item",
            &format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
            ),
        )
    };
    let meta = line(0, "session_meta", &format!(r#"{{"id":"{PARENT}"}}"#));
    let log =
        meta + &said(
            1,
            r"<environment_context>\n <cwd>/home/mira/code/harbor</cwd>\n</environment_context>",
        ) + &said(2, "<user_action>\\n <context>User initiated a review task</context>")
            + &said(3, r#"<hook_prompt hook_run_id=\"1\">go on</hook_prompt>"#)
            + &said(4, "<goal_context>paint</goal_context>")
            + &said(5, "ask");
    let session = ingest(&[(PARENT, log)]).session(PARENT);
    assert_eq!(session.cwd.as_deref(), Some("/home/mira/code/harbor"));
    assert_eq!(session.project.as_deref(), Some("harbor"));
    assert_eq!((session.turns, session.title.as_deref()), (1, Some("ask")));
}

#[test]
fn an_agent_of_the_second_generation_is_named_by_its_start() {
    let started = format!(
        r#"{{"type":"sub_agent_activity","event_id":"call_1","agent_thread_id":"{CHILD}","agent_path":"/root/scout","kind":"started"}}"#
    );
    let memory = ingest(&[(PARENT, head(0, PARENT, "") + &line(2, "event_msg", &started))]);
    let events = memory.events();
    let told = events.last().expect("an event");
    assert_eq!(told.spawned_agent_id.as_deref(), Some(CHILD));
    assert_eq!(told.tool_call_id.as_deref(), Some("call_1"));
}

/// Records of the original that give no event, such as `turn_context`, are in the fork with their
/// old times.
#[test]
fn copied_records_widen_the_time_of_no_fork() {
    let context = |at: usize| {
        let policy = r#"{"type":"workspace-write","writable_roots":["/w"],"network_access":false}"#;
        line(
            at,
            "turn_context",
            &format!(r#"{{"turn_id":"t{at}","cwd":"/w","model":"m","sandbox_policy":{policy}}}"#),
        )
    };
    let history =
        context(1) + &turn(|more| 2 + more, 1) + &context(20) + &turn(|more| 21 + more, 2);
    let more = r#","originator":"codex_cli_rs","cli_version":"0.154.0","source":"cli""#;
    let parent = head(0, PARENT, more) + &history;
    let copied = format!(r#","forked_from_id":"{PARENT}""#);
    let copy = head(5000, CHILD, &copied) + &parent;
    let fork = copy.clone() + &context(5001) + &turn(|more| 5002 + more, 3);

    let start = |log: &String| {
        let session = ingest(&[(PARENT, parent.clone()), (CHILD, log.clone())]).session(CHILD);
        let (started, ended) = (session.started_at.expect("time"), session.ended_at.expect("time"));
        (started, (ended - started) / 1_000_000)
    };
    let began = 1_790_848_800_000_000 + 5_000_000_000;
    assert_eq!(start(&fork), (began, 8));
    assert_eq!(start(&copy), (began, 0), "its head is its own");
}
