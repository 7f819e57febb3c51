//! Logs in the format for logs of any program ("Logs of your own agent" in CONTRIBUTING.md).

use std::path::{Path, PathBuf};

use schemas::Timestamp;
use serde_json::{Value, json};

use crate::env::TestEnv;

/// A log that is not written yet. Its events are a second apart, from the morning of 2026-10-29 on.
#[must_use = "write it"]
pub(crate) struct Log<'e> {
    env: &'e TestEnv,
    session: String,
    header: Value,
    lines: Vec<Value>,
    /// The time of the next event.
    time: Timestamp,
    /// Microseconds between two events.
    step_us: i64,
    /// Number of commands so far, which gives their calls ids.
    commands: usize,
}

const SECOND_US: i64 = 1_000_000;

impl<'e> Log<'e> {
    pub(crate) fn new(env: &'e TestEnv, session: &str) -> Self {
        Self {
            env,
            session: session.to_owned(),
            header: json!({ "format": "sessions", "version": 1, "session_id": session }),
            lines: Vec::new(),
            time: Timestamp::parse("2026-10-29T06:00:00Z").expect("a time"),
            step_us: SECOND_US,
            commands: 0,
        }
    }

    /// Sets a field of the header.
    pub(crate) fn header(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.header[field] = value.into();
        self
    }

    pub(crate) fn cwd(self, folder: impl AsRef<Path>) -> Self {
        self.header("cwd", &*folder.as_ref().to_string_lossy())
    }

    pub(crate) fn title(self, title: &str) -> Self {
        self.header("title", title)
    }

    /// Sets the time of the next event.
    pub(crate) fn at(mut self, time: &str) -> Self {
        self.time = Timestamp::parse(time).expect("a time");
        self
    }

    /// Gives all further events this time.
    pub(crate) fn all_at(mut self, time: &str) -> Self {
        self.step_us = 0;
        self.at(time)
    }

    /// Adds an event, at a time of its own or at the next one.
    pub(crate) fn event(mut self, mut event: Value) -> Self {
        if event.get("timestamp").is_none() {
            event["timestamp"] = json!(self.time.to_string());
        }
        self.time.0 += self.step_us;
        self.lines.push(event);
        self
    }

    pub(crate) fn events(self, events: impl IntoIterator<Item = Value>) -> Self {
        events.into_iter().fold(self, Self::event)
    }

    pub(crate) fn user(self, text: &str) -> Self {
        self.event(json!({ "type": "user", "text": text }))
    }

    pub(crate) fn message(self, text: &str) -> Self {
        self.event(json!({ "type": "message", "text": text }))
    }

    /// Adds a call of a tool.
    pub(crate) fn call(self, id: &str, tool: &str, input: impl Into<Value>) -> Self {
        let input: Value = input.into();
        self.event(
            json!({ "type": "tool_call", "tool_name": tool, "tool_call_id": id, "input": input }),
        )
    }

    /// Adds the result of a call.
    pub(crate) fn result(self, id: &str, text: &str) -> Self {
        self.event(json!({ "type": "tool_result", "tool_call_id": id, "text": text }))
    }

    /// Adds a call that edits a file, and its result.
    pub(crate) fn edit(self, file: impl AsRef<Path>, old: &str, new: &str) -> Self {
        let file = file.as_ref().to_string_lossy().into_owned();
        let input = json!({ "file_path": file, "old_string": old, "new_string": new });
        self.call("e", "Edit", input).result("e", "The file has been updated.")
    }

    /// Adds the result of a call that failed.
    pub(crate) fn failure(self, id: &str, text: &str) -> Self {
        self.event(
            json!({ "type": "tool_result", "tool_call_id": id, "text": text, "is_error": true }),
        )
    }

    /// Adds the result of a call of a command that ended with `exit_code`.
    pub(crate) fn ended(self, id: &str, output: &str, exit_code: i32) -> Self {
        self.event(json!({
            "type": "tool_result", "tool_call_id": id, "text": output, "exit_code": exit_code,
            "is_error": exit_code != 0,
        }))
    }

    /// Adds a call of the shell with this input, and its result.
    pub(crate) fn shell(mut self, input: impl Into<Value>, output: &str, exit_code: i32) -> Self {
        self.commands += 1;
        let id = format!("c{}", self.commands);
        self.call(&id, "shell", input).ended(&id, output, exit_code)
    }

    /// Adds a command and its result.
    pub(crate) fn command(self, line: &str, output: &str, exit_code: i32) -> Self {
        self.shell(json!({ "command": line }), output, exit_code)
    }

    /// Writes the log below `logs`, and returns its path.
    pub(crate) fn write(self) -> PathBuf {
        let name = format!("logs/{}.jsonl", self.session);
        self.write_to(&name)
    }

    pub(crate) fn write_to(self, name: &str) -> PathBuf {
        let lines = std::iter::once(&self.header).chain(&self.lines);
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        self.env.write(name, text)
    }

    /// Writes the log below `logs` and ingests it.
    pub(crate) fn ingest(self) -> PathBuf {
        let env = self.env;
        let path = self.write();
        env.ingest(&path);
        path
    }
}

/// A record of Claude Code with a message of `role`. `number` gives it its id and its time.
pub(crate) fn claude_record(
    session: &str,
    cwd: impl AsRef<Path>,
    number: u32,
    role: &str,
    content: impl Into<Value>,
) -> Value {
    let content: Value = content.into();
    json!({
        "type": role, "sessionId": session, "cwd": cwd.as_ref(), "version": "2.1.0",
        "uuid": format!("{number:08x}-0000-4000-8000-000000000000"),
        "timestamp": format!("2026-10-01T10:{:02}:{:02}.000Z", number / 60, number % 60),
        "message": { "role": role, "content": content },
    })
}
