//! Every sample decodes to the events in `tests/golden/`. With `UPDATE_GOLDEN=1` the files are
//! rewritten; read the difference before committing it.

use std::fmt::Write as _;
use std::path::Path;

use schemas::session::{EventRow, SessionRow};

use crate::memory::{Memory, samples};

/// One line per event: what a reviewer can check against the log.
fn render(session: &SessionRow, events: &[EventRow]) -> String {
    let mut out = String::new();
    let parent = session.parent_session_id.as_deref().unwrap_or("-");
    let _ = writeln!(
        out,
        "session {} {} {} parent {parent}",
        session.session_id,
        session.provider,
        session.relation.as_deref().unwrap_or("-")
    );
    let _ = writeln!(out, "title {}", session.title.as_deref().unwrap_or("-").escape_debug());
    let _ = writeln!(
        out,
        "{} events ({} copied), {} turns, {} steps, {} prompts, {} calls, {} errors, tokens {:?} {:?} {:?} {:?} {:?}",
        session.events,
        session.replay_events,
        session.turns,
        session.steps,
        session.user_messages,
        session.tool_calls,
        session.tool_errors,
        session.input_tokens,
        session.output_tokens,
        session.cache_read_tokens,
        session.cache_write_tokens,
        session.reasoning_tokens
    );
    let _ = writeln!(
        out,
        "trust {} models {} drift {}",
        session.usage_confidence.as_deref().unwrap_or("-"),
        session.usage_by_model.as_deref().unwrap_or("-"),
        session.drift.as_deref().unwrap_or("-")
    );
    for event in events {
        let flag = |set: bool, name: &str| if set { format!(" {name}") } else { String::new() };
        let part = |name: &str, value: Option<String>| {
            value.map(|value| format!(" {name}={value}")).unwrap_or_default()
        };
        let usage = event.usage();
        let tokens = (!usage.is_unknown()).then(|| {
            let count =
                |count: Option<i64>| count.map_or("-".to_owned(), |count| count.to_string());
            [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning]
                .map(count)
                .join("/")
        });
        let text: String = event.text.chars().take(90).collect();
        let _ = writeln!(
            out,
            "{:>3} t{} s{} {}{}{}{}{}{}{}{}{}{}{}{}{}{}{} @{}+{} {}",
            event.event_index,
            event.turn_index,
            event.step_index,
            event.event_type,
            part("", event.subtype.clone()),
            part("tool", event.tool_name.clone()),
            part("kind", event.tool_kind.clone()),
            part("call", event.tool_call_id.clone()),
            part("files", event.files.as_ref().map(|files| files.join(","))),
            part("cmd", event.command.as_ref().map(|line| line.escape_debug().to_string())),
            part("spawned", event.spawned_agent_id.clone()),
            part("error", event.is_error.map(|error| error.to_string())),
            part("exit", event.exit_code.map(|code| code.to_string())),
            part("ms", event.duration_ms.map(|ms| ms.to_string())),
            part("tokens", tokens),
            flag(event.is_replay, "COPY"),
            flag(event.is_sidechain, "SIDE"),
            flag(session.is_abandoned(event.event_index), "LEFT"),
            event.source_offset,
            event.source_length,
            text.escape_debug()
        );
    }
    out
}

#[test]
fn samples_decode_as_reviewed() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let memory = Memory::default();
    memory.ingest(&samples());
    let events = memory.events();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut differing = Vec::new();
    let mut names = Vec::new();
    for session in memory.sessions() {
        let of_session: Vec<_> =
            events.iter().filter(|event| event.session_id == session.session_id).cloned().collect();
        let relative = Path::new(&session.source_path)
            .strip_prefix(samples())
            .expect("below the samples")
            .to_owned();
        let name = relative.to_string_lossy().replace(['/', '\\'], "__") + ".txt";
        let got = render(&session, &of_session);
        let path = golden.join(&name);
        names.push(name.clone());
        if update {
            std::fs::write(&path, &got).expect("writes");
        } else if std::fs::read_to_string(&path).unwrap_or_default() != got {
            differing.push(name);
        }
    }
    assert!(differing.is_empty(), "differ from tests/golden: {differing:#?}");
    let mut kept: Vec<_> = std::fs::read_dir(&golden)
        .expect("golden")
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    kept.sort();
    names.sort();
    assert_eq!(kept, names, "tests/golden holds exactly one file per session");
}

#[test]
fn problems_are_those_the_samples_were_made_for() {
    let memory = Memory::default();
    let report = memory.ingest(&samples().join("broken"));
    let mut lines: Vec<_> = memory
        .problems()
        .iter()
        .chain(&report.problem_list)
        .map(|problem| {
            let name =
                Path::new(&problem.path).file_name().expect("name").to_string_lossy().into_owned();
            format!("{name}:{} {}", problem.line, problem.kind)
        })
        .collect();
    lines.sort();
    lines.dedup();
    let want = [
        "bad-middle.jsonl:5 bad_json",
        "bad-utf8.jsonl:3 invalid_utf8",
        "binary.jsonl:0 unknown_format",
        "cut-line.jsonl:7 incomplete_line",
        "lone-surrogate.jsonl:3 lone_surrogate",
        "not-objects.jsonl:2 not_an_object",
        "not-objects.jsonl:4 not_an_object",
        "not-objects.jsonl:6 not_an_object",
        "nul-bytes.jsonl:3 control_characters",
        "nul-bytes.jsonl:5 control_characters",
    ];
    assert_eq!(lines, want);
}
