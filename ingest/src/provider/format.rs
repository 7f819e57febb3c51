//! Defines what a provider's folder offers: how its logs are found and recognised, and how they are
//! decoded.

use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;

use crate::redact::Redactor;
use crate::redact::columns::shown_id;
use crate::source::assembly::Assembly;
use crate::stream::{RecordAt, Stream};
use crate::text::json::Value;

/// A provider's log format: where logs are, how to recognise one, and how to read it.
pub struct Format {
    pub provider: Provider,
    /// Whether records carry ids of their own, which copies keep. Otherwise content identifies
    /// them.
    pub unique_ids: bool,
    /// Returns the folders where the agent keeps its logs; they need not exist.
    pub roots: fn(&Places<'_>) -> Vec<PathBuf>,
    /// Recognises a log by its beginning.
    pub sniff: fn(&Head<'_>) -> Option<Claim>,
    pub quirks: Quirks,
    pub reader: Reader,
}

/// Judges a file by its name, and by which logs its folder has.
pub type IsBesideLog = fn(&str, &dyn Fn(&str) -> bool) -> bool;

/// Properties that few formats have. A format lists those that differ from [`Quirks::NONE`].
pub struct Quirks {
    /// Returns the file next to a log that says more of its session and may change independently.
    pub companion: Option<fn(&Path) -> Option<PathBuf>>,
    /// Returns whether a file of this name only repeats or describes the log next to it. Such a
    /// file is known, but not read. The second argument returns whether the file's folder has a log
    /// of a name.
    pub is_beside_log: Option<IsBesideLog>,
    /// Returns whether a file of this name is a log, if neither its extension nor the lack of one
    /// says so. The name comes without the extension of a compression. `None` means that the
    /// extension decides.
    pub is_log_name: Option<fn(&str) -> Option<bool>>,
    /// Whether the log of a subagent may begin with records of its parent.
    pub subagents_repeat_parent: bool,
    /// Whether the ids of later sessions sort before those of earlier ones.
    pub ids_descend: bool,
    /// The places in which a session is not a file of its own.
    pub assemblies: &'static [Assembly],
}

impl Quirks {
    /// A format of which every log is one file, and every file with the extension of a log is one.
    pub const NONE: Self = Self {
        companion: None,
        is_beside_log: None,
        is_log_name: None,
        subagents_repeat_parent: false,
        ids_descend: false,
        assemblies: &[],
    };
}

/// The way a log is read.
pub enum Reader {
    /// Line by line; the log only grows. The argument is the state saved at the checkpoint.
    Lines(fn(&Claim, Option<&serde_json::Value>) -> Box<dyn LineDecoder>),
    /// As a whole, every time it changes.
    Document(fn(&[u8], &mut Stream, &mut Tally)),
}

/// The folders in which agents keep their files on this machine.
pub struct Places<'a> {
    home: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Places<'a> {
    /// Creates the places below `home`. `variable` reads the environment.
    pub fn new(home: &'a Path, variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { home, variable }
    }

    /// Returns a path below the home folder.
    pub fn home(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }

    /// Returns a path below the folder for data.
    pub fn data(&self, path: &str) -> PathBuf {
        self.set("XDG_DATA_HOME").unwrap_or_else(|| self.home(".local/share")).join(path)
    }

    /// Returns a path below the folder for configuration.
    pub fn config(&self, path: &str) -> PathBuf {
        self.set("XDG_CONFIG_HOME").unwrap_or_else(|| self.home(".config")).join(path)
    }

    /// Returns the path in an environment variable, unless that is unset or empty.
    pub fn set(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

/// The beginning of a file.
pub struct Head<'a> {
    /// Path of the file, without the extension of a compressed file.
    pub path: &'a Path,
    /// The first objects of a file of lines; empty for a document over several lines.
    pub objects: Vec<serde_json::Value>,
    /// The scalar fields at the top of a document.
    pub document: Option<serde_json::Map<String, serde_json::Value>>,
    /// True if the document is a list; `objects` then holds its first elements.
    pub is_list: bool,
}

impl Head<'_> {
    /// Returns the file's name without its last extension.
    pub fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("")
    }
}

/// The session that a file says it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub provider: Provider,
    /// The session's id as the log writes it.
    pub native_id: String,
    /// Set for a subagent's own file.
    pub agent_id: Option<String>,
    /// Native id of the session that this one descends from.
    pub parent: Option<String>,
    pub relation: Option<Relation>,
    /// Identity of the first record. Two logs with the same first record share history.
    pub first_record: Option<u64>,
}

impl Claim {
    /// Returns the claim with its ids cleaned and redacted, as rows hold them.
    pub(crate) fn shown(self, redactor: Option<&Redactor>) -> Self {
        Self {
            native_id: shown_id(redactor, &self.native_id),
            agent_id: self.agent_id.map(|id| shown_id(redactor, &id)),
            parent: self.parent.map(|id| shown_id(redactor, &id)),
            ..self
        }
    }
}

/// The result of decoding a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The record gave one or more events.
    Events,
    /// The record gave no event, for this reason.
    Merged(&'static str),
}

impl Outcome {
    /// Returns `Merged` instead of `Events` if the record pushed no event to `out`.
    pub(crate) fn seen(self, out: &Stream) -> Self {
        match self {
            Self::Events if out.pushed() == 0 => Self::Merged("empty_message"),
            Self::Events | Self::Merged(_) => self,
        }
    }
}

/// A decoder of one log that is read line by line.
pub trait LineDecoder {
    /// Decodes one object. `raw` holds its bytes, `at` is its position.
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome;

    /// Called after the last record of a reading, even if there was no record. Here a decoder reads
    /// the file next to the log.
    fn end(&mut self, _at: RecordAt, _out: &mut Stream) {}

    /// Returns the state that a new decoder needs to continue at this point.
    fn save(&self) -> serde_json::Value;
}

/// Counts of records by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub lines: u64,
    pub objects: u64,
    /// Counts of objects that gave no event, by reason.
    pub merged: std::collections::BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Counts one object.
    pub fn object(&mut self, outcome: Outcome) {
        self.objects += 1;
        if let Outcome::Merged(reason) = outcome {
            *self.merged.entry(reason).or_default() += 1;
        }
    }
}
