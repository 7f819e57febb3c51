//! A place of its own for every test: a home, a store, the binary with a bare environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::left_out::report_left_out;

pub(crate) struct TestEnv {
    pub root: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[must_use = "check the exit code"]
pub(crate) struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().expect("tempdir") }
    }

    /// A store with the sample sessions in it.
    pub(crate) fn with_samples() -> Self {
        let env = Self::new();
        env.run(&["ingest", "--quiet", &samples().to_string_lossy()]).ok();
        env
    }

    /// A store with the real logs in it.
    pub(crate) fn with_real_logs(logs: &Path) -> Self {
        let env = Self::new();
        let providers = ["claude", "codex", "gemini"]
            .map(|name| logs.join(name).to_string_lossy().into_owned());
        env.run(&["ingest", "--quiet", &providers[0], &providers[1], &providers[2]]).ok();
        env
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

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

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command().args(args).output().expect("runs"))
    }

    /// Runs with `--json` and reads the answer.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ran = Ran::from(self.command().arg("--json").args(args).output().expect("runs"));
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {}{}", ran.stdout, ran.stderr))
    }

    /// All rows of a query.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        let args = ["query", "--quiet", "--max-rows", "1000000", "--output", "ndjson", sql];
        let ran = self.run(&args);
        assert!(ran.code <= 1, "{sql}: {}", ran.stderr);
        let row = |line: &str| match serde_json::from_str(line).expect("JSON") {
            Value::Object(row) => row.into_iter().map(|(_, value)| value).collect(),
            other => panic!("{other} is no row"),
        };
        ran.stdout.lines().map(row).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// stdout of a command that must have succeeded.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// stderr of a command that must have failed with `code`.
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self.stderr
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

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("creates");
    for entry in std::fs::read_dir(from).expect("reads").flatten() {
        let into = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &into);
        } else {
            std::fs::copy(entry.path(), into).expect("copies");
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

/// Replaces the manifest of the store at `dir`. Without its checksum, any content passes.
pub(crate) fn replace_manifest(dir: &Path, mut manifest: Value) {
    manifest.as_object_mut().expect("an object").remove("xxh3");
    let catalog = rusqlite::Connection::open(dir.join("catalog.db")).expect("opens");
    catalog.execute("UPDATE manifest SET json = ?1", [manifest.to_string()]).expect("replaces");
}
