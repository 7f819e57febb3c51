//! The query language: parses queries and compiles their terms to patterns.

mod error;
mod filter;
mod lex;
mod literals;
pub(super) mod multi;
mod parse;
pub(super) mod pattern;
mod qualifier_token;
mod qualifiers;

pub use error::{QueryError, QueryErrorKind};
pub use filter::{FieldFilter, FilterField};
pub(super) use parse::without_punctuation;
pub use parse::{Clause, Query};
pub use pattern::QueryPattern;
pub use qualifiers::is_qualifier;
