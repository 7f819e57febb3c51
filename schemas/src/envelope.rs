//! The envelope of every answer, the same over MCP and with `--json`.

use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::closed_enum::closed_enum;
use crate::error::ToolError;
use crate::limits::BYTES_PER_TOKEN;

/// Version of the arguments and answers of all tools. It is raised when one of them changes in a way
/// that clients notice. Every tool has it in its `_meta`, as `schema_version`.
pub const CONTRACT_VERSION: u32 = 1;

/// A whole answer that succeeded. `T` is the tool's `data`.
#[derive(Debug, Clone, Serialize)]
pub struct ToolAnswer<T> {
    /// Always [`Status::Ok`].
    pub status: Status,
    /// The tool's data.
    pub data: T,
    /// Which part of the whole this page is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Pagination>,
    /// What to do next. If there are more pages, it says how to see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the reader should know about this answer; empty if there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Facts about the answer.
    pub metadata: Metadata,
}

/// An answer whose data was written as JSON once, when it was made.
pub type EncodedAnswer<T> = ToolAnswer<EncodedData<T>>;

impl<T> EncodedAnswer<T> {
    /// Returns the answer with its data as JSON only, so that answers of all tools are of one type.
    pub fn into_json(self) -> JsonAnswer {
        ToolAnswer {
            status: self.status,
            data: self.data.json,
            pagination: self.pagination,
            hint: self.hint,
            warnings: self.warnings,
            metadata: self.metadata,
        }
    }
}

/// An answer of any tool.
pub type JsonAnswer = ToolAnswer<Box<RawValue>>;

/// A tool's data together with its JSON. Every reader of the JSON (the budget's count of tokens, the
/// cache, the client) gets the same bytes, which are written once.
#[derive(Debug, Clone)]
pub struct EncodedData<T> {
    value: T,
    json: Box<RawValue>,
}

impl<T: Serialize> EncodedData<T> {
    /// Writes the JSON of `value`.
    ///
    /// # Errors
    /// Returns the error of a value that has no JSON, such as a map whose keys are not text.
    pub fn new(value: T) -> serde_json::Result<Self> {
        let json = serde_json::value::to_raw_value(&value)?;
        Ok(Self { value, json })
    }
}

impl<T> EncodedData<T> {
    /// Returns the JSON of the value.
    pub fn json(&self) -> &str {
        self.json.get()
    }

    /// Returns the value without its JSON.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for EncodedData<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Serialize for EncodedData<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// A whole answer that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorAnswer {
    /// Always [`Status::Error`].
    pub status: Status,
    /// The reason why there is no data.
    pub error: ToolError,
}

impl From<ToolError> for ErrorAnswer {
    fn from(error: ToolError) -> Self {
        Self { status: Status::Error, error }
    }
}

closed_enum! {
    /// Whether a call succeeded.
    Status {
        /// The call succeeded, and `data` follows.
        Ok = "ok",
        /// The call failed, and `error` follows.
        Error = "error",
    }
}

/// Which part of the whole this page is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pagination {
    /// Rows on this page.
    pub total_in_page: usize,
    /// Whether a further page follows.
    pub has_more: bool,
    /// Opaque; bound to the call's other arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

closed_enum! {
    /// How bad a warning is.
    Severity {
        /// Good to know; nothing needs to be done.
        Info = "info",
        /// Something may be missing, or differs from the request.
        Warning = "warning",
        /// Something failed.
        Error = "error",
    }
}

/// Something the reader should know about this answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// What to know, in a sentence.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
}

closed_enum! {
    /// Codes of warnings.
    WarningCode {
        /// Files grew, failed or vanished since the store was written.
        IndexStale = "INDEX_STALE",
        /// Files could not be read; `sessions status` lists them.
        FilesFailed = "FILES_FAILED",
        /// The answer was cut to fit its budget, or its search ran out of time.
        ResultsTruncated = "RESULTS_TRUNCATED",
        /// A parameter had no effect here.
        ParameterIgnored = "PARAMETER_IGNORED",
        /// Nothing matched exactly, so the matches are ranked by relevance.
        RankedInstead = "RANKED_INSTEAD",
        /// Copied history was left out.
        ReplayExcluded = "REPLAY_EXCLUDED",
        /// Secrets were masked in what is shown.
        Redacted = "REDACTED",
        /// Which session `current` was taken to be.
        CurrentSession = "CURRENT_SESSION",
        /// Some ids begin several sessions; the others are answered.
        AmbiguousPrefix = "AMBIGUOUS_PREFIX",
        /// The file of the labels cannot be read or is gone; they are missing.
        LabelsUnreadable = "LABELS_UNREADABLE",
        /// Parts of the store are damaged or lost; events may be missing.
        StoreDamaged = "STORE_DAMAGED",
        /// Other users can write to the store.
        StoreNotPrivate = "STORE_NOT_PRIVATE",
        /// Some requests were served in a mode without a known price; costs leave them out.
        UnknownPriceMode = "UNKNOWN_PRICE_MODE",
        /// Tokens in records that no decoder knows are not counted.
        UsageIncomplete = "USAGE_INCOMPLETE",
        /// The retention dropped texts of some sessions of the answer.
        TextsDropped = "TEXTS_DROPPED",
    }
}

impl Warning {
    /// Creates a warning.
    pub fn new(code: WarningCode, severity: Severity, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), severity }
    }
}

/// Facts about the answer. Absent instead of null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Metadata {
    /// Size of the answer in tokens, approximate: bytes of its JSON divided by four.
    pub tokens: usize,
    /// Time the call took, in milliseconds.
    pub duration_ms: u64,
    /// When the answer was made; RFC 3339, UTC.
    pub timestamp: String,
    /// Whether the answer came from the answer cache.
    pub cached: bool,
    /// How many there are over all pages; absent when that was not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results_total: Option<usize>,
    /// `at_least` when `results_total` is a lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results_total_is: Option<&'static str>,
    /// The sessions that the answer covers, such as `12 sessions of project 'harbor'`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Rows on this page.
    pub results_returned: usize,
    /// Whether rows were left out: pass `pagination.next_cursor` for the next page.
    pub results_truncated: bool,
    /// Confidence of the best match of a ranked search, from 0 to 1; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Confidence below which a ranked search leaves matches out; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Events in the store.
    pub index_size: u64,
    /// When the store was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_last_updated: Option<String>,
    /// Time of the newest event in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_event: Option<String>,
    /// The metadata for developers, under [`MetadataLevel::Full`]; see [`Self::with_debug`].
    #[serde(flatten)]
    #[schemars(skip)]
    pub debug: Option<DebugMetadata>,
}

impl Metadata {
    /// Adds the metadata for developers, which have a confidence and a threshold of every answer.
    #[must_use]
    pub fn with_debug(self, debug: DebugMetadata) -> Self {
        Self { confidence: None, threshold: None, debug: Some(debug), ..self }
    }
}

closed_enum! {
    /// The level of detail of `metadata`: core or full.
    MetadataLevel {
        /// The metadata that a model needs.
        Core = "core",
        /// Also the metadata for developers: [`DebugMetadata`].
        Full = "full",
    }
}

/// What only a developer asks for: always in the `_meta` of a tool's result, and in `metadata`
/// under `--metadata full`.
#[expect(missing_docs, reason = "docs of the fields would be printed in docs/mcp.md")]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DebugMetadata {
    pub request_id: String,
    pub tool_version: &'static str,
    pub schema_version: u32,
    /// The way in: `mcp_stdio`, `mcp_http` or `cli`.
    pub adapter: &'static str,
    /// Size of the arguments and of the answer in tokens, approximate.
    pub tokens_input: usize,
    pub tokens_output: usize,
    /// Calls of other services: there are none.
    pub api_calls_made: u32,
    /// Calls that may follow at once; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit_remaining: Option<u64>,
    /// Of the best match of a ranked search; 1 for everything that is exact.
    pub confidence: f64,
    /// Confidence below which matches are left out: nothing is.
    pub threshold: f64,
    pub tool_context: ToolContext,
}

/// What a call ran in.
#[expect(missing_docs, reason = "docs of the fields would be printed in docs/mcp.md")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolContext {
    pub tool: String,
    /// Generation of the store that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

impl DebugMetadata {
    /// Returns the metadata of a call before it is answered, with arguments of `bytes` bytes.
    pub fn new(request_id: String, adapter: &'static str, tool: String, bytes: usize) -> Self {
        Self {
            request_id,
            tool_version: env!("CARGO_PKG_VERSION"),
            schema_version: CONTRACT_VERSION,
            adapter,
            tokens_input: bytes.div_ceil(BYTES_PER_TOKEN),
            tokens_output: 0,
            api_calls_made: 0,
            rate_limit_remaining: None,
            confidence: 1.0,
            threshold: 0.0,
            tool_context: ToolContext { tool, generation: None },
        }
    }

    /// Takes over the size of an answer, and the confidence of a ranked search. Other answers are
    /// exact.
    pub fn describe_answer(&mut self, answer: &Metadata) {
        self.tokens_output = answer.tokens;
        self.confidence = answer.confidence.unwrap_or(1.0);
        self.threshold = answer.threshold.unwrap_or(0.0);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Data that counts how often its JSON is written.
    struct CountedData(Rc<Cell<usize>>);

    impl Serialize for CountedData {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.set(self.0.get() + 1);
            serializer.serialize_str("data")
        }
    }

    #[test]
    fn the_json_of_an_answer_is_written_once() {
        let count = Rc::new(Cell::new(0));
        let answer = ToolAnswer {
            status: Status::Ok,
            data: EncodedData::new(CountedData(Rc::clone(&count))).expect("encodes"),
            pagination: None,
            hint: None,
            warnings: Vec::new(),
            metadata: Metadata::default(),
        };
        // What the count of tokens, the cache and the client get.
        let counted = serde_json::to_string(&answer).expect("JSON");
        let cached = answer.into_json();
        assert_eq!(serde_json::to_string(&cached.clone()).expect("JSON"), counted);
        assert_eq!(count.get(), 1);
    }

    #[test]
    fn each_field_of_full_metadata_occurs_once() {
        let mut debug = DebugMetadata::new("7".to_owned(), "cli", "list".to_owned(), 1);
        let core = Metadata { tokens: 3, confidence: Some(0.5), ..Metadata::default() };
        debug.describe_answer(&core);
        let json = serde_json::to_string(&core.with_debug(debug)).expect("JSON");
        assert_eq!(json.matches("\"confidence\":0.5").count(), 1, "{json}");
        assert_eq!(json.matches("\"confidence\"").count(), 1, "{json}");
        assert!(json.contains("\"tokens_output\":3"), "{json}");
    }
}
