//! Defaults and hard caps. Bytes are UTF-8 bytes of the answer's JSON unless said otherwise.

/// Estimated tokens of an answer are its JSON bytes divided by this.
pub const BYTES_PER_TOKEN: usize = 4;

/// Most bytes of an answer: 25,000 estimated tokens, less the space for the envelope.
pub const ANSWER_BYTES: usize = 25_000 * BYTES_PER_TOKEN - 4_000;

/// Target of `get_session_details` at the level `summary`, in bytes of `data`.
pub const SUMMARY_BYTES: usize = 10_000;
/// Target of `get_session_details` at the level `turns`, in bytes of `data` on a page.
pub const TURNS_BYTES: usize = 30_000;
/// `get_session_details` at the level `turns`: bytes of `data` up to which prompts and answers that are
/// cut get more than their least.
pub const TURNS_SHARED_BYTES: usize = 12_000;
/// Target of `get_session_details` at the level `steps`, in bytes of `data` on a page.
pub const STEPS_BYTES: usize = 90_000;
/// Target of `get_session_details` at the level `full`, in bytes of `data` on a page.
pub const FULL_BYTES: usize = ANSWER_BYTES;

/// Most bytes of a request's text that a protocol error repeats, and of the message of an invalid
/// request.
pub const PROTOCOL_ERROR_BYTES: usize = 2_000;

/// `search_events`: matches on a page, unless the call gives a limit.
pub const SEARCH_LIMIT: u32 = 10;
/// `search_events`: most matches on a page.
pub const SEARCH_LIMIT_MAX: u32 = 50;
/// `search_sessions`: sessions on a page, unless the call gives a limit.
pub const FIND_LIMIT: u32 = 10;
/// `search_sessions`: best sessions of an answer that have passages.
pub const FIND_WITH_PASSAGES: usize = 5;
/// `search_sessions`: most sessions on a page.
pub const FIND_LIMIT_MAX: u32 = 50;

/// `search_events`: most characters of a snippet.
pub const SNIPPET_CHARS: usize = 160;

/// `search_events`: most events shown before and after a match.
pub const SEARCH_CONTEXT_MAX: u32 = 5;
/// `search_events`: most bytes of the text of an event around a match.
pub const CONTEXT_BYTES: usize = 160;

/// `search_events` by relevance in one session: bytes that the texts of the matches share.
pub const SESSION_TEXTS_BYTES: usize = 6_000;
/// The same: most bytes of a call, of reasoning, and of a prompt or an answer after the best ones.
pub const SESSION_CALL_BYTES: usize = 600;
/// The same: most bytes of what a tool returned, and of a notification.
pub const SESSION_RESULT_BYTES: usize = 400;
/// The same: best matches whose prompts and answers may be whole.
pub const WHOLE_MATCHES: usize = 3;
/// The same: turns with the best matches, of which several later messages are shown.
pub const LATER_TURNS: usize = 2;
/// The same: most later messages of a turn, after a match that is its prompt.
pub const LATER_MESSAGES: usize = 8;
/// The same: most bytes of a later message that is not the last one of its turn.
pub const LATER_MESSAGE_BYTES: usize = 240;
/// The same: bytes that all later messages share.
pub const LATER_MESSAGES_BYTES: usize = 4_000;

/// `analyze_session` over several sessions: most events of those that are compared, the newest first.
/// More than 1 GB of logs have as many.
pub const ANALYZED_EVENTS: u64 = 1 << 19;

/// Seconds after which a search answers with what it found so far.
pub const SEARCH_SECONDS: u64 = 10;

/// `get_event_details`: most ids in one call.
pub const EVENT_IDS_MAX: usize = 50;
/// `get_event_details`: characters of text on a page, unless the call gives a number.
pub const EVENT_CHARS: u32 = 20_000;
/// `get_event_details`: most characters of text on a page.
pub const EVENT_CHARS_MAX: u32 = 80_000;

/// `get_event_details`: most events that the ids and ranges of a call name.
pub const RANGE_EVENTS_MAX: usize = 5_000;
/// `get_event_details`: most bytes of a call or of reasoning in a range.
pub const RANGE_CALL_BYTES: usize = 1_000;
/// `get_event_details`: most bytes of a result or a notification in a range.
pub const RANGE_RESULT_BYTES: usize = 300;

/// `list_sessions`: sessions on a page, unless the call gives a limit.
pub const LIST_LIMIT: u32 = 20;
/// `list_sessions`: most sessions on a page.
pub const LIST_LIMIT_MAX: u32 = 100;
/// `list_sessions`: most ids in one call.
pub const SESSION_IDS_MAX: usize = 50;

/// `get_session_details`: most turns, steps or events on a page.
pub const DETAIL_LIMIT_MAX: u32 = 500;

/// `tool_metadata`: most names in one call.
pub const TOOL_NAMES_MAX: usize = 50;

/// `update_session_labels`: most updates in one call.
pub const LABEL_UPDATES_MAX: usize = 50;
/// `update_session_labels`: most labels of a session.
pub const LABELS_MAX: usize = 20;
/// `update_session_labels`: most characters of a label.
pub const LABEL_CHARS: usize = 40;
/// `update_session_labels`: most characters of a note.
pub const NOTE_CHARS: usize = 1_000;

/// Requests a minute that a server answers (calls of tools, resources, prompts, completions and
/// `ai_help`), unless its options give another number.
pub const RATE_LIMIT: u32 = 600;
/// Milliseconds that a call to a server may take, unless its options give another number.
pub const CALL_MS: u64 = 30_000;

/// Milliseconds that a call waits for logs that grew to be read.
pub const REFRESH_MS: u64 = 200;

/// Seconds for which the same call is answered from memory while the store stays as it is.
pub const CACHE_SECONDS: u64 = 60;

/// `analyze_session`: findings on a page, unless the call gives a limit.
pub const FINDINGS_LIMIT: u32 = 20;
/// `analyze_session`: most findings on a page.
pub const FINDINGS_LIMIT_MAX: u32 = 100;

/// `session_stats`: groups in an answer, unless the call gives a limit.
pub const STATS_LIMIT: u32 = 50;
/// `session_stats`: most groups in an answer.
pub const STATS_LIMIT_MAX: u32 = 500;
/// Most groups that a call may make before the largest are chosen; a thousand groups take half a
/// megabyte.
pub const STATS_GROUPS: usize = 200_000;
/// `session_stats`: number of equal spans of time in a trend.
pub const TREND_SPANS: usize = 12;

/// `query_sql`: rows of an answer, unless the call gives a limit.
pub const SQL_ROWS: u32 = 100;
/// `query_sql`: most rows of an answer.
pub const SQL_ROWS_MAX: u32 = 1000;
/// `query_sql`: most columns of an answer.
pub const SQL_COLUMNS_MAX: usize = 200;
/// `query_sql`: most bytes of one cell.
pub const SQL_CELL_BYTES: usize = 8_000;
/// `query_sql`: most bytes of the SQL itself.
pub const SQL_BYTES: usize = 20_000;

/// Most seconds that one SQL query may take.
pub const SQL_SECONDS: u64 = 30;
/// Most memory in mebibytes that the process of one SQL query may take.
pub const SQL_MEMORY_MB: u64 = 512;
/// The part of this memory that DuckDB manages itself, in megabytes.
pub const SQL_ENGINE_MB: u64 = 400;
/// Threads of one SQL query.
pub const SQL_THREADS: i64 = 2;
/// Most bytes that the command line writes for one SQL query.
pub const SQL_OUTPUT_BYTES: u64 = 1 << 30;

/// Longest query text, in bytes.
pub const QUERY_BYTES: usize = 4_096;

/// A session id is accepted as any unique prefix of at least this many characters.
pub const PREFIX_CHARS: usize = 3;
