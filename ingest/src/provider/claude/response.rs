//! The ids of the responses of the model, and what is remembered of them
//! (docs/formats.md#claude-code).

use std::borrow::Cow;

use schemas::Usage;
use serde::{Deserialize, Serialize};

use crate::provider::format::ResponseKey;
use crate::text::json::{JsonFields, Value};

/// One API message. Its lines share the id, the step and the usage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ApiMessage {
    pub(super) id: String,
    pub(super) step: i32,
    /// The largest counts so far.
    pub(super) usage: Usage,
    /// The largest counts of each request next to the response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) extra: Vec<Usage>,
}

/// The response that a line belongs to.
pub(super) struct ResponseLine {
    /// The id of the response. `None` if the line gives none.
    pub(super) id: Option<String>,
    /// The index of the response among the remembered ones, if an earlier line belongs to it.
    pub(super) known: Option<usize>,
    pub(super) step: i32,
}

/// Returns the id by which the lines of one request are recognized.
pub(super) fn request_id(object: Value<'_>, message: Value<'_>) -> Option<String> {
    let id = message.non_empty("id")?;
    match object.non_empty("requestId") {
        Some(request) => Some(format!("{id}:{request}")),
        None => Some(id.to_owned()),
    }
}

/// Returns the id of a request that was made next to a response, from the id of the response.
/// `position` counts these requests from 1.
pub(super) fn extra_request_id(response: &str, kind: &str, position: usize) -> String {
    format!("{response}:{kind}:{position}")
}

/// Finds the response that an id of [`request_id`] or [`extra_request_id`] names. A log of a
/// subagent's messages, or of a server in between, may lack the id of the API request.
pub(super) fn find_response(id: &str) -> ResponseKey<'_> {
    let parts: Vec<&str> = id.split(':').collect();
    match parts[..] {
        [message, request] => ResponseKey { response: message.into(), request: Some(request) },
        [message, request, kind, position] => ResponseKey {
            response: Cow::Owned([message, kind, position].join(":")),
            request: Some(request),
        },
        _ => ResponseKey { response: id.into(), request: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_found_with_and_without_its_request() {
        let key = |id: &str| {
            let key = find_response(id);
            (key.response.into_owned(), key.request.map(str::to_owned))
        };
        let request = Some("req_1".to_owned());
        assert_eq!(key("msg_1:req_1"), ("msg_1".to_owned(), request.clone()));
        assert_eq!(key("msg_1"), ("msg_1".to_owned(), None));
        let extra = "msg_1:advisor_message:2".to_owned();
        assert_eq!(
            key(&extra_request_id("msg_1:req_1", "advisor_message", 2)),
            (extra.clone(), request)
        );
        assert_eq!(key(&extra_request_id("msg_1", "advisor_message", 2)), (extra, None));
        // An id of a server in between.
        assert_eq!(key("a:b:c:d:e"), ("a:b:c:d:e".to_owned(), None));
    }
}
