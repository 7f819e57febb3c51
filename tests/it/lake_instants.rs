//! Nothing counts twice at any instant: next to a pull that runs, after one that was killed, and while a log
//! here grows by what came from another machine.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use store::{Manifest, Store};

use crate::checks::JsonChecks;
use crate::env::{TestEnv, copy_folder};
use crate::lake::{machine, pull, push};
use crate::lake_parted::{SESSION, check_turns, publisher, write_turns};
use crate::travel::totals_now;

/// Sessions that share a response, but not their beginnings.
const OTHERS: [&str; 3] = [
    "cd000000-0000-4000-8000-0000000000ea",
    "cd000000-0000-4000-8000-0000000000eb",
    "cd000000-0000-4000-8000-0000000000ec",
];

/// Two machines whose logs parted, and a server with a log of its own that parted too, and which pulled
/// what they had first if `has_pulled`. The lake has what they added since.
fn parted_machines(has_pulled: bool) -> (Vec<TestEnv>, TestEnv, PathBuf) {
    let (a, b, server) = (publisher("a"), publisher("b"), machine("server", "team", ""));
    let lake = server.path("lake");
    write_turns(&server, SESSION, &[1, 5]);
    write_turns(&server, OTHERS[0], &[20, 10]);
    write_turns(&a, SESSION, &[1, 2]);
    write_turns(&a, OTHERS[1], &[10, 11]);
    write_turns(&b, SESSION, &[1, 3, 4]);
    for env in [&a, &b] {
        push(env, &lake);
    }
    if has_pulled {
        pull(&server, &lake).has(json!({"problems": []}));
    }
    write_turns(&a, SESSION, &[1, 2, 7]);
    write_turns(&b, SESSION, &[1, 3, 4, 6]);
    write_turns(&b, OTHERS[2], &[30, 11]);
    for env in [&a, &b] {
        push(env, &lake);
    }
    (vec![a, b], server, lake)
}

/// A machine with a copy of the store of another one.
fn copy_of(server: &TestEnv) -> TestEnv {
    let env = machine("server", "team", "");
    copy_folder(&server.store(), &env.store());
    env
}

/// Pulls, and kills the pull once its store has this generation. Returns whether it was killed.
fn kill_at(env: &TestEnv, lake: &Path, generation: u64) -> bool {
    let mut command = env.command();
    let mut child = command.arg("pull").arg(lake).stdout(Stdio::null()).spawn().expect("spawns");
    loop {
        let has_ended = child.try_wait().expect("waits").is_some();
        let manifest = Manifest::read(&env.store()).ok().flatten();
        if has_ended || manifest.is_some_and(|manifest| manifest.generation >= generation) {
            let _ = child.kill();
            let _ = child.wait();
            return !has_ended;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_pull_that_is_killed_after_any_commit_counts_nothing_twice() {
    for has_pulled in [false, true] {
        let (_machines, server, lake) = parted_machines(has_pulled);
        let before = totals_now(&server);
        let calm = copy_of(&server);
        pull(&calm, &lake).has(json!({"problems": []}));
        let after = totals_now(&calm);
        let usage = |env: &TestEnv| env.json(["usage", "--no-refresh"])["data"]["total"].clone();
        let check = |env: &TestEnv, what: &str| {
            let now = totals_now(env);
            assert!(now == before || now == after, "{what}: {now} {before} {after}");
        };
        let first = Manifest::read(&server.store()).expect("reads").expect("a store").generation;
        let mut kills = 0;
        for generation in first + 1.. {
            let env = copy_of(&server);
            if !kill_at(&env, &lake, generation) {
                break;
            }
            kills += 1;
            check(&env, &format!("killed at {generation}"));
            env.ingest(server.path("logs"));
            check(&env, &format!("killed at {generation}, and ingested"));
            pull(&env, &lake).has(json!({"problems": []}));
            assert_eq!(totals_now(&env), after, "killed at {generation}");
            assert_eq!(usage(&env), usage(&calm), "killed at {generation}");
        }
        assert!(kills > 0, "the pull is too quick to be killed");
    }
}

/// The sessions and what counts of them, as a reader sees them now.
fn read_sums(store: &Store) -> Vec<i64> {
    let snapshot = store.take_snapshot().expect("reads");
    let mut sums = vec![0; 4];
    for row in snapshot.read_rows().expect("reads") {
        let tokens = row.output_tokens.unwrap_or(0);
        let counted = [1, row.events - row.replay_events, row.user_messages, tokens];
        for (sum, value) in sums.iter_mut().zip(counted) {
            *sum += value;
        }
    }
    sums
}

#[test]
fn a_reader_next_to_a_pull_counts_what_was_there_or_all() {
    for has_pulled in [false, true] {
        let (_machines, server, lake) = parted_machines(has_pulled);
        let calm = copy_of(&server);
        pull(&calm, &lake);
        let store = Store::new(server.store());
        let wanted = [read_sums(&store), read_sums(&Store::new(calm.store()))];
        assert_ne!(wanted[0], wanted[1]);
        let mut running = server.cli(["pull", &*lake.to_string_lossy()]).start();
        while running.0.try_wait().expect("waits").is_none() {
            let now = read_sums(&store);
            assert!(wanted.contains(&now), "{now:?} {wanted:?}");
        }
        assert_eq!(read_sums(&store), wanted[1]);
    }
}

#[test]
fn a_log_that_grows_by_what_came_from_another_machine_counts_it_once() {
    let (b, server) = (publisher("b"), machine("server", "team", ""));
    let lake = server.path("lake");
    write_turns(&server, SESSION, &[1]);
    write_turns(&b, SESSION, &[1, 2, 3, 4]);
    push(&b, &lake);
    pull(&server, &lake).has(json!({"imported": 1}));
    for turns in [&[1, 2][..], &[1, 2, 3], &[1, 2, 3, 5]] {
        write_turns(&server, SESSION, turns);
        let all: &[usize] = if turns.contains(&5) { &[1, 2, 3, 4, 5] } else { &[1, 2, 3, 4] };
        check_turns(&server, all, &format!("{turns:?}"));
    }
    let now: Value = totals_now(&server);
    pull(&server, &lake).has(json!({"imported": 0}));
    assert_eq!(totals_now(&server), now);
}
