//! Formats the next step as the caller would take it: a client calls tools with arguments, a user
//! at a terminal types commands with flags.

use schemas::tool::{TOOLS, flag_name};
use schemas::{ErrorCode, ToolError};

use base::shell_word::shell_word;
use search::{QueryError, QueryErrorKind};
use store::LookupError;

/// The way in which a caller makes calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Interface {
    #[default]
    Tools,
    Commands,
}

impl Interface {
    /// Returns a tool by its name: `list_sessions`, or `sessions list` at a terminal.
    pub fn tool_name(self, name: &str) -> String {
        self.format_call(name, &[])
    }

    /// Returns the names of arguments as the caller gives them: `provider, session_id`, or `--provider,
    /// --session-id` at a terminal. A description of several words stays as it is.
    pub fn argument_names(self, names: &[&str]) -> String {
        let names = names.iter().map(|name| match self {
            Self::Commands if !name.contains(' ') => format!("--{}", flag_name(name)),
            Self::Commands | Self::Tools => (*name).to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// Formats a call with these arguments: `list_sessions(limit=1)`, or `sessions list --limit 1`
    /// at a terminal. An argument that a command takes without a flag is printed as its value
    /// alone, quoted for a shell; an argument with an empty value means any value.
    pub fn format_call(self, name: &str, arguments: &[(&str, &str)]) -> String {
        let tool = TOOLS.iter().find(|tool| tool.name == name);
        let (Self::Commands, Some(tool)) = (self, tool) else {
            let arguments = arguments.iter().map(|argument| match argument {
                (name, "") => (*name).to_owned(),
                (name, value) => format!("{name}={value}"),
            });
            return match arguments.collect::<Vec<_>>().as_slice() {
                [] => name.to_owned(),
                arguments => format!("{name}({})", arguments.join(", ")),
            };
        };
        let mut line = format!("sessions {}", tool.command);
        for (name, value) in arguments {
            line.push(' ');
            if tool.position != Some(name) {
                line.push_str(&format!("--{} ", flag_name(name)));
            }
            match value.trim_matches(['[', ']']) {
                "" => line.push_str(&format!("<{name}>")),
                value => line.push_str(&shell_word(value)),
            }
        }
        line
    }

    /// Returns the error for a session that was not found, with the next step.
    pub fn lookup_error(self, id: &str, error: LookupError) -> ToolError {
        match error {
            LookupError::TooShort { least } => {
                let message = format!(
                    "'{id}' is too short. Give at least {least} characters of a session id; {} shows them",
                    self.tool_name("list_sessions")
                );
                ToolError::new(ErrorCode::InvalidSessionId, message).with_detail("session_id", id)
            }
            LookupError::NotFound { meant } => {
                let message = format!(
                    "No session starts with '{id}'. {} shows the ids",
                    self.tool_name("list_sessions")
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
            let lists = self.tool_name("list_sessions");
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

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Interface::Tools.format_call(tool, arguments), call);
            assert_eq!(Interface::Commands.format_call(tool, arguments), command);
        }
    }

    #[test]
    fn an_id_is_repeated_as_it_was_typed() {
        let missing = LookupError::NotFound { meant: None };
        let error = Interface::Commands.lookup_error("list_sessions", missing);
        assert_eq!(
            error.message,
            "No session starts with 'list_sessions'. sessions list shows the ids"
        );
    }
}
