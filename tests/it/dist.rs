//! The packages of `cargo xtask dist`, made of the program under test and installed offline.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::left_out::report_left_out;
use crate::packages::registry_rules;

/// The packages, in a folder of their own.
struct Packages {
    dir: tempfile::TempDir,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program that must succeed.
#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Returns true if a program is installed; reports that a part of the test is skipped otherwise.
fn is_installed(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        report_left_out("install these programs to run these tests", program);
    }
    is_there
}

/// Runs `cargo xtask dist` with a program.
fn dist(program: &Path, out: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["xtask", "dist", "--compression", "1", "--binary"])
        .arg(program)
        .arg("--out")
        .arg(out)
        .current_dir(root());
    run(&mut command);
}

impl Packages {
    fn make() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        dist(Path::new(env!("CARGO_BIN_EXE_sessions")), &dir.path().join("out"));
        Self { dir }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// Returns the package whose name has this beginning and end.
    fn find(&self, start: &str, end: &str) -> PathBuf {
        let entries = fs::read_dir(self.out()).expect("reads");
        let mut found = entries.flatten().map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        });
        let path = found.next().unwrap_or_else(|| panic!("there is no {start}..{end}"));
        assert_eq!(found.next(), None, "{start}..{end} is ambiguous");
        path
    }

    /// Creates an empty folder.
    fn folder(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(&path).expect("creates");
        path
    }

    /// Checks that an installed program ingests, searches, and answers with its exit codes.
    fn check_program(&self, program: &Path) {
        let name = program.to_string_lossy().replace(['/', '.'], "_");
        let home = self.folder(&format!("home{name}"));
        let command = |arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).env("HOME", &home).env("SESSIONS_STORE", home.join("store"));
            command.stdin(Stdio::null());
            command
        };
        let logs = root().join("sample-sessions/claude");
        run(&mut command(&["ingest", "--quiet", &logs.to_string_lossy()]));
        let found = run(&mut command(&["search", "budget", "--json"]));
        let found: Value = serde_json::from_slice(&found.stdout).expect("JSON");
        found.has(json!({"status": "ok"}));
        let missed = command(&["search", "zzqqxx"]).output().expect("runs");
        assert_eq!(missed.status.code(), Some(1), "nothing found");
    }
}

#[test]
fn packages_are_made_and_installed_offline() {
    let packages = Packages::make();
    check_archive(&packages);
    check_sums(&packages);
    check_equal_packages(&packages);
    check_sbom(&packages);
    check_bundle(&packages);
    if is_installed("dpkg-deb") {
        check_deb(&packages);
    }
    if is_installed("python3") {
        check_wheel(&packages);
    }
    if is_installed("npm") {
        check_npm(&packages);
    }
    check_installer(&packages);
}

fn check_archive(packages: &Packages) {
    let archive = packages.find(&format!("sessions-mcp-{VERSION}-"), ".tar.gz");
    let into = packages.folder("archive");
    run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&into));
    let folder = fs::read_dir(&into).expect("reads").flatten().next().expect("a folder").path();
    assert!(folder.join("LICENSE-MIT").exists() && folder.join("sessions-mcp.cdx.json").exists());
    packages.check_program(&folder.join("sessions"));
}

fn check_sums(packages: &Packages) {
    if is_installed("sha256sum") {
        let mut command = Command::new("sha256sum");
        run(command.args(["--check", "--strict", "SHA256SUMS"]).current_dir(packages.out()));
    }
}

/// Packages a program of a few bytes twice: one of a hundred megabytes would show nothing more.
fn check_equal_packages(packages: &Packages) {
    use std::os::unix::fs::PermissionsExt as _;

    let program = packages.folder("small").join("sessions");
    let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_sessions"));
    fs::write(&program, script).expect("writes");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("makes it a program");
    let [once, again] = ["once", "again"].map(|name| {
        let out = packages.folder(name);
        dist(&program, &out);
        fs::read_to_string(out.join("SHA256SUMS")).expect("reads")
    });
    assert_eq!(once, again);
}

fn check_sbom(packages: &Packages) {
    let path = packages.find(&format!("sessions-mcp-{VERSION}-"), ".cdx.json");
    let sbom: Value = serde_json::from_slice(&fs::read(path).expect("reads")).expect("JSON");
    sbom.has(json!({"bomFormat": "CycloneDX", "specVersion": "1.6"}));
    let components = sbom["components"].list();
    let names: Vec<&str> = components.iter().filter_map(|item| item["name"].as_str()).collect();
    for name in ["arrow", "duckdb", "libduckdb-sys", "rmcp", "sessions-mcp-ingest"] {
        assert!(names.contains(&name), "{name} is in the program");
    }
    for name in ["proptest", "jsonschema", "xtask"] {
        assert!(!names.contains(&name), "{name} is not in the program");
    }
    // Every crate of a registry has a checksum. Our own crates and DuckDB's sources have none.
    for item in components {
        let has_none = item["purl"].as_str().is_some_and(|url| {
            url.starts_with("pkg:generic/duckdb@") || url.starts_with("pkg:cargo/sessions-mcp-")
        });
        assert_eq!(item["hashes"].is_null(), has_none, "{item}");
    }
}

fn check_bundle(packages: &Packages) {
    let into = packages.folder("bundle");
    unzip(&packages.find("sessions-mcp-", ".mcpb"), &into);
    let text = fs::read(into.join("manifest.json")).expect("reads");
    let manifest: Value = serde_json::from_slice(&text).expect("JSON");
    manifest.has(json!({"manifest_version": "0.3", "server": {"type": "binary"}}));
    let listed: Vec<&str> =
        manifest["tools"].list().iter().filter_map(|tool| tool["name"].as_str()).collect();
    // Those that `sessions mcp` offers without further flags.
    let offered: Vec<&str> = schemas::tool::TOOLS
        .iter()
        .map(|tool| tool.name)
        .filter(|name| *name != "update_session_labels")
        .collect();
    assert_eq!(listed, offered);
    let program = into.join(manifest["server"]["entry_point"].text());
    packages.check_program(&program);

    // The entry for the MCP registry names the bundle, and keeps its rules.
    let text = fs::read(packages.out().join("server.json")).expect("reads");
    let entry: Value = serde_json::from_slice(&text).expect("JSON");
    let errors: Vec<String> =
        registry_rules().iter_errors(&entry).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut packages = entry["packages"].list().iter();
    assert!(packages.any(|package| package["registryType"] == "mcpb"), "{entry}");
}

/// Unpacks a zip file with its permissions.
fn unzip(archive: &Path, into: &Path) {
    const SCRIPT: &str = "import os, sys, zipfile\n\
        with zipfile.ZipFile(sys.argv[1]) as archive:\n    \
            for info in archive.infolist():\n        \
                os.chmod(archive.extract(info, sys.argv[2]), info.external_attr >> 16)\n";
    run(Command::new("python3").args(["-c", SCRIPT]).arg(archive).arg(into));
}

fn check_deb(packages: &Packages) {
    let deb = packages.find("sessions-mcp_", ".deb");
    let into = packages.folder("deb");
    run(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&into));
    let package = run(Command::new("dpkg-deb").arg("-f").arg(&deb).args(["Package", "Depends"]));
    let fields = String::from_utf8_lossy(&package.stdout).into_owned();
    fields.shows("Package: sessions-mcp\nDepends: libc6 (>= 2.");
    assert!(into.join("usr/share/doc/sessions-mcp/copyright").exists());
    packages.check_program(&into.join("usr/bin/sessions"));
}

fn check_wheel(packages: &Packages) {
    let wheel = packages.find("sessions_mcp-", ".whl");
    let venv = packages.folder("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let pip = venv.join("bin/pip");
    run(Command::new(&pip).args(["install", "--quiet", "--no-index"]).arg(&wheel));
    packages.check_program(&venv.join("bin/sessions"));
    // uvx starts the script with the name of the package, and may do so by a link.
    let link = packages.dir.path().join("linked");
    std::os::unix::fs::symlink(venv.join("bin/sessions-mcp"), &link).expect("links");
    packages.check_program(&link);

    let shown = run(Command::new(&pip).args(["show", "--files", "sessions-mcp"]));
    let files = String::from_utf8_lossy(&shown.stdout).into_owned();
    files.shows("dist-info/sboms/sessions-mcp.cdx.json");
    let into = packages.folder("wheel");
    unzip(&wheel, &into);
    let metadata = into.join(format!("sessions_mcp-{VERSION}.dist-info/METADATA"));
    let metadata = fs::read_to_string(metadata).expect("reads");
    let line = format!("\nmcp-name: {}/sessions\n", schemas::tool::namespace());
    assert!(metadata.contains(&line), "the registry verifies the owner by this line");
}

fn check_npm(packages: &Packages) {
    let project = packages.folder("npm");
    let launcher = packages.find(&format!("sessions-mcp-{VERSION}"), ".tgz");
    let entries = fs::read_dir(packages.out()).expect("reads").flatten();
    let platform = entries
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "tgz") && *path != launcher);
    let mut install = Command::new("npm");
    install
        .args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"])
        .arg(&launcher)
        .arg(platform.expect("the package of this platform"))
        .env("npm_config_cache", packages.folder("npm-cache"))
        .current_dir(&project);
    run(&mut install);
    for name in ["sessions", "sessions-mcp"] {
        packages.check_program(&project.join("node_modules/.bin").join(name));
    }
    let manifest = fs::read(project.join("node_modules/sessions-mcp/package.json")).expect("reads");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["mcpName"], format!("{}/sessions", schemas::tool::namespace()));
    assert!(manifest["scripts"].is_null(), "nothing runs at installation");
    check_signal(packages, &project.join("node_modules/.bin/sessions"));
}

/// Ends the launcher by a signal, which must end the program too.
fn check_signal(packages: &Packages, launcher: &Path) {
    use std::os::unix::process::ExitStatusExt as _;

    let home = packages.folder("home-signal");
    let mut command = Command::new(launcher);
    command.args(["ingest", "--watch"]).arg(root().join("sample-sessions/claude"));
    command.env("HOME", &home).env("SESSIONS_STORE", home.join("store")).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = command.spawn().expect("starts");
    // The first commit shows that the program runs.
    let catalog = home.join("store/catalog.db");
    for _ in 0..300 {
        if catalog.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let id = started.id().to_string();
    run(Command::new("kill").args(["-TERM", &id]));
    let status = started.wait().expect("ends");
    assert!(status.code().is_some() || status.signal() == Some(15), "{status}");
    // No program holds the lock of the store any more.
    let mut after = Command::new(env!("CARGO_BIN_EXE_sessions"));
    after.args(["ingest", "--quiet"]).arg(root().join("sample-sessions/claude"));
    run(after.env("HOME", &home).env("SESSIONS_STORE", home.join("store")));
}

/// Where there is no release, install.sh builds in the clone that has it, that is named, or in which it
/// is run, and says what is missing to build.
#[cfg(unix)]
#[test]
fn the_installer_builds_in_a_clone_where_there_is_no_release() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().expect("tempdir");
    let folder = |name: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(&path).expect("creates");
        path
    };
    let (clone, elsewhere, tools) = (folder("clone"), folder("elsewhere"), folder("tools"));
    let place = "xtask/src/dist/files/install.sh";
    let in_clone = folder("clone/xtask/src/dist/files").join("install.sh");
    let alone = elsewhere.join("install.sh");
    for copy in [&in_clone, &alone] {
        fs::copy(root().join(place), copy).expect("copies");
    }
    let install = |script: &Path, folder: &Path, arguments: &[&str]| {
        let mut command = Command::new("/bin/sh");
        command.arg(script).args(["--prefix", "here"]).args(arguments).current_dir(folder);
        command
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", format!("{}:/usr/bin", tools.display()));
        command.stdin(Stdio::null()).output().expect("runs")
    };
    let clone_path = clone.to_string_lossy().into_owned();
    let help = install(&alone, &elsewhere, &["--help"]);
    String::from_utf8_lossy(&help.stdout).into_owned().shows("usage: install.sh [--prefix DIR]");
    assert!(help.status.success() && !elsewhere.join("here").exists());

    // The tools are found first in `tools`: one that says what it was called with, or none.
    let write_tool = |name: &str, text: &str| {
        let path = tools.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("makes it a program");
    };
    write_tool("cc", "exit 0");
    let has_cargo = Path::new("/usr/bin/cargo").exists();
    if !has_cargo {
        let without_rust = install(&in_clone, &elsewhere, &[]);
        let message = String::from_utf8_lossy(&without_rust.stderr).into_owned();
        assert_eq!(without_rust.status.code(), Some(1));
        message.shows("there is no release of sessions for");
        message.shows(["needs cargo", "hint: install Rust"]);
    }

    write_tool("cargo", r#"echo "in $(pwd -P): $*""#);
    let real = clone.canonicalize().expect("there");
    for (script, folder, arguments) in [
        (&in_clone, &elsewhere, &[][..]),
        (&alone, &clone, &[]),
        (&alone, &elsewhere, &["--from", &clone_path]),
    ] {
        let built = install(script, folder, arguments);
        let said = String::from_utf8_lossy(&built.stdout).into_owned();
        let prefix = folder.join("here");
        let wanted = format!("in {}: xtask install --prefix {}", real.display(), prefix.display());
        assert!(built.status.success() && said.contains(&wanted), "{said}\n{wanted}");
    }

    let without_clone = install(&alone, &elsewhere, &[]);
    let message = String::from_utf8_lossy(&without_clone.stderr).into_owned();
    assert_eq!(without_clone.status.code(), Some(1));
    message.shows("hint: give a clone");
}

fn check_installer(packages: &Packages) {
    let script = packages.out().join("install.sh");
    let prefix = packages.folder("prefix");
    let install = |from: &Path| {
        let mut command = Command::new("sh");
        command.arg(&script).arg("--prefix").arg(&prefix);
        command.arg("--from").arg(format!("file://{}", from.display()));
        command
    };
    run(&mut install(&packages.out()));
    packages.check_program(&prefix.join("bin/sessions"));

    // An archive with another sum is refused, and the installed program stays.
    let mirror = packages.folder("mirror");
    let archive = packages.find(&format!("sessions-mcp-{VERSION}-"), ".tar.gz");
    let changed = mirror.join(archive.file_name().expect("a name"));
    fs::write(changed, "another archive").expect("writes");
    fs::remove_file(prefix.join("bin/sessions")).expect("removes");
    let refused = install(&mirror).output().expect("runs");
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    message.shows(["SHA-256", "hint: nothing was installed"]);
    assert!(!prefix.join("bin/sessions").exists());

    let unknown = Command::new("sh").arg(&script).arg("--sudo").output().expect("runs");
    assert_eq!(unknown.status.code(), Some(1));
}
