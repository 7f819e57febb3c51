//! Separates the words that a user typed from the text that the gateway puts around them.

/// Ends of the first line of a block that describes a message.
const BLOCK_TITLE_ENDS: &[&str] =
    &["(untrusted metadata):", "(untrusted, for context):", "\u{27e6}openclaw:ctx\u{27e7}"];

/// Other texts that may precede the user's words, each with its beginning and its end.
const WRAPPERS: &[(&str, &str)] = &[
    ("<relevant-memories>", "</relevant-memories>"),
    ("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"),
    ("Context:\n<active_memory_plugin>", "</active_memory_plugin>"),
    ("System: [", "\n"),
    ("System (untrusted): [", "\n"),
];

/// Beginnings of messages that no user wrote, each with the subtype of its notification.
const MACHINE_PREFIXES: &[(&str, &str)] = &[
    ("A new session was started via /new or /reset", "session_reset"),
    ("Read HEARTBEAT.md", "heartbeat"),
    ("Pre-compaction memory flush", "memory_flush"),
    ("Continue where you left off. The previous", "retry"),
    ("[Retry after the previous model attempt", "retry"),
    ("[cron:", "cron"),
    ("[Subagent Context]", "subagent_context"),
    ("[Inter-session message]", "inter_session"),
    ("[Internal task completion event]", "task_completion"),
];

/// Upper bound, exclusive, for the length of the text inside the brackets of an envelope, in bytes.
const MAX_ENVELOPE_BYTES: usize = 200;

/// Returns the subtype of a message that no user wrote. `text` is the message without its envelope.
pub(crate) fn machine_subtype(text: &str) -> Option<&'static str> {
    let (_, subtype) = MACHINE_PREFIXES.iter().find(|(prefix, _)| text.starts_with(prefix))?;
    Some(*subtype)
}

/// Splits a message into the text that the gateway put first and the words as typed.
pub(crate) fn split_inbound(text: &str) -> (&str, &str) {
    let mut rest = text.trim_start();
    while let Some(after) = after_block(rest) {
        rest = after.trim_start();
    }
    let context = text.strip_suffix(rest).unwrap_or("").trim();

    let typed = without_envelope(rest).trim_end();
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

    let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
    if !BLOCK_TITLE_ENDS.iter().any(|end| title.trim_end().ends_with(end)) {
        return None;
    }
    let end = if rest.starts_with("```json") { "\n```" } else { "\n\n" };
    Some(rest.split_once(end).map_or("", |(_, after)| after))
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
        assert_eq!(split_inbound("[x] is ticked: yes"), ("", "[x] is ticked: yes"));
    }

    #[test]
    fn machine_text_is_told_from_prompts() {
        assert_eq!(machine_subtype("Read HEARTBEAT.md if it exists."), Some("heartbeat"));
        assert_eq!(machine_subtype("Read the heartbeat file"), None);
    }
}
