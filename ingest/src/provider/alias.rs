//! The agents whose logs have the format of another one, in folders of their own
//! (docs/formats.md#agents-that-write-the-format-of-another).
//!
//! A row has no code: the decoder of its base reads the logs, and the names of the folders above a
//! log tell whose it is.

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use schemas::Provider;

use super::format::{AgentFolders, Platform};

/// An agent whose logs have the format of another one.
pub struct AgentAlias {
    /// The agent.
    pub provider: Provider,
    /// The agent whose decoder reads the logs.
    pub base: Provider,
    /// The places of the logs.
    roots: &'static [AliasRoot],
    /// Whether a real log was read, or two independent readers agree on the place and the format.
    pub is_verified: bool,
}

/// A place where such an agent keeps logs.
struct AliasRoot {
    place: Place,
    /// The folder of the agent in that place, if its name may differ in a copy of the logs.
    above: &'static str,
    /// The folders below, by which logs are known as this agent's, wherever they are. `*` in the name
    /// of a folder matches any text; other folders next to such a one hold no logs. Or the name of a
    /// database.
    marks: &'static str,
    /// The environment variables by which the agent itself moves the logs, each with the path below its
    /// value. The first that is set counts. A relative value is below `place` and `above`.
    variables: &'static [(&'static str, &'static str)],
}

/// A folder in which programs keep files.
#[derive(Clone, Copy)]
enum Place {
    /// The home folder.
    Home,
    /// The home folder of macOS; other systems have no such place.
    MacHome,
    /// The folder for data.
    Data,
    /// The folder for configuration.
    Config,
    /// The folder of desktop programs.
    Application,
    /// The folder of desktop programs from the store of Windows; other systems have no such place.
    WindowsPackage,
    /// The folders of extensions of VS Code and the editors derived from it.
    Extension,
}

const fn root(place: Place, above: &'static str, marks: &'static str) -> AliasRoot {
    AliasRoot { place, above, marks, variables: &[] }
}

const fn alias(provider: Provider, base: Provider, roots: &'static [AliasRoot]) -> AgentAlias {
    AgentAlias { provider, base, roots, is_verified: true }
}

impl AgentAlias {
    const fn unverified(self) -> Self {
        Self { is_verified: false, ..self }
    }

    /// Returns the folders and databases where the agent keeps its logs. They need not exist.
    pub(super) fn roots(&self, places: &AgentFolders<'_>) -> Vec<PathBuf> {
        self.roots.iter().flat_map(|root| root.paths(places)).collect()
    }
}

impl AliasRoot {
    const fn moved_by(self, variables: &'static [(&'static str, &'static str)]) -> Self {
        Self { variables, ..self }
    }

    /// Returns the paths of the place on a platform, without the folders whose names differ. Places
    /// that the platform does not have give none.
    fn paths(&self, places: &AgentFolders<'_>) -> Vec<PathBuf> {
        if let Some(moved) = self.moved_path(places) {
            return vec![moved];
        }
        let fixed = self.marks.split('/').take_while(|mark| !mark.contains('*'));
        let path: PathBuf = std::iter::once(self.above).chain(fixed).collect();
        self.place_paths(&path.to_string_lossy(), places)
    }

    /// Returns the path to which a variable moves the logs.
    fn moved_path(&self, places: &AgentFolders<'_>) -> Option<PathBuf> {
        let (value, below) = self
            .variables
            .iter()
            .find_map(|(name, below)| Some((places.env_path(name)?, *below)))?;
        let usual = self.place_paths(self.above, places).into_iter().next()?;
        // The components, because an empty path below would end the name of a database in a separator.
        Some(usual.join(value).components().chain(Path::new(below).components()).collect())
    }

    /// Returns the paths of a folder or file in the place.
    fn place_paths(&self, path: &str, places: &AgentFolders<'_>) -> Vec<PathBuf> {
        let platform = places.platform();
        match self.place {
            Place::Home => vec![places.home_path(path)],
            Place::MacHome if platform == Platform::MacOs => vec![places.home_path(path)],
            Place::Data => vec![places.data_path(path)],
            Place::Config => vec![places.config_path(path)],
            Place::Application => vec![places.application_path(path)],
            Place::WindowsPackage if platform == Platform::Windows => {
                vec![places.local_path(&format!("Packages/{path}"))]
            }
            Place::MacHome | Place::WindowsPackage => Vec::new(),
            Place::Extension => places.editor_paths(&format!("globalStorage/{path}")),
        }
    }
}

/// The folders in which Claude Cowork keeps the logs of its tasks. Next to them are files of the user,
/// and streams that repeat the logs.
const COWORK_TASKS: &str = "local-agent-mode-sessions/*/*/local_*/.claude/projects";
const COWORK_AGENTS: &str = "local-agent-mode-sessions/*/*/agent/local_*/.claude/projects";

/// The folders in which Kimi Work keeps conversations. Others next to them are its own, such as those
/// that find titles.
const KIMI_WORK: &str = "daimon-share/daimon/runtime/kimi-code/home/sessions/*/conv-*";

/// The agents, in the order of their bases.
pub static ALIASES: [AgentAlias; 25] = {
    use Place::{Application, Config, Data, Extension, Home, MacHome, WindowsPackage};
    use Provider::{Claude, Cline, CodeBuddy, Codex, Kimi, OpenClaw, OpenCode, Pi};

    [
        alias(
            Provider::Cowork,
            Claude,
            &[
                root(Application, "Claude", COWORK_TASKS),
                root(Application, "Claude", COWORK_AGENTS),
                root(
                    WindowsPackage,
                    "Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude",
                    COWORK_TASKS,
                ),
            ],
        ),
        alias(
            Provider::Xcode,
            Claude,
            &[root(
                MacHome,
                "Library/Developer/Xcode",
                "CodingAssistant/ClaudeAgentConfig/projects",
            )],
        ),
        alias(
            Provider::CherryStudio,
            Claude,
            &[
                root(Application, "", "CherryStudio/Data/Agents/.claude/projects"),
                root(Application, "", "CherryStudio/.claude/projects"),
            ],
        ),
        alias(
            Provider::OpenClaude,
            Claude,
            &[root(Home, "", ".openclaude/projects")
                .moved_by(&[("OPENCLAUDE_CONFIG_DIR", "projects")])],
        ),
        alias(
            Provider::Qoder,
            Claude,
            &[root(Home, "", ".qoder/projects").moved_by(&[("QODER_CONFIG_DIR", "projects")])],
        ),
        alias(Provider::QoderWork, Claude, &[root(Home, "", ".qoderwork/projects")]),
        alias(
            Provider::TraeX,
            Codex,
            &[
                root(Home, "", ".trae/cli/sessions")
                    .moved_by(&[("TRAE_CLI_HOME", "sessions"), ("TRAE_HOME", "cli/sessions")]),
                root(Home, "", ".trae/cli/archived_sessions").moved_by(&[
                    ("TRAE_CLI_HOME", "archived_sessions"),
                    ("TRAE_HOME", "cli/archived_sessions"),
                ]),
            ],
        ),
        alias(
            Provider::Kilo,
            OpenCode,
            &[
                root(Data, "kilo", "kilo.db").moved_by(&[("KILO_DB", "")]),
                root(Data, "", "kilo/storage/session"),
            ],
        ),
        alias(
            Provider::MimoCode,
            OpenCode,
            &[
                root(Data, "mimocode", "mimocode.db")
                    .moved_by(&[("MIMOCODE_DB", ""), ("MIMOCODE_HOME", "data/mimocode.db")]),
                root(Data, "", "mimocode/storage/session")
                    .moved_by(&[("MIMOCODE_HOME", "data/storage/session")]),
            ],
        ),
        alias(
            Provider::IcodeMate,
            OpenCode,
            &[root(Data, "icodemate", "icodemate.db"), root(Data, "", "icodemate/storage/session")],
        )
        .unverified(),
        alias(
            Provider::Omp,
            Pi,
            &[
                root(Home, "", ".omp/agent/sessions")
                    .moved_by(&[("OMP_CODING_AGENT_DIR", "sessions")]),
                root(Home, "", ".omp/profiles/*/agent/sessions"),
                root(Data, "", "omp/sessions"),
            ],
        ),
        alias(
            Provider::Omo,
            Pi,
            &[root(Home, "", ".omo/agent/sessions")
                .moved_by(&[("OMO_CODING_AGENT_DIR", "sessions")])],
        ),
        alias(Provider::StepCode, Pi, &[root(Home, "", ".stepcode/agent/sessions")]),
        alias(
            Provider::Prime,
            Pi,
            &[root(Home, "", ".prime/agent/sessions").moved_by(&[
                ("PRIME_AGENT_SESSION_DIR", ""),
                ("PRIME_AGENT_CODING_AGENT_SESSION_DIR", ""),
                ("PRIME_AGENT_CODING_AGENT_DIR", "sessions"),
            ])],
        ),
        alias(
            Provider::Campfire,
            Pi,
            &[root(Home, "", ".campfire/agent/sessions").moved_by(&[
                ("CAMPFIRE_CODING_AGENT_SESSION_DIR", ""),
                ("CAMPFIRE_CODING_AGENT_DIR", "sessions"),
            ])],
        ),
        alias(
            Provider::Senpi,
            Pi,
            &[root(Home, "", ".senpi/agent/sessions").moved_by(&[
                ("SENPI_CODING_AGENT_SESSION_DIR", ""),
                ("SENPI_CODING_AGENT_DIR", "sessions"),
            ])],
        ),
        alias(
            Provider::Gjc,
            Pi,
            &[
                root(Home, "", ".gjc/agent/sessions").moved_by(&[
                    ("GJC_CODING_AGENT_DIR", "sessions"),
                    ("GJC_CONFIG_DIR", "agent/sessions"),
                ]),
                root(Data, "", "gjc/sessions"),
            ],
        ),
        alias(Provider::Kimchi, Pi, &[root(Config, "", "kimchi/harness/sessions")]),
        alias(Provider::QClaw, OpenClaw, &[root(Home, "", ".qclaw/agents/*/sessions")]),
        alias(Provider::KimiClaw, OpenClaw, &[root(Home, "", ".kimi_openclaw/agents/*/sessions")]),
        alias(
            Provider::KimiWork,
            Kimi,
            &[root(Application, "kimi-desktop", KIMI_WORK), root(Data, "kimi-desktop", KIMI_WORK)],
        ),
        alias(Provider::Roo, Cline, &[root(Extension, "", "rooveterinaryinc.roo-cline/tasks")]),
        alias(Provider::Zoo, Cline, &[root(Extension, "", "zoocodeorganization.zoo-code/tasks")]),
        alias(Provider::KiloCode, Cline, &[root(Extension, "", "kilocode.kilo-code/tasks")]),
        alias(
            Provider::WorkBuddy,
            CodeBuddy,
            &[root(Home, "", ".workbuddy/projects")
                .moved_by(&[("WORKBUDDY_CONFIG_DIR", "projects")])],
        ),
    ]
};

/// Returns the row of an agent. `None` if the agent has a decoder of its own.
pub fn alias_of(provider: Provider) -> Option<&'static AgentAlias> {
    ALIASES.iter().find(|alias| alias.provider == provider)
}

/// The folders and databases to which variables move the logs of agents in this process.
static MOVED: OnceLock<Vec<(PathBuf, &AgentAlias)>> = OnceLock::new();

/// Registers the folders and databases to which variables move the logs of agents, because their names do
/// not show the agent. `real_path` returns the path by which logs are known. Later calls have no effect.
pub fn name_moved_folders(places: &AgentFolders<'_>, real_path: fn(PathBuf) -> PathBuf) {
    MOVED.get_or_init(|| {
        let mut moved = Vec::new();
        for alias in &ALIASES {
            for path in alias.roots.iter().filter_map(|root| root.moved_path(places)) {
                moved.push((real_path(path), alias));
            }
        }
        moved
    });
}

/// Returns the agent to which a log of the format of `base` belongs by the names of its folders. Of
/// several, the nearest folder decides. `None` if the log is that of `base`.
pub(crate) fn alias_at(base: Provider, log: &Path) -> Option<&'static AgentAlias> {
    let log = log.to_string_lossy();
    let file = Path::new(file_of(&log));
    let names = names_in(file);
    let mut nearest: Option<(usize, &AgentAlias)> = None;
    for alias in ALIASES.iter().filter(|alias| alias.base == base) {
        for root in alias.roots {
            let marks: Vec<&str> = root.marks.split('/').collect();
            let at = (0..names.len()).rev().find(|at| is_below(&names[*at..], &marks));
            if let Some(at) = at.filter(|at| nearest.is_none_or(|(other, _)| other < *at)) {
                nearest = Some((at, alias));
            }
        }
    }
    let named = nearest.map(|(_, alias)| alias);
    named.or_else(|| moved_to(base, file))
}

/// Returns the agent whose logs a variable moves to a folder above `file`.
fn moved_to(base: Provider, file: &Path) -> Option<&'static AgentAlias> {
    let mut moved = MOVED.get()?.iter();
    moved
        .find(|(path, alias)| alias.base == base && file.starts_with(path))
        .map(|(_, alias)| *alias)
}

/// Returns the file of a log: the database, if the log is a session in one.
fn file_of(log: &str) -> &str {
    match log.rsplit_once('#') {
        Some((database, _)) if database.ends_with(".db") => database,
        _ => log,
    }
}

/// Returns the names of the folders in a path, and of the file.
fn names_in(path: &Path) -> Vec<&str> {
    path.components().filter_map(|part| part.as_os_str().to_str()).collect()
}

/// Returns whether a path begins with names that fit `marks`.
fn is_below(names: &[&str], marks: &[&str]) -> bool {
    names.len() >= marks.len() && marks.iter().zip(names).all(|(mark, name)| fits(mark, name))
}

/// Returns whether a name fits a mark, in which `*` stands for any text.
fn fits(mark: &str, name: &str) -> bool {
    match mark.split_once('*') {
        Some((start, end)) => name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
        None => mark == name,
    }
}

/// How a walk uses a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderUse {
    /// It may hold logs.
    Logs,
    /// It holds folders of logs, but no logs.
    Above,
    /// It holds no logs.
    Other,
}

/// The marks with names that differ, in parts.
static PATTERNS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let marks = ALIASES.iter().flat_map(|alias| alias.roots).map(|root| root.marks);
    marks.filter(|marks| marks.contains('*')).map(|marks| marks.split('/').collect()).collect()
});

/// Returns how a walk uses a folder. Only folders of an agent that keeps its logs next to other files
/// are not searched as a whole.
pub(crate) fn folder_use(folder: &Path) -> FolderUse {
    let mut found = FolderUse::Logs;
    for pattern in PATTERNS.iter() {
        // Most paths do not have the first name, which is faster to see than to take them apart.
        if !folder.to_str().is_some_and(|path| path.contains(pattern[0])) {
            continue;
        }
        let names = names_in(folder);
        let fixed = pattern.iter().take_while(|mark| !mark.contains('*')).count();
        let at = (0..names.len()).rev().find(|at| is_below(&names[*at..], &pattern[..fixed]));
        let Some(names) = at.map(|at| &names[at..]) else { continue };
        if is_below(names, pattern) {
            return FolderUse::Logs;
        }
        let is_above = names.len() < pattern.len() && is_below(names, &pattern[..names.len()]);
        if is_above {
            found = FolderUse::Above;
        } else if found == FolderUse::Logs {
            found = FolderUse::Other;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::provider::base_of;

    #[test]
    fn marks_are_unique() {
        let mut marks = HashSet::new();
        for alias in &ALIASES {
            let own: HashSet<&str> = alias.roots.iter().map(|root| root.marks).collect();
            assert!(own.iter().all(|mark| marks.insert(*mark)), "{}", alias.provider);
        }
    }

    #[test]
    fn folders_tell_whose_a_log_is() {
        let at = |base, path: &str| alias_at(base, Path::new(path)).map(|alias| alias.provider);
        let claude = |path: &str| at(Provider::Claude, path);
        assert_eq!(
            claude("/home/mira/.openclaude/projects/-w/a.jsonl"),
            Some(Provider::OpenClaude)
        );
        assert_eq!(claude("/srv/copy/.openclaude/projects/a.jsonl"), Some(Provider::OpenClaude));
        assert_eq!(claude("/home/mira/.openclaude/a.jsonl"), None);
        assert_eq!(claude("/home/mira/.claude/projects/-home--openclaude-projects/a.jsonl"), None);
        let task = "local-agent-mode-sessions/o/a/local_1/.claude/projects/-w/a.jsonl";
        assert_eq!(claude(&format!("/srv/{task}")), Some(Provider::Cowork));
        // The folders of another format say nothing.
        assert_eq!(at(Provider::Codex, "/home/mira/.openclaude/projects/-w/a.jsonl"), None);
        // A copy of logs of one agent inside those of another one.
        let inner = "/home/mira/.omp/agent/sessions/-w/.gjc/agent/sessions/-w/a.jsonl";
        assert_eq!(at(Provider::Pi, inner), Some(Provider::Gjc));

        let opencode = |path: &str| at(Provider::OpenCode, path);
        for database in ["/srv/kilo.db", "/srv/kilo.db#ses_1"] {
            assert_eq!(opencode(database), Some(Provider::Kilo));
        }
        assert_eq!(opencode("/srv/opencode.db#ses_1"), None);
        assert_eq!(opencode("/srv/kilo/storage/session/p/ses_1.json"), Some(Provider::Kilo));
        for alias in &ALIASES {
            assert_eq!(base_of(alias.provider), alias.base);
            assert_eq!(base_of(alias.base), alias.base);
        }
    }

    #[test]
    fn folders_next_to_those_of_logs_are_not_searched() {
        let tasks = "/home/mira/.config/Claude/local-agent-mode-sessions";
        for (folder, wanted) in [
            ("/home/mira/.config/Claude", FolderUse::Logs),
            (tasks, FolderUse::Above),
            ("TASKS/o/a", FolderUse::Above),
            ("TASKS/o/a/local_1", FolderUse::Above),
            ("TASKS/o/a/local_1/.claude", FolderUse::Above),
            ("TASKS/o/a/local_1/.claude/projects", FolderUse::Logs),
            ("TASKS/o/a/local_1/.claude/projects/-w/1/subagents", FolderUse::Logs),
            ("TASKS/o/a/agent/local_1/.claude/projects", FolderUse::Logs),
            ("TASKS/o/a/local_1/outputs", FolderUse::Other),
            ("TASKS/o/a/local_1/.claude/debug", FolderUse::Other),
            ("TASKS/o/a/rpm", FolderUse::Other),
            ("/home/mira/.qclaw/agents/main/sessions", FolderUse::Logs),
            ("/home/mira/.qclaw/agents/main/agent", FolderUse::Other),
            ("/home/mira/.openclaw/agents/main/agent", FolderUse::Logs),
        ] {
            let folder = folder.replace("TASKS", tasks);
            assert_eq!(folder_use(Path::new(&folder)), wanted, "{folder}");
        }
    }
}
