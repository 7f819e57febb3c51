//! The picker and the reading view, with real keys in a pseudo-terminal. The daily jobs are counted in
//! keys.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::json;

use crate::answers::{command, ingest, user, write_log};
use crate::env::TestEnv;
use crate::terminal::{CONTROL_C, DOWN, ENTER, ESCAPE, TAB, TestTerminal, ends_with_its_terminal};

const SIZE: (u16, u16) = (100, 30);

/// The id of the session about the retry budget.
const BUDGET: &str = "0b1d6a52-7f0e-4c43-9a43-1d1f6f3c9a01";

/// A store with two sessions of known folders, one of them of an agent that is "installed".
fn with_two_sessions() -> TestEnv {
    let env = TestEnv::new();
    let folder = env.path("harbor");
    fs::create_dir(&folder).expect("creates");
    let mut lines = Vec::new();
    let mut add = |number: u32, kind: &str, content: serde_json::Value| {
        lines.push(
            json!({
                "type": kind, "sessionId": BUDGET, "cwd": folder, "version": "2.1.0",
                "uuid": format!("00000000-0000-4000-8000-{number:012}"),
                "timestamp": format!("2026-10-01T10:00:{number:02}.000Z"),
                "message": { "role": kind, "content": content },
            })
            .to_string(),
        );
    };
    add(1, "user", json!("Give every client its own retry budget"));
    add(2, "assistant", json!([{ "type": "text", "text": "I look at the zeppelin first." }]));
    fs::create_dir(env.path("logs")).expect("creates");
    fs::write(env.path("logs").join(format!("{BUDGET}.jsonl")), lines.join("\n") + "\n")
        .expect("writes");

    let mut lines = vec![user("Paint the lighthouse")];
    lines.extend(command("a", json!({ "command": "cargo paint" }), "painted", 0));
    lines.extend(command("b", json!({ "command": "cargo test" }), "1 failed: lamp", 101));
    lines.push(json!({ "type": "message", "text": "The lamp is broken." }));
    write_log(&env, "lighthouse", &json!({ "cwd": "/home/mira/code/pier" }), &lines);
    ingest(&env);

    let bin = env.path("bin");
    fs::create_dir(&bin).expect("creates");
    let agent = bin.join("claude");
    fs::write(&agent, "#!/bin/sh\nprintf '<%s>' \"$@\"\n").expect("writes");
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("permits");
    env
}

#[test]
fn a_session_is_found_by_a_word_opened_and_resumed_in_thirteen_keys() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("2 sessions");
    // The key binding of `sessions init` starts the picker.
    terminal.keys = 1;
    terminal.type_text("zeppelin");
    terminal.wait_until("one session", |screen| {
        screen.contains("1 session") && screen.contains("zeppelin first")
    });
    terminal.press(ENTER);
    terminal.wait_for("q back");
    terminal.wait_for("❯ Give every client its own retry budget");
    assert!(terminal.keys <= 12, "{} keys", terminal.keys);

    terminal.press("r");
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.screen());
    assert!(terminal.keys <= 13, "{} keys", terminal.keys);
    terminal.assert_restored();
    assert!(terminal.screen().contains(&format!("<--resume><{BUDGET}>")), "{}", terminal.screen());
}

#[test]
fn enter_opens_what_the_typed_text_finds_even_if_it_comes_at_once() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("2 sessions");
    terminal.type_text("zeppelin\r");
    terminal.wait_for("q back");
    assert!(terminal.screen().contains("Give every client"), "{}", terminal.screen());
}

#[test]
fn a_session_is_exported_copied_and_priced_by_one_key_in_the_list() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("❯ Paint the lighthouse");
    terminal.press(TAB);
    terminal.press("e");
    terminal.wait_for("exported session lighthou to");
    assert_eq!(terminal.keys, 2);
    let written = fs::read_to_string(env.path("lighthouse.md")).expect("written");
    assert!(written.contains("# Paint the lighthouse"), "{written}");
    terminal.press("e");
    terminal.wait_for("press e again");

    terminal.press("y");
    terminal.wait_for("lighthouse to the clipboard");
    assert!(terminal.output().contains("\u{1b}]52;c;bGlnaHRob3VzZQ==\u{7}"));

    terminal.press("c");
    terminal.wait_for("Cost");
    terminal.press("c");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end(), 0);
    terminal.assert_restored();
}

#[test]
fn the_reading_view_unfolds_calls_and_finds_text() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &["open", "lighthouse"], SIZE);
    terminal.wait_for("▸ 2 calls, 1 failed");
    terminal.press("o");
    terminal.wait_for("✗ shell cargo test");
    terminal.press("o");
    terminal.wait_for("1 failed: lamp");
    terminal.press("o");
    terminal.wait_until("folded calls", |screen| !screen.contains("cargo test"));
    // A click on the folded calls unfolds only them.
    let row = terminal.screen().lines().position(|line| line.contains("▸ 2 calls")).expect("there");
    terminal.write(&format!("\u{1b}[<0;5;{}M", row + 1));
    terminal.wait_for("✗ shell cargo test");

    // What is typed is a phrase: its words in another order are not it.
    terminal.type_text("/broken lamp\r");
    terminal.wait_for("'broken lamp' is not in this view");
    terminal.type_text("/volcano\r");
    terminal.wait_for("'volcano' is not in this view");
    terminal.press("?");
    terminal.wait_for("Keys of the reading view");
    terminal.press(ESCAPE);
    terminal.wait_until("no keys", |screen| !screen.contains("Keys of the reading view"));
    terminal.press("q");
    assert_eq!(terminal.wait_for_end(), 0);
    terminal.assert_restored();
    let missing = env.run(&["open", "lighthouse"]).fails(2);
    assert!(missing.contains("needs a terminal"), "{missing}");
}

/// The preview of a long session is read around the match only; the reading view has all of it.
#[test]
fn a_long_session_is_previewed_around_the_match_and_opened_whole() {
    let env = TestEnv::new();
    let mut lines = vec![user("Survey the harbor")];
    for number in 0..1_500 {
        let text = if number == 1_400 { "a zeppelin" } else { "a boat" };
        lines.push(json!({ "type": "message", "text": format!("Pier {number} has {text}.") }));
    }
    write_log(&env, "survey", &json!({ "cwd": "/home/mira/code/pier" }), &lines);
    ingest(&env);
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("❯ Survey the harbor");
    terminal.wait_for("Pier 2 has a boat.");
    terminal.type_text("zeppelin");
    terminal.wait_for("Pier 1400 has a zeppelin.");
    terminal.press(ENTER);
    terminal.wait_for("q back");
    terminal.wait_for("Pier 1400 has a zeppelin.");
    terminal.press("g");
    terminal.wait_for("❯ Survey the harbor");
    terminal.press("G");
    terminal.wait_for("Pier 1499 has a boat.");
    terminal.press("q");
    terminal.wait_for("1 session");
    terminal.press(CONTROL_C);
    assert_eq!(terminal.wait_for_end(), 0);
}

/// One session has more of the best matches than a search returns.
#[test]
fn a_session_with_many_matches_does_not_hide_others() {
    let env = TestEnv::new();
    let mut lines = vec![user("Fly the zeppelin")];
    for number in 0..80 {
        lines.push(json!({ "type": "message", "text": format!("The zeppelin flies, {number}.") }));
    }
    let folder = json!({ "cwd": "/home/mira/code/pier" });
    write_log(&env, "flight", &folder, &lines);
    let text = "A long report about harbors and boats, with a word about a zeppelin at its end.";
    write_log(&env, "report", &folder, &[user(text)]);
    ingest(&env);
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("2 sessions");
    terminal.type_text("zeppelin flies");
    terminal.wait_for("The zeppelin flies");
    terminal.wait_for("all sessions · 2 sessions");
    terminal.press(CONTROL_C);
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn filters_the_mouse_and_a_new_size_change_the_list() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("2 sessions");
    terminal.press("\u{1b}a");
    terminal.wait_for("claude · 1 session");
    terminal.press("\u{1b}a");
    terminal.wait_for("generic · 1 session");
    terminal.press("\u{1b}a");
    terminal.wait_for("all sessions · 2 sessions");
    terminal.press("\u{1b}t");
    terminal.wait_for("last 24h");
    terminal.wait_for("no session matches the filters");
    for _ in 0..3 {
        terminal.press("\u{1b}t");
    }
    terminal.wait_for("all sessions · 2 sessions");

    // The second row is selected by a click, and opened by another one.
    terminal.write("\u{1b}[<0;20;4M");
    terminal.wait_for("❯ Give every client");
    terminal.write("\u{1b}[<0;20;4M");
    terminal.wait_for("q back");
    terminal.press("q");
    terminal.press(DOWN);
    terminal.resize(60, 20);
    terminal.wait_until("a narrow screen", |screen| {
        screen.lines().all(|line| line.chars().count() <= 60) && screen.contains("2 sessions")
    });
    terminal.press(ESCAPE);
    assert_eq!(terminal.wait_for_end(), 0);
}

/// The screen is so large that the keys arrive while it is drawn.
#[test]
fn keys_that_come_with_a_new_size_are_read() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], (300, 120));
    terminal.wait_for("2 sessions");
    let mut typed = String::from("> ");
    for (round, letter) in ('a'..='z').enumerate() {
        terminal.press(DOWN);
        std::thread::sleep(Duration::from_micros(150 * (round as u64 % 20)));
        terminal.resize(300 + round as u16 % 5, 120);
        terminal.press(&letter.to_string());
        typed.push(letter);
        terminal.wait_until(&typed, |screen| screen.starts_with(&typed));
    }
    terminal.press(CONTROL_C);
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn global_flags_without_a_command_open_the_picker() {
    let env = with_two_sessions();
    let store = env.store().to_string_lossy().into_owned();
    for args in [
        &["--no-refresh"][..],
        &["--store", &store],
        &["--timezone", "Asia/Tokyo"],
        &["--color", "never"],
        &["--no-pager", "--quiet", "--metadata", "full"],
    ] {
        let mut terminal = TestTerminal::start(&env, args, SIZE);
        terminal.wait_for("2 sessions");
        terminal.press(ESCAPE);
        assert_eq!(terminal.wait_for_end(), 0, "{args:?}");
        let has_color = terminal.output().contains("\u{1b}[38;5;");
        assert_eq!(has_color, !args.contains(&"never"), "{args:?}");

        let help = env.run(args).fails(2);
        assert!(help.contains("Usage: sessions"), "{args:?}: {help}");
    }
    let mut terminal = TestTerminal::start(&env, &["--json"], SIZE);
    assert_eq!(terminal.wait_for_end(), 2);
    let mut terminal = TestTerminal::start(&env, &["--timezone", "Asia/Tokio"], SIZE);
    assert_eq!(terminal.wait_for_end(), 2);
    terminal.wait_for("Asia/Tokio");
}

/// Appends a prompt to the log about the retry budget.
fn append_prompt(env: &TestEnv, second: u32) {
    let prompt = json!({
        "type": "user", "sessionId": BUDGET, "cwd": env.path("harbor"), "version": "2.1.0",
        "uuid": format!("00000000-0000-4000-8000-{second:012}"),
        "timestamp": format!("2026-10-01T10:00:{second:02}.000Z"),
        "message": { "role": "user", "content": "And one for the ferry" },
    });
    let log = env.path("logs").join(format!("{BUDGET}.jsonl"));
    let mut text = fs::read_to_string(&log).expect("reads");
    text.push_str(&format!("{prompt}\n"));
    fs::write(&log, text).expect("writes");
}

#[test]
fn the_preview_follows_a_log_that_grows_unless_logs_are_not_read() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.type_text("zeppelin");
    terminal.wait_for("1 turn ");
    append_prompt(&env, 3);
    terminal.wait_until("the preview of the grown session", |screen| {
        screen.contains("2 turns") && screen.contains("And one for the ferry")
    });
    terminal.press(CONTROL_C);
    terminal.wait_for_end();

    let mut terminal = TestTerminal::start(&env, &["--no-refresh"], SIZE);
    terminal.type_text("zeppelin");
    terminal.wait_for("2 turns");
    append_prompt(&env, 4);
    // Longer than the picker waits before it looks again.
    std::thread::sleep(Duration::from_secs(4));
    terminal.press(" ");
    terminal.wait_for("2 turns");
    // What another process reads is shown.
    ingest(&env);
    terminal.wait_for("3 turns");
    terminal.press(CONTROL_C);
    terminal.wait_for_end();
}

#[test]
fn the_program_ends_when_its_terminal_is_closed() {
    let env = with_two_sessions();
    assert!(ends_with_its_terminal(&env, SIZE, "2 sessions"));
}

#[test]
fn the_terminal_is_restored_after_a_signal() {
    let env = with_two_sessions();
    for (signal, code) in [("-TERM", 143), ("-HUP", 129)] {
        let mut terminal = TestTerminal::start(&env, &[], SIZE);
        terminal.wait_for("2 sessions");
        terminal.send_signal(signal);
        assert_eq!(terminal.wait_for_end(), code);
        terminal.assert_restored();
    }
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("2 sessions");
    terminal.press(CONTROL_C);
    assert_eq!(terminal.wait_for_end(), 0);
    terminal.assert_restored();
}

#[test]
fn text_of_logs_cannot_control_the_terminal() {
    let env = TestEnv::new();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2Jred\u{202e}dlrow \u{9b}31mx";
    let lines = [user(hostile), json!({ "type": "message", "text": hostile })];
    let header = json!({ "cwd": "/home/mira/pier", "title": hostile, "git_branch": hostile });
    write_log(&env, "hostile", &header, &lines);
    ingest(&env);
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("❯ ");
    terminal.press(ENTER);
    terminal.wait_for("q back");
    let output = terminal.output();
    for part in ["owned", "\u{202e}", "\u{9b}", "\u{1b}]0"] {
        assert!(!output.contains(part), "{part:?}");
    }
    assert!(terminal.screen().contains("dlrow"), "{}", terminal.screen());
}

#[test]
fn remarks_are_broken_between_words() {
    let env = TestEnv::with_samples();
    for columns in [60, 80] {
        let mut terminal = TestTerminal::start(&env, &["list", "-n", "2"], (columns, 40));
        terminal.wait_for_end();
        let screen = terminal.screen();
        assert!(screen.contains("left out:"), "{screen}");
        // A terminal that breaks a line itself fills it, mostly within a word.
        let full = screen.lines().filter(|line| line.chars().count() == usize::from(columns));
        assert!(full.clone().all(|line| line.ends_with(['…', ','])), "{screen}");
    }
}
