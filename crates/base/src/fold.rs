//! Case folding and normal forms: the definition of "the same text" for a search.
//!
//! ASCII letters fold among themselves, and every other character folds to one character outside
//! ASCII. So an ASCII needle matches only ASCII, whatever surrounds it. A needle beyond ASCII is in
//! a text if it is in the text as written or, both composed (NFC), in the composed text.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Folds one character. It is converted to upper case first, so that letters with two lower-case
/// forms (σ ς) become equal.
pub fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    if has_no_case(c) {
        return c;
    }
    let upper = only_char(c.to_uppercase());
    upper.and_then(lower_beyond_ascii).or_else(|| lower_beyond_ascii(c)).unwrap_or(c)
}

/// Returns the lower case of `c`; `None` if it is ASCII or not exactly one character.
fn lower_beyond_ascii(c: char) -> Option<char> {
    only_char(c.to_lowercase()).filter(|lower| !lower.is_ascii())
}

/// Returns true for punctuation, arrows, boxes, Chinese, Japanese, Korean and emoji. These are most
/// of the characters beyond ASCII in logs, and need no table.
const fn has_no_case(c: char) -> bool {
    matches!(c, '\u{2000}'..='\u{20ff}' | '\u{2190}'..='\u{24b5}' | '\u{2500}'..='\u{2bff}' | '\u{2e80}'..='\u{a63f}' | '\u{ac00}'..='\u{d7ff}' | '\u{1f000}'..)
}

/// Returns the number of ASCII bytes at the beginning of `text`.
fn ascii_prefix(text: &[u8]) -> usize {
    let (eights, rest) = text.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let high = u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
        if high != 0 {
            return number * 8 + high.trailing_zeros() as usize / 8;
        }
    }
    eights.len() * 8 + rest.iter().take_while(|byte| byte.is_ascii()).count()
}

/// Returns the characters of a text that are not ASCII.
fn beyond_ascii(text: &str) -> impl Iterator<Item = char> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut chars = rest[ascii_prefix(rest.as_bytes())..].chars();
        let next = chars.next();
        rest = chars.as_str();
        next
    })
}

/// Returns the only item of `chars`; `None` if there is not exactly one.
fn only_char(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    if chars.next().is_some() {
        return None;
    }
    Some(first)
}

/// Folds a text. ASCII, which most text is, is folded byte by byte.
pub fn fold_text(text: &str) -> Cow<'_, str> {
    if beyond_ascii(text).all(has_no_case) {
        if !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Borrowed(text);
        }
        return Cow::Owned(text.to_ascii_lowercase());
    }

    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = ascii_prefix(rest.as_bytes());
        let ascii_start = out.len();
        out.push_str(&rest[..ascii]);
        out[ascii_start..].make_ascii_lowercase();
        let mut others = rest[ascii..].chars();
        if let Some(c) = others.next() {
            out.push(fold_char(c));
        }
        rest = others.as_str();
    }
    Cow::Owned(out)
}

/// Returns true for common characters that are already composed and do not combine with others.
const fn is_composed(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{21ff}' | '\u{2500}'..='\u{27ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{1f300}'..='\u{1faff}')
}

/// Returns the composed form (NFC) of a text; `None` if it is the same.
pub fn nfc_if_different(text: &str) -> Option<String> {
    if may_compose(beyond_ascii(text)) { compute_nfc(text) } else { None }
}

/// Returns true if composing may change a text with these characters beyond ASCII. Characters that
/// are already composed are skipped. Skipping them can only make two marks look out of order, and
/// composing then gives the right result.
fn may_compose(beyond_ascii: impl Iterator<Item = char>) -> bool {
    is_nfc_quick(beyond_ascii.filter(|c| !is_composed(*c))) != IsNormalized::Yes
}

/// Returns true for the two letters that a case-insensitive regex treats as ASCII: s and k.
const fn is_like_ascii(c: char) -> bool {
    matches!(c, '\u{17f}' | '\u{212a}')
}

/// Returns every folded form of `text` in which a needle may be found: as written, composed, and
/// with the two letters that a case-insensitive regex treats as ASCII (ſ for s, the Kelvin sign for
/// k).
pub fn searchable_forms(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    // One pass serves both checks, because most texts need neither form.
    let mut has_like_ascii = false;
    let characters = beyond_ascii(text).inspect(|c| has_like_ascii |= is_like_ascii(*c));
    let mut composed = None;
    if may_compose(characters) {
        composed = compute_nfc(text);
        // The pass may have ended early.
        has_like_ascii = text.contains(is_like_ascii);
    }

    let mut ascii = None;
    if has_like_ascii {
        ascii = Some(text.replace('\u{17f}', "s").replace('\u{212a}', "k"));
    }
    let others = [composed, ascii].into_iter().flatten();
    std::iter::once(fold_text(text))
        .chain(others.map(|form| Cow::Owned(fold_text(&form).into_owned())))
}

/// Composes a text (NFC). Returns `None` if the result is the same.
fn compute_nfc(text: &str) -> Option<String> {
    let composed: String = text.nfc().collect();
    if composed == text { None } else { Some(composed) }
}

/// Returns the offset in `text` that corresponds to byte `at` of another form of it, which is
/// composed first if `must_compose`, then folded unless `is_case_sensitive`.
pub fn unfold_offset(text: &str, at: usize, must_compose: bool, is_case_sensitive: bool) -> usize {
    let mut folded = 0;
    let mut pieces = text.char_indices().peekable();
    while let Some((offset, c)) = pieces.next() {
        if folded >= at {
            return offset;
        }
        let mut end = offset + c.len_utf8();
        // A letter is composed with all marks that follow it and may change with them.
        while must_compose
            && let Some((_, next)) = pieces.next_if(|(_, next)| may_join_previous(*next))
        {
            end += next.len_utf8();
        }
        folded += if must_compose {
            text[offset..end].nfc().map(|c| folded_bytes(c, is_case_sensitive)).sum::<usize>()
        } else {
            folded_bytes(c, is_case_sensitive)
        };
    }
    text.len()
}

/// Returns the number of bytes that `c` takes in a folded text, or in the text itself if
/// `is_case_sensitive`.
fn folded_bytes(c: char, is_case_sensitive: bool) -> usize {
    if is_case_sensitive { c.len_utf8() } else { fold_char(c).len_utf8() }
}

/// Returns true if `c` may be composed with the character before it.
fn may_join_previous(c: char) -> bool {
    !c.is_ascii() && is_nfc_quick(std::iter::once(c)) != IsNormalized::Yes
        || unicode_normalization::char::is_combining_mark(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_within_and_outside_ascii() {
        assert_eq!(fold_text("ÄÖ ß Straße ABC"), "äö ß straße abc");
        assert!(matches!(fold_text("already →"), Cow::Borrowed("already →")));
        // The Kelvin sign's lower case is an ASCII k: it keeps to itself, as do ſ and dotless ı.
        for own in ["\u{212a}", "ſ", "ı", "İ"] {
            assert_eq!(fold_text(own), own);
        }
        assert_eq!(fold_text("ΣΟΦΟΣ σοφος σοφος"), fold_text("σοφος σοφος σοφοσ"));
        assert_eq!(fold_text("µ"), fold_text("Μ"));
    }

    #[test]
    fn what_has_no_case_folds_to_itself() {
        let changes = |c: &char| {
            only_char(c.to_lowercase()) != Some(*c) || only_char(c.to_uppercase()) != Some(*c)
        };
        let wrong: Vec<char> =
            (char::MIN..=char::MAX).filter(|c| has_no_case(*c)).filter(changes).collect();
        assert_eq!(wrong, [] as [char; 0]);
    }

    #[test]
    fn what_is_composed_in_itself_joins_nothing() {
        let alone = |c: &char| is_nfc_quick(std::iter::once(*c)) == IsNormalized::Yes;
        let joins = |c: &char| unicode_normalization::char::canonical_combining_class(*c) != 0;
        let claimed = (char::MIN..=char::MAX).filter(|c| is_composed(*c));
        let wrong: Vec<char> = claimed.filter(|c| !alone(c) || joins(c)).collect();
        assert_eq!(wrong, [] as [char; 0]);
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
            "x\u{323}─\u{301}─",
        ] {
            let nfc: String = text.nfc().collect();
            assert_eq!(nfc_if_different(text), (nfc != text).then_some(nfc), "{text:?}");
        }
    }

    #[test]
    fn forms_are_those_a_needle_may_be_found_in() {
        let forms = |text| super::searchable_forms(text).map(Cow::into_owned).collect::<Vec<_>>();
        assert_eq!(forms("Plain"), ["plain"]);
        assert_eq!(forms("Cafe\u{301}"), ["cafe\u{301}", "café"]);
        assert_eq!(forms("3 \u{212a}"), ["3 \u{212a}", "3 k", "3 k"]);
        assert_eq!(forms("한국어"), ["한국어"]);
        assert_eq!(forms("→ Grün"), ["→ grün"]);
        assert_eq!(
            forms("a\u{301}\u{323} \u{17f}").last().map(String::as_str),
            Some("a\u{301}\u{323} s")
        );
        // The marks look out of order only without the character between them.
        assert_eq!(forms("x\u{301}─\u{323} \u{17f}"), ["x\u{301}─\u{323} ſ", "x\u{301}─\u{323} s"]);
    }

    #[test]
    fn offsets_lead_back_when_lengths_differ() {
        let text = "xȺȺy";
        let at = fold_text(text).find('y').expect("there");
        assert_ne!(at, text.find('y').expect("there"));
        assert_eq!(unfold_offset(text, at, false, false), text.find('y').expect("there"));
        let text = "Cafe\u{301} Cafe\u{301} y";
        let folded = fold_text(&nfc_if_different(text).expect("differs")).into_owned();
        let at = folded.find('y').expect("there");
        assert_eq!(unfold_offset(text, at, true, false), text.find('y').expect("there"));
    }
}
