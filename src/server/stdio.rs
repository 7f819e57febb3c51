//! Serves one client over a pair of streams, and ends when the client leaves.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Builder;

use super::flow::Flow;
use super::handler::{Server, ServerParts};
use super::lines::LineTransport;

/// The transport, as the debug metadata names it.
const ADAPTER: &str = "mcp_stdio";

/// Maximum time that the process waits for calls that were cut off, which notice it within
/// milliseconds, and for an answer that the client does not read. With the waiting times of
/// [`Flow`], the process ends within a second after its input.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

/// Serves the tools on stdin and stdout until stdin ends.
///
/// # Errors
///
/// If the runtime cannot be created, if the session cannot be served, or if stdout cannot be
/// written, unless the client has closed it.
pub fn serve_stdio(parts: ServerParts) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Calls have threads of their own. On those that wait for stdin and stdout, every call would be on
    // another thread, and what the allocator keeps of the memory of a call, it keeps for each thread.
    let calls = Builder::new_current_thread().build()?;
    let server = Server::new(parts, ADAPTER).with_calls_on(calls.handle());
    let result = runtime.block_on(async {
        let (read, write) = rmcp::transport::stdio();
        serve_until_useless(server, read, write, is_stdin_closed).await
    });
    let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
    calls.shutdown_timeout(SHUTDOWN_TIMEOUT);
    runtime.shutdown_timeout(deadline.saturating_duration_since(Instant::now()));
    result
}

/// Serves the tools to one client, one message per line, until `read` ends.
///
/// # Errors
///
/// If the session cannot be served, or if `write` fails, unless the client has closed it.
pub async fn serve_streams(
    parts: ServerParts,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    serve_until_useless(Server::new(parts, ADAPTER), read, write, || false).await
}

/// Serves one client until it leaves. `is_input_closed` returns true if the client has closed the
/// input.
async fn serve_until_useless(
    server: Server,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    is_input_closed: fn() -> bool,
) -> io::Result<()> {
    let flow = Arc::new(Flow::new(is_input_closed));
    let lines = LineTransport::new(read, write, Arc::clone(&flow));
    // Dropping the session cancels the calls that still run.
    let result = tokio::select! {
        result = run_session(server, lines) => result,
        () = flow.wait_until_useless() => Ok(()),
    };
    if flow.has_failed() {
        return flow.take_failure().map_or(Ok(()), Err);
    }
    result
}

/// Serves one session, from its first message to its end.
async fn run_session<R, W>(server: Server, lines: LineTransport<R, W>) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    match server.serve(lines).await {
        Ok(service) => service.waiting().await.map(|_| ()).map_err(io::Error::other),
        // A client that leaves before it has begun a session is not a failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Returns true if the client has closed its end of stdin. Pipes show it as soon as it happens, and
/// so do sockets, which some clients use instead; a file never does.
#[cfg(unix)]
fn is_stdin_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[cfg(target_os = "linux")]
    let closed = PollFlags::HUP | PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let closed = PollFlags::HUP;

    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, closed)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&at_once)).is_ok() && watched[0].revents().intersects(closed)
}

#[cfg(not(unix))]
fn is_stdin_closed() -> bool {
    false
}
