//! Finds where in a text its secrets are, so that they can be replaced in the text as it is written in
//! a log: with the terminal escapes and invisible characters that events do not have.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::redactor::{MAX_ROUNDS, Redactor};
use super::scan::MASK;
use super::secrets::{MIN_EMBEDDED_BYTES, is_secret_at};
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

/// Secrets whose text is known from elsewhere: those that the events of the same record have. Where the
/// rules find one of them, it has the kind that it has there.
pub(crate) struct KnownSecrets<'k> {
    /// The kind of each secret, by its text.
    kinds: HashMap<&'k str, &'k str>,
    /// Those that are also found where nothing announces them, each with its kind.
    sought: Vec<&'k (String, String)>,
    /// Finds these; `None` if there are none.
    finder: Option<AhoCorasick>,
}

impl<'k> KnownSecrets<'k> {
    /// Takes kind and text of the secrets. `is_thorough` says whether they are found where nothing announces
    /// them also if they are short.
    pub(crate) fn new(secrets: &'k [(String, String)], is_thorough: bool) -> Self {
        let is_sought = |secret: &str| {
            !secret.is_empty() && (is_thorough || secret.len() >= MIN_EMBEDDED_BYTES)
        };
        let sought: Vec<_> = secrets.iter().filter(|(_, secret)| is_sought(secret)).collect();
        let words = sought.iter().map(|(_, secret)| secret);
        let finder = (!sought.is_empty()).then(|| AhoCorasick::new(words).ok()).flatten();
        let kinds = secrets.iter().map(|(kind, secret)| (&**secret, &**kind)).collect();
        Self { kinds, sought, finder }
    }
}

/// Returns the places of the secrets in a text, in order. They do not overlap. `printed_by` is the
/// command whose output `text` is; empty if it is another text.
pub(crate) fn find_all_places(
    redactor: &Redactor,
    text: &str,
    printed_by: &str,
    known: Option<&KnownSecrets<'_>>,
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

/// Returns the places of known secrets in a text, in order, by their text alone.
pub(crate) fn find_known_places(text: &str, known: &KnownSecrets<'_>) -> Vec<SecretRange> {
    let mut places = Vec::new();
    add_known(&mut places, text, known);
    places
}

/// Adds the places of known secrets in a text.
fn add_known(places: &mut Vec<SecretRange>, text: &str, known: &KnownSecrets<'_>) {
    let mut announced = HashSet::new();
    for place in places.iter_mut() {
        if let Some(secret) = text.get(place.range.clone())
            && let Some(kind) = known.kinds.get(secret)
        {
            (*kind).clone_into(&mut place.kind);
            announced.insert(secret);
        }
    }
    let Some(finder) = &known.finder else { return };
    let mut found = Vec::new();
    for one in finder.find_overlapping_iter(text) {
        let (_, secret) = known.sought[one.pattern().as_usize()];
        if !announced.contains(&**secret) && is_secret_at(text, one.start(), secret) {
            found.push((one.pattern().as_usize(), one.range()));
        }
    }
    if found.is_empty() {
        return;
    }
    found.sort_unstable_by_key(|(secret, range)| (*secret, range.start));
    let mut by_start: BTreeMap<usize, SecretRange> =
        places.drain(..).map(|place| (place.range.start, place)).collect();
    for (secret, range) in found {
        let before = by_start.range(..range.end).next_back();
        if before.is_none_or(|(_, place)| place.range.end <= range.start) {
            let (kind, _) = known.sought[secret];
            by_start.insert(range.start, SecretRange { range, kind: kind.clone() });
        }
    }
    places.extend(by_start.into_values());
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
        let placeholders = Placeholders::of_places(&places);
        let mut found: Vec<SecretRange> = Vec::with_capacity(spans.len());
        for span in &spans {
            let start = placeholders.position_before(span.start).start;
            let end = placeholders.position_before(span.end).end;
            while found.last().is_some_and(|last| last.range.end > start) {
                found.pop();
            }
            found.push(SecretRange { range: start..end, kind: span.kind.to_owned() });
        }
        // A place that overlaps a new one goes.
        places.retain(|place| {
            let after = found.partition_point(|new| new.range.end <= place.range.start);
            found.get(after).is_none_or(|new| new.range.start >= place.range.end)
        });
        places.extend(found);
        places.sort_unstable_by_key(|place| place.range.start);
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

/// The placeholders of a masked text, in order.
struct Placeholders<'p> {
    places: &'p [SecretRange],
    /// The place of each placeholder in the masked text.
    masked: Vec<Range<usize>>,
}

impl<'p> Placeholders<'p> {
    /// Returns those of a text that is masked at `places`.
    fn of_places(places: &'p [SecretRange]) -> Self {
        let mut masked = Vec::with_capacity(places.len());
        // The end of the last place, in the text and in the masked one.
        let (mut end, mut masked_end) = (0, 0);
        for place in places {
            let start = masked_end + (place.range.start - end);
            masked_end = start + place.mask().len();
            end = place.range.end;
            masked.push(start..masked_end);
        }
        Self { places, masked }
    }

    /// Returns the position in the text of a position in the masked one: empty, or the place whose
    /// placeholder has the position inside it.
    fn position_before(&self, position: usize) -> Range<usize> {
        let after = self.masked.partition_point(|place| place.end <= position);
        if let (Some(masked), Some(place)) = (self.masked.get(after), self.places.get(after))
            && masked.start < position
        {
            return place.range.clone();
        }
        let Some(last) = after.checked_sub(1) else { return position..position };
        let at = self.places[last].range.end + (position - self.masked[last].end);
        at..at
    }
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
    fn positions_in_a_masked_text_are_those_of_the_text() {
        let place = |range| SecretRange { range, kind: "x".to_owned() };
        // ab[REDACTED:x]cd[REDACTED:x][REDACTED:x]e
        let places = [place(2..5), place(7..8), place(8..40)];
        let placeholders = Placeholders::of_places(&places);
        let mask = places[0].mask().len();
        for (position, wanted) in [
            (0, 0..0),
            (2, 2..2),
            (3, 2..5),
            (2 + mask, 5..5),
            (3 + mask, 6..6),
            (4 + mask, 7..7),
            (5 + mask, 7..8),
            (4 + 2 * mask, 8..8),
            (3 + 3 * mask, 8..40),
            (4 + 3 * mask, 40..40),
            (5 + 3 * mask, 41..41),
        ] {
            assert_eq!(placeholders.position_before(position), wanted, "{position}");
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
        let secrets = ["barnacle", "fjord", "barnacle-fjord"];
        let secrets = secrets.map(|secret| ("password".to_owned(), secret.to_owned()));
        let mask = |text: &str, is_thorough: bool| {
            let known = KnownSecrets::new(&secrets, is_thorough);
            mask_places(text, &find_all_places(&redactor(), text, "", Some(&known)))
        };
        assert_eq!(mask("the barnacle", true), "the [REDACTED:password]");
        assert_eq!(mask("a barnacle-fjord", true), "a [REDACTED:password]-[REDACTED:password]");
        // A short one may be a part of a word.
        assert_eq!(mask("a fjord, two fjords", true), "a [REDACTED:password], two fjords");
        assert_eq!(mask("a fjord and a barnacle", false), "a fjord and a [REDACTED:password]");
        assert_eq!(mask("no secret", true), "no secret");
    }
}
