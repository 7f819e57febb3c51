//! Finds one pattern in a text: an ASCII needle, a needle with letters beyond ASCII, or a regular
//! expression.

use memchr::memmem::Finder;

use super::query::pattern::{LineRegex, QueryPattern};
use base::fold::{fold_text, nfc_if_different, unfold_offset};

/// One pattern, prepared for searching.
pub(super) enum Needle {
    /// The text exactly as written.
    Exact(Finder<'static>),
    /// ASCII in any case, searched in the bytes with ASCII letters lowered.
    Lower(Finder<'static>),
    /// Text beyond ASCII, searched as written, and composed in the composed text. Both are
    /// folded unless case matters.
    Beyond(Box<NonAsciiNeedle>),
    Regex(LineRegex),
}

/// A needle with letters beyond ASCII.
pub(super) struct NonAsciiNeedle {
    written: Finder<'static>,
    composed: Finder<'static>,
    is_case_sensitive: bool,
    /// Lowered ASCII letters that every text with the needle contains.
    pub(super) ascii_run: Option<Finder<'static>>,
}

/// Minimum number of bytes of an ASCII run by which a needle beyond ASCII is searched first.
const MIN_RUN_BYTES: usize = 3;

impl Needle {
    pub(super) fn new(pattern: &QueryPattern, case_sensitive: bool) -> Self {
        let text = match pattern {
            QueryPattern::Regex { regex, .. } => return Self::Regex(regex.clone()),
            QueryPattern::Text(text) => text,
        };
        if text.is_ascii() && case_sensitive {
            return Self::Exact(build_finder(text));
        }
        if text.is_ascii() {
            return Self::Lower(build_finder(&text.to_ascii_lowercase()));
        }

        let composed = nfc_if_different(text);
        let composed = composed.as_deref().unwrap_or(text);
        Self::Beyond(Box::new(NonAsciiNeedle {
            written: build_folded_finder(text, case_sensitive),
            composed: build_folded_finder(composed, case_sensitive),
            is_case_sensitive: case_sensitive,
            ascii_run: longest_ascii_run(composed).map(|run| build_finder(&run)),
        }))
    }

    /// Returns the lowered bytes of an ASCII needle for which case does not matter.
    pub(super) fn lowered_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Lower(finder) => Some(finder.needle()),
            Self::Exact(_) | Self::Beyond(_) | Self::Regex(_) => None,
        }
    }

    /// Returns the number of bytes that are searched for. It is 0 for needles that are not searched
    /// as literal bytes.
    pub(super) fn literal_length(&self) -> usize {
        match self {
            Self::Exact(finder) | Self::Lower(finder) => finder.needle().len(),
            Self::Beyond(_) | Self::Regex(_) => 0,
        }
    }

    /// Returns true if a text contains the needle. `lower` is the text with ASCII letters lowered.
    pub(super) fn is_in(&self, text: &[u8], lower: &[u8]) -> bool {
        match self {
            Self::Exact(finder) => finder.find(text).is_some(),
            Self::Lower(finder) => finder.find(lower).is_some(),
            // ASCII folds to ASCII, so an ASCII text cannot contain this needle, unless the
            // needle is composed to ASCII, as the Kelvin sign is to K.
            Self::Beyond(beyond) => {
                let may_contain = !text.is_ascii() || beyond.composed.needle().is_ascii();
                may_contain && self.find(&String::from_utf8_lossy(text)).is_some()
            }
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// Returns the start and end of the needle in `text`.
    pub(super) fn find(&self, text: &str) -> Option<(usize, usize)> {
        match self {
            Self::Exact(finder) => {
                finder.find(text.as_bytes()).map(|at| (at, at + finder.needle().len()))
            }
            Self::Lower(finder) => {
                let at = finder.find(text.to_ascii_lowercase().as_bytes())?;
                Some((at, at + finder.needle().len()))
            }
            Self::Beyond(beyond) => beyond.find(text),
            Self::Regex(regex) => regex.find(text.as_bytes()),
        }
    }
}

fn build_finder(needle: &str) -> Finder<'static> {
    Finder::new(needle.as_bytes()).into_owned()
}

/// Builds a finder of a needle, which is folded unless case matters.
fn build_folded_finder(needle: &str, case_sensitive: bool) -> Finder<'static> {
    if case_sensitive { build_finder(needle) } else { build_finder(&fold_text(needle)) }
}

/// Returns the longest ASCII run of a composed needle, lowered, if it has at least
/// [`MIN_RUN_BYTES`]. A text that is not composed contains the same run: a run ends at the three
/// characters (`K`, `;` and the backtick) that characters beyond ASCII are composed to.
fn longest_ascii_run(composed: &str) -> Option<String> {
    let runs = composed.split(|c: char| !c.is_ascii() || matches!(c, 'k' | 'K' | ';' | '`'));
    let longest = runs.max_by_key(|run| run.len())?;
    if longest.len() < MIN_RUN_BYTES {
        return None;
    }
    Some(longest.to_ascii_lowercase())
}

impl NonAsciiNeedle {
    /// Returns the start and end of the needle in `text`.
    fn find(&self, text: &str) -> Option<(usize, usize)> {
        if let Some(place) = self.find_in_form(&self.written, text, text, false) {
            return Some(place);
        }
        let composed = nfc_if_different(text);
        // If the text is composed already, only the needle may have changed.
        if composed.is_none() && self.written.needle() == self.composed.needle() {
            return None;
        }
        let form = composed.as_deref().unwrap_or(text);
        self.find_in_form(&self.composed, text, form, composed.is_some())
    }

    /// Returns the start and end in `text` of the needle that `finder` finds in `form`, which is
    /// `text`, or `text` composed if `compose` is true.
    fn find_in_form(
        &self,
        finder: &Finder<'_>,
        text: &str,
        form: &str,
        compose: bool,
    ) -> Option<(usize, usize)> {
        let folded = if self.is_case_sensitive { form.into() } else { fold_text(form) };
        let at = finder.find(folded.as_bytes())?;
        let start = unfold_offset(text, at, compose, self.is_case_sensitive);
        let end = unfold_offset(text, at + finder.needle().len(), compose, self.is_case_sensitive);
        Some((start, end))
    }
}
