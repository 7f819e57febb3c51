//! The tables of the store as plain data. The Arrow schemas, the SQL views and the documentation of
//! the columns are all derived from them.

pub(crate) mod column;
pub(crate) mod events;

pub use column::{Column, ColumnType, Masking, Table};
pub use events::{EVENTS, EventColumn};

use column::ColumnType::{BigInt, Bool, Text, Timestamp};
use column::{OWN_WORDS, internal, optional, required};

/// The table of sessions. Of several rows of a session, the one with the highest segment number
/// counts.
pub const SESSIONS: Table = Table {
    name: "sessions",
    doc: "One row per session: one log file, one stream.",
    columns: &[
        required("session_id", Text, "The provider's id where that is unique, else with a suffix."),
        required("provider", Text, "Agent that wrote the log.").exempt_from_masking(OWN_WORDS),
        required("source_path", Text, "The log file."),
        optional("native_id", Text, "The id that the log itself names."),
        optional("parent_session_id", Text, "Session this one derives from."),
        optional(
            "relation",
            Text,
            "How: subagent_of, review_of, forked_from, resumed_from, continued_from, earlier_version_of.",
        ).exempt_from_masking(OWN_WORDS),
        optional("agent_id", Text, "Id of the subagent that wrote this log."),
        optional("title", Text, "Title of the log, else the first prompt, shortened; untrusted."),
        optional("project", Text, "Last part of the working directory."),
        optional("cwd", Text, "Working directory."),
        optional("git_branch", Text, "Last git branch."),
        optional("model", Text, "Last model."),
        optional("agent_version", Text, "Version of the agent."),
        optional("started_at", Timestamp, "First time in the log."),
        optional("ended_at", Timestamp, "Last time in the log."),
        optional(
            "time_source",
            Text,
            "Where the two times come from: record, or file (its last change, as no record has a time).",
        ).exempt_from_masking(OWN_WORDS),
        required("events", BigInt, "Events, replayed ones included."),
        required("replay_events", BigInt, "Events copied from another session."),
        required("turns", BigInt, "Turns, turn 0 not counted."),
        required("steps", BigInt, "Model responses."),
        required("user_messages", BigInt, "Prompts."),
        required("messages", BigInt, "Assistant messages."),
        required("tool_calls", BigInt, "Tool calls."),
        required("tool_errors", BigInt, "Tool results marked as failed."),
        optional("input_tokens", BigInt, "Sum, counted once, replays left out."),
        optional("output_tokens", BigInt, "Sum, counted once, replays left out."),
        optional("cache_read_tokens", BigInt, "Sum, counted once, replays left out."),
        optional("cache_write_tokens", BigInt, "Sum, counted once, replays left out."),
        optional("cache_write_1h_tokens", BigInt, "Sum, counted once, replays left out."),
        optional("reasoning_tokens", BigInt, "Sum, counted once, replays left out."),
        optional(
            "recorded_input_tokens",
            BigInt,
            "Sum as recorded in this log, copied history too.",
        ),
        optional("recorded_output_tokens", BigInt, "Sum as recorded, copied history too."),
        optional("recorded_cache_read_tokens", BigInt, "Sum as recorded, copied history too."),
        optional("recorded_cache_write_tokens", BigInt, "Sum as recorded, copied history too."),
        optional("recorded_cache_write_1h_tokens", BigInt, "Sum as recorded, copied history too."),
        optional("recorded_reasoning_tokens", BigInt, "Sum as recorded, copied history too."),
        optional(
            "usage_confidence",
            Text,
            "measured, partial (counts are missing), estimated or unknown (the log gives none).",
        ).exempt_from_masking(OWN_WORDS),
        optional(
            "usage_by_model",
            Text,
            "JSON list of the sums, counted once, by model, price mode and whether the prompt was a long one.",
        ).with_masked_json(),
        optional(
            "repository",
            Text,
            "Repository of the working directory, its address or, where none is known, its folder; worktrees share it.",
        ),
        optional(
            "abandoned",
            Text,
            "Ranges of event_index that a rewind or branch left behind, as 3-9,20-31.",
        ).exempt_from_masking("it holds numbers"),
        optional(
            "drift",
            Text,
            "JSON: record types and fields unknown to the decoder, with counts.",
        ).with_masked_json(),
        optional("redactions", Text, "JSON: secrets masked in this log, by kind.").exempt_from_masking("it holds kinds of secrets and counts"),
        optional("machine", Text, "Machine that wrote the log."),
        optional("user_name", Text, "User who ran the agent there."),
        required("source_gone", Bool, "The log file has vanished; what was ingested is kept."),
        internal("row_start", BigInt, "First row of the session in the events of this segment."),
        internal("row_count", BigInt, "Rows of the session in the events of this segment."),
        internal("live_from", BigInt, "Events of segments with a lower number are superseded."),
        internal("segment", BigInt, "Number of the segment that first held the row."),
    ],
};

/// The table of source files with the checkpoint of each. Of several rows of a path, the one with
/// the highest segment number counts.
pub const SOURCES: Table = Table {
    name: "sources",
    doc: "One row per file that was examined, with how far it was read.",
    columns: &[
        required("path", Text, "The file.").exempt_from_masking(
            "the log is opened by it; it is shown as sessions.source_path only",
        ),
        required("status", Text, "ok, empty, sidecar, unknown_format, failed, gone or excluded.")
            .exempt_from_masking(OWN_WORDS),
        optional("session_id", Text, "Session made from it."),
        optional("provider", Text, "Agent that wrote it.").exempt_from_masking(OWN_WORDS),
        required("size", BigInt, "Bytes when last read."),
        required("modified_us", BigInt, "Modification time when last read, microseconds."),
        required("consumed", BigInt, "Bytes read into events; the rest is an incomplete line."),
        required("lines", BigInt, "Lines read."),
        required("objects", BigInt, "JSON objects read."),
        required("head_hash", BigInt, "Hash of the first bytes."),
        required("head_length", BigInt, "How many bytes that hash covers."),
        required("tail_hash", BigInt, "Hash of the last bytes before `consumed`."),
        optional(
            "first_record",
            BigInt,
            "Identity of the first record; logs that share it share history.",
        ),
        optional("ancestors", Text, "Sessions whose history it may repeat, separated by spaces.")
            .exempt_from_masking("it holds session ids, which are masked as such"),
        required("redaction_rules", BigInt, "Version of the rules that masked it; 0 is none."),
        optional("state", Text, "State of the decoder at `consumed`, JSON.")
            .exempt_from_masking("decoders resume from it; nothing shows it"),
        optional("reason", Text, "Why it was not read, or not recognised when it grew."),
        optional(
            "first_response",
            BigInt,
            "Identity of the first response of the model; logs that share it share history.",
        ),
        required("decoder_version", BigInt, "Version of the decoder that read it; 0 is none."),
        internal("segment", BigInt, "Number of the segment that first held the row."),
    ],
};

/// The table of problems found while reading.
pub const PROBLEMS: Table = Table {
    name: "problems",
    doc: "One row per problem found while reading logs.",
    columns: &[
        required("path", Text, "The file."),
        required("line", BigInt, "1-based line; 0 means the whole file."),
        required("byte", BigInt, "Byte offset of the record."),
        required("kind", Text, "Stable kind of problem.").exempt_from_masking(OWN_WORDS),
        required("message", Text, "What is wrong."),
        internal("segment", BigInt, "Number of the segment that first held the row."),
    ],
};

/// All tables of the store.
pub const TABLES: &[Table] = &[EVENTS, SESSIONS, SOURCES, PROBLEMS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_documented_and_unique() {
        for table in TABLES {
            let mut names: Vec<_> = table.columns.iter().map(|c| c.name).collect();
            assert!(table.columns.iter().all(|c| c.doc.ends_with('.')), "{}", table.name);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
    }

    #[test]
    fn every_text_column_is_masked_or_says_why_not() {
        let mut exempt = Vec::new();
        for column in TABLES.iter().flat_map(|table| table.columns) {
            let is_text = matches!(column.kind, ColumnType::Text | ColumnType::TextList);
            match column.masking {
                Masking::NotText => assert!(!is_text, "{}", column.name),
                Masking::Masked => assert!(is_text, "{}", column.name),
                Masking::MaskedJson => assert_eq!(column.kind, ColumnType::Text, "{}", column.name),
                Masking::Exempt(reason) => {
                    assert!(is_text && !reason.is_empty(), "{}", column.name);
                    exempt.push(column.name);
                }
            }
        }
        exempt.sort_unstable();
        exempt.dedup();
        let known = [
            "abandoned",
            "ancestors",
            "event_type",
            "kind",
            "path",
            "provider",
            "redactions",
            "relation",
            "state",
            "status",
            "time_source",
            "tool_kind",
            "usage_confidence",
        ];
        assert_eq!(exempt, known);
    }
}
