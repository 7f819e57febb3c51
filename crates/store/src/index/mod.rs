//! The skip index of a segment (`skip.idx`): shows which blocks of text cannot hold a needle, and
//! holds the facts about every row that searches filter by and previews show.

mod facts;
mod filter;
mod format;
mod responses;
mod skip_index;
mod words;
mod writer;

pub use facts::{Block, RowFacts, RowOutline, RowTags};
pub use filter::{Grams, needle_grams};
pub(super) use responses::ResponseRow;
pub use skip_index::{SkipIndex, WordLookup};
pub use words::{KnownRows, SHORTEST_WORD, WordPattern};
pub(super) use writer::IndexWriter;
