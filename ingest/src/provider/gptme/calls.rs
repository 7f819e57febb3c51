//! Finds the calls in the text of a response: blocks of code whose language is a tool, or lines with the
//! name of a tool, an id and JSON.
//!
//! ````text
//! ```save src/main.rs
//! fn main() {}
//! ```
//! @shell(call_1): {"command": "ls"}
//! ````

/// The tools whose blocks are executed.
const BLOCK_TOOLS: &[&str] = &[
    "append",
    "browser",
    "chats",
    "complete",
    "elicit",
    "gh",
    "hashline_edit",
    "ipython",
    "mcp",
    "morph",
    "patch",
    "patch_anchored",
    "patch_many",
    "py",
    "python",
    "read",
    "restart",
    "save",
    "screenshot",
    "shell",
    "subagent",
    "tmux",
    "todo",
    "view_anchored",
    "vision",
];

/// The tools whose first line names a file.
const FILE_TOOLS: &[&str] = &["append", "morph", "patch", "patch_anchored", "save"];

/// A call in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrittenCall<'t> {
    pub(super) tool: &'t str,
    /// The id, which only calls on a line have.
    pub(super) id: Option<&'t str>,
    /// The arguments: JSON, or the text of the block.
    pub(super) arguments: String,
    /// The file that a block changes.
    pub(super) file: Option<&'t str>,
    /// True if the arguments are a command line.
    pub(super) is_command: bool,
}

/// Returns the calls in a text, in their order.
pub(super) fn find_calls(text: &str) -> Vec<WrittenCall<'_>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let from_line = rest;
        let (line, after) = rest.split_at(end);
        rest = after;
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks >= 3 {
            let (block, after) = split_block(rest, ticks);
            calls.extend(read_block(line[ticks..].trim(), block));
            rest = after;
        } else if let Some(call) = read_line_call(line, from_line) {
            calls.push(call);
        }
    }
    calls
}

/// Splits a text at the line that closes a block of code opened with `ticks`. Blocks inside it, which are
/// opened with a language, belong to it.
fn split_block(text: &str, ticks: usize) -> (&str, &str) {
    let mut depth = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let rest = line.trim_end().trim_start_matches('`');
        let own = line.trim_end().len() - rest.len();
        if own >= ticks {
            if !rest.is_empty() {
                depth += 1;
            } else if depth == 0 {
                return (&text[..at], &text[at + line.len()..]);
            } else {
                depth -= 1;
            }
        }
        at += line.len();
    }
    (text, "")
}

/// Reads a block as a call. `head` is the text after its opening ticks.
fn read_block<'t>(head: &'t str, block: &str) -> Option<WrittenCall<'t>> {
    let (tool, rest) = head.split_once(' ').unwrap_or((head, ""));
    BLOCK_TOOLS.contains(&tool).then(|| {
        let is_command = tool == "shell";
        let rest = rest.trim();
        let mut arguments = block.trim_end().to_owned();
        if !rest.is_empty() {
            arguments.insert_str(0, &format!("{rest}\n"));
        }
        let file = Some(rest).filter(|rest| FILE_TOOLS.contains(&tool) && !rest.is_empty());
        WrittenCall { tool, id: None, arguments, file, is_command }
    })
}

/// Reads a line `@tool(id): {...}`. The JSON may continue in the text after it. `text` begins with the
/// line. No JSON has a line that begins with `@`, so each is read once at most.
fn read_line_call<'t>(line: &'t str, text: &'t str) -> Option<WrittenCall<'t>> {
    let (name, rest) = line.strip_prefix('@')?.split_once('(')?;
    let (id, json) = rest.split_once("): ")?;
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c))
    };
    if !is_name(name) || !is_name(id) || !json.starts_with('{') {
        return None;
    }
    let json = &text[line.len() - json.len()..];
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<serde_json::Value>();
    let arguments = values.next()?.ok()?.to_string();
    Some(WrittenCall { tool: name, id: Some(id), arguments, file: None, is_command: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<(&str, Option<&str>, String, Option<&str>)> {
        let calls = find_calls(text).into_iter();
        calls.map(|call| (call.tool, call.id, call.arguments, call.file)).collect()
    }

    #[test]
    fn blocks_of_tools_are_calls_and_others_are_text() {
        let text = "Look:\n```python\nprint(1)\n```\n```rust\nfn main() {}\n```\n\
            ```save a/b.md\n# A\n```sh\nls\n```\nend\n```\nrest\n```shell\ncargo test\n";
        let found = calls(text);
        assert_eq!(
            found,
            [
                ("python", None, "print(1)".to_owned(), None),
                ("save", None, "a/b.md\n# A\n```sh\nls\n```\nend".to_owned(), Some("a/b.md")),
                ("shell", None, "cargo test".to_owned(), None),
            ]
        );
    }

    #[test]
    fn lines_that_look_like_calls_do_not_read_the_rest_of_the_text() {
        let text = "@a(b): {\n".repeat(400_000);
        assert!(calls(&text).is_empty());
    }

    #[test]
    fn calls_on_a_line_have_an_id_and_json() {
        let text = "I run\n@shell(call-1): {\"command\": \"ls\\n\",\n \"x\": {}}\n@mira(not a call): x\n@a(b): {cut";
        let json = serde_json::json!({ "command": "ls\n", "x": {} }).to_string();
        assert_eq!(calls(text), [("shell", Some("call-1"), json, None)]);
        assert!(calls("").is_empty() && calls("@").is_empty() && calls("```").is_empty());
    }
}
