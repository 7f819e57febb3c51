//! A variable of the environment that is empty counts as unset: `SESSIONS_STORE=` in a shell or a unit
//! file is the usual way to clear it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use ingest::discover::default_roots;
use ingest::provider::format::AgentFolders;
use schemas::hook::HookName;

use crate::env::{Ran, TestEnv, samples};

/// The variables that the program knows, apart from those of the places of the agents.
const VARIABLES: &[&str] = &[
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PROJECT_DIR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CODEX_THREAD_ID",
    "COLUMNS",
    "HOME",
    "LESS",
    "LOGNAME",
    "NO_COLOR",
    "PAGER",
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
    "USER",
    "XDG_CACHE_HOME",
];

/// Runs a command in the environment of a test without these variables, or with empty ones.
fn run(env: &TestEnv, args: &[&str], variables: &[String], are_empty: bool) -> Ran {
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
fn check_same(env: &TestEnv, args: &[&str], variables: &[String]) {
    let [unset, empty] = [false, true].map(|are_empty| {
        let ran = run(env, args, variables, are_empty);
        (ran.code, ran.stdout, ran.stderr)
    });
    assert_eq!(empty, unset, "{variables:?} for {args:?}");
}

/// Returns all variables: those of the program, and those that move the folders of agents.
fn all_variables() -> BTreeSet<String> {
    let names = RefCell::new(VARIABLES.iter().map(|name| (*name).to_owned()).collect());
    let note_variable = |name: &str| {
        BTreeSet::insert(&mut names.borrow_mut(), name.to_owned());
        None
    };
    default_roots(&AgentFolders::new(Path::new("/nowhere"), &note_variable));
    names.into_inner()
}

/// Returns all variables but the home, in which a command without a store would create one.
fn without_home() -> Vec<String> {
    all_variables().into_iter().filter(|variable| variable != "HOME").collect()
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let env = TestEnv::with_samples();
    for variable in all_variables() {
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
        for variables in [without_home(), vec!["SESSIONS_STORE".to_owned()]] {
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
