//! Outputs never replace what is not a regular file, leave nothing behind when they are killed,
//! and say so when they cannot be written.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::checks::Checks;
use crate::env::{Ran, TestEnv};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// How long a command may take before it counts as hanging.
const HANGS: Duration = Duration::from_secs(30);

/// Runs a command that must end by itself. Its stdout is not read.
fn end_of(mut command: Command) -> Ran {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("spawns");
    let start = Instant::now();
    while child.try_wait().expect("waits").is_none() {
        if start.elapsed() > HANGS {
            child.kill().expect("kills");
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ran::new(&command, child.wait_with_output().expect("ends"))
}

fn ran(env: &TestEnv, args: &[&str]) -> Ran {
    let mut command = env.command();
    command.args(args).stdout(Stdio::null());
    end_of(command)
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("runs");
    assert!(made.success());
}

/// Every command that writes a file, without the path at the end.
fn outputs() -> Vec<Vec<&'static str>> {
    let jsonl = ["export", "--format", "jsonl"];
    let one = |format| ["export", "--format", format, "--session-id", MAIN];
    let query = ["query", "SELECT 1 AS a"];
    vec![
        vec!["report", "-o"],
        [&jsonl[..], &["-o"]].concat(),
        [&jsonl[..], &["--force", "-o"]].concat(),
        vec!["export", "--format", "arrow", "--force", "-o"],
        [&one("markdown")[..], &["--force", "-o"]].concat(),
        [&one("html")[..], &["--force", "-o"]].concat(),
        [&query[..], &["-o"]].concat(),
        [&query[..], &["--force", "-o"]].concat(),
        [&query[..], &["--output", "parquet", "--force", "-o"]].concat(),
        vec!["skill", "-o"],
        vec!["skill", "--force", "-o"],
    ]
}

#[test]
fn no_output_replaces_a_pipe_a_socket_or_a_link_to_them() {
    let env = TestEnv::with_samples();
    make_pipe(&env.path("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(env.path("socket")).expect("binds");
    symlink("pipe", env.path("link")).expect("links");
    symlink("nowhere", env.path("dangling")).expect("links");
    // Where devices can be made, one that swallows everything, as /dev/null does.
    let device = Command::new("mknod")
        .args([env.path("device").as_os_str(), "c".as_ref(), "1".as_ref(), "3".as_ref()])
        .stderr(Stdio::null())
        .status();
    let mut places = vec!["pipe", "socket", "link", "dangling"];
    if device.is_ok_and(|status| status.success()) {
        symlink("device", env.path("to-device")).expect("links");
        places.extend(["device", "to-device"]);
    }
    for output in outputs() {
        for place in &places {
            let args = [&output[..], &[*place]].concat();
            ran(&env, &args).fails(2).says("not a regular file");
        }
    }
    let kind = |name: &str| fs::symlink_metadata(env.path(name)).expect("there").file_type();
    assert!(kind("pipe").is_fifo() && kind("socket").is_socket());
    assert!(kind("link").is_symlink() && kind("dangling").is_symlink());
    assert!(!env.path("nowhere").exists());
    if places.contains(&"device") {
        assert!(kind("device").is_char_device() && kind("to-device").is_symlink());
    }
}

#[test]
fn no_output_goes_into_a_store() {
    let env = TestEnv::with_samples();
    let manifest = env.store().join("catalog.db");
    let before = fs::read(&manifest).expect("reads");
    let segment = fs::read_dir(env.store().join("segments")).expect("lists").next();
    let table = segment.expect("a segment").expect("an entry").path().join("events.parquet");
    symlink(&manifest, env.path("link.jsonl")).expect("links");
    symlink(env.store(), env.path("folder")).expect("links");
    let places = [
        manifest.clone(),
        table,
        env.store().join("new.jsonl"),
        env.store().join("below/new.jsonl"),
        env.path("link.jsonl"),
        env.path("folder/new.jsonl"),
        env.path("none").join("..").join(env.store().file_name().expect("a name")).join("x"),
    ];
    for output in outputs() {
        for place in &places {
            let args = [&output[..], &[place.to_str().expect("UTF-8")]].concat();
            ran(&env, &args).fails(2).says("inside the store");
        }
    }
    assert_eq!(fs::read(&manifest).expect("reads"), before);
}

#[test]
fn settings_and_tokens_are_read_without_waiting_and_to_their_end_only() {
    let env = TestEnv::with_samples();
    make_pipe(&env.path("pipe"));
    let with = |name: &str, value: &Path| {
        let mut command = env.command();
        command.env(name, value).arg("ingest").stdout(Stdio::null());
        end_of(command)
    };
    for place in [env.path("pipe"), Path::new("/dev/zero").to_owned()] {
        with("SESSIONS_REDACT", &place).fails(2).says("not a regular file");
    }
    env.write("large.toml", "# a comment\n".repeat(400_000));
    with("SESSIONS_REDACT", &env.path("large.toml")).fails(2).says("more than");

    let serve = ["mcp", "--http", "127.0.0.1:0", "--token-file", "/dev/zero"];
    ran(&env, &serve).fails(2).says("more than");
    env.write("theirs", "a-token-of-another-program");
    symlink(env.path("theirs"), env.store().join("http-token")).expect("links");
    let refused = ran(&env, &serve[..3]);
    assert_ne!(refused.code, 0);
    refused.stderr.shows("http-token");
}

#[test]
fn a_configuration_that_is_a_pipe_is_left_alone() {
    let env = TestEnv::new();
    let path = env.path(".claude.json");
    make_pipe(&path);
    ran(&env, &["setup", "claude", "--write"]).fails(2).says("a named pipe");
    assert!(fs::symlink_metadata(&path).expect("there").file_type().is_fifo());
    // A link stays a link, and the file that it leads to is changed.
    env.remove(&path);
    env.write("dotfile", "{}");
    symlink("dotfile", &path).expect("links");
    ran(&env, &["setup", "claude", "--write"]).ok();
    assert!(fs::symlink_metadata(&path).expect("there").is_symlink());
    assert!(env.read("dotfile").contains("mcpServers"));
}

/// Names in a folder that only this program gives to its temporary files.
fn temporary_files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".sessions-tmp-") || name.starts_with(".tmp")).collect()
}

/// Waits until a command has a temporary file in `dir`.
fn wait_for_temporary_file(child: &mut Child, dir: &Path) {
    let start = Instant::now();
    while temporary_files(dir).is_empty() {
        assert!(start.elapsed() < HANGS, "no temporary file in {}", dir.display());
        assert!(child.try_wait().expect("waits").is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next_one() {
    let env = TestEnv::with_samples();
    fs::create_dir(env.path("out")).expect("creates");
    // Not ours, however much they look like it.
    let theirs = [".sessions-tmp-notes", ".tmpABCDEF", ".sessions-tmp-1-abcDEF012345.bak"];
    for name in theirs {
        env.write(env.path("out").join(name), "theirs");
    }
    for name in theirs {
        assert!(env.path("out").join(name).exists());
    }
    let endless = "SELECT a.range FROM range(100000000) a, range(100000) b";
    let mut child = env
        .command()
        .args(["query", endless, "--max-rows", "4000000000", "-o", "killed/rows.csv"])
        .spawn()
        .expect("spawns");
    wait_for_temporary_file(&mut child, &env.path("killed"));
    child.kill().expect("kills");
    child.wait().expect("ends");
    let left = temporary_files(&env.path("killed"));
    assert_eq!(left.len(), 1, "{left:?}");
    let moved = env.path("out").join(&left[0]);
    fs::rename(env.path("killed").join(&left[0]), &moved).expect("moves");

    env.run(["query", "SELECT 1 AS a", "-o", "out/rows.csv"]).ok();
    assert!(!moved.exists(), "it is removed");
    for name in theirs {
        assert!(env.path("out").join(name).exists(), "{name} is not ours");
    }
    // A run that fails by itself removes its own.
    env.run(["query", "SELECT 2 AS a", "-o", "out/rows.csv"]).fails(2).says("already exists there");
    assert_eq!(temporary_files(&env.path("out")).len(), theirs.len());
}

#[test]
fn a_file_of_a_killed_run_is_removed_at_once_even_if_its_process_id_is_in_use_again() {
    let env = TestEnv::with_samples();
    fs::create_dir(env.path("out")).expect("creates");
    // Two files of the process of this test, which runs. A run that is alive holds a lock.
    let name = |random: &str| format!(".sessions-tmp-{}-{random}", std::process::id());
    let [killed, alive] = ["abcDEF012345", "lockedlocked"].map(|at| env.path("out").join(name(at)));
    for path in [&killed, &alive] {
        fs::write(path, "half").expect("writes");
    }
    let lock = fs::File::open(&alive).expect("opens");
    lock.try_lock().expect("locks");

    env.run(["query", "SELECT 1 AS a", "-o", "out/rows.csv"]).ok();

    assert!(!killed.exists(), "no process has its lock");
    assert!(alive.exists(), "it is in use");
}

#[test]
fn an_export_that_needs_a_folder_says_so() {
    let env = TestEnv::with_samples();
    env.write("file", "theirs");
    for (format, path, kind) in [
        ("parquet", "/dev/null", "a device"),
        ("parquet", "/dev/null/below", "a device"),
        ("parquet", "file", "a file"),
        ("parquet", "file/below/it", "a file"),
        ("markdown", "/dev/null", "a device"),
        ("html", "file", "a file"),
    ] {
        env.run(["export", "--format", format, "-o", path])
            .fails(2)
            .says("Name a folder with -o")
            .says(kind)
            .lacks("os error");
    }
    assert_eq!(env.read("file"), "theirs");
}

#[test]
fn pipes_that_no_program_uses_do_not_hold_up_a_command() {
    let env = TestEnv::with_samples();
    let pipe = env.path("pipe");
    make_pipe(&pipe);
    let mut listing = env.command();
    listing.args(["list"]).stdout(Stdio::null());
    listing.env("SESSIONS_LOG", format!("debug:{}", pipe.display()));
    end_of(listing)
        .fails(2)
        .says(["named pipe that no program reads", "SESSIONS_LOG names this file"]);

    let mut listing = env.command();
    listing.args(["list"]).stdout(Stdio::null()).env("SESSIONS_LOG", "debug:/dev/stderr");
    end_of(listing).ok();

    let mut serving = env.command();
    serving.args(["mcp", "--http", "127.0.0.1:0", "--token-file"]).arg(&pipe);
    end_of(serving).fails(2).says("no program writes to it");
}

#[test]
fn an_export_cleans_partitions_that_it_does_not_write_to() {
    let env = TestEnv::with_samples();
    let partition = env.path("lake/p_provider=claude/p_date=1999-01-01");
    fs::create_dir_all(&partition).expect("creates");
    let mut ended = Command::new("true").spawn().expect("spawns");
    ended.wait().expect("ends");
    let left = partition.join(format!(".sessions-tmp-{}-abcDEF012345", ended.id()));
    env.write(&left, "half");
    env.run(["export", "--format", "parquet", "-o", "lake"]).ok();
    assert!(!left.exists());
}

/// Commands that print to stdout.
fn printing() -> Vec<Vec<&'static str>> {
    vec![
        vec!["search", "error"],
        vec!["--json", "search", "error"],
        vec!["event", "9ae82b3a:14"],
        vec!["list"],
        vec!["show", "9ae82b3a"],
        vec!["analyze"],
        vec!["--json", "analyze"],
        vec!["query", "SELECT 1 AS a"],
        vec!["--json", "query", "SELECT 1 AS a"],
        vec!["query", "SELECT 1 AS a", "--output", "csv"],
        vec!["query", "--schema"],
        vec!["stats", "--by", "tool"],
        vec!["usage"],
        vec!["status"],
        vec!["--json", "status"],
        vec!["doctor"],
        vec!["tools"],
        vec!["report", "-o", "-"],
        vec!["report", "-o", "report.html"],
        vec!["export", "--format", "jsonl"],
        vec!["export", "--format", "markdown", "--session-id", MAIN],
        vec!["completions", "bash"],
        vec!["skill"],
        vec!["setup", "claude"],
        vec!["--help"],
        vec!["--version"],
        vec!["search", "--help"],
        vec!["--ai-help"],
        // An error as JSON goes to stdout as well.
        vec!["--json", "show", "ffffffff"],
    ]
}

#[cfg(target_os = "linux")]
#[test]
fn every_command_says_that_its_output_could_not_be_written() {
    let env = TestEnv::with_samples();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
    let mut commands = printing();
    commands.push(vec!["ingest", "."]);
    for args in commands {
        let mut command = env.command();
        command.args(&args).stdout(full());
        end_of(command).fails(3).says(["could not be written", "No space left on device"]);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_not_a_failure() {
    let env = TestEnv::with_samples();
    for args in printing() {
        let (reader, writer) = std::io::pipe().expect("pipe");
        drop(reader);
        let mut command = env.command();
        command.args(&args).stdout(writer);
        let is_error = args.contains(&"ffffffff");
        let ran = end_of(command).exits(i32::from(is_error));
        ran.lacks(["could not be written", "panicked"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_cannot_answer_says_so_and_ends() {
    let env = TestEnv::with_samples();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("opens");
    let (reader, mut writer) = std::io::pipe().expect("pipe");
    let mut command = env.command();
    command.arg("mcp").stdin(reader).stdout(full);
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    std::io::Write::write_all(&mut writer, ping).expect("writes");
    // stdin stays open: it ends all the same.
    end_of(command).fails(3).says("No space left on device");
    drop(writer);
}

#[test]
fn a_hyphen_in_place_of_a_file_is_the_standard_output() {
    let env = TestEnv::with_samples();
    for args in [
        &["query", "SELECT 1 AS one"][..],
        &["query", "--output", "csv", "SELECT 1 AS one"],
        &["skill"],
        &["export", "--format", "jsonl", "--session-id", "9ae82b3a"],
        &["export", "--format", "markdown", "--session-id", "9ae82b3a"],
    ] {
        let printed = env.run(args).ok();
        assert!(!printed.is_empty(), "{args:?}");
        assert_eq!(env.run([args, &["-o", "-"]].concat()).ok(), printed, "{args:?}");
        assert!(!env.path("-").exists(), "{args:?}");
    }
    env.run(["report", "-o", "-"]).shows("<html");
}
