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
