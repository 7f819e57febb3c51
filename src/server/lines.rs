//! The transport over a pair of streams, one message a line. A request that is too long or no JSON
//! is answered with an error, where rmcp drops it in silence and lets the client wait; what comes
//! before a session and asks nothing is left alone, where rmcp ends the server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Deserializer, Value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Bytes read at a time.
const CHUNK: usize = 8192;

/// Bytes of the beginning and of the end of a line that are kept, to find the id of a request.
const HEAD: usize = 512;
const TAIL: usize = 128;

/// The answer to a request that cannot be read, and its id as far as that is known.
type Refusal = (ErrorData, Option<RequestId>);

/// The transport.
pub(super) struct Lines<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, Bounded<R>, W>,
    /// Requests that were too long or no JSON.
    refused: UnboundedReceiver<Refusal>,
    /// Whether a session has begun.
    begun: bool,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W) -> Self {
        let (read, refused) = Bounded::new(read, DEFAULT_MAX_LINE_LENGTH);
        Self { inner: AsyncRwTransport::new(read, write), refused, begun: false }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let (error, id) = tokio::select! {
                biased;
                Some(refusal) = self.refused.recv() => refusal,
                message = self.inner.receive() => match message {
                    Some(JsonRpcMessage::Request(request)) => {
                        self.begun |= begins(&request.request);
                        return Some(JsonRpcMessage::Request(request));
                    }
                    Some(_) if !self.begun => continue,
                    message => return message,
                },
            };
            let answer = self.inner.send(TxJsonRpcMessage::<RoleServer>::error(error, id));
            // On its own, as this future may be dropped at any time.
            drop(tokio::spawn(answer));
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Whether rmcp begins a session with this request: an `initialize`, or one that says all that
/// 2026-07-28 asks of it. It answers others and waits on.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            request.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        }
    }
}

/// Passes on lines that are short enough; of a longer one only a part, which is no JSON and is
/// ignored, and word that it came. Of a request that is no JSON word goes out too.
struct Bounded<R> {
    inner: R,
    longest: usize,
    tell: UnboundedSender<Refusal>,
    /// Of the present line, as far as it was read.
    length: usize,
    /// The whole of it, unless it is too long.
    line: Vec<u8>,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl<R> Bounded<R> {
    fn new(inner: R, longest: usize) -> (Self, UnboundedReceiver<Refusal>) {
        let (tell, told) = unbounded_channel();
        let (line, head, tail) = (Vec::new(), Vec::new(), Vec::new());
        (Self { inner, longest, tell, length: 0, line, head, tail }, told)
    }

    fn pass(&mut self, bytes: &[u8], out: &mut ReadBuf<'_>) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let was_too_long = self.length > self.longest;
            self.length += part.len();
            self.remember(part);
            let is_too_long = self.length > self.longest;
            if !is_too_long {
                out.put_slice(part);
                self.line.extend_from_slice(part);
            } else if !was_too_long {
                out.put_slice(b"\n");
                self.line = Vec::new();
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let refusal = if is_too_long {
                    Some((too_long(), request_id(&self.head, &self.tail)))
                } else {
                    no_json(&line)
                };
                if let Some(refusal) = refusal {
                    // Nobody to tell: the transport is closing.
                    let _ = self.tell.send(refusal);
                }
                self.length = 0;
                self.head.clear();
                self.tail.clear();
            }
        }
    }

    fn remember(&mut self, part: &[u8]) {
        let room = HEAD - self.head.len();
        self.head.extend(part.iter().take(room));
        self.tail.extend(part.iter().skip(part.len().saturating_sub(TAIL)));
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut bytes = [0; CHUNK];
        let before = out.filled().len();
        // To pass on nothing would be the end of the stream.
        while out.filled().len() == before {
            let (room, _) = bytes.split_at_mut(CHUNK.min(out.remaining()));
            let mut read = ReadBuf::new(room);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                break;
            }
            this.pass(read.filled(), out);
        }
        Poll::Ready(Ok(()))
    }
}

fn too_long() -> ErrorData {
    let most = DEFAULT_MAX_LINE_LENGTH >> 20;
    let message = format!("The request is longer than {most} MB. Send less at once");
    ErrorData::invalid_request(message, None)
}

/// The refusal of a request that is no JSON: half a surrogate pair, say, which some clients write
/// where a text was cut. Other lines that are none ask nothing.
fn no_json(line: &[u8]) -> Option<Refusal> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let error = serde_json::from_slice::<Value>(line).err()?;
    let id = request_id(line, line)?;
    let message = format!("The request is no JSON: {error}");
    Some((ErrorData::parse_error(message, None), Some(id)))
}

/// The id of a request of which only the beginning and the end are known: it stands before the
/// parameters or behind them.
fn request_id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    let before = head.split("\"params\"").next().unwrap_or_default();
    let first = before.find("\"id\"").and_then(|at| before.get(at..));
    let last = || tail.rfind("\"id\"").and_then(|at| tail.get(at..));
    let is_last = |rest: &str| rest.trim() == "}";
    first
        .and_then(|member| id(member, |_| true))
        .or_else(|| last().and_then(|member| id(member, is_last)))
}

/// The value of `member`, an object's member `"id": value`, if what follows it is right.
fn id(member: &str, follows: impl Fn(&str) -> bool) -> Option<RequestId> {
    let value = member.strip_prefix("\"id\"")?.trim_start().strip_prefix(':')?;
    let mut values = Deserializer::from_str(value).into_iter::<Value>();
    let id = values.next()?.ok()?;
    follows(value.get(values.byte_offset()..)?).then_some(())?;
    match id {
        Value::String(id) => Some(RequestId::String(id.into())),
        id => id.as_i64().map(RequestId::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[test]
    fn ids_are_found_before_and_behind_the_parameters() {
        let check = |head: &str, tail: &str, want: Option<RequestId>| {
            assert_eq!(request_id(head.as_bytes(), tail.as_bytes()), want, "{head} … {tail}");
        };
        check(
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"#,
            "}}\n",
            Some(RequestId::Number(7)),
        );
        check(r#"{"id" : "a", "params":{"#, "}}", Some(RequestId::String("a".into())));
        check(r#"{"method":"x","params":{"id":3,"#, r#"x"},"id":9} "#, Some(RequestId::Number(9)));
        check(r#"{"method":"x","params":{"id":3,"#, r#""id":4}}"#, None);
        check("nothing", "here", None);
    }

    #[tokio::test]
    async fn long_lines_are_cut_and_told_and_the_others_pass() {
        let long = format!("{{\"id\":5,\"params\":\"{}\"}}", "x".repeat(20_000));
        let text = format!("short\n{long}\nlast");
        let (mut bounded, mut told) = Bounded::new(text.as_bytes(), 1000);
        let mut out = String::new();
        bounded.read_to_string(&mut out).await.expect("reads");
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "short", "last"));
        assert!(lines[1].len() <= 1000);
        let id = |refusal: Option<Refusal>| refusal.and_then(|(_, id)| id);
        assert_eq!(id(told.try_recv().ok()), Some(RequestId::Number(5)));
        assert!(told.try_recv().is_err());
    }

    #[test]
    fn a_request_that_is_no_json_is_told_and_other_lines_are_not() {
        let id = |line: &str| no_json(line.as_bytes()).and_then(|(_, id)| id);
        let surrogate = r#"{"jsonrpc":"2.0","id":12,"method":"x","params":{"a":"\ud800"}}"#;
        assert_eq!(id(surrogate), Some(RequestId::Number(12)));
        let deep = format!("{{\"id\":\"a\",\"params\":{}{}}}", "[".repeat(500), "]".repeat(500));
        assert_eq!(id(&deep), Some(RequestId::String("a".into())));
        let right = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n";
        for line in [right, "\n", "garbage\n", "{\"method\":\n"] {
            assert_eq!(id(line), None, "{line}");
        }
    }
}
