//! The request `ai_help` of dashdash, and unknown requests.

use rmcp::ErrorData;
use rmcp::model::{CustomRequest, CustomResult, ErrorCode};
use schemas::limits;
use serde::Deserialize;

use super::protocol_error::invalid;
use crate::base::sanitize::head;
use crate::help::Help;

/// The parameters of `ai_help`; other fields, such as `_meta`, are ignored.
#[derive(Debug, Default, Deserialize)]
struct Params {
    #[serde(default)]
    format: Option<Format>,
    #[serde(default)]
    section: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Markdown,
    Json,
}

/// Methods of the protocol. A request for one of them reaches this module only if its parameters
/// have the wrong form.
const KNOWN: &[&str] = &[
    "tools/call",
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// Answers a request that is not part of the protocol. `complete` adds the result type that peers
/// of 2026-07-28 expect.
pub(super) fn answer(
    help: &Help,
    request: &CustomRequest,
    complete: bool,
) -> Result<CustomResult, ErrorData> {
    if request.method != "ai_help" {
        return Err(if KNOWN.contains(&request.method.as_str()) {
            invalid(&format!("{}: malformed params", request.method))
        } else {
            let method = head(&request.method, limits::PROTOCOL_ERROR_BYTES).0;
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)
        });
    }
    let wrong = |message: String| invalid(&message);
    let params: Params = request
        .params_as()
        .map_err(|error| {
            wrong(format!("ai_help: {error}. format: markdown or json; section: a name"))
        })?
        .unwrap_or_default();
    let as_json = params.format == Some(Format::Json);
    let mut result = help.answer(as_json, params.section.as_deref()).map_err(wrong)?;
    if complete {
        result["resultType"] = "complete".into();
    }
    Ok(CustomResult::new(result))
}
