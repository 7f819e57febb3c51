//! The formats and the tables that `sessions export` writes.

use crate::closed_enum::closed_enum;

closed_enum! {
    /// Form of an export.
    ExportFormat {
        /// A folder of Parquet files, one for each session and day.
        Parquet = "parquet",
        /// One Arrow IPC file.
        Arrow = "arrow",
        /// One event per line, as JSON.
        Jsonl = "jsonl",
        /// Transcripts in Markdown.
        Markdown = "markdown",
        /// Transcripts as web pages.
        Html = "html",
    }
}

closed_enum! {
    /// The rows of an export.
    ExportTable {
        /// One row for each event.
        Events = "events",
        /// One row for each session.
        Sessions = "sessions",
        /// One row for each request to a model, counted once, with its cost.
        Usage = "usage",
        /// One row for each tool call, with its result.
        ToolCalls = "tool_calls",
    }
}

impl ExportFormat {
    /// Returns the extension of the files, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Jsonl => "jsonl",
            Self::Markdown => "md",
            Self::Html => "html",
        }
    }
}
