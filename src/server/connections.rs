//! Accepts HTTP connections and answers their requests until the process is asked to end, within
//! limits of time and size. The MCP server and the web page use it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use super::host::single_value;

/// Maximum size of a body in bytes; arguments are small.
pub(super) const MAX_BODY_BYTES: usize = 1 << 20;

/// Maximum time for a client to send the body of a request, on the command line's server.
pub const MAX_BODY_TIME: Duration = Duration::from_secs(10);

/// Maximum time for a client to send the headers of a request, or to leave its connection idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of bytes that hyper buffers for a connection. Headers that are much longer are refused.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Maximum time for running calls to finish when the server ends.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Maximum time that the process waits for calls that were cut off. They notice it soon.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The answer to a request.
pub(super) type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Answers the requests of a server.
pub(super) trait RequestHandler: Clone + Send + 'static {
    /// Answers one request.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = HttpAnswer> + Send;

    /// Is called when no further request is accepted: answers that never end by themselves end now.
    fn begin_shutdown(&self) {}

    /// Is called when running calls had their time to finish, and some have not.
    fn cut_off(&self) {}
}

/// Runs a server on a thread of its own runtime, until `serve` returns.
pub(super) fn run_server(serve: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(serve);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

/// Accepts connections until the process is asked to end; `ready` is called with the address first.
pub(super) async fn accept_connections(
    listener: TcpListener,
    handler: impl RequestHandler,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let address = listener.local_addr()?;
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
        spawn_connection(stream, handler.clone(), &connections);
    }

    drop(listener);
    handler.begin_shutdown();
    if tokio::time::timeout(SHUTDOWN_GRACE, connections.shutdown()).await.is_err() {
        handler.cut_off();
    }
    Ok(())
}

/// Answers the requests of a connection on its own task, until the connection ends or `connections`
/// is shut down.
fn spawn_connection(
    stream: TcpStream,
    handler: impl RequestHandler,
    connections: &GracefulShutdown,
) {
    let service = service_fn(move |request| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(READ_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let connection = connections.watch(connection);
    // A client that closes the connection early is not a failure.
    tokio::spawn(async move { connection.await.ok() });
}

/// Returns true if the single content type of a request is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = single_value(headers, &CONTENT_TYPE) else { return false };
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Reads a whole body. The error is the status and the reason of a body that is too long, too slow
/// or incomplete. After it the connection must be closed: the next bytes on it would be the rest of
/// the body.
pub(super) async fn read_body(
    body: Incoming,
    time: Duration,
) -> Result<Bytes, (StatusCode, String)> {
    let reading = Limited::new(body, MAX_BODY_BYTES).collect();
    match tokio::time::timeout(time, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request is longer than {MAX_BODY_BYTES} bytes"),
        )),
        Ok(Err(error)) => Err((
            StatusCode::BAD_REQUEST,
            format!("the body of the request cannot be read: {error}"),
        )),
        Err(_) => Err((
            StatusCode::REQUEST_TIMEOUT,
            format!("the body of the request did not arrive within {time:?}"),
        )),
    }
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
    use hyper::header::HeaderValue;

    use super::*;

    fn content_types(values: &[&'static str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (CONTENT_TYPE, HeaderValue::from_static(value)))
            .collect::<HeaderMap>()
    }

    #[test]
    fn only_one_type_of_json_counts() {
        assert!(is_json(&content_types(&["application/json"])));
        assert!(is_json(&content_types(&["Application/JSON; charset=utf-8"])));
        for value in ["", "text/plain", "application/json-seq", "text/plain;application/json"] {
            assert!(!is_json(&content_types(&[value])), "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
