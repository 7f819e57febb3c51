//! Runs a tool for the page. The answer is the tool's own envelope, so the page can show nothing
//! that an agent could not get.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use percent_encoding::percent_decode_str;
use schemas::ErrorCode;
use schemas::envelope::ErrorAnswer;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::response::{answer_bytes, answer_json, refuse, refuse_body, refuse_with};
use crate::server::connections::{HttpAnswer, MAX_BODY_TIME, is_json, read_body};
use crate::server::dispatcher::CallOutcome;
use crate::server::flow::{TOO_MANY_VALUES, has_too_many_values};
use crate::server::handler::Server;
use crate::server::tool_calls::ToolCall;

/// A call ends itself at its time limit. The server waits for this much longer, then gives up.
const MAX_OVERRUN: Duration = Duration::from_secs(2);

/// Maximum time that a call waits for others to end.
const MAX_TURN_WAIT: Duration = Duration::from_secs(1);

/// The same for a call for the visible events: the user is waiting for them.
const MAX_EVENTS_WAIT: Duration = Duration::from_millis(150);

/// The tools whose calls wait for no other: the reader waits for them at each key or after a click, or they
/// run in a process of their own.
const PROMPT_TOOLS: &[&str] = &["search_events", "query_sql", "update_session_labels"];

/// Lets the calls that read whole sessions or the rows of all of them run one after the other. A view
/// of the page makes several at once. Their memory would be mixed in the heap, and what one of them
/// keeps, such as an answer in the cache, would keep the freed memory of the others from being
/// returned to the system.
#[derive(Clone)]
pub(super) struct CallQueue {
    calls: Arc<Semaphore>,
    /// Calls for events in sight also wait for each other: fast scrolling makes many.
    events: Arc<Semaphore>,
}

/// The permits that a call holds while it runs.
type CallTurn = [Option<OwnedSemaphorePermit>; 2];

impl CallQueue {
    pub(super) fn new() -> Self {
        Self { calls: Arc::new(Semaphore::new(1)), events: Arc::new(Semaphore::new(1)) }
    }

    /// Waits until it is the turn of a call, which lasts until the permits are dropped. After the longest
    /// wait of its tool the call runs without one, next to a slow call.
    async fn wait_for_turn(&self, tool: &str) -> CallTurn {
        if PROMPT_TOOLS.contains(&tool) {
            return [None, None];
        }
        if tool == "get_event_details" {
            let events = acquire(&self.events, MAX_TURN_WAIT).await;
            return [events, acquire(&self.calls, MAX_EVENTS_WAIT).await];
        }
        [None, acquire(&self.calls, MAX_TURN_WAIT).await]
    }
}

/// Waits for the one permit of a queue; `None` after the longest wait.
async fn acquire(queue: &Arc<Semaphore>, longest: Duration) -> Option<OwnedSemaphorePermit> {
    tokio::time::timeout(longest, Arc::clone(queue).acquire_owned()).await.ok()?.ok()
}

/// The number of the next call, for the debug metadata.
static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

/// Stops a call when the request that made it is dropped: the reader typed on, or left.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers a call of the tool `name`.
pub(super) async fn answer_tool(
    server: &Server,
    queue: &CallQueue,
    name: &str,
    request: Request<Incoming>,
) -> HttpAnswer {
    // A form of another page cannot send this type.
    if !is_json(request.headers()) {
        let message = "The arguments of a tool are JSON: set the content type application/json";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::InvalidArgument, message);
    }
    let body = match read_body(request.into_body(), MAX_BODY_TIME).await {
        Ok(body) => body,
        Err((status, message)) => return refuse_body(status, &message),
    };
    if has_too_many_values(&body) {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return refuse(status, ErrorCode::InvalidArgument, TOO_MANY_VALUES);
    }
    let Ok(arguments @ Value::Object(_)) = serde_json::from_slice::<Value>(&body) else {
        let message = "The arguments of a tool are an object of JSON";
        return refuse(StatusCode::BAD_REQUEST, ErrorCode::InvalidArgument, message);
    };
    let id = format!("web-{}", NEXT_CALL.fetch_add(1, Ordering::Relaxed));
    let Some(call) = ToolCall::new(id, server.served(), name, arguments) else {
        let message = format!("There is no tool '{name}'");
        return refuse(StatusCode::NOT_FOUND, ErrorCode::InvalidArgument, &message);
    };
    let turn = queue.wait_for_turn(call.spec.name).await;
    answer_outcome(run_call(server, call, turn).await)
}

/// Answers with an image of an event: `event=ID&number=N`.
pub(super) async fn answer_image(server: &Server, query: &str) -> HttpAnswer {
    let mut event = String::new();
    let mut number = 0;
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "event" => event = percent_decode_str(value).decode_utf8_lossy().into_owned(),
            "number" => number = value.parse().unwrap_or(usize::MAX),
            _ => {}
        }
    }
    let server = server.clone();
    let read = tokio::task::spawn_blocking(move || server.read_image(&event, number)).await;
    match read {
        Ok(Ok(image)) => answer_bytes(StatusCode::OK, image.kind, Bytes::from(image.bytes)),
        Ok(Err(error)) => refuse_with(status_of(error.code), error),
        Err(_) => {
            let message = "The image could not be read because of an internal error";
            refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::InternalError, message)
        }
    }
}

/// Runs a call on a thread for blocking work. Its turn ends with this work.
async fn run_call(server: &Server, call: ToolCall, turn: CallTurn) -> CallOutcome {
    let call = Arc::new(call);
    let stopped = Arc::new(AtomicBool::new(false));
    let stop_on_drop = StopOnDrop(Arc::clone(&stopped));
    let work = {
        let server = server.clone();
        let call = Arc::clone(&call);
        tokio::task::spawn_blocking(move || {
            let outcome = server.answer_call(&call, &|| stopped.load(Ordering::Relaxed));
            drop(turn);
            outcome
        })
    };
    let limit = server.time_limit() + MAX_OVERRUN;
    let outcome = match tokio::time::timeout(limit, work).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) | Err(_) => server.late_outcome(&call),
    };
    drop(stop_on_drop);
    outcome
}

/// Answers with the envelope of an outcome.
fn answer_outcome(outcome: CallOutcome) -> HttpAnswer {
    match outcome.result {
        Ok(answer) => answer_json(StatusCode::OK, &answer),
        Err(ErrorAnswer { error, .. }) => refuse_with(status_of(error.code), error),
    }
}

/// Returns the status that says the same as the code of an error.
fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidArgument
        | ErrorCode::InvalidQuery
        | ErrorCode::InvalidCursor
        | ErrorCode::InvalidSessionId
        | ErrorCode::InvalidEventId
        | ErrorCode::InvalidDetailLevel
        | ErrorCode::AmbiguousSessionPrefix
        | ErrorCode::SqlError
        | ErrorCode::SqlNotAllowed => StatusCode::BAD_REQUEST,
        ErrorCode::SessionNotFound | ErrorCode::EventNotFound | ErrorCode::IndexEmpty => {
            StatusCode::NOT_FOUND
        }
        ErrorCode::RateLimitExceeded => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::SearchTimeout | ErrorCode::Cancelled => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::StoreBusy | ErrorCode::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::StoreDamaged | ErrorCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
