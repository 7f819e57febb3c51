//! The streamable HTTP transport: stateless, on loopback by default, and protected by a token.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

use super::connections::{
    HttpAnswer, MAX_BODY_BYTES, RequestHandler, accept_connections, is_json, read_body, run_server,
};
use super::flow::{TOO_MANY_VALUES, has_too_many_values};
use super::handler::{Server, ServerParts};
use super::host::{HostFilter, single_value};
use super::outgoing::{DashdashResult, complete_body};
use super::protocol_error::clean_error;

/// The path that accepts requests.
pub const MCP_PATH: &str = "/mcp";

/// The transport, as the debug metadata names it.
const ADAPTER: &str = "mcp_http";

/// The settings for serving over HTTP.
pub struct HttpOptions {
    pub address: SocketAddr,
    /// The token that a client has to send. `None` requires no token, which is allowed only on
    /// loopback.
    pub token: Option<String>,
    /// The readers, each with a token of its own. If there are some, no other token is accepted.
    pub readers: Vec<HttpReader>,
    /// Maximum time for a client to send the body of a request.
    pub body_time: Duration,
}

/// A reader with a token of its own.
pub struct HttpReader {
    /// SHA-256 of the token.
    pub token_sha256: [u8; 32],
    /// The server that the reader talks to, whose tools see what the reader may see.
    pub parts: ServerParts,
}

/// The checks that a request has to pass before it reaches the protocol.
struct RequestChecks {
    hosts: HostFilter,
    token: Option<String>,
    body_time: Duration,
}

type McpService = StreamableHttpService<Server, NeverSessionManager>;

/// The service of a reader.
struct ReaderService {
    token_sha256: [u8; 32],
    service: McpService,
}

/// Answers requests to the protocol.
#[derive(Clone)]
struct ProtocolHandler {
    service: McpService,
    readers: Arc<[ReaderService]>,
    checks: Arc<RequestChecks>,
    /// Its token ends the calls that are running.
    config: StreamableHttpServerConfig,
}

impl RequestHandler for ProtocolHandler {
    async fn answer(&self, request: Request<Incoming>) -> HttpAnswer {
        answer_request(&self.service, &self.readers, &self.checks, request).await
    }

    fn cut_off(&self) {
        self.config.cancellation_token.cancel();
    }
}

/// Serves over HTTP until the process is asked to end; `ready` is called with the address.
pub fn serve_http(
    parts: ServerParts,
    options: HttpOptions,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    run_server(serve_connections(Server::new(parts, ADAPTER), options, ready))
}

/// Serves until the process is asked to end; `ready` is called with the address once it is open.
async fn serve_connections(
    server: Server,
    options: HttpOptions,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let is_loopback = options.address.ip().is_loopback();
    if options.token.is_none() && options.readers.is_empty() && !is_loopback {
        // The command line refuses this with a better message; this check covers every other
        // caller.
        return Err(io::Error::other("an address beyond loopback needs a token"));
    }

    let listener = TcpListener::bind(options.address).await?;
    let config = protocol_config();
    let service = create_service(server, &config);
    let mut readers = Vec::new();
    for reader in options.readers {
        let server = Server::new(reader.parts, ADAPTER);
        let service = create_service(server, &config);
        readers.push(ReaderService { token_sha256: reader.token_sha256, service });
    }
    let checks = Arc::new(RequestChecks {
        hosts: HostFilter::new(listener.local_addr()?),
        token: options.token,
        body_time: options.body_time,
    });
    let readers = readers.into();
    accept_connections(listener, ProtocolHandler { service, readers, checks, config }, ready).await
}

/// Creates the part of the protocol that rmcp handles.
fn create_service(server: Server, config: &StreamableHttpServerConfig) -> McpService {
    McpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config.clone(),
    )
}

/// Returns the configuration of the part of the protocol that rmcp handles. Hosts and origins are
/// checked before.
fn protocol_config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .disable_allowed_hosts()
        .disable_allowed_origins()
}

/// Answers one request: refuses it, or passes it on to the protocol.
async fn answer_request(
    service: &McpService,
    readers: &[ReaderService],
    checks: &RequestChecks,
    request: Request<Incoming>,
) -> HttpAnswer {
    if let Err((status, message)) = checks.hosts.check_headers(request.uri(), request.headers()) {
        return json_refusal(status, ErrorData::invalid_request(message, None), None);
    }
    let allowed = if readers.is_empty() {
        has_valid_token(checks.token.as_deref(), request.headers()).then_some(service)
    } else {
        find_reader(readers, request.headers())
    };
    let Some(service) = allowed else {
        let mut answer = plain_refusal(StatusCode::UNAUTHORIZED, "a bearer token is needed");
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    };
    if request.uri().path() != MCP_PATH {
        return plain_refusal(StatusCode::NOT_FOUND, "the server is at /mcp");
    }
    if request.method() != Method::POST {
        // The body is not read.
        return to_protocol_refusal(service.handle(request).await).await;
    }

    let (mut head, body) = request.into_parts();
    if !is_json(&head.headers) {
        // Without a content type, rmcp refuses the request, and also reports if `Accept` is wrong.
        head.headers.remove(CONTENT_TYPE);
        let request = Request::from_parts(head, Full::new(Bytes::new()));
        return to_protocol_refusal(service.handle(request).await).await;
    }
    let body = match read_body(body, checks.body_time).await {
        Ok(body) => body,
        Err((status, message)) => return body_refusal(status, message),
    };
    let message = match parse_message(&body) {
        Ok(message) => message,
        Err(answer) => return *answer,
    };
    let expected = match &message {
        JsonRpcMessage::Request(request) => DashdashResult::of_request(&request.request),
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Error(_) => None,
    };
    let request = Request::from_parts(head, Full::new(body));
    let answer = to_protocol_refusal(service.handle(request).await).await;
    complete_answer(expected, answer).await
}

/// Completes an answer of rmcp. An answer as a stream of events is passed on: it follows messages
/// about the progress of a tool, whose own errors are clean.
async fn complete_answer(expected: Option<DashdashResult>, answer: HttpAnswer) -> HttpAnswer {
    if !is_json(answer.headers()) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes);
    let body = complete_body(expected, &body).map_or(body, Bytes::from);
    // hyper sets the length of the new body.
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Full::new(body).boxed())
}

/// Returns the refusal of a request whose body could not be read.
fn body_refusal(status: StatusCode, message: String) -> HttpAnswer {
    let mut answer = json_refusal(status, ErrorData::invalid_request(message, None), None);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Parses the message in a body. The error is the answer to a body that is not JSON or not a message
/// of the protocol.
fn parse_message(body: &[u8]) -> Result<ClientJsonRpcMessage, Box<HttpAnswer>> {
    if has_too_many_values(body) {
        let error = ErrorData::invalid_request(TOO_MANY_VALUES, None);
        return Err(Box::new(json_refusal(StatusCode::PAYLOAD_TOO_LARGE, error, None)));
    }
    let error = match serde_json::from_slice(body) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => {
            let error = ErrorData::parse_error(format!("the request is not JSON: {error}"), None);
            return Err(Box::new(json_refusal(StatusCode::BAD_REQUEST, error, None)));
        }
    };
    let message = if value.is_array() {
        "batches are not supported: send one request at a time".to_owned()
    } else {
        format!("the request is not a JSON-RPC 2.0 message: {error}")
    };
    let id = match value.get("id") {
        Some(Value::String(id)) => Some(RequestId::String(id.as_str().into())),
        Some(id) => id.as_i64().map(RequestId::Number),
        None => None,
    };
    let error = ErrorData::invalid_request(message, None);
    Err(Box::new(json_refusal(StatusCode::BAD_REQUEST, error, id)))
}

/// Returns the service of the reader whose token a request has. The time does not depend on which
/// reader that is, nor on how much of a token is right.
fn find_reader<'r>(readers: &'r [ReaderService], headers: &HeaderMap) -> Option<&'r McpService> {
    let credentials = single_value(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
    let (scheme, sent_token) = credentials?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let sent = Sha256::digest(sent_token.trim().as_bytes());
    let mut found = None;
    for reader in readers {
        if bool::from(sent.as_slice().ct_eq(&reader.token_sha256)) {
            found = Some(&reader.service);
        }
    }
    found
}

/// Returns true if a request has the required `token`, or none is required. The comparison takes
/// constant time.
fn has_valid_token(token: Option<&str>, headers: &HeaderMap) -> bool {
    let Some(token) = token else { return true };
    let credentials = single_value(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
    credentials.is_some_and(|(scheme, sent_token)| {
        scheme.eq_ignore_ascii_case("bearer")
            && bool::from(sent_token.trim().as_bytes().ct_eq(token.as_bytes()))
    })
}

/// Creates a refusal of a request that is not a message of the protocol.
fn plain_refusal(status: StatusCode, message: &'static str) -> HttpAnswer {
    json_refusal(status, ErrorData::invalid_request(message, None), None)
}

/// Creates a refusal in the format of the protocol, because some clients show nothing else. It is
/// used before the protocol handles the request.
fn json_refusal(status: StatusCode, error: ErrorData, id: Option<RequestId>) -> HttpAnswer {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": clean_error(error) }).to_string();
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Converts a refusal of rmcp, which may be plain text, to the format of the protocol.
async fn to_protocol_refusal(answer: HttpAnswer) -> HttpAnswer {
    let status = answer.status();
    let is_refusal = status.is_client_error() || status.is_server_error();
    if !is_refusal || is_json(answer.headers()) {
        return answer;
    }
    let (head, body) = answer.into_parts();
    let Ok(text) = body.collect().await.map(http_body_util::Collected::to_bytes);
    let message = String::from_utf8_lossy(&text).into_owned();
    let mut refusal = json_refusal(status, ErrorData::invalid_request(message, None), None);
    if let Some(methods) = head.headers.get(ALLOW) {
        refusal.headers_mut().insert(ALLOW, methods.clone());
    }
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
    }

    #[test]
    fn only_the_whole_token_opens() {
        assert!(has_valid_token(None, &HeaderMap::new()));
        assert!(has_valid_token(Some("secret"), &headers("Bearer secret")));
        assert!(has_valid_token(Some("secret"), &headers("bearer  secret")));
        for value in ["", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret"] {
            assert!(!has_valid_token(Some("secret"), &headers(value)), "{value}");
        }
        assert!(!has_valid_token(Some("secret"), &HeaderMap::new()));
    }

    #[test]
    fn a_token_that_is_given_twice_does_not_count() {
        let mut twice = headers("Bearer secret");
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
        assert!(!has_valid_token(Some("secret"), &twice));
    }
}
