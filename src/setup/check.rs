//! Checks a registration: the client's file has the entry, and the server that it names starts and
//! lists its tools.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use schemas::client::Client;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Registration, edit};
use crate::files::outfile::{find_place, open_target};
use base::shell_word::shell_line;

/// Clients give up on a server that takes about this long to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of checking the registration with one client.
#[derive(Debug, Serialize)]
pub struct RegistrationCheck {
    pub client: Client,
    /// The client's configuration file, as the client would read it.
    pub path: String,
    /// True if the file has the entry for this program.
    pub is_registered: bool,
    /// The number of tools that the server lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Milliseconds until the server listed its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// What is wrong, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The results of checking several registrations.
#[derive(Debug, Serialize)]
pub struct RegistrationChecks {
    pub checks: Vec<RegistrationCheck>,
}

/// Checks a registration. The server is started with the arguments of the entry and without the
/// variable that names a store, which the client would not pass.
pub fn check_registration(registration: &Registration) -> RegistrationCheck {
    let mut check = RegistrationCheck {
        client: registration.client,
        path: registration.path.display().to_string(),
        is_registered: false,
        tools: None,
        start_ms: None,
        problem: None,
    };
    match has_entry(registration) {
        Ok(true) => check.is_registered = true,
        Ok(false) => {
            check.problem = Some(format!(
                "{} has no entry for this program. Run `sessions setup {} --write`",
                check.path, check.client
            ));
            return check;
        }
        Err(reason) => {
            check.problem = Some(format!("{} cannot be read: {reason}", check.path));
            return check;
        }
    }

    let started = Instant::now();
    match count_tools(&registration.server) {
        Ok(tools) => {
            check.tools = Some(tools);
            check.start_ms = u64::try_from(started.elapsed().as_millis()).ok();
        }
        Err(reason) => {
            check.problem = Some(format!("`{}` {reason}", shell_line(&registration.server)));
        }
    }
    check
}

/// Returns true if adding the entry would not change the file.
fn has_entry(registration: &Registration) -> Result<bool, String> {
    let path = find_place(&registration.path).map_err(|error| error.message)?;
    let text = match open_target(&path).and_then(io::read_to_string) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let edited = edit::add_entry(&path, &text, &registration.entry)?;
    Ok(edited == text)
}

/// Starts the server and returns the number of its tools. The error completes a sentence that
/// begins with the command.
fn count_tools(server: &[String]) -> Result<usize, String> {
    let Some((program, arguments)) = server.split_first() else {
        return Err("names no program".to_owned());
    };
    let mut command = Command::new(program);
    command.args(arguments).env_remove("SESSIONS_STORE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let answer = request_tools(&mut child);
    // Closing its input ends the server. It is not given long to do so.
    drop(child.stdin.take());
    let _ = child.kill();
    let _ = child.wait();
    let answer = answer?;
    let tools = answer["result"]["tools"].as_array();
    tools.map(Vec::len).ok_or_else(|| format!("lists no tools: {answer}"))
}

/// Sends the requests of a client, and returns the answer with the tools.
fn request_tools(child: &mut Child) -> Result<Value, String> {
    let (Some(input), Some(output)) = (child.stdin.as_mut(), child.stdout.take()) else {
        return Err("has no stdin and stdout".to_owned());
    };
    let client = json!({ "name": "sessions-setup", "version": env!("CARGO_PKG_VERSION") });
    let requests = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    for request in requests {
        let sent = writeln!(input, "{request}").and_then(|()| input.flush());
        sent.map_err(|error| format!("ends before it answers: {error}"))?;
    }

    let (sender, receiver) = mpsc::channel();
    // The thread ends when the server closes its output, at the latest when it is killed.
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let line = receiver.recv_timeout(remaining).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => {
                format!("does not answer within {} s", START_TIMEOUT.as_secs())
            }
            mpsc::RecvTimeoutError::Disconnected => "ends before it answers".to_owned(),
        })?;
        let message: Value = serde_json::from_str(&line)
            .map_err(|_| format!("prints a line that is not JSON: {line}"))?;
        if message["id"] == 2 {
            return Ok(message);
        }
    }
}
