//! Separates the words that a user typed from the text that the gateway puts around them.

use super::machine;
use crate::provider::shared::machine_text::find_machine_text;

/// End of the first line of a block that describes a message.
const BLOCK_TITLE_END: &str = "\u{27e6}openclaw:ctx\u{27e7}";

/// Parts of the first line of a block that describes a message. The line ends with `):`, and the
/// words in parentheses say how the block was chosen.
const BLOCK_TITLE_PARTS: &[&str] =
    &["(untrusted", "Untrusted context (", "(chronological, selected"];

/// Other texts that may precede the user's words, each with its beginning and its end.
const WRAPPERS: &[(&str, &str)] = &[
    ("<relevant-memories>", "</relevant-memories>"),
    ("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"),
    ("Context:\n<active_memory_plugin>", "</active_memory_plugin>"),
];

/// Beginnings of the lines that report events of the system. The first of them has a time after it.
const SYSTEM_LABELS: &[&str] = &["System: ", "System (untrusted): "];

/// First line of a message that has several messages of users.
const QUEUE_TITLE: &str = "[Queued messages while agent was busy]";

/// Beginning of the line before each of the messages in a queue. A number and, in newer versions,
/// the sender follow.
const QUEUED_LABEL: &str = "---\nQueued #";

/// Beginnings of paragraphs that ask the model to try again. The words before them repeat those of
/// the message before.
const RETRY_INSTRUCTIONS: &[&str] = &[
    "The previous assistant turn only described the plan.",
    "The previous assistant turn recorded reasoning but did not produce",
    "The previous assistant turn completed its tool calls but did not produce",
    "The previous attempt did not produce a user-visible answer.",
];

/// Beginning of a paragraph after the words of a user who agrees to a plan.
const APPROVAL_INSTRUCTION: &str = "\n\nThe latest user message is a short approval to proceed.";

/// Upper bound, exclusive, for the length of the text inside the brackets of an envelope, in bytes.
const MAX_ENVELOPE_BYTES: usize = 200;

/// Returns the subtype of a message that no user wrote. `text` is the message without its envelope.
pub(crate) fn machine_subtype(text: &str) -> Option<&'static str> {
    let is_retry = |paragraph: &str| {
        RETRY_INSTRUCTIONS.iter().any(|instruction| paragraph.starts_with(instruction))
    };
    if text.split("\n\n").any(is_retry) {
        return Some("retry");
    }
    find_machine_text(machine::TEXTS, text).map(|row| row.subtype)
}

/// The messages that users sent while the agent was busy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueuedMessages<'t> {
    /// Text that the gateway put before them.
    pub title: &'t str,
    /// The messages, each with the text that the gateway put around it.
    pub messages: Vec<&'t str>,
}

impl<'t> QueuedMessages<'t> {
    /// Parses a message without the text that precedes it. `None` if it is not a queue.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        if !text.starts_with(QUEUE_TITLE) {
            return None;
        }
        let (title, mut rest) = split_queued(text, 1)?;
        let mut messages = Vec::new();
        for number in 2.. {
            let Some((message, after)) = split_queued(rest, number) else { break };
            messages.push(message);
            rest = after;
        }
        messages.push(rest);
        Some(Self { title: title.trim_end(), messages })
    }
}

/// Splits a queue at the line before its message with this number. The line itself is left out.
fn split_queued(text: &str, number: usize) -> Option<(&str, &str)> {
    let (before, after) = text.split_once(&format!("\n{QUEUED_LABEL}{number}"))?;
    let (sender, message) = after.split_once('\n').unwrap_or((after, ""));
    (sender.is_empty() || sender.starts_with(' ')).then_some((before, message))
}

/// Splits a message into the text that the gateway put first and the words as typed.
pub(crate) fn split_inbound(text: &str) -> (&str, &str) {
    let mut rest = text.trim_start();
    while let Some(after) = after_block(rest) {
        rest = after.trim_start();
    }
    let context = text.strip_suffix(rest).unwrap_or("").trim();

    let typed = without_envelope(rest).trim_end();
    let typed = typed.split_once(APPROVAL_INSTRUCTION).map_or(typed, |(words, _)| words);
    let typed = match typed.rsplit_once("\n[message_id: ") {
        Some((words, id)) if id.ends_with(']') => words.trim_end(),
        _ => typed,
    };
    (context, typed)
}

/// Returns the text after the block at the beginning of `text`, or `None` if there is no block.
fn after_block(text: &str) -> Option<&str> {
    if let Some((start, end)) = WRAPPERS.iter().find(|(start, _)| text.starts_with(start)) {
        let inside = text.strip_prefix(start)?;
        return Some(inside.split_once(end).map_or("", |(_, after)| after));
    }
    if let Some(after) = after_system_lines(text) {
        return Some(after);
    }

    let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
    let title = title.trim_end();
    let is_title = title.ends_with("):")
        && BLOCK_TITLE_PARTS.iter().any(|part| title.contains(part))
        || title.ends_with(BLOCK_TITLE_END);
    if !is_title {
        return None;
    }

    let end = if rest.starts_with("```json") { "\n```" } else { "\n\n" };
    let mut after = rest.split_once(end).map_or("", |(_, after)| after);
    // A message in the history may have several paragraphs, but only its first has a number.
    while let Some((paragraph, next)) = after.split_once("\n\n")
        && paragraph.trim_start().lines().any(is_history_line)
    {
        after = next;
    }
    Some(after)
}

/// Returns the text after the lines about events of the system at the beginning of `text`. An event
/// of several lines has the time on its first one only.
fn after_system_lines(text: &str) -> Option<&str> {
    let first = SYSTEM_LABELS.iter().find_map(|label| text.strip_prefix(label))?;
    if !first.starts_with('[') {
        return None;
    }
    let mut rest = text;
    while SYSTEM_LABELS.iter().any(|label| rest.starts_with(label.trim_end())) {
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    Some(rest)
}

/// Returns whether a line begins a message in the history of the conversation:
/// `#1601 Wed 2026-06-17 23:50:44 GMT+3 Mira: yes`.
fn is_history_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|number| number.len() > 1 && number.starts_with('#'))
        && words.take(2).any(starts_with_date)
}

/// Removes the place and time of sending at the beginning: `[Mon 2026-10-19 10:12 GMT+2] `.
fn without_envelope(text: &str) -> &str {
    let Some((sent, words)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
        return text;
    };
    let is_envelope = sent.len() < MAX_ENVELOPE_BYTES
        && sent.contains(':')
        && sent.split_whitespace().any(starts_with_date);
    if is_envelope { words } else { text }
}

/// Returns whether a word begins with a date, such as `2026-10-19`.
fn starts_with_date(word: &str) -> bool {
    let mut lengths = word.splitn(3, '-').map(str::len);
    word.starts_with(|c: char| c.is_ascii_digit())
        && lengths.next() == Some(4)
        && lengths.next() == Some(2)
        && lengths.next().is_some_and(|length| length >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_shown_as_typed() {
        let block = "Conversation info (untrusted metadata):\n```json\n{\n  \"id\": \"81\"\n}\n```\n\nSender (untrusted metadata):\n```json\n{\"name\": \"Mira\"}\n```";
        assert_eq!(split_inbound(&format!("{block}\n\nWhat broke?")), (block, "What broke?"));
        assert_eq!(split_inbound(block), (block, ""));
        let stamped = "System: [2026-10-19] Node connected.\n[Mon 2026-10-19 10:12 GMT+2] hi\nthere\n[message_id: 7]";
        assert_eq!(split_inbound(stamped), ("System: [2026-10-19] Node connected.", "hi\nthere"));
        let marked = "Reply target \u{27e6}openclaw:ctx\u{27e7}\nof a thread\n\nyes";
        assert_eq!(
            split_inbound(marked),
            ("Reply target \u{27e6}openclaw:ctx\u{27e7}\nof a thread", "yes")
        );
        let history = "Conversation context (untrusted, chronological, selected for current message):\n#7 Wed 2026-06-17 23:50:44 GMT+3 Mira: a\nb\n\n#8 Wed 2026-06-17 23:51:21 GMT+3 Jo: c";
        assert_eq!(split_inbound(&format!("{history}\n\nWhat broke?")), (history, "What broke?"));
        assert_eq!(split_inbound("What (untrusted): broke?"), ("", "What (untrusted): broke?"));
        assert_eq!(split_inbound("[x] is ticked: yes"), ("", "[x] is ticked: yes"));
        let events = "System: [2026-10-19 10:12:00 GMT+2] Exec completed (a, code 0) :: one\nSystem: two\nSystem:\nSystem (untrusted): [2026-10-19 10:13:00 GMT+2] Reaction added";
        assert_eq!(split_inbound(&format!("{events}\n\nhi")), (events, "hi"));
        assert_eq!(split_inbound("System: the disk is full"), ("", "System: the disk is full"));
        let approved = "ok\n\nThe latest user message is a short approval to proceed. Act.";
        assert_eq!(split_inbound(approved), ("", "ok"));
    }

    #[test]
    fn a_queue_is_split_into_its_messages() {
        let text = "[Queued messages while agent was busy]\n\n---\nQueued #1\nSee:\n---\nQueued #7\n\n---\nQueued #2 (from Mira)\nhi";
        let queue = QueuedMessages::parse(text).expect("a queue");
        assert_eq!(queue.title, "[Queued messages while agent was busy]");
        assert_eq!(queue.messages, ["See:\n---\nQueued #7\n", "hi"]);
        assert_eq!(QueuedMessages::parse("---\nQueued #1\nhi"), None);
        assert_eq!(QueuedMessages::parse("[Queued messages while agent was busy]"), None);
    }

    #[test]
    fn machine_text_is_told_from_prompts() {
        assert_eq!(machine_subtype("Read HEARTBEAT.md if it exists."), Some("heartbeat"));
        assert_eq!(machine_subtype("[OpenClaw heartbeat poll]"), Some("heartbeat"));
        let restart = "[System] Your previous turn was interrupted by a gateway restart.";
        assert_eq!(machine_subtype(restart), Some("interrupted"));
        assert_eq!(machine_subtype("[Retry after the failed attempt] go"), Some("retry"));
        let again =
            "What broke?\n\nThe previous attempt did not produce a user-visible answer. Go.";
        assert_eq!(machine_subtype(again), Some("retry"));
        assert_eq!(machine_subtype("[System crash] what now?"), None);
        assert_eq!(machine_subtype("Read the heartbeat file"), None);
    }
}
