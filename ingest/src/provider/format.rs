//! Defines what a provider's folder offers: how its logs are found, recognized and decoded.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;
use serde::Serialize;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::provider::shared::machine_text::MachineText;
use crate::redact::Redactor;
use crate::redact::columns::mask_id;
use crate::source::assembly::Assembly;
use crate::stream::{RecordAliases, RecordAt, Stream};
use crate::text::json::Value;

/// A provider's log format: where logs are, how to recognize one, and how to read it.
pub struct LogFormat {
    /// The provider whose logs have this format.
    pub provider: Provider,
    /// Whether records carry ids of their own, which copies keep. Otherwise content identifies
    /// them.
    pub has_unique_ids: bool,
    /// Version of the decoder. Raise it whenever the decoder's events change:
    /// logs read by another version are read again.
    pub decoder_version: u32,
    /// Returns the folders where the agent keeps its logs; they need not exist.
    /// [`log_folders`](super::log_folders) lists each once.
    pub roots: fn(&AgentFolders<'_>) -> Vec<PathBuf>,
    /// Recognizes a log by its beginning.
    pub sniff: fn(&LogHead<'_>) -> Option<SessionClaim>,
    /// Properties that few formats have.
    pub quirks: Quirks,
    /// The way a log is read.
    pub reader: LogReader,
}

/// Judges a file by its name. The second argument returns whether the file's folder has a log of a
/// given name.
pub type IsSidecar = fn(&str, &dyn Fn(&str) -> bool) -> bool;

/// Properties that few formats have. A format lists those that differ from [`Quirks::NONE`].
pub struct Quirks {
    /// Returns the files next to a log that have further facts about the session and may change
    /// independently of the log.
    pub companions: Option<fn(&Path) -> Vec<PathBuf>>,
    /// Returns the folder of a log whose files have what tools printed. The log only names them.
    pub output_folder: Option<fn(&Path) -> PathBuf>,
    /// Returns whether a file of this name only repeats or describes the log next to it. Such a
    /// file is known, but not read.
    pub is_sidecar: Option<IsSidecar>,
    /// Returns whether the session of a log is stored in another place as well, with at least as
    /// many messages. The log at this path is then known, but not read.
    pub is_stored_elsewhere: Option<fn(&Path) -> bool>,
    /// Returns whether a file of this name is a log, or `None` if its extension decides. The name
    /// is passed without the extension of a compressed file.
    pub is_log_name: Option<fn(&str) -> Option<bool>>,
    /// Returns whether a folder has no logs, but other files next to those of the agent. It is not
    /// searched.
    pub is_other_folder: Option<fn(&Path) -> bool>,
    /// Whether the log of a subagent may begin with records of its parent.
    pub subagents_repeat_parent: bool,
    /// Whether copied history is found in a log that names its original also if that is missing.
    pub finds_copies_without_original: bool,
    /// Whether the ids of later sessions sort before those of earlier ones.
    pub has_descending_ids: bool,
    /// Whether the name of a log begins with the time at which its session began, so that names are
    /// in the order of times.
    pub is_named_by_start: bool,
    /// The ways to assemble sessions that are not files of their own.
    pub assemblies: &'static [Assembly],
    /// Returns whether a record is the last one that the [`LogFormat::sniff`] of any format needs: with
    /// it and those before it, the log claims what it would claim with more.
    pub is_claim_complete: Option<fn(&serde_json::Value) -> bool>,
    /// Whether a log is a copy, as a whole, of a log of another agent whose session has the same id.
    pub copies_other_agents: bool,
    /// Text in the user's role that a machine wrote.
    pub machine_texts: &'static [MachineText],
    /// Finds the response that a request id of the format names. `None` if equal ids in two logs do
    /// not mean one response.
    pub find_response: Option<fn(&str) -> ResponseKey<'_>>,
}

impl Quirks {
    /// The quirks of a plain format: every log is one file, and its extension identifies it.
    pub const NONE: Self = Self {
        companions: None,
        output_folder: None,
        is_sidecar: None,
        is_stored_elsewhere: None,
        is_log_name: None,
        is_other_folder: None,
        subagents_repeat_parent: false,
        finds_copies_without_original: false,
        has_descending_ids: false,
        is_named_by_start: false,
        assemblies: &[],
        is_claim_complete: None,
        copies_other_agents: false,
        machine_texts: &[],
        find_response: None,
    };
}

/// A response of a model, as all logs of its agent name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseKey<'a> {
    /// The id of the response.
    pub response: Cow<'a, str>,
    /// The id of the API request. Responses with equal ids of their own and different requests are
    /// different. `None` if the log does not name the request: then the first id decides.
    pub request: Option<&'a str>,
}

impl ResponseKey<'_> {
    /// Returns a hash of the response. `base` is the provider whose format the log has. Keys of one
    /// response have the same hash, whether they name the request or not.
    pub fn response_hash(&self, base: Provider) -> u64 {
        xxh3_64_with_seed(self.response.as_bytes(), xxh3_64(base.as_str().as_bytes()))
    }
}

/// The way a log is read.
pub enum LogReader {
    /// Line by line; the log only grows. The argument is the state saved at the checkpoint.
    Lines(fn(&SessionClaim, Option<&serde_json::Value>) -> Box<dyn LineDecoder>),
    /// As a whole, every time it changes.
    Document(fn(&[u8], &mut Stream, &mut RecordTally)),
}

/// Returns a path with the separators of this system between all of its names.
pub(super) fn with_native_separators(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A kind of system, which decides where programs keep their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux and the systems like it.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform of this program.
    pub const CURRENT: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Linux
    };
}

/// Editors that run the extensions of VS Code, by the folder of each in the folder of programs.
const EDITORS: &[&str] = &[
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "Positron",
    "Cursor",
    "Windsurf",
    "Windsurf - Next",
    "Trae",
    "Trae CN",
];

/// The folders in the home folder that these editors use on a machine to which they connect.
const EDITOR_SERVERS: &[&str] = &[
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscode-server-oss",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
];

/// The folders in which agents keep their files on this machine.
pub struct AgentFolders<'a> {
    home: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
    platform: Platform,
}

impl<'a> AgentFolders<'a> {
    /// Creates the places below `home`. `variable` reads the environment.
    pub fn new(home: &'a Path, variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self::on_platform(Platform::CURRENT, home, variable)
    }

    /// Creates the places below `home` on a platform.
    pub fn on_platform(
        platform: Platform,
        home: &'a Path,
        variable: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self { home, variable, platform }
    }

    /// Returns the platform.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Returns a path below the home folder.
    pub fn home_path(&self, path: &str) -> PathBuf {
        with_native_separators(&self.home.join(path))
    }

    /// Returns a path below the folder for data.
    pub fn data_path(&self, path: &str) -> PathBuf {
        let folder = self.env_path("XDG_DATA_HOME");
        with_native_separators(&folder.unwrap_or_else(|| self.home_path(".local/share")).join(path))
    }

    /// Returns a path below the folder for configuration.
    pub fn config_path(&self, path: &str) -> PathBuf {
        let folder = self.env_path("XDG_CONFIG_HOME");
        with_native_separators(&folder.unwrap_or_else(|| self.home_path(".config")).join(path))
    }

    /// Returns a path below the folder for state.
    pub fn state_path(&self, path: &str) -> PathBuf {
        let folder = self.env_path("XDG_STATE_HOME");
        with_native_separators(&folder.unwrap_or_else(|| self.home_path(".local/state")).join(path))
    }

    /// Returns a path below the folder in which desktop programs keep their files.
    pub fn application_path(&self, path: &str) -> PathBuf {
        match self.platform {
            Platform::Linux => self.config_path(path),
            Platform::MacOs => self.home_path("Library/Application Support").join(path),
            Platform::Windows => {
                let folder = self.env_path("APPDATA");
                let folder = folder.unwrap_or_else(|| self.home_path("AppData/Roaming"));
                with_native_separators(&folder.join(path))
            }
        }
    }

    /// Returns a path below the folder in which programs of Windows keep what stays on the machine.
    pub fn local_path(&self, path: &str) -> PathBuf {
        let folder = self.env_path("LOCALAPPDATA");
        with_native_separators(
            &folder.unwrap_or_else(|| self.home_path("AppData/Local")).join(path),
        )
    }

    /// Returns the paths below the folders in which VS Code and the editors derived from it keep the
    /// files of a user.
    pub fn editor_paths(&self, path: &str) -> Vec<PathBuf> {
        let local = EDITORS.iter().map(|editor| self.application_path(editor));
        let servers = EDITOR_SERVERS.iter().map(|server| self.home_path(server).join("data"));
        // An editor in the browser, which has its files on the machine that serves it.
        let code_server = [self.data_path("code-server")];
        local
            .chain(servers)
            .chain(code_server)
            .map(|folder| folder.join("User").join(path))
            .collect()
    }

    /// Returns the path in an environment variable, unless that is unset or empty.
    pub fn env_path(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

/// The beginning of a file.
pub struct LogHead<'a> {
    /// Path of the file, without the extension of a compressed file.
    pub path: &'a Path,
    /// The first objects of a file of lines; empty for a document over several lines. They end with
    /// the record that [completes a claim](Quirks::is_claim_complete), but are two if there are two.
    pub objects: Vec<serde_json::Value>,
    /// The fields at the top of a document; see [`Self::document`].
    pub fields: Option<serde_json::Map<String, serde_json::Value>>,
    /// True if the document is a list; `objects` then holds its first elements.
    pub is_list: bool,
}

impl LogHead<'_> {
    /// Returns the fields at the top of a document. `None` if the file is not a document.
    pub fn document(&self) -> Option<&serde_json::Map<String, serde_json::Value>> {
        self.fields.as_ref()
    }

    /// Returns the fields of the session in a document that is assembled from a `store`.
    pub fn stored_info(&self, store: &str) -> Option<&serde_json::Value> {
        self.document()?.get("info").filter(|info| info["store"] == store)
    }

    /// Returns the file's name without its last extension.
    pub fn file_stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("")
    }
}

/// The session that a file claims to belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionClaim {
    /// The provider whose format the file has.
    pub provider: Provider,
    /// The session's id as the log writes it.
    pub native_id: String,
    /// Set for a subagent's own file.
    pub agent_id: Option<String>,
    /// Native id of the session that this one descends from.
    pub parent: Option<String>,
    /// The relation to `parent`.
    pub relation: Option<Relation>,
    /// Identity of the first record. Two logs with the same first record share history.
    pub first_record: Option<u64>,
    /// Identity of the first response of the model. Two logs with the same one share history, even
    /// if all their records have ids of their own. `None` if the format has no such ids.
    pub first_response: Option<u64>,
}

impl SessionClaim {
    /// Creates the claim of a session without relations to others.
    pub(crate) fn new(provider: Provider, native_id: impl Into<String>) -> Self {
        Self {
            provider,
            native_id: native_id.into(),
            agent_id: None,
            parent: None,
            relation: None,
            first_record: None,
            first_response: None,
        }
    }

    /// Returns the claim of a session that descends from the first of `parents` that is known, if any.
    pub(crate) fn with_parent(self, parents: &[(Relation, Option<&str>)]) -> Self {
        for (relation, parent) in parents {
            if let Some(parent) = parent {
                let parent = Some((*parent).to_owned());
                return Self { parent, relation: Some(*relation), ..self };
            }
        }
        self
    }

    /// Returns the claim of a log that continues this session as a copy; see [`super::copied`].
    pub(crate) fn continuing(self, session: Option<&str>) -> Self {
        self.with_parent(&[(Relation::ContinuedFrom, session)])
    }

    /// Identifies the first records as they were before their secrets were replaced in the log.
    pub(crate) fn resolve_records(&mut self, aliases: &RecordAliases) {
        self.first_record = self.first_record.map(|identity| aliases.resolve(identity));
        self.first_response = self.first_response.map(|identity| aliases.resolve(identity));
    }

    /// Returns the claim with its ids cleaned and redacted, as rows hold them. No log is an earlier
    /// version, whatever it says: those are in the store only.
    pub(crate) fn with_redacted_ids(self, redactor: Option<&Redactor>) -> Self {
        Self {
            relation: self.relation.filter(|relation| *relation != Relation::EarlierVersionOf),
            native_id: mask_id(redactor, self.native_id),
            agent_id: self.agent_id.map(|id| mask_id(redactor, id)),
            parent: self.parent.map(|id| mask_id(redactor, id)),
            ..self
        }
    }
}

/// The result of decoding a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The record gave one or more events.
    Events,
    /// The record gave no event, for this reason.
    Merged(&'static str),
}

impl RecordOutcome {
    /// Returns `Events`, or `Merged` for the reason `empty` if the record pushed no event to `out`.
    pub(crate) fn of_pushed(out: &Stream, empty: &'static str) -> Self {
        if out.pushed_count() == 0 { Self::Merged(empty) } else { Self::Events }
    }

    /// Returns `Merged` instead of `Events` if the record pushed no event to `out`.
    pub(crate) fn merged_if_empty(self, out: &Stream) -> Self {
        match self {
            Self::Events if out.is_record_left_out() => Self::Merged("unknown_record"),
            Self::Events if out.pushed_count() == 0 => Self::Merged("empty_message"),
            Self::Events | Self::Merged(_) => self,
        }
    }
}

/// A decoder of one log that is read line by line.
pub trait LineDecoder {
    /// Reads the files next to the log at `log`, before the first record of a reading. Returns false
    /// if the decoder cannot continue, because these files now say something else about the records
    /// read before. The log is then read from its start by a new decoder.
    fn prepare(&mut self, _log: &Path) -> bool {
        true
    }

    /// Decodes one object. `raw` holds its bytes, `at` is its position.
    fn decode_record(
        &mut self,
        object: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome;

    /// Handles the end of a reading, even if there was no record.
    fn finish_reading(&mut self, _at: RecordAt, _out: &mut Stream) {}

    /// Returns the state that a new decoder needs to continue at this point, as JSON.
    fn save_state(&self) -> String;
}

/// Returns the state of a decoder as JSON; `null` if it cannot be written.
pub(crate) fn state_json(state: &impl Serialize) -> String {
    serde_json::to_string(state).unwrap_or_else(|_| "null".to_owned())
}

/// Counts of records by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordTally {
    /// Count of lines.
    pub lines: u64,
    /// Count of objects, whatever their outcome.
    pub objects: u64,
    /// Counts of objects that gave no event, by reason.
    pub merged: std::collections::BTreeMap<&'static str, u64>,
}

impl RecordTally {
    /// Counts one object.
    pub fn count_object(&mut self, outcome: RecordOutcome) {
        self.objects += 1;
        if let RecordOutcome::Merged(reason) = outcome {
            *self.merged.entry(reason).or_default() += 1;
        }
    }
}
