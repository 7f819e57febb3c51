//! Formats the next step as the caller would take it: a client calls the tools that its server serves,
//! with arguments, a user at a terminal types commands with flags.

use schemas::tool::{ServedTools, ToolSpec, find_servable_tool, flag_name, memory};
use schemas::{ErrorCode, ToolError};

use base::shell_word::shell_word;
use search::{QueryError, QueryErrorKind};
use store::LookupError;

/// The tools whose calls the small tool answers as well.
const TOOLS_IN_MEMORY: &[&str] = &[
    "analyze_session",
    "get_event_details",
    "get_session_details",
    "list_sessions",
    "search_events",
    "search_sessions",
];

/// The arguments of these tools that the small tool has by the same name.
const ARGUMENTS_IN_MEMORY: &[&str] =
    &["query", "session_id", "turns", "project", "provider", "since", "until", "limit", "cursor"];

/// The way in which a caller makes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// Calls of these tools.
    Tools(ServedTools),
    Commands,
}

impl Default for Interface {
    fn default() -> Self {
        Self::Tools(ServedTools::ALL)
    }
}

impl Interface {
    /// Returns true for a user at a terminal.
    pub fn is_terminal(self) -> bool {
        self == Self::Commands
    }

    /// Returns the tools that the caller can call, or their commands.
    pub fn served_tools(self) -> ServedTools {
        match self {
            Self::Tools(served) => served,
            Self::Commands => ServedTools::ALL,
        }
    }

    /// Returns a tool by its name: `list_sessions`, or `sessions list` at a terminal.
    pub fn tool_name(self, name: &str) -> String {
        self.format_call(name, &[])
    }

    /// Returns a tool by its name, for a sentence. A command is quoted.
    fn quoted_name(self, name: &str) -> String {
        let name = self.tool_name(name);
        if self.is_terminal() { format!("`{name}`") } else { name }
    }

    /// Returns the names of arguments as the caller gives them: `provider, session_id`, or `--provider,
    /// --session-id` at a terminal. A description of several words stays as it is.
    pub fn argument_names(self, names: &[&str]) -> String {
        let names = names.iter().map(|name| match self {
            Self::Commands if !name.contains(' ') => format!("--{}", flag_name(name)),
            Self::Commands | Self::Tools(_) => (*name).to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// Formats a call with these arguments: `list_sessions(limit=1)`, or `sessions list --limit 1`
    /// at a terminal. An argument that a command takes without a flag is printed as its value
    /// alone, quoted for a shell; an argument with an empty value means any value.
    ///
    /// Instead of a tool that is not served, it is the call of the small tool that answers the same, or
    /// else the command. A name that is not a tool's stays as it is.
    pub fn format_call(self, name: &str, arguments: &[(&str, &str)]) -> String {
        let Some(tool) = find_servable_tool(name) else {
            return format_tool_call(name, arguments);
        };
        let Self::Tools(served) = self else { return format_command(tool, arguments) };
        if served.includes(name) {
            return format_tool_call(name, arguments);
        }
        if served.includes(memory::SPEC.name) && TOOLS_IN_MEMORY.contains(&name) {
            return format_memory_call(name, arguments);
        }
        format!("`{}`", format_command(tool, arguments))
    }

    /// Returns the error for a session that was not found, with the next step.
    pub fn lookup_error(self, id: &str, error: LookupError) -> ToolError {
        match error {
            LookupError::TooShort { least } => {
                let message = format!(
                    "'{id}' is too short. Give at least {least} characters of a session id; {} shows them",
                    self.quoted_name("list_sessions")
                );
                ToolError::new(ErrorCode::InvalidSessionId, message).with_detail("session_id", id)
            }
            LookupError::NotFound { meant } => {
                let message = format!(
                    "No session starts with '{id}'. {} shows the ids",
                    self.quoted_name("list_sessions")
                );
                ToolError::new(ErrorCode::SessionNotFound, message)
                    .with_detail("session_id", id)
                    .with_suggestion(meant.as_deref())
            }
            LookupError::Ambiguous { sessions, candidates } => {
                let message =
                    format!("Prefix '{id}' matches {sessions} sessions. Give more characters");
                ToolError::new(ErrorCode::AmbiguousSessionPrefix, message)
                    .with_detail("prefix", id)
                    .with_detail("matches", candidates)
            }
        }
    }

    /// Returns the error for a query that cannot be parsed, with the position.
    pub fn query_error(self, error: &QueryError) -> ToolError {
        let mut message = format!("query: {error}");
        if error.kind == QueryErrorKind::NothingToFind {
            let lists = self.quoted_name("list_sessions");
            message.push_str(&format!("; {lists} lists sessions without a query"));
        }
        let mut answer = ToolError::new(ErrorCode::InvalidQuery, message);
        if let Some(position) = error.position {
            answer = answer.with_detail("position", position);
        }
        match &error.kind {
            QueryErrorKind::WrongTime { value, .. }
            | QueryErrorKind::UnknownQualifier { written: value } => {
                answer.with_detail("value", value.as_str())
            }
            QueryErrorKind::TooLong { .. }
            | QueryErrorKind::NothingToFind
            | QueryErrorKind::OpenQuote
            | QueryErrorKind::NoValue { .. }
            | QueryErrorKind::MissingTerm { .. }
            | QueryErrorKind::ExcludedNextToOr
            | QueryErrorKind::WrongRegex { .. } => answer,
        }
    }
}

/// Returns the names with which the condition is true.
pub fn given<const N: usize>(names: [(&'static str, bool); N]) -> Vec<&'static str> {
    names.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
}

/// Formats a call of a tool: its name, and its arguments in parentheses if it has any.
fn format_tool_call(name: &str, arguments: &[(&str, &str)]) -> String {
    if arguments.is_empty() {
        return name.to_owned();
    }
    format!("{name}({})", join_arguments(arguments))
}

/// Formats the call of the small tool that answers what a call of another tool does. The small tool
/// does not have all arguments of the others, and takes an event id as its query.
fn format_memory_call(name: &str, arguments: &[(&str, &str)]) -> String {
    let mut kept = Vec::new();
    for (argument, value) in arguments {
        match (*argument, *value) {
            ("event_ids", _) => kept.push(("query", "<event_id>")),
            ("detail_level", "turns") => kept.push(("turns", "1-")),
            (argument, value) if ARGUMENTS_IN_MEMORY.contains(&argument) => {
                kept.push((argument, value));
            }
            _ => {}
        }
    }
    // The name of a tool alone stands for its usual call.
    match (name, arguments) {
        ("search_events", []) => kept.push(("query", "\"<words>\"")),
        ("search_sessions", []) => kept.push(("query", "<the question>")),
        ("get_event_details", []) => kept.push(("query", "<event_id>")),
        ("get_session_details", []) => kept.push(("session_id", "")),
        ("analyze_session", _) => kept.push(("explain", "true")),
        _ => {}
    }
    // Without arguments, the name alone would read like a noun.
    format!("{}({})", memory::SPEC.name, join_arguments(&kept))
}

fn join_arguments(arguments: &[(&str, &str)]) -> String {
    let arguments = arguments.iter().map(|argument| match argument {
        (name, "") => (*name).to_owned(),
        (name, value) => format!("{name}={value}"),
    });
    arguments.collect::<Vec<_>>().join(", ")
}

/// Formats the command that does the same as a tool.
fn format_command(tool: &ToolSpec, arguments: &[(&str, &str)]) -> String {
    let mut line = format!("sessions {}", tool.command);
    for (name, value) in arguments {
        line.push(' ');
        if tool.position != Some(*name) {
            line.push_str(&format!("--{} ", flag_name(name)));
        }
        match value.trim_matches(['[', ']']) {
            "" => line.push_str(&format!("<{name}>")),
            value => line.push_str(&shell_word(value)),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_not_served_is_another_call() {
        let memory = Interface::Tools(ServedTools::MEMORY);
        for (tool, arguments, call) in [
            ("list_sessions", &[][..], "sessions()"),
            ("search_events", &[], "sessions(query=\"<words>\")"),
            ("get_event_details", &[], "sessions(query=<event_id>)"),
            (
                "search_events",
                &[("query", "<the question>"), ("session_id", "9ae8"), ("sort", "relevance")],
                "sessions(query=<the question>, session_id=9ae8)",
            ),
            ("get_event_details", &[("event_ids", "[...]")], "sessions(query=<event_id>)"),
            (
                "get_session_details",
                &[("session_id", "9ae8"), ("detail_level", "turns")],
                "sessions(session_id=9ae8, turns=1-)",
            ),
            ("analyze_session", &[("session_id", "")], "sessions(session_id, explain=true)"),
            ("query_sql", &[("sql", "SELECT 1")], "`sessions query 'SELECT 1'`"),
        ] {
            assert_eq!(memory.format_call(tool, arguments), call);
        }
        let one = Interface::Tools(ServedTools::from_names(&["query_sql".to_owned()]));
        assert_eq!(one.tool_name("list_sessions"), "`sessions list`");
        assert_eq!(one.tool_name("query_sql"), "query_sql");
    }

    #[test]
    fn calls_are_commands_at_a_terminal() {
        for (tool, arguments, call, command) in [
            ("list_sessions", &[][..], "list_sessions", "sessions list"),
            (
                "list_sessions",
                &[("label", "x"), ("limit", "2")],
                "list_sessions(label=x, limit=2)",
                "sessions list --label x --limit 2",
            ),
            (
                "list_sessions",
                &[("session_ids", "[...]")],
                "list_sessions(session_ids=[...])",
                "sessions list --session-id ...",
            ),
            (
                "get_event_details",
                &[("event_ids", "[...]")],
                "get_event_details(event_ids=[...])",
                "sessions event ...",
            ),
            (
                "get_session_details",
                &[("session_id", "ID"), ("detail_level", "steps")],
                "get_session_details(session_id=ID, detail_level=steps)",
                "sessions show ID --detail-level steps",
            ),
            (
                "search_events",
                &[("query", "<the question>"), ("session_id", "x$(y)'")],
                "search_events(query=<the question>, session_id=x$(y)')",
                "sessions search '<the question>' --session-id 'x$(y)'\\'",
            ),
            (
                "analyze_session",
                &[("session_id", "")],
                "analyze_session(session_id)",
                "sessions analyze <session_id>",
            ),
        ] {
            assert_eq!(Interface::default().format_call(tool, arguments), call);
            assert_eq!(Interface::Commands.format_call(tool, arguments), command);
        }
    }

    #[test]
    fn an_id_is_repeated_as_it_was_typed() {
        let missing = LookupError::NotFound { meant: None };
        let error = Interface::Commands.lookup_error("list_sessions", missing);
        assert_eq!(
            error.message,
            "No session starts with 'list_sessions'. `sessions list` shows the ids"
        );
    }
}
