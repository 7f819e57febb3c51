//! Creates the errors of the protocol for requests that are invalid or refused.

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use schemas::{ToolError, limits};

use crate::base::sanitize::{clean_text, truncate_for_json};

/// The JSON-RPC code for errors that the server defines: here, a request above the limit.
const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

/// Creates a protocol error for an invalid request. The message is cleaned and cut to a
/// limit, whatever it repeats.
pub(super) fn invalid_request(message: &str) -> ErrorData {
    ErrorData::invalid_params(
        truncate_for_json(&clean_text(message), limits::PROTOCOL_ERROR_BYTES).0.to_owned(),
        None,
    )
}

/// Converts an error of a tool to an error of the protocol. Its data are the error in the format of
/// tool answers, so that clients read the code and the waiting time in one place.
pub(super) fn refused_request(error: ToolError) -> ErrorData {
    let message = error.message.clone();
    ErrorData::new(SERVER_ERROR, message, serde_json::to_value(error).ok())
}
