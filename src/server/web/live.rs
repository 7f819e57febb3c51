//! Reports changes of the store to the page as server-sent events.
//!
//! ```text
//! retry: 1000
//!
//! data: {"generation":41}
//! ```

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use schemas::ErrorCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::response::{add_headers, refuse};
use crate::server::connections::HttpAnswer;
use crate::server::handler::Server;

/// Interval between checks of the store. With the time that the watcher of the logs waits, a new
/// event is on the page within a second.
const CHECK_PERIOD: Duration = Duration::from_millis(250);

/// Number of checks after which a comment is sent, so that a client that left is noticed.
const CHECKS_PER_COMMENT: u32 = 60;

/// Maximum number of pages that listen at the same time.
const MAX_LISTENERS: usize = 16;

/// The places of pages that listen.
pub(super) type ListenerPlaces = Arc<Semaphore>;

/// Creates the places of pages that listen.
pub(super) fn listener_places() -> ListenerPlaces {
    Arc::new(Semaphore::new(MAX_LISTENERS))
}

/// A body that sends what comes through a channel.
struct ChannelBody(mpsc::Receiver<Bytes>);

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Answers with the generation of the store now and after every change, until the client leaves or
/// `shutdown` becomes true.
pub(super) fn answer_live(
    server: &Server,
    places: &ListenerPlaces,
    shutdown: watch::Receiver<bool>,
) -> HttpAnswer {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        let message = "Too many pages are open. Close one of them";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::RateLimitExceeded, message);
    };
    let (send, receive) = mpsc::channel(4);
    tokio::spawn(send_changes(server.clone(), shutdown, send, place));
    let mut answer = Response::new(ChannelBody(receive).boxed());
    add_headers(answer.headers_mut());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer
}

/// Sends the generation of the store whenever it changes. `_place` is free again afterwards.
async fn send_changes(
    server: Server,
    mut shutdown: watch::Receiver<bool>,
    send: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    if send.send(Bytes::from_static(b"retry: 1000\n\n")).await.is_err() {
        return;
    }
    let mut sent = None;
    let mut checks = 0;
    loop {
        let state = {
            let server = server.clone();
            tokio::task::spawn_blocking(move || server.generation()).await
        };
        let current = state.ok().flatten();
        let message = if current != sent {
            sent = current;
            format!("data: {{\"generation\":{}}}\n\n", current.unwrap_or(0))
        } else if checks % CHECKS_PER_COMMENT == 0 {
            ": \n\n".to_owned()
        } else {
            String::new()
        };
        checks += 1;
        if !message.is_empty() && send.send(Bytes::from(message)).await.is_err() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(CHECK_PERIOD) => {}
            () = send.closed() => return,
            _ = shutdown.wait_for(|is_ending| *is_ending) => return,
        }
    }
}
