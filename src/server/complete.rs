//! Completion of the arguments of prompts and resource templates.

use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use schemas::ToolError;

use super::{prompts, resources};
use tools::Tools;

/// Completes the value that was typed for an argument.
#[expect(clippy::wildcard_enum_match_arm, reason = "others cannot be completed")]
pub(super) fn complete(
    tools: &Tools,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let argument = &request.argument;
    let values = match &request.r#ref {
        Reference::Prompt(prompt) if prompts::is_known(&prompt.name) => {
            match argument.name.as_str() {
                name if !prompts::has_argument(&prompt.name, name) => Ok(Vec::new()),
                "session_id" => tools.complete_session(&argument.value),
                "project" => tools.complete_project(&argument.value),
                _ => Ok(Vec::new()),
            }
        }
        Reference::Resource(template) if template.uri == resources::SESSION_TEMPLATE => {
            tools.complete_session(&argument.value)
        }
        Reference::Resource(template) if template.uri == resources::EVENT_TEMPLATE => {
            // The number after the colon is known only from the session's details.
            tools
                .complete_session(&argument.value)
                .map(|ids| ids.into_iter().map(|id| format!("{id}:")).collect())
        }
        _ => return Err(ErrorData::invalid_params("no such prompt or resource template", None)),
    };
    completion_result(values)
}

/// Returns at most as many values as the protocol allows, and the total number.
fn completion_result(values: Result<Vec<String>, ToolError>) -> Result<CompleteResult, ErrorData> {
    let mut values = values.map_err(|error| ErrorData::internal_error(error.message, None))?;
    let total = u32::try_from(values.len()).ok();
    let more = values.len() > CompletionInfo::MAX_VALUES;
    values.truncate(CompletionInfo::MAX_VALUES);
    let completion = CompletionInfo::with_pagination(values, total, more)
        .map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(completion))
}
