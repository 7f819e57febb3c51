//! Decides which pieces of a session are left out, so that the rest fits into one document.
//!
//! A piece is a message or a part of one. A piece that is left out becomes a record that says how
//! large it is:
//!
//! ```text
//! {"id":"prt_...","type":"oversized_record","bytes":314572800}
//! ```

use std::fmt::{Display, Write as _};

use schemas::problem::ProblemKind;

use crate::source::container::MAX_DOCUMENT_BYTES;
use crate::stream::{RecordAt, Stream};

/// The type of a record that replaces a piece.
pub(crate) const OVERSIZED_RECORD: &str = "oversized_record";

/// Upper bound for the bytes that a document adds to a piece (ids and separators), and for a record
/// that replaces a piece.
const PIECE_OVERHEAD_BYTES: u64 = 256;

/// Pieces of fewer bytes are never left out, because the record that replaces one takes as much.
const MIN_LEFT_OUT_BYTES: u64 = 512;

/// A message or a part of one. Pieces are ordered by size, then by id.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) bytes: u64,
    pub(crate) id: String,
}

/// The limit for the pieces of a session.
pub(crate) struct SizeLimit {
    smallest_left_out: Piece,
}

impl SizeLimit {
    /// Leaves out only pieces that exceed a document by themselves.
    fn of_one_piece() -> Self {
        let smallest_left_out = Piece { bytes: MAX_DOCUMENT_BYTES + 1, id: String::new() };
        Self { smallest_left_out }
    }

    /// Leaves out the largest of `pieces` until the rest fits into a document with a header of
    /// `header_bytes`.
    pub(crate) fn of_session(mut pieces: Vec<Piece>, header_bytes: u64) -> Self {
        pieces.sort_unstable();
        let costs = pieces.iter().map(Piece::document_bytes);
        let mut total = costs.fold(header_bytes, u64::saturating_add);
        let mut limit = Self::of_one_piece();
        while total > MAX_DOCUMENT_BYTES
            && let Some(largest) = pieces.pop()
            && largest.bytes >= MIN_LEFT_OUT_BYTES
        {
            total -= largest.bytes;
            limit.smallest_left_out = largest;
        }
        limit
    }

    /// Returns whether a piece is kept.
    pub(crate) fn includes(&self, piece: &Piece) -> bool {
        *piece < self.smallest_left_out
    }

    /// The smallest piece that is left out. All pieces from it on are.
    pub(crate) fn smallest_left_out(&self) -> &Piece {
        &self.smallest_left_out
    }
}

impl Piece {
    /// Upper bound for the bytes of the piece in a document.
    fn document_bytes(&self) -> u64 {
        self.bytes.saturating_add(PIECE_OVERHEAD_BYTES)
    }
}

/// Returns the approximate size of a document whose header and pieces have these sizes in total.
pub(crate) fn limited_size(header_bytes: u64, total_bytes: u64) -> u64 {
    total_bytes.min(MAX_DOCUMENT_BYTES).max(header_bytes)
}

/// Returns the JSON record that replaces a piece of `bytes`. `created` is the piece's time in
/// milliseconds since 1970, if it is known.
pub(crate) fn oversized_record(bytes: u64, created: Option<&dyn Display>) -> String {
    let mut record = format!("{{\"type\":\"{OVERSIZED_RECORD}\",\"bytes\":{bytes}");
    if let Some(created) = created {
        let _ = write!(record, ",\"time\":{{\"created\":{created}}}");
    }
    record.push('}');
    record
}

/// Pushes a notification for a piece of a session that was left out, and reports it. `name` says
/// what the piece is.
pub(crate) fn push_oversized(name: &str, bytes: i64, at: RecordAt, out: &mut Stream) {
    let text = format!("a {name} of {bytes} bytes was not read");
    out.push_notification(OVERSIZED_RECORD, &text);
    let message = format!(
        "{text}: only {MAX_DOCUMENT_BYTES} bytes of a session are read, and its largest pieces \
         are left out"
    );
    out.push_problem(at, ProblemKind::OversizedRecord, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn left_out(sizes: &[u64], header_bytes: u64) -> Vec<usize> {
        let piece = |number: usize| Piece { bytes: sizes[number], id: format!("{number:04}") };
        let limit = SizeLimit::of_session((0..sizes.len()).map(piece).collect(), header_bytes);
        (0..sizes.len()).filter(|number| !limit.includes(&piece(*number))).collect()
    }

    #[test]
    fn the_largest_pieces_are_left_out_until_the_rest_fits() {
        assert!(left_out(&[], 0).is_empty());
        assert!(left_out(&[1, 63 * MB, 2], 1000).is_empty());
        assert_eq!(left_out(&[1, 300 * MB, 63 * MB], 0), [1]);
        assert_eq!(left_out(&[40 * MB, 300 * MB, 10 * MB, 30 * MB], 0), [0, 1]);
        assert_eq!(left_out(&[40 * MB, 10 * MB], 20 * MB), [0], "the header counts");
    }

    #[test]
    fn of_equal_pieces_the_last_are_left_out() {
        let left = left_out(&[MB; 70], 0);
        assert_eq!(left, (63..70).collect::<Vec<_>>());
    }

    #[test]
    fn pieces_that_are_not_larger_than_their_replacement_stay() {
        assert!(left_out(&vec![100; 300_000], 0).is_empty());
        assert_eq!(left_out(&[vec![100; 300_000], vec![600]].concat(), 0), [300_000]);
    }
}
