//! The rules by which logs are left out: patterns and agents of the settings file, and the marker
//! file that a project may have.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ingest::plan::excluded::{LogFacts, LogFilter, excluded_project};
use ingest::plan::safe_session_id;
use ingest::provider::format_of;
use ingest::stream::forgotten::ForgottenRecords;
use schemas::session::{SessionRow, SourceStatus};
use schemas::{Provider, ToolError};
use serde::Serialize;

use crate::config::patterns::{ExcludedFolders, FolderPatterns};
use crate::config::user_settings::{IngestSettings, UserSettings};
use store::{ForgottenLogs, SessionSummary, Store};
use tools::error::store_error;

/// The file that excludes the folder it is in, and all folders below.
pub(crate) const MARKER_FILE: &str = ".sessionsignore";

/// The setting with the patterns of what is left out.
const EXCLUDE: &str = "ingest.exclude";

/// Returns the rule that tells which sessions these patterns exclude, whatever the settings say.
pub(crate) fn pattern_rule(
    patterns: &[String],
) -> Result<impl Fn(&SessionSummary) -> bool, ToolError> {
    let excluded = ExcludedFolders::of_setting(EXCLUDE, patterns)?;
    Ok(move |session: &SessionSummary| {
        let is_own = session.origin.machine.is_none() && session.events > 0;
        session.origin.cwd.as_deref().is_some_and(|cwd| excluded.has_folder(cwd))
            || is_own && excluded.has_log(&session.source_path)
    })
}

/// What excludes logs because sessions were forgotten.
#[derive(Debug, Default)]
pub(crate) struct ForgottenRules {
    /// The identities of forgotten logs.
    identities: HashSet<String>,
    /// The forgotten sessions, and the agents that wrote them.
    sessions: HashMap<String, Provider>,
    records: ForgottenRecords,
}

impl ForgottenRules {
    /// Collects the rules. `records` are those of the sessions in `logs`.
    pub(crate) fn new(logs: &ForgottenLogs, records: ForgottenRecords) -> Self {
        let sessions = logs.providers().map(|(id, provider)| (id.to_owned(), provider)).collect();
        Self { identities: logs.identities(), sessions, records }
    }
}

/// The rules in force for one run.
pub(crate) struct LogRules {
    exclude: ExcludedFolders,
    /// `None` if every log is included.
    include: Option<FolderPatterns>,
    /// Empty if the logs of every agent are read.
    providers: Vec<Provider>,
    forgotten: ForgottenRules,
    /// Whether a folder or one above it has a marker file, by folder.
    marked: Mutex<HashMap<String, bool>>,
}

impl LogRules {
    /// Reads the rules of the settings file.
    pub(crate) fn read(forgotten: ForgottenRules) -> Result<Self, ToolError> {
        Self::new(UserSettings::read()?.ingest, forgotten)
    }

    fn new(settings: IngestSettings, forgotten: ForgottenRules) -> Result<Self, ToolError> {
        let include = if settings.include.is_empty() {
            None
        } else {
            Some(FolderPatterns::of_setting("ingest.include", &settings.include)?)
        };
        Ok(Self {
            exclude: ExcludedFolders::of_setting(EXCLUDE, &settings.exclude)?,
            include,
            providers: settings.providers,
            forgotten,
            marked: Mutex::default(),
        })
    }

    /// Returns whether logs were forgotten, which are excluded by their identity.
    pub(super) fn has_forgotten(&self) -> bool {
        !self.forgotten.identities.is_empty()
    }

    /// Returns the records of forgotten sessions; `None` if nothing was forgotten.
    pub(super) fn forgotten_records(&self) -> Option<&ForgottenRecords> {
        self.has_forgotten().then_some(&self.forgotten.records)
    }

    /// Returns the forgotten session of another agent that a session names as its original, if its
    /// format is one for copies. Records of such formats do not show it.
    pub(super) fn forgotten_original(&self, session: &SessionRow) -> Option<String> {
        let is_for_copies = |provider| format_of(provider).quirks.copies_other_agents;
        if !is_for_copies(session.provider) {
            return None;
        }
        let named = session.native_id.as_deref().unwrap_or(&session.session_id);
        let id = safe_session_id(named);
        let provider = self.forgotten.sessions.get(&*id)?;
        (!is_for_copies(*provider)).then(|| id.into_owned())
    }

    /// Returns whether the settings or a marker file exclude a log. Logs that are only forgotten
    /// are not excluded by them.
    pub(crate) fn is_unwanted(&self, log: &LogFacts<'_>) -> bool {
        let is_of_other_agent = log.provider.is_some_and(|provider| !self.may_be_read(provider));
        if is_of_other_agent || self.exclude.has_log(log.path) {
            return true;
        }
        let Some(project) = log.project else {
            // Before a log was decoded, its project is not known.
            return log.identity.is_some() && !self.includes(log.path, None);
        };
        self.excludes_project(project) || !self.includes(log.path, Some(project))
    }

    /// Returns whether a pattern or a marker file excludes a project, on whatever machine it is.
    pub(crate) fn excludes_project(&self, folder: &str) -> bool {
        self.exclude.has_folder(folder) || self.has_marker(folder)
    }

    /// Returns whether the rules exclude a session of the store. Which agents and folders are read is
    /// about logs of this machine; an excluded project is excluded wherever its session comes from.
    pub(crate) fn is_unwanted_session(&self, session: &SessionSummary) -> bool {
        let cwd = session.origin.cwd.as_deref();
        if session.origin.machine.is_some() {
            return cwd.is_some_and(|cwd| self.excludes_project(cwd));
        }
        session.events > 0
            && self.is_unwanted(&LogFacts {
                path: &session.source_path,
                provider: Some(session.provider),
                project: cwd,
                identity: Some(""),
                copy_of: &[],
            })
    }

    /// Returns whether the path of a log or its identity may decide. Otherwise its agent and its project
    /// do.
    pub(crate) fn depends_on_paths(&self) -> bool {
        !self.exclude.is_empty() || self.include.is_some() || self.has_forgotten()
    }

    fn may_be_read(&self, provider: Provider) -> bool {
        self.providers.is_empty() || self.providers.contains(&provider)
    }

    fn includes(&self, path: &str, project: Option<&str>) -> bool {
        let Some(include) = &self.include else { return true };
        include.is_match(path) || project.is_some_and(|project| include.is_match(project))
    }

    /// Returns whether a folder or one above it has a marker file.
    fn has_marker(&self, folder: &str) -> bool {
        let mut marked = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = marked.get(folder) {
            return *known;
        }
        let path = Path::new(folder);
        let is_marked =
            path.is_absolute() && path.ancestors().any(|dir| dir.join(MARKER_FILE).is_file());
        marked.insert(folder.to_owned(), is_marked);
        is_marked
    }
}

/// What a pattern of `ingest.exclude` leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ExcludedByPattern {
    pub(crate) pattern: String,
    /// The number of logs that are not read, and of sessions that are in the store all the same.
    pub(crate) sessions: usize,
}

/// Counts what each pattern leaves out, of the logs and sessions that a store knows.
pub(crate) fn count_excluded(
    store: &Store,
    patterns: &[String],
) -> Result<Vec<ExcludedByPattern>, ToolError> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let snapshot = store.take_lazy_snapshot().map_err(store_error)?;
    let mut places: Vec<(Option<String>, String)> = Vec::new();
    for session in snapshot.sessions() {
        if session.events > 0 {
            places.push((session.origin.cwd.clone(), session.source_path.clone()));
        }
    }
    for source in snapshot.read_sources(false).map_err(store_error)? {
        if source.status == SourceStatus::Excluded && source.session_id.is_none() {
            places.push((excluded_project(&source), source.path));
        }
    }
    let mut counts = Vec::new();
    for pattern in patterns {
        let excluded = ExcludedFolders::of_setting(EXCLUDE, std::slice::from_ref(pattern))?;
        let is_left_out = |(project, path): &&(Option<String>, String)| {
            excluded.has_log(path)
                || project.as_ref().is_some_and(|folder| excluded.has_folder(folder))
        };
        let sessions = places.iter().filter(is_left_out).count();
        counts.push(ExcludedByPattern { pattern: pattern.clone(), sessions });
    }
    Ok(counts)
}

impl LogFilter for LogRules {
    fn is_excluded(&self, log: &LogFacts<'_>) -> bool {
        let ForgottenRules { identities, sessions, .. } = &self.forgotten;
        let is_copy =
            !log.copy_of.is_empty() && log.copy_of.iter().all(|id| sessions.contains_key(id));
        is_copy
            || log.identity.is_some_and(|identity| identities.contains(identity))
            || self.is_unwanted(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(exclude: &[&str], include: &[&str], providers: &[Provider]) -> LogRules {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let settings = IngestSettings {
            exclude: own(exclude),
            include: own(include),
            providers: providers.to_vec(),
        };
        let identities = HashSet::from(["f0".to_owned()]);
        let sessions = HashMap::from([("s0".to_owned(), Provider::Codex)]);
        let forgotten = ForgottenRules { identities, sessions, ..ForgottenRules::default() };
        LogRules::new(settings, forgotten).expect("valid")
    }

    fn log<'a>(path: &'a str, project: Option<&'a str>) -> LogFacts<'a> {
        let provider = Some(Provider::Claude);
        LogFacts { path, provider, project, identity: Some("a1"), copy_of: &[] }
    }

    #[test]
    fn a_pattern_matches_a_folder_and_everything_below() {
        for pattern in ["/clients/acme/**", "/clients/acme", "/clients/acme/", "acme", "/*/acme/**"]
        {
            let rules = rules(&[pattern], &[], &[]);
            for project in ["/clients/acme", "/clients/acme/api/src"] {
                assert!(rules.is_excluded(&log("/logs/a.jsonl", Some(project))), "{pattern}");
            }
            for project in ["/clients/acme2", "/clients"] {
                assert!(!rules.is_excluded(&log("/logs/a.jsonl", Some(project))), "{pattern}");
            }
        }
    }

    #[test]
    fn patterns_match_the_path_of_the_log_too() {
        let rules = rules(&["/logs/-clients-acme*/**"], &[], &[]);
        assert!(rules.is_excluded(&log("/logs/-clients-acme-api/a.jsonl", None)));
        assert!(!rules.is_excluded(&log("/logs/-clients-other/a.jsonl", None)));
    }

    #[test]
    fn only_included_logs_and_agents_are_read() {
        let included = rules(&["/code/secret"], &["/code/**"], &[]);
        assert!(!included.is_excluded(&log("/logs/a.jsonl", Some("/code/harbor"))));
        assert!(included.is_excluded(&log("/logs/a.jsonl", Some("/code/secret/x"))));
        assert!(included.is_excluded(&log("/logs/a.jsonl", Some("/elsewhere"))));
        assert!(included.is_excluded(&log("/logs/a.jsonl", None)));
        // Before it is decoded, the log may still be of an included project.
        let unread = LogFacts { identity: None, ..log("/logs/a.jsonl", None) };
        assert!(!included.is_excluded(&unread));

        let codex = rules(&[], &[], &[Provider::Codex]);
        assert!(codex.is_excluded(&log("/logs/a.jsonl", Some("/code"))));
    }

    #[test]
    fn a_marker_file_excludes_its_folder() {
        let dir = tempfile::tempdir().expect("tempdir");
        let project = dir.path().join("acme/api");
        std::fs::create_dir_all(&project).expect("creates");
        std::fs::write(dir.path().join("acme").join(MARKER_FILE), "").expect("writes");
        let project = project.to_string_lossy();
        assert!(rules(&[], &[], &[]).is_excluded(&log("/logs/a.jsonl", Some(&project))));
        let above = dir.path().to_string_lossy();
        assert!(!rules(&[], &[], &[]).is_excluded(&log("/logs/a.jsonl", Some(&above))));
    }

    #[test]
    fn forgotten_logs_are_known_by_their_identity() {
        let rules = rules(&[], &[], &[]);
        let forgotten = LogFacts { identity: Some("f0"), ..log("/moved/a.jsonl", None) };
        assert!(rules.is_excluded(&forgotten) && !rules.is_unwanted(&forgotten));
        for (copy_of, is_excluded) in [(&["s0"][..], true), (&["s0", "s1"], false)] {
            let copy_of: Vec<String> = copy_of.iter().map(|id| (*id).to_owned()).collect();
            let copy = LogFacts { copy_of: &copy_of, ..log("/copy.jsonl", None) };
            assert_eq!(rules.is_excluded(&copy), is_excluded, "{copy_of:?}");
        }
    }

    #[test]
    fn a_wrong_pattern_is_named() {
        let settings =
            IngestSettings { exclude: vec!["/a/[b".into()], ..IngestSettings::default() };
        let error = LogRules::new(settings, ForgottenRules::default()).err().expect("wrong");
        assert!(error.message.contains("ingest.exclude") && error.message.contains("'/a/[b'"));
    }
}
