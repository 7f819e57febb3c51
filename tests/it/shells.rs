//! What a shell and a terminal get besides screens: the shell of queries, the lines of `tail`, and the
//! completion of command lines.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::checks::Checks;
use crate::env::TestEnv;
use crate::terminal::{CONTROL_C, CONTROL_D, TAB, TestTerminal};

fn with_lighthouse() -> TestEnv {
    let env = TestEnv::new();
    env.log("lighthouse")
        .cwd("/home/mira/code/pier")
        .header("model", "qwen3-coder-plus")
        .user("Paint the lighthouse")
        .command("cargo paint", "painted", 0)
        .command("cargo test", "1 failed: lamp", 101)
        .ingest();
    env
}

fn ends_with_prompt(screen: &str) -> bool {
    screen.trim_end().ends_with("sessions>")
}

#[test]
fn queries_are_typed_completed_and_cancelled_in_a_shell() {
    let env = with_lighthouse();
    let mut terminal = TestTerminal::start(&env, &["query"], (100, 40));
    terminal.wait_for("sessions> ");
    terminal.type_text("SELECT session_id, proj");
    terminal.press(TAB);
    terminal.wait_for("SELECT session_id, project");
    terminal.type_text("\rFROM sess");
    terminal.press(TAB);
    terminal.wait_for("FROM session");
    terminal.type_text("s;\r");
    terminal.wait_for("1 row in");
    terminal.screen().shows("lighthouse");

    // Typed at once, before the first of them was read.
    terminal.type_text(".mode csv\rSELECT 1 AS one;\r");
    terminal.wait_until("CSV", |screen| screen.contains("one\n1\n") && ends_with_prompt(screen));
    terminal.type_text(".schema usage\r");
    terminal.wait_until("the columns", |screen| {
        screen.contains("cost_usd") && ends_with_prompt(screen)
    });
    terminal.type_text("SELECT nothing;\r");
    terminal
        .wait_until("the error", |screen| screen.contains("error: ") && ends_with_prompt(screen));

    // Typed while a query runs.
    terminal.type_text("SELECT count(*) AS many FROM range(30000000) WHERE range % 7 = 3;\r");
    std::thread::sleep(Duration::from_millis(100));
    terminal.type_text("SELECT 6 * 7 AS ahead;\r");
    terminal.wait_until("both answers", |screen| {
        screen.contains("many\n4285714\n")
            && screen.contains("ahead\n42\n")
            && ends_with_prompt(screen)
    });

    // A query that would run for long.
    terminal.type_text("SELECT count(*) FROM range(1000000000000) WHERE range % 7 = 3;\r");
    std::thread::sleep(Duration::from_millis(700));
    let began = Instant::now();
    terminal.press(CONTROL_C);
    terminal
        .wait_until("the end", |screen| screen.contains("cancelled") && ends_with_prompt(screen));
    terminal.type_text("SELECT 40 + 2 AS answer;\r");
    terminal.wait_until("the answer", |screen| {
        screen.contains("answer\n42\n") && ends_with_prompt(screen)
    });
    assert!(began.elapsed() < Duration::from_secs(10), "it was not cancelled");

    terminal.press(CONTROL_D);
    assert_eq!(terminal.wait_for_end(), 0);
    let history = std::fs::read_to_string(env.path(".local/state/sessions/query_history"));
    assert!(history.expect("a history").contains("FROM sessions;"));
}

/// Runs `sessions query` with this text on stdin, which stays open afterwards if `is_open`.
fn query_with_input(env: &TestEnv, args: &[&str], input: &str, is_open: bool) -> (i32, String) {
    let mut command = env.command();
    command.arg("query").args(args).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut pipe = child.stdin.take().expect("stdin");
    pipe.write_all(input.as_bytes()).expect("writes");
    let held = is_open.then_some(pipe);
    let output = child.wait_with_output().expect("ends");
    drop(held);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn queries_are_read_from_stdin_unless_it_is_silent() {
    let env = with_lighthouse();
    let sql = "SELECT 40 + 2 AS answer";
    for args in [&[][..], &["-"], &["-f", "-"]] {
        let (code, text) = query_with_input(&env, args, sql, false);
        assert!(code == 0 && text.contains("42"), "{args:?}: {text}");
    }
    let (code, text) = query_with_input(&env, &[], "", false);
    assert!(code == 2 && text.contains("no SQL given"), "{text}");
    // Agents start commands with a pipe that stays open.
    let (code, text) = query_with_input(&env, &[sql], "", true);
    assert!(code == 0 && text.contains("42"), "{text}");
    let (code, text) = query_with_input(&env, &[], "", true);
    assert!(code == 2 && text.contains("nothing arrived on stdin"), "{text}");

    env.write("one.sql", sql);
    let file = std::fs::File::open(env.path("one.sql")).expect("opens");
    let output = env.command().arg("query").stdin(file).output().expect("runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("42"), "{output:?}");
    let long = format!("SELECT '{}'", "x".repeat(2 << 20));
    env.write("long.sql", long);
    env.run(["query", "-f", "long.sql"]).fails(2).says("more than 1048576 bytes");
}

#[test]
fn tail_prints_the_last_turn_and_what_follows() {
    let env = with_lighthouse();
    let text = env.run(["tail", "--once"]).ok();
    let position = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(position("> Paint the lighthouse") < position("✓ shell cargo paint"));
    assert!(position("✓ shell cargo paint") < position("✗ shell cargo test  exit code 101"));

    let mut tail = env.command();
    tail.args(["tail", "last"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = tail.spawn().expect("starts");
    let mut output = child.stdout.take().expect("output");
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut buffer) {
            let _ = send.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
    });
    let log = env.path("logs").join("lighthouse.jsonl");
    let answer = json!({ "type": "message", "text": "The lamp shines.", "timestamp": "2026-10-29T07:00:00Z" });
    let mut seen = String::new();
    let began = Instant::now();
    let mut has_grown = false;
    while !seen.contains("The lamp shines.") {
        assert!(began.elapsed() < Duration::from_secs(20), "{seen}");
        if seen.contains("cargo test") && !has_grown {
            has_grown = true;
            let grown = env.read(&log) + &format!("{answer}\n");
            env.write(&log, grown);
        }
        seen.extend(receive.recv_timeout(Duration::from_millis(100)));
    }
    child.kill().expect("ends");
    let _ = child.wait();
}

/// On a screen the lines fit its width, have colours, and name paths from the session's folder on.
#[test]
fn tail_fits_the_screen() {
    let env = TestEnv::new();
    let path = "/home/mira/code/pier/src/lamps/and/many/more/folders/lamp.rs";
    let command = format!("cat {path} {path}");
    env.log("lighthouse")
        .cwd("/home/mira/code/pier")
        .user("Paint the lighthouse ".repeat(5).trim())
        .command(&command, "text", 0)
        .command(&command, "text", 101)
        .ingest();
    let tail = env.cli(["tail", "--once", "--color", "always"]).env("COLUMNS", "60");
    let text = tail.run().ok();
    text.shows([
        "\u{1b}[31m✗\u{1b}[0m",
        "\u{1b}[32m✓\u{1b}[0m",
        " cat /home/mira/code/pier/src/lamps/and",
        "\u{1b}[31m  exit code 101",
    ]);
    let mut screen = vt100::Parser::new(
        std::num::NonZeroU16::new(40).expect("a size"),
        std::num::NonZeroU16::new(200).expect("a size"),
        0,
    );
    screen.process(text.replace('\n', "\r\n").as_bytes());
    let widest = screen.screen().contents().lines().map(|line| line.chars().count()).max();
    assert_eq!(widest, Some(60), "{text}");
}

#[test]
fn command_lines_are_completed_with_ids_titles_and_names() {
    let env = with_lighthouse();
    let complete = |words: &[&str]| {
        let mut arguments = vec!["complete-line", "zsh", "--describe", "--"];
        arguments.extend(words);
        env.run(&arguments).ok()
    };
    assert_eq!(complete(&["sessions", "show", "lig"]), "lighthouse\tPaint the lighthouse\n");
    assert_eq!(complete(&["sessions", "list", "--project", "pi"]), "pier\n");
    assert_eq!(complete(&["sessions", "stats", "--by", "mod"]), "model\n");
    assert_eq!(complete(&["sessions", "search", "lamp", "model:qw"]), "model:qwen3-coder-plus\n");
    assert_eq!(complete(&["sessions", "search", "-project:pi"]), "-project:pier\n");
    assert_eq!(complete(&["sessions", "search", "agent:gen"]), "agent:generic\n");
    // Bash splits words at colons, and replaces the part after the colon only.
    let complete_bash = |line: &str, replaced: &str| {
        env.run(["complete-line", "bash", "--describe", "--", line, replaced]).ok()
    };
    assert_eq!(complete_bash("sessions search model:qw", "qw"), "qwen3-coder-plus\n");
    assert_eq!(complete_bash("sessions search model:", ""), "qwen3-coder-plus\n");
    assert_eq!(complete_bash("sessions show lig", "lig"), "lighthouse\n");
    assert_eq!(complete(&["sessions", "search", "https:"]), "");
    assert_eq!(complete(&["sessions", "export", "--format", "mark"]), "markdown\n");
    assert_eq!(complete(&["sessions", "setup", "clau"]), "claude\nclaude-desktop\n");
    assert!(complete(&["sessions", "li"]).starts_with("list\tList sessions"));
    assert_eq!(complete(&["sessions", "show", "nothing"]), "");
}
