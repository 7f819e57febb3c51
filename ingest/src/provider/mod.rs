//! One folder per provider and one table: how a file is recognised, and how it is decoded.
//!
//! A new provider needs a folder and a row of [`FORMATS`]. The files in this folder hold code that
//! several providers share.

mod agents;
mod amp;
mod antigravity;
mod beside;
mod chat;
mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
pub(crate) mod document;
mod drift;
mod droid;
mod function_response;
mod gemini;
mod generic;
mod grok;
mod hermes;
mod iflow;
mod kimi;
mod kiro;
mod openclaw;
pub(crate) mod opencode;
mod pi;
mod prompt;
mod qwen;
mod user_query;
mod vscopilot;

use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::event::Relation;

use crate::columns::shown_id;
use crate::container::is_there;
use crate::json::Value;
use crate::redact::Redactor;
use crate::stream::{RecordAt, Stream};

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
    /// Returns the file next to a log that says more of its session and may change independently.
    pub companion: Option<fn(&Path) -> Option<PathBuf>>,
    pub reader: Reader,
}

/// The way a log is read.
pub enum Reader {
    /// Line by line; the log only grows. The argument is the state saved at the checkpoint.
    Lines(fn(&Claim, Option<&serde_json::Value>) -> Box<dyn LineDecoder>),
    /// As a whole, every time it changes.
    Document(fn(&[u8], &mut Stream, &mut Tally)),
}

/// Every format, in the order in which a file is offered to them.
pub static FORMATS: [Format; Provider::ALL.len()] = [
    droid::FORMAT,
    qwen::FORMAT,
    iflow::FORMAT,
    claude::FORMAT,
    codex::FORMAT,
    gemini::FORMAT,
    copilot::FORMAT,
    pi::FORMAT,
    openclaw::FORMAT,
    vscopilot::FORMAT,
    kimi::FORMAT,
    grok::FORMAT,
    hermes::FORMAT,
    antigravity::FORMAT,
    cursor::FORMAT,
    opencode::FORMAT,
    cline::FORMAT,
    kiro::FORMAT,
    amp::FORMAT,
    generic::FORMAT,
];

/// True if the file is next to a log with the same content and more. Such a file is known, but not
/// read.
pub(crate) fn is_beside_log(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let beside = |log: &str| is_there(&path.with_file_name(log));
    let of_subagent = |name: &str| name.starts_with("agent-") && beside(&format!("{name}.jsonl"));
    let of_session = |name: &str| beside(&format!("{name}.messages.json"));
    name.strip_suffix(".meta.json").is_some_and(of_subagent)
        || name.strip_suffix(".compaction.json").is_some_and(of_session)
        || name.starts_with("context") && beside("wire.jsonl")
        || name == "transcript.jsonl" && beside("transcript_full.jsonl")
        || matches!(name.as_ref(), "updates.jsonl" | "events.jsonl") && beside("chat_history.jsonl")
}

/// Returns the [companion](Format::companion) of a log, unless it is the log itself.
pub(crate) fn companion(provider: Provider, log: &Path) -> Option<PathBuf> {
    let beside = format(provider).companion?(log)?;
    (beside != log).then_some(beside)
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

/// Row of each provider in [`FORMATS`]. A provider without a row does not compile.
const ROWS: [usize; Provider::ALL.len()] = {
    let mut rows = [usize::MAX; Provider::ALL.len()];
    let mut at = 0;
    while at < FORMATS.len() {
        rows[FORMATS[at].provider as usize] = at;
        at += 1;
    }
    let mut provider = 0;
    while provider < rows.len() {
        assert!(rows[provider] != usize::MAX, "a provider has no row in FORMATS");
        provider += 1;
    }
    rows
};

/// Returns the format of a provider.
pub fn format(provider: Provider) -> &'static Format {
    &FORMATS[ROWS[provider as usize]]
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

/// Returns the identity of a record with a uuid, or `None`: other ids are not trusted to be unique.
pub fn uuid_identity(id: Option<&str>) -> Option<u64> {
    let id = id.filter(|id| is_uuid(id))?;
    Some(xxhash_rust::xxh3::xxh3_64(id.as_bytes()) | 1)
}

/// Begins a record with this id. A record is identified by its bytes if its id is not unique, or if
/// it has no id in a log whose other records have one.
pub fn begin(
    (id, identity): (Option<&str>, Option<u64>),
    raw: &[u8],
    at: RecordAt,
    time: Option<i64>,
    out: &mut Stream,
) {
    match (id, identity) {
        (Some(_), None) => out.begin_unnamed(at, raw, time),
        (None, None) => out.begin_between(at, raw, time),
        (_, identity) => out.begin_record(at, identity, time),
    }
}

/// True if `text` has the form of a uuid.
pub fn is_uuid(text: &str) -> bool {
    let Ok(bytes) = <&[u8; 36]>::try_from(text.as_bytes()) else { return false };
    // Checks every byte without a branch: records have two or three ids each.
    bytes.iter().enumerate().fold(true, |fits, (at, byte)| {
        let is_dash = matches!(at, 8 | 13 | 18 | 23);
        fits & if is_dash { *byte == b'-' } else { byte.is_ascii_hexdigit() }
    })
}
