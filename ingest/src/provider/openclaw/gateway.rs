//! Separates the words that a user typed from the text that the gateway puts around them.

/// Ends of the first line of a block that describes a message.
const BLOCKS: &[&str] =
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
const MACHINE: &[(&str, &str)] = &[
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

/// Returns the subtype of `text`, given without its envelope, if no user wrote it.
pub(crate) fn machine_text(text: &str) -> Option<&'static str> {
    MACHINE.iter().find(|(start, _)| text.starts_with(start)).map(|(_, subtype)| *subtype)
}

/// Splits a message into the text that the gateway put first and the words as typed.
pub(crate) fn inbound(text: &str) -> (&str, &str) {
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
    if !BLOCKS.iter().any(|end| title.trim_end().ends_with(end)) {
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
    let is_date = |word: &str| {
        let mut parts = word.splitn(3, '-').map(str::len);
        word.starts_with(|c: char| c.is_ascii_digit())
            && parts.next() == Some(4)
            && parts.next() == Some(2)
            && parts.next().is_some_and(|length| length >= 2)
    };
    let is_envelope =
        sent.len() < 200 && sent.contains(':') && sent.split_whitespace().any(is_date);
    if is_envelope { words } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_shown_as_typed() {
        let block = "Conversation info (untrusted metadata):\n```json\n{\n  \"id\": \"81\"\n}\n```\n\nSender (untrusted metadata):\n```json\n{\"name\": \"Mira\"}\n```";
        assert_eq!(inbound(&format!("{block}\n\nWhat broke?")), (block, "What broke?"));
        assert_eq!(inbound(block), (block, ""));
        let stamped = "System: [2026-10-19] Node connected.\n[Mon 2026-10-19 10:12 GMT+2] hi\nthere\n[message_id: 7]";
        assert_eq!(inbound(stamped), ("System: [2026-10-19] Node connected.", "hi\nthere"));
        let marked = "Reply target \u{27e6}openclaw:ctx\u{27e7}\nof a thread\n\nyes";
        assert_eq!(
            inbound(marked),
            ("Reply target \u{27e6}openclaw:ctx\u{27e7}\nof a thread", "yes")
        );
        assert_eq!(inbound("[x] is ticked: yes"), ("", "[x] is ticked: yes"));
    }

    #[test]
    fn machine_text_is_told_from_prompts() {
        assert_eq!(machine_text("Read HEARTBEAT.md if it exists."), Some("heartbeat"));
        assert_eq!(machine_text("Read the heartbeat file"), None);
    }
}
