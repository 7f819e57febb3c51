//! Finds the words that a user typed while refusing a call: they are only in the result of the call
//! (docs/formats.md#words-of-the-user-in-results).

use crate::stream::Stream;

/// Subtype of the notification for words that a user typed and that are not a prompt.
pub(crate) const USER_WORDS: &str = "user_words";

/// How agents word the result of a refused call.
struct Refusal {
    /// The beginning of the result.
    start: &'static str,
    /// The text right before the words of the user.
    label: &'static str,
}

#[rustfmt::skip]
const REFUSALS: &[Refusal] = &[
    // Claude Code and its forks.
    Refusal { start: "The user doesn't want to proceed", label: "the user said:\n" },
    // OpenCode.
    Refusal { start: "The user rejected permission to use this", label: "with the following feedback: " },
    // Copilot CLI.
    Refusal { start: "The user rejected this tool call.", label: "User feedback: " },
    // Kimi CLI.
    Refusal { start: "The tool call is rejected by the user.", label: "User feedback: " },
];

/// Beginnings of notes that agents add after the words.
const NOTES: &[&str] = &["\n\nNote: The user's next message may contain"];

/// Beginnings of text that an agent writes instead of the user's words.
const TEMPLATES: &[&str] = &["The user wants to clarify these questions."];

/// Returns the words of the user in the result of a refused call.
pub(crate) fn refusal_words(result: &str) -> Option<&str> {
    let refusal = REFUSALS.iter().find(|refusal| result.starts_with(refusal.start))?;
    let (_, words) = result.split_once(refusal.label)?;
    let end = NOTES.iter().filter_map(|note| words.find(note)).min();
    let words = words[..end.unwrap_or(words.len())].trim();
    let is_typed = !words.is_empty() && !TEMPLATES.iter().any(|start| words.starts_with(start));
    is_typed.then_some(words)
}

/// Pushes words that the user typed about a call. They are part of the turn and no prompt.
pub(crate) fn push_user_words(words: &str, out: &mut Stream) {
    out.push_notification(USER_WORDS, words);
}

/// Pushes the words of the user in the result of a refused call, if there are any.
pub(crate) fn push_refusal_words(result: &str, out: &mut Stream) {
    if let Some(words) = refusal_words(result) {
        push_user_words(words, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_the_user_are_found() {
        let refused = |end: &str| {
            format!(
                "The user doesn't want to proceed with this tool use. The tool use was rejected. {end}"
            )
        };
        let check =
            |text: &str, want: Option<&str>| assert_eq!(refusal_words(text), want, "{text}");
        check(&refused("To tell you how to proceed, the user said:\nuse bun\n"), Some("use bun"));
        check(
            &refused(
                "To tell you how to proceed, the user said:\na\n\nb\n\nNote: The user's next message may contain a correction",
            ),
            Some("a\n\nb"),
        );
        check(&refused("STOP what you are doing"), None);
        check(
            &refused("the user said:\nThe user wants to clarify these questions.\n    This means"),
            None,
        );
        check("grep: the user said:\nno", None);
        check("The user rejected this tool call. User feedback: no", Some("no"));
        check("The user rejected this tool call.", None);
        check("The tool call is rejected by the user. User feedback: no", Some("no"));
        check(
            "The user rejected permission to use this specific tool call with the following feedback: no",
            Some("no"),
        );
    }
}
