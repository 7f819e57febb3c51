//! The streamable HTTP transport: stateless, on loopback by default, and protected by a token.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};

use super::flow::{TOO_MANY_VALUES, has_too_many_values};
use super::handler::{Server, ServerParts};
use super::host::{HostFilter, single_value};
use super::outgoing::{DashdashResult, complete_body};
use super::protocol_error::clean_error;

/// The path that accepts requests.
pub const MCP_PATH: &str = "/mcp";

/// Maximum size of a body in bytes; arguments are small.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Maximum time for a client to send the body of a request, on the command line's server.
pub const MAX_BODY_TIME: Duration = Duration::from_secs(10);

/// Maximum time for a client to send the headers of a request, or to leave its connection idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of bytes that hyper buffers for a connection. Headers that are much longer are refused.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Maximum time for running calls to finish when the server ends.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Maximum time that the process waits for calls that were cut off. They notice it soon.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(1);

/// The settings for serving over HTTP.
pub struct HttpOptions {
    pub address: SocketAddr,
    /// The token that a client has to send. `None` requires no token, which is allowed only on
    /// loopback.
    pub token: Option<String>,
    /// Maximum time for a client to send the body of a request.
    pub body_time: Duration,
}

/// The checks that a request has to pass before it reaches the protocol.
struct RequestChecks {
    hosts: HostFilter,
    token: Option<String>,
    body_time: Duration,
}

type McpService = StreamableHttpService<Server, NeverSessionManager>;
type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Serves over HTTP until the process is asked to end; `ready` is called with the address.
pub fn serve_http(
    parts: ServerParts,
    options: HttpOptions,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result =
        runtime.block_on(serve_connections(Server::new(parts, "mcp_http"), options, ready));
    runtime.shutdown_timeout(SHUTDOWN_PATIENCE);
    result
}

/// Serves until the process is asked to end; `ready` is called with the address once it is open.
async fn serve_connections(
    server: Server,
    options: HttpOptions,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let is_loopback = options.address.ip().is_loopback();
    if options.token.is_none() && !is_loopback {
        // The command line refuses this with a better message; this check covers every other
        // caller.
        return Err(io::Error::other("an address beyond loopback needs a token"));
    }

    let listener = TcpListener::bind(options.address).await?;
    let address = listener.local_addr()?;
    let config = protocol_config();
    let ended = config.cancellation_token.clone();
    let service = McpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let checks = Arc::new(RequestChecks {
        hosts: HostFilter::new(address),
        token: options.token,
        body_time: options.body_time,
    });

    let connections = GracefulShutdown::new();
    let mut end = pin!(wait_for_shutdown_signal());
    // The first poll registers the signal handlers: once `ready` is called, a signal may come.
    tokio::select! {
        biased;
        () = &mut end => return Ok(()),
        () = std::future::ready(()) => ready(address),
    }

    loop {
        let stream = tokio::select! {
            () = &mut end => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // For example, no file descriptors are left: other connections may close in the
                // meantime.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        spawn_connection(stream, service.clone(), Arc::clone(&checks), &connections);
    }

    drop(listener);
    if tokio::time::timeout(SHUTDOWN_GRACE, connections.shutdown()).await.is_err() {
        ended.cancel();
    }
    Ok(())
}

/// Answers the requests of a connection on its own task, until the connection ends or `connections`
/// is shut down.
fn spawn_connection(
    stream: TcpStream,
    service: McpService,
    checks: Arc<RequestChecks>,
    connections: &GracefulShutdown,
) {
    let handler = service_fn(move |request| {
        let service = service.clone();
        let checks = Arc::clone(&checks);
        async move { Ok::<_, Infallible>(answer_request(&service, &checks, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(READ_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), handler);
    let connection = connections.watch(connection);
    // A client that closes the connection early is not a failure.
    tokio::spawn(async move { connection.await.ok() });
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
    checks: &RequestChecks,
    request: Request<Incoming>,
) -> HttpAnswer {
    if let Err((status, message)) = checks.hosts.check_headers(request.uri(), request.headers()) {
        return json_refusal(status, ErrorData::invalid_request(message, None), None);
    }
    if !has_valid_token(checks.token.as_deref(), request.headers()) {
        let mut answer = plain_refusal(StatusCode::UNAUTHORIZED, "a bearer token is needed");
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    }
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
        Err(answer) => return answer,
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

/// Returns true if the single content type of a request is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = single_value(headers, &CONTENT_TYPE) else { return false };
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Reads a whole body. The error is the answer to a body that is too long, too slow or incomplete.
async fn read_body(body: Incoming, time: Duration) -> Result<Bytes, HttpAnswer> {
    let reading = Limited::new(body, MAX_BODY_BYTES).collect();
    let mut answer = match tokio::time::timeout(time, reading).await {
        Ok(Ok(body)) => return Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("the request is longer than {MAX_BODY_BYTES} bytes");
            let error = ErrorData::invalid_request(message, None);
            json_refusal(StatusCode::PAYLOAD_TOO_LARGE, error, None)
        }
        Ok(Err(error)) => {
            let message = format!("the body of the request cannot be read: {error}");
            json_refusal(StatusCode::BAD_REQUEST, ErrorData::invalid_request(message, None), None)
        }
        Err(_) => {
            let message = format!("the body of the request did not arrive within {time:?}");
            json_refusal(
                StatusCode::REQUEST_TIMEOUT,
                ErrorData::invalid_request(message, None),
                None,
            )
        }
    };
    // The next bytes on this connection would be the rest of the body.
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Err(answer)
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
        format!("the request is not a message of JSON-RPC 2.0: {error}")
    };
    let id = match value.get("id") {
        Some(Value::String(id)) => Some(RequestId::String(id.as_str().into())),
        Some(id) => id.as_i64().map(RequestId::Number),
        None => None,
    };
    let error = ErrorData::invalid_request(message, None);
    Err(Box::new(json_refusal(StatusCode::BAD_REQUEST, error, id)))
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

/// Waits for an interrupt or, if the system has it, a termination signal. If signals are
/// unavailable, the server runs until it is killed.
async fn wait_for_shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                Ok(()) = tokio::signal::ctrl_c() => return,
                Some(()) = terminate.recv() => return,
                else => {}
            }
        }
    }
    #[cfg(not(unix))]
    {
        if tokio::signal::ctrl_c().await.is_ok() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
    }

    fn content_types(values: &[&'static str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (CONTENT_TYPE, HeaderValue::from_static(value)))
            .collect::<HeaderMap>()
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
    fn a_token_or_a_type_that_is_given_twice_does_not_count() {
        let mut twice = headers("Bearer secret");
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
        assert!(!has_valid_token(Some("secret"), &twice));
        assert!(is_json(&content_types(&["application/json"])));
        assert!(is_json(&content_types(&["Application/JSON; charset=utf-8"])));
        for value in ["", "text/plain", "application/json-seq", "text/plain;application/json"] {
            assert!(!is_json(&content_types(&[value])), "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
