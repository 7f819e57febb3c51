//! The views that SQL can query, over the live rows of the tables, with documented columns and
//! example questions. They are a contract: a change that breaks queries raises [`VIEWS_VERSION`].

use crate::table::column::ColumnType::{
    BigInt, Bool, Date, Double, Int, Text, TextList, Timestamp,
};
use crate::table::column::{Column, Table, optional, required};
use crate::table::events::EVENTS;
use crate::table::{PROBLEMS, SESSIONS};

/// Version of the views.
pub const VIEWS_VERSION: u32 = 1;

/// One view.
#[derive(Debug, Clone, Copy)]
pub struct SqlView {
    /// Name of the view in SQL.
    pub name: &'static str,
    /// What a row is, as a sentence for readers.
    pub doc: &'static str,
    /// The table whose public columns it has.
    table: Option<&'static Table>,
    /// Columns that the view computes; they come last.
    own: &'static [Column],
}

impl SqlView {
    /// Returns the columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> + use<> {
        let table = self.table.map_or(&[][..], |table| table.columns);
        table.iter().filter(|column| !column.is_internal).chain(self.own)
    }
}

const SESSION: Column = required("session_id", Text, "Session.");
const TURN: Column = required("turn_index", Int, "Turn.");
const PROVIDER: Column = required("provider", Text, "Agent that wrote the log.");
const TOOL: Column = optional("tool_name", Text, "Tool as the provider names it.");
const KIND: Column = optional(
    "tool_kind",
    Text,
    "read, edit, write, execute, search, web, plan, agent, mcp or other.",
);
const CALL: Column = required("event_id", Text, "Event of the call.");
const RESULT: Column =
    optional("result_event_id", Text, "Event of its result; null when none came.");
const FAILED: Column = optional("is_error", Bool, "Whether the log marks the result as failed.");
const INPUT: Column = optional("input_tokens", BigInt, "Uncached input tokens.");
const OUTPUT: Column = optional("output_tokens", BigInt, "Output tokens, reasoning included.");
const READ: Column = optional("cache_read_tokens", BigInt, "Input tokens read from a cache.");
const WRITE: Column = optional("cache_write_tokens", BigInt, "Input tokens written to a cache.");
const REASONING: Column =
    optional("reasoning_tokens", BigInt, "Part of the output that was reasoning.");

/// Every view, those that are queried most first.
pub const VIEWS: &[SqlView] = &[
    SqlView {
        name: "sessions",
        doc: "One row per session: one log file.",
        table: Some(&SESSIONS),
        own: &[
            optional("duration_ms", BigInt, "From started_at to ended_at."),
            optional(
                "cost_usd",
                Double,
                "By the price table, without subagents; null if no model has a price.",
            ),
            optional(
                "cost_as_logged",
                Double,
                "In US dollars, as the log states it; null if it states none.",
            ),
        ],
    },
    SqlView {
        name: "events",
        doc: "One row per event, copied history (is_replay) included.",
        table: Some(&EVENTS),
        own: &[required("event_id", Text, "session_id:event_index; get_event_details takes it.")],
    },
    SqlView {
        name: "tool_calls",
        doc: "One row per tool call with its result; copied history left out.",
        table: None,
        own: &[
            CALL,
            RESULT,
            SESSION,
            required("event_index", Int, "Position of the call in the session."),
            TURN,
            required("step_index", Int, "Model response that made the call."),
            optional("timestamp", Timestamp, "When it was called."),
            PROVIDER,
            optional("model", Text, "Model in force."),
            optional("git_branch", Text, "Git branch in force."),
            optional("tool_call_id", Text, "The provider's id of the call."),
            TOOL,
            KIND,
            optional("path", Text, "First file that the call names."),
            optional("files", TextList, "All files that it names."),
            optional("command", Text, "Command line of a call that runs one."),
            FAILED,
            optional("exit_code", Int, "Of commands, where the log has it."),
            optional("duration_ms", BigInt, "From call to result."),
            required("input_bytes", Int, "Length of the call's text in bytes."),
            optional("output_bytes", Int, "Length of the result's text in bytes."),
            optional("spawned_agent_id", Text, "Subagent that the call started."),
            required("input", Text, "The call's text: its arguments; untrusted."),
            optional("output", Text, "The result's text; untrusted. null when none came."),
        ],
    },
    SqlView {
        name: "turns",
        doc: "One row per turn: a prompt and all that follows; copied history left out.",
        table: None,
        own: &[
            SESSION,
            required("turn_index", Int, "Turn; 0 is what comes before the first prompt."),
            PROVIDER,
            optional("started_at", Timestamp, "First time in it."),
            optional("ended_at", Timestamp, "Last time in it."),
            optional("duration_ms", BigInt, "Between the two."),
            optional("prompt_event_id", Text, "Event of the prompt."),
            optional("prompt", Text, "The prompt; untrusted."),
            required("events", BigInt, "Events."),
            required("steps", BigInt, "Model responses."),
            required("messages", BigInt, "Assistant messages."),
            required("tool_calls", BigInt, "Tool calls."),
            required("tool_errors", BigInt, "Tool results marked as failed."),
            INPUT,
            OUTPUT,
            READ,
            WRITE,
            REASONING,
        ],
    },
    SqlView {
        name: "usage",
        doc: "One row per API request, counted once: add up its rows for any total.",
        table: None,
        own: &[
            required("event_id", Text, "First event with its tokens."),
            SESSION,
            optional("request_id", Text, "The provider's id of the request."),
            TURN,
            required("step_index", Int, "Model response."),
            optional("timestamp", Timestamp, "When."),
            PROVIDER,
            optional("model", Text, "Model."),
            optional("git_branch", Text, "Git branch in force."),
            INPUT,
            OUTPUT,
            READ,
            WRITE,
            optional("cache_write_1h_tokens", BigInt, "Part of those that is kept for an hour."),
            REASONING,
            optional("web_search_requests", BigInt, "Web searches that are charged for."),
            optional("service_tier", Text, "Service tier, as the log gives it."),
            optional("speed", Text, "Speed, as the log gives it."),
            optional("inference_geo", Text, "Place of inference, as the log gives it."),
            optional("day", Date, "Day of the timestamp, UTC."),
            optional(
                "cost_usd",
                Double,
                "By the price table; null for a model or price mode without a price.",
            ),
        ],
    },
    SqlView {
        name: "files",
        doc: "Who touched what when: one row per file that a tool call names.",
        table: None,
        own: &[
            required("path", Text, "The file, as the log writes it."),
            CALL,
            RESULT,
            SESSION,
            required("event_index", Int, "Position of the call in the session."),
            TURN,
            optional("timestamp", Timestamp, "When."),
            PROVIDER,
            TOOL,
            KIND,
            FAILED,
            optional(
                "change",
                Text,
                "added, changed or deleted; written if the log does not say whether the file is new; null if it was not changed.",
            ),
        ],
    },
    SqlView {
        name: "lineage",
        doc: "One row per session that derives from another one.",
        table: None,
        own: &[
            SESSION,
            required(
                "parent_session_id",
                Text,
                "Session it derives from; it may not be in the store.",
            ),
            optional(
                "relation",
                Text,
                "How: subagent_of, review_of, forked_from, resumed_from, continued_from, earlier_version_of.",
            ),
            optional("agent_id", Text, "Id of the subagent that wrote it."),
            PROVIDER,
            optional("title", Text, "Its title; untrusted."),
            optional("started_at", Timestamp, "First time in its log."),
            optional("spawned_by_event_id", Text, "Result in the parent that names the subagent."),
            optional("spawned_in_turn", Int, "Turn of the parent in which that was."),
            optional("tool_call_id", Text, "Call in the parent that started it."),
        ],
    },
    SqlView {
        name: "problems",
        doc: "One row per problem found while reading logs.",
        table: Some(&PROBLEMS),
        own: &[optional("session_id", Text, "Session made from the file, if any.")],
    },
    SqlView {
        name: "labels",
        doc: "Labels and notes given to sessions.",
        table: None,
        own: &[
            SESSION,
            optional("label", Text, "Label."),
            optional("note", Text, "Note."),
            optional("updated_at", Timestamp, "When it was last changed."),
        ],
    },
];

/// A question and the SQL that answers it.
#[derive(Debug, Clone, Copy)]
pub struct ViewExample {
    /// The question as a user words it.
    pub question: &'static str,
    /// The SELECT that answers it.
    pub sql: &'static str,
}

/// Example questions; a test runs them.
pub const EXAMPLES: &[ViewExample] = &[
    ViewExample {
        question: "Which tool fails most?",
        sql: "SELECT tool_name, count(*) AS calls, count(*) FILTER (is_error) AS errors, \
              round(errors / count(output_bytes), 3) AS error_rate FROM tool_calls GROUP BY tool_name ORDER BY errors DESC",
    },
    ViewExample {
        question: "What do tokens cost by day and model?",
        sql: "SELECT day, model, sum(output_tokens) AS output, sum(cost_usd) AS usd FROM usage \
              GROUP BY day, model ORDER BY day DESC, usd DESC NULLS LAST",
    },
    ViewExample {
        question: "Which sessions cost most?",
        sql: "SELECT session_id, title, project, round(cost_usd, 2) AS usd FROM sessions \
              ORDER BY usd DESC NULLS LAST LIMIT 10",
    },
    ViewExample {
        question: "Which sessions changed this file, and how?",
        sql: "SELECT session_id, change, count(*) AS times, max(timestamp) AS last FROM files \
              WHERE path LIKE '%retry.rs' AND change IS NOT NULL GROUP BY ALL ORDER BY last DESC",
    },
    ViewExample {
        question: "Why did the last session with a failure fail?",
        sql: "SELECT r.event_id, r.tool_name, left(r.text, 300) AS message FROM events r WHERE r.is_error \
              AND r.session_id = (SELECT session_id FROM sessions WHERE tool_errors > 0 ORDER BY ended_at DESC LIMIT 1) \
              ORDER BY r.event_index DESC LIMIT 5",
    },
    ViewExample {
        question: "Which commands fail again and again?",
        sql: "SELECT command, count(*) AS failures, max(timestamp) AS last FROM tool_calls \
              WHERE is_error AND command IS NOT NULL GROUP BY command ORDER BY failures DESC LIMIT 20",
    },
    ViewExample {
        question: "Which results fill the context?",
        sql: "SELECT tool_name, event_id, output_bytes FROM tool_calls ORDER BY output_bytes DESC NULLS LAST LIMIT 10",
    },
    ViewExample {
        question: "How long do turns take, and how many responses do they need?",
        sql: "SELECT provider, count(*) AS turns, median(duration_ms) AS median_ms, \
              quantile_cont(duration_ms, 0.95) AS p95_ms, avg(steps) AS steps FROM turns WHERE turn_index > 0 GROUP BY provider",
    },
    ViewExample {
        question: "What did subagents do, and where were they started?",
        sql: "SELECT l.session_id, l.title, l.spawned_by_event_id, s.tool_calls, s.output_tokens \
              FROM lineage l JOIN sessions s USING (session_id) WHERE l.relation = 'subagent_of'",
    },
    ViewExample {
        question: "How do the tokens of this week compare with those of the week before?",
        sql: "SELECT date_trunc('week', day) AS week, sum(input_tokens) AS input, \
              sum(cache_read_tokens) AS cache_read, sum(output_tokens) AS output FROM usage GROUP BY week ORDER BY week DESC LIMIT 2",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_documented_and_unique() {
        for view in VIEWS {
            let mut names: Vec<_> = view.columns().map(|column| column.name).collect();
            let columns = names.len();
            assert!(view.columns().all(|column| column.doc.ends_with('.')), "{}", view.name);
            assert!(view.columns().all(|column| !column.is_internal), "{}", view.name);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), columns, "{}", view.name);
        }
    }
}
