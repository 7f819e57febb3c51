//! The daily jobs of a user: each in a shell in a terminal, with the keys that it takes counted, and the
//! integrations of the shells.

use schemas::{Timestamp, Zone};
use serde_json::json;

use crate::answers::{command, ingest, user, write_log};
use crate::env::TestEnv;
use crate::shell_terminal::{PROMPT, ends_with_prompt, start_shell};
use crate::terminal::{ENTER, TAB};

/// Control-G, the key of the picker.
const PICKER_KEY: &str = "\u{7}";

/// A store with two sessions, one of which edits a file that exists.
fn with_sessions() -> TestEnv {
    let env = TestEnv::new();
    let folder = env.path("pier");
    std::fs::create_dir(&folder).expect("creates");
    let file = folder.join("lamp.rs");
    let edit = json!({
        "file_path": file, "old_string": "let lamp = broken();",
        "new_string": "let lamp = repaired_with_copper();\nlamp.light();",
    });
    std::fs::write(&file, "let lamp = repaired_with_copper();\nlamp.light();\n").expect("writes");
    let mut lines = vec![user("Paint the lighthouse")];
    lines.extend(command("a", json!({ "command": "cargo paint" }), "painted", 0));
    lines.extend(command("b", json!({ "command": "cargo test" }), "1 failed: lamp", 101));
    lines.push(
        json!({ "type": "tool_call", "tool_name": "Edit", "tool_call_id": "c", "input": edit }),
    );
    lines.push(
        json!({ "type": "tool_result", "tool_call_id": "c", "text": "edited", "is_error": false }),
    );
    lines.push(json!({ "type": "message", "text": "The zeppelin lamp is broken.",
        "model": "claude-sonnet-4-5", "usage": { "input_tokens": 100_000, "output_tokens": 100_000 } }));
    let header = json!({ "cwd": folder, "model": "claude-sonnet-4-5" });
    write_log(&env, "lighthouse", &header, &lines);
    write_log(
        &env,
        "harbor-walk",
        &json!({ "cwd": "/home/mira/quay" }),
        &[user("Walk along the quay")],
    );
    ingest(&env);
    env
}

/// Checks the key of the picker and the completions of a shell.
fn check_shell(name: &str) {
    let env = with_sessions();
    let Some(mut terminal) = start_shell(&env, name, "") else { return };
    terminal.keys = 0;
    terminal.press(PICKER_KEY);
    terminal.wait_for("2 sessions");
    terminal.type_text("zeppelin");
    terminal.wait_until("one session", |screen| screen.contains("1 session"));
    terminal.press(ENTER);
    terminal.wait_for("q back");
    assert!(terminal.keys <= 12, "{} keys", terminal.keys);
    terminal.press("q");
    terminal.press("\u{3}");
    terminal.wait_until("the prompt again", |screen| {
        screen.contains(PROMPT) && !screen.contains("q back") && !screen.contains("1 session")
    });

    // One candidate is typed whole.
    for (typed, completed) in [
        ("sessions show lig", "sessions show lighthouse"),
        ("sessions list --project pie", "sessions list --project pier"),
        ("sessions stats --by mod", "sessions stats --by model"),
        ("sessions export --format mark", "sessions export --format markdown"),
        ("sessions setup claude-", "sessions setup claude-desktop"),
        ("sessions export parquet --table tool", "sessions export parquet --table tool_calls"),
    ] {
        terminal.type_text(typed);
        terminal.press(TAB);
        terminal.wait_for(completed);
        // Clears the line.
        terminal.press("\u{15}");
        terminal.wait_until("an empty line", ends_with_prompt);
    }
    // Several candidates are listed with their titles.
    terminal.type_text("sessions show ");
    terminal.press(TAB);
    terminal.press(TAB);
    terminal.wait_until("ids with titles", |screen| {
        screen.contains("Walk along the quay") && screen.contains("Paint the lighthouse")
    });
}

#[test]
fn bash_opens_the_picker_and_completes() {
    check_shell("bash");
}

#[test]
fn zsh_opens_the_picker_and_completes() {
    check_shell("zsh");
}

#[test]
fn fish_opens_the_picker_and_completes() {
    check_shell("fish");
}

#[test]
fn every_daily_job_is_one_short_command_line() {
    let env = with_sessions();
    let Some(mut terminal) = start_shell(&env, "bash", "") else { return };
    for (line, most_keys, shown) in [
        // Cost by week.
        ("sessions usage week --all", 26, &["2026-10-26", "$1.80"][..]),
        // Which tool fails most.
        ("sessions stats --all --by tool --sort errors", 45, &["shell", "50"]),
        // What changed a file, with the numbers of added and removed lines.
        ("sessions blame --edits pier/lamp.rs", 36, &["lighthou:5", "+2", "-1"]),
        // What an agent does now.
        ("sessions tail --once", 21, &["✗ shell cargo test", "zeppelin"]),
    ] {
        terminal.keys = 0;
        terminal.type_text(line);
        terminal.press(ENTER);
        assert!(terminal.keys <= most_keys, "{line}: {} keys", terminal.keys);
        terminal.wait_until(line, |screen| {
            ends_with_prompt(screen) && shown.iter().all(|part| screen.contains(part))
        });
        terminal.type_text("clear\r");
        terminal.wait_until("a clear screen", |screen| screen.trim() == PROMPT);
    }

    // A session goes for good, and a project is hidden; the shell completes which one.
    for (beginning, completed, shown) in [
        ("sessions forget lig", "lighthouse", "Forgot 1 session"),
        ("sessions hide qu", "quay", "Forgot 1 session"),
    ] {
        terminal.keys = 0;
        terminal.type_text(beginning);
        terminal.press(TAB);
        terminal.wait_for(completed);
        terminal.type_text("--yes");
        terminal.press(ENTER);
        assert!(terminal.keys <= 30, "{beginning}: {} keys", terminal.keys);
        terminal.wait_until(beginning, |screen| ends_with_prompt(screen) && screen.contains(shown));
        terminal.type_text("clear\r");
        terminal.wait_until("a clear screen", |screen| screen.trim() == PROMPT);
    }
}

/// Writes a log with one request just before the midnight that began today in `zone`, and one now.
fn write_two_days(env: &TestEnv, zone: &Zone, now: Timestamp) {
    let midnight = zone.parse_since("since", "today", now).expect("today");
    let request = |time: Timestamp, tokens: u64| {
        json!({ "type": "message", "timestamp": time.to_string(), "text": "done",
            "model": "claude-sonnet-4-5", "usage": { "input_tokens": tokens, "output_tokens": 0 } })
    };
    let lines = [
        json!({ "type": "user", "timestamp": Timestamp(midnight.0 - 2_000_000).to_string(), "text": "Go" }),
        request(Timestamp(midnight.0 - 1_000_000), 70_000),
        request(now, 20_000),
    ];
    write_log(env, "two-days", &json!({ "cwd": "/home/mira/quay" }), &lines);
}

#[test]
fn today_is_the_day_of_the_user() {
    for name in ["America/Los_Angeles", "Asia/Tokyo"] {
        let env = TestEnv::new();
        let now = Timestamp::now();
        let zone = Zone::find("timezone", name).expect("a zone");
        write_two_days(&env, &zone, now);
        ingest(&env);
        let usage = |args: &[&str]| {
            let mut command = env.command();
            command.env("TZ", name).args(["usage", "--color", "always"]).args(args);
            let output = command.output().expect("runs");
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        let (today, yesterday) = (usage(&["today"]), usage(&["yesterday"]));
        let day = zone.day(now).expect("a day");
        assert!(today.contains("20.0K") && today.contains("$0.06"), "{name}: {today}");
        assert!(!today.contains("70.0K") && !today.contains("90.0K"), "{name}: {today}");
        assert!(today.contains(&day) && today.contains(name), "{name}, {day}: {today}");
        assert!(yesterday.contains("70.0K") && !yesterday.contains("20.0K"), "{name}: {yesterday}");
    }
}

#[test]
fn words_and_flags_that_people_try() {
    let env = TestEnv::new();
    let zone = Zone::find("timezone", "UTC").expect("a zone");
    write_two_days(&env, &zone, Timestamp::now());
    ingest(&env);
    // The newest periods only.
    let usage = env.run(&["usage", "-n", "1"]).ok();
    assert!(usage.contains("20000") && !usage.contains("70000"), "{usage}");
    let answer = env.json(&["usage", "day", "--limit", "1"]);
    let groups = answer["data"]["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{answer}");
    assert!(usage.contains(groups[0]["group"]["day"].as_str().expect("a day")), "{answer}");
    assert!(env.run(&["usage", "-n", "0"]).fails(2).contains("0"));

    let exported = env.run(&["export", "md", "two-days", "-o", "two-days.md"]);
    let said = exported.stdout + &exported.stderr;
    assert!(said.contains("1 session, ") && said.contains(": 1 file written"), "{said}");

    // What could be a qualifier, and is none, is named although something matches.
    let ran = env.run(&["search", "done lang:rust"]);
    assert!(ran.stderr.contains("'lang:' is not a qualifier"), "{}", ran.stderr);
    for query in ["done std::mem", "done http://127.0.0.1", "done"] {
        let ran = env.run(&["search", query]);
        assert!(!ran.stderr.contains("is not a qualifier"), "{query}: {}", ran.stderr);
    }
}
