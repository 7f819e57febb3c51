//! Finds where in a text its secrets are, so that they can be replaced in the text as it is written in
//! a log: with the terminal escapes and invisible characters that events do not have.

use std::borrow::Cow;
use std::ops::Range;

use super::redactor::{MAX_ROUNDS, Redactor};
use super::scan::MASK;
use super::secrets::{MIN_EMBEDDED_BYTES, find_word};
use crate::text::sanitize::{clean, escape_length};

/// A secret and its place in a text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretRange {
    pub(crate) range: Range<usize>,
    pub(crate) kind: String,
}

impl SecretRange {
    /// Returns the placeholder that replaces the secret.
    pub(crate) fn mask(&self) -> String {
        format!("{MASK}{}]", self.kind)
    }

    /// Returns the place in a text that has `start` more bytes in front.
    pub(crate) fn moved_by(self, start: usize) -> Self {
        Self { range: self.range.start + start..self.range.end + start, ..self }
    }
}

/// Secrets whose text is known from elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct KnownSecrets<'k> {
    /// Kind and text of the secrets that the events of the same record have. Where the rules find one
    /// of them, it has the kind that it has there.
    pub(crate) secrets: &'k [(String, String)],
    /// Returns whether a secret is also found where nothing announces it.
    pub(crate) is_sought: &'k dyn Fn(&str) -> bool,
}

/// Returns the places of the secrets in a text, in order. They do not overlap. `printed_by` is the
/// command whose output `text` is; empty if it is another text.
pub(crate) fn find_all_places(
    redactor: &Redactor,
    text: &str,
    printed_by: &str,
    known: Option<KnownSecrets<'_>>,
) -> Vec<SecretRange> {
    let cleaned = clean(text);
    let mut places = find_places(redactor, &cleaned, printed_by);
    if let Some(known) = known {
        add_known(&mut places, &cleaned, known);
    }
    match cleaned {
        Cow::Borrowed(_) => places,
        Cow::Owned(cleaned) if !places.is_empty() => places_before_cleaning(text, &cleaned, places),
        Cow::Owned(_) => Vec::new(),
    }
}

/// Adds the places of known secrets in a text.
fn add_known(places: &mut Vec<SecretRange>, text: &str, known: KnownSecrets<'_>) {
    for (kind, secret) in known.secrets {
        let mut is_found = false;
        for place in places.iter_mut() {
            if text.get(place.range.clone()) == Some(secret) {
                place.kind.clone_from(kind);
                is_found = true;
            }
        }
        if !is_found && (known.is_sought)(secret) {
            for range in find_word(text, secret) {
                add_place(places, SecretRange { range, kind: kind.clone() });
            }
        }
    }
}

/// Returns whether a secret is long enough to be one wherever it occurs.
pub(crate) fn is_long(secret: &str) -> bool {
    secret.len() >= MIN_EMBEDDED_BYTES
}

/// Adds a place unless it overlaps another one.
fn add_place(places: &mut Vec<SecretRange>, new: SecretRange) {
    let at = places.partition_point(|place| place.range.end <= new.range.start);
    if places.get(at).is_none_or(|next| new.range.end <= next.range.start) {
        places.insert(at, new);
    }
}

/// Returns the places of the secrets that the rules find in a text, in order.
fn find_places(redactor: &Redactor, text: &str, printed_by: &str) -> Vec<SecretRange> {
    let mut places: Vec<SecretRange> = Vec::new();
    let mut masked = Cow::Borrowed(text);
    for _ in 0..MAX_ROUNDS {
        let spans = redactor.find_secrets(&masked, printed_by);
        if spans.is_empty() {
            break;
        }
        let mut found = Vec::with_capacity(spans.len());
        for span in &spans {
            let start = position_before_masking(&places, span.start).start;
            let end = position_before_masking(&places, span.end).end;
            found.push(SecretRange { range: start..end, kind: span.kind.to_owned() });
        }
        for new in found {
            places.retain(|place| {
                place.range.end <= new.range.start || place.range.start >= new.range.end
            });
            add_place(&mut places, new);
        }
        masked = Cow::Owned(mask_places(text, &places));
    }
    places
}

/// Returns bytes with placeholders at these places, which are in order.
pub(crate) fn replace_places<'b>(bytes: &'b [u8], places: &[SecretRange]) -> Cow<'b, [u8]> {
    if places.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut masked = Vec::with_capacity(bytes.len());
    let mut copied_end = 0;
    for place in places {
        masked.extend_from_slice(bytes.get(copied_end..place.range.start).unwrap_or_default());
        masked.extend_from_slice(place.mask().as_bytes());
        copied_end = place.range.end;
    }
    masked.extend_from_slice(bytes.get(copied_end..).unwrap_or_default());
    Cow::Owned(masked)
}

/// Returns a text with placeholders at these places, which are in order and begin and end with
/// characters.
fn mask_places(text: &str, places: &[SecretRange]) -> String {
    String::from_utf8_lossy(&replace_places(text.as_bytes(), places)).into_owned()
}

/// Returns the position in a text of a position in the text masked at `places`: empty, or the place
/// whose placeholder has the position inside it.
fn position_before_masking(places: &[SecretRange], position: usize) -> Range<usize> {
    // The lengths so far of the text and of the masked text differ by these.
    let (mut removed, mut added) = (0, 0);
    for place in places {
        let start = place.range.start + added - removed;
        let end = start + place.mask().len();
        if position <= start {
            break;
        }
        if position < end {
            return place.range.clone();
        }
        removed += place.range.len();
        added += end - start;
    }
    let at = position + removed - added;
    at..at
}

/// Moves places in a cleaned text to the text before it was cleaned. Returns none if the texts
/// cannot be compared.
fn places_before_cleaning(text: &str, cleaned: &str, places: Vec<SecretRange>) -> Vec<SecretRange> {
    // The start of each character of the cleaned text, and the end of the one before it.
    let mut starts = Vec::with_capacity(cleaned.len() + 1);
    let mut ends = Vec::with_capacity(cleaned.len() + 1);
    let mut at = 0;
    let mut end = 0;
    for kept in cleaned.chars() {
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let Some(c) = rest.chars().next() else { return Vec::new() };
            if let Some(length) = escape_length(rest) {
                at += length;
                continue;
            }
            let is_line_break = kept == '\n' && matches!(c, '\r' | '\u{2028}' | '\u{2029}');
            if c == kept || is_line_break {
                starts.extend(std::iter::repeat_n(at, kept.len_utf8()));
                ends.extend(std::iter::repeat_n(end, kept.len_utf8()));
                at += c.len_utf8();
                end = at;
                break;
            }
            at += c.len_utf8();
        }
    }
    starts.push(text.len());
    ends.push(end);
    let moved = places.into_iter().map(|place| SecretRange {
        range: starts[place.range.start]..ends[place.range.end],
        kind: place.kind,
    });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::super::user_rule::UserRule;
    use super::*;

    fn redactor() -> Redactor {
        let rule = UserRule { name: "boat".to_owned(), regex: "Kittiwake|Petrel".to_owned() };
        Redactor::new(&[rule]).expect("a rule")
    }

    #[test]
    fn a_text_masked_at_its_places_is_the_masked_text() {
        let redactor = redactor();
        for text in [
            "",
            "Kittiwake",
            "KittiwakeKittiwake, Petrel",
            "DB_PASSWORD=kJ8dPq2mXv7Lr4TzWb9 and curl -u mira:fj0rd7 https://x.example",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345 ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "é Kittiwake é",
        ] {
            let places = find_all_places(&redactor, text, "", None);
            let masked = redactor.mask(text, &mut <_>::default()).into_owned();
            assert_eq!(mask_places(text, &places), masked);
        }
    }

    #[test]
    fn invisible_characters_go_with_the_secret_that_they_split() {
        let text = "\u{1b}[31mKitti\u{200b}wake\u{1b}[0m and \rPetrel\u{feff}";
        let places = find_all_places(&redactor(), text, "", None);
        let masked = mask_places(text, &places);
        assert_eq!(masked, "\u{1b}[31m[REDACTED:boat]\u{1b}[0m and \r[REDACTED:boat]\u{feff}");
    }

    #[test]
    fn known_secrets_are_found_without_what_announces_them() {
        let known = [("password".to_owned(), "barnacle".to_owned())];
        let text = "the barnacle";
        let find = |is_sought: &dyn Fn(&str) -> bool| {
            let known = KnownSecrets { secrets: &known, is_sought };
            find_all_places(&redactor(), text, "", Some(known))
        };
        let sought = find(&|_| true);
        assert_eq!(mask_places(text, &sought), "the [REDACTED:password]");
        assert!(find(&|_| false).is_empty());
    }
}
