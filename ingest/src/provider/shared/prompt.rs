//! Appends prompts for agents that show commands as prompts.

use schemas::EventType;

use crate::stream::{Draft, Stream, TitleFrom};

/// Commands that say nothing about the session, even with arguments.
const SETTINGS: &[&str] = &["/model", "/compact"];

/// Appends a typed prompt or command. Without `starts_turn` the text is another model's words to a
/// subagent, which begin no turn and set no title.
pub(crate) fn typed(text: &str, starts_turn: bool, out: &mut Stream) {
    if starts_turn {
        out.begin_turn();
        // A command without arguments says nothing about the session.
        let first = text.split_whitespace().next().unwrap_or("");
        let bare = first.starts_with('/') && (first == text.trim() || SETTINGS.contains(&first));
        if !bare {
            out.title(TitleFrom::Prompt, text);
        }
    }
    out.push(EventType::User, Draft { text, ..Draft::default() });
}
