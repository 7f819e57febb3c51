//! Logs that the settings file, or a marker file in a project, leaves out, and what else the rules
//! keep away: publishing, imports and hooks.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::lake::{ingest_log, machine, pull, push};

/// Writes the log of one session about `subject` in a project.
fn write_log(env: &TestEnv, name: &str, project: &str, subject: &str) -> PathBuf {
    let logs = env.path("logs");
    std::fs::create_dir_all(&logs).expect("creates");
    let path = logs.join(format!("{name}.jsonl"));
    let lines = [
        json!({"format": "sessions", "version": 1, "session_id": name, "cwd": project}),
        json!({"type": "user", "timestamp": "2026-11-01T10:00:00Z", "text": format!("Fix the {subject}")}),
        json!({"type": "message", "timestamp": "2026-11-01T10:00:09Z", "text": format!("The {subject} works")}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n") + "\n").expect("writes");
    path
}

/// Appends a message to a log.
fn append(path: &PathBuf, text: &str) {
    let mut log = std::fs::read_to_string(path).expect("reads");
    log +=
        &json!({"type": "message", "timestamp": "2026-11-01T11:00:00Z", "text": text}).to_string();
    log.push('\n');
    std::fs::write(path, log).expect("writes");
}

fn write_settings(env: &TestEnv, text: &str) {
    std::fs::create_dir_all(env.path(".config/sessions")).expect("creates");
    std::fs::write(env.path(".config/sessions/settings.toml"), text).expect("writes");
}

fn ingest(env: &TestEnv, flags: &[&str]) -> Value {
    let logs = env.path("logs").to_string_lossy().into_owned();
    let mut args = vec!["ingest", &logs];
    args.extend(flags);
    env.json(&args)
}

fn session_ids(env: &TestEnv) -> Vec<String> {
    let answer = env.json(&["list"]);
    let sessions = answer["data"]["sessions"].as_array().cloned().unwrap_or_default();
    let mut ids: Vec<String> = sessions
        .iter()
        .map(|session| session["session_id"].as_str().unwrap_or("").to_owned())
        .collect();
    ids.sort();
    ids
}

#[test]
fn an_excluded_project_is_left_out_until_the_pattern_goes() {
    let env = TestEnv::new();
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    let acme = write_log(&env, "acme", "/home/mira/clients/acme/api", "invoices");
    write_settings(&env, "[ingest]\nexclude = ['/home/mira/clients/acme/**']\n");

    let report = ingest(&env, &[]);
    assert_eq!(
        (&report["files_excluded"], &report["sessions"]),
        (&json!(1), &json!(1)),
        "{report}"
    );
    assert_eq!((&report["files_new"], &report["events"]), (&json!(1), &json!(2)), "{report}");
    assert_eq!(session_ids(&env), ["harbor"]);
    assert_eq!(env.run(&["search", "invoices"]).code, 1);

    // The log is not decoded again, even when it grows.
    append(&acme, "More invoices");
    let report = ingest(&env, &[]);
    assert_eq!((&report["files_excluded"], &report["lines"]), (&json!(1), &json!(0)), "{report}");
    assert_eq!(env.json(&["status"])["pending"], 0);

    write_settings(&env, "");
    assert_eq!(ingest(&env, &[])["sessions"], 1);
    assert_eq!(session_ids(&env), ["acme", "harbor"]);
    assert!(env.run(&["search", "\"More invoices\""]).code == 0);
}

#[test]
fn a_dry_run_shows_what_is_left_out_and_writes_nothing() {
    let env = TestEnv::new();
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    let acme = write_log(&env, "acme", "/home/mira/clients/acme", "invoices");
    write_settings(&env, "[ingest]\nexclude = ['/home/mira/clients/**']\n");
    let report = ingest(&env, &["--dry-run"]);
    assert_eq!((&report["is_dry_run"], &report["sessions"]), (&json!(true), &json!(1)), "{report}");
    let path = acme.canonicalize().expect("a path");
    assert_eq!(
        report["excluded_logs"],
        json!([{"path": path, "project": "/home/mira/clients/acme"}])
    );
    assert_eq!(env.run(&["list"]).code, 1, "nothing was ingested");
    let logs = env.path("logs").to_string_lossy().into_owned();
    let text = env.run(&["ingest", "--dry-run", &logs]).ok();
    assert!(text.contains("nothing was written") && text.contains("acme.jsonl"), "{text}");
}

#[test]
fn sessions_ingested_before_an_exclude_are_offered_to_forget() {
    let env = TestEnv::new();
    let acme = write_log(&env, "acme", "/home/mira/clients/acme", "invoices");
    ingest(&env, &[]);
    write_settings(&env, "[ingest]\nexclude = ['~/../mira/clients', '/home/*/clients']\n");
    append(&acme, "More invoices");
    let report = ingest(&env, &[]);
    let notice = report["notices"][0].as_str().unwrap_or("");
    assert!(
        notice.contains("1 excluded session is") && notice.contains("forget --excluded"),
        "{report}"
    );
    assert_eq!(env.run(&["search", "\"More invoices\""]).code, 1, "it is not read further");
    assert_eq!(env.json(&["status"])["pending"], 0);

    write_settings(&env, "");
    assert_eq!(ingest(&env, &[])["files_grown"], 1);
    env.run(&["search", "\"More invoices\""]).ok();
}

#[test]
fn a_hidden_project_is_gone_and_stays_out() {
    let env = TestEnv::new();
    let secret = write_log(&env, "secret", "/home/mira/clients/acme/api", "lamp");
    write_log(&env, "open", "/home/mira/pier", "gate");
    ingest(&env, &[]);
    write_settings(&env, "# mine\n[display]\ntimezone = \"UTC\"\n");

    let shown = env.run(&["hide", "acme"]).ok();
    assert!(shown.contains("secret") && shown.contains("Would forget 1 session"), "{shown}");
    assert_eq!(session_ids(&env), ["open", "secret"], "it was only shown");
    assert!(env.run(&["hide", "acme", "--yes"]).ok().contains("Forgot 1 session"));
    assert_eq!(session_ids(&env), ["open"]);

    let settings = std::fs::read_to_string(env.path(".config/sessions/settings.toml"));
    let settings = settings.expect("settings");
    assert!(
        settings.starts_with("# mine\n") && settings.contains("exclude = [\"acme\"]"),
        "{settings}"
    );
    append(&secret, "The lamp is whole");
    write_log(&env, "next", "/home/mira/clients/acme", "hinge");
    ingest(&env, &[]);
    assert_eq!(session_ids(&env), ["open"], "logs that grow or come later stay out");
    // Nothing is left to forget, and nothing is written twice.
    env.run(&["exclude", "acme", "--yes"]).ok();
    let again = std::fs::read_to_string(env.path(".config/sessions/settings.toml"));
    assert_eq!(again.expect("settings"), settings);
    let none = env.run(&["hide", "zeppelin"]);
    assert!(none.code == 1 && none.stdout.contains("No session matches"), "{}", none.stdout);

    // A marker file is another reason to be left out, and a blank name none to leave out everything.
    std::fs::create_dir_all(env.path("beta")).expect("creates");
    std::fs::write(env.path("beta/.sessionsignore"), "").expect("writes");
    write_log(&env, "marked", &env.path("beta").to_string_lossy(), "roof");
    let none = env.run(&["hide", "zeppelin"]);
    assert!(!none.stdout.contains("marked"), "{}", none.stdout);
    for blank in ["", " ", "*", "**", "/", "."] {
        assert!(
            env.run(&["hide", blank, "--yes"]).fails(2).contains("names no project"),
            "{blank}"
        );
    }
    assert_eq!(session_ids(&env), ["open"]);

    write_settings(&env, "[ingest]\nexclude = 3\n");
    let refused = env.run(&["hide", "pier", "--yes"]).fails(2);
    assert!(refused.contains("settings.toml"), "{refused}");
    write_settings(&env, "");
    assert_eq!(session_ids(&env), ["open"], "nothing was forgotten");
}

#[test]
fn a_project_is_hidden_before_its_logs_are_read() {
    let env = TestEnv::new();
    assert!(!env.run(&["hide", "acme", "--yes"]).ok().contains("Forgot"));
    write_log(&env, "secret", "/home/mira/clients/acme.worktrees/fix", "lamp");
    write_log(&env, "open", "/home/mira/pier", "gate");
    ingest(&env, &[]);
    assert_eq!(session_ids(&env), ["open"]);
}

#[test]
fn only_included_projects_and_agents_are_read() {
    let env = TestEnv::new();
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    write_log(&env, "acme", "/home/mira/clients/acme", "invoices");
    write_settings(&env, "[ingest]\ninclude = ['/home/mira/code/**']\n");
    ingest(&env, &[]);
    assert_eq!(session_ids(&env), ["harbor"]);
    write_settings(&env, "[ingest]\nproviders = ['claude']\n");
    let other = TestEnv::new();
    write_log(&other, "harbor", "/home/mira/code/harbor", "lights");
    write_settings(&other, "[ingest]\nproviders = ['claude']\n");
    assert_eq!(ingest(&other, &[])["files_excluded"], 1);
}

#[test]
fn patterns_match_the_path_of_a_log() {
    let env = TestEnv::new();
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    write_log(&env, "acme", "/home/mira/clients/acme", "invoices");
    write_settings(&env, "[ingest]\nexclude = ['**/logs/acme.jsonl']\n");
    let report = ingest(&env, &[]);
    assert_eq!((&report["files_excluded"], &report["files_opened"]), (&json!(1), &json!(1)));
    assert_eq!(session_ids(&env), ["harbor"]);
}

#[test]
fn a_marker_file_leaves_out_its_project() {
    let env = TestEnv::new();
    let project = env.path("clients/acme/api");
    std::fs::create_dir_all(&project).expect("creates");
    std::fs::write(env.path("clients/acme/.sessionsignore"), "").expect("writes");
    write_log(&env, "acme", &project.to_string_lossy(), "invoices");
    assert_eq!(ingest(&env, &[])["files_excluded"], 1);
    std::fs::remove_file(env.path("clients/acme/.sessionsignore")).expect("removes");
    assert_eq!(ingest(&env, &[])["sessions"], 1);
    assert_eq!(session_ids(&env), ["acme"]);
}

/// The log of a session of Windows, read elsewhere.
#[test]
fn a_folder_of_another_platform_is_excluded() {
    let env = TestEnv::new();
    write_log(&env, "starcar", r"C:\Users\mira\git\starcar", "engine");
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    ingest(&env, &[]);
    for pattern in [
        "starcar",
        "**/starcar",
        "**/starcar/**",
        "C:/Users/mira/git/starcar",
        r"C:\Users\mira\git\starcar",
        r"c:\users\mira\git\**",
    ] {
        write_settings(&env, &format!("[ingest]\nexclude = ['{pattern}', 'nowhere']\n"));
        let forgotten = env.json(&["forget", "--excluded"]);
        assert_eq!(forgotten["sessions"][0]["session_id"], "starcar", "{pattern}: {forgotten}");
        assert_eq!(forgotten["sessions"].as_array().map(Vec::len), Some(1), "{pattern}");
        let config = env.run(&["config"]);
        let counted = format!("exclude '{pattern}' leaves out 1 session\n");
        assert!(config.stderr.contains(&counted), "{}", config.stderr);
        let warned = "warning: exclude 'nowhere' leaves out no session";
        assert!(config.stderr.contains(warned), "{}", config.stderr);
    }
    env.run(&["forget", "--excluded", "--yes"]).ok();
    assert_eq!(session_ids(&env), ["harbor"]);

    // A log that is excluded from the first is counted as well.
    let fresh = TestEnv::new();
    write_log(&fresh, "starcar", r"C:\Users\mira\git\starcar", "engine");
    write_settings(&fresh, "[ingest]\nexclude = ['starcar']\n");
    assert_eq!(ingest(&fresh, &[])["files_excluded"], 1);
    let config = fresh.run(&["config"]).stderr;
    assert!(config.contains("exclude 'starcar' leaves out 1 session\n"), "{config}");
}

#[test]
fn a_wrong_pattern_ends_the_ingest() {
    let env = TestEnv::new();
    write_log(&env, "acme", "/home/mira/clients/acme", "invoices");
    write_settings(&env, "[ingest]\nexclude = ['/a/[b']\n");
    let logs = env.path("logs").to_string_lossy().into_owned();
    let error = env.run(&["ingest", &logs]).fails(2);
    assert!(error.contains("ingest.exclude") && error.contains("/a/[b"), "{error}");
}

#[test]
fn a_dry_run_creates_no_store() {
    let env = TestEnv::new();
    write_log(&env, "harbor", "/home/mira/code/harbor", "lights");
    let report = ingest(&env, &["--dry-run"]);
    assert_eq!((&report["files_new"], &report["is_dry_run"]), (&json!(1), &json!(true)));
    assert!(!env.store().exists(), "a dry run created the store");
    // The sessions of an ingest are those of all other counts.
    let report = ingest(&env, &[]);
    let status = env.json(&["status"]);
    assert_eq!(report["sessions_by_class"], status["sessions_by_class"]);
    assert_eq!(report["sessions_by_class"]["conversations"], 1);
}

#[test]
fn an_excluded_session_in_the_store_is_masked_again() {
    let env = TestEnv::new();
    write_log(&env, "acme", "/home/mira/clients/acme", "kingfisher");
    ingest(&env, &[]);
    write_settings(&env, "[ingest]\nexclude = ['/home/mira/clients/**']\n");
    ingest(&env, &[]);
    let rules = "[[rule]]\nname = 'bird'\nregex = 'kingfisher'\n";
    std::fs::write(env.path(".config/sessions/redact.toml"), rules).expect("writes");
    let report = ingest(&env, &[]);
    assert_eq!((&report["lines"], &report["files_excluded"]), (&json!(0), &json!(1)), "{report}");
    let texts = env.rows("SELECT text FROM events ORDER BY event_index");
    assert_eq!(texts[0], [json!("Fix the [REDACTED:bird]")], "{texts:?}");
    assert_eq!(env.run(&["search", "kingfisher"]).code, 1);
    // It stays excluded, and is masked once.
    let generation = env.json(&["status"])["generation"].clone();
    assert_eq!(env.json(&["status"])["files"]["excluded"], 1);
    ingest(&env, &[]);
    assert_eq!(env.json(&["status"])["generation"], generation);
    // When the pattern goes, the log is continued with the rules in force.
    write_settings(&env, "");
    assert_eq!(ingest(&env, &[])["files_excluded"], Value::Null);
    assert_eq!(env.run(&["search", "kingfisher"]).code, 1);
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
    assert_eq!(pull(&tom, &lake)["imported"], 2);

    // Excluded later, on the machine that has published it: by a pattern, or by its folder alone.
    let named = "[identity]\nmachine = 'pier'\nuser = 'mira'\n[publish]\ninclude = ['**']\n";
    write_settings(&mira, &format!("{named}[ingest]\nexclude = ['/home/mira/clients/acme']\n"));
    let report = push(&mira, &lake);
    assert_eq!(report["removed"].as_array().map(Vec::len), Some(1), "{report}");
    pull(&tom, &lake);
    assert_eq!(session_ids(&tom).len(), 1);

    // Excluded on the machine that reads the lake, in which `~` is the home of each machine.
    write_settings(&mira, named);
    push(&mira, &lake);
    for (exclude, imported) in
        [("~/clients/acme/**", 1), ("**/acme/**", 1), ("~/code/elsewhere", 2)]
    {
        let ana = machine("dock", "ana", &format!("{publish}\n[ingest]\nexclude = ['{exclude}']"));
        let report = pull(&ana, &lake);
        assert_eq!(report["imported"], imported, "{exclude}: {report}");
    }
}

/// An excluded log is not known, so a log that repeats its records counts them itself. When the pattern
/// goes, the original counts them.
#[test]
fn a_fork_of_an_excluded_session_counts_what_it_repeats() {
    let env = TestEnv::new();
    let record = |session: &str, cwd: &str, number: u32, text: &str| {
        let id = format!("{number:08x}-0000-4000-8000-000000000000");
        let at = format!("2026-11-01T10:{number:02}:00.000Z");
        json!({"type": "user", "uuid": id, "sessionId": session, "timestamp": at, "cwd": cwd,
               "version": "2.1.0", "message": {"role": "user", "content": text}})
        .to_string()
    };
    let (original, fork) =
        ("aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000");
    let (acme, harbor) = ("/home/mira/clients/acme", "/home/mira/code/harbor");
    let first = [record(original, acme, 1, "Fix the invoices"), record(original, acme, 2, "Go on")];
    let second = [
        record(fork, harbor, 1, "Fix the invoices"),
        record(fork, harbor, 2, "Go on"),
        record(fork, harbor, 3, "Now the lights"),
    ];
    std::fs::create_dir_all(env.path("logs")).expect("creates");
    for (session, lines) in [(original, &first[..]), (fork, &second[..])] {
        let path = env.path(&format!("logs/{session}.jsonl"));
        std::fs::write(path, lines.join("\n") + "\n").expect("writes");
    }
    let counted =
        "SELECT session_id, count(*) FROM events WHERE NOT is_replay GROUP BY 1 ORDER BY 1";

    write_settings(&env, "[ingest]\nexclude = ['/home/mira/clients/acme']\n");
    ingest(&env, &[]);
    assert_eq!(env.rows(counted), [[json!(fork), json!(3)]]);
    write_settings(&env, "");
    ingest(&env, &[]);
    assert_eq!(env.rows(counted), [[json!(original), json!(2)], [json!(fork), json!(1)]]);

    // A new rule has both logs read again, and changes nothing about what is a copy.
    let rules = "[[rule]]\nname = 'bill'\nregex = 'invoices'\n";
    std::fs::write(env.path(".config/sessions/redact.toml"), rules).expect("writes");
    assert_eq!(ingest(&env, &[])["files_rewritten"], 2);
    assert_eq!(env.rows(counted), [[json!(original), json!(2)], [json!(fork), json!(1)]]);
    assert_eq!(env.run(&["search", "invoices"]).code, 1);
}
