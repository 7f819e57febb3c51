//! Classifies events by type, outcome and text, the same way for every tool.

use schemas::EventType;
use schemas::session::EventRow;

/// Returns true if a row is of this type.
pub fn is_type(row: &EventRow, kind: EventType) -> bool {
    row.event_type == kind
}

/// Returns true for a prompt of the user to the main agent that is not a command.
pub fn is_prompt(row: &EventRow) -> bool {
    is_type(row, EventType::User) && !row.is_sidechain && !is_slash_or_shell_command(&row.text)
}

/// Returns true if the main agent of the session recorded the event: it is not copied from another
/// session, and not of a subagent.
pub fn is_own(row: &EventRow) -> bool {
    !row.is_replay && !row.is_sidechain
}

/// Returns the events that the main agent of the session recorded.
pub fn own_rows(rows: &[EventRow]) -> Vec<&EventRow> {
    rows.iter().filter(|row| is_own(row)).collect()
}

/// Returns true if a result or a notification is marked as failed. A command that the user ran
/// outside the conversation does not count as one of its failures.
pub fn has_failed(row: &EventRow) -> bool {
    row.is_error.unwrap_or_else(|| row.exit_code.is_some_and(|code| code != 0))
        && row.subtype.as_deref() != Some("bash_output")
}

/// Returns true if the event is of one of these tools. Their names are in lower case, without
/// separators.
pub fn is_of_tools(row: &EventRow, tools: &[&str]) -> bool {
    let name = plain_tool_name(row.tool_name.as_deref().unwrap_or_default());
    tools.contains(&name.as_str())
}

/// Returns the name of a tool in lower case, without separators.
pub fn plain_tool_name(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns true if a record shows that the context was compacted. Records that announce a
/// compaction or remove only a little do not count.
pub fn shows_compaction(row: &EventRow) -> bool {
    if !is_type(row, EventType::Notification) {
        return false;
    }
    let subtype = row.subtype.as_deref().unwrap_or_default().to_ascii_lowercase();
    let no_loss = ["micro", "begin", "start", "cancel", "reference", "reminder"];
    ["compact", "compress", "session.truncation"].iter().any(|part| subtype.contains(part))
        && !no_loss.iter().any(|part| subtype.contains(part))
}

/// Returns true if a prompt is a slash command to the agent's program, such as `/model opus`, which
/// does not show what the session is about.
pub fn is_slash_command(prompt: &str) -> bool {
    let word = prompt.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    word.is_some_and(|word| !word.contains('/'))
}

/// Returns true if a prompt is a slash command or a shell command (`!ls`), which needs no answer
/// from the model. White space may precede the command.
pub fn is_slash_or_shell_command(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    let word = prompt.split_whitespace().next().unwrap_or_default();
    prompt.starts_with('!') || word.strip_prefix('/').is_some_and(|name| !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_distinguished_from_paths_and_requests() {
        assert!(is_slash_command("/model opus") && is_slash_command("/compact"));
        for prompt in ["/home/mira/x.rs is wrong", "fix / in paths", "", "/", "!ls"] {
            assert!(!is_slash_command(prompt), "{prompt}");
        }
    }
}
