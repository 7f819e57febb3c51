//! The streamable HTTP transport: stateless, on loopback unless told otherwise, behind a token.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::ErrorData;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

use super::Server;

/// Where requests go.
pub const PATH: &str = "/mcp";

/// Largest request; arguments are small.
const BODY_BYTES: usize = 1 << 20;

/// How long calls that run may still take when the server ends.
const GRACE: Duration = Duration::from_secs(5);

/// How to serve over HTTP.
pub struct HttpOptions {
    pub address: SocketAddr,
    /// What a client has to show; `None` asks for nothing, which only loopback may.
    pub token: Option<String>,
}

type Service = StreamableHttpService<Server, NeverSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Serves until the process is asked to end; `ready` is told the address once it is open.
pub(super) async fn serve(
    server: Server,
    options: HttpOptions,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let loopback = options.address.ip().is_loopback();
    if options.token.is_none() && !loopback {
        // The command line refuses this in better words; nothing else may slip through.
        return Err(io::Error::other("an address beyond loopback needs a token"));
    }
    let listener = TcpListener::bind(options.address).await?;
    let address = listener.local_addr()?;
    let config = config(address);
    let ended = config.cancellation_token.clone();
    let service =
        Service::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config);
    let token: Option<Arc<str>> = options.token.map(Arc::from);
    let connections = GracefulShutdown::new();
    let mut end = pin!(asked_to_end());
    // Signals are listened to from the first poll on: who hears that the server is ready may end it.
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
                // Out of file descriptors, say: others may be closed meanwhile.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let (service, token) = (service.clone(), token.clone());
        let handler = service_fn(move |request| {
            let (service, token) = (service.clone(), token.clone());
            async move { Ok::<_, Infallible>(respond(&service, token.as_deref(), request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), handler);
        let connection = connections.watch(connection);
        // A client that breaks off is no failure.
        tokio::spawn(async move { connection.await.ok() });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, connections.shutdown()).await.is_err() {
        ended.cancel();
    }
    Ok(())
}

/// Requests must name this machine as their host, and pages of other sites may not send any.
fn config(address: SocketAddr) -> StreamableHttpServerConfig {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES)
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]);
    let ip = address.ip();
    if ip.is_unspecified() {
        // Nobody knows by which names other machines call this one. A page that was rebound to
        // it has no token.
        return config.disable_allowed_hosts();
    }
    let mut hosts = config.allowed_hosts.clone();
    if !ip.is_loopback() {
        hosts.push(ip.to_string());
    }
    config.with_allowed_hosts(hosts)
}

async fn respond(service: &Service, token: Option<&str>, request: Request<Incoming>) -> Answer {
    if !is_allowed(token, request.headers()) {
        let mut answer = refusal(StatusCode::UNAUTHORIZED, "a bearer token is needed");
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    }
    if request.uri().path() != PATH {
        return refusal(StatusCode::NOT_FOUND, "the server is at /mcp");
    }
    service.handle(request).await
}

/// Compares in constant time.
fn is_allowed(token: Option<&str>, headers: &HeaderMap) -> bool {
    let Some(token) = token else { return true };
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = header.and_then(|value| value.split_once(' '));
    given.is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case("bearer")
            && bool::from(given.trim().as_bytes().ct_eq(token.as_bytes()))
    })
}

/// A refusal before the protocol is reached, in its words: some clients show nothing else.
fn refusal(status: StatusCode, message: &'static str) -> Answer {
    let error = ErrorData::invalid_request(message, None);
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Interrupt, or termination where there is such a thing. Where signals cannot be had the server
/// runs until it is killed.
async fn asked_to_end() {
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
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))])
    }

    #[test]
    fn only_the_whole_token_opens() {
        assert!(is_allowed(None, &HeaderMap::new()));
        assert!(is_allowed(Some("secret"), &headers("Bearer secret")));
        assert!(is_allowed(Some("secret"), &headers("bearer  secret")));
        for value in ["", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret"] {
            assert!(!is_allowed(Some("secret"), &headers(value)), "{value}");
        }
        assert!(!is_allowed(Some("secret"), &HeaderMap::new()));
    }

    #[test]
    fn hosts_are_those_of_the_address() {
        let hosts = |address: &str| config(address.parse().expect("address")).allowed_hosts;
        assert_eq!(hosts("127.0.0.1:80"), ["localhost", "127.0.0.1", "::1"]);
        assert!(hosts("192.0.2.7:80").iter().any(|host| host == "192.0.2.7"));
        assert!(hosts("0.0.0.0:80").is_empty());
    }
}
