//! A regex of the program's own that is tried at one place: where the text it is given begins.

use std::sync::OnceLock;

use regex::{Captures, Regex};

/// Compiled when it is first needed, which most are not in most runs.
pub(super) struct Pattern {
    source: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// `source` is known when the program is built, and tests compile it.
    pub(super) const fn new(source: &'static str) -> Self {
        Self { source, compiled: OnceLock::new() }
    }

    /// What matches at the beginning of `text`.
    pub(super) fn at_start<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        let compile = || Regex::new(&format!("^(?:{})", self.source)).ok();
        self.compiled.get_or_init(compile).as_ref()?.captures(text)
    }
}
