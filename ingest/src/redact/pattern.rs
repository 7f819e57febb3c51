//! A built-in regex that is matched only at the beginning of a text.

use std::sync::OnceLock;

use regex::{Captures, Regex};

/// A regex that is compiled on first use. Most patterns are never needed in a run.
pub(super) struct PrefixPattern {
    source: &'static str,
    /// `None` if the source is not a regex.
    compiled: OnceLock<Option<Regex>>,
}

/// The number of a line, or the sign of a diff, before it.
pub(super) static LINE_LEAD: PrefixPattern =
    PrefixPattern::new(r"(?:[ \t]*[0-9]+(?:→|[\t:|])[ ]?)?\+?");

impl PrefixPattern {
    /// Creates a pattern without compiling it. Tests compile every `source`.
    pub(super) const fn new(source: &'static str) -> Self {
        Self { source, compiled: OnceLock::new() }
    }

    /// Returns the match at the beginning of `text`.
    pub(super) fn at_start<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        let regex = self.compiled.get_or_init(|| Regex::new(&format!("^(?:{})", self.source)).ok());
        regex.as_ref()?.captures(text)
    }
}
