//! Runs the tool that a request names, and converts its outcome to the result of the protocol.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use schemas::envelope::{ErrorAnswer, Severity, ToolAnswer, Warning, WarningCode};
use schemas::tool::ToolAlias;
use schemas::{ErrorCode, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::parse_arguments;
use super::dispatcher::CallOutcome;
use crate::tools::{Call, Tools};

/// Runs the tool of this name.
pub(super) fn run_tool(
    tools: &Tools,
    name: &str,
    arguments: Value,
    call: &Call<'_>,
) -> Result<ToolAnswer<Value>, ToolError> {
    match name {
        "search_events" => {
            into_json_answer(tools.search_events(&parse_arguments(name, arguments)?, call)?)
        }
        "get_event_details" => {
            into_json_answer(tools.get_event_details(&parse_arguments(name, arguments)?, call)?)
        }
        "list_sessions" => {
            into_json_answer(tools.list_sessions(&parse_arguments(name, arguments)?, call)?)
        }
        "analyze_session" => {
            into_json_answer(tools.analyze_session(&parse_arguments(name, arguments)?, call)?)
        }
        "get_session_details" => {
            into_json_answer(tools.get_session_details(&parse_arguments(name, arguments)?, call)?)
        }
        "tool_metadata" => {
            into_json_answer(tools.tool_metadata(&parse_arguments(name, arguments)?, call)?)
        }
        "update_session_labels" => {
            into_json_answer(tools.update_session_labels(&parse_arguments(name, arguments)?, call)?)
        }
        "query_sql" => into_json_answer(tools.query_sql(&parse_arguments(name, arguments)?, call)?),
        "session_stats" => {
            into_json_answer(tools.session_stats(&parse_arguments(name, arguments)?, call)?)
        }
        _ => Err(ToolError::new(
            ErrorCode::InternalError,
            format!("{name} is listed but not served"),
        )),
    }
}

/// Converts the data of an answer to JSON.
fn into_json_answer<T: Serialize>(answer: ToolAnswer<T>) -> Result<ToolAnswer<Value>, ToolError> {
    answer.into_json().map_err(|error| ToolError::new(ErrorCode::InternalError, error.to_string()))
}

/// Converts the outcome of a call to the result of the protocol.
pub(super) fn call_result(answered: CallOutcome) -> CallToolResult {
    let mut result = match answered.result {
        Ok(answer) => success_result(answer),
        Err(error) => failure_result(error),
    };
    if let Ok(Value::Object(debug)) = serde_json::to_value(answered.debug) {
        result.meta = Some(MetaObject(debug));
    }
    result
}

/// Returns a successful result. Both forms have the same content: a client shows the model one or
/// the other.
fn success_result(answer: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
    result.structured_content = Some(answer);
    result
}

/// Returns a failed result, as text only: some clients check structured content against the schema
/// of a success.
fn failure_result(error: ToolError) -> CallToolResult {
    let json = serde_json::to_string(&ErrorAnswer::from(error)).unwrap_or_default();
    CallToolResult::error(vec![ContentBlock::text(json)])
}

/// Returns the answer with a warning that the tool was called by an earlier name.
pub(super) fn add_rename_warning(mut answer: Value, alias: ToolAlias, name: &str) -> Value {
    let warning = Warning {
        code: WarningCode::ToolRenamed,
        message: format!(
            "{} was renamed to {name}; the old name may stop working on {}",
            alias.name, alias.sunset
        ),
        severity: Severity::Warning,
    };
    if let (Some(answer), Ok(warning)) = (answer.as_object_mut(), serde_json::to_value(warning)) {
        let warnings = answer.entry("warnings").or_insert_with(|| json!([]));
        if let Some(warnings) = warnings.as_array_mut() {
            warnings.push(warning);
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use schemas::tool::TOOLS;

    use super::*;

    #[test]
    fn every_row_is_served_and_refuses_what_it_does_not_know() {
        let folder = tempfile::tempdir().expect("tempdir");
        let tools = Tools::new(crate::store::Store::new(folder.path()));
        let call = Call::new(schemas::Timestamp(0), &|| false);
        for spec in TOOLS {
            let error = run_tool(&tools, spec.name, json!({ "no_such_argument": 1 }), &call)
                .expect_err(spec.name);
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{}: {error}", spec.name);
        }
    }

    #[test]
    fn an_answer_to_an_earlier_name_says_so() {
        let alias = ToolAlias { name: "grep_sessions", sunset: "2027-06-01" };
        let answer = add_rename_warning(json!({ "status": "ok" }), alias, "search_events");
        assert_eq!(answer["warnings"][0]["code"], "TOOL_RENAMED");
        assert!(
            answer["warnings"][0]["message"].as_str().is_some_and(|m| m.contains("2027-06-01"))
        );
    }
}
