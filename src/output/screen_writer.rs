//! The way of screens to the terminal: their bytes are control sequences and text that was cleaned
//! before.

use std::io::{self, BufWriter, Write};

/// Returns a writer to the terminal. Only the screens and the line editor may use it, because it
/// cleans nothing.
pub(crate) fn screen_writer() -> Box<dyn Write + Send> {
    Box::new(BufWriter::new(io::stdout()))
}
