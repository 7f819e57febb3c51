//! Runs the tool that a request names, and converts its outcome to the result of the protocol.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use schemas::envelope::{ErrorAnswer, JsonAnswer};
use schemas::{ErrorCode, ToolError};
use serde_json::Value;

use super::arguments::parse_arguments;
use super::dispatcher::{AnswerContent, CallOutcome};
use tools::{Call, Tools};

/// Runs the tool of this name.
pub(super) fn run_tool(
    tools: &Tools,
    name: &str,
    arguments: Value,
    call: &Call<'_>,
) -> Result<JsonAnswer, ToolError> {
    match name {
        "search_events" => {
            Ok(tools.search_events(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "search_sessions" => {
            Ok(tools.search_sessions(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "get_event_details" => {
            Ok(tools.get_event_details(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "list_sessions" => {
            Ok(tools.list_sessions(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "analyze_session" => {
            Ok(tools.analyze_session(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "get_session_details" => {
            Ok(tools.get_session_details(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "tool_metadata" => {
            Ok(tools.tool_metadata(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "update_session_labels" => {
            Ok(tools.update_session_labels(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        "query_sql" => Ok(tools.query_sql(&parse_arguments(name, arguments)?, call)?.into_json()),
        "session_stats" => {
            Ok(tools.session_stats(&parse_arguments(name, arguments)?, call)?.into_json())
        }
        _ => Err(ToolError::new(
            ErrorCode::InternalError,
            format!("{name} is listed but not served"),
        )),
    }
}

/// Converts the outcome of a call to the result of the protocol.
pub(super) fn call_result(answered: CallOutcome) -> CallToolResult {
    let mut result = match answered.result {
        Ok(answer) => success_result(answer),
        Err(error) => failure_result(&error),
    };
    if let Ok(Value::Object(debug)) = serde_json::to_value(answered.debug) {
        result.meta = Some(MetaObject(debug));
    }
    result
}

/// Returns a successful result.
fn success_result(answer: AnswerContent) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
    result.structured_content = Some(answer.structured);
    result
}

/// Returns a failed result, as text only: some clients check structured content against the schema
/// of a success.
fn failure_result(error: &ErrorAnswer) -> CallToolResult {
    let json = serde_json::to_string(error).unwrap_or_default();
    CallToolResult::error(vec![ContentBlock::text(json)])
}

#[cfg(test)]
mod tests {
    use schemas::tool::TOOLS;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_row_is_served_and_refuses_what_it_does_not_know() {
        let folder = tempfile::tempdir().expect("tempdir");
        let tools = Tools::new(store::Store::new(folder.path()));
        let call = Call::new(schemas::Timestamp(0), &|| false);
        for spec in TOOLS {
            let error = run_tool(&tools, spec.name, json!({ "no_such_argument": 1 }), &call)
                .expect_err(spec.name);
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{}: {error}", spec.name);
        }
    }
}
