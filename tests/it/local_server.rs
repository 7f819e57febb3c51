//! A server that listens on a port of this machine, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Command, Stdio};

use serde_json::Value;

use crate::env::Running;

pub(crate) struct LocalServer {
    pub process: Running,
    pub stderr: BufReader<ChildStderr>,
    /// What it said when it was ready.
    pub said: String,
    pub port: u16,
}

pub(crate) struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl LocalServer {
    /// Starts a server, and waits until it says its address.
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = Running(command.spawn().expect("spawns"));
        let mut stderr = BufReader::new(process.0.stderr.take().expect("stderr"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("reads");
        let address = said.split("http://127.0.0.1:").nth(1);
        let port = address.and_then(|rest| rest.split('/').next()?.parse().ok());
        Self { process, stderr, port: port.unwrap_or_else(|| panic!("{said}")), said }
    }

    /// Begins a request, written by hand so that every header is in sight.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        // A server that has refused already may have closed its end.
        let _ = stream.write_all(request.as_bytes());
        stream
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let mut answer = String::new();
        let _ = self.open(method, path, headers, body).read_to_string(&mut answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Response { status: status.unwrap_or(0), head: head.to_owned(), body: body.to_owned() }
    }
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}\n{}", self.head, self.body))
    }

    /// The value of a header; empty without one.
    pub(crate) fn header(&self, name: &str) -> &str {
        let header = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = header.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value).unwrap_or_default()
    }
}
