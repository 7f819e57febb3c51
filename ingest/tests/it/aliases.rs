//! Agents whose logs have the format of another one: a home of each platform with a log of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ingest::discover::{default_roots, discover};
use ingest::provider::alias::ALIASES;
use ingest::provider::base_of;
use ingest::provider::format::{AgentFolders, Platform};
use schemas::Provider;

use crate::memory::{Memory, samples};
use crate::traps::{user, write};

/// The folders of logs below the home folder on all platforms. `APP` and `EDITOR` are others on each.
const PLACES: &[(Provider, &str)] = &[
    (Provider::Cowork, "APP/Claude/local-agent-mode-sessions/o/a/local_1/.claude/projects"),
    (Provider::CherryStudio, "APP/CherryStudio/Data/Agents/.claude/projects"),
    (Provider::OpenClaude, ".openclaude/projects"),
    (Provider::Qoder, ".qoder/projects"),
    (Provider::QoderWork, ".qoderwork/projects"),
    (Provider::TraeX, ".trae/cli/sessions"),
    (Provider::Kilo, ".local/share/kilo"),
    (Provider::MimoCode, ".local/share/mimocode"),
    (Provider::IcodeMate, ".local/share/icodemate"),
    (Provider::Omp, ".omp/agent/sessions"),
    (Provider::Omo, ".omo/agent/sessions"),
    (Provider::StepCode, ".stepcode/agent/sessions"),
    (Provider::Prime, ".prime/agent/sessions"),
    (Provider::Campfire, ".campfire/agent/sessions"),
    (Provider::Senpi, ".senpi/agent/sessions"),
    (Provider::Gjc, ".gjc/agent/sessions"),
    (Provider::Kimchi, ".config/kimchi/harness/sessions"),
    (Provider::QClaw, ".qclaw/agents/main/sessions"),
    (Provider::KimiClaw, ".kimi_openclaw/agents/main/sessions"),
    (
        Provider::KimiWork,
        "APP/kimi-desktop/daimon-share/daimon/runtime/kimi-code/home/sessions/wd_harbor/conv-NUMBER",
    ),
    (Provider::Roo, "EDITOR/User/globalStorage/rooveterinaryinc.roo-cline/tasks"),
    (Provider::Zoo, "EDITOR/User/globalStorage/zoocodeorganization.zoo-code/tasks"),
    (Provider::KiloCode, "EDITOR/User/globalStorage/kilocode.kilo-code/tasks"),
    (Provider::WorkBuddy, ".workbuddy/projects"),
];

const XCODE: (Provider, &str) =
    (Provider::Xcode, "Library/Developer/Xcode/CodingAssistant/ClaudeAgentConfig/projects");

/// Returns the folders of logs on a platform.
fn places_of(platform: Platform) -> Vec<(Provider, String)> {
    let (app, editor) = match platform {
        Platform::Linux => (".config", ".vscode-server/data"),
        Platform::MacOs => ("Library/Application Support", "APP/Code - Insiders"),
        Platform::Windows => ("AppData/Roaming", "APP/Cursor"),
    };
    let mac = (platform == Platform::MacOs).then_some(&XCODE);
    let mut places = Vec::new();
    for (number, (provider, folder)) in PLACES.iter().chain(mac).enumerate() {
        let folder = folder.replace("EDITOR", editor).replace("APP", app);
        places.push((*provider, folder.replace("NUMBER", &number.to_string())));
    }
    places
}

/// Writes a log of the format of `base` into a folder.
#[expect(clippy::wildcard_enum_match_arm, reason = "few agents are the base of others")]
fn write_log(folder: &Path, base: Provider, number: usize) {
    let id = format!("01a1{number:04}-58d8-7a36-8980-b409e8a22c87");
    let (name, content) = match base {
        Provider::Claude => (format!("-w/{id}.jsonl"), user(&id, number as u32, "mend the gauge")),
        Provider::Codex => (
            format!("2026/10/14/rollout-2026-10-14T09-12-31-{id}.jsonl"),
            format!(
                r#"{{"timestamp":"2026-10-14T07:12:34.001Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-10-14T07:12:31.417Z","cwd":"/w","originator":"codex-tui","cli_version":"0.142.0"}}}}
{{"timestamp":"2026-10-14T07:12:35.001Z","type":"event_msg","payload":{{"type":"user_message","message":"mend the gauge"}}}}
"#
            ),
        ),
        Provider::Pi | Provider::OpenClaw => (
            format!("2026-10-19T08-12-44-120Z_{id}.jsonl"),
            format!(
                r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-10-19T08:12:44.120Z","cwd":"/w"}}
{{"type":"message","id":"{number:08}","parentId":null,"timestamp":"2026-10-19T08:12:45.120Z","message":{{"role":"user","content":[{{"type":"text","text":"mend the gauge"}}]}}}}
"#
            ),
        ),
        Provider::Kimi => (
            "agents/main/wire.jsonl".to_owned(),
            format!(
                r#"{{"type":"metadata","protocol_version":"1.4","created_at":1792497751400}}
{{"type":"turn.prompt","input":[{{"type":"text","text":"mend gauge {number}"}}],"origin":{{"kind":"user"}},"time":1792497792402}}
"#
            ),
        ),
        Provider::Cline => (
            format!("17623566624{number:02}/ui_messages.json"),
            format!(
                r#"[{{"ts":17623566624{number:02},"type":"say","say":"task","text":"mend gauge {number}","images":[]}}]"#
            ),
        ),
        Provider::CodeBuddy => (
            format!("w/{id}.jsonl"),
            format!(
                r#"{{"id":"{id}","timestamp":1792497792402,"type":"message","role":"user","sessionId":"{id}","cwd":"/w","content":[{{"type":"input_text","text":"mend gauge {number}"}}]}}
"#
            ),
        ),
        other => panic!("no log of the format of {other}"),
    };
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
    write(&path, &content, 1);
}

/// Fills a home with a log of each agent, and with files that are not logs.
fn fill_home(home: &Path, platform: Platform) -> BTreeMap<Provider, usize> {
    let mut wanted = BTreeMap::new();
    for (number, (provider, folder)) in places_of(platform).into_iter().enumerate() {
        let folder = home.join(folder);
        fs::create_dir_all(&folder).expect("creates");
        if base_of(provider) == Provider::OpenCode {
            let database = folder.join(format!("{provider}.db"));
            fs::copy(samples().join("opencode/opencode.db"), database).expect("copies");
            wanted.insert(provider, 3);
        } else {
            write_log(&folder, base_of(provider), number);
            wanted.insert(provider, 1);
        }
        if provider == Provider::Cowork {
            // A stream that repeats the log, and a file of the user.
            let task = folder.ancestors().nth(2).expect("a task");
            write(&task.join("audit.jsonl"), &user("other", 7, "mend the gauge"), 1);
            write_log(&task.join("outputs"), Provider::Codex, 98);
        }
        if provider == Provider::KimiWork {
            write_log(&folder.with_file_name("ctitle-1"), Provider::Kimi, 99);
        }
    }
    wanted
}

#[test]
fn every_agent_is_found_in_the_home_of_each_platform() {
    for platform in [Platform::Linux, Platform::MacOs, Platform::Windows] {
        let home = tempfile::tempdir().expect("tempdir");
        let mut wanted = fill_home(home.path(), platform);
        assert_eq!(wanted.len(), ALIASES.len() - usize::from(platform != Platform::MacOs));
        // An agent with a decoder of its own next to them.
        write_log(&home.path().join(".claude/transcripts"), Provider::Claude, 97);
        wanted.insert(Provider::Claude, 1);

        let places = AgentFolders::on_platform(platform, home.path(), &|_| None);
        let roots = default_roots(&places);
        let mut files: Vec<PathBuf> =
            discover(&roots).files.into_iter().map(|file| file.path).collect();
        let count = files.len();
        files.dedup();
        assert_eq!(files.len(), count, "nothing is found twice");

        let memory = Memory::default();
        memory.ingest_all(&roots);
        let mut found: BTreeMap<Provider, usize> = BTreeMap::new();
        for session in memory.sessions() {
            *found.entry(session.provider).or_default() += 1;
        }
        assert_eq!(found, wanted, "{platform:?}");
        assert_eq!(memory.problems(), [], "{platform:?}");

        // Nothing changed.
        assert_eq!(memory.ingest_all(&roots).files_unchanged, count as u64);
    }
}

/// A log that an agent took over from another one with the same format counts once.
#[test]
fn a_copy_in_the_folder_of_another_agent_counts_once() {
    let home = tempfile::tempdir().expect("tempdir");
    let log = home.path().join(".claude/projects/-w/a.jsonl");
    let copy = home.path().join(".openclaude/projects/-w/a.jsonl");
    for path in [&log, &copy] {
        fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        write(path, &user("a", 1, "mend the gauge"), 1);
    }
    let memory = Memory::default();
    memory.ingest(home.path());
    let events = memory.events();
    assert_eq!(events.len(), 2);
    assert_eq!(events.iter().filter(|event| event.is_replay).count(), 1);
    let mut providers: Vec<Provider> =
        memory.sessions().iter().map(|session| session.provider).collect();
    providers.sort();
    assert_eq!(providers, [Provider::Claude, Provider::OpenClaude]);
}
