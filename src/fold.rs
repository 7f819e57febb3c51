//! Case folding: what "case-insensitive" means here.
//!
//! ASCII letters fold among themselves, every other character to its lower case where that is one
//! character outside ASCII. So a needle of ASCII matches only ASCII, whatever stands around it.

use std::borrow::Cow;

/// Folds one character.
pub(crate) fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(single), None) if !single.is_ascii() => single,
        _ => c,
    }
}

/// Folds a text. ASCII, which most of it is, goes byte by byte.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|b| b.is_ascii_uppercase() || !b.is_ascii()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().position(|b| !b.is_ascii()).unwrap_or(rest.len());
        let from = out.len();
        out.push_str(&rest[..ascii]);
        out[from..].make_ascii_lowercase();
        let mut others = rest[ascii..].chars();
        if let Some(c) = others.next() {
            out.push(fold_char(c));
        }
        rest = others.as_str();
    }
    Cow::Owned(out)
}

/// Where in `text` the byte `at` of `fold(text)` comes from.
pub(crate) fn unfold_offset(text: &str, at: usize) -> usize {
    let mut folded = 0;
    for (offset, c) in text.char_indices() {
        if folded >= at {
            return offset;
        }
        folded += fold_char(c).len_utf8();
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_within_and_outside_ascii() {
        assert_eq!(fold("ÄÖ ß Straße ABC"), "äö ß straße abc");
        assert!(matches!(fold("already"), Cow::Borrowed("already")));
        // The Kelvin sign's lower case is an ASCII k: it keeps to itself.
        assert_eq!(fold("\u{212a}"), "\u{212a}");
        assert_eq!(fold("İ"), "İ");
    }

    #[test]
    fn offsets_lead_back_when_lengths_differ() {
        let text = "xȺȺy";
        let folded = fold(text);
        let at = folded.find('y').expect("there");
        assert_ne!(at, text.find('y').expect("there"));
        assert_eq!(unfold_offset(text, at), text.find('y').expect("there"));
    }
}
