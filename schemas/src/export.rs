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
        /// Trajectories in the Agent Trajectory Interchange Format.
        Atif = "atif",
        /// Spans in OpenTelemetry's OTLP, as JSON.
        Otel = "otel",
        /// Messages in the Session Trace Simple Format of the Hugging Face Hub.
        Sts = "sts",
        /// The agents' own logs, from the archive, with their secrets masked.
        Logs = "logs",
    }
}

/// How the sessions of an export become files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportLayout {
    /// A folder of files for each session and day.
    Partitions,
    /// One binary file.
    OneFile,
    /// One file of lines, which can be printed.
    Lines,
    /// A file for each session. One session can be printed.
    FilePerSession,
    /// A folder of the files that each session was read from.
    LogFiles,
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
            Self::Atif => "json",
            Self::Otel | Self::Sts | Self::Logs => "jsonl",
        }
    }

    /// Returns the name of the file in this format whose name without extension is `stem`.
    pub fn file_name(self, stem: &str) -> String {
        format!("{stem}.{}", self.extension())
    }

    /// Returns how the sessions of an export become files.
    pub const fn layout(self) -> ExportLayout {
        match self {
            Self::Parquet => ExportLayout::Partitions,
            Self::Arrow => ExportLayout::OneFile,
            Self::Jsonl | Self::Otel => ExportLayout::Lines,
            Self::Markdown | Self::Html | Self::Atif | Self::Sts => ExportLayout::FilePerSession,
            Self::Logs => ExportLayout::LogFiles,
        }
    }
}
