//! Creates the errors of the protocol for requests that are invalid or refused, and cleans all errors.

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use schemas::{ToolError, limits};
use serde_json::Value;

use base::sanitize::{clean_text, truncate_for_json};

/// The JSON-RPC code for errors that the server defines: here, a request above the limit.
const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

/// Creates a protocol error for an invalid request. The message is cleaned and cut to a
/// limit, whatever it repeats.
pub(super) fn invalid_request(message: &str) -> ErrorData {
    clean_error(ErrorData::invalid_params(message.to_owned(), None))
}

/// Converts an error of a tool to an error of the protocol. Its data are the error in the format of
/// tool answers, so that clients read the code and the waiting time in one place.
pub(super) fn refused_request(error: ToolError) -> ErrorData {
    let message = error.message.clone();
    ErrorData::new(SERVER_ERROR, message, serde_json::to_value(error).ok())
}

/// Cleans the texts of an error, which may repeat any part of the request.
pub(super) fn clean_error(error: ErrorData) -> ErrorData {
    let mut data = error.data;
    if let Some(data) = &mut data {
        clean_strings(data);
    }
    ErrorData::new(error.code, clean_and_cut(&error.message), data)
}

/// Cleans all texts of a JSON value.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON hold no text")]
pub(super) fn clean_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean_and_cut(text),
        Value::Array(items) => items.iter_mut().for_each(clean_strings),
        Value::Object(members) => members.values_mut().for_each(clean_strings),
        _ => {}
    }
}

/// Returns a text without invisible parts, cut to the limit of protocol errors.
fn clean_and_cut(text: &str) -> String {
    truncate_for_json(&clean_text(text), limits::PROTOCOL_ERROR_BYTES).0.to_owned()
}
