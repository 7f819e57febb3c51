//! Recognizes the prompt that `/review` sends to the reviewer. Codex records it twice in the log of
//! the session (docs/formats.md#codex).
//!
//! ```text
//! {"type":"entered_review_mode","target":{"type":"uncommittedChanges"},
//!  "user_facing_hint":"current changes"}
//! {"type":"user_message","message":"Review the current code changes (staged, ..."}
//! {"type":"user_message","message":"Review the current code changes (staged, ..."}
//! ```

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::machine;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value};

/// A review that was begun and has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Review {
    /// The command as the user sees it, with secrets masked, because it is stored with the
    /// checkpoint.
    command: String,
    /// Hash of the prompt in the event, or of the user's own instructions.
    instructions: Option<u64>,
    /// Hash of the prompt, once it was found.
    prompt: Option<u64>,
}

/// A prompt that a review wrote.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReviewPrompt {
    /// The first record of the prompt, with the command that the user typed.
    First(String),
    /// A later record of the same prompt.
    Again,
}

impl Review {
    /// Reads the beginning of a review.
    pub(super) fn from_event(event: Value<'_>, out: &Stream) -> Self {
        let hint = event.non_empty("user_facing_hint").unwrap_or("");
        let target = event.object("target");
        let instructions = target.and_then(|target| target.non_empty("instructions"));
        Self {
            command: out.clean_and_mask(format!("/review {hint}").trim_end()).into_owned(),
            instructions: instructions.or(event.non_empty("prompt")).map(hash_text),
            prompt: None,
        }
    }

    /// Returns whether the review wrote a prompt, and `None` for a prompt of the user.
    pub(super) fn find_prompt(&mut self, text: &str) -> Option<ReviewPrompt> {
        let hash = hash_text(text);
        if let Some(prompt) = self.prompt {
            return (prompt == hash).then_some(ReviewPrompt::Again);
        }

        let is_known = machine::REVIEW_PROMPTS.iter().any(|start| text.starts_with(start));
        if !is_known && self.instructions != Some(hash) {
            return None;
        }
        self.prompt = Some(hash);
        Some(ReviewPrompt::First(self.command.clone()))
    }
}

fn hash_text(text: &str) -> u64 {
    xxh3_64(text.trim().as_bytes())
}
