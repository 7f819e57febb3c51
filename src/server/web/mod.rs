//! The web page of `sessions web`: a page on loopback that shows what the tools answer.
//!
//! ```text
//! GET  /                 the page, and its script and style: the same for everyone, without data
//! POST /api/login        exchanges the token of the link for a cookie; each token works once
//! POST /api/TOOL         arguments of a tool as JSON; answers the envelope of the tool
//! GET  /api/live         server-sent events: the generation of the store, whenever it changes
//! GET  /api/image        an image of an event, read from the log
//! ```
//!
//! Everything below `/api` except the login needs the cookie. All requests pass the checks of `Host`
//! and `Origin` of the MCP server, and a page of another port of this machine is refused, too.

mod access;
mod api;
pub(super) mod app;
mod live;
mod response;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use schemas::{ErrorCode, ToolError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::access::Access;
use self::response::{answer_file, refuse};
use super::connections::{HttpAnswer, RequestHandler, accept_connections, run_server};
use super::handler::{Server, ServerParts};
use crate::page::find_file;

/// The settings of the page's server.
pub struct WebOptions {
    /// The address to serve on. It must be on loopback.
    pub address: SocketAddr,
    /// Serves on any free port of the address if the port is taken.
    pub may_change_port: bool,
    /// Is called with every link that opens the page: one at the start, and the next one whenever
    /// one was used.
    pub show_link: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Serves the page until the process is asked to end.
///
/// # Errors
///
/// If the address is not on loopback or cannot be listened on.
pub fn serve_web(parts: ServerParts, options: WebOptions) -> io::Result<()> {
    run_server(serve_page(Server::new(parts, "web"), options))
}

async fn serve_page(server: Server, options: WebOptions) -> io::Result<()> {
    if !options.address.ip().is_loopback() {
        return Err(io::Error::other("the page is served on loopback only"));
    }
    let listener = listen(&options).await?;
    let access = Access::new(listener.local_addr()?, Arc::clone(&options.show_link))?;
    let (shutdown, _) = watch::channel(false);
    let site = Site {
        server,
        access: Arc::new(access),
        shutdown: Arc::new(shutdown),
        listeners: live::listener_places(),
        queue: api::CallQueue::new(),
    };
    let first = Arc::clone(&site.access);
    accept_connections(listener, site, move |_| first.show_link()).await
}

/// Listens on the address, or on another port if that is allowed.
async fn listen(options: &WebOptions) -> io::Result<TcpListener> {
    match TcpListener::bind(options.address).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && options.may_change_port => {
            TcpListener::bind(SocketAddr::new(options.address.ip(), 0)).await
        }
        bound => bound,
    }
}

/// What answers the requests of the page.
#[derive(Clone)]
struct Site {
    server: Server,
    access: Arc<Access>,
    /// Becomes true when the server ends.
    shutdown: Arc<watch::Sender<bool>>,
    /// The places of clients that listen to changes.
    listeners: live::ListenerPlaces,
    queue: api::CallQueue,
}

impl RequestHandler for Site {
    async fn answer(&self, request: Request<Incoming>) -> HttpAnswer {
        if let Err((status, message)) = self.access.check_origin(request.uri(), request.headers()) {
            return refuse(status, ErrorCode::InvalidArgument, message);
        }
        match request.uri().path().strip_prefix("/api/") {
            Some(route) => {
                let route = route.to_owned();
                self.answer_api(&route, request).await
            }
            None => answer_static(&request),
        }
    }

    fn begin_shutdown(&self) {
        self.shutdown.send_replace(true);
    }
}

impl Site {
    /// Answers a request below `/api`.
    async fn answer_api(&self, route: &str, request: Request<Incoming>) -> HttpAnswer {
        if route == "login" {
            return self.access.answer_login(request).await;
        }
        if !self.access.has_cookie(request.headers()) {
            let message = "This browser is not logged in. Open the link that `sessions web` prints";
            return refuse(StatusCode::UNAUTHORIZED, ErrorCode::InvalidArgument, message);
        }
        match (request.method(), route) {
            (&Method::GET, "live") => {
                live::answer_live(&self.server, &self.listeners, self.shutdown.subscribe())
            }
            (&Method::GET, "image") => {
                api::answer_image(&self.server, request.uri().query().unwrap_or_default()).await
            }
            (&Method::POST, _) => api::answer_tool(&self.server, &self.queue, route, request).await,
            _ => {
                let message = format!("There is no {} /api/{route}", request.method());
                let error = ToolError::new(ErrorCode::InvalidArgument, message);
                response::refuse_with(StatusCode::NOT_FOUND, error)
            }
        }
    }
}

/// Answers a request for a file of the page.
fn answer_static(request: &Request<Incoming>) -> HttpAnswer {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let message = "Only the API accepts methods other than GET";
        return refuse(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::InvalidArgument, message);
    }
    match find_file(request.uri().path()) {
        Some(file) => answer_file(file),
        None => {
            let message = "There is no such file. The page is at /";
            refuse(StatusCode::NOT_FOUND, ErrorCode::InvalidArgument, message)
        }
    }
}
