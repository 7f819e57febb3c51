//! Completes messages before either transport writes them: adds the members of dashdash, for which
//! the types of rmcp have no fields, and cleans errors, some of which rmcp words itself.
//!
//! dashdash 0.2.0 makes `dashdash` a member of these objects, and the schema of MCP allows it:
//!
//! ```text
//! {"result": {"capabilities": …, "dashdash": {"specVersion": "0.2.0", …}}}   initialize, discover
//! {"result": {"tools": [{"name": "search_events", …, "dashdash": {"category": "search", …}}]}}
//! {"result": {"resources": [{"uri": …, "dashdash": {"resourceType": "status", …}}]}}
//! ```

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, CustomResult, JsonRpcMessage, ServerResult};
use rmcp::service::TxJsonRpcMessage;
use schemas::tool::find_servable_tool;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::protocol_error::{clean_error, clean_strings};
use super::resources;
use crate::help::dashdash;

/// The results that have members of dashdash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DashdashResult {
    /// The result of `initialize` or `server/discover`.
    Server,
    Tools,
    Resources,
    Templates,
}

impl DashdashResult {
    /// Returns the kind of the result that answers a request; `None` if it gets no members.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other request has such a result")]
    pub(super) fn of_request(request: &ClientRequest) -> Option<Self> {
        match request {
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_) => {
                Some(Self::Server)
            }
            ClientRequest::ListToolsRequest(_) => Some(Self::Tools),
            ClientRequest::ListResourcesRequest(_) => Some(Self::Resources),
            ClientRequest::ListResourceTemplatesRequest(_) => Some(Self::Templates),
            _ => None,
        }
    }

    /// Returns the kind of a result; `None` if it gets no members.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other result has members of dashdash")]
    fn of_result(result: &ServerResult) -> Option<Self> {
        match result {
            ServerResult::InitializeResult(_) | ServerResult::DiscoverResult(_) => {
                Some(Self::Server)
            }
            ServerResult::ListToolsResult(_) => Some(Self::Tools),
            ServerResult::ListResourcesResult(_) => Some(Self::Resources),
            ServerResult::ListResourceTemplatesResult(_) => Some(Self::Templates),
            _ => None,
        }
    }

    /// Adds the members to the result.
    fn add_members(self, result: &mut Value) {
        match self {
            Self::Server => {
                let block = result["capabilities"]["experimental"]["dashdash"].clone();
                result["dashdash"] = block;
            }
            Self::Tools => add_to_each(&mut result["tools"], "name", |name| {
                find_servable_tool(name).map(dashdash::tool_block)
            }),
            Self::Resources => {
                add_to_each(&mut result["resources"], "uri", resources::dashdash_block);
            }
            Self::Templates => {
                let templates = &mut result["resourceTemplates"];
                add_to_each(templates, "uriTemplate", resources::dashdash_block);
            }
        }
    }
}

/// Adds the block that `find_block` returns for the `key` of each item of a list.
fn add_to_each(list: &mut Value, key: &str, find_block: impl Fn(&str) -> Option<Value>) {
    for item in list.as_array_mut().into_iter().flatten() {
        if let Some(block) = item[key].as_str().and_then(&find_block) {
            item["dashdash"] = block;
        }
    }
}

/// Completes a message of the stdio transport.
pub(super) fn complete_message(
    message: TxJsonRpcMessage<RoleServer>,
) -> TxJsonRpcMessage<RoleServer> {
    match message {
        JsonRpcMessage::Response(mut response) => {
            if let Some(kind) = DashdashResult::of_result(&response.result)
                && let Ok(mut result) = serde_json::to_value(&response.result)
            {
                kind.add_members(&mut result);
                response.result = ServerResult::CustomResult(CustomResult::new(result));
            }
            JsonRpcMessage::Response(response)
        }
        JsonRpcMessage::Error(mut error) => {
            error.error = clean_error(error.error);
            JsonRpcMessage::Error(error)
        }
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => message,
    }
}

/// Completes the body of an answer over HTTP. `expected` is the kind of its result, if it is not an
/// error. Returns `None` if the body stays as it is.
pub(super) fn complete_body(expected: Option<DashdashResult>, body: &[u8]) -> Option<Vec<u8>> {
    /// The members that decide whether a body is changed. Large results are not parsed for it.
    #[derive(Deserialize)]
    struct Members {
        error: Option<IgnoredAny>,
    }

    let members: Members = serde_json::from_slice(body).ok()?;
    if expected.is_none() && members.error.is_none() {
        return None;
    }
    let mut message: Value = serde_json::from_slice(body).ok()?;
    if let Some(error) = message.get_mut("error") {
        clean_strings(error);
    }
    if let (Some(kind), Some(result)) = (expected, message.get_mut("result")) {
        kind.add_members(result);
    }
    serde_json::to_vec(&message).ok()
}

#[cfg(test)]
mod tests {
    use rmcp::ErrorData;
    use schemas::limits;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_changed_only_where_something_is_missing() {
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } }).to_string();
        assert_eq!(complete_body(None, answer.as_bytes()), None);
        assert_eq!(complete_body(Some(DashdashResult::Tools), b"no JSON"), None);

        let listed = json!({ "id": 1, "result": { "tools": [{ "name": "list_sessions" }, {}] } });
        let body = complete_body(Some(DashdashResult::Tools), listed.to_string().as_bytes());
        let body: Value = serde_json::from_slice(&body.expect("changed")).expect("JSON");
        assert_eq!(body["result"]["tools"][0]["dashdash"]["operationType"], "read");
        assert_eq!(body["result"]["tools"][1], json!({}));
    }

    #[test]
    fn errors_are_cleaned_and_cut_in_both_forms() {
        let hostile = format!("a\u{1b}[31mb\u{202e}c{}", "x".repeat(limits::PROTOCOL_ERROR_BYTES));
        let data = json!({ "list": [hostile.as_str()], "code": 1 });
        let error = ErrorData::invalid_request(hostile, Some(data));

        let body = json!({ "jsonrpc": "2.0", "id": null, "error": &error }).to_string();
        let body = complete_body(None, body.as_bytes()).expect("changed");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let cleaned = serde_json::to_value(clean_error(error)).expect("JSON");
        assert_eq!(body["error"], cleaned);
        for text in [&cleaned["message"], &cleaned["data"]["list"][0]] {
            let text = text.as_str().expect("text");
            assert!(text.starts_with("abcx"), "{text}");
            assert_eq!(text.len(), limits::PROTOCOL_ERROR_BYTES);
        }
        assert_eq!(cleaned["data"]["code"], 1);
    }
}
