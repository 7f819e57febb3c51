//! One folder per provider behind one table: how a file is recognised, and how it is decoded.
//!
//! Adding a provider is a folder and a row of [`FORMATS`]; the files beside this one are what
//! several share.

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

/// What a provider's log is and who can read it.
pub struct Format {
    pub provider: Provider,
    /// Whether records carry ids of their own, which copies keep (else they are known by content).
    pub unique_ids: bool,
    /// The folders where the agent keeps its logs; they need not exist.
    pub roots: fn(&Places<'_>) -> Vec<PathBuf>,
    /// Says whose log it is, from its beginning.
    pub sniff: fn(&Head<'_>) -> Option<Claim>,
    /// The file beside a log that tells more of its session, and that may change alone.
    pub companion: Option<fn(&Path) -> Option<PathBuf>>,
    pub reader: Reader,
}

/// How a log is read.
pub enum Reader {
    /// Line by line; the log only grows. The argument is the state saved at the checkpoint.
    Lines(fn(&Claim, Option<&serde_json::Value>) -> Box<dyn LineDecoder>),
    /// Whole, every time it changes.
    Document(fn(&[u8], &mut Stream, &mut Tally)),
}

/// Every format, in the order in which they are asked.
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

/// Whether a file lies beside a log that tells the same, and more: known, but not read.
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

/// The [companion](Format::companion) of a log, unless it is the log itself.
pub(crate) fn companion(provider: Provider, log: &Path) -> Option<PathBuf> {
    let beside = format(provider).companion?(log)?;
    (beside != log).then_some(beside)
}

/// Where agents keep things on this machine.
pub struct Places<'a> {
    home: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Places<'a> {
    /// `variable` reads the environment.
    pub fn new(home: &'a Path, variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { home, variable }
    }

    /// A place below the home folder.
    pub fn home(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }

    /// A place below the folder for data.
    pub fn data(&self, path: &str) -> PathBuf {
        self.set("XDG_DATA_HOME").unwrap_or_else(|| self.home(".local/share")).join(path)
    }

    /// A place below the folder for configuration.
    pub fn config(&self, path: &str) -> PathBuf {
        self.set("XDG_CONFIG_HOME").unwrap_or_else(|| self.home(".config")).join(path)
    }

    /// The folder that a variable of the environment names.
    pub fn set(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

/// Where in [`FORMATS`] the row of each provider stands. A provider without a row does not compile.
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

/// The format of a provider.
pub fn format(provider: Provider) -> &'static Format {
    &FORMATS[ROWS[provider as usize]]
}

/// The beginning of a file.
pub struct Head<'a> {
    /// Without the extension of a compressed file.
    pub path: &'a Path,
    /// The first objects of a file of lines; empty for a document over several lines.
    pub objects: Vec<serde_json::Value>,
    /// The scalar fields at the top of a document.
    pub document: Option<serde_json::Map<String, serde_json::Value>>,
    /// It is a document that is a list, of which `objects` are the first elements.
    pub is_list: bool,
}

impl Head<'_> {
    /// The file's name without its last extension.
    pub fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("")
    }
}

/// What a file says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub provider: Provider,
    /// The session's id in the log's own words.
    pub native_id: String,
    /// Set for a subagent's own file.
    pub agent_id: Option<String>,
    /// Native id of the session it hangs on.
    pub parent: Option<String>,
    pub relation: Option<Relation>,
    /// Identity of its first record: two logs with the same one share history.
    pub first_record: Option<u64>,
}

impl Claim {
    /// The claim with its ids cleaned and masked, as rows hold them.
    pub(crate) fn shown(self, redactor: Option<&Redactor>) -> Self {
        Self {
            native_id: shown_id(redactor, &self.native_id),
            agent_id: self.agent_id.map(|id| shown_id(redactor, &id)),
            parent: self.parent.map(|id| shown_id(redactor, &id)),
            ..self
        }
    }
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It gave one event or several.
    Events,
    /// It gave none, for this reason.
    Merged(&'static str),
}

impl Outcome {
    /// The outcome of a record that its decoder says gave events: without words it gave none.
    pub(crate) fn seen(self, out: &Stream) -> Self {
        match self {
            Self::Events if out.pushed() == 0 => Self::Merged("empty_message"),
            Self::Events | Self::Merged(_) => self,
        }
    }
}

/// Decodes one log that is read line by line.
pub trait LineDecoder {
    /// Decodes one object. `raw` are its bytes, `at` is where they stand.
    fn record(&mut self, object: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome;

    /// Called behind the last record of a reading, also when there was none: the place for what a
    /// file beside the log tells.
    fn end(&mut self, _at: RecordAt, _out: &mut Stream) {}

    /// What it must be given to go on at this point.
    fn save(&self) -> serde_json::Value;
}

/// Counts what became of the records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub lines: u64,
    pub objects: u64,
    /// Objects that gave no event, by reason.
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

/// Identity of a record that carries a uuid; other ids are not trusted to be unique.
pub fn uuid_identity(id: Option<&str>) -> Option<u64> {
    let id = id.filter(|id| is_uuid(id))?;
    Some(xxhash_rust::xxh3::xxh3_64(id.as_bytes()) | 1)
}

/// Begins a record with this id. One whose id is not unique is known by its bytes, and so is one
/// without an id among those that have some.
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

/// Whether `text` has the form of a uuid.
pub fn is_uuid(text: &str) -> bool {
    let Ok(bytes) = <&[u8; 36]>::try_from(text.as_bytes()) else { return false };
    // Every byte is looked at, without a branch: records have two or three ids each.
    bytes.iter().enumerate().fold(true, |fits, (at, byte)| {
        let is_dash = matches!(at, 8 | 13 | 18 | 23);
        fits & if is_dash { *byte == b'-' } else { byte.is_ascii_hexdigit() }
    })
}
