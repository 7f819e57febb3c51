//! Help for agents on the command line, SKILL.md, and registering with clients.

use std::fs;

use schemas::client::Client as Program;
use schemas::tool::TOOLS;
use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::mcp::Client;

#[test]
fn ai_help_comes_before_everything_else() {
    let env = TestEnv::new();
    let manual = env.run(["--ai-help"]).ok();
    assert!(manual.starts_with("---\nname: sessions\n"));
    manual.shows([
        "description: ",
        "spec-version: 0.2.0",
        "subcommand-help: true",
        "access-level: ",
    ]);
    for tool in TOOLS {
        manual.shows(format!("### {}\n", tool.name));
        manual.shows(format!("### sessions {}\n", tool.command));
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
    let search = env.run(["search", "--ai-help"]).ok();
    assert!(search.starts_with("# sessions search\n"), "no front matter: {search}");
    search.shows(["--event-type <TYPE>", "## Errors"]);
    assert_eq!(env.run(["--store", "x", "search", "--limit", "oops", "--ai-help"]).ok(), search);
    for command in ["ingest", "mcp", "setup", "skill", "tools", "status"] {
        let text = env.run([command, "--ai-help"]).ok();
        assert!(text.starts_with(&format!("# sessions {command}\n")));
    }
    // After -- it is a word to search for.
    env.run(["search", "--", "--ai-help"]).fails(1).says("sessions ingest");
    assert!(!env.store().exists(), "nothing was touched");
}

#[test]
fn help_tells_of_ai_help() {
    let env = TestEnv::new();
    let help = env.run(["--help"]).ok();
    assert!(help.matches("--ai-help").count() >= 2);
    env.run([""; 0]).fails(2).says("sessions --ai-help");
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
        text.shows("\u{1b}[1mGlobal flags:\u{1b}[0m\n");
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
    let quick = help["sections"]["quickReference"].list().to_vec();
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
    let skill = env.run(["skill"]).ok();
    assert!(skill.starts_with("---\nname: sessions\ndescription: "));
    for tool in TOOLS {
        skill.shows(format!("`{}`", tool.name));
    }
    assert!(skill.len() < 10_000 && !skill.contains("\n\n\n"), "{} bytes", skill.len());
    let folder = env.path("sessions");
    fs::create_dir(&folder).expect("creates");
    env.run(["skill", "--output", &folder.to_string_lossy()]).ok();
    assert_eq!(fs::read_to_string(folder.join("SKILL.md")).expect("reads"), skill);
    // It is brought up to date when that is asked for.
    fs::write(folder.join("SKILL.md"), "of another version").expect("writes");
    let folder = folder.to_string_lossy();
    env.run(["skill", "-o", &folder]).fails(2).says("--force");
    env.run(["skill", "-o", &folder, "--force"]).ok();
    env.run(["skill", "-o", "/dev/null/x"]).fails(2).says("/dev/null");
}

#[test]
fn the_server_is_registered_with_every_client() {
    let env = TestEnv::new();
    for client in Program::NAMES {
        let printed = env.run(["setup", client]).ok();
        printed.shows(["sessions", "mcp"]);
        let shown = env.json(["setup", client]);
        let path = shown["path"].text().to_owned();
        assert!(path.starts_with(&*env.root.path().to_string_lossy()), "{path}");
        assert!(!fs::exists(&path).expect("looks"), "only --write writes");
        env.run(["setup", client, "--write"]).ok();
        let written = env.read(&path);
        assert_eq!(written, printed, "{client}");
        assert!(written.contains("--store"), "the store that was named goes with it");
        env.run(["setup", client, "--write"]).shows("already");
    }
    env.run(["setup", "emacs"]).fails(2).says("claude, codex");
}

#[test]
fn the_command_for_an_upgrade_is_printed() {
    let env = TestEnv::new();
    env.run(["upgrade"]).shows("to upgrade: ").shows(env!("CARGO_PKG_VERSION"));
    let answer = env.json(["upgrade"]);
    assert!(fs::exists(answer["path"].text()).expect("looks"));
    assert_eq!(fs::read_dir(env.root.path()).expect("reads").count(), 0, "nothing is written");
}

#[test]
fn a_registration_is_checked_by_starting_the_server() {
    let env = TestEnv::new();
    let missing = env.json(["setup", "zed", "--check"]);
    assert_eq!(missing["checks"][0]["is_registered"], false);
    missing["checks"][0]["problem"].shows("--write");
    let read_tools = TOOLS.iter().filter(|tool| tool.is_read_only()).count();
    for client in ["zed", "codex", "goose"] {
        env.run(["setup", client, "--write"]).ok();
        let checked = env.json(["setup", client, "--check"]);
        let check = &checked["checks"][0];
        check.has(json!({"is_registered": true, "tools": read_tools}));
    }
    let all = env.run(["setup", "--all", "--check"]).ok();
    assert_eq!(all.matches(&format!("works: {read_tools} tools")).count(), 3);
    // Another program in the entry is not this one.
    let path = env.path(".codex/config.toml");
    let text = env.read(&path);
    env.write(&path, text.replace("/sessions\"", "/other\""));
    env.run(["setup", "--all", "--check"]).fails(1).shows(["codex: ", "no entry"]);
}

#[test]
fn every_client_that_is_found_is_registered() {
    let env = TestEnv::new();
    env.run(["setup", "--all", "--write"]).fails(1).says("No client was found");
    for folder in [".codex", ".config/goose", ".kiro", ".gemini/antigravity"] {
        fs::create_dir_all(env.path(folder)).expect("creates");
    }
    env.write(".claude.json", "{ broken");
    let listed = env.json(["setup", "--all"]);
    let names = |answer: &Value| -> Vec<String> {
        let clients = answer["clients"].list();
        clients.iter().filter_map(|setup| setup["client"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(names(&listed), ["claude", "codex", "gemini", "goose", "kiro", "antigravity"]);
    assert!(!env.path(".codex/config.toml").exists(), "only --write writes");

    // A file that cannot be edited is named, and the others are written.
    let written = env.json(["setup", "--all", "--write"]);
    assert_eq!(names(&written), names(&listed));
    written["clients"][0]["error"].shows("JSON");
    for file in [
        ".codex/config.toml",
        ".config/goose/config.yaml",
        ".kiro/settings/mcp.json",
        ".gemini/antigravity/mcp_config.json",
    ] {
        fs::read_to_string(env.path(file)).expect(file).shows(["sessions", "\"mcp\""]);
    }
    assert_eq!(env.read(".claude.json"), "{ broken");
    env.run(["setup", "--all", "--write"]).fails(2);
    env.write(".claude.json", "");
    env.run(["setup", "--all", "--write"]).ok();
    env.run(["setup", "claude", "--all"]).fails(2).says("--all");
}

#[test]
fn what_else_a_configuration_holds_stays() {
    let env = TestEnv::new();
    let path = env.path(".claude.json");
    let before = json!({ "numStartups": 3, "mcpServers": { "other": { "command": "x" } } });
    env.write(&path, before.to_string());
    let written = env.json(["setup", "claude", "--write"]);
    let backup = written["backup"].text();
    assert_eq!(fs::read_to_string(backup).expect("reads"), before.to_string());
    let after: Value = serde_json::from_str(&env.read(&path)).expect("JSON");
    assert_eq!(after["numStartups"], 3);
    assert_eq!(after["mcpServers"]["other"], before["mcpServers"]["other"]);
    // What was written starts the server.
    let own = &after["mcpServers"]["sessions"];
    assert_eq!(own["type"], "stdio");
    let arguments: Vec<_> = own["args"].list().iter().filter_map(Value::as_str).collect();
    assert_eq!(arguments.last(), Some(&"mcp"));
    assert!(fs::exists(own["command"].text()).expect("looks"));
    env.write(&path, "{ broken");
    env.run(["setup", "claude", "--write"]).fails(2).says("Nothing was changed");
    assert_eq!(env.read(&path), "{ broken");
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
    text.shows("No logs of coding agents were found. Looked in ~/.claude/projects, ");
    text.shows(["~/.claude/projects", "sessions ingest PATH"]);
    text.lacks("Usage: ");

    let logs = env.path(".claude/projects/harbor");
    crate::env::copy_folder(&crate::env::samples().join("claude"), &logs);
    let (code, text) = run_on_terminal(&env, "", "n\n");
    assert_eq!(code, 0, "{text}");
    text.shows(["claude ", "[Y/n]"]);
    text.shows("`sessions ingest`");
    assert!(!env.store().exists(), "nothing was read");
    assert!(env.run([""; 0]).error(2).contains("Usage: "), "scripts are never asked");

    let (code, text) = run_on_terminal(&env, "", "y\n");
    assert_eq!(code, 0, "{text}");
    text.shows([" read in ", "`sessions search WORDS`"]);
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
    text.shows(["first use: reading ", "harbor"]);
    text.lacks("[Y/n]");
}

#[test]
fn the_first_use_in_a_pipe_reads_the_logs_and_prints_only_the_answer() {
    let env = TestEnv::new();
    let ran = env.run(["list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    ran.stderr.shows("No logs of coding agents were found. Looked in ~/.claude/projects, ");
    ran.stderr.shows("~/.codex/sessions");
    assert!(!env.store().exists(), "no store is created for nothing");

    let logs = env.path(".claude/projects/harbor");
    crate::env::copy_folder(&crate::env::samples().join("claude"), &logs);
    let ran = env.run(["--no-refresh", "search", "budget"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    env.run(["query", "--schema"]).ok();
    env.run(["status"]).ok();
    assert!(!env.store().exists(), "nothing was read");

    // Its JSON is the answer and nothing else.
    let answer = env.json(["search", "budget"]);
    assert_ne!(answer["data"]["matches"], json!([]));
    let first = env.run(["list", "--limit", "1"]);
    assert!(!first.stderr.contains("first use"), "it is the second use: {}", first.stderr);

    for args in
        [&["stats", "--by", "tool"][..], &["query", "SELECT 1"], &["tail", "last", "--once"]]
    {
        fs::remove_dir_all(env.store()).expect("removes");
        let ran = env.run(args);
        ran.stderr.shows("first use: reading ");
        ran.stderr.shows(" read in ");
        ran.ok();
    }
    fs::remove_dir_all(env.store()).expect("removes");
    assert_eq!(env.run(["list", "--quiet"]).stderr, "");

    // A folder of someone else is not made a store.
    fs::remove_dir_all(env.store()).expect("removes");
    fs::create_dir(env.store()).expect("creates");
    env.write("store/letter.txt", "Dear Mira");
    let error = env.run(["list"]).error(3);
    assert!(error.contains("letter.txt") && !env.store().join("segments").exists());
}
