//! The request `ai_help` of dashdash, and unknown requests.

use rmcp::ErrorData;
use rmcp::model::{CustomRequest, CustomResult, ErrorCode};
use serde::Deserialize;

use super::protocol_error::{clean_error, invalid_request};
use crate::help::Help;

/// The parameters of `ai_help`; other fields, such as `_meta`, are ignored.
#[derive(Debug, Default, Deserialize)]
struct Params {
    #[serde(default)]
    format: Option<HelpFormat>,
    #[serde(default)]
    section: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HelpFormat {
    Markdown,
    Json,
}

/// Methods of the protocol. A request for one of them reaches this module only if its parameters
/// have the wrong form.
const KNOWN_METHODS: &[&str] = &[
    "tools/call",
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// Answers a request that is not part of the protocol. `is_modern` adds the result type that peers
/// of 2026-07-28 expect.
pub(super) fn answer_custom_request(
    help: &Help,
    request: &CustomRequest,
    is_modern: bool,
) -> Result<CustomResult, ErrorData> {
    if request.method != "ai_help" {
        return Err(unknown_method_error(&request.method));
    }

    let params: Option<Params> = request.params_as().map_err(|error| {
        invalid_request(&format!("ai_help: {error}. format: markdown or json; section: a name"))
    })?;
    let params = params.unwrap_or_default();
    let as_json = params.format == Some(HelpFormat::Json);
    let mut result = help
        .answer_request(as_json, params.section.as_deref())
        .map_err(|message| invalid_request(&message))?;
    if is_modern {
        result["resultType"] = "complete".into();
    }
    Ok(CustomResult::new(result))
}

/// Returns the error for a request of a method that this module does not answer.
fn unknown_method_error(method: &str) -> ErrorData {
    if KNOWN_METHODS.contains(&method) {
        return invalid_request(&format!("{method}: malformed params"));
    }
    clean_error(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None))
}
