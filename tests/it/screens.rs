//! The picker and the reading view, with real keys in a pseudo-terminal. The daily jobs are counted in
//! keys.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::json;

use crate::checks::Checks;
use crate::env::TestEnv;
use crate::log::claude_record;
use crate::terminal::{CONTROL_C, DOWN, ENTER, ESCAPE, TAB, TestTerminal, ends_with_its_terminal};

const SIZE: (u16, u16) = (100, 30);

/// The id of the session about the retry budget.
const BUDGET: &str = "0b1d6a52-7f0e-4c43-9a43-1d1f6f3c9a01";

/// A store with two sessions of known folders, one of them of an agent that is "installed".
fn with_two_sessions() -> TestEnv {
    let env = TestEnv::new();
    let folder = env.path("harbor");
    fs::create_dir(&folder).expect("creates");
    let answer = json!([{ "type": "text", "text": "I look at the zeppelin first." }]);
    for record in [
        claude_record(BUDGET, &folder, 1, "user", "Give every client its own retry budget"),
        claude_record(BUDGET, &folder, 2, "assistant", answer),
    ] {
        env.append_event(format!("logs/{BUDGET}.jsonl"), &record);
    }

    env.log("lighthouse")
        .cwd("/home/mira/code/pier")
        .user("Paint the lighthouse")
        .command("cargo paint", "painted", 0)
        .command("cargo test", "1 failed: lamp", 101)
        .message("The lamp is broken.")
        .write();
    env.ingest("logs");

    let agent = env.write("bin/claude", "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
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
    terminal.wait_for_all(["1 session", "zeppelin first"]);
    terminal.press(ENTER);
    terminal.wait_for("q back");
    terminal.wait_for("❯ Give every client its own retry budget");
    assert!(terminal.keys <= 12, "{} keys", terminal.keys);

    terminal.press("r");
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.screen());
    assert!(terminal.keys <= 13, "{} keys", terminal.keys);
    terminal.assert_restored();
    terminal.screen().shows(format!("<--resume><{BUDGET}>"));
}

#[test]
fn enter_opens_what_the_typed_text_finds_even_if_it_comes_at_once() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("2 sessions");
    terminal.type_text("zeppelin\r");
    terminal.wait_for("q back");
    terminal.screen().shows("Give every client");
}

#[test]
fn enter_resumes_if_the_picker_was_opened_to_resume() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &["resume"], SIZE);
    terminal.wait_for("Enter resume");
    terminal.screen().lacks("Enter open");
    terminal.press("\u{1b}?");
    terminal.wait_for("resume it  ");
    terminal.press("x");
    terminal.type_text("zeppelin\r");
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.screen());
    terminal.screen().shows(format!("<--resume><{BUDGET}>"));

    let mut terminal = TestTerminal::start(&env, &["show"], SIZE);
    terminal.wait_for_all(["Enter open", "2 sessions"]);
    terminal.press(ENTER);
    terminal.wait_for("q back");
}

/// The usual width of a terminal has the least room for a row: the preview is next to the list.
#[test]
fn the_list_names_the_agent_at_every_width() {
    let env = with_two_sessions();
    for columns in [60, 80, 110, 120, 170] {
        let mut terminal = TestTerminal::start(&env, &[], (columns, 30));
        terminal.wait_for("2 sessions");
        terminal.wait_until("rows with agents", |screen| {
            let rows: Vec<&str> = screen.lines().skip(2).take(2).collect();
            let is_named = |row: &&str| row.contains(" claude ") || row.contains(" generic ");
            rows.iter().all(|row| {
                is_named(row) && (columns < 80 || row.contains("pier") || row.contains("harbor"))
            })
        });
    }
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
    env.read("lighthouse.md").shows("# Paint the lighthouse");
    terminal.press("e");
    terminal.wait_for("press e again");

    terminal.press("y");
    terminal.wait_for("lighthouse to the clipboard");
    terminal.output().shows("\u{1b}]52;c;bGlnaHRob3VzZQ==\u{7}");

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
    terminal.type_text("/1 failed: lamp\r");
    terminal.wait_for("✗ shell cargo test");
    terminal.press("o");
    terminal.wait_until("folded calls", |screen| !screen.contains("cargo test"));
    // A click on the folded calls unfolds only them.
    let row = terminal.screen().lines().position(|line| line.contains("▸ 2 calls")).expect("there");
    terminal.write(&format!("\u{1b}[<0;5;{}M", row + 1));
    terminal.wait_for("✗ shell cargo test");

    // What is typed is a phrase: its words in another order are not it.
    terminal.type_text("/broken lamp\r");
    terminal.wait_for("'broken lamp' is not in this session");
    terminal.type_text("/volcano\r");
    terminal.wait_for("'volcano' is not in this session");
    terminal.press("?");
    terminal.wait_for("Keys of the reading view");
    terminal.press(ESCAPE);
    terminal.wait_until("no keys", |screen| !screen.contains("Keys of the reading view"));
    terminal.press("q");
    assert_eq!(terminal.wait_for_end(), 0);
    terminal.assert_restored();
    env.run(["open", "lighthouse"]).fails(2).says("needs a terminal");
}

#[test]
fn unfolding_keeps_the_match_on_the_screen() {
    let env = TestEnv::new();
    let mut log = env.log("survey").cwd("/home/mira/code/pier").user("Survey the harbor");
    for number in 0..6 {
        log = log.command(&format!("sound {number}"), "deep\nwater\nhere", 0);
        log = log.command(&format!("map {number}"), "drawn", 0);
        let piers: Vec<String> =
            (0..40).map(|pier| format!("Pier {number}-{pier} stands.")).collect();
        log = log.message(&piers.join("\n\n"));
    }
    log.ingest();
    let mut terminal = TestTerminal::start(&env, &["open", "survey"], SIZE);
    terminal.wait_for("q back");
    terminal.type_text("/Pier 4-30 stands\r");
    terminal.wait_for("Pier 4-30 stands");
    let row_of = |screen: &str| screen.lines().position(|line| line.contains("Pier 4-30 stands"));
    terminal.wait_until_quiet();
    let row = row_of(&terminal.screen());
    for _ in 0..3 {
        terminal.press("o");
        terminal.wait_until_quiet();
        assert_eq!(row_of(&terminal.screen()), row, "{}", terminal.screen());
    }
    // The line at the top stays, too, and not only its block.
    terminal.press("j");
    terminal.wait_until_quiet();
    let top = terminal.screen().lines().nth(5).expect("a line").to_owned();
    terminal.press("o");
    terminal.wait_until_quiet();
    assert_eq!(terminal.screen().lines().nth(5), Some(top.as_str()));
}

/// The preview of a long session is read around the match only; the reading view has all of it.
#[test]
fn a_long_session_is_previewed_around_the_match_and_opened_whole() {
    let env = TestEnv::new();
    let log = env.log("survey").cwd("/home/mira/code/pier").user("Survey the harbor");
    let log = (0..1_500).fold(log, |log, number| {
        let text = if number == 1_400 { "a zeppelin" } else { "a boat" };
        log.message(&format!("Pier {number} has {text}."))
    });
    log.ingest();
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
    let flight = env.log("flight").cwd("/home/mira/code/pier").user("Fly the zeppelin");
    (0..80).fold(flight, |log, at| log.message(&format!("The zeppelin flies, {at}."))).write();
    let text = "A long report about harbors and boats, with a word about a zeppelin at its end.";
    env.log("report").cwd("/home/mira/code/pier").user(text).write();
    env.ingest("logs");
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

        env.run(args).fails(2).says("Usage: sessions");
    }
    let mut terminal = TestTerminal::start(&env, &["--json"], SIZE);
    assert_eq!(terminal.wait_for_end(), 2);
    let mut terminal = TestTerminal::start(&env, &["--timezone", "Asia/Tokio"], SIZE);
    assert_eq!(terminal.wait_for_end(), 2);
    terminal.wait_for("Asia/Tokio");
}

/// Appends a prompt to the log about the retry budget.
fn append_prompt(env: &TestEnv, second: u32) {
    let folder = env.path("harbor");
    let prompt = claude_record(BUDGET, folder, second, "user", "And one for the ferry");
    env.append_event(format!("logs/{BUDGET}.jsonl"), &prompt);
}

#[test]
fn the_preview_follows_a_log_that_grows_unless_logs_are_not_read() {
    let env = with_two_sessions();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.type_text("zeppelin");
    terminal.wait_for("1 turn ");
    append_prompt(&env, 3);
    terminal.wait_for_all(["2 turns", "And one for the ferry"]);
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
    env.ingest("logs");
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
    env.log("hostile")
        .cwd("/home/mira/pier")
        .title(hostile)
        .header("git_branch", hostile)
        .user(hostile)
        .event(json!({ "type": "message", "text": hostile }))
        .ingest();
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("❯ ");
    terminal.press(ENTER);
    terminal.wait_for("q back");
    let output = terminal.output();
    output.lacks(["owned", "\u{202e}", "\u{9b}", "\u{1b}]0"]);
    terminal.screen().shows("dlrow");
}

#[test]
fn remarks_are_broken_between_words() {
    let env = TestEnv::with_samples();
    let words = |columns: u16| -> Vec<String> {
        let mut terminal = TestTerminal::start(&env, &["list", "-n", "2"], (columns, 40));
        terminal.wait_for_end();
        let screen = terminal.screen();
        let (_, remarks) = screen.split_once("left out:").expect(&screen);
        remarks.split_whitespace().map(str::to_owned).collect()
    };
    let whole = words(200);
    for columns in [60, 80] {
        assert_eq!(words(columns), whole);
    }
}
