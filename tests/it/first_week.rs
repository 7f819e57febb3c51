//! What a new user tries in the first week: the first run, commands without their argument, a session whose
//! folder is gone, following an agent, and the page in the browser.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::checks::Checks;
use crate::env::TestEnv;
use crate::shell_terminal::{ends_with_prompt, start_shell};
use crate::terminal::{CONTROL_C, CONTROL_G, ENTER, ESCAPE, TestTerminal};

const SIZE: (u16, u16) = (100, 30);

/// The ids of two sessions of Claude Code.
const FIRST: &str = "0b1d6a52-7f0e-4c43-9a43-1d1f6f3c9a01";
const SECOND: &str = "5c2e7b63-8a1f-4d54-8b54-2e2a7a4dab02";

/// Appends a record to the log of a session in the folder of Claude Code. The session works in `cwd`.
fn append_record(env: &TestEnv, session: &str, cwd: &Path, second: u32, content: &Value) {
    let kind = if content.as_array().is_some_and(|blocks| blocks[0]["type"] != "tool_result") {
        "assistant"
    } else {
        "user"
    };
    let digits = session.get(..8).expect("digits");
    let record = json!({
        "type": kind, "sessionId": session, "cwd": cwd, "version": "2.1.0",
        "uuid": format!("{digits}-0000-4000-8000-{second:012}"),
        "timestamp": format!("2026-10-01T10:00:{second:02}.000Z"),
        "message": { "role": kind, "content": content },
    });
    env.append_event(format!(".claude/projects/pier/{session}.jsonl"), &record);
}

/// Installs a program that runs a script.
fn install_program(env: &TestEnv, name: &str, script: &str) {
    let program = env.write(format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permits");
}

#[test]
fn the_first_run_ends_in_the_picker() {
    let env = TestEnv::new();
    append_record(&env, FIRST, Path::new("/home/mira/pier"), 1, &json!("Paint the lighthouse"));
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("[Y/n]");
    terminal.press("y");
    terminal.press(ENTER);
    terminal.wait_for_all(["1 session", "Paint the lighthouse"]);
    terminal.press(ESCAPE);
    assert_eq!(terminal.wait_for_end(), 0);
    let output = terminal.output();
    output.shows("1 session with 1 event read in");
    output.lacks("ext: ");
}

/// The key of the picker leaves a terminal in which a line can be typed, and each shell its own one.
#[test]
fn questions_behind_the_key_of_a_shell_are_answered() {
    for name in ["bash", "zsh", "fish"] {
        let env = TestEnv::new();
        append_record(&env, FIRST, Path::new("/home/mira/pier"), 1, &json!("Paint the lighthouse"));
        let Some(mut terminal) = start_shell(&env, name, "") else { continue };
        terminal.press(CONTROL_G);
        terminal.wait_for("[Y/n]");
        terminal.type_text("y");
        terminal.wait_for("[Y/n] y");
        terminal.press(ENTER);
        terminal.wait_for("Paint the lighthouse");
        terminal.press(ESCAPE);
        terminal.wait_until("the prompt", ends_with_prompt);
        terminal.type_text("expr 40 + 2\r");
        terminal
            .wait_until("the answer", |screen| screen.contains("42") && ends_with_prompt(screen));
    }
}

#[test]
fn commands_without_a_session_open_the_picker() {
    let env = TestEnv::new();
    append_record(&env, FIRST, env.root.path(), 1, &json!("Paint the lighthouse"));
    env.run(["ingest", "-q"]).ok();
    for name in ["show", "open", "resume"] {
        let mut terminal = TestTerminal::start(&env, &[name], SIZE);
        terminal.wait_for("1 session");
        terminal.press(ESCAPE);
        assert_eq!(terminal.wait_for_end(), 0, "{name}");
        env.run([name]).fails(2).says(["needs the ID", "sessions list"]);
    }
    install_program(&env, "claude", "printf '<%s>' \"$@\"");
    let mut terminal = TestTerminal::start(&env, &["resume"], SIZE);
    terminal.wait_for("1 session");
    terminal.press("\u{1b}r");
    assert_eq!(terminal.wait_for_end(), 0);
    terminal.output().shows(format!("<--resume><{FIRST}>"));
}

#[test]
fn setup_and_blame_ask_what_is_meant() {
    let env = TestEnv::new();
    fs::create_dir(env.path(".codex")).expect("creates");
    for keys in ["\u{1b}", "q", "\r", "1\u{1b}"] {
        let mut terminal = TestTerminal::start(&env, &["setup"], SIZE);
        terminal.wait_for("or Esc for none:");
        terminal.type_text(keys);
        assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.screen());
        terminal.screen().lacks("^[");
        assert!(!env.path(".codex/config.toml").exists(), "{keys:?}");
    }
    let mut terminal = TestTerminal::start(&env, &["setup"], SIZE);
    terminal.wait_for("1  codex");
    terminal.press("2\u{7f}1");
    terminal.press(ENTER);
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.screen());
    env.read(".codex/config.toml").shows("mcp_servers");
    env.run(["setup"]).fails(2).says("needs a client");

    let file = env.path("lamp.rs");
    let text = "let lamp = repaired_with_copper();\nlamp.light();\n";
    env.write(&file, text);
    let log = env.log("lighthouse").cwd(env.root.path()).user("Repair the lamp");
    log.edit(&file, "let lamp = broken();", text).ingest();
    let mut terminal = TestTerminal::start(&env, &["blame"], SIZE);
    terminal.wait_for("1  lamp.rs");
    terminal.press("1");
    terminal.press(ENTER);
    terminal.wait_for_end();
    terminal.screen().shows("of 2 lines by a known session");
    env.run(["blame"]).fails(2).says("needs a file");
}

#[test]
fn a_session_of_a_folder_that_is_gone_is_resumed_elsewhere() {
    let env = TestEnv::new();
    install_program(&env, "claude", "pwd; printf '<%s>' \"$@\"");
    append_record(&env, FIRST, Path::new("D:\\oh-my-posh"), 1, &json!("Paint the lighthouse"));
    env.run(["ingest", "-q"]).ok();
    fs::create_dir(env.path("elsewhere")).expect("creates");
    for (answer, shown) in [
        ("1\r", format!("<--resume><{FIRST}>")),
        ("2\relsewhere\r", "/elsewhere".to_owned()),
        ("3\r", format!("claude --resume {FIRST}")),
    ] {
        // The picker leads to the same question.
        let mut terminal = TestTerminal::start(&env, &[], SIZE);
        terminal.wait_for("1 session");
        terminal.press("\u{1b}r");
        terminal.wait_for("1-3, or Esc for none");
        terminal.screen().shows("D:\\oh-my-posh does not exist here");
        terminal.type_text(answer);
        assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.screen());
        terminal.output().shows(&shown);
    }
    let ran = env.run(["resume", FIRST, "--print"]);
    assert_eq!((ran.code, ran.stdout), (0, format!("claude --resume {FIRST}\n")));
    ran.stderr.shows("does not exist here. Use --folder DIR");
    env.run(["resume", FIRST]).fails(2).says("does not exist here. Use --folder DIR");
}

#[test]
fn tail_prints_a_line_for_each_call_and_follows_the_next_session() {
    let env = TestEnv::new();
    let folder = env.root.path().canonicalize().expect("a folder");
    let append = |session: &str, second: u32, content: Value| {
        append_record(&env, session, &folder, second, &content);
    };
    let call = |id: &str, what: &str| json!([{ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": what } }]);
    let result = |id: &str| json!([{ "type": "tool_result", "tool_use_id": id, "content": "ok" }]);
    append(FIRST, 1, json!("Paint the lighthouse"));
    append(FIRST, 2, call("a", "cargo paint"));
    env.run(["ingest", "-q"]).ok();
    let mut terminal = TestTerminal::start(&env, &["tail"], SIZE);
    terminal.wait_for("… Bash cargo paint");

    append(FIRST, 3, result("a"));
    terminal.wait_for("✓ Bash cargo paint");
    append(FIRST, 4, call("b", "cargo dry"));
    terminal.wait_for("… Bash cargo dry");
    append(FIRST, 5, result("b"));
    terminal.wait_for("✓ Bash cargo dry");
    let screen = terminal.screen();
    assert!(!screen.contains('…'), "a finished call has one line: {screen}");
    assert_eq!(screen.matches("Bash").count(), 2, "{screen}");

    append(SECOND, 20, json!("Count the berths"));
    terminal.wait_for(&format!("following {SECOND}"));
    terminal.wait_for("> Count the berths");
    terminal.press(CONTROL_C);

    let text = env.run(["tail", FIRST, "--once"]).ok();
    assert_eq!(text.matches("Bash cargo").count(), 2);
}

#[test]
fn the_page_opens_in_the_browser() {
    let env = TestEnv::new();
    env.log("lighthouse").cwd("/home/mira/pier").user("Paint").ingest();
    let page = env.path("page.html");
    let script = format!("cp \"$1\" '{0}.part' && mv '{0}.part' '{0}'", page.display());
    install_program(&env, "open-page", &script);
    let program = env!("CARGO_BIN_EXE_sessions");
    let flags = ["BROWSER=open-page", program, "web", "--http", "127.0.0.1:0"];
    let start = |more: &[&str]| {
        TestTerminal::start_program(&env, Path::new("/usr/bin/env"), &[&flags, more].concat(), SIZE)
    };
    let mut terminal = start(&[]);
    terminal.wait_for("opening http://127.0.0.1:");
    terminal.wait_until("the page", |_| page.exists());
    env.read(&page).shows(["url=http://127.0.0.1:", "/#token="]);
    terminal.press(CONTROL_C);
    terminal.wait_for_end();

    let mut terminal = start(&["--no-open"]);
    terminal.wait_for("open http://127.0.0.1:");
    terminal.press(CONTROL_C);
    terminal.wait_for_end();
}

/// A copy of the program that no package manager installed.
#[test]
fn uninstall_removes_the_entries_and_the_program_and_keeps_the_store() {
    let env = TestEnv::new();
    let other = "{\"mcpServers\":{\"other\":{\"command\":\"x\"}}}";
    env.write(".claude.json", other);
    fs::create_dir(env.path(".codex")).expect("creates");
    fs::create_dir_all(env.path(".gemini/config")).expect("creates");
    env.write(".bashrc", "eval \"$(sessions init bash)\"\n");
    env.log("lighthouse").cwd("/home/mira/pier").user("Paint").write();
    env.ingest("logs");
    fs::create_dir_all(env.path("prefix/bin")).expect("creates");
    let program = env.path("prefix/bin/sessions");
    fs::copy(env!("CARGO_BIN_EXE_sessions"), &program).expect("copies");
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(args).env_clear().current_dir(env.root.path());
        command.env("HOME", env.root.path()).env("SESSIONS_STORE", env.store());
        command.env("LD_LIBRARY_PATH", std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default());
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    run(&["setup", "--all", "--write"]);
    run(&["setup", "claude", "--hooks"]);
    env.read(".codex/config.toml").shows("sessions");

    let shown = run(&["uninstall"]);
    shown.shows([
        ".claude.json",
        ".codex/config.toml",
        ".gemini/config/mcp_config.json",
        "hooks in ",
        "program in ",
        ".bashrc",
        "--yes",
    ]);
    assert!(program.exists() && shown.contains("--store-too"), "{shown}");
    run(&["uninstall", "--yes"]);
    assert!(!program.exists() && env.store().exists());
    assert_eq!(env.read_json(".claude.json"), json!({"mcpServers": {"other": {"command": "x"}}}));
    for file in [".codex/config.toml", ".claude/settings.json", ".gemini/config/mcp_config.json"] {
        env.read(file).lacks("sessions");
    }

    fs::copy(env!("CARGO_BIN_EXE_sessions"), &program).expect("copies");
    run(&["uninstall", "--yes", "--store-too"]);
    assert!(!env.store().exists());
}

#[test]
fn words_that_people_type_work_or_lead() {
    let env = TestEnv::new();
    env.log("lighthouse")
        .cwd("/home/mira/pier")
        .user("Paint the lighthouse")
        .command("cargo paint", "painted", 0)
        .event(json!({ "type": "message", "text": "Done.", "model": "claude-sonnet-4-5",
        "usage": { "input_tokens": 70_000, "output_tokens": 1 } }))
        .ingest();
    for (typed, meant) in [
        (&["delete", "lighthouse"][..], &["forget", "lighthouse"][..]),
        (&["rm", "lighthouse"], &["forget", "lighthouse"]),
        (&["cost"], &["usage"]),
        (&["quota", "--json"], &["usage", "--limits", "--json"]),
        (&["view", "lighthouse"], &["show", "lighthouse"]),
        (&["last"], &["show", "last"]),
        (&["logs"], &["list"]),
        (&["today"], &["usage", "today"]),
        (&["projects"], &["stats", "--by", "project"]),
        (&["purge", "lighthouse"], &["forget", "lighthouse"]),
        (&["continue", "lighthouse", "--print"], &["resume", "lighthouse", "--print"]),
        (&["usage", "--by", "day"], &["usage", "day"]),
        (&["usage", "--by", "month"], &["usage", "month"]),
        (&["usage", "2026-10-29"], &["usage", "--since", "2026-10-29", "--until", "2026-10-30"]),
        (&["usage", "2026-10-28"], &["usage", "--since", "2026-10-28", "--until", "2026-10-29"]),
        (&["usage", "2026-10"], &["usage", "--since", "2026-10-01", "--until", "2026-11-01"]),
        (&["usage", "7d"], &["usage", "--since", "7d"]),
        (&["settings"], &["config"]),
        (&["list", "--agent", "generic"], &["list", "--provider", "generic"]),
        (&["stats", "--by", "agent", "--agent", "generic"], &["stats", "--by", "provider"]),
        (&["help", "list"], &["list", "--help"]),
    ] {
        let (typed, meant) = (env.run(typed), env.run(meant));
        assert_eq!((typed.code, &typed.stdout), (meant.code, &meant.stdout), "{}", typed.stderr);
    }
    env.run(["usage", "2026-10-29"]).shows("700");
    env.run(["usage", "week", "--project", "pier"]).shows("700");
    env.run(["usage", "2026-09-01"]).fails(1).says("no tokens in this period; the newest");
    env.run(["export", "md", "last"]).shows("lighthouse");
    assert!(env.run(["stats", "--by", "agent"]).ok().starts_with("agent "));
    for (typed, hint) in [
        (&["delet", "x"][..], "Did you mean `sessions forget`?"),
        (&["handover"], "`sessions resume ID --with AGENT`"),
        (&["prune"], "`sessions forget` removes sessions"),
        (&["plugin", "pi"], "is not a command of `sessions plugin`, which has: build"),
        (&["list", "--agent", "cladue"], "--agent: cladue is not an agent; did you mean claude?"),
        (&["list", "--provider", "watson"], "--provider: watson is not an agent; name one such as"),
        (&["usage", "--by", "model"], "`sessions stats --by model`"),
        (&["list", "--sinc", "3d"], "did you mean --since?"),
        (&["list", "pier"], "`sessions list --project pier` selects a project"),
        (&["--sinc"], "`sessions` has no flag --sinc"),
        (&["stats", "--by", "agnt"], "did you mean agent?"),
        (&["unforget"], "`sessions forget --undo ID` brings a session back"),
        (&["hide"], "'sessions hide' needs a PROJECT"),
        (&["hide", "--undo"], "Nothing is hidden"),
    ] {
        env.run(typed).fails(2).says(hint).lacks("event'");
    }
}

#[test]
fn help_shows_the_commands_of_a_week_and_all_of_them_on_request() {
    let env = TestEnv::new();
    let help = env.run(["--help"]).ok();
    assert_eq!(help, env.run(["help"]).ok());
    let all = env.run(["help", "--all"]).ok();
    let has =
        |help: &str, name: &str| help.lines().any(|line| line.starts_with(&format!("  {name} ")));
    for name in ["search", "show", "resume", "usage", "web", "setup"] {
        assert!(has(&help, name) && has(&all, name), "{name}: {help}");
    }
    for name in ["push", "forget", "mcp", "compact"] {
        assert!(!has(&help, name) && has(&all, name), "{name}: {help}");
    }
    let of_list = env.run(["list", "--help"]).ok();
    for text in [&help, &of_list] {
        text.shows("`sessions help --all`").lacks("--engine");
    }
    assert!(all.contains("--engine") && of_list.contains("--since"), "{all}");
}
