//! What a person typed, for agents that show commands as prompts.

use schemas::EventType;

use crate::stream::{Draft, Stream, TitleFrom};

/// Commands whose words say nothing about the session either.
const SETTINGS: &[&str] = &["/model", "/compact"];

/// Adds what was typed: a prompt, or a command. Without `starts_turn` it is another model's words to
/// a subagent, which begin no turn and name nothing.
pub(super) fn typed(text: &str, starts_turn: bool, out: &mut Stream) {
    if starts_turn {
        out.begin_turn();
        // A command without words says nothing about the session.
        let first = text.split_whitespace().next().unwrap_or("");
        let bare = first.starts_with('/') && (first == text.trim() || SETTINGS.contains(&first));
        if !bare {
            out.title(TitleFrom::Prompt, text);
        }
    }
    out.push(EventType::User, Draft { text, ..Draft::default() });
}
