//! A place of its own for every test, and what a test expects of a command as one statement:
//!
//! ```text
//! env.log("acme").cwd("/home/mira/acme").user("Fix the invoices").write();
//! env.ingest("logs").has(json!({"files_new": 1, "events": 1}));
//! env.run(["search", "invoices"]).shows(["acme:0", "Fix the"]).lacks("lights");
//! env.run(["search", "lights"]).fails(1).says("Nothing matches");
//! ```
//!
//! No check needs a message: a test that fails prints the last command that it ran, its exit code
//! and its output (`outcome.rs`). Names of files are relative to the home of the test.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::checks::{JsonChecks, Parts};
use crate::left_out::report_left_out;
use crate::log::Log;
use crate::outcome;

pub(crate) struct TestEnv {
    pub root: tempfile::TempDir,
}

/// What a command printed and how it ended.
pub(crate) struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// Whether the test has said which exit code it expects.
    is_code_checked: bool,
}

/// A command that is not run yet.
#[must_use = "run it"]
pub(crate) struct Cli {
    command: Command,
    stdin: Option<Vec<u8>>,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        outcome::print_on_panic();
        Self { root: tempfile::tempdir().expect("tempdir") }
    }

    /// A store with the sample sessions in it.
    pub(crate) fn with_samples() -> Self {
        let env = Self::new();
        env.ingest(samples());
        env
    }

    /// The same from a copy: the repository around a log is its project, and a clone may have any name.
    pub(crate) fn with_sample_copy() -> Self {
        let env = Self::new();
        copy_folder(&samples(), &env.path("sample-sessions"));
        env.ingest("sample-sessions");
        env
    }

    /// A store with the real logs in it.
    pub(crate) fn with_real_logs(logs: &Path) -> Self {
        let env = Self::new();
        let providers = ["claude", "codex", "gemini"].map(|name| logs.join(name));
        env.cli(["ingest", "--quiet"]).args(providers).run().ok();
        env
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// A command without arguments, for tests that start it in a way of their own.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sessions"));
        command.env_clear().current_dir(self.root.path());
        command
            .env("HOME", self.root.path())
            .env("SESSIONS_STORE", self.store())
            .env("SESSIONS_MACHINE", "pier")
            .env("SESSIONS_USER", "mira")
            .env("COLUMNS", "100")
            .env("TZ", "UTC");
        command
    }

    /// A command with arguments, to which input and variables can be added.
    pub(crate) fn cli(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Cli {
        Cli::from(self.command()).args(args)
    }

    #[must_use = "check the exit code"]
    pub(crate) fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        self.cli(args).run()
    }

    /// Runs with `--json` and reads the answer.
    #[track_caller]
    pub(crate) fn json(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
        let ran = self.cli(["--json"]).args(args).run();
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("not JSON: {error}"))
    }

    /// All pages of an answer.
    #[track_caller]
    pub(crate) fn pages(&self, args: &[&str]) -> Vec<Value> {
        let mut pages = vec![self.json(args)];
        while let Some(cursor) = pages[pages.len() - 1]["pagination"]["next_cursor"].as_str() {
            let page = self.json([args, &["--cursor", cursor]].concat());
            pages.push(page);
        }
        pages
    }

    /// Ingests a file or folder, and returns the report.
    #[track_caller]
    pub(crate) fn ingest(&self, logs: impl AsRef<Path>) -> Value {
        let printed = self.cli(["--json", "ingest"]).args([self.path(logs)]).run().ok();
        serde_json::from_str(&printed).expect("JSON")
    }

    /// All rows of a query.
    #[track_caller]
    #[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let args = ["query", "--quiet", "--max-rows", "1000000", "--output", "ndjson", sql];
        let ran = self.run(args);
        assert!(ran.code <= 1, "the query failed");
        let row = |line: &str| match serde_json::from_str(line).expect("JSON") {
            Value::Object(row) => row.into_iter().map(|(_, value)| value).collect(),
            other => panic!("{other} is no row"),
        };
        ran.stdout.lines().map(row).collect()
    }

    /// The number that a query returns.
    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.rows(sql)[0][0].as_i64().expect("a number")
    }

    /// The first column of the rows of a query, which are texts.
    #[track_caller]
    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.rows(sql).into_iter();
        rows.map(|row| row[0].as_str().expect("a text").to_owned()).collect()
    }

    /// The log of a session, in the format for logs of any program.
    pub(crate) fn log(&self, session: &str) -> Log<'_> {
        Log::new(self, session)
    }

    /// Writes a file, with the folders above it, and returns its path.
    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        fs::write(&path, content).expect("writes");
        path
    }

    /// Adds to the end of a file, which it creates if it is missing.
    pub(crate) fn append(&self, name: impl AsRef<Path>, text: &str) {
        let before = fs::read(self.path(&name)).unwrap_or_default();
        self.write(name, [before, text.into()].concat());
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> String {
        fs::read_to_string(self.path(name)).expect("reads")
    }

    pub(crate) fn read_json(&self, name: impl AsRef<Path>) -> Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }

    /// Replaces a text that a file must have.
    #[track_caller]
    pub(crate) fn replace(&self, name: impl AsRef<Path>, from: &str, to: &str) {
        let text = self.read(&name);
        assert!(text.contains(from), "{from} is not in {text}");
        self.write(name, text.replace(from, to));
    }

    /// Removes a file or folder.
    pub(crate) fn remove(&self, name: impl AsRef<Path>) {
        let path = self.path(name);
        let is_folder = fs::symlink_metadata(&path).expect("is there").is_dir();
        if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removes");
    }

    /// Copies a sample log.
    pub(crate) fn copy_sample(&self, sample: &str, name: impl AsRef<Path>) -> PathBuf {
        self.write(name, fs::read(samples().join(sample)).expect("a sample"))
    }

    /// Adds a line with an event to a log.
    pub(crate) fn append_event(&self, name: impl AsRef<Path>, event: &Value) {
        self.append(name, &format!("{event}\n"));
    }

    /// Adds a prompt to a log in the format for logs of any program.
    pub(crate) fn append_prompt(&self, name: impl AsRef<Path>, time: &str, text: &str) {
        self.append_event(name, &json!({ "type": "user", "timestamp": time, "text": text }));
    }

    /// The ids of the sessions that `list` shows, sorted.
    pub(crate) fn session_ids(&self) -> Vec<String> {
        let answer = self.json(["list"]);
        let sessions = answer["data"]["sessions"].as_array().cloned().unwrap_or_default();
        let ids = sessions.iter().map(|session| session["session_id"].text().to_owned());
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    }

    /// Replaces the settings of the user.
    pub(crate) fn write_settings(&self, text: impl AsRef<[u8]>) {
        self.write(SETTINGS, text);
    }

    /// Adds a rule for secrets to those of the user.
    pub(crate) fn write_rule(&self, name: &str, regex: &str) {
        self.append(RULES, &format!("[[rule]]\nname = '{name}'\nregex = '{regex}'\n"));
    }
}

/// The settings file of the user.
pub(crate) const SETTINGS: &str = ".config/sessions/settings.toml";

/// The file with the user's rules for secrets.
pub(crate) const RULES: &str = ".config/sessions/redact.toml";

impl Cli {
    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(input.into());
        self
    }

    /// Starts the command, whose output is dropped.
    pub(crate) fn start(mut self) -> Running {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(self.command.spawn().expect("starts"))
    }

    /// Starts the command and kills it after this time. Returns whether it was running until then.
    pub(crate) fn kill_after(self, time: Duration) -> bool {
        let mut running = self.start();
        std::thread::sleep(time);
        running.0.try_wait().expect("waits").is_none()
    }

    /// Starts the command and kills it at an instant within `whole`. Returns whether it was killed.
    pub(crate) fn kill_within(self, whole: Duration, random: &mut Random) -> bool {
        self.kill_after(Duration::from_micros(random.below(whole.as_micros() as usize) as u64))
    }

    pub(crate) fn run(self) -> Ran {
        let Self { mut command, stdin } = self;
        let Some(input) = stdin else { return Ran::of(&mut command) };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        // A command that does not need its input need not read all of it.
        let _ = child.stdin.take().expect("stdin").write_all(&input);
        Ran::new(&command, child.wait_with_output().expect("ends"))
    }
}

impl From<Command> for Cli {
    fn from(command: Command) -> Self {
        Self { command, stdin: None }
    }
}

/// A command that runs next to the test, and ends with it.
pub(crate) struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            is_code_checked: false,
        }
    }
}

impl Ran {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("runs");
        Self::new(command, output)
    }

    /// What a command that has ended printed.
    pub(crate) fn new(command: &Command, output: Output) -> Self {
        let ran = Self::from(output);
        let args: Vec<OsString> = command.get_args().map(OsStr::to_owned).collect();
        outcome::remember(format!(
            "{} {args:?}\nexit code: {}\nstdout:\n{}\nstderr:\n{}",
            command.get_program().display(),
            ran.code,
            ran.stdout,
            ran.stderr,
        ));
        ran
    }

    /// stdout of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        self.exits(0).stdout
    }

    /// stderr of a command that must have failed with `code`.
    #[track_caller]
    pub(crate) fn error(self, code: i32) -> String {
        self.fails(code).stderr
    }

    /// Checks that the command failed with `code`.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Self {
        self.exits(code)
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn exits(mut self, code: i32) -> Self {
        assert_eq!(self.code, code, "the exit code");
        self.is_code_checked = true;
        self
    }

    /// Checks that the command succeeded, unless the test expects another exit code.
    #[track_caller]
    fn succeeds(self) -> Self {
        if self.is_code_checked { self } else { self.exits(0) }
    }

    /// Checks that stdout has all these parts, and that the command succeeded.
    #[track_caller]
    pub(crate) fn shows(self, parts: impl Parts) -> Self {
        let ran = self.succeeds();
        parts.check(&ran.stdout, true, "stdout");
        ran
    }

    /// Checks that stderr has all these parts, and the exit code as `shows` does.
    #[track_caller]
    pub(crate) fn says(self, parts: impl Parts) -> Self {
        let ran = self.succeeds();
        parts.check(&ran.stderr, true, "stderr");
        ran
    }

    /// Checks that neither stdout nor stderr has one of these parts, and the exit code as `shows`
    /// does.
    #[track_caller]
    pub(crate) fn lacks(self, parts: impl Parts) -> Self {
        let ran = self.succeeds();
        parts.check(&format!("{}{}", ran.stdout, ran.stderr), false, "the output");
        ran
    }

    /// Checks that stdout is this text, and that the command succeeded.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        let ran = self.succeeds();
        assert_eq!(ran.stdout, text, "stdout");
        ran
    }
}

/// A server of these tools.
pub(crate) fn parts(
    tools: tools::Tools,
    options: sessions::server::ServerOptions,
) -> sessions::server::ServerParts {
    sessions::server::ServerParts {
        tools,
        options,
        help: sessions::cli::build_help(),
        roots: Vec::new(),
    }
}

/// All files below a folder, sorted. None if there is no such folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths_in(folder) {
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

/// The paths in a folder, sorted. None if there is no such folder.
pub(crate) fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// All files below a folder, by their path in it.
pub(crate) fn contents_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let name = |file: &Path| file.strip_prefix(folder).expect("below").to_owned();
    let files = files_below(folder).into_iter();
    files.map(|file| (name(&file), fs::read(&file).expect("reads"))).collect()
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("creates");
    for path in paths_in(from) {
        let into = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &into);
        } else {
            fs::copy(path, into).expect("copies");
        }
    }
}

pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-sessions")
}

/// Compares a file of the project with what it should be; where the environment has `update`, it
/// is written.
pub(crate) fn compare(update: &str, name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os(update).is_some() {
        fs::create_dir_all(path.parent().expect("parent")).expect("creates");
        fs::write(&path, wanted).expect("writes");
        return;
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let first = there.lines().zip(wanted.lines()).find(|(there, wanted)| there != wanted);
    assert!(
        there == wanted,
        "{name} is out of date: `{update}=1 cargo test --test it` writes it. First difference: {first:?}"
    );
}

/// The folder of real logs; says plainly when there is none.
pub(crate) fn real_logs() -> Option<PathBuf> {
    let dir = std::env::var_os("SESSIONS_REAL_LOGS").map(PathBuf::from);
    match dir {
        Some(dir) => {
            assert!(
                dir.join("claude").is_dir(),
                "SESSIONS_REAL_LOGS={} holds no logs",
                dir.display()
            );
            // The store keeps one name for a file, without links and dots.
            Some(dir.canonicalize().expect("there"))
        }
        None => {
            let reason = "set SESSIONS_REAL_LOGS to a folder of real logs to run these tests";
            report_left_out(reason, "");
            None
        }
    }
}

/// Gives a file a time at which no agent writes any more.
pub(crate) fn make_old(path: &Path) {
    let file = fs::File::options().write(true).open(path).expect("opens");
    let hour = Duration::from_secs(3600);
    file.set_modified(SystemTime::now() - hour).expect("sets the time");
}

/// A seeded generator of numbers: tests draw at random and fail alike twice.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end.max(1)
    }
}

/// The manifest of the store at `dir`, which its catalog has.
pub(crate) fn manifest_of(dir: &Path) -> Value {
    let catalog = rusqlite::Connection::open(dir.join("catalog.db")).expect("opens");
    let json = catalog.query_row("SELECT json FROM manifest", [], |row| row.get::<_, String>(0));
    serde_json::from_str(&json.expect("a manifest")).expect("JSON")
}

/// Replaces the manifest of the store at `dir`, with the checksum of the new one.
pub(crate) fn replace_manifest(dir: &Path, mut manifest: Value) {
    manifest.as_object_mut().expect("an object").remove("xxh3");
    let fields = manifest.to_string().split_off(1);
    let manifest = format!("{{\"xxh3\":\"{:016x}\",{fields}", xxh3_64(fields.as_bytes()));
    let catalog = rusqlite::Connection::open(dir.join("catalog.db")).expect("opens");
    catalog.execute("UPDATE manifest SET json = ?1", [manifest]).expect("replaces");
}
