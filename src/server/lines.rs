//! The transport over a pair of streams, one message per line. A request that is too long or not
//! JSON is answered with an error; rmcp alone would drop it silently and let the client wait. A
//! message before a session that needs no answer is ignored; rmcp alone would end the server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use rmcp::model::{
    ClientNotification, ClientRequest, GetExtensions, GetMeta, JsonRpcMessage, ProtocolVersion,
    RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::flow::{Flow, TOO_MANY_VALUES, has_too_many_values};
use super::outgoing::complete_message;
use super::request_id::find_request_id;

/// Maximum size of a line in bytes. The arguments of every tool fit; a longer text would take
/// several times its size in each of the answering threads.
const MAX_LINE_BYTES: usize = 512 << 10;

/// Number of bytes read at a time.
const CHUNK_BYTES: usize = 8192;

/// Number of bytes kept from the beginning of a line, to find the id of a request.
const HEAD_BYTES: usize = 512;

/// Number of bytes kept from the end of a line, to find the id of a request.
const TAIL_BYTES: usize = 128;

/// The answer to a request that cannot be read, and the request's id if it is known.
type LineRefusal = (ErrorData, Option<RequestId>);

/// A message or refusal that was read but not passed on yet, because there is no capacity for it.
enum NextInput {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    Refusal(LineRefusal),
}

/// What happens to a line of the input.
enum LineFate {
    /// It is passed on.
    Passes,
    Refused(LineRefusal),
    /// It is neither JSON nor a request.
    Ignored,
}

/// The transport.
pub(super) struct LineTransport<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, BoundedLines<R>, W>,
    /// The refusals of requests that were too long or not JSON.
    refused: UnboundedReceiver<LineRefusal>,
    /// The number of bytes of the last line that `inner` was given.
    line_bytes: Arc<AtomicUsize>,
    next: Option<NextInput>,
    /// True if a session has begun.
    has_begun: bool,
    flow: Arc<Flow>,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W, flow: Arc<Flow>) -> Self {
        let line_bytes = Arc::new(AtomicUsize::new(0));
        let (read, refused) = BoundedLines::new(read, MAX_LINE_BYTES, Arc::clone(&line_bytes));
        let inner = AsyncRwTransport::new(read, write);
        Self { inner, refused, line_bytes, next: None, has_begun: false, flow }
    }

    /// Reads until there is a message to pass on or to refuse; returns `None` at the end of the
    /// input. Nothing is lost if the future is dropped before it is ready.
    async fn read_next(&mut self) -> Option<NextInput> {
        loop {
            tokio::select! {
                biased;
                Some(refusal) = self.refused.recv() => return Some(NextInput::Refusal(refusal)),
                message = self.inner.receive() => {
                    let message = message?;
                    if let JsonRpcMessage::Request(request) = &message {
                        self.has_begun |= begins_session(&request.request);
                        return Some(NextInput::Message(Box::new(message)));
                    }
                    if self.has_begun {
                        return Some(NextInput::Message(Box::new(message)));
                    }
                }
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let permit = answered_id(&item).and_then(|id| self.flow.take_permit(id));
        let sending = self.inner.send(complete_message(item));
        let flow = Arc::clone(&self.flow);
        async move {
            let result = sending.await;
            flow.record_written(&result);
            drop(permit);
            result
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.next.is_none() {
                self.next = self.read_next().await;
            }
            let bytes = match &self.next {
                None => {
                    self.flow.record_input_ended();
                    return None;
                }
                Some(NextInput::Refusal(_)) => 0,
                Some(NextInput::Message(message))
                    if matches!(**message, JsonRpcMessage::Request(_)) =>
                {
                    self.line_bytes.load(Ordering::Relaxed)
                }
                // These messages need no answer.
                Some(NextInput::Message(message)) => {
                    let has_use = has_use(message, &self.flow);
                    let Some(NextInput::Message(message)) = self.next.take() else { return None };
                    if has_use {
                        return Some(*message);
                    }
                    continue;
                }
            };

            // The message stays in `next` until there is capacity, because this future may be
            // dropped at any time.
            let permit = self.flow.acquire_permit(bytes).await;
            match self.next.take()? {
                NextInput::Message(mut message) => {
                    if let JsonRpcMessage::Request(request) = message.as_mut() {
                        // The handler holds its capacity while it runs, even if the answer is
                        // dropped.
                        request.request.extensions_mut().insert(Arc::clone(&permit));
                        self.flow.begin_request(request.id.clone(), permit);
                    }
                    return Some(*message);
                }
                NextInput::Refusal((error, id)) => {
                    let answer = self.send(TxJsonRpcMessage::<RoleServer>::error(error, id));
                    tokio::spawn(async move {
                        // The failure is recorded where it happens.
                        let _ = answer.await;
                        drop(permit);
                    });
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Returns the id of the request that a message answers.
fn answered_id(message: &TxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Returns whether the server does anything with a message that needs no answer. rmcp starts a task
/// for every notification and keeps what it is told of requests that it does not know, so a client
/// that sends many would grow the server. Releases the capacity of a request that is cancelled.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other notification is handled")]
fn has_use(message: &RxJsonRpcMessage<RoleServer>, flow: &Flow) -> bool {
    let JsonRpcMessage::Notification(notification) = message else { return true };
    match &notification.notification {
        ClientNotification::InitializedNotification(_) => true,
        ClientNotification::CancelledNotification(cancelled) => {
            let id = cancelled.params.request_id.as_ref();
            id.is_some_and(|id| flow.take_permit(id).is_some())
        }
        _ => false,
    }
}

/// Returns true if rmcp begins a session with this request: an `initialize`, or a request with
/// everything that 2026-07-28 requires. rmcp answers other requests and keeps waiting.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other request is judged by its metadata")]
fn begins_session(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            request.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        }
    }
}

/// A reader that passes on whole lines, at most one at a time: those that are short enough, do not
/// have too many values and are JSON. It refuses other requests; what is not a request either is
/// dropped.
struct BoundedLines<R> {
    inner: R,
    max_line_bytes: usize,
    /// Receives the refusals of requests that were not passed on.
    refusals: UnboundedSender<LineRefusal>,
    /// The bytes read from `inner`, and the number of them that were used.
    chunk: Vec<u8>,
    used: usize,
    /// The number of bytes of the current line so far.
    length: usize,
    /// The current line. Only its beginning if it is too long.
    line: Vec<u8>,
    /// The end of the current line.
    tail: Vec<u8>,
    /// True if `line` is whole and is being passed on.
    is_passing: bool,
    /// The number of bytes of `line` that were passed on.
    passed: usize,
    /// The number of bytes of the last line that was passed on.
    line_bytes: Arc<AtomicUsize>,
}

impl<R> BoundedLines<R> {
    fn new(
        inner: R,
        max_line_bytes: usize,
        line_bytes: Arc<AtomicUsize>,
    ) -> (Self, UnboundedReceiver<LineRefusal>) {
        let (refusals, refused) = unbounded_channel();
        let bounded = Self {
            inner,
            max_line_bytes,
            refusals,
            chunk: Vec::new(),
            used: 0,
            length: 0,
            line: Vec::new(),
            tail: Vec::new(),
            is_passing: false,
            passed: 0,
            line_bytes,
        };
        (bounded, refused)
    }

    /// Adds the next part of the chunk to the line, up to the end of the line or of the chunk.
    fn take_part(&mut self) {
        let unread = self.chunk.get(self.used..).unwrap_or_default();
        let end = unread.iter().position(|byte| *byte == b'\n').map_or(unread.len(), |at| at + 1);
        let part = unread.get(..end).unwrap_or_default();
        self.used += end;
        self.length += end;
        self.tail.extend(part.iter().skip(end.saturating_sub(TAIL_BYTES)));
        let over = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
        let is_end = part.ends_with(b"\n");
        if self.length <= self.max_line_bytes {
            self.line.extend_from_slice(part);
        } else if self.line.len() > HEAD_BYTES {
            self.line.truncate(HEAD_BYTES);
            self.line.shrink_to_fit();
        }
        if is_end {
            self.end_line();
        }
    }

    /// Decides whether the line, which has ended, is passed on.
    fn end_line(&mut self) {
        match self.judge_line() {
            LineFate::Passes => {
                self.is_passing = true;
                self.line_bytes.store(self.length, Ordering::Relaxed);
            }
            LineFate::Refused(refusal) => {
                self.line = Vec::new();
                // A send fails only while the transport is closing.
                let _ = self.refusals.send(refusal);
            }
            LineFate::Ignored => self.line = Vec::new(),
        }
        self.length = 0;
        self.tail.clear();
    }

    /// Returns what happens to the line.
    fn judge_line(&self) -> LineFate {
        let error = if self.length > self.max_line_bytes {
            line_too_long_error()
        } else if has_too_many_values(&self.line) {
            ErrorData::invalid_request(TOO_MANY_VALUES, None)
        } else {
            return judge_json(&self.line);
        };
        LineFate::Refused((error, find_request_id(&self.line, &self.tail)))
    }

    /// Passes on the next part of the line.
    fn pass_part(&mut self, out: &mut ReadBuf<'_>) {
        let rest = self.line.get(self.passed..).unwrap_or_default();
        let part = rest.get(..out.remaining()).unwrap_or(rest);
        out.put_slice(part);
        self.passed += part.len();
        if self.passed == self.line.len() {
            self.line = Vec::new();
            self.passed = 0;
            self.is_passing = false;
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // An empty read would mean the end of the stream.
        while !this.is_passing {
            if this.used < this.chunk.len() {
                this.take_part();
                continue;
            }
            let mut bytes = [0; CHUNK_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut read))?;
            this.chunk.clear();
            this.chunk.extend_from_slice(read.filled());
            this.used = 0;
            if this.chunk.is_empty() {
                if this.length == 0 {
                    return Poll::Ready(Ok(()));
                }
                // rmcp ignores a last line without an end.
                this.line.push(b'\n');
                this.end_line();
            }
        }
        this.pass_part(out);
        Poll::Ready(Ok(()))
    }
}

/// Returns the error for a line that is too long.
fn line_too_long_error() -> ErrorData {
    let max_kb = MAX_LINE_BYTES >> 10;
    let message = format!("The request is longer than {max_kb} KB. Send less at once");
    ErrorData::invalid_request(message, None)
}

/// Returns what happens to a line that is short enough. A request that is not JSON has, for example,
/// half a surrogate pair, which some clients write when they cut a text.
fn judge_json(line: &[u8]) -> LineFate {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Err(error) = serde_json::from_slice::<Value>(line) else { return LineFate::Passes };
    let Some(id) = find_request_id(line, line) else { return LineFate::Ignored };
    let message = format!("The request is not JSON: {error}");
    LineFate::Refused((ErrorData::parse_error(message, None), Some(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// Returns the id of the request that is refused because `line` is not JSON.
    fn refused_id(line: &str) -> Option<RequestId> {
        match judge_json(line.as_bytes()) {
            LineFate::Refused((_, id)) => id,
            LineFate::Passes | LineFate::Ignored => None,
        }
    }

    #[tokio::test]
    async fn long_lines_are_refused_and_the_others_pass() {
        let fits = format!("[\"{}\"]\n", "y".repeat(9_995));
        let long = format!("{{\"id\":5,\"params\":\"{}\"}}\n", "x".repeat(20_000));
        let ends_late = format!("{{\"params\":\"{}\",\"id\":6}}", "x".repeat(10_000));
        let text = format!("{{}}\ngarbage\n\n{fits}{long}[1]\n{ends_late}");
        let (mut bounded, mut refused) =
            BoundedLines::new(text.as_bytes(), fits.len(), Arc::default());
        let mut out = String::new();
        bounded.read_to_string(&mut out).await.expect("reads");
        assert_eq!(out, format!("{{}}\n{fits}[1]\n"));
        for id in [5, 6] {
            let (_, refused_id) = refused.try_recv().expect("a refusal");
            assert_eq!(refused_id, Some(RequestId::Number(id)));
        }
        assert!(refused.try_recv().is_err());
    }

    #[test]
    fn a_request_that_is_not_json_is_refused_and_other_lines_are_not() {
        let surrogate = r#"{"jsonrpc":"2.0","id":12,"method":"x","params":{"a":"\ud800"}}"#;
        assert_eq!(refused_id(surrogate), Some(RequestId::Number(12)));
        let deep = format!("{{\"id\":\"a\",\"params\":{}{}}}", "[".repeat(500), "]".repeat(500));
        assert_eq!(refused_id(&deep), Some(RequestId::String("a".into())));
        let right = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n";
        for line in [right, "\n", "garbage\n", "{\"method\":\n"] {
            assert_eq!(refused_id(line), None, "{line}");
        }
    }
}
