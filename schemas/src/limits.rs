//! Defaults and hard caps. Bytes are UTF-8 bytes of the answer's JSON unless said otherwise.

/// Estimated tokens of an answer are its JSON bytes divided by this.
pub const BYTES_PER_TOKEN: usize = 4;

/// No answer is larger: 25,000 estimated tokens, less room for the envelope.
pub const ANSWER_BYTES: usize = 25_000 * BYTES_PER_TOKEN - 4_000;

/// Targets of `get_session_details` per detail level, in bytes of `data`.
pub const SUMMARY_BYTES: usize = 10_000;
pub const TURNS_BYTES: usize = 30_000;
pub const STEPS_BYTES: usize = 90_000;
pub const FULL_BYTES: usize = ANSWER_BYTES;

/// An error of the protocol, which may repeat what was asked.
pub const PROTOCOL_ERROR_BYTES: usize = 2_000;

/// `search_events`: matches on a page, and characters of a snippet.
pub const SEARCH_LIMIT: u32 = 10;
pub const SEARCH_LIMIT_MAX: u32 = 50;
pub const SNIPPET_CHARS: usize = 240;

/// After so many seconds a search answers `search_timeout` with what it found so far.
pub const SEARCH_SECONDS: u64 = 10;

/// `get_event_details`: ids in one call, and characters of text per event on a page.
pub const EVENT_IDS_MAX: usize = 50;
pub const EVENT_CHARS: u32 = 20_000;
pub const EVENT_CHARS_MAX: u32 = 80_000;

/// `list_sessions`: sessions on a page, and ids in a batch.
pub const LIST_LIMIT: u32 = 20;
pub const LIST_LIMIT_MAX: u32 = 100;
pub const SESSION_IDS_MAX: usize = 50;

/// `get_session_details`: turns, steps or events on a page.
pub const DETAIL_LIMIT_MAX: u32 = 500;

/// `tool_metadata`: names in one call.
pub const TOOL_NAMES_MAX: usize = 50;

/// `update_session_labels`: updates in one call, labels of a session, characters of a label and
/// of a note.
pub const LABEL_UPDATES_MAX: usize = 50;
pub const LABELS_MAX: usize = 20;
pub const LABEL_CHARS: usize = 40;
pub const NOTE_CHARS: usize = 1_000;

/// Requests a minute that a server answers (calls of tools, resources, prompts, completions and
/// `ai_help`), and milliseconds that a call may take.
pub const RATE_LIMIT: u32 = 600;
pub const CALL_MS: u64 = 30_000;

/// Milliseconds that a call waits for logs that grew to be read.
pub const REFRESH_MS: u64 = 200;

/// The same call is answered from memory for so many seconds while the store stays as it is.
pub const CACHE_SECONDS: u64 = 60;

/// `analyze_session`: findings on a page.
pub const FINDINGS_LIMIT: u32 = 20;
pub const FINDINGS_LIMIT_MAX: u32 = 100;

/// `session_stats`: groups in an answer, and spans of a trend.
pub const STATS_LIMIT: u32 = 50;
pub const STATS_LIMIT_MAX: u32 = 500;
/// Groups that a call may make before the largest are chosen; a thousand take half a megabyte.
pub const STATS_GROUPS: usize = 200_000;
pub const TREND_SPANS: usize = 12;

/// `query_sql`: rows and columns of an answer, bytes of one cell, bytes of the SQL itself.
pub const SQL_ROWS: u32 = 100;
pub const SQL_ROWS_MAX: u32 = 1000;
pub const SQL_COLUMNS_MAX: usize = 200;
pub const SQL_CELL_BYTES: usize = 8_000;
pub const SQL_BYTES: usize = 20_000;

/// What one SQL query may take: seconds, megabytes of memory, of which DuckDB manages the second
/// number itself, threads, and bytes of what the command line writes.
pub const SQL_SECONDS: u64 = 30;
pub const SQL_MEMORY_MB: u64 = 512;
pub const SQL_ENGINE_MB: u64 = 400;
pub const SQL_THREADS: i64 = 2;
pub const SQL_OUTPUT_BYTES: u64 = 1 << 30;

/// Longest query text, in bytes.
pub const QUERY_BYTES: usize = 4_096;

/// A session id is accepted as any unique prefix of at least this many characters.
pub const PREFIX_CHARS: usize = 3;
