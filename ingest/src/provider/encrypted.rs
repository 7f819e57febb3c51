//! Finds logs that no other program can read because their agent encrypts them
//! (docs/formats.md#formats-that-are-not-read).
//!
//! Sources, as of November 2026: for Windsurf, its users' reports and four public programs that
//! examined the files; for Antigravity and for Trae, two public programs each.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use super::format::AgentFolders;

/// Logs that are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EncryptedLogs {
    /// The name of the agent.
    pub agent: &'static str,
    /// The folder of its logs.
    pub folder: PathBuf,
    /// The number of encrypted files directly in the folder.
    pub files: usize,
    /// What is read of the agent instead.
    pub instead: &'static str,
}

/// What is read of an agent whose logs are all encrypted.
const NOTHING: &str = "nothing of it is read";

/// Agents, each with the folders of its encrypted logs below the home folder, the ending of their
/// names, and what is read instead.
const IN_HOME: &[(&str, &[&str], &str, &str)] = &[
    (
        "Windsurf (Cascade)",
        &[".codeium/windsurf/cascade", ".codeium/windsurf-next/cascade"],
        "pb",
        NOTHING,
    ),
    (
        "Antigravity",
        &[".gemini/antigravity/conversations"],
        "pb",
        "only its databases and its transcripts in `brain` are read",
    ),
];

/// The folders of Trae's store below the folder of desktop programs.
const TRAE: &[&str] = &["Trae/ModularData/ai-agent", "Trae CN/ModularData/ai-agent"];

/// Returns the encrypted logs on this machine.
pub fn find_encrypted_logs(places: &AgentFolders<'_>) -> Vec<EncryptedLogs> {
    let mut found = Vec::new();
    let mut add = |agent, folder: PathBuf, ending, instead| {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_log =
            |path: &PathBuf| path.extension().is_some_and(|it| it == ending) && path.is_file();
        let files = paths.filter(is_log).count();
        if files > 0 {
            found.push(EncryptedLogs { agent, folder, files, instead });
        }
    };
    for (agent, folders, ending, instead) in IN_HOME {
        for folder in *folders {
            add(agent, places.home_path(folder), *ending, instead);
        }
    }
    for folder in TRAE {
        add("Trae", places.application_path(folder), "db", NOTHING);
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::provider::format::Platform;

    use super::*;

    #[test]
    fn encrypted_logs_are_found_by_the_ending_of_their_names() {
        let home = tempfile::tempdir().expect("a folder");
        let cascade = home.path().join(".codeium/windsurf/cascade");
        let trae = home.path().join(".config/Trae/ModularData/ai-agent");
        let places = AgentFolders::on_platform(Platform::Linux, home.path(), &|_| None);
        for (folder, name) in [(&cascade, "notes.txt"), (&trae, "workspaces")] {
            fs::create_dir_all(folder).expect("creates");
            fs::write(folder.join(name), "x").expect("writes");
        }
        fs::create_dir(cascade.join("1.pb")).expect("creates");
        assert_eq!(find_encrypted_logs(&places), []);

        for path in [cascade.join("a.pb"), cascade.join("b.pb"), trae.join("database.db")] {
            fs::write(path, "x").expect("writes");
        }
        let found = find_encrypted_logs(&places);
        let found: Vec<_> =
            found.iter().map(|logs| (logs.agent, &logs.folder, logs.files)).collect();
        assert_eq!(found, [("Windsurf (Cascade)", &cascade, 2), ("Trae", &trae, 1)]);
    }
}
