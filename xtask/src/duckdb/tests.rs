//! Fetches from a stand-in for npm, a script that copies a tarball made here.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use super::*;

const PACKAGE: &str = "@duckdb/node-bindings-test";

struct Bench {
    scratch: tempfile::TempDir,
    pin: Pin,
}

impl Bench {
    /// A tarball as npm makes it, and a pin that fits it.
    fn new() -> Self {
        let scratch = create_scratch(&std::env::temp_dir()).unwrap();
        let package = scratch.path().join("package");
        fs::create_dir(&package).unwrap();
        fs::write(package.join("libduckdb.so"), "library").unwrap();
        fs::write(package.join("LICENSE"), "licence").unwrap();
        fs::write(package.join("duckdb.node"), "not wanted").unwrap();
        let tarball = scratch.path().join("made.tgz");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&tarball).arg("-C").arg(scratch.path()).arg("package");
        assert!(tar.status().unwrap().success());
        let integrity = digest::compute_integrity(&fs::read(tarball).unwrap());
        let pin = Pin { package: PACKAGE.to_owned(), version: "1.2.3".to_owned(), integrity };
        Self { scratch, pin }
    }

    fn directory(&self) -> PathBuf {
        self.scratch.path().join("duckdb")
    }

    /// Fetches with a script as npm; without one there is no npm.
    fn fetch(&self, npm: Option<&str>) -> Result<NpmAnswer<()>> {
        let program = self.scratch.path().join("npm");
        match npm {
            // Written by a program of its own: a file still open for writing cannot be run.
            Some(script) => {
                let text = format!("#!/bin/sh\n{script}\n");
                let written = Command::new("sh")
                    .args(["-c", r#"printf %s "$1" > "$2""#, "sh", &text])
                    .arg(&program)
                    .status();
                assert!(written.unwrap().success());
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            }
            None => drop(fs::remove_file(&program)),
        }
        let platform = Platform { package: PACKAGE.to_owned(), library: "libduckdb.so" };
        let source = LibrarySource {
            pins: vec![self.pin.clone()],
            platform: Ok(platform),
            directory: &self.directory(),
            npm: program.as_os_str(),
        };
        source.fetch()
    }

    /// The names in the directory, in order.
    fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.directory()).unwrap() {
            names.push(entry.unwrap().file_name().into_string().unwrap());
        }
        names.sort();
        names
    }
}

const COPY: &str = r#"test "$*" = "pack @duckdb/node-bindings-test@1.2.3" && cp ../../made.tgz ."#;
const NOT_ASKED: &str = "exit 99";

#[track_caller]
fn got(answer: Result<NpmAnswer<()>>) {
    match answer.unwrap() {
        NpmAnswer::Got(()) => {}
        NpmAnswer::No(why) => panic!("not fetched: {why}"),
    }
}

#[track_caller]
fn no(answer: Result<NpmAnswer<()>>) -> String {
    match answer.unwrap() {
        NpmAnswer::Got(()) => panic!("fetched"),
        NpmAnswer::No(why) => why,
    }
}

#[test]
fn the_library_comes_once() {
    let bench = Bench::new();
    got(bench.fetch(Some(COPY)));
    assert_eq!(bench.files(), ["LICENSE.duckdb", "libduckdb.so", "stamp"]);
    assert_eq!(fs::read_to_string(bench.directory().join("libduckdb.so")).unwrap(), "library");
    got(bench.fetch(Some(NOT_ASKED)));
    got(bench.fetch(None));
}

#[test]
fn a_library_without_stamp_is_replaced() {
    let bench = Bench::new();
    fs::create_dir(bench.directory()).unwrap();
    fs::write(bench.directory().join("libduckdb.so"), "by hand").unwrap();
    got(bench.fetch(Some(COPY)));
    assert_eq!(fs::read_to_string(bench.directory().join("libduckdb.so")).unwrap(), "library");
}

#[test]
fn another_pin_or_a_cut_library_is_fetched_again() {
    let mut bench = Bench::new();
    got(bench.fetch(Some(COPY)));
    fs::write(bench.directory().join("libduckdb.so"), "lib").unwrap();
    got(bench.fetch(Some(COPY)));
    assert_eq!(fs::read_to_string(bench.directory().join("libduckdb.so")).unwrap(), "library");
    bench.pin.version = "1.2.4".to_owned();
    assert!(
        no(bench.fetch(Some("exit 7"))).contains("`npm pack @duckdb/node-bindings-test@1.2.4`")
    );
}

#[test]
fn a_wrong_checksum_is_an_error_and_leaves_nothing() {
    let mut bench = Bench::new();
    bench.pin.integrity = digest::compute_integrity(b"something else");
    let Err(error) = bench.fetch(Some(COPY)) else { panic!("taken") };
    assert!(error.to_string().contains("does not fit xtask/duckdb.lock"), "{error}");
    assert!(bench.files().is_empty());
    let Err(error) = bench.fetch(Some("echo npm error code EINTEGRITY >&2; exit 1")) else {
        panic!("taken")
    };
    assert!(error.to_string().starts_with("checksum of "), "{error}");
}

#[test]
fn without_npm_or_network_or_line_there_is_no_library() {
    let mut bench = Bench::new();
    assert_eq!(no(bench.fetch(None)), "npm is not installed");
    let why = no(bench.fetch(Some("echo npm error network down >&2; exit 1")));
    assert!(why.ends_with("failed: network down"), "{why}");
    bench.pin.package = "@duckdb/node-bindings-other".to_owned();
    assert!(no(bench.fetch(Some(NOT_ASKED))).contains("has no line for"));
    assert!(bench.files().is_empty());
}

#[test]
fn cargo_reads_how_the_library_is_linked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let config = fs::read_to_string(root.join(".cargo/config.toml")).unwrap();
    assert!(config.contains(&format!("../target/duckdb/{LINK_SETTINGS}")), "{config}");
    let text = link_settings("TRIPLE", Path::new("/a 'b'/lib"), Path::new("/c"));
    for line in [
        "[target.TRIPLE.duckdb]",
        "rustc-link-search = [\"/a 'b'/lib\"]",
        "rustc-env = { OUT_DIR = \"/c\" }",
    ] {
        assert!(text.lines().any(|found| found == line), "{text}");
    }
    let bindings = read_bindings(root, &host_triple().unwrap()).unwrap();
    assert!(bindings.contains("pub fn duckdb_open("));
}

#[test]
fn a_file_that_is_up_to_date_is_not_written() {
    let scratch = create_scratch(&std::env::temp_dir()).unwrap();
    let path = scratch.path().join(BINDINGS);
    update_file(&path, "one").unwrap();
    let before = SystemTime::UNIX_EPOCH;
    fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    update_file(&path, "one").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    update_file(&path, "two").unwrap();
    assert_ne!(fs::metadata(&path).unwrap().modified().unwrap(), before);
}
