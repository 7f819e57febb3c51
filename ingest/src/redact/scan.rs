//! The state of a search for secrets in one text: its bytes, and the secrets found so far.

use std::ops::Range;

/// The beginning of every placeholder that replaces a secret: `[REDACTED:github_token]`.
pub(super) const MASK: &str = "[REDACTED:";

/// Maximum length in bytes of the kind of secret that a placeholder shows. The name of a user's
/// rule is such a kind.
pub(super) const MAX_KIND_BYTES: usize = 40;

/// The kind of the secrets that a rule masks. Its address identifies the rule.
pub(super) struct RuleKind {
    pub(super) name: &'static str,
    /// The other kinds that the rule may mask.
    pub(super) others: &'static [&'static str],
    pub(super) rank: Rank,
}

/// The kind of the rules for encoded text, which mask any kind.
pub(super) const ANY_KIND: &str = "any";

/// A part of the text to be masked, and the kind of its secret. Positions are in bytes.
#[derive(Clone, Copy)]
pub(super) struct SecretSpan<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'a str,
    pub(super) rank: Rank,
    /// The built-in rule; `None` for a rule of the user.
    pub(super) rule: Option<&'static RuleKind>,
}

/// How specific a rule is: where several rules find the same place, the highest rank names the
/// kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The name of the value.
    Named,
    /// The text around the value.
    Around,
    /// The shape of the value itself.
    Shape,
    /// A rule of the user.
    User,
}

/// Length of the longest placeholder in bytes.
const MAX_PLACEHOLDER_BYTES: usize = MASK.len() + MAX_KIND_BYTES + 1;

/// Maximum number of failed tries to match a token within [`MAX_RUN_BYTES`] of a run of token
/// characters. It also limits the values that begin inside another value.
const MAX_TRIES: usize = 32;

/// Maximum length in bytes of a run of token characters. A longer run counts as several.
const MAX_RUN_BYTES: usize = 8 << 10;

/// Returns the secrets that the rules with an anchor find in a text.
pub(super) type FindSecrets = fn(&str) -> Vec<SecretSpan<'static>>;

/// One text and the progress of the rules in it. Positions are in bytes. Bytes outside the text
/// read as zero.
pub(super) struct SecretScan<'a> {
    text: &'a str,
    /// Searches a decoded text for secrets.
    find_decoded: FindSecrets,
    /// The rule that is tried, which gives the secrets their kind.
    pub(super) rule: Option<&'static RuleKind>,
    /// End of the last name that was examined.
    pub(super) name_end: usize,
    /// Position up to which the last private key was followed.
    pub(super) key_end: usize,
    /// Position up to which web keys were examined. A web key whose type is before this position
    /// needs no further check.
    pub(super) web_key_end: usize,
    /// End of the last words that were examined as a seed phrase.
    pub(super) phrase_end: usize,
    /// End of the last command whose pairs of names and values were examined.
    pub(super) pairs_end: usize,
    /// End of the last table whose columns were examined.
    pub(super) table_end: usize,
    /// End of the last line with a command whose output was examined.
    pub(super) command_end: usize,
    /// End of the last text that was decoded.
    pub(super) decoded_end: usize,
    /// Position up to which the last list of cookies was examined.
    pub(super) cookies_end: usize,
    /// End of the last run of token characters in which a token was tried.
    run_end: usize,
    /// Number of failed tries in that run.
    failed_tries: usize,
    /// End of the last unquoted value.
    last_value_end: usize,
    /// Number of values that begin inside that value and were not secrets.
    failed_values: usize,
    /// The secrets of the built-in rules.
    spans: Vec<SecretSpan<'static>>,
}

impl<'a> SecretScan<'a> {
    /// Begins a search in `text`. `find_decoded` searches what rules decode.
    pub(super) fn new(text: &'a str, find_decoded: FindSecrets) -> Self {
        Self {
            text,
            find_decoded,
            rule: None,
            name_end: 0,
            key_end: 0,
            web_key_end: 0,
            phrase_end: 0,
            pairs_end: 0,
            table_end: 0,
            command_end: 0,
            decoded_end: 0,
            cookies_end: 0,
            run_end: 0,
            failed_tries: 0,
            last_value_end: 0,
            failed_values: 0,
            spans: Vec::new(),
        }
    }

    /// Returns the first kind of the rule that is tried.
    pub(super) fn kind(&self) -> &'static str {
        self.rule.map_or("", |rule| rule.name)
    }

    /// Returns the whole text.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the length of the text in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the text as bytes.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Returns the byte at `at`, or zero outside the text.
    pub(super) fn byte(&self, at: usize) -> u8 {
        count_examined_bytes(1);
        self.bytes().get(at).copied().unwrap_or(0)
    }

    /// Returns the byte before `at`.
    pub(super) fn byte_before(&self, at: usize) -> u8 {
        self.nth_byte_before(at, 1)
    }

    /// Returns the byte that is `distance` bytes before `at`.
    fn nth_byte_before(&self, at: usize, distance: usize) -> u8 {
        at.checked_sub(distance).map_or(0, |at| self.byte(at))
    }

    /// Returns whether the byte at `at` is the letter of an escape, as in `\nword`.
    pub(super) fn is_escape_letter(&self, at: usize) -> bool {
        self.byte_before(at) == b'\\' && matches!(self.byte(at), b'n' | b'r' | b't')
    }

    /// Returns a part of the text. It is empty if the range is outside the text or cuts a
    /// character.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        count_examined_bytes(end.min(self.len()).saturating_sub(start));
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns whether the text continues with `part` at `at`.
    pub(super) fn has_text_at(&self, at: usize, part: &str) -> bool {
        self.slice(at, at + part.len()) == part
    }

    /// Returns whether `part` ends right before `at`.
    pub(super) fn has_text_before(&self, at: usize, part: &str) -> bool {
        self.slice(at.saturating_sub(part.len()), at) == part
    }

    /// Returns the text from `start` on, at most about `length` bytes of it.
    pub(super) fn text_from(&self, start: usize, length: usize) -> &'a str {
        self.slice(start, self.text.floor_char_boundary(start.saturating_add(length)))
    }

    /// Returns the text before `end`, at most about `length` bytes of it.
    pub(super) fn text_before(&self, end: usize, length: usize) -> &'a str {
        self.slice(self.text.ceil_char_boundary(end.saturating_sub(length)), end)
    }

    /// Returns the end of the bytes from `at` on that fit, after at most `max_length` bytes.
    #[inline]
    pub(super) fn skip_while(
        &self,
        at: usize,
        max_length: usize,
        fits: impl Fn(u8) -> bool,
    ) -> usize {
        let rest = self.bytes().get(at..).unwrap_or_default();
        let count = rest.iter().take(max_length).take_while(|byte| fits(**byte)).count();
        count_examined_bytes(count);
        at + count
    }

    /// Returns whether a token may begin at `at`. No letter or digit may be before it, except for
    /// those of an escape as in `\nghp_` and `%3Dghp_`. After a `-` that follows a letter, a digit,
    /// `_` or another `-`, a token begins only if a secret ends right before the `-`.
    pub(super) fn may_begin_token(&self, at: usize) -> bool {
        let last = self.byte_before(at);
        let second_last = self.nth_byte_before(at, 2);
        if last == b'-' {
            return (!is_identifier_byte(second_last) && second_last != b'-')
                || self.spans.last().is_some_and(|span| span.end + 1 == at);
        }

        !is_identifier_byte(last)
            || (second_last == b'\\' && matches!(last, b'n' | b'r' | b't' | b'b' | b'f'))
            || (self.nth_byte_before(at, 3) == b'%' && self.has_hex_digits_before(at, 2))
            || (self.nth_byte_before(at, 6) == b'\\'
                && self.nth_byte_before(at, 5) == b'u'
                && self.has_hex_digits_before(at, 4))
            || (last == b'm' && self.is_colour_end(at - 1))
    }

    /// Returns whether the `count` bytes before `at` are hexadecimal digits.
    fn has_hex_digits_before(&self, at: usize, count: usize) -> bool {
        (1..=count).all(|distance| self.nth_byte_before(at, distance).is_ascii_hexdigit())
    }

    /// Returns whether the `m` at `at` ends a terminal's colour code: `\u001b[1;31m`.
    fn is_colour_end(&self, at: usize) -> bool {
        let digits_start = self.run_start(at, 12, |byte| matches!(byte, b'0'..=b'9' | b';'));
        let escape = digits_start.saturating_sub(1);
        self.byte_before(digits_start) == b'['
            && ["\u{1b}", "\\x1b", "\\x1B", "\\u001b", "\\u001B", "\\033", "\\e"]
                .iter()
                .any(|code| self.has_text_before(escape, code))
    }

    /// Returns the start of the bytes before `at` that fit, at most `max_length` of them.
    #[inline]
    pub(super) fn run_start(
        &self,
        at: usize,
        max_length: usize,
        fits: impl Fn(u8) -> bool,
    ) -> usize {
        let before = self.bytes().get(..at).unwrap_or_default();
        let count = before.iter().rev().take(max_length).take_while(|byte| fits(**byte)).count();
        count_examined_bytes(count);
        at.min(self.len()) - count
    }

    /// Counts a try to match a token at `start` and returns whether it may be made. A try may read
    /// many bytes, so only [`MAX_TRIES`] of one run may fail.
    pub(super) fn may_try(&mut self, start: usize) -> bool {
        if start >= self.run_end {
            self.run_end = self.skip_while(start, MAX_RUN_BYTES, is_token);
            self.failed_tries = 0;
        }
        self.failed_tries += 1;
        self.failed_tries <= MAX_TRIES
    }

    /// Notes that the last try found a token at `start`. A token that begins inside another still
    /// counts as a failed try, because there may be as many of them as the outer one has
    /// characters.
    pub(super) fn note_token_found(&mut self, start: usize) {
        if self.spans.last().is_none_or(|span| span.end <= start) {
            self.failed_tries -= 1;
        }
    }

    /// Returns the end of the unquoted value that begins at `start`: the first byte that does not
    /// fit, or `max_length` bytes later. Returns `None` if many values begin inside another one and are
    /// not secrets, as in `key=key=key=`, because each of them would be followed to the end.
    pub(super) fn value_end(
        &mut self,
        start: usize,
        max_length: usize,
        fits: impl Fn(u8) -> bool,
    ) -> Option<usize> {
        if start >= self.last_value_end {
            self.failed_values = 0;
        } else if self.failed_values >= MAX_TRIES {
            return None;
        }
        self.failed_values += 1;
        self.last_value_end = self.skip_while(start, max_length, fits);
        Some(self.last_value_end)
    }

    /// Returns the secrets of a text that a rule decoded.
    pub(super) fn find_decoded(&self, text: &str) -> Vec<SecretSpan<'static>> {
        (self.find_decoded)(text)
    }

    /// Adds a secret of the rule's kind, unless a placeholder overlaps it.
    pub(super) fn add_secret(&mut self, start: usize, end: usize) {
        self.add_secret_of(start, end, self.kind());
    }

    /// Adds a secret of another kind than the rule's first one.
    pub(super) fn add_secret_of(&mut self, start: usize, end: usize, kind: &'static str) {
        if let Some(rule) = self.rule {
            self.add_ranked(start, end, kind, rule.rank);
        }
    }

    /// Adds a secret of another kind and rank than the rule's.
    pub(super) fn add_ranked(&mut self, start: usize, end: usize, kind: &'static str, rank: Rank) {
        if self.may_mask(start, end) {
            self.spans.push(SecretSpan { start, end, kind, rank, rule: self.rule });
            self.failed_values = 0;
        }
    }

    /// Returns whether a part of the text is a text that no placeholder overlaps.
    pub(super) fn may_mask(&self, start: usize, end: usize) -> bool {
        let is_valid = self.text.get(start..end).is_some_and(|secret| !secret.is_empty());
        is_valid && !self.is_masked(start, end)
    }

    /// Returns whether a placeholder overlaps the given part of the text. Text that only begins like a
    /// placeholder protects nothing.
    fn is_masked(&self, start: usize, end: usize) -> bool {
        let window_start = start.saturating_sub(MAX_PLACEHOLDER_BYTES);
        let window_end = self.len().min(end + MASK.len() - 1);
        let part = self.bytes().get(window_start..window_end).unwrap_or_default();
        memchr::memmem::find_iter(part, MASK)
            .any(|at| self.placeholder_end(window_start + at).is_some_and(|end| end > start))
    }

    /// Returns the end of the placeholder that begins at `at`, or `None` if none begins there.
    fn placeholder_end(&self, at: usize) -> Option<usize> {
        let name = at + MASK.len();
        let end = self.skip_while(name, MAX_KIND_BYTES, is_kind_byte);
        (end > name && self.byte(end) == b']').then_some(end + 1)
    }

    /// Returns the secrets of the built-in rules as each rule found them.
    pub(super) fn into_spans(self) -> Vec<SecretSpan<'static>> {
        self.spans
    }

    /// Returns the secrets of the built-in rules, and those of the user's, in the order of the text.
    /// Overlapping ones are merged: the longest gives
    /// the kind, and among equally long ones the one with the higher [`Rank`].
    pub(super) fn finish<'k>(self, mut of_user: Vec<SecretSpan<'k>>) -> Vec<SecretSpan<'k>> {
        let mut found: Vec<SecretSpan<'k>> = self.spans;
        found.append(&mut of_user);
        found.sort_by_key(|span| (span.start, std::cmp::Reverse((span.end, span.rank))));
        let mut spans: Vec<SecretSpan<'k>> = Vec::with_capacity(found.len());
        for span in found {
            match spans.last_mut() {
                Some(last) if span.start < last.end => {
                    if (span.end - span.start, span.rank) > (last.end - last.start, last.rank) {
                        last.kind = span.kind;
                        last.rank = span.rank;
                    }
                    last.end = last.end.max(span.end);
                }
                _ => spans.push(span),
            }
        }
        spans
    }
}

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts the bytes that rules read, or may read, in tests of this crate only.
#[inline(always)]
fn count_examined_bytes(bytes: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

/// Returns whether a token may contain the byte.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/' | b'=' | b'~' | b':' | b'%')
}

/// Returns the place and the kind of each placeholder in a text.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    text.match_indices(MASK).filter_map(|(start, _)| {
        let name_start = start + MASK.len();
        let name_end = text.floor_char_boundary(name_start + MAX_KIND_BYTES + 1);
        let (kind, _) = text.get(name_start..name_end)?.split_once(']')?;
        Some((start..name_start + kind.len() + 1, kind))
    })
}

/// Returns a text with placeholders instead of these ranges, which are in order. Each has the
/// kind of its secret.
pub(super) fn replace_ranges<'k>(
    text: &str,
    ranges: impl Iterator<Item = (Range<usize>, &'k str)>,
) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut copied_end = 0;
    for (range, kind) in ranges {
        masked.push_str(text.get(copied_end..range.start).unwrap_or_default());
        masked.extend([MASK, kind, "]"]);
        copied_end = range.end;
    }
    masked.push_str(text.get(copied_end..).unwrap_or_default());
    masked
}

/// Returns the kind of each placeholder in a text.
pub fn masked_kinds(text: &str) -> impl Iterator<Item = &str> {
    placeholders(text).map(|(_, kind)| kind)
}

/// Returns whether the kind in a placeholder may contain the byte.
pub(super) fn is_kind_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Returns whether a secret was masked in a text, here or before the log was passed on.
pub fn has_placeholder(text: &str) -> bool {
    text.contains("REDACTED")
}

/// Returns whether a byte is a space or a tab.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns whether a byte is a quote of some language.
pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// Returns whether a byte is a letter, a digit or `_`, as in the identifiers of most languages.
pub(super) fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether the name of a setting may contain the byte: `api_key`, `x-auth-token`.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns whether the name of an environment variable may contain the byte: `DB_PASSWORD2`.
pub(super) fn is_variable_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::super::redactor::{Redactor, SecretCounts};
    use super::*;

    /// Returns the number of bytes read in `bytes` bytes of a repeated piece.
    fn work(redactor: &Redactor, piece: &str, bytes: usize) -> usize {
        let text = piece.repeat(bytes / piece.len());
        LOOKED_AT.set(0);
        redactor.mask(&text, &mut SecretCounts::default());
        LOOKED_AT.get()
    }

    /// What a place costs does not grow with what follows it: four times the text is about four
    /// times the work, and would be sixteen times else.
    #[test]
    fn anchors_that_repeat_cost_little() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        for piece in [
            "/ops_eyJ",
            "/xoxb-",
            "/fm2_",
            "token=\"",
            "eyJ",
            "_key",
            "-----BEGIN PRI‹›VATE KEY-----",
            "b3BlbnNzaC1rZXktdjE ",
            "curl -u a:",
            "A=1\nTOKEN=abc\n",
            "Cookie: a=b; ",
            "x://a:",
            "{\"kty\":\"oct\",\"k\":",
            "\"kty\"",
            "password is ",
            "%3A%2F%2Fa%3Ab",
            "\"cookies\":[",
            "\"cookies\":[{\"name\":\"a\",\"value\":\"b\"},",
            "expect \"password\"\nsend \"",
            "$ANSIBLE_VAULT;1.1;AES256\n",
            "seed phrase: abandon ",
            "bitcoin wif: ",
            "-----END PRI‹›VATE KEY-----",
            "MIIEpAIBAAK",
            "MIIEpAIBAAKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
            "ghp_aaaaaaaa\n",
            "kind: Secret\n",
            "kind: Secret\ndata:\n  a: b\n---\n",
            "{\"kind\":\"Secret\",\"data\":{\"a\":\"b\"}},",
            "curl -b a=b; ",
            "fly secrets set A=b ",
            "http%253A%252F%252Fa%253Ab",
            "exec_commandghp_",
            "tasksk-",
            "Authorization: Bearer aB3dE5gH7jK9mN1p\n",
            "eyJhbGciaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
            "AAAAAAAAAAAAAAAA",
            "privateExponent:\n    00:12:34:\n    56:",
            "<RSAKeyValue><D>",
            "-----BEGIN+PRI‹›VATE+KEY-----",
            "-----BEGIN PRI‹›VATE KEY-----<br>\n",
            "nsec1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq ",
            "a\tTRUE\t/\tTRUE\t1\tsid\tb\n",
            "# ghp_aaaaaaaa\n",
            "a.txt:1:ghp_aaaaaaaa\n",
            "- value: a\n  name: token\n",
            "variable \"token\" { type = string ",
            "form-data; name=\"token\"\n\n",
            "\\u0070a",
            "%70%61",
            "%3Da\n",
            "&#112;a",
            "&amp;a",
            "\" + \"",
            "' + 'token: 'a",
            "ｐａｓｓ",
            "00000000: 7061 7373\n",
            "echo aGFyYm9y | se64 -d; ",
            "$ jq -r .token a\nb\n",
            "jq -r .token a; ",
            "user,password\na,b\n",
            "token\ttoken\n",
            "| token |\n|---|\n",
        ] {
            let piece = piece.replace("‹›", "");
            let [less, more] = [16 << 10, 64 << 10].map(|bytes| work(&redactor, &piece, bytes));
            assert!(less > 1000 && more < 8 * less, "{piece:?}: {less}, {more}");
        }
    }

    /// Seed phrases and keys of Bitcoin have no anchor, but only a few bytes of a text are examined.
    #[test]
    fn texts_without_anchors_cost_little() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        for piece in [
            "the harbour master walked along the quay and counted boats ",
            "abandon ability able about above absent absorb abstract absurd abuse access accident ",
            "zoo abandon ",
            "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTK ",
            "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        ] {
            let of_a_byte = work(&redactor, piece, 256 << 10) / (256 << 10);
            assert!(of_a_byte < 40, "{piece:?}: {of_a_byte}");
        }
    }

    /// Bytes that were read for one place are not read again for the next ones within.
    #[test]
    fn places_within_others_cost_nearly_nothing() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        for piece in ["api_key=", "?api_key=", "\"kty\"", "{\"kty\":", "%3A%2F%2F"] {
            let of_a_byte = work(&redactor, piece, 256 << 10) / (256 << 10);
            assert!(of_a_byte < 150, "{piece:?}: {of_a_byte}");
        }
    }
}
