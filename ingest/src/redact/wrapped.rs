//! Masks tokens that line breaks cut into pieces: terminals and mail wrap them, scripts continue a
//! line with `\`, and code joins two strings with `+`.
//!
//! ```text
//! export GITHUB_TOKEN=ghp_Xk29fJq81LmzPw\
//!     T4vB7sYc03NdRg6HhA5eUo
//! ```

use super::entropy::is_random;
use super::pattern::Pattern;
use super::scan::{Rank, Scan, is_quote, is_token};

/// Fewest characters of a token before its first line break.
const MIN_FIRST_PIECE: usize = 8;

/// Most characters of a token in one line. Longer runs are data, which nobody wraps by hand.
const MAX_PIECE: usize = 256;

/// Most bytes of a joined token. Web tokens in several lines are the longest.
const MAX_TOKEN: usize = 2 << 10;

/// Most bytes of a line break with the signs and blanks around it.
const MAX_BREAK: usize = 40;

/// A line break, real or escaped, that continues a token. It includes the indentation and the
/// opening quote of the next piece.
static LINE_BREAK: Pattern = Pattern::new(
    r#"[ \t]{0,4}\\{0,3}["'`]?[ \t]{0,4}(?:\+|\\)?[ \t]{0,4}(?:\r?\n|\\{1,3}n)[ \t>|]{0,16}(?:\+[ \t]{1,4})?\\{0,3}["'`]?"#,
);

/// Whether a [line break](LINE_BREAK) may begin with this byte.
fn may_begin_break(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'\\' | b'+') || is_quote(byte)
}

/// The pieces of a token put together.
struct Joined {
    text: String,
    /// Where each piece begins in the joined text and in the scanned one.
    pieces: Vec<Piece>,
}

struct Piece {
    joined_start: usize,
    start: usize,
}

impl Joined {
    /// Joins the run of token characters at `start` with those of the lines that follow. Returns
    /// `None` if the run does not end with a line break.
    fn read(scan: &Scan<'_>, start: usize) -> Option<Self> {
        let mut joined = Self { text: String::new(), pieces: Vec::new() };
        let mut piece_start = start;
        while joined.text.len() < MAX_TOKEN {
            let most = MAX_PIECE.min(MAX_TOKEN - joined.text.len());
            let end = scan.skip(piece_start, most, is_token);
            if joined.pieces.is_empty() && !(MIN_FIRST_PIECE..MAX_PIECE).contains(&(end - start)) {
                return None;
            }
            if !may_begin_break(scan.byte(end)) && joined.pieces.is_empty() {
                return None;
            }
            let joined_start = joined.text.len();
            joined.text.push_str(scan.slice(piece_start, end));
            joined.pieces.push(Piece { joined_start, start: piece_start });
            let Some(line_break) = LINE_BREAK.at_start(scan.window(end, MAX_BREAK)) else { break };
            piece_start = end + line_break.get(0)?.end();
        }
        (joined.pieces.len() > 1).then_some(joined)
    }

    /// Returns where the first `length` joined bytes end in the scanned text, and whether a line
    /// break comes before that place.
    fn place_of_end(&self, length: usize) -> Option<(usize, bool)> {
        let number = self.pieces.partition_point(|piece| piece.joined_start < length);
        let piece = self.pieces.get(number.checked_sub(1)?)?;
        Some((piece.start + length - piece.joined_start, number > 1))
    }
}

/// Masks the token of a kind that begins at `start` and continues on the next lines. Words of a
/// text may form the shape of a token by chance, so the token also has to look random.
pub(super) fn find(scan: &mut Scan<'_>, start: usize, kind: &'static str, pattern: &Pattern) {
    let Some(joined) = Joined::read(scan, start) else { return };
    let Some(found) = pattern.at_start(&joined.text) else { return };
    let Some(secret) = found.get(1).or_else(|| found.get(0)) else { return };
    let Some((from, _)) = joined.place_of_end(secret.start() + 1) else { return };
    let Some((end, is_wrapped)) = joined.place_of_end(secret.end()) else { return };
    let next = scan.byte(end);
    let is_whole = !next.is_ascii_alphanumeric() && next != b'_';
    if is_wrapped && is_whole && is_random(secret.as_str()) {
        scan.found_token(start);
        scan.add(from - 1, end, kind, Rank::Shape);
    }
}
