//! Completion in the real shells: names of logs and of files that a shell would run arrive as one
//! argument, and nothing of them runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::shell_terminal::{PROMPT, ends_with_prompt, start_shell};
use crate::terminal::{CONTROL_C, ENTER, TAB, TestTerminal};

/// The longest wait for a command.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Control-U, which clears the line.
const CLEAR_LINE: &str = "\u{15}";

/// Names of projects that a shell would read as more than a word. Their first two characters are
/// typed. None has a slash or a backslash: a project is the last part of a path.
const HOSTILE: &[&str] = &[
    "q0$(touch PWNED)",
    "q1`touch PWNED`",
    "q2;touch PWNED;",
    "q3'$(touch PWNED)'\"$(touch PWNED)\"",
    "q4!touch! !! '!!' \"!!\"",
    "q5 two  spaces $IFS",
    "q6*?[a]{b,c}",
    "q7${IFS}$(touch PWNED)$PATH",
    "q8&touch PWNED|touch PWNED>PWNED<PWNED",
    "q9=b:c@~d$(touch PWNED)",
    "qa%F{red}%(?.$(touch PWNED).)%",
    "qb#x^y^z",
    "qc—é x’$(touch PWNED)",
    "qd$(touch PWNED)!",
    "qe'$(touch PWNED)'",
    "~q(touch PWNED)",
    "-q$(touch PWNED)",
    "=q$(touch PWNED)",
];

/// A store with a session for every hostile name, and a program in front of the real one that notes
/// the arguments of every command but those of the completion.
fn with_hostile_names() -> TestEnv {
    let env = TestEnv::new();
    for (number, name) in HOSTILE.iter().enumerate() {
        // An id, a branch and a model that run something.
        let evil = evil_name(number);
        env.log(&evil)
            .cwd(format!("/home/mira/{name}"))
            .header("git_branch", evil.as_str())
            .header("model", evil.as_str())
            .at(&format!("2026-10-29T06:{number:02}:00Z"))
            .user("Run $(touch PWNED) `touch PWNED`; touch PWNED %F{red}")
            .write_to(&format!("logs/{number}.jsonl"));
    }
    env.ingest("logs");
    env.write("f1$(touch PWNED)`touch PWNED`;touch PWNED.jsonl", "");

    let script = format!(
        "#!/bin/sh\ncase $1 in complete-line|init|completions) exec '{}' \"$@\";; esac\nprintf '%s\\0' \"$@\" > \"$HOME/noted.new\"\nmv \"$HOME/noted.new\" \"$HOME/noted\"\n",
        env!("CARGO_BIN_EXE_sessions")
    );
    let program = env.write("bin/sessions", script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permits");
    env
}

/// The id, the branch and the model of a session.
fn evil_name(number: usize) -> String {
    format!("x{number}$(touch PWNED)\\`touch PWNED`'\"!")
}

/// Waits for the arguments that the program got.
fn wait_for_arguments(env: &TestEnv, terminal: &TestTerminal) -> Vec<String> {
    let began = Instant::now();
    let path = env.path("noted");
    while !path.exists() {
        assert!(began.elapsed() < TIMEOUT, "nothing ran:\n{}", terminal.screen());
        std::thread::sleep(Duration::from_millis(5));
    }
    let noted = env.read(&path);
    env.remove(&path);
    noted.split_terminator('\0').map(str::to_owned).collect()
}

/// Types a line, completes its last word, runs it, and returns the arguments of the program.
fn run_completed(env: &TestEnv, terminal: &mut TestTerminal, typed: &str) -> Vec<String> {
    terminal.type_text(typed);
    terminal.wait_until(typed, |screen| screen.trim_end().ends_with(typed.trim_end()));
    terminal.press(TAB);
    terminal.wait_until("a candidate", |screen| !screen.trim_end().ends_with(typed.trim_end()));
    terminal.press(ENTER);
    let arguments = wait_for_arguments(env, terminal);
    terminal.type_text("clear\r");
    terminal.wait_until("a clear screen", |screen| screen.trim() == PROMPT);
    arguments
}

fn assert_nothing_ran(env: &TestEnv) {
    for place in ["PWNED", "logs/PWNED", "bin/PWNED"] {
        assert!(!env.path(place).exists(), "{place}");
    }
}

/// Completes every hostile name in a shell, outside of quotes and within those that the user opened.
fn check_shell(name: &str, quotes: &[&str]) {
    let env = with_hostile_names();
    // Within quotes, zsh needs a locale that has the letters of a name. The history of fish would
    // complete a line as well.
    let lines = match name {
        "fish" => "set -gx LC_ALL C.UTF-8\nset -g fish_autosuggestion_enabled 0\n",
        _ => "export LC_ALL=C.UTF-8\n",
    };
    let Some(mut terminal) = start_shell(&env, name, lines) else { return };
    let mut run = |typed: &str, wanted: &[&str]| {
        let arguments = run_completed(&env, &mut terminal, typed);
        assert_eq!(arguments, wanted, "{name}: {typed}");
        assert_nothing_ran(&env);
    };
    for (number, project) in HOSTILE.iter().enumerate() {
        let head: String = project.chars().take(2).collect();
        for (at, quote) in quotes.iter().enumerate() {
            // Only within quotes are these typed as they are.
            let is_special = !head.starts_with('q');
            if is_special && (quote.is_empty() || head.starts_with('-')) {
                continue;
            }
            // Names without quotes are the same within each kind of them.
            let has_quotes = is_special || project.contains(['\'', '"', '!']);
            if !has_quotes && at > 0 && number % (quotes.len() - 1) != at - 1 {
                continue;
            }
            run(&format!("sessions list --project {quote}{head}"), &["list", "--project", project]);
        }
        if head.starts_with(['q', '-']) {
            let glued = format!("--project={project}");
            run(&format!("sessions list --project={head}"), &["list", &glued]);
        }
    }

    // The value of a qualifier follows its colon, and has the quotes of queries. Only within single
    // quotes does fish take a typed one for a part of the word.
    for (qualifier, value) in
        [("branch", "x12"), ("-model", "x14"), ("project", "q0"), ("project", "q5")]
    {
        let whole = match value {
            "q0" | "q5" => HOSTILE[usize::from(value == "q5") * 5].to_owned(),
            _ => evil_name(value[1..].parse().expect("a number")),
        };
        let value_of_query = whole.replace('\\', r"\\").replace('"', "\\\"");
        let query = format!("{qualifier}:\"{value_of_query}\"");
        run(&format!("sessions search '{qualifier}:\"{value}"), &["search", &query]);
        if name != "fish" {
            run(&format!("sessions search {qualifier}:{value}"), &["search", &query]);
        }
    }

    // The ids of these sessions were replaced.
    let id = &env.texts("SELECT session_id FROM sessions WHERE session_id LIKE 'x15%'")[0];
    assert!(id.starts_with("x15__touch_PWNED"), "{id}");
    run("sessions show x15", &["show", id]);
    run("sessions show 'x15", &["show", id]);

    let file = "f1$(touch PWNED)`touch PWNED`;touch PWNED.jsonl";
    run("sessions ingest f1", &["ingest", file]);
    check_lists(&env, &mut terminal, name);
}

/// Lists several candidates with their titles, and runs what a shell inserts of them.
fn check_lists(env: &TestEnv, terminal: &mut TestTerminal, name: &str) {
    terminal.type_text("sessions show x");
    terminal.press(TAB);
    terminal.press(TAB);
    terminal.wait_for("touch PWNED");
    // Leaves the menu of candidates, if there is one.
    terminal.press(if name == "fish" { "\u{1b}" } else { "" });
    terminal.press(ENTER);
    terminal.press(ENTER);
    let arguments = wait_for_arguments(env, terminal);
    let known = env.texts("SELECT session_id FROM sessions");
    assert_eq!(arguments.first().map(String::as_str), Some("show"), "{name}: {arguments:?}");
    assert!(
        arguments[1..].iter().all(|id| id == "x" || known.contains(id)),
        "{name}: {arguments:?}"
    );
    assert_nothing_ran(env);
    terminal.press(CONTROL_C);
    terminal.press(CLEAR_LINE);
    terminal.wait_until("an empty line", ends_with_prompt);
}

#[test]
fn bash_runs_nothing_of_a_candidate() {
    check_shell("bash", &["", "'", "\"", "$'"]);
}

#[test]
fn zsh_runs_nothing_of_a_candidate() {
    check_shell("zsh", &["", "'", "\"", "$'"]);
}

#[test]
fn fish_runs_nothing_of_a_candidate() {
    check_shell("fish", &["", "'", "\""]);
}

/// Keys of bash that insert all candidates, or one after the other.
#[test]
fn bash_inserts_no_titles() {
    let env = with_hostile_names();
    let bindings = "bind '\"\\C-xa\": insert-completions'\nbind '\"\\C-xm\": menu-complete'\nbind 'set completion-ignore-case on'\n";
    let Some(mut terminal) = start_shell(&env, "bash", bindings) else { return };
    let ids = env.texts("SELECT session_id FROM sessions ORDER BY 1");
    for (key, count) in [("\u{18}a", ids.len()), ("\u{18}m", 1)] {
        terminal.type_text("sessions show x");
        terminal.press(key);
        terminal.press(ENTER);
        let arguments = wait_for_arguments(&env, &terminal);
        assert_eq!(arguments.len(), count + 1, "{arguments:?}");
        assert!(arguments[1..].iter().all(|id| ids.contains(id)), "{arguments:?}");
        assert_nothing_ran(&env);
    }
}

/// The code for a folder of completions is that of `init`.
#[test]
fn printed_completions_are_those_of_init() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish"] {
        let code = env.run(["init", shell]).ok();
        let script = env.run(["completions", shell]).ok();
        let script = script.strip_prefix("#compdef sessions\n").unwrap_or(&script);
        assert!(code.contains(script) && script.contains("complete-line"), "{shell}: {script}");
    }
    for shell in ["elvish", "powershell"] {
        env.run(["completions", shell]).shows("--project");
    }
}
