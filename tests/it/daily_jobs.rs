//! The daily jobs of a user: each in a shell in a terminal, with the keys that it takes counted, and the
//! integrations of the shells.

use schemas::{Timestamp, Zone};
use serde_json::json;

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::shell_terminal::{PROMPT, ends_with_prompt, start_shell};
use crate::terminal::{ENTER, TAB};

/// Control-G, the key of the picker.
const PICKER_KEY: &str = "\u{7}";

/// A store with two sessions, one of which edits a file that exists.
fn with_sessions() -> TestEnv {
    let env = TestEnv::new();
    let code = "let lamp = repaired_with_copper();\nlamp.light();";
    let file = env.write("pier/lamp.rs", format!("{code}\n"));
    env.log("lighthouse")
        .cwd(env.path("pier"))
        .header("model", "claude-sonnet-4-5")
        .user("Paint the lighthouse")
        .command("cargo paint", "painted", 0)
        .command("cargo test", "1 failed: lamp", 101)
        .edit(&file, "let lamp = broken();", code)
        .event(json!({ "type": "message", "text": "The zeppelin lamp is broken.",
            "model": "claude-sonnet-4-5",
            "usage": { "input_tokens": 100_000, "output_tokens": 100_000 } }))
        .write();
    env.log("harbor-walk").cwd("/home/mira/quay").user("Walk along the quay").write();
    env.ingest("logs");
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
    terminal.wait_for("1 session");
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
    terminal.wait_for_all(["Walk along the quay", "Paint the lighthouse"]);
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
        ("sessions forget lig", "lighthouse", "Forgot them."),
        ("sessions hide qu", "quay", "Forgot them."),
    ] {
        terminal.keys = 0;
        terminal.type_text(beginning);
        terminal.press(TAB);
        terminal.wait_for(completed);
        terminal.press(ENTER);
        terminal.wait_for("[y/N]");
        terminal.type_text("y");
        terminal.press(ENTER);
        assert!(terminal.keys <= 30, "{beginning}: {} keys", terminal.keys);
        terminal.wait_until(beginning, |screen| ends_with_prompt(screen) && screen.contains(shown));
        terminal.type_text("clear\r");
        terminal.wait_until("a clear screen", |screen| screen.trim() == PROMPT);
    }
}

#[test]
fn a_terminal_offers_what_can_be_forgotten_and_hidden() {
    let env = with_sessions();
    let Some(mut terminal) = start_shell(&env, "bash", "") else { return };
    terminal.type_text("sessions rm\r");
    terminal.wait_for("Enter forget");
    terminal.type_text("zeppelin");
    terminal.wait_for("1 session");
    terminal.press(ENTER);
    // The sessions that go are a table.
    terminal.wait_for_all(["last active", "lighthouse", "[y/N]"]);
    terminal.type_text("y\r");
    terminal.wait_for("Forgot them.");
    terminal.type_text("clear\r");
    terminal.wait_until("a clear screen", |screen| screen.trim() == PROMPT);
    terminal.type_text("sessions hide\r");
    terminal.wait_for_all(["Projects with the most sessions:", "1  quay, 1 session"]);
    terminal.type_text("1\r");
    terminal.wait_for_all(["Leave 'quay' out", "[y/N]"]);
    terminal.type_text("y\r");
    terminal.wait_for("Forgot them.");
    env.run(["list"]).fails(1).says("0 sessions");
}

/// Ingests a log with one request just before the midnight that began today in `zone`, and one now.
fn ingest_two_days(env: &TestEnv, zone: &Zone, now: Timestamp) {
    let midnight = zone.parse_since("since", "today", now).expect("today");
    let before = |seconds: i64| Timestamp(midnight.0 - seconds * 1_000_000);
    let request = |time: Timestamp, tokens: u64| {
        json!({ "type": "message", "timestamp": time.to_string(), "text": "done",
            "model": "claude-sonnet-4-5", "usage": { "input_tokens": tokens, "output_tokens": 0 } })
    };
    env.log("two-days")
        .cwd("/home/mira/quay")
        .at(&before(2).to_string())
        .user("Go")
        .event(request(before(1), 70_000))
        .event(request(now, 20_000))
        .ingest();
}

#[test]
fn today_is_the_day_of_the_user() {
    for name in ["America/Los_Angeles", "Asia/Tokyo"] {
        let env = TestEnv::new();
        let now = Timestamp::now();
        let zone = Zone::find("timezone", name).expect("a zone");
        ingest_two_days(&env, &zone, now);
        let usage = |period: &str| {
            env.cli(["usage", "--color", "always", period]).env("TZ", name).run().ok()
        };
        let (today, yesterday) = (usage("today"), usage("yesterday"));
        let day = zone.day(now).expect("a day");
        today.shows(["20.0K", "$0.06"]);
        today.lacks(["70.0K", "90.0K"]);
        assert!(today.contains(&day) && today.contains(name), "{name}, {day}: {today}");
        yesterday.shows("70.0K").lacks("20.0K");
    }
}

#[test]
fn words_and_flags_that_people_try() {
    let env = TestEnv::new();
    let zone = Zone::find("timezone", "UTC").expect("a zone");
    ingest_two_days(&env, &zone, Timestamp::now());
    // The newest periods only.
    let usage = env.run(["usage", "-n", "1"]).ok();
    usage.shows("20000").lacks("70000");
    let answer = env.json(["usage", "day", "--limit", "1"]);
    let groups = answer["data"]["groups"].list();
    assert_eq!(groups.len(), 1);
    assert!(usage.contains(groups[0]["group"]["day"].text()));
    env.run(["usage", "-n", "0"]).fails(2).says("0");

    let exported = env.run(["export", "md", "two-days", "-o", "two-days.md"]);
    let said = exported.stdout + &exported.stderr;
    said.shows(["1 session, ", ": 1 file written"]);

    // What could be a qualifier, and is none, is named although something matches.
    let ran = env.run(["search", "done lang:rust"]);
    ran.stderr.shows("'lang:' is not a qualifier");
    for query in ["done std::mem", "done http://127.0.0.1", "done"] {
        env.run(["search", query]).lacks("is not a qualifier");
    }
}
