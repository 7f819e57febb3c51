//! Replays sessions to the hooks as if they were live: `cargo xtask bench hooks LOGS`.
//!
//! Every prompt, command and failure of every session is given to its hook, with only the history
//! before it. What a hook says is then compared with what the session did next. As a control, the
//! same prompts, commands and failures are asked in another project, where nothing should be said.

mod calls;
mod judge;
mod processes;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemas::hook::HookName;
use sessions::hooks::{HookAnswer, HookHistory, ServedBefore};
use store::{Snapshot, Store};

use self::calls::{ReplayedCall, collect_calls};
use self::judge::Judge;
use self::table::{Tally, print_tallies};
use crate::measure;

/// Time that a hook may take here; the times are reported.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A folder that is not a home directory.
const NO_HOME: &str = "/nowhere";

/// Runs the benchmark on a folder of logs.
pub(crate) fn run(arguments: &[String]) {
    let [logs] = arguments else { panic!("usage: bench hooks LOGS") };
    let dir = tempfile::tempdir().expect("tempdir");
    let store = dir.path().join("store");
    measure::command(&["--json", "ingest", logs], &store);
    let snapshot = Store::new(&store).take_snapshot().expect("snapshot");
    let sessions = collect_calls(&snapshot);
    let calls: usize = sessions.iter().map(|session| session.calls.len()).sum();
    println!("\n{} sessions, {calls} calls of hooks\n", sessions.len());

    let mut judge = Judge::new(&snapshot);
    let mut tallies: Vec<Tally> = HookName::ALL.iter().map(|hook| Tally::new(*hook)).collect();
    for session in &sessions {
        let mut live = ServedBefore::default();
        let mut control = ServedBefore::default();
        for call in &session.calls {
            let Some(tally) = tallies.iter_mut().find(|tally| tally.hook == call.input.hook) else {
                continue;
            };
            let start = Instant::now();
            let answer = ask(&snapshot, call, &live);
            tally.add_call(start.elapsed().as_secs_f64());
            if let Some(answer) = answer {
                print_answer(call, &answer);
                tally.add_answer(&answer, &live, judge.judge(call, &answer));
                remember(&mut live, &answer);
            }
            if let Some(elsewhere) = &call.elsewhere {
                let answer = ask(&snapshot, elsewhere, &control);
                tally.add_control(answer.is_some());
                if let Some(answer) = answer {
                    print_answer(elsewhere, &answer);
                    remember(&mut control, &answer);
                }
            }
        }
        let bytes = live.bytes;
        for tally in &mut tallies {
            tally.end_session(bytes);
        }
    }
    print_tallies(&tallies, &sessions);
    processes::measure_processes(&store, &sessions);
}

/// Asks a hook with the history before its time.
fn ask(snapshot: &Arc<Snapshot>, call: &ReplayedCall, before: &ServedBefore) -> Option<HookAnswer> {
    let history = HookHistory {
        snapshot,
        home: Path::new(NO_HOME),
        until: call.time,
        machines: &[],
        is_excluded: &|_| false,
        deadline: Instant::now() + TIMEOUT,
    };
    history.answer(&call.input, before)
}

fn remember(before: &mut ServedBefore, answer: &HookAnswer) {
    before.ids.extend(answer.ids.iter().cloned());
    before.ids.insert(answer.key.clone());
    before.bytes += answer.text.len();
}

/// Prints what was said if `SESSIONS_BENCH_SHOW` names the hook, for reading by hand.
fn print_answer(call: &ReplayedCall, answer: &HookAnswer) {
    let shown = std::env::var("SESSIONS_BENCH_SHOW").unwrap_or_default();
    if shown.split(',').any(|name| name == call.input.hook.as_str()) {
        println!(
            "---- {} in {}{}",
            call.input.hook,
            call.input.cwd.display(),
            if call.is_control { " (control)" } else { "" }
        );
        let asked = [&call.input.prompt, &call.input.command];
        for text in asked.into_iter().flatten() {
            println!("asked: {}", text.chars().take(300).collect::<String>());
        }
        if let Some(failure) = &call.input.failure {
            println!("failed: {}", failure.output.chars().take(300).collect::<String>());
        }
        println!("{}\n", answer.text);
    }
}
