//! Answers with the headers that every answer of the page has.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use schemas::envelope::ErrorAnswer;
use schemas::{ErrorCode, ToolError};
use serde::Serialize;

use crate::page::BundledFile;
use crate::server::connections::HttpAnswer;
use crate::server::protocol_error::clean_strings;

/// The policy of the page. Its own script and style are the only ones, it talks to its own server
/// only, no text becomes markup (`require-trusted-types-for`), and no other page may show it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// Adds the headers that every answer has.
pub(super) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Creates an answer.
pub(super) fn answer_bytes(
    status: StatusCode,
    content_type: &'static str,
    body: Bytes,
) -> HttpAnswer {
    let mut answer = Response::new(Full::new(body).boxed());
    *answer.status_mut() = status;
    add_headers(answer.headers_mut());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Answers with a file of the page.
pub(super) fn answer_file(file: &'static BundledFile) -> HttpAnswer {
    answer_bytes(StatusCode::OK, file.content_type, Bytes::from_static(file.text.as_bytes()))
}

/// Answers with JSON.
pub(super) fn answer_json(status: StatusCode, json: &impl Serialize) -> HttpAnswer {
    let json = serde_json::to_vec(json).unwrap_or_default();
    answer_bytes(status, "application/json", Bytes::from(json))
}

/// Refuses a request, in the envelope of the tools.
pub(super) fn refuse(status: StatusCode, code: ErrorCode, message: &str) -> HttpAnswer {
    refuse_with(status, ToolError::new(code, message))
}

/// Refuses a request with the error of a tool. The error may repeat any part of the request, so its
/// texts are cleaned.
pub(super) fn refuse_with(status: StatusCode, error: ToolError) -> HttpAnswer {
    let mut json = serde_json::to_value(ErrorAnswer::from(error)).unwrap_or_default();
    clean_strings(&mut json);
    answer_json(status, &json)
}

/// Refuses a request whose body could not be read, and closes its connection.
pub(super) fn refuse_body(status: StatusCode, message: &str) -> HttpAnswer {
    let mut answer = refuse(status, ErrorCode::InvalidArgument, message);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
