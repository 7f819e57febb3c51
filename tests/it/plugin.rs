//! The plugins that `sessions plugin build` writes. `cargo xtask checks plugins` gives them to the
//! clients' own validators.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use schemas::tool::TOOLS;
use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::left_out::report_left_out;

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

#[test]
fn plugins_are_written_once_and_replaced_on_request() {
    let env = TestEnv::new();
    let folder = env.path("plugins");
    let written = env.json(["plugin", "build", "plugins"]);
    let files = written["files"].list();
    for file in files {
        assert!(folder.join(file.as_str().expect("a path")).is_file(), "{file}");
    }
    let skill = env.run(["skill"]).ok();
    for plugin in ["claude", "codex", "gemini", "opencode", "pi", "portable"] {
        let copy = env.read(format!("plugins/{plugin}/skills/sessions/SKILL.md"));
        assert_eq!(copy, skill, "{plugin}");
    }

    // Equal files are left alone, others are not replaced without consent.
    env.run(["plugin", "build", "plugins"]).ok();
    let manifest = folder.join("portable/plugin.json");
    env.write(&manifest, "{}");
    env.run(["plugin", "build", "plugins"]).fails(2).says("--force");
    env.run(["plugin", "build", "plugins", "--force"]).ok();
    assert_eq!(read_json(&manifest)["version"], env!("CARGO_PKG_VERSION"));

    env.write("file", "");
    env.run(["plugin", "build", "file"]).fails(2);
}

#[test]
fn marketplaces_name_the_folders_of_the_plugins() {
    let env = TestEnv::new();
    let folder = env.path("plugins");
    env.run(["plugin", "build", "plugins"]).ok();
    let claude = read_json(&folder.join(".claude-plugin/marketplace.json"));
    let source = claude["plugins"][0]["source"].text();
    assert!(folder.join(source).join(".claude-plugin/plugin.json").exists(), "{source}");
    let codex = read_json(&folder.join(".agents/plugins/marketplace.json"));
    let source = codex["plugins"][0]["source"]["path"].text();
    assert!(folder.join(source).join(".codex-plugin/plugin.json").exists(), "{source}");

    // Gemini CLI passes only the variables that an extension declares.
    let gemini = read_json(&folder.join("gemini/gemini-extension.json"));
    let settings = gemini["settings"].list();
    let names: Vec<_> = settings.iter().filter_map(|item| item["envVar"].as_str()).collect();
    assert_eq!(names, ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "SESSIONS_STORE"]);
    // What the packages of npm name is in them.
    for client in ["opencode", "pi"] {
        let package = folder.join(client);
        let manifest = read_json(&package.join("package.json"));
        let named =
            [&manifest["main"], &manifest["pi"]["extensions"][0], &manifest["pi"]["skills"][0]];
        for path in named.into_iter().filter_map(Value::as_str) {
            assert!(package.join(path).exists(), "{client}: {path}");
        }
    }
    // Agent Plugins 1.0.0 allows no other fields.
    let portable = read_json(&folder.join("portable/mcp.json"));
    let keys: Vec<_> = portable.as_object().expect("object").keys().collect();
    assert_eq!(keys, ["$schema", "mcpServers"]);
}

/// Loads the modules as OpenCode and pi do, and prints what they register.
const LOAD_MODULES: &str = r#"
import { pathToFileURL } from "node:url";
const load = (name) => import(pathToFileURL(`${process.argv[1]}/${name}/index.js`));
const config = { mcp: { other: {} }, skills: { paths: ["mine"] } };
await (await (await load("opencode")).SessionsPlugin()).config(config);
const pi = {};
(await load("pi")).default({ registerMcpServer: (name, server) => (pi[name] = server) });
console.log(JSON.stringify({ opencode: config, pi }));
"#;

#[test]
fn the_modules_of_npm_register_their_own_files() {
    if Command::new("node").arg("--version").output().is_err() {
        report_left_out("install these programs to run these tests", "node");
        return;
    }
    let env = TestEnv::new();
    let folder = env.path("my plug'ins #%20 ü");
    let folder_text = folder.to_string_lossy().into_owned();
    env.run(["plugin", "build", &folder_text]).ok();
    let mut command = Command::new("node");
    command.args(["--input-type=module", "--eval", LOAD_MODULES, &folder_text]);
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");

    let opencode = &found["opencode"];
    assert!(opencode["mcp"]["other"].is_object(), "the user's servers stay: {opencode}");
    assert_eq!(opencode["skills"]["paths"][0], "mine");
    let last_of = |words: &Value| words.as_array().and_then(|words| words.last()).cloned();
    let skills = opencode["skills"]["paths"][1].text().to_owned();
    assert!(Path::new(&skills).join("sessions/SKILL.md").exists(), "{skills}");
    let server = &found["pi"]["sessions"];
    let pi = last_of(&server["args"]).unwrap_or_else(|| server["command"].clone());
    for (client, launcher) in
        [("opencode", last_of(&opencode["mcp"]["sessions"]["command"])), ("pi", Some(pi))]
    {
        let launcher = launcher.and_then(|path| path.as_str().map(str::to_owned)).expect(client);
        assert_eq!(Path::new(&launcher), folder.join(client).join(LAUNCHER));
    }
}

const LAUNCHER: &str = if cfg!(windows) { "bin/sessions-mcp.cmd" } else { "bin/sessions-mcp" };

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

/// Runs the launcher of the portable plugin with one request. The programs of the system come last on PATH.
fn launch(env: &TestEnv, home: &Path, first_on_path: Option<&Path>, request: &str) -> Output {
    let folder = env.path("plugins");
    env.run(["plugin", "build", "plugins"]).ok();
    let system_root = std::env::var_os("SystemRoot").unwrap_or_default();
    let system = if cfg!(windows) {
        let system32 = Path::new(&system_root).join("System32");
        vec![system32.join("WindowsPowerShell/v1.0"), system32]
    } else {
        vec!["/usr/bin".into(), "/bin".into()]
    };
    let path = std::env::join_paths(first_on_path.map(Path::to_owned).into_iter().chain(system));

    let mut command = Command::new(folder.join("portable").join(LAUNCHER));
    command.env_clear().env("HOME", home).env("USERPROFILE", home);
    command.env("PATH", path.expect("a path")).env("SystemRoot", system_root);
    command.env("SESSIONS_STORE", env.store());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut input = child.stdin.take().expect("input");
    // A launcher that ends early closes its input.
    let _ = writeln!(input, "{request}");
    drop(input);
    child.wait_with_output().expect("ends")
}

/// Puts a program into a folder as `sessions`.
fn install(program: &Path, folder: &Path) {
    fs::create_dir_all(folder).expect("creates");
    #[cfg(unix)]
    std::os::unix::fs::symlink(program, folder.join("sessions")).expect("links");
    #[cfg(windows)]
    fs::copy(program, folder.join("sessions.exe")).expect("copies");
}

#[test]
fn the_launcher_finds_the_program_where_installers_put_it() {
    let env = TestEnv::new();
    let home = env.path("home");
    install(Path::new(env!("CARGO_BIN_EXE_sessions")), &home.join(".local/bin"));
    // Another program of this name comes first on PATH.
    let other = env.path("other");
    let other_program = if cfg!(windows) { r"C:\Windows\System32\where.exe" } else { "/bin/false" };
    install(Path::new(other_program), &other);
    let output = launch(&env, &home, Some(&other), INITIALIZE);
    assert_eq!(output.status.code(), Some(0));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one answer");
    answer.has(json!({
        "id": 7, "result": {"serverInfo": {"name": "sessions"}},
    }));
}

#[test]
fn without_the_program_the_launcher_says_what_to_install() {
    let env = TestEnv::new();
    for (request, id) in [(INITIALIZE, Value::from(7)), ("not JSON", Value::Null)] {
        let output = launch(&env, &env.path("home"), None, request);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        said.shows("Install the package sessions-mcp");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("one answer");
        assert_eq!(answer["id"], id);
        answer["error"]["message"].shows(env!("CARGO_PKG_REPOSITORY"));
    }
}

#[test]
fn the_reader_may_not_change_labels() {
    let env = TestEnv::new();
    env.run(["plugin", "build", "plugins"]).ok();
    for plugin in ["claude", "gemini"] {
        let text = env.read(format!("plugins/{plugin}/agents/history-reader.md"));
        for tool in TOOLS {
            assert_eq!(
                text.contains(&format!("_{}\n", tool.name)),
                tool.is_read_only(),
                "{plugin}"
            );
        }
    }
}
