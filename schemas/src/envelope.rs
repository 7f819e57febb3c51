//! The envelope of every answer, the same over MCP and with `--json` (DESIGN.md section 6).

use schemars::JsonSchema;
use serde::Serialize;

use crate::ToolError;
use crate::event::closed_enum;

/// A whole answer that succeeded. `T` is the tool's `data`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer<T> {
    pub status: Status,
    pub data: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Pagination>,
    /// What to do next; with more pages, the sentence that says how to see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    pub metadata: Metadata,
}

/// A whole answer that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    pub status: Status,
    pub error: ToolError,
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self { status: Status::Error, error }
    }
}

closed_enum! {
    /// Whether `data` or `error` follows.
    Status {
        Ok = "ok",
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
        Info = "info",
        Warning = "warning",
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
        /// The answer was cut to fit its budget.
        ResultsTruncated = "RESULTS_TRUNCATED",
        /// A parameter had no effect here.
        ParameterIgnored = "PARAMETER_IGNORED",
        /// Copied history was left out.
        ReplayExcluded = "REPLAY_EXCLUDED",
        /// The tool was called by an earlier name, which will go.
        ToolRenamed = "TOOL_RENAMED",
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
    /// Rows on this page.
    pub results_returned: usize,
    /// Whether rows were left out: pass `pagination.next_cursor` for the next page.
    pub results_truncated: bool,
    /// Events in the store.
    pub index_size: u64,
    /// When the store was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_last_updated: Option<String>,
}
