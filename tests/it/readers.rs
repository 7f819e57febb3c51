//! Many servers answer while one process ingests.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::env::{TestEnv, real_logs};
use crate::mcp::Client;

#[test]
fn eight_servers_answer_while_an_ingest_runs() {
    let Some(logs) = real_logs() else { return };
    let env = TestEnv::new();
    let paths =
        ["gemini", "claude", "codex"].map(|name| logs.join(name).to_string_lossy().into_owned());
    env.ingest(&paths[0]);
    let mut clients: Vec<_> =
        (0..8).map(|_| Client::legacy_with(&env, &["--rate-limit", "0"])).collect();
    let running = AtomicBool::new(true);
    let answers = std::thread::scope(|scope| {
        let running = &running;
        let handles: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(move || {
                    let mut answers = 0;
                    let mut sizes = Vec::new();
                    while running.load(Ordering::Relaxed) {
                        let answer =
                            client.call("search_events", json!({ "query": "session", "limit": 1 }));
                        sizes.push(answer["metadata"]["index_size"].as_u64().expect("size"));
                        answers += 1;
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    // The view of one server never goes back.
                    assert!(sizes.is_sorted(), "{sizes:?}");
                    answers
                })
            })
            .collect();
        let mut ingest = env
            .command()
            .args(["ingest", "--quiet", &paths[1], &paths[2]])
            .stdout(Stdio::null())
            .spawn()
            .expect("spawns");
        assert!(ingest.wait().expect("ends").success());
        running.store(false, Ordering::Relaxed);
        handles.into_iter().map(|handle| handle.join().expect("no error")).sum::<usize>()
    });
    assert!(answers >= 8);
}

/// A reader takes no lock: with the writer's lock held by somebody, it answers all the same.
#[test]
fn no_reader_waits_for_the_writers_lock() {
    let env = TestEnv::with_samples();
    let store = store::Store::new(env.store());
    let _writer = store.open_writer(store::Verify::Some).expect("lock");
    let mut client = Client::legacy(&env);
    let start = Instant::now();
    client.call("search_events", json!({ "query": "budget" }));
    assert!(start.elapsed() < Duration::from_secs(10), "it waited for the lock");
}
