//! One session on two machines: a log that was synced and continued on both, and different logs that
//! have one id. Nothing is lost, and what both have in common counts once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::{Random, SETTINGS, TestEnv};
use crate::lake::{KILLS, assert_sessions, machine, objects, pull, push};
use crate::lake_compact::{check_joined, compact};
use crate::rounds::rounds;

/// The id of the session that the machines have in common.
pub(crate) const SESSION: &str = "cd000000-0000-4000-8000-0000000000cd";

/// Tokens of each answer.
const TOKENS: i64 = 7;

/// Writes a log of Claude Code with these turns, and ingests it. A turn has a prompt and an answer; its
/// number gives it its ids and its time.
pub(crate) fn write_turns(env: &TestEnv, session: &str, turns: &[usize]) {
    let mut text = String::new();
    let mut parent = Value::Null;
    for turn in turns {
        let mut push_record = |at: usize, kind: &str, message: Value| {
            let uuid = format!("{turn:08}-0000-4000-8000-{at:012}");
            let record = json!({
                "parentUuid": parent, "isSidechain": false, "userType": "external",
                "cwd": "/code/depot", "sessionId": session, "version": "2.1.257",
                "type": kind, "uuid": uuid, "message": message,
                "timestamp": format!("2026-09-10T{:02}:{:02}:{at:02}.000Z", turn / 60, turn % 60),
            });
            parent = json!(uuid);
            text.push_str(&format!("{record}\n"));
        };
        push_record(1, "user", json!({ "role": "user", "content": format!("Prompt {turn}.") }));
        let answer = json!({
            "id": format!("msg_{turn}"), "type": "message", "role": "assistant",
            "model": "claude-opus-4-6",
            "content": [{ "type": "text", "text": format!("Answer {turn}.") }],
            "usage": { "input_tokens": 1, "output_tokens": TOKENS },
        });
        push_record(2, "assistant", answer);
    }
    env.write(format!("logs/projects/-code-depot/{session}.jsonl"), text);
    env.ingest("logs");
}

pub(crate) fn publisher(name: &str) -> TestEnv {
    machine(name, "kim", "include = ['**']\ncontent = 'full'")
}

/// The prompts and answers that count, sorted.
const TEXTS: &str = "SELECT text FROM events WHERE event_type IN ('user', 'message') AND NOT is_replay ORDER BY text";

/// The same for these turns, each once.
fn texts_of(turns: impl IntoIterator<Item = usize>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for turn in turns {
        texts.extend([format!("Answer {turn}."), format!("Prompt {turn}.")]);
    }
    texts.sort();
    texts
}

/// Checks that a store has these turns, and counts each once.
pub(crate) fn check_turns(env: &TestEnv, turns: &[usize], what: &str) {
    assert_eq!(env.texts(TEXTS), texts_of(turns.iter().copied()), "{what}");
    let sums =
        "SELECT sum(output_tokens), sum(user_messages), sum(turns), sum(messages) FROM sessions";
    let number = turns.len() as i64;
    let wanted: Vec<Value> =
        [TOKENS * number, number, number, number].iter().map(|sum| json!(sum)).collect();
    assert_eq!(env.rows(sums), [wanted], "{what}");
}

#[test]
fn the_beginning_of_a_log_is_not_another_one() {
    let (a, b, reader) = (publisher("a"), publisher("b"), machine("reader", "team", ""));
    let lake = a.path("lake");
    write_turns(&a, SESSION, &[1]);
    write_turns(&b, SESSION, &[1, 2]);
    push(&a, &lake);
    pull(&reader, &lake);
    check_turns(&reader, &[1], "the beginning");
    push(&b, &lake);
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2], "the whole");
    push(&a, &lake);
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2], "the beginning again");
    assert_sessions(&reader, 1);
    // A machine that has the beginning gets the rest.
    pull(&a, &lake);
    check_turns(&a, &[1, 2], "the rest");
    write_turns(&a, SESSION, &[1, 2]);
    pull(&a, &lake);
    check_turns(&a, &[1, 2], "its own log has all");
    assert_sessions(&a, 1);
    push(&a, &lake).has(json!({"held_by_others": 1}));
}

#[test]
fn histories_that_parted_are_both_published() {
    let (a, b) = (publisher("a"), publisher("b"));
    let lake = a.path("lake");
    write_turns(&a, SESSION, &[1, 2]);
    write_turns(&b, SESSION, &[1, 3]);
    push(&a, &lake);
    let pushed = push(&b, &lake);
    let id = pushed["published"][0]["session_id"].text().to_owned();
    assert!(id.starts_with(&format!("{SESSION}~")));
    assert_eq!(pushed["published"][0]["forked_from"], SESSION);
    let reader = machine("reader", "team", "");
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2, 3], "both");
    let relation =
        "SELECT session_id, parent_session_id, relation FROM sessions WHERE relation IS NOT NULL";
    assert_eq!(reader.rows(relation), [[json!(id), json!(SESSION), json!("forked_from")]]);

    // Its id stays while it grows, and nothing is taken away.
    write_turns(&b, SESSION, &[1, 3, 4, 5]);
    let grown = push(&b, &lake);
    assert_eq!(grown["published"][0]["session_id"], id);
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2, 3, 4, 5], "the other one is longer now");
    push(&b, &lake).has(json!({"objects": 0}));
    assert!(push(&b, &lake)["requests"].as_u64() <= Some(2));

    // Each of them has the other one, and its own stays as it is.
    for env in [&a, &b] {
        pull(env, &lake);
        check_turns(env, &[1, 2, 3, 4, 5], "a machine with a log of its own");
        let own = format!("SELECT replay_events FROM sessions WHERE session_id = '{SESSION}'");
        assert_eq!(env.rows(&own), [[json!(0)]]);
        pull(env, &lake).has(json!({"imported": 0}));
    }
    // A new lake, or one that was emptied, gets the same ids in the same order of pushes.
    let before: Vec<_> = objects(&lake).into_keys().collect();
    fs::remove_dir_all(lake.join("v1")).expect("removes");
    push(&a, &lake);
    push(&b, &lake);
    assert_eq!(objects(&lake).into_keys().collect::<Vec<_>>(), before);

    // A compaction joins both, and readers of joined objects see the same.
    compact(&a, &lake);
    assert!(check_joined(&lake).0 > 0);
    let late = machine("late", "team", "");
    pull(&late, &lake);
    check_turns(&late, &[1, 2, 3, 4, 5], "late");

    // One that is withdrawn takes only its own part with it.
    a.run(["forget", SESSION, "--yes"]).ok();
    push(&a, &lake);
    for env in [&reader, &late] {
        pull(env, &lake);
        check_turns(env, &[1, 3, 4, 5], "the other one has all of its own");
    }
}

/// The id of the thread that the machines have in common.
const THREAD: &str = "T-019b6c10-0000-7000-8000-0000000000cd";

/// Writes a thread of Amp with these turns, and ingests it. The document is rewritten as a whole, and
/// what the thread paid for its title stays the last event.
fn write_thread(env: &TestEnv, turns: &[usize]) {
    let time = |turn: usize, second: usize| format!("2026-09-10T10:{turn:02}:{second:02}.000Z");
    let mut messages: Vec<Value> = Vec::new();
    for turn in turns {
        let usage = json!({
            "model": "claude-opus-4-6", "inputTokens": 1, "outputTokens": TOKENS,
            "timestamp": time(*turn, 2),
        });
        messages.push(json!({
            "role": "user", "messageId": messages.len(),
            "content": [{ "type": "text", "text": format!("Prompt {turn}.") }],
            "meta": { "sentAt": 1_789_034_401_000_usize + turn * 60_000 },
        }));
        messages.push(json!({
            "role": "assistant", "messageId": messages.len(), "usage": usage,
            "content": [{ "type": "text", "text": format!("Answer {turn}.") }],
        }));
    }
    let title = json!({
        "id": "9f21", "operationType": "title-generation", "model": "claude-haiku-4-5",
        "timestamp": time(1, 3), "tokens": { "input": 3, "output": 0 },
    });
    let thread = json!({
        "v": messages.len(), "id": THREAD, "created": 1_789_034_460_000_usize, "messages": messages,
        "env": { "initial": { "trees": [{ "uri": "file:///code/depot" }] } },
        "usageLedger": { "events": [title] },
    });
    env.write(format!("logs/amp/threads/{THREAD}.json"), format!("{thread:#}"));
    env.ingest("logs");
}

#[test]
fn a_thread_whose_last_event_stays_the_same_may_still_have_more() {
    let (a, b, reader) = (publisher("a"), publisher("b"), machine("reader", "team", ""));
    let lake = a.path("lake");
    write_thread(&a, &[1]);
    push(&a, &lake);
    write_thread(&b, &[1, 2]);
    push(&b, &lake).has(json!({"held_by_others": 0}));
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2], "the longer one");
    pull(&a, &lake);
    check_turns(&a, &[1, 2], "a machine with the beginning gets the rest");

    // What a log here does not have stays when it grows by something else.
    write_thread(&a, &[1, 3, 4]);
    check_turns(&a, &[1, 2, 3, 4], "both");
    push(&a, &lake);
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2, 3, 4], "both have a place in the lake");
    assert_sessions(&reader, 2);
}

/// Machines that share a home now and then: each grows its log, gets that of another one, pushes and
/// pulls at random.
#[test]
fn in_any_order_nothing_is_lost_and_everything_counts_once() {
    for seed in 0..rounds(KILLS) as u64 {
        let mut random = Random(seed + 31);
        let machines = ["a", "b", "c"].map(publisher);
        let reader = machine("reader", "team", "");
        let lake = reader.path("lake");
        let mut logs = vec![vec![1]; 3];
        for (env, log) in machines.iter().zip(&logs) {
            write_turns(env, SESSION, log);
        }
        let mut next = 2;
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut steps = Vec::new();
        for _ in 0..18 {
            let at = random.below(3);
            let step = random.below(6);
            steps.push((at, step));
            match step {
                0 | 1 => {
                    logs[at].push(next);
                    next += 1;
                    write_turns(&machines[at], SESSION, &logs[at]);
                }
                2 => {
                    let from = random.below(3);
                    if logs[from].starts_with(&logs[at]) {
                        logs[at] = logs[from].clone();
                        write_turns(&machines[at], SESSION, &logs[at]);
                    }
                }
                3 => drop(push(&machines[at], &lake)),
                4 => {
                    pull(&machines[at], &lake).has(json!({"problems": []}));
                }
                _ => {
                    pull(&reader, &lake).has(json!({"problems": []}));
                    let now: BTreeSet<String> = reader.texts(TEXTS).into_iter().collect();
                    assert!(seen.is_subset(&now), "{steps:?}: {seen:?} {now:?}");
                    seen = now;
                }
            }
        }
        for env in machines.iter().chain(&machines) {
            push(env, &lake);
        }
        let all: BTreeSet<usize> = logs.iter().flatten().copied().collect();
        let all: Vec<usize> = all.into_iter().collect();
        let late = machine("late", "team", "");
        for env in machines.iter().chain([&reader, &late]) {
            pull(env, &lake);
            check_turns(env, &all, &format!("seed {seed}: {steps:?} {logs:?}"));
        }
    }
}

#[test]
fn different_logs_with_one_id_are_both_published() {
    let (a, b) = (publisher("a"), publisher("b"));
    let lake = a.path("lake");
    let other = "cd000000-0000-4000-8000-0000000000ce";
    write_turns(&a, SESSION, &[1, 2]);
    write_turns(&a, other, &[10]);
    write_turns(&b, SESSION, &[3, 4, 5]);
    let reader = machine("reader", "team", "");
    push(&a, &lake);
    pull(&reader, &lake);
    push(&b, &lake);
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2, 3, 4, 5, 10], "both");
    let relations = "SELECT count(*) FROM sessions WHERE relation IS NOT NULL";
    assert_eq!(reader.number(relations), 0, "neither is a fork of the other");
    for env in [&a, &b] {
        push(env, &lake).has(json!({"objects": 0}));
    }
    write_turns(&a, SESSION, &[1, 2, 6]);
    push(&a, &lake);
    pull(&reader, &lake);
    check_turns(&reader, &[1, 2, 3, 4, 5, 6, 10], "one grew");
    for env in [&a, &b] {
        pull(env, &lake);
        check_turns(env, &[1, 2, 3, 4, 5, 6, 10], "a machine with a log of its own");
    }
}

/// Neither of two first pushes sees the other before it writes.
#[test]
fn first_pushes_at_the_same_instant_destroy_nothing() {
    for round in 0..rounds(KILLS) {
        let (a, b) = (publisher("a"), publisher("b"));
        let lake = a.path("lake");
        let is_same_log = round % 2 == 0;
        write_turns(&a, SESSION, &[1, 2]);
        write_turns(&b, SESSION, if is_same_log { &[1, 3] } else { &[4, 3] });
        std::thread::scope(|scope| {
            for env in [&a, &b] {
                let lake = &lake;
                scope.spawn(move || push(env, lake));
            }
        });
        let turns: &[usize] = if is_same_log { &[1, 2, 3] } else { &[1, 2, 3, 4] };
        let reader = machine("reader", "team", "");
        pull(&reader, &lake).has(json!({"problems": []}));
        check_turns(&reader, turns, &format!("round {round}"));
        check_joined(&lake);
    }
}

/// Two listings with one id and different logs, as pushes of earlier versions may have left them.
#[test]
fn a_reader_tells_two_logs_with_one_id_apart() {
    let (a, b) = (publisher("a"), publisher("b"));
    let [of_a, of_b] = [a.path("lake"), b.path("lake")];
    write_turns(&a, SESSION, &[1, 2]);
    write_turns(&b, SESSION, &[1, 3, 4]);
    push(&a, &of_a);
    push(&b, &of_b);
    let reader = machine("reader", "team", "");
    pull(&reader, &of_a);
    copy_objects(&of_b, &of_a);
    for env in [&reader, &machine("late", "team", "")] {
        pull(env, &of_a);
        check_turns(env, &[1, 2, 3, 4], "both");
        pull(env, &of_a).has(json!({"imported": 0, "requests": 1}));
    }
    // The next push of one of them that has something new takes another id.
    write_turns(&a, SESSION, &[1, 2, 5]);
    push(&a, &of_a);
    pull(&reader, &of_a);
    check_turns(&reader, &[1, 2, 3, 4, 5], "after the next push");
}

fn copy_objects(from: &Path, to: &Path) {
    crate::env::copy_folder(from, to);
}

/// What is masked, dropped or left out of the texts does not decide whether logs are the same.
#[test]
fn the_texts_do_not_decide_what_is_the_same_log() {
    let (a, b) = (publisher("a"), machine("b", "kim", "include = ['**']\ncontent = 'usage'"));
    let lake = a.path("lake");
    b.append(SETTINGS, "[store]\nkeep = ['usage after 1d']\n");
    b.write_rule("answer", "Answer");
    write_turns(&b, SESSION, &[1, 2]);
    b.run(["compact"]).ok();
    push(&b, &lake);
    write_turns(&a, SESSION, &[1]);
    push(&a, &lake).has(json!({"held_by_others": 1}));
    write_turns(&a, SESSION, &[1, 2, 3]);
    let pushed = push(&a, &lake);
    assert_eq!(pushed["published"][0]["session_id"], SESSION);
}
