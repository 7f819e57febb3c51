//! A variable of the environment that is empty counts as unset: `SESSIONS_STORE=` in a shell or a unit
//! file is the usual way to clear it.

use std::process::Stdio;

use schemas::hook::HookName;

use crate::env::{Ran, TestEnv, samples};

/// The variables that the program and the places of the agents know.
const VARIABLES: &[&str] = &[
    "AMP_DATA_HOME",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CLINE_DATA_DIR",
    "CLINE_SESSION_DATA_DIR",
    "CODEX_HOME",
    "CODEX_THREAD_ID",
    "COLUMNS",
    "COPILOT_HOME",
    "GROK_HOME",
    "HERMES_HOME",
    "HOME",
    "KIMI_CODE_HOME",
    "KIMI_SHARE_DIR",
    "KIRO_HOME",
    "LESS",
    "LOGNAME",
    "NO_COLOR",
    "OPENCLAW_STATE_DIR",
    "OPENCODE_DB",
    "PAGER",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "QWEN_HOME",
    "QWEN_RUNTIME_DIR",
    "SESSIONS_ENGINE",
    "SESSIONS_HOOKS",
    "SESSIONS_HTTP_TOKEN",
    "SESSIONS_LAKE",
    "SESSIONS_LOG",
    "SESSIONS_MACHINE",
    "SESSIONS_PRICES",
    "SESSIONS_REDACT",
    "SESSIONS_SETTINGS",
    "SESSIONS_STORE",
    "SESSIONS_USER",
    "TERM",
    "TMP",
    "TEMP",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Runs a command in the environment of a test without these variables, or with empty ones.
fn run(env: &TestEnv, args: &[&str], variables: &[&str], are_empty: bool) -> Ran {
    let mut command = env.command();
    command.args(args).stdin(Stdio::null());
    for variable in variables {
        command.env_remove(variable);
        if are_empty {
            command.env(variable, "");
        }
    }
    Ran::of(&mut command)
}

#[track_caller]
fn check_same(env: &TestEnv, args: &[&str], variables: &[&str]) {
    let [unset, empty] = [false, true].map(|are_empty| {
        let ran = run(env, args, variables, are_empty);
        (ran.code, ran.stdout, ran.stderr)
    });
    assert_eq!(empty, unset, "{variables:?} for {args:?}");
}

/// Returns all variables but the home, in which a command without a store would create one.
fn without_home() -> Vec<&'static str> {
    VARIABLES.iter().copied().filter(|variable| *variable != "HOME").collect()
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let env = TestEnv::with_samples();
    for variable in VARIABLES {
        check_same(&env, &["config"], &[variable]);
    }
    // `doctor` names every folder of the agents.
    for args in [&["--no-refresh", "list", "-n", "2"][..], &["doctor"], &["status"]] {
        check_same(&env, args, &without_home());
    }
}

#[test]
fn a_flag_comes_before_its_variable() {
    let env = TestEnv::with_samples();
    let store = env.store().to_string_lossy().into_owned();
    let args = ["--store", &store, "--no-refresh", "list", "-n", "1"];
    for value in ["", "elsewhere"] {
        assert_ne!(env.cli(args).env("SESSIONS_STORE", value).run().ok(), "", "{value:?}");
    }
}

#[test]
fn hooks_are_silent_whatever_is_empty() {
    let env = TestEnv::new();
    for hook in HookName::NAMES {
        for variables in [without_home(), vec!["SESSIONS_STORE"]] {
            let ran = run(&env, &["hook", hook], &variables, true);
            let printed = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(printed, (0, "", ""), "{hook} with empty {variables:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_variable_may_name_a_store_that_is_not_unicode() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let env = TestEnv::new();
    let store = env.root.path().join(OsStr::from_bytes(b"st\xffore"));
    let ingest = env.cli(["ingest", "--quiet"]).args([samples()]);
    ingest.env("SESSIONS_STORE", &store).run().ok();
    assert!(store.join("catalog.db").is_file());
}
