//! The skip index of a segment (`skip.idx`): which blocks of text cannot hold a needle, and the
//! facts about every row that searches filter by and previews show.

mod facts;
mod filter;
mod format;
mod skip_index;
mod words;
mod writer;

pub use facts::{Block, Labels, Outline, RowFacts};
pub use filter::{Grams, grams};
pub use skip_index::{SkipIndex, WordsOfRows};
pub use words::{KnownRows, Letters, SHORTEST as SHORTEST_WORD};
pub(super) use writer::IndexWriter;
