//! The table `events`: its columns are declared here, once. The row as it is read back and the names
//! for readers are derived from them in this file, the cells and builders of a batch in
//! `ingest::stream::batch`.

use serde::{Deserialize, Serialize};

use super::column::{Column, ColumnType, Masking, OWN_WORDS, Table};
use crate::event::EventType;
use crate::price::PriceMode;
use crate::provider::Provider;
use crate::usage::Usage;

/// Passes the columns of `events`, in their order, to the macro of the given name. Each column is
/// written as `column { [given Name] name: required Kind = "What it holds." }`.
///
/// * `given` columns are in the cells of an event. `derived` ones are computed from these by the code
///   that writes the batch.
/// * `Name` is the column as a value of [`EventColumn`].
/// * `required` columns are never null. `optional` ones are null where the log gives no value.
///   `internal` ones are required bookkeeping of the store, which the SQL views leave out.
/// * `Kind` is a [`ColumnType`]. For texts that are words of this program
///   it is `EventType`, `Provider` or, for any other, `Word`. A `Text` is masked.
#[macro_export]
macro_rules! event_columns {
    ($for_each:ident) => {
        $for_each! {
            column { [given SessionId] session_id: required Text = "Session the event belongs to." }
            column {
                [given EventIndex] event_index: required Int =
                    "0-based position in the session; session_id:event_index is the event id."
            }
            column {
                [given TurnIndex] turn_index: required Int =
                    "Turn; 0 is what comes before the first prompt."
            }
            column {
                [given StepIndex] step_index: required Int =
                    "Model response with its tool calls and results, counted over the session; 0 is none."
            }
            column {
                [given EventType] event_type: required EventType =
                    "user, message, reasoning, tool_call, tool_result, token_usage or notification."
            }
            column {
                [given Subtype] subtype: optional Text =
                    "Kind of a notification, or a provider's own record type."
            }
            column {
                [given Timestamp] timestamp: optional Timestamp =
                    "Time; null if the log names none."
            }
            column { [given Provider] provider: required Provider = "Agent that wrote the log." }
            column {
                [given Text] text: required Text =
                    "What the user would read: decoded, with real newlines; untrusted."
            }
            column {
                [derived TextBytes] text_bytes: required Int =
                    "Length of `text` in bytes of UTF-8."
            }
            column {
                [given ToolName] tool_name: optional Text =
                    "Tool as the provider names it, on calls and results."
            }
            column {
                [given ToolKind] tool_kind: optional Word =
                    "read, edit, write, execute, search, web, plan, agent, mcp or other, told by the tool's name."
            }
            column {
                [given ToolCallId] tool_call_id: optional Text =
                    "Joins a tool result with its call."
            }
            column {
                [given Files] files: optional TextList =
                    "Files that a tool call names, as the log writes them; on its result too."
            }
            column {
                [given Command] command: optional Text =
                    "Command line of a call that runs one; on its result too."
            }
            column {
                [given SpawnedAgentId] spawned_agent_id: optional Text =
                    "Subagent that the call started, on its result; on what a subagent said inside its parent's log, that subagent."
            }
            column {
                [given IsError] is_error: optional Bool =
                    "On tool results: whether the log marks it as failed."
            }
            column {
                [given ExitCode] exit_code: optional Int =
                    "On results of commands, where the log has it."
            }
            column {
                [given DurationMs] duration_ms: optional BigInt =
                    "On tool results, recorded or from the times of call and result."
            }
            column { [given Model] model: optional Text = "Model in force." }
            column { [given GitBranch] git_branch: optional Text = "Git branch in force." }
            column {
                [given InputTokens] input_tokens: optional BigInt =
                    "Uncached input tokens; on token_usage events."
            }
            column {
                [given OutputTokens] output_tokens: optional BigInt =
                    "Output tokens, reasoning included."
            }
            column {
                [given CacheReadTokens] cache_read_tokens: optional BigInt =
                    "Input tokens read from a cache."
            }
            column {
                [given CacheWriteTokens] cache_write_tokens: optional BigInt =
                    "Input tokens written to a cache."
            }
            column {
                [given CacheWrite1hTokens] cache_write_1h_tokens: optional BigInt =
                    "Part of those that is kept for an hour."
            }
            column {
                [given ReasoningTokens] reasoning_tokens: optional BigInt =
                    "Part of the output that was reasoning."
            }
            column {
                [given RequestId] request_id: optional Text =
                    "API request; the token counts of one request add up over its rows."
            }
            column {
                [given WebSearchRequests] web_search_requests: optional BigInt =
                    "Web searches that the provider ran for the request and charges for."
            }
            column {
                [given ServiceTier] service_tier: optional Text =
                    "Service tier of the request, as the log gives it; it decides the price."
            }
            column {
                [given Speed] speed: optional Text =
                    "Speed of the request, as the log gives it; it decides the price."
            }
            column {
                [given InferenceGeo] inference_geo: optional Text =
                    "Place of inference, as the log gives it; it decides the price."
            }
            column {
                [given IsReplay] is_replay: required Bool =
                    "History that a resume or fork copied from another session, or tokens of a response that another one counts; out of search and totals."
            }
            column {
                [given IsSidechain] is_sidechain: required Bool =
                    "Written by a subagent inside this log."
            }
            column {
                [given SourceOffset] source_offset: required BigInt =
                    "Byte offset of the record in the source file."
            }
            column {
                [given SourceLength] source_length: required BigInt =
                    "Length of the record in bytes."
            }
            column {
                [given RecordHash] record_hash: internal BigInt =
                    "Content identity of the record, for finding copied history."
            }
            column {
                [given CopyHash] copy_hash: internal BigInt =
                    "Identity of what the record says, equal in copies with new ids; 0 is none."
            }
            column {
                [given IsCountedElsewhere] is_counted_elsewhere: internal Bool =
                    "Whether another session counts the response of these tokens; is_replay is set then too."
            }
            column {
                [derived Segment] segment: internal BigInt =
                    "Number of the segment that first held the row."
            }
        }
    };
}

/// Expands to the Rust type of a value as it is read back.
macro_rules! owned {
    (optional $kind:ident) => { Option<owned!(required $kind)> };
    (internal $kind:ident) => { owned!(required $kind) };
    (required Text) => { String };
    (required Word) => { String };
    (required TextList) => { Vec<String> };
    (required EventType) => { EventType };
    (required Provider) => { Provider };
    (required Int) => { i32 };
    (required BigInt) => { i64 };
    (required Timestamp) => { i64 };
    (required Bool) => { bool };
}

/// Expands to the column as the tables describe it.
macro_rules! described {
    ($name:ident $need:ident EventType $doc:literal) => { described!($name $need Word $doc) };
    ($name:ident $need:ident Provider $doc:literal) => { described!($name $need Word $doc) };
    ($name:ident $need:ident Word $doc:literal) => {
        Column {
            masking: Masking::Exempt(OWN_WORDS),
            ..described!($name $need Text $doc)
        }
    };
    ($name:ident $need:ident $kind:ident $doc:literal) => {
        crate::table::column::$need(stringify!($name), ColumnType::$kind, $doc)
    };
}

/// Declares the table, its columns by name, and the row as it is read back.
macro_rules! declare {
    ($(column {
        [$(given $given:ident)? $(derived $derived:ident)?] $name:ident: $need:ident $kind:ident = $doc:literal
    })*) => {
        /// The table of events. The rows of a stream are contiguous and in order.
        pub const EVENTS: Table = Table {
            name: "events",
            doc: "One row per event.",
            columns: &[$(described!($name $need $kind $doc)),*],
        };

        /// A column of `events`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum EventColumn { $(#[doc = $doc] $($given)? $($derived)?),* }

        impl EventColumn {
            /// Every column, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$($given)? $($derived)?),*];

            /// Returns the column's name in the table.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$($given)? $($derived)? => stringify!($name)),* }
            }
        }

        /// A row of `events` as it is read back. Columns that were not requested are empty.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct EventRow { $(#[doc = $doc] pub $name: owned!($need $kind)),* }
    };
}

event_columns!(declare);

impl EventColumn {
    /// The columns of the token counts, in the order of the fields of [`Usage`].
    pub const TOKENS: [Self; 7] = [
        Self::InputTokens,
        Self::OutputTokens,
        Self::CacheReadTokens,
        Self::CacheWriteTokens,
        Self::CacheWrite1hTokens,
        Self::ReasoningTokens,
        Self::WebSearchRequests,
    ];

    /// The columns of the mode in which a request was served.
    pub const MODE: [Self; 3] = [Self::ServiceTier, Self::Speed, Self::InferenceGeo];
}

impl EventRow {
    /// Returns the token counts.
    pub fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
            cache_write_1h: self.cache_write_1h_tokens,
            reasoning: self.reasoning_tokens,
            web_search: self.web_search_requests,
        }
    }

    /// Returns the mode in which the request was served.
    pub fn price_mode(&self) -> PriceMode {
        PriceMode::from_log(
            self.service_tier.as_deref(),
            self.speed.as_deref(),
            self.inference_geo.as_deref(),
        )
    }
}
