//! Agents whose logs have the format of another one, through the program.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::checks::JsonChecks;
use crate::env::TestEnv;

const OWN: &str = "01a15338-58d8-7a36-8980-b409e8a22c87";
const OTHER: &str = "01a15338-58d8-7a36-8980-b409e8a22c88";

/// Writes a log of Claude Code's format.
fn write_log(folder: &Path, session: &str) {
    let record = format!(
        r#"{{"type":"user","uuid":"{session}","sessionId":"{session}","timestamp":"2026-10-01T10:00:00.000Z","cwd":"/w","message":{{"role":"user","content":"Mend the gauge of the pier."}}}}"#
    );
    fs::create_dir_all(folder).expect("creates");
    fs::write(folder.join(format!("{session}.jsonl")), record + "\n").expect("writes");
}

#[test]
fn a_session_has_the_name_of_the_agent_that_wrote_it() {
    let env = TestEnv::new();
    write_log(&env.path(".openclaude/projects/-w"), OWN);
    write_log(&env.path(".claude/projects/-w"), OTHER);
    fs::create_dir_all(env.path(".local/share/icodemate/storage/session")).expect("creates");
    env.run(["ingest", "--quiet"]).ok();

    let of_agent = |answer: &serde_json::Value| {
        let rows = answer["data"]["sessions"].list();
        let ids = rows.iter().filter_map(|row| row["session_id"].as_str());
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    let listed = env.json(["list", "--provider", "openclaude"]);
    assert_eq!(of_agent(&listed), [OWN]);
    assert_eq!(listed["data"]["sessions"][0]["provider"], "openclaude");
    // An agent that a question names comes first.
    assert_eq!(of_agent(&env.json(["find", "the gauge with OpenClaude"])), [OWN, OTHER]);
    assert_eq!(of_agent(&env.json(["find", "the gauge with Claude Code"])), [OTHER, OWN]);
    env.run(["search", "gauge provider:openclaude"]).shows(OWN).lacks(OTHER);
    let counted = env.rows("SELECT provider, count(*) FROM events GROUP BY ALL ORDER BY ALL");
    assert_eq!(counted, [[json!("claude"), json!(1)], [json!("openclaude"), json!(1)]]);

    env.run(["resume", OWN, "--print"]).fails(2).says("no command is known");
    env.run(["list", "--provider", "openclaud"]).fails(2).says("openclaude");

    let doctor = env.json(["doctor"]);
    let rows = doctor["providers"].list();
    let row = |name: &str| rows.iter().find(|row| row["provider"] == name).expect("a row");
    assert_eq!(row("openclaude")["base"], "claude");
    assert_eq!(row("openclaude")["sessions"], 1);
    assert!(row("openclaude")["is_unverified"].is_null() && row("claude")["base"].is_null());
    assert_eq!(row("icodemate")["is_unverified"], true);
    let printed = env.run(["doctor"]).ok();
    assert_eq!(printed.matches("unverified").count(), 1);
}

/// Formats that any agent may have are no agents.
#[test]
fn readme_and_changelog_count_the_verified_agents() {
    let doctor = TestEnv::new().json(["doctor"]);
    let is_agent = |row: &&serde_json::Value| {
        row["is_unverified"].is_null() && row["provider"] != "generic" && row["provider"] != "atif"
    };
    let agents: Vec<_> = doctor["providers"].list().iter().filter(is_agent).collect();
    let aliases = agents.iter().filter(|row| !row["base"].is_null()).count();
    let agents = agents.len();
    let text = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        fs::read_to_string(path).expect("reads")
    };
    let (readme, changelog) = (text("README.md"), text("CHANGELOG.md"));
    // README names seven before the link.
    for said in [format!("[{} more](#agents)", agents - 7), format!("That makes {agents} agents.")]
    {
        assert!(readme.contains(&said), "{said}");
    }
    for said in [format!("the logs of {agents} agents"), format!("{aliases} of these agents")] {
        assert!(changelog.contains(&said), "{said}");
    }
}

/// The folder of an agent that a variable moves has none of the names by which its logs are known.
#[test]
fn a_moved_folder_belongs_to_the_agent_that_moved_it() {
    let env = TestEnv::new();
    write_log(&env.path("elsewhere/projects/-w"), OWN);
    write_log(&env.path(".claude/projects/-w"), OTHER);
    for _ in 0..2 {
        let ingest = env.cli(["ingest", "--quiet"]);
        ingest.env("OPENCLAUDE_CONFIG_DIR", env.path("elsewhere")).run().ok();
        let sessions = env.rows("SELECT provider, session_id FROM sessions ORDER BY ALL");
        assert_eq!(sessions, [[json!("claude"), json!(OTHER)], [json!("openclaude"), json!(OWN)]]);
    }
}

/// A folder that was copied keeps the names by which its logs are known.
#[test]
fn a_named_folder_tells_whose_its_logs_are() {
    let env = TestEnv::new();
    write_log(&env.path("backup/.openclaude/projects/-w"), OWN);
    write_log(&env.path("backup/plain"), OTHER);
    env.ingest("backup");
    let sessions = env.rows("SELECT provider, session_id FROM sessions ORDER BY ALL");
    assert_eq!(sessions, [[json!("claude"), json!(OTHER)], [json!("openclaude"), json!(OWN)]]);
}
