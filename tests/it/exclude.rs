//! Logs that the settings file, or a marker file in a project, leaves out, and what else the rules
//! keep away: publishing, imports and hooks.

use std::path::PathBuf;

use serde_json::json;

use crate::checks::{Checks, JsonChecks};
use crate::env::{SETTINGS, TestEnv};
use crate::lake::{ingest_log, machine, pull, push};
use crate::log::claude_record;

/// Writes the log of one session about `subject` in a project.
fn write_log(env: &TestEnv, name: &str, project: &str, subject: &str) -> PathBuf {
    let log = env.log(name).cwd(project).at("2026-11-01T10:00:00Z");
    log.user(&format!("Fix the {subject}")).message(&format!("The {subject} works")).write()
}

/// A store without sessions, with the logs of two projects.
fn with_two_logs() -> TestEnv {
    let env = TestEnv::new();
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    write_log(&env, "acme", "/home/mira/clients/acme", "invoices");
    env
}

const ACME: &str = "logs/acme.jsonl";

fn exclude(env: &TestEnv, patterns: &str) {
    env.write_settings(format!("[ingest]\nexclude = [{patterns}]\n"));
}

#[test]
fn an_excluded_project_is_left_out_until_the_pattern_goes() {
    let env = with_two_logs();
    exclude(&env, "'/home/mira/clients/acme/**'");
    let counts = json!({"files_excluded": 1, "sessions": 1, "files_new": 1, "events": 2});
    env.ingest("logs").has(counts);
    assert_eq!(env.session_ids(), ["harbor"]);
    env.run(["search", "invoices"]).fails(1);

    // The log is not decoded again, even when it grows.
    env.append_prompt(ACME, "2026-11-01T11:00:00Z", "More invoices");
    env.ingest("logs").has(json!({"files_excluded": 1, "lines": 0}));
    env.json(["status"]).has(json!({"pending": 0}));

    env.write_settings("");
    env.ingest("logs").has(json!({"sessions": 1}));
    assert_eq!(env.session_ids(), ["acme", "harbor"]);
    env.run(["search", "\"More invoices\""]).ok();
}

#[test]
fn a_dry_run_shows_what_is_left_out_and_writes_nothing() {
    let env = with_two_logs();
    exclude(&env, "'/home/mira/clients/**'");
    let path = env.path(ACME).canonicalize().expect("a path");
    let report = env.json(["ingest", "logs", "--dry-run"]);
    report.has(json!({"is_dry_run": true, "sessions": 1}));
    assert_eq!(
        report["excluded_logs"],
        json!([{"path": path, "project": "/home/mira/clients/acme"}])
    );
    env.run(["list"]).fails(1);
    env.run(["ingest", "--dry-run", "logs"]).shows(["nothing was written", "acme.jsonl"]);
}

#[test]
fn sessions_ingested_before_an_exclude_are_offered_to_forget() {
    let env = TestEnv::new();
    write_log(&env, "acme", "/home/mira/clients/acme", "invoices");
    env.ingest("logs");
    exclude(&env, "'~/../mira/clients', '/home/*/clients'");
    env.append_prompt(ACME, "2026-11-01T11:00:00Z", "More invoices");
    env.ingest("logs")["notices"][0].shows(["1 excluded session is", "forget --excluded"]);
    // It is not read further.
    env.run(["search", "\"More invoices\""]).fails(1);
    env.json(["status"]).has(json!({"pending": 0}));

    env.write_settings("");
    env.ingest("logs").has(json!({"files_grown": 1}));
    env.run(["search", "\"More invoices\""]).ok();
}

#[test]
fn a_hidden_project_is_gone_and_stays_out() {
    let env = TestEnv::new();
    write_log(&env, "secret", "/home/mira/clients/acme/api", "lamp");
    write_log(&env, "open", "/home/mira/pier", "gate");
    env.ingest("logs");
    env.write_settings("# mine\n[display]\ntimezone = \"UTC\"\n");

    env.run(["hide", "acme"]).shows(["secret", "1 session, with"]);
    assert_eq!(env.session_ids(), ["open", "secret"], "it was only shown");
    env.run(["hide", "acme", "--yes"]).shows("Forgot 1 session");
    assert_eq!(env.session_ids(), ["open"]);

    let settings = env.read(SETTINGS);
    assert!(settings.starts_with("# mine\n"));
    settings.shows("exclude = [\"acme\"]");
    env.append_prompt("logs/secret.jsonl", "2026-11-01T11:00:00Z", "The lamp is whole");
    write_log(&env, "next", "/home/mira/clients/acme", "hinge");
    env.ingest("logs");
    assert_eq!(env.session_ids(), ["open"], "logs that grow or come later stay out");
    // Nothing is left to forget, and nothing is written twice.
    env.run(["exclude", "acme", "--yes"]).ok();
    assert_eq!(env.read(SETTINGS), settings);
    let other = env.run(["hide", "pierr"]).fails(1);
    other.says("Did you mean 'pier'?");

    // A marker file is another reason to be left out, and a blank name none to leave out everything.
    env.write("beta/.sessionsignore", "");
    write_log(&env, "marked", &env.path("beta").to_string_lossy(), "roof");
    env.run(["hide", "zeppelin"]).fails(1).lacks("marked");
    for blank in ["", " ", "*", "**", "/", "."] {
        env.run(["hide", blank, "--yes"]).fails(2).says("names no project");
    }
    assert_eq!(env.session_ids(), ["open"]);

    env.write_settings("[ingest]\nexclude = 3\n");
    env.run(["hide", "pier", "--yes"]).fails(2).says("settings.toml");
    env.write_settings("");
    assert_eq!(env.session_ids(), ["open"], "nothing was forgotten");
}

#[test]
fn a_hidden_project_can_be_read_again() {
    let env = TestEnv::new();
    for (project, subject) in [("acme", "lamp"), ("delta", "hinge")] {
        write_log(&env, project, &format!("/home/mira/clients/{project}"), subject);
    }
    write_log(&env, "open", "/home/mira/pier", "gate");
    env.ingest("logs");
    env.run(["forget", "open", "--yes"]).ok();
    env.run(["hide", "acme", "delta", "--yes"]).ok();
    assert_eq!(env.session_ids(), [""; 0]);

    env.run(["hide", "--undo", "harbor"]).fails(2).says(["'harbor' is not hidden", "'acme'"]);
    env.run(["hide", "--undo", "acme"]).says("1 session").ok();
    env.read(SETTINGS).shows("\"delta\"").lacks("acme");
    env.ingest("logs");
    assert_eq!(env.session_ids(), ["acme"], "what was forgotten or hidden in other ways stays so");
}

#[test]
fn a_project_is_hidden_before_its_logs_are_read() {
    let env = TestEnv::new();
    env.run(["hide", "acme", "--yes"]).ok().lacks("Forgot");
    write_log(&env, "secret", "/home/mira/clients/acme.worktrees/fix", "lamp");
    write_log(&env, "open", "/home/mira/pier", "gate");
    env.ingest("logs");
    assert_eq!(env.session_ids(), ["open"]);
}

#[test]
fn only_what_the_settings_include_is_read() {
    for (settings, report, sessions) in [
        ("include = ['/home/mira/code/**']", json!({"files_excluded": 1}), &["harbor"][..]),
        ("providers = ['claude']", json!({"files_excluded": 2}), &[]),
        // A pattern of the path of a log.
        (
            "exclude = ['**/logs/acme.jsonl']",
            json!({"files_excluded": 1, "files_opened": 1}),
            &["harbor"],
        ),
    ] {
        let env = with_two_logs();
        env.write_settings(format!("[ingest]\n{settings}\n"));
        env.ingest("logs").has(report);
        assert_eq!(env.session_ids(), sessions);
    }
}

#[test]
fn a_marker_file_leaves_out_its_project() {
    let env = TestEnv::new();
    env.write("clients/acme/.sessionsignore", "");
    write_log(&env, "acme", &env.path("clients/acme/api").to_string_lossy(), "invoices");
    env.ingest("logs").has(json!({"files_excluded": 1}));
    env.remove("clients/acme/.sessionsignore");
    env.ingest("logs").has(json!({"sessions": 1}));
    assert_eq!(env.session_ids(), ["acme"]);
}

/// The log of a session of Windows, read elsewhere.
#[test]
fn a_folder_of_another_platform_is_excluded() {
    let env = TestEnv::new();
    write_log(&env, "starcar", r"C:\Users\mira\git\starcar", "engine");
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    env.ingest("logs");
    for pattern in [
        "starcar",
        "**/starcar",
        "**/starcar/**",
        "C:/Users/mira/git/starcar",
        r"C:\Users\mira\git\starcar",
        r"c:\users\mira\git\**",
    ] {
        exclude(&env, &format!("'{pattern}', 'nowhere'"));
        let forgotten = env.json(["forget", "--excluded"]);
        forgotten.has(json!({"sessions": [{"session_id": "starcar"}]}));
        env.run(["config"])
            .says(format!("exclude '{pattern}' leaves out 1 session\n"))
            .says("warning: exclude 'nowhere' leaves out no session");
    }
    env.run(["forget", "--excluded", "--yes"]).ok();
    assert_eq!(env.session_ids(), ["harbor"]);

    // A log that is excluded from the first is counted as well.
    let fresh = TestEnv::new();
    write_log(&fresh, "starcar", r"C:\Users\mira\git\starcar", "engine");
    exclude(&fresh, "'starcar'");
    fresh.ingest("logs").has(json!({"files_excluded": 1}));
    fresh.run(["config"]).says("exclude 'starcar' leaves out 1 session\n");
}

#[test]
fn a_wrong_pattern_ends_the_ingest() {
    let env = with_two_logs();
    exclude(&env, "'/a/[b'");
    env.run(["ingest", "logs"]).fails(2).says(["ingest.exclude", "/a/[b"]);
}

#[test]
fn a_dry_run_creates_no_store() {
    let env = TestEnv::new();
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    let report = env.json(["ingest", "logs", "--dry-run"]);
    report.has(json!({"files_new": 1, "is_dry_run": true}));
    assert!(!env.store().exists(), "a dry run created the store");
    // The sessions of an ingest are those of all other counts.
    let report = env.ingest("logs");
    report.has(json!({"sessions_by_class": {"conversations": 1}}));
    assert_eq!(report["sessions_by_class"], env.json(["status"])["sessions_by_class"]);
}

#[test]
fn an_excluded_session_in_the_store_is_masked_again() {
    let env = TestEnv::new();
    write_log(&env, "acme", "/home/mira/clients/acme", "kingfisher");
    env.ingest("logs");
    exclude(&env, "'/home/mira/clients/**'");
    env.ingest("logs");
    env.write_rule("bird", "kingfisher");
    env.ingest("logs").has(json!({"lines": 0, "files_excluded": 1}));
    let texts = env.texts("SELECT text FROM events ORDER BY event_index");
    assert_eq!(texts[0], "Fix the [REDACTED:bird]");
    env.run(["search", "kingfisher"]).fails(1);
    // It stays excluded, and is masked once.
    let status = env.json(["status"]);
    status.has(json!({"files": {"excluded": 1}}));
    env.ingest("logs");
    env.json(["status"]).has(json!({"generation": status["generation"]}));
    // When the pattern goes, the log is continued with the rules in force.
    env.write_settings("");
    env.ingest("logs").has(json!({"files_excluded": null}));
    env.run(["search", "kingfisher"]).fails(1);
}

/// What a machine excludes does not leave it, and does not come to it from others.
#[test]
fn an_excluded_project_is_neither_published_nor_imported() {
    let publish = "include = ['**']";
    let (mira, tom) = (machine("pier", "mira", publish), machine("quay", "tom", publish));
    let lake = mira.path("lake");
    ingest_log(&mira, "harbor-lights-of-mira", "/home/mira/code/harbor", "Fix the lights");
    ingest_log(&mira, "acme-invoices-of-mira", "/home/mira/clients/acme/api", "Fix the invoices");
    push(&mira, &lake);
    pull(&tom, &lake).has(json!({"imported": 2}));

    // Excluded later, on the machine that has published it: by a pattern, or by its folder alone.
    let named = "[identity]\nmachine = 'pier'\nuser = 'mira'\n[publish]\ninclude = ['**']\n";
    mira.write_settings(format!("{named}[ingest]\nexclude = ['/home/mira/clients/acme']\n"));
    assert_eq!(push(&mira, &lake)["removed"].list().len(), 1);
    pull(&tom, &lake);
    assert_eq!(tom.session_ids().len(), 1);

    // Excluded on the machine that reads the lake, in which `~` is the home of each machine.
    mira.write_settings(named);
    push(&mira, &lake);
    for (exclude, imported) in
        [("~/clients/acme/**", 1), ("**/acme/**", 1), ("~/code/elsewhere", 2)]
    {
        let ana = machine("dock", "ana", &format!("{publish}\n[ingest]\nexclude = ['{exclude}']"));
        pull(&ana, &lake).has(json!({"imported": imported}));
    }
}

/// An excluded log is not known, so a log that repeats its records counts them itself. When the pattern
/// goes, the original counts them.
#[test]
fn a_fork_of_an_excluded_session_counts_what_it_repeats() {
    let env = TestEnv::new();
    let write = |session: &str, cwd: &str, prompts: &[&str]| {
        for (number, text) in (1..).zip(prompts) {
            let record = claude_record(session, cwd, number, "user", *text);
            env.append_event(format!("logs/{session}.jsonl"), &record);
        }
    };
    let original = "aaaaaaaa-0000-4000-8000-000000000000";
    let fork = "bbbbbbbb-0000-4000-8000-000000000000";
    write(original, "/home/mira/clients/acme", &["Fix the invoices", "Go on"]);
    write(fork, "/home/mira/code/harbor", &["Fix the invoices", "Go on", "Now the lights"]);
    let counted = || {
        env.rows(
            "SELECT session_id, count(*) FROM events WHERE NOT is_replay GROUP BY 1 ORDER BY 1",
        )
    };

    exclude(&env, "'/home/mira/clients/acme'");
    env.ingest("logs");
    assert_eq!(counted(), [[json!(fork), json!(3)]]);
    env.write_settings("");
    env.ingest("logs");
    assert_eq!(counted(), [[json!(original), json!(2)], [json!(fork), json!(1)]]);

    // A new rule has both logs read again, and changes nothing about what is a copy.
    env.write_rule("bill", "invoices");
    env.ingest("logs").has(json!({"files_rewritten": 2}));
    assert_eq!(counted(), [[json!(original), json!(2)], [json!(fork), json!(1)]]);
    env.run(["search", "invoices"]).fails(1);
}
