//! One name for a model that agents spell in two ways.

use std::borrow::Cow;

/// Words of which one is in the names of Anthropic's models.
const ANTHROPIC_WORDS: [&str; 4] = ["claude", "opus", "sonnet", "haiku"];

/// Returns the name under which readers see a model. Anthropic writes versions with a hyphen and some
/// agents with a point: `claude-opus-4.8` is `claude-opus-4-8`.
pub fn shown_model(name: &str) -> Cow<'_, str> {
    if !name.contains('.') || !ANTHROPIC_WORDS.iter().any(|word| name.contains(word)) {
        return Cow::Borrowed(name);
    }
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut shown = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let is_version = c == '.'
            && is_digit(name[..at].chars().next_back())
            && is_digit(name[at + 1..].chars().next());
        shown.push(if is_version { '-' } else { c });
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::shown_model;

    #[test]
    fn both_spellings_of_a_version_are_one_model() {
        for (name, shown) in [
            ("claude-opus-4.8", "claude-opus-4-8"),
            ("claude-opus-4-8", "claude-opus-4-8"),
            ("us.anthropic.claude-sonnet-4.5", "us.anthropic.claude-sonnet-4-5"),
            ("gpt-5.1-codex", "gpt-5.1-codex"),
            ("opus.", "opus."),
        ] {
            assert_eq!(shown_model(name), shown);
        }
    }
}
