//! Help for agents on the command line, SKILL.md, and registering with clients.

use std::fs;

use schemas::client::Client as Program;
use schemas::tool::TOOLS;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::mcp::Client;

#[test]
fn ai_help_comes_before_everything_else() {
    let env = TestEnv::new();
    let manual = env.run(&["--ai-help"]).ok();
    assert!(manual.starts_with("---\nname: sessions\n"), "{manual}");
    for field in ["description: ", "spec-version: 0.2.0", "subcommand-help: true", "access-level: "]
    {
        assert!(manual.contains(field), "{field}");
    }
    for tool in TOOLS {
        assert!(manual.contains(&format!("### {}\n", tool.name)), "{}", tool.name);
        assert!(manual.contains(&format!("### sessions {}\n", tool.command)), "{}", tool.command);
    }
    assert!(!manual.contains("sql-worker"), "no command for anybody");
    // Wrong or missing arguments do not matter.
    for words in [
        &["--ai-help", "--nonsense"][..],
        &["--store", "search", "--ai-help"],
        &["nonsense", "--ai-help"],
    ] {
        assert_eq!(env.run(words).ok(), manual, "{words:?}");
    }
    let search = env.run(&["search", "--ai-help"]).ok();
    assert!(search.starts_with("# sessions search\n"), "no front matter: {search}");
    assert!(search.contains("--event-type <TYPE>") && search.contains("## Errors"), "{search}");
    assert_eq!(env.run(&["--store", "x", "search", "--limit", "oops", "--ai-help"]).ok(), search);
    for command in ["ingest", "mcp", "setup", "skill", "tools", "status"] {
        let text = env.run(&[command, "--ai-help"]).ok();
        assert!(text.starts_with(&format!("# sessions {command}\n")), "{text}");
    }
    // After -- it is a word to search for.
    assert!(env.run(&["search", "--", "--ai-help"]).fails(1).contains("sessions ingest"));
    assert!(!env.store().exists(), "nothing was touched");
}

#[test]
fn help_tells_of_ai_help() {
    let env = TestEnv::new();
    let help = env.run(&["--help"]).ok();
    assert!(help.matches("--ai-help").count() >= 2, "{help}");
    assert!(env.run(&[]).fails(2).contains("sessions --ai-help"));
}

/// At a terminal its headings and names are bold, and no line is broken by the terminal.
#[test]
fn help_fits_the_terminal_and_has_bold_headings() {
    let env = TestEnv::new();
    let help = |args: &[&str]| {
        let mut command = env.command();
        let output = command.args(args).env("COLUMNS", "60").output().expect("runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    for args in [&["--help", "--color=always"][..], &["list", "-h", "--color", "always"]] {
        let text = help(args);
        assert!(text.contains("\u{1b}[1mGlobal flags:\u{1b}[0m\n"), "{text}");
        let plain = text.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert!(!plain.contains('\u{1b}'), "{text}");
        let too_wide = plain.lines().find(|line| line.chars().count() > 60);
        assert_eq!(too_wide, None);
        assert!(!help(&args[..1]).contains('\u{1b}'), "not in a pipe");
    }
    assert!(help(&["--help", "--color", "always"]).contains("\u{1b}[1m  list"));
}

/// The commands of the manual are typed as they stand there.
#[cfg(unix)]
#[test]
fn commands_of_the_manual_work() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    let help = client.request("ai_help", json!({ "format": "json" }))["result"].clone();
    let quick = help["sections"]["quickReference"].as_array().expect("rows").clone();
    let examples = TOOLS.iter().flat_map(|tool| tool.examples).map(|example| example.command);
    let commands = quick.iter().filter_map(|row| row["command"].as_str()).chain(examples);
    // What these read is not among the samples.
    let is_typed =
        |command: &&str| *command != "sessions ingest" && !command.starts_with("sessions blame");
    for command in commands.filter(is_typed) {
        let program = env!("CARGO_BIN_EXE_sessions");
        let typed = command.replacen("sessions", &format!("'{program}'"), 1);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &typed]).env_clear().current_dir(env.root.path());
        shell.env("HOME", env.root.path()).env("SESSIONS_STORE", env.store());
        let output = shell.output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {said}");
    }
}

#[test]
fn the_skill_is_printed_or_written() {
    let env = TestEnv::new();
    let skill = env.run(&["skill"]).ok();
    assert!(skill.starts_with("---\nname: sessions\ndescription: "), "{skill}");
    for tool in TOOLS {
        assert!(skill.contains(&format!("`{}`", tool.name)), "{}", tool.name);
    }
    assert!(skill.len() < 10_000 && !skill.contains("\n\n\n"), "{} bytes", skill.len());
    let folder = env.path("sessions");
    fs::create_dir(&folder).expect("creates");
    env.run(&["skill", "--output", &folder.to_string_lossy()]).ok();
    assert_eq!(fs::read_to_string(folder.join("SKILL.md")).expect("reads"), skill);
    // It is brought up to date when that is asked for.
    fs::write(folder.join("SKILL.md"), "of another version").expect("writes");
    let folder = folder.to_string_lossy();
    assert!(env.run(&["skill", "-o", &folder]).fails(2).contains("--force"));
    env.run(&["skill", "-o", &folder, "--force"]).ok();
    assert!(env.run(&["skill", "-o", "/dev/null/x"]).fails(2).contains("/dev/null"));
}

#[test]
fn the_server_is_registered_with_every_client() {
    let env = TestEnv::new();
    for client in Program::NAMES {
        let printed = env.run(&["setup", client]).ok();
        assert!(printed.contains("sessions") && printed.contains("mcp"), "{client}: {printed}");
        let shown = env.json(&["setup", client]);
        let path = shown["path"].as_str().expect("path").to_owned();
        assert!(path.starts_with(&*env.root.path().to_string_lossy()), "{path}");
        assert!(!fs::exists(&path).expect("looks"), "only --write writes");
        env.run(&["setup", client, "--write"]).ok();
        let written = fs::read_to_string(&path).expect("reads");
        assert_eq!(written, printed, "{client}");
        assert!(written.contains("--store"), "the store that was named goes with it");
        assert!(env.run(&["setup", client, "--write"]).ok().contains("already"), "{client}");
    }
    let other = env.run(&["setup", "emacs"]).fails(2);
    assert!(other.contains("claude, codex"), "{other}");
}

#[test]
fn the_command_for_an_upgrade_is_printed() {
    let env = TestEnv::new();
    let text = env.run(&["upgrade"]).ok();
    assert!(text.contains(env!("CARGO_PKG_VERSION")) && text.contains("to upgrade: "), "{text}");
    let answer = env.json(&["upgrade"]);
    assert!(fs::exists(answer["path"].as_str().expect("path")).expect("looks"));
    assert_eq!(fs::read_dir(env.root.path()).expect("reads").count(), 0, "nothing is written");
}

#[test]
fn a_registration_is_checked_by_starting_the_server() {
    let env = TestEnv::new();
    let missing = env.json(&["setup", "zed", "--check"]);
    assert_eq!(missing["checks"][0]["is_registered"], false);
    assert!(missing["checks"][0]["problem"].as_str().is_some_and(|text| text.contains("--write")));
    let read_tools = TOOLS.iter().filter(|tool| tool.read_only).count();
    for client in ["zed", "codex", "goose"] {
        env.run(&["setup", client, "--write"]).ok();
        let checked = env.json(&["setup", client, "--check"]);
        let check = &checked["checks"][0];
        assert_eq!(check["is_registered"], true, "{check}");
        assert_eq!(check["tools"], read_tools, "{check}");
    }
    let all = env.run(&["setup", "--all", "--check"]).ok();
    assert_eq!(all.matches(&format!("works: {read_tools} tools")).count(), 3, "{all}");
    // Another program in the entry is not this one.
    let path = env.path(".codex/config.toml");
    let text = fs::read_to_string(&path).expect("reads");
    fs::write(&path, text.replace("/sessions\"", "/other\"")).expect("writes");
    let stale = env.run(&["setup", "--all", "--check"]);
    assert_eq!(stale.code, 1, "{}", stale.stderr);
    assert!(
        stale.stdout.contains("codex: ") && stale.stdout.contains("no entry"),
        "{}",
        stale.stdout
    );
}

#[test]
fn every_client_that_is_found_is_registered() {
    let env = TestEnv::new();
    let none = env.run(&["setup", "--all", "--write"]).fails(1);
    assert!(none.contains("No client was found"), "{none}");
    for folder in [".codex", ".config/goose", ".kiro", ".gemini/antigravity"] {
        fs::create_dir_all(env.path(folder)).expect("creates");
    }
    fs::write(env.path(".claude.json"), "{ broken").expect("writes");
    let listed = env.json(&["setup", "--all"]);
    let names = |answer: &Value| -> Vec<String> {
        let clients = answer["clients"].as_array().expect("clients");
        clients.iter().filter_map(|setup| setup["client"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(names(&listed), ["claude", "codex", "gemini", "goose", "kiro", "antigravity"]);
    assert!(!env.path(".codex/config.toml").exists(), "only --write writes");

    // A file that cannot be edited is named, and the others are written.
    let written = env.json(&["setup", "--all", "--write"]);
    assert_eq!(names(&written), names(&listed));
    assert!(written["clients"][0]["error"].as_str().is_some_and(|text| text.contains("JSON")));
    for file in [
        ".codex/config.toml",
        ".config/goose/config.yaml",
        ".kiro/settings/mcp.json",
        ".gemini/antigravity/mcp_config.json",
    ] {
        let text = fs::read_to_string(env.path(file)).expect(file);
        assert!(text.contains("sessions") && text.contains("\"mcp\""), "{file}: {text}");
    }
    assert_eq!(fs::read_to_string(env.path(".claude.json")).expect("reads"), "{ broken");
    env.run(&["setup", "--all", "--write"]).fails(2);
    fs::write(env.path(".claude.json"), "").expect("writes");
    env.run(&["setup", "--all", "--write"]).ok();
    assert!(env.run(&["setup", "claude", "--all"]).fails(2).contains("--all"));
}

#[test]
fn what_else_a_configuration_holds_stays() {
    let env = TestEnv::new();
    let path = env.path(".claude.json");
    let before = json!({ "numStartups": 3, "mcpServers": { "other": { "command": "x" } } });
    fs::write(&path, before.to_string()).expect("writes");
    let written = env.json(&["setup", "claude", "--write"]);
    let backup = written["backup"].as_str().expect("backup");
    assert_eq!(fs::read_to_string(backup).expect("reads"), before.to_string());
    let after: Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("reads")).expect("JSON");
    assert_eq!(after["numStartups"], 3);
    assert_eq!(after["mcpServers"]["other"], before["mcpServers"]["other"]);
    // What was written starts the server.
    let own = &after["mcpServers"]["sessions"];
    assert_eq!(own["type"], "stdio");
    let arguments: Vec<_> =
        own["args"].as_array().expect("args").iter().filter_map(Value::as_str).collect();
    assert_eq!(arguments.last(), Some(&"mcp"));
    assert!(fs::exists(own["command"].as_str().expect("command")).expect("looks"));
    fs::write(&path, "{ broken").expect("writes");
    let refused = env.run(&["setup", "claude", "--write"]).fails(2);
    assert!(refused.contains("Nothing was changed"), "{refused}");
    assert_eq!(fs::read_to_string(&path).expect("reads"), "{ broken");
}

/// Runs `sessions` on a terminal, which `script` provides, and types `answer`.
#[cfg(target_os = "linux")]
fn run_on_terminal(env: &TestEnv, arguments: &str, answer: &str) -> (i32, String) {
    use std::io::Write as _;
    use std::process::Stdio;

    let mut command = env.command();
    let typed = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_sessions"));
    let mut shell = std::process::Command::new("script");
    shell.args(["--quiet", "--return", "--command", &typed, "/dev/null"]).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command = shell;
    command.env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/sh").env("TERM", "dumb");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("script of util-linux is installed");
    let mut input = child.stdin.take().expect("input");
    input.write_all(answer.as_bytes()).expect("types");
    drop(input);
    let output = child.wait_with_output().expect("ends");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn the_first_run_on_a_terminal_offers_to_read_the_logs() {
    let env = TestEnv::new();
    let (code, text) = run_on_terminal(&env, "", "y\n");
    assert_eq!(code, 1, "without logs there is nothing to offer: {text}");
    assert!(text.contains("No logs of coding agents were found in: "), "{text}");
    assert!(text.contains("~/.claude/projects") && text.contains("sessions ingest PATH"), "{text}");
    assert!(!text.contains("Usage: "), "{text}");

    let logs = env.path(".claude/projects/harbor");
    crate::env::copy_folder(&crate::env::samples().join("claude"), &logs);
    let (code, text) = run_on_terminal(&env, "", "n\n");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("claude ") && text.contains("[Y/n]"), "{text}");
    assert!(text.contains("`sessions ingest`"), "{text}");
    assert!(!env.store().exists(), "nothing was read");
    assert!(env.run(&[]).fails(2).contains("Usage: "), "scripts are never asked");

    let (code, text) = run_on_terminal(&env, "", "y\n");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(" read in ") && text.contains("`sessions search WORDS`"), "{text}");
    let (code, text) = run_on_terminal(&env, "", "y\n");
    assert_eq!(code, 2, "{text}");
    assert!(!text.contains("[Y/n]"), "it is offered once: {text}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_first_search_on_a_terminal_reads_the_logs_without_asking() {
    let env = TestEnv::new();
    let logs = env.path(".claude/projects/harbor");
    crate::env::copy_folder(&crate::env::samples().join("claude"), &logs);
    let (code, text) = run_on_terminal(&env, "search budget --no-refresh", "");
    assert_eq!(code, 1, "{text}");
    assert!(!env.store().exists(), "--no-refresh reads nothing: {text}");
    let (code, text) = run_on_terminal(&env, "search budget", "");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("first use: reading ") && text.contains("harbor"), "{text}");
    assert!(!text.contains("[Y/n]"), "{text}");
}

#[test]
fn the_first_use_in_a_pipe_reads_the_logs_and_prints_only_the_answer() {
    let env = TestEnv::new();
    let ran = env.run(&["list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("No logs of coding agents were found in: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("~/.codex/sessions"), "{}", ran.stderr);
    assert!(!env.store().exists(), "no store is created for nothing");

    let logs = env.path(".claude/projects/harbor");
    crate::env::copy_folder(&crate::env::samples().join("claude"), &logs);
    let ran = env.run(&["--no-refresh", "search", "budget"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    env.run(&["query", "--schema"]).ok();
    env.run(&["status"]).ok();
    assert!(!env.store().exists(), "nothing was read");

    // Its JSON is the answer and nothing else.
    let answer = env.json(&["search", "budget"]);
    assert_ne!(answer["data"]["matches"], json!([]));
    let first = env.run(&["list", "--limit", "1"]);
    assert!(!first.stderr.contains("first use"), "it is the second use: {}", first.stderr);

    for args in
        [&["stats", "--by", "tool"][..], &["query", "SELECT 1"], &["tail", "last", "--once"]]
    {
        fs::remove_dir_all(env.store()).expect("removes");
        let ran = env.run(args);
        assert!(ran.stderr.contains("first use: reading "), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(" read in "), "{args:?}: {}", ran.stderr);
        ran.ok();
    }
    fs::remove_dir_all(env.store()).expect("removes");
    assert_eq!(env.run(&["list", "--quiet"]).stderr, "");

    // A folder of someone else is not made a store.
    fs::remove_dir_all(env.store()).expect("removes");
    fs::create_dir(env.store()).expect("creates");
    fs::write(env.store().join("letter.txt"), "Dear Mira").expect("writes");
    let error = env.run(&["list"]).fails(3);
    assert!(error.contains("letter.txt") && !env.store().join("segments").exists(), "{error}");
}
