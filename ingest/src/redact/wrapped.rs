//! Masks tokens that line breaks cut into pieces: terminals and mail wrap them, scripts continue a
//! line with `\`, and code joins two strings with `+`.
//!
//! ```text
//! export GITHUB_TOKEN=ghp_Xk29fJq81LmzPw\
//!     T4vB7sYc03NdRg6HhA5eUo
//! ```

use super::entropy::is_random;
use super::pattern::PrefixPattern;
use super::scan::{Rank, SecretScan, is_identifier_byte, is_quote, is_token};

/// Minimum number of characters of a token before its first line break.
const MIN_FIRST_PIECE_CHARS: usize = 8;

/// Maximum number of characters of a token in one line. Longer runs are data, which nobody wraps by
/// hand.
const MAX_PIECE_CHARS: usize = 256;

/// Maximum length of a joined token in bytes. Web tokens in several lines are the longest.
const MAX_TOKEN_BYTES: usize = 2 << 10;

/// Maximum length in bytes of a line break with the signs and blanks around it.
const MAX_BREAK_BYTES: usize = 40;

/// A line break, real or escaped, that continues a token. It includes the indentation and the
/// opening quote of the next piece.
static LINE_BREAK: PrefixPattern = PrefixPattern::new(
    r#"[ \t]{0,4}\\{0,3}["'`]?[ \t]{0,4}(?:\+|\\)?[ \t]{0,4}(?:\r?\n|\\{1,3}n)[ \t>|]{0,16}(?:\+[ \t]{1,4})?\\{0,3}["'`]?"#,
);

/// Returns whether a [line break](LINE_BREAK) may begin with this byte.
fn may_begin_break(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'\\' | b'+') || is_quote(byte)
}

/// The pieces of a token put together.
struct JoinedToken {
    text: String,
    /// Where each piece begins in the joined text and in the scanned one.
    pieces: Vec<TokenPiece>,
}

/// The part of a token in one line. Positions are in bytes.
struct TokenPiece {
    joined_start: usize,
    start: usize,
}

impl JoinedToken {
    /// Joins the run of token characters at `start` with those of the lines that follow. Returns
    /// `None` if the run is too short or too long for a line of a wrapped token, or if it does not
    /// continue after a line break.
    fn join_lines(scan: &SecretScan<'_>, start: usize) -> Option<Self> {
        let mut joined = Self { text: String::new(), pieces: Vec::new() };
        let mut piece_start = start;
        while joined.text.len() < MAX_TOKEN_BYTES {
            let max_length = MAX_PIECE_CHARS.min(MAX_TOKEN_BYTES - joined.text.len());
            let end = scan.skip_while(piece_start, max_length, is_token);
            if joined.pieces.is_empty() {
                let is_cut = (MIN_FIRST_PIECE_CHARS..MAX_PIECE_CHARS).contains(&(end - start))
                    && may_begin_break(scan.byte(end));
                if !is_cut {
                    return None;
                }
            }

            let joined_start = joined.text.len();
            joined.text.push_str(scan.slice(piece_start, end));
            joined.pieces.push(TokenPiece { joined_start, start: piece_start });
            let Some(line_break) = LINE_BREAK.at_start(scan.text_from(end, MAX_BREAK_BYTES)) else {
                break;
            };
            piece_start = end + line_break.get(0)?.end();
        }
        (joined.pieces.len() > 1).then_some(joined)
    }

    /// Returns where the first `length` joined bytes end in the scanned text, and whether they
    /// include a line break.
    fn place_of_end(&self, length: usize) -> Option<(usize, bool)> {
        let number = self.pieces.partition_point(|piece| piece.joined_start < length);
        let piece = self.pieces.get(number.checked_sub(1)?)?;
        Some((piece.start + length - piece.joined_start, number > 1))
    }
}

/// Masks the token of a kind that begins at `start` and continues on the next lines. Words of a
/// text may form the shape of a token by chance, so the token also has to look random.
pub(super) fn mask_wrapped_token(
    scan: &mut SecretScan<'_>,
    start: usize,
    kind: &'static str,
    pattern: &PrefixPattern,
) {
    let Some(joined) = JoinedToken::join_lines(scan, start) else { return };
    let Some(found) = pattern.at_start(&joined.text) else { return };
    let Some(secret) = found.get(1).or_else(|| found.get(0)) else { return };
    let Some((first_byte_end, _)) = joined.place_of_end(secret.start() + 1) else { return };
    let Some((end, is_wrapped)) = joined.place_of_end(secret.end()) else { return };
    let is_whole = !is_identifier_byte(scan.byte(end));
    if is_wrapped && is_whole && is_random(secret.as_str()) {
        scan.note_token_found(start);
        scan.add_secret(first_byte_end - 1, end, kind, Rank::Shape);
    }
}
