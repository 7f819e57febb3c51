//! Measures hooks as an agent calls them: a process each, from its start to its end.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use schemas::hook::HookName;
use serde_json::json;

use super::calls::SessionCalls;
use crate::measure::{self, Times};

/// Calls of each hook that are measured.
const MEASURED_CALLS: usize = 100;

/// Runs the program for some calls of each hook, and prints how long they took.
pub(crate) fn measure_processes(store: &Path, sessions: &[SessionCalls]) {
    println!("\n| a process each | p50 ms | p99 ms | longest ms |\n|---|---|---|---|");
    for hook in HookName::ALL {
        let calls = sessions.iter().flat_map(|session| &session.calls);
        let of_hook: Vec<_> = calls.filter(|call| call.input.hook == *hook).collect();
        let step = of_hook.len().div_ceil(MEASURED_CALLS).max(1);
        let mut seconds: Vec<f64> = Vec::new();
        for call in of_hook.into_iter().step_by(step) {
            let input = json!({
                // A new session, in which nothing was said yet.
                "session_id": format!("measured-{}", seconds.len()),
                "cwd": call.input.cwd,
                "source": "startup",
                "prompt": call.input.prompt,
                "tool_name": call.input.tool,
                "tool_input": { "command": call.input.command },
                "error": call.input.failure.as_ref().map(|failure| &failure.output),
            });
            seconds.push(run_hook(store, *hook, &input.to_string()));
        }
        if !seconds.is_empty() {
            let longest = seconds.iter().copied().fold(0.0, f64::max) * 1000.0;
            let times = Times::of(seconds.into_iter());
            println!("| {hook} | {:.0} | {:.0} | {longest:.0} |", times.p50, times.p99);
        }
    }
}

/// Runs the program once, and returns the seconds that it took.
fn run_hook(store: &Path, hook: HookName, input: &str) -> f64 {
    let start = Instant::now();
    let mut child = measure::program(store)
        .args(["hook", hook.as_str(), "--client", "claude"])
        // The ingest in the background finds no logs there.
        .env("HOME", store)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("stdin");
    // A hook that ran out of time no longer reads.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    assert!(child.wait().expect("ends").success());
    start.elapsed().as_secs_f64()
}
