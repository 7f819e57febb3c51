//! Reads the tasks of Warp, messages of Protocol Buffers, as records (docs/formats.md#warp).
//!
//! ```text
//! task     1 id  2 title  3 {1 task that started it}  5 messages
//! message  1 id  14 {1 seconds 2 nanoseconds}  and one of: 2 user_query {1 text 2 context}
//!          3 agent_output {1 text}  4 tool_call {1 id, one of the tools}
//!          5 tool_call_result {1 id, one of the results, 11 context}  15 agent_reasoning {1 text}
//! context  1 {1 folder}
//! ```

use serde_json::{Value as Json, json};

use crate::provider::shared::protobuf::{WireMessage, struct_json};

/// A task of a conversation.
pub(super) struct Task {
    /// The task that started this one. `None` for the conversation itself.
    pub(super) parent: Option<String>,
    pub(super) title: String,
    pub(super) messages: Vec<TaskMessage>,
}

/// A message of a task.
pub(super) struct TaskMessage {
    /// Microseconds since 1970.
    pub(super) time_us: Option<i64>,
    pub(super) record: Json,
}

/// Fields of a message besides its content.
const ENVELOPE: &[u32] = &[1, 7, 8, 11, 13, 14];

/// The kinds of messages by their fields.
const KINDS: &[(u32, &str)] = &[
    (2, "user_query"),
    (3, "agent_output"),
    (4, "tool_call"),
    (5, "tool_call_result"),
    (6, "server_event"),
    (9, "system_query"),
    (10, "update_todos"),
    (15, "agent_reasoning"),
    (16, "summarization"),
    (17, "code_review"),
    (18, "update_review_comments"),
    (19, "web_search"),
    (20, "web_fetch"),
    (21, "debug_output"),
    (22, "artifact_event"),
    (23, "invoke_skill"),
];

/// A tool: its field in a call, its field in a result, and its name.
type Tool = (u32, u32, &'static str);

/// The tools. A call of `server` runs on the server of Warp and is not readable.
const TOOLS: &[Tool] = &[
    (2, 2, "run_shell_command"),
    (3, 3, "search_codebase"),
    (4, 4, "server"),
    (5, 5, "read_files"),
    (6, 6, "apply_file_diffs"),
    (7, 7, "suggest_plan"),
    (8, 8, "suggest_create_plan"),
    (9, 9, "grep"),
    (10, 10, "file_glob"),
    (11, 15, "read_mcp_resource"),
    (12, 16, "call_mcp_tool"),
    (13, 17, "write_to_long_running_shell_command"),
    (14, 18, "suggest_new_conversation"),
    (15, 19, "file_glob_v2"),
    (16, 20, "suggest_prompt"),
    (17, 21, "open_code_review"),
    (18, 22, "init_project"),
    (19, 23, "subagent"),
    (20, 24, "read_documents"),
    (21, 25, "edit_documents"),
    (22, 26, "create_documents"),
    (23, 27, "read_shell_command_output"),
    (24, 28, "use_computer"),
    (25, 29, "insert_review_comments"),
    (26, 30, "read_skill"),
    (27, 31, "request_computer_use"),
    (28, 32, "fetch_conversation"),
];

/// The field of a result that was cancelled.
const CANCEL: u32 = 14;

/// The field of a result with the folder and the like.
const RESULT_CONTEXT: u32 = 11;

/// Reads a task. Returns `None` if the bytes are not a message.
pub(super) fn read_task(bytes: &[u8]) -> Option<Task> {
    let task = WireMessage::parse(bytes)?;
    let id = task.text(1).unwrap_or_default();
    let parent = task.message(3).and_then(|above| above.text(1)).filter(|above| !above.is_empty());
    let messages = task.messages(5).map(|message| {
        let mut record = read_message(&message);
        record["id"] = message.text(1).into();
        if parent.is_some() {
            record["task"] = id.into();
        }
        let time_us = message.message(14).map(|time| {
            let micros = time.int(1).unwrap_or(0).saturating_mul(1_000_000);
            micros.saturating_add(time.int(2).unwrap_or(0) / 1000)
        });
        record["time"] = time_us.into();
        TaskMessage { time_us, record }
    });
    Some(Task {
        parent: parent.map(str::to_owned),
        title: task.text(2).unwrap_or_default().to_owned(),
        messages: messages.collect(),
    })
}

fn read_message(message: &WireMessage<'_>) -> Json {
    // A field that a later version adds may come before the content.
    let kind_of = |number: u32| KINDS.iter().find(|(known, _)| *known == number).map(|it| it.1);
    let others: Vec<u32> = message.numbers().filter(|number| !ENVELOPE.contains(number)).collect();
    let known = others.iter().find(|number| kind_of(**number).is_some());
    let Some(number) = known.or(others.first()).copied() else {
        return json!({"kind": "empty"});
    };
    let content = message.message(number).unwrap_or_default();
    let mut record = read_content(number, kind_of(number), &content);
    let unknown = others.iter().filter(|other| **other != number);
    let unknown: Vec<String> = unknown.map(|field| format!("field_{field}")).collect();
    if !unknown.is_empty() {
        record["unknown_fields"] = unknown.into();
    }
    record
}

/// Reads the content of a message in a field.
fn read_content(number: u32, kind: Option<&str>, content: &WireMessage<'_>) -> Json {
    match kind {
        Some(kind @ "user_query") => {
            json!({"kind": kind, "text": content.text(1), "cwd": folder_of(content, 2)})
        }
        Some(kind @ ("agent_output" | "agent_reasoning")) => {
            json!({"kind": kind, "text": content.text(1)})
        }
        Some("tool_call") => read_call(content),
        Some("tool_call_result") => read_result(content),
        // The server's own data.
        Some(kind @ "server_event") => json!({"kind": kind}),
        kind => {
            let name = kind.map_or_else(|| format!("field_{number}"), str::to_owned);
            let mut text = String::new();
            content.append_texts(&mut text);
            json!({"kind": name, "text": text, "is_unknown": kind.is_none()})
        }
    }
}

/// Returns the folder in the context of a message.
fn folder_of<'a>(message: &WireMessage<'a>, context: u32) -> Option<&'a str> {
    message.message_at(&[context, 1])?.text(1)
}

fn read_call(call: &WireMessage<'_>) -> Json {
    let number = call.numbers().find(|number| *number != 1).unwrap_or(0);
    let tool = TOOLS.iter().find(|(known, ..)| *known == number).map(|(.., name)| *name);
    let content = call.message(number).unwrap_or_default();
    let name = match tool {
        Some("call_mcp_tool") => content.text(1).unwrap_or("call_mcp_tool").to_owned(),
        Some(name) => name.to_owned(),
        None => format!("tool_{number}"),
    };
    json!({"kind": "tool_call", "call": call.text(1), "tool": name,
        "arguments": tool.map(|tool| call_arguments(tool, &content)),
        "is_unknown": tool.is_none()})
}

/// Returns the arguments of a call under the names that Warp gives them.
fn call_arguments(tool: &str, call: &WireMessage<'_>) -> Json {
    let list = |number| call.texts(number).collect::<Vec<_>>();
    match tool {
        "run_shell_command" => json!({"command": call.text(1)}),
        "search_codebase" => json!({"query": call.text(1), "path_filters": list(2),
            "codebase_path": call.text(3)}),
        "read_files" => {
            let files: Vec<_> =
                call.messages(1).filter_map(|file| file.text(1).map(str::to_owned)).collect();
            json!({"files": files})
        }
        "apply_file_diffs" => file_diffs(call),
        "grep" => json!({"queries": list(1), "path": call.text(2)}),
        "file_glob" => json!({"patterns": list(1), "path": call.text(2)}),
        "file_glob_v2" => json!({"patterns": list(1), "search_dir": call.text(2)}),
        "read_mcp_resource" => json!({"uri": call.text(1)}),
        "call_mcp_tool" => struct_json(&call.message(2).unwrap_or_default()),
        _ => {
            let mut text = String::new();
            call.append_texts(&mut text);
            json!({"text": text})
        }
    }
}

/// Returns the arguments of a call that changes files.
fn file_diffs(call: &WireMessage<'_>) -> Json {
    let mut files = Vec::new();
    let mut diffs = Vec::new();
    for number in [2, 3, 4, 5] {
        for change in call.messages(number) {
            let path = change.text(1);
            files.extend(path.map(str::to_owned));
            match number {
                2 => diffs.push(json!({"file_path": path, "search": change.text(2),
                    "replace": change.text(3)})),
                3 => diffs.push(json!({"file_path": path, "content": change.text(2)})),
                4 => diffs.push(json!({"file_path": path, "is_deleted": true})),
                _ => {
                    let hunks: Vec<_> = change
                        .messages(3)
                        .map(|hunk| json!({"old": hunk.text(3), "new": hunk.text(4)}))
                        .collect();
                    diffs.push(
                        json!({"file_path": path, "move_to": change.text(2), "hunks": hunks}),
                    );
                }
            }
        }
    }
    json!({"summary": call.text(1), "files": files, "diffs": diffs})
}

fn read_result(result: &WireMessage<'_>) -> Json {
    let is_content = |number: &u32| ![1, RESULT_CONTEXT].contains(number);
    let number = result.numbers().find(is_content).unwrap_or(0);
    let content = result.message(number).unwrap_or_default();
    let tool = TOOLS.iter().find(|(_, known, _)| *known == number).map(|(.., name)| *name);
    let mut record = json!({"kind": "tool_call_result", "call": result.text(1), "tool": tool,
        "cwd": folder_of(result, RESULT_CONTEXT), "is_cancelled": number == CANCEL,
        "is_unknown": tool.is_none() && number != CANCEL});
    let mut text = String::new();
    let finished = content.message(5).filter(|_| tool == Some("run_shell_command"));
    match finished {
        // 3 repeats the command.
        Some(finished) => {
            text.push_str(finished.text(1).unwrap_or_default());
            // A code of 0 is not written.
            record["exit_code"] = finished.int(2).unwrap_or(0).into();
        }
        None => content.append_texts(&mut text),
    }
    // In these results the field 2 is the error, and another one the success.
    let has_error_field = matches!(tool, Some("read_files" | "file_glob_v2" | "apply_file_diffs"));
    if has_error_field {
        record["is_error"] = content.message(2).is_some().into();
    }
    record["text"] = text.into();
    record
}
