//! Pushes prompts for agents that show commands as prompts.

use schemas::EventType;

use crate::stream::{Stream, TitleFrom};

/// Commands that say nothing about the session, even with arguments.
const SETTING_COMMANDS: &[&str] = &["/model", "/compact"];

/// Pushes a typed prompt or command. Without `starts_turn` another model wrote the text to a
/// subagent. It begins no turn and sets no title.
pub(crate) fn push_prompt(text: &str, starts_turn: bool, out: &mut Stream) {
    if starts_turn {
        out.begin_turn();
        // A command without arguments says nothing about the session.
        let first = text.split_whitespace().next().unwrap_or("");
        let is_bare =
            first.starts_with('/') && (first == text.trim() || SETTING_COMMANDS.contains(&first));
        if !is_bare {
            out.offer_title(TitleFrom::Prompt, text);
        }
    }
    out.push_text(EventType::User, text);
}
