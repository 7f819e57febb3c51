//! Defines the form of the placeholders that replace secrets: `[REDACTED:github_token]`.

/// The beginning of every placeholder.
pub(super) const MASK: &str = "[REDACTED:";

/// Longest kind of secret that a placeholder shows, in bytes. The name of a user's rule is such a
/// kind.
pub(super) const MAX_KIND_BYTES: usize = 40;
