//! Reads the JSON that an agent passes to a hook on stdin.
//!
//! ```text
//! Claude  {"session_id","cwd","hook_event_name":"PostToolUseFailure","tool_name","tool_input","error"}
//! Codex   {"session_id","turn_id","cwd","hook_event_name":"PostToolUse","tool_input","tool_response"}
//! Gemini  {"session_id","cwd","hook_event_name":"AfterTool","tool_response":{"llmContent","error"}}
//! Copilot {"sessionId","cwd","toolName","toolArgs","error"}
//! ```

use std::path::PathBuf;

use schemas::hook::{HookClient, HookName};
use serde_json::Value;

/// The lines at the head of an output among which an exit code is looked for.
const EXIT_CODE_LINES: usize = 12;

/// The beginnings of lines with an exit code, in lower case.
const EXIT_CODE_PREFIXES: [&str; 4] =
    ["exit code:", "process exited with code", "command exited with code", "exit code"];

/// What a hook is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookInput {
    /// The moment.
    pub hook: HookName,
    /// The agent.
    pub client: HookClient,
    /// The agent's session, by the id that its log has. `None` if the agent does not say.
    pub session_id: Option<String>,
    /// The folder in which the agent works.
    pub cwd: PathBuf,
    /// How the session began: `startup`, `resume`, `clear`, `compact` or `new`.
    pub source: Option<String>,
    /// What the user typed.
    pub prompt: Option<String>,
    /// Name of the tool, as the agent calls it.
    pub tool: Option<String>,
    /// The command line, if the tool runs one.
    pub command: Option<String>,
    /// The failure; `None` if the call worked.
    pub failure: Option<FailedCallInput>,
}

/// What a failed call returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCallInput {
    pub output: String,
    /// False if the agent does not say whether the call failed.
    pub is_certain: bool,
}

/// Parses what an agent passes to a hook. `client` is the agent that the command line names.
/// Returns `None` if it is not a JSON object, or names no folder.
pub fn parse_input(hook: HookName, client: Option<HookClient>, bytes: &[u8]) -> Option<HookInput> {
    let json: Value = serde_json::from_slice(bytes).ok()?;
    json.as_object()?;
    let client = client.unwrap_or_else(|| recognize_client(&json));
    let text = |names: [&str; 2]| {
        let value = names.iter().find_map(|name| json[*name].as_str());
        value.filter(|value| !value.trim().is_empty()).map(str::to_owned)
    };
    let arguments = match &json[if json["toolArgs"].is_null() { "tool_input" } else { "toolArgs" }]
    {
        // Copilot passes the arguments as JSON in a string.
        Value::String(encoded) => serde_json::from_str(encoded).unwrap_or_default(),
        arguments @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => arguments.clone(),
    };
    let failure =
        if hook == HookName::PostToolFailure { read_failure(client, &json) } else { None };
    Some(HookInput {
        hook,
        client,
        session_id: text(["session_id", "sessionId"]),
        cwd: PathBuf::from(text(["cwd", "cwd"])?),
        source: text(["source", "trigger"]),
        prompt: text(["prompt", "prompt"]),
        tool: text(["tool_name", "toolName"]),
        command: read_command(&arguments),
        failure,
    })
}

/// Recognizes the agent by the fields that only it passes.
fn recognize_client(json: &Value) -> HookClient {
    let event = json["hook_event_name"].as_str().unwrap_or_default();
    if !json["sessionId"].is_null() {
        return HookClient::Copilot;
    }
    if !json["turn_id"].is_null() {
        return HookClient::Codex;
    }
    let is_of_gemini = ["BeforeAgent", "BeforeTool", "AfterTool", "PreCompress"].contains(&event);
    if is_of_gemini || !json["timestamp"].is_null() {
        return HookClient::Gemini;
    }
    HookClient::Claude
}

/// Returns the command line in the arguments of a tool: a text, or the words of a command.
fn read_command(arguments: &Value) -> Option<String> {
    let command =
        if arguments["command"].is_null() { &arguments["cmd"] } else { &arguments["command"] };
    if let Some(line) = command.as_str() {
        return Some(line.to_owned()).filter(|line| !line.trim().is_empty());
    }
    let words: Vec<&str> = command.as_array()?.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [] => None,
        // `bash -lc LINE`
        [_, flag, line] if flag.starts_with('-') && flag.ends_with('c') => Some((*line).to_owned()),
        words => Some(words.join(" ")),
    }
}

/// Returns the failure that the agent reports; `None` if the call worked, or if the user stopped it.
fn read_failure(client: HookClient, json: &Value) -> Option<FailedCallInput> {
    if json["is_interrupt"].as_bool() == Some(true) {
        return None;
    }
    match client {
        HookClient::Claude | HookClient::Copilot => text_of(&json["error"]).map(certain_failure),
        HookClient::Gemini => {
            let response = &json["tool_response"];
            let output =
                text_of(&response["llmContent"]).or_else(|| text_of(&response["returnDisplay"]));
            let error = &response["error"];
            if !error.is_null() {
                let message = text_of(&error["message"]).or_else(|| text_of(error));
                return output.or(message).map(certain_failure);
            }
            let output = output?;
            let code = find_exit_code(&output)?;
            if code == 0 { None } else { Some(certain_failure(output)) }
        }
        HookClient::Codex => {
            let response = &json["tool_response"];
            let parts = ["output", "aggregated_output", "content", "stderr", "stdout"];
            let output = text_of(response)
                .or_else(|| parts.iter().find_map(|name| text_of(&response[*name])))?;
            let code = ["exit_code", "exitCode"].iter().find_map(|name| response[*name].as_i64());
            let code = code.or_else(|| response["metadata"]["exit_code"].as_i64());
            match code.or_else(|| find_exit_code(&output)) {
                Some(0) => None,
                Some(_) => Some(certain_failure(output)),
                None => Some(FailedCallInput { output, is_certain: false }),
            }
        }
    }
}

fn certain_failure(output: String) -> FailedCallInput {
    FailedCallInput { output, is_certain: true }
}

/// Returns the text of a value: a string, or the texts of a list of parts.
fn text_of(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned()).filter(|text| !text.trim().is_empty());
    }
    let parts = value.as_array()?.iter();
    let texts: Vec<&str> =
        parts.filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect();
    if texts.is_empty() { None } else { Some(texts.join("\n")) }
}

/// Returns the exit code that a line of an output names, such as `Exit Code: 1`. Codex writes it
/// first, Gemini CLI last.
fn find_exit_code(output: &str) -> Option<i64> {
    let head = output.lines().take(EXIT_CODE_LINES);
    let tail = output.lines().rev().take(EXIT_CODE_LINES);
    head.chain(tail).find_map(|line| {
        let line = line.trim().to_ascii_lowercase();
        let rest = EXIT_CODE_PREFIXES.iter().find_map(|prefix| line.strip_prefix(prefix))?;
        rest.trim_matches([':', ' ', '.']).parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(hook: HookName, json: &Value) -> HookInput {
        parse_input(hook, None, json.to_string().as_bytes()).expect("an input")
    }

    fn failure(json: &Value) -> Option<(String, bool)> {
        let failure = parsed(HookName::PostToolFailure, json).failure?;
        Some((failure.output, failure.is_certain))
    }

    #[test]
    fn agents_are_recognized_by_their_fields() {
        for (json, client) in [
            (
                json!({"cwd": "/x", "session_id": "a", "permission_mode": "default"}),
                HookClient::Claude,
            ),
            (json!({"cwd": "/x", "session_id": "a", "turn_id": "t"}), HookClient::Codex),
            (
                json!({"cwd": "/x", "session_id": "a", "timestamp": "2026-01-01T00:00:00Z"}),
                HookClient::Gemini,
            ),
            (json!({"cwd": "/x", "sessionId": "a", "timestamp": 1}), HookClient::Copilot),
        ] {
            assert_eq!(parsed(HookName::Prompt, &json).client, client, "{json}");
        }
    }

    #[test]
    fn failures_are_read_as_each_agent_reports_them() {
        let claude =
            json!({"cwd": "/x", "permission_mode": "default", "error": "Exit code 1\nboom"});
        assert_eq!(failure(&claude), Some(("Exit code 1\nboom".to_owned(), true)));
        let stopped = json!({"cwd": "/x", "error": "x", "is_interrupt": true});
        assert_eq!(failure(&stopped), None);

        let codex =
            |response: Value| json!({"cwd": "/x", "turn_id": "t", "tool_response": response});
        assert_eq!(failure(&codex(json!("boom"))), Some(("boom".to_owned(), false)));
        assert_eq!(failure(&codex(json!("Exit code: 0\nOutput:\nok"))), None);
        let coded = codex(json!({"output": "boom", "metadata": {"exit_code": 2}}));
        assert_eq!(failure(&coded), Some(("boom".to_owned(), true)));

        let gemini = |response: Value| json!({"cwd": "/x", "hook_event_name": "AfterTool", "tool_response": response});
        let ended = "Output: boom\nError: (none)\nExit Code: 3";
        assert_eq!(failure(&gemini(json!({"llmContent": ended}))), Some((ended.to_owned(), true)));
        assert_eq!(failure(&gemini(json!({"llmContent": "Output: ok"}))), None);
        let refused =
            gemini(json!({"llmContent": [{"text": "no file"}], "error": {"message": "x"}}));
        assert_eq!(failure(&refused), Some(("no file".to_owned(), true)));
    }

    #[test]
    fn commands_are_texts_words_or_json_in_a_string() {
        let command = |arguments: Value| {
            parsed(HookName::PreTool, &json!({"cwd": "/x", "tool_input": arguments})).command
        };
        assert_eq!(command(json!({"command": "ls -l"})).as_deref(), Some("ls -l"));
        assert_eq!(command(json!({"command": ["bash", "-lc", "ls -l"]})).as_deref(), Some("ls -l"));
        assert_eq!(
            command(json!({"command": ["ls", "-l", "a", "b"]})).as_deref(),
            Some("ls -l a b")
        );
        assert_eq!(command(json!({"cmd": "ls"})).as_deref(), Some("ls"));
        assert_eq!(command(json!({"file_path": "/x"})), None);
        let copilot = json!({"cwd": "/x", "sessionId": "a", "toolArgs": "{\"command\":\"ls\"}"});
        assert_eq!(parsed(HookName::PreTool, &copilot).command.as_deref(), Some("ls"));
    }

    #[test]
    fn what_is_not_an_object_with_a_folder_is_no_input() {
        for bytes in [&b""[..], b"null", b"[]", b"{", b"{}", b"{\"cwd\": \" \"}", b"\xff"] {
            assert_eq!(parse_input(HookName::Prompt, None, bytes), None);
        }
    }
}
