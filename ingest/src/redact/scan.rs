//! The state of a search for secrets in one text: its bytes, and the secrets found so far.

use super::placeholder::{MASK, MAX_KIND_BYTES};

/// A part of the text to be masked, and the kind of its secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'a str,
    rank: Rank,
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

/// Length in bytes of the longest placeholder.
const MAX_MASK: usize = MASK.len() + MAX_KIND_BYTES + 1;

/// Highest number of failed tries to match a token within `RUN` bytes of a run of characters. It
/// also limits the values that begin inside another value.
const MAX_TRIES: usize = 32;
const RUN: usize = 8 << 10;

/// One text and the progress of the rules in it. Bytes outside the text read as zero.
pub(super) struct Scan<'a> {
    text: &'a str,
    /// End of the last name that was examined.
    pub(super) name_end: usize,
    /// Position up to which the last private key was followed.
    pub(super) key_end: usize,
    /// Position up to which web keys were examined. A web key whose type is before it is done.
    pub(super) web_key_end: usize,
    /// End of the last run of token characters in which a token was tried. `tries` counts the
    /// failed tries in it.
    run_end: usize,
    tries: usize,
    /// End of the last unquoted value. `values_in_vain` counts the values that begin in it and were
    /// not secrets.
    last_value_end: usize,
    values_in_vain: usize,
    spans: Vec<Span<'a>>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            name_end: 0,
            key_end: 0,
            web_key_end: 0,
            run_end: 0,
            tries: 0,
            last_value_end: 0,
            values_in_vain: 0,
            spans: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        looked_at(1);
        self.bytes().get(at).copied().unwrap_or(0)
    }

    /// Returns the byte before `at`.
    pub(super) fn before(&self, at: usize) -> u8 {
        at.checked_sub(1).map_or(0, |at| self.byte(at))
    }

    /// Returns a part of the text. It is empty if the range is outside the text or cuts a
    /// character.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        looked_at(end.min(self.len()).saturating_sub(start));
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the text from `start` on, at most about `length` bytes of it.
    pub(super) fn window(&self, start: usize, length: usize) -> &'a str {
        self.slice(start, self.text.floor_char_boundary(start.saturating_add(length)))
    }

    /// Returns the text before `end`, at most about `length` bytes of it.
    pub(super) fn lead(&self, end: usize, length: usize) -> &'a str {
        self.slice(self.text.ceil_char_boundary(end.saturating_sub(length)), end)
    }

    /// Returns the end of the bytes from `at` on that fit, after at most `most` bytes.
    pub(super) fn skip(&self, at: usize, most: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes().get(at..).unwrap_or_default();
        let count = rest.iter().take(most).take_while(|byte| fits(**byte)).count();
        looked_at(count);
        at + count
    }

    /// Whether a token may begin at `at`. No letter or digit may be before it, except for those of
    /// an escape as in `\nghp_` and `%3Dghp_`. After a `-` that follows a letter, a digit,
    /// `_` or another `-`, a token begins only if a secret ends right before the `-`.
    pub(super) fn begins_word(&self, at: usize) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let before = |distance: usize| at.checked_sub(distance).map_or(0, |at| self.byte(at));
        if before(1) == b'-' {
            return (!is_word(before(2)) && before(2) != b'-')
                || self.spans.last().is_some_and(|span| span.end + 1 == at);
        }
        let hex = |digits: usize| (1..=digits).all(|distance| before(distance).is_ascii_hexdigit());
        !is_word(before(1))
            || (before(2) == b'\\' && matches!(before(1), b'n' | b'r' | b't' | b'b' | b'f'))
            || (before(3) == b'%' && hex(2))
            || (before(6) == b'\\' && before(5) == b'u' && hex(4))
            || (before(1) == b'm' && self.ends_colour(at - 1))
    }

    /// Whether the `m` at `at` ends a terminal's colour code: `\u001b[1;31m`.
    fn ends_colour(&self, at: usize) -> bool {
        let mut from = at;
        while at - from < 12 && matches!(self.before(from), b'0'..=b'9' | b';') {
            from -= 1;
        }
        let escape = from.saturating_sub(1);
        self.before(from) == b'['
            && ["\u{1b}", "\\x1b", "\\x1B", "\\u001b", "\\u001B", "\\033", "\\e"]
                .iter()
                .any(|code| self.slice(escape.saturating_sub(code.len()), escape) == *code)
    }

    /// Counts a try to match a token at `start` and returns whether it may be made. A try may read
    /// far, so only [`MAX_TRIES`] of one run may fail.
    pub(super) fn may_try(&mut self, start: usize) -> bool {
        if start >= self.run_end {
            self.run_end = self.skip(start, RUN, is_token);
            self.tries = 0;
        }
        self.tries += 1;
        self.tries <= MAX_TRIES
    }

    /// Notes that the last try found a token at `start`. A token that begins inside another still
    /// counts as a failed try, because there may be as many of them as the outer one has
    /// characters.
    pub(super) fn found_token(&mut self, start: usize) {
        if self.spans.last().is_none_or(|span| span.end <= start) {
            self.tries -= 1;
        }
    }

    /// Returns the end of the unquoted value that begins at `start`: the first byte that does not
    /// fit, or `most` bytes later. Returns `None` if many values begin inside another one and are
    /// not secrets, as in `key=key=key=`, because each of them would be followed to the end.
    pub(super) fn value_end(
        &mut self,
        start: usize,
        most: usize,
        fits: impl Fn(u8) -> bool,
    ) -> Option<usize> {
        if start >= self.last_value_end {
            self.values_in_vain = 0;
        } else if self.values_in_vain >= MAX_TRIES {
            return None;
        }
        self.values_in_vain += 1;
        self.last_value_end = self.skip(start, most, fits);
        Some(self.last_value_end)
    }

    /// Adds a secret, unless a placeholder overlaps it.
    pub(super) fn add(&mut self, start: usize, end: usize, kind: &'a str, rank: Rank) {
        let whole = self.text.get(start..end).is_some_and(|secret| !secret.is_empty());
        if whole && !self.is_masked(start, end) {
            self.spans.push(Span { start, end, kind, rank });
            self.values_in_vain = 0;
        }
    }

    /// Whether a placeholder overlaps the given part of the text. Text that only begins like a
    /// placeholder protects nothing.
    fn is_masked(&self, start: usize, end: usize) -> bool {
        let from = start.saturating_sub(MAX_MASK);
        let to = self.len().min(end + MASK.len() - 1);
        let part = self.bytes().get(from..to).unwrap_or_default();
        memchr::memmem::find_iter(part, MASK)
            .any(|at| self.placeholder_end(from + at).is_some_and(|end| end > start))
    }

    /// Returns the end of the placeholder that begins at `at`, or `None` if none begins there.
    fn placeholder_end(&self, at: usize) -> Option<usize> {
        let name = at + MASK.len();
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let end = self.skip(name, MAX_KIND_BYTES, fits);
        (end > name && self.byte(end) == b']').then_some(end + 1)
    }

    /// Returns the secrets in the order of the text. Overlapping ones are merged: the longest gives
    /// the kind, and among equally long ones the one with the higher [`Rank`].
    pub(super) fn finish(self) -> Vec<Span<'a>> {
        let mut found = self.spans;
        found.sort_by_key(|span| (span.start, std::cmp::Reverse((span.end, span.rank))));
        let mut spans: Vec<Span<'a>> = Vec::with_capacity(found.len());
        for span in found {
            match spans.last_mut() {
                Some(last) if span.start < last.end => {
                    if (span.end - span.start, span.rank) > (last.end - last.start, last.rank) {
                        (last.kind, last.rank) = (span.kind, span.rank);
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

/// Counts the bytes that rules look at, or may look at. It counts in tests of this crate only.
#[inline(always)]
fn looked_at(bytes: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

/// Whether a token may contain the byte.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/' | b'=' | b'~' | b':' | b'%')
}

/// Whether a byte is a quote of some language.
pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

#[cfg(test)]
mod tests {
    use super::super::redactor::{Counts, Redactor};
    use super::*;

    /// Returns the number of bytes looked at in `bytes` bytes of a repeated piece.
    fn work(redactor: &Redactor, piece: &str, bytes: usize) -> usize {
        let text = piece.repeat(bytes / piece.len());
        LOOKED_AT.set(0);
        redactor.mask(&text, &mut Counts::default());
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
            "eyJhbGciaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
        ] {
            let piece = piece.replace("‹›", "");
            let [less, more] = [64 << 10, 256 << 10].map(|bytes| work(&redactor, &piece, bytes));
            assert!(less > 1000 && more < 8 * less, "{piece:?}: {less}, {more}");
        }
    }

    /// What was looked at for one place is not looked at again for the next ones within.
    #[test]
    fn places_within_others_cost_nearly_nothing() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        for piece in ["api_key=", "?api_key=", "\"kty\"", "{\"kty\":", "%3A%2F%2F"] {
            let of_a_byte = work(&redactor, piece, 256 << 10) / (256 << 10);
            assert!(of_a_byte < 150, "{piece:?}: {of_a_byte}");
        }
    }
}
