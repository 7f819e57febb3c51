//! Recognizes well-known tokens by their shapes, which `token_rules.rs` lists.
//!
//! Each shape has short anchors, which one pass over the text searches (`anchors.rs`), and a regex
//! that is tried only at the places found.

use super::entropy::{is_made_up, is_random};
use super::rule::{SecretRule, TokenLead, TokenShape};
use super::scan::{SecretScan, is_identifier_byte, is_token};
use super::wrapped;

/// Minimum length of a token in bytes.
const MIN_TOKEN_BYTES: usize = 20;

/// Maximum length of a token in bytes.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// Minimum number of characters other than wildcards in an anchor that identifies a token inside a
/// longer word.
const MIN_FIXED_CHARS: usize = 4;

/// Minimum length of a token that is identified inside a longer word by three characters.
const MIN_JOINED_CHARS: usize = 32;

/// Maximum length in bytes of a word to which such a token is joined. Longer ones are data.
const MAX_JOINED_WORD_BYTES: usize = 24;

/// Decides from its anchors whether the token of a rule may be a part of a longer word.
impl SecretRule {
    /// Returns whether every anchor is the beginning of the token itself and has at least
    /// [`MIN_FIXED_CHARS`]. Such a token is found even after a `-` or `_`, because names of files
    /// are joined to tokens this way.
    fn is_distinctive(&self) -> bool {
        self.has_fixed_chars(MIN_FIXED_CHARS)
    }

    /// Returns whether every anchor is the beginning of the token itself and has at least `count`
    /// characters other than wildcards.
    fn has_fixed_chars(&self, count: usize) -> bool {
        self.anchors.iter().all(|anchor| {
            let wildcards = anchor.bytes().filter(|byte| matches!(byte, b'?' | b'#' | b'^'));
            !anchor.contains(['=', ':', '/', ' ', '"', '\''])
                && anchor.len() - wildcards.count() >= count
        })
    }

    /// Returns whether every anchor has three characters, one of which is a sign that few words have.
    fn is_signed(&self) -> bool {
        self.has_fixed_chars(3)
            && self.anchors.iter().all(|anchor| anchor.contains(['_', '-', '.']))
    }

    /// Returns whether `text` is a token of the shape although another word is joined to it:
    /// `exec_commandghp_...`. `neighbour` is the character of the other word. Data in base64 has such
    /// tokens by chance if three characters identify them, so `is_near_boundary` tells whether the
    /// token or the word before it begins after something else.
    fn is_joined_token(&self, text: &str, neighbour: u8, is_near_boundary: bool) -> bool {
        if matches!(neighbour, b'-' | b'_') && self.is_distinctive() {
            return true;
        }
        if !is_random(text) || !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return false;
        }
        // `AKIA...` has no small letters.
        if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return self.is_distinctive() && neighbour.is_ascii_lowercase();
        }
        let is_signed = self.is_signed();
        let is_long = is_signed && is_near_boundary && text.len() >= MIN_JOINED_CHARS;
        // `EAAA` occurs in the base64 of any data, `AIza` does not.
        let is_unlike_data = is_signed
            || self
                .anchors
                .iter()
                .all(|anchor| anchor.bytes().any(|byte| byte.is_ascii_lowercase()));
        is_unlike_data && self.has_fixed_chars(if is_long { 3 } else { MIN_FIXED_CHARS })
    }
}

/// Masks the token of a rule whose anchor is at `at`.
pub(super) fn mask_token(
    scan: &mut SecretScan<'_>,
    at: usize,
    rule: &SecretRule,
    shape: &TokenShape,
) {
    let start = match shape.lead {
        TokenLead::Any => at,
        TokenLead::Word | TokenLead::Alone if scan.may_begin_token(at) => at,
        // Whether the token may be joined to the word before it is decided when it is known.
        TokenLead::Word if rule.is_distinctive() || rule.is_signed() => at,
        TokenLead::Word | TokenLead::Alone => return,
        TokenLead::Back(max_length, class) => {
            let lead = scan.bytes().get(..at).unwrap_or_default().iter().rev();
            let length = lead.take(max_length + 1).take_while(|byte| class(byte)).count();
            if length > max_length {
                return;
            }
            at - length
        }
    };

    // `path/to` begins like a token, and many words do.
    let is_short = is_token(scan.byte(start))
        && scan.skip_while(start, MIN_TOKEN_BYTES, is_token) - start < MIN_TOKEN_BYTES;
    if is_short && !rule.is_distinctive() && !scan.may_begin_token(start) {
        return;
    }
    if !scan.may_try(start) {
        return;
    }
    if is_short {
        return wrapped::mask_wrapped_token(scan, start, &shape.pattern);
    }

    let window = scan.text_from(start, MAX_TOKEN_BYTES);
    let Some(found) = shape.pattern.captures(window) else {
        return wrapped::mask_wrapped_token(scan, start, &shape.pattern);
    };
    let Some(secret) = found.get(1).or_else(|| found.get(0)) else { return };
    // A secret that fills the window ends only because the window ends, and `=` ends a padded one.
    let is_word_start = scan.may_begin_token(start);
    let next = scan.byte(start + secret.end());
    let is_cut = is_identifier_byte(next)
        && secret.end() < window.len()
        && !secret.as_str().ends_with('=')
        && !rule.is_joined_token(secret.as_str(), next, is_word_start);
    let is_inside_word = matches!(shape.lead, TokenLead::Word) && !is_word_start && {
        let word_start = scan.run_start(start, MAX_JOINED_WORD_BYTES + 1, is_token);
        let is_near_boundary = start - word_start <= MAX_JOINED_WORD_BYTES;
        !rule.is_joined_token(secret.as_str(), scan.byte_before(start), is_near_boundary)
    };
    let is_likely = !matches!(shape.lead, TokenLead::Alone) || is_random(secret.as_str());
    if is_likely && !is_cut && !is_inside_word && !is_made_up_token(secret.as_str()) {
        scan.note_token_found(start);
        scan.add_secret(start + secret.start(), start + secret.end());
    }
}

/// Returns whether a text in the shape of a token was made up. Some shapes include a `=` and the
/// text after it, which may not belong to the token. In that case the part before the `=` has to be
/// made up, too.
fn is_made_up_token(secret: &str) -> bool {
    let secret = secret.get(4..).unwrap_or_default();
    let body = secret.split('=').next().unwrap_or_default();
    is_made_up(secret) && (body.len() < MIN_TOKEN_BYTES - 4 || is_made_up(body))
}
