//! Case folding and normal forms: what "the same text" means to a search.
//!
//! ASCII letters fold among themselves, every other character to one character outside ASCII. So
//! a needle of ASCII matches only ASCII, whatever stands around it. A needle beyond ASCII is in a
//! text when it is in the text as written or, both composed (NFC), in the composed text.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Folds one character: upper case first, so that letters with two lower forms (σ ς) meet.
pub(crate) fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    if has_no_case(c) {
        return c;
    }
    let lower = |c: char| single(c.to_lowercase()).filter(|lower| !lower.is_ascii());
    single(c.to_uppercase()).and_then(lower).or_else(|| lower(c)).unwrap_or(c)
}

/// Punctuation, arrows, boxes, Chinese, Japanese, Korean, emoji: most of what is beyond ASCII in
/// logs, known without a table.
const fn has_no_case(c: char) -> bool {
    matches!(c, '\u{2000}'..='\u{20ff}' | '\u{2190}'..='\u{24b5}' | '\u{2500}'..='\u{2bff}' | '\u{2e80}'..='\u{a63f}' | '\u{ac00}'..='\u{d7ff}' | '\u{1f000}'..)
}

/// How many bytes at the beginning of `text` are ASCII.
fn ascii_prefix(text: &[u8]) -> usize {
    const STEP: usize = 32;
    let whole = text.chunks_exact(STEP).take_while(|chunk| chunk.is_ascii()).count() * STEP;
    whole + text[whole..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// The characters beyond ASCII.
fn beyond_ascii(text: &str) -> impl Iterator<Item = char> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut chars = rest[ascii_prefix(rest.as_bytes())..].chars();
        let next = chars.next();
        rest = chars.as_str();
        next
    })
}

/// The one item of `chars`, if it is one.
fn single(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

/// Folds a text. ASCII, which most of it is, goes byte by byte.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|b| b.is_ascii_uppercase() || !b.is_ascii()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = ascii_prefix(rest.as_bytes());
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

/// The composed form (NFC) of a text, where it differs.
pub(crate) fn composed(text: &str) -> Option<String> {
    // "Maybe" is settled by composing, as such texts are rare. ASCII is composed in itself; to leave
    // it out can only make two marks look out of order, and then composing settles it too.
    if is_nfc_quick(beyond_ascii(text)) == IsNormalized::Yes {
        return None;
    }
    Some(text.nfc().collect()).filter(|composed| composed != text)
}

/// Every folded form of `text` in which a needle may be found: as written, composed, and with the
/// two letters that a case-insensitive regex takes for ASCII (ſ for s, the Kelvin sign for k).
pub(crate) fn forms(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let composed = composed(text);
    let ascii = (!text.is_ascii() && text.contains(['\u{17f}', '\u{212a}']))
        .then(|| text.replace('\u{17f}', "s").replace('\u{212a}', "k"));
    let others = [composed, ascii].into_iter().flatten();
    std::iter::once(fold(text)).chain(others.map(|form| Cow::Owned(fold(&form).into_owned())))
}

/// Where in `text` the byte `at` of another form of it comes from: composed first if `compose`,
/// then folded unless `case_sensitive`.
pub(crate) fn unfold_offset(text: &str, at: usize, compose: bool, case_sensitive: bool) -> usize {
    let width = |c: char| if case_sensitive { c.len_utf8() } else { fold_char(c).len_utf8() };
    let mut folded = 0;
    let mut pieces = text.char_indices().peekable();
    while let Some((offset, c)) = pieces.next() {
        if folded >= at {
            return offset;
        }
        let mut end = offset + c.len_utf8();
        // A letter is composed with all that follows and may change with it.
        while compose && let Some((_, next)) = pieces.next_if(|(_, next)| joins(*next)) {
            end += next.len_utf8();
        }
        folded += match compose {
            true => text[offset..end].nfc().map(width).sum(),
            false => width(c),
        };
    }
    text.len()
}

/// Whether `c` may be composed with what stands before it.
fn joins(c: char) -> bool {
    !c.is_ascii() && is_nfc_quick(std::iter::once(c)) != IsNormalized::Yes
        || unicode_normalization::char::is_combining_mark(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_within_and_outside_ascii() {
        assert_eq!(fold("ÄÖ ß Straße ABC"), "äö ß straße abc");
        assert!(matches!(fold("already"), Cow::Borrowed("already")));
        // The Kelvin sign's lower case is an ASCII k: it keeps to itself, as do ſ and dotless ı.
        for own in ["\u{212a}", "ſ", "ı", "İ"] {
            assert_eq!(fold(own), own);
        }
        assert_eq!(fold("ΣΟΦΟΣ σοφος σοφος"), fold("σοφος σοφος σοφοσ"));
        assert_eq!(fold("µ"), fold("Μ"));
    }

    #[test]
    fn what_has_no_case_folds_to_itself() {
        let changes =
            |c: &char| single(c.to_lowercase()) != Some(*c) || single(c.to_uppercase()) != Some(*c);
        let wrong: Vec<char> =
            (char::MIN..=char::MAX).filter(|c| has_no_case(*c)).filter(changes).collect();
        assert_eq!(wrong, []);
    }

    #[test]
    fn only_what_is_composed_is_left_alone() {
        for text in [
            "",
            "plain",
            "é",
            "a\u{301}",
            "x\u{323}a\u{301}y",
            "a\u{301}\u{323}",
            "\u{1100}\u{1161}",
            "“…” — ✓",
        ] {
            let nfc: String = text.nfc().collect();
            assert_eq!(composed(text), (nfc != text).then_some(nfc), "{text:?}");
        }
    }

    #[test]
    fn forms_are_those_a_needle_may_be_found_in() {
        let forms = |text| super::forms(text).map(Cow::into_owned).collect::<Vec<_>>();
        assert_eq!(forms("Plain"), ["plain"]);
        assert_eq!(forms("Cafe\u{301}"), ["cafe\u{301}", "café"]);
        assert_eq!(forms("3 \u{212a}"), ["3 \u{212a}", "3 k", "3 k"]);
        assert_eq!(forms("한국어"), ["한국어"]);
    }

    #[test]
    fn offsets_lead_back_when_lengths_differ() {
        let text = "xȺȺy";
        let at = fold(text).find('y').expect("there");
        assert_ne!(at, text.find('y').expect("there"));
        assert_eq!(unfold_offset(text, at, false, false), text.find('y').expect("there"));
        let text = "Cafe\u{301} Cafe\u{301} y";
        let folded = fold(&composed(text).expect("differs")).into_owned();
        let at = folded.find('y').expect("there");
        assert_eq!(unfold_offset(text, at, true, false), text.find('y').expect("there"));
    }
}
