//! One name for a model that agents spell in several ways.

use std::borrow::Cow;

use schemas::price::without_date;

/// Words that the names of Anthropic's models begin with, after the vendor.
const ANTHROPIC_WORDS: [&str; 4] = ["claude", "opus", "sonnet", "haiku"];

/// Returns the name under which readers see a model: without its vendor and without the date of its
/// release. Anthropic writes versions with a hyphen and some agents with a point:
/// `anthropic/claude-opus-4.8` and `claude-opus-4-8-20260301` are `claude-opus-4-8`.
pub fn shown_model(name: &str) -> Cow<'_, str> {
    let model = name.rsplit('/').next().filter(|model| !model.is_empty()).unwrap_or(name);
    let start = ANTHROPIC_WORDS.iter().find_map(|word| {
        let at = model.find(word)?;
        (at == 0 || model[..at].ends_with('.')).then_some(at)
    });
    let Some(start) = start else { return Cow::Borrowed(without_date(model).unwrap_or(model)) };

    let model = &model[start..];
    // Bedrock ends names with a revision: `-v1:0`.
    let model = match model.rsplit_once("-v") {
        Some((head, revision))
            if revision.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') =>
        {
            head
        }
        _ => model,
    };
    let model = without_date(model).unwrap_or(model);
    if model.starts_with("claude") && !model.contains('.') {
        return Cow::Borrowed(model);
    }
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut shown = String::with_capacity(model.len());
    if !model.starts_with("claude") {
        shown.push_str("claude-");
    }
    for (at, c) in model.char_indices() {
        let is_version = c == '.'
            && is_digit(model[..at].chars().next_back())
            && is_digit(model[at + 1..].chars().next());
        shown.push(if is_version { '-' } else { c });
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::shown_model;

    #[test]
    fn all_spellings_of_a_model_are_one_name() {
        for (name, shown) in [
            ("claude-opus-4.8", "claude-opus-4-8"),
            ("claude-opus-4-8", "claude-opus-4-8"),
            ("claude-opus-4-5-20251101", "claude-opus-4-5"),
            ("claude-3-5-haiku@20241022", "claude-3-5-haiku"),
            ("sonnet-4-5", "claude-sonnet-4-5"),
            ("anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
            ("us.anthropic.claude-sonnet-4.5", "claude-sonnet-4-5"),
            ("gpt-5.4-2026-08-11", "gpt-5.4"),
            ("openrouter/openai/gpt-5.1-codex", "gpt-5.1-codex"),
            ("mistralai/voxtral-small-24b-2507", "voxtral-small-24b-2507"),
            ("opus.", "claude-opus."),
            ("claude", "claude"),
            ("-20251101", "-20251101"),
            ("x/", "x/"),
            ("", ""),
        ] {
            assert_eq!(shown_model(name), shown);
        }
    }
}
