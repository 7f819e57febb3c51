//! Masks tokens that line breaks cut into pieces: terminals and mail wrap them, scripts continue a
//! line with `\`, and code joins two strings with `+`. All lines may have the same lead: the sign of
//! a comment, a file name that `grep` prints, or a time.
//!
//! ```text
//! export GITHUB_TOKEN=ghp_Xk29fJq81LmzPw\
//!     T4vB7sYc03NdRg6HhA5eUo
//! ```

use super::entropy::is_random;
use super::pattern::LazyRegex;
use super::scan::{SecretScan, is_identifier_byte, is_quote, is_token};

/// Minimum number of characters of a token before its first line break.
const MIN_FIRST_PIECE_CHARS: usize = 8;

/// Maximum number of characters of a token in one line. Longer runs are data, which is never
/// wrapped by hand.
const MAX_PIECE_CHARS: usize = 256;

/// Maximum length of a joined token in bytes. Web tokens in several lines are the longest.
const MAX_TOKEN_BYTES: usize = 2 << 10;

/// Maximum number of lines of a token, with blank ones between them.
const MAX_PIECES: usize = 256;

/// Maximum length in bytes of a line break with the signs and blanks around it.
const MAX_BREAK_BYTES: usize = 48;

/// Builds the regex of a line break up to the indentation of the next line.
macro_rules! line_break {
    ($sign:literal) => {
        concat!(
            r#"(?:[ \t]{0,4}\\{0,3}["'`]?[ \t]{0,4}(?:\+|\\|\||│)?[ \t]{0,4}(?:\r?\n|\\{1,3}n)"#,
            $sign,
            r"[ \t>|│]{0,16}(?:[0-9]{1,6}(?:→|[\t:|-])[ \t]?)?(?:\+[ \t]{1,4})?",
            r#"|\\{0,3}["'`][ \t]{0,4}\+[ \t]{0,4}(?:\\{0,3}["'`]))"#
        )
    };
}

/// A line break, real or escaped, that continues a token. It includes the indentation and the
/// opening quote of the next piece.
static LINE_BREAK: LazyRegex = LazyRegex::at_start(concat!(line_break!(""), r#"\\{0,3}["'`]?"#));

/// A [line break](LINE_BREAK) in a diff, with the sign of the next line.
static DIFF_BREAK: LazyRegex =
    LazyRegex::at_start(concat!(line_break!("[+-]"), r#"\\{0,3}["'`]?"#));

/// Returns whether a [line break](LINE_BREAK) may begin with this byte.
fn may_begin_break(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'\\' | b'+') || is_quote(byte)
}

/// Maximum number of bytes from the beginning of a line of a diff to a token in it.
const MAX_LEAD_BYTES: usize = 160;

/// Returns the line that includes `at`, up to `at`.
fn line_lead<'a>(scan: &SecretScan<'a>, at: usize) -> &'a str {
    let lead = scan.text_before(at, MAX_LEAD_BYTES);
    let real = lead.rfind('\n').map(|line_break| line_break + 1);
    let escaped = lead.rfind("\\n").map(|line_break| line_break + 2);
    real.max(escaped).and_then(|start| lead.get(start..)).unwrap_or(lead)
}

/// Returns whether a line begins with the sign of a diff.
fn is_in_diff(line: &str) -> bool {
    line.starts_with(['+', '-']) && !line.starts_with("--")
}

/// The end of a line within a token, real or escaped. It includes the closing quote of the piece.
static LINE_END: LazyRegex = LazyRegex::at_start(
    r#"[ \t]{0,4}\\{0,3}["'`]?[ \t]{0,4}(?:\+|\\)?[ \t]{0,4}(?:\r?\n|\\{1,3}n)"#,
);

/// Maximum number of bytes of blanks and quotes between the lead of a line and a piece of a token.
const MAX_INDENT_BYTES: usize = 16;

/// Returns the length of the line break at `end` if the next line begins as the token's line does
/// with a sign or a number. `lead` is the token's line up to the token.
fn break_with_lead(scan: &SecretScan<'_>, end: usize, lead: &str) -> Option<usize> {
    if lead.trim_ascii().is_empty() {
        return None;
    }
    let line_end = LINE_END.captures(scan.text_from(end, MAX_BREAK_BYTES))?.get(0)?.end();
    let line_start = end + line_end;
    let next = scan.text_from(line_start, lead.len() + MAX_INDENT_BYTES);
    let mut shared = shared_lead_length(lead, next);
    if shared == 0 {
        // The first line may come after the name of an argument: `command: # ...`.
        let rest = lead.split_once(' ').map_or("", |(_, rest)| rest);
        shared = shared_lead_length(rest, next);
    }
    if shared == 0 {
        return None;
    }
    let piece = scan.skip_while(line_start + shared, MAX_INDENT_BYTES, |byte| {
        matches!(byte, b' ' | b'\t') || is_quote(byte)
    });
    Some(piece - end)
}

/// Returns how many bytes of the line `next` are as at the beginning of `lead`, where any two numbers
/// are equal. They end after a blank or a sign. Zero if they are only words and blanks.
fn shared_lead_length(lead: &str, next: &str) -> usize {
    let (lead, text) = (lead.as_bytes(), next.as_bytes());
    let mut lead_at = 0;
    let mut at = 0;
    let mut shared = 0;
    let mut has_mark = false;
    let mut is_marked = false;
    while let (Some(a), Some(b)) = (lead.get(lead_at), text.get(at)) {
        if a.is_ascii_digit() && b.is_ascii_digit() {
            lead_at += count_digits(&lead[lead_at..]);
            at += count_digits(&text[at..]);
            is_marked = true;
            continue;
        }
        if a != b {
            break;
        }
        lead_at += 1;
        at += 1;
        is_marked |= !(a.is_ascii_alphabetic() || a.is_ascii_whitespace());
        if !a.is_ascii_alphanumeric() && next.is_char_boundary(at) {
            shared = at;
            has_mark = is_marked;
        }
    }
    if has_mark { shared } else { 0 }
}

/// Returns the number of digits at the beginning of a text.
fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
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
        let lead = line_lead(scan, start);
        let pattern = if is_in_diff(lead) { &DIFF_BREAK } else { &LINE_BREAK };
        let mut piece_start = start;
        while joined.text.len() < MAX_TOKEN_BYTES && joined.pieces.len() < MAX_PIECES {
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
            if let Some(length) = break_with_lead(scan, end, lead) {
                piece_start = end + length;
                continue;
            }
            let Some(line_break) = pattern.captures(scan.text_from(end, MAX_BREAK_BYTES)) else {
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

/// Maximum number of lines on which a value continues.
const MAX_CONTINUED_LINES: usize = 16;

/// A line break within a value: of a terminal that wraps it, of a script that continues the line, or
/// of code that joins two strings.
static VALUE_BREAK: LazyRegex = LazyRegex::at_start(
    r#"(?:\\?\r?\n|\\{1,3}n)[ \t>|]{0,16}|["'][ \t]{0,4}\+?[ \t]{0,4}\\?\r?\n[ \t]{0,16}\+?[ \t]{0,4}["']"#,
);

/// Minimum number of characters in the last line of a value.
const MIN_LAST_PIECE_CHARS: usize = 3;

/// Returns whether a short line looks like the end of a value: it has a digit, or a capital after
/// its first letter.
fn is_last_piece(piece: &str) -> bool {
    piece.len() >= MIN_LAST_PIECE_CHARS
        && (piece.bytes().any(|byte| byte.is_ascii_digit())
            || piece.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()))
        && piece.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Returns where a value ends whose first line ends at `end`. A line continues the value if nothing
/// but bytes that fit is in it, up to a quote, and if it looks like a secret as well. After such a
/// line, the last one may be shorter.
pub(super) fn continued_end(
    scan: &SecretScan<'_>,
    end: usize,
    fits: fn(u8) -> bool,
    is_secret: fn(&str) -> bool,
) -> usize {
    let mut end = end;
    let mut last_length = 0;
    for _ in 0..MAX_CONTINUED_LINES {
        let found = VALUE_BREAK.captures(scan.text_from(end, MAX_BREAK_BYTES));
        let Some(line_break) = found.as_ref().and_then(|found| found.get(0)) else { break };
        let start = end + line_break.len();
        let next_end = scan.skip_while(start, MAX_PIECE_CHARS, fits);
        let piece = scan.slice(start, next_end);
        let is_whole = matches!(scan.byte(next_end), 0 | b'\r' | b'\n' | b'\\')
            || is_quote(scan.byte(next_end));
        let is_part = is_secret(piece) || piece.len() < last_length && is_last_piece(piece);
        if !is_whole || piece.contains("://") || piece.ends_with(':') || !is_part {
            break;
        }
        last_length = piece.len();
        end = next_end;
    }
    end
}

/// Masks the token that begins at `start` and continues on the next lines. Words of a
/// text may form the shape of a token by chance, so the token also has to look random.
pub(super) fn mask_wrapped_token(scan: &mut SecretScan<'_>, start: usize, pattern: &LazyRegex) {
    let Some(joined) = JoinedToken::join_lines(scan, start) else { return };
    let Some(found) = pattern.captures(&joined.text) else { return };
    let Some(secret) = found.get(1).or_else(|| found.get(0)) else { return };
    let Some((first_byte_end, _)) = joined.place_of_end(secret.start() + 1) else { return };
    let Some((end, is_wrapped)) = joined.place_of_end(secret.end()) else { return };
    let is_whole = !is_identifier_byte(scan.byte(end));
    if is_wrapped && is_whole && is_random(secret.as_str()) {
        scan.note_token_found(start);
        scan.add_secret(first_byte_end - 1, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_share_signs_and_numbers() {
        assert_eq!(shared_lead_length("# token: ", "# t0ken"), "# ".len());
        assert_eq!(shared_lead_length("a.txt:9:", "a.txt:10:H5n"), "a.txt:10:".len());
        assert_eq!(shared_lead_length("12:01:07 WARN ", "12:01:08 Use"), "12:01:08 ".len());
        assert_eq!(shared_lead_length("the token is ", "the next"), 0);
        assert_eq!(shared_lead_length("│ ", "│ x"), "│ ".len());
        assert_eq!(shared_lead_length("", "x"), 0);
    }
}
