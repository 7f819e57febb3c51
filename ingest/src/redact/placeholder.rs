//! Defines the form of the placeholders that replace secrets: `[REDACTED:github_token]`.

/// The beginning of every placeholder.
pub(super) const MASK: &str = "[REDACTED:";

/// Maximum length in bytes of the kind of secret that a placeholder shows. The name of a user's
/// rule is such a kind.
pub(super) const MAX_KIND_BYTES: usize = 40;

/// Returns whether a secret was masked in a text, here or before the log was passed on.
pub(crate) fn has_placeholder(text: &str) -> bool {
    text.contains("REDACTED")
}

/// Returns whether the kind in a placeholder may contain the byte.
pub(super) fn is_kind_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}
